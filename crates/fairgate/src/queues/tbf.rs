//! Token bucket filter: a shaper over any inner discipline. Linux's `tbf`.
//!
//! A packet leaves when the bucket holds tokens for all of its bytes. With a peak rate, a second bucket of
//! `mtu` bytes must hold enough tokens too. `burst` bounds how much may leave above the rate; the second
//! bucket bounds how fast. The arithmetic is Linux's, so that packets leave in the same nanosecond.
//!
//! Without an inner discipline from the user, tbf shapes a fifo limited in bytes. The limit is given in
//! bytes, or as `latency`: the longest that the last packet of a full queue may wait. The limit is then `rate
//! * latency + burst` bytes (tc's formula).
//!
//! Not work-conserving: [`watchdog`](Discipline::watchdog) says when the tokens for the first packet will be
//! there. If the inner discipline is throttled, tbf returns that discipline's watchdog. tbf *peeks* at the
//! inner discipline, so that a packet that waits for tokens stays the first even if a better one arrives.
//!
//! A packet longer than a bucket could never leave. It is dropped on arrival. If a bucket was made smaller
//! since, it is dropped when it is the first ([`DropReason::LargerThanBurst`]).
//!
//! A packet is paid for with what the link makes of it (`overhead`, `mpu`, `cells`); so is the depth of a
//! bucket, so that it holds a packet of `burst` bytes.
//!
//! If the clock goes backwards, nothing leaves until it has caught up; the watchdog says when.
//!
//! Deviation: Linux fills both buckets when parameters change. Here the tokens are carried over, in bytes, up
//! to the new depth, so that repeated changes cannot send more than the rate.

use alloc::boxed::Box;
use core::time::Duration;

use super::profile::{self, ProfileSettings, burst, mtu, peakrate, rate};
use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::{self, Fifo};
use crate::queues::link_parameters;
use crate::queues::token_bucket::{Buckets, Profile};
use crate::rate::Rate;
use crate::registry::{About, Bucket, Children, Description, Family, Longest, Parameter, Unit, check_ranges};
use crate::time::Time;

/// The number of the only class, as in Linux.
const INNER: u32 = 1;

/// The limit of the fifo inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The largest backlog, bytes.
    Bytes(u64),
    /// The longest sojourn time, ns.
    Latency(u64),
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rates and bursts that may leave.
    pub profile: Profile,
    /// The limit of the fifo inside; `None` with an inner discipline from the user, which has its own limits.
    pub limit: Option<Limit>,
}

impl Config {
    /// `rate` with the burst of [`Profile::of_rate`], and a fifo that holds 50 ms of traffic.
    pub fn of_rate(rate: Rate) -> Config {
        Config {
            profile: Profile::of_rate(rate),
            limit: Some(Limit::Latency(50_000_000)),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut Settings::of(self))?;
        profile::check(&self.profile)
    }

    /// The parameters of the fifo inside.
    fn fifo(&self, limit: Limit) -> fifo::Config {
        let bytes = match limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Latency(nanos) => {
                let within = |rate: Rate, burst: u32| {
                    let sent = u128::from(rate.bits_per_second()) * u128::from(nanos) / 8_000_000_000;
                    u64::try_from(sent)
                        .unwrap_or(u64::MAX)
                        .saturating_add(u64::from(burst))
                };
                let by_rate = within(self.profile.rate, self.profile.burst);
                self.profile
                    .peak
                    .map_or(by_rate, |peak| by_rate.min(within(peak.rate, peak.mtu)))
            }
        };
        fifo::Config {
            limit_packets: None,
            limit_bytes: Some(bytes),
            ..fifo::Config::default()
        }
    }
}

/// The settings of tbf as users write them: `limit` or `latency`.
#[derive(Clone, Debug)]
pub struct Settings {
    profile: ProfileSettings,
    limit: Option<u64>,
    latency: Option<Duration>,
}

impl Settings {
    fn of(config: &Config) -> Settings {
        Settings {
            profile: ProfileSettings::of(&config.profile),
            limit: match config.limit {
                Some(Limit::Bytes(bytes)) => Some(bytes),
                _ => None,
            },
            latency: match config.limit {
                Some(Limit::Latency(nanos)) => Some(Duration::from_nanos(nanos)),
                _ => None,
            },
        }
    }

    fn config(self) -> Result<Config, ConfigError> {
        let limit = match (self.limit, self.latency) {
            (Some(_), Some(latency)) => {
                return Err(ConfigError::conflict(
                    "latency",
                    format!("{latency:?}"),
                    "left out beside `limit`",
                    "give the limit of the queue either as bytes or as time",
                ));
            }
            (Some(bytes), None) => Some(Limit::Bytes(bytes)),
            (None, Some(latency)) => Some(Limit::Latency(latency.as_nanos() as u64)),
            (None, None) => None,
        };
        Ok(Config {
            profile: self.profile.profile()?,
            limit,
        })
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Settings>] = &[
    rate("The rate at which packets leave.", |tbf, _| &mut tbf.profile.rate),
    Parameter::bounding(
        |tbf, _| Some(tbf.profile.first_bucket()),
        Parameter::shaping(
            Bucket {
                rate: "rate",
                is_for_whole_packets: true,
            },
            burst(
                "Bytes that may leave at once after an idle time: at least the longest packet.",
                |tbf, _| &mut tbf.profile.burst,
            ),
        ),
    ),
    Parameter::bounding(
        |tbf, _| tbf.limit.map(Longest::Length),
        Parameter::new(
            "limit",
            Unit::Bytes,
            1..=u64::MAX,
            "The largest backlog; not with an inner discipline.",
            |tbf, _| &mut tbf.limit,
        ),
    ),
    Parameter::new(
        "latency",
        Unit::Time,
        1..=u64::MAX,
        "The longest time that a packet may be queued, instead of `limit`.",
        |tbf, _| &mut tbf.latency,
    ),
    peakrate("The rate at which a burst leaves: above the rate.", |tbf, _| {
        &mut tbf.profile.peakrate
    }),
    Parameter::bounding(
        |tbf, _| tbf.profile.second_bucket(),
        mtu(
            "Bytes that may leave at once at the peak rate: at least the longest packet.",
            |tbf, _| &mut tbf.profile.mtu,
        ),
    ),
    link_parameters::stripped(|tbf, _| &mut tbf.profile.link_layer.stripped),
    link_parameters::overhead(|tbf, _| &mut tbf.profile.link_layer.overhead),
    link_parameters::mpu(|tbf, _| &mut tbf.profile.link_layer.mpu),
    link_parameters::cells(|tbf, _| &mut tbf.profile.link_layer.cells),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Settings, Config> = Description::of_settings(
    About {
        name: "tbf",
        family: Family::Queues,
        summary: "Token bucket shaper over a fifo or any discipline inside",
        when: "To send a little slower than the modem, so that the queue is here and not in the modem.",
        children: Children::Inner,
    },
    PARAMETERS,
    |_| Settings {
        profile: ProfileSettings::START,
        limit: None,
        latency: None,
    },
    Settings::config,
    |config, mut parts| Ok(Box::new(Tbf::node(config, parts.children.pop())?)),
);

/// The discipline. Make one with [`Tbf::node`].
#[derive(Debug)]
pub struct Tbf {
    inner: Box<dyn Discipline>,
    buckets: Buckets,
    longest_packet: u32,
    /// When the tokens for the first packet will be there; `None` unless the last dequeue found too few.
    due: Option<Time>,
    config: Config,
}

impl Tbf {
    /// Creates a shaper with full buckets over `inner`, or over a fifo with `config.limit`: one of the two,
    /// not both.
    pub fn node(config: Config, inner: Option<Box<dyn Discipline>>) -> Result<Node<Tbf>, ConfigError> {
        config.check()?;
        let inner = match (inner, config.limit) {
            (Some(inner), None) => inner,
            (None, Some(limit)) => Box::new(Fifo::node(config.fifo(limit))?),
            (Some(_), Some(limit)) => return Err(limit_beside_inner(limit)),
            (None, None) => {
                return Err(ConfigError::conflict(
                    "limit",
                    "missing",
                    "given if there is no inner discipline",
                    "give a limit or a latency, or an inner discipline that has limits",
                ));
            }
        };
        Ok(Node::new(Tbf {
            inner,
            buckets: Buckets::full(config.profile),
            longest_packet: config.profile.longest_packet(),
            due: None,
            config,
        }))
    }

    /// Returns no packet: the inner discipline has none to send now.
    #[cold]
    #[inline(never)]
    fn has_nothing(&mut self) -> Option<PacketId> {
        if !self.inner.is_empty() {
            self.due = self.inner.watchdog();
        }
        None
    }

    /// Waits until `due` for the tokens of the first packet, which has this length. A packet that is longer
    /// than the buckets can pay is dropped, and the next one is tried. Not in `dequeue`: the compiler would
    /// keep on the stack what a loop reads.
    #[cold]
    #[inline(never)]
    fn wait(&mut self, mut due: Time, mut length: u32, now: Time, pool: &mut Pool) -> Option<PacketId> {
        while length > self.longest_packet {
            self.drop_first(now, pool);
            let Some(first) = self.inner.peek(now, pool) else {
                return self.has_nothing();
            };
            length = pool[first].length;
            match self.buckets.pay(length, now) {
                Ok(()) => return self.inner.dequeue(now, pool),
                Err(later) => due = later,
            }
        }
        self.due = Some(due);
        None
    }

    /// Drops the first packet of the inner discipline: it arrived before a bucket was made smaller than it.
    #[cold]
    fn drop_first(&mut self, now: Time, pool: &mut Pool) {
        let first = self
            .inner
            .dequeue(now, pool)
            .expect("the dequeue after a peek returns the same packet");
        pool.give_back(first, DropReason::LargerThanBurst);
    }
}

fn limit_beside_inner(limit: Limit) -> ConfigError {
    let (parameter, value) = match limit {
        Limit::Bytes(bytes) => ("limit", bytes),
        Limit::Latency(nanos) => ("latency", nanos),
    };
    ConfigError::conflict(
        parameter,
        value,
        "left out where there is an inner discipline",
        "set the limits of the inner discipline instead",
    )
}

impl Algorithm for Tbf {
    const NAME: &'static str = "tbf";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if pool[id].length > self.longest_packet {
            pool.give_back(id, DropReason::LargerThanBurst);
            return Verdict::Dropped;
        }
        self.inner.enqueue(id, now, pool)
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        let Some(first) = self.inner.peek(now, pool) else {
            return self.has_nothing();
        };
        let length = pool[first].length;
        match self.buckets.pay(length, now) {
            Ok(()) => self.inner.dequeue(now, pool),
            Err(due) => self.wait(due, length, now, pool),
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.inner.drain(pool, into);
        self.due = None;
    }

    fn watchdog(&self) -> Option<Time> {
        self.due
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        match (self.config.limit, config.limit) {
            (None, Some(limit)) => return Err(limit_beside_inner(limit)),
            (_, Some(limit)) => self.inner.reconfigure(&config.fifo(limit), now, pool)?,
            (Some(_), None) => {
                return Err(ConfigError::conflict(
                    "limit",
                    "missing",
                    "given while the shaper uses its own fifo",
                    "give a limit or a latency",
                ));
            }
            (None, None) => {}
        }
        self.buckets.change(config.profile, now);
        self.longest_packet = config.profile.longest_packet();
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(INNER, self.inner.as_ref()));
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        (minor == INNER).then_some(&mut self.inner)
    }

    /// From now on the new inner discipline has its own limits.
    fn class_replaced(&mut self, _minor: u32, _now: Time, _pool: &mut Pool) {
        self.config.limit = None;
        self.due = None;
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let (tokens, of_peak) = self.buckets.tokens();
        visit("tokens", Variable::Integer(tokens));
        if let Some(tokens) = of_peak {
            visit("peak_tokens", Variable::Integer(tokens));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Inspect, Reconfigure};
    use crate::link_layer::{Cells, LinkLayer};
    use crate::packet::Packet;
    use crate::queues::token_bucket::Peak;
    use crate::testing::{Driver, fifo};

    /// One byte per microsecond.
    const RATE: Rate = Rate::mbit(8);

    fn shaper(config: Config) -> Driver<Tbf> {
        Driver::new(Tbf::node(config, None).unwrap())
    }

    fn offer(driver: &mut Driver<Tbf>, length: u32) -> Verdict {
        driver.offer(Packet::of_length(length), Time::ZERO)
    }

    fn config() -> Config {
        Config {
            profile: Profile::new(RATE, 2000),
            limit: Some(Limit::Bytes(10_000)),
        }
    }

    #[test]
    fn a_burst_leaves_and_then_the_rate() {
        let mut driver = shaper(config());
        for _ in 0..4 {
            offer(&mut driver, 1000);
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 1]);
        assert_eq!(driver.root.watchdog(), Some(Time::from_micros(1000)));
        assert_eq!(driver.next(Time::from_nanos(999_999)), None);
        assert_eq!(driver.drain(Time::from_micros(1000)), [2]);
        assert_eq!(driver.drain(Time::from_micros(2000)), [3]);
        assert_eq!(driver.root.watchdog(), None);
    }

    #[test]
    fn a_smaller_bucket_does_not_block_the_queue() {
        let mut driver = shaper(config());
        for length in [2000, 1500, 100] {
            offer(&mut driver, length);
        }
        assert_eq!(driver.drain(Time::ZERO), [0]);
        let smaller = Config {
            profile: Profile::new(RATE, 1000),
            ..config()
        };
        driver.reconfigure(smaller, Time::ZERO);
        assert_eq!(driver.drain(Time::from_micros(100)), [2]);
        assert_eq!(
            driver.root.statistics().dropped_for(DropReason::LargerThanBurst),
            1
        );
    }

    #[test]
    fn the_peak_rate_spaces_a_burst() {
        let mut driver = shaper(Config {
            profile: Profile {
                peak: Some(Peak {
                    rate: Rate::mbit(16),
                    mtu: 1000,
                }),
                ..config().profile
            },
            ..config()
        });
        for _ in 0..3 {
            offer(&mut driver, 1000);
        }
        assert_eq!(driver.drain(Time::ZERO), [0]);
        assert_eq!(driver.root.watchdog(), Some(Time::from_micros(500)));
        assert_eq!(driver.drain(Time::from_micros(500)), [1]);
        assert_eq!(driver.root.watchdog(), Some(Time::from_micros(1000)));
    }

    #[test]
    fn a_packet_longer_than_the_bucket_is_dropped() {
        let mut driver = shaper(config());
        assert_eq!(offer(&mut driver, 2001), Verdict::Dropped);
        assert_eq!(driver.returned, [(0, DropReason::LargerThanBurst)]);
        assert_eq!(offer(&mut driver, 2000), Verdict::Queued);
    }

    #[test]
    fn latency_bounds_the_sojourn_time_of_the_last_packet() {
        let mut driver = shaper(Config {
            limit: Some(Limit::Latency(10_000_000)),
            ..config()
        });
        let fitting = (0..100)
            .filter(|_| offer(&mut driver, 1000) == Verdict::Queued)
            .count();
        assert_eq!(fitting, 12, "8 Mbit/s * 10 ms + a burst of 2000 bytes");
    }

    #[test]
    fn a_peek_also_waits_for_tokens() {
        let mut driver = shaper(config());
        for _ in 0..3 {
            offer(&mut driver, 1000);
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 1]);
        assert_eq!(driver.peek(Time::ZERO), None);
        assert_eq!(driver.peek(Time::from_micros(1000)), Some(2));
        assert_eq!(driver.next(Time::from_micros(1000)), Some(2));
    }

    #[test]
    fn the_watchdog_of_a_shaper_inside_is_returned() {
        let slow = Tbf::node(
            Config {
                profile: Profile::new(Rate::mbit(1), 1000),
                ..Config::of_rate(Rate::mbit(1))
            },
            None,
        );
        let outer = Config {
            limit: None,
            ..config()
        };
        let mut driver = Driver::new(Tbf::node(outer, Some(Box::new(slow.unwrap()))).unwrap());
        for _ in 0..2 {
            offer(&mut driver, 1000);
        }
        assert_eq!(driver.drain(Time::ZERO), [0]);
        assert_eq!(driver.root.watchdog(), Some(Time::from_millis(8)));
        assert_eq!(driver.drain(Time::from_millis(8)), [1]);
    }

    #[test]
    fn a_limit_is_for_the_own_fifo_only() {
        assert!(Tbf::node(config(), Some(fifo(1))).is_err());
        let no_limit = Config {
            limit: None,
            ..config()
        };
        assert!(Tbf::node(no_limit.clone(), None).is_err());
        let mut driver = shaper(config());
        driver.replace_class(INNER, fifo(3), Time::ZERO);
        assert_eq!(driver.root.algorithm().config(), no_limit);
        let mut pool = Pool::with_capacity(1);
        assert!(driver.root.reconfigure(&config(), Time::ZERO, &mut pool).is_err());
    }

    #[test]
    fn a_change_of_the_rate_adds_no_tokens() {
        let mut driver = shaper(config());
        for _ in 0..4 {
            offer(&mut driver, 1000);
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 1]);
        let faster = Config {
            profile: Profile::new(Rate::mbit(80), 2000),
            ..config()
        };
        driver.reconfigure(faster, Time::from_micros(500));
        assert_eq!(driver.next(Time::from_micros(500)), None);
        let due = Time::from_micros(550);
        assert_eq!(
            driver.root.watchdog(),
            Some(due),
            "half of the tokens were there, and the rest came at ten times the rate"
        );
        assert_eq!(driver.next(due), Some(2));
    }

    #[test]
    fn a_peak_rate_below_the_rate_is_rejected() {
        let slow_peak = Profile {
            peak: Some(Peak {
                rate: RATE,
                mtu: 1514,
            }),
            ..Profile::of_rate(RATE)
        };
        assert_eq!(slow_peak.check_peak().unwrap_err().parameter(), Some("peakrate"));
    }

    /// 1000 bytes and 40 of headers are 22 cells of 53 bytes. A bucket of 1000 bytes holds one such packet.
    #[test]
    fn packets_are_paid_for_as_the_link_sends_them() {
        let mut config = Config::of_rate(Rate::mbit(8));
        config.profile.burst = 1000;
        config.profile.link_layer = LinkLayer {
            overhead: 40,
            mpu: 0,
            cells: Cells::Atm,
            ..LinkLayer::NONE
        };
        let mut driver = Driver::new(Tbf::node(config, None).unwrap());
        for _ in 0..3 {
            driver.offer(Packet::of_length(1000), Time::ZERO);
        }
        assert_eq!(driver.next(Time::ZERO), Some(0));
        for packet in 1..3 {
            let due = Time::from_micros(22 * 53 * packet);
            assert_eq!(driver.next(Time::from_nanos(due.nanos() - 1)), None);
            assert_eq!(driver.root.watchdog(), Some(due));
            assert_eq!(driver.next(due), Some(packet));
        }
    }
}
