//! A change of parameters and classes while packets are queued.

use alloc::vec::Vec;

use crate::discipline::Algorithm;
use crate::pool::{PacketQueue, Pool};
use crate::sharing::index::{ClassIndex, LeafIndex};
use crate::sharing::tree::ClassTree;
use crate::time::Time;

use super::curve::Course;
use super::{Config, Hfsc, TICK};

impl Hfsc {
    /// Creates the new tree and takes over the state of the old one.
    pub(super) fn change(&mut self, config: Config, tree: ClassTree, now: Time, pool: &mut Pool) {
        let mut unclassified = PacketQueue::new();
        let inner = self
            .inner
            .moved(&self.tree, &tree, &config.templates, &mut unclassified, pool);
        let old = core::mem::replace(self, Hfsc::new(config, tree, inner));
        self.carry_over(&old, unclassified, now, pool);
    }

    /// Takes over the state of `old`, and its leaves that are in `kept`.
    pub(super) fn take_over(&mut self, old: &mut Hfsc, kept: &[u16], now: Time, pool: &mut Pool) {
        let mut unclassified = PacketQueue::new();
        let Hfsc { inner, tree, .. } = old;
        self.inner.inherit(
            (inner, tree),
            &self.tree,
            &self.config.templates,
            kept,
            &mut unclassified,
            pool,
        );
        self.config.classifier.take_over(&old.config.classifier);
        self.carry_over(old, unclassified, now, pool);
    }

    /// Takes over the bytes and the virtual time of each class, and the courses of curves that did not
    /// change. A curve that changed starts at the present state of the class. Classifies `unclassified`
    /// packets.
    fn carry_over(&mut self, old: &Hfsc, unclassified: PacketQueue, now: Time, pool: &mut Pool) {
        self.now = old.now.max(now.nanos() >> TICK);
        (self.turns, self.by_deadline, self.by_sharing) = (old.turns, old.by_deadline, old.by_sharing);
        let goes_on: Vec<bool> = self
            .tree
            .classes()
            .map(|class| self.carry_over_class(class, old))
            .collect();
        self.take_over_statistics(old);
        let (root, old_root) = (self.root().index(), old.root().index());
        self.siblings[root].least = old.siblings[old_root].least;
        self.siblings[root].offset = old.siblings[old_root].offset;
        for leaf in self.leaf_indices() {
            if self.carry_over_real_time(leaf, old) {
                self.resume(leaf, &goes_on, now, pool);
            } else {
                self.activate(leaf, now, pool);
            }
        }
        pool.enqueue_moved(unclassified, |id, pool| {
            self.enqueue(id, now, pool);
        });
    }

    fn take_over_statistics(&mut self, old: &Hfsc) {
        let (statistics, leaves) = (&old.statistics, old.leaf_counters());
        let counters = || old.counters();
        if self
            .statistics
            .take_over(&self.tree, statistics, &old.tree, counters, leaves)
        {
            for (leaf, before) in self.leaves.iter_mut().zip(&old.leaves) {
                leaf.sent = before.sent;
            }
        }
    }

    /// Takes over the state of a class. Returns whether it was active below the same parent.
    fn carry_over_class(&mut self, index: ClassIndex, old: &Hfsc) -> bool {
        let Some(before) = old.tree.index(self.tree.minor(index)) else {
            return false;
        };
        let (before, index) = (before.index(), index.index());
        let (was, is) = (&old.config.classes[before], &self.config.classes[index]);
        self.siblings[index].least = old.siblings[before].least;
        self.siblings[index].offset = old.siblings[before].offset;
        let before = &old.classes[before];
        let class = &mut self.classes[index];
        class.total = before.total;
        class.period = before.period;
        if let Some(limit) = class.limit {
            class.limited = match was.ul == is.ul {
                true => before.limited,
                false => limit.from(self.now, class.total),
            };
            class.own_fit = limit.time(&class.limited, class.total);
        }
        let from = |x| {
            class
                .sharing
                .map_or(Course::default(), |curve| curve.from(x, class.total))
        };
        if was.parent != is.parent {
            // The virtual time was that of the old parent.
            class.shared = from(0);
            class.parent_period = u64::MAX;
            return false;
        }
        class.virtual_time = before.virtual_time;
        class.parent_period = before.parent_period;
        (class.shared, class.put_forward) = match was.ls == is.ls {
            true => (before.shared, before.put_forward),
            false => (from(class.virtual_time), 0),
        };
        before.active > 0
    }

    /// Takes over the real-time state of a leaf. Returns whether the leaf was active.
    fn carry_over_real_time(&mut self, leaf: LeafIndex, old: &Hfsc) -> bool {
        let class = self.leaves[leaf.index()].class;
        let Some(before) = old.tree.leaf(self.tree.minor(class)) else {
            return false;
        };
        let before = &old.leaves[before.index()];
        let was = &old.config.classes[before.class.index()];
        let real_time = &mut self.leaves[leaf.index()].real_time;
        real_time.served = before.real_time.served;
        if let Some(curve) = real_time.curve {
            real_time.course = match was.rt == self.config.classes[class.index()].rt {
                true => before.real_time.course,
                false => curve.from(self.now, real_time.served),
            };
        }
        before.is_active
    }

    /// Activates a leaf that was active before the change. Its backlog period continues.
    fn resume(&mut self, leaf: LeafIndex, goes_on: &[bool], now: Time, pool: &mut Pool) {
        if self.inner.is_empty(leaf) {
            return;
        }
        if self.leaves[leaf.index()].real_time.curve.is_some() {
            let Some(first) = self.inner.get_mut(leaf).peek(now, pool) else {
                if !self.inner.is_empty(leaf) {
                    self.inner.park(leaf);
                }
                return;
            };
            self.schedule(leaf, pool[first].length);
        }
        let class = self.leaves[leaf.index()].class;
        self.leaves[leaf.index()].is_active = true;
        if self.classes[class.index()].sharing.is_some() {
            self.share(class, |class| goes_on[class.index()]);
        }
    }
}
