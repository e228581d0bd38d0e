//! Heavy-hitter filter: flows that send much go to one bucket, all others to another, and the two buckets
//! share the link (Lam and Dukkipati; Linux's `hhf`).
//!
//! ```text
//!   packet --> table of heavy flows --known--------------------> heavy bucket --+
//!                     | unknown                                       ^        +--> weighted DRR
//!                     v                                               |        |
//!              multi-stage filter --more than admit_bytes, new entry -+        |
//!                     | less                                                   |
//!                     +-------------------------------------------> light bucket --+
//! ```
//!
//! * A flow is **heavy** if it has sent more than `admit_bytes` within `reset_timeout` (`filter.rs`). It
//!   stays heavy until it has been silent for `evict_timeout` (`heavy.rs`).
//! * The **light** bucket has `non_hh_weight` quanta in a round, the heavy one has one. A bucket of light
//!   flows that becomes active goes first, as a new flow in `fq_codel`.
//! * Above the limit the oldest packet of a heavy flow is dropped, or of a light one if there is none.
//!
//! The rules and constants are those of Linux (sch_hhf.c).
//!
//! Invariants: a bucket with packets is in a list. A packet's [`stamp`](crate::Slot::stamp) in the heavy
//! bucket is the number of packets that the light bucket must have sent before.
//!
//! Deviations: no packet overtakes another one of its flow. When a flow becomes heavy, its packets in the
//! heavy bucket wait for those that it left in the light one, which is served meanwhile; and a flow does not
//! expire while it has packets. Linux reorders such packets. Times have nanoseconds, and the hash is the
//! library's. Non-goal: fairness between the flows of a bucket, which is a fifo.

mod config;
mod filter;
mod heavy;
#[cfg(test)]
mod tests;

pub use config::{Config, DESCRIPTION, PARAMETERS};

use alloc::boxed::Box;

use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rounds::new_and_old::NewAndOld;
use crate::structures::{Linked, ListLink};
use crate::time::Time;
use filter::Filter;
use heavy::{Heavy, Moment};

/// The index of the bucket for heavy flows.
const HEAVY: u32 = 0;
/// The index of the bucket for light flows.
const LIGHT: u32 = 1;

/// One of the two buckets.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    queue: PacketQueue,
    /// Packets that have ever arrived.
    arrived: u64,
    /// The bytes that it may still send in its turn.
    deficit: i64,
    link: ListLink,
}

impl Bucket {
    const EMPTY: Bucket = Bucket {
        queue: PacketQueue::new(),
        arrived: 0,
        deficit: 0,
        link: ListLink::OUTSIDE,
    };

    /// Packets that have left, in whatever way.
    #[inline]
    fn left(&self) -> u64 {
        self.arrived - u64::from(self.queue.len())
    }
}

impl Linked for Bucket {
    #[inline]
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// The discipline. Make one with [`Hhf::node`].
#[derive(Debug)]
pub struct Hhf {
    buckets: [Bucket; 2],
    turns: NewAndOld,
    filter: Box<Filter>,
    heavy: Heavy,
    /// When the filter was reset. `None` before the first packet.
    reset: Option<Time>,
    salt: u64,
    counts: Counts,
    config: Config,
}

/// What tc shows.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Packets that arrived above the limit.
    over_limit: u64,
    /// Flows that were heavy, but found no entry.
    no_entry: u64,
    /// Flows that became heavy.
    heavy: u64,
}

impl Hhf {
    /// Creates empty buckets. The seed salts the hash of flows.
    ///
    /// ```
    /// use fairgate::rounds::hhf::{Config, Hhf};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut hhf = Hhf::node(Config::default(), 7)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// hhf.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(hhf.dequeue(Time::ZERO, &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<Hhf>, ConfigError> {
        config.check()?;
        Ok(Node::new(Hhf {
            buckets: [Bucket::EMPTY; 2],
            turns: NewAndOld::new(),
            filter: Box::new(Filter::new()),
            heavy: Heavy::new(),
            reset: None,
            salt: seed,
            counts: Counts::default(),
            config,
        }))
    }

    fn packets(&self) -> u32 {
        self.buckets.iter().map(|bucket| bucket.queue.len()).sum()
    }

    /// The bytes that a bucket gets for its turn.
    #[inline]
    fn quantum(&self, bucket: u32) -> i64 {
        let weight = if bucket == HEAVY {
            1
        } else {
            self.config.non_hh_weight
        };
        i64::from(weight) * i64::from(self.config.quantum)
    }

    /// Returns the bucket of a packet, and how many packets of the light bucket must leave before it.
    fn classify(&mut self, id: PacketId, now: Time, pool: &Pool) -> (u32, u64) {
        if now.nanos_since(*self.reset.get_or_insert(now)) > self.config.reset_timeout.as_nanos() as u64 {
            self.filter.reset();
            self.reset = Some(now);
        }
        let packet = &pool[id];
        let hash = (packet.flow.salted(self.salt) >> 32) as u32;
        let [heavy, light] = &self.buckets;
        let moment = Moment {
            now,
            timeout: self.config.evict_timeout.as_nanos() as u64,
            left: heavy.left(),
        };
        let (number, after) = (heavy.arrived + 1, light.arrived);
        let known = self.heavy.find(hash, &moment);
        let place = match known {
            Some(place) => place,
            None if !self.filter.exceeds(hash, packet.length, self.config.admit_bytes) => return (LIGHT, 0),
            None => match self.heavy.add(hash, after, self.config.hh_limit, &moment) {
                Some(place) => {
                    self.counts.heavy += 1;
                    place
                }
                None => {
                    self.counts.no_entry += 1;
                    return (LIGHT, 0);
                }
            },
        };
        (HEAVY, self.heavy.sent(place, number, now))
    }

    #[inline]
    fn push(&mut self, index: u32, id: PacketId, stamp: u64, pool: &mut Pool) {
        pool[id].stamp = stamp;
        let quantum = self.quantum(index);
        let bucket = &mut self.buckets[index as usize];
        bucket.queue.push_back(id, pool);
        bucket.arrived += 1;
        if !bucket.link.is_in_list() {
            bucket.deficit = quantum;
            match index {
                HEAVY => self.turns.rejoin(index, &mut self.buckets),
                _ => self.turns.join(index, &mut self.buckets),
            }
        }
    }

    /// Takes the oldest packet out of a bucket.
    #[inline]
    fn pop(&mut self, index: u32, pool: &mut Pool) -> Option<PacketId> {
        let id = self.buckets[index as usize].queue.pop_front(pool)?;
        pool[id].stamp = 0;
        Some(id)
    }

    /// Drops the oldest packet of a heavy flow, or of a light one. Returns its bucket.
    #[cold]
    fn overflow(&mut self, reason: DropReason, pool: &mut Pool) -> Option<u32> {
        let index = if self.buckets[HEAVY as usize].queue.is_empty() {
            LIGHT
        } else {
            HEAVY
        };
        let id = self.pop(index, pool)?;
        pool.give_back(id, reason);
        Some(index)
    }

    /// Whether the light bucket has packets that arrived before the first heavy packet and belong to the same
    /// flow. The heavy packet waits for them.
    #[inline]
    fn is_heavy_waiting(&self, pool: &Pool) -> bool {
        let [heavy, light] = &self.buckets;
        heavy
            .queue
            .front()
            .is_some_and(|id| pool[id].stamp > light.left())
    }
}

impl Algorithm for Hhf {
    const NAME: &'static str = "hhf";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let (index, stamp) = self.classify(id, now, pool);
        self.push(index, id, stamp, pool);
        if self.packets() > self.config.limit {
            self.counts.over_limit += 1;
            if self.overflow(DropReason::HeadDrop, pool) == Some(index) {
                return Verdict::Congested;
            }
        }
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        loop {
            let index = self.turns.front()?;
            if self.buckets[index as usize].deficit <= 0 {
                self.buckets[index as usize].deficit += self.quantum(index);
                self.turns.end_turn(&mut self.buckets);
                continue;
            }
            let from = match index {
                HEAVY if self.is_heavy_waiting(pool) => LIGHT,
                _ => index,
            };
            let Some(id) = self.pop(from, pool) else {
                self.turns.ran_empty(&mut self.buckets);
                continue;
            };
            self.buckets[from as usize].deficit -= i64::from(pool[id].length);
            return Some(id);
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        // Packets of the light bucket go first: a heavy flow may have older ones there.
        for index in [LIGHT, HEAVY] {
            while let Some(id) = self.pop(index, pool) {
                into.push_back(id, pool);
            }
        }
        self.buckets = [Bucket::EMPTY; 2];
        self.turns = NewAndOld::new();
        self.filter.reset();
        self.heavy = Heavy::new();
        self.reset = None;
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        self.config = config;
        while self.packets() > self.config.limit {
            self.overflow(DropReason::Reconfigured, pool);
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let integer = |number: u64| Variable::Integer(number as i64);
        visit("drop_overlimit", integer(self.counts.over_limit));
        visit("hh_overlimit", integer(self.counts.no_entry));
        visit("tot_hh", integer(self.counts.heavy));
        visit("cur_hh", integer(self.heavy.current.into()));
    }
}
