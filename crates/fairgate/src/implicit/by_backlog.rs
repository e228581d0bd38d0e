//! The common part of [`sqf`](super::sqf) and [`lqf`](super::lqf): flows without hash collisions, sorted by
//! their bytes. If the buffer is full, the longest flow loses packets.
//!
//! ```text
//!   packet -> identity -> position     flow table: flows never share a position; idle flows have none
//!   flows    [ queue | identity ] ...  32 bytes each
//!   service                            tournament over the flows' bytes
//!   longest                            bounds of the flows' bytes, corrected when the longest flow is needed
//! ```
//!
//! A flow has a position while it has packets, so there are never more positions in use than packets in the
//! buffer. The number of flows behind the link does not matter.
//!
//! **Ties.** If several flows have the same number of bytes, the flow that reached this number first goes
//! first. Each packet that a flow gains or loses, even one of length 0, makes it the last of the equal flows.
//! A simple scan for the least pair (bytes, time of the last change) gives the same result. If several flows
//! are the longest, any of them may lose a packet; here it is the one with the lowest position.
//!
//! **Lazy ranking in sqf.** A flow that grows moves back, so its old rank is a lower bound of its new rank.
//! The old rank stays in the tournament, and the time of the change is stored, until the flow becomes first
//! by the old rank. Then it is ranked again, once for all packets that arrived in the meantime. The amortised
//! cost per packet is O(log n). One choice after a long time can cost 4096 times as much, because at most
//! that many flows have an old rank. A flow that loses packets is ranked at once.
//!
//! The flow that is served remains the shortest until a packet arrives for any flow, and is only ranked then.
//!
//! **Credit** (sqf only, `credits.rs`). With a credit a flow's rank is its bytes less the credit. A credit
//! that all flows earn alike changes no order, so it is in no rank. What a flow pays for a packet it sends
//! moves it back by at most the packet, so also then it remains the first.
//!
//! Invariants: no rank in the tournament is behind the true rank. Only flows with a stored time of change are
//! before their true rank, and the flow that is served. A flow is in the tournament if and only if it has
//! packets. A flow that was found by its hash has a position in the table if and only if it has packets.

use alloc::boxed::Box;
use core::fmt::Debug;
use core::marker::PhantomData;

use super::credits::{Credits, MOST_CREDIT};
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

/// The largest number of flows.
const MOST_FLOWS: u32 = 1 << 20;
/// The most bytes that a tournament can rank, minus one packet of any length, which may exceed the limit for
/// a moment.
const MOST_BYTES: u64 = (1 << 48) - (1 << 33);

/// The largest number of flows with an old rank. So many flows at most are ranked again before a packet is
/// chosen. It is small in tests, because they have few flows.
const MOST_AHEAD: u32 = if cfg!(test) { 3 } else { 4096 };

/// The parameters of the discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest number of queued packets, 1 to 2^25.
    pub limit: u32,
    /// The largest number of queued bytes, at least 1. It applies in addition to `limit`.
    pub limit_bytes: Option<u64>,
    /// Which packet of the longest flow is dropped.
    pub drop_from: DropFrom,
    /// What identifies a flow.
    pub key: FlowBy,
    /// The largest number of flows with packets, 1 to 2^20. `None` means as many as there can be packets.
    pub flows: Option<u32>,
    /// sqf: the bytes of credit that a flow may collect while it sends less than its fair share, up to 2^30;
    /// 0 is the paper's discipline. lqf accepts 0 only.
    pub credit: u32,
}

/// 200 packets is the largest value that the paper calls typical (section III-B), and the value that it
/// analyses (Figures 3 and 4). A stream keeps its priority while it has less than `limit / (flows + 1)`
/// packets queued (equation 1). So a longer buffer makes it more robust, and only bulk flows wait longer.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 200,
            limit_bytes: None,
            drop_from: DropFrom::Head,
            key: FlowBy::FiveTuple,
            flows: None,
            credit: 0,
        }
    }
}

/// The common parameters, and more.
macro_rules! parameters {
    ($($more:expr),*) => {
        &[
            limit(1 << 25, |config, _| &mut config.limit),
            Parameter::bounding(
                |config, _| config.limit_bytes.map(Longest::Length),
                Parameter::new(
                    "limit_bytes",
                    Unit::Bytes,
                    1..=MOST_BYTES,
                    "The largest number of queued bytes.",
                    |config, _| &mut config.limit_bytes,
                ),
            ),
            drop_from(
                "Which packet of the longest flow is dropped: the newest or the oldest.",
                |config, _| &mut config.drop_from,
            ),
            key(|config, _| &mut config.key),
            Parameter::new(
                "flows",
                Unit::Count("flows"),
                1..=MOST_FLOWS as u64,
                "The largest number of flows with packets; none means as many as there can be packets.",
                |config, _| &mut config.flows,
            ),
            $($more),*
        ]
    };
}

/// The parameters that users can set in lqf.
pub const PARAMETERS: &[Parameter<Config>] = parameters![];

/// The parameters that users can set in sqf.
pub const PARAMETERS_WITH_CREDIT: &[Parameter<Config>] = parameters![Parameter::new(
    "credit",
    Unit::Bytes,
    0..=MOST_CREDIT as u64,
    "The bytes that a flow may burst above its fair share as if they were not queued; 0 is the paper's sqf.",
    |config, _| &mut config.credit,
)];

impl Config {
    fn check<O: Order>(&self) -> Result<(), ConfigError> {
        if O::LONGEST_FIRST && self.credit > 0 {
            return Err(ConfigError::conflict(
                "credit",
                self.credit,
                "0, because lqf serves the longest flow whatever its share is",
                "remove it, or use sqf",
            ));
        }
        let parameters = match O::LONGEST_FIRST {
            true => PARAMETERS,
            false => PARAMETERS_WITH_CREDIT,
        };
        check_ranges(parameters, &mut self.clone())
    }

    /// Returns the bytes that the discipline allocates.
    pub(super) fn allocated(&self) -> u64 {
        let credits = match self.credit {
            0 => 0,
            _ => Credits::allocated(self.positions()),
        };
        100 * u64::from(self.flows.unwrap_or(self.limit)) + credits
    }

    /// Returns the number of positions: how many flows can have packets at a time. The arriving packet is
    /// queued before another one is dropped.
    fn positions(&self) -> u32 {
        self.flows.unwrap_or((self.limit + 1).min(MOST_FLOWS))
    }
}

/// The order of service.
pub trait Order: Debug + Send + 'static {
    /// The name by which users configure the discipline.
    const NAME: &'static str;
    /// Whether the longest flow is served. Otherwise it is the shortest.
    const LONGEST_FIRST: bool;
}

/// The state of a flow that each packet needs: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Flow {
    queue: PacketQueue,
    /// Its identity in the table, if it was found by its hash.
    identity: Identity,
}

impl Flow {
    const EMPTY: Flow = Flow {
        queue: PacketQueue::new(),
        identity: Identity::NONE,
    };
}

/// The discipline. [`ByBacklog::node`] creates it.
#[derive(Debug)]
pub struct ByBacklog<O> {
    flows: Box<[Flow]>,
    table: FlowTable,
    /// Its first flow is served. In sqf, a flow that has grown since it was ranked is further ahead than its
    /// true rank.
    service: Tournament,
    /// The times at which the flows with an old rank reached their bytes. 0 for all other flows.
    grown: Box<[u64]>,
    /// The number of flows with an old rank.
    ahead: u32,
    /// Bounds of the flows' bytes plus 1, so that a flow of empty packets is longer than a flow without
    /// packets. Not used in lqf, where the longest flow is the one to serve.
    longest: Bounds,
    /// The shortest flow while it is served and no packet arrives. It stays the shortest and is not ranked
    /// for each packet.
    serving: Option<u32>,
    active: u32,
    packets: u32,
    bytes: u64,
    limit_bytes: u64,
    /// What flows have collected below their fair share, if that counts.
    credits: Option<Credits>,
    /// The number of changes of flows so far. 2^56 changes take decades.
    stamp: u64,
    hasher: FlowByHasher,
    seed: u64,
    config: Config,
    order: PhantomData<O>,
}

impl<O: Order> ByBacklog<O> {
    /// Returns an empty discipline. `seed` is the key of the hashes.
    pub fn node(config: Config, seed: u64) -> Result<Node<ByBacklog<O>>, ConfigError> {
        config.check::<O>()?;
        Ok(Node::new(ByBacklog::empty(config, seed)))
    }

    fn empty(config: Config, seed: u64) -> ByBacklog<O> {
        let positions = config.positions();
        ByBacklog {
            flows: vec![Flow::EMPTY; positions as usize].into(),
            table: FlowTable::new(positions, seed),
            service: Tournament::new(positions),
            grown: vec![0; if O::LONGEST_FIRST { 0 } else { positions as usize }].into(),
            ahead: 0,
            longest: Bounds::new(if O::LONGEST_FIRST { 1 } else { positions }),
            serving: None,
            active: 0,
            packets: 0,
            bytes: 0,
            limit_bytes: config.limit_bytes.unwrap_or(MOST_BYTES),
            credits: (config.credit > 0).then(|| Credits::new(config.credit, positions)),
            stamp: 0,
            hasher: FlowByHasher::new(config.key, seed),
            seed,
            config,
            order: PhantomData,
        }
    }

    /// Returns the position of the packet's flow, a new one if it has none, or `None` if all are taken.
    #[inline]
    fn position(&mut self, id: PacketId, pool: &Pool) -> Option<u32> {
        let identity = self.table.identity(self.hasher.flow(id, pool));
        self.table.find(identity).or_else(|| {
            let position = self.table.insert(identity)?;
            self.flows[position as usize].identity = identity;
            Some(position)
        })
    }

    /// Enqueues a packet of the flow at `position`. Drops packets that are then above a limit, for `reason`.
    #[inline(always)]
    fn admit(&mut self, position: u32, id: PacketId, reason: DropReason, pool: &mut Pool) -> Verdict {
        self.interrupt();
        let length = pool[id].length;
        let queue = &mut self.flows[position as usize].queue;
        let is_new = queue.is_empty();
        queue.push_back(id, pool);
        self.packets += 1;
        self.bytes += u64::from(length);
        let queued = queue.bytes();
        if is_new && let Some(credits) = &mut self.credits {
            credits.begin(position, self.flows[position as usize].identity);
        }
        if !O::LONGEST_FIRST {
            self.longest.grew(position, self.size(position, queued) + 1);
        }
        if is_new {
            self.active += 1;
            self.rank(position);
        } else {
            self.grew(position);
        }
        if self.is_full() {
            return self.make_room(position, reason, pool);
        }
        Verdict::Queued
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.packets > self.config.limit || self.bytes > self.limit_bytes
    }

    /// Longest queue drop, after a packet of flow `arrived` was enqueued.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, arrived: u32, reason: DropReason, pool: &mut Pool) -> Verdict {
        let mut verdict = Verdict::Queued;
        while self.is_full() {
            let victim = self.longest().expect("a buffer above its limit isn't empty");
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

    /// Updates the state after a packet of the flow at `position` was dropped.
    fn lost(&mut self, position: u32, length: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(length);
        if self.flows[position as usize].queue.is_empty() {
            self.retire(position);
        } else {
            self.rank(position);
        }
    }

    /// Removes the flow at `position`, which has no more packets.
    #[inline(never)]
    fn retire(&mut self, position: u32) {
        self.serving = None;
        self.active -= 1;
        self.take_stamp(position);
        let flow = &mut self.flows[position as usize];
        if let Some(credits) = &mut self.credits {
            credits.end(position, flow.identity);
        }
        self.table.remove(core::mem::take(&mut flow.identity));
        self.service.leave(position);
    }

    /// Reports that the flow at `position`, which is ranked, has more packets than before. In sqf this moves
    /// it back, so it need not be ranked before it becomes first.
    #[inline]
    fn grew(&mut self, position: u32) {
        if O::LONGEST_FIRST {
            return self.rank(position);
        }
        let grown = &mut self.grown[position as usize];
        if *grown == 0 {
            if self.ahead == MOST_AHEAD {
                return self.rank(position);
            }
            self.ahead += 1;
        }
        self.stamp += 1;
        *grown = self.stamp;
    }

    /// Clears the stored time of change of the flow at `position`, and returns it. The flow must be ranked
    /// next.
    #[inline]
    fn take_stamp(&mut self, position: u32) -> Option<u64> {
        if O::LONGEST_FIRST {
            return None;
        }
        let stamp = core::mem::take(&mut self.grown[position as usize]);
        self.ahead -= u32::from(stamp != 0);
        (stamp != 0).then_some(stamp)
    }

    /// Ranks the flow that is served by its current bytes, because it may no longer be the shortest.
    #[inline]
    fn interrupt(&mut self) {
        if let Some(serving) = self.serving.take() {
            self.rank(serving);
        }
    }

    /// Ranks the flow at `position`, which has just reached its number of bytes.
    #[inline(never)]
    fn rank(&mut self, position: u32) {
        self.take_stamp(position);
        self.stamp += 1;
        self.enter(position, self.stamp);
    }

    #[inline]
    fn enter(&mut self, position: u32, stamp: u64) {
        let bytes = self.size(position, self.flows[position as usize].queue.bytes());
        let rank = match O::LONGEST_FIRST {
            true => Rank::most_first(bytes, stamp, position),
            false => Rank::least_first(bytes, stamp, position),
        };
        self.service.enter(position, rank);
    }

    /// Returns by how many bytes a flow with `queued` bytes is ranked.
    #[inline]
    fn size(&self, position: u32, queued: u64) -> u64 {
        size(self.credits.as_ref(), position, queued)
    }

    /// Notes a packet of the flow at `position` that is sent.
    #[cold]
    #[inline(never)]
    fn pay(&mut self, position: u32, length: u32) {
        let Some(credits) = &mut self.credits else { return };
        credits.sent(position, length, self.active);
        if credits.is_far() {
            // Once in many terabytes: all ranks are made smaller by the same amount, which changes no order.
            credits.come_back();
            self.longest = Bounds::new(self.flows.len() as u32);
            for position in 0..self.flows.len() as u32 {
                let queue = &self.flows[position as usize].queue;
                if !queue.is_empty() {
                    let size = self.size(position, queue.bytes());
                    self.longest.grew(position, size + 1);
                    self.rank(position);
                }
            }
        }
    }

    /// Returns the flow to serve.
    #[inline(never)]
    fn served(&mut self) -> Option<u32> {
        let mut first = self.service.first()?;
        // No true rank is before the stored rank. So the first flow whose stored rank is true is the first of
        // all.
        while let Some(stamp) = self.take_stamp(first) {
            self.enter(first, stamp);
            first = self.service.first()?;
        }
        Some(first)
    }

    /// Returns the flow with the most bytes.
    fn longest(&mut self) -> Option<u32> {
        if O::LONGEST_FIRST {
            return self.service.first();
        }
        let (flows, credits) = (&self.flows, self.credits.as_ref());
        let size_of = |position: u32| {
            let queue = &flows[position as usize].queue;
            match queue.is_empty() {
                true => 0,
                false => size(credits, position, queue.bytes()) + 1,
            }
        };
        self.longest.largest(size_of).map(|(position, _)| position)
    }
}

/// Returns by how many bytes a flow with `queued` bytes is ranked: by these, or by how far they exceed its
/// credit. That is a number relative to all flows, see [`Credits::debt`].
#[inline]
fn size(credits: Option<&Credits>, position: u32, queued: u64) -> u64 {
    match credits {
        None => queued,
        Some(credits) => (queued + credits.debt(position)).min(MOST_BYTES),
    }
}

/// Flow n has position n. If a program uses both numbers and hashes, a numbered flow and a hashed flow may
/// share a queue.
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
        let Some(position) = self.position(id, pool) else {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Dropped;
        };
        self.admit(position, id, DropReason::LongestFlow, pool)
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        let position = match self.serving {
            Some(position) => position,
            None => self.served()?,
        };
        let queue = &mut self.flows[position as usize].queue;
        let taken = queue
            .take_front(pool)
            .expect("a flow in the tournament has packets");
        self.packets -= 1;
        self.bytes -= u64::from(taken.length);
        let is_empty = queue.is_empty();
        if !is_empty {
            queue.prefetch_front(pool);
        }
        if self.credits.is_some() {
            self.pay(position, taken.length);
        }
        if is_empty {
            self.retire(position);
        } else if O::LONGEST_FIRST || taken.length == 0 {
            self.rank(position);
        } else {
            self.serving = Some(position);
        }
        Some(taken.id)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.interrupt();
        while let Some(position) = self.served() {
            let queue = &mut self.flows[position as usize].queue;
            let (packets, bytes) = (queue.len(), queue.bytes());
            queue.append_to(into, pool);
            self.packets -= packets;
            self.bytes -= bytes;
            self.retire(position);
        }
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// Enqueues all packets again, flow by flow in the order of service. Above a lowered limit the longest
    /// flows lose packets.
    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check::<O>()?;
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        *self = ByBacklog::empty(config, self.seed);
        while let Some(id) = queued.pop_front(pool) {
            let fits = u64::from(pool[id].length) <= self.limit_bytes;
            match self.position(id, pool) {
                Some(position) if fits => {
                    let _ = self.admit(position, id, DropReason::Reconfigured, pool);
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
#[path = "by_backlog_tests.rs"]
mod tests;
