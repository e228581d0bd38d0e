//! What [`sqf`](super::sqf) and [`lqf`](super::lqf) share: flows known exactly, in the order of their bytes, and the
//! longest of them paying when the buffer is full.
//!
//! ```text
//!   packet -> identity -> place        flow table: no two flows share a place, idle ones have none
//!   flows    [ queue | identity ] ...  32 bytes each
//!   service                            tournament over the flows' bytes
//!   longest                            bounds of the flows' bytes, to be corrected when the longest is wanted
//! ```
//!
//! A flow has a place while it has packets, so that there are never more than the buffer holds packets: the number of
//! flows behind the link does not matter.
//!
//! **Among equals** the flow that came to its number of bytes first is the first: every packet that a flow gains or loses,
//! also one of length 0, makes it the last of those with as many bytes. A naive scan for the least pair (bytes, time of
//! the last change) finds the same. Of several that are the longest any may pay: it is the one with the lowest place.
//!
//! **The shortest first, lazily.** Who grows goes back, so that the rank that a flow had before is a bound for its rank: it
//! is left, with the time of the change beside it, until the flow comes first by it. Then it is ranked anew, once for all
//! the packets that came meanwhile. A packet costs O(log n) at most, amortised; a choice, after a long time without one,
//! 4096 times as much, for of more flows than that none is left standing. Where a flow loses packets it is ranked at once.
//!
//! The flow that is served stays the shortest until a packet comes for any flow, and is ranked only then.
//!
//! Invariants: nobody's rank in the tournament is behind the true one, and only those flagged stand before it, but for the one that is served; a flow is in the tournament if and only if it has packets, with its bytes; a flow that came through the
//! hash has a place in the table if and only if it has packets.

use alloc::boxed::Box;
use core::fmt::Debug;
use core::marker::PhantomData;

use super::parameters::{drop_from, key, limit};
use crate::discipline::{Algorithm, ByFlow, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::flow::{FlowBy, FlowByHasher};
use crate::implicit::tournament::{Rank, Tournament};
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::DropFrom;
use crate::registry::{Longest, Parameter, Unit, check_ranges};
use crate::structures::{Bounds, FlowTable, Identity};
use crate::time::Time;

/// Most flows at a time.
const MOST_FLOWS: u32 = 1 << 20;
/// Most bytes that a tournament can rank; less one packet of any length, which may be over the limit for a moment.
const MOST_BYTES: u64 = (1 << 48) - (1 << 33);

/// Most flows that stand too far ahead: so many are ranked anew at most before a packet is chosen. Few in tests, which
/// would not come to it.
const MOST_AHEAD: u32 = if cfg!(test) { 3 } else { 4096 };

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most packets queued, 1 to 2^25.
    pub limit: u32,
    /// Most bytes queued besides, at least 1.
    pub limit_bytes: Option<u64>,
    /// Which packet of the longest flow pays.
    pub drop_from: DropFrom,
    /// What a flow is.
    pub key: FlowBy,
    /// Most flows with packets at a time, 1 to 2^20; `None` for as many as there can be packets.
    pub flows: Option<u32>,
}

/// 200 packets: the most of what the paper gives as typical (section III-B) and what it analyses (Figures 3 and 4). A
/// stream keeps its priority while it has less than `limit / (flows + 1)` packets queued (equation 1), so that a long buffer
/// makes it more robust, and only bulk flows wait longer for it.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 200,
            limit_bytes: None,
            drop_from: DropFrom::Head,
            key: FlowBy::FiveTuple,
            flows: None,
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    limit(1 << 25, |sqf, _| &mut sqf.limit),
    Parameter::bounding(
        |sqf, _| sqf.limit_bytes.map(Longest::Length),
        Parameter::new(
            "limit_bytes",
            Unit::Bytes,
            1..=MOST_BYTES,
            "Most bytes queued in all.",
            |sqf, _| &mut sqf.limit_bytes,
        ),
    ),
    drop_from(
        "Which packet of the longest flow pays: the newest or the oldest.",
        |sqf, _| &mut sqf.drop_from,
    ),
    key(|sqf, _| &mut sqf.key),
    Parameter::new(
        "flows",
        Unit::Count("flows"),
        1..=MOST_FLOWS as u64,
        "Most flows with packets at a time; none for as many as there can be packets.",
        |sqf, _| &mut sqf.flows,
    ),
];

impl Config {
    fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())
    }

    /// Bytes that the discipline allocates.
    pub(super) fn allocated(&self) -> u64 {
        100 * u64::from(self.flows.unwrap_or(self.limit))
    }

    /// How many flows can have packets at a time: the arriving packet is queued before another one is dropped for it.
    fn places(&self) -> u32 {
        self.flows.unwrap_or((self.limit + 1).min(MOST_FLOWS))
    }
}

/// Which flow is served.
pub trait Order: Debug + Send + 'static {
    /// The name that users configure the discipline by.
    const NAME: &'static str;
    /// Whether it is the longest; else it is the shortest.
    const LONGEST_FIRST: bool;
}

/// What is looked at for each packet: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Flow {
    queue: PacketQueue,
    /// Under which it has its place in the table, if it came by its hash.
    identity: Identity,
}

impl Flow {
    const EMPTY: Flow = Flow {
        queue: PacketQueue::new(),
        identity: Identity::NONE,
    };
}

/// The discipline. Make one with [`ByBacklog::node`].
#[derive(Debug)]
pub struct ByBacklog<O> {
    flows: Box<[Flow]>,
    table: FlowTable,
    /// The flow to serve is the first. Where that is the shortest, a flow that has grown since it was ranked stands
    /// too far ahead.
    service: Tournament,
    /// When flows that stand too far ahead came to their bytes; 0 for those that stand right.
    grown: Box<[u64]>,
    /// How many of them there are.
    ahead: u32,
    /// By bytes and one more, so that a flow of empty packets is longer than one without packets. Not kept where the
    /// longest is the flow to serve.
    longest: Bounds,
    /// The shortest, while it is served and nothing comes: it stays the shortest, and is not ranked for each packet.
    serving: Option<u32>,
    active: u32,
    packets: u32,
    bytes: u64,
    limit_bytes: u64,
    /// Changes of flows so far: 2^56 of them take decades.
    stamp: u64,
    hasher: FlowByHasher,
    seed: u64,
    config: Config,
    order: PhantomData<O>,
}

impl<O: Order> ByBacklog<O> {
    /// An empty buffer. `seed` is the key of the hashes.
    pub fn node(config: Config, seed: u64) -> Result<Node<ByBacklog<O>>, ConfigError> {
        config.check()?;
        Ok(Node::new(ByBacklog::empty(config, seed)))
    }

    fn empty(config: Config, seed: u64) -> ByBacklog<O> {
        let places = config.places();
        ByBacklog {
            flows: vec![Flow::EMPTY; places as usize].into(),
            table: FlowTable::new(places, seed),
            service: Tournament::new(places),
            grown: vec![0; if O::LONGEST_FIRST { 0 } else { places as usize }].into(),
            ahead: 0,
            longest: Bounds::new(if O::LONGEST_FIRST { 1 } else { places }),
            serving: None,
            active: 0,
            packets: 0,
            bytes: 0,
            limit_bytes: config.limit_bytes.unwrap_or(MOST_BYTES),
            stamp: 0,
            hasher: FlowByHasher::new(config.key, seed),
            seed,
            config,
            order: PhantomData,
        }
    }

    /// The place of the packet's flow, a new one if it has none; `None` if all are taken.
    #[inline]
    fn place(&mut self, id: PacketId, pool: &Pool) -> Option<u32> {
        let identity = self.table.identity(self.hasher.flow(id, pool));
        self.table.find(identity).or_else(|| {
            let place = self.table.insert(identity)?;
            self.flows[place as usize].identity = identity;
            Some(place)
        })
    }

    /// Takes a packet into flow `place`, and drops for `reason` what is over a limit then.
    #[inline(always)]
    fn admit(&mut self, place: u32, id: PacketId, reason: DropReason, pool: &mut Pool) -> Verdict {
        self.interrupt();
        let length = pool[id].length;
        let queue = &mut self.flows[place as usize].queue;
        let is_new = queue.is_empty();
        queue.push_back(id, pool);
        self.packets += 1;
        self.bytes += u64::from(length);
        if !O::LONGEST_FIRST {
            self.longest.grew(place, queue.bytes() + 1);
        }
        if is_new {
            self.active += 1;
            self.rank(place);
        } else {
            self.grew(place);
        }
        if self.is_full() {
            return self.make_room(place, reason, pool);
        }
        Verdict::Queued
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.packets > self.config.limit || self.bytes > self.limit_bytes
    }

    /// Longest queue drop, after a packet came to flow `arrived`.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, arrived: u32, reason: DropReason, pool: &mut Pool) -> Verdict {
        let mut verdict = Verdict::Queued;
        while self.is_full() {
            let victim = self.longest().expect("a buffer over its limit isn't empty");
            let queue = &mut self.flows[victim as usize].queue;
            let dropped = match self.config.drop_from {
                DropFrom::Head => queue.pop_front(pool),
                DropFrom::Tail => queue.pop_back(pool),
            };
            let dropped = dropped.expect("the longest flow isn't empty");
            self.lost(victim, pool[dropped].length);
            pool.give_back(dropped, reason);
            if victim == arrived {
                verdict = Verdict::Congested;
            }
        }
        verdict
    }

    /// A packet of flow `place` was dropped.
    fn lost(&mut self, place: u32, length: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(length);
        if self.flows[place as usize].queue.is_empty() {
            self.retire(place);
        } else {
            self.rank(place);
        }
    }

    /// Flow `place` has no packets any more.
    #[inline(never)]
    fn retire(&mut self, place: u32) {
        self.serving = None;
        self.active -= 1;
        self.take_stamp(place);
        let flow = &mut self.flows[place as usize];
        self.table.remove(core::mem::take(&mut flow.identity));
        self.service.leave(place);
    }

    /// Flow `place`, which has been ranked, has more packets than before. Where the shortest is served that puts it
    /// back, so that it need not be ranked before it comes first.
    #[inline]
    fn grew(&mut self, place: u32) {
        if O::LONGEST_FIRST {
            return self.rank(place);
        }
        let grown = &mut self.grown[place as usize];
        if *grown == 0 {
            if self.ahead == MOST_AHEAD {
                return self.rank(place);
            }
            self.ahead += 1;
        }
        self.stamp += 1;
        *grown = self.stamp;
    }

    /// When flow `place` came to its bytes, if it stands too far ahead; it is about to be ranked.
    #[inline]
    fn take_stamp(&mut self, place: u32) -> Option<u64> {
        if O::LONGEST_FIRST {
            return None;
        }
        let stamp = core::mem::take(&mut self.grown[place as usize]);
        self.ahead -= u32::from(stamp != 0);
        (stamp != 0).then_some(stamp)
    }

    /// The flow that is served may not be the shortest any more: it is ranked by what it has now.
    #[inline]
    fn interrupt(&mut self) {
        if let Some(serving) = self.serving.take() {
            self.rank(serving);
        }
    }

    /// Flow `place` has come to its present number of bytes.
    #[inline(never)]
    fn rank(&mut self, place: u32) {
        self.take_stamp(place);
        self.stamp += 1;
        self.enter(place, self.stamp);
    }

    #[inline]
    fn enter(&mut self, place: u32, stamp: u64) {
        let bytes = self.flows[place as usize].queue.bytes();
        let rank = match O::LONGEST_FIRST {
            true => Rank::most_first(bytes, stamp, place),
            false => Rank::least_first(bytes, stamp, place),
        };
        self.service.enter(place, rank);
    }

    /// The flow to serve.
    #[inline(never)]
    fn served(&mut self) -> Option<u32> {
        let mut first = self.service.first()?;
        // Nobody's true rank is before the one he stands at: the first who stands right is the first of all.
        while let Some(stamp) = self.take_stamp(first) {
            self.enter(first, stamp);
            first = self.service.first()?;
        }
        Some(first)
    }

    /// The flow with the most bytes.
    fn longest(&mut self) -> Option<u32> {
        if O::LONGEST_FIRST {
            return self.service.first();
        }
        let size = |place: u32| {
            let queue = &self.flows[place as usize].queue;
            queue.bytes() + u64::from(!queue.is_empty())
        };
        self.longest.largest(size).map(|(place, _)| place)
    }
}

/// Flow n has place n. A program that mixes numbers and hashes may have a numbered and a hashed flow share a queue.
impl<O: Order> ByFlow for ByBacklog<O> {
    #[inline]
    fn flows(&self) -> u32 {
        self.flows.len() as u32
    }

    #[inline]
    fn enqueue_flow(&mut self, flow: u32, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        if u64::from(pool[id].length) > self.limit_bytes {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        if flow >= self.flows() {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Dropped;
        }
        self.admit(flow, id, DropReason::LongestFlow, pool)
    }
}

impl<O: Order> Algorithm for ByBacklog<O> {
    const NAME: &'static str = O::NAME;
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        if u64::from(pool[id].length) > self.limit_bytes {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        let Some(place) = self.place(id, pool) else {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Dropped;
        };
        self.admit(place, id, DropReason::LongestFlow, pool)
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        let place = match self.serving {
            Some(place) => place,
            None => self.served()?,
        };
        let queue = &mut self.flows[place as usize].queue;
        let taken = queue.take_front(pool).expect("a flow that plays has packets");
        self.packets -= 1;
        self.bytes -= u64::from(taken.length);
        if queue.is_empty() {
            self.retire(place);
        } else if O::LONGEST_FIRST || taken.length == 0 {
            self.rank(place);
        } else {
            queue.prefetch_front(pool);
            self.serving = Some(place);
        }
        Some(taken.id)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.interrupt();
        while let Some(place) = self.served() {
            let queue = &mut self.flows[place as usize].queue;
            let (packets, bytes) = (queue.len(), queue.bytes());
            queue.append_to(into, pool);
            self.packets -= packets;
            self.bytes -= bytes;
            self.retire(place);
        }
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// All packets are placed anew, flow after flow in the order of service. Of what is over a lowered limit the longest
    /// flows pay.
    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        *self = ByBacklog::empty(config, self.seed);
        while let Some(id) = queued.pop_front(pool) {
            let fits = u64::from(pool[id].length) <= self.limit_bytes;
            match self.place(id, pool) {
                Some(place) if fits => {
                    let _ = self.admit(place, id, DropReason::Reconfigured, pool);
                }
                _ => pool.give_back(id, DropReason::Reconfigured),
            }
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let queues = self.flows.iter().map(|flow| &flow.queue);
        let bytes = queues.filter(|queue| !queue.is_empty()).map(PacketQueue::bytes);
        let (shortest, longest) = (bytes.clone().min(), bytes.max());
        let served = if O::LONGEST_FIRST { longest } else { shortest };
        visit("active_flows", Variable::Integer(self.active.into()));
        visit(
            "served_bytes",
            served.map_or(Variable::Unset, |bytes| Variable::Integer(bytes as i64)),
        );
        visit("longest_bytes", Variable::Integer(longest.unwrap_or(0) as i64));
    }
}

#[cfg(test)]
mod tests;
