//! Weighted random early detection: RED with a curve for each drop precedence (Clark & Fang 1998, "RIO"; RFC
//! 2597; in routers as WRED).
//!
//! There is one queue and one average, but three curves. Packets marked as out of profile are dropped from a
//! lower average on than packets within the profile. The DSCP selects a packet's curve: by default AFx1 the
//! first, AFx2 the second, AFx3 the third, and all others the first (RFC 2597, section 6).
//!
//! Average and curves are those of `red`, with the paper's idle times. Deviation: as in routers, but unlike
//! RIO, the average of the whole queue decides for all packets. Non-goals: precedences from other fields;
//! more than three.

use alloc::boxed::Box;

use super::POSITIVE;
use super::codel::ecn;
use super::red::{
    Action, Average, Curve, Filter, Response, Shape, Spacing, avpkt, bandwidth, harddrop, limit_in_bytes,
    nodrop, w_log_for_burst,
};
use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::probability::Probability;
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Lens, Longest, Parameter, Unit, check_ranges};
use crate::structures::Random;
use crate::time::Time;

/// Drop precedences (RFC 2597).
pub const PRECEDENCES: usize = 3;

/// The names of `min` and `max` of each precedence.
const THRESHOLDS: [[&str; 2]; PRECEDENCES] = [["min_0", "max_0"], ["min_1", "max_1"], ["min_2", "max_2"]];

/// The curve of one drop precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The average, in bytes, from which on packets are marked.
    pub min: u32,
    /// The average, in bytes, from which on every packet is marked.
    pub max: u32,
    /// The probability of a mark at `max`.
    pub probability: Probability,
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog, bytes.
    pub limit: u32,
    /// The length of a typical packet, bytes.
    pub avpkt: u32,
    /// The number of packets that may arrive at once without a mark; `None` for `(2 min + max) / (3 avpkt)`
    /// of the lowest profile.
    pub burst: Option<u32>,
    /// The rate of the link. It converts idle time into packets.
    pub bandwidth: Rate,
    /// How packets are marked.
    pub response: Response,
    /// Whether above `max` the probability rises to 1 gradually, up to twice `max`.
    pub gentle: bool,
    /// The curves of the precedences, the one with the fewest drops first.
    pub profiles: [Profile; PRECEDENCES],
    /// The precedence of each DSCP, 0 to 2.
    pub precedence: [u8; 64],
}

/// Thresholds as for `red`: `max` is 90,000 bytes for all, `min` is two thirds, a half and a third of it, as
/// is common in routers.
impl Default for Config {
    fn default() -> Config {
        let profile = |min, of_hundred| Profile {
            min,
            max: 90_000,
            probability: Probability::ratio(of_hundred, 100),
        };
        Config {
            limit: 400_000,
            avpkt: 1000,
            burst: None,
            bandwidth: Rate::mbit(10),
            response: Response::default(),
            gentle: false,
            profiles: [profile(60_000, 2), profile(45_000, 5), profile(30_000, 10)],
            precedence: assured_forwarding(),
        }
    }
}

/// The parameter for a threshold of a curve.
const fn threshold(name: &'static str, doc: &'static str, field: Lens<Config>) -> Parameter<Config> {
    Parameter::new(name, Unit::Bytes, POSITIVE, doc, field)
}

/// The parameter for the probability at the end of a curve.
const fn at_max(name: &'static str, doc: &'static str, field: Lens<Config>) -> Parameter<Config> {
    Parameter::new(name, Unit::Probability, 0..=1 << 32, doc, field)
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::bounding(
        |wred, _| Some(Longest::Length(wred.limit.into())),
        limit_in_bytes(|wred, _| &mut wred.limit),
    ),
    threshold(
        THRESHOLDS[0][0],
        "The average from which on packets of precedence 0 are marked.",
        |wred, _| &mut wred.profiles[0].min,
    ),
    threshold(
        THRESHOLDS[0][1],
        "The average from which on all packets of precedence 0 are marked.",
        |wred, _| &mut wred.profiles[0].max,
    ),
    at_max(
        "probability_0",
        "The probability of a mark at `max_0`.",
        |wred, _| &mut wred.profiles[0].probability,
    ),
    threshold(
        THRESHOLDS[1][0],
        "The average from which on packets of precedence 1 are marked.",
        |wred, _| &mut wred.profiles[1].min,
    ),
    threshold(
        THRESHOLDS[1][1],
        "The average from which on all packets of precedence 1 are marked.",
        |wred, _| &mut wred.profiles[1].max,
    ),
    at_max(
        "probability_1",
        "The probability of a mark at `max_1`.",
        |wred, _| &mut wred.profiles[1].probability,
    ),
    threshold(
        THRESHOLDS[2][0],
        "The average from which on packets of precedence 2 are marked.",
        |wred, _| &mut wred.profiles[2].min,
    ),
    threshold(
        THRESHOLDS[2][1],
        "The average from which on all packets of precedence 2 are marked.",
        |wred, _| &mut wred.profiles[2].max,
    ),
    at_max(
        "probability_2",
        "The probability of a mark at `max_2`.",
        |wred, _| &mut wred.profiles[2].probability,
    ),
    Parameter::new(
        "precedence",
        Unit::List(64),
        0..=2,
        "The drop precedence of each DSCP; by default that of assured forwarding, and 0 for others.",
        |wred, _| &mut wred.precedence,
    ),
    avpkt(|wred, _| &mut wred.avpkt),
    Parameter::new(
        "burst",
        Unit::Count("packets"),
        POSITIVE,
        "The packets that may arrive at once unmarked; none for (2 min + max) / 3 of the lowest curve.",
        |wred, _| &mut wred.burst,
    ),
    bandwidth(|wred, _| &mut wred.bandwidth),
    ecn(|wred, _| &mut wred.response.ecn),
    harddrop(|wred, _| &mut wred.response.harddrop),
    nodrop(|wred, _| &mut wred.response.nodrop),
    Parameter::word(
        "gentle",
        Unit::Flag,
        "Whether above a curve's max the probability rises to 1 gradually, up to twice the max.",
        |wred, _| &mut wred.gentle,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "wred",
        family: Family::Aqm,
        summary: "RED with a curve for each drop precedence: packets marked as out of profile are dropped \
            first",
        when: "Behind a policer or a network that marks drop precedences by DSCP (assured forwarding, RFC \
            2597).",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Wred::node(config, parts.seed)?)),
);

/// AFxy has DSCP `8 x + 2 y`, for x from 1 to 4 and y from 1 to 3.
const fn assured_forwarding() -> [u8; 64] {
    let mut precedence = [0; 64];
    let mut class = 1;
    while class <= 4 {
        precedence[8 * class + 4] = 1;
        precedence[8 * class + 6] = 2;
        class += 1;
    }
    precedence
}

impl Config {
    fn derived(&self) -> Result<Derived, ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        self.response.check()?;
        let lowest = self.profiles.iter().min_by_key(|profile| profile.min);
        let lowest = lowest.expect("there are three profiles");
        let derived = || (2 * u64::from(lowest.min) + u64::from(lowest.max)) / (3 * u64::from(self.avpkt));
        let burst = self.burst.unwrap_or_else(|| derived() as u32);
        let w_log = w_log_for_burst(lowest.min, burst, self.avpkt)?;
        let curve = |number: usize| {
            let profile = self.profiles[number];
            let [min, max] = THRESHOLDS[number];
            if profile.max <= profile.min {
                return Err(ConfigError::conflict(
                    max,
                    profile.max,
                    format!("above `{min}`, {}", profile.min),
                    "raise it, or lower the other one",
                ));
            }
            let shape = Shape {
                min: profile.min,
                max: profile.max,
                probability: profile.probability,
                gentle: self.gentle,
                by_length: None,
                is_exclusive: false,
            };
            Curve::new(shape, w_log)
        };
        Ok(Derived {
            filter: Filter::of_paper(w_log, self.avpkt, self.bandwidth)?,
            curves: [curve(0)?, curve(1)?, curve(2)?],
        })
    }
}

/// The parameters as the packet path needs them.
#[derive(Debug)]
struct Derived {
    filter: Filter,
    curves: [Curve; PRECEDENCES],
}

/// The discipline. Make one with [`Wred::node`].
#[derive(Debug)]
pub struct Wred {
    queue: PacketQueue,
    derived: Derived,
    average: Average,
    spacings: [Spacing; PRECEDENCES],
    random: Random,
    config: Config,
}

impl Wred {
    /// Creates an empty queue. `seed` is for the random marks.
    ///
    /// ```
    /// use fairgate::aqm::wred::{Config, Wred};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut wred = Wred::node(Config::default(), 42)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// wred.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(wred.dequeue(Time::from_millis(1), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<Wred>, ConfigError> {
        Ok(Node::new(Wred {
            queue: PacketQueue::new(),
            derived: config.derived()?,
            average: Average::NEW,
            spacings: [Spacing::NEW; PRECEDENCES],
            random: Random::new(seed),
            config,
        }))
    }
}

impl Algorithm for Wred {
    const NAME: &'static str = "wred";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let queued = self.queue.bytes();
        let average = self.derived.filter.arrival(&mut self.average, queued, now);
        let packet = &pool[id];
        let length = packet.length;
        let precedence = usize::from(self.config.precedence[usize::from(packet.dscp & 63)]);
        let spacing = &mut self.spacings[precedence];
        let action = self.derived.curves[precedence].judge(spacing, average, length, &mut self.random);
        if action != Action::Pass && !self.config.response.spares(id, action, pool) {
            pool.give_back(id, DropReason::Aqm);
            return Verdict::Congested;
        }
        if queued + u64::from(length) > self.config.limit.into() {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        self.queue.push_back(id, pool);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let first = self.queue.pop_front(pool);
        if first.is_none() {
            self.average.found_empty(now);
        }
        first
    }

    #[inline]
    fn first(&self) -> Option<PacketId> {
        self.queue.front()
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
        self.average = Average::NEW;
        self.spacings = [Spacing::NEW; PRECEDENCES];
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let derived = config.derived()?;
        self.average = self.average.carried_over(&self.derived.filter, &derived.filter);
        self.spacings = [Spacing::NEW; PRECEDENCES];
        self.derived = derived;
        self.config = config;
        while self.queue.bytes() > self.config.limit.into() {
            let newest = self
                .queue
                .pop_back(pool)
                .expect("a queue over its limit is not empty");
            pool.give_back(newest, DropReason::Reconfigured);
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("qavg", Variable::Integer(self.average.scaled() as i64));
        for (name, spacing) in ["qcount_1", "qcount_2", "qcount_3"]
            .into_iter()
            .zip(&self.spacings)
        {
            visit(name, Variable::Integer(spacing.count()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Discipline, Reconfigure};
    use crate::packet::Packet;
    use crate::testing::Driver;

    fn of_dscp(dscp: u8) -> Packet {
        Packet {
            dscp,
            ..Packet::of_length(1000)
        }
    }

    const AF11: u8 = 10;
    const AF12: u8 = 12;
    const AF13: u8 = 14;

    #[test]
    fn precedences_follow_assured_forwarding() {
        let config = Config::default();
        let of = |dscp: u8| config.precedence[usize::from(dscp)];
        assert_eq!([of(AF11), of(AF12), of(AF13)], [0, 1, 2]);
        assert_eq!([of(34), of(36), of(38)], [0, 1, 2], "AF41 to AF43");
        assert_eq!([of(0), of(46), of(48), of(8)], [0; 4], "others");
    }

    /// A queue of about 52,000 bytes: below the first curve, and on the other two. The third is steeper and
    /// begins earlier.
    #[test]
    fn packets_out_of_profile_are_dropped_first() {
        let mut driver = Driver::new(Wred::node(Config::default(), 1).unwrap());
        let mut dropped = [0u32; 3];
        for step in 0..60_000u64 {
            let now = Time::from_millis(step);
            while driver.root.backlog().packets > 52 {
                driver.next(now);
            }
            let precedence = (step % 3) as usize;
            let verdict = driver.offer(of_dscp([AF11, AF12, AF13][precedence]), now);
            dropped[precedence] += u32::from(verdict == Verdict::Congested);
        }
        assert_eq!(dropped[0], 0);
        // p_b: 5 % of 7/45, and 10 % of 22/60. With uniform gaps there are twice as many drops.
        let expected = [
            0.0,
            20_000.0 * 2.0 * 0.05 * 7.0 / 45.0,
            20_000.0 * 2.0 * 0.1 * 22.0 / 60.0,
        ];
        for precedence in [1, 2] {
            let ratio = f64::from(dropped[precedence]) / expected[precedence];
            assert!((0.8..1.25).contains(&ratio), "{dropped:?} for {expected:?}");
        }
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            Wred::node(config, 1).unwrap_err().parameter()
        };
        assert_eq!(refused(|config| config.limit = 0), Some("limit"));
        assert_eq!(refused(|config| config.avpkt = 0), Some("avpkt"));
        assert_eq!(refused(|config| config.burst = Some(1)), Some("burst"));
        assert_eq!(refused(|config| config.precedence[9] = 3), Some("precedence"));
        assert_eq!(refused(|config| config.profiles[1].max = 45_000), Some("max_1"));
        assert_eq!(refused(|config| config.response.nodrop = true), Some("nodrop"));
    }

    #[test]
    fn a_lowered_limit_drops_the_newest_packets_and_a_rejected_change_none() {
        let mut driver = Driver::new(Wred::node(Config::default(), 1).unwrap());
        for _ in 0..3 {
            driver.offer(of_dscp(0), Time::ZERO);
        }
        let shorter = Config {
            limit: 2_500,
            ..Config::default()
        };
        driver.reconfigure(shorter.clone(), Time::ZERO);
        assert_eq!(driver.returned, [(2, DropReason::Reconfigured)]);
        assert_eq!(driver.offer(of_dscp(0), Time::ZERO), Verdict::Dropped);
        let wrong = Config {
            limit: 0,
            ..shorter.clone()
        };
        assert!(
            driver
                .root
                .reconfigure(&wrong, Time::ZERO, &mut driver.pool)
                .is_err()
        );
        assert_eq!(driver.root.algorithm().config(), shorter);
        assert_eq!(driver.drain(Time::ZERO), [0, 1]);
    }
}
