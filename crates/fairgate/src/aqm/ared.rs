//! Adaptive random early detection (Floyd, Gummadi, Shenker 2001): RED that sets itself up.
//!
//! RED's average queue depends on the traffic: with few flows it lies near `min`, with many near `max`. Here the probability
//! `max_p` moves every half second so that the average comes to lie in the middle fifth between the two: up by `min(1 %,
//! max_p/4)` while the average is above, down by a tenth while it is below, within 1 and 50 %. What is left to know is the
//! line's rate and the delay that is wanted (section 5):
//!
//! * `min` is half of what the line sends in the target delay, five packets at least, and `max` is three times `min`: half way
//!   between, the queue is the target delay long;
//! * the average is that of about a second: `w = 1 - exp(-1/C)`, `C` being packets a second;
//! * RED is `gentle`, so that above `max` there is no cliff.
//!
//! Queue, average and curve are those of `red`. Deviations: `w` is rounded to a power of two, so that the average needs no
//! product; the paper's figures count in packets, here in bytes; the step of half seconds is `red`'s. Non-goals: another AIMD
//! than the paper's.

use core::time::Duration;

use super::POSITIVE;
use super::codel::ecn;
use super::red::{self, Filter, Law, Parameters, Response, Shape, avpkt, build_over, harddrop, nodrop};
use crate::error::ConfigError;
use crate::probability::Probability;
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Longest, Parameter, Unit, check_ranges};

/// The discipline. Make one with [`node`](red::Queue::node).
pub type Ared = red::Queue<Config>;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Rate of the line.
    pub bandwidth: Rate,
    /// The delay that the average queue should stand for.
    pub target: Duration,
    /// Length of a usual packet.
    pub avpkt: u32,
    /// Most bytes queued; `None` for four times `max`: twice what the average is let grow to.
    pub limit: Option<u32>,
    /// How marks are made.
    pub response: Response,
}

impl Config {
    /// For a line of `bandwidth`: 5 ms, as in the paper, and packets of 1000 bytes.
    pub fn of_rate(bandwidth: Rate) -> Config {
        Config {
            bandwidth,
            target: Duration::from_millis(5),
            avpkt: 1000,
            limit: None,
            response: Response::default(),
        }
    }

    /// `min` and `max`.
    pub fn thresholds(&self) -> Result<(u32, u32), ConfigError> {
        let in_target = u128::from(self.bandwidth.bits_per_second()) * self.target.as_nanos() / 8_000_000_000;
        let min = (in_target / 2).max(5 * u128::from(self.avpkt));
        match u32::try_from(min * 3) {
            Ok(max) if max <= u32::MAX / 4 => Ok((min as u32, max)),
            _ => Err(ConfigError::conflict(
                "target",
                format!("{:?}", self.target),
                "less than a gigabyte's time on the line",
                "lower it: 5 ms is a good choice",
            )),
        }
    }

    /// Most bytes queued, given or derived.
    ///
    /// # Errors
    /// If no thresholds can be derived.
    pub fn bytes(&self) -> Result<u32, ConfigError> {
        let (_, max) = self.thresholds()?;
        Ok(self.limit.unwrap_or(max * 4))
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::required(
        "bandwidth",
        Unit::Rate,
        1..=u64::MAX,
        "The line's rate.",
        |ared, _| &mut ared.bandwidth,
    ),
    Parameter::new(
        "target",
        Unit::Time,
        1..=u64::MAX,
        "The delay that the average queue should stand for.",
        |ared, _| &mut ared.target,
    ),
    avpkt(|ared, _| &mut ared.avpkt),
    Parameter::bounding(
        |ared, has_inner| {
            let bytes = ared.bytes().ok().filter(|_| !has_inner);
            bytes.map(|bytes| Longest::Length(bytes.into()))
        },
        Parameter::new(
            "limit",
            Unit::Bytes,
            POSITIVE,
            "Most bytes queued; none for four times RED's `max`.",
            |ared, _| &mut ared.limit,
        ),
    ),
    ecn(|ared, _| &mut ared.response.ecn),
    harddrop(|ared, _| &mut ared.response.harddrop),
    nodrop(|ared, _| &mut ared.response.nodrop),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "ared",
        family: Family::Aqm,
        summary: "Adaptive RED: finds its thresholds from the line's rate, its probability from what the \
            queue does",
        when: "Where RED is wanted without tuning it, on a line of known rate.",
        children: Children::InnerOrQueue,
    },
    PARAMETERS,
    |_| Config::of_rate(Rate::mbit(1)),
    build_over,
);

impl Parameters for Config {
    const NAME: &'static str = "ared";

    fn law(&self) -> Result<Law, ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        let (min, max) = self.thresholds()?;
        let red = red::Config {
            limit: self.bytes()?,
            avpkt: self.avpkt,
            response: self.response,
            adaptive: true,
            ..red::Config::default()
        };
        red.check()?;
        let shape = Shape {
            min,
            max,
            // Where the paper's simulations begin; it does not stay there.
            probability: Probability::ratio(1, 10),
            gentle: true,
            by_length: None,
            is_exclusive: false,
        };
        Law::new(Filter::of_rate(self.avpkt, self.bandwidth)?, shape, &red)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Algorithm, Discipline, Verdict};
    use crate::packet::{DropReason, Packet};
    use crate::testing::Driver;
    use crate::time::Time;

    const RATE: Rate = Rate::mbit(10);

    /// Senders that halve on a loss and else grow by a packet in each round trip (of 100 ms): crude, but they react. Returns
    /// the mean queue over the last half of `seconds`, in bytes, and drops.
    fn mean_queue(config: Config, flows: usize, seconds: u64) -> (f64, u64) {
        let mut driver = Driver::new(Ared::node(config, 1).unwrap());
        let mut windows = vec![10.0f64; flows];
        // Packets that each flow may send in this millisecond, with fractions carried.
        let mut credit: Vec<f64> = (0..flows).map(|flow| flow as f64 / flows as f64).collect();
        let (mut sum, mut samples, mut bytes) = (0.0, 0u32, 0.0f64);
        for millis in 0..seconds * 1000 {
            let now = Time::from_millis(millis);
            let round = 100.0 + driver.root.backlog().bytes as f64 / 1250.0;
            for flow in 0..flows {
                credit[flow] += windows[flow] / round;
                while credit[flow] >= 1.0 {
                    credit[flow] -= 1.0;
                    if driver.offer(Packet::of_length(1000), now) == Verdict::Queued {
                        windows[flow] += 1.0 / windows[flow];
                    } else {
                        windows[flow] = (windows[flow] / 2.0).max(1.0);
                    }
                }
            }
            bytes = (bytes + 1250.0).min(1250.0 + driver.root.backlog().bytes as f64);
            while bytes >= 1000.0 && driver.next(now).is_some() {
                bytes -= 1000.0;
            }
            if millis > seconds * 500 {
                sum += driver.root.backlog().bytes as f64;
                samples += 1;
            }
        }
        let dropped = driver.root.statistics().dropped_for(DropReason::Aqm);
        (sum / f64::from(samples), dropped)
    }

    /// The paper's claim: the average queue is the target's, whatever the number of flows.
    #[test]
    fn the_queue_is_that_of_the_target_with_few_flows_and_with_many() {
        let config = Config {
            target: Duration::from_millis(40),
            ..Config::of_rate(RATE)
        };
        let (min, max) = config.thresholds().unwrap();
        assert_eq!((min, max), (25_000, 75_000));
        for flows in [10, 40, 100] {
            let (mean, dropped) = mean_queue(config.clone(), flows, 120);
            assert!(dropped > 0);
            // The middle fifth is 45,000 to 55,000.
            assert!(
                (35_000.0..65_000.0).contains(&mean),
                "{mean} bytes with {flows} flows"
            );
        }
    }

    #[test]
    fn thresholds_follow_from_rate_and_target() {
        let thresholds = |mbit, millis| {
            Config {
                target: Duration::from_millis(millis),
                ..Config::of_rate(Rate::mbit(mbit))
            }
            .thresholds()
        };
        // Five packets at least.
        assert_eq!(thresholds(1, 5).unwrap(), (5_000, 15_000));
        assert_eq!(thresholds(100, 5).unwrap(), (31_250, 93_750));
        assert_eq!(
            thresholds(100_000, 1_000).unwrap_err().parameter(),
            Some("target")
        );
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let refused = |config: Config| Ared::node(config, 1).unwrap_err().parameter();
        let config = || Config::of_rate(RATE);
        assert_eq!(
            refused(Config {
                target: Duration::ZERO,
                ..config()
            }),
            Some("target")
        );
        assert_eq!(refused(Config { avpkt: 0, ..config() }), Some("avpkt"));
        assert_eq!(
            refused(Config {
                limit: Some(0),
                ..config()
            }),
            Some("limit")
        );
        let response = Response {
            nodrop: true,
            ..Response::default()
        };
        assert_eq!(refused(Config { response, ..config() }), Some("nodrop"));
    }

    #[test]
    fn a_change_is_kept_and_a_refused_one_is_not() {
        let mut driver = Driver::new(Ared::node(Config::of_rate(RATE), 1).unwrap());
        for _ in 0..3 {
            driver.offer(Packet::of_length(1000), Time::ZERO);
        }
        let shorter = Config {
            limit: Some(2_000),
            ..Config::of_rate(RATE)
        };
        driver.reconfigure(shorter.clone(), Time::ZERO);
        assert_eq!(driver.returned, [(2, DropReason::Reconfigured)]);
        let wrong = Config {
            target: Duration::ZERO,
            ..shorter.clone()
        };
        assert!(
            driver
                .root
                .reconfigure(&wrong, Time::ZERO, &mut driver.pool)
                .is_err()
        );
        assert_eq!(driver.root.algorithm().config(), shorter);
    }
}
