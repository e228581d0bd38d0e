//! The algorithm in its plainest form, with ordered sets and counted tokens, to compare the discipline with.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::{ClassConfig, Config};
use crate::rate::Rate;
use crate::sharing::borrowing::{Mode, PRIORITIES};
use crate::sharing::index::ClassIndex;
use crate::sharing::tree::LEVELS;

/// The longest pause that fills a bucket, and the longest debt of more than a packet, ns.
const MINUTE: i64 = 60_000_000_000;

/// Returns the tokens after a pause. Of a pause longer than a minute, all counts that pays back a debt.
pub(super) fn grown(tokens: i64, pause: i64) -> i64 {
    (tokens + pause).min((tokens + MINUTE).max(0))
}

/// A round robin with a pointer to a class, as in Linux. If the class leaves a feed, its number is
/// remembered.
#[derive(Default)]
struct ModelRoundRobin {
    members: BTreeSet<usize>,
    pointer: Option<usize>,
    remembered: Option<usize>,
}

impl ModelRoundRobin {
    fn next(&mut self) {
        self.pointer = self
            .pointer
            .and_then(|at| self.members.range(at + 1..).next().copied());
    }
}

struct ModelClass {
    parent: Option<usize>,
    level: usize,
    mode: Mode,
    tokens: i64,
    ceil_tokens: i64,
    charged_at: u64,
    event: Option<(u64, u64, usize)>,
    active: BTreeSet<u8>,
    feeds: Vec<ModelRoundRobin>,
    queue: VecDeque<u32>,
    deficits: [i64; LEVELS],
}

/// The discipline over fifos without limits. Classes are numbered by index.
pub(super) struct Model {
    config: Config,
    classes: Vec<ModelClass>,
    rows: Vec<Vec<ModelRoundRobin>>,
    events: Vec<BTreeSet<(u64, u64, usize)>>,
    /// The time at which each level's events are checked next.
    next_check: Vec<u64>,
    inserted: u64,
    now: u64,
}

fn round_robins() -> Vec<ModelRoundRobin> {
    (0..PRIORITIES).map(|_| ModelRoundRobin::default()).collect()
}

impl Model {
    /// Creates an idle discipline.
    pub(super) fn new(config: &Config) -> Model {
        let tree = config.check().unwrap();
        let class = |(index, settings): (ClassIndex, &ClassConfig)| ModelClass {
            parent: tree.parent(index).map(ClassIndex::index),
            level: match tree.children(index) {
                [] => 0,
                _ => LEVELS - 1 - usize::from(tree.depth(index)),
            },
            mode: Mode::CanSend,
            tokens: i64::from(settings.depths().0) * 64,
            ceil_tokens: i64::from(settings.depths().1) * 64,
            charged_at: 0,
            event: None,
            active: BTreeSet::new(),
            feeds: round_robins(),
            queue: VecDeque::new(),
            deficits: [0; LEVELS],
        };
        Model {
            classes: tree.classes().zip(&config.classes).map(class).collect(),
            config: config.clone(),
            rows: (0..LEVELS).map(|_| round_robins()).collect(),
            events: vec![BTreeSet::new(); LEVELS],
            next_check: vec![u64::MAX; LEVELS],
            inserted: 0,
            now: 0,
        }
    }

    /// Enqueues a packet in a leaf.
    pub(super) fn enqueue(&mut self, index: usize, length: u32) {
        self.classes[index].queue.push_back(length);
        if self.classes[index].active.is_empty() {
            let prio = self.config.classes[index].prio;
            self.classes[index].active.insert(prio);
            self.connect(index, prio);
        }
    }

    fn connect(&mut self, index: usize, prio: u8) {
        let class = &self.classes[index];
        match (class.mode, class.parent) {
            (Mode::CanSend, _) => {
                self.rows[class.level][usize::from(prio)].members.insert(index);
            }
            (Mode::MayBorrow, Some(parent)) => {
                let feed = &mut self.classes[parent].feeds[usize::from(prio)].members;
                let was_empty = feed.is_empty();
                feed.insert(index);
                if was_empty {
                    self.classes[parent].active.insert(prio);
                    self.connect(parent, prio);
                }
            }
            _ => {}
        }
    }

    fn disconnect(&mut self, index: usize, prio: u8) {
        let class = &self.classes[index];
        match (class.mode, class.parent) {
            (Mode::CanSend, _) => {
                let row = &mut self.rows[class.level][usize::from(prio)];
                if row.pointer == Some(index) {
                    row.next();
                }
                row.members.remove(&index);
            }
            (Mode::MayBorrow, Some(parent)) => {
                let feed = &mut self.classes[parent].feeds[usize::from(prio)];
                if feed.pointer == Some(index) {
                    (feed.pointer, feed.remembered) = (None, Some(index));
                }
                feed.members.remove(&index);
                if feed.members.is_empty() {
                    self.classes[parent].active.remove(&prio);
                    self.disconnect(parent, prio);
                }
            }
            _ => {}
        }
    }

    fn mode_of(&self, index: usize, elapsed: i64) -> (Mode, u64) {
        let class = &self.classes[index];
        match (grown(class.ceil_tokens, elapsed), grown(class.tokens, elapsed)) {
            (ceil, _) if ceil < 0 => (Mode::CantSend, -ceil as u64),
            (_, tokens) if tokens < 0 => (Mode::MayBorrow, -tokens as u64),
            _ => (Mode::CanSend, 0),
        }
    }

    fn set_mode(&mut self, index: usize, mode: Mode) {
        let prios = self.classes[index].active.clone();
        prios.iter().for_each(|&prio| self.disconnect(index, prio));
        self.classes[index].mode = mode;
        prios.iter().for_each(|&prio| self.connect(index, prio));
    }

    fn wait(&mut self, index: usize, nanos: u64) {
        let level = self.classes[index].level;
        let event = (self.now + nanos, self.inserted, index);
        self.inserted += 1;
        self.events[level].insert(event);
        self.next_check[level] = self.next_check[level].min(event.0);
        self.classes[index].event = Some(event);
    }

    fn elapsed(&self, index: usize) -> i64 {
        (self.now - self.classes[index].charged_at) as i64
    }

    fn do_events(&mut self, level: usize) {
        if self.now < self.next_check[level] {
            return;
        }
        while let Some(&(time, _, index)) = self.events[level].first()
            && time <= self.now
        {
            self.events[level].pop_first();
            self.classes[index].event = None;
            let (mode, wait) = self.mode_of(index, self.elapsed(index));
            if mode != self.classes[index].mode {
                self.set_mode(index, mode);
            }
            if mode != Mode::CanSend {
                self.wait(index, wait);
            }
        }
        self.next_check[level] = self.events[level].first().map_or(u64::MAX, |event| event.0);
    }

    fn charge(&mut self, leaf: usize, level: usize, length: u32) {
        let mut next = Some(leaf);
        while let Some(index) = next {
            let (elapsed, settings) = (self.elapsed(index), &self.config.classes[index]);
            let (depth, ceil_depth) = settings.depths();
            let paid = |tokens: i64, depth: u32, rate: Rate| {
                let filled = grown(tokens, elapsed).min(i64::from(depth) * 64);
                let cost = rate.meter().nanos(length.into()) as i64;
                (filled - cost).max((1 - MINUTE).min(-cost))
            };
            let class = &mut self.classes[index];
            class.tokens = match class.level < level {
                true => grown(class.tokens, elapsed),
                false => paid(class.tokens, depth, settings.rate),
            };
            class.ceil_tokens = paid(class.ceil_tokens, ceil_depth, settings.ceil());
            class.charged_at = self.now;
            next = class.parent;
            let (own_level, before) = (class.level, class.mode);
            let (mode, wait) = self.mode_of(index, 0);
            if mode != before {
                self.set_mode(index, mode);
                if let Some(event) = self.classes[index].event.take() {
                    self.events[own_level].remove(&event);
                }
                if mode != Mode::CanSend {
                    self.wait(index, wait);
                }
            }
        }
    }

    fn look_up(&mut self, level: usize, prio: usize) -> usize {
        let mut path: Vec<usize> = Vec::new();
        loop {
            let round_robin = match path.last() {
                None => &mut self.rows[level][prio],
                Some(&above) => &mut self.classes[above].feeds[prio],
            };
            if let (None, Some(remembered)) = (round_robin.pointer, round_robin.remembered.take()) {
                round_robin.pointer = round_robin.members.range(remembered..).next().copied();
            }
            let turn = round_robin.pointer;
            match turn {
                None => {
                    round_robin.pointer = round_robin.members.first().copied();
                    if path.pop().is_some() {
                        match path.last() {
                            None => self.rows[level][prio].next(),
                            Some(&above) => self.classes[above].feeds[prio].next(),
                        }
                    }
                }
                Some(index) if self.classes[index].level == 0 => return index,
                Some(index) => path.push(index),
            }
        }
    }

    /// Returns the class and length of the packet sent, or when to ask again.
    pub(super) fn dequeue(&mut self, now: u64) -> Result<(usize, u32), u64> {
        if self.classes.iter().all(|class| class.queue.is_empty()) {
            return Err(u64::MAX);
        }
        self.now = now;
        for level in 0..LEVELS {
            self.do_events(level);
            let Some(prio) = (0..PRIORITIES).find(|&prio| !self.rows[level][prio].members.is_empty()) else {
                continue;
            };
            let index = self.look_up(level, prio);
            let length = self.classes[index]
                .queue
                .pop_front()
                .expect("an active class has packets");
            let class = &mut self.classes[index];
            class.deficits[level] -= i64::from(length);
            if class.deficits[level] < 0 {
                class.deficits[level] += i64::from(self.config.classes[index].quantum.unwrap());
                match (level, class.parent) {
                    (0, _) => self.rows[0][prio].next(),
                    (_, parent) => {
                        self.classes[parent.expect("a class that borrows has a parent")].feeds[prio].next()
                    }
                }
            }
            if self.classes[index].queue.is_empty() {
                self.disconnect(index, prio as u8);
                self.classes[index].active.clear();
            }
            self.charge(index, level, length);
            return Ok((index, length));
        }
        Err(self.next_check.iter().copied().min().unwrap_or(u64::MAX))
    }
}
