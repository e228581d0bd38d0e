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
//! class number ([`OrderedSet`](crate::sharing::ordered_set::OrderedSet)), event queues are radix heaps ([`EventQueue`]).
//!
//! Invariants: a leaf with packets that isn't parked is active; a class is in a feed or row at the priorities at which
//! there is an active leaf below it, according to its mode; a class that may not send has an event.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::classify::Templates;
use crate::discipline::{Class, ClassState, Discipline, Variable, Verdict};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::sharing::books::{Books, LeafCount, Tally};
use crate::sharing::event_queue::EventQueue;
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

    /// What it shows of itself.
    fn variables(&self) -> [(&'static str, Variable); 2];
}

/// A class: all that is looked at when a packet is charged.
#[repr(align(64))]
pub(super) struct SharedClass<M> {
    pub(super) meter: M,
    parent: u32,
    /// Where its parent's feeds begin among the rounds; unless it has none.
    feed: u32,
    /// Its place among its parent's children.
    sibling: u16,
    /// Its place among the classes of its level.
    in_row: u16,
    level: u8,
    mode: Mode,
    /// Bit r is set if a leaf of rank r below it is active, or it is such a leaf itself.
    activity: u8,
    /// The rank of a leaf's priority.
    rank: u8,
}

/// What is looked at of a leaf when it is served.
struct Leaf {
    place: u32,
    quantum: i32,
    /// That it sent since the classes were changed; likewise the packets.
    bytes: u64,
    served_from: [ServedFrom; LEVELS],
}

/// A leaf as it is served from one of the levels.
#[derive(Clone, Copy, Default)]
struct ServedFrom {
    packets: u64,
    /// What it may still send in its turn, bytes.
    deficit: i32,
}

/// What a class is made from.
pub(super) struct ClassParts<M> {
    pub(super) meter: M,
    pub(super) level: u8,
    pub(super) priority: u8,
    /// Bytes that a leaf may send in its turn.
    pub(super) quantum: i32,
}

/// What was served, and from which leaf.
pub(super) struct Served {
    pub(super) id: PacketId,
    /// The place of the leaf among the classes.
    pub(super) place: u32,
    pub(super) length: u32,
}

/// The classes of a tree.
pub(super) struct Borrowing<M> {
    classes: Vec<SharedClass<M>>,
    leaves: Vec<Leaf>,
    inner: Leaves,
    rounds: Rounds,
    /// Events of the classes of each level.
    events: [EventQueue; LEVELS],
    /// No event of a level is due before. May be too early, because a class was charged since.
    next_event: [u64; LEVELS],
    /// Bit l is set if there are classes of level l.
    levels: u8,
    /// Leaves that are active or parked: while there are none, no event matters.
    occupied: u32,
    /// The clock: it stands still while the driver's goes backwards.
    now: u64,
    books: Books,
    pub(super) tree: ClassTree,
}

impl<M: Meter> Borrowing<M> {
    /// Of classes in the order of `tree`, all of which can send; no leaf is active.
    pub(super) fn new(parts: Vec<ClassParts<M>>, tree: ClassTree, inner: Leaves) -> Borrowing<M> {
        let levels: Vec<u8> = parts.iter().map(|class| class.level).collect();
        let leaf = |&place: &u32| Leaf {
            place,
            quantum: parts[place as usize].quantum,
            bytes: 0,
            served_from: [ServedFrom::default(); LEVELS],
        };
        let leaves: Vec<Leaf> = tree.leaves().iter().map(leaf).collect();
        let priorities = leaves.iter().map(|leaf| parts[leaf.place as usize].priority);
        let rounds = Rounds::new(&levels, priorities, &tree);
        let events = |level: u8| {
            EventQueue::new(match levels.contains(&level) {
                true => levels.len(),
                false => 0,
            })
        };
        let mut in_rows = [0; LEVELS];
        let class = |(place, parts): (usize, ClassParts<M>)| {
            let in_row = in_rows[usize::from(parts.level)];
            in_rows[usize::from(parts.level)] += 1;
            let parent = tree.parent(place);
            let (feed, sibling) = match parent {
                NO_PARENT => (0, 0),
                parent => {
                    let siblings = tree.children(parent as usize);
                    let sibling = siblings.partition_point(|&child| child < place as u32);
                    (rounds.first_feed(parent), sibling as u16)
                }
            };
            SharedClass {
                meter: parts.meter,
                parent,
                feed,
                sibling,
                in_row,
                level: parts.level,
                mode: Mode::CanSend,
                activity: 0,
                rank: rounds.rank(parts.priority),
            }
        };
        Borrowing {
            levels: levels.iter().fold(0, |used, level| used | 1 << level),
            events: core::array::from_fn(|level| events(level as u8)),
            next_event: [NEVER; LEVELS],
            classes: parts.into_iter().enumerate().map(class).collect(),
            rounds,
            leaves,
            inner,
            occupied: 0,
            now: 0,
            books: Books::new(tree.len()),
            tree,
        }
    }

    /// Makes all leaves active that have packets.
    pub(super) fn activate_all(&mut self) {
        for leaf in 0..self.leaves.len() {
            self.activate(leaf);
        }
    }

    /// Hands a packet to a leaf, or, of a template, to the class of the packet's host.
    #[inline]
    pub(super) fn enqueue(&mut self, leaf: usize, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let leaf = self.inner.of_host(leaf, id, pool);
        let verdict = self.inner.get_mut(leaf).enqueue(id, now, pool);
        self.activate(leaf);
        verdict
    }

    /// Leaves that are active or parked.
    #[inline]
    pub(super) fn occupied(&self) -> u32 {
        self.occupied
    }

    /// The levels at which there are classes, the lowest first.
    #[inline]
    pub(super) fn levels(&self) -> impl Iterator<Item = u8> + use<M> {
        bits(self.levels).map(|level| level as u8)
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// When to ask again: at `due`, if anything, or when a leaf that holds its packets back says.
    pub(super) fn watchdog(&self, due: Option<Time>) -> Option<Time> {
        [due, self.inner.watchdog()].into_iter().flatten().min()
    }

    pub(super) fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.inner.visit(&self.tree, visit);
    }

    pub(super) fn class_mut(&mut self, minor: u16) -> Option<&mut Box<dyn Discipline>> {
        Some(self.inner.touch(self.tree.leaf(minor)?))
    }

    /// Another discipline was put into a leaf.
    pub(super) fn class_replaced(&mut self, minor: u16) {
        let leaf = self.tree.checked_leaf(minor);
        self.inner.replaced(leaf);
        self.activate(leaf);
    }

    /// Active leaves, packets that leaves sent, and how many of them at the cost of others.
    pub(super) fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let all = self.books.all(self.leaf_counts());
        visit("active_classes", Variable::Integer(self.occupied.into()));
        visit("sent_packets", Variable::Integer(all.sent.packets as i64));
        visit("borrowed_packets", Variable::Integer(all.borrowed as i64));
    }

    /// Shows every class: its part of the packets, and its meter.
    pub(super) fn visit_class_states(&self, visit: &mut dyn FnMut(ClassState<'_>)) {
        for (place, tally) in self.tallies().into_iter().enumerate() {
            let [lent, borrowed] = tally.variables();
            let [of_meter, other] = self.classes[place].meter.variables();
            visit(ClassState {
                minor: self.tree.minor(place),
                sent: tally.sent,
                overlimits: self.books.overlimits(place),
                variables: &[lent, borrowed, of_meter, other],
            });
        }
    }

    fn leaf_counts(&self) -> impl Iterator<Item = LeafCount> {
        self.leaves.iter().map(|leaf| LeafCount {
            place: leaf.place,
            bytes: leaf.bytes,
            from: leaf.served_from.map(|served| served.packets),
        })
    }

    fn tallies(&self) -> Vec<Tally> {
        let level = |place: usize| self.classes[place].level;
        self.books.tallies(&self.tree, level, self.leaf_counts())
    }

    /// Brings a leaf that may have packets into its feed or row, if it isn't in.
    #[inline]
    pub(super) fn activate(&mut self, leaf: usize) {
        let place = self.leaves[leaf].place;
        if self.classes[place as usize].activity == 0 {
            self.activate_idle(leaf, place);
        }
    }

    #[inline(never)]
    fn activate_idle(&mut self, leaf: usize, place: u32) {
        if self.inner.is_empty(leaf) {
            return;
        }
        self.occupied += u32::from(!self.inner.unpark(leaf));
        self.becomes_active(place, self.classes[place as usize].rank.into());
    }

    /// Takes a leaf out that is empty, or holds its packets back.
    fn deactivate(&mut self, leaf: usize) {
        let place = self.leaves[leaf].place;
        self.becomes_idle(place, self.classes[place as usize].rank.into());
        match self.inner.is_empty(leaf) {
            true => self.occupied -= 1,
            false => self.inner.park(leaf),
        }
    }

    /// Puts a class that is active at a rank where a mode belongs: in the row of its level, or in its parent's feed.
    #[inline(always)]
    fn connect(&mut self, place: u32, mode: Mode, rank: u32) {
        let class = &self.classes[place as usize];
        let parent = class.parent;
        match mode {
            Mode::CanSend => self.rounds.add_to_row(class.level, rank, class.in_row.into()),
            Mode::MayBorrow if parent != NO_PARENT => {
                if self.rounds.add_to_feed(class.feed + rank, class.sibling.into()) {
                    self.becomes_active(parent, rank);
                }
            }
            Mode::MayBorrow | Mode::CantSend => {}
        }
    }

    /// Takes it out of there.
    #[inline(always)]
    fn disconnect(&mut self, place: u32, mode: Mode, rank: u32) {
        let class = &self.classes[place as usize];
        let parent = class.parent;
        match mode {
            Mode::CanSend => self
                .rounds
                .remove_from_row(class.level, rank, class.in_row.into()),
            Mode::MayBorrow if parent != NO_PARENT => {
                if self
                    .rounds
                    .remove_from_feed(class.feed + rank, class.sibling.into())
                {
                    self.becomes_idle(parent, rank);
                }
            }
            Mode::MayBorrow | Mode::CantSend => {}
        }
    }

    /// There is a leaf below a class again, or it is one.
    #[inline(never)]
    fn becomes_active(&mut self, place: u32, rank: u32) {
        let class = &mut self.classes[place as usize];
        class.activity |= 1 << rank;
        let mode = class.mode;
        self.connect(place, mode, rank);
    }

    /// There is none any more.
    #[inline(never)]
    fn becomes_idle(&mut self, place: u32, rank: u32) {
        let class = &mut self.classes[place as usize];
        class.activity &= !(1 << rank);
        let mode = class.mode;
        self.disconnect(place, mode, rank);
    }

    /// Gives a class another mode.
    #[inline(always)]
    fn change_mode(&mut self, place: u32, mode: Mode) {
        let class = &mut self.classes[place as usize];
        let before = core::mem::replace(&mut class.mode, mode);
        for rank in bits(class.activity) {
            self.disconnect(place, before, rank);
            self.connect(place, mode, rank);
        }
    }

    /// Queues a class's event, `wait` ns from now.
    fn await_event(&mut self, place: u32, wait: u64) {
        let level = usize::from(self.classes[place as usize].level);
        let time = self.now.saturating_add(wait).min(NEVER - 1);
        self.events[level].insert(place, time, self.now);
        self.next_event[level] = self.next_event[level].min(time);
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

    /// Does what is due for the classes of a level.
    #[inline]
    pub(super) fn do_events(&mut self, level: u8) {
        if self.now >= self.next_event[usize::from(level)] {
            self.do_due_events(level.into());
        }
    }

    /// When the next event of any level may be due.
    pub(super) fn next_event(&self) -> Option<Time> {
        let next = self.next_event.iter().copied().min();
        next.filter(|&next| next != NEVER).map(Time::from_nanos)
    }

    #[inline(never)]
    fn do_due_events(&mut self, level: usize) {
        let next = loop {
            let place = match self.events[level].pop_due(self.now) {
                Ok(place) => place,
                Err(next) => break next,
            };
            let class = &self.classes[place as usize];
            let (mode, wait) = class.meter.mode(self.now);
            if mode != class.mode {
                self.change_mode(place, mode);
            }
            if mode != Mode::CanSend {
                self.await_event(place, wait);
            }
        };
        self.next_event[level] = next.unwrap_or(NEVER);
    }

    /// Charges a packet, sent at the cost of `level` by the leaf at `place`, to the leaf and all above it.
    #[inline]
    pub(super) fn charge(&mut self, mut place: u32, level: u8, sent: Sent) {
        while let Some(class) = self.classes.get_mut(place as usize) {
            class.meter.charge(sent, class.level < level);
            let (mode, wait) = class.meter.mode(sent.now);
            let parent = class.parent;
            // The event of one whose mode stays is looked at when it is due.
            if mode != class.mode {
                self.enter(place, mode, wait);
            }
            place = parent;
        }
    }

    /// Gives a class that was charged another mode, and the event of that one.
    #[inline(never)]
    fn enter(&mut self, place: u32, mode: Mode, wait: u64) {
        let SharedClass {
            mode: before, level, ..
        } = self.classes[place as usize];
        self.change_mode(place, mode);
        if before != Mode::CanSend {
            self.events[usize::from(level)].remove(place);
        }
        if mode == Mode::CantSend {
            self.books.stopped(place);
        }
        if mode != Mode::CanSend {
            self.await_event(place, wait);
        }
    }

    /// Whether somebody waits at a level.
    #[inline]
    pub(super) fn waits_at(&self, level: u8) -> bool {
        self.rounds.of_row(level) != 0
    }

    /// The lowest level at which somebody waits.
    #[inline]
    pub(super) fn lowest_waiting(&self) -> Option<u8> {
        self.rounds.lowest_row()
    }

    /// The next packet of a level at which somebody waits, not yet charged; `None` if the leaf whose turn it is holds its
    /// packets back. That one is set aside.
    #[inline]
    pub(super) fn serve(&mut self, level: u8, now: Time, pool: &mut Pool) -> Option<Served> {
        let turn = self.rounds.look_up(level);
        let leaf = turn.leaf as usize;
        let inner = self.inner.get_mut(leaf);
        let Some(id) = inner.dequeue(now, pool) else {
            self.deactivate(leaf);
            return None;
        };
        let is_over = inner.backlog().packets == 0;
        let length = pool[id].length;
        let Leaf {
            place,
            quantum,
            bytes,
            served_from,
        } = &mut self.leaves[leaf];
        let place = *place;
        *bytes += u64::from(length);
        let served = &mut served_from[usize::from(level)];
        served.packets += 1;
        served.deficit = served.deficit.saturating_sub_unsigned(length);
        if served.deficit < 0 {
            served.deficit += *quantum;
            self.rounds.end(turn);
        }
        if is_over {
            self.deactivate(leaf);
        }
        Some(Served { id, place, length })
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
                for (served, before) in leaf.served_from.iter_mut().zip(&before.served_from) {
                    served.deficit = before.deficit;
                }
            }
        }
        self.books.take_over(
            &self.tree,
            &old.books,
            &old.tree,
            &old.tallies(),
            old.leaf_counts(),
        );
        self.follow_turns(old);
        self.activate_all();
    }

    /// Rounds go on where they were.
    fn follow_turns(&mut self, old: &Borrowing<M>) {
        let Borrowing {
            rounds,
            tree,
            classes,
            ..
        } = self;
        let kept = (0..old.tree.len()).filter(|&place| !old.tree.is_leaf(place));
        let kept = kept.filter_map(|before| {
            let place = tree.place(old.tree.minor(before))?;
            (!tree.is_leaf(place)).then_some((before as u32, place as u32))
        });
        let in_row = |level: u8, before: u32| {
            let mut row = (0..old.tree.len()).filter(|&place| old.classes[place].level == level);
            let before = row.nth(before as usize).expect("a position is that of a class");
            let place = tree.place_from(old.tree.minor(before));
            let earlier = classes[..place].iter().filter(|class| class.level == level);
            earlier.count() as u32
        };
        let among_siblings = |parent: u32, sibling: u32| {
            let child = old.tree.children(parent as usize)[sibling as usize];
            let minor = old.tree.minor(child as usize);
            let place = tree.place(old.tree.minor(parent as usize));
            let children = tree.children(place.expect("it is one of those kept"));
            children.partition_point(|&other| tree.minor(other as usize) < minor) as u32
        };
        rounds.follow(&old.rounds, kept, in_row, among_siblings);
    }
}
