//! Flow queues with CoDel on each (RFC 8290); Linux's `fq_codel`.
//!
//! Packets are hashed into flows. Flows take turns by deficit round robin in two lists. A flow that becomes
//! active joins the list of *new* flows. These go first and may send one quantum. Then the flow joins the
//! *old* flows. So a sparse flow, such as a call or a DNS lookup, passes the flows that fill their queues.
//! CoDel keeps each flow's delay low.
//!
//! Invariant: a flow with packets is in one of the lists (`new_and_old.rs`).
//!
//! If a limit of packets or memory is exceeded, the flow with the most bytes loses half of its bytes, but at
//! most a batch of packets. They are dropped from its head, and its CoDel counts them. `codel_flows.rs` finds
//! that flow without a scan of all flows.
//!
//! Drops and marks fall on the same packets as in Linux 6.1. Deviations: a quantum below 256 is rejected;
//! Linux raises it. A change of `flows` in operation, which Linux rejects, enqueues all packets again. A
//! packet that a parent's peek took out no longer counts against the limits.

use alloc::boxed::Box;

use crate::aqm::codel::{ControlLaw, Params, codel_parameters};
use crate::arrival::Needs;
use crate::classify::{Classifier, Filtered};
use crate::discipline::{Algorithm, ByFlow, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool, TableKind};
use crate::registry::{
    About, Children, Description, Family, Longest, Parameter, Placing, Tables, check_ranges,
};
use crate::rounds::codel_flows::{
    CodelFlows, Floor, Limits, drop_batch, flows, limit, memory_limit, quantum,
};
use crate::rounds::new_and_old::NewAndOld;
use crate::time::Time;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog of all flows together, packets.
    pub limit: u32,
    /// The most memory that queued packets occupy ([`Packet::memory`](crate::Packet::memory)), bytes.
    pub memory_limit: u64,
    /// The number of flows, 1 to 2^20. With more flows, fewer share a queue by chance.
    pub flows: u32,
    /// Bytes that a flow may send in a turn, 256 to 2^20.
    pub quantum: u32,
    /// The most packets dropped at once when a limit is reached.
    pub drop_batch: u32,
    /// Classifies packets into flows, counted from 1, before the hash does.
    pub classifier: Classifier,
    /// The parameters of the control law.
    pub codel: Params,
}

/// As in Linux: 10240 packets, 32 MB, 1024 flows, a quantum of one Ethernet frame, CoDel with marks.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 10_240,
            memory_limit: 32 << 20,
            flows: 1024,
            quantum: 1514,
            drop_batch: 64,
            classifier: Classifier::default(),
            codel: Params {
                ecn: true,
                ..Params::default()
            },
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = codel_parameters![|fq_codel| fq_codel.codel;
    limit(|fq_codel, _| &mut fq_codel.limit),
    memory_limit(
        |fq_codel, _| Some(Longest::Memory(fq_codel.memory_limit)),
        |fq_codel, _| &mut fq_codel.memory_limit,
    ),
    flows(
        "The number of flow queues; with more, fewer flows share a queue by chance.",
        |fq_codel, _| &mut fq_codel.flows,
    ),
    quantum(
        "The bytes that a flow may send in a turn; 300 favours small packets on slow links.",
        |fq_codel, _| &mut fq_codel.quantum,
    ),
    drop_batch(|fq_codel, _| &mut fq_codel.drop_batch),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "fq_codel",
        family: Family::Rounds,
        summary: "Flow queues with CoDel on each (RFC 8290): fair shares, low delay, sparse flows first",
        when: "As the first choice for an access line, inside a shaper like tbf.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(FqCodel::node_with(config, parts.seed, parts.tables)?)),
)
.with_placing(Placing::Classifier(
    |fq_codel| &mut fq_codel.classifier,
    |fq_codel| fq_codel.flows,
))
.with_memory(|fq_codel| 65 * u64::from(fq_codel.flows))
.with_check(|config| config.check().map(drop));

impl Config {
    fn check(&self) -> Result<(ControlLaw, Limits), ConfigError> {
        self.classifier.check()?;
        check_ranges(PARAMETERS, &mut self.clone())?;
        self.codel.check_selector()?;
        let limits = Limits::new(self.limit, self.memory_limit, self.drop_batch);
        Ok((ControlLaw::new(&self.codel), limits))
    }
}

/// The discipline. Make one with [`FqCodel::node`].
#[derive(Debug)]
pub struct FqCodel {
    flows: CodelFlows,
    turns: NewAndOld,
    law: ControlLaw,
    salt: u64,
    new_flow_count: u64,
    config: Config,
}

impl FqCodel {
    /// Creates empty flow queues. The seed salts the choice of flows.
    ///
    /// ```
    /// use fairgate::rounds::fq_codel::{Config, FqCodel};
    /// use fairgate::{Discipline, FlowHash, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut fq_codel = FqCodel::node(Config::default(), 7)?;
    /// let mut offer = |pool: &mut Pool, flow| {
    ///     let packet = Packet { flow: FlowHash::from_raw(flow), ..Packet::of_length(1514) };
    ///     let id = pool.insert(packet).expect("16 slots");
    ///     fq_codel.enqueue(id, Time::ZERO, pool);
    ///     id
    /// };
    /// let (first, _second) = (offer(&mut pool, 1), offer(&mut pool, 1));
    /// let other = offer(&mut pool, 2);
    /// assert_eq!(fq_codel.dequeue(Time::ZERO, &mut pool), Some(first));
    /// assert_eq!(fq_codel.dequeue(Time::ZERO, &mut pool), Some(other));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<FqCodel>, ConfigError> {
        FqCodel::node_with(config, seed, Tables::Now)
    }

    /// Creates the same, with the table of flows made now or when the first packet comes.
    ///
    /// # Errors
    /// If parameters are out of range.
    pub fn node_with(config: Config, seed: u64, tables: Tables) -> Result<Node<FqCodel>, ConfigError> {
        let (law, limits) = config.check()?;
        Ok(Node::new(FqCodel {
            law,
            flows: match tables {
                Tables::Now => CodelFlows::new(config.flows, limits),
                Tables::WhenUsed => CodelFlows::without_table(config.flows, limits),
            },
            turns: NewAndOld::new(),
            salt: seed,
            new_flow_count: 0,
            config,
        }))
    }

    /// Puts a packet into flow `index`, and the flow into a list if it is in none.
    #[inline(always)]
    fn insert(&mut self, index: u32, id: PacketId, pool: &mut Pool) {
        let flow = self.flows.push(index, id, pool);
        if !flow.link.is_in_list() {
            flow.deficit = self.config.quantum.into();
            self.turns.join(index, &mut self.flows.all);
            self.new_flow_count += 1;
        }
    }
}

impl ByFlow for FqCodel {
    #[inline]
    fn flows(&self) -> u32 {
        self.flows.count()
    }

    #[inline(always)]
    fn enqueue_flow(&mut self, flow: u32, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        if flow >= self.flows.count() {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Unclassified;
        }
        self.insert(flow, id, pool);
        self.flows.keep_limits(flow, pool)
    }
}

impl Algorithm for FqCodel {
    const NAME: &'static str = "fq_codel";
    type Config = Config;

    #[inline(always)]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Config {
            classifier, flows, ..
        } = &mut self.config;
        match classifier.flow(id, now, pool, self.salt, *flows) {
            Ok(flow) => self.enqueue_flow(flow, id, now, pool),
            Err(Filtered) => Verdict::Unclassified,
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        loop {
            let index = self.turns.front()?;
            let flow = &mut self.flows.all[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                self.turns.end_turn(&mut self.flows.all);
                continue;
            }
            if let Some(id) = self.flows.dequeue(index, &self.law, Floor::Total, now, pool) {
                self.flows.all[index as usize].deficit -= i64::from(pool[id].length);
                if self.flows.is_far() {
                    return self.flows.prefetch_behind(self.turns.front(), id, pool);
                }
                return Some(id);
            }
            self.turns.ran_empty(&mut self.flows.all);
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        let listed = self.turns.take_all(&mut self.flows.all);
        self.flows.drain(&listed, pool, into);
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn tables(&self) -> [Option<TableKind>; 2] {
        [self.flows.table(), None]
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, mut config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let (law, limits) = config.check()?;
        self.law = law;
        config.classifier.take_over(&self.config.classifier);
        self.config = config;
        if self.config.flows != self.flows.count() {
            let mut queued = PacketQueue::new();
            self.drain(pool, &mut queued);
            self.flows = match self.flows.table() {
                None => CodelFlows::new(self.config.flows, limits),
                Some(_) => CodelFlows::without_table(self.config.flows, limits),
            };
            if let Some(kind) = self.flows.table() {
                pool.provide(kind);
            }
            while let Some(id) = queued.pop_front(pool) {
                let Config {
                    classifier, flows, ..
                } = &self.config;
                self.insert(classifier.flow_again(id, pool, self.salt, *flows), id, pool);
            }
        }
        self.flows.set_limits(limits, pool);
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("new_flow_count", Variable::Integer(self.new_flow_count as i64));
        self.turns.visit_variables(visit);
        visit(
            "memory_used",
            Variable::Integer(self.flows.totals().memory as i64),
        );
        visit("maxpacket", Variable::Integer(self.flows.totals().longest.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Reconfigure;
    use crate::packet::DropReason;
    use crate::testing::{Driver, in_class};
    use proptest::prelude::*;

    /// Small enough to count by hand; a packet names flow `n` as class `1:n`.
    fn small() -> Config {
        Config {
            flows: 8,
            quantum: 1000,
            classifier: Classifier {
                handle: 1,
                ..Classifier::default()
            },
            ..Config::default()
        }
    }

    fn fq_codel(config: Config) -> Driver<FqCodel> {
        Driver::new(FqCodel::node(config, 1).unwrap())
    }

    fn offer(driver: &mut Driver<FqCodel>, flow: u32, length: u32) -> Verdict {
        driver.offer(in_class(flow, length), Time::ZERO)
    }

    fn rejected(change: impl FnOnce(&mut Config)) -> &'static str {
        let mut config = Config::default();
        change(&mut config);
        let error = FqCodel::node(config, 0).unwrap_err();
        error.parameter().expect("the error names a parameter")
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
        assert_eq!(rejected(|config| config.limit = 0), "limit");
        assert_eq!(rejected(|config| config.memory_limit = 0), "memory_limit");
        assert_eq!(rejected(|config| config.drop_batch = 0), "drop_batch");
        assert_eq!(rejected(|config| config.flows = (1 << 20) + 1), "flows");
        assert_eq!(rejected(|config| config.quantum = 255), "quantum");
    }

    #[test]
    fn a_new_flow_passes_flows_that_had_their_turn() {
        let mut driver = fq_codel(small());
        for flow in [1, 2, 1, 2, 1, 2] {
            offer(&mut driver, flow, 1000);
        }
        let served: Vec<_> = (0..3).map(|_| driver.next(Time::ZERO).unwrap()).collect();
        assert_eq!(served, [0, 1, 2]);
        offer(&mut driver, 3, 100);
        assert_eq!(driver.drain(Time::ZERO), [6, 3, 4, 5]);
    }

    /// Flow 2 sends a packet whenever it has none queued. If it were new each time, flow 1 would never be
    /// served.
    #[test]
    fn a_sparse_flow_cannot_starve_the_others() {
        let mut driver = fq_codel(small());
        for _ in 0..8 {
            offer(&mut driver, 1, 1000);
        }
        assert_eq!(driver.next(Time::ZERO), Some(0));
        offer(&mut driver, 2, 1000);
        let mut of_flow_1 = 0;
        for _ in 0..8 {
            if driver.next(Time::ZERO).unwrap() < 8 {
                of_flow_1 += 1;
            } else {
                offer(&mut driver, 2, 1000);
            }
        }
        assert_eq!(of_flow_1, 4);
    }

    #[test]
    fn on_overflow_the_longest_flow_loses_packets_and_only_its_sender_sees_congestion() {
        let mut driver = fq_codel(Config { limit: 10, ..small() });
        for flow in [5, 5, 5, 5, 5, 5, 5, 5, 5, 6] {
            assert_eq!(offer(&mut driver, flow, 300), Verdict::Queued);
        }
        assert_eq!(offer(&mut driver, 6, 300), Verdict::Queued);
        // Half of 2700 bytes in whole packets, from the head.
        let first_five: Vec<_> = (0..5).map(|cookie| (cookie, DropReason::LongestFlow)).collect();
        assert_eq!(driver.returned, first_five);
        for _ in 0..4 {
            assert_eq!(offer(&mut driver, 5, 300), Verdict::Queued);
        }
        assert_eq!(offer(&mut driver, 5, 300), Verdict::Congested);
        assert_eq!(driver.returned.len(), 5);
    }

    #[test]
    fn a_batch_bounds_the_drops() {
        let mut driver = fq_codel(Config {
            limit: 50,
            drop_batch: 3,
            ..small()
        });
        for _ in 0..51 {
            offer(&mut driver, 1, 300);
        }
        assert_eq!(driver.returned.len(), 3);
    }

    #[test]
    fn memory_is_also_limited() {
        let mut driver = fq_codel(Config {
            memory_limit: 1000,
            ..small()
        });
        offer(&mut driver, 1, 600);
        offer(&mut driver, 2, 500);
        assert_eq!(driver.returned, [(0, DropReason::MemoryLimit)]);
    }

    #[test]
    fn a_lowered_limit_and_other_flows_drop_no_more_than_necessary() {
        let mut driver = fq_codel(small());
        for flow in [1, 2, 1, 3, 1, 2] {
            offer(&mut driver, flow, 500);
        }
        let fewer = Config {
            flows: 2,
            limit: 5,
            ..small()
        };
        driver.reconfigure(fewer.clone(), Time::ZERO);
        assert_eq!(driver.returned, [(0, DropReason::Reconfigured)]);
        let none = Config { flows: 0, ..small() };
        assert!(
            driver
                .root
                .reconfigure(&none, Time::ZERO, &mut driver.pool)
                .is_err()
        );
        assert_eq!(driver.root.algorithm().config(), fewer);
        assert_eq!(driver.drain(Time::ZERO).len(), 5);
    }

    proptest! {
        /// Two flows that are always backlogged differ by at most a quantum and a packet each.
        #[test]
        fn backlogged_flows_share_equally(
            quantum in 256u32..4000,
            lengths in prop::collection::vec(prop::collection::vec(40u32..1515, 40), 2..8),
        ) {
            let mut driver = fq_codel(Config { quantum, ..small() });
            let flows = lengths.len();
            for index in 0..40 {
                for (flow, lengths) in lengths.iter().enumerate() {
                    offer(&mut driver, flow as u32 + 1, lengths[index]);
                }
            }
            let mut sent = vec![0u64; flows];
            loop {
                let (index, flow) = {
                    let cookie = driver.next(Time::ZERO).unwrap() as usize;
                    (cookie / flows, cookie % flows)
                };
                sent[flow] += u64::from(lengths[flow][index]);
                let spread = sent.iter().max().unwrap() - sent.iter().min().unwrap();
                prop_assert!(spread <= u64::from(quantum) + 2 * 1514, "{:?}", sent);
                if index == 39 {
                    break;
                }
            }
        }
    }
}
