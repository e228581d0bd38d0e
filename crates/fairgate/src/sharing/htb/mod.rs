//! Hierarchical token bucket (Devera 2002), equal to Linux's `sch_htb` operation for operation.
//!
//! Each class has a *rate* that it is sure of and a *ceil* that it never exceeds, a bucket of tokens for each. While both
//! hold tokens it can send (green); while only the ceil's does it may borrow from its parent (yellow); else it can't send
//! (red). What a leaf sends is charged to its own buckets and to those of every class above it; but a class below the one
//! that lends is charged in its ceil bucket only.
//!
//! A dequeue looks for the lowest level, in it for the highest priority, with a class that can send, and goes from there
//! down to a leaf: so who needs no loan goes first, then who borrows from nearest. How classes hang together, and what turns
//! they take, is told in `sharing/borrowing.rs`.
//!
//! A packet that nothing places goes to the *direct queue*, which is served first and not shaped: without classes all do.
//! In a change of parameters tokens are carried over, in bytes. What was queued in a class that is no more is placed again.
//!
//! Deviations from Linux: no filters at inner classes, so that a packet that names one goes by the filters of the whole; a
//! parent's rate is not below a child's; the watchdog is not woken every few seconds where no event is due; a leaf that holds
//! back packets is left alone until its own watchdog time; a flush leaves colours as they are. As there, a debt of tokens
//! is at most a minute's: a class is not held to less than a packet a minute.
//!
//! Non-goals: bounds on delay (that is what hfsc is for); hysteresis.

mod change;
mod config;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::discipline::{Algorithm, Class, ClassState, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rate::RateMeter;
use crate::sharing::borrowing::{Borrowing, Meter, Mode, Sent};
use crate::sharing::{ClassTree, Leaves};
use crate::time::Time;

pub use config::{CLASS_PARAMETERS, ClassConfig, Config, DESCRIPTION, PARAMETERS};

/// The longest debt, and the longest time that fills a bucket, ns: Linux's.
const LONGEST: i64 = 60_000_000_000;

/// Linux's tick, to which tc rounds the depths of buckets.
const TICK: u32 = 6;

/// The two buckets of a class. Tokens are ns at the bucket's rate, so an empty one fills as the clock goes: all that has to be
/// known of it is when it is empty. (These times wrap below 0.)
#[derive(Clone, Copy)]
struct Buckets {
    /// When the bucket holds nothing: before, it is in debt.
    empty_at: u64,
    ceil_empty_at: u64,
    charged_at: u64,
    rate: RateMeter,
    ceil: RateMeter,
    /// Most tokens, in ticks.
    depth: u32,
    ceil_depth: u32,
}

impl Buckets {
    /// Time of which more than the longest has passed since the last charge does not count.
    #[inline]
    fn idle_until(&mut self, now: u64) {
        if now - self.charged_at > LONGEST as u64 {
            self.idle_for_long(now);
        }
        self.charged_at = now;
    }

    #[cold]
    fn idle_for_long(&mut self, now: u64) {
        let excess = now - self.charged_at - LONGEST as u64;
        self.empty_at = self.empty_at.wrapping_add(excess);
        self.ceil_empty_at = self.ceil_empty_at.wrapping_add(excess);
    }
}

/// The tokens at `now` of a bucket that is empty at `empty_at`, whatever its depth.
#[inline]
fn tokens(empty_at: u64, now: u64) -> i64 {
    now.wrapping_sub(empty_at) as i64
}

/// When a bucket is empty that `sent` was taken from.
#[inline]
fn paid(empty_at: u64, depth: u32, meter: RateMeter, sent: Sent) -> u64 {
    let filled = tokens(empty_at, sent.now).min(i64::from(depth) << TICK);
    let left = (filled - meter.nanos(sent.length.into()) as i64).max(1 - LONGEST);
    sent.now.wrapping_sub(left as u64)
}

impl Meter for Buckets {
    #[inline]
    fn charge(&mut self, sent: Sent, borrows: bool) {
        self.idle_until(sent.now);
        if !borrows {
            self.empty_at = paid(self.empty_at, self.depth, self.rate, sent);
        }
        self.ceil_empty_at = paid(self.ceil_empty_at, self.ceil_depth, self.ceil, sent);
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

    /// Tokens as of the last charge, ns.
    fn variables(&self) -> [(&'static str, Variable); 2] {
        let left = |empty_at: u64| Variable::Integer(tokens(empty_at, self.charged_at));
        [
            ("tokens", left(self.empty_at)),
            ("ctokens", left(self.ceil_empty_at)),
        ]
    }
}

/// The discipline. Make one with [`Htb::node`].
pub struct Htb {
    classes: Borrowing<Buckets>,
    /// When the next class may change its mode; `None` unless nothing could be sent at the last dequeue.
    due: Option<Time>,
    direct: PacketQueue,
    directly_sent: u64,
    config: Config,
}

impl Htb {
    /// Classes over `inner`, one discipline for each leaf of `config.classes`, in the same order.
    ///
    /// # Errors
    /// If a parameter is out of its range, or if the classes make no tree.
    pub fn node(config: Config, inner: Vec<Box<dyn Discipline>>) -> Result<Node<Htb>, ConfigError> {
        let tree = config.check()?;
        tree.check_inner(inner.len())?;
        let leaves = Leaves::new(inner, &tree, &config.templates);
        let mut htb = Htb::new(config, tree, leaves);
        // An inner discipline may come with packets in it.
        htb.classes.activate_all();
        Ok(Node::new(htb))
    }

    /// With full buckets, and no leaf active.
    fn new(config: Config, tree: ClassTree, inner: Leaves) -> Htb {
        Htb {
            classes: Borrowing::new(config.parts(&tree), tree, inner),
            due: None,
            direct: PacketQueue::new(),
            directly_sent: 0,
            config,
        }
    }

    /// The leaf for a packet; none for one that names htb itself, whatever the filters say.
    #[inline]
    fn leaf_of(&self, id: PacketId, pool: &Pool) -> Option<usize> {
        let (tree, classifier) = (&self.classes.tree, &self.config.classifier);
        match tree.named(classifier, id, pool) {
            None if !classifier.is_itself(pool[id].class) => tree.unnamed(classifier, id, pool),
            named => named,
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

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Some(leaf) = self.leaf_of(id, pool) else {
            return self.enqueue_directly(id, pool);
        };
        self.classes.enqueue(leaf, id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        if let Some(id) = self.direct.pop_front(pool) {
            self.directly_sent += 1;
            return Some(id);
        }
        if self.classes.occupied() == 0 {
            return None;
        }
        self.classes.advance(now);
        let now_or_later = self.classes.now();
        for level in self.classes.levels() {
            self.classes.do_events(level);
            while self.classes.waits_at(level) {
                let Some(served) = self.classes.serve(level, now, pool) else {
                    continue;
                };
                let sent = Sent {
                    now: now_or_later,
                    length: served.length,
                    completion: now_or_later,
                };
                self.classes.charge(served.place, level, sent);
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
        visit("direct_packets", Variable::Integer(self.directly_sent as i64));
        self.classes.visit_variables(visit);
    }
}

#[cfg(test)]
mod tests;
