//! Random early detection (Floyd & Jacobson 1993); Linux's `red`.
//!
//! Senders are told of congestion before the queue is full, by marks or drops whose probability rises with the *average*
//! length of the queue: a burst passes, a standing queue does not. Because marks fall at random, a flow gets them in
//! proportion to its share. Below `min` nothing happens, between `min` and `max` the probability rises to `probability`,
//! from `max` on every packet is marked or dropped.
//!
//! The average is in `red/average.rs`, the curve in `red/curve.rs`; other disciplines decide by them too. Decisions fall on the
//! same packets as in Linux 6.1 wherever no random number is drawn, and on as many where one is: the average is made from the
//! backlog before the packet, counts in bytes, moves by `2^-Wlog`; an idle time begins when a dequeue finds
//! the queue empty and is counted in whole microseconds; the weight, the curve and the table of idle times follow from `avpkt`,
//! `burst`, `probability` and `bandwidth` as tc derives them.
//!
//! The packets are in a fifo limited in bytes, or in a discipline inside that has limits of its own ([`Queue::over`]): of that the average
//! follows the backlog, and what it drops is its own.
//!
//! What Linux does not have: `gentle` (Floyd 2000), the average in packets, drops in proportion to length (the paper's byte mode).
//!
//! Deviations: an idle time begins at a peek too that finds nothing; half seconds of `adaptive` are counted from the first
//! packet, and one whole half second after another when none came meanwhile; a change of parameters keeps average and backlog,
//! where Linux starts from nothing; thresholds may be as large as 2^31 whatever the weight; while a discipline inside holds
//! packets back the queue is not idle, as it is to Linux; a change of parameters leaves that discipline where it is, and Linux
//! puts a fifo there. `adaptive` adapts: Linux starts its timer by the flag of its old parameters, while tc has sent the flags in
//! an attribute of their own since 5.8, so that 6.1 and later show `adaptive` and leave the probability as it was. Non-goals:
//! Linux's qevents.

mod average;
mod curve;
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
use store::Limits;
#[doc(hidden)]
pub use store::Store;

/// What the length of the queue is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Bytes, as in Linux: what counts on a line.
    #[default]
    Bytes,
    /// Packets, each taken for `avpkt` bytes: what counts where packets have buffers of one size.
    Packets,
}

crate::words!(Measure {
    "bytes" => Measure::Bytes,
    "packets" => Measure::Packets,
});

/// Parameters. Thresholds are in bytes whatever is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most bytes queued.
    pub limit: u32,
    /// Most packets queued.
    pub limit_packets: Option<u32>,
    /// Average from which on packets are marked; `None` for a third of `max`.
    pub min: Option<u32>,
    /// Average from which on every packet is marked; `None` for thrice `min`, or a quarter of `limit`.
    pub max: Option<u32>,
    /// Length of a usual packet.
    pub avpkt: u32,
    /// Packets that may come at once without being marked; `None` for `(2 min + max) / (3 avpkt)`.
    pub burst: Option<u32>,
    /// Probability of a mark at `max`.
    pub probability: Probability,
    /// Rate of the line, by which idle time is counted in packets.
    pub bandwidth: Rate,
    /// How marks are made.
    pub response: Response,
    /// Whether `probability` adapts itself every 0.5 s.
    pub adaptive: bool,
    /// Whether above `max` the probability rises to 1 gradually, up to twice `max`.
    pub gentle: bool,
    /// What the length of the queue is counted in.
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
    Parameter::new("limit", Unit::Bytes, POSITIVE, "Most bytes queued.", field)
}

pub(super) const fn avpkt<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "Length of a usual packet.";
    Parameter::new("avpkt", Unit::Bytes, POSITIVE, doc, field)
}

pub(super) const fn probability<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "probability",
        Unit::Probability,
        0..=1 << 32,
        "Probability of a mark where the average is at `max`.",
        field,
    )
}

pub(super) const fn bandwidth<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "bandwidth",
        Unit::Rate,
        1..=u64::MAX,
        "The line's rate, by which idle time is counted in packets.",
        field,
    )
}

pub(super) const fn harddrop<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "With `ecn`: whether to drop all packets above `max`, ECN-capable or not.";
    Parameter::word("harddrop", Unit::Flag, doc, field)
}

pub(super) const fn nodrop<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "With `ecn`: whether to queue packets that can't be marked, instead of dropping them.";
    Parameter::word("nodrop", Unit::Flag, doc, field)
}

/// RED's parameters, for red and for what runs RED inside: `$red` is the path to them.
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
                "Most packets queued; not with an inner discipline.",
                |$config, _| &mut $red.limit_packets,
            ),
            Parameter::new(
                "min",
                Unit::Bytes,
                POSITIVE,
                "Average from which on packets are marked; none for a third of `max`.",
                |$config, _| &mut $red.min,
            ),
            Parameter::new(
                "max",
                Unit::Bytes,
                POSITIVE,
                "Average from which on every packet is marked; none for thrice `min`, or a quarter of \
                    `limit`.",
                |$config, _| &mut $red.max,
            ),
            avpkt(|$config, _| &mut $red.avpkt),
            Parameter::new(
                "burst",
                Unit::Count("packets"),
                POSITIVE,
                "Packets that may come at once unmarked; none for (2 `min` + `max`) / 3 in packets of \
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
                "Whether `probability` adapts itself every 0.5 s, to hold the average half way between \
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
                "What the average counts; packets count as `avpkt` bytes each.",
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
        summary: "Random early detection: marks or drops by chance, more often the longer the queue is on \
            average",
        when: "To compare with what routers have done since 1993, or where a line's rate and traffic are \
            known well.",
        children: Children::InnerOrQueue,
    },
    PARAMETERS,
    |_| Config::default(),
    build_over,
);

/// RED over a discipline inside, or over a fifo.
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
    /// `min` and `max`, given or derived by tc's rules.
    pub fn thresholds(&self) -> (u32, u32) {
        let max = self.max.unwrap_or(match self.min {
            Some(min) => min.saturating_mul(3),
            None => self.limit / 4,
        });
        (self.min.unwrap_or(max / 3), max)
    }

    /// `burst`, given or derived by tc's rule.
    pub fn burst(&self) -> u32 {
        let (min, max) = self.thresholds();
        let derived = || (2 * u64::from(min) + u64::from(max)) / (3 * u64::from(self.avpkt.max(1)));
        self.burst.unwrap_or_else(|| derived() as u32)
    }

    /// The weight of the average is 1 / 2^this: by tc's rule, from `min`, `burst` and `avpkt`.
    pub fn w_log(&self) -> Result<u32, ConfigError> {
        let (min, _) = self.thresholds();
        w_log_for_burst(min, self.burst(), self.avpkt)
    }

    /// The logarithms that tc calls `ewma` and `Scell_log`: of the weight, 1 / 2^this, and of the microseconds by which idle time is counted.
    pub fn logarithms(&self) -> Result<(u32, u32), ConfigError> {
        Ok(self.filter()?.logarithms())
    }

    fn filter(&self) -> Result<Filter, ConfigError> {
        Filter::of_linux(self.w_log()?, self.avpkt, self.bandwidth)
    }

    /// Checks what no law is made of.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        self.response.check()
    }
}

impl Parameters for Config {
    const NAME: &'static str = "red";

    fn law(&self) -> Result<Law, ConfigError> {
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
        Law::new(filter, shape, self)
    }
}

/// How a packet that is to be marked is dealt with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Whether to mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// With `ecn`: whether to drop all packets above `max`, ECN-capable or not.
    pub harddrop: bool,
    /// With `ecn`: whether to queue packets that can't be marked, instead of dropping them.
    pub nodrop: bool,
}

impl Response {
    /// `nodrop` without `ecn` would switch all of it off.
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

    /// Marks a packet or lets it pass; false if it has to be dropped.
    pub(crate) fn spares(self, id: PacketId, action: Action, pool: &mut Pool) -> bool {
        match action {
            Action::Pass => true,
            Action::Forced if self.harddrop => false,
            Action::Early | Action::Forced => self.ecn && (pool.mark_congestion(id) || self.nodrop),
        }
    }
}

/// The parameters as the packet path needs them.
#[derive(Debug)]
pub struct Law {
    filter: Filter,
    curve: Curve,
    response: Response,
    limits: Limits,
    /// Bytes for each packet if packets are counted.
    per_packet: Option<u32>,
    adaptive: bool,
}

impl Law {
    /// This filter and curve with what else `config` says, which was checked.
    pub(crate) fn new(filter: Filter, shape: Shape, config: &Config) -> Result<Law, ConfigError> {
        Ok(Law {
            curve: Curve::new(shape, filter.w_log())?,
            filter,
            response: config.response,
            limits: Limits {
                bytes: config.limit.into(),
                packets: config.limit_packets.unwrap_or(u32::MAX),
            },
            per_packet: (config.measure == Measure::Packets).then_some(config.avpkt),
            adaptive: config.adaptive,
        })
    }
}

/// Between two steps of `adaptive`.
const HALF_SECOND: Duration = Duration::from_millis(500);
/// More steps than it takes from any state to the one where they change nothing: 1 % to 50 % takes 60, back 37.
const MOST_STEPS: u64 = 1024;

/// The queue with its average: what is RED in every discipline that has one queue.
#[derive(Debug)]
pub(crate) struct Averaged<S = PacketQueue> {
    law: Law,
    packets: S,
    average: Average,
    spacing: Spacing,
    random: Random,
    /// When `max_p` is adapted.
    adaptation: Periodic,
    /// A packet that comes at this time or later has more to do than the usual: the adaptation, or at any time if the queue is
    /// idle or counts packets. One comparison instead of three.
    slow_from: Time,
    /// Packets that were dropped, and marked, for the average: the books do not tell these from what a discipline inside did.
    early: u64,
    marked: u64,
}

/// The number of the only class, as in Linux.
const INNER: u16 = 1;

impl<S: Store> Averaged<S> {
    /// `packets` are to hold what comes, and hold nothing yet.
    pub(crate) fn new(law: Law, seed: u64, packets: S) -> Result<Averaged<S>, ConfigError> {
        S::check(law.limits)?;
        Ok(Averaged {
            adaptation: adaptation(&law),
            slow_from: Time::ZERO,
            law,
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
        let average = self.law.filter.sample(&mut self.average, self.packets.bytes());
        if self.law.curve.is_below(average) {
            self.spacing = Spacing::NEW;
            return self.packets.enqueue(id, self.law.limits, now, pool);
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

    /// An idle time begins, unless what is queued is held back.
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
        let (queued, slow_from) = match self.law.per_packet {
            None => (self.packets.bytes(), self.adaptation.next()),
            Some(bytes) => (self.packets.count().packets * u64::from(bytes), Time::ZERO),
        };
        self.slow_from = slow_from;
        let average = self.law.filter.arrival(&mut self.average, queued, now);
        self.enqueue_on_slope(id, average, now, pool)
    }

    /// At an average that may be above `min`.
    #[inline(never)]
    fn enqueue_on_slope(&mut self, id: PacketId, average: u64, now: Time, pool: &mut Pool) -> Verdict {
        let length = pool[id].length;
        let action = self
            .law
            .curve
            .judge(&mut self.spacing, average, length, &mut self.random);
        if !self.law.response.spares(id, action, pool) {
            self.early += 1;
            pool.give_back(id, DropReason::Aqm);
            return Verdict::Congested;
        }
        self.marked += u64::from(action != Action::Pass && pool[id].ecn == Ecn::Ce);
        self.packets.enqueue(id, self.law.limits, now, pool)
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

    /// Goes on under another law.
    pub(crate) fn change(&mut self, law: Law, pool: &mut Pool) -> Result<(), ConfigError> {
        S::check(law.limits)?;
        self.average = self.average.carried_over(&self.law.filter, &law.filter);
        self.spacing = Spacing::NEW;
        self.adaptation = adaptation(&law);
        self.slow_from = Time::ZERO;
        self.law = law;
        self.packets.keep(self.law.limits, pool);
        Ok(())
    }

    pub(crate) fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("qavg", Variable::Integer(self.average.scaled() as i64));
        visit("qcount", Variable::Integer(self.spacing.count()));
        visit("max_P", Variable::Integer(self.law.curve.max_p() as i64));
        visit("early", Variable::Integer(self.early as i64));
        visit("marked", Variable::Integer(self.marked as i64));
    }

    /// Makes up for the half seconds that have passed.
    fn adapt(&mut self, now: Time) {
        let passed = self.adaptation.pass(now);
        for at in self.adaptation.times(passed, MOST_STEPS) {
            let average = self.law.filter.at(&self.average, at);
            self.law.curve.adapt(average);
        }
    }
}

fn adaptation(law: &Law) -> Periodic {
    if law.adaptive {
        Periodic::every(HALF_SECOND)
    } else {
        Periodic::NEVER
    }
}

/// Parameters from which a queue with RED's average and curve follows: [`Config`] names them one by one, others derive them.
pub trait Parameters: Clone + fmt::Debug + PartialEq + Send + 'static {
    /// The discipline's name.
    const NAME: &'static str;

    /// What the packet path needs of them; an error if that can't work.
    #[doc(hidden)]
    fn law(&self) -> Result<Law, ConfigError>;
}

/// Linux's `red`.
pub type Red = Queue<Config>;

/// The discipline, set up by parameters of one kind or another; `S` holds the packets. Make one with [`Queue::node`] or [`Queue::over`].
#[derive(Debug)]
pub struct Queue<P, S = PacketQueue> {
    inner: Averaged<S>,
    parameters: P,
}

impl<P: Parameters> Queue<P> {
    /// A queue, ready to use. Chances are drawn from `seed`.
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
    /// The same, but the packets are in `child`, whose backlog the average follows. Of `limit` only thresholds are derived then.
    ///
    /// # Errors
    /// If the parameters can't work, or limit the packets that `child` holds.
    pub fn over(parameters: P, seed: u64, child: Box<dyn Discipline>) -> Result<Node<Self>, ConfigError> {
        Queue::holding(parameters, seed, child)
    }
}

impl<P: Parameters, S: Store> Queue<P, S> {
    fn holding(parameters: P, seed: u64, packets: S) -> Result<Node<Self>, ConfigError> {
        Ok(Node::new(Queue {
            inner: Averaged::new(parameters.law()?, seed, packets)?,
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
        self.inner.change(parameters.law()?, pool)?;
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

    fn class_mut(&mut self, minor: u16) -> Option<&mut Box<dyn Discipline>> {
        self.inner.packets.inner_mut().filter(|_| minor == INNER)
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        self.inner.visit_variables(visit);
    }
}
