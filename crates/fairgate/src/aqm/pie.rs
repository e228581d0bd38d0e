//! Proportional integral controller enhanced over one queue (RFC 8033); Linux's `pie`.
//!
//! PIE drops arriving packets with a probability. A controller moves the probability so that the queue's
//! delay approaches the target. Like CoDel, PIE looks at the delay and not at the length. Unlike CoDel it
//! drops on arrival, before a packet has used any resources. The control law is in `pie/control_law.rs`; the
//! fair queues that run it on each flow share it.
//!
//! With `on_off` PIE begins only when a third of the limit is queued, and ends when congestion is over and
//! the queue is empty (RFC 8033, section 5.3; dummynet's `onoff`). Linux has no such option.
//!
//! Over a limit the arriving packet is dropped. Deviations from Linux: there is also a limit in bytes (as in
//! dummynet). Updates come every `tupdate` from the first packet on, where Linux begins half a second after
//! the qdisc was attached and counts in jiffies. A packet that a parent's peek took out no longer counts
//! against the limits.

mod control_law;

use alloc::boxed::Box;

use super::limits::{Limits, limit_in_bytes, limit_in_packets, longest};
use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};
use crate::structures::Random;
use crate::time::Time;

pub use control_law::Params;
pub(crate) use control_law::{
    ControlLaw, State, Updates, bytemode, cap_drop, derandomize, dq_rate_estimator, ecn_prob, max_burst,
    pie_mtu, pie_parameters, pie_time, pie_weight,
};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog, packets.
    pub limit: u32,
    /// The largest backlog, bytes.
    pub limit_bytes: Option<u32>,
    /// Whether PIE begins when a third of the limit is queued, and ends with congestion.
    pub on_off: bool,
    /// The parameters of the control law.
    pub pie: Params,
}

/// 1000 packets, as in Linux.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 1000,
            limit_bytes: None,
            on_off: false,
            pie: Params::default(),
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = pie_parameters![|pie| pie.pie;
    limit_in_packets(|pie, _| &mut pie.limit),
    limit_in_bytes(|pie, _| longest(pie.limit_bytes), |pie, _| &mut pie.limit_bytes),
    Parameter::word(
        "on_off",
        Unit::Flag,
        "Whether packets are only dropped or marked after a third of the limit was queued, until \
            congestion is over (RFC 8033, section 5.3).",
        |pie, _| &mut pie.on_off,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "pie",
        family: Family::Aqm,
        summary: "Proportional integral controller (RFC 8033): drops on arrival, with a probability that \
            holds the delay at a target",
        when: "On one queue whose delay must stay low, if packets must be dropped on arrival, as in cable \
            modems (DOCSIS).",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Pie::node(config, parts.seed)?)),
);

/// The discipline. Make one with [`Pie::node`].
#[derive(Debug)]
pub struct Pie {
    queue: PacketQueue,
    state: State,
    updates: Updates,
    law: ControlLaw,
    random: Random,
    /// Whether the control law decides about arriving packets. Always, without `on_off`.
    is_on: bool,
    limits: Limits,
    /// The largest number of packets that an accepted packet found in the queue. Linux's `maxq`.
    most_queued: u32,
    config: Config,
}

impl Pie {
    /// Creates an empty queue. `seed` is for the random drops.
    ///
    /// ```
    /// use fairgate::aqm::pie::{Config, Pie};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut pie = Pie::node(Config::default(), 42)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// pie.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(pie.dequeue(Time::from_millis(1), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<Pie>, ConfigError> {
        let law = check(&config)?;
        Ok(Node::new(Pie {
            queue: PacketQueue::new(),
            state: law.idle(0),
            updates: Updates::every(config.pie.tupdate),
            law,
            random: Random::new(seed),
            is_on: !config.on_off,
            limits: config.limits(),
            most_queued: 0,
            config,
        }))
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        let due = self.updates.due(now);
        self.law.catch_up(&mut self.state, due, self.queue.bytes());
    }

    /// Begins or ends with congestion, before a packet is enqueued.
    #[inline(never)]
    fn switch(&mut self) {
        if !self.is_on && self.limits.a_third_is_reached(&self.queue) {
            self.is_on = true;
            self.state = self.law.idle(self.updates.so_far());
        } else if self.is_on && self.queue.is_empty() && self.law.is_over(&self.state) {
            self.is_on = false;
        }
    }
}

impl Config {
    fn limits(&self) -> Limits {
        Limits::new(self.limit, self.limit_bytes)
    }
}

fn check(config: &Config) -> Result<ControlLaw, ConfigError> {
    check_ranges(PARAMETERS, &mut config.clone())?;
    Ok(ControlLaw::new(&config.pie))
}

impl Algorithm for Pie {
    const NAME: &'static str = "pie";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.catch_up(now);
        if self.config.on_off {
            self.switch();
        }
        let backlog = self.queue.bytes();
        let reason = if !self.limits.allow(&self.queue, pool[id].length) {
            DropReason::QueueLimit
        } else if self.is_on
            && !self
                .law
                .admits(&mut self.state, backlog, id, &mut self.random, pool)
        {
            DropReason::Aqm
        } else {
            self.most_queued = self.most_queued.max(self.queue.len());
            self.queue.push_back(id, pool);
            return Verdict::Queued;
        };
        self.state.dropped();
        pool.give_back(id, reason);
        Verdict::Dropped
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.catch_up(now);
        let id = self.queue.pop_front(pool)?;
        self.law
            .departed(&mut self.state, id, self.queue.bytes(), now, pool);
        Some(id)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
        self.state = self.law.idle(self.updates.so_far());
        self.is_on = !self.config.on_off;
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let law = check(&config)?;
        self.catch_up(now);
        if config.pie.tupdate != self.config.pie.tupdate {
            self.updates.set_period(config.pie.tupdate);
        }
        self.law = law;
        self.law.take_over(&mut self.state);
        self.is_on |= !config.on_off;
        self.limits = config.limits();
        self.config = config;
        // The oldest packets are dropped, as in Linux.
        self.limits.enforce(&mut self.queue, pool);
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        self.state.visit_variables(visit);
        visit("maxq", Variable::Integer(self.most_queued.into()));
    }
}

#[cfg(test)]
mod tests {
    use crate::discipline::{Inspect, Reconfigure};
    use core::time::Duration;

    use super::*;
    use crate::discipline::Discipline;
    use crate::packet::{Ecn, Packet};
    use crate::testing::Driver;

    /// Simulates a link of 10 Mbit/s with packets of 1250 bytes, one per millisecond, and `flows` senders. A
    /// sender halves its window on a loss or mark, and otherwise grows it by a packet in each round trip of
    /// 100 ms. Returns the mean delay of the second half, in ms.
    fn mean_delay(config: Config, flows: usize, seconds: u64, ecn: Ecn) -> f64 {
        let mut driver = Driver::new(Pie::node(config, 1).unwrap());
        let mut windows = vec![10.0f64; flows];
        let mut credit = vec![0.0; flows];
        let (mut sum, mut samples) = (0, 0u32);
        for millis in 0..seconds * 1000 {
            let now = Time::from_millis(millis);
            let round = 100.0 + driver.root.backlog().packets as f64;
            for flow in 0..flows {
                credit[flow] += windows[flow] / round;
                while credit[flow] >= 1.0 {
                    credit[flow] -= 1.0;
                    let marked = driver.root.statistics().marked;
                    let packet = Packet {
                        ecn,
                        ..Packet::of_length(1250)
                    };
                    let verdict = driver.offer(packet, now);
                    if verdict == Verdict::Queued && driver.root.statistics().marked == marked {
                        windows[flow] += 1.0 / windows[flow];
                    } else {
                        windows[flow] = (windows[flow] / 2.0).max(1.0);
                    }
                }
            }
            driver.next(now);
            if millis > seconds * 500 {
                sum += driver.root.backlog().packets;
                samples += 1;
            }
        }
        sum as f64 / f64::from(samples)
    }

    #[test]
    fn the_delay_approaches_the_target() {
        for (flows, dq_rate_estimator, ecn) in [
            (10, false, Ecn::NotEct),
            (50, false, Ecn::NotEct),
            (10, true, Ecn::NotEct),
            (10, false, Ecn::Ect0),
        ] {
            let config = Config {
                pie: Params {
                    dq_rate_estimator,
                    ecn: true,
                    ..Params::default()
                },
                ..Config::default()
            };
            let delay = mean_delay(config, flows, 60, ecn);
            assert!(
                (9.0..25.0).contains(&delay),
                "{delay} ms with {flows} flows, {dq_rate_estimator}, {ecn:?}"
            );
        }
    }

    /// dummynet's `onoff`.
    #[test]
    fn pie_can_begin_with_a_third_of_the_limit_and_end_with_congestion() {
        let config = Config {
            limit: 90,
            limit_bytes: None,
            on_off: true,
            pie: Params {
                max_burst: Duration::ZERO,
                ..Params::default()
            },
        };
        let mut driver = Driver::new(Pie::node(config, 1).unwrap());
        // 25 packets wait for ever longer, and nothing is dropped.
        for millis in 0..1000 {
            let now = Time::from_millis(millis);
            if driver.root.backlog().packets >= 25 {
                driver.next(now);
            }
            assert_eq!(driver.offer(Packet::of_length(1250), now), Verdict::Queued);
        }
        assert!(!driver.root.algorithm().is_on);
        for millis in 1000..4000 {
            let now = Time::from_millis(millis);
            driver.next(now);
            driver.offer(Packet::of_length(1250), now);
            driver.offer(Packet::of_length(1250), now);
        }
        assert!(driver.root.algorithm().is_on);
        assert!(driver.root.statistics().dropped.packets > 0);
        for millis in 4000..60_000 {
            driver.next(Time::from_millis(millis));
        }
        driver.offer(Packet::of_length(1250), Time::from_millis(60_000));
        assert!(!driver.root.algorithm().is_on);
    }

    /// A queue grows from nothing to 100 ms: nothing is dropped during 150 ms of departures.
    #[test]
    fn a_burst_is_not_dropped() {
        let mut driver = Driver::new(Pie::node(Config::default(), 1).unwrap());
        for _ in 0..100 {
            driver.offer(Packet::of_length(1250), Time::ZERO);
        }
        for millis in 0..150 {
            let now = Time::from_millis(millis);
            driver.next(now);
            for _ in 0..2 {
                assert_eq!(driver.offer(Packet::of_length(1250), now), Verdict::Queued);
            }
        }
        let mut dropped = false;
        for millis in 150..1000 {
            let now = Time::from_millis(millis);
            driver.next(now);
            dropped |= driver.offer(Packet::of_length(1250), now) == Verdict::Dropped;
        }
        assert!(dropped);
    }

    #[test]
    fn a_limit_in_bytes_counts_as_one_in_packets() {
        let limited = |limit_bytes| Config {
            limit: u32::MAX,
            limit_bytes: Some(limit_bytes),
            ..Config::default()
        };
        let mut driver = Driver::new(Pie::node(limited(3000), 1).unwrap());
        for length in [1000, 1000, 900, 101, 100] {
            driver.offer(Packet::of_length(length), Time::ZERO);
        }
        let dropped = |driver: &Driver<Pie>| driver.root.statistics().dropped.packets;
        // 2,900 bytes and 101 are too many, and 100 more are not.
        assert_eq!(dropped(&driver), 1);
        driver.reconfigure(limited(1000), Time::ZERO);
        assert_eq!((dropped(&driver), driver.root.backlog().bytes), (3, 1000));
        assert_eq!(
            Pie::node(limited(0), 1).unwrap_err().parameter(),
            Some("limit_bytes")
        );
    }

    #[test]
    fn a_lowered_limit_drops_the_oldest_packets_and_a_rejected_change_none() {
        let limited = |limit| Config {
            limit,
            ..Config::default()
        };
        assert_eq!(Pie::node(limited(0), 1).unwrap_err().parameter(), Some("limit"));
        let mut driver = Driver::new(Pie::node(limited(3), 1).unwrap());
        for _ in 0..3 {
            assert_eq!(driver.offer(Packet::of_length(100), Time::ZERO), Verdict::Queued);
        }
        assert_eq!(driver.offer(Packet::of_length(100), Time::ZERO), Verdict::Dropped);
        assert_eq!(driver.returned, [(3, DropReason::QueueLimit)]);
        driver.reconfigure(limited(2), Time::ZERO);
        assert_eq!(driver.returned, [(0, DropReason::Reconfigured)]);
        let wrong = limited(0);
        assert!(
            driver
                .root
                .reconfigure(&wrong, Time::ZERO, &mut driver.pool)
                .is_err()
        );
        assert_eq!(driver.root.algorithm().config(), limited(2));
        assert_eq!(driver.drain(Time::ZERO), [1, 2]);
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
        let refused = |pie: Params| {
            let config = Config {
                pie,
                ..Config::default()
            };
            Pie::node(config, 1).unwrap_err().parameter()
        };
        let default = Params::default;
        assert_eq!(
            refused(Params {
                alpha: 33,
                ..default()
            }),
            Some("alpha")
        );
        assert_eq!(
            refused(Params {
                beta: 33,
                ..default()
            }),
            Some("beta")
        );
        assert_eq!(refused(Params { mtu: 0, ..default() }), Some("mtu"));
        let nothing = Duration::from_nanos(63);
        assert_eq!(
            refused(Params {
                target: nothing,
                ..default()
            }),
            Some("target")
        );
        let long = Duration::from_secs(61);
        assert_eq!(
            refused(Params {
                tupdate: long,
                ..default()
            }),
            Some("tupdate")
        );
    }
}
