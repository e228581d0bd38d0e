//! The queue of a qdisc: a tree over its pool. The cookie of each packet is the address of its skb.

use alloc::boxed::Box;
use core::fmt;

use fairgate::flow::{HeaderBytes, LinkType, dissect_payload};
use fairgate::{
    Arrival, Class, ClassId, Departure, Discipline, Dropped, FlowHasher, Heritage, Link, Next, Packet, Pool,
    Slot, Statistics, Time,
};

use crate::form::{Refused, refused};
use crate::tree::Plan;

/// A packet of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// The bytes from the network header on, as far as they are at hand.
    pub head: &'a [u8],
    /// The EtherType of these bytes.
    pub ethertype: u16,
    /// The EtherType of the frame: that of a VLAN tag, if it has one.
    pub outer_ethertype: u16,
    /// The VLAN identifier, or 0.
    pub vlan: u16,
    /// The kernel's priority, which may be a class.
    pub priority: u32,
    /// What is not read from headers: cookie, length, memory, mark, stamp.
    pub packet: Packet,
}

/// A discipline that runs, with its packets.
pub struct Queue {
    link: Link<(), Box<dyn Discipline>>,
    hasher: FlowHasher,
    cuts: bool,
}

/// A tree that is built and takes the place of a running one.
pub struct Successor {
    root: Box<dyn Discipline>,
    slots: u32,
    cuts: bool,
}

impl fmt::Debug for Successor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Successor").field(&self.root.name()).finish()
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.link.root().name()).finish()
    }
}

impl Successor {
    /// Builds the tree of a plan.
    ///
    /// # Errors
    /// If a discipline refuses its settings.
    pub fn new(plan: &Plan, seed: u64) -> Result<Successor, Refused> {
        Ok(Successor {
            root: plan.tree.build(seed)?,
            slots: plan.slots,
            cuts: plan.cuts,
        })
    }

    /// Builds a queue for it. `key` is the secret of the flows' hash.
    pub fn into_queue(self, key: [u64; 2]) -> Queue {
        let mut link = Link::with_pool(self.root, Pool::with_capacity(self.slots));
        link.allow_copies();
        Queue {
            link,
            hasher: FlowHasher::new(key),
            cuts: self.cuts,
        }
    }
}

impl Queue {
    /// Whether merged packets are to be cut before they are enqueued.
    pub fn cuts(&self) -> bool {
        self.cuts
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> u32 {
        self.link.capacity()
    }

    /// Whether [`take_dropped`](Queue::take_dropped) has something to take.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        self.link.has_dropped()
    }

    /// Returns the number of packets in the pool.
    pub fn len(&self) -> u32 {
        self.link.len()
    }

    /// Whether no packet is in the pool.
    pub fn is_empty(&self) -> bool {
        self.link.is_empty()
    }

    /// Enqueues a packet. Returns false if all slots are in use: then nothing has changed.
    #[inline]
    pub fn enqueue(&mut self, arriving: &Arriving<'_>, now: Time) -> bool {
        let mut dissection = dissect_payload(arriving.head, arriving.ethertype);
        dissection.key.outer_ethertype = arriving.outer_ethertype;
        dissection.key.vlan = arriving.vlan;
        let mut packet = arriving.packet;
        packet.flow = self.hasher.five_tuple(&dissection.key);
        packet.dscp = dissection.dscp();
        packet.ecn = dissection.ecn();
        packet.class = ClassId::new((arriving.priority >> 16) as u16, arriving.priority as u16);
        packet.priority = (arriving.priority & 15) as u8;
        let needs = self.link.needs();
        let arrival = Arrival {
            packet,
            headers: Some(dissection.key),
            acknowledgement: match needs.acknowledgements {
                true => dissection.acknowledgement(arriving.head),
                false => None,
            },
            bytes: match needs.bytes {
                true => Some(HeaderBytes::of_frame(arriving.head, LinkType::RawIp)),
                false => None,
            },
        };
        self.link.enqueue(arrival, (), now).is_ok()
    }

    /// Dequeues the next packet.
    #[inline]
    pub fn dequeue(&mut self, now: Time) -> Next<Departure<()>> {
        self.link.dequeue(now)
    }

    /// Enqueues the copies that the last call has asked for. `copy` makes one of an skb.
    #[inline]
    pub fn enqueue_copies(&mut self, now: Time, mut copy: impl FnMut(u64) -> Option<u64>) -> bool {
        self.link
            .enqueue_copies(now, |cookie, ()| copy(cookie).map(|copy| (copy, ())))
    }

    /// Returns the oldest packet that the last call dropped or flushed.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<Dropped<()>> {
        self.link.take_dropped()
    }

    /// Gives all packets back as flushed.
    pub fn flush(&mut self) {
        self.link.change(|root, pool| root.flush(pool));
    }

    /// Checks that `successor` can take the place of the running tree. What it needs for each packet can't be
    /// allocated while packets are queued.
    ///
    /// # Errors
    /// Says what to do instead.
    pub fn check_succession(&self, successor: &Successor) -> Result<(), Refused> {
        const REMEDY: &str = "replace the qdisc under another handle";
        if successor.slots != self.link.capacity() {
            return refused(format!("slots stay at {}: {REMEDY}", self.link.capacity()));
        }
        let (kept, needs) = (self.link.needs(), successor.root.needs());
        if needs.acknowledgements && !kept.acknowledgements {
            return refused(format!("the running tree keeps no ACKs: {REMEDY}"));
        }
        if needs.bytes && !kept.bytes {
            return refused(format!("the running tree keeps no header bytes: {REMEDY}"));
        }
        Ok(())
    }

    /// Lets `successor` take over all packets and the statistics of the root. Packets for which it has no
    /// room are dropped. Afterwards it has the old tree, which is empty: it is dropped where nobody waits.
    /// Nothing is allocated here, unless a discipline does.
    pub fn succeed(&mut self, successor: &mut Successor, now: Time) {
        self.cuts = successor.cuts;
        let root = &mut successor.root;
        let needs = root.needs();
        let heritage = Heritage {
            statistics: true,
            classes: alloc::vec::Vec::new(),
        };
        self.link.change_root_in_part(needs, |running, pool| {
            root.take_over(running.as_mut(), &heritage, now, pool);
            core::mem::swap(running, root);
        });
    }

    /// Returns the packet in the first slot from `from` on that holds one, and the number of the next slot.
    /// It works whatever state the discipline is in.
    pub fn salvage(&self, from: u32) -> Option<(&Slot, u32)> {
        self.link.packet_from(from)
    }

    /// Returns the statistics of the root.
    pub fn statistics(&self) -> Statistics {
        self.link.root().statistics()
    }

    /// Calls `visit` for the classes of the tree's first discipline that has some. A shaper that holds one
    /// discipline is passed.
    pub fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        classes_of(self.link.root(), visit);
    }
}

fn classes_of(discipline: &dyn Discipline, visit: &mut dyn FnMut(Class<'_>)) {
    let mut count = 0;
    discipline.visit_classes(&mut |_| count += 1);
    if count != 1 {
        discipline.visit_classes(visit);
        return;
    }
    discipline.visit_classes(&mut |class| {
        let mut inner = 0;
        class.discipline.visit_classes(&mut |_| inner += 1);
        match inner {
            0 => visit(class),
            _ => classes_of(class.discipline, visit),
        }
    });
}
