//! What classes have counted, and sums of it that never fall.

use std::collections::{BTreeMap, HashMap};

use fairgate_run_api::{CountStatus, NodeStatus};

/// What a class has counted, and what waits in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) sent: Sum,
    pub(super) dropped: Sum,
    pub(super) drops: BTreeMap<String, u64>,
    pub(super) marked: u64,
    pub(super) overlimits: u64,
    /// In nanoseconds: a sum of numbers that are not whole may fall when it is added up in another order.
    pub(super) delay_ns: u64,
    pub(super) backlog: Sum,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl From<CountStatus> for Sum {
    fn from(count: CountStatus) -> Sum {
        Sum {
            packets: count.packets,
            bytes: count.bytes,
        }
    }
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }

    fn is_at_least(self, before: Sum) -> bool {
        self.packets >= before.packets && self.bytes >= before.bytes
    }
}

impl Figures {
    pub(super) fn of(node: &NodeStatus) -> Figures {
        Figures {
            sent: node.dequeued.into(),
            dropped: node.dropped.into(),
            drops: node.drops.clone(),
            marked: node.marked,
            overlimits: node.overlimits,
            delay_ns: (node.sojourn_s * 1e9).round() as u64,
            backlog: node.backlog.into(),
        }
    }

    fn add(&mut self, other: &Figures) {
        self.sent.add(other.sent);
        self.dropped.add(other.dropped);
        for (reason, packets) in &other.drops {
            *self.drops.entry(reason.clone()).or_default() += packets;
        }
        self.marked += other.marked;
        self.overlimits += other.overlimits;
        self.delay_ns += other.delay_ns;
        self.backlog.add(other.backlog);
    }

    /// Returns whether these counters go on from `before`. If the class was replaced, or if another host has
    /// it now, they began at 0.
    pub(super) fn goes_on_from(&self, before: &Figures) -> bool {
        self.sent.is_at_least(before.sent)
            && self.dropped.is_at_least(before.dropped)
            && self.marked >= before.marked
            && self.overlimits >= before.overlimits
            && self.delay_ns >= before.delay_ns
            && before
                .drops
                .iter()
                .all(|(reason, packets)| self.drops.get(reason).is_some_and(|now| now >= packets))
    }

    /// Forgets what waits: it waits there no more.
    fn without_backlog(mut self) -> Figures {
        self.backlog = Sum::default();
        self
    }
}

/// The sum of classes that come and go. It never falls: the last figures of each class are kept, and what it
/// had counted when it was removed or began anew stays in the sum.
#[derive(Debug, Default)]
pub(super) struct Summed {
    /// The last figures of each class, by its path.
    members: HashMap<String, Figures>,
    gone: Figures,
}

impl Summed {
    pub(super) fn has(&self, path: &str) -> bool {
        self.members.contains_key(path)
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Takes what a class has counted by now.
    pub(super) fn take(&mut self, path: &str, figures: Figures) {
        match self.members.get_mut(path) {
            None => drop(self.members.insert(path.to_owned(), figures)),
            Some(known) => {
                let before = std::mem::replace(known, figures);
                if !known.goes_on_from(&before) {
                    self.gone.add(&before.without_backlog());
                }
            }
        }
    }

    /// Keeps these classes. The others are gone.
    pub(super) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        for (_, figures) in self.members.extract_if(|path, _| !is_there(path)) {
            self.gone.add(&figures.without_backlog());
        }
    }

    pub(super) fn total(&self) -> Figures {
        let mut total = self.gone.clone();
        for figures in self.members.values() {
            total.add(figures);
        }
        total
    }
}
