//! Flow queues with CoDel on each (RFC 8290); Linux's `fq_codel`.
//!
//! Packets are spread over flows by hash. Flows take turns by deficit round robin in two lists: a flow that becomes
//! active joins the *new* ones, which go first, with one quantum to send; then it is one of the *old* ones. So whoever
//! sends little, a call or a lookup, passes whoever fills the queue. CoDel keeps each flow's delay down.
//!
//! Invariants: a flow is in one of the lists if packets are queued in it; one that runs empty while new goes through
//! the old list once, lest it keep the others from their turn by coming back each time (RFC 8290, section 4.2).
//!
//! Over the limit, of packets or of memory, the flow with most bytes loses from its head half of them or a batch of
//! packets, and its CoDel counts them. The fattest flow is found without a look at each (`codel_flows.rs`).
//!
//! Decisions fall on the same packets as in Linux 6.1. Deviations: a quantum below 256 is refused, where Linux raises
//! it; a change of `flows` in operation, which Linux refuses, deals the packets out anew. Non-goal: filters; put a
//! classful discipline above.

use crate::aqm::codel::{Law, Params};
use crate::discipline::{Algorithm, Node, Value, Verdict};
use crate::error::ConfigError;
use crate::packet::Packet;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rounds::codel_flows::{CodelFlows, Floor, FlowList, Limits, check_flows, check_quantum};
use crate::time::Time;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most packets queued in all flows together.
    pub limit: u32,
    /// Most memory occupied by queued packets ([`Packet::memory`]), bytes.
    pub memory_limit: u64,
    /// Number of flows, 1 to 65536. More flows, fewer that share a queue by chance.
    pub flows: u32,
    /// Bytes that a flow may send in a turn, 256 to 2^20.
    pub quantum: u32,
    /// Most packets dropped at once when a limit is reached.
    pub drop_batch: u32,
    /// Handle by which a packet may name its flow: class `handle:n` is flow `n - 1`. 0 for none.
    pub handle: u16,
    /// The control law's.
    pub codel: Params,
}

/// As in Linux: 10240 packets, 32 MB, 1024 flows, a quantum of one Ethernet frame, CoDel that marks.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 10_240,
            memory_limit: 32 << 20,
            flows: 1024,
            quantum: 1514,
            drop_batch: 64,
            handle: 0,
            codel: Params {
                ecn: true,
                ..Params::default()
            },
        }
    }
}

impl Config {
    fn check(&self) -> Result<(Law, Limits), ConfigError> {
        check_flows(self.flows)?;
        check_quantum(self.quantum)?;
        let limits = Limits::new(self.limit, self.memory_limit, self.drop_batch)?;
        Ok((Law::new(&self.codel)?, limits))
    }
}

/// The discipline. Make one with [`FqCodel::node`].
#[derive(Debug)]
pub struct FqCodel {
    flows: CodelFlows,
    new_flows: FlowList,
    old_flows: FlowList,
    law: Law,
    salt: u64,
    new_flow_count: u64,
    config: Config,
}

impl FqCodel {
    /// Flow queues, ready to use. The seed salts the choice of flows.
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
    ///     let _ = fq_codel.enqueue(id, Time::ZERO, pool);
    ///     id
    /// };
    /// let (first, _second) = (offer(&mut pool, 1), offer(&mut pool, 1));
    /// let other = offer(&mut pool, 2);
    /// assert_eq!(fq_codel.dequeue(Time::ZERO, &mut pool), Some(first));
    /// assert_eq!(fq_codel.dequeue(Time::ZERO, &mut pool), Some(other));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<FqCodel>, ConfigError> {
        let (law, limits) = config.check()?;
        Ok(Node::new(FqCodel {
            law,
            flows: CodelFlows::new(config.flows, limits),
            new_flows: FlowList::default(),
            old_flows: FlowList::default(),
            salt: seed,
            new_flow_count: 0,
            config,
        }))
    }

    #[inline]
    fn flow_of(&self, packet: &Packet) -> u32 {
        match packet.class.within(self.config.handle) {
            Some(minor) if u32::from(minor) <= self.config.flows => u32::from(minor) - 1,
            _ => packet.flow.bucket(self.salt, self.config.flows),
        }
    }

    /// Puts a packet into its flow and the flow into the rounds. Returns the flow.
    #[inline]
    fn place(&mut self, id: PacketId, pool: &mut Pool) -> u32 {
        let index = self.flow_of(&pool[id]);
        self.flows.push(index, id, pool);
        let flow = &mut self.flows[index];
        if !flow.is_active {
            flow.is_active = true;
            flow.deficit = self.config.quantum.into();
            self.new_flows.push_back(index, &mut self.flows);
            self.new_flow_count += 1;
        }
        index
    }
}

impl Algorithm for FqCodel {
    const NAME: &'static str = "fq_codel";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        let flow = self.place(id, pool);
        self.flows.keep_limits(flow, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new {
                &mut self.new_flows
            } else {
                &mut self.old_flows
            };
            let index = list.front()?;
            if self.flows[index].deficit <= 0 {
                list.pop_front(&self.flows);
                self.flows[index].deficit += i64::from(self.config.quantum);
                self.old_flows.push_back(index, &mut self.flows);
                continue;
            }
            match self.flows.dequeue(index, &self.law, Floor::Total, now, pool) {
                Some(id) => {
                    self.flows[index].deficit -= i64::from(pool[id].length);
                    return Some(id);
                }
                None => {
                    list.pop_front(&self.flows);
                    if is_new && !self.old_flows.is_empty() {
                        self.old_flows.push_back(index, &mut self.flows);
                    } else {
                        self.flows[index].is_active = false;
                    }
                }
            }
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.flows.drain(pool, into);
        self.new_flows = FlowList::default();
        self.old_flows = FlowList::default();
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let (law, limits) = config.check()?;
        self.law = law;
        self.config = config;
        if self.config.flows != self.flows.count() {
            let mut queued = PacketQueue::new();
            self.drain(pool, &mut queued);
            self.flows = CodelFlows::new(self.config.flows, limits);
            while let Some(id) = queued.pop_front(pool) {
                self.place(id, pool);
            }
        }
        self.flows.set_limits(limits, pool);
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Value)) {
        visit("new_flow_count", Value::Integer(self.new_flow_count as i64));
        visit("new_flows_len", Value::Integer(self.new_flows.len().into()));
        visit("old_flows_len", Value::Integer(self.old_flows.len().into()));
        visit("memory_used", Value::Integer(self.flows.totals().memory as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Discipline;
    use crate::packet::{ClassId, DropReason};
    use proptest::prelude::*;

    /// Small enough to count by hand; flow `n` is named `1:n+1`.
    fn small() -> Config {
        Config {
            flows: 8,
            quantum: 1000,
            handle: 1,
            ..Config::default()
        }
    }

    struct Bench {
        fq_codel: Node<FqCodel>,
        pool: Pool,
    }

    impl Bench {
        fn new(config: Config) -> Bench {
            Bench {
                fq_codel: FqCodel::node(config, 1).unwrap(),
                pool: Pool::with_capacity(4096),
            }
        }

        /// Offers a packet of flow `flow`; its cookie is the flow's number.
        fn offer(&mut self, flow: u16, length: u32) -> Verdict {
            let packet = Packet {
                class: ClassId::new(1, flow + 1),
                cookie: flow.into(),
                ..Packet::of_length(length)
            };
            let id = self.pool.insert(packet).unwrap();
            self.fq_codel.enqueue(id, Time::ZERO, &mut self.pool)
        }

        fn next(&mut self) -> Option<u64> {
            let id = self.fq_codel.dequeue(Time::ZERO, &mut self.pool)?;
            Some(self.pool.release(id).cookie)
        }

        fn returned(&mut self) -> Vec<(u64, DropReason)> {
            std::iter::from_fn(|| {
                let (id, reason) = self.pool.take_returned()?;
                Some((self.pool.release(id).cookie, reason))
            })
            .collect()
        }
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let default = Config::default;
        for (parameter, config) in [
            (
                "limit",
                Config {
                    limit: 0,
                    ..default()
                },
            ),
            (
                "memory_limit",
                Config {
                    memory_limit: 0,
                    ..default()
                },
            ),
            (
                "drop_batch",
                Config {
                    drop_batch: 0,
                    ..default()
                },
            ),
            (
                "flows",
                Config {
                    flows: 0,
                    ..default()
                },
            ),
            (
                "flows",
                Config {
                    flows: 65_537,
                    ..default()
                },
            ),
            (
                "quantum",
                Config {
                    quantum: 255,
                    ..default()
                },
            ),
        ] {
            assert_eq!(FqCodel::node(config, 0).unwrap_err().parameter(), Some(parameter));
        }
    }

    #[test]
    fn a_new_flow_passes_those_that_had_their_turn() {
        let mut bench = Bench::new(small());
        for _ in 0..4 {
            let _ = bench.offer(0, 1000);
            let _ = bench.offer(1, 1000);
        }
        assert_eq!(
            (bench.next(), bench.next(), bench.next()),
            (Some(0), Some(1), Some(0))
        );
        let _ = bench.offer(2, 100);
        assert_eq!((bench.next(), bench.next()), (Some(2), Some(1)));
    }

    /// Flow 2 sends a packet whenever its queue is empty. Were it new each time, flow 0 would never be served.
    #[test]
    fn a_sparse_flow_cannot_starve_the_others() {
        let mut bench = Bench::new(small());
        for _ in 0..8 {
            let _ = bench.offer(0, 1000);
        }
        assert_eq!(bench.next(), Some(0));
        let mut order = Vec::new();
        for _ in 0..6 {
            let _ = bench.offer(2, 1000);
            order.push(bench.next().unwrap());
            if order.ends_with(&[0]) {
                // The packet of flow 2 is still there.
                order.push(bench.next().unwrap());
            }
        }
        let share = order.iter().filter(|flow| **flow == 0).count();
        assert!(share >= 3, "{order:?}");
    }

    #[test]
    fn the_fattest_flow_pays_for_an_overflow_and_only_its_sender_is_told() {
        let mut bench = Bench::new(Config { limit: 10, ..small() });
        for _ in 0..9 {
            assert_eq!(bench.offer(5, 300), Verdict::Queued);
        }
        assert_eq!(bench.offer(6, 300), Verdict::Queued);
        assert_eq!(bench.offer(6, 300), Verdict::Queued);
        // Half of 2700 bytes, rounded up to whole packets.
        assert_eq!(bench.returned(), [(5, DropReason::LongestFlow); 5]);
        for _ in 0..4 {
            assert_eq!(bench.offer(5, 300), Verdict::Queued);
        }
        assert_eq!(bench.offer(5, 300), Verdict::Congested);
        assert_eq!(bench.returned().len(), 5);
    }

    #[test]
    fn a_batch_bounds_the_loss() {
        let mut bench = Bench::new(Config {
            limit: 50,
            drop_batch: 3,
            ..small()
        });
        for _ in 0..51 {
            let _ = bench.offer(0, 300);
        }
        assert_eq!(bench.returned().len(), 3);
    }

    #[test]
    fn memory_is_limited_too() {
        let mut bench = Bench::new(Config {
            memory_limit: 1000,
            ..small()
        });
        let _ = bench.offer(0, 600);
        let _ = bench.offer(1, 500);
        assert_eq!(bench.returned(), [(0, DropReason::MemoryLimit)]);
        assert_eq!(
            bench.fq_codel.statistics().dropped_for(DropReason::MemoryLimit),
            1
        );
    }

    #[test]
    fn a_lowered_limit_and_other_flows_lose_no_more_than_they_must() {
        let mut bench = Bench::new(small());
        for flow in [0, 1, 0, 2, 0, 1] {
            let _ = bench.offer(flow, 500);
        }
        let fewer = Config {
            flows: 2,
            limit: 5,
            ..small()
        };
        bench
            .fq_codel
            .reconfigure(&fewer, Time::ZERO, &mut bench.pool)
            .unwrap();
        assert_eq!(bench.returned().len(), 1);
        assert_eq!(bench.fq_codel.backlog().packets, 5);
        assert!(
            bench
                .fq_codel
                .reconfigure(&Config { flows: 0, ..small() }, Time::ZERO, &mut bench.pool)
                .is_err()
        );
        assert_eq!(bench.fq_codel.algorithm().config(), fewer);
        assert_eq!(std::iter::from_fn(|| bench.next()).count(), 5);
        assert!(bench.pool.is_empty());
    }

    proptest! {
        /// At any time two flows that have been backlogged all along differ by at most a quantum and a packet each.
        #[test]
        fn backlogged_flows_share_equally(
            quantum in 256u32..4000,
            lengths in prop::collection::vec(prop::collection::vec(40u32..1515, 40), 2..8),
        ) {
            let mut bench = Bench::new(Config { quantum, ..small() });
            for index in 0..40 {
                for (flow, lengths) in lengths.iter().enumerate() {
                    let _ = bench.offer(flow as u16, lengths[index]);
                }
            }
            let mut sent = vec![0u64; lengths.len()];
            let mut packets = vec![0; lengths.len()];
            while packets.iter().all(|packets| *packets < 40) {
                let flow = bench.next().unwrap() as usize;
                sent[flow] += u64::from(lengths[flow][packets[flow]]);
                packets[flow] += 1;
                let spread = sent.iter().max().unwrap() - sent.iter().min().unwrap();
                prop_assert!(spread <= u64::from(quantum) + 2 * 1514, "{:?}", sent);
            }
        }
    }
}
