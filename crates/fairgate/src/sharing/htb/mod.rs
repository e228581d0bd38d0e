//! Hierarchical token bucket (Devera 2002), equal to Linux's `sch_htb` operation for operation.
//!
//! Each class has a *rate* that it is guaranteed and a *ceil* that it never exceeds, with a token bucket for
//! each. If both buckets have tokens, the class can send (green). If only the ceil's bucket has, it may
//! borrow from its parent (yellow). Otherwise it can't send (red). A packet is charged to both buckets of its
//! leaf and of every class above the leaf. Exception: for a class below the lender, only the ceil's bucket is
//! charged.
//!
//! A dequeue searches the lowest level, and on it the highest priority, that has a class which can send. From
//! that class it goes down to a leaf. So leaves that need not borrow are first, then those that borrow from
//! the nearest ancestor. `sharing/borrowing.rs` describes how classes are linked, and the order of their
//! turns.
//!
//! An unclassified packet goes to the *direct queue*, which is served first and not shaped. Without classes,
//! all packets do. A change of parameters keeps the tokens, in bytes. The packets of removed classes are
//! classified again.
//!
//! Deviations from Linux: there are no filters at inner classes, so a packet that names one is classified by
//! the filters of the discipline. The watchdog does not fire every few seconds if no event is due. A leaf
//! that has no packet to send now is not asked before its watchdog time. A flush keeps the modes. A debt of
//! tokens is a minute's worth at most, as in Linux, or the time of one packet: Linux forgives what is beyond
//! a minute, so a class sends a packet each minute however low its ceil is. As in Linux, a ceil may be below
//! the rate, and a rate above that of the parent: the class can send while its own buckets permit it, and the
//! debt of the parent grows.
//!
//! A class may have bursts for a time (`bursts.rs`), which Linux's do not have.
//!
//! Non-goals: bounds on delay (use `hfsc`); hysteresis.

mod bursts;
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
use crate::link_layer::LinkLayer;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rate::RateMeter;
use crate::sharing::borrowing::{Borrowing, Meter, Mode, Sent};
use crate::sharing::differences::Differences;
use crate::sharing::index::{ClassIndex, LeafIndex};
use crate::sharing::leaves::Leaves;
use crate::sharing::tree::ClassTree;
use crate::time::Time;

use bursts::Bursts;

pub use config::{CLASS_PARAMETERS, ClassConfig, Config, DESCRIPTION, PARAMETERS};

/// The longest debt of more than a packet, and the longest pause that fills a bucket, ns, as in Linux.
const LONGEST: i64 = 60_000_000_000;

/// The binary logarithm of Linux's tick, 64 ns, to which tc rounds the depths of buckets.
const TICK: u32 = 6;

/// The two buckets of a class. Tokens are ns at the bucket's rate, so a bucket fills as fast as the clock
/// runs. It is enough to store the time at which a bucket is empty. (These times wrap below 0.)
#[derive(Clone, Copy, Debug)]
struct Buckets {
    /// The time at which the bucket is empty. Before that time it is in debt.
    empty_at: u64,
    ceil_empty_at: u64,
    charged_at: u64,
    rate: RateMeter,
    ceil: RateMeter,
    /// How both count the length of a packet. `None` as it is, as mostly: this is one comparison.
    link: Option<LinkLayer>,
    /// The maximum number of tokens, in ticks.
    depth: u32,
    ceil_depth: u32,
}

impl Buckets {
    /// Returns the bytes that a packet of this length counts.
    #[inline]
    fn counted(&self, length: u32) -> u32 {
        match &self.link {
            None => length,
            Some(link) => count_apart(link, length),
        }
    }

    /// Advances to `now`. If more time than the longest has passed since the last charge, the excess does not
    /// count.
    #[inline]
    fn idle_until(&mut self, now: u64) {
        // The half of the longest time or more: a shift needs no large constant.
        if (now - self.charged_at) >> (LONGEST.ilog2()) != 0 {
            self.idle_for_long(now);
        }
        self.charged_at = now;
    }

    #[cold]
    #[inline(never)]
    fn idle_for_long(&mut self, now: u64) {
        let excess = (now - self.charged_at).saturating_sub(LONGEST as u64);
        for empty_at in [&mut self.empty_at, &mut self.ceil_empty_at] {
            // It pays back all of a debt of a longer time.
            let lost = excess.min(tokens(*empty_at, now).max(0) as u64);
            *empty_at = empty_at.wrapping_add(lost);
        }
    }
}

// Not inlined: mostly lengths count as they are.
#[inline(never)]
fn count_apart(link: &LinkLayer, length: u32) -> u32 {
    link.count(length)
}

/// Returns the tokens at `now` of a bucket that is empty at `empty_at`, not limited to its depth.
#[inline]
fn tokens(empty_at: u64, now: u64) -> i64 {
    now.wrapping_sub(empty_at) as i64
}

/// Returns the tokens that are left at `now` of a bucket that `cost` ns are charged to.
#[inline]
fn left_after(cost: u64, empty_at: u64, depth: u32, now: u64) -> i64 {
    tokens(empty_at, now).min(i64::from(depth) << TICK) - cost as i64
}

/// Limits a debt to the longest one, or to the time of the packet that is charged.
#[cold]
#[inline(never)]
fn limited_debt(left: i64, cost: u64) -> i64 {
    left.max((1 - LONGEST).min(-(cost as i64)))
}

impl Meter for Buckets {
    #[inline(always)]
    fn charge(&mut self, sent: Sent, borrows: bool) {
        let now = sent.now;
        self.idle_until(now);
        let length = self.counted(sent.length).into();
        if !borrows {
            let cost = self.rate.nanos(length);
            let mut left = left_after(cost, self.empty_at, self.depth, now);
            if left < 1 - LONGEST {
                left = limited_debt(left, cost);
            }
            self.empty_at = now.wrapping_sub(left as u64);
        }
        let cost = self.ceil.nanos(length);
        let mut left = left_after(cost, self.ceil_empty_at, self.ceil_depth, now);
        // Seldom below 0: a class with a debt of its ceil can't send. So this needs no large constant.
        if left < 0 {
            left = limited_debt(left, cost);
        }
        self.ceil_empty_at = now.wrapping_sub(left as u64);
    }

    #[inline]
    fn mode(&self, now: u64) -> (Mode, u64) {
        let ceil_tokens = tokens(self.ceil_empty_at, now);
        if ceil_tokens < 0 {
            return (Mode::CantSend, ceil_tokens.unsigned_abs());
        }
        let tokens = tokens(self.empty_at, now);
        if tokens >= 0 {
            return (Mode::CanSend, 0);
        }
        (Mode::MayBorrow, tokens.unsigned_abs())
    }

    /// Returns the tokens at the last charge, ns.
    fn variables(&self) -> [(&'static str, Variable); 2] {
        let left = |empty_at: u64| Variable::Integer(tokens(empty_at, self.charged_at));
        [
            ("tokens", left(self.empty_at)),
            ("ctokens", left(self.ceil_empty_at)),
        ]
    }
}

/// The discipline. Create it with [`Htb::node`].
#[derive(Debug)]
pub struct Htb {
    classes: Borrowing<Buckets>,
    /// The time at which the next class may change its mode. `None` unless the last dequeue returned none.
    due: Option<Time>,
    direct: PacketQueue,
    direct_packets: u64,
    bursts: Bursts,
    /// What differs from the tree that this one will succeed.
    differences: Option<Differences>,
    config: Box<Config>,
}

impl Htb {
    /// Creates the discipline over `inner`, which has one discipline for each leaf of `config.classes`, in
    /// the same order.
    ///
    /// # Errors
    /// Fails if a parameter is out of its range, or if the classes do not form a tree.
    pub fn node(config: Config, inner: Vec<Box<dyn Discipline>>) -> Result<Node<Htb>, ConfigError> {
        let tree = config.check()?;
        tree.check_disciplines(inner.len())?;
        let leaves = Leaves::new(inner, &tree, &config.templates);
        let mut htb = Htb::new(config, tree, leaves);
        // An inner discipline may already contain packets.
        htb.classes.activate_all();
        Ok(Node::new(htb))
    }

    /// Creates classes with full buckets. No leaf is active.
    fn new(config: Config, tree: ClassTree, inner: Leaves) -> Htb {
        let mut parts = config.parts(&tree);
        let bursts = Bursts::of(&config.classes);
        if !bursts.are_none() {
            for (class, parts) in tree.classes().zip(&mut parts) {
                bursts.apply(class, &mut parts.meter);
            }
        }
        Htb {
            classes: Borrowing::new(parts, tree, inner),
            bursts,
            due: None,
            direct: PacketQueue::new(),
            direct_packets: 0,
            differences: None,
            config: Box::new(config),
        }
    }

    /// Returns the leaf for a packet. A packet that names htb itself has none, whatever the filters say. For
    /// a packet that names an inner class, the filters of this class decide.
    #[inline(always)]
    fn leaf_of(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Result<Option<LeafIndex>, Filtered> {
        let (tree, classifier) = (&self.classes.tree, &mut self.config.classifier);
        let Some(minor) = classifier.explicit(pool[id].class) else {
            return match classifier.is_itself(pool[id].class) {
                true => Ok(None),
                false => tree.unnamed(classifier, id, now, pool),
            };
        };
        match tree.leaf(minor) {
            None if classifier.filters.has_chain(minor) => {
                let leaf = tree.filtered(Some(minor), classifier, id, now, pool)?;
                let default = || classifier.default.and_then(|default| tree.leaf(default));
                Ok(leaf.or_else(default))
            }
            None => tree.unnamed(classifier, id, now, pool),
            leaf => Ok(leaf),
        }
    }

    /// Counts a packet that is being sent in the bursts of its class and of those above.
    #[inline(never)]
    fn count_in_bursts(&mut self, leaf: ClassIndex, length: u32, now: u64) {
        let mut next = Some(leaf);
        while let Some(class) = next {
            if let Some(burst) = self.bursts.get_mut(class) {
                burst.count(length, now, self.classes.meter_mut(class));
            }
            next = self.classes.tree.parent(class);
        }
    }

    #[cold]
    fn enqueue_directly(&mut self, id: PacketId, pool: &mut Pool) -> Verdict {
        if self.direct.count().packets >= u64::from(self.config.direct_qlen) {
            pool.give_back(id, DropReason::NoClass);
            return Verdict::Dropped;
        }
        self.direct.push_back(id, pool);
        Verdict::Queued
    }
}

impl Algorithm for Htb {
    const NAME: &'static str = "htb";
    type Config = Config;

    // As one function with `Node`'s, this saves storing and loading registers again.
    #[inline(always)]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        match self.leaf_of(id, now, pool) {
            Ok(Some(leaf)) => self.classes.enqueue(leaf, id, now, pool),
            Ok(None) => self.enqueue_directly(id, pool),
            Err(Filtered) => Verdict::Unclassified,
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        if let Some(id) = self.direct.pop_front(pool) {
            self.direct_packets += 1;
            return Some(id);
        }
        if self.classes.occupied() == 0 {
            return None;
        }
        self.classes.advance(now);
        let now_or_later = self.classes.now();
        for level in self.classes.levels() {
            self.classes.do_events(level);
            while self.classes.can_send_at(level) {
                let Some(served) = self.classes.serve(level, now, pool) else {
                    continue;
                };
                if !self.bursts.are_none() {
                    self.count_in_bursts(served.class, served.length, now_or_later);
                }
                let sent = Sent {
                    now: now_or_later,
                    length: served.length,
                    completion: now_or_later,
                };
                self.classes.charge(served.class, level, sent);
                return Some(served.id);
            }
        }
        self.due = self.classes.next_event();
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.direct.append_to(into, pool);
        self.classes.drain(pool, into);
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
    /// of a removed class are classified again. Unclassified packets go to the direct queue, or are dropped
    /// if it is full.
    fn reconfigure(&mut self, mut config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let tree = config.check()?;
        config.classifier.take_over(&self.config.classifier);
        self.change(config, tree, now, pool);
        Ok(())
    }

    fn succeed(&mut self, old: &mut Htb, kept: &[u32], now: Time, pool: &mut Pool) -> bool {
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
        visit("direct_packets", Variable::Integer(self.direct_packets as i64));
        self.classes.visit_variables(visit);
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
