//! Robust random early detection (Zhang, Yin, Cai, Chen 2010): RED behind a filter against low-rate denial of
//! service.
//!
//! The attack sends short bursts with the period of TCP's retransmission time-outs. A burst fills the queue,
//! TCP loses packets and waits, and when it sends again the next burst is there. A TCP sender whose packet
//! was dropped sends less for a while; the attacker does not. So a flow is suspected if its packet arrives
//! within `t_star` of a drop of one of its packets, or of RED's latest drop. Then the flow's indicator
//! decreases by one, otherwise it increases by one, between -1 and 10. Below 0 the filter drops the flow's
//! packets before RED sees them.
//!
//! The indicators are in a counting Bloom filter. Each flow has one bin in each of three levels. Its
//! indicator is the highest of the three, and the time of its own last drop is the earliest. A flow that
//! shares a bin with an attacker has two other bins.
//!
//! Behind the filter is `red`, with all its parameters. Deviation: a tail drop of the queue counts as a drop
//! by RED, because senders see no difference. Non-goal: protection from spoofed addresses, where every packet
//! belongs to a new flow.
//! difference. Non-goals: attacks by spoofed addresses, where every packet is of a new flow.

use alloc::boxed::Box;
use core::time::Duration;

use super::POSITIVE;
use super::codel::ecn;
use super::red::{
    self, Averaged, Derive, avpkt, bandwidth, harddrop, limit_in_bytes, nodrop, probability, red_parameters,
};
use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::{About, Children, Description, Family, Longest, Parameter, Unit, check_ranges};
use crate::structures::{Random, random};
use crate::time::Time;

/// The number of bins of each flow.
const LEVELS: usize = 3;
/// The paper's range of an indicator.
const LEAST: i8 = -1;
const MOST: i8 = 10;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long after a drop a packet is suspected.
    pub t_star: Duration,
    /// Bins in each of the three levels: a power of two up to 65,536.
    pub bins: u32,
    /// The parameters of RED behind the filter.
    pub red: red::Config,
}

/// The paper's 10 ms, and as many bins as fair queues have flows.
impl Default for Config {
    fn default() -> Config {
        Config {
            t_star: Duration::from_millis(10),
            bins: 1024,
            red: red::Config::default(),
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = red_parameters![|rred| rred.red;
    Parameter::new(
        "t_star",
        Unit::Time,
        1..=60_000_000_000,
        "How long after a drop a packet is suspected.",
        |rred, _| &mut rred.t_star,
    ),
    Parameter::new(
        "bins",
        Unit::Count("bins"),
        1..=65_536,
        "Bins in each of three levels that flows are hashed into: a power of two.",
        |rred, _| &mut rred.bins,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "rred",
        family: Family::Aqm,
        summary: "Robust RED: RED behind a filter for flows that continue to send right after a drop",
        when: "Against low-rate denial of service: bursts with the period of TCP's time-outs.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Rred::node(config, parts.seed)?)),
)
.with_memory(|rred| 72 * u64::from(rred.bins));

impl Config {
    fn derived(&self) -> Result<red::Derived, ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        if !self.bins.is_power_of_two() {
            return Err(ConfigError::conflict(
                "bins",
                self.bins,
                "a power of two up to 65536",
                format!("take {}", self.bins.next_power_of_two()),
            ));
        }
        self.red.derived()
    }
}

/// A bin, which several flows share.
#[derive(Clone, Copy, Debug)]
struct Bin {
    /// When the filter last dropped a packet.
    dropped_at: Option<Time>,
    indicator: i8,
}

impl Bin {
    const NEW: Bin = Bin {
        dropped_at: None,
        indicator: 0,
    };
}

/// The discipline. Make one with [`Rred::node`].
#[derive(Debug)]
pub struct Rred {
    /// All bins, level after level.
    bins: Box<[Bin]>,
    /// When RED last dropped a packet.
    red_dropped_at: Option<Time>,
    t_star: u64,
    salt: u64,
    queue: Averaged,
    config: Config,
}

fn new_bins(config: &Config) -> Box<[Bin]> {
    vec![Bin::NEW; config.bins as usize * LEVELS].into()
}

impl Rred {
    /// Creates an empty queue. `seed` is for the random marks and salts the choice of bins.
    ///
    /// ```
    /// use fairgate::aqm::rred::{Config, Rred};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut rred = Rred::node(Config::default(), 42)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// rred.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(rred.dequeue(Time::from_millis(1), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<Rred>, ConfigError> {
        let derived = config.derived()?;
        Ok(Node::new(Rred {
            bins: new_bins(&config),
            red_dropped_at: None,
            t_star: config.t_star.as_nanos() as u64,
            salt: Random::new(seed).bits(),
            queue: Averaged::new(derived, seed, PacketQueue::new())?,
            config,
        }))
    }

    /// The bins of a packet's flow.
    #[inline]
    fn bins_of(&self, id: PacketId, pool: &Pool) -> [usize; LEVELS] {
        let hash = random::mixed(pool[id].flow.raw() ^ self.salt);
        let size = self.config.bins as usize;
        // At least 16 bits for each level.
        [0, 1, 2].map(|level| level * size + ((hash >> (20 * level)) as usize & (size - 1)))
    }

    #[inline]
    fn is_soon_after(&self, drop: Option<Time>, now: Time) -> bool {
        drop.is_some_and(|at| now.nanos_since(at) <= self.t_star)
    }

    /// Decides about a packet by the history of its flow, and updates that history.
    #[inline]
    fn is_trusted(&mut self, bins: [usize; LEVELS], now: Time) -> bool {
        // The earliest one: other flows may have changed the other bins. If one bin has no drop, the flow had
        // none.
        let own = bins
            .iter()
            .map(|&bin| self.bins[bin].dropped_at)
            .min()
            .expect("there are three levels");
        let is_suspect = self.is_soon_after(own.max(self.red_dropped_at), now);
        let mut highest = LEAST;
        for bin in bins {
            let indicator = &mut self.bins[bin].indicator;
            *indicator = match is_suspect {
                true => (*indicator - 1).max(LEAST),
                false => (*indicator + 1).min(MOST),
            };
            highest = highest.max(*indicator);
        }
        highest >= 0
    }

    #[cold]
    fn filter_out(&mut self, bins: [usize; LEVELS], id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        for bin in bins {
            self.bins[bin].dropped_at = Some(now);
        }
        pool.give_back(id, DropReason::Aqm);
        Verdict::Dropped
    }
}

impl Algorithm for Rred {
    const NAME: &'static str = "rred";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let bins = self.bins_of(id, pool);
        if !self.is_trusted(bins, now) {
            return self.filter_out(bins, id, now, pool);
        }
        let verdict = self.queue.enqueue(id, now, pool);
        if verdict != Verdict::Queued {
            self.red_dropped_at = Some(now);
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.queue.dequeue(now, pool)
    }

    #[inline]
    fn first(&self) -> Option<PacketId> {
        self.queue.first()
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.drain(pool, into);
        self.bins = new_bins(&self.config);
        self.red_dropped_at = None;
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        self.queue.change(config.derived()?, pool)?;
        if config.bins != self.config.bins {
            // Flows get other bins, so the old indicators are useless.
            self.bins = new_bins(&config);
        }
        self.t_star = config.t_star.as_nanos() as u64;
        self.config = config;
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        self.queue.visit_variables(visit);
        let suspects = self.bins.iter().filter(|bin| bin.indicator < 0).count();
        visit("suspect_bins", Variable::Integer(suspects as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Reconfigure;
    use crate::flow::FlowHash;
    use crate::packet::Packet;
    use crate::testing::Driver;

    fn of_flow(flow: u64) -> Packet {
        Packet {
            flow: FlowHash::from_raw(flow),
            ..Packet::of_length(1000)
        }
    }

    fn config() -> Config {
        Config {
            red: red::Config {
                limit: 50_000,
                min: Some(10_000),
                max: Some(30_000),
                burst: Some(20),
                ..red::Config::default()
            },
            ..Config::default()
        }
    }

    /// Simulates bursts of 200 ms at three times the link's rate each second, beside 20 flows that send a
    /// packet every 50 ms and stop for 200 ms after a loss. Returns how many packets of the 20 flows and of
    /// the attacker were sent.
    fn attack(mut offer: impl FnMut(Packet, Time) -> (bool, Vec<u64>)) -> (u64, u64) {
        let (mut good, mut bad) = (0, 0);
        let mut silent_until = [0u64; 20];
        let mut senders = Vec::new();
        for millis in 0..60_000u64 {
            let now = Time::from_millis(millis);
            let mut arrivals = Vec::new();
            if millis % 1000 < 200 {
                arrivals.extend([100, 100, 100]);
            }
            let flow = millis % 50;
            if flow < 20 && silent_until[flow as usize] <= millis {
                arrivals.push(flow);
            }
            for flow in arrivals {
                senders.push(flow);
                let (is_queued, sent) = offer(of_flow(flow + 1), now);
                if !is_queued && flow < 20 {
                    silent_until[flow as usize] = millis + 200;
                }
                for cookie in sent {
                    match senders[cookie as usize] {
                        100 => bad += 1,
                        _ => good += 1,
                    }
                }
            }
        }
        (good, bad)
    }

    /// A driver that sends one packet per millisecond.
    fn under<A: Algorithm>(node: Node<A>) -> (u64, u64) {
        let mut driver = Driver::new(node);
        let mut asked = Time::ZERO;
        attack(move |packet, now| {
            let mut sent = Vec::new();
            while asked < now {
                asked += 1_000_000;
                sent.extend(driver.next(asked));
            }
            (driver.offer(packet, now) == Verdict::Queued, sent)
        })
    }

    /// The paper's claim: the attack succeeds against RED alone; the filter blocks the attacker and lets the
    /// others pass.
    #[test]
    fn the_filter_blocks_bursts_and_lets_other_flows_pass() {
        let (with_filter, bad) = under(Rred::node(config(), 1).unwrap());
        let (alone, bad_alone) = under(red::Red::node(config().red, 1).unwrap());
        assert!(
            bad * 5 < bad_alone,
            "{bad} packets of the attacker with the filter, {bad_alone} without"
        );
        assert!(
            with_filter > alone,
            "{with_filter} packets of the others with the filter, {alone} without"
        );
    }

    /// The filter by hand: RED drops a packet. A flow with indicator 0 that sends within 10 ms is filtered,
    /// and a flow that waits is not.
    #[test]
    fn a_flow_that_sends_soon_after_a_drop_is_suspected() {
        let mut driver = Driver::new(Rred::node(config(), 1).unwrap());
        let mut last = Verdict::Queued;
        while last == Verdict::Queued {
            // Each packet is of another flow, so that no indicator rises twice.
            last = driver.offer(of_flow(1_000 + u64::from(driver.pool.len())), Time::ZERO);
        }
        assert_eq!(last, Verdict::Congested, "RED's drop");
        assert_eq!(driver.offer(of_flow(7), Time::from_millis(5)), Verdict::Dropped);
        assert_eq!(driver.returned.last().map(|of| of.1), Some(DropReason::Aqm));
        // 10 ms after its own drop, which was at 5 ms, the flow is still suspected; later it is not.
        assert_eq!(driver.offer(of_flow(7), Time::from_millis(15)), Verdict::Dropped);
        while driver.next(Time::from_millis(16)).is_some() {}
        assert_eq!(driver.offer(of_flow(7), Time::from_millis(26)), Verdict::Queued);
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            Rred::node(config, 1).unwrap_err().parameter()
        };
        assert_eq!(refused(|config| config.bins = 1000), Some("bins"));
        assert_eq!(refused(|config| config.bins = 0), Some("bins"));
        assert_eq!(refused(|config| config.t_star = Duration::ZERO), Some("t_star"));
        assert_eq!(refused(|config| config.red.limit = 0), Some("limit"));
    }

    #[test]
    fn a_change_keeps_packets_and_a_rejected_one_changes_nothing() {
        let mut driver = Driver::new(Rred::node(config(), 1).unwrap());
        for _ in 0..3 {
            driver.offer(of_flow(1), Time::ZERO);
        }
        let mut other = config();
        other.bins = 16;
        other.red.limit = 2_000;
        driver.reconfigure(other.clone(), Time::ZERO);
        assert_eq!(driver.returned, [(2, DropReason::Reconfigured)]);
        let mut wrong = other.clone();
        wrong.bins = 3;
        assert!(
            driver
                .root
                .reconfigure(&wrong, Time::ZERO, &mut driver.pool)
                .is_err()
        );
        assert_eq!(driver.root.algorithm().config(), other);
        assert_eq!(driver.drain(Time::ZERO), [0, 1]);
    }
}
