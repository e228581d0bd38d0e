//! Fair queueing with pacing: Linux's `fq` (Dumazet 2013), the discipline that TCP's pacing relies on.
//!
//! Flows take turns by deficit round robin in two lists, new ones first, as in `fq_codel`. In addition a flow
//! may have to wait: for its rate (`maxrate`), or because a packet has an *earliest departure time* from its
//! driver ([`Packet::stamp`](crate::Packet::stamp)). Such a flow is *throttled*: it is in no list, but in a
//! heap sorted by the time when it may continue. So bursts are spread over time before they reach a queue.
//!
//! A flow that was away gets credit to start with: `initial_quantum` if it is new or was away for three
//! seconds, and a quantum if it was away for `refill_delay`. While it has credit its rate does not apply, so
//! short answers are not paced. After a packet that leaves late by `d` the pause is shorter by `d`, but at
//! most by half. So a rate holds although timers are late.
//!
//! Packets of priority 7, control traffic, go before all flows.
//!
//! Invariants: a flow with packets is either in one of the lists or throttled. A new flow that becomes empty
//! passes through the old list once. No packet leaves before its time.
//!
//! Not work-conserving: [`watchdog`](crate::Discipline::watchdog) is the time of the first throttled flow.
//!
//! Deviations from Linux: flows are found by hash and not by socket, so two may share a queue. Packets of a
//! flow are not sorted by their departure times; a later packet waits for those before it. A pause may be
//! longer than a second, and a flow is not new again before its pause has ended, so that low rates hold too.

use alloc::boxed::Box;
use core::time::Duration;

use crate::arrival::Needs;
use crate::classify::Classifier;
use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rate::{Rate, RateMeter};
use crate::registry::{About, Children, Description, Family, Parameter, Placing, Unit, check_ranges};
use crate::rounds::codel_flows::{flows, quantum};
use crate::rounds::new_and_old::NewAndOld;
use crate::structures::{IndexedHeap, Linked, ListLink};
use crate::time::Time;

/// The priority of control traffic (Linux: `TC_PRIO_CONTROL`).
const CONTROL: u8 = 7;

/// A flow that was away for this long is new again, ns (Linux: `FQ_GC_AGE`).
const FORGOTTEN_AFTER: u64 = 3_000_000_000;

/// What happens to a packet whose departure time is beyond the horizon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BeyondHorizon {
    /// It is dropped.
    #[default]
    Drop,
    /// It leaves at the horizon.
    Hold,
}

crate::words!(BeyondHorizon {
    "drop" => BeyondHorizon::Drop,
    "hold" => BeyondHorizon::Hold,
});

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog, packets, 1 to 2^32 - 1.
    pub limit: u32,
    /// The largest backlog of one flow, packets, 1 to 2^32 - 1.
    pub flow_limit: u32,
    /// The number of flows, 1 to 2^20.
    pub flows: u32,
    /// Bytes that a flow may send in a turn, 256 to 2^20.
    pub quantum: u32,
    /// Bytes that a new flow may send at once, at most 2^30.
    pub initial_quantum: u32,
    /// The largest rate of any flow.
    pub maxrate: Option<Rate>,
    /// If `maxrate` is at most this, each packet is paced by its own length; above it, by a quantum at a
    /// time.
    pub low_rate_threshold: Option<Rate>,
    /// A flow that was away for longer starts with a quantum.
    pub refill_delay: Duration,
    /// How far in the future a packet's departure time may be.
    pub horizon: Duration,
    /// What happens to a packet whose departure time is beyond the horizon.
    pub beyond_horizon: BeyondHorizon,
    /// Marks packets that leave later than their departure time by more than this.
    pub ce_threshold: Option<Duration>,
    /// Classifies packets into flows, counted from 1, before the hash does.
    pub classifier: Classifier,
}

/// As in Linux, with 1024 flows.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 10_000,
            flow_limit: 100,
            flows: 1024,
            quantum: 2 * 1514,
            initial_quantum: 10 * 1514,
            maxrate: None,
            low_rate_threshold: Rate::from_bits_per_second(550_000).ok(),
            refill_delay: Duration::from_millis(40),
            horizon: Duration::from_secs(10),
            beyond_horizon: BeyondHorizon::Drop,
            ce_threshold: None,
            classifier: Classifier::default(),
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "The largest backlog in packets.",
        |fq, _| &mut fq.limit,
    ),
    Parameter::new(
        "flow_limit",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "The largest backlog of one flow in packets.",
        |fq, _| &mut fq.flow_limit,
    ),
    flows("The number of queues into which flows are hashed.", |fq, _| {
        &mut fq.flows
    }),
    quantum("The bytes that a flow may send in a turn.", |fq, _| {
        &mut fq.quantum
    }),
    Parameter::new(
        "initial_quantum",
        Unit::Bytes,
        0..=1 << 30,
        "The bytes that a new flow may send at once.",
        |fq, _| &mut fq.initial_quantum,
    ),
    Parameter::new(
        "maxrate",
        Unit::Rate,
        1..=u64::MAX,
        "The largest rate of any flow.",
        |fq, _| &mut fq.maxrate,
    ),
    Parameter::new(
        "low_rate_threshold",
        Unit::Rate,
        1..=u64::MAX,
        "If `maxrate` is at most this, each packet is paced by its own length; above it, by a quantum at \
         a time.",
        |fq, _| &mut fq.low_rate_threshold,
    ),
    Parameter::new(
        "refill_delay",
        Unit::Time,
        0..=86_400_000_000_000,
        "A flow that was away for longer starts with a quantum.",
        |fq, _| &mut fq.refill_delay,
    ),
    Parameter::new(
        "horizon",
        Unit::Time,
        0..=86_400_000_000_000,
        "How far in the future a packet's departure time may be.",
        |fq, _| &mut fq.horizon,
    ),
    Parameter::word(
        "beyond_horizon",
        Unit::Choice(BeyondHorizon::WORDS),
        "What happens to a packet whose departure time is further ahead: dropped, or held until the \
         horizon.",
        |fq, _| &mut fq.beyond_horizon,
    ),
    Parameter::new(
        "ce_threshold",
        Unit::Time,
        0..=86_400_000_000_000,
        "Marks packets that leave later than their departure time by more than this.",
        |fq, _| &mut fq.ce_threshold,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "fq",
        family: Family::Rounds,
        summary: "Fair queueing over hashed flows with pacing: by a rate for each flow, by packets' \
            departure times",
        when: "On a machine that sends much itself, or to limit the rate of every flow; on a congested link \
            take fq_codel or cake.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Fq::node(config, parts.seed)?)),
)
.with_placing(Placing::Classifier(|fq| &mut fq.classifier, |fq| fq.flows))
.with_memory(|fq| 88 * u64::from(fq.flows))
.with_check(|config| config.check().map(drop));

/// The parameters as the packet path needs them.
#[derive(Clone, Copy, Debug)]
struct Derived {
    meter: Option<RateMeter>,
    /// Whether each packet is paced by its own length.
    is_low_rate: bool,
    refill_delay: u64,
    horizon: u64,
    ce_threshold: u64,
}

impl Config {
    fn check(&self) -> Result<Derived, ConfigError> {
        self.classifier.check()?;
        check_ranges(PARAMETERS, &mut self.clone())?;
        Ok(Derived {
            meter: self.maxrate.map(Rate::meter),
            is_low_rate: self.maxrate.is_some() && self.maxrate <= self.low_rate_threshold,
            refill_delay: nanos(self.refill_delay),
            horizon: nanos(self.horizon),
            ce_threshold: self.ce_threshold.map_or(u64::MAX, nanos),
        })
    }
}

/// Converts a duration of at most a day to ns. Sums of such times do not overflow.
fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// A flow, within one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Flow {
    queue: PacketQueue,
    /// Nothing of this flow leaves before this time; zero if it never had to wait.
    next_at: Time,
    /// When it last left the lists.
    idle_since: Time,
    /// The bytes that it may still send in this turn.
    credit: i32,
    link: ListLink,
    is_throttled: bool,
}

impl Linked for Flow {
    #[inline]
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

impl Flow {
    fn new(initial_quantum: u32) -> Flow {
        Flow {
            queue: PacketQueue::new(),
            next_at: Time::ZERO,
            idle_since: Time::ZERO,
            credit: initial_quantum as i32,
            link: ListLink::OUTSIDE,
            is_throttled: false,
        }
    }

    /// Whether it is in a list or throttled. A flow that becomes empty stays in its list until its turn
    /// comes.
    fn is_active(self) -> bool {
        self.link.is_in_list() || self.is_throttled
    }
}

/// The discipline. Make one with [`Fq::node`].
#[derive(Debug)]
pub struct Fq {
    flows: Box<[Flow]>,
    turns: NewAndOld,
    /// Throttled flows, by the time when they may continue.
    throttled: IndexedHeap,
    /// Control traffic.
    control: PacketQueue,
    packets: u32,
    derived: Derived,
    salt: u64,
    /// How often a flow was throttled.
    throttlings: u64,
    /// Whether flows have state from before the last drain, and are reset before they are used again. To
    /// reset a million flows takes tens of milliseconds, and a table whose place another one takes does not
    /// need it.
    is_stale: bool,
    config: Config,
}

impl Fq {
    /// Creates empty flow queues. The seed salts the choice of flows.
    ///
    /// ```
    /// use fairgate::rounds::fq::{Config, Fq};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut fq = Fq::node(Config::default(), 7)?;
    /// let in_5_ms = Packet { stamp: 5_000_000, ..Packet::of_length(1514) };
    /// let id = pool.insert(in_5_ms).expect("16 slots");
    /// fq.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(fq.dequeue(Time::from_millis(4), &mut pool), None);
    /// assert_eq!(fq.watchdog(), Some(Time::from_millis(5)));
    /// assert_eq!(fq.dequeue(Time::from_millis(5), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If a parameter is out of its range.
    pub fn node(config: Config, seed: u64) -> Result<Node<Fq>, ConfigError> {
        let derived = config.check()?;
        Ok(Node::new(Fq::new(config, derived, seed)))
    }

    fn new(config: Config, derived: Derived, salt: u64) -> Fq {
        let mut throttled = IndexedHeap::new();
        (0..config.flows).for_each(|_| throttled.add_flow());
        Fq {
            flows: vec![Flow::new(config.initial_quantum); config.flows as usize].into(),
            turns: NewAndOld::new(),
            throttled,
            control: PacketQueue::new(),
            packets: 0,
            derived,
            salt,
            throttlings: 0,
            is_stale: false,
            config,
        }
    }

    #[cold]
    #[inline(never)]
    fn reset(&mut self) {
        self.flows.fill(Flow::new(self.config.initial_quantum));
        self.is_stale = false;
    }

    /// Appends a packet to flow `index`. Returns false if the flow is full.
    fn append(&mut self, index: u32, id: PacketId, now: Time, pool: &mut Pool) -> bool {
        if self.is_stale {
            self.reset();
        }
        let flow = &mut self.flows[index as usize];
        if flow.queue.len() >= self.config.flow_limit {
            return false;
        }
        flow.queue.push_back(id, pool);
        self.packets += 1;
        if !flow.is_active() {
            self.activate(index, now);
        }
        true
    }

    /// Puts a flow that has packets again into a list.
    #[inline]
    fn activate(&mut self, index: u32, now: Time) {
        let flow = &mut self.flows[index as usize];
        let away = now.nanos_since(flow.idle_since);
        if away >= FORGOTTEN_AFTER && flow.next_at <= now {
            flow.credit = self.config.initial_quantum as i32;
            flow.next_at = Time::ZERO;
        } else if away > self.derived.refill_delay {
            flow.credit = flow.credit.max(self.config.quantum as i32);
        }
        self.turns.join(index, &mut self.flows);
    }

    /// The earliest departure time of a packet: the driver's, or else its arrival time.
    #[inline]
    fn departure(id: PacketId, pool: &Pool) -> Time {
        let packet = &pool[id];
        if packet.stamp == 0 {
            packet.enqueued_at
        } else {
            Time::from_nanos(packet.stamp)
        }
    }

    /// Moves the flows whose time has come to the old list.
    #[inline]
    fn release(&mut self, now: Time) {
        while let Some(first) = self.throttled.first() {
            if first.key > now.nanos() {
                break;
            }
            let _ = self.throttled.pop();
            self.flows[first.flow as usize].is_throttled = false;
            self.turns.rejoin(first.flow, &mut self.flows);
        }
    }

    /// Sets the time when the flow may send again, after a packet of `length` bytes.
    #[inline]
    fn pace(&mut self, index: u32, length: u32, now: Time) {
        let flow = &mut self.flows[index as usize];
        flow.credit = flow.credit.saturating_sub_unsigned(length);
        let Some(meter) = self.derived.meter else {
            return;
        };
        let paid = if self.derived.is_low_rate {
            flow.credit = 0;
            length
        } else if flow.credit > 0 {
            return;
        } else {
            length.max(self.config.quantum)
        };
        let mut pause = meter.nanos(paid.into());
        if flow.next_at > Time::ZERO {
            let late = now.nanos_since(flow.next_at);
            pause -= late.min(pause / 2);
        }
        flow.next_at = now + pause;
    }

    /// Takes the newest packet of flow `index` out. The flow must have packets.
    fn take_newest(&mut self, index: u32, pool: &mut Pool) -> PacketId {
        let flow = &mut self.flows[index as usize];
        let id = flow.queue.pop_back(pool).expect("the flow has packets");
        self.packets -= 1;
        if flow.queue.is_empty() && flow.is_throttled {
            flow.is_throttled = false;
            flow.idle_since = flow.next_at;
            self.throttled.remove(index);
        }
        id
    }

    /// Drops packets that exceed lowered limits: from flows over theirs, then from the longest flows, then
    /// control traffic.
    fn keep_limits(&mut self, pool: &mut Pool) {
        for index in 0..self.config.flows {
            while self.flows[index as usize].queue.len() > self.config.flow_limit {
                let newest = self.take_newest(index, pool);
                pool.give_back(newest, DropReason::Reconfigured);
            }
        }
        while self.packets > self.config.limit {
            let longest = (0..self.config.flows).max_by_key(|&index| self.flows[index as usize].queue.len());
            let newest = match longest.filter(|&index| !self.flows[index as usize].queue.is_empty()) {
                Some(index) => self.take_newest(index, pool),
                None => {
                    self.packets -= 1;
                    self.control
                        .pop_back(pool)
                        .expect("all packets are control traffic")
                }
            };
            pool.give_back(newest, DropReason::Reconfigured);
        }
    }
}

impl Algorithm for Fq {
    const NAME: &'static str = "fq";
    type Config = Config;

    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if self.packets >= self.config.limit {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        let horizon = now + self.derived.horizon;
        if pool[id].stamp > horizon.nanos() {
            if self.config.beyond_horizon == BeyondHorizon::Drop {
                pool.give_back(id, DropReason::BeyondHorizon);
                return Verdict::Dropped;
            }
            pool[id].stamp = horizon.nanos();
        }
        if pool[id].priority == CONTROL {
            self.control.push_back(id, pool);
            self.packets += 1;
            return Verdict::Queued;
        }
        let Config {
            classifier, flows, ..
        } = &mut self.config;
        let Ok(flow) = classifier.flow(id, now, pool, self.salt, *flows) else {
            return Verdict::Unclassified;
        };
        if !self.append(flow, id, now, pool) {
            pool.give_back(id, DropReason::FlowLimit);
            return Verdict::Dropped;
        }
        Verdict::Queued
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        if let Some(id) = self.control.pop_front(pool) {
            self.packets -= 1;
            return Some(id);
        }
        self.release(now);
        loop {
            let index = self.turns.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += self.config.quantum as i32;
                self.turns.end_turn(&mut self.flows);
                continue;
            }
            let Some(first) = flow.queue.front() else {
                flow.idle_since = now;
                self.turns.ran_empty(&mut self.flows);
                continue;
            };
            let due = Fq::departure(first, pool).max(flow.next_at);
            if now < due {
                flow.next_at = due;
                flow.is_throttled = true;
                let _ = self.turns.leave(&mut self.flows);
                self.throttled.push(due.nanos(), index);
                self.throttlings += 1;
                continue;
            }
            let _ = flow.queue.pop_front(pool);
            self.packets -= 1;
            if now.nanos_since(due) > self.derived.ce_threshold {
                pool.mark_congestion(first);
            }
            self.pace(index, pool[first].length, now);
            return Some(first);
        }
    }

    fn watchdog(&self) -> Option<Time> {
        self.throttled.first().map(|first| Time::from_nanos(first.key))
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.control.append_to(into, pool);
        let mut active = self.turns.take_all(&mut self.flows);
        active.extend(core::iter::from_fn(|| self.throttled.pop()).map(|entry| entry.flow));
        active.sort_unstable();
        for index in active {
            self.flows[index as usize].queue.append_to(into, pool);
        }
        self.is_stale = true;
        self.packets = 0;
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// Flows keep their credit and their times. If the number of flows changes, all packets are enqueued
    /// again.
    fn reconfigure(&mut self, mut config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let derived = config.check()?;
        config.classifier.take_over(&self.config.classifier);
        if config.flows == self.config.flows {
            self.derived = derived;
            self.config = config;
        } else {
            let mut control = core::mem::take(&mut self.control);
            let mut queued = PacketQueue::new();
            self.drain(pool, &mut queued);
            let throttlings = self.throttlings;
            *self = Fq::new(config, derived, self.salt);
            self.throttlings = throttlings;
            self.packets = control.len();
            control.append_to(&mut self.control, pool);
            while let Some(id) = queued.pop_front(pool) {
                let Config {
                    classifier, flows, ..
                } = &self.config;
                let flow = classifier.flow_again(id, pool, self.salt, *flows);
                if !self.append(flow, id, now, pool) {
                    pool.give_back(id, DropReason::Reconfigured);
                }
            }
        }
        self.keep_limits(pool);
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let active = self.flows.iter().filter(|flow| !flow.queue.is_empty()).count();
        let throttled = self.throttled.flows().count();
        visit("active_flows", Variable::Integer(active as i64));
        visit("throttled_flows", Variable::Integer(throttled as i64));
        visit("throttlings", Variable::Integer(self.throttlings as i64));
        let next = self
            .watchdog()
            .map_or(Variable::Unset, |time| Variable::Nanos(time.nanos()));
        visit("next_departure", next);
    }
}

#[cfg(test)]
#[path = "fq_tests.rs"]
mod tests;
