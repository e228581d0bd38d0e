//! The controller of the QFQ paper's Figure 8: what drives a scheduler with sequences of requests under control.
//!
//! ```text
//!              fill: packets of the flow with the shortest backlog ...      until `most` are queued
//!   controller ------------------------------------------------------> scheduler
//!              <------------------------------------------------------
//!              empty: the scheduler's choice, the packet back to the pool   until `least` are left
//! ```
//!
//! One thread; a cycle is a phase of pure enqueuing and one of pure dequeuing. Packets are descriptors from the pool's
//! last-in first-out list of free slots. The scheduler is told the flow, nothing is hashed (unless that is what is
//! asked for), and is called through a function pointer.
//!
//! Time goes on while packets leave, a nanosecond a byte: 8 Gb/s, a line that is never idle for schedulers
//! that look at the clock. Every packet that goes in must come out in the same cycle or a later one; a scheduler that
//! drops or withholds one is reported.

use fairgate::{DropReason, Pool, Time, Verdict};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use thiserror::Error;

use crate::backlogs::Backlogs;
use crate::subject::{Source, Subject};
use crate::workload::{DRAWN, Load, Order, Sizes, below};

/// What the controller offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Flows, 1 to 2^20.
    pub flows: u32,
    /// How much is queued.
    pub load: Load,
    /// Whose packet comes next.
    pub order: Order,
    /// How long it is.
    pub sizes: Sizes,
}

/// A scheduler that doesn't do what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// It holds packets and gives none out.
    #[error("it gave no packet out though {queued} were queued")]
    Withheld {
        /// Packets that were handed in and did not come out.
        queued: u32,
    },
    /// It refused or dropped a packet.
    #[error("it dropped a packet ({}), so that its times would not be those of the work asked for", .reason.map_or("refused", DropReason::name))]
    Dropped {
        /// Why; `None` if it said only that it did.
        reason: Option<DropReason>,
    },
    /// Packets are left in the pool that nobody holds, or a flow has more or fewer than went in.
    #[error("its packets don't add up: {left} are left after all {queued} were taken out")]
    Lost {
        /// Packets in the pool at the end.
        left: u32,
        /// Packets that were queued before.
        queued: u32,
    },
}

/// The controller with its scheduler.
#[derive(Debug)]
pub struct Controller<S, G> {
    subject: S,
    source: G,
    pool: Pool,
    backlogs: Backlogs,
    workload: Workload,
    lengths: Box<[u16; DRAWN]>,
    /// Packets offered since the start; which length comes next.
    offered: u64,
    random: SplitMix64,
    in_turn: u32,
    queued: u32,
    least: u32,
    most: u32,
    now: Time,
}

impl<S: Subject, G: Source> Controller<S, G> {
    /// With nothing queued yet. `seed` draws lengths and, where these are random, flows.
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

    /// Fills up and empties, and returns how many packets left.
    pub fn cycle(&mut self) -> Result<u64, Fault> {
        match self.workload.order {
            Order::Shortest => self.fill(|this| this.backlogs.shortest())?,
            Order::Random => self.fill(|this| below(&mut this.random, this.workload.flows))?,
            Order::RoundRobin => self.fill(Self::next_in_turn)?,
        }
        let left = self.queued - self.least;
        self.empty(self.least)?;
        Ok(left.into())
    }

    /// Takes out what is left, and checks that nothing was lost.
    pub fn finish(mut self) -> Result<(), Fault> {
        let queued = self.queued;
        self.empty(0)?;
        let more = self.subject.dequeue(self.now, &mut self.pool).is_some();
        let uneven = (0..self.workload.flows).any(|flow| self.backlogs.packets(flow) > 0);
        match self.pool.len() {
            0 if !more && !uneven => Ok(()),
            left => Err(Fault::Lost { left, queued }),
        }
    }

    #[inline]
    fn fill(&mut self, next_flow: impl Fn(&mut Self) -> u32) -> Result<(), Fault> {
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
    fn empty(&mut self, least: u32) -> Result<(), Fault> {
        while self.queued > least {
            let Some(id) = self.subject.dequeue(self.now, &mut self.pool) else {
                return Err(match self.pool.returned_total() {
                    0 => Fault::Withheld { queued: self.queued },
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
    fn dropped(&mut self) -> Fault {
        Fault::Dropped {
            reason: self.pool.take_returned().map(|(_, reason)| reason),
        }
    }
}

/// A controller whatever drives and is driven.
pub trait Drive {
    /// Runs whole cycles until at least `pairs` packets have gone in and out, and returns how many did.
    fn run(&mut self, pairs: u64) -> Result<u64, Fault>;

    /// Takes out what is left, and checks that nothing was lost.
    fn finish(self: Box<Self>) -> Result<(), Fault>;
}

impl<S: Subject, G: Source> Drive for Controller<S, G> {
    fn run(&mut self, pairs: u64) -> Result<u64, Fault> {
        let mut done = 0;
        while done < pairs {
            done += self.cycle()?;
        }
        Ok(done)
    }

    fn finish(self: Box<Self>) -> Result<(), Fault> {
        Controller::finish(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::{Baseline, Numbered};
    use fairgate::{Packet, PacketId, PacketQueue};
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// What the controller asked of a scheduler.
    #[derive(Debug, Default)]
    struct Log {
        /// Each flow's packets when the next packet came, and whose that was.
        arrivals: Vec<(Vec<u32>, u32)>,
        backlog: Vec<u32>,
        /// Runs of enqueuing and dequeuing: the number queued at the end of each.
        turns: Vec<u32>,
        was_filling: bool,
    }

    /// A fifo that writes down what it is asked.
    struct Witness {
        queue: PacketQueue,
        log: Rc<RefCell<Log>>,
        /// Loses every packet of this number.
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
        fn phases_turn_at_the_bounds_and_the_shortest_goes_next(
            flows in 1u32..20,
            load in prop::sample::select(&Load::ALL[..]),
            order in prop::sample::select(vec![Order::Shortest, Order::Random, Order::RoundRobin]),
        ) {
            let (witness, log) = Witness::of(flows, None);
            let mut controller = Controller::new(witness, Numbered, workload(flows, load, order), 1);
            let (least, most) = load.bounds(flows);
            for cycle in 0..4 {
                // The first cycle fills from empty, and all end at the lower bound.
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
                        prop_assert!(own < most / flows, "no flow ever has more than the mean at most");
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
        let fault = controller.cycle().unwrap_err();
        let reason = Some(DropReason::QueueLimit);
        assert_eq!(fault, Fault::Dropped { reason });
        assert!(fault.to_string().contains("queue_limit"), "{fault}");
    }

    /// Gives nothing out; or, at last, one packet that nobody handed in.
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
        assert_eq!(withholds.cycle(), Err(Fault::Withheld { queued: 3 }));
        let mut invents = Controller::new(odd(true), Numbered, workload, 1);
        invents.cycle().unwrap();
        assert_eq!(invents.finish(), Err(Fault::Lost { left: 1, queued: 0 }));
    }

    #[test]
    fn time_goes_on_a_nanosecond_a_byte() {
        let constant = Workload {
            sizes: Sizes::Constant(1000),
            ..workload(4, Load::Small, Order::Shortest)
        };
        let mut controller = Controller::new(Baseline::default(), Numbered, constant, 1);
        controller.cycle().unwrap();
        assert_eq!(controller.now, Time::from_secs(1) + 4000);
    }
}
