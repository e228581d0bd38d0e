//! Random early detection (Floyd & Jacobson 1993); Linux's `red`.
//!
//! RED tells senders about congestion before the queue is full, by marks or drops. Their probability rises
//! with the *average* length of the queue, so that RED lets bursts pass and acts on a standing queue. Marks
//! fall at random, so a flow gets them in proportion to its share. Below `min` nothing happens. Between `min`
//! and `max` the probability rises to `probability`. From `max` on every packet is marked or dropped.
//!
//! The average is in `red/average.rs`, the curve in `red/curve.rs`; other disciplines use them too. Where no
//! random number is drawn, drops and marks fall on the same packets as in Linux 6.1. Where one is drawn,
//! there are as many. To that end the average is computed from the backlog before the packet, in bytes, and
//! moves by `2^-Wlog`. An idle time begins when a dequeue finds the queue empty, and is counted in whole
//! microseconds. The weight, the curve and the table of idle times follow from `avpkt`, `burst`,
//! `probability` and `bandwidth` as in tc.
//!
//! The packets are in a fifo limited in bytes, or in an inner discipline that has its own limits
//! ([`Queue::over`]). The average follows the backlog of the inner discipline. The variables `early` and
//! `marked` count RED's own drops and marks, not those of the inner discipline.
//!
//! Linux does not have: `gentle` (Floyd 2000), the average in packets, and drops in proportion to length (the
//! paper's byte mode).
//!
//! Deviations from Linux:
//! * A peek that finds nothing also begins an idle time.
//! * The half seconds of `adaptive` are counted from the first packet, in whole half seconds also if no
//!   packet came meanwhile.
//! * A change of parameters keeps average and backlog; Linux starts again from nothing. It also keeps the
//!   inner discipline; Linux replaces that with a fifo.
//! * Thresholds may be as large as 2^31 with any weight.
//! * While an inner discipline is throttled the queue is not idle; in Linux it is.
//! * `adaptive` adapts. Linux starts its timer by the flag of its old parameters. Since 5.8, tc sends the
//!   flags in a separate attribute. So Linux 6.1 and later show `adaptive` and leave the probability
//!   unchanged.
//!
//! Non-goals: Linux's qevents.

mod average;
mod curve;
mod derived;
mod store;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use super::POSITIVE;
use super::codel::ecn;
use super::periodic::Periodic;
use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::{DropReason, Ecn};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::probability::Probability;
use crate::rate::Rate;
use crate::registry::{
    About, Children, Description, Family, Lens, Longest, Parameter, Parts, Unit, check_ranges,
};
use crate::structures::Random;
use crate::time::Time;

pub(crate) use average::{Average, Filter, w_log_for_burst};
pub(crate) use curve::{Action, Curve, Shape, Spacing};
pub(crate) use derived::{Derive, Derived};
pub(crate) use store::Store;

/// The unit of the queue's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Bytes, as in Linux: what matters on a link.
    #[default]
    Bytes,
    /// Packets, each counted as `avpkt` bytes: what matters if all packets have buffers of one size.
    Packets,
}

crate::words!(Measure {
    "bytes" => Measure::Bytes,
    "packets" => Measure::Packets,
});

/// Parameters. Thresholds are in bytes for every `measure`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog, bytes.
    pub limit: u32,
    /// The largest backlog, packets.
    pub limit_packets: Option<u32>,
    /// The average from which on packets are marked; `None` for a third of `max`.
    pub min: Option<u32>,
    /// The average from which on every packet is marked; `None` for three times `min`, or a quarter of
    /// `limit`.
    pub max: Option<u32>,
    /// The length of a typical packet, bytes.
    pub avpkt: u32,
    /// The number of packets that may arrive at once without a mark; `None` for `(2 min + max) / (3 avpkt)`.
    pub burst: Option<u32>,
    /// The probability of a mark at `max`.
    pub probability: Probability,
    /// The rate of the link. It converts idle time into packets.
    pub bandwidth: Rate,
    /// How packets are marked.
    pub response: Response,
    /// Whether `probability` is adapted every 0.5 s.
    pub adaptive: bool,
    /// Whether above `max` the probability rises to 1 gradually, up to twice `max`.
    pub gentle: bool,
    /// The unit of the queue's length.
    pub measure: Measure,
    /// Whether a packet is marked in proportion to its length.
    pub by_length: bool,
}

/// tc's defaults, with the limit and the packet length of its manual's example.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 400_000,
            limit_packets: None,
            min: None,
            max: None,
            avpkt: 1000,
            burst: None,
            probability: Probability::ratio(1, 50),
            bandwidth: Rate::mbit(10),
            response: Response::default(),
            adaptive: false,
            gentle: false,
            measure: Measure::Bytes,
            by_length: false,
        }
    }
}

pub(super) const fn limit_in_bytes<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "limit",
        Unit::Bytes,
        POSITIVE,
        "The largest backlog in bytes.",
        field,
    )
}

pub(super) const fn avpkt<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "The length of a typical packet.";
    Parameter::new("avpkt", Unit::Bytes, POSITIVE, doc, field)
}

pub(super) const fn probability<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "probability",
        Unit::Probability,
        0..=1 << 32,
        "The probability of a mark where the average is at `max`.",
        field,
    )
}

pub(super) const fn bandwidth<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "bandwidth",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of the link, which converts idle time into packets.",
        field,
    )
}

pub(super) const fn harddrop<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "With `ecn`: whether all packets above `max` are dropped, ECN-capable or not.";
    Parameter::word("harddrop", Unit::Flag, doc, field)
}

pub(super) const fn nodrop<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "With `ecn`: whether packets that cannot be marked are queued instead of dropped.";
    Parameter::word("nodrop", Unit::Flag, doc, field)
}

/// RED's parameters for red and for disciplines that contain it: `$red` is the path to them.
macro_rules! red_parameters {
    (|$config:ident| $red:expr; $($first:expr,)*) => {
        &[
            $($first,)*
            Parameter::bounding(
                |$config, has_inner| (!has_inner).then(|| Longest::Length($red.limit.into())),
                limit_in_bytes(|$config, _| &mut $red.limit),
            ),
            Parameter::new(
                "limit_packets",
                Unit::Count("packets"),
                POSITIVE,
                "The largest backlog in packets; not with an inner discipline.",
                |$config, _| &mut $red.limit_packets,
            ),
            Parameter::new(
                "min",
                Unit::Bytes,
                POSITIVE,
                "The average from which on packets are marked; none for a third of `max`.",
                |$config, _| &mut $red.min,
            ),
            Parameter::new(
                "max",
                Unit::Bytes,
                POSITIVE,
                "The average from which on every packet is marked; none for three times `min`, or a quarter \
                 of `limit`.",
                |$config, _| &mut $red.max,
            ),
            avpkt(|$config, _| &mut $red.avpkt),
            Parameter::new(
                "burst",
                Unit::Count("packets"),
                POSITIVE,
                "The packets that may arrive at once unmarked; none for (2 `min` + `max`) / 3 in packets of \
                 `avpkt`.",
                |$config, _| &mut $red.burst,
            ),
            probability(|$config, _| &mut $red.probability),
            bandwidth(|$config, _| &mut $red.bandwidth),
            ecn(|$config, _| &mut $red.response.ecn),
            harddrop(|$config, _| &mut $red.response.harddrop),
            nodrop(|$config, _| &mut $red.response.nodrop),
            Parameter::word(
                "adaptive",
                Unit::Flag,
                "Whether `probability` is adapted every 0.5 s, to hold the average halfway between \
                 `min` and `max`.",
                |$config, _| &mut $red.adaptive,
            ),
            Parameter::word(
                "gentle",
                Unit::Flag,
                "Whether above `max` the probability rises to 1 gradually, up to twice `max`.",
                |$config, _| &mut $red.gentle,
            ),
            Parameter::word(
                "measure",
                Unit::Choice($crate::aqm::red::Measure::WORDS),
                "The unit of the average; packets count as `avpkt` bytes each.",
                |$config, _| &mut $red.measure,
            ),
            Parameter::word(
                "by_length",
                Unit::Flag,
                "Whether a packet is marked in proportion to its length.",
                |$config, _| &mut $red.by_length,
            ),
        ]
    };
}

pub(super) use red_parameters;

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = red_parameters![|red| red;];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "red",
        family: Family::Aqm,
        summary: "Random early detection: random marks or drops, more often the longer the queue is on \
            average",
        when: "To compare with what routers have done since 1993, or where the rate and traffic of a link \
            are well known.",
        children: Children::InnerOrQueue,
    },
    PARAMETERS,
    |_| Config::default(),
    build_over,
);

/// Builds RED over an inner discipline, or over a fifo.
pub(super) fn build_over<P: Parameters>(
    parameters: P,
    mut parts: Parts,
) -> Result<Box<dyn Discipline>, ConfigError> {
    Ok(match parts.children.pop() {
        Some(inner) => Box::new(Queue::over(parameters, parts.seed, inner)?),
        None => Box::new(Queue::node(parameters, parts.seed)?),
    })
}

impl Config {
    /// `min` and `max`, set or derived by tc's rules.
    pub fn thresholds(&self) -> (u32, u32) {
        let max = self.max.unwrap_or(match self.min {
            Some(min) => min.saturating_mul(3),
            None => self.limit / 4,
        });
        (self.min.unwrap_or(max / 3), max)
    }

    /// `burst`, set or derived by tc's rule.
    pub fn burst(&self) -> u32 {
        let (min, max) = self.thresholds();
        let derived = || (2 * u64::from(min) + u64::from(max)) / (3 * u64::from(self.avpkt.max(1)));
        self.burst.unwrap_or_else(|| derived() as u32)
    }

    /// The logarithm of the average's weight, which is 1 / 2^this: by tc's rule, from `min`, `burst` and
    /// `avpkt`.
    pub fn w_log(&self) -> Result<u32, ConfigError> {
        let (min, _) = self.thresholds();
        w_log_for_burst(min, self.burst(), self.avpkt)
    }

    /// The logarithms that tc calls `ewma` and `Scell_log`: of the weight, which is 1 / 2^this, and of the
    /// microseconds per cell of the table of idle times.
    pub fn logarithms(&self) -> Result<(u32, u32), ConfigError> {
        Ok(self.filter()?.logarithms())
    }

    fn filter(&self) -> Result<Filter, ConfigError> {
        Filter::of_linux(self.w_log()?, self.avpkt, self.bandwidth)
    }

    /// Checks the parameters that no derived value depends on.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        self.response.check()
    }
}

impl Parameters for Config {
    const NAME: &'static str = "red";
}

impl Derive for Config {
    fn derived(&self) -> Result<Derived, ConfigError> {
        self.check()?;
        let (min, max) = self.thresholds();
        let filter = self.filter()?;
        let shape = Shape {
            min,
            max,
            probability: self.probability,
            gentle: self.gentle,
            by_length: self.by_length.then_some(self.avpkt),
            is_exclusive: false,
        };
        Derived::new(filter, shape, self)
    }
}

/// What happens to a packet that must be marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// With `ecn`: whether all packets above `max` are dropped, ECN-capable or not.
    pub harddrop: bool,
    /// With `ecn`: whether packets that cannot be marked are queued instead of dropped.
    pub nodrop: bool,
}

impl Response {
    /// `nodrop` without `ecn` would disable RED.
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        if self.nodrop && !self.ecn {
            return Err(ConfigError::conflict(
                "nodrop",
                true,
                "given together with `ecn`",
                "add `ecn`, or leave it out: without ECN packets can only be dropped",
            ));
        }
        Ok(())
    }

    /// Marks a packet or lets it pass. Returns false if it must be dropped.
    pub(crate) fn spares(self, id: PacketId, action: Action, pool: &mut Pool) -> bool {
        match action {
            Action::Pass => true,
            Action::Forced if self.harddrop => false,
            Action::Early | Action::Forced => self.ecn && (pool.mark_congestion(id) || self.nodrop),
        }
    }
}

/// The time between two steps of `adaptive`.
const HALF_SECOND: Duration = Duration::from_millis(500);
/// More steps than it takes from any state to the one that no step changes: 60 from 1 % to 50 %, and 37 back.
const MOST_STEPS: u64 = 1024;

/// The queue with its average: RED for all disciplines with one queue.
#[derive(Debug)]
pub(crate) struct Averaged<S = PacketQueue> {
    derived: Derived,
    packets: S,
    average: Average,
    spacing: Spacing,
    random: Random,
    /// When `max_p` is adapted next.
    adaptation: Periodic,
    /// From this time on an arriving packet takes the slow path, for the adaptation. It is time 0 if the
    /// queue is idle or counts packets. So one comparison replaces three.
    slow_from: Time,
    /// Packets that were dropped, and that were marked, because of the average. The statistics do not
    /// separate them from those of an inner discipline.
    early: u64,
    marked: u64,
}

/// The number of the only class, as in Linux.
const INNER: u32 = 1;

impl<S: Store> Averaged<S> {
    /// RED over `packets`, which must be empty.
    pub(crate) fn new(derived: Derived, seed: u64, packets: S) -> Result<Averaged<S>, ConfigError> {
        S::check(derived.limits)?;
        Ok(Averaged {
            adaptation: adaptation(&derived),
            slow_from: Time::ZERO,
            derived,
            packets,
            average: Average::NEW,
            spacing: Spacing::NEW,
            random: Random::new(seed),
            early: 0,
            marked: 0,
        })
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if now >= self.slow_from {
            return self.enqueue_slowly(id, now, pool);
        }
        let average = self
            .derived
            .filter
            .sample(&mut self.average, self.packets.bytes());
        if self.derived.curve.is_below(average) {
            self.spacing = Spacing::NEW;
            return self.packets.enqueue(id, self.derived.limits, now, pool);
        }
        self.enqueue_on_slope(id, average, now, pool)
    }

    #[inline]
    pub(crate) fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let Some(first) = self.packets.dequeue(now, pool) else {
            self.found_none(now);
            return None;
        };
        Some(first)
    }

    /// Begins an idle time, unless the queued packets are throttled.
    #[cold]
    fn found_none(&mut self, now: Time) {
        if !self.packets.holds_back() {
            self.average.found_empty(now);
            self.slow_from = Time::ZERO;
        }
    }

    #[inline(never)]
    fn enqueue_slowly(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if now >= self.adaptation.next() {
            self.adapt(now);
        }
        let (queued, slow_from) = match self.derived.per_packet {
            None => (self.packets.bytes(), self.adaptation.next()),
            Some(bytes) => (self.packets.count().packets * u64::from(bytes), Time::ZERO),
        };
        self.slow_from = slow_from;
        let average = self.derived.filter.arrival(&mut self.average, queued, now);
        self.enqueue_on_slope(id, average, now, pool)
    }

    /// Decides about a packet at an average that may be above `min`.
    #[inline(never)]
    fn enqueue_on_slope(&mut self, id: PacketId, average: u64, now: Time, pool: &mut Pool) -> Verdict {
        let length = pool[id].length;
        let action = self
            .derived
            .curve
            .judge(&mut self.spacing, average, length, &mut self.random);
        if !self.derived.response.spares(id, action, pool) {
            self.early += 1;
            pool.give_back(id, DropReason::Aqm);
            return Verdict::Congested;
        }
        self.marked += u64::from(action != Action::Pass && pool[id].ecn == Ecn::Ce);
        self.packets.enqueue(id, self.derived.limits, now, pool)
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<PacketId> {
        self.packets.first()
    }

    pub(crate) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.packets.drain(pool, into);
        self.average = Average::NEW;
        self.slow_from = Time::ZERO;
        self.spacing = Spacing::NEW;
    }

    /// Changes the parameters.
    pub(crate) fn change(&mut self, derived: Derived, pool: &mut Pool) -> Result<(), ConfigError> {
        S::check(derived.limits)?;
        self.average = self.average.carried_over(&self.derived.filter, &derived.filter);
        self.spacing = Spacing::NEW;
        self.adaptation = adaptation(&derived);
        self.slow_from = Time::ZERO;
        self.derived = derived;
        self.packets.keep(self.derived.limits, pool);
        Ok(())
    }

    pub(crate) fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("qavg", Variable::Integer(self.average.scaled() as i64));
        visit("qcount", Variable::Integer(self.spacing.count()));
        visit("max_P", Variable::Integer(self.derived.curve.max_p() as i64));
        visit("early", Variable::Integer(self.early as i64));
        visit("marked", Variable::Integer(self.marked as i64));
    }

    /// Makes the adaptation steps that are due.
    fn adapt(&mut self, now: Time) {
        let passed = self.adaptation.pass(now);
        for at in self.adaptation.times(passed, MOST_STEPS) {
            let average = self.derived.filter.at(&self.average, at);
            self.derived.curve.adapt(average);
        }
    }
}

fn adaptation(derived: &Derived) -> Periodic {
    if derived.adaptive {
        Periodic::every(HALF_SECOND)
    } else {
        Periodic::NEVER
    }
}

/// Parameters from which a queue with RED's average and curve is built: [`Config`] has each one, others
/// derive them.
pub trait Parameters: Derive + Clone + fmt::Debug + PartialEq + Send + 'static {
    /// The discipline's name.
    const NAME: &'static str;
}

/// Linux's `red`.
pub type Red = Queue<Config>;

/// The discipline. `P` is the kind of parameters, and `S` holds the packets. Make one with [`Queue::node`] or
/// [`Queue::over`].
#[derive(Debug)]
pub struct Queue<P, S = PacketQueue> {
    inner: Averaged<S>,
    parameters: P,
}

impl<P: Parameters> Queue<P> {
    /// Creates an empty queue. `seed` is for the random marks.
    ///
    /// ```
    /// use fairgate::aqm::red::{Config, Red};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut red = Red::node(Config::default(), 42)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// red.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(red.dequeue(Time::from_millis(1), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(parameters: P, seed: u64) -> Result<Node<Queue<P>>, ConfigError> {
        Queue::holding(parameters, seed, PacketQueue::new())
    }
}

impl<P: Parameters> Queue<P, Box<dyn Discipline>> {
    /// Creates RED over `child`, whose backlog the average follows. `limit` then only determines thresholds.
    ///
    /// # Errors
    /// If a parameter is out of its range, or limits the packets that `child` holds.
    pub fn over(parameters: P, seed: u64, child: Box<dyn Discipline>) -> Result<Node<Self>, ConfigError> {
        Queue::holding(parameters, seed, child)
    }
}

impl<P: Parameters, S: Store> Queue<P, S> {
    fn holding(parameters: P, seed: u64, packets: S) -> Result<Node<Self>, ConfigError> {
        Ok(Node::new(Queue {
            inner: Averaged::new(parameters.derived()?, seed, packets)?,
            parameters,
        }))
    }
}

impl<P: Parameters, S: Store> Algorithm for Queue<P, S> {
    const NAME: &'static str = P::NAME;
    type Config = P;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.inner.enqueue(id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.inner.dequeue(now, pool)
    }

    #[inline]
    fn first(&self) -> Option<PacketId> {
        self.inner.first()
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.inner.drain(pool, into);
    }

    fn config(&self) -> P {
        self.parameters.clone()
    }

    fn reconfigure(&mut self, parameters: P, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        self.inner.change(parameters.derived()?, pool)?;
        self.parameters = parameters;
        Ok(())
    }

    fn watchdog(&self) -> Option<Time> {
        self.inner.packets.inner().and_then(Discipline::watchdog)
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        if let Some(inner) = self.inner.packets.inner() {
            visit(Class::new(INNER, inner));
        }
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        self.inner.packets.inner_mut().filter(|_| minor == INNER)
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        self.inner.visit_variables(visit);
    }
}
