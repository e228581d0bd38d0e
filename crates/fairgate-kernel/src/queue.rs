//! The queue of a qdisc: a tree over its pool. The cookie of each packet is the address of its skb.

use alloc::boxed::Box;
use core::fmt;

use fairgate::flow::{HeaderBytes, LinkType, dissect_payload, ethertype};
use fairgate::{
    Arrival, Class, ClassId, Departure, Discipline, Dropped, Ecn, FlowHash, FlowHasher, FlowKey, Heritage,
    Link, Next, Packet, Pool, Slot, Statistics, Time,
};

use crate::form::{Refused, refused};
use crate::sojourns::Sojourns;
use crate::tree::{Plan, Reads};

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
    reads: Reads,
    widest: usize,
    sojourns: Sojourns,
}

/// A tree that is built and takes the place of a running one.
pub struct Successor {
    root: Box<dyn Discipline>,
    slots: u32,
    cuts: bool,
    reads: Reads,
    widest: usize,
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
            reads: plan.tree.reads(),
            widest: plan.tree.widest(),
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
            reads: self.reads,
            widest: self.widest,
            sojourns: Sojourns::new(),
        }
    }
}

impl Queue {
    /// Whether merged packets are to be cut before they are enqueued.
    pub fn cuts(&self) -> bool {
        self.cuts
    }

    /// Whether headers are read. If not, [`enqueue`](Queue::enqueue) needs no bytes and no EtherTypes.
    pub fn reads_headers(&self) -> bool {
        self.reads > Reads::Nothing
    }

    /// Lets a test read more than the tree does.
    #[cfg(all(test, feature = "program"))]
    pub(crate) fn read_everything(&mut self) {
        self.reads = Reads::Everything;
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
    ///
    /// Of the headers only what the tree reads is read.
    #[inline]
    pub fn enqueue(&mut self, arriving: &Arriving<'_>, now: Time) -> bool {
        let Arriving { packet, priority, .. } = *arriving;
        match self.reads {
            Reads::Nothing => self.enqueue_unread(packet, priority, now),
            Reads::TrafficClass => {
                let traffic_class = match arriving.head {
                    [0x45, byte, ..]
                        if arriving.ethertype == ethertype::IPV4 && arriving.head.len() >= 20 =>
                    {
                        *byte
                    }
                    _ => key_of(arriving).traffic_class,
                };
                self.insert(packet, priority, FlowHash::NONE, traffic_class, now)
            }
            Reads::Flow => match common_key(arriving) {
                Some(key) => {
                    let flow = self.hasher.five_tuple(&key);
                    self.insert(packet, priority, flow, key.traffic_class, now)
                }
                None => self.enqueue_uncommon(arriving, now),
            },
            Reads::Everything => self.enqueue_with_headers(arriving, now),
        }
    }

    /// Enqueues a packet without its headers, for a tree that reads none.
    #[inline]
    pub fn enqueue_unread(&mut self, packet: Packet, priority: u32, now: Time) -> bool {
        self.insert(packet, priority, FlowHash::NONE, 0, now)
    }

    // Inlined into each branch above, so that the fields stay in registers.
    #[inline(always)]
    fn insert(
        &mut self,
        packet: Packet,
        priority: u32,
        flow: FlowHash,
        traffic_class: u8,
        now: Time,
    ) -> bool {
        let packet = completed(packet, priority, flow, traffic_class);
        self.link.enqueue(packet, (), now).is_ok()
    }

    // Not inlined, so that the key of a common packet needs no memory.
    #[inline(never)]
    fn enqueue_uncommon(&mut self, arriving: &Arriving<'_>, now: Time) -> bool {
        let key = key_of(arriving);
        let flow = self.hasher.five_tuple(&key);
        self.insert(arriving.packet, arriving.priority, flow, key.traffic_class, now)
    }

    #[inline(never)]
    fn enqueue_with_headers(&mut self, arriving: &Arriving<'_>, now: Time) -> bool {
        let key = FlowKey {
            outer_ethertype: arriving.outer_ethertype,
            vlan: arriving.vlan,
            ..common_key(arriving).unwrap_or_else(|| key_of(arriving))
        };
        let flow = self.hasher.five_tuple(&key);
        let needs = self.link.needs();
        let arrival = Arrival {
            packet: completed(arriving.packet, arriving.priority, flow, key.traffic_class),
            headers: Some(key),
            acknowledgement: match needs.acknowledgements {
                true => dissect_payload(arriving.head, arriving.ethertype).acknowledgement(arriving.head),
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
        let next = self.link.dequeue(now);
        if let Next::Packet(departure) = &next {
            self.sojourns.add(now.nanos_since(departure.slot.enqueued_at));
        }
        next
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
    /// room are dropped. Of a packet that is queued already, no more is known than the running tree read.
    /// Afterwards `successor` has the old tree, which is empty: it is dropped where nobody waits. Nothing is
    /// allocated here, unless a discipline does.
    pub fn succeed(&mut self, successor: &mut Successor, now: Time) {
        self.cuts = successor.cuts;
        self.reads = successor.reads;
        self.widest = successor.widest;
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

    /// Returns the root of the tree.
    pub(crate) fn root(&self) -> &dyn Discipline {
        self.link.root()
    }

    /// Returns the largest number of classes that a discipline of the tree has.
    pub(crate) fn widest(&self) -> usize {
        self.widest
    }

    /// Returns how long packets that have left were in the tree.
    pub(crate) fn sojourns(&self) -> &Sojourns {
        &self.sojourns
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

/// Returns the descriptor with what was read of headers.
#[inline(always)]
fn completed(packet: Packet, priority: u32, flow: FlowHash, traffic_class: u8) -> Packet {
    Packet {
        class: ClassId::new((priority >> 16) as u16, priority as u16),
        priority: (priority & 15) as u8,
        flow,
        dscp: traffic_class >> 2,
        ecn: Ecn::from_bits(traffic_class),
        ..packet
    }
}

#[inline(never)]
fn key_of(arriving: &Arriving<'_>) -> FlowKey {
    dissect_payload(arriving.head, arriving.ethertype).key
}

/// Returns what [`dissect_payload`] returns for most packets, in half of its instructions: those of TCP and
/// UDP in IPv4 that are whole and have no options.
#[inline]
pub(crate) fn common_key(arriving: &Arriving<'_>) -> Option<FlowKey> {
    let head: &[u8; 24] = arriving.head.first_chunk()?;
    let number = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (length, protocol) = (number(2), head[9]);
    let is_common = arriving.ethertype == ethertype::IPV4
        && head[0] == 0x45
        && number(6) & 0x3fff == 0
        && (length == 0 || length >= 24)
        && matches!(protocol, 6 | 17);
    let mapped = |at: usize| {
        let mut address = [0; 16];
        address[10..12].fill(0xff);
        address[12..].copy_from_slice(&head[at..at + 4]);
        address
    };
    is_common.then(|| FlowKey {
        source: mapped(12),
        destination: mapped(16),
        source_port: number(20),
        destination_port: number(22),
        ethertype: ethertype::IPV4,
        outer_ethertype: ethertype::IPV4,
        protocol,
        traffic_class: head[1],
        ..FlowKey::default()
    })
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
