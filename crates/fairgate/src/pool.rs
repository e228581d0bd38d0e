//! The pool that holds packets, and the queues that link them.
//!
//! ```text
//!   slots    [ Slot ][ Slot ][ Slot ] ...         64 bytes each, reused last-in first-out (cache)
//!   headers  [ FlowKey ][ FlowKey ] ...           rarely read: only filters need them
//!   arrivals [ Time ][ Time ] ...                 rarely read: only a discipline that enqueues later does
//!   acks     [ Acknowledgement ] ...              on request: only filters of acknowledgements need them
//!   bytes    [ HeaderBytes ][ HeaderBytes ] ...   only if filters match bytes
//!   delays   [ Delay ][ Delay ] ...               on request: sojourn times, in the order of departures
//!   places   [ NodeNumber ][ NodeNumber ] ...     on request: the queue that each packet was in
//!   reserve  [ table ][ table ] ...               on request: for disciplines whose first packet comes
//!   returned  head -> ... -> tail                 dropped or flushed, to be taken by the driver
//! ```
//!
//! Everything is allocated at construction, or by [`Pool::grow`] and [`Pool::refill`] between calls. A queue
//! is an intrusive list of slot numbers: a push or pop writes two words. A discipline that drops a packet
//! gives it back to the pool. After the call the driver takes the returned packets and releases them. So no
//! packet can be lost between a discipline and its driver.

mod copies;
mod delays;
mod heap;
mod places;
mod reserve;

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use thiserror::Error;

use crate::arrival::{Arrival, Needs};
use crate::count::Count;
use crate::flow::{Acknowledgement, FlowKey, HeaderBytes};
use crate::packet::{DropReason, Ecn};
use crate::slot::{Flags, Line, Slot};
use crate::structures::prefetch;
use crate::time::Time;

pub use copies::Copied;
use delays::DelayLog;
pub use delays::{Delay, NodeNumber, TakenDelays};
pub(crate) use heap::PacketHeap;
use places::Places;
use reserve::Reserve;
pub use reserve::{Table, TableKind};

/// The number of a packet's slot in its [`Pool`]. It is valid from insertion to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(u32);

impl PacketId {
    /// Returns the slot's number, for drivers with arrays that are indexed by slot.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The length of an Ethernet header, which a packet's length contains, bytes.
const ETHERNET_HEADER: u32 = 14;

/// All slots of the pool are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("all {capacity} packet slots are in use; give the pool more, or the queues lower limits")]
pub struct PoolFull {
    /// The number of slots.
    pub capacity: u32,
}

/// A fixed number of packet slots.
///
/// ```
/// use fairgate::{Packet, Pool};
/// let mut pool = Pool::with_capacity(2);
/// let id = pool.insert(Packet::of_length(1514)).unwrap();
/// assert_eq!(pool[id].length, 1514);
/// assert_eq!(pool.release(id).length, 1514);
/// assert!(pool.is_empty());
/// ```
#[derive(Debug)]
pub struct Pool {
    slots: Vec<Line>,
    /// The headers of each slot. Empty in a pool without headers.
    headers: Vec<FlowKey>,
    keeps_headers: bool,
    /// When each packet arrived at the root, if a discipline has enqueued it again since.
    arrivals: Vec<Time>,
    /// Copies that the driver has not taken yet. `None` if it takes none.
    copies: Option<PacketQueue>,
    /// What the packet of each slot acknowledges. Empty unless it is kept.
    acknowledgements: Vec<Option<Acknowledgement>>,
    /// The header bytes of each slot, if filters need them.
    bytes: Vec<HeaderBytes>,
    kept: Needs,
    delays: DelayLog,
    places: Places,
    /// Tables for disciplines that have none yet.
    reserve: Reserve,
    /// Whether a log of sojourn times or places are kept.
    is_observed: bool,
    /// The number that a node got last.
    last_number: u32,
    /// The first free slot. Free slots are linked by `slot.next`.
    free_head: u32,
    in_use: u32,
    returned: PacketQueue,
    returned_total: u64,
    marked_total: u64,
    changes: Changes,
}

/// Counts packets given back and packets marked, so that a node finds out with one comparison whether a call
/// did either.
///
/// The low half counts packets given back, the high half counts marks, each modulo 2^32. One call does less
/// than that, because a pool has at most 2^31 slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes(u64);

impl Changes {
    const RETURNED: u64 = 1;
    const MARKED: u64 = 1 << 32;

    /// Returns the numbers of packets given back and marked since `before`.
    pub(crate) fn since(self, before: Changes) -> (u32, u32) {
        let difference = self.0.wrapping_sub(before.0);
        (difference as u32, (difference >> 32) as u32)
    }
}

impl Pool {
    /// Returns a pool of `capacity` slots, at most 2^31. All memory is allocated now.
    pub fn with_capacity(capacity: u32) -> Pool {
        Pool::of(capacity, true)
    }

    /// Returns a pool without header fields, which needs 72 instead of 120 bytes per slot. It is for drivers
    /// whose disciplines have no filters on addresses. [`insert`](Pool::insert) ignores header fields.
    pub fn without_headers(capacity: u32) -> Pool {
        Pool::of(capacity, false)
    }

    fn of(capacity: u32, keeps_headers: bool) -> Pool {
        let mut pool = Pool {
            slots: Vec::with_capacity(capacity as usize),
            headers: Vec::with_capacity(if keeps_headers { capacity as usize } else { 0 }),
            keeps_headers,
            arrivals: Vec::with_capacity(capacity as usize),
            copies: None,
            acknowledgements: Vec::new(),
            bytes: Vec::new(),
            kept: Needs::default(),
            delays: DelayLog::default(),
            places: Places::default(),
            reserve: Reserve::default(),
            is_observed: false,
            last_number: 0,
            free_head: 0,
            in_use: 0,
            returned: PacketQueue::new(),
            returned_total: 0,
            marked_total: 0,
            changes: Changes::default(),
        };
        pool.grow(capacity);
        pool
    }

    /// Increases the number of slots to `capacity`. This allocates. It is for drivers that can't know in
    /// advance how many slots they need, and must not be called within a call to a discipline. A smaller
    /// capacity changes nothing.
    pub fn grow(&mut self, capacity: u32) {
        assert!(capacity < 1 << 31, "a pool has at most 2^31 slots");
        self.slots
            .reserve_exact((capacity as usize).saturating_sub(self.slots.len()));
        // The list of free slots ends with the number of slots, so it continues in the new slots.
        for index in self.capacity()..capacity {
            let mut slot = Slot::EMPTY;
            slot.next = index + 1;
            self.slots.push(Line(slot));
        }
        self.arrivals.resize(self.slots.len(), Time::ZERO);
        if self.keeps_headers {
            self.headers.resize(self.slots.len(), FlowKey::default());
        }
        self.make_room();
        self.grow_places();
    }

    /// Keeps from now on what `needs` says, and what it kept before. This allocates: 96 bytes for each slot
    /// for what packets acknowledge, 128 for the bytes of headers, which a pool without headers does not
    /// keep. It must not be called within a call to a discipline. Of a packet that is in the pool already,
    /// nothing more is known.
    pub fn keep(&mut self, needs: Needs) {
        self.kept |= needs;
        self.kept.bytes &= self.keeps_headers;
        self.make_room();
    }

    fn make_room(&mut self) {
        if self.kept.acknowledgements {
            self.acknowledgements.resize(self.slots.len(), None);
        }
        if self.kept.bytes {
            self.bytes.resize(self.slots.len(), HeaderBytes::NONE);
        }
    }

    /// Has tables of this kind in reserve from now on ([`Inspect::visit_tables`](crate::Inspect)). This
    /// allocates. It must not be called within a call to a discipline.
    pub fn provide(&mut self, kind: TableKind) {
        self.reserve.provide(kind);
    }

    /// Replaces the tables that disciplines have taken since the last call. This allocates if there were any.
    /// A driver of a tree whose tables are made [when used](crate::registry::Tables::WhenUsed) calls it at
    /// least once for 128 packets that it enqueues, and not within a call to a discipline. Otherwise a
    /// discipline may have to allocate its table when its first packet comes.
    #[inline]
    pub fn refill(&mut self) {
        if self.reserve.is_used {
            self.reserve.refill();
        }
    }

    /// Returns a table for a discipline that has none yet.
    pub fn take_table<T: Table>(&mut self, size: u32) -> T {
        self.reserve.take(size)
    }

    /// Returns what the pool [keeps](Pool::keep).
    #[inline]
    pub fn kept(&self) -> Needs {
        self.kept
    }

    /// Stores what a packet acknowledges. Ignored unless it is [kept](Pool::keep).
    #[inline]
    pub fn set_acknowledgement(&mut self, id: PacketId, acknowledgement: Acknowledgement) {
        if let Some(stored) = self.acknowledgements.get_mut(id.index()) {
            *stored = Some(acknowledgement);
        }
    }

    /// Inserts a packet into a slot.
    #[inline]
    pub fn insert(&mut self, arrival: impl Into<Arrival>) -> Result<PacketId, PoolFull> {
        let arrival = arrival.into();
        let index = self.free_head;
        let Some(Line(slot)) = self.slots.get_mut(index as usize) else {
            return Err(PoolFull {
                capacity: self.capacity(),
            });
        };
        self.free_head = slot.next;
        self.in_use += 1;
        slot.fill(&arrival.packet);
        slot.flags.set(Flags::LIVE);
        if let Some(stored) = self.acknowledgements.get_mut(index as usize) {
            *stored = arrival.acknowledgement;
        }
        let id = PacketId(index);
        if let Some(headers) = arrival.headers
            && let Some(stored) = self.headers.get_mut(index as usize)
        {
            *stored = headers;
            self[id].flags.set(Flags::HEADERS);
            if self.kept.bytes {
                match arrival.bytes {
                    Some(bytes) => self.set_bytes(id, bytes),
                    None => self.imply_bytes(id, &headers),
                }
            }
        }
        Ok(id)
    }

    // Not inlined: few pools keep bytes.
    #[inline(never)]
    fn imply_bytes(&mut self, id: PacketId, headers: &FlowKey) {
        let packet = &self[id];
        let length = packet.length.saturating_sub(ETHERNET_HEADER);
        let bytes = HeaderBytes::of_fields(headers, packet.traffic_class(), length);
        self.set_bytes(id, bytes);
    }

    /// Stores the header bytes of a packet. Ignored unless they are [kept](Pool::keep).
    #[inline]
    pub fn set_bytes(&mut self, id: PacketId, bytes: HeaderBytes) {
        if let Some(stored) = self.bytes.get_mut(id.index()) {
            *stored = bytes;
        }
    }

    /// Returns the header bytes of a packet, to change them.
    pub fn bytes_mut(&mut self, id: PacketId) -> Option<&mut HeaderBytes> {
        self.bytes.get_mut(id.index())
    }

    /// Returns the header bytes of a packet with headers, if the pool keeps them.
    #[inline]
    pub fn bytes(&self, id: PacketId) -> Option<&HeaderBytes> {
        let bytes = self.bytes.get(id.index())?;
        self[id].flags.has(Flags::HEADERS).then_some(bytes)
    }

    /// Stores the number of the interface that has received a packet in its header fields
    /// ([`FlowKey::interface`]). For drivers in which a packet passes several nodes. Filters ignore it if the
    /// packet was inserted without header fields.
    #[inline]
    pub fn received_by(&mut self, id: PacketId, interface: u16) {
        if let Some(headers) = self.headers.get_mut(id.index()) {
            headers.interface = interface;
        }
    }

    /// Frees the slot of a packet that was sent, or that was taken from
    /// [`take_returned`](Pool::take_returned). Returns what the slot held.
    ///
    /// # Panics
    /// Panics if the slot holds no packet: it was already released, or the id is from another pool. (If the
    /// slot is in use here, an id from another pool can't be detected.)
    #[inline]
    pub fn release(&mut self, id: PacketId) -> Slot {
        let slot = &mut self.slots[id.index()].0;
        if !slot.flags.has(Flags::LIVE) {
            released_twice(id);
        }
        let released = *slot;
        slot.next = self.free_head;
        slot.flags.clear();
        self.free_head = id.0;
        self.in_use -= 1;
        released
    }

    /// Gives a packet back: a discipline drops or flushes it.
    ///
    /// # Panics
    /// Panics if the slot holds no packet, or if its packet was already given back.
    #[cold]
    pub fn give_back(&mut self, id: PacketId, reason: DropReason) {
        let slot = &mut self[id];
        let is_here = slot.flags.has(Flags::LIVE) && !slot.flags.has(Flags::RETURNED);
        assert!(
            is_here,
            "slot {} holds no packet to give back for {}",
            id.0,
            reason.name()
        );
        slot.flags.set(Flags::RETURNED);
        slot.stamp = reason as u64;
        let mut returned = self.returned;
        returned.push_back(id, self);
        self.returned = returned;
        self.returned_total += 1;
        self.changes.0 = self.changes.0.wrapping_add(Changes::RETURNED);
    }

    /// Returns whether a packet was given back and was not taken yet.
    #[inline]
    pub(crate) fn is_returned(&self, id: PacketId) -> bool {
        self[id].flags.has(Flags::RETURNED)
    }

    /// Whether [`take_returned`](Pool::take_returned) will return a packet.
    #[inline]
    pub fn has_returned(&self) -> bool {
        !self.returned.is_empty()
    }

    /// Returns the oldest packet that a discipline gave back and that was not taken yet. The caller releases
    /// it.
    #[inline]
    pub fn take_returned(&mut self) -> Option<(PacketId, DropReason)> {
        if self.returned.is_empty() {
            return None;
        }
        let mut returned = self.returned;
        let id = returned.pop_front(self)?;
        self.returned = returned;
        Some((id, self[id].reason()))
    }

    /// Marks an ECN-capable packet (RFC 3168). Returns false and does nothing if the packet is not
    /// ECN-capable. A packet that is already marked is not counted again.
    #[inline]
    pub fn mark_congestion(&mut self, id: PacketId) -> bool {
        let packet = &mut self[id];
        if !packet.ecn.is_capable() {
            return false;
        }
        let is_new = packet.ecn != Ecn::Ce;
        packet.ecn = Ecn::Ce;
        if is_new {
            packet.flags.set(Flags::MARKED);
            self.marked_total += 1;
            self.changes.0 = self.changes.0.wrapping_add(Changes::MARKED);
        }
        true
    }

    /// Corrupts a packet: the driver flips the bit that [`Slot::corrupted_bit`] names when the packet leaves.
    #[inline]
    pub fn corrupt(&mut self, id: PacketId) {
        self[id].flags.set(Flags::CORRUPTED);
    }

    /// Lets a packet arrive a second time, at a discipline inside another one, without losing the time of its
    /// first arrival.
    #[inline]
    pub(crate) fn remember_arrival(&mut self, id: PacketId) {
        let slot = &mut self.slots[id.index()].0;
        if !slot.flags.has(Flags::DELAYED) {
            slot.flags.set(Flags::DELAYED);
            self.arrivals[id.index()] = slot.enqueued_at;
        }
    }

    /// Restores the time of a packet's first arrival, when the packet leaves the discipline that called
    /// [`remember_arrival`](Pool::remember_arrival).
    #[inline]
    pub(crate) fn restore_arrival(&mut self, id: PacketId) {
        let slot = &mut self.slots[id.index()].0;
        if slot.flags.has(Flags::DELAYED) {
            slot.flags.unset(Flags::DELAYED);
            slot.enqueued_at = self.arrivals[id.index()];
        }
    }

    /// Calls `enqueue` for each of these packets, in their order. They already waited elsewhere. A packet
    /// keeps its arrival time, and its sojourn time continues.
    ///
    /// A discipline may look at the first packet of a class during a call. If `netem` is below, it hands the
    /// packet on and remembers the time of the call as the arrival. That time is replaced. If the packet was
    /// remembered before and leaves `netem` in the call, it has the time of its first arrival.
    pub(crate) fn enqueue_moved(
        &mut self,
        mut moved: PacketQueue,
        mut enqueue: impl FnMut(PacketId, &mut Pool),
    ) {
        while let Some(id) = moved.pop_front(self) {
            let arrival = self[id].enqueued_at;
            let was_delayed = self[id].flags.has(Flags::DELAYED);
            enqueue(id, self);
            match (was_delayed, self[id].flags.has(Flags::DELAYED)) {
                (false, true) => self.arrivals[id.index()] = arrival,
                (true, false) => {}
                (false, false) | (true, true) => self[id].enqueued_at = arrival,
            }
        }
    }

    /// Changes a packet's DSCP, 0 to 63. The driver writes it into the packet's bytes.
    #[inline]
    pub fn remark(&mut self, id: PacketId, dscp: u8) {
        let packet = &mut self[id];
        packet.dscp = dscp;
        packet.flags.set(Flags::REMARKED);
    }

    /// Prefetches the cache line of a packet that is needed soon. Does nothing without the feature
    /// `prefetch`.
    #[inline]
    pub fn prefetch(&self, id: PacketId) {
        prefetch(&self.slots, id.index());
    }

    /// Returns the packet in the first slot from number `from` on that holds one, and the number of the slot
    /// after it.
    ///
    /// ```
    /// # use fairgate::{Packet, Pool};
    /// let mut pool = Pool::with_capacity(3);
    /// let ids = [10, 20, 30].map(|length| pool.insert(Packet::of_length(length)).unwrap());
    /// pool.release(ids[0]);
    /// let (mut left, mut from) = (Vec::new(), 0);
    /// while let Some((packet, next)) = pool.packet_from(from) {
    ///     left.push(packet.length);
    ///     from = next;
    /// }
    /// assert_eq!(left, [20, 30]);
    /// ```
    pub fn packet_from(&self, from: u32) -> Option<(&Slot, u32)> {
        let slots = self.slots.get(from as usize..)?;
        let place = slots.iter().position(|Line(slot)| slot.flags.has(Flags::LIVE))?;
        Some((&slots[place].0, from + place as u32 + 1))
    }

    /// Returns the number of slots.
    pub fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the number of packets in the pool.
    pub fn len(&self) -> u32 {
        self.in_use
    }

    /// Whether the pool is empty.
    pub fn is_empty(&self) -> bool {
        self.in_use == 0
    }

    /// Returns the header fields that were inserted with the packet, if any.
    #[inline]
    pub fn headers(&self, id: PacketId) -> Option<&FlowKey> {
        self[id]
            .flags
            .has(Flags::HEADERS)
            .then(|| &self.headers[id.index()])
    }

    /// Returns what a packet acknowledges, if that was stored.
    #[inline]
    pub fn acknowledgement(&self, id: PacketId) -> Option<&Acknowledgement> {
        self.acknowledgements.get(id.index())?.as_ref()
    }

    /// Returns the number of packets given back since construction.
    #[inline]
    pub fn returned_total(&self) -> u64 {
        self.returned_total
    }

    /// Returns the number of packets marked since construction.
    #[inline]
    pub fn marked_total(&self) -> u64 {
        self.marked_total
    }

    /// Returns the counts of packets given back and marked, for a comparison after a call.
    #[inline]
    pub(crate) fn changes(&self) -> Changes {
        self.changes
    }

    /// Returns the packets that were given back and not taken yet, newest first.
    pub fn returned(&self) -> impl Iterator<Item = (PacketId, DropReason)> {
        let mut index = self.returned.tail;
        (0..self.returned.packets).map(move |_| {
            let id = PacketId(index);
            let packet = &self[id];
            index = packet.previous;
            (id, packet.reason())
        })
    }
}

/// A function of its own, so that the check takes two instructions.
#[cold]
#[inline(never)]
fn released_twice(id: PacketId) -> ! {
    panic!("slot {} holds no packet to release", id.0)
}

impl Index<PacketId> for Pool {
    type Output = Slot;
    #[inline]
    fn index(&self, id: PacketId) -> &Slot {
        &self.slots[id.index()].0
    }
}

impl IndexMut<PacketId> for Pool {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Slot {
        &mut self.slots[id.index()].0
    }
}

/// A queue of packets in a pool. It has 24 bytes and allocates nothing. All calls must pass the same pool.
///
/// Links are only written when packets are appended. So taking the head touches no other packet's cache line.
/// The head's `previous` and the tail's `next` are outdated and are never used.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketQueue {
    bytes: u64,
    packets: u32,
    head: u32,
    tail: u32,
}

/// A packet that was taken from the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) id: PacketId,
    /// Its length.
    pub(crate) length: u32,
    /// The length of the packet that is first now, if there is one.
    pub(crate) next: Option<u32>,
}

impl PacketQueue {
    /// Returns an empty queue.
    pub const fn new() -> PacketQueue {
        PacketQueue {
            bytes: 0,
            packets: 0,
            head: 0,
            tail: 0,
        }
    }

    /// Appends a packet.
    #[inline]
    pub fn push_back(&mut self, id: PacketId, pool: &mut Pool) {
        let packet = &mut pool[id];
        packet.previous = self.tail;
        let length = packet.length;
        self.bytes += u64::from(length);
        if self.packets == 0 {
            self.head = id.0;
        } else {
            pool.slots[self.tail as usize].0.set_successor(id.0, length);
        }
        self.tail = id.0;
        self.packets += 1;
    }

    /// Removes and returns the oldest packet.
    #[inline]
    pub fn pop_front(&mut self, pool: &Pool) -> Option<PacketId> {
        if self.packets == 0 {
            return None;
        }
        let id = PacketId(self.head);
        let packet = &pool[id];
        self.head = packet.next;
        self.bytes -= u64::from(packet.length);
        self.packets -= 1;
        Some(id)
    }

    /// Removes the oldest packet. Returns it with its length and the length of the next packet. The next
    /// packet's slot is not read.
    #[inline]
    pub(crate) fn take_front(&mut self, pool: &Pool) -> Option<Taken> {
        if self.packets == 0 {
            return None;
        }
        let id = PacketId(self.head);
        let packet = &pool[id];
        self.head = packet.next;
        self.bytes -= u64::from(packet.length);
        self.packets -= 1;
        Some(Taken {
            id,
            length: packet.length,
            next: (self.packets > 0).then_some(packet.next_length),
        })
    }

    /// Removes and returns the newest packet.
    #[inline]
    pub fn pop_back(&mut self, pool: &Pool) -> Option<PacketId> {
        if self.packets == 0 {
            return None;
        }
        let id = PacketId(self.tail);
        let packet = &pool[id];
        self.tail = packet.previous;
        self.bytes -= u64::from(packet.length);
        self.packets -= 1;
        Some(id)
    }

    /// Returns the oldest packet.
    #[inline]
    pub fn front(&self) -> Option<PacketId> {
        (self.packets > 0).then_some(PacketId(self.head))
    }

    /// Returns the packet after the oldest one: the next to be the oldest.
    ///
    /// ```
    /// # use fairgate::{Packet, PacketQueue, Pool};
    /// let (mut pool, mut queue) = (Pool::with_capacity(3), PacketQueue::new());
    /// for bytes in [100, 200, 300] {
    ///     let id = pool.insert(Packet::of_length(bytes))?;
    ///     queue.push_back(id, &mut pool);
    /// }
    /// while let Some(second) = queue.second(&pool) {
    ///     queue.pop_front(&pool);
    ///     assert_eq!(queue.front(), Some(second));
    /// }
    /// assert_eq!(pool[queue.front().unwrap()].length, 300);
    /// # Ok::<(), fairgate::PoolFull>(())
    /// ```
    #[inline]
    pub fn second(&self, pool: &Pool) -> Option<PacketId> {
        (self.packets > 1).then(|| PacketId(pool[PacketId(self.head)].next))
    }

    /// Returns the packet after the [`second`](PacketQueue::second) one.
    #[inline]
    pub fn third(&self, pool: &Pool) -> Option<PacketId> {
        (self.packets > 2).then(|| {
            let second = PacketId(pool[PacketId(self.head)].next);
            PacketId(pool[second].next)
        })
    }

    /// Prefetches the cache line of the oldest packet.
    #[inline]
    pub(crate) fn prefetch_front(&self, pool: &Pool) {
        pool.prefetch(PacketId(self.head));
    }

    /// Returns the newest packet.
    #[inline]
    pub fn back(&self) -> Option<PacketId> {
        (self.packets > 0).then_some(PacketId(self.tail))
    }

    /// Calls `visit` with the packets from the oldest on, until it returns something.
    #[inline]
    pub(crate) fn find_map<R>(&self, pool: &Pool, mut visit: impl FnMut(PacketId) -> Option<R>) -> Option<R> {
        let mut index = self.head;
        (0..self.packets).find_map(|_| {
            let id = PacketId(index);
            index = pool[id].next;
            visit(id)
        })
    }

    /// Removes a packet that is in the queue. Takes constant time.
    pub(crate) fn remove(&mut self, id: PacketId, pool: &mut Pool) {
        let Slot {
            next,
            previous,
            next_length,
            length,
            ..
        } = pool[id];
        let (is_first, is_last) = (id.0 == self.head, id.0 == self.tail);
        if is_first {
            self.head = next;
        } else if !is_last {
            pool.slots[previous as usize].0.set_successor(next, next_length);
        }
        if is_last {
            self.tail = previous;
        } else {
            pool.slots[next as usize].0.previous = previous;
        }
        self.bytes -= u64::from(length);
        self.packets -= 1;
    }

    /// Moves all packets to the end of `into`, in order. Takes constant time.
    pub fn append_to(&mut self, into: &mut PacketQueue, pool: &mut Pool) {
        if self.packets == 0 {
            return;
        }
        if into.packets == 0 {
            *into = *self;
        } else {
            let first = &mut pool.slots[self.head as usize].0;
            first.previous = into.tail;
            let length = first.length;
            pool.slots[into.tail as usize].0.set_successor(self.head, length);
            into.tail = self.tail;
            into.packets += self.packets;
            into.bytes += self.bytes;
        }
        *self = PacketQueue::new();
    }

    /// Returns the number of packets.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.packets
    }

    /// Returns the number of bytes.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the queue is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns the packets and bytes.
    pub const fn count(&self) -> Count {
        Count {
            packets: self.packets as u64,
            bytes: self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    #[test]
    fn a_full_pool_returns_an_error_until_a_release() {
        let mut pool = Pool::with_capacity(1);
        let id = pool.insert(Packet::of_length(1)).unwrap();
        assert_eq!(pool.insert(Packet::of_length(2)), Err(PoolFull { capacity: 1 }));
        pool.release(id);
        assert!(pool.insert(Packet::of_length(2)).is_ok());
    }

    #[test]
    fn a_pool_without_headers_ignores_headers() {
        let mut pool = Pool::without_headers(1);
        let headers = FlowKey {
            source_port: 7,
            ..FlowKey::default()
        };
        let id = pool.insert((Packet::of_length(1), headers)).unwrap();
        assert_eq!(pool.headers(id), None);
        pool.grow(2);
        let id = pool.insert((Packet::of_length(2), headers)).unwrap();
        assert_eq!((pool[id].length, pool.headers(id)), (2, None));
    }

    #[test]
    fn a_mark_is_counted_once_and_only_for_an_ecn_capable_packet() {
        let mut pool = Pool::with_capacity(1);
        let id = pool.insert(Packet::of_length(1)).unwrap();
        assert!(!pool.mark_congestion(id));
        pool[id].ecn = Ecn::Ect0;
        assert!(pool.mark_congestion(id) && pool.mark_congestion(id));
        assert_eq!(pool.marked_total(), 1);
    }

    #[test]
    fn a_pool_that_grows_keeps_its_packets_and_has_free_slots() {
        let mut pool = Pool::with_capacity(2);
        let first = pool.insert(Packet::of_length(1)).unwrap();
        let second = pool.insert(Packet::of_length(2)).unwrap();
        pool.release(first);
        pool.grow(4);
        let slots: Vec<usize> = (3..6)
            .map(|length| pool.insert(Packet::of_length(length)).unwrap().index())
            .collect();
        assert_eq!(slots, [0, 2, 3]);
        assert_eq!(pool.insert(Packet::of_length(6)), Err(PoolFull { capacity: 4 }));
        assert_eq!(pool[second].length, 2);
    }

    #[test]
    #[should_panic(expected = "holds no packet to release")]
    fn a_double_release_is_caught() {
        let mut pool = Pool::with_capacity(1);
        let id = pool.insert(Packet::of_length(1)).unwrap();
        pool.release(id);
        pool.release(id);
    }

    #[test]
    #[should_panic(expected = "holds no packet to release")]
    fn an_id_of_another_pool_is_caught() {
        let mut other = Pool::with_capacity(2);
        let (_, id) = (
            other.insert(Packet::of_length(1)),
            other.insert(Packet::of_length(1)),
        );
        Pool::with_capacity(2).release(id.unwrap());
    }

    #[test]
    #[should_panic(expected = "holds no packet to give back for aqm")]
    fn a_packet_given_back_twice_is_caught() {
        let mut pool = Pool::with_capacity(1);
        let id = pool.insert(Packet::of_length(1)).unwrap();
        pool.give_back(id, DropReason::QueueLimit);
        pool.give_back(id, DropReason::Aqm);
    }

    #[test]
    fn a_mark_set_before_insertion_is_not_counted() {
        let mut pool = Pool::with_capacity(2);
        let marked = Packet {
            ecn: Ecn::Ce,
            ..Packet::of_length(1)
        };
        let capable = Packet {
            ecn: Ecn::Ect0,
            ..Packet::of_length(1)
        };
        let is_marked = [marked, capable].map(|packet| {
            let id = pool.insert(packet).unwrap();
            assert!(pool.mark_congestion(id));
            pool.release(id).is_marked()
        });
        assert_eq!(is_marked, [false, true]);
    }

    proptest! {
        /// Compares two queues with the standard library's deques, including `append_to`.
        #[test]
        fn a_queue_behaves_like_a_deque(operations in prop::collection::vec((0u8..7, 0usize..2), 0..200)) {
            let mut pool = Pool::with_capacity(200);
            let mut queues = [PacketQueue::new(), PacketQueue::new()];
            let mut models: [VecDeque<PacketId>; 2] = Default::default();
            for (step, (operation, which)) in operations.into_iter().enumerate() {
                match operation {
                    0 | 1 => {
                        let id = pool.insert(Packet::of_length(step as u32 + 1)).unwrap();
                        queues[which].push_back(id, &mut pool);
                        models[which].push_back(id);
                    }
                    2 => prop_assert_eq!(queues[which].pop_front(&pool), models[which].pop_front()),
                    3 => prop_assert_eq!(queues[which].pop_back(&pool), models[which].pop_back()),
                    4 => {
                        let expected = models[which].pop_front().map(|id| Taken {
                            id,
                            length: pool[id].length,
                            next: models[which].front().map(|&next| pool[next].length),
                        });
                        prop_assert_eq!(queues[which].take_front(&pool), expected);
                    }
                    5 => {
                        let position = step % models[which].len().max(1);
                        if let Some(id) = models[which].remove(position) {
                            queues[which].remove(id, &mut pool);
                        }
                    }
                    _ => {
                        let mut from = queues[which];
                        from.append_to(&mut queues[1 - which], &mut pool);
                        queues[which] = from;
                        let moved = core::mem::take(&mut models[which]);
                        models[1 - which].extend(moved);
                    }
                }
                for (queue, model) in queues.iter().zip(&models) {
                    prop_assert_eq!(queue.len() as usize, model.len());
                    let lengths = model.iter().map(|&id| u64::from(pool[id].length));
                    prop_assert_eq!(queue.bytes(), lengths.sum::<u64>());
                    prop_assert_eq!(queue.front(), model.front().copied());
                    prop_assert_eq!(queue.second(&pool), model.get(1).copied());
                    prop_assert_eq!(queue.third(&pool), model.get(2).copied());
                    prop_assert_eq!(queue.back(), model.back().copied());
                    let mut seen = Vec::new();
                    let end: Option<()> = queue.find_map(&pool, |id| {
                        seen.push(id);
                        None
                    });
                    prop_assert!(end.is_none());
                    prop_assert!(seen.iter().eq(model));
                }
            }
        }
    }
}
