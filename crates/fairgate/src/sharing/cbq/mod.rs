//! Class-based queueing (Floyd and Van Jacobson, ToN 1995), as ALTQ has it.
//!
//! An *estimator* tells for each class whether it is over its rate: the average of how much longer than due the line was idle
//! between its packets, `avgidle`, over about 32 packets (an exponentially weighted moving average). What the line is busy with
//! a packet is computed from the packet's length when it is sent. A class whose average falls to 0 is *overlimit* until the
//! time at which a packet would bring it back to 0.
//!
//! A class that is overlimit may be lent to by the nearest class above that isn't, but only as far up as a *cut-off* level
//! lets it: the lowest level at which somebody waits. So nobody borrows while a class with packets is within its rate (the
//! formal rule of link sharing, section 3). ALTQ comes near it by heuristics (top-level link sharing), which a backlog without
//! arrivals defeats: a borrower of high priority keeps the cut-off at its lender's level, and one below waits for ever. Here the
//! rows tell the level exactly, at no cost.
//!
//! At the cut-off the highest priority goes first, then a weighted round robin (deficits, so that packets of any length share as
//! their rates do). A class that may not borrow is *suspended* when it is overlimit: until a time by which it may send
//! `minburst` packets in a row. What it gets is its rate less up to `packet / (32 length)`, for the average forgets.
//!
//! How classes hang together, and what turns they take, is told in `sharing/borrowing.rs`: a packet costs the same whatever the
//! number of classes. ALTQ goes through all classes of a priority in turn.
//!
//! Deviations from ALTQ: a class that may borrow is not suspended when nobody can lend, but looked at again as soon as one can;
//! the cut-off is exact, as told above; times are ns
//! and not microseconds, and need no timer ticks; a packet that no class is for is dropped.
//!
//! Non-goals: a bound on delay; exact rates over a few packets (that is what htb is for): the estimator's memory is 32 packets.

mod change;
mod config;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::discipline::{Algorithm, Class, ClassState, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rate::RateMeter;
use crate::sharing::borrowing::{Borrowing, Meter, Mode, NEVER, Sent};
use crate::sharing::{ClassTree, Leaves};
use crate::time::Time;

pub use config::{CLASS_PARAMETERS, ClassConfig, Config, DESCRIPTION, PARAMETERS};

/// The average remembers 2^5 packets.
const GAIN: u32 = 5;

/// A class idle for longer begins anew, ns.
const LONG_IDLE: u64 = 2_000_000_000;

/// The line may be behind by so many of the longest packets: more is a driver that sends faster than the line.
const MOST_BEHIND: u64 = 16;

/// What a class has used lately.
struct Estimator {
    /// The average idle time, ns times 2^5: above 0 the class is within its rate.
    average: i64,
    /// What it is at most and at least.
    most: i64,
    least: i64,
    /// When an overlimit class is within its rate again.
    next: u64,
    /// When the line was done with its last packet.
    last: u64,
    rate: RateMeter,
    /// How long it is suspended, ns; `None` of one that borrows.
    suspension: Option<i64>,
}

impl Meter for Estimator {
    #[inline]
    fn charge(&mut self, sent: Sent, _borrows: bool) {
        let cost = self.rate.nanos(sent.length.into()) as i64;
        let between = sent.completion.saturating_sub(self.last);
        if between >= LONG_IDLE {
            self.average = self.most;
        }
        self.last = sent.completion;
        let idle = between.min(LONG_IDLE) as i64 - cost;
        self.average += idle - (self.average >> GAIN);
        if self.average > 0 {
            self.average = self.average.min(self.most);
            self.next = 0;
            return;
        }
        self.average = self.average.max(self.least);
        // What the average lacks, and the packet that it is to wait for anyway; or, in its place, the suspension.
        let lacks = (-self.average >> GAIN) * ((1 << GAIN) - 1);
        let wait = lacks + cost.max(self.suspension.unwrap_or(0));
        self.next = sent.now.saturating_add(wait as u64).min(NEVER - 1);
    }

    #[inline]
    fn mode(&self, now: u64) -> (Mode, u64) {
        match self.next.checked_sub(now) {
            None | Some(0) => (Mode::CanSend, 0),
            Some(wait) if self.suspension.is_some() => (Mode::CantSend, wait),
            Some(wait) => (Mode::MayBorrow, wait),
        }
    }

    /// The average idle time, ns, and when an overlimit class is within its rate again.
    fn variables(&self) -> [(&'static str, Variable); 2] {
        [
            ("avgidle", Variable::Integer(self.average >> GAIN)),
            ("undertime", Variable::Nanos(self.next)),
        ]
    }
}

/// The discipline. Make one with [`Cbq::node`].
pub struct Cbq {
    classes: Borrowing<Estimator>,
    line: RateMeter,
    /// When the line will be done with what was sent.
    completion: u64,
    /// The level that was served last: nobody above it lends.
    cutoff: u8,
    /// The highest level that there is.
    top: u8,
    /// When the next class may be within its rate; `None` unless nothing could be sent at the last dequeue.
    due: Option<Time>,
    config: Config,
}

impl Cbq {
    /// Classes over `inner`, one discipline for each leaf of `config.classes`, in the same order.
    ///
    /// # Errors
    /// If a parameter is out of its range, or if the classes make no tree.
    pub fn node(config: Config, inner: Vec<Box<dyn Discipline>>) -> Result<Node<Cbq>, ConfigError> {
        let tree = config.check()?;
        tree.check_inner(inner.len())?;
        let leaves = Leaves::new(inner, &tree, &config.templates);
        let mut cbq = Cbq::new(config, tree, leaves);
        // An inner discipline may come with packets in it.
        cbq.classes.activate_all();
        Ok(Node::new(cbq))
    }

    /// With classes that were idle for long.
    fn new(config: Config, tree: ClassTree, inner: Leaves) -> Cbq {
        let top = (0..tree.len()).map(|place| tree.height(place)).max();
        let top = top.expect("a tree has classes");
        Cbq {
            classes: Borrowing::new(config.parts(&tree), tree, inner),
            line: config.bandwidth.meter(),
            completion: 0,
            cutoff: top,
            top,
            due: None,
            config,
        }
    }

    /// When the line will be done with a packet that is sent now.
    #[inline]
    fn sent(&mut self, length: u32) -> Sent {
        let now = self.classes.now();
        let time = self.line.nanos(length.into());
        let most = MOST_BEHIND * self.line.nanos(self.config.max_packet.into());
        let behind = self.completion.saturating_sub(now).saturating_add(time);
        self.completion = now.saturating_add(behind.min(most.max(time)));
        Sent {
            now,
            length,
            completion: self.completion,
        }
    }
}

impl Algorithm for Cbq {
    const NAME: &'static str = "cbq";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Some(leaf) = self.classes.tree.leaf_of(&self.config.classifier, id, pool) else {
            pool.give_back(id, DropReason::NoClass);
            return Verdict::Unclassified;
        };
        self.classes.enqueue(leaf, id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        if self.classes.occupied() == 0 {
            return None;
        }
        self.classes.advance(now);
        for level in self.classes.levels() {
            self.classes.do_events(level);
        }
        // A level whose leaves all hold their packets back is empty after it was served.
        while let Some(level) = self.classes.lowest_waiting() {
            self.cutoff = level;
            let Some(served) = self.classes.serve(level, now, pool) else {
                continue;
            };
            let sent = self.sent(served.length);
            self.classes.charge(served.place, level, sent);
            return Some(served.id);
        }
        self.due = self.classes.next_event();
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.classes.drain(pool, into);
        self.cutoff = self.top;
        self.due = None;
    }

    fn watchdog(&self) -> Option<Time> {
        self.classes.watchdog(self.due)
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// Classes may be added, removed and put elsewhere. A new leaf holds a fifo, to be replaced. The packets of a class that
    /// is no more are placed again; those that find no place are given back.
    fn reconfigure(&mut self, config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let tree = config.check()?;
        self.change(config, tree, now, pool);
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.classes.visit_classes(visit);
    }

    fn visit_class_states(&self, visit: &mut dyn FnMut(ClassState<'_>)) {
        self.classes.visit_class_states(visit);
    }

    fn class_mut(&mut self, minor: u16) -> Option<&mut Box<dyn Discipline>> {
        self.classes.class_mut(minor)
    }

    fn class_replaced(&mut self, minor: u16, _now: Time, _pool: &mut Pool) {
        self.classes.class_replaced(minor);
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("cutoff", Variable::Integer(self.cutoff.into()));
        self.classes.visit_variables(visit);
    }
}

#[cfg(test)]
mod tests;
