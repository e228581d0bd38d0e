//! Admission control by flow in front of any fair discipline (Kortebi, Oueslati & Roberts 2005, section 2.2;
//! Benameur et al. 2002): while the link is congested, packets of new flows are dropped.
//!
//! Fair queueing does not help against too many flows: with twice as many flows each gets half. So when the
//! fair rate falls below a threshold, 1 % of the link's rate by default, new flows are rejected until it has
//! recovered. Flows in progress are not affected. A sender whose first packets are dropped tries later, or
//! takes another path. A flow is in progress from its first packet until it has sent nothing for a time-out,
//! whether or not it has packets queued (`implicit/in_progress.rs`).
//!
//! **How the fair rate is measured.** The inner discipline is not known; only its departures are. Each flow
//! has a virtual finish time, which advances by the bytes that it sends. Virtual time follows the flow that
//! is furthest ahead, two quanta behind it. A flow that was inactive starts at the current virtual time. So
//! virtual time advances as fast as a flow that always has packets sends, and its advance is what a
//! fictitious flow could have sent (the self-clocking of PFQ). Samples and smoothing are the same as in
//! [`pdrr`], which has its own measures and has this control built in.
//!
//! `quantum` should be at least the number of bytes that the inner discipline sends of one flow at a time.
//! With less, the measured fair rate is too high. The priority load can't be measured from outside and is not
//! used here. If the inner discipline is not fair, the measured fair rate has no meaning.
//!
//! Memory is bounded: flows beyond `flows_in_progress` are not stored, and each of their packets counts as
//! the first packet of a new flow.

use alloc::boxed::Box;
use core::time::Duration;

use super::congestion::{Congestion, Measurement};
use super::in_progress::InProgress;
use super::parameters::{
    fair_rate, fair_rate_interval, flows_in_progress, idle_timeout, key, quantum, smoothing,
};
use super::pdrr;
use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::flow::{FlowBy, FlowByHasher};
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};
use crate::rounds::drr::{self, Drr};
use crate::scheduler::Flows;
use crate::time::Time;

/// The number of the only class.
const INNER: u32 = 1;

/// The parameters of the discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate of the link.
    pub rate: Rate,
    /// New flows are rejected while the fair rate is below this rate. `None` means 1 % of the link's rate.
    pub fair_rate: Option<Rate>,
    /// The time between two samples of the fair rate, 1 ms to 1 min.
    pub fair_rate_interval: Duration,
    /// The weight of the fair rate that was measured before, in percent, 0 to 99.
    pub smoothing: u8,
    /// Bytes that the inner discipline sends of one flow at a time, 64 to 2^30.
    pub quantum: u32,
    /// What identifies a flow. It should be the same as in the inner discipline.
    pub key: FlowBy,
    /// How long a flow is in progress after a packet, 1 ms to 1 hour.
    pub idle_timeout: Duration,
    /// The largest number of flows in progress, 1 to 2^20.
    pub flows_in_progress: u32,
}

impl Config {
    /// Returns the parameters for a link of this rate, with the defaults of pdrr.
    pub fn of_rate(rate: Rate) -> Config {
        let default = pdrr::Admission::default();
        let measurement = Measurement::default();
        Config {
            rate,
            fair_rate: default.fair_rate,
            fair_rate_interval: measurement.fair_rate_interval,
            smoothing: measurement.smoothing,
            quantum: pdrr::Config::default().quantum,
            key: FlowBy::default(),
            idle_timeout: default.idle_timeout,
            flows_in_progress: default.flows_in_progress,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())
    }

    fn control(&self) -> pdrr::Admission {
        pdrr::Admission {
            fair_rate: self.fair_rate,
            priority_load: 100,
            idle_timeout: self.idle_timeout,
            flows_in_progress: self.flows_in_progress,
        }
    }

    fn measure(&self) -> Congestion {
        let measurement = Measurement {
            fair_rate_interval: self.fair_rate_interval,
            smoothing: self.smoothing,
            ..Measurement::default()
        };
        Congestion::new(
            self.rate,
            &measurement,
            Some(self.control().thresholds(self.rate)),
        )
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::required(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of the link.",
        |control, _| &mut control.rate,
    ),
    fair_rate(|control, _| &mut control.fair_rate),
    fair_rate_interval(|control, _| &mut control.fair_rate_interval),
    smoothing(|control, _| &mut control.smoothing),
    quantum(
        "Bytes that the inner discipline sends of one flow at a time.",
        |control, _| &mut control.quantum,
    ),
    key(|control, _| &mut control.key),
    idle_timeout(|control, _| &mut control.idle_timeout),
    flows_in_progress(|control, _| &mut control.flows_in_progress),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "admission",
        family: Family::Implicit,
        summary: "Admission control by flow in front of any fair discipline, drr by default",
        when: "Where there can be so many flows that a fair share is too small: flows in progress keep \
               their share.",
        children: Children::Inner,
    },
    PARAMETERS,
    |_| Config::of_rate(Rate::mbit(1)),
    |config, mut parts| {
        let inner = match parts.children.pop() {
            Some(inner) => inner,
            None => Box::new(Flows::<Drr>::node(drr::Config::default(), parts.seed)?),
        };
        Ok(Box::new(Admission::node(config, parts.seed, inner)?))
    },
)
.with_memory(|control| 70 * u64::from(control.flows_in_progress));

/// Virtual time and the flows' finish times, from which the fair rate is measured.
#[derive(Debug)]
struct VirtualTime {
    now: u64,
    /// The finish time of each flow in progress, by its position.
    finish: Box<[u64]>,
    /// How far virtual time is behind the flow that is furthest ahead.
    window: u64,
}

impl VirtualTime {
    fn new(config: &Config) -> VirtualTime {
        VirtualTime {
            now: 0,
            finish: vec![0; config.flows_in_progress as usize].into(),
            window: 2 * u64::from(config.quantum),
        }
    }

    /// Counts a packet that the flow at `position` sent. Returns by how much virtual time advanced.
    #[inline]
    fn sent(&mut self, position: u32, length: u32) -> u64 {
        let finish = &mut self.finish[position as usize];
        *finish = (*finish).max(self.now) + u64::from(length);
        let advance = finish.saturating_sub(self.now + self.window);
        self.now += advance;
        advance
    }
}

/// The discipline. [`Admission::node`] creates it.
#[derive(Debug)]
pub struct Admission {
    inner: Box<dyn Discipline>,
    in_progress: InProgress,
    congestion: Congestion,
    virtual_time: VirtualTime,
    hasher: FlowByHasher,
    seed: u64,
    config: Config,
}

impl Admission {
    /// Returns admission control in front of `inner`. `seed` is the key of the hashes.
    ///
    /// # Errors
    /// Returns an error if a parameter is out of range.
    pub fn node(
        config: Config,
        seed: u64,
        inner: Box<dyn Discipline>,
    ) -> Result<Node<Admission>, ConfigError> {
        config.check()?;
        Ok(Node::new(Admission {
            inner,
            in_progress: config.control().flows(seed),
            congestion: config.measure(),
            virtual_time: VirtualTime::new(&config),
            hasher: FlowByHasher::new(config.key, seed),
            seed,
            config,
        }))
    }

    /// Checks whether the inner discipline is empty, after a call in which it may have lost all its packets.
    #[inline]
    fn check_empty(&mut self) -> bool {
        let is_empty = self.inner.is_empty();
        if is_empty {
            self.congestion.emptied();
        }
        is_empty
    }
}

impl Algorithm for Admission {
    const NAME: &'static str = "admission";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.congestion.advance(now);
        let flow = self.hasher.flow(id, pool);
        if !self.in_progress.pass(flow, !self.congestion.is_congested(), now) {
            pool.give_back(id, DropReason::NotAdmitted);
            return Verdict::Dropped;
        }
        self.congestion.arrived(now);
        let verdict = self.inner.enqueue(id, now, pool);
        if verdict != Verdict::Queued {
            self.check_empty();
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let next = self.inner.dequeue(now, pool);
        self.congestion.advance(now);
        let is_last = self.check_empty();
        if let Some(id) = next {
            let length = pool[id].length;
            if let Some(position) = self.in_progress.position(self.hasher.flow(id, pool)) {
                self.congestion.granted(self.virtual_time.sent(position, length));
            }
            self.congestion.sent(length, false, is_last, now);
        }
        next
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.inner.drain(pool, into);
        self.congestion.emptied();
    }

    fn watchdog(&self) -> Option<Time> {
        self.inner.watchdog()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// Keeps the flows in progress unless their key, time-out or number changes. Keeps the measured fair rate
    /// unless the rate, the threshold or how it is measured changes.
    fn reconfigure(&mut self, config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        let flows = |config: &Config| (config.key, config.idle_timeout, config.flows_in_progress);
        if flows(&config) != flows(&self.config) {
            self.in_progress = config.control().flows(self.seed);
            self.hasher = FlowByHasher::new(config.key, self.seed);
            self.virtual_time = VirtualTime::new(&config);
        }
        self.virtual_time.window = 2 * u64::from(config.quantum);
        let measured = |config: &Config| {
            let Config {
                rate,
                fair_rate,
                fair_rate_interval,
                smoothing,
                ..
            } = *config;
            (rate, fair_rate, fair_rate_interval, smoothing)
        };
        if measured(&config) != measured(&self.config) {
            self.congestion = config.measure();
        }
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(INNER, self.inner.as_ref()));
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        (minor == INNER).then_some(&mut self.inner)
    }

    fn class_replaced(&mut self, _minor: u32, _now: Time, _pool: &mut Pool) {
        self.check_empty();
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("fair_rate", Variable::Integer(self.congestion.fair_rate() as i64));
        visit("congested", Variable::Flag(self.congestion.is_congested()));
        visit(
            "flows_in_progress",
            Variable::Integer(self.in_progress.len().into()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowHash;
    use crate::packet::Packet;
    use crate::rounds::drr::{self, Drr, Quantum};
    use crate::scheduler::Flows;
    use crate::testing::Driver;

    const RATE: Rate = Rate::mbit(8);

    fn over_drr(config: Config) -> Driver<Admission> {
        let drr = drr::Config {
            share: Quantum(1000),
            limit: 500,
            ..drr::Config::default()
        };
        let inner = Box::new(Flows::<Drr>::node(drr, 1).unwrap());
        Driver::new(Admission::node(config, 1, inner).unwrap())
    }

    fn config() -> Config {
        Config {
            quantum: 1000,
            fair_rate: Some(Rate::from_bits_per_second(400_000).unwrap()),
            ..Config::of_rate(RATE)
        }
    }

    /// Each millisecond one packet of each of `flows` flows arrives and one packet is sent. Returns the flows
    /// whose packets were dropped.
    fn run(
        driver: &mut Driver<Admission>,
        millis: core::ops::Range<u64>,
        flows: impl Fn(u64) -> u64,
    ) -> Vec<u64> {
        let mut blocked = Vec::new();
        for milli in millis {
            let now = Time::from_millis(milli);
            for flow in 0..flows(milli) {
                let packet = Packet {
                    flow: FlowHash::from_raw(flow + 1),
                    ..Packet::of_length(1000)
                };
                driver.offer(packet, now);
                if driver
                    .returned
                    .iter()
                    .any(|(_, reason)| *reason == DropReason::NotAdmitted)
                {
                    blocked.push(flow);
                }
            }
            let _ = driver.next(now);
        }
        blocked
    }

    fn fair_rate(driver: &Driver<Admission>) -> u64 {
        driver.root.algorithm().congestion.fair_rate()
    }

    #[test]
    fn the_fair_rate_is_the_rate_of_a_backlogged_flow() {
        for flows in [1, 4, 10] {
            let mut driver = over_drr(config());
            let _ = run(&mut driver, 0..10_000, |_| flows);
            let (expected, measured) = (8_000_000 / flows, fair_rate(&driver));
            assert!(
                measured.abs_diff(expected) < expected / 20,
                "{flows} flows: {measured}"
            );
        }
    }

    #[test]
    fn short_flows_one_at_a_time_leave_a_fair_rate_above_half_of_the_link() {
        let mut driver = over_drr(config());
        for milli in 0..10_000u64 {
            let now = Time::from_millis(milli);
            let packet = Packet {
                flow: FlowHash::from_raw(milli / 25 + 1),
                ..Packet::of_length(1000)
            };
            driver.offer(packet, now);
            let _ = driver.next(now);
        }
        assert!(fair_rate(&driver) > 6_000_000, "{}", fair_rate(&driver));
    }

    #[test]
    fn below_the_threshold_only_new_flows_are_blocked() {
        let mut driver = over_drr(config());
        // A new flow arrives every half second. With 20 flows the fair rate is 400 kbit/s.
        let blocked = run(&mut driver, 0..30_000, |milli| milli / 500 + 1);
        let first = *blocked.iter().min().expect("flows are blocked");
        assert!((18..26).contains(&first), "the first flow blocked is {first}");
        let in_progress = u64::from(driver.root.algorithm().in_progress.len());
        assert_eq!(
            in_progress, first,
            "only the flows that arrived before are in progress"
        );
        assert!(fair_rate(&driver) > 300_000, "{}", fair_rate(&driver));
        // Five flows continue. After the time-out the others are no longer in progress, and new flows are
        // admitted.
        let later = run(&mut driver, 30_000..45_000, |_| 5);
        assert!(later.is_empty());
        let again = run(&mut driver, 45_000..45_100, |_| 10);
        assert!(again.is_empty(), "{again:?}");
    }

    #[test]
    fn a_flush_of_the_inner_discipline_makes_the_link_idle() {
        let mut driver = over_drr(config());
        let _ = run(&mut driver, 0..100, |_| 3);
        driver.root.flush(&mut driver.pool);
        while let Some((id, _)) = driver.pool.take_returned() {
            driver.pool.release(id);
        }
        // The link is idle from here.
        let _ = driver.next(Time::from_secs(60));
        assert!(fair_rate(&driver) > 7_990_000);
    }

    #[test]
    fn ranges_are_checked() {
        let rejected = |config: Config| {
            let inner = crate::testing::fifo(1);
            Admission::node(config, 0, inner)
                .map(|_| ())
                .unwrap_err()
                .parameter()
        };
        assert_eq!(
            rejected(Config {
                quantum: 1,
                ..config()
            }),
            Some("quantum")
        );
        let flows_in_progress = 0;
        assert_eq!(
            rejected(Config {
                flows_in_progress,
                ..config()
            }),
            Some("flows_in_progress")
        );
        let idle_timeout = Duration::from_nanos(1);
        assert_eq!(
            rejected(Config {
                idle_timeout,
                ..config()
            }),
            Some("idle_timeout")
        );
    }
}
