//! Emulates a network, as Linux's `netem` (Hemminger 2005; `sch_netem.c` of Linux 6.1): delay with jitter,
//! losses, duplicates, wrong bits, another order, a rate, and slots.
//!
//! On arrival a packet's fate is drawn, and the time at which it arrives at the other end. It waits until
//! then, and goes to the inner discipline, or leaves if there is none. With jitter packets overtake each
//! other: a packet's time does not depend on those before it.
//!
//! ```text
//!   enqueue -> copy? lost? corrupted? -> delay line (by time) -> inner discipline -> dequeue
//!                                   \--> not delayed (reorder) ----------------------^
//! ```
//!
//! With a rate, a packet is sent when the one that arrives last has been sent, and its transmission time is
//! added to its delay.
//!
//! A duplicate is a new packet that the driver enqueues at the root ([`Pool::copy`]), as in Linux. The bytes
//! belong to the driver, and so does a wrong bit ([`Pool::corrupt`]). Copies that the driver did not take are
//! counted.
//!
//! All random numbers come from the seed.
//!
//! Not work-conserving: [`watchdog`](Discipline::watchdog) is the time of the next packet.
//!
//! Deviations from Linux:
//!
//! * An index into a table is a product instead of a remainder. So correlated numbers give similar delays; in
//!   Linux the correlation is lost in the remainder.
//! * Packets that are not delayed keep their order among themselves. Linux reverses those that wait together.
//! * Probabilities of 1 and 0 are exact, with correlation too.
//! * The sojourn time that an inner discipline sees begins when the packet arrives there, as in Linux; the
//!   sojourn time in the statistics begins at the root.

mod config;
mod delay_line;
mod losses;
mod random;
mod sending;
mod slots;

use alloc::boxed::Box;

use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::structures::Random;
use crate::time::Time;

pub use config::{Chance, Config, DESCRIPTION, LinkRate, PARAMETERS, Reorder, Settings};
pub use losses::{GilbertElliott, Loss};
pub use random::Shape;
pub use slots::{SlotConfig, SlotGap};

use delay_line::DelayLine;
use losses::Losses;
use random::{Correlated, Varying};
use sending::Sending;
use slots::Slots;

/// The number of the only class, as in Linux.
const INNER: u32 = 1;

/// Returns the time `nanos` after `now`, which may be before it.
fn after(now: Time, nanos: i64) -> Time {
    Time::from_nanos(now.nanos().saturating_add_signed(nanos))
}

/// What is drawn for each packet.
#[derive(Debug)]
struct Fates {
    delay: Varying,
    losses: Losses,
    duplicate: Correlated,
    corrupt: Correlated,
    reorder: Correlated,
    slots: Option<Slots>,
    sending: Option<Sending>,
}

impl Fates {
    fn new(config: &Config, random: &mut Random) -> Fates {
        let nanos = |time: core::time::Duration| time.as_nanos() as u64;
        Fates {
            delay: Varying::new(
                nanos(config.delay),
                nanos(config.jitter),
                config.shape.table(&config.table),
                Correlated::new(config.delay_correlation, random),
            ),
            losses: Losses::new(config.loss, random),
            duplicate: Correlated::new(config.duplicate.correlation, random),
            corrupt: Correlated::new(config.corrupt.correlation, random),
            reorder: Correlated::new(config.reorder.chance.correlation, random),
            slots: config.slots.as_ref().map(|slots| Slots::new(slots, random)),
            sending: config.rate.map(Sending::new),
        }
    }
}

/// What has happened to packets.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    duplicated: i64,
    /// Duplicates that the driver could not make.
    not_duplicated: i64,
    corrupted: i64,
    reordered: i64,
}

/// The discipline. Make one with [`Netem::node`].
#[derive(Debug)]
pub struct Netem {
    line: DelayLine,
    /// Packets that are not delayed.
    at_once: PacketQueue,
    inner: Option<Box<dyn Discipline>>,
    random: Random,
    fates: Fates,
    /// Packets since the last one that was not delayed.
    since_reordered: u32,
    /// When to ask again; `None` unless the last dequeue returned nothing.
    due: Option<Time>,
    counts: Counts,
    config: Box<Config>,
}

impl Netem {
    /// Creates an emulator, over `inner` if it is given.
    ///
    /// ```
    /// use core::time::Duration;
    /// use fairgate::queues::netem::{Config, Netem};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let config = Config { delay: Duration::from_millis(20), ..Config::default() };
    /// let mut path = Netem::node(config, 7, None)?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// path.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(path.dequeue(Time::ZERO, &mut pool), None);
    /// assert_eq!(path.watchdog(), Some(Time::from_millis(20)));
    /// assert_eq!(path.dequeue(Time::from_millis(20), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If a parameter is out of its range, or two contradict each other.
    pub fn node(
        config: Config,
        seed: u64,
        inner: Option<Box<dyn Discipline>>,
    ) -> Result<Node<Netem>, ConfigError> {
        config.check()?;
        let mut random = Random::new(seed);
        Ok(Node::new(Netem {
            line: DelayLine::new(),
            at_once: PacketQueue::new(),
            inner,
            fates: Fates::new(&config, &mut random),
            random,
            since_reordered: 0,
            due: None,
            counts: Counts::default(),
            config: Box::new(config),
        }))
    }

    /// Whether the next packet overtakes those that wait.
    #[inline]
    fn overtakes(&mut self) -> bool {
        let reorder = self.config.reorder;
        // The first `gap - 1` packets are delayed. Then each may overtake until one does.
        reorder.gap > 0
            && self.since_reordered >= reorder.gap - 1
            && self
                .fates
                .reorder
                .occurs(reorder.chance.probability, &mut self.random)
    }

    /// Returns when a packet of `length` bytes arrives at the other end.
    #[inline]
    fn arrival(&mut self, length: u32, now: Time) -> Time {
        let arrival = after(now, self.fates.delay.draw(&mut self.random));
        match &self.fates.sending {
            None => arrival,
            Some(sending) => {
                let begin = self.line.latest().map_or(arrival, |latest| latest.max(arrival));
                begin + sending.nanos(length)
            }
        }
    }

    /// Returns when the first packet of the delay line may go on.
    #[inline]
    fn opens(&mut self, arrival: Time, now: Time) -> Time {
        match &mut self.fates.slots {
            None => arrival,
            Some(slots) => slots.begins(arrival, now, &mut self.random).max(arrival),
        }
    }
}

impl Algorithm for Netem {
    const NAME: &'static str = "netem";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Config {
            duplicate,
            corrupt,
            ecn,
            limit,
            ..
        } = *self.config;
        let is_doubled = self
            .fates
            .duplicate
            .occurs(duplicate.probability, &mut self.random);
        let is_lost = self.fates.losses.next(&mut self.random) && !(ecn && pool.mark_congestion(id));
        // As in Linux, a packet that is doubled and lost arrives once.
        if is_lost && !is_doubled {
            pool.give_back(id, DropReason::Lost);
            return Verdict::Dropped;
        }
        if is_doubled && !is_lost && !pool[id].is_copy() {
            match pool.copy(id) {
                true => self.counts.duplicated += 1,
                false => self.counts.not_duplicated += 1,
            }
        }
        if self.fates.corrupt.occurs(corrupt.probability, &mut self.random) {
            pool.corrupt(id);
            self.counts.corrupted += 1;
        }
        if self.line.len() + self.at_once.len() >= limit {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        if self.overtakes() {
            self.since_reordered = 0;
            self.counts.reordered += 1;
            self.at_once.push_back(id, pool);
            return Verdict::Queued;
        }
        self.since_reordered = self.since_reordered.saturating_add(1);
        let arrival = self.arrival(pool[id].length, now);
        self.line.push(id, arrival, pool);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        if let Some(id) = self.at_once.pop_front(pool) {
            return Some(id);
        }
        while let Some((_, arrival)) = self.line.first(pool) {
            let opens = self.opens(arrival, now);
            if now < opens {
                self.due = Some(opens);
                break;
            }
            let id = self.line.pop(pool)?;
            if let Some(slots) = &mut self.fates.slots {
                slots.sent(pool[id].length, now, &mut self.random);
            }
            let Some(inner) = &mut self.inner else {
                return Some(id);
            };
            pool.remember_arrival(id);
            inner.enqueue(id, now, pool);
        }
        let inner = self.inner.as_mut()?;
        if let Some(id) = inner.dequeue(now, pool) {
            pool.restore_arrival(id);
            return Some(id);
        }
        if !inner.is_empty() {
            let until = inner.watchdog();
            self.due = self
                .due
                .map_or(until, |due| Some(until.map_or(due, |until| due.min(until))));
        }
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.at_once.append_to(into, pool);
        if let Some(inner) = &mut self.inner {
            let mut within = PacketQueue::new();
            inner.drain(pool, &mut within);
            while let Some(id) = within.pop_front(pool) {
                pool.restore_arrival(id);
                into.push_back(id, pool);
            }
        }
        while let Some(id) = self.line.pop(pool) {
            into.push_back(id, pool);
        }
        self.due = None;
    }

    fn watchdog(&self) -> Option<Time> {
        self.due
    }

    fn config(&self) -> Config {
        (*self.config).clone()
    }

    /// Packets on their way keep their times. Random numbers go on; states of loss and slots begin anew.
    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        self.fates = Fates::new(&config, &mut self.random);
        self.since_reordered = 0;
        *self.config = config;
        let kept = self.config.limit.saturating_sub(self.at_once.len());
        let mut rest = self.line.truncate(kept, pool);
        while let Some(id) = rest.pop_back(pool) {
            pool.give_back(id, DropReason::Reconfigured);
        }
        while self.at_once.len() > self.config.limit {
            let newest = self.at_once.pop_back(pool).expect("it is longer than the limit");
            pool.give_back(newest, DropReason::Reconfigured);
        }
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        if let Some(inner) = &self.inner {
            visit(Class::new(INNER, inner.as_ref()));
        }
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        self.inner.as_mut().filter(|_| minor == INNER)
    }

    fn class_replaced(&mut self, _minor: u32, _now: Time, _pool: &mut Pool) {
        self.due = None;
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let Counts {
            duplicated,
            not_duplicated,
            corrupted,
            reordered,
        } = self.counts;
        visit("delayed_packets", Variable::Integer(self.line.len().into()));
        visit("duplicated", Variable::Integer(duplicated));
        visit("not_duplicated", Variable::Integer(not_duplicated));
        visit("corrupted", Variable::Integer(corrupted));
        visit("reordered", Variable::Integer(reordered));
    }
}

#[cfg(test)]
mod tests;
