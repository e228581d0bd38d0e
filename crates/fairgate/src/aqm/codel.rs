//! Controlled Delay over one queue (Nichols & Jacobson 2012, RFC 8289); Linux's `codel`.
//!
//! CoDel drops packets by their sojourn time, not by the length of the queue. The sojourn time needs no
//! tuning to the rate of a link. The control law is in `codel/control_law.rs`; the fair queues that run it on
//! each flow share it.
//!
//! Over a limit the arriving packet is dropped. Drops and marks fall on the same packets as in Linux 6.1.
//! Deviations: there is also a limit in bytes (as in dummynet), and `ce_threshold` may be for some packets
//! only, as in Linux's fq_codel. A packet that a parent's peek took out no longer counts against the limits.

mod control_law;

use alloc::boxed::Box;

use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::{About, Children, Description, Family, Parameter, check_ranges};
use crate::time::Time;

use super::limits::{Limits, limit_in_bytes, limit_in_packets, longest};

pub(crate) use control_law::{
    ControlLaw, Source, ce_threshold, ce_threshold_mask, ce_threshold_selector, codel_parameters, ecn,
    interval, mtu, target,
};
pub use control_law::{Params, State};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog, packets.
    pub limit: u32,
    /// The largest backlog, bytes.
    pub limit_bytes: Option<u32>,
    /// The parameters of the control law.
    pub codel: Params,
}

/// 1000 packets, as in Linux.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 1000,
            limit_bytes: None,
            codel: Params::default(),
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = codel_parameters![|codel| codel.codel;
    limit_in_packets(|codel, _| &mut codel.limit),
    limit_in_bytes(|codel, _| longest(codel.limit_bytes), |codel, _| &mut codel.limit_bytes),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "codel",
        family: Family::Aqm,
        summary: "Controlled Delay (RFC 8289): drops by the sojourn time of packets, not by their number",
        when: "On one queue whose delay must stay low, if flows need not be separated.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, _| Ok(Box::new(Codel::node(config)?)),
);

/// The discipline. Make one with [`Codel::node`].
#[derive(Debug)]
pub struct Codel {
    queue: Taken,
    state: State,
    law: ControlLaw,
    limits: Limits,
    /// The sojourn time of the last packet that was considered, ns. Linux's `ldelay`.
    last_delay: u64,
    config: Config,
}

/// The queue, and what Linux keeps of the packets taken from it.
#[derive(Debug)]
struct Taken {
    packets: PacketQueue,
    /// The longest one, bytes. Linux's `maxpacket`.
    longest: u32,
    /// When the last one was enqueued.
    last_enqueued_at: Option<Time>,
}

impl Codel {
    /// Creates an empty queue.
    ///
    /// ```
    /// use fairgate::aqm::codel::{Codel, Config};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut codel = Codel::node(Config::default())?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// codel.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(codel.dequeue(Time::from_millis(1), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config) -> Result<Node<Codel>, ConfigError> {
        Ok(Node::new(Codel {
            queue: Taken {
                packets: PacketQueue::new(),
                longest: 0,
                last_enqueued_at: None,
            },
            state: State::default(),
            law: check(&config)?,
            limits: config.limits(),
            last_delay: 0,
            config,
        }))
    }
}

impl Config {
    fn limits(&self) -> Limits {
        Limits::new(self.limit, self.limit_bytes)
    }
}

fn check(config: &Config) -> Result<ControlLaw, ConfigError> {
    check_ranges(PARAMETERS, &mut config.clone())?;
    config.codel.check_selector()?;
    Ok(ControlLaw::new(&config.codel))
}

impl Source for Taken {
    #[inline]
    fn take(&mut self, pool: &Pool) -> Option<PacketId> {
        let id = self.packets.pop_front(pool)?;
        let packet = &pool[id];
        self.longest = self.longest.max(packet.length);
        self.last_enqueued_at = Some(packet.enqueued_at);
        Some(id)
    }

    #[inline]
    fn backlog(&self) -> u64 {
        self.packets.bytes()
    }
}

impl Algorithm for Codel {
    const NAME: &'static str = "codel";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        if !self.limits.allow(&self.queue.packets, pool[id].length) {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        self.queue.packets.push_back(id, pool);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let chosen = self.law.dequeue(&mut self.state, &mut self.queue, now, pool);
        if let Some(enqueued_at) = self.queue.last_enqueued_at.take() {
            self.last_delay = now.nanos_since(enqueued_at);
        }
        chosen
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.packets.append_to(into, pool);
        self.state = State::default();
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        self.law = check(&config)?;
        self.config = config;
        // The oldest packets are dropped, as in Linux. CoDel would choose them too.
        self.limits = self.config.limits();
        self.limits.enforce(&mut self.queue.packets, pool);
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        self.state.visit_variables(visit);
        visit("ldelay", Variable::Nanos(self.last_delay));
        visit("maxpacket", Variable::Integer(self.queue.longest.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Discipline;
    use crate::discipline::{Inspect, Reconfigure};
    use crate::packet::{Ecn, Packet};
    use crate::slot::Slot;
    use crate::testing::Driver;
    use core::time::Duration;
    use proptest::prelude::*;

    /// A packet that left or was dropped, with its time.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Event {
        Sent { millis: u64, cookie: u64, ecn: Ecn },
        Dropped { millis: u64, cookie: u64 },
    }

    /// Runs steps of one millisecond from `origin`: in each step `arrivals` packets are enqueued and one is
    /// dequeued.
    fn run(config: Config, origin: Time, arrivals: &[u8], ecn: Ecn) -> Vec<Event> {
        let mut pool = Pool::with_capacity(4096);
        let mut codel = Codel::node(config).unwrap();
        let mut events = Vec::new();
        let mut cookie = 0;
        for (millis, &count) in arrivals.iter().enumerate() {
            let millis = millis as u64;
            let now = origin + millis * 1_000_000;
            for _ in 0..count {
                let packet = Packet {
                    cookie,
                    ecn,
                    ..Packet::of_length(1000)
                };
                cookie += 1;
                let id = pool.insert(packet).unwrap();
                codel.enqueue(id, now, &mut pool);
            }
            let sent = codel.dequeue(now, &mut pool);
            while let Some((id, _)) = pool.take_returned() {
                let cookie = pool.release(id).cookie;
                events.push(Event::Dropped { millis, cookie });
            }
            if let Some(id) = sent {
                let Slot { cookie, ecn, .. } = pool.release(id);
                events.push(Event::Sent { millis, cookie, ecn });
            }
        }
        events
    }

    fn dropped_at(events: &[Event]) -> Vec<u64> {
        events
            .iter()
            .filter_map(|event| match event {
                Event::Dropped { millis, .. } => Some(*millis),
                Event::Sent { .. } => None,
            })
            .collect()
    }

    #[test]
    fn a_limit_of_zero_is_rejected() {
        let config = Config {
            limit: 0,
            ..Config::default()
        };
        assert_eq!(Codel::node(config).unwrap_err().parameter(), Some("limit"));
    }

    /// 500 packets arrive at once, and one is sent each millisecond. The first drop comes an interval after
    /// the delay passed the target. The next drops follow after interval/sqrt(1), interval/sqrt(2) (one
    /// Newton step takes the 1 for a 2 there), interval/sqrt(3).
    #[test]
    fn drops_from_a_standing_queue_come_at_a_growing_rate() {
        let mut arrivals = vec![0; 500];
        arrivals[0] = 250;
        arrivals[1] = 250;
        let events = run(Config::default(), Time::from_secs(1), &arrivals, Ecn::NotEct);
        let first: Vec<u64> = dropped_at(&events).into_iter().take(4).collect();
        assert_eq!(first, [106, 206, 256, 313]);
    }

    /// The same with ECN: marks come at the same times, and nothing is lost.
    #[test]
    fn with_ecn_packets_are_marked_instead_of_dropped() {
        let mut arrivals = vec![0; 300];
        arrivals[0] = 250;
        let mut config = Config::default();
        config.codel.ecn = true;
        let events = run(config, Time::from_secs(1), &arrivals, Ecn::Ect0);
        assert!(dropped_at(&events).is_empty());
        let marked: Vec<u64> = events
            .iter()
            .filter_map(|event| match event {
                Event::Sent {
                    millis, ecn: Ecn::Ce, ..
                } => Some(*millis),
                _ => None,
            })
            .collect();
        assert_eq!(marked, [106, 206]);
    }

    #[test]
    fn a_ce_threshold_marks_every_late_packet() {
        let mut config = Config::default();
        config.codel.ce_threshold = Some(Duration::from_millis(3));
        let mut arrivals = vec![0; 20];
        arrivals[0] = 20;
        for event in run(config, Time::ZERO, &arrivals, Ecn::Ect1) {
            let Event::Sent { millis, ecn, .. } = event else {
                panic!("{event:?}: nothing is dropped within an interval");
            };
            assert_eq!(ecn == Ecn::Ce, millis > 3, "after {millis} ms");
        }
    }

    /// As of Linux' `ce_threshold_selector`: only packets with these bits are marked.
    #[test]
    fn a_ce_threshold_may_be_for_some_packets() {
        let mut config = Config::default();
        config.codel.ce_threshold = Some(Duration::from_millis(3));
        (config.codel.ce_threshold_selector, config.codel.ce_threshold_mask) = (1, 3);
        let mut arrivals = vec![0; 20];
        arrivals[0] = 20;
        for (sent, is_selected) in [(Ecn::Ect0, false), (Ecn::Ect1, true)] {
            for event in run(config.clone(), Time::ZERO, &arrivals, sent) {
                let Event::Sent { millis, ecn, .. } = event else {
                    panic!("{event:?}: nothing is dropped within an interval");
                };
                assert_eq!(ecn == Ecn::Ce, is_selected && millis > 3, "after {millis} ms");
            }
        }
    }

    /// No packet has bits that are not compared.
    #[test]
    fn a_selector_outside_of_its_mask_is_refused() {
        let refused = |selector, mask| {
            let mut config = Config::default();
            (config.codel.ce_threshold_selector, config.codel.ce_threshold_mask) = (selector, mask);
            Codel::node(config).err().and_then(|error| error.parameter())
        };
        assert_eq!(refused(4, 3), Some("ce_threshold_mask"));
        assert_eq!(refused(1, 0), Some("ce_threshold_mask"));
        assert_eq!([refused(1, 3), refused(0, 0)], [None, None]);
    }

    #[test]
    fn one_mtu_is_never_dropped() {
        let mut driver = Driver::new(Codel::node(Config::default()).unwrap());
        let offer = |driver: &mut Driver<Codel>, second| {
            driver.offer(Packet::of_length(1514), Time::from_secs(second));
        };
        offer(&mut driver, 0);
        for second in 1..60 {
            offer(&mut driver, second);
            assert_eq!(driver.next(Time::from_secs(second)), Some(second - 1));
        }
    }

    #[test]
    fn a_limit_in_bytes_counts_as_one_in_packets() {
        let limited = |limit_bytes| Config {
            limit: u32::MAX,
            limit_bytes: Some(limit_bytes),
            ..Config::default()
        };
        let mut driver = Driver::new(Codel::node(limited(3000)).unwrap());
        for length in [1000, 1000, 900, 101, 100] {
            driver.offer(Packet::of_length(length), Time::ZERO);
        }
        let dropped = |driver: &Driver<Codel>| driver.root.statistics().dropped.packets;
        // 2,900 bytes and 101 are too many, and 100 more are not.
        assert_eq!(dropped(&driver), 1);
        driver.reconfigure(limited(1000), Time::ZERO);
        assert_eq!((dropped(&driver), driver.root.backlog().bytes), (3, 1000));
        assert_eq!(
            Codel::node(limited(0)).unwrap_err().parameter(),
            Some("limit_bytes")
        );
    }

    #[test]
    fn a_lowered_limit_drops_the_oldest_packets() {
        let mut driver = Driver::new(Codel::node(Config::default()).unwrap());
        for _ in 0..3 {
            driver.offer(Packet::of_length(100), Time::ZERO);
        }
        let limited = |limit| Config {
            limit,
            ..Config::default()
        };
        driver.reconfigure(limited(2), Time::ZERO);
        assert_eq!(driver.returned, [(0, DropReason::Reconfigured)]);
        assert!(
            driver
                .root
                .reconfigure(&limited(0), Time::ZERO, &mut driver.pool)
                .is_err()
        );
        assert_eq!(driver.root.algorithm().config(), limited(2));
        assert_eq!(driver.drain(Time::ZERO), [1, 2]);
    }

    proptest! {
        /// Decisions do not depend on the origin of time, also where the ticks wrap. Origins are whole ticks.
        #[test]
        fn decisions_do_not_depend_on_the_origin(
            arrivals in prop::collection::vec(prop_oneof![3 => 0u8..3, 1 => 0u8..30], 1..600),
            ticks in prop_oneof![0u64..1 << 33, Just((1 << 32) - 200_000), Just((1 << 31) - 50_000)],
        ) {
            let fast = |ecn| Config {
                codel: Params { interval: Duration::from_millis(20), ecn, ..Params::default() },
                ..Config::default()
            };
            let origin = Time::from_nanos(ticks << 10);
            for (ecn, codepoint) in [(false, Ecn::NotEct), (true, Ecn::Ect0)] {
                let here = run(fast(ecn), origin, &arrivals, codepoint);
                prop_assert_eq!(here, run(fast(ecn), Time::ZERO, &arrivals, codepoint));
            }
        }
    }

    #[test]
    fn durations_out_of_range_are_rejected_by_name() {
        for (parameter, params) in [
            (
                "target",
                Params {
                    target: Duration::ZERO,
                    ..Params::default()
                },
            ),
            (
                "interval",
                Params {
                    interval: Duration::from_nanos(1023),
                    ..Params::default()
                },
            ),
            (
                "interval",
                Params {
                    interval: Duration::from_secs(138),
                    ..Params::default()
                },
            ),
            (
                "ce_threshold",
                Params {
                    ce_threshold: Some(Duration::MAX),
                    ..Params::default()
                },
            ),
        ] {
            let refused = Codel::node(Config {
                codel: params,
                ..Config::default()
            })
            .unwrap_err();
            assert_eq!(refused.parameter(), Some(parameter));
        }
    }
}
