//! Generic random early detection; Linux's `gred`: RED with up to 16 virtual queues in one queue.
//!
//! Packets leave in the order of their arrival. Each belongs to a virtual queue, which has a curve, an
//! average, a limit and a priority of its own. A virtual queue decides about its packets by its own backlog,
//! as if there were no others. With `grio` there are two other modes (Clark & Fang 1998, "RIO"):
//! * If all priorities differ, the averages of all virtual queues with a higher priority, a lower number, are
//!   added to the packet's own.
//! * If two are the same, all virtual queues share the average and the backlog of the whole queue, as in
//!   `wred`.
//!
//! A packet whose virtual queue is not set up belongs to the default one. If that is not set up either, it is
//! queued up to `limit`, without RED. Average, curves and marks are those of `red`.
//!
//! The kernel reads the virtual queue from `tc_index`, which its dsmark sets from the DSCP. Here `precedence`
//! has one for each DSCP.
//!
//! Deviations from Linux: flags (`ecn`, `harddrop`) are those of all virtual queues. A change of parameters
//! keeps averages, and drops the newest packets of a virtual queue that are over its new limit.
//!
//! Invariant: the backlogs of the virtual queues and of packets without one add up to the queue's.

mod config;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use super::red::{Action, Average, Curve, Filter, Spacing};
use crate::class_reading::ClassReading;
use crate::count::Count;
use crate::discipline::{Algorithm, ClassState, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::{DropReason, Ecn};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::slot::Slot;
use crate::structures::{Random, boxed};
use crate::time::Time;

pub use config::{Config, DESCRIPTION, MOST, PARAMETERS, VirtualQueue};

/// A virtual queue as the packet path needs it.
#[derive(Debug)]
struct Virtual {
    filter: Filter,
    curve: Curve,
    average: Average,
    spacing: Spacing,
    /// Its packets in the queue, bytes.
    backlog: u64,
    limit: u64,
    priority: u32,
    counts: Counts,
}

/// The packets of a virtual queue.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    arrived: Count,
    sent: Count,
    /// How often RED would mark or drop.
    overlimits: u64,
    early: u64,
    forced: u64,
    full: u64,
    marked: u64,
}

/// What the average of a packet is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// That of its virtual queue.
    Own,
    /// Also those of higher priorities.
    Rio,
    /// That of the whole queue.
    Shared,
}

/// The discipline. Make one with [`Gred::node`].
#[derive(Debug)]
pub struct Gred {
    queue: PacketQueue,
    virtuals: Box<[Option<Virtual>; MOST]>,
    mode: Mode,
    /// The average of the whole queue.
    shared: Average,
    random: Random,
    config: Config,
}

impl Gred {
    /// Creates an empty queue. `seed` is for the random marks.
    ///
    /// ```
    /// use fairgate::aqm::gred::{Config, Gred};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut gred = Gred::node(Config::default(), 42)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// gred.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(gred.dequeue(Time::from_millis(1), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If a parameter is out of its range, or a list is not as long as there are virtual queues.
    pub fn node(config: Config, seed: u64) -> Result<Node<Gred>, ConfigError> {
        Ok(Node::new(Gred {
            queue: PacketQueue::new(),
            virtuals: virtuals(&config)?,
            mode: mode(&config),
            shared: Average::NEW,
            random: Random::new(seed),
            config,
        }))
    }

    /// Returns the index of a packet's virtual queue.
    #[inline]
    fn index(&self, packet: &Slot) -> Option<usize> {
        let own = usize::from(self.config.precedence[usize::from(packet.dscp & 63)]);
        [own, self.config.default_queue as usize]
            .into_iter()
            .find(|index| self.virtuals[*index].is_some())
    }

    /// Returns the sum of the averages of higher priorities that are not idle.
    fn of_higher_priorities(&self, priority: u32) -> u64 {
        let others = self.virtuals.iter().flatten();
        others
            .filter(|other| other.priority < priority && !other.average.is_idle())
            .map(|other| other.average.scaled())
            .sum()
    }

    /// Queues a packet without a virtual queue.
    fn enqueue_untouched(&mut self, id: PacketId, pool: &mut Pool) -> Verdict {
        if self.queue.bytes() + u64::from(pool[id].length) > self.config.limit.into() {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        self.queue.push_back(id, pool);
        Verdict::Queued
    }
}

fn mode(config: &Config) -> Mode {
    match (config.grio, config.shares_average()) {
        (false, _) => Mode::Own,
        (true, false) => Mode::Rio,
        (true, true) => Mode::Shared,
    }
}

fn virtuals(config: &Config) -> Result<Box<[Option<Virtual>; MOST]>, ConfigError> {
    let made = config.derived()?.into_iter().map(|found| {
        let (queue, derived) = found?;
        let (filter, curve) = derived.into_filter_and_curve();
        Some(Virtual {
            filter,
            curve,
            average: Average::NEW,
            spacing: Spacing::NEW,
            backlog: 0,
            limit: queue.red.limit.into(),
            priority: queue.priority,
            counts: Counts::default(),
        })
    });
    Ok(boxed(made))
}

impl Algorithm for Gred {
    const NAME: &'static str = "gred";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Some(index) = self.index(&pool[id]) else {
            return self.enqueue_untouched(id, pool);
        };
        let total = self.queue.bytes();
        let priority = self.virtuals[index].as_ref().map_or(0, |own| own.priority);
        let more = match self.mode {
            Mode::Rio => self.of_higher_priorities(priority),
            Mode::Own | Mode::Shared => 0,
        };
        let Some(own) = &mut self.virtuals[index] else {
            return self.enqueue_untouched(id, pool);
        };
        let length = pool[id].length;
        own.counts.arrived.add(length);
        let (backlog, average) = match self.mode {
            Mode::Shared => (total, &mut self.shared),
            Mode::Own | Mode::Rio => (own.backlog, &mut own.average),
        };
        let average = own.filter.arrival(average, backlog, now) + more;
        let action = own
            .curve
            .judge(&mut own.spacing, average, length, &mut self.random);
        own.counts.overlimits += u64::from(action != Action::Pass);
        if !self.config.response.spares(id, action, pool) {
            match action {
                Action::Forced => own.counts.forced += 1,
                Action::Early | Action::Pass => own.counts.early += 1,
            }
            pool.give_back(id, DropReason::Aqm);
            return Verdict::Congested;
        }
        own.counts.marked += u64::from(action != Action::Pass && pool[id].ecn == Ecn::Ce);
        if backlog + u64::from(length) > own.limit {
            own.counts.full += 1;
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        own.backlog += u64::from(length);
        self.queue.push_back(id, pool);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let first = self.queue.pop_front(pool)?;
        let packet = &pool[first];
        if let Some(index) = self.index(packet)
            && let Some(own) = &mut self.virtuals[index]
        {
            own.backlog -= u64::from(packet.length);
            own.counts.sent.add(packet.length);
            match self.mode {
                Mode::Shared if self.queue.is_empty() => self.shared.found_empty(now),
                Mode::Own | Mode::Rio if own.backlog == 0 => own.average.found_empty(now),
                _ => {}
            }
        }
        Some(first)
    }

    #[inline]
    fn first(&self) -> Option<PacketId> {
        self.queue.front()
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
        self.shared = Average::NEW;
        for own in self.virtuals.iter_mut().flatten() {
            own.average = Average::NEW;
            own.spacing = Spacing::NEW;
            own.backlog = 0;
        }
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let mut virtuals = virtuals(&config)?;
        for (new, old) in virtuals.iter_mut().zip(self.virtuals.iter()) {
            if let (Some(new), Some(old)) = (new, old) {
                new.average = old.average.carried_over(&old.filter, &new.filter);
                new.counts = old.counts;
            }
        }
        self.virtuals = virtuals;
        self.mode = mode(&config);
        self.config = config;
        // Each packet is placed again, by the new limits.
        let mut packets = PacketQueue::new();
        self.queue.append_to(&mut packets, pool);
        while let Some(id) = packets.pop_front(pool) {
            let length = u64::from(pool[id].length);
            let own = self
                .index(&pool[id])
                .and_then(|index| self.virtuals[index].as_mut());
            let total = self.queue.bytes();
            let (backlog, limit) = match (&own, self.mode) {
                (None, _) => (total, self.config.limit.into()),
                (Some(own), Mode::Shared) => (total, own.limit),
                (Some(own), _) => (own.backlog, own.limit),
            };
            if backlog + length > limit {
                pool.give_back(id, DropReason::Reconfigured);
                continue;
            }
            if let Some(own) = own {
                own.backlog += length;
            }
            self.queue.push_back(id, pool);
        }
        Ok(())
    }

    fn read_class_states(
        &self,
        _reading: &mut ClassReading,
        _most: usize,
        visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        for (index, own) in self.virtuals.iter().enumerate() {
            let Some(own) = own else { continue };
            let (average, backlog) = match self.mode {
                Mode::Shared => (&self.shared, self.queue.bytes()),
                Mode::Own | Mode::Rio => (&own.average, own.backlog),
            };
            let number = |number: u64| Variable::Integer(number as i64);
            visit(ClassState {
                minor: index as u32 + 1,
                sent: own.counts.sent,
                overlimits: own.counts.overlimits,
                variables: &[
                    ("vq", number(index as u64)),
                    ("average", number(average.scaled() >> own.filter.w_log())),
                    ("backlog", number(backlog)),
                    ("packets", number(own.counts.arrived.packets)),
                    ("bytes", number(own.counts.arrived.bytes)),
                    ("early", number(own.counts.early)),
                    ("forced", number(own.counts.forced)),
                    ("pdrop", number(own.counts.full)),
                    ("marked", number(own.counts.marked)),
                ],
            });
        }
        false
    }
}
