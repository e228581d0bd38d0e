//! Hierarchical fair service curve (Stoica, Zhang and Ng, SIGCOMM 1997), equal to Linux's `sch_hfsc` operation for operation.
//!
//! A leaf may have a *real-time* curve: how many bytes it gets by when, counted from the start of its backlog, whatever the
//! others do. Two pieces let delay and rate be told apart: a steep first one brings a packet out early at a low rate.
//! Each class shares what is left with its siblings in proportion to its *link-sharing* curve, and by that gets no more
//! than its *upper limit*.
//!
//! ```text
//!   real time    the curve from (start of backlog, bytes so far), lowered where the old one was less
//!                  deadline = when it reaches the end of the first packet     eligible = when it is due at all
//!                of the eligible leaves the one with the earliest deadline goes first
//!   sharing      if none is eligible: from the top down to the child of least virtual time, the time at which its
//!                curve reaches what it got in all, among those whose limit lets them
//! ```
//!
//! Service by sharing does not count against the real-time curve, so nobody is punished for using what others left (the
//! paper, section 4). All times are ticks of 64 ns and all slopes fixed point, as in Linux.
//!
//! Invariants: a leaf with packets that isn't parked is active: with a real-time curve it is either waiting for its eligible
//! time or among the eligible by deadline; with a sharing curve it is among its parent's children, and so is every class
//! above it. Children whose limit does not let them yet are kept apart, by the time from which it does.
//!
//! Each step of a packet's way is O(log n) in the number of siblings; the real-time criterion in that of leaves which are late.
//!
//! Deviations from Linux: parameters that Linux ignores are refused (a real-time curve of an inner class, a limit without a
//! sharing curve); a curve that ends stays at infinity where Linux's times wrap; a leaf that holds back packets is idle
//! until its own watchdog time; unchanged curves go on over a change of parameters.
//!
//! Non-goals: real-time guarantees within a class (that is its leaf's business), and to guests: a curve that the line can't
//! keep is only found where the line's `rate` is told.

mod change;
mod config;
mod curve;
mod keyed_heap;
mod knockout;
mod siblings;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::discipline::{Algorithm, Class, ClassState, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::sharing::books::{Books, LeafCount, Tally};
use crate::sharing::borrowing::LEVELS;
use crate::sharing::event_queue::EventQueue;
use crate::sharing::hfsc::keyed_heap::KeyedHeap;
use crate::sharing::tree::NO_PARENT;
use crate::sharing::{ClassTree, Leaves};
use crate::stats::Count;
use crate::time::Time;

pub use crate::service_curve::ServiceCurve;
pub use config::{CLASS_PARAMETERS, ClassConfig, Config, DESCRIPTION, PARAMETERS};
use curve::{Course, Curve, INFINITE, TICK};
use siblings::Siblings;

/// The leaf of an inner class.
const NO_LEAF: u32 = u32::MAX;

/// A class and its part in sharing.
struct HfscClass {
    parent: u32,
    /// Its place among its siblings.
    sibling: u32,
    /// A leaf's place among the leaves, or [`NO_LEAF`].
    leaf: u32,
    /// How many of its children are active; 1 of an active leaf.
    active: u32,
    /// How many times it became active, and its parent's number when it did last.
    period: u64,
    parent_period: u64,
    /// Bytes that it got in all.
    total: u64,
    virtual_time: u64,
    /// What virtual time was put forward because the class was passed over for its limit.
    put_forward: u64,
    /// From when on its own limit lets it, and from when on it may be served: when also one of its children may.
    own_fit: u64,
    fit: u64,
    /// Breaks ties of virtual time: of equals the one that came to it first.
    turn: u64,
    sharing: Option<Curve>,
    shared: Course,
    limit: Option<Curve>,
    limited: Course,
}

/// A leaf's part in real time.
struct RealTime {
    curve: Option<Curve>,
    course: Course,
    /// Bytes that it got by this criterion.
    served: u64,
    eligible: u64,
    deadline: u64,
    turn: u64,
}

/// A leaf.
struct Leaf {
    place: u32,
    is_active: bool,
    real_time: RealTime,
    /// What it sent since the classes were changed.
    sent: Count,
}

/// The discipline. Make one with [`Hfsc::node`].
pub struct Hfsc {
    /// Behind the last one the root, which is above those that have no parent.
    classes: Vec<HfscClass>,
    siblings: Vec<Siblings>,
    leaves: Vec<Leaf>,
    inner: Leaves,
    /// Leaves whose real-time service isn't due yet, by the time at which it will be.
    waiting: EventQueue,
    /// It is due for none of these before. May be too early, because one left.
    next_eligible: u64,
    /// Those for which it is, by deadline, then by the same.
    eligible: KeyedHeap<(u64, u128)>,
    turns: u64,
    /// The clock in ticks: it stands still while the driver's goes backwards.
    now: u64,
    /// When somebody may be served; `None` unless nobody could at the last dequeue.
    due: Option<Time>,
    by_deadline: u64,
    by_sharing: u64,
    books: Books,
    tree: ClassTree,
    config: Config,
}

impl Hfsc {
    /// Classes over `inner`, one discipline for each leaf of `config.classes`, in the same order.
    ///
    /// # Errors
    /// If a parameter is out of its range, if the classes make no tree, or if not all curves can be kept.
    pub fn node(config: Config, inner: Vec<Box<dyn Discipline>>) -> Result<Node<Hfsc>, ConfigError> {
        let tree = config.check()?;
        tree.check_inner(inner.len())?;
        let leaves = Leaves::new(inner, &tree, &config.templates);
        let mut hfsc = Hfsc::new(config, tree, leaves);
        for leaf in 0..hfsc.leaves.len() {
            // An inner discipline may come with packets in it: it is looked at by the first dequeue.
            if !hfsc.inner.is_empty(leaf) {
                hfsc.inner.park_unsure(leaf);
            }
        }
        Ok(Node::new(hfsc))
    }

    /// Without active leaves.
    fn new(config: Config, tree: ClassTree, inner: Leaves) -> Hfsc {
        let root = tree.len();
        let mut children = vec![0; root + 1];
        let mut classes: Vec<HfscClass> = Vec::with_capacity(root + 1);
        for (place, settings) in config.classes.iter().enumerate() {
            let parent = match tree.parent(place) {
                NO_PARENT => root as u32,
                parent => parent,
            };
            let leaf = tree.leaf(settings.minor).map_or(NO_LEAF, |leaf| leaf as u32);
            let sibling = children[parent as usize];
            children[parent as usize] += 1;
            classes.push(HfscClass::new(parent, sibling, leaf, settings.ls, settings.ul));
        }
        classes.push(HfscClass::new(NO_PARENT, 0, NO_LEAF, None, None));
        let leaf = |&place: &u32| {
            let curve = config.classes[place as usize].rt.map(|curve| Curve::new(&curve));
            Leaf {
                place,
                is_active: false,
                real_time: RealTime {
                    course: curve.map_or(Course::default(), |curve| curve.from(0, 0)),
                    curve,
                    served: 0,
                    eligible: 0,
                    deadline: 0,
                    turn: 0,
                },
                sent: Count::default(),
            }
        };
        let leaves: Vec<Leaf> = tree.leaves().iter().map(leaf).collect();
        Hfsc {
            siblings: (0..=root)
                .map(|place| Siblings::new(&classes, place as u32, children[place]))
                .collect(),
            classes,
            waiting: EventQueue::new(leaves.len()),
            next_eligible: INFINITE,
            eligible: KeyedHeap::new(leaves.len()),
            leaves,
            inner,
            turns: 0,
            now: 0,
            due: None,
            by_deadline: 0,
            by_sharing: 0,
            books: Books::new(root),
            tree,
            config,
        }
    }

    fn root(&self) -> u32 {
        self.classes.len() as u32 - 1
    }

    fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Makes a leaf active that has a packet to send, if it isn't.
    fn activate(&mut self, leaf: usize, now: Time, pool: &mut Pool) {
        if self.leaves[leaf].is_active || self.inner.is_empty(leaf) {
            return;
        }
        self.inner.unpark(leaf);
        self.now = self.now.max(now.nanos() >> TICK);
        let Leaf { place, real_time, .. } = &mut self.leaves[leaf];
        let place = *place;
        if let Some(curve) = real_time.curve {
            // A deadline is that of a packet: it must be known, and stay the first.
            let Some(first) = self.inner.get_mut(leaf).peek(now, pool) else {
                if !self.inner.is_empty(leaf) {
                    self.inner.park(leaf);
                }
                return;
            };
            curve.lower(&mut real_time.course, self.now, real_time.served);
            self.schedule(leaf, pool[first].length);
        }
        self.leaves[leaf].is_active = true;
        if self.classes[place as usize].sharing.is_some() {
            self.share(place, |_| false);
        }
    }

    /// Files a leaf that isn't waiting by when its real-time service is due, and by when its first packet, of `length` bytes, is.
    fn schedule(&mut self, leaf: usize, length: u32) {
        let turn = self.turn();
        let real_time = &mut self.leaves[leaf].real_time;
        let curve = real_time.curve.expect("a leaf with a real-time curve");
        real_time.turn = turn;
        real_time.eligible = curve.eligible_time(&real_time.course, real_time.served);
        real_time.deadline = curve.time(&real_time.course, real_time.served + u64::from(length));
        let (eligible, deadline) = (real_time.eligible, real_time.deadline);
        if eligible <= self.now {
            self.eligible
                .set(leaf as u32, (deadline, in_turn(eligible, turn)));
        } else {
            self.eligible.remove(leaf as u32);
            self.waiting
                .insert(leaf as u32, eligible.min(INFINITE - 1), self.now);
            self.next_eligible = self.next_eligible.min(eligible);
        }
    }

    /// A class became active; so does every class above that wasn't. `goes_on` tells which of them are to keep the virtual
    /// time that they have.
    fn share(&mut self, mut place: u32, goes_on: impl Fn(u32) -> bool) {
        let mut becomes_active = true;
        while place != self.root() {
            let class = &mut self.classes[place as usize];
            let parent = class.parent;
            if becomes_active {
                class.active += 1;
                becomes_active = class.active == 1;
            }
            if becomes_active {
                if !goes_on(place) {
                    self.begin_period(place);
                }
                self.classes[place as usize].turn = self.turn();
            }
            self.fit(place);
            place = parent;
        }
    }

    /// Virtual time of a class that became active: in the middle between the least and the latest of its siblings', so that
    /// it neither catches up nor waits; if there are none active, where the last of them was.
    fn begin_period(&mut self, place: u32) {
        let parent = self.classes[place as usize].parent;
        let above = &mut self.siblings[parent as usize];
        let latest = above.latest(&self.classes);
        let (parents_period, parent_is_active) = {
            let parent = &self.classes[parent as usize];
            (parent.period, parent.active > 0)
        };
        let class = &mut self.classes[place as usize];
        match latest {
            Some(latest) => {
                let middle = match above.least {
                    0 => latest,
                    least => (least + latest) / 2,
                };
                if parents_period != class.parent_period || middle > class.virtual_time {
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
        class.parent_period = parents_period + u64::from(!parent_is_active);
        if let Some(curve) = class.limit {
            curve.lower(&mut class.limited, self.now, class.total);
            class.own_fit = curve.time(&class.limited, class.total);
        }
    }

    /// Files an active class among its siblings by when it may be served, and by virtual time.
    #[inline]
    fn fit(&mut self, place: u32) {
        let class = &mut self.classes[place as usize];
        class.fit = match class.leaf {
            NO_LEAF => class.own_fit.max(self.siblings[place as usize].earliest_fit()),
            _ => class.own_fit,
        };
        self.siblings[class.parent as usize].set(class, self.now);
    }

    /// Charges `length` bytes to a leaf and all above it; `is_over` if the leaf is idle from now on.
    fn charge(&mut self, mut place: u32, length: u32, is_over: bool) {
        let root = self.root();
        let mut becomes_idle = is_over && self.classes[place as usize].sharing.is_some();
        while place != root {
            let class = &mut self.classes[place as usize];
            let parent = class.parent;
            class.total += u64::from(length);
            if let Some(curve) = &class.sharing
                && class.active > 0
            {
                if becomes_idle {
                    class.active -= 1;
                    becomes_idle = class.active == 0;
                }
                let above = &mut self.siblings[parent as usize];
                class.virtual_time = curve
                    .time(&class.shared, class.total)
                    .saturating_add(class.put_forward);
                if class.virtual_time < above.least {
                    // It was passed over for its limit; what it missed it does not get later.
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
                    self.fit(place);
                }
            }
            place = parent;
        }
    }

    /// The leaf whose turn it is in sharing; `None` if no limit lets one.
    fn by_virtual_time(&mut self) -> Option<usize> {
        let mut place = self.root();
        loop {
            let child = self.siblings[place as usize].first(&self.classes, self.now)?;
            let class = &self.classes[child as usize];
            let above = &mut self.siblings[place as usize];
            above.least = above.least.max(class.virtual_time);
            if class.leaf != NO_LEAF {
                return Some(class.leaf as usize);
            }
            place = child;
        }
    }

    /// Files those that have waited for their time by their deadline.
    #[inline(never)]
    fn become_eligible(&mut self) {
        let next = loop {
            let leaf = match self.waiting.pop_due(self.now) {
                Ok(leaf) => leaf,
                Err(next) => break next,
            };
            let RealTime {
                eligible,
                deadline,
                turn,
                ..
            } = self.leaves[leaf as usize].real_time;
            self.eligible.set(leaf, (deadline, in_turn(eligible, turn)));
        };
        self.next_eligible = next.unwrap_or(INFINITE);
    }

    /// The leaf whose turn it is, and whether by its deadline.
    fn choose(&mut self) -> Option<(usize, bool)> {
        if self.now >= self.next_eligible {
            self.become_eligible();
        }
        match self.eligible.first() {
            Some((_, leaf)) => Some((leaf as usize, true)),
            None => self.by_virtual_time().map(|leaf| (leaf, false)),
        }
    }

    /// Takes a leaf out that sent its last packet, of `length` bytes, or holds the next ones back.
    fn deactivate(&mut self, leaf: usize, length: u32) {
        if self.waiting.contains(leaf as u32) {
            self.waiting.remove(leaf as u32);
        }
        self.eligible.remove(leaf as u32);
        self.leaves[leaf].is_active = false;
        self.charge(self.leaves[leaf].place, length, true);
        if !self.inner.is_empty(leaf) {
            self.inner.park(leaf);
        }
    }

    /// Enters that leaf `leaf` sent `length` bytes.
    fn sent(&mut self, leaf: usize, length: u32, by_deadline: bool, now: Time, pool: &mut Pool) {
        self.by_deadline += u64::from(by_deadline);
        self.by_sharing += u64::from(!by_deadline);
        let Leaf { real_time, sent, .. } = &mut self.leaves[leaf];
        sent.add(length);
        real_time.served += u64::from(length) * u64::from(by_deadline);
        let Some(curve) = real_time.curve else {
            return match self.inner.is_empty(leaf) {
                true => self.deactivate(leaf, length),
                false => self.charge(self.leaves[leaf].place, length, false),
            };
        };
        let Some(next) = self.inner.get_mut(leaf).peek(now, pool) else {
            return self.deactivate(leaf, length);
        };
        self.charge(self.leaves[leaf].place, length, false);
        let next = pool[next].length;
        if by_deadline {
            self.schedule(leaf, next);
        } else {
            let real_time = &mut self.leaves[leaf].real_time;
            real_time.deadline = curve.time(&real_time.course, real_time.served + u64::from(next));
        }
    }
}

impl Hfsc {
    fn leaf_counts(&self) -> impl Iterator<Item = LeafCount> {
        self.leaves.iter().map(|leaf| {
            let mut from = [0; LEVELS];
            from[0] = leaf.sent.packets;
            LeafCount {
                place: leaf.place,
                bytes: leaf.sent.bytes,
                from,
            }
        })
    }

    /// What each class has sent. There are no loans.
    fn tallies(&self) -> Vec<Tally> {
        self.books.tallies(&self.tree, |_| 0, self.leaf_counts())
    }
}

/// Times by rising, and among equal ones turns.
#[inline]
fn in_turn(time: u64, turn: u64) -> u128 {
    u128::from(time) << 64 | u128::from(turn)
}

/// The time of these.
#[inline]
fn time_of(in_turn: u128) -> u64 {
    (in_turn >> 64) as u64
}

impl HfscClass {
    fn new(
        parent: u32,
        sibling: u32,
        leaf: u32,
        sharing: Option<ServiceCurve>,
        limit: Option<ServiceCurve>,
    ) -> HfscClass {
        let (sharing, limit) = (
            sharing.map(|curve| Curve::new(&curve)),
            limit.map(|curve| Curve::new(&curve)),
        );
        let start = |curve: Option<Curve>| curve.map_or(Course::default(), |curve| curve.from(0, 0));
        HfscClass {
            parent,
            sibling,
            leaf,
            active: 0,
            period: 0,
            parent_period: 0,
            total: 0,
            virtual_time: 0,
            put_forward: 0,
            own_fit: 0,
            fit: 0,
            turn: 0,
            sharing,
            shared: start(sharing),
            limit,
            limited: start(limit),
        }
    }
}

impl Algorithm for Hfsc {
    const NAME: &'static str = "hfsc";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Some(leaf) = self.tree.leaf_of(&self.config.classifier, id, pool) else {
            pool.give_back(id, DropReason::NoClass);
            return Verdict::Unclassified;
        };
        let leaf = self.inner.of_host(leaf, id, pool);
        let verdict = self.inner.get_mut(leaf).enqueue(id, now, pool);
        self.activate(leaf, now, pool);
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        self.now = self.now.max(now.nanos() >> TICK);
        self.inner.wake_up(now);
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
        let fit = self.siblings[self.root() as usize].next_fit();
        let next = eligible.into_iter().chain(fit).min();
        self.due = next.map(|ticks| Time::from_nanos(ticks.min(INFINITE >> TICK) << TICK));
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.inner.drain(pool, into);
        for leaf in 0..self.leaves.len() {
            if self.leaves[leaf].is_active {
                self.deactivate(leaf, 0);
            }
        }
        self.due = None;
    }

    fn watchdog(&self) -> Option<Time> {
        [self.due, self.inner.watchdog()].into_iter().flatten().min()
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
        self.inner.visit(&self.tree, visit);
    }

    fn visit_class_states(&self, visit: &mut dyn FnMut(ClassState<'_>)) {
        for (place, tally) in self.tallies().into_iter().enumerate() {
            let class = &self.classes[place];
            let by_real_time = match class.leaf {
                NO_LEAF => 0,
                leaf => self.leaves[leaf as usize].real_time.served,
            };
            visit(ClassState {
                minor: self.tree.minor(place),
                sent: tally.sent,
                overlimits: 0,
                variables: &[
                    ("period", Variable::Integer(class.period as i64)),
                    ("work", Variable::Integer(class.total as i64)),
                    ("rtwork", Variable::Integer(by_real_time as i64)),
                    ("level", Variable::Integer(self.tree.height(place).into())),
                ],
            });
        }
    }

    fn class_mut(&mut self, minor: u16) -> Option<&mut Box<dyn Discipline>> {
        Some(self.inner.touch(self.tree.leaf(minor)?))
    }

    fn class_replaced(&mut self, minor: u16, now: Time, pool: &mut Pool) {
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
