//! Flow queues with PIE on each; Linux's `fq_pie`.
//!
//! Packets are hashed into flows. Flows take turns as in `fq_codel`: new flows first, with a quantum each,
//! then the old flows by deficit round robin. PIE (`aqm/pie/control_law.rs`) drops or marks a packet on
//! arrival, by the delay of its flow.
//!
//! Invariant: a flow with packets is in one of the lists (`new_and_old.rs`).
//!
//! Over a limit of packets or memory the arriving packet is dropped. A flow's probability is updated when the
//! flow is used; Linux visits all flows every `tupdate`.
//!
//! Deviations: Linux counts packets over the memory limit but queues them. A change of `flows` in operation,
//! which Linux rejects, enqueues all packets again. A packet that a parent's peek took out no longer counts
//! against the limits. The deviations of `pie` apply. Non-goal: drops from the longest flow; PIE should make
//! them unnecessary.

use alloc::boxed::Box;

use crate::aqm::pie::{ControlLaw, Params, State, Updates, pie_parameters};
use crate::arrival::Needs;
use crate::classify::{Classifier, Filtered};
use crate::discipline::{Algorithm, ByFlow, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::{About, Children, Description, Family, Longest, Parameter, Placing, check_ranges};
use crate::rounds::codel_flows::{flows, limit, memory_limit, quantum};
use crate::rounds::new_and_old::NewAndOld;
use crate::structures::{Linked, ListLink, Random};
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
    /// Classifies packets into flows, counted from 1, before the hash does.
    pub classifier: Classifier,
    /// The parameters of the control law.
    pub pie: Params,
}

/// As in Linux: 10240 packets, 32 MB, 1024 flows, a quantum of one Ethernet frame.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 10_240,
            memory_limit: 32 << 20,
            flows: 1024,
            quantum: 1514,
            classifier: Classifier::default(),
            pie: Params::default(),
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = pie_parameters![|fq_pie| fq_pie.pie;
    limit(|fq_pie, _| &mut fq_pie.limit),
    memory_limit(
        |fq_pie, _| Some(Longest::Memory(fq_pie.memory_limit)),
        |fq_pie, _| &mut fq_pie.memory_limit,
    ),
    flows(
        "The number of flow queues; with more, fewer flows share a queue by chance.",
        |fq_pie, _| &mut fq_pie.flows,
    ),
    quantum(
        "The bytes that a flow may send in a turn.",
        |fq_pie, _| &mut fq_pie.quantum,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "fq_pie",
        family: Family::Rounds,
        summary: "Flow queues with PIE on each: fair shares, a delay held on average, drops on arrival",
        when: "As fq_codel, if packets must be dropped on arrival; to compare the two.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(FqPie::node(config, parts.seed)?)),
)
.with_placing(Placing::Classifier(
    |fq_pie| &mut fq_pie.classifier,
    |fq_pie| fq_pie.flows,
))
.with_memory(|fq_pie| 136 * u64::from(fq_pie.flows))
.with_check(|config| config.check().map(drop));

impl Config {
    fn check(&self) -> Result<ControlLaw, ConfigError> {
        self.classifier.check()?;
        check_ranges(PARAMETERS, &mut self.clone())?;
        Ok(ControlLaw::new(&self.pie))
    }
}

/// One flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    queue: PacketQueue,
    /// The bytes that it may still send in this round. It is negative after a packet longer than the deficit.
    deficit: i64,
    /// Its link in a list. A flow that became empty stays in the list until its turn comes.
    link: ListLink,
    pie: State,
}

impl Linked for Flow {
    #[inline]
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// The discipline. Make one with [`FqPie::node`].
#[derive(Debug)]
pub struct FqPie {
    flows: Box<[Flow]>,
    turns: NewAndOld,
    packets: u32,
    memory: u64,
    new_flow_count: u64,
    updates: Updates,
    law: ControlLaw,
    salt: u64,
    random: Random,
    /// Whether flows have state from before the last drain, and are reset before they are used again. To
    /// reset a million flows takes tens of milliseconds, and a table whose place another one takes does not
    /// need it.
    is_stale: bool,
    config: Config,
}

fn idle_flow(pie: State) -> Flow {
    Flow {
        queue: PacketQueue::new(),
        deficit: 0,
        link: ListLink::OUTSIDE,
        pie,
    }
}

impl FqPie {
    /// Creates empty flow queues. The seed salts the choice of flows, and is for the random drops.
    ///
    /// ```
    /// use fairgate::rounds::fq_pie::{Config, FqPie};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut fq_pie = FqPie::node(Config::default(), 7)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// fq_pie.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(fq_pie.dequeue(Time::from_millis(1), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<FqPie>, ConfigError> {
        let law = config.check()?;
        Ok(Node::new(FqPie {
            flows: vec![idle_flow(law.idle(0)); config.flows as usize].into(),
            turns: NewAndOld::new(),
            packets: 0,
            memory: 0,
            new_flow_count: 0,
            updates: Updates::every(config.pie.tupdate),
            law,
            salt: seed,
            random: Random::new(seed),
            is_stale: false,
            config,
        }))
    }

    #[cold]
    #[inline(never)]
    fn reset(&mut self) {
        self.flows.fill(idle_flow(self.law.idle(self.updates.so_far())));
        self.is_stale = false;
    }

    /// Puts a packet into flow `index`, and the flow into a list if it is in none.
    #[inline]
    fn insert(&mut self, index: u32, id: PacketId, pool: &mut Pool) {
        self.packets += 1;
        self.memory += u64::from(pool[id].memory);
        let flow = &mut self.flows[index as usize];
        flow.queue.push_back(id, pool);
        if !flow.link.is_in_list() {
            flow.deficit = self.config.quantum.into();
            self.turns.join(index, &mut self.flows);
            self.new_flow_count += 1;
        }
    }

    /// Takes the next packet out and updates the PIE state of its flow.
    fn take(&mut self, index: u32, now: Time, pool: &Pool) -> Option<PacketId> {
        let due = self.updates.due(now);
        let flow = &mut self.flows[index as usize];
        self.law.catch_up(&mut flow.pie, due, flow.queue.bytes());
        let id = flow.queue.pop_front(pool)?;
        let packet = &pool[id];
        self.packets -= 1;
        self.memory -= u64::from(packet.memory);
        flow.deficit -= i64::from(packet.length);
        self.law
            .departed(&mut flow.pie, id, flow.queue.bytes(), now, pool);
        Some(id)
    }
}

impl ByFlow for FqPie {
    #[inline]
    fn flows(&self) -> u32 {
        self.config.flows
    }

    #[inline]
    fn enqueue_flow(&mut self, index: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if index >= self.config.flows {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Unclassified;
        }
        if self.is_stale {
            self.reset();
        }
        let due = self.updates.due(now);
        let flow = &mut self.flows[index as usize];
        let backlog = flow.queue.bytes();
        self.law.catch_up(&mut flow.pie, due, backlog);
        let reason = if self.packets >= self.config.limit {
            DropReason::QueueLimit
        } else if self.memory + u64::from(pool[id].memory) > self.config.memory_limit {
            DropReason::MemoryLimit
        } else if !self
            .law
            .admits(&mut flow.pie, backlog, id, &mut self.random, pool)
        {
            DropReason::Aqm
        } else {
            self.insert(index, id, pool);
            return Verdict::Queued;
        };
        flow.pie.dropped();
        pool.give_back(id, reason);
        Verdict::Congested
    }
}

impl Algorithm for FqPie {
    const NAME: &'static str = "fq_pie";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Config {
            classifier, flows, ..
        } = &mut self.config;
        match classifier.flow(id, now, pool, self.salt, *flows) {
            Ok(flow) => self.enqueue_flow(flow, id, now, pool),
            Err(Filtered) => Verdict::Unclassified,
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        loop {
            let index = self.turns.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                self.turns.end_turn(&mut self.flows);
            } else if flow.queue.is_empty() {
                self.turns.ran_empty(&mut self.flows);
            } else {
                return self.take(index, now, pool);
            }
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for index in self.turns.take_all(&mut self.flows) {
            self.flows[index as usize].queue.append_to(into, pool);
        }
        self.is_stale = true;
        self.packets = 0;
        self.memory = 0;
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, mut config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let law = config.check()?;
        if self.is_stale {
            self.reset();
        }
        // Makes the updates that were due under the old control law.
        let due = self.updates.due(now);
        for flow in &mut self.flows {
            self.law.catch_up(&mut flow.pie, due, flow.queue.bytes());
            law.take_over(&mut flow.pie);
        }
        self.law = law;
        if config.pie.tupdate != self.config.pie.tupdate {
            self.updates.set_period(config.pie.tupdate);
        }
        config.classifier.take_over(&self.config.classifier);
        let old = core::mem::replace(&mut self.config, config);
        if self.config.flows != old.flows {
            let mut queued = PacketQueue::new();
            self.drain(pool, &mut queued);
            let idle = idle_flow(self.law.idle(self.updates.so_far()));
            self.flows = vec![idle; self.config.flows as usize].into();
            self.is_stale = false;
            while let Some(id) = queued.pop_front(pool) {
                let Config {
                    classifier, flows, ..
                } = &self.config;
                self.insert(classifier.flow_again(id, pool, self.salt, *flows), id, pool);
            }
        }
        while self.packets > self.config.limit || self.memory > self.config.memory_limit {
            let next = self
                .dequeue(now, pool)
                .expect("a discipline over its limit is not empty");
            pool.give_back(next, DropReason::Reconfigured);
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("new_flow_count", Variable::Integer(self.new_flow_count as i64));
        self.turns.visit_variables(visit);
        visit("memory_usage", Variable::Integer(self.memory as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Discipline, Reconfigure};
    use crate::packet::Packet;
    use crate::testing::{Driver, in_class};

    /// A packet names flow `n` as class `1:n`.
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

    fn fq_pie(config: Config) -> Driver<FqPie> {
        Driver::new(FqPie::node(config, 1).unwrap())
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
        let rejected = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            FqPie::node(config, 0).unwrap_err().parameter()
        };
        assert_eq!(rejected(|config| config.limit = 0), Some("limit"));
        assert_eq!(rejected(|config| config.memory_limit = 0), Some("memory_limit"));
        assert_eq!(rejected(|config| config.flows = (1 << 20) + 1), Some("flows"));
        assert_eq!(rejected(|config| config.quantum = 255), Some("quantum"));
        assert_eq!(rejected(|config| config.pie.alpha = 33), Some("alpha"));
    }

    #[test]
    fn a_new_flow_passes_flows_that_had_their_turn() {
        let mut driver = fq_pie(small());
        for flow in [1, 2, 1, 2, 1, 2] {
            driver.offer(in_class(flow, 1000), Time::ZERO);
        }
        let served: Vec<_> = (0..3).map(|_| driver.next(Time::ZERO).unwrap()).collect();
        assert_eq!(served, [0, 1, 2]);
        driver.offer(in_class(3, 100), Time::ZERO);
        assert_eq!(driver.drain(Time::ZERO), [6, 3, 4, 5]);
    }

    /// Two flows at the same time, one with four fifths of the link's rate and one with twice that rate: only
    /// packets of the second are dropped.
    #[test]
    fn only_the_flow_that_fills_its_queue_loses_packets() {
        let mut driver = fq_pie(small());
        let (mut offered, mut dropped_of_1, mut dropped_of_2) = (0u64, 0, 0);
        for millis in 0..20_000u64 {
            let now = Time::from_millis(millis);
            let mut offer = |driver: &mut Driver<FqPie>, flow| {
                offered += 1;
                driver.offer(in_class(flow, 1000), now) == Verdict::Congested
            };
            if millis % 5 < 2 {
                dropped_of_1 += u32::from(offer(&mut driver, 1));
            }
            for _ in 0..2 {
                dropped_of_2 += u32::from(offer(&mut driver, 2));
            }
            driver.next(now);
        }
        assert_eq!(dropped_of_1, 0);
        // Of 40,000 packets the link can take at most 12,000.
        assert!(dropped_of_2 > 26_000, "{dropped_of_2} of {offered}");
    }

    #[test]
    fn over_a_limit_the_arriving_packet_is_dropped() {
        let mut driver = fq_pie(Config { limit: 2, ..small() });
        for flow in [1, 2, 3] {
            driver.offer(in_class(flow, 300), Time::ZERO);
        }
        assert_eq!(driver.returned, [(2, DropReason::QueueLimit)]);
        let mut driver = fq_pie(Config {
            memory_limit: 700,
            ..small()
        });
        for flow in [1, 2, 3] {
            driver.offer(in_class(flow, 300), Time::ZERO);
        }
        assert_eq!(driver.returned, [(2, DropReason::MemoryLimit)]);
    }

    #[test]
    fn a_lowered_limit_and_other_flows_drop_no_more_than_necessary() {
        let mut driver = fq_pie(small());
        for flow in [1, 2, 1, 3, 1, 2] {
            driver.offer(in_class(flow, 500), Time::ZERO);
        }
        let fewer = Config {
            flows: 2,
            limit: 5,
            ..small()
        };
        driver.reconfigure(fewer.clone(), Time::ZERO);
        assert_eq!(driver.returned.len(), 1);
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

    /// A packet for a flow that does not exist is returned to the driver.
    #[test]
    fn a_packet_for_a_missing_flow_is_rejected() {
        let mut pool = Pool::with_capacity(1);
        let mut fq_pie = FqPie::node(small(), 1).unwrap();
        let id = pool.insert(Packet::of_length(1)).unwrap();
        assert_eq!(
            fq_pie.enqueue_flow(8, id, Time::ZERO, &mut pool),
            Verdict::Unclassified
        );
        assert_eq!(fq_pie.backlog().packets, 0);
    }
}
