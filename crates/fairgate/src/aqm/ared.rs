//! Adaptive random early detection (Floyd, Gummadi, Shenker 2001): RED that derives its parameters.
//!
//! RED's average queue depends on the traffic: it is near `min` with few flows and near `max` with many.
//! Adaptive RED changes the probability `max_p` every half second so that the average moves to the middle
//! fifth between the two. `max_p` rises by `min(1 %, max_p/4)` while the average is above, and falls by a
//! tenth while it is below; it stays between 1 and 50 %. Only the rate of the link and the target delay must
//! be known (section 5):
//!
//! * `min` is half of what the link sends in the target delay, but at least five packets. `max` is three
//!   times `min`. Halfway between them the queue has the target delay.
//! * The average covers about one second: `w = 1 - exp(-1/C)`, where `C` is the number of packets per second.
//! * RED is `gentle`, so that the probability does not jump above `max`.
//!
//! Queue, average and curve are those of `red`. Deviations: `w` is rounded to a power of two, so that the
//! average needs no multiplication. The paper's figures count in packets, ours in bytes. The half seconds are
//! counted as in `red`. Non-goal: an AIMD other than the paper's.

use core::time::Duration;

use super::POSITIVE;
use super::codel::ecn;
use super::red::{
    self, Derive, Derived, Filter, Parameters, Response, Shape, avpkt, build_over, harddrop, nodrop,
};
use crate::error::ConfigError;
use crate::probability::Probability;
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Longest, Parameter, Unit, check_ranges};

/// The discipline. Make one with [`node`](red::Queue::node).
pub type Ared = red::Queue<Config>;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate of the link.
    pub bandwidth: Rate,
    /// The delay that the average queue should have.
    pub target: Duration,
    /// The length of a typical packet, bytes.
    pub avpkt: u32,
    /// The largest backlog, bytes; `None` for four times `max`, which is twice the largest average.
    pub limit: Option<u32>,
    /// How packets are marked.
    pub response: Response,
}

impl Config {
    /// For a link of `bandwidth`: 5 ms, as in the paper, and packets of 1000 bytes.
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
                "less than the time to send a gigabyte on the link",
                "lower it: 5 ms is a good choice",
            )),
        }
    }

    /// The largest backlog, set or derived, bytes.
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
        "The rate of the link.",
        |ared, _| &mut ared.bandwidth,
    ),
    Parameter::new(
        "target",
        Unit::Time,
        1..=u64::MAX,
        "The delay that the average queue should have.",
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
            "The largest backlog in bytes; none for four times RED's `max`.",
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
        summary: "Adaptive RED: derives its thresholds from the rate of the link and adapts its probability \
            to the queue",
        when: "Where RED is wanted without tuning it, on a link of known rate.",
        children: Children::InnerOrQueue,
    },
    PARAMETERS,
    |_| Config::of_rate(Rate::mbit(1)),
    build_over,
);

impl Parameters for Config {
    const NAME: &'static str = "ared";
}

impl Derive for Config {
    fn derived(&self) -> Result<Derived, ConfigError> {
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
            // The start value of the paper's simulations; it is adapted.
            probability: Probability::ratio(1, 10),
            gentle: true,
            by_length: None,
            is_exclusive: false,
        };
        Derived::new(Filter::of_rate(self.avpkt, self.bandwidth)?, shape, &red)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Algorithm, Discipline, Verdict};
    use crate::discipline::{Inspect, Reconfigure};
    use crate::packet::{DropReason, Packet};
    use crate::testing::Driver;
    use crate::time::Time;

    const RATE: Rate = Rate::mbit(10);

    /// Simulates senders that halve their window on a loss and otherwise grow it by a packet in each round
    /// trip of 100 ms. Returns the mean queue over the last half of `seconds`, in bytes, and the drops.
    fn mean_queue(config: Config, flows: usize, seconds: u64) -> (f64, u64) {
        let mut driver = Driver::new(Ared::node(config, 1).unwrap());
        let mut windows = vec![10.0f64; flows];
        // The packets that each flow may send in this millisecond, with fractions carried over.
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

    /// The paper's claim: the average queue has the target delay with any number of flows.
    #[test]
    fn the_queue_has_the_target_delay_with_few_and_many_flows() {
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
        // At least five packets.
        assert_eq!(thresholds(1, 5).unwrap(), (5_000, 15_000));
        assert_eq!(thresholds(100, 5).unwrap(), (31_250, 93_750));
        assert_eq!(
            thresholds(100_000, 1_000).unwrap_err().parameter(),
            Some("target")
        );
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
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
    fn a_change_is_kept_and_a_rejected_one_is_not() {
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
