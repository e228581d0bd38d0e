//! Stochastic Fair BLUE: one queue, and a probability of marks for each flow, in an array of hashed bins
//! (Feng, Kandlur, Saha, Shin: "Stochastic Fair Blue: A Queue Management Algorithm for Enforcing Fairness",
//! INFOCOM 2001); Linux's `sfb`.
//!
//! * BLUE: a bin's probability rises when a packet finds many of the bin's packets queued, and falls when it
//!   finds none. Packets are marked, or dropped if they can't be, with the least probability of their bins.
//!   Above one half drops begin, because marks do not help.
//! * A flow that ignores both makes all its bins certain. It goes to the penalty box, which lets few of its
//!   packets pass.
//! * A flow that shares all its bins with such a flow suffers with it. So the hash changes from time to time.
//!   Before a change the next array of bins learns from the flows in the penalty box, so that they do not
//!   escape (section III-D of the paper, "moving hash functions").
//!
//! The arithmetic is that of Linux 6.1 (sch_sfb.c): 8 levels of 16 bins, and probabilities of 16 bits.
//!
//! Invariant: a queued packet's [`stamp`](crate::Slot::stamp) holds its hashes, 32 bits for each array, 0 if
//! it is not counted there.
//!
//! Deviations: the hash is that of the library. Times have nanoseconds; Linux counts in ticks of its clock.
//! The first interval begins with the first packet. The queue is a fifo of its own; Linux can attach another
//! qdisc, whose drops its bins do not notice. A change of parameters in Linux drops all packets; here they
//! stay and are counted in new bins.

mod bins;
mod config;
mod penalty;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

pub use config::{Config, DESCRIPTION, PARAMETERS};

use crate::arrival::Needs;
use crate::classify::Filtered;
use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::flow::FlowHash;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::structures::random::mixed;
use crate::structures::{Random, boxed};
use crate::time::Time;
use bins::{Bins, CERTAIN, Steps};
use penalty::Penalty;

/// The discipline. Make one with [`Sfb::node`].
#[derive(Debug)]
pub struct Sfb {
    queue: PacketQueue,
    /// Two arrays of bins, of which one decides.
    bins: Box<[Bins; 2]>,
    deciding: usize,
    /// Whether the other array learns already.
    is_warming_up: bool,
    /// When the hash changed last. `None` before the first packet.
    rehashed: Option<Time>,
    penalty: Penalty,
    steps: Steps,
    max: u32,
    random: Random,
    config: Config,
}

impl Sfb {
    /// Creates an empty queue. The seed is for the hashes and for the random marks and drops.
    ///
    /// ```
    /// use fairgate::aqm::sfb::{Config, Sfb};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut sfb = Sfb::node(Config::default(), 7)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// sfb.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(sfb.dequeue(Time::ZERO, &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<Sfb>, ConfigError> {
        config.check()?;
        let mut random = Random::new(seed);
        let bins = boxed((0..2).map(|_| Bins::new(random.bits())));
        Ok(Node::new(Sfb {
            queue: PacketQueue::new(),
            bins,
            deciding: 0,
            is_warming_up: false,
            rehashed: None,
            penalty: Penalty::full(config.penalty_rate, config.penalty_burst),
            steps: config.steps(),
            max: config.most_of_flow(),
            random,
            config,
        }))
    }

    /// Changes the hash if its time is over, or begins to fill the other bins.
    #[inline]
    fn keep_hash_fresh(&mut self, now: Time) {
        let interval = self.config.rehash.as_nanos() as u64;
        if interval == 0 {
            return;
        }
        let age = now.nanos_since(*self.rehashed.get_or_insert(now));
        if age > interval {
            self.bins[self.deciding].rehash(self.random.bits());
            self.deciding ^= 1;
            self.is_warming_up = false;
            self.rehashed = Some(now);
        } else {
            let warmup = self.config.warmup.as_nanos() as u64;
            self.is_warming_up |= warmup > 0 && age > interval.saturating_sub(warmup);
        }
    }

    /// The packet's flow; `None` if there are filters and none takes it.
    ///
    /// # Errors
    /// If a filter drops the packet.
    #[inline]
    fn flow_of(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Result<Option<FlowHash>, Filtered> {
        let classifier = &mut self.config.classifier;
        if classifier.filters.is_empty() && classifier.default.is_none() {
            return Ok(Some(pool[id].flow));
        }
        let class = classifier.unnamed(id, now, pool)?;
        Ok(class.map(of_class))
    }

    /// The flow of a packet that was classified when it arrived.
    fn flow_again(&self, id: PacketId, pool: &Pool) -> Option<FlowHash> {
        let classifier = &self.config.classifier;
        if classifier.filters.is_empty() && classifier.default.is_none() {
            return Some(pool[id].flow);
        }
        classifier
            .filters
            .class_again(id, pool)
            .or(classifier.default)
            .map(of_class)
    }

    /// Decides on a packet. Returns its hashes if it may be queued, or why it is dropped.
    #[inline]
    fn admit(&mut self, id: PacketId, flow: FlowHash, now: Time, pool: &mut Pool) -> Result<u64, DropReason> {
        let (this, other) = (self.deciding, self.deciding ^ 1);
        let mut hashes = [0; 2];
        hashes[this] = self.bins[this].hash(flow);
        let least = self.bins[this].adapt(hashes[this], self.steps);
        if least.packets >= self.max {
            return Err(DropReason::FlowLimit);
        }
        if least.probability >= CERTAIN {
            if self.is_warming_up {
                hashes[other] = self.bins[other].hash(flow);
                self.bins[other].adapt(hashes[other], self.steps);
            }
            return match self.penalty.lets_pass(now) {
                true => Ok(stamp(hashes)),
                false => Err(DropReason::Policed),
            };
        }
        let drawn = self.random.bits32() & CERTAIN;
        if drawn < least.probability {
            // Above one half the flow does not react, or the link is badly congested.
            let excess = least.probability.saturating_sub(CERTAIN / 2);
            if drawn < 2 * excess || !pool.mark_congestion(id) {
                return Err(DropReason::Aqm);
            }
        }
        Ok(stamp(hashes))
    }

    fn count_left(&mut self, id: PacketId, pool: &mut Pool) {
        let stamp = core::mem::take(&mut pool[id].stamp);
        self.bins[0].left(stamp as u32);
        self.bins[1].left((stamp >> 32) as u32);
    }

    #[inline]
    fn push(&mut self, id: PacketId, stamp: u64, pool: &mut Pool) {
        self.bins[0].joined(stamp as u32);
        self.bins[1].joined((stamp >> 32) as u32);
        pool[id].stamp = stamp;
        self.queue.push_back(id, pool);
    }
}

/// The flow of all packets of a class.
#[inline]
fn of_class(class: u32) -> FlowHash {
    FlowHash::from_raw(mixed(class.into()))
}

/// The two hashes of a packet in one number.
#[inline]
fn stamp([first, second]: [u32; 2]) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

impl Algorithm for Sfb {
    const NAME: &'static str = "sfb";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if self.queue.len() >= self.config.limit {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Congested;
        }
        self.keep_hash_fresh(now);
        let flow = match self.flow_of(id, now, pool) {
            Ok(Some(flow)) => flow,
            Ok(None) => {
                pool.give_back(id, DropReason::NoClass);
                return Verdict::Unclassified;
            }
            Err(Filtered) => return Verdict::Unclassified,
        };
        match self.admit(id, flow, now, pool) {
            Ok(stamp) => {
                self.push(id, stamp, pool);
                Verdict::Queued
            }
            Err(reason) => {
                pool.give_back(id, reason);
                Verdict::Congested
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        let id = self.queue.pop_front(pool)?;
        self.count_left(id, pool);
        Some(id)
    }

    #[inline]
    fn first(&self) -> Option<PacketId> {
        self.queue.front()
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        while let Some(id) = self.queue.pop_front(pool) {
            pool[id].stamp = 0;
            into.push_back(id, pool);
        }
        for bins in self.bins.iter_mut() {
            *bins = Bins::new(self.random.bits());
        }
        self.deciding = 0;
        self.is_warming_up = false;
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// All bins begin anew, as in Linux. Queued packets are counted in them.
    fn reconfigure(&mut self, mut config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        self.steps = config.steps();
        self.max = config.most_of_flow();
        self.penalty = Penalty::full(config.penalty_rate, config.penalty_burst);
        config.classifier.take_over(&self.config.classifier);
        self.config = config;
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        self.rehashed = Some(now);
        while let Some(id) = queued.pop_front(pool) {
            let flow = self
                .flow_again(id, pool)
                .filter(|_| self.queue.len() < self.config.limit);
            match flow {
                Some(flow) => {
                    let hash = self.bins[0].hash(flow);
                    self.push(id, stamp([hash, 0]), pool);
                }
                None => pool.give_back(id, DropReason::Reconfigured),
            }
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let overview = self.bins[self.deciding].overview();
        let integer = |number: u32| Variable::Integer(number.into());
        visit("maxqlen", integer(overview.most_packets));
        visit("maxprob", integer(overview.highest));
        visit("avgprob", integer(overview.average));
    }
}
