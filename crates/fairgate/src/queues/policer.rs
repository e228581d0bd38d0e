//! A policer in front of any discipline: Linux's `police` action, ALTQ's traffic conditioner.
//!
//! Each packet that arrives is compared with the buckets of a [`Profile`]. If they hold enough tokens, the
//! packet conforms and goes to the inner discipline unchanged. Otherwise it exceeds the profile. It is
//! dropped, or goes to the inner discipline with another DSCP; that discipline or a later router can then
//! drop it first. The policer never delays a packet. A packet that exceeds takes no tokens: a sender conforms
//! again as soon as it keeps to the rate.
//!
//! The arithmetic is Linux's: the same packets conform. Over any time t at most `burst + rate t` bytes
//! conform.
//!
//! Deviations: there is no average (`avrate`), which the policer of a filter has. If the clock goes
//! backwards, no tokens arrive until it has caught up.

use alloc::boxed::Box;

use super::profile::{self, ProfileSettings, burst, mtu, peakrate, rate};
use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::{self, Fifo};
use crate::queues::token_bucket::{Buckets, Profile};
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};
use crate::time::Time;

/// The number of the only class.
const INNER: u32 = 1;

/// What happens to a packet that exceeds the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exceed {
    /// It is dropped.
    #[default]
    Drop,
    /// It passes with this DSCP, 0 to 63.
    Remark(u8),
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rates and bursts that conform.
    pub profile: Profile,
    /// What happens to packets that exceed the profile.
    pub exceed: Exceed,
}

impl Config {
    /// `rate` with the burst of [`Profile::of_rate`]. Packets that exceed it are dropped.
    pub fn of_rate(rate: Rate) -> Config {
        Config {
            profile: Profile::of_rate(rate),
            exceed: Exceed::Drop,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut Settings::of(self))?;
        profile::check(&self.profile)
    }
}

/// The settings of a policer as users write them: `remark` instead of a drop.
#[derive(Clone, Debug)]
pub struct Settings {
    profile: ProfileSettings,
    remark: Option<u8>,
}

impl Settings {
    fn of(config: &Config) -> Settings {
        Settings {
            profile: ProfileSettings::of(&config.profile),
            remark: match config.exceed {
                Exceed::Drop => None,
                Exceed::Remark(dscp) => Some(dscp),
            },
        }
    }

    /// Whether packets that exceed the profile are dropped.
    fn drops(&self) -> bool {
        self.remark.is_none()
    }

    fn config(self) -> Result<Config, ConfigError> {
        Ok(Config {
            profile: self.profile.profile()?,
            exceed: self.remark.map_or(Exceed::Drop, Exceed::Remark),
        })
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Settings>] = &[
    rate("The rate that conforms.", |policer, _| &mut policer.profile.rate),
    Parameter::bounding(
        |policer, _| policer.drops().then(|| policer.profile.first_bucket()),
        burst(
            "Bytes that conform at once after an idle time: at least the longest packet.",
            |policer, _| &mut policer.profile.burst,
        ),
    ),
    peakrate(
        "The rate of bursts that conforms: above the rate.",
        |policer, _| &mut policer.profile.peakrate,
    ),
    Parameter::bounding(
        |policer, _| policer.profile.second_bucket().filter(|_| policer.drops()),
        mtu(
            "Bytes that conform at once at the peak rate: at least the longest packet.",
            |policer, _| &mut policer.profile.mtu,
        ),
    ),
    Parameter::new(
        "remark",
        Unit::Count("DSCP"),
        0..=63,
        "The DSCP for packets that exceed the rate; without it they are dropped.",
        |policer, _| &mut policer.remark,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Settings, Config> = Description::of_settings(
    About {
        name: "policer",
        family: Family::Queues,
        summary: "Drops or re-marks packets that exceed a rate and a burst; any discipline inside",
        when: "To hold senders to a contract without queueing, or to mark the packets that are dropped first \
            later on.",
        children: Children::Inner,
    },
    PARAMETERS,
    |_| Settings {
        profile: ProfileSettings::START,
        remark: None,
    },
    Settings::config,
    |config, mut parts| {
        let inner = match parts.children.pop() {
            Some(inner) => inner,
            None => Box::new(Fifo::node(fifo::Config::default())?),
        };
        Ok(Box::new(Policer::node(config, inner)?))
    },
);

/// The discipline. Make one with [`Policer::node`].
#[derive(Debug)]
pub struct Policer {
    inner: Box<dyn Discipline>,
    buckets: Buckets,
    /// Packets that exceeded the profile.
    exceeding: u64,
    config: Config,
}

impl Policer {
    /// Creates a policer with full buckets in front of `inner`.
    ///
    /// # Errors
    /// If the depth of a bucket is 0, if the peak rate is not above the rate, or if the DSCP is above 63.
    pub fn node(config: Config, inner: Box<dyn Discipline>) -> Result<Node<Policer>, ConfigError> {
        config.check()?;
        Ok(Node::new(Policer {
            inner,
            buckets: Buckets::full(config.profile),
            exceeding: 0,
            config,
        }))
    }
}

impl Algorithm for Policer {
    const NAME: &'static str = "policer";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if self.buckets.pay(pool[id].length, now).is_err() {
            self.exceeding += 1;
            match self.config.exceed {
                Exceed::Remark(dscp) => pool.remark(id, dscp),
                Exceed::Drop => {
                    pool.give_back(id, DropReason::Policed);
                    return Verdict::Dropped;
                }
            }
        }
        self.inner.enqueue(id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.inner.dequeue(now, pool)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.inner.drain(pool, into);
    }

    fn watchdog(&self) -> Option<Time> {
        self.inner.watchdog()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        self.buckets.change(config.profile, now);
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(INNER, self.inner.as_ref()));
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        (minor == INNER).then_some(&mut self.inner)
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let (tokens, of_peak) = self.buckets.tokens();
        visit("exceeding", Variable::Integer(self.exceeding as i64));
        visit("tokens", Variable::Integer(tokens));
        if let Some(tokens) = of_peak {
            visit("peak_tokens", Variable::Integer(tokens));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Inspect;
    use crate::packet::Packet;
    use crate::queues::token_bucket::Peak;
    use crate::testing::{Driver, fifo};
    use proptest::prelude::*;

    /// One byte per microsecond, and a burst of 2000 bytes.
    const PROFILE: Profile = Profile::new(Rate::mbit(8), 2000);

    fn policer(config: Config) -> Driver<Policer> {
        Driver::new(Policer::node(config, fifo(1000)).unwrap())
    }

    fn dropping(profile: Profile) -> Config {
        Config {
            profile,
            exceed: Exceed::Drop,
        }
    }

    fn conforms(driver: &mut Driver<Policer>, length: u32, micros: u64) -> bool {
        driver.offer(Packet::of_length(length), Time::from_micros(micros)) == Verdict::Queued
    }

    #[test]
    fn a_burst_conforms_and_then_the_rate() {
        let mut driver = policer(dropping(PROFILE));
        let came = [
            (1000, 0),
            (1000, 0),
            (1000, 0),
            (500, 499),
            (500, 500),
            (2000, 9000),
        ];
        let passed = came.map(|(length, micros)| conforms(&mut driver, length, micros));
        assert_eq!(passed, [true, true, false, false, true, true]);
        assert_eq!(driver.root.statistics().dropped_for(DropReason::Policed), 2);
        assert_eq!(driver.drain(Time::ZERO), [0, 1, 4, 5], "nothing is delayed");
    }

    #[test]
    fn a_peak_rate_bounds_the_burst() {
        let peak = Peak {
            rate: Rate::mbit(16),
            mtu: 1000,
        };
        let mut driver = policer(dropping(Profile {
            peak: Some(peak),
            ..PROFILE
        }));
        let passed = [0, 0, 500].map(|micros| conforms(&mut driver, 1000, micros));
        assert_eq!(passed, [true, false, true]);
    }

    #[test]
    fn a_packet_that_exceeds_passes_with_another_dscp() {
        let mut driver = policer(Config {
            exceed: Exceed::Remark(8),
            ..dropping(PROFILE)
        });
        let of_video = Packet {
            dscp: 34,
            ..Packet::of_length(1500)
        };
        for _ in 0..2 {
            assert_eq!(driver.offer(of_video, Time::ZERO), Verdict::Queued);
        }
        let mut next = || {
            let id = driver.root.dequeue(Time::ZERO, &mut driver.pool);
            let packet = driver.pool.release(id.expect("two are queued"));
            (packet.dscp, packet.is_remarked())
        };
        assert_eq!([next(), next()], [(34, false), (8, true)]);
    }

    #[test]
    fn a_changed_profile_gives_no_tokens() {
        let mut driver = policer(dropping(PROFILE));
        assert!(conforms(&mut driver, 2000, 0));
        driver.reconfigure(dropping(Profile::new(Rate::mbit(80), 4000)), Time::ZERO);
        assert!(!conforms(&mut driver, 1000, 99));
        assert!(conforms(&mut driver, 1000, 100));
    }

    #[test]
    fn an_empty_bucket_and_a_dscp_above_63_are_rejected() {
        let parameter = |config| {
            Policer::node(config, fifo(1))
                .err()
                .and_then(|error| error.parameter())
        };
        assert_eq!(parameter(dropping(Profile::new(Rate::mbit(1), 0))), Some("burst"));
        let exceed = Exceed::Remark(64);
        assert_eq!(
            parameter(Config {
                exceed,
                ..dropping(PROFILE)
            }),
            Some("remark")
        );
    }

    proptest! {
        /// Exactly the packets conform for which an exact token bucket has tokens.
        #[test]
        fn the_policer_equals_an_exact_token_bucket(
            came in prop::collection::vec((0u64..3000, 1u32..2000), 1..200),
        ) {
            let mut driver = policer(dropping(PROFILE));
            let (mut now, mut tokens, mut filled_at) = (0u64, 2000u64, 0u64);
            for (pause, length) in came {
                now += pause;
                // One byte per microsecond.
                tokens = (tokens + now - filled_at).min(2000);
                filled_at = now;
                let expected = u64::from(length) <= tokens;
                prop_assert_eq!(conforms(&mut driver, length, now), expected);
                if expected {
                    tokens -= u64::from(length);
                }
                let _ = driver.drain(Time::ZERO);
            }
        }
    }
}
