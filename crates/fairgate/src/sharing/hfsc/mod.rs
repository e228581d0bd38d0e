//! Hierarchical fair service curve (Stoica, Zhang and Ng, SIGCOMM 1997), equal to Linux's `sch_hfsc`
//! operation for operation.
//!
//! A leaf may have a *real-time* curve: how many bytes it gets by which time, from the start of its backlog
//! on, whatever the other leaves do. A curve has two pieces, so that delay and rate are independent: a steep
//! first piece gives a packet a low delay at a low rate. Each class shares the rest with its siblings in
//! proportion to its *link-sharing* curve. By sharing, it does not get more than its *upper limit*.
//!
//! ```text
//!   real time    the curve from (start of backlog, bytes so far), lowered where the old one was less
//!                  deadline = when it reaches the end of the first packet
//!                  eligible = the earliest time for real-time service
//!                the eligible leaf with the earliest deadline is served first
//!   sharing      if no leaf is eligible: from the root down, always to the child with the smallest virtual
//!                time (the time at which its curve reaches its total) of those that their limit permits
//! ```
//!
//! Service by sharing does not count against the real-time curve, so a class is not punished for the use of
//! capacity that others left (section 4 of the paper). All times are ticks of 64 ns and all slopes are fixed
//! point, as in Linux.
//!
//! Invariants: a leaf with packets that is not parked is active. If it has a real-time curve, it either waits
//! for its eligible time, or is among the eligible leaves by deadline. If it has a sharing curve, it is among
//! its parent's active children, and so is every class above it. Children whose limit does not permit service
//! yet are stored separately, by the time from which it does.
//!
//! Each step of a packet's path is O(log n) in the number of siblings. The real-time criterion is O(log n) in
//! the number of eligible leaves.
//!
//! Deviations from Linux: parameters that Linux ignores are rejected (a real-time curve of an inner class, a
//! limit without a sharing curve). Times beyond the end of a curve are infinite; in Linux they wrap. A leaf
//! that has no packet to send now is idle until its watchdog time. A change of parameters keeps the state of
//! curves that did not change.
//!
//! Non-goals: real-time guarantees within a class, which are up to the discipline of its leaf; guarantees on
//! a link that is too slow for all curves. This is detected only if the link's `rate` is configured.

mod change;
mod class;
mod config;
mod curve;
mod keyed_heap;
mod knockout;
mod siblings;

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
use crate::sharing::differences::Differences;
use crate::sharing::event_queue::EventQueue;
use crate::sharing::hfsc::keyed_heap::KeyedHeap;
use crate::sharing::index::{ClassIndex, LeafIndex};
use crate::sharing::leaves::Leaves;
use crate::sharing::statistics::{ClassStatistics, Counters, LeafCounters};
use crate::sharing::tree::ClassTree;
use crate::time::Time;

pub use crate::service_curve::ServiceCurve;
use class::{HfscClass, Leaf, RealTime};
pub use config::{CLASS_PARAMETERS, ClassConfig, Config, DESCRIPTION, PARAMETERS};
use curve::{INFINITE, TICK};
use siblings::Siblings;

/// The discipline. Create it with [`Hfsc::node`].
#[derive(Debug)]
pub struct Hfsc {
    /// After the last class there is the root, the parent of the classes at the top.
    classes: Vec<HfscClass>,
    siblings: Vec<Siblings>,
    leaves: Vec<Leaf>,
    inner: Leaves,
    /// The leaves that are not eligible yet, by their eligible time.
    waiting: Box<EventQueue>,
    /// None of these is eligible before this time. It can be too early, because a leaf was removed.
    next_eligible: u64,
    /// The eligible leaves by deadline, then by eligible time, then by turn.
    eligible: KeyedHeap<(u64, u128)>,
    turns: u64,
    /// The clock in ticks. It stands still while the driver's clock goes backwards.
    now: u64,
    /// The time at which a leaf can be served. `None` unless the last dequeue returned none.
    due: Option<Time>,
    by_deadline: u64,
    by_sharing: u64,
    statistics: ClassStatistics,
    tree: Box<ClassTree>,
    /// What differs from the tree that this one will succeed.
    differences: Option<Differences>,
    config: Box<Config>,
}

impl Hfsc {
    /// Creates the discipline over `inner`, which has one discipline for each leaf of `config.classes`, in
    /// the same order.
    ///
    /// # Errors
    /// Fails if a parameter is out of its range, if the classes do not form a tree, or if not all curves can
    /// be kept.
    pub fn node(config: Config, inner: Vec<Box<dyn Discipline>>) -> Result<Node<Hfsc>, ConfigError> {
        let tree = config.check()?;
        tree.check_disciplines(inner.len())?;
        let leaves = Leaves::new(inner, &tree, &config.templates);
        let mut hfsc = Hfsc::new(config, tree, leaves);
        for leaf in hfsc.leaf_indices() {
            // An inner discipline may already contain packets. The first dequeue checks it.
            if !hfsc.inner.is_empty(leaf) {
                hfsc.inner.park_in_doubt(leaf);
            }
        }
        Ok(Node::new(hfsc))
    }

    /// Creates classes without active leaves.
    fn new(config: Config, tree: ClassTree, inner: Leaves) -> Hfsc {
        let root = ClassIndex::new(tree.len());
        let mut children = vec![0; tree.len() + 1];
        let mut classes: Vec<HfscClass> = Vec::with_capacity(tree.len() + 1);
        for (class, settings) in tree.classes().zip(&config.classes) {
            let parent = tree.parent(class).unwrap_or(root);
            let leaf = tree.leaf(settings.minor).unwrap_or(LeafIndex::NONE);
            let sibling = children[parent.index()];
            children[parent.index()] += 1;
            classes.push(HfscClass::new(parent, sibling, leaf, settings.ls, settings.ul));
        }
        classes.push(HfscClass::new(ClassIndex::NONE, 0, LeafIndex::NONE, None, None));
        let leaves: Vec<Leaf> = tree
            .leaves()
            .iter()
            .map(|&class| Leaf::new(class, config.classes[class.index()].rt))
            .collect();
        Hfsc {
            siblings: (0..=tree.len())
                .map(|parent| Siblings::new(&classes, ClassIndex::new(parent), children[parent]))
                .collect(),
            classes,
            waiting: Box::new(EventQueue::new(leaves.len())),
            next_eligible: INFINITE,
            eligible: KeyedHeap::new(leaves.len()),
            leaves,
            inner,
            turns: 0,
            now: 0,
            due: None,
            by_deadline: 0,
            by_sharing: 0,
            statistics: ClassStatistics::new(tree.len()),
            tree: Box::new(tree),
            differences: None,
            config: Box::new(config),
        }
    }

    fn root(&self) -> ClassIndex {
        ClassIndex::new(self.classes.len() - 1)
    }

    fn leaf_indices(&self) -> impl Iterator<Item = LeafIndex> + use<> {
        (0..self.leaves.len()).map(LeafIndex::new)
    }

    fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Activates a leaf that has a packet to send, if it is not active.
    fn activate(&mut self, leaf: LeafIndex, now: Time, pool: &mut Pool) {
        if self.leaves[leaf.index()].is_active || self.inner.is_empty(leaf) {
            return;
        }
        self.inner.unpark(leaf);
        self.now = self.now.max(now.nanos() >> TICK);
        let Leaf { class, real_time, .. } = &mut self.leaves[leaf.index()];
        let class = *class;
        if let Some(curve) = real_time.curve {
            // A deadline is that of a packet. So the first packet must be known, and remain the first.
            let Some(first) = self.inner.get_mut(leaf).peek(now, pool) else {
                if !self.inner.is_empty(leaf) {
                    self.inner.park(leaf);
                }
                return;
            };
            curve.lower(&mut real_time.course, self.now, real_time.served);
            let length = self.config.link_layer.count(pool[first].length);
            self.schedule(leaf, length);
        }
        self.leaves[leaf.index()].is_active = true;
        if self.classes[class.index()].sharing.is_some() {
            self.share(class, |_| false);
        }
    }

    /// Files a leaf that is not waiting by its eligible time and by the deadline of its first packet, which
    /// has `length` bytes.
    fn schedule(&mut self, leaf: LeafIndex, length: u32) {
        let turn = self.turn();
        let real_time = &mut self.leaves[leaf.index()].real_time;
        let curve = real_time
            .curve
            .expect("only leaves with a real-time curve are scheduled");
        real_time.turn = turn;
        real_time.eligible = curve.eligible_time(&real_time.course, real_time.served);
        real_time.deadline = curve.time(&real_time.course, real_time.served + u64::from(length));
        let (eligible, deadline) = (real_time.eligible, real_time.deadline);
        if eligible <= self.now {
            self.eligible
                .set(leaf.number(), (deadline, in_turn(eligible, turn)));
        } else {
            self.eligible.remove(leaf.number());
            self.waiting
                .insert(leaf.number(), eligible.min(INFINITE - 1), self.now);
            self.next_eligible = self.next_eligible.min(eligible);
        }
    }

    /// Handles that a class becomes active, and so do the classes above it that were not. `goes_on` returns
    /// whether a class keeps its virtual time.
    fn share(&mut self, mut index: ClassIndex, goes_on: impl Fn(ClassIndex) -> bool) {
        let mut becomes_active = true;
        while index != self.root() {
            let class = &mut self.classes[index.index()];
            let parent = class.parent;
            if becomes_active {
                class.active += 1;
                becomes_active = class.active == 1;
            }
            if becomes_active {
                if !goes_on(index) {
                    self.begin_period(index);
                }
                self.classes[index.index()].turn = self.turn();
            }
            self.fit(index);
            index = parent;
        }
    }

    /// Sets the virtual time of a class that becomes active: the middle between the least and the latest of
    /// its active siblings', so that it neither catches up nor waits. If no sibling is active, the time at
    /// which the last of them became idle.
    fn begin_period(&mut self, index: ClassIndex) {
        let parent = self.classes[index.index()].parent;
        let above = &mut self.siblings[parent.index()];
        let latest = above.latest(&self.classes);
        let (parent_period, parent_is_active) = {
            let parent = &self.classes[parent.index()];
            (parent.period, parent.active > 0)
        };
        let class = &mut self.classes[index.index()];
        match latest {
            Some(latest) => {
                let middle = match above.least {
                    0 => latest,
                    least => (least + latest) / 2,
                };
                if parent_period != class.parent_period || middle > class.virtual_time {
                    class.virtual_time = middle;
                }
            }
            None => {
                class.virtual_time = above.offset;
                above.least = 0;
            }
        }
        if let Some(curve) = class.sharing {
            curve.lower(&mut class.shared, class.virtual_time, class.total);
        }
        class.put_forward = 0;
        class.period += 1;
        class.parent_period = parent_period + u64::from(!parent_is_active);
        if let Some(curve) = class.limit {
            curve.lower(&mut class.limited, self.now, class.total);
            class.own_fit = curve.time(&class.limited, class.total);
        }
    }

    /// Files an active class among its siblings by virtual time, or by the time from which it can be served.
    #[inline(always)]
    fn fit(&mut self, index: ClassIndex) {
        let class = &mut self.classes[index.index()];
        class.fit = match class.leaf {
            LeafIndex::NONE => class.own_fit.max(self.siblings[index.index()].earliest_fit()),
            _ => class.own_fit,
        };
        self.siblings[class.parent.index()].set(class, self.now);
    }

    /// Charges `length` bytes to a leaf and all classes above it. `is_idle` says that the leaf is now idle.
    fn charge(&mut self, mut index: ClassIndex, length: u32, is_idle: bool) {
        let root = self.root();
        let mut becomes_idle = is_idle && self.classes[index.index()].sharing.is_some();
        while index != root {
            let class = &mut self.classes[index.index()];
            let parent = class.parent;
            class.total += u64::from(length);
            if let Some(curve) = &class.sharing
                && class.active > 0
            {
                if becomes_idle {
                    class.active -= 1;
                    becomes_idle = class.active == 0;
                }
                let above = &mut self.siblings[parent.index()];
                class.virtual_time = curve
                    .time(&class.shared, class.total)
                    .saturating_add(class.put_forward);
                if class.virtual_time < above.least {
                    // It was skipped due to its limit. It does not get later what it missed.
                    class.put_forward += above.least - class.virtual_time;
                    class.virtual_time = above.least;
                }
                if becomes_idle {
                    above.offset = above.offset.max(class.virtual_time);
                    above.remove(class.sibling);
                } else {
                    if let Some(limit) = class.limit {
                        class.own_fit = limit.time(&class.limited, class.total);
                    }
                    self.turns += 1;
                    class.turn = self.turns;
                    self.fit(index);
                }
            }
            index = parent;
        }
    }

    /// Returns the next leaf by link sharing, or `None` if the limits permit no leaf.
    fn by_virtual_time(&mut self) -> Option<LeafIndex> {
        let mut index = self.root();
        loop {
            let child = self.siblings[index.index()].first(&self.classes, self.now)?;
            let class = &self.classes[child.index()];
            let above = &mut self.siblings[index.index()];
            above.least = above.least.max(class.virtual_time);
            if class.leaf != LeafIndex::NONE {
                return Some(class.leaf);
            }
            index = child;
        }
    }

    /// Moves the leaves whose eligible time has come to the eligible ones.
    #[inline(never)]
    fn become_eligible(&mut self) {
        let next = loop {
            let leaf = match self.waiting.pop_due(self.now) {
                Ok(number) => LeafIndex::new(number as usize),
                Err(next) => break next,
            };
            let RealTime {
                eligible,
                deadline,
                turn,
                ..
            } = self.leaves[leaf.index()].real_time;
            self.eligible
                .set(leaf.number(), (deadline, in_turn(eligible, turn)));
        };
        self.next_eligible = next.unwrap_or(INFINITE);
    }

    /// Returns the leaf to serve next, and whether its deadline selected it.
    fn choose(&mut self) -> Option<(LeafIndex, bool)> {
        if self.now >= self.next_eligible {
            self.become_eligible();
        }
        match self.eligible.first() {
            Some((_, number)) => Some((LeafIndex::new(number as usize), true)),
            None => self.by_virtual_time().map(|leaf| (leaf, false)),
        }
    }

    fn stop_waiting(&mut self, leaf: LeafIndex) {
        if self.waiting.contains(leaf.number()) {
            self.waiting.remove(leaf.number());
        }
    }

    /// Deactivates a leaf that sent its last packet, of `length` bytes, or has none to send now.
    fn deactivate(&mut self, leaf: LeafIndex, length: u32) {
        self.stop_waiting(leaf);
        self.eligible.remove(leaf.number());
        self.leaves[leaf.index()].is_active = false;
        self.charge(self.leaves[leaf.index()].class, length, true);
        if !self.inner.is_empty(leaf) {
            self.inner.park(leaf);
        }
    }

    /// Records that a leaf sent `length` bytes.
    fn sent(&mut self, leaf: LeafIndex, length: u32, by_deadline: bool, now: Time, pool: &mut Pool) {
        self.by_deadline += u64::from(by_deadline);
        self.by_sharing += u64::from(!by_deadline);
        let Leaf { real_time, sent, .. } = &mut self.leaves[leaf.index()];
        sent.add(length);
        // From here on lengths are those on the link.
        let link = self.config.link_layer;
        let length = link.count(length);
        real_time.served += u64::from(length) * u64::from(by_deadline);
        let Some(curve) = real_time.curve else {
            return match self.inner.is_empty(leaf) {
                true => self.deactivate(leaf, length),
                false => self.charge(self.leaves[leaf.index()].class, length, false),
            };
        };
        let Some(next) = self.inner.get_mut(leaf).peek(now, pool) else {
            return self.deactivate(leaf, length);
        };
        self.charge(self.leaves[leaf.index()].class, length, false);
        let next = link.count(pool[next].length);
        if by_deadline {
            self.schedule(leaf, next);
        } else {
            let real_time = &mut self.leaves[leaf.index()].real_time;
            real_time.deadline = curve.time(&real_time.course, real_time.served + u64::from(next));
        }
    }
}

impl Hfsc {
    fn leaf_counters(&self) -> impl Iterator<Item = LeafCounters> {
        self.leaves.iter().map(Leaf::counters)
    }

    /// Returns what each class has sent. No class lends.
    fn counters(&self) -> Vec<Counters> {
        self.statistics.counters(&self.tree, |_| 0, self.leaf_counters())
    }
}

/// Returns a key that sorts by time, then by turn.
#[inline]
fn in_turn(time: u64, turn: u64) -> u128 {
    u128::from(time) << 64 | u128::from(turn)
}

/// Returns the time of a key.
#[inline]
fn time_of(in_turn: u128) -> u64 {
    (in_turn >> 64) as u64
}

impl Algorithm for Hfsc {
    const NAME: &'static str = "hfsc";
    type Config = Config;

    #[inline(always)]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let leaf = match self.tree.leaf_of(&mut self.config.classifier, id, now, pool) {
            Ok(Some(leaf)) => leaf,
            Ok(None) => {
                pool.give_back(id, DropReason::NoClass);
                return Verdict::Unclassified;
            }
            Err(Filtered) => return Verdict::Unclassified,
        };
        let leaf = self.inner.of_host(leaf, id, pool);
        let verdict = self.inner.get_mut(leaf).enqueue(id, now, pool);
        self.activate(leaf, now, pool);
        verdict.after_peek(id, pool)
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        self.now = self.now.max(now.nanos() >> TICK);
        if self.inner.are_due(now) {
            self.inner.wake_up(now);
        }
        while let Some(leaf) = self.inner.next_woken() {
            self.activate(leaf, now, pool);
        }
        while let Some((leaf, by_deadline)) = self.choose() {
            if let Some(id) = self.inner.get_mut(leaf).dequeue(now, pool) {
                self.sent(leaf, pool[id].length, by_deadline, now, pool);
                return Some(id);
            }
            self.deactivate(leaf, 0);
        }
        let eligible = self.waiting.next();
        let fit = self.siblings[self.root().index()].next_fit();
        let next = eligible.into_iter().chain(fit).min();
        self.due = next.map(|ticks| Time::from_nanos(ticks.min(INFINITE >> TICK) << TICK));
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.inner.drain(pool, into);
        for leaf in self.leaf_indices() {
            if self.leaves[leaf.index()].is_active {
                self.deactivate(leaf, 0);
            }
        }
        self.due = None;
    }

    fn watchdog(&self) -> Option<Time> {
        [self.due, self.inner.watchdog()].into_iter().flatten().min()
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

    fn succeed(&mut self, old: &mut Hfsc, kept: &[u32], now: Time, pool: &mut Pool) -> bool {
        self.take_over(old, kept, now, pool);
        true
    }

    fn prepare_to_succeed(&mut self, old: &Config) {
        self.differences = Some(self.config.differences(old));
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.inner.visit(0..usize::MAX, &self.tree, visit);
    }

    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        self.inner.visit(places, &self.tree, visit);
    }

    fn read_class_states(
        &self,
        reading: &mut ClassReading,
        most: usize,
        visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        let (tree, leaf) = (&self.tree, |place: usize| self.leaves[place].counters());
        self.statistics.read(
            reading,
            most,
            tree,
            |_| 0,
            leaf,
            |index, counters| {
                let class = &self.classes[index.index()];
                let by_real_time = match class.leaf {
                    LeafIndex::NONE => 0,
                    leaf => self.leaves[leaf.index()].real_time.served,
                };
                visit(ClassState {
                    minor: self.tree.minor(index),
                    sent: counters.sent,
                    overlimits: 0,
                    variables: &[
                        ("period", Variable::Integer(class.period as i64)),
                        ("work", Variable::Integer(class.total as i64)),
                        ("rtwork", Variable::Integer(by_real_time as i64)),
                        ("level", Variable::Integer(self.tree.height(index).into())),
                    ],
                });
            },
        )
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        Some(self.inner.touch(self.tree.leaf(minor)?))
    }

    fn class_replaced(&mut self, minor: u32, now: Time, pool: &mut Pool) {
        let leaf = self.tree.checked_leaf(minor);
        self.inner.replaced(leaf);
        self.activate(leaf, now, pool);
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let active = self.leaves.iter().filter(|leaf| leaf.is_active).count();
        visit("active_classes", Variable::Integer(active as i64));
        visit("sent_by_deadline", Variable::Integer(self.by_deadline as i64));
        visit("sent_by_sharing", Variable::Integer(self.by_sharing as i64));
    }
}

#[cfg(test)]
mod tests;
