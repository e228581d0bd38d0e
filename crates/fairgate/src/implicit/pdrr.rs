//! Priority deficit round robin (Kortebi, Oueslati & Roberts 2005, Table 1): deficit round robin in which the
//! packets of a flow go first while the flow sends less than a quantum per round.
//!
//! ```text
//!   packet -> flow -> not in the active flow list (AFL): joins it at the end ---> priority queue -.
//!                     in AFL, at most a quantum since it joined ----------------> priority queue -+-> first
//!                     in AFL, more than a quantum ------------------------------> own queue -----> in rounds
//! ```
//!
//! The priority queue (PQ) is served first. What a flow sends through it is subtracted from its deficit. When
//! PQ is empty, the flow at the head of AFL is given a quantum and sends what its deficit allows. Then it
//! goes to the tail. If it has no packets, it leaves AFL, and its next packets have priority again. A flow
//! that sends below the fair rate has no packets left at its turn, and waits for priority packets only.
//!
//! **Constant time** (section 3.3): AFL also holds flows without packets, whose packets all went through PQ.
//! One look at a bitmap skips them, and being skipped removes them (`cycle::Cycle`). The order is the order
//! of Table 1.
//!
//! **AFL full**: packets of further flows have priority and get no entry. **Buffer full**: the flow with the
//! most bytes in its own queue loses its oldest packet, before the arriving packet is classified. If all
//! queued packets have priority, the arriving packet is dropped.
//!
//! **Congestion** is measured if the link's rate is given (section 3.2, `implicit/congestion.rs`): a
//! fictitious flow has an entry in AFL, is granted a quantum at its turn and sends nothing. With
//! [`Admission`], packets of new flows are dropped while the link is congested.
//!
//! Deviations from Table 1:
//!
//! * PQ is checked before each packet and not only between the turns of two flows. So a priority packet waits
//!   for one other packet at most and not for a flow's turn.
//! * DC is reduced when a packet enters PQ and not when it leaves. No flow's DC is read before PQ is empty,
//!   so the schedule is the same, and no flow need be looked up.
//! * An arrival in an empty buffer finds AFL empty. Table 1 visits all flows then, whether or not a packet is
//!   dequeued.
//! * A flow's quantum Q_i is that of the class that a filter gives its first packet, `quanta`, and otherwise
//!   `quantum`, which is also the fictitious flow's.
//!
//! Bounds: none is published for PDRR. The delay of a flow below the fair rate is the delay of PQ, close to
//! M/M/1 with the priority load (section 4.3). PDRR is not meant for flows whose peak rate is a large part of
//! the link's rate: see [`sqf`](super::sqf).

mod config;

use alloc::boxed::Box;

use super::congestion::Congestion;
use super::in_progress::InProgress;
use crate::arrival::Needs;
use crate::discipline::{Algorithm, ByFlow, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::flow::{FlowByHasher, FlowHash};
use crate::implicit::cycle::{Cycle, Turn};
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::check_ranges;
use crate::structures::{Bounds, FlowTable, Identity};
use crate::time::Time;

pub use super::congestion::Measurement;
pub use config::{Admission, Config, DESCRIPTION, PARAMETERS, Settings};

impl Config {
    fn check(&self) -> Result<(), ConfigError> {
        self.classifier.check()?;
        check_ranges(PARAMETERS, &mut Settings::of(self))?;
        if self.admission.is_some() && self.rate.is_none() {
            return Err(ConfigError::conflict(
                "admission",
                "on",
                "off unless `rate` is given, because congestion can't be measured without it",
                "write the rate of the link, or remove admission control",
            ));
        }
        Ok(())
    }
}

/// An entry of AFL. It fills a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Flow {
    queue: PacketQueue,
    /// Its turn. The cycle tells whether the flow is in AFL.
    turn: Turn,
    /// The bytes that it may still send (DC). Negative after priority packets.
    deficit: i64,
    /// The bytes that arrived since it joined (ByteCount).
    byte_count: u32,
    /// The length of the first packet in its own queue, if there is one.
    first: u32,
    /// The bytes that it may send in a round (Q).
    quantum: u32,
    /// Its identity in the table, if it was found by its hash.
    identity: Identity,
}

impl Flow {
    const EMPTY: Flow = Flow {
        queue: PacketQueue::new(),
        turn: Turn::NONE,
        deficit: 0,
        byte_count: 0,
        first: 0,
        quantum: 0,
        identity: Identity::NONE,
    };

    /// Removes the first packet of its own queue. Returns the packet and its length.
    #[inline]
    fn take_first(&mut self, pool: &Pool) -> Option<(PacketId, u32)> {
        let taken = self.queue.take_front(pool)?;
        self.first = taken.next.unwrap_or(0);
        Some((taken.id, taken.length))
    }
}

/// Whether there is room for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    There,
    /// There is room because this flow lost a packet.
    Of(u32),
    /// There is no room, because all queued packets have priority.
    None,
}

impl Room {
    /// Returns the verdict for a packet that was enqueued.
    #[inline]
    fn verdict(self, entry: Option<u32>) -> Verdict {
        match self {
            Room::Of(victim) if entry == Some(victim) => Verdict::Congested,
            _ => Verdict::Queued,
        }
    }
}

/// The discipline. [`Pdrr::node`] creates it.
#[derive(Debug)]
pub struct Pdrr {
    priority: PacketQueue,
    flows: Box<[Flow]>,
    /// AFL without the flow whose turn it is. The fictitious flow has the number after the last flow's
    /// number.
    cycle: Cycle,
    /// The flow whose turn it is.
    serving: Option<u32>,
    /// Packets in the flows' own queues.
    packets: u32,
    /// Bounds of the bytes in own queues plus 1, to find the longest.
    longest: Bounds,
    table: FlowTable,
    hasher: FlowByHasher,
    // Boxed, so that the frame of what makes a discipline stays below the kernel's limit of 2 KB.
    congestion: Option<Box<Congestion>>,
    in_progress: Option<Box<InProgress>>,
    seed: u64,
    config: Box<Config>,
}

impl Pdrr {
    /// Returns an empty discipline. `seed` is the key of the hashes.
    ///
    /// # Errors
    /// Returns an error if a parameter is out of range, or if admission control is on without a rate.
    pub fn node(config: Config, seed: u64) -> Result<Node<Pdrr>, ConfigError> {
        config.check()?;
        Ok(Node::new(Pdrr::empty(config, seed)))
    }

    fn empty(config: Config, seed: u64) -> Pdrr {
        let mut pdrr = Pdrr {
            priority: PacketQueue::new(),
            flows: vec![Flow::EMPTY; config.afl as usize].into(),
            cycle: Cycle::new(config.afl + 1),
            serving: None,
            packets: 0,
            longest: Bounds::new(config.afl),
            table: FlowTable::new(config.afl, seed),
            hasher: FlowByHasher::new(config.key, seed),
            congestion: None,
            in_progress: None,
            seed,
            config: Box::new(config),
        };
        pdrr.measure();
        pdrr
    }

    /// Starts the measurements that are configured.
    fn measure(&mut self) {
        let Config {
            rate,
            measurement,
            admission,
            ..
        } = &*self.config;
        self.in_progress = (admission.as_ref()).map(|admission| Box::new(admission.flows(self.seed)));
        self.congestion = rate.map(|rate| {
            let thresholds = admission.as_ref().map(|admission| admission.thresholds(rate));
            Box::new(Congestion::new(rate, measurement, thresholds))
        });
        self.start_round();
    }

    /// Empties AFL, except for the fictitious flow.
    fn start_round(&mut self) {
        if let Some(flow) = self.serving.take() {
            self.leave(flow);
        }
        // Idle flows leave with the last busy flow, which can be the fictitious flow alone.
        while self.cycle.next().is_some() {}
        if self.congestion.is_some() {
            self.give_back_entries(2);
            self.cycle.push(self.config.afl, true);
        }
    }

    /// Frees the entries of at most `most` flows whose turn has passed.
    #[inline]
    fn give_back_entries(&mut self, most: u32) {
        if self.cycle.has_passed() {
            self.sweep(most);
        }
    }

    #[cold]
    #[inline(never)]
    fn sweep(&mut self, most: u32) {
        for _ in 0..most {
            let Some((flow, turn)) = self.cycle.sweep() else {
                return;
            };
            let Some(flow) = self.flows.get_mut(flow as usize) else {
                continue;
            };
            // The flow may have joined again since.
            if flow.turn == turn {
                flow.turn = Turn::NONE;
                self.table.remove(core::mem::take(&mut flow.identity));
            }
        }
    }

    /// Returns the entry of the packet's flow. A flow without one gets a free entry. Returns `None` if AFL is
    /// full.
    #[inline]
    fn entry(&mut self, flow: FlowHash) -> Option<u32> {
        let identity = self.table.identity(flow);
        if let Some(entry) = self.table.find(identity) {
            return Some(entry);
        }
        let mut entry = self.table.insert(identity);
        while entry.is_none() && self.cycle.has_passed() {
            self.give_back_entries(1);
            entry = self.table.insert(identity);
        }
        let entry = entry?;
        self.flows[entry as usize].identity = identity;
        Some(entry)
    }

    /// Returns the quantum of a flow that joins with a packet that the classifier sends to class `named`.
    #[inline]
    fn quantum(&self, named: Option<u32>) -> u32 {
        named.map_or(self.config.quantum, |class| self.config.quanta[class as usize])
    }

    /// Enqueues a packet of the flow with this entry, or of a flow without an entry. The flow has `quantum`
    /// if it joins.
    #[inline(always)]
    fn take_in(&mut self, entry: Option<u32>, quantum: u32, id: PacketId, pool: &mut Pool) {
        let length = pool[id].length;
        let Some(entry) = entry else {
            self.priority.push_back(id, pool);
            return;
        };
        let flow = &mut self.flows[entry as usize];
        if !self.cycle.contains(flow.turn) {
            flow.byte_count = length;
            flow.quantum = quantum;
            flow.deficit = -i64::from(length);
            // The old turn must not free the entry when it is swept.
            flow.turn = Turn::NONE;
            self.priority.push_back(id, pool);
            self.join(entry, false);
            return;
        }
        flow.byte_count = flow.byte_count.saturating_add(length);
        if flow.byte_count <= flow.quantum {
            flow.deficit -= i64::from(length);
            self.priority.push_back(id, pool);
            return;
        }
        flow.queue.push_back(id, pool);
        self.packets += 1;
        self.longest.grew(entry, flow.queue.bytes() + 1);
        if flow.queue.len() == 1 {
            flow.first = length;
            if flow.turn != Turn::NOW {
                self.cycle.set_busy(flow.turn);
            }
        }
    }

    /// Adds the flow at the end of AFL.
    #[inline(always)]
    fn join(&mut self, entry: u32, is_busy: bool) {
        self.give_back_entries(2);
        self.flows[entry as usize].turn = self.cycle.push(entry, is_busy);
    }

    /// Removes the flow whose turn it is from AFL.
    #[inline]
    fn leave(&mut self, entry: u32) {
        let flow = &mut self.flows[entry as usize];
        flow.turn = Turn::NONE;
        self.table.remove(core::mem::take(&mut flow.identity));
    }

    /// Makes room if the buffer is full.
    #[inline]
    fn make_room(&mut self, reason: DropReason, pool: &mut Pool) -> Room {
        match self.len() < self.config.limit {
            true => Room::There,
            false => self.free_buffer(reason, pool),
        }
    }

    /// Drops the oldest packet of the longest own queue.
    #[cold]
    fn free_buffer(&mut self, reason: DropReason, pool: &mut Pool) -> Room {
        let size = |entry: u32| {
            let queue = &self.flows[entry as usize].queue;
            queue.bytes() + u64::from(!queue.is_empty())
        };
        let Some((victim, _)) = self.longest.largest(size) else {
            return Room::None;
        };
        let flow = &mut self.flows[victim as usize];
        let (oldest, _) = flow.take_first(pool).expect("the longest queue isn't empty");
        self.packets -= 1;
        if flow.queue.is_empty() && flow.turn != Turn::NOW {
            self.cycle.set_idle(flow.turn);
        }
        pool.give_back(oldest, reason);
        Room::Of(victim)
    }

    #[inline]
    fn len(&self) -> u32 {
        self.priority.len() + self.packets
    }

    /// Updates the measurements before a packet is enqueued, and empties AFL if the buffer is empty.
    #[inline]
    fn arrive(&mut self, now: Time) {
        let is_first = self.len() == 0;
        if let Some(congestion) = &mut self.congestion {
            congestion.advance(now);
            congestion.arrived(now);
        }
        if is_first {
            self.start_round();
        }
    }

    /// Updates the measurements after a dequeue, with or without a packet.
    #[cold]
    #[inline(never)]
    fn measure_sent(&mut self, next: Option<PacketId>, has_priority: bool, now: Time, pool: &Pool) {
        let (is_last, has_rounds) = (self.len() == 0, self.packets > 0);
        let Some(congestion) = &mut self.congestion else {
            return;
        };
        congestion.advance(now);
        congestion.follow_rounds(has_rounds, now);
        if let Some(id) = next {
            congestion.sent(pool[id].length, has_priority, is_last, now);
        }
    }

    /// Whether admission control admits a packet of this flow.
    #[inline]
    fn admits(&mut self, flow: FlowHash, now: Time) -> bool {
        let (Some(in_progress), Some(congestion)) = (&mut self.in_progress, &mut self.congestion) else {
            return true;
        };
        congestion.advance(now);
        in_progress.pass(flow, !congestion.is_congested(), now)
    }

    /// Returns the flow whose turn it is, if its deficit is enough for its first packet. Otherwise its turn
    /// ends.
    #[inline]
    fn turn(&mut self) -> Option<u32> {
        let entry = self.serving?;
        let flow = &self.flows[entry as usize];
        if flow.queue.is_empty() {
            self.serving = None;
            self.leave(entry);
            return None;
        }
        if i64::from(flow.first) <= flow.deficit {
            return Some(entry);
        }
        self.serving = None;
        self.join(entry, true);
        None
    }

    /// Returns the flow that sends next in the rounds. Its deficit is enough for its first packet.
    #[inline]
    fn next_turn(&mut self) -> Option<u32> {
        if let Some(entry) = self.turn() {
            return Some(entry);
        }
        while self.packets > 0 {
            let entry = self.cycle.next().expect("a flow with packets is in AFL");
            let Some(flow) = self.flows.get_mut(entry as usize) else {
                self.grant();
                continue;
            };
            debug_assert!(!flow.queue.is_empty(), "a flow that is busy has packets");
            flow.deficit += i64::from(flow.quantum);
            // Also if it joins again at once: the old turn must not free the entry when it is swept.
            flow.turn = Turn::NOW;
            if i64::from(flow.first) <= flow.deficit {
                self.serving = Some(entry);
                return Some(entry);
            }
            self.join(entry, true);
        }
        None
    }

    /// Handles the turn of the fictitious flow.
    #[inline]
    fn grant(&mut self) {
        if let Some(congestion) = &mut self.congestion {
            congestion.granted(self.config.quantum.into());
            self.give_back_entries(2);
            self.cycle.push(self.config.afl, true);
        }
    }
}

/// Flow n has entry n, and quantum n of `quanta`. If a program uses both numbers and hashes, a numbered flow
/// and a hashed flow may share an entry.
impl ByFlow for Pdrr {
    #[inline]
    fn flows(&self) -> u32 {
        self.flows.len() as u32
    }

    #[inline]
    fn enqueue_flow(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if flow >= self.flows() {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Dropped;
        }
        if self.in_progress.is_some() && !self.admits(FlowHash::from_raw(flow.into()), now) {
            pool.give_back(id, DropReason::NotAdmitted);
            return Verdict::Dropped;
        }
        let room = self.make_room(DropReason::LongestFlow, pool);
        if room == Room::None {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        self.arrive(now);
        let quanta = &self.config.quanta;
        let quantum = quanta.get(flow as usize).copied().unwrap_or(self.config.quantum);
        self.take_in(Some(flow), quantum, id, pool);
        room.verdict(Some(flow))
    }
}

impl Algorithm for Pdrr {
    const NAME: &'static str = "pdrr";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let classes = self.config.quanta.len() as u32;
        let Ok(named) = self.config.classifier.named_flow(id, now, pool, classes) else {
            return Verdict::Unclassified;
        };
        let flow = self.hasher.flow(id, pool);
        if self.in_progress.is_some() && !self.admits(flow, now) {
            pool.give_back(id, DropReason::NotAdmitted);
            return Verdict::Dropped;
        }
        let room = self.make_room(DropReason::LongestFlow, pool);
        if room == Room::None {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        self.arrive(now);
        let entry = self.entry(flow);
        self.take_in(entry, self.quantum(named), id, pool);
        room.verdict(entry)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let has_priority = !self.priority.is_empty();
        let next = if has_priority {
            self.turn();
            self.priority.pop_front(pool)
        } else if let Some(entry) = self.next_turn() {
            let flow = &mut self.flows[entry as usize];
            let (next, length) = flow.take_first(pool).expect("a flow that may send has a packet");
            flow.deficit -= i64::from(length);
            self.packets -= 1;
            Some(next)
        } else {
            None
        };
        if self.congestion.is_some() {
            self.measure_sent(next, has_priority, now, pool);
        }
        next
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.priority.append_to(into, pool);
        if let Some(entry) = self.serving {
            self.flows[entry as usize].queue.append_to(into, pool);
            self.leave(entry);
            self.serving = None;
        }
        while self.cycle.len() > 0 {
            let Some(entry) = self.cycle.next() else { break };
            if let Some(flow) = self.flows.get_mut(entry as usize) {
                flow.queue.append_to(into, pool);
                self.leave(entry);
            }
        }
        self.packets = 0;
        if let Some(congestion) = &mut self.congestion {
            congestion.emptied();
        }
        self.start_round();
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        (*self.config).clone()
    }

    /// Enqueues all packets again, priority packets first. Above a lowered limit the longest flows lose
    /// packets. The measurements and the flows in progress are kept unless the rate, how it is measured, the
    /// key or admission control changes.
    fn reconfigure(&mut self, mut config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        config.classifier.take_over(&self.config.classifier);
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        let keeps_measures = config.rate == self.config.rate
            && config.measurement == self.config.measurement
            && config.admission == self.config.admission
            && config.key == self.config.key;
        let mut changed = Pdrr::empty(config, self.seed);
        if keeps_measures {
            changed.congestion = self.congestion.take();
            changed.in_progress = self.in_progress.take();
        }
        *self = changed;
        while let Some(id) = queued.pop_front(pool) {
            if self.make_room(DropReason::Reconfigured, pool) != Room::None {
                let flow = self.hasher.flow(id, pool);
                let entry = self.entry(flow);
                let classes = self.config.quanta.len() as u32;
                let named = self.config.classifier.named_flow_again(id, pool, classes);
                self.take_in(entry, self.quantum(named), id, pool);
            } else {
                pool.give_back(id, DropReason::Reconfigured);
            }
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let fictitious = u64::from(self.congestion.is_some());
        // Flows leave the list as soon as nothing is queued; here they stay until the next packet arrives.
        let active = match self.len() {
            0 => 0,
            _ => self.cycle.len() + u64::from(self.serving.is_some()) - fictitious,
        };
        visit("active_flows", Variable::Integer(active as i64));
        visit("priority_packets", Variable::Integer(self.priority.len().into()));
        if let Some(congestion) = &self.congestion {
            visit("fair_rate", Variable::Integer(congestion.fair_rate() as i64));
            visit(
                "instantaneous_fair_rate",
                Variable::Integer(congestion.instantaneous_fair_rate() as i64),
            );
            visit(
                "priority_rate",
                Variable::Integer(congestion.priority_rate() as i64),
            );
            visit(
                "priority_permille",
                Variable::Integer(congestion.priority_load() as i64),
            );
            visit("congested", Variable::Flag(congestion.is_congested()));
        }
        if let Some(in_progress) = &self.in_progress {
            visit("flows_in_progress", Variable::Integer(in_progress.len().into()));
        }
    }
}

#[cfg(test)]
mod tests;
