//! CHOKe (Pan, Prabhakar, Psounis 2000): "choose and keep for responsive flows, choose and kill for
//! unresponsive flows". Linux's `choke`.
//!
//! CHOKe is RED with one more step. While the average is above `min`, an arriving packet is compared with a
//! random packet of the queue. If both are of one flow, both are dropped. A flow that holds much of the queue
//! often matches itself. This gives approximate fairness without state per flow.
//!
//! Average and curve are those of `red`, counted in packets. Packets are in a ring, so that a random one can
//! be drawn. A packet dropped from the middle leaves a hole. A draw that finds three holes takes the oldest
//! packet. Holes at either end are removed at once.
//!
//! Decisions are those of Linux 6.1, which compares the average with `<=` and `>` where `red` has `<` and
//! `>=`. Two packets are of one flow if their flow hashes are equal. Deviations: those of `red`. Non-goal:
//! Linux's filters, which can define flows in other ways.

use alloc::boxed::Box;

use super::POSITIVE;
use super::codel::ecn;
use super::red::{
    Action, Average, Curve, Filter, Response, Shape, Spacing, avpkt, bandwidth, harddrop, probability,
    w_log_for_burst,
};
use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::probability::Probability;
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};
use crate::structures::Random;
use crate::time::Time;

/// The longest queue, as in Linux.
const MOST: u32 = (1 << 17) - 1;
/// The number of draws that may find a hole before the oldest packet is taken.
const DRAWS: u32 = 3;

/// Parameters. Thresholds are in packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog, up to 131,071 packets.
    pub limit: u32,
    /// The average above which packets are compared and marked; `None` for a third of `max`.
    pub min: Option<u32>,
    /// The average above which every packet is marked; `None` for a quarter of `limit`.
    pub max: Option<u32>,
    /// The length of a typical packet, bytes. It converts idle time into packets.
    pub avpkt: u32,
    /// The number of packets that may arrive at once without a mark; `None` for `(2 min + max) / 3`.
    pub burst: Option<u32>,
    /// The probability of a mark at `max`.
    pub probability: Probability,
    /// The rate of the link. It converts idle time into packets.
    pub bandwidth: Rate,
    /// How packets are marked.
    pub response: Response,
}

/// tc's defaults, for a queue of 1000 packets.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 1000,
            min: None,
            max: None,
            avpkt: 1000,
            burst: None,
            probability: Probability::ratio(1, 50),
            bandwidth: Rate::mbit(10),
            response: Response::default(),
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=MOST as u64,
        "The largest backlog in packets.",
        |choke, _| &mut choke.limit,
    ),
    Parameter::new(
        "min",
        Unit::Count("packets"),
        POSITIVE,
        "The average above which packets are compared and marked; none for a third of `max`.",
        |choke, _| &mut choke.min,
    ),
    Parameter::new(
        "max",
        Unit::Count("packets"),
        POSITIVE,
        "The average above which every packet is marked; none for a quarter of `limit`.",
        |choke, _| &mut choke.max,
    ),
    avpkt(|choke, _| &mut choke.avpkt),
    Parameter::new(
        "burst",
        Unit::Count("packets"),
        POSITIVE,
        "The packets that may arrive at once unmarked; none for (2 `min` + `max`) / 3.",
        |choke, _| &mut choke.burst,
    ),
    probability(|choke, _| &mut choke.probability),
    bandwidth(|choke, _| &mut choke.bandwidth),
    ecn(|choke, _| &mut choke.response.ecn),
    harddrop(|choke, _| &mut choke.response.harddrop),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "choke",
        family: Family::Aqm,
        summary: "RED that compares an arriving packet with a random queued one and drops both if they are \
            of one flow",
        when: "To limit unresponsive flows without state per flow; fair queueing does it better.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Choke::node(config, parts.seed)?)),
)
.with_memory(|choke| 20 * u64::from(choke.limit));

impl Config {
    /// `min` and `max`, set or derived by tc's rules.
    pub fn thresholds(&self) -> (u32, u32) {
        let max = self.max.unwrap_or(self.limit / 4);
        (self.min.unwrap_or(max / 3), max)
    }

    /// The logarithms that tc calls `ewma` and `Scell_log`: of the weight, which is 1 / 2^this, and of the
    /// microseconds per cell of the table of idle times.
    pub fn logarithms(&self) -> Result<(u32, u32), ConfigError> {
        Ok(self.filter()?.logarithms())
    }

    fn filter(&self) -> Result<Filter, ConfigError> {
        let (min, max) = self.thresholds();
        let derived = || ((2 * u64::from(min) + u64::from(max)) / 3) as u32;
        // Each packet has length 1.
        let w_log = w_log_for_burst(min, self.burst.unwrap_or_else(derived), 1)?;
        Filter::of_linux(w_log, self.avpkt, self.bandwidth)
    }

    fn derived(&self) -> Result<(Filter, Curve), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        self.response.check()?;
        let (min, max) = self.thresholds();
        if max > self.limit {
            return Err(ConfigError::conflict(
                "max",
                max,
                format!("at most `limit`, {}", self.limit),
                "a quarter of the limit is a good choice",
            ));
        }
        let filter = self.filter()?;
        let shape = Shape {
            min,
            max,
            probability: self.probability,
            gentle: false,
            by_length: None,
            is_exclusive: true,
        };
        let curve = Curve::new(shape, filter.w_log())?;
        Ok((filter, curve))
    }
}

/// A ring of packets in the order of their arrival, with holes where packets were dropped. Neither end is a
/// hole.
#[derive(Debug)]
struct Ring {
    places: Box<[Option<PacketId>]>,
    /// Numbers that only increase. A number modulo the size, a power of two, is an index.
    head: u32,
    tail: u32,
    packets: u32,
}

impl Ring {
    fn of(limit: u32) -> Ring {
        Ring {
            places: vec![None; (2 * limit).next_power_of_two() as usize].into(),
            head: 0,
            tail: 0,
            packets: 0,
        }
    }

    #[inline]
    fn place(&mut self, number: u32) -> &mut Option<PacketId> {
        let mask = self.places.len() - 1;
        &mut self.places[number as usize & mask]
    }

    /// Whether packets and holes take the whole ring.
    fn is_full(&self) -> bool {
        self.tail.wrapping_sub(self.head) as usize == self.places.len()
    }

    #[inline]
    fn push_back(&mut self, id: PacketId) {
        if self.is_full() {
            self.close_holes();
        }
        *self.place(self.tail) = Some(id);
        self.tail = self.tail.wrapping_add(1);
        self.packets += 1;
    }

    /// Moves packets into the holes. Between two calls there are at least `limit` drops from the middle,
    /// because the ring is twice as large.
    #[cold]
    fn close_holes(&mut self) {
        let mut to = self.head;
        let mut from = self.head;
        while from != self.tail {
            if let Some(id) = self.place(from).take() {
                *self.place(to) = Some(id);
                to = to.wrapping_add(1);
            }
            from = from.wrapping_add(1);
        }
        self.tail = to;
    }

    #[inline]
    fn pop_front(&mut self) -> Option<PacketId> {
        if self.packets == 0 {
            return None;
        }
        let id = self.place(self.head).take();
        self.packets -= 1;
        self.trim();
        id
    }

    fn pop_back(&mut self) -> Option<PacketId> {
        if self.packets == 0 {
            return None;
        }
        let id = self.place(self.tail.wrapping_sub(1)).take();
        self.packets -= 1;
        self.trim();
        id
    }

    /// Removes holes from both ends. Each was made by a drop, so the cost per drop is constant.
    #[inline]
    fn trim(&mut self) {
        while self.head != self.tail && self.place(self.head).is_none() {
            self.head = self.head.wrapping_add(1);
        }
        while self.head != self.tail && self.place(self.tail.wrapping_sub(1)).is_none() {
            self.tail = self.tail.wrapping_sub(1);
        }
    }

    /// Returns a random packet and its number.
    fn draw(&mut self, random: &mut Random) -> Option<(u32, PacketId)> {
        let span = self.tail.wrapping_sub(self.head);
        for _ in 0..DRAWS {
            let number = self.head.wrapping_add(random.below(span));
            if let Some(id) = *self.place(number) {
                return Some((number, id));
            }
        }
        let head = self.head;
        self.place(head).map(|id| (head, id))
    }

    /// Takes a packet out of the middle.
    fn remove(&mut self, number: u32) {
        *self.place(number) = None;
        self.packets -= 1;
        self.trim();
    }
}

/// The discipline. Make one with [`Choke::node`].
#[derive(Debug)]
pub struct Choke {
    ring: Ring,
    filter: Filter,
    curve: Curve,
    average: Average,
    spacing: Spacing,
    random: Random,
    /// Pairs of packets dropped because both were of the same flow.
    matched: u64,
    config: Config,
}

impl Choke {
    /// Creates an empty queue. `seed` is for the random draws.
    ///
    /// ```
    /// use fairgate::aqm::choke::{Choke, Config};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut choke = Choke::node(Config::default(), 42)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// choke.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(choke.dequeue(Time::from_millis(1), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<Choke>, ConfigError> {
        let (filter, curve) = config.derived()?;
        Ok(Node::new(Choke {
            ring: Ring::of(config.limit),
            filter,
            curve,
            average: Average::NEW,
            spacing: Spacing::NEW,
            random: Random::new(seed),
            matched: 0,
            config,
        }))
    }

    /// Decides above `min`. Returns false if the packet must be dropped, perhaps with another one.
    #[inline(never)]
    fn keeps(&mut self, id: PacketId, average: u64, pool: &mut Pool) -> bool {
        if let Some((number, drawn)) = self.ring.draw(&mut self.random)
            && pool[drawn].flow == pool[id].flow
        {
            self.matched += 1;
            self.ring.remove(number);
            pool.give_back(drawn, DropReason::Aqm);
            return false;
        }
        let length = pool[id].length;
        let action = self
            .curve
            .judge(&mut self.spacing, average, length, &mut self.random);
        action == Action::Pass || self.config.response.spares(id, action, pool)
    }
}

impl Algorithm for Choke {
    const NAME: &'static str = "choke";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let average = self
            .filter
            .arrival(&mut self.average, self.ring.packets.into(), now);
        if self.curve.is_below(average) {
            self.spacing = Spacing::NEW;
        } else if !self.keeps(id, average, pool) {
            pool.give_back(id, DropReason::Aqm);
            return Verdict::Congested;
        }
        if self.ring.packets >= self.config.limit {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        self.ring.push_back(id);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _pool: &mut Pool) -> Option<PacketId> {
        let first = self.ring.pop_front();
        if first.is_none() {
            self.average.found_empty(now);
        }
        first
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        while let Some(id) = self.ring.pop_front() {
            into.push_back(id, pool);
        }
        self.average = Average::NEW;
        self.spacing = Spacing::NEW;
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let (filter, curve) = config.derived()?;
        while self.ring.packets > config.limit {
            let newest = self.ring.pop_back().expect("a queue over its limit is not empty");
            pool.give_back(newest, DropReason::Reconfigured);
        }
        let mut ring = Ring::of(config.limit);
        while let Some(id) = self.ring.pop_front() {
            ring.push_back(id);
        }
        self.ring = ring;
        self.average = self.average.carried_over(&self.filter, &filter);
        self.spacing = Spacing::NEW;
        self.filter = filter;
        self.curve = curve;
        self.config = config;
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("qavg", Variable::Integer(self.average.scaled() as i64));
        visit("qcount", Variable::Integer(self.spacing.count()));
        visit("matched", Variable::Integer(self.matched as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Discipline, Reconfigure};
    use crate::flow::FlowHash;
    use crate::packet::Packet;
    use crate::testing::Driver;
    use proptest::prelude::*;

    fn of_flow(flow: u64) -> Packet {
        Packet {
            flow: FlowHash::from_raw(flow),
            ..Packet::of_length(1000)
        }
    }

    /// The paper's setup: one unresponsive flow at twice the link's rate beside 30 flows that send at 1/30 of
    /// it each. RED gives the flow its share of the arrivals, two thirds; CHOKe gives it less than a third.
    #[test]
    fn an_unresponsive_flow_is_limited() {
        let config = Config {
            limit: 400,
            min: Some(20),
            max: Some(100),
            burst: Some(40),
            ..Config::default()
        };
        let mut driver = Driver::new(Choke::node(config, 1).unwrap());
        let mut hog = Vec::new();
        let (mut sent, mut of_hog) = (0u32, 0u32);
        for step in 0..60_000u64 {
            let now = Time::from_millis(step);
            for flow in [0, 0, 1 + step % 30] {
                hog.push(flow == 0);
                driver.offer(of_flow(flow + 1), now);
            }
            if let Some(cookie) = driver.next(now)
                && step > 10_000
            {
                sent += 1;
                of_hog += u32::from(hog[cookie as usize]);
            }
        }
        let share = f64::from(of_hog) / f64::from(sent);
        assert!((0.05..0.34).contains(&share), "{share} of the link");
    }

    #[test]
    fn two_packets_of_a_flow_are_dropped_and_others_are_not() {
        let config = Config {
            min: Some(4),
            max: Some(500),
            burst: Some(6),
            probability: Probability::ZERO,
            ..Config::default()
        };
        let mut driver = Driver::new(Choke::node(config, 1).unwrap());
        // Different flows: nothing matches.
        for flow in 0..200 {
            assert_eq!(driver.offer(of_flow(flow + 1), Time::ZERO), Verdict::Queued);
        }
        // One flow: when the queue holds only its packets, each arrival drops another one.
        let mut driver = Driver::new(Choke::node(driver.root.algorithm().config(), 1).unwrap());
        let mut queued = 0;
        while driver.offer(of_flow(7), Time::ZERO) == Verdict::Queued {
            queued += 1;
        }
        assert_eq!(driver.returned.len(), 2);
        assert_eq!(driver.root.backlog().packets, queued - 1);
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
        let refused = |config: Config| Choke::node(config, 1).unwrap_err().parameter();
        let default = Config::default;
        assert_eq!(
            refused(Config {
                limit: 0,
                ..default()
            }),
            Some("limit")
        );
        assert_eq!(
            refused(Config {
                limit: MOST + 1,
                ..default()
            }),
            Some("limit")
        );
        assert_eq!(
            refused(Config {
                avpkt: 0,
                ..default()
            }),
            Some("avpkt")
        );
        assert_eq!(
            refused(Config {
                max: Some(1001),
                ..default()
            }),
            Some("max")
        );
        assert_eq!(
            refused(Config {
                min: Some(250),
                burst: Some(400),
                ..default()
            }),
            Some("max")
        );
        assert_eq!(
            refused(Config {
                burst: Some(3),
                ..default()
            }),
            Some("burst")
        );
    }

    #[test]
    fn a_change_keeps_the_order_and_drops_the_newest_packets() {
        let mut driver = Driver::new(Choke::node(Config::default(), 1).unwrap());
        for flow in 0..6 {
            driver.offer(of_flow(flow + 1), Time::ZERO);
        }
        let shorter = Config {
            limit: 4,
            min: Some(2),
            max: Some(4),
            burst: Some(3),
            ..Config::default()
        };
        driver.reconfigure(shorter.clone(), Time::ZERO);
        assert_eq!(driver.returned.len(), 2);
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
        assert_eq!(driver.drain(Time::ZERO), [0, 1, 2, 3]);
    }

    proptest! {
        /// Compares the ring with a list: packets leave in order after any removals, and every packet can be
        /// drawn.
        #[test]
        fn a_ring_with_holes_keeps_the_order(
            limit in 1u32..40,
            operations in prop::collection::vec((0u8..4, any::<u64>()), 1..300),
        ) {
            let mut pool = Pool::with_capacity(400);
            let mut ring = Ring::of(limit);
            let mut model = Vec::new();
            for (operation, number) in operations {
                match operation {
                    0 | 1 if model.len() < limit as usize => {
                        let id = pool.insert(Packet::of_length(1)).unwrap();
                        ring.push_back(id);
                        model.push(id);
                    }
                    2 => {
                        let first = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(ring.pop_front(), first);
                    }
                    _ => {
                        let drawn = ring.draw(&mut Random::new(number));
                        prop_assert_eq!(drawn.is_some(), !model.is_empty());
                        if let Some((number, id)) = drawn {
                            prop_assert!(model.contains(&id));
                            model.retain(|&other| other != id);
                            ring.remove(number);
                        }
                    }
                }
                prop_assert_eq!(ring.packets as usize, model.len());
            }
            let rest: Vec<_> = core::iter::from_fn(|| ring.pop_front()).collect();
            prop_assert_eq!(rest, model);
        }
    }
}
