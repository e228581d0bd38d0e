//! Flows with a CoDel queue each, their common limits, and the search for the flow with the most bytes.
//!
//! ```text
//!   all      [ queue | codel | deficit | link ] ...   64 bytes each: a packet touches one cache line
//!   bounds   [ block of 32 flows ] ...                upper bound of the bytes of each flow of the block
//! ```
//!
//! The flow with the most bytes matters only when a limit is reached, but then possibly for each packet.
//! Linux scans all flows. Here an arriving packet raises the bound of its block if necessary, and a departing
//! packet leaves it unchanged. A search takes the block with the highest bound, finds its largest flow, and
//! lowers the bound if it was too high. It repeats this until a bound is exact. So it looks at `flows / 32`
//! bounds and 32 flows, and at 32 more flows for each bound that is too high. A bound becomes too high only
//! by a departure since the last search.

use alloc::boxed::Box;

use crate::aqm::codel::{ControlLaw, Source, State};
use crate::discipline::Verdict;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool, Table, TableKind};
use crate::registry::{Bound, Lens, Parameter, Unit};
use crate::scheduler::flows::{CACHED_PACKETS, MAX_FLOWS};
use crate::structures::{Linked, ListLink, prefetch};
use crate::time::Time;

/// One flow, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Flow {
    queue: PacketQueue,
    codel: State,
    /// The bytes that it may still send in this round. It is negative after a packet longer than the deficit.
    pub(super) deficit: i64,
    /// Its link in a list. A flow that became empty stays in the list until its turn comes.
    pub(super) link: ListLink,
}

impl Flow {
    fn idle() -> Flow {
        Flow {
            queue: PacketQueue::new(),
            codel: State::default(),
            deficit: 0,
            link: ListLink::OUTSIDE,
        }
    }
}

impl Linked for Flow {
    #[inline]
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// Which backlog is compared with the MTU: if at most one MTU is queued behind a packet, CoDel does not drop
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Floor {
    /// The backlog of all flows.
    Total,
    /// The backlog of the packet's own flow.
    Flow,
}

/// All flows of a discipline.
#[derive(Debug)]
pub(super) struct CodelFlows {
    /// Empty until the first packet comes, if the table is made when used.
    pub(super) all: Box<[Flow]>,
    /// For each block of flows an upper bound of the bytes of its flows.
    bounds: Box<[u64]>,
    count: u32,
    totals: Totals,
    limits: Limits,
    /// Whether there is no table yet, or flows have state from before the last
    /// [`drain`](CodelFlows::drain). They are reset when the next packet comes. A table that is drained
    /// because another one takes its place gets none, and to reset a million flows takes tens of
    /// milliseconds.
    is_stale: bool,
}

/// The table of flows, as it is in reserve.
struct FlowTable {
    all: Box<[Flow]>,
    bounds: Box<[u64]>,
}

impl Table for FlowTable {
    fn of_size(count: u32) -> FlowTable {
        FlowTable {
            all: vec![Flow::idle(); count as usize].into(),
            bounds: vec![0; (count as usize).div_ceil(BLOCK)].into(),
        }
    }
}

/// The limits of all flows together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    packets: u32,
    memory: u64,
    /// The most packets dropped at once.
    batch: u32,
}

/// The backlog of all flows together. Bytes and memory are not adjacent: see
/// [`Counters`](crate::stats::Counters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    pub(super) packets: u32,
    pub(super) memory: u64,
    /// The longest packet that the control law was asked about, bytes. Linux's `maxpacket`.
    pub(super) longest: u32,
}

/// How many turns before it is needed a flow's first packet is prefetched. One turn is too late: with 32,768
/// flows and packets in random order it saved up to a quarter of the time or nothing, three turns 28 to 48 %.
const TURNS_AHEAD: u32 = 3;

/// The number of flows in a block.
const BLOCK: usize = 32;

impl CodelFlows {
    pub(super) fn new(count: u32, limits: Limits) -> CodelFlows {
        let FlowTable { all, bounds } = FlowTable::of_size(count);
        CodelFlows {
            all,
            bounds,
            is_stale: false,
            ..CodelFlows::without_table(count, limits)
        }
    }

    /// The same flows, whose table is taken from the pool's reserve when the first packet comes.
    pub(super) fn without_table(count: u32, limits: Limits) -> CodelFlows {
        CodelFlows {
            all: Box::default(),
            bounds: Box::default(),
            count,
            totals: Totals::default(),
            limits,
            is_stale: true,
        }
    }

    /// The number of flows.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The kind of the table, if there is none yet.
    pub(super) fn table(&self) -> Option<TableKind> {
        let is_missing = self.all.is_empty();
        is_missing.then(|| TableKind::of::<FlowTable>(self.count))
    }

    #[inline]
    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Appends a packet to flow `index`, and returns the flow.
    #[inline(always)]
    pub(super) fn push(&mut self, index: u32, id: PacketId, pool: &mut Pool) -> &mut Flow {
        if self.is_stale {
            self.reset(pool);
        }
        self.totals.add(id, pool);
        let flow = &mut self.all[index as usize];
        flow.queue.push_back(id, pool);
        let bound = &mut self.bounds[index as usize / BLOCK];
        *bound = flow.queue.bytes().max(*bound);
        flow
    }

    /// Returns the packet that CoDel lets out of flow `index`. Packets that it drops go back through the
    /// pool.
    #[inline]
    pub(super) fn dequeue(
        &mut self,
        index: u32,
        law: &ControlLaw,
        floor: Floor,
        now: Time,
        pool: &mut Pool,
    ) -> Option<PacketId> {
        let flow = &mut self.all[index as usize];
        let mut source = FlowSource {
            queue: &mut flow.queue,
            totals: &mut self.totals,
            floor,
        };
        law.dequeue(&mut flow.codel, &mut source, now, pool)
    }

    /// Whether what is queued is in no near cache.
    #[inline]
    pub(super) fn is_far(&self) -> bool {
        self.totals.packets > CACHED_PACKETS
    }

    /// Returns `sent`, and prefetches the first packet of a flow behind `first` in its list, and the state of
    /// the one after that. It is called last, so that it occupies no registers where nothing has to be
    /// prefetched.
    #[cold]
    #[inline(never)]
    pub(super) fn prefetch_behind(
        &self,
        first: Option<u32>,
        sent: PacketId,
        pool: &Pool,
    ) -> Option<PacketId> {
        let mut flow = first.map_or(usize::MAX, |first| first as usize);
        for _ in 0..TURNS_AHEAD {
            flow = self.all.get(flow).map_or(usize::MAX, |flow| flow.link.next());
        }
        if let Some(ahead) = self.all.get(flow) {
            ahead.queue.prefetch_front(pool);
            prefetch(&self.all, ahead.link.next());
        }
        Some(sent)
    }

    /// If a limit is exceeded after an arrival in flow `arrived`, drops a batch from the flow with the most
    /// bytes.
    #[inline]
    pub(super) fn keep_limits(&mut self, arrived: u32, pool: &mut Pool) -> Verdict {
        match self.excess() {
            None => Verdict::Queued,
            Some(reason) => self.overflow(arrived, reason, pool),
        }
    }

    /// Changes the limits. Packets over them are dropped one by one, and CoDel does not count these drops.
    pub(super) fn set_limits(&mut self, limits: Limits, pool: &mut Pool) {
        self.limits = limits;
        while self.excess().is_some() {
            self.drop_from_longest(1, DropReason::Reconfigured, pool);
        }
    }

    /// Moves all packets to `into`, flow by flow, and resets all flows. `listed` are the flows that are in
    /// lists, as those with packets are.
    pub(super) fn drain(&mut self, listed: &[u32], pool: &mut Pool, into: &mut PacketQueue) {
        for &index in listed {
            self.all[index as usize].queue.append_to(into, pool);
        }
        self.totals = Totals::default();
        self.is_stale = true;
    }

    /// Returns whether the flows are reset when the next packet comes.
    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale
    }

    #[cold]
    #[inline(never)]
    fn reset(&mut self, pool: &mut Pool) {
        self.is_stale = false;
        if self.all.is_empty() {
            let FlowTable { all, bounds } = pool.take_table(self.count);
            (self.all, self.bounds) = (all, bounds);
            return;
        }
        self.all.fill(Flow::idle());
        self.bounds.fill(0);
    }

    #[inline]
    fn excess(&self) -> Option<DropReason> {
        if self.totals.memory > self.limits.memory {
            Some(DropReason::MemoryLimit)
        } else if self.totals.packets > self.limits.packets {
            Some(DropReason::LongestFlow)
        } else {
            None
        }
    }

    #[cold]
    fn overflow(&mut self, arrived: u32, reason: DropReason, pool: &mut Pool) -> Verdict {
        let (victim, drops) = self.drop_from_longest(self.limits.batch, reason, pool);
        self.all[victim as usize].codel.add_drops(drops);
        if victim == arrived {
            Verdict::Congested
        } else {
            Verdict::Queued
        }
    }

    /// Drops from the head of the flow with the most bytes until half of its bytes or `at_most` packets are
    /// dropped. If several flows have the most bytes, it is the one with the lowest index. Returns the flow
    /// and the number of packets.
    fn drop_from_longest(&mut self, at_most: u32, reason: DropReason, pool: &mut Pool) -> (u32, u32) {
        let index = self.longest();
        let queue = &mut self.all[index as usize].queue;
        let before = queue.bytes();
        let mut dropped = 0;
        while let Some(id) = queue.pop_front(pool) {
            self.totals.subtract(id, pool);
            pool.give_back(id, reason);
            dropped += 1;
            if dropped >= at_most || before - queue.bytes() >= before / 2 {
                break;
            }
        }
        (index, dropped)
    }

    fn longest(&mut self) -> u32 {
        if self.totals.bytes == 0 {
            // All packets have length 0: take any flow with packets.
            let holder = self.all.iter().position(|flow| !flow.queue.is_empty());
            return holder.unwrap_or(0) as u32;
        }
        loop {
            let (block, bound) = first_maximum(self.bounds.iter().copied());
            let start = block * BLOCK;
            let end = (start + BLOCK).min(self.all.len());
            let bytes = self.all[start..end].iter().map(|flow| flow.queue.bytes());
            let (offset, most) = first_maximum(bytes);
            if most == bound {
                return (start + offset) as u32;
            }
            self.bounds[block] = most;
        }
    }
}

/// The index and value of the first maximum.
fn first_maximum(values: impl Iterator<Item = u64>) -> (usize, u64) {
    values
        .enumerate()
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .expect("there is at least one flow")
}

impl Totals {
    #[inline]
    fn add(&mut self, id: PacketId, pool: &Pool) {
        let packet = &pool[id];
        self.packets += 1;
        self.bytes += u64::from(packet.length);
        self.memory += u64::from(packet.memory);
    }

    #[inline]
    fn subtract(&mut self, id: PacketId, pool: &Pool) {
        let packet = &pool[id];
        self.packets -= 1;
        self.bytes -= u64::from(packet.length);
        self.memory -= u64::from(packet.memory);
    }
}

struct FlowSource<'a> {
    queue: &'a mut PacketQueue,
    totals: &'a mut Totals,
    floor: Floor,
}

impl Source for FlowSource<'_> {
    #[inline]
    fn take(&mut self, pool: &Pool) -> Option<PacketId> {
        let id = self.queue.pop_front(pool)?;
        self.totals.subtract(id, pool);
        self.totals.longest = self.totals.longest.max(pool[id].length);
        Some(id)
    }

    #[inline]
    fn backlog(&self) -> u64 {
        match self.floor {
            Floor::Total => self.totals.bytes,
            Floor::Flow => self.queue.bytes(),
        }
    }
}

impl Limits {
    pub(super) const fn new(packets: u32, memory: u64, batch: u32) -> Limits {
        Limits {
            packets,
            memory,
            batch,
        }
    }
}

/// The parameter `flows`.
pub(super) const fn flows<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new("flows", Unit::Count("flows"), 1..=MAX_FLOWS as u64, doc, field)
}

/// The parameter `quantum`. Each round adds a quantum to each flow, so a small quantum means many rounds for
/// a long packet.
pub(super) const fn quantum<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new("quantum", Unit::Bytes, 256..=1 << 20, doc, field)
}

/// The parameter `limit`.
pub(super) const fn limit<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "The largest backlog of all flows together in packets.",
        field,
    )
}

/// The parameter `memory_limit`.
pub(super) const fn memory_limit<S>(bound: Bound<S>, field: Lens<S>) -> Parameter<S> {
    Parameter::bounding(
        bound,
        Parameter::new(
            "memory_limit",
            Unit::Bytes,
            1..=u64::MAX,
            "The most memory that queued packets occupy.",
            field,
        ),
    )
}

/// The parameter `drop_batch`.
pub(super) const fn drop_batch<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "drop_batch",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "The most packets dropped at once when a limit is reached.",
        field,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::codel::Params;
    use crate::packet::Packet;
    use proptest::prelude::*;

    fn unlimited(count: u32) -> CodelFlows {
        CodelFlows::new(count, Limits::new(u32::MAX, u64::MAX, 1))
    }

    #[test]
    fn a_flow_is_one_cache_line() {
        assert_eq!(size_of::<Flow>(), 64);
        assert_eq!(align_of::<Flow>(), 64);
    }

    /// A table that is left is not looked through. If it is used again, its flows have forgotten everything.
    #[test]
    fn flows_without_packets_are_not_touched_before_the_next_packet() {
        let mut pool = Pool::with_capacity(2);
        let mut flows = unlimited(1000);
        let id = pool.insert(Packet::of_length(100)).unwrap();
        flows.push(3, id, &mut pool).deficit = 33;
        flows.all[500].deficit = 77;
        let mut left = PacketQueue::new();
        flows.drain(&[3], &mut pool, &mut left);
        assert_eq!((left.pop_front(&pool), flows.totals().packets), (Some(id), 0));
        assert_eq!((flows.all[3].deficit, flows.all[500].deficit), (33, 77));
        assert_eq!(flows.push(4, id, &mut pool).queue.bytes(), 100);
        assert!(flows.all.iter().all(|flow| flow.deficit == 0));
        assert_eq!(flows.bounds.iter().sum::<u64>(), 100);
    }

    #[test]
    fn packets_of_length_0_can_be_dropped() {
        let mut pool = Pool::with_capacity(1);
        let mut flows = unlimited(64);
        let id = pool.insert(Packet::of_length(0)).unwrap();
        flows.push(40, id, &mut pool);
        assert_eq!(
            flows.drop_from_longest(1, DropReason::LongestFlow, &mut pool),
            (40, 1)
        );
        assert_eq!(pool.take_returned(), Some((id, DropReason::LongestFlow)));
    }

    proptest! {
        /// Compares the search with a scan of all flows, after random arrivals, departures and drops.
        #[test]
        fn the_search_finds_the_same_flow_as_a_scan(
            count in 1u32..100,
            operations in prop::collection::vec((0u8..4, any::<u32>(), 1u32..9), 1..400),
        ) {
            let mut pool = Pool::with_capacity(400);
            let mut flows = unlimited(count);
            let law = ControlLaw::new(&Params::default());
            for (operation, number, length) in operations {
                let index = number % count;
                match operation {
                    0 | 1 => {
                        let id = pool.insert(Packet::of_length(length)).unwrap();
                        flows.push(index, id, &mut pool);
                    }
                    2 => {
                        if let Some(id) = flows.dequeue(index, &law, Floor::Total, Time::ZERO, &mut pool) {
                            pool.release(id);
                        }
                    }
                    _ => {
                        let queued = |index: u32| flows.all[index as usize].queue.bytes();
                        let bytes: Vec<u64> = (0..count).map(queued).collect();
                        let most = *bytes.iter().max().unwrap();
                        let expected = bytes.iter().position(|&bytes| bytes == most).unwrap() as u32;
                        let before = *flows.totals();
                        let reason = DropReason::LongestFlow;
                        let (victim, dropped) = flows.drop_from_longest(length, reason, &mut pool);
                        prop_assert_eq!(victim, expected);
                        prop_assert_eq!(dropped, before.packets - flows.totals().packets);
                        let mut gone = Vec::new();
                        while let Some((id, _)) = pool.take_returned() {
                            gone.push(u64::from(pool.release(id).length));
                        }
                        let (last, earlier) =
                            gone.split_last().map_or((0, &[][..]), |(last, earlier)| (*last, earlier));
                        let earlier: u64 = earlier.iter().sum();
                        let enough = dropped == length || earlier + last >= most / 2;
                        prop_assert!(enough, "too few: {:?} of {}", gone, most);
                        prop_assert!(dropped <= 1 || earlier < most / 2, "too many: {:?} of {}", gone, most);
                    }
                }
            }
        }
    }
}
