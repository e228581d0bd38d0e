//! Weighted random early detection: RED with a curve for each drop precedence (Clark & Fang 1998, "RIO"; RFC 2597; in routers as WRED).
//!
//! One queue and one average, but three curves: packets that were marked as out of profile are dropped from a lower average on
//! than those within. The DSCP tells which curve is a packet's: by default AFx1 the first, AFx2 the second, AFx3 the
//! third, everything else the first (RFC 2597, section 6).
//!
//! Average and curves are those of `red`, with the paper's idle times. Deviation: as in routers, and other than in RIO, the average of the
//! whole queue decides for all. Non-goals: precedences from other fields; more than three.

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

/// A curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Average, in bytes, from which on packets are marked.
    pub min: u32,
    /// Average, in bytes, from which on every packet is marked.
    pub max: u32,
    /// Probability of a mark at `max`.
    pub probability: Probability,
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most bytes queued.
    pub limit: u32,
    /// Length of a usual packet.
    pub avpkt: u32,
    /// Packets that may come at once without being marked; `None` for `(2 min + max) / (3 avpkt)` of the lowest profile.
    pub burst: Option<u32>,
    /// Rate of the line, by which idle time is counted in packets.
    pub bandwidth: Rate,
    /// How marks are made.
    pub response: Response,
    /// Whether above `max` the probability rises to 1 gradually, up to twice `max`.
    pub gentle: bool,
    /// The curves of the precedences, that with the least drops first.
    pub profiles: [Profile; PRECEDENCES],
    /// The precedence of each DSCP, 0 to 2.
    pub precedence: [u8; 64],
}

/// Thresholds as for `red`: `max` 90,000 bytes for all, `min` two thirds, a half and a third of it, as routers stagger them.
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

/// A threshold of one of wred's curves.
const fn threshold(name: &'static str, doc: &'static str, field: Lens<Config>) -> Parameter<Config> {
    Parameter::new(name, Unit::Bytes, POSITIVE, doc, field)
}

/// The probability at the end of one of wred's curves.
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
        "min_1",
        "Average from which on packets of precedence 0 are marked.",
        |wred, _| &mut wred.profiles[0].min,
    ),
    threshold("max_1", "Average from which on all of them are.", |wred, _| {
        &mut wred.profiles[0].max
    }),
    at_max("probability_1", "Probability of a mark at `max_1`.", |wred, _| {
        &mut wred.profiles[0].probability
    }),
    threshold("min_2", "The same for precedence 1.", |wred, _| {
        &mut wred.profiles[1].min
    }),
    threshold("max_2", "The same for precedence 1.", |wred, _| {
        &mut wred.profiles[1].max
    }),
    at_max("probability_2", "Probability of a mark at `max_2`.", |wred, _| {
        &mut wred.profiles[1].probability
    }),
    threshold("min_3", "The same for precedence 2.", |wred, _| {
        &mut wred.profiles[2].min
    }),
    threshold("max_3", "The same for precedence 2.", |wred, _| {
        &mut wred.profiles[2].max
    }),
    at_max("probability_3", "Probability of a mark at `max_3`.", |wred, _| {
        &mut wred.profiles[2].probability
    }),
    Parameter::new(
        "precedence",
        Unit::List(64),
        0..=2,
        "The drop precedence of each DSCP; by default that of assured forwarding, 0 for all else.",
        |wred, _| &mut wred.precedence,
    ),
    avpkt(|wred, _| &mut wred.avpkt),
    Parameter::new(
        "burst",
        Unit::Count("packets"),
        POSITIVE,
        "Packets that may come at once unmarked; none for (2 min + max) / 3 of the lowest curve.",
        |wred, _| &mut wred.burst,
    ),
    bandwidth(|wred, _| &mut wred.bandwidth),
    ecn(|wred, _| &mut wred.response.ecn),
    harddrop(|wred, _| &mut wred.response.harddrop),
    nodrop(|wred, _| &mut wred.response.nodrop),
    Parameter::word(
        "gentle",
        Unit::Flag,
        "Whether above a curve's max the probability rises to 1 gradually, up to twice that.",
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

/// AFxy has DSCP `8 x + 2 y`, x 1 to 4, y 1 to 3.
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
    fn law(&self) -> Result<Law, ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        self.response.check()?;
        let lowest = self.profiles.iter().min_by_key(|profile| profile.min);
        let lowest = lowest.expect("there are three");
        let derived = || (2 * u64::from(lowest.min) + u64::from(lowest.max)) / (3 * u64::from(self.avpkt));
        let burst = self.burst.unwrap_or_else(|| derived() as u32);
        let w_log = w_log_for_burst(lowest.min, burst, self.avpkt)?;
        let curve = |profile: Profile| {
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
        let [first, second, third] = self.profiles;
        Ok(Law {
            filter: Filter::of_paper(w_log, self.avpkt, self.bandwidth)?,
            curves: [curve(first)?, curve(second)?, curve(third)?],
        })
    }
}

/// The parameters as the packet path needs them.
#[derive(Debug)]
struct Law {
    filter: Filter,
    curves: [Curve; PRECEDENCES],
}

/// The discipline. Make one with [`Wred::node`].
#[derive(Debug)]
pub struct Wred {
    queue: PacketQueue,
    law: Law,
    average: Average,
    spacings: [Spacing; PRECEDENCES],
    random: Random,
    config: Config,
}

impl Wred {
    /// A queue, ready to use. Chances are drawn from `seed`.
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
            law: config.law()?,
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
        let average = self.law.filter.arrival(&mut self.average, queued, now);
        let packet = &pool[id];
        let length = packet.length;
        let precedence = usize::from(self.config.precedence[usize::from(packet.dscp & 63)]);
        let spacing = &mut self.spacings[precedence];
        let action = self.law.curves[precedence].judge(spacing, average, length, &mut self.random);
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
        let law = config.law()?;
        self.average = self.average.carried_over(&self.law.filter, &law.filter);
        self.spacings = [Spacing::NEW; PRECEDENCES];
        self.law = law;
        self.config = config;
        while self.queue.bytes() > self.config.limit.into() {
            let newest = self
                .queue
                .pop_back(pool)
                .expect("a queue over its limit isn't empty");
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
    use crate::discipline::Discipline;
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
    fn precedences_are_those_of_assured_forwarding() {
        let config = Config::default();
        let of = |dscp: u8| config.precedence[usize::from(dscp)];
        assert_eq!([of(AF11), of(AF12), of(AF13)], [0, 1, 2]);
        assert_eq!([of(34), of(36), of(38)], [0, 1, 2], "AF41 to AF43");
        assert_eq!([of(0), of(46), of(48), of(8)], [0; 4], "others");
    }

    /// A queue held at about 52,000 bytes: below the first curve, on the other two, where the third is steeper and begins earlier.
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
        // p_b: 5 % of 7/45 and 10 % of 22/60, and of uniform gaps twice as many drops as that.
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
    fn what_cannot_work_is_refused_by_name() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            Wred::node(config, 1).unwrap_err().parameter()
        };
        assert_eq!(refused(|config| config.limit = 0), Some("limit"));
        assert_eq!(refused(|config| config.avpkt = 0), Some("avpkt"));
        assert_eq!(refused(|config| config.burst = Some(1)), Some("burst"));
        assert_eq!(refused(|config| config.precedence[9] = 3), Some("precedence"));
        assert_eq!(refused(|config| config.profiles[1].max = 45_000), Some("max"));
        assert_eq!(refused(|config| config.response.nodrop = true), Some("nodrop"));
    }

    #[test]
    fn a_lowered_limit_gives_back_the_newest_and_a_refused_change_nothing() {
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
