//! Classes that borrow from those above them: what `htb` and `cbq` have in common. What a class has used, and what it may do
//! by that, is told by its [`Meter`].
//!
//! ```text
//!   level 7    1     classes that may borrow hang in the feed of their parent, one for each priority,
//!             / \    as long as there is a leaf with packets below them
//!   level 6  10  20
//!           /  \      those that may send and have such a leaf below them stand in the row of their level and priority
//!   level 0 11  12    those that may do neither hang and stand nowhere
//! ```
//!
//! Who is served from a row is found by going down the round robins of the feeds to a leaf. A leaf keeps a deficit for each
//! level; while it isn't below zero the round stays with it, then it gets a quantum and the round goes on. Rounds go by class
//! number. A class changes its mode when it is charged or when its event is due: those that may not send wait for one.
//!
//! The cost of a packet depends on the height of the tree, not on the number of classes: rows and feeds are bitmaps by
//! class number ([`OrderedSet`](crate::bits::OrderedSet)), event queues are radix heaps ([`EventQueue`]).
//!
//! Invariants: a leaf with packets that isn't parked is active; a class is in a feed or row at the priorities at which
//! there is an active leaf below it, according to its mode; a class that may not send has an event.

use crate::bits::EventQueue;
use crate::classify::Templates;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::sharing::rounds::{Rounds, bits};
use crate::sharing::tree::NO_PARENT;
use crate::sharing::{ClassTree, Leaves};
use crate::time::Time;

/// Levels of a tree, as in Linux's htb.
pub(super) const LEVELS: usize = 8;
/// Priorities of leaves, 0 the highest.
pub(super) const PRIORITIES: usize = 8;

/// No event.
pub(super) const NEVER: u64 = u64::MAX;

/// What a class may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing (red).
    CantSend,
    /// Be lent to by its parent (yellow).
    MayBorrow,
    /// Send, and lend (green).
    CanSend,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// When.
    pub(super) now: u64,
    /// Its length, bytes.
    pub(super) length: u32,
    /// When its last bit leaves, as far as is known.
    pub(super) completion: u64,
}

/// What a class has used.
pub(super) trait Meter: Send + 'static {
    /// Enters a packet; `borrows` if the class is below the one that lends.
    fn charge(&mut self, sent: Sent, borrows: bool);

    /// What the class may do, and unless it can send in how many ns (above 0) to ask again.
    fn mode(&self, now: u64) -> (Mode, u64);
}

/// A class: all that is looked at when a packet is charged.
#[repr(align(64))]
pub(super) struct SharedClass<M> {
    pub(super) meter: M,
    parent: u32,
    /// Its place among its parent's children.
    sibling: u32,
    /// A leaf's place among the leaves.
    leaf: u32,
    level: u8,
    mode: Mode,
    /// Bit p is set if a leaf of priority p below it is active, or it is such a leaf itself.
    activity: u8,
    priority: u8,
}

/// What is looked at of a leaf when it is served.
struct Leaf {
    place: u32,
    quantum: i32,
    /// What it may still send in its turn, bytes, when served from each level.
    deficits: [i32; LEVELS],
    sent: u64,
    borrowed: u64,
}

/// Events of the classes of a level.
struct Events {
    queue: EventQueue,
    /// Nothing is due before. May be too early, because a class was charged since.
    next: u64,
}

/// What a class is made from.
pub(super) struct ClassParts<M> {
    pub(super) meter: M,
    pub(super) level: u8,
    pub(super) priority: u8,
    /// Bytes that a leaf may send in its turn.
    pub(super) quantum: i32,
}

/// What was served: from which leaf, at the cost of which level.
pub(super) struct Served {
    pub(super) id: PacketId,
    pub(super) leaf: usize,
    pub(super) length: u32,
}

/// The classes of a tree.
pub(super) struct Borrowing<M> {
    classes: Vec<SharedClass<M>>,
    leaves: Vec<Leaf>,
    inner: Leaves,
    rounds: Rounds,
    events: [Events; LEVELS],
    /// Leaves that are active or parked: while there are none, no event matters.
    occupied: u32,
    /// The clock: it stands still while the driver's goes backwards.
    now: u64,
    pub(super) tree: ClassTree,
}

impl<M: Meter> Borrowing<M> {
    /// Of classes in the order of `tree`, all of which can send; no leaf is active.
    pub(super) fn new(parts: Vec<ClassParts<M>>, tree: ClassTree, inner: Leaves) -> Borrowing<M> {
        let levels: Vec<u8> = parts.iter().map(|class| class.level).collect();
        let leaf = |&place: &u32| Leaf {
            place,
            quantum: parts[place as usize].quantum,
            deficits: [0; LEVELS],
            sent: 0,
            borrowed: 0,
        };
        let leaves: Vec<Leaf> = tree.leaves().iter().map(leaf).collect();
        let priorities = leaves.iter().map(|leaf| parts[leaf.place as usize].priority);
        let rounds = Rounds::new(&levels, priorities, &tree);
        let events = |level: u8| Events {
            queue: EventQueue::new(match levels.contains(&level) {
                true => levels.len(),
                false => 0,
            }),
            next: NEVER,
        };
        let class = |(place, parts): (usize, ClassParts<M>)| {
            let parent = tree.parent(place);
            let sibling = match parent {
                NO_PARENT => 0,
                parent => tree
                    .children(parent as usize)
                    .partition_point(|&child| child < place as u32),
            };
            SharedClass {
                meter: parts.meter,
                parent,
                sibling: sibling as u32,
                leaf: tree.leaf(tree.minor(place)).map_or(u32::MAX, |leaf| leaf as u32),
                level: parts.level,
                mode: Mode::CanSend,
                activity: 0,
                priority: parts.priority,
            }
        };
        Borrowing {
            events: std::array::from_fn(|level| events(level as u8)),
            rounds,
            classes: parts.into_iter().enumerate().map(class).collect(),
            leaves,
            inner,
            occupied: 0,
            now: 0,
            tree,
        }
    }

    /// Makes all leaves active that have packets.
    pub(super) fn activate_all(&mut self) {
        for leaf in 0..self.leaves.len() {
            self.activate(leaf);
        }
    }

    pub(super) fn inner(&self) -> &Leaves {
        &self.inner
    }

    #[inline]
    pub(super) fn inner_mut(&mut self) -> &mut Leaves {
        &mut self.inner
    }

    /// Leaves that are active or parked.
    #[inline]
    pub(super) fn occupied(&self) -> u32 {
        self.occupied
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Packets that leaves sent, and how many of them at the cost of others.
    pub(super) fn counts(&self) -> (u64, u64) {
        let add = |sums: (u64, u64), leaf: &Leaf| (sums.0 + leaf.sent, sums.1 + leaf.borrowed);
        self.leaves.iter().fold((0, 0), add)
    }

    /// Brings a leaf that may have packets into its feed or row, if it isn't in.
    #[inline]
    pub(super) fn activate(&mut self, leaf: usize) {
        let place = self.leaves[leaf].place;
        let class = &self.classes[place as usize];
        if class.activity != 0 || self.inner.is_empty(leaf) {
            return;
        }
        let priority = class.priority;
        self.occupied += u32::from(!self.inner.unpark(leaf));
        self.classes[place as usize].activity = 1 << priority;
        self.connect(place, 1 << priority);
    }

    /// Takes a leaf out that is empty, or holds its packets back.
    fn deactivate(&mut self, leaf: usize) {
        let place = self.leaves[leaf].place;
        let activity = self.classes[place as usize].activity;
        self.disconnect(place, activity);
        self.classes[place as usize].activity = 0;
        match self.inner.is_empty(leaf) {
            true => self.occupied -= 1,
            false => self.inner.park(leaf),
        }
    }

    /// Puts a class that became active at `priorities` where its mode belongs: in the row of its level, or in its parent's
    /// feed, and the parent likewise if that was empty.
    fn connect(&mut self, mut place: u32, mut priorities: u8) {
        while priorities != 0 {
            let class = &self.classes[place as usize];
            match class.mode {
                Mode::CanSend => return self.rounds.add_to_row(class.level, place, priorities),
                Mode::MayBorrow if class.parent != NO_PARENT => {}
                Mode::MayBorrow | Mode::CantSend => return,
            }
            let (parent, sibling) = (class.parent, class.sibling);
            priorities = self.rounds.add_to_feed(parent, sibling, priorities);
            self.classes[parent as usize].activity |= priorities;
            place = parent;
        }
    }

    /// Takes a class out of where its mode belongs, and classes above it whose feed becomes empty.
    fn disconnect(&mut self, mut place: u32, mut priorities: u8) {
        while priorities != 0 {
            let class = &self.classes[place as usize];
            match class.mode {
                Mode::CanSend => return self.rounds.remove_from_row(class.level, place, priorities),
                Mode::MayBorrow if class.parent != NO_PARENT => {}
                Mode::MayBorrow | Mode::CantSend => return,
            }
            let (parent, sibling) = (class.parent, class.sibling);
            priorities = self.rounds.remove_from_feed(parent, sibling, priorities);
            self.classes[parent as usize].activity &= !priorities;
            place = parent;
        }
    }

    /// Gives a class another mode.
    fn change_mode(&mut self, place: u32, mode: Mode) {
        let activity = self.classes[place as usize].activity;
        self.disconnect(place, activity);
        self.classes[place as usize].mode = mode;
        self.connect(place, activity);
    }

    /// Queues a class's event, `wait` ns from now.
    fn await_event(&mut self, place: u32, wait: u64) {
        let events = &mut self.events[usize::from(self.classes[place as usize].level)];
        let time = self.now.saturating_add(wait).min(NEVER - 1);
        events.queue.insert(place, time, self.now);
        events.next = events.next.min(time);
    }

    /// Sets the clock, and wakes leaves up whose time has come.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now.nanos());
        self.inner.wake_up(now);
        while let Some(leaf) = self.inner.next_woken() {
            self.occupied -= 1;
            self.activate(leaf);
        }
    }

    /// Does what is due for the classes of a level. When the next may be, or [`NEVER`].
    #[inline]
    pub(super) fn do_events(&mut self, level: usize) -> u64 {
        if self.now >= self.events[level].next {
            self.do_due_events(level);
        }
        self.events[level].next
    }

    #[cold]
    fn do_due_events(&mut self, level: usize) {
        while let Some(place) = self.events[level].queue.pop_due(self.now) {
            let class = &self.classes[place as usize];
            let (mode, wait) = class.meter.mode(self.now);
            if mode != class.mode {
                self.change_mode(place, mode);
            }
            if mode != Mode::CanSend {
                self.await_event(place, wait);
            }
        }
        self.events[level].next = self.events[level].queue.first_time().unwrap_or(NEVER);
    }

    /// Charges a packet, sent from leaf `leaf` at the cost of `level`, to the leaf and all above it.
    #[inline]
    pub(super) fn charge(&mut self, leaf: usize, level: u8, sent: Sent) {
        let mut place = self.leaves[leaf].place;
        while place != NO_PARENT {
            let class = &mut self.classes[place as usize];
            class.meter.charge(sent, class.level < level);
            let (mode, wait) = class.meter.mode(sent.now);
            let (before, parent) = (class.mode, class.parent);
            // The event of one whose mode stays is looked at when it is due.
            if mode != before {
                self.change_mode(place, mode);
                if before != Mode::CanSend {
                    let level = self.classes[place as usize].level;
                    self.events[usize::from(level)].queue.remove(place);
                }
                if mode != Mode::CanSend {
                    self.await_event(place, wait);
                }
            }
            place = parent;
        }
    }

    /// The priorities at which a level has classes in its row, the highest first.
    #[inline]
    pub(super) fn priorities(&self, level: u8) -> impl Iterator<Item = u32> + use<M> {
        bits(self.rounds.of_row(level))
    }

    /// The same as a set of bits.
    #[inline]
    pub(super) fn occupied_at(&self, level: u8) -> u8 {
        self.rounds.of_row(level)
    }

    /// The next packet of a row, not yet charged; `None` if all that the leaves below it hold is held back.
    #[inline]
    pub(super) fn serve(&mut self, level: u8, priority: u32, now: Time, pool: &mut Pool) -> Option<Served> {
        while self.rounds.row_has(level, priority) {
            let place = self.rounds.look_up(level, priority, &self.tree);
            let leaf = self.classes[place as usize].leaf as usize;
            let Some(id) = self.inner.get_mut(leaf).dequeue(now, pool) else {
                self.deactivate(leaf);
                continue;
            };
            let length = pool[id].length;
            let served = &mut self.leaves[leaf];
            served.sent += 1;
            served.borrowed += u64::from(level > 0);
            let deficit = &mut served.deficits[usize::from(level)];
            *deficit = deficit.saturating_sub_unsigned(length);
            if *deficit < 0 {
                *deficit += served.quantum;
                let class = &self.classes[place as usize];
                self.rounds
                    .advance(level, priority, place, class.parent, class.sibling);
            }
            if self.inner.is_empty(leaf) {
                self.deactivate(leaf);
            }
            return Some(Served { id, leaf, length });
        }
        None
    }

    /// Moves all packets away. What classes have used is not forgotten.
    pub(super) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.inner.drain(pool, into);
        self.rounds.clear();
        self.classes.iter_mut().for_each(|class| class.activity = 0);
        self.occupied = 0;
    }

    /// The leaves of the tree that takes the place of this one. What was in those that are no more goes to `homeless`.
    pub(super) fn move_leaves(
        &mut self,
        tree: &ClassTree,
        templates: &Templates,
        homeless: &mut PacketQueue,
        pool: &mut Pool,
    ) -> Leaves {
        self.inner.moved(&self.tree, tree, templates, homeless, pool)
    }

    /// Takes over what another tree knew, by the numbers of the classes: what `carry` makes of its meters, deficits, turns.
    /// `carry` is given the meters and the places, of this tree first.
    pub(super) fn take_over(
        &mut self,
        old: &Borrowing<M>,
        now: Time,
        carry: impl Fn(&mut M, usize, Option<(&M, usize)>, u64),
    ) {
        self.now = old.now.max(now.nanos());
        for place in 0..self.classes.len() {
            let before = old.tree.place(self.tree.minor(place));
            let before = before.map(|before| (&old.classes[before].meter, before));
            carry(&mut self.classes[place].meter, place, before, self.now);
            let (mode, wait) = self.classes[place].meter.mode(self.now);
            self.classes[place].mode = mode;
            if mode != Mode::CanSend {
                self.await_event(place as u32, wait);
            }
        }
        for leaf in &mut self.leaves {
            let minor = self.tree.minor(leaf.place as usize);
            if let Some(before) = old.tree.leaf(minor).map(|before| &old.leaves[before]) {
                leaf.deficits = before.deficits;
                (leaf.sent, leaf.borrowed) = (before.sent, before.borrowed);
            }
        }
        self.follow_turns(old);
        self.activate_all();
    }

    /// Rounds go on where they were.
    fn follow_turns(&mut self, old: &Borrowing<M>) {
        let Borrowing { rounds, tree, .. } = self;
        let kept = (0..old.tree.len()).filter(|&place| !old.tree.is_leaf(place));
        let kept = kept.filter_map(|before| {
            let place = tree.place(old.tree.minor(before))?;
            (!tree.is_leaf(place)).then_some((before as u32, place as u32))
        });
        let moved = |before: u32| tree.place_from(old.tree.minor(before as usize)) as u32;
        let among_siblings = |parent: u32, sibling: u32| {
            let child = old.tree.children(parent as usize)[sibling as usize];
            let minor = old.tree.minor(child as usize);
            let place = tree.place(old.tree.minor(parent as usize));
            let children = tree.children(place.expect("it is one of those kept"));
            children.partition_point(|&other| tree.minor(other as usize) < minor) as u32
        };
        rounds.follow(&old.rounds, kept, moved, among_siblings);
    }
}
