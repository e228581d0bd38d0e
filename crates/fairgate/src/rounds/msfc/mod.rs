//! Multilevel Stochastic Fairness CoDel: priority classes that share the link in a fixed ratio, fair queueing
//! within each class, CoDel on each flow (chapter 2 of the thesis).
//!
//! Enqueue: a packet's class is determined (DSCP, priority or filters), then its flow by hash. The packet is
//! stamped and appended to the flow's queue. Dequeue: the *outer* deficit round robin chooses a class, the
//! *inner* one chooses a flow of it, and CoDel chooses a packet of the flow. Class `p` has quantum `quantum *
//! ratio^p` in the outer round robin, so that backlogged classes share 1 : r : r^2 : ... with any number of
//! flows. The share of an idle class goes to the others in the same ratio.
//!
//! ```text
//!   config          parameters; the choice of a packet's class
//!   outer           the outer round robin; the ratio between flows, `flow_aware`
//!   auto_priority   flows that change their class by their behaviour
//! ```
//!
//! The last two go beyond the thesis, and are off by default. The second includes the first: with the
//! thesis's ratio a class of a few flows gets the share of a class, whatever brought them there.
//!
//! Invariants: a class with packets has its bit in the outer round robin, and a flow with packets is in its
//! class's active list. A flow or class that is found empty when it is to be served leaves its list, and the
//! same call continues with the next one.
//!
//! Both round robins serve while the deficit is above zero, and then subtract what was sent, as in fq_codel.
//! They cannot test whether the next packet fits, as DRR does, because CoDel decides which packet is next.
//! Unlike in fq_codel, CoDel does not drop the last MTU of each flow (not of all flows together), as in RFC
//! 8289. So it never empties a flow. Over the limit the flow with the most bytes loses packets, as in
//! fq_codel; the thesis does not define this.
//!
//! Deviations: classes take turns in the order of their numbers, not of their activation. CoDel is that of
//! RFC 8289, which remembers its count if dropping resumes soon; the thesis's starts at 1 each time.

mod auto_priority;
mod config;
mod outer;
#[cfg(test)]
mod tests;

pub use auto_priority::{AutoPriority, LONGEST};
pub use config::{ClassBy, Config, DESCRIPTION, DIFFSERV3, MAX_PRIOS, PARAMETERS, PRIOMAP3, Settings};

use crate::aqm::codel::ControlLaw;
use crate::arrival::Needs;
use crate::discipline::{Algorithm, ByFlow, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rounds::codel_flows::{CodelFlows, Floor};
use crate::time::Time;

use auto_priority::{Behaviour, Service};
use outer::Classes;

/// The discipline. Make one with [`Msfc::node`].
#[derive(Debug)]
pub struct Msfc {
    /// The flows of class 0, then those of class 1, and so on. If flows change their class, all flows in any
    /// order.
    flows: CodelFlows,
    classes: Classes,
    /// Present if flows change their class.
    behaviour: Option<Behaviour>,
    law: ControlLaw,
    salt: u64,
    config: Config,
}

impl Msfc {
    /// Creates priority classes of empty flow queues. The seed salts the choice of flows.
    ///
    /// ```
    /// use fairgate::rounds::msfc::{Config, Msfc};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut msfc = Msfc::node(Config::default(), 7)?;
    /// let call = pool.insert(Packet { dscp: 46, ..Packet::of_length(200) }).expect("16 slots");
    /// msfc.enqueue(call, Time::ZERO, &mut pool);
    /// assert_eq!(msfc.dequeue(Time::from_millis(1), &mut pool), Some(call));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<Msfc>, ConfigError> {
        let (law, limits) = config.check()?;
        Ok(Node::new(Msfc {
            flows: CodelFlows::new(config.flows_in_all(), limits),
            classes: Classes::new(&config),
            behaviour: behaviour_of(&config),
            law,
            salt: seed,
            config,
        }))
    }

    /// Returns the class of a packet that the classifier sends to class `named`.
    #[inline]
    fn class_of(&self, named: Option<u32>, id: PacketId, pool: &Pool) -> u8 {
        match named {
            // A packet may name a class number that does not exist.
            Some(minor) if (1..=u32::from(self.config.prios)).contains(&minor) => minor as u8 - 1,
            _ => self.config.class_by.class_of(&pool[id]),
        }
    }

    /// The class of a packet that the classifier sends to class `named`, and its flow.
    #[inline]
    fn flow_of(&self, named: Option<u32>, id: PacketId, pool: &Pool) -> (u8, u32) {
        let class = self.class_of(named, id, pool);
        let hash = pool[id].flow;
        if self.behaviour.is_some() {
            return (class, hash.bucket(self.salt, self.flows.count()));
        }
        let bucket = hash.bucket(self.salt, self.config.flows);
        (class, u32::from(class) * self.config.flows + bucket)
    }

    /// Puts a packet into flow `index`, the flow into the list of its class, and the class into the outer
    /// round robin.
    #[inline]
    fn insert(&mut self, marked: u8, index: u32, id: PacketId, now: Time, pool: &mut Pool) {
        if self.flows.is_stale()
            && let Some(behaviour) = &mut self.behaviour
        {
            behaviour.forget();
        }
        let flow = self.flows.push(index, id, pool);
        if !flow.link.is_in_list() {
            flow.deficit = self.config.quantum.into();
            let class = match &mut self.behaviour {
                Some(behaviour) => behaviour.class_of_arrival(index, marked, now),
                None => marked,
            };
            self.classes.activate(class, index, &mut self.flows.all);
        }
    }

    /// Runs the inner round robin of the class that has the turn, until it gives a packet or is empty.
    #[inline]
    fn serve_class(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        loop {
            let round = self.classes.round();
            let index = round.front()?;
            let flow = &mut self.flows.all[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                round.rotate(&mut self.flows.all);
                continue;
            }
            let before = pool.returned_total() + pool.marked_total();
            let sent = self.flows.dequeue(index, &self.law, Floor::Flow, now, pool);
            let length = sent.map(|id| pool[id].length);
            let active = self.classes.active_flows();
            if let Some(length) = length {
                self.flows.all[index as usize].deficit -= i64::from(length);
            } else {
                self.classes.retire_first(&mut self.flows.all);
            }
            if let Some(behaviour) = &mut self.behaviour {
                let drops = pool.returned_total() + pool.marked_total() - before;
                let class = behaviour.served(
                    index,
                    Service {
                        length,
                        drops,
                        active,
                    },
                    now,
                );
                if class != self.classes.number() && sent.is_some() {
                    // The bytes that it sent count for the class that it leaves.
                    self.classes.move_first(class, &mut self.flows.all);
                }
            }
            if sent.is_some() {
                return sent;
            }
        }
    }
}

fn behaviour_of(config: &Config) -> Option<Behaviour> {
    let auto = config.auto_priority.as_ref()?;
    Some(Behaviour::new(auto, config.flows_in_all(), config.prios))
}

/// The flows of class 0 come first, then those of class 1, and so on.
impl ByFlow for Msfc {
    #[inline]
    fn flows(&self) -> u32 {
        self.flows.count()
    }

    #[inline]
    fn enqueue_flow(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        // At most 16 steps, to avoid a division.
        let starts_of_others = (1..self.config.prios).map(|class| u32::from(class) * self.config.flows);
        let class = starts_of_others.filter(|&start| start <= flow).count() as u8;
        if flow >= self.flows.count() {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Unclassified;
        }
        self.insert(class, flow, id, now, pool);
        self.flows.keep_limits(flow, pool)
    }
}

impl Algorithm for Msfc {
    const NAME: &'static str = "msfc";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Ok(named) = self.config.classifier.classify(id, now, pool) else {
            return Verdict::Unclassified;
        };
        let (class, flow) = self.flow_of(named, id, pool);
        self.insert(class, flow, id, now, pool);
        self.flows.keep_limits(flow, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        while self.classes.find_turn() {
            if let Some(id) = self.serve_class(now, pool) {
                self.classes.sent(pool[id].length);
                if self.flows.is_far() {
                    return self.flows.prefetch_behind(self.classes.round().front(), id, pool);
                }
                return Some(id);
            }
            self.classes.emptied();
        }
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        let listed = self.classes.take_all(&mut self.flows.all);
        self.flows.drain(&listed, pool, into);
        self.classes = Classes::new(&self.config);
        if let Some(behaviour) = &mut self.behaviour {
            (behaviour.rises, behaviour.sinks) = (0, 0);
        }
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// Packets are enqueued again if the number of flows changes. Flows keep their classes if they may change
    /// them before and after.
    fn reconfigure(&mut self, mut config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let (law, limits) = config.check()?;
        let table = |config: &Config| (config.prios, config.flows, config.auto_priority.is_some());
        let is_same_table = table(&config) == table(&self.config);
        self.law = law;
        config.classifier.take_over(&self.config.classifier);
        self.config = config;
        if is_same_table {
            self.classes.change(&self.config);
            if let (Some(behaviour), Some(auto)) = (&mut self.behaviour, &self.config.auto_priority) {
                behaviour.change(auto);
            }
        } else {
            let mut queued = PacketQueue::new();
            self.drain(pool, &mut queued);
            self.flows = CodelFlows::new(self.config.flows_in_all(), limits);
            self.behaviour = behaviour_of(&self.config);
            while let Some(id) = queued.pop_front(pool) {
                let named = self.config.classifier.classify_again(id, pool);
                let (class, flow) = self.flow_of(named, id, pool);
                self.insert(class, flow, id, now, pool);
            }
        }
        self.flows.set_limits(limits, pool);
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let integer = |number: u32| Variable::Integer(number.into());
        visit("backlogged_classes", integer(self.classes.backlogged()));
        visit("serving", integer(self.classes.number().into()));
        visit("active_flows", integer(self.classes.active_flows()));
        visit(
            "memory_used",
            Variable::Integer(self.flows.totals().memory as i64),
        );
        if let Some(behaviour) = &self.behaviour {
            visit("rises", Variable::Integer(behaviour.rises as i64));
            visit("sinks", Variable::Integer(behaviour.sinks as i64));
        }
    }
}
