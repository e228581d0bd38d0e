//! Deficit round robin over hashed flows (Shreedhar & Varghese 1996). [`drr_classes`](super::drr_classes) is the same
//! over classes with quanta and inner disciplines of their own; users see one discipline, classful where it has classes.
//!
//! Each packet goes to one of `flows` queues, by its hash or by the flow number that it names. Busy flows stand in a
//! round. The flow at its head sends while its first packet's length does not exceed its deficit; else it is given the
//! quantum and goes to the tail. What is left of the deficit is carried over to its next turn, and forgotten when
//! the flow empties. Unlike plain round robin this is fair in bytes whatever the packets' sizes, at constant cost a
//! packet when the quantum is at least the longest packet.
//!
//! Over the limit the newest packet of the longest flow is dropped ("buffer stealing", McKenney 1990), so that a flow
//! that floods can't keep the others out. A flow that a theft empties leaves the round when its turn comes.
//!
//! Invariants: a flow with packets is in the round; every flow that could be the longest is in the list of its length.
//! A flow becoming active starts with one quantum at the tail, as in Linux.

use crate::bits::{ByLength, Link, Linked, Round};
use crate::classify::Classifier;
use crate::discipline::{Algorithm, ByFlow, Node, Value, Verdict};
use crate::error::{ConfigError, check_within};
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::scheduler::flows::MAX_FLOWS;
use crate::time::Time;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes that a flow may send in a round, 64 to 2^30. At least the longest packet for constant cost.
    pub quantum: u32,
    /// Queues that flows are hashed into, 1 to 2^20.
    pub flows: u32,
    /// Most packets queued in all, 1 to 2^25.
    pub limit: u32,
    /// Places packets in flows, counted from 1, before the hash does.
    pub classifier: Classifier,
}

/// One full Ethernet frame a round, 1024 flows, 10240 packets: as fq_codel.
impl Default for Config {
    fn default() -> Config {
        Config {
            quantum: 1514,
            flows: 1024,
            limit: 10_240,
            classifier: Classifier::default(),
        }
    }
}

impl Config {
    fn check(&self) -> Result<(), ConfigError> {
        check_quantum(self.quantum)?;
        check_within("flows", self.flows, 1, MAX_FLOWS)?;
        check_within("limit", self.limit, 1, 1 << 25)
    }
}

/// Checks a quantum: the number of rounds that a packet may take is its length over the quantum.
pub(super) fn check_quantum(quantum: u32) -> Result<(), ConfigError> {
    check_within("quantum", quantum, 64, 1 << 30)
}

/// What is looked at for each packet: half a cache line.
#[derive(Clone, Debug)]
#[repr(align(32))]
struct Flow {
    queue: PacketQueue,
    /// Bytes that it may still send in this round.
    deficit: u32,
    link: Link,
}

impl Flow {
    const EMPTY: Flow = Flow {
        queue: PacketQueue::new(),
        deficit: 0,
        link: Link::OUTSIDE,
    };
}

impl Linked for Flow {
    #[inline]
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The discipline. Make one with [`Drr::node`].
#[derive(Debug)]
pub struct Drr {
    flows: Vec<Flow>,
    round: Round,
    by_length: ByLength,
    packets: u32,
    salt: u64,
    config: Config,
}

impl Drr {
    /// Empty flows. `seed` salts the hash.
    pub fn node(config: Config, seed: u64) -> Result<Node<Drr>, ConfigError> {
        config.check()?;
        Ok(Node::new(Drr::empty(config, seed)))
    }

    fn empty(config: Config, salt: u64) -> Drr {
        Drr {
            flows: vec![Flow::EMPTY; config.flows as usize],
            round: Round::new(),
            // A flow may be one packet over the limit until the theft.
            by_length: ByLength::new(config.flows, config.limit + 1, config.limit),
            packets: 0,
            salt,
            config,
        }
    }

    #[inline]
    fn flow_of(&self, id: PacketId, pool: &Pool) -> u32 {
        self.config
            .classifier
            .flow(id, pool, self.salt, self.config.flows)
    }

    /// Appends a packet to flow `index`.
    #[inline]
    fn append(&mut self, index: u32, id: PacketId, pool: &mut Pool) {
        let flow = &mut self.flows[index as usize];
        flow.queue.push_back(id, pool);
        self.packets += 1;
        let length = flow.queue.len();
        if !flow.link.is_in_round() {
            flow.deficit = self.config.quantum;
            self.round.push_back(index, &mut self.flows);
        }
        self.by_length.grew(index, length);
    }

    /// Drops the newest packet of the longest flow, and returns the flow.
    #[cold]
    fn steal(&mut self, reason: DropReason, pool: &mut Pool) -> u32 {
        let (victim, length) = self
            .by_length
            .longest()
            .expect("a discipline over its limit isn't empty");
        let newest = self.flows[victim as usize]
            .queue
            .pop_back(pool)
            .expect("the longest flow isn't empty");
        self.packets -= 1;
        self.by_length.shrank(victim, length - 1);
        pool.give_back(newest, reason);
        victim
    }
}

impl ByFlow for Drr {
    #[inline]
    fn flows(&self) -> u32 {
        self.config.flows
    }

    #[inline]
    fn enqueue_flow(&mut self, flow: u32, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        if flow >= self.config.flows {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Unclassified;
        }
        self.append(flow, id, pool);
        if self.packets > self.config.limit && self.steal(DropReason::LongestFlow, pool) == flow {
            return Verdict::Congested;
        }
        Verdict::Queued
    }
}

impl Algorithm for Drr {
    const NAME: &'static str = "drr";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.enqueue_flow(self.flow_of(id, pool), id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        while let Some(index) = self.round.front() {
            let flow = &mut self.flows[index as usize];
            let Some(first) = flow.queue.front() else {
                self.round.pop_front(&mut self.flows);
                continue;
            };
            let length = pool[first].length;
            if length <= flow.deficit {
                flow.deficit -= length;
                flow.queue.pop_front(pool);
                self.packets -= 1;
                let left = flow.queue.len();
                if left == 0 {
                    self.round.pop_front(&mut self.flows);
                }
                self.by_length.shrank(index, left);
                return Some(first);
            }
            flow.deficit += self.config.quantum;
            self.round.rotate(&mut self.flows);
        }
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        while let Some(index) = self.round.pop_front(&mut self.flows) {
            self.flows[index as usize].queue.append_to(into, pool);
        }
        self.by_length.clear();
        self.packets = 0;
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// All packets are placed anew, in the order of their flows.
    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        *self = Drr::empty(config, self.salt);
        while let Some(id) = queued.pop_front(pool) {
            self.append(self.flow_of(id, pool), id, pool);
            if self.packets > self.config.limit {
                self.steal(DropReason::Reconfigured, pool);
            }
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Value)) {
        let longest = self.flows.iter().map(|flow| flow.queue.len()).max().unwrap_or(0);
        visit("active_flows", Value::Integer(self.round.len().into()));
        visit("longest_flow", Value::Integer(longest.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Driver, in_class};

    fn drr(config: Config) -> Driver<Drr> {
        let classifier = Classifier {
            handle: 1,
            ..Classifier::default()
        };
        Driver::new(Drr::node(Config { classifier, ..config }, 1).unwrap())
    }

    fn offer(driver: &mut Driver<Drr>, flow: u16, length: u32) -> Verdict {
        driver.offer(in_class(flow, length), Time::ZERO)
    }

    #[test]
    fn hot_state_of_a_flow_is_less_than_a_cache_line() {
        assert_eq!(std::mem::size_of::<Flow>(), 32);
    }

    #[test]
    fn fair_in_bytes_whatever_the_sizes() {
        let mut driver = drr(Config {
            quantum: 1000,
            ..Config::default()
        });
        for _ in 0..2 {
            let _ = offer(&mut driver, 1, 1000);
        }
        for _ in 0..4 {
            let _ = offer(&mut driver, 2, 500);
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 2, 3, 1, 4, 5]);
    }

    #[test]
    fn a_flow_that_empties_forgets_its_deficit() {
        let mut driver = drr(Config {
            quantum: 1000,
            ..Config::default()
        });
        let _ = offer(&mut driver, 1, 100);
        assert_eq!(driver.drain(Time::ZERO), [0]);
        for _ in 0..2 {
            let _ = offer(&mut driver, 1, 600);
            let _ = offer(&mut driver, 2, 600);
        }
        // With the 900 bytes left over flow 1 would send both of its packets in one turn.
        assert_eq!(driver.drain(Time::ZERO), [1, 2, 3, 4]);
    }

    #[test]
    fn over_the_limit_the_longest_flow_pays() {
        let mut driver = drr(Config {
            limit: 3,
            ..Config::default()
        });
        for _ in 0..3 {
            assert_eq!(offer(&mut driver, 1, 100), Verdict::Queued);
        }
        assert_eq!(offer(&mut driver, 2, 100), Verdict::Queued);
        assert_eq!(driver.returned, [(2, DropReason::LongestFlow)]);
        assert_eq!(offer(&mut driver, 1, 100), Verdict::Congested);
        assert_eq!(driver.returned, [(4, DropReason::LongestFlow)]);
        assert_eq!(driver.drain(Time::ZERO), [0, 1, 3]);
    }

    #[test]
    fn a_flow_robbed_of_its_last_packet_is_served_again() {
        let mut driver = drr(Config {
            limit: 1,
            ..Config::default()
        });
        let _ = offer(&mut driver, 1, 100);
        // Flow 2 came to length 1 last: it is the one robbed, of the packet just offered.
        assert_eq!(offer(&mut driver, 2, 100), Verdict::Congested);
        assert_eq!(driver.drain(Time::ZERO), [0]);
        let _ = offer(&mut driver, 2, 100);
        assert_eq!(driver.drain(Time::ZERO), [2]);
    }

    #[test]
    fn a_change_keeps_packets_in_the_order_of_their_flows() {
        let mut driver = drr(Config::default());
        for flow in [1, 1, 1, 2] {
            let _ = offer(&mut driver, flow, 1500);
        }
        let mut config = driver.root.algorithm().config();
        (config.limit, config.flows) = (3, 2);
        driver.reconfigure(config, Time::ZERO);
        assert_eq!(driver.returned, [(2, DropReason::Reconfigured)]);
        assert_eq!(driver.drain(Time::ZERO), [0, 3, 1]);
    }

    #[test]
    fn ranges_are_checked() {
        let refused = |config: Config| Drr::node(config, 0).unwrap_err().parameter();
        let default = Config::default;
        assert_eq!(
            refused(Config {
                quantum: 63,
                ..default()
            }),
            Some("quantum")
        );
        assert_eq!(
            refused(Config {
                flows: 0,
                ..default()
            }),
            Some("flows")
        );
        assert_eq!(
            refused(Config {
                flows: MAX_FLOWS + 1,
                ..default()
            }),
            Some("flows")
        );
        assert_eq!(
            refused(Config {
                limit: 0,
                ..default()
            }),
            Some("limit")
        );
    }
}
