//! A packet while it is in a pool.

use crate::flow::FlowHash;
use crate::packet::{ClassId, DropReason, Ecn, Packet};
use crate::structures::random::mixed;
use crate::time::Time;

/// A packet in its [`Pool`](crate::Pool). It fills one cache line. `pool[id]` returns it.
///
/// The public fields are those of the inserted [`Packet`]. Disciplines may change them.
///
/// ```
/// use fairgate::{Packet, Pool};
/// let mut pool = Pool::with_capacity(1);
/// let id = pool.insert(Packet::of_length(1514))?;
/// assert_eq!(pool[id].length, 1514);
/// assert_eq!(core::mem::size_of_val(&pool[id]), 64);
/// # Ok::<(), fairgate::PoolFull>(())
/// ```
///
/// The fields of the packet come first, in the order in which a [`Packet`] has them: inserting is one copy.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Slot {
    /// The next packet in the queue that holds this packet, or the next free slot.
    pub(crate) next: u32,
    /// The previous packet in the queue that holds this packet.
    pub(crate) previous: u32,
    /// The length of the next packet. A queue can read it without the next packet's cache line.
    pub(crate) next_length: u32,
    /// The length on the link, in bytes. Schedulers and shapers count it.
    pub length: u32,
    /// The memory that the packet occupies in the driver, in bytes.
    pub memory: u32,
    /// The class that the driver chose.
    pub class: ClassId,
    /// The firewall mark.
    pub mark: u32,
    /// Priority, 0 to 15.
    pub priority: u8,
    /// The six DSCP bits. [`Pool::remark`](crate::Pool::remark) changes them.
    pub dscp: u8,
    /// The ECN bits. [`Pool::mark_congestion`](crate::Pool::mark_congestion) changes them.
    pub ecn: Ecn,
    pub(crate) flags: Flags,
    /// The time of the last enqueue. Each node of the tree writes it.
    pub enqueued_at: Time,
    /// The earliest departure time in nanoseconds. 0 means at once. A scheduler that keeps packets in its own
    /// queues may store its own time stamp here. It sets the field to 0 when the packet leaves. After a
    /// discipline has given the packet back, the pool stores the reason here.
    pub stamp: u64,
    /// The keyed hash of the packet's flow.
    pub flow: FlowHash,
    /// The number that the driver chose.
    pub cookie: u64,
}

/// A slot in the pool: it starts a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line(pub(crate) Slot);

const _: () = assert!(size_of::<Line>() == 64);

impl Slot {
    /// A free slot that is in no queue.
    pub(crate) const EMPTY: Slot = Slot {
        next: 0,
        previous: 0,
        next_length: 0,
        length: 0,
        memory: 0,
        class: ClassId::NONE,
        mark: 0,
        priority: 0,
        dscp: 0,
        ecn: Ecn::NotEct,
        flags: Flags(0),
        enqueued_at: Time::ZERO,
        stamp: 0,
        flow: FlowHash::NONE,
        cookie: 0,
    };

    /// Whether a discipline marked the packet with congestion experienced. It is false for a packet that was
    /// marked before insertion.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.flags.has(Flags::MARKED)
    }

    /// Whether a discipline changed [`dscp`](Slot::dscp). The driver then writes it into the packet's bytes.
    #[inline]
    pub fn is_remarked(&self) -> bool {
        self.flags.has(Flags::REMARKED)
    }

    /// Whether the packet is a copy of another one ([`Pool::copy`](crate::Pool::copy)).
    #[inline]
    pub fn is_copy(&self) -> bool {
        self.flags.has(Flags::COPY)
    }

    /// Whether a discipline corrupted the packet ([`Pool::corrupt`](crate::Pool::corrupt)).
    #[inline]
    pub fn is_corrupted(&self) -> bool {
        self.flags.has(Flags::CORRUPTED)
    }

    /// Returns the bit to flip in a corrupted packet of which the driver has this many bytes: its number from
    /// the first bit of them. Each packet has a bit of its own, and every bit is equally likely. The number
    /// of bytes is not [`length`], which may count what a link adds. `None` also if there are none.
    ///
    /// [`length`]: Slot::length
    pub fn corrupted_bit(&self, bytes: usize) -> Option<u64> {
        (self.is_corrupted() && bytes > 0).then(|| {
            let own = mixed(self.flow.raw() ^ mixed(self.enqueued_at.nanos() ^ mixed(self.cookie)));
            ((u128::from(own) * (bytes as u128 * 8)) >> 64) as u64
        })
    }

    /// Returns the traffic class byte: DSCP and ECN.
    #[inline]
    pub const fn traffic_class(&self) -> u8 {
        self.dscp << 2 | self.ecn as u8
    }

    /// Copies the fields of a packet. The other fields of the slot are written before they are read.
    #[inline]
    pub(crate) fn fill(&mut self, packet: &Packet) {
        self.stamp = packet.stamp;
        self.flow = packet.flow;
        self.cookie = packet.cookie;
        self.length = packet.length;
        self.memory = packet.memory;
        self.class = packet.class;
        self.mark = packet.mark;
        self.priority = packet.priority;
        self.dscp = packet.dscp;
        self.ecn = packet.ecn;
    }

    /// Returns why the packet was given back.
    pub(crate) fn reason(&self) -> DropReason {
        DropReason::ALL[self.stamp as usize]
    }

    /// Sets the next packet in the queue: its slot and its length in bytes.
    #[inline]
    pub(crate) fn set_successor(&mut self, next: u32, length: u32) {
        self.next = next;
        self.next_length = length;
    }
}

/// Returns a free slot that is in no queue.
impl From<Packet> for Slot {
    #[inline]
    fn from(packet: Packet) -> Slot {
        let mut slot = Slot::EMPTY;
        slot.fill(&packet);
        slot
    }
}

/// The state of a slot in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags(u8);

impl Flags {
    /// The slot holds a packet.
    pub(crate) const LIVE: u8 = 1;
    /// A discipline gave the packet back. `stamp` then holds the number of the reason.
    pub(crate) const RETURNED: u8 = 1 << 1;
    /// Header fields are stored for the packet.
    pub(crate) const HEADERS: u8 = 1 << 2;
    /// A discipline changed the DSCP.
    pub(crate) const REMARKED: u8 = 1 << 3;
    /// A discipline marked the packet with congestion experienced.
    pub(crate) const MARKED: u8 = 1 << 4;
    /// The driver flips a bit of the packet.
    pub(crate) const CORRUPTED: u8 = 1 << 5;
    /// The packet is a copy of another one.
    pub(crate) const COPY: u8 = 1 << 6;
    /// The pool holds the time of the packet's first arrival, which is before `enqueued_at`.
    pub(crate) const DELAYED: u8 = 1 << 7;

    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, flag: u8) {
        self.0 |= flag;
    }

    #[inline]
    pub(crate) fn unset(&mut self, flag: u8) {
        self.0 &= !flag;
    }

    /// Clears all flags. The slot becomes free.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0 = 0;
    }
}
