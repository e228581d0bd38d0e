//! Multilevel Stochastic Fairness CoDel: priority classes that share the line in a fixed ratio, fair queueing within
//! each, CoDel on each flow (the thesis's chapter 2).
//!
//! A packet's path: its class (DSCP, priority or filters), its flow by hash, the stamp, the tail of the flow's queue.
//! Out: the *outer* deficit round robin picks a class, the *inner* one a flow of it, CoDel a packet of that.
//! Class `p` has quantum `quantum * ratio^p` in the outer rounds, so that backlogged classes share 1 : r : r^2 : ...
//! whatever the number of flows in each; what an idle class leaves goes to the others in the same ratio.
//!
//! Invariants: a class has its bit in `backlogged` if packets are queued in it, a flow is in its class's round if
//! packets are queued in it. A flow or a class found empty when it is to be served leaves its round, and the round goes
//! on within the same call.
//!
//! Both rounds serve while the deficit is above zero and charge what was sent, as in fq_codel, and not while the next
//! packet fits as in DRR: which packet is next CoDel decides. Other than in fq_codel, CoDel spares the last MTU of each
//! flow, not of all together, as RFC 8289 has it, and so never empties one. Over the limit the flow with most bytes
//! pays, as in fq_codel; the thesis leaves this open.
//!
//! Deviations: classes come up in the order of their numbers, not of their activation. CoDel is RFC 8289's, whose
//! count is remembered when dropping resumes soon; the thesis's starts at 1 each time.

use crate::aqm::codel::{Law, Params};
use crate::bits::Round;
use crate::classify::{ClassMap, Classifier};
use crate::discipline::{Algorithm, ByFlow, Node, Value, Verdict};
use crate::error::{ConfigError, check_within};
use crate::packet::{DropReason, Packet};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rounds::codel_flows::{CodelFlows, Floor, Limits, check_flows};
use crate::time::Time;

/// Most flows of all classes together: 128 MiB of state.
const MAX_FLOWS_IN_ALL: u32 = 1 << 21;

/// Most classes.
pub const MAX_PRIOS: u8 = 16;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of priority classes, 1 to [`MAX_PRIOS`]. The highest number gets the largest share.
    pub prios: u8,
    /// Number of flows in each class, 1 to 2^20; at most 2^21 in all classes together.
    pub flows: u32,
    /// Bytes that a flow may send in a turn, and the lowest class in one of its own; 256 to 2^20.
    pub quantum: u32,
    /// How many times the share of the next lower class a class gets, at least 1.
    pub ratio: u32,
    /// Most packets queued in all flows together.
    pub limit: u32,
    /// Most memory occupied by queued packets ([`Packet::memory`]), bytes.
    pub memory_limit: u64,
    /// Most packets dropped at once when a limit is reached.
    pub drop_batch: u32,
    /// Places packets before [`class_by`](Config::class_by) does: `handle:n`, a filter's class `n` or a default `n` is
    /// the class of priority `n - 1`.
    pub classifier: Classifier,
    /// Places the packets that the classifier does not.
    pub class_by: ClassBy,
    /// The control law's.
    pub codel: Params,
}

/// Which field of a packet tells its class, and the class for each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassBy {
    /// The DSCP.
    Dscp([u8; 64]),
    /// The packet's priority; only its four low bits count.
    Priority([u8; 16]),
}

/// Three classes by DSCP. Low: CS1 and LE (RFC 8622), bulk by their own word. High: what waits worst, that is CS4 to
/// CS7, AF4x, VOICE-ADMIT and EF (the network control, telephony, signalling and interactive classes of RFC 4594).
/// All else is in the middle.
pub const DIFFSERV3: ClassBy = {
    let mut map = [1; 64];
    let low = [1, 8];
    let high = [32, 34, 36, 38, 40, 44, 46, 48, 56];
    let mut i = 0;
    while i < low.len() {
        map[low[i]] = 0;
        i += 1;
    }
    i = 0;
    while i < high.len() {
        map[high[i]] = 2;
        i += 1;
    }
    ClassBy::Dscp(map)
};

/// Three classes by priority, as Linux's `pfifo_fast` has them: its first band is the highest class.
pub const PRIOMAP3: ClassBy = ClassBy::Priority([1, 0, 0, 0, 1, 0, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]);

/// Three classes by DSCP in the ratio 1 : 2 : 4; else as the thesis and fq_codel have it.
impl Default for Config {
    fn default() -> Config {
        Config {
            prios: 3,
            flows: 1024,
            quantum: 1514,
            ratio: 2,
            limit: 10_240,
            memory_limit: 32 << 20,
            drop_batch: 64,
            classifier: Classifier::default(),
            class_by: DIFFSERV3,
            codel: Params::default(),
        }
    }
}

impl Config {
    fn check(&self) -> Result<(Law, Limits), ConfigError> {
        check_flows(self.flows, self.quantum)?;
        self.check_classes()?;
        if self.flows_in_all() > MAX_FLOWS_IN_ALL {
            return Err(ConfigError::out_of_range(
                "flows",
                self.flows,
                format!(
                    "at most {}: {MAX_FLOWS_IN_ALL} in all classes together",
                    MAX_FLOWS_IN_ALL / u32::from(self.prios)
                ),
                "have fewer flows in each class, or fewer classes",
            ));
        }
        let limits = Limits::new(self.limit, self.memory_limit, self.drop_batch)?;
        Ok((Law::new(&self.codel)?, limits))
    }

    fn flows_in_all(&self) -> u32 {
        u32::from(self.prios) * self.flows
    }

    /// The classes, idle, with quanta that grow by the ratio.
    fn classes(&self) -> [Class; MAX_PRIOS as usize] {
        let idle = Class {
            deficit: 0,
            quantum: 0,
            round: Round::new(),
        };
        let mut classes = [idle; MAX_PRIOS as usize];
        let mut quantum = i64::from(self.quantum);
        for class in &mut classes[..usize::from(self.prios)] {
            class.quantum = quantum;
            quantum *= i64::from(self.ratio);
        }
        classes
    }

    fn check_classes(&self) -> Result<(), ConfigError> {
        check_within("prios", self.prios.into(), 1, MAX_PRIOS.into())?;
        let largest = u64::from(self.ratio)
            .checked_pow(u32::from(self.prios) - 1)
            .and_then(|factor| factor.checked_mul(self.quantum.into()));
        let fits = largest.is_some_and(|quantum| quantum <= LARGEST_QUANTUM);
        if self.ratio == 0 || !fits {
            return Err(ConfigError::out_of_range(
                "ratio",
                self.ratio,
                format!("at least 1, and quantum * ratio^(prios - 1) at most {LARGEST_QUANTUM} bytes"),
                "2 is the default; take fewer classes or a smaller ratio",
            ));
        }
        let map: &[u8] = match &self.class_by {
            ClassBy::Dscp(map) => map,
            ClassBy::Priority(map) => map,
        };
        if let Some(class) = map.iter().find(|class| **class >= self.prios) {
            return Err(ConfigError::out_of_range(
                "class_by",
                format!("class {class}"),
                format!("below prios, which is {}", self.prios),
                "give a map that fits, or raise prios",
            ));
        }
        ClassMap::new(1..=self.prios.into())?.check(&self.classifier, Msfc::NAME)
    }
}

/// A class may not hold the line for longer than this many bytes at a turn: 3 s at 100 Mb/s.
const LARGEST_QUANTUM: u64 = 1 << 25;

/// A priority class.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// Bytes that it may still send in this turn.
    deficit: i64,
    /// Bytes that each turn gives it.
    quantum: i64,
    /// Its inner round.
    round: Round,
}

/// The discipline. Make one with [`Msfc::node`].
#[derive(Debug)]
pub struct Msfc {
    /// The flows of class 0, then those of class 1, and so on.
    flows: CodelFlows,
    classes: [Class; MAX_PRIOS as usize],
    /// A bit for each class with flows in its round.
    backlogged: u16,
    /// The class whose turn it is.
    serving: u8,
    law: Law,
    salt: u64,
    config: Config,
}

impl Msfc {
    /// Priority classes of flow queues, ready to use. The seed salts the choice of flows.
    ///
    /// ```
    /// use fairgate::rounds::msfc::{Config, Msfc};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut msfc = Msfc::node(Config::default(), 7)?;
    /// let call = pool.insert(Packet { dscp: 46, ..Packet::of_length(200) }).expect("16 slots");
    /// let _ = msfc.enqueue(call, Time::ZERO, &mut pool);
    /// assert_eq!(msfc.dequeue(Time::from_millis(1), &mut pool), Some(call));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<Msfc>, ConfigError> {
        let (law, limits) = config.check()?;
        Ok(Node::new(Msfc {
            flows: CodelFlows::new(config.flows_in_all(), limits),
            classes: config.classes(),
            backlogged: 0,
            serving: 0,
            law,
            salt: seed,
            config,
        }))
    }

    #[inline]
    fn class_of(&self, id: PacketId, pool: &Pool) -> u8 {
        match self.config.classifier.classify(id, pool) {
            // A class number that the packet itself names may be anything.
            Some(minor) if (1..=u16::from(self.config.prios)).contains(&minor) => minor as u8 - 1,
            _ => self.class_by_field(&pool[id]),
        }
    }

    #[inline]
    fn class_by_field(&self, packet: &Packet) -> u8 {
        match &self.config.class_by {
            ClassBy::Dscp(map) => map[usize::from(packet.dscp & 63)],
            ClassBy::Priority(map) => map[usize::from(packet.priority & 15)],
        }
    }

    /// The class of a packet, and its flow.
    #[inline]
    fn flow_of(&self, id: PacketId, pool: &Pool) -> (u8, u32) {
        let class = self.class_of(id, pool);
        let bucket = pool[id].flow.bucket(self.salt, self.config.flows);
        (class, u32::from(class) * self.config.flows + bucket)
    }

    /// Puts a packet into flow `index`, the flow into the round of its class, the class into the outer one.
    #[inline]
    fn place(&mut self, class: u8, index: u32, id: PacketId, pool: &mut Pool) {
        self.flows.push(index, id, pool);
        let flow = &mut self.flows.all[index as usize];
        if !flow.link.is_in_round() {
            flow.deficit = self.config.quantum.into();
            self.classes[usize::from(class)]
                .round
                .push_back(index, &mut self.flows.all);
            self.backlogged |= 1 << class;
        }
    }

    /// The next class's turn, by number, with a quantum more to send.
    #[inline]
    fn next_class(&mut self) {
        let higher = self.backlogged & (u16::MAX << self.serving << 1);
        let candidates = if higher != 0 { higher } else { self.backlogged };
        self.serving = candidates.trailing_zeros() as u8;
        let class = &mut self.classes[usize::from(self.serving)];
        class.deficit += class.quantum;
    }

    /// The inner round of the class being served, up to a packet or its end.
    #[inline]
    fn serve_class(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let round = &mut self.classes[usize::from(self.serving)].round;
        loop {
            let index = round.front()?;
            let flow = &mut self.flows.all[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                round.rotate(&mut self.flows.all);
                continue;
            }
            if let Some(id) = self.flows.dequeue(index, &self.law, Floor::Flow, now, pool) {
                self.flows.all[index as usize].deficit -= i64::from(pool[id].length);
                return Some(id);
            }
            round.pop_front(&mut self.flows.all);
        }
    }
}

/// The flows of class 0 come first, then those of class 1, and so on.
impl ByFlow for Msfc {
    #[inline]
    fn flows(&self) -> u32 {
        self.flows.count()
    }

    #[inline]
    fn enqueue_flow(&mut self, flow: u32, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        // At most 16 steps, for want of a division.
        let starts_of_others = (1..self.config.prios).map(|class| u32::from(class) * self.config.flows);
        let class = starts_of_others.filter(|&start| start <= flow).count() as u8;
        if flow >= self.flows.count() {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Unclassified;
        }
        self.place(class, flow, id, pool);
        self.flows.keep_limits(flow, pool)
    }
}

impl Algorithm for Msfc {
    const NAME: &'static str = "msfc";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        let (class, flow) = self.flow_of(id, pool);
        self.place(class, flow, id, pool);
        self.flows.keep_limits(flow, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        while self.backlogged != 0 {
            if self.classes[usize::from(self.serving)].deficit <= 0 {
                self.next_class();
                continue;
            }
            let sent = self.serve_class(now, pool);
            let class = &mut self.classes[usize::from(self.serving)];
            if let Some(id) = sent {
                class.deficit -= i64::from(pool[id].length);
                return Some(id);
            }
            class.deficit = 0;
            self.backlogged &= !(1 << self.serving);
        }
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.flows.drain(pool, into);
        self.classes = self.config.classes();
        self.backlogged = 0;
        self.serving = 0;
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let (law, limits) = config.check()?;
        let mut queued = PacketQueue::new();
        let is_same_table = (config.prios, config.flows) == (self.config.prios, self.config.flows);
        self.law = law;
        self.config = config;
        if is_same_table {
            for (class, new) in self.classes.iter_mut().zip(self.config.classes()) {
                class.quantum = new.quantum;
            }
        } else {
            self.drain(pool, &mut queued);
            self.flows = CodelFlows::new(self.config.flows_in_all(), limits);
            while let Some(id) = queued.pop_front(pool) {
                let (class, flow) = self.flow_of(id, pool);
                self.place(class, flow, id, pool);
            }
        }
        self.flows.set_limits(limits, pool);
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Value)) {
        visit(
            "backlogged_classes",
            Value::Integer(self.backlogged.count_ones().into()),
        );
        visit("serving", Value::Integer(self.serving.into()));
        let active: u32 = self.classes.iter().map(|class| class.round.len()).sum();
        visit("active_flows", Value::Integer(active.into()));
        visit("memory_used", Value::Integer(self.flows.totals().memory as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Filter, Match};
    use crate::discipline::Discipline;
    use crate::flow::FlowHash;
    use crate::packet::{ClassId, DropReason};
    use crate::testing::Driver;
    use proptest::prelude::*;

    /// Classes by priority, priority `p` to class `p`.
    fn by_number(prios: u8) -> Config {
        let mut map = [0; 16];
        for (priority, class) in map.iter_mut().enumerate() {
            *class = (priority as u8).min(prios - 1);
        }
        Config {
            prios,
            class_by: ClassBy::Priority(map),
            ..Config::default()
        }
    }

    fn packet(class: u8, flow: u64, length: u32) -> Packet {
        Packet {
            priority: class,
            flow: FlowHash::from_raw(flow.wrapping_mul(0x5851_f42d_4c95_7f2d)),
            ..Packet::of_length(length)
        }
    }

    fn refused(change: impl FnOnce(&mut Config)) -> ConfigError {
        let mut config = Config::default();
        change(&mut config);
        Msfc::node(config, 0).unwrap_err()
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        assert_eq!(refused(|config| config.prios = 0).parameter(), Some("prios"));
        assert_eq!(refused(|config| config.prios = 17).parameter(), Some("prios"));
        assert_eq!(
            refused(|config| config.ratio = u32::MAX).parameter(),
            Some("ratio")
        );
        assert_eq!(refused(|config| config.ratio = 0).parameter(), Some("ratio"));
        assert_eq!(refused(|config| config.ratio = 1000).parameter(), Some("ratio"));
        assert_eq!(refused(|config| config.prios = 2).parameter(), Some("class_by"));
        assert_eq!(refused(|config| config.flows = 0).parameter(), Some("flows"));
        assert_eq!(
            refused(|config| config.flows = 1 << 20).parameter(),
            Some("flows")
        );
        assert_eq!(refused(|config| config.limit = 0).parameter(), Some("limit"));
        let dangling = refused(|config| config.classifier.default = Some(4));
        assert!(matches!(dangling, ConfigError::NoSuchClass { .. }));
    }

    #[test]
    fn the_class_is_what_the_packet_names_then_a_filters_then_the_fields() {
        let mut config = Config::default();
        config.classifier.handle = 0x10;
        config.classifier.filters.push(Filter {
            condition: Match {
                mark: Some(9),
                ..Match::default()
            },
            class: 1,
        });
        let mut pool = Pool::with_capacity(1);
        let msfc = Msfc::node(config, 0).unwrap();
        let mut class_of = |change: fn(&mut Packet)| {
            let mut packet = Packet::of_length(100);
            packet.dscp = 46;
            change(&mut packet);
            let id = pool.insert(packet).unwrap();
            let class = msfc.algorithm().class_of(id, &pool);
            pool.release(id);
            class
        };
        assert_eq!(class_of(|_| {}), 2);
        assert_eq!(class_of(|packet| packet.dscp = 8), 0);
        assert_eq!(class_of(|packet| packet.dscp = 0), 1);
        assert_eq!(class_of(|packet| packet.mark = 9), 0);
        assert_eq!(
            class_of(|packet| (packet.mark, packet.class) = (9, ClassId::new(0x10, 2))),
            1
        );
        assert_eq!(class_of(|packet| packet.class = ClassId::new(0x10, 4)), 2);
    }

    /// The overflow takes the only packet of the class whose turn it is: the same call goes on to the next class.
    #[test]
    fn a_class_that_was_emptied_is_passed_over() {
        let config = Config {
            limit: 4,
            ..by_number(2)
        };
        let mut driver = Driver::new(Msfc::node(config, 0).unwrap());
        let _ = driver.offer(packet(1, 1, 1500), Time::ZERO);
        let _ = driver.offer(packet(1, 1, 1500), Time::ZERO);
        assert_eq!(driver.next(Time::ZERO), Some(0));
        for _ in 0..4 {
            let _ = driver.offer(packet(0, 1, 100), Time::ZERO);
        }
        assert_eq!(driver.returned, [(1, DropReason::LongestFlow)]);
        assert_eq!(driver.next(Time::ZERO), Some(2));
        assert_eq!(driver.root.algorithm().backlogged, 0b01);
    }

    #[test]
    fn other_classes_in_operation_keep_the_packets() {
        let mut driver = Driver::new(Msfc::node(by_number(3), 0).unwrap());
        for class in [0, 1, 2, 2] {
            let _ = driver.offer(packet(class, 5, 500), Time::ZERO);
        }
        let none = Config {
            prios: 0,
            ..by_number(3)
        };
        assert!(
            driver
                .root
                .reconfigure(&none, Time::ZERO, &mut driver.pool)
                .is_err()
        );
        driver.reconfigure(by_number(2), Time::ZERO);
        assert_eq!(driver.root.backlog().packets, 4);
        let shorter = Config {
            limit: 3,
            ..by_number(2)
        };
        driver.reconfigure(shorter, Time::ZERO);
        assert_eq!(driver.returned, [(1, DropReason::Reconfigured)]);
        assert_eq!(driver.drain(Time::ZERO).len(), 3);
    }

    proptest! {
        /// Backlogged classes share 1 : r : r^2 whatever the number of flows in each: after any number of packets two
        /// classes are within a turn and two packets of their shares.
        #[test]
        fn classes_share_by_the_ratio_whatever_the_flows(
            ratio in 1u32..5,
            flows in prop::collection::vec(1u64..40, 2..5),
            lengths in prop::collection::vec(40u32..1515, 1..50),
        ) {
            let prios = flows.len() as u8;
            let config = Config { ratio, ..by_number(prios) };
            let mut driver = Driver::new(Msfc::node(config, 3).unwrap());
            // By cookie.
            let mut offered: Vec<(u8, u32)> = Vec::new();
            let offer = |driver: &mut Driver<Msfc>, offered: &mut Vec<(u8, u32)>, class: u8| {
                let number = offered.len();
                let length = lengths[number % lengths.len()];
                offered.push((class, length));
                let flow = number as u64 % flows[usize::from(class)];
                let _ = driver.offer(packet(class, flow, length), Time::ZERO);
            };
            for class in 0..prios {
                for _ in 0..200 {
                    offer(&mut driver, &mut offered, class);
                }
            }
            let weights: Vec<u64> = (0..prios).map(|class| u64::from(ratio).pow(class.into())).collect();
            let mut sent = vec![0u64; flows.len()];
            for _ in 0..2000 {
                let (class, length) = offered[driver.next(Time::ZERO).unwrap() as usize];
                sent[usize::from(class)] += u64::from(length);
                offer(&mut driver, &mut offered, class);
                // Bytes in units of the class's weight: the same for all.
                let turns: Vec<u64> = sent.iter().zip(&weights).map(|(sent, weight)| sent / weight).collect();
                let spread = turns.iter().max().unwrap() - turns.iter().min().unwrap();
                prop_assert!(spread <= 1514 + 2 * 1514, "{:?} in units of {:?}", turns, weights);
            }
        }
    }
}
