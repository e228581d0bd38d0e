//! The controller of the QFQ paper's Figure 8. It drives a scheduler with controlled sequences of requests.
//!
//! ```text
//!              fill: enqueue packets of the flow with the shortest backlog ...   until `most` are queued
//!   controller ------------------------------------------------------> scheduler
//!              <------------------------------------------------------
//!              empty: dequeue, and release packets to the pool                   until `least` are left
//! ```
//!
//! There is one thread. A cycle is a phase that only enqueues and a phase that only dequeues. Packets are
//! descriptors from the pool's last-in first-out list of free slots. The scheduler gets the flow of each
//! packet and is called through a function pointer. Nothing is hashed, unless the mode asks for it.
//!
//! Time advances while packets leave, by a nanosecond a byte. For schedulers that use the clock this is a
//! link of 8 Gbit/s that is never idle. Every packet must be dequeued in the same cycle or in a later one. If
//! a scheduler drops or withholds a packet, that is an error.
//!
//! The controller doesn't use the library's driver, because its own cost is part of every measurement and
//! must be small.

use fairgate::{DropReason, Pool, Time, Verdict};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use thiserror::Error;

use crate::bench::backlogs::Backlogs;
use crate::bench::subject::{Source, Subject};
use crate::bench::workload::{DRAWN, Load, Order, Sizes, below};

/// The workload that the controller offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The number of flows, 1 to 2^20.
    pub flows: u32,
    /// The number of queued packets.
    pub load: Load,
    /// The flow of the next packet.
    pub order: Order,
    /// The lengths of the packets.
    pub sizes: Sizes,
}

/// A scheduler does not do the work that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WorkError {
    /// The scheduler holds packets but returns none.
    #[error("it returned no packet although {queued} were queued")]
    Withheld {
        /// The number of packets that were enqueued and not dequeued.
        queued: u32,
    },
    /// The scheduler dropped a packet.
    #[error(
        "it dropped a packet ({}), so its times are not those of the whole workload",
        .reason.map_or("no reason given", DropReason::name)
    )]
    Dropped {
        /// The reason; `None` if the scheduler gave none.
        reason: Option<DropReason>,
    },
    /// The pool still has packets at the end, or a flow's packets don't add up.
    #[error("its packets don't add up: {left} are left after all {queued} were dequeued")]
    Lost {
        /// The number of packets in the pool at the end.
        left: u32,
        /// The number of packets that were queued before.
        queued: u32,
    },
}

/// The controller and its scheduler.
#[derive(Debug)]
pub struct Controller<S, G> {
    subject: S,
    source: G,
    pool: Pool,
    backlogs: Backlogs,
    workload: Workload,
    lengths: Box<[u16; DRAWN]>,
    /// The number of packets offered since the start. It selects the next length.
    offered: u64,
    random: SplitMix64,
    in_turn: u32,
    queued: u32,
    least: u32,
    most: u32,
    now: Time,
}

impl<S: Subject, G: Source> Controller<S, G> {
    /// Creates a controller with nothing queued. `seed` determines lengths and random flows.
    pub fn new(subject: S, source: G, workload: Workload, seed: u64) -> Controller<S, G> {
        let (least, most) = workload.load.bounds(workload.flows);
        Controller {
            subject,
            source,
            pool: Pool::without_headers(most),
            backlogs: Backlogs::new(workload.flows),
            workload,
            lengths: workload.sizes.draw(seed),
            offered: 0,
            random: SplitMix64::seed_from_u64(seed),
            in_turn: 0,
            queued: 0,
            least,
            most,
            now: Time::from_secs(1),
        }
    }

    /// Runs one cycle. Returns the number of packets that were dequeued.
    pub fn cycle(&mut self) -> Result<u64, WorkError> {
        match self.workload.order {
            Order::Shortest => self.fill(|this| this.backlogs.shortest())?,
            Order::Random => self.fill(|this| below(&mut this.random, this.workload.flows))?,
            Order::RoundRobin => self.fill(Self::next_in_turn)?,
        }
        let left = self.queued - self.least;
        self.empty(self.least)?;
        Ok(left.into())
    }

    /// Dequeues all packets, and checks that none was lost.
    pub fn finish(mut self) -> Result<(), WorkError> {
        let queued = self.queued;
        self.empty(0)?;
        let more = self.subject.dequeue(self.now, &mut self.pool).is_some();
        let uneven = (0..self.workload.flows).any(|flow| self.backlogs.packets(flow) > 0);
        match self.pool.len() {
            0 if !more && !uneven => Ok(()),
            left => Err(WorkError::Lost { left, queued }),
        }
    }

    #[inline]
    fn fill(&mut self, next_flow: impl Fn(&mut Self) -> u32) -> Result<(), WorkError> {
        while self.queued < self.most {
            let flow = next_flow(self);
            let length = self.lengths[self.offered as usize % DRAWN];
            self.offered += 1;
            let packet = self.source.packet(flow, length.into());
            let id = self
                .pool
                .insert(packet)
                .expect("the pool has a slot for each packet that may be queued");
            self.backlogs.grew(flow);
            self.queued += 1;
            if self.subject.enqueue(flow, id, self.now, &mut self.pool) != Verdict::Queued {
                return Err(self.dropped());
            }
        }
        Ok(())
    }

    #[inline]
    fn empty(&mut self, least: u32) -> Result<(), WorkError> {
        while self.queued > least {
            let Some(id) = self.subject.dequeue(self.now, &mut self.pool) else {
                return Err(match self.pool.returned_total() {
                    0 => WorkError::Withheld { queued: self.queued },
                    _ => self.dropped(),
                });
            };
            let packet = self.pool.release(id);
            self.backlogs.shrank(packet.cookie as u32);
            self.queued -= 1;
            self.now += u64::from(packet.length);
        }
        if self.pool.returned_total() > 0 {
            return Err(self.dropped());
        }
        Ok(())
    }

    #[inline]
    fn next_in_turn(&mut self) -> u32 {
        let flow = self.in_turn;
        self.in_turn = if flow + 1 == self.workload.flows {
            0
        } else {
            flow + 1
        };
        flow
    }

    #[cold]
    fn dropped(&mut self) -> WorkError {
        WorkError::Dropped {
            reason: self.pool.take_returned().map(|(_, reason)| reason),
        }
    }
}

/// A controller of any scheduler and any source of packets.
pub trait Drive {
    /// Runs whole cycles until at least `pairs` packets were enqueued and dequeued. Returns their number.
    fn run(&mut self, pairs: u64) -> Result<u64, WorkError>;

    /// Dequeues all packets, and checks that none was lost.
    fn finish(self: Box<Self>) -> Result<(), WorkError>;
}

impl<S: Subject, G: Source> Drive for Controller<S, G> {
    fn run(&mut self, pairs: u64) -> Result<u64, WorkError> {
        let mut done = 0;
        while done < pairs {
            done += self.cycle()?;
        }
        Ok(done)
    }

    fn finish(self: Box<Self>) -> Result<(), WorkError> {
        Controller::finish(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::subject::{Baseline, Numbered};
    use fairgate::{Packet, PacketId, PacketQueue};
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// The calls that the controller made.
    #[derive(Debug, Default)]
    struct Log {
        /// For each arrival, the packets of each flow before it, and its flow.
        arrivals: Vec<(Vec<u32>, u32)>,
        backlog: Vec<u32>,
        /// The number of queued packets at the end of each phase.
        turns: Vec<u32>,
        was_filling: bool,
    }

    /// A fifo that records its calls.
    struct Witness {
        queue: PacketQueue,
        log: Rc<RefCell<Log>>,
        /// The number of a packet that it drops.
        loses: Option<u64>,
        count: u64,
    }

    impl Witness {
        fn of(flows: u32, loses: Option<u64>) -> (Witness, Rc<RefCell<Log>>) {
            let log = Rc::new(RefCell::new(Log {
                backlog: vec![0; flows as usize],
                was_filling: true,
                ..Log::default()
            }));
            let witness = Witness {
                queue: PacketQueue::new(),
                log: log.clone(),
                loses,
                count: 0,
            };
            (witness, log)
        }
    }

    impl Subject for Witness {
        fn enqueue(&mut self, flow: u32, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
            let mut log = self.log.borrow_mut();
            if !log.was_filling {
                log.turns.push(self.queue.len());
                log.was_filling = true;
            }
            let before = log.backlog.clone();
            log.arrivals.push((before, flow));
            log.backlog[flow as usize] += 1;
            self.count += 1;
            if self.loses == Some(self.count) {
                pool.give_back(id, DropReason::QueueLimit);
                return Verdict::Dropped;
            }
            self.queue.push_back(id, pool);
            Verdict::Queued
        }

        fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
            let mut log = self.log.borrow_mut();
            if log.was_filling {
                log.turns.push(self.queue.len());
                log.was_filling = false;
            }
            let id = self.queue.pop_front(pool)?;
            log.backlog[pool[id].cookie as usize] -= 1;
            Some(id)
        }
    }

    fn workload(flows: u32, load: Load, order: Order) -> Workload {
        Workload {
            flows,
            load,
            order,
            sizes: Sizes::Uniform(64, 1500),
        }
    }

    proptest! {
        #[test]
        fn phases_end_at_the_bounds_and_the_shortest_flow_is_next(
            flows in 1u32..20,
            load in prop::sample::select(&Load::ALL[..]),
            order in prop::sample::select(vec![Order::Shortest, Order::Random, Order::RoundRobin]),
        ) {
            let (witness, log) = Witness::of(flows, None);
            let mut controller = Controller::new(witness, Numbered, workload(flows, load, order), 1);
            let (least, most) = load.bounds(flows);
            for cycle in 0..4 {
                // The first cycle starts empty, and all cycles end at the lower bound.
                prop_assert_eq!(controller.cycle().unwrap(), u64::from(most - least), "cycle {}", cycle);
            }
            controller.finish().unwrap();
            let log = log.borrow();
            // The last phase ends at 0.
            for turns in log.turns.chunks(2) {
                prop_assert_eq!(turns[0], most);
                prop_assert!(turns.get(1).is_none_or(|&end| end == least));
            }
            for (index, (backlog, flow)) in log.arrivals.iter().enumerate() {
                let own = backlog[*flow as usize];
                match order {
                    Order::Shortest => {
                        prop_assert_eq!(Some(&own), backlog.iter().min());
                        prop_assert!(own < most / flows, "no flow has more packets than the greatest mean");
                    }
                    Order::RoundRobin => prop_assert_eq!(*flow, index as u32 % flows),
                    Order::Random => prop_assert!(*flow < flows),
                }
            }
        }
    }

    #[test]
    fn random_order_reaches_every_flow_about_equally() {
        let (witness, log) = Witness::of(10, None);
        let mut controller = Controller::new(witness, Numbered, workload(10, Load::Large, Order::Random), 3);
        for _ in 0..10 {
            controller.cycle().unwrap();
        }
        let mut counts = [0; 10];
        for (_, flow) in &log.borrow().arrivals {
            counts[*flow as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (200..400).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_scheduler_that_drops_is_reported() {
        let (witness, _) = Witness::of(2, Some(50));
        let mut controller = Controller::new(witness, Numbered, workload(2, Load::Large, Order::Shortest), 1);
        let error = controller.cycle().unwrap_err();
        let reason = Some(DropReason::QueueLimit);
        assert_eq!(error, WorkError::Dropped { reason });
        assert!(error.to_string().contains("queue_limit"), "{error}");
    }

    /// Returns no packet. Or, with `extra`, returns one more packet than was enqueued.
    struct Odd {
        extra: bool,
        inner: Baseline,
    }

    impl Subject for Odd {
        fn enqueue(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
            self.inner.enqueue(flow, id, now, pool)
        }

        fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
            if !self.extra {
                return None;
            }
            self.inner
                .dequeue(now, pool)
                .or_else(|| pool.insert(Packet::of_length(1)).ok())
        }
    }

    #[test]
    fn a_scheduler_that_withholds_or_invents_packets_is_reported() {
        let odd = |extra| Odd {
            extra,
            inner: Baseline::default(),
        };
        let workload = workload(3, Load::Small, Order::Shortest);
        let mut withholds = Controller::new(odd(false), Numbered, workload, 1);
        assert_eq!(withholds.cycle(), Err(WorkError::Withheld { queued: 3 }));
        let mut invents = Controller::new(odd(true), Numbered, workload, 1);
        invents.cycle().unwrap();
        assert_eq!(invents.finish(), Err(WorkError::Lost { left: 1, queued: 0 }));
    }

    #[test]
    fn time_advances_by_a_nanosecond_a_byte() {
        let constant = Workload {
            sizes: Sizes::Constant(1000),
            ..workload(4, Load::Small, Order::Shortest)
        };
        let mut controller = Controller::new(Baseline::default(), Numbered, constant, 1);
        controller.cycle().unwrap();
        assert_eq!(controller.now, Time::from_secs(1) + 4000);
    }
}
