//! Classes that borrow from the classes above them: the common part of `htb` and `cbq`. A [`Meter`] measures
//! what a class has used and decides what the class may do.
//!
//! ```text
//!   level 7    1     the feed of a class contains its children that may borrow,
//!             / \    if a leaf with packets is below them
//!   level 6  10  20
//!           /  \     the row of a level contains its classes that can send,
//!   level 0 11  12   if a leaf with packets is below them, or they are one
//! ```
//!
//! There is a feed and a row for each priority in use. A class that can neither send nor borrow is in none.
//!
//! From a row, the round robins of the feeds lead down to the leaf that is served. A leaf has a deficit for
//! each level. While the deficit is not below zero the leaf keeps its turn. Then the leaf gets a quantum, and
//! the turn passes on. Turns are in the order of class numbers. A class changes its mode when it is charged,
//! or when its event is due.
//!
//! The cost of a packet depends on the height of the tree, not on the number of classes. Rows and feeds are
//! bitmaps by class ([`OrderedSet`](crate::sharing::ordered_set::OrderedSet)), event queues are radix heaps
//! ([`EventQueue`]).
//!
//! Invariants: a leaf with packets that is not parked is active. A class is in the feed or row of a rank if
//! its mode permits it and an active leaf of that rank is below it. A class has an event unless its mode is
//! `CanSend`.

mod change;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::class_reading::ClassReading;
use crate::discipline::{Class, ClassState, Discipline, Variable, Verdict};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::sharing::event_queue::EventQueue;
use crate::sharing::index::{ClassIndex, LeafIndex, Rank, RoundRobinIndex, bits};
use crate::sharing::leaves::Leaves;
use crate::sharing::round_robins::RoundRobins;
use crate::sharing::statistics::{ClassStatistics, Counters, LeafCounters};
use crate::sharing::tree::{ClassTree, LEVELS};
use crate::structures::boxed;
use crate::time::Time;

/// The number of priorities of leaves. 0 is the highest.
pub(super) const PRIORITIES: usize = 8;

/// The time of an event that does not exist.
pub(super) const NEVER: u64 = u64::MAX;

/// What a class may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Neither send nor borrow (red).
    CantSend,
    /// Send if an ancestor lends (yellow).
    MayBorrow,
    /// Send and lend (green).
    CanSend,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The time of the dequeue, ns.
    pub(super) now: u64,
    /// The length of the packet, bytes.
    pub(super) length: u32,
    /// The time at which its last bit leaves, as far as is known, ns.
    pub(super) completion: u64,
}

/// Measures what a class has used.
pub(super) trait Meter: Send + 'static {
    /// Charges a packet. `borrows` says that the class is below the class that lends.
    fn charge(&mut self, sent: Sent, borrows: bool);

    /// Returns what the class may do. If it cannot send, also returns when to ask again, ns from `now`, above
    /// 0.
    fn mode(&self, now: u64) -> (Mode, u64);

    /// Returns state variables for users.
    fn variables(&self) -> [(&'static str, Variable); 2];
}

/// A class: everything that is accessed when a packet is charged.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct SharedClass<M> {
    pub(super) meter: M,
    /// The parent, or `NONE`.
    parent: ClassIndex,
    /// The parent's feed of rank 0. Not used if there is no parent.
    feed: RoundRobinIndex,
    /// The position among the children of the parent.
    sibling: u32,
    level: u8,
    mode: Mode,
    /// Bit r is set if an active leaf of rank r is below the class, or if the class is such a leaf.
    activity: u8,
    /// The rank of a leaf's priority.
    rank: Rank,
}

/// Where a class is connected.
#[derive(Clone, Copy)]
struct Place {
    parent: ClassIndex,
    feed: RoundRobinIndex,
    sibling: u32,
    index: ClassIndex,
    level: u8,
}

impl<M> SharedClass<M> {
    /// Returns a copy: what it is connected to changes while it is read.
    #[inline]
    fn place(&self, index: ClassIndex) -> Place {
        Place {
            parent: self.parent,
            feed: self.feed,
            sibling: self.sibling,
            index,
            level: self.level,
        }
    }
}

/// What is accessed when a leaf is served.
#[derive(Debug)]
struct Leaf {
    class: ClassIndex,
    quantum: i32,
    /// The bytes sent since the last change of the tree's shape. The packets in `served_from` are counted
    /// likewise.
    bytes: u64,
    served_from: [ServedFrom; LEVELS],
}

impl Leaf {
    fn counters(&self) -> LeafCounters {
        LeafCounters {
            class: self.class,
            bytes: self.bytes,
            packets_from: self.served_from.map(|served| served.packets),
        }
    }
}

/// What a leaf sent from one of the levels.
#[derive(Clone, Copy, Default, Debug)]
struct ServedFrom {
    packets: u64,
    /// The bytes that the leaf may still send in its turn.
    deficit: i64,
}

/// The parts that a class is made of.
pub(super) struct ClassParts<M> {
    pub(super) meter: M,
    pub(super) level: u8,
    pub(super) priority: u8,
    /// The bytes that a leaf may send in its turn.
    pub(super) quantum: i32,
}

/// A packet that was served, and its leaf.
pub(super) struct Served {
    pub(super) id: PacketId,
    /// The class of the leaf.
    pub(super) class: ClassIndex,
    pub(super) length: u32,
}

/// The classes of a tree.
#[derive(Debug)]
pub(super) struct Borrowing<M> {
    classes: Vec<SharedClass<M>>,
    leaves: Vec<Leaf>,
    inner: Leaves,
    round_robins: RoundRobins,
    /// The events of the classes of each level.
    events: Box<[EventQueue; LEVELS]>,
    /// No event of a level is due before this time. It can be too early, because a class was charged since.
    next_event: [u64; LEVELS],
    /// Bit l is set if there are classes of level l.
    levels: u8,
    /// The number of leaves that are active or parked. While it is 0, events do not matter.
    occupied: u32,
    /// The clock, ns. It stands still while the driver's clock goes backwards.
    now: u64,
    statistics: ClassStatistics,
    pub(super) tree: Box<ClassTree>,
}

impl<M: Meter> Borrowing<M> {
    /// Creates the classes of `tree`. All of them can send, and no leaf is active.
    pub(super) fn new(parts: Vec<ClassParts<M>>, tree: ClassTree, inner: Leaves) -> Borrowing<M> {
        let levels: Vec<u8> = parts.iter().map(|class| class.level).collect();
        let leaf = |&class: &ClassIndex| Leaf {
            class,
            quantum: parts[class.index()].quantum,
            bytes: 0,
            served_from: [ServedFrom::default(); LEVELS],
        };
        let leaves: Vec<Leaf> = tree.leaves().iter().map(leaf).collect();
        let priorities = leaves.iter().map(|leaf| parts[leaf.class.index()].priority);
        let round_robins = RoundRobins::new(&levels, priorities, &tree);
        let events = |level: u8| {
            EventQueue::new(match levels.contains(&level) {
                true => levels.len(),
                false => 0,
            })
        };
        let class = |(index, parts): (ClassIndex, ClassParts<M>)| {
            let (parent, feed, sibling) = match tree.parent(index) {
                None => (ClassIndex::NONE, RoundRobinIndex::new(0), 0),
                Some(parent) => {
                    let siblings = tree.children(parent);
                    let sibling = siblings.partition_point(|&child| child < index);
                    (parent, round_robins.first_feed(parent), sibling as u32)
                }
            };
            SharedClass {
                meter: parts.meter,
                parent,
                feed,
                sibling,
                level: parts.level,
                mode: Mode::CanSend,
                activity: 0,
                rank: round_robins.rank(parts.priority),
            }
        };
        Borrowing {
            levels: levels.iter().fold(0, |used, level| used | 1 << level),
            events: boxed((0..LEVELS).map(|level| events(level as u8))),
            next_event: [NEVER; LEVELS],
            classes: tree.classes().zip(parts).map(class).collect(),
            round_robins,
            leaves,
            inner,
            occupied: 0,
            now: 0,
            statistics: ClassStatistics::new(tree.len()),
            tree: Box::new(tree),
        }
    }

    /// Returns the meter of a class, to change what it limits before a packet is charged.
    pub(super) fn meter_mut(&mut self, class: ClassIndex) -> &mut M {
        &mut self.classes[class.index()].meter
    }

    /// Activates all leaves that have packets.
    pub(super) fn activate_all(&mut self) {
        for leaf in 0..self.leaves.len() {
            self.activate(LeafIndex::new(leaf));
        }
    }

    /// Enqueues a packet in a leaf. If the leaf was made from a template, in the leaf of the packet's host.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, leaf: LeafIndex, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.enqueue_and_tell(leaf, id, now, pool).0
    }

    /// The same, and also returns the class of the leaf.
    #[inline(always)]
    pub(super) fn enqueue_and_tell(
        &mut self,
        leaf: LeafIndex,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> (Verdict, ClassIndex) {
        let leaf = self.inner.of_host(leaf, id, pool);
        let class = self.leaves[leaf.index()].class;
        let verdict = self.inner.get_mut(leaf).enqueue(id, now, pool);
        if self.classes[class.index()].activity == 0 {
            self.activate_idle(leaf, class);
        }
        (verdict, class)
    }

    /// Returns the level of the class, at or above `index`, from which a leaf there can send at `now`. `None`
    /// if there is none. Events that are due need not have been handled.
    pub(super) fn level_of_lender(&self, mut index: ClassIndex, now: u64) -> Option<u8> {
        while let Some(class) = self.classes.get(index.index()) {
            match class.meter.mode(now).0 {
                Mode::CanSend => return Some(class.level),
                Mode::MayBorrow => index = class.parent,
                Mode::CantSend => return None,
            }
        }
        None
    }

    /// Returns whether a leaf has packets to send, and the class above it at `level`, or itself, can send.
    pub(super) fn can_continue(&self, leaf: ClassIndex, level: u8) -> bool {
        let mut index = leaf;
        while let Some(class) = self.classes.get(index.index()) {
            if class.level >= level {
                let is_active = self.classes[leaf.index()].activity != 0;
                return is_active && class.level == level && class.mode == Mode::CanSend;
            }
            index = class.parent;
        }
        false
    }

    /// Returns the level, up to `top`, that has the class of the highest priority which can send a packet.
    #[inline]
    pub(super) fn level_of_highest_priority(&self, top: u8) -> Option<u8> {
        self.round_robins.row_of_highest_priority(top)
    }

    /// Returns the number of leaves that are active or parked.
    #[inline]
    pub(super) fn occupied(&self) -> u32 {
        self.occupied
    }

    /// Returns the levels that have classes, the lowest first.
    #[inline]
    pub(super) fn levels(&self) -> impl Iterator<Item = u8> + use<M> {
        bits(self.levels).map(|level| level as u8)
    }

    /// Returns the clock, ns.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Returns when to ask again: at `due`, or when the first parked leaf can send.
    pub(super) fn watchdog(&self, due: Option<Time>) -> Option<Time> {
        [due, self.inner.watchdog()].into_iter().flatten().min()
    }

    /// Shows the discipline of each leaf.
    pub(super) fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.visit_classes_at(0..usize::MAX, visit);
    }

    /// Shows the discipline of the leaves at these places.
    pub(super) fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        self.inner.visit(places, &self.tree, visit);
    }

    /// Returns the discipline of a leaf, for changes from outside.
    pub(super) fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        Some(self.inner.touch(self.tree.leaf(minor)?))
    }

    /// Handles that a leaf has a new discipline.
    pub(super) fn class_replaced(&mut self, minor: u32) {
        let leaf = self.tree.checked_leaf(minor);
        self.inner.replaced(leaf);
        self.activate(leaf);
    }

    /// Shows the number of active leaves, of packets sent, and of packets that a class above lent.
    pub(super) fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let total = self.statistics.total(self.leaf_counters());
        visit("active_classes", Variable::Integer(self.occupied.into()));
        visit("sent_packets", Variable::Integer(total.sent.packets as i64));
        visit("borrowed_packets", Variable::Integer(total.borrowed as i64));
        visit(
            "class_overlimits",
            Variable::Integer(self.statistics.all_overlimits() as i64),
        );
    }

    /// Shows the statistics and the meter of each class, in steps.
    pub(super) fn read_class_states(
        &self,
        reading: &mut ClassReading,
        most: usize,
        visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        let level = |index: ClassIndex| self.classes[index.index()].level;
        let leaf = |place: usize| self.leaves[place].counters();
        let tree = &self.tree;
        self.statistics
            .read(reading, most, tree, level, leaf, |index, counters| {
                let [lent, borrowed] = counters.variables();
                let [first, second] = self.classes[index.index()].meter.variables();
                visit(ClassState {
                    minor: tree.minor(index),
                    sent: counters.sent,
                    overlimits: self.statistics.overlimits(index),
                    variables: &[lent, borrowed, first, second],
                });
            })
    }

    fn leaf_counters(&self) -> impl Iterator<Item = LeafCounters> {
        self.leaves.iter().map(Leaf::counters)
    }

    fn counters(&self) -> Vec<Counters> {
        let level = |index: ClassIndex| self.classes[index.index()].level;
        self.statistics.counters(&self.tree, level, self.leaf_counters())
    }

    /// Activates a leaf that may have packets, if it is not active.
    #[inline]
    pub(super) fn activate(&mut self, leaf: LeafIndex) {
        let class = self.leaves[leaf.index()].class;
        if self.classes[class.index()].activity == 0 {
            self.activate_idle(leaf, class);
        }
    }

    #[inline(never)]
    fn activate_idle(&mut self, leaf: LeafIndex, class: ClassIndex) {
        if self.inner.is_empty(leaf) {
            return;
        }
        self.occupied += u32::from(!self.inner.unpark(leaf));
        self.becomes_active(class, self.classes[class.index()].rank);
    }

    /// Deactivates a leaf that is empty or has no packet to send now.
    fn deactivate(&mut self, leaf: LeafIndex) {
        let class = self.leaves[leaf.index()].class;
        self.becomes_idle(class, self.classes[class.index()].rank);
        match self.inner.is_empty(leaf) {
            true => self.occupied -= 1,
            false => self.inner.park(leaf),
        }
    }

    /// Adds a class that is active at a rank to the round robin for its mode: the row of its level, or its
    /// parent's feed.
    #[inline(always)]
    fn connect(&mut self, place: Place, mode: Mode, rank: Rank) {
        match mode {
            Mode::CanSend => self.round_robins.add_to_row(place.level, rank, place.index),
            Mode::MayBorrow if place.parent != ClassIndex::NONE => {
                let feed = place.feed.of_rank(rank);
                if self.round_robins.add_to_feed(feed, place.sibling) {
                    self.becomes_active(place.parent, rank);
                }
            }
            Mode::MayBorrow | Mode::CantSend => {}
        }
    }

    /// Removes a class from the round robin for its mode.
    #[inline(always)]
    fn disconnect(&mut self, place: Place, mode: Mode, rank: Rank) {
        match mode {
            Mode::CanSend => self.round_robins.remove_from_row(place.level, rank, place.index),
            Mode::MayBorrow if place.parent != ClassIndex::NONE => {
                let feed = place.feed.of_rank(rank);
                if self.round_robins.remove_from_feed(feed, place.sibling) {
                    self.becomes_idle(place.parent, rank);
                }
            }
            Mode::MayBorrow | Mode::CantSend => {}
        }
    }

    /// Handles that a class has an active leaf of a rank below it again, or is one again.
    #[inline(never)]
    fn becomes_active(&mut self, index: ClassIndex, rank: Rank) {
        let class = &mut self.classes[index.index()];
        class.activity |= rank.bit();
        let (place, mode) = (class.place(index), class.mode);
        self.connect(place, mode, rank);
    }

    /// Handles that a class has no active leaf of a rank below it any more.
    #[inline(never)]
    fn becomes_idle(&mut self, index: ClassIndex, rank: Rank) {
        let class = &mut self.classes[index.index()];
        class.activity &= !rank.bit();
        let (place, mode) = (class.place(index), class.mode);
        self.disconnect(place, mode, rank);
    }

    /// Moves a class that changed its mode to the round robins for its new one.
    #[inline(always)]
    fn reconnect(&mut self, index: ClassIndex, before: Mode) {
        let class = &self.classes[index.index()];
        let (place, mode, activity) = (class.place(index), class.mode, class.activity);
        let Some(first) = Rank::in_set(activity).next() else {
            return;
        };
        self.disconnect(place, before, first);
        self.connect(place, mode, first);
        let others = activity & !first.bit();
        if others != 0 {
            self.reconnect_others(index, before, others);
        }
    }

    // Not inlined: mostly there is one rank, and the compiler prepares for more before the first.
    #[cold]
    #[inline(never)]
    fn reconnect_others(&mut self, index: ClassIndex, before: Mode, ranks: u8) {
        let class = &self.classes[index.index()];
        let (place, mode) = (class.place(index), class.mode);
        for rank in Rank::in_set(ranks) {
            self.disconnect(place, before, rank);
            self.connect(place, mode, rank);
        }
    }

    /// Adds the event of a class of a level, `wait` ns from now.
    #[inline(always)]
    fn add_event(&mut self, index: ClassIndex, level: u8, wait: u64) {
        let level = usize::from(level) % LEVELS;
        let time = self.now.saturating_add(wait).min(NEVER - 1);
        self.events[level].insert(index.number(), time, self.now);
        self.next_event[level] = self.next_event[level].min(time);
    }

    /// Adds the event of a class that waits longer than was known: it was charged since.
    #[cold]
    #[inline(never)]
    fn wait_longer(&mut self, index: ClassIndex, level: u8, wait: u64) {
        self.add_event(index, level, wait);
    }

    /// Sets the clock, and activates the parked leaves whose time has come. The clock stays before the events
    /// that are later than times can be, so that none of them is ever due.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now.nanos().min(NEVER - 2));
        if self.inner.are_due(now) {
            self.wake_up(now);
        }
    }

    #[cold]
    fn wake_up(&mut self, now: Time) {
        self.inner.wake_up(now);
        while let Some(leaf) = self.inner.next_woken() {
            self.occupied -= 1;
            self.activate(leaf);
        }
    }

    /// Handles the events of a level that are due.
    #[inline]
    pub(super) fn do_events(&mut self, level: u8) {
        if self.now >= self.next_event[usize::from(level)] {
            self.do_due_events(level.into());
        }
    }

    /// Returns a time before which no event of any level is due.
    pub(super) fn next_event(&self) -> Option<Time> {
        let next = self.next_event.iter().copied().min();
        next.filter(|&next| next != NEVER).map(Time::from_nanos)
    }

    #[inline(never)]
    fn do_due_events(&mut self, level: usize) {
        let next = loop {
            let index = match self.events[level].pop_due(self.now) {
                Ok(number) => ClassIndex::new(number as usize),
                Err(next) => break next,
            };
            let class = &mut self.classes[index.index()];
            let (mode, wait) = class.meter.mode(self.now);
            let before = core::mem::replace(&mut class.mode, mode);
            if mode != before {
                self.reconnect(index, before);
            }
            if mode != Mode::CanSend {
                self.wait_longer(index, level as u8, wait);
            }
        };
        self.next_event[level] = next.unwrap_or(NEVER);
    }

    /// Charges a packet of the leaf `index` to the leaf and all classes above it. A class of `level` lends
    /// it.
    #[inline(always)]
    pub(super) fn charge(&mut self, mut index: ClassIndex, level: u8, sent: Sent) {
        while let Some(class) = self.classes.get_mut(index.index()) {
            class.meter.charge(sent, class.level < level);
            let (mode, _) = class.meter.mode(sent.now);
            let parent = class.parent;
            // If the mode stays the same, the event is updated when it is due.
            if mode != class.mode {
                self.enter(index, sent.now);
            }
            index = parent;
        }
    }

    /// Gives a class that was charged its new mode and the event for it.
    #[inline(never)]
    fn enter(&mut self, index: ClassIndex, now: u64) {
        let (mode, wait) = self.classes[index.index()].meter.mode(now);
        self.set_mode(index, mode, wait);
        if mode == Mode::CantSend {
            self.statistics.count_overlimit(index);
        }
    }

    /// Gives a class a mode and the event for it.
    #[inline(always)]
    fn set_mode(&mut self, index: ClassIndex, mode: Mode, wait: u64) {
        let class = &mut self.classes[index.index()];
        let (before, level) = (core::mem::replace(&mut class.mode, mode), class.level);
        if mode != before {
            self.reconnect(index, before);
        }
        if before != Mode::CanSend {
            self.events[usize::from(level) % LEVELS].remove(index.number());
        }
        if mode != Mode::CanSend {
            self.add_event(index, level, wait);
        }
    }

    /// Returns whether a class of a level can send a packet.
    #[inline]
    pub(super) fn can_send_at(&self, level: u8) -> bool {
        self.round_robins.has_row(level)
    }

    /// Returns the lowest level that has a class which can send a packet.
    #[inline]
    pub(super) fn lowest_level(&self) -> Option<u8> {
        self.round_robins.lowest_row()
    }

    /// Dequeues the next packet of a level that has a class which can send. The packet is not charged yet.
    /// Returns `None` if the leaf has no packet to send now. Then the leaf is deactivated.
    #[inline(always)]
    pub(super) fn serve(&mut self, level: u8, now: Time, pool: &mut Pool) -> Option<Served> {
        let turn = self.round_robins.look_up(level);
        let inner = self.inner.get_mut(turn.leaf);
        let Some(id) = inner.dequeue(now, pool) else {
            self.deactivate(turn.leaf);
            return None;
        };
        let is_empty = inner.is_empty();
        let length = pool[id].length;
        let Leaf {
            class,
            quantum,
            bytes,
            served_from,
        } = &mut self.leaves[turn.leaf.index()];
        let class = *class;
        *bytes += u64::from(length);
        let served = &mut served_from[usize::from(level)];
        served.packets += 1;
        served.deficit -= i64::from(length);
        if served.deficit < 0 {
            served.deficit += i64::from(*quantum);
            self.round_robins.end(turn);
        }
        if is_empty {
            self.deactivate(turn.leaf);
        }
        Some(Served { id, class, length })
    }

    /// Moves all packets to `into`. What the classes have used is kept.
    pub(super) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.inner.drain(pool, into);
        self.round_robins.clear();
        self.classes.iter_mut().for_each(|class| class.activity = 0);
        self.occupied = 0;
    }
}
