//! Admission control by flow in front of any fair discipline (Kortebi, Oueslati & Roberts 2005, section 2.2; Benameur et al.
//! 2002): while the link is congested, packets of new flows are discarded.
//!
//! Fair queueing can't help against too many flows: with twice as many each gets half. So when the fair rate falls below a
//! threshold, 1 % of the link's rate by default, no new flows are let in until it has recovered; flows in progress are
//! not touched. A sender whose first packets vanish tries later, or another way. A flow is in progress from its first packet
//! until it was silent for a time-out, whether or not it has packets queued (`implicit/in_progress.rs`).
//!
//! **The fair rate without rounds**: the discipline inside is not known, only what leaves it. Each flow has a virtual finish
//! time, advanced by the bytes it sends; virtual time follows the flow that is ahead of all, two quanta behind it, and a
//! flow that was away begins there. It advances as fast as a flow that always has packets sends: what it gained is what a
//! fictitious flow would have been granted (the self-clocking of PFQ). The rest is as in [`pdrr`], samples
//! and smoothing included, which has both measures of its own and this control built in.
//!
//! `quantum` should be at least what the discipline inside sends of one flow at a time: with less the fair rate comes
//! out too high. The priority load can't be told from outside and is no criterion here. With a discipline inside that
//! isn't fair the measure means nothing.
//!
//! Bounded: flows in progress beyond `flows_in_progress` are not remembered, and count as new at each packet.

use alloc::boxed::Box;
use core::time::Duration;

use super::congestion::Congestion;
use super::in_progress::InProgress;
use super::parameters::{fair_rate, flows_in_progress, idle_timeout, key, quantum};
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
const INNER: u16 = 1;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate of the link.
    pub rate: Rate,
    /// New flows are kept out while the fair rate is below this; `None` for 1 % of the link's rate.
    pub fair_rate: Option<Rate>,
    /// Bytes that the discipline inside sends of one flow at a time, 64 to 2^30.
    pub quantum: u32,
    /// What a flow is: the same as for the discipline inside.
    pub key: FlowBy,
    /// A flow is in progress for so long after a packet, 1 ms to 1 hour.
    pub idle_timeout: Duration,
    /// Most flows in progress that are remembered, 1 to 2^20.
    pub flows_in_progress: u32,
}

impl Config {
    /// For a link of this rate, with the defaults of pdrr.
    pub fn of_rate(rate: Rate) -> Config {
        let default = pdrr::Admission::default();
        Config {
            rate,
            fair_rate: default.fair_rate,
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
        Congestion::new(self.rate, Some(self.control().thresholds(self.rate)))
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
    quantum(
        "Bytes that the discipline inside sends of one flow at a time.",
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
        summary: "Admission control by flow in front of any fair discipline, drr if none is given",
        when: "Where so many flows come that a fair share would be too little for each: those that are \
            there go on.",
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

/// What flows were sent, to know what one more would be.
#[derive(Debug)]
struct VirtualTime {
    now: u64,
    /// Of each flow in progress, by its place.
    finish: Box<[u64]>,
    /// How far virtual time is behind the flow that is ahead.
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

    /// The flow at `place` sent a packet. By how much virtual time advanced.
    #[inline]
    fn sent(&mut self, place: u32, length: u32) -> u64 {
        let finish = &mut self.finish[place as usize];
        *finish = (*finish).max(self.now) + u64::from(length);
        let advance = finish.saturating_sub(self.now + self.window);
        self.now += advance;
        advance
    }
}

/// The discipline. Make one with [`Admission::node`].
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
    /// Control in front of `inner`. `seed` is the key of the hashes.
    ///
    /// # Errors
    /// If a parameter is out of its range.
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

    /// After a call in which the discipline inside may have lost all that it had.
    #[inline]
    fn look_inside(&mut self) -> bool {
        let is_empty = self.inner.backlog().packets == 0;
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
            self.look_inside();
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let next = self.inner.dequeue(now, pool);
        self.congestion.advance(now);
        let is_last = self.look_inside();
        if let Some(id) = next {
            let length = pool[id].length;
            if let Some(place) = self.in_progress.place(self.hasher.flow(id, pool)) {
                self.congestion.granted(self.virtual_time.sent(place, length));
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

    /// Flows in progress are kept unless what a flow is, its time-out or their number changes; the measure is, unless the
    /// rate or the threshold changes.
    fn reconfigure(&mut self, config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        let flows = |config: &Config| (config.key, config.idle_timeout, config.flows_in_progress);
        if flows(&config) != flows(&self.config) {
            self.in_progress = config.control().flows(self.seed);
            self.hasher = FlowByHasher::new(config.key, self.seed);
            self.virtual_time = VirtualTime::new(&config);
        }
        self.virtual_time.window = 2 * u64::from(config.quantum);
        if (config.rate, config.fair_rate) != (self.config.rate, self.config.fair_rate) {
            self.congestion = config.measure();
        }
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(INNER, self.inner.as_ref()));
    }

    fn class_mut(&mut self, minor: u16) -> Option<&mut Box<dyn Discipline>> {
        (minor == INNER).then_some(&mut self.inner)
    }

    fn class_replaced(&mut self, _minor: u16, _now: Time, _pool: &mut Pool) {
        self.look_inside();
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

    /// A millisecond each: a packet from each flow of `flows`, one is sent. The flows blocked.
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
    fn the_fair_rate_is_what_a_backlogged_flow_gets() {
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
    fn flows_that_come_and_go_one_by_one_leave_half_of_the_link_and_more() {
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
    fn new_flows_are_blocked_below_the_threshold_and_known_ones_never() {
        let mut driver = over_drr(config());
        // A new flow every half second. At 20 flows the fair rate is 400 kbit/s.
        let blocked = run(&mut driver, 0..30_000, |milli| milli / 500 + 1);
        let first = *blocked.iter().min().expect("flows are blocked");
        assert!((18..26).contains(&first), "the first flow blocked is {first}");
        let in_progress = u64::from(driver.root.algorithm().in_progress.len());
        assert_eq!(
            in_progress, first,
            "all that came before are in progress, none since"
        );
        assert!(fair_rate(&driver) > 300_000, "{}", fair_rate(&driver));
        // Five flows go on. After the time-out the others are forgotten, and new ones let in.
        let later = run(&mut driver, 30_000..45_000, |_| 5);
        assert!(later.is_empty());
        let again = run(&mut driver, 45_000..45_100, |_| 10);
        assert!(again.is_empty(), "{again:?}");
    }

    #[test]
    fn all_that_the_discipline_inside_loses_is_noticed() {
        let mut driver = over_drr(config());
        let _ = run(&mut driver, 0..100, |_| 3);
        driver.root.flush(&mut driver.pool);
        while let Some((id, _)) = driver.pool.take_returned() {
            driver.pool.release(id);
        }
        // Idle from here on.
        let _ = driver.next(Time::from_secs(60));
        assert!(fair_rate(&driver) > 7_990_000);
    }

    #[test]
    fn ranges_are_checked() {
        let refused = |config: Config| {
            let inner = crate::testing::fifo(1);
            Admission::node(config, 0, inner)
                .map(|_| ())
                .unwrap_err()
                .parameter()
        };
        assert_eq!(
            refused(Config {
                quantum: 1,
                ..config()
            }),
            Some("quantum")
        );
        let flows_in_progress = 0;
        assert_eq!(
            refused(Config {
                flows_in_progress,
                ..config()
            }),
            Some("flows_in_progress")
        );
        let idle_timeout = Duration::from_nanos(1);
        assert_eq!(
            refused(Config {
                idle_timeout,
                ..config()
            }),
            Some("idle_timeout")
        );
    }
}
