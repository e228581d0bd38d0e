//! Hierarchical token bucket (Devera 2002), equal to Linux's `sch_htb` operation for operation.
//!
//! Each class has a *rate* that it is sure of and a *ceil* that it never exceeds, a bucket of tokens for each. While both
//! hold tokens it can send (green); while only the ceil's does it may borrow from its parent (yellow); else it can't send
//! (red). What a leaf sends is charged to its own buckets and to those of every class above it; but a class below the one
//! that lends is charged in its ceil bucket only.
//!
//! ```text
//!   level 7    1     yellow classes hang in the feed of their parent, one for each priority,
//!             / \    as long as there is a leaf with packets below them
//!   level 6  10  20
//!           /  \      green classes that have such a leaf below stand in the row of their level and priority
//!   level 0 11  12    red ones hang and stand nowhere, and wait in their level's event queue
//! ```
//!
//! A dequeue looks for the lowest level, in it for the highest priority, with a class in the row, and goes from there down
//! by the feeds' round robins to a leaf: so who needs no loan goes first, then who borrows from nearest. A leaf keeps a
//! deficit for each level; while it isn't below zero the round stays with it, then it gets a quantum and the round goes
//! on. Rounds go by class number. A class changes its colour when it is charged or when its event is due.
//!
//! The cost of a packet depends on the height of the tree, not on the number of classes: rows and feeds are bitmaps by
//! class number (`OrderedSet`), event queues are radix heaps (`EventQueue`).
//!
//! Invariants: a leaf with packets that isn't parked is active; a class is in a feed or row at the priorities at which
//! there is an active leaf below it, according to its colour; a class that isn't green has an event.
//!
//! A packet that nothing places goes to the *direct queue*, which is served first and not shaped. In a change of parameters
//! tokens are carried over, in bytes. What was queued in a class that is no more is placed again.
//!
//! Deviations from Linux: no filters at inner classes, so that a packet that names one goes by the filters of the whole; a
//! parent's rate is not below a child's; the watchdog is not woken every few seconds where no event is due; a leaf that holds
//! back packets is left alone until its own watchdog time; a flush leaves colours as they are. As there, a debt of tokens
//! is at most a minute's: a class is not held to less than a packet a minute.
//!
//! Non-goals: bounds on delay (that is what hfsc is for); hysteresis.

mod change;
mod config;
mod rounds;

use crate::bits::EventQueue;
use crate::discipline::{Algorithm, Class, Discipline, Node, Value, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rate::RateMeter;
use crate::sharing::tree::NO_PARENT;
use crate::sharing::{ClassTree, Leaves};
use crate::time::Time;

pub use config::{ClassConfig, Config};
use rounds::{Rounds, bits};

/// Levels of a tree, as in Linux.
pub const LEVELS: usize = 8;
/// Priorities of leaves, 0 the highest.
pub const PRIORITIES: usize = 8;

/// The longest debt, and the longest time that fills a bucket, ns: Linux's.
const LONGEST: i64 = 60_000_000_000;
/// No event.
const NEVER: u64 = u64::MAX;

/// What a class may do: red, yellow, green.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    CantSend,
    MayBorrow,
    CanSend,
}

/// A class: one cache line, all that is looked at when a packet is charged.
#[repr(align(64))]
struct HtbClass {
    /// Tokens at the time of the last charge, ns.
    tokens: i64,
    ceil_tokens: i64,
    charged_at: u64,
    rate: RateMeter,
    ceil: RateMeter,
    /// Most tokens, in ticks.
    depth: u32,
    ceil_depth: u32,
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

/// Linux's tick, to which tc rounds the depths of buckets.
const TICK: u32 = 6;

impl HtbClass {
    /// The mode at `elapsed` ns after the last charge, and when it is not green the time from then to its next one, ns.
    #[inline]
    fn mode_after(&self, elapsed: i64) -> (Mode, i64) {
        let ceil_tokens = self.ceil_tokens + elapsed;
        if ceil_tokens < 0 {
            return (Mode::CantSend, -ceil_tokens);
        }
        let tokens = self.tokens + elapsed;
        if tokens >= 0 {
            return (Mode::CanSend, 0);
        }
        (Mode::MayBorrow, -tokens)
    }

    #[inline]
    fn elapsed(&self, now: u64) -> i64 {
        ((now - self.charged_at) as i64).min(LONGEST)
    }

    /// Takes what `length` bytes cost out of its buckets; out of the rate's only if the class isn't one that borrows.
    #[inline]
    fn charge(&mut self, now: u64, length: u32, borrows: bool) {
        let elapsed = self.elapsed(now);
        self.charged_at = now;
        let paid = |tokens: i64, depth: u32, meter: RateMeter| {
            let filled = (tokens + elapsed).min(i64::from(depth) << TICK);
            (filled - meter.nanos(length.into()) as i64).max(1 - LONGEST)
        };
        self.tokens = match borrows {
            true => self.tokens + elapsed,
            false => paid(self.tokens, self.depth, self.rate),
        };
        self.ceil_tokens = paid(self.ceil_tokens, self.ceil_depth, self.ceil);
    }
}

/// Events of the classes of a level.
struct Events {
    queue: EventQueue,
    /// Nothing is due before. May be too early, because a class was charged since.
    next: u64,
}

/// The discipline. Make one with [`Htb::node`].
pub struct Htb {
    classes: Vec<HtbClass>,
    leaves: Vec<Leaf>,
    inner: Leaves,
    rounds: Rounds,
    events: [Events; LEVELS],
    /// Leaves that are active or parked: while there are none, no event matters.
    occupied: u32,
    /// The clock: it stands still while the driver's goes backwards.
    now: u64,
    /// When the next class may change its mode; `None` unless nothing could be sent at the last dequeue.
    due: Option<Time>,
    direct: PacketQueue,
    directly_sent: u64,
    tree: ClassTree,
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
        let mut htb = Htb::new(config, tree, Leaves::new(inner));
        for leaf in 0..htb.leaves.len() {
            // An inner discipline may come with packets in it.
            htb.activate(leaf);
        }
        Ok(Node::new(htb))
    }

    /// With full buckets, and no leaf active.
    fn new(config: Config, tree: ClassTree, inner: Leaves) -> Htb {
        let classes = config::classes(&config, &tree);
        let leaves = config::leaves(&config, &tree);
        let events = |level: u8| Events {
            queue: EventQueue::new(match classes.iter().any(|class| class.level == level) {
                true => classes.len(),
                false => 0,
            }),
            next: NEVER,
        };
        Htb {
            events: std::array::from_fn(|level| events(level as u8)),
            rounds: Rounds::new(&classes, &leaves, &tree),
            classes,
            leaves,
            inner,
            occupied: 0,
            now: 0,
            due: None,
            direct: PacketQueue::new(),
            directly_sent: 0,
            tree,
            config,
        }
    }

    /// Brings a leaf that may have packets into its feed or row, if it isn't in.
    #[inline]
    fn activate(&mut self, leaf: usize) {
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
    fn await_event(&mut self, place: u32, wait: i64) {
        let events = &mut self.events[usize::from(self.classes[place as usize].level)];
        let time = self.now.saturating_add(wait as u64).min(NEVER - 1);
        events.queue.insert(place, time, self.now);
        events.next = events.next.min(time);
    }

    /// Changes the modes of a level's classes whose events are due.
    #[cold]
    fn do_events(&mut self, level: usize) {
        while let Some(place) = self.events[level].queue.pop_due(self.now) {
            let class = &self.classes[place as usize];
            let (mode, wait) = class.mode_after(class.elapsed(self.now));
            if mode != class.mode {
                self.change_mode(place, mode);
            }
            if mode != Mode::CanSend {
                self.await_event(place, wait);
            }
        }
        self.events[level].next = self.events[level].queue.first_time().unwrap_or(NEVER);
    }

    /// Charges a packet, sent from leaf `place` at the cost of `level`, to the leaf and all above it.
    fn charge(&mut self, mut place: u32, level: u8, length: u32) {
        while place != NO_PARENT {
            let class = &mut self.classes[place as usize];
            class.charge(self.now, length, class.level < level);
            let (mode, wait) = class.mode_after(0);
            let (before, parent) = (class.mode, class.parent);
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

    /// The next packet of a row; `None` if all that the leaves below it hold is held back.
    fn serve(&mut self, level: u8, priority: u32, now: Time, pool: &mut Pool) -> Option<PacketId> {
        while self.rounds.row_has(level, priority) {
            let place = self.rounds.look_up(level, priority, &self.classes, &self.tree);
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
            self.charge(place, level, length);
            return Some(id);
        }
        None
    }

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
        let classifier = &self.config.classifier;
        let leaf = match classifier.is_itself(pool[id].class) {
            true => None,
            false => self.tree.leaf_of(classifier, id, pool),
        };
        let Some(leaf) = leaf else {
            return self.enqueue_directly(id, pool);
        };
        let verdict = self.inner.get_mut(leaf).enqueue(id, now, pool);
        self.activate(leaf);
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        if let Some(id) = self.direct.pop_front(pool) {
            self.directly_sent += 1;
            return Some(id);
        }
        if self.occupied == 0 {
            return None;
        }
        self.now = self.now.max(now.nanos());
        self.inner.wake_up(now);
        while let Some(leaf) = self.inner.next_woken() {
            self.occupied -= 1;
            self.activate(leaf);
        }
        let mut next = NEVER;
        for level in 0..LEVELS {
            if self.now >= self.events[level].next {
                self.do_events(level);
            }
            next = next.min(self.events[level].next);
            for priority in bits(self.rounds.of_row(level as u8)) {
                let sent = self.serve(level as u8, priority, now, pool);
                if sent.is_some() {
                    return sent;
                }
            }
        }
        self.due = (next != NEVER).then(|| Time::from_nanos(next));
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.direct.append_to(into, pool);
        self.inner.drain(pool, into);
        self.rounds.clear();
        self.classes.iter_mut().for_each(|class| class.activity = 0);
        self.occupied = 0;
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

    fn class_mut(&mut self, minor: u16) -> Option<&mut Box<dyn Discipline>> {
        Some(self.inner.touch(self.tree.leaf(minor)?))
    }

    fn class_replaced(&mut self, minor: u16, _now: Time, _pool: &mut Pool) {
        let leaf = self.tree.leaf(minor);
        self.activate(leaf.expect("only a class that is there is replaced"));
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Value)) {
        visit("direct_packets", Value::Integer(self.directly_sent as i64));
        visit("active_classes", Value::Integer(self.occupied.into()));
        let sum = |of: fn(&Leaf) -> u64| Value::Integer(self.leaves.iter().map(of).sum::<u64>() as i64);
        visit("sent_packets", sum(|leaf| leaf.sent));
        visit("borrowed_packets", sum(|leaf| leaf.borrowed));
    }
}

#[cfg(test)]
mod tests;
