//! Class-based queueing (Floyd and Van Jacobson, ToN 1995), as in ALTQ.
//!
//! An *estimator* for each class decides whether the class is over its rate. It averages by how much the idle
//! time of the link between two packets of the class exceeds the time that its rate requires: `avgidle`, an
//! exponentially weighted moving average over about 32 packets. How long the link is busy with a packet is
//! computed from the packet's length when it is sent. A class whose average falls to 0 is *overlimit* until
//! the time at which a packet would bring the average back to 0.
//!
//! A class that is overlimit may borrow from the nearest class above it that is not, up to a *cut-off* level.
//! [`LinkSharing`] has two rules for that level:
//! * *Formal* (section 3), the default: the lowest level that has a class which can send. So no class borrows
//!   while a class with packets is within its rate. The rows give the level exactly, at no cost.
//! * *Top-level*, as in ALTQ: a packet that arrives for a class lowers the cut-off to the level
//!   from which that class can send. After a class has borrowed, the cut-off is the level of the lender if
//!   the class can go on like this. Otherwise it is the level of the leaves if a leaf with packets is within
//!   its rate, or else the highest level. If no class can send below the cut-off, it rises. Up to the cut-off
//!   the highest priority is served, whether it borrows or not. This fails for a backlog without arrivals: a
//!   borrower of high priority keeps the cut-off at the level of its lender, and a class of lower priority
//!   waits, although it is within its rate. Figure 14 of the ALTQ paper (Cho 1998) shows a class that gets
//!   more than its share in this way, and Figure 15 that equal priorities mend it.
//!
//! With the formal rule the highest priority at the cut-off level is served first. Within it there is a
//! weighted round robin with deficits, so that packets of any length share in proportion to the weights. A
//! class that may not borrow is *suspended* when it is overlimit, for as long that it may then send
//! `minburst` packets in a row. It gets its rate less up to `packet / (32 length)` of it, because the average
//! forgets. Of a debt it forgets a 32nd, too: packets of mixed lengths get up to a 31st more than the rate.
//!
//! `sharing/borrowing.rs` describes how classes are linked, and the order of their turns. The cost of a
//! packet does not depend on the number of classes. ALTQ goes through all classes of a priority in turn.
//!
//! Deviations from ALTQ: a class that may borrow is not suspended if no class can lend, but is served as soon
//! as one can. An idle time counts in full. ALTQ counts 2 s at most, and sets the average to its highest
//! after them. But at a low rate a packet and a suspension take as long, and a class of 6.4 kbit/s would send
//! twice its rate. If ALTQ's search for a leaf within its rate meets the parent of such a leaf first, it sets
//! the cut-off to the level of the parent. Times are in ns instead of microseconds, and do not depend on
//! timer ticks. An unclassified packet is dropped.
//!
//! Non-goals: a bound on delay; exact rates over a few packets (use `htb`): the estimator averages over 32
//! packets.

mod change;
mod config;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::arrival::Needs;
use crate::class_reading::ClassReading;
use crate::classify::Filtered;
use crate::discipline::{Algorithm, Class, ClassState, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rate::RateMeter;
use crate::sharing::borrowing::{Borrowing, Meter, Mode, NEVER, Sent, Served};
use crate::sharing::differences::Differences;
use crate::sharing::index::ClassIndex;
use crate::sharing::leaves::Leaves;
use crate::sharing::tree::ClassTree;
use crate::time::Time;

pub use config::{CLASS_PARAMETERS, ClassConfig, Config, DESCRIPTION, LinkSharing, PARAMETERS};

/// The binary logarithm of the number of packets that the average covers.
const GAIN: u32 = 5;

/// Longer idle times need not be distinguished: they bring any average to its highest, ns.
const LONG_IDLE: u64 = 1 << 62;

/// The level of all leaves.
const LEAVES: u8 = 0;

/// The computed end of transmission is at most this many of the longest packets ahead of the clock. If it
/// would be more, the driver sends faster than the link.
const MAX_AHEAD: u64 = 16;

/// Estimates whether a class is over its rate.
#[derive(Clone, Copy, Debug)]
struct Estimator {
    /// The average idle time, ns times 2^5. Above 0 the class is within its rate.
    average: i64,
    /// The limits of the average.
    most: i64,
    least: i64,
    /// The time at which an overlimit class is within its rate again, ns.
    next: u64,
    /// The time at which the transmission of its last packet ended, ns.
    last: u64,
    rate: RateMeter,
    /// How long the class is suspended, ns. `None` for a class that borrows.
    suspension: Option<i64>,
}

impl Meter for Estimator {
    #[inline]
    fn charge(&mut self, sent: Sent, _borrows: bool) {
        let cost = self.rate.nanos(sent.length.into()) as i64;
        let between = sent.completion.saturating_sub(self.last);
        self.last = sent.completion;
        let idle = between.min(LONG_IDLE) as i64 - cost;
        self.average += idle - (self.average >> GAIN);
        if self.average > 0 {
            self.average = self.average.min(self.most);
            self.next = 0;
            return;
        }
        self.average = self.average.max(self.least);
        // The time that the average needs to reach 0, and the time of the packet or the suspension.
        let missing = (-self.average >> GAIN) * ((1 << GAIN) - 1);
        let wait = missing + cost.max(self.suspension.unwrap_or(0));
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

    /// Returns the average idle time, and the time at which an overlimit class is within its rate again, ns.
    fn variables(&self) -> [(&'static str, Variable); 2] {
        [
            ("avgidle", Variable::Integer(self.average >> GAIN)),
            ("undertime", Variable::Nanos(self.next)),
        ]
    }
}

/// The discipline. Create it with [`Cbq::node`].
#[derive(Debug)]
pub struct Cbq {
    classes: Borrowing<Estimator>,
    link: RateMeter,
    /// The time at which the transmission of all sent packets ends, ns.
    completion: u64,
    /// No class above this level lends. With the formal rule, the level that was served last.
    cutoff: u8,
    /// The highest level of the tree.
    top: u8,
    /// The time at which the next class may be within its rate. `None` unless the last dequeue returned none.
    due: Option<Time>,
    /// What differs from the tree that this one will succeed.
    differences: Option<Differences>,
    config: Box<Config>,
}

impl Cbq {
    /// Creates the discipline over `inner`, which has one discipline for each leaf of `config.classes`, in
    /// the same order.
    ///
    /// # Errors
    /// Fails if a parameter is out of its range, or if the classes do not form a tree.
    pub fn node(config: Config, inner: Vec<Box<dyn Discipline>>) -> Result<Node<Cbq>, ConfigError> {
        let tree = config.check()?;
        tree.check_disciplines(inner.len())?;
        let leaves = Leaves::new(inner, &tree, &config.templates);
        let mut cbq = Cbq::new(config, tree, leaves);
        // An inner discipline may already contain packets.
        cbq.classes.activate_all();
        Ok(Node::new(cbq))
    }

    /// Creates classes that have been idle for a long time.
    fn new(config: Config, tree: ClassTree, inner: Leaves) -> Cbq {
        let top = tree.classes().map(|class| tree.height(class)).max();
        let top = top.expect("the tree was checked to have classes");
        Cbq {
            classes: Borrowing::new(config.parts(&tree), tree, inner),
            link: config.bandwidth.meter(),
            completion: 0,
            cutoff: top,
            top,
            due: None,
            differences: None,
            config: Box::new(config),
        }
    }

    /// Sends the next packet by the formal rule: from the lowest level that can send.
    #[inline]
    fn serve_formally(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        // If no leaf of a level has a packet to send now, the level is empty after it was served.
        while let Some(level) = self.classes.lowest_level() {
            self.cutoff = level;
            if let Some(served) = self.classes.serve(level, now, pool) {
                return Some(self.charge(served, level));
            }
        }
        None
    }

    /// Sends the next packet by top-level link sharing: of the highest priority up to the cut-off.
    fn serve_up_to_cutoff(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        loop {
            let Some(level) = self.classes.level_of_highest_priority(self.cutoff) else {
                if self.cutoff == self.top {
                    return None;
                }
                self.cutoff += 1;
                continue;
            };
            let Some(served) = self.classes.serve(level, now, pool) else {
                continue;
            };
            let class = served.class;
            let id = self.charge(served, level);
            if level > LEAVES {
                self.cutoff = self.cutoff_after(class, level);
            }
            return Some(id);
        }
    }

    /// Returns the cut-off after `leaf` has sent a packet that a class of `level` lent: `rmc_tl_satisfied` of
    /// ALTQ. It goes through all classes; here the rows give the answer.
    fn cutoff_after(&self, leaf: ClassIndex, level: u8) -> u8 {
        if self.classes.can_continue(leaf, level) {
            return level;
        }
        match self.classes.lowest_level() {
            Some(LEAVES) => LEAVES,
            _ => self.top,
        }
    }

    /// Charges a packet that a class of `level` lends.
    #[inline]
    fn charge(&mut self, served: Served, level: u8) -> PacketId {
        let sent = self.sent(served.length);
        self.classes.charge(served.class, level, sent);
        served.id
    }

    /// Computes the end of transmission of a packet that is sent now.
    #[inline]
    fn sent(&mut self, length: u32) -> Sent {
        let now = self.classes.now();
        let time = self.link.nanos(length.into());
        let most = MAX_AHEAD * self.link.nanos(self.config.max_packet.into());
        let ahead = self.completion.saturating_sub(now).saturating_add(time);
        self.completion = now.saturating_add(ahead.min(most.max(time)));
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
        let classifier = &mut self.config.classifier;
        let leaf = match self.classes.tree.leaf_of(classifier, id, now, pool) {
            Ok(Some(leaf)) => leaf,
            Ok(None) => {
                pool.give_back(id, DropReason::NoClass);
                return Verdict::Unclassified;
            }
            Err(Filtered) => return Verdict::Unclassified,
        };
        if self.config.link_sharing == LinkSharing::Formal {
            return self.classes.enqueue(leaf, id, now, pool);
        }
        let (verdict, class) = self.classes.enqueue_and_tell(leaf, id, now, pool);
        let clock = self.classes.now().max(now.nanos());
        if let Some(level) = self.classes.level_of_lender(class, clock) {
            self.cutoff = self.cutoff.min(level);
        }
        verdict
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
        let next = match self.config.link_sharing {
            LinkSharing::Formal => self.serve_formally(now, pool),
            LinkSharing::TopLevel => self.serve_up_to_cutoff(now, pool),
        };
        if next.is_none() {
            self.due = self.classes.next_event();
        }
        next
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.classes.drain(pool, into);
        self.cutoff = self.top;
        self.due = None;
    }

    fn watchdog(&self) -> Option<Time> {
        self.classes.watchdog(self.due)
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        (*self.config).clone()
    }

    /// Classes may be added, removed and moved. A new leaf holds a fifo, which can be replaced. The packets
    /// of a removed class are classified again. Unclassified packets are dropped.
    fn reconfigure(&mut self, mut config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let tree = config.check()?;
        config.classifier.take_over(&self.config.classifier);
        self.change(config, tree, now, pool);
        Ok(())
    }

    fn succeed(&mut self, old: &mut Cbq, kept: &[u32], now: Time, pool: &mut Pool) -> bool {
        self.take_over(old, kept, now, pool);
        true
    }

    fn prepare_to_succeed(&mut self, old: &Config) {
        self.differences = Some(self.config.differences(old));
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.classes.visit_classes(visit);
    }

    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        self.classes.visit_classes_at(places, visit);
    }

    fn read_class_states(
        &self,
        reading: &mut ClassReading,
        most: usize,
        visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        self.classes.read_class_states(reading, most, visit)
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        self.classes.class_mut(minor)
    }

    fn class_replaced(&mut self, minor: u32, _now: Time, _pool: &mut Pool) {
        self.classes.class_replaced(minor);
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("cutoff", Variable::Integer(self.cutoff.into()));
        self.classes.visit_variables(visit);
    }
}

#[cfg(test)]
mod tests;
