//! The queue of a qdisc: a tree over its pool. The cookie of each packet is the address of its skb.

use alloc::boxed::Box;
use core::fmt;

use fairgate::flow::{HeaderBytes, LinkType, dissect_payload, ethertype};
use fairgate::{
    Arrival, Class, ClassId, Departure, Discipline, Dropped, Ecn, FlowHash, FlowHasher, FlowKey, Link, Next,
    Packet, Pool, Slot, Statistics, Time,
};

use crate::classes;
use crate::form::Refused;
use crate::prepared::{Manner, Prepared};
use crate::sojourns::Sojourns;
use crate::tree::Reads;

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
    manner: Manner,
    sojourns: Sojourns,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.link.root().name()).finish()
    }
}

impl Queue {
    /// Returns a queue that runs the tree of `prepared`. `key` is the secret of the flows' hash.
    pub fn new(prepared: &mut Prepared, key: [u64; 2]) -> Queue {
        let root = prepared.take_tree();
        let mut link = Link::with_pool(root, Pool::with_capacity(prepared.slots()));
        link.allow_copies();
        Queue {
            link,
            hasher: FlowHasher::new(key),
            manner: prepared.manner(),
            sojourns: Sojourns::new(),
        }
    }

    /// Whether merged packets are to be cut before they are enqueued.
    pub fn cuts(&self) -> bool {
        self.manner.cuts
    }

    /// Whether headers are read. If not, [`enqueue`](Queue::enqueue) needs no bytes and no EtherTypes.
    pub fn reads_headers(&self) -> bool {
        self.manner.reads > Reads::Nothing
    }

    /// Lets a test read more than the tree does.
    #[cfg(all(test, feature = "program"))]
    pub(crate) fn read_everything(&mut self) {
        self.manner.reads = Reads::Everything;
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
        match self.manner.reads {
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

    /// Changes the running tree to that of `prepared`, which was [planned](Prepared::change_to) for it.
    /// Packets for which there is no room any more are dropped. Of a packet that is queued already, no more
    /// is known than the running tree read. Nothing is allocated here, unless a discipline does. What was
    /// replaced stays in `prepared` until it is [settled](Prepared::settle).
    ///
    /// # Errors
    /// Only if a discipline refuses what it accepted in the rehearsal. Nothing has changed then.
    pub fn succeed(&mut self, prepared: &mut Prepared, now: Time) -> Result<(), Refused> {
        let change = prepared.take_change();
        let changed = self
            .link
            .change_root_in_part(change.needs(), |root, pool| change.apply(root, now, pool));
        prepared.keep(changed.map_err(|error| Refused::new(format!("{error}")))?);
        self.manner = prepared.manner();
        Ok(())
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
        self.manner.widest
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
        classes::visit(self.link.root(), visit);
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
