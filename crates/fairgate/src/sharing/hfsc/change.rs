//! A change of parameters and classes while packets are queued.

use alloc::vec::Vec;

use crate::discipline::Algorithm;
use crate::pool::{PacketQueue, Pool};
use crate::sharing::index::{ClassIndex, LeafIndex};
use crate::sharing::leaves::Leaves;
use crate::sharing::tree::ClassTree;
use crate::time::Time;

use super::curve::Course;
use super::{Config, Hfsc, TICK};

impl Hfsc {
    /// Becomes the new tree. A tree of the same shape changes in place.
    pub(super) fn change(&mut self, config: Config, tree: ClassTree, now: Time, pool: &mut Pool) {
        let mut unclassified = PacketQueue::new();
        let differences = config.differences(&self.config);
        let inner = match differences.in_place(0, 0) {
            Some(_) => Leaves::none(),
            None => self
                .inner
                .moved(&self.tree, &tree, &config.templates, &mut unclassified, pool),
        };
        let mut new = Hfsc::new(config, tree, inner);
        match differences.in_place(0, 0) {
            Some(differing) => new.adjust(self, differing, now, pool),
            None => new.carry_over(self, unclassified, now, pool),
        }
        *self = new;
    }

    /// Takes over the state of `old`, and its leaves that are in `kept`.
    pub(super) fn take_over(&mut self, old: &mut Hfsc, kept: &[u32], now: Time, pool: &mut Pool) {
        let differences = self.differences.take();
        let differences = differences.unwrap_or_else(|| self.config.differences(&old.config));
        self.config.classifier.take_over(&old.config.classifier);
        match differences.in_place(self.leaves.len(), kept.len()) {
            Some(differing) => self.adjust(old, differing, now, pool),
            None => {
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
                self.carry_over(old, unclassified, now, pool);
            }
        }
        // Its memory is released with that of the old tree.
        old.differences = Some(differences);
    }

    /// Takes over all of `old`, which has the same shape, and sets what is different. `old` gets the new
    /// classes.
    fn adjust(&mut self, old: &mut Hfsc, differing: &[ClassIndex], now: Time, pool: &mut Pool) {
        core::mem::swap(self, old);
        core::mem::swap(&mut self.config, &mut old.config);
        self.now = self.now.max(now.nanos() >> TICK);
        self.due = None;
        for &class in differing {
            self.adjust_class(class, old, now, pool);
        }
    }

    /// Sets the curves of a class to those of `new`. A curve that changed starts at the present state of the
    /// class.
    fn adjust_class(&mut self, index: ClassIndex, new: &Hfsc, now: Time, pool: &mut Pool) {
        let (was, is) = (
            &new.config.classes[index.index()],
            &self.config.classes[index.index()],
        );
        let (is_other_limit, is_other_share, is_other_rt) =
            (was.ul != is.ul, was.ls != is.ls, was.rt != is.rt);
        let class = &mut self.classes[index.index()];
        let new_class = &new.classes[index.index()];
        if is_other_limit {
            class.limit = new_class.limit;
            class.limited = class
                .limit
                .map_or(Course::default(), |limit| limit.from(self.now, class.total));
            class.own_fit = class
                .limit
                .map_or(0, |limit| limit.time(&class.limited, class.total));
        }
        if is_other_share {
            class.sharing = new_class.sharing;
            class.shared = class.sharing.map_or(Course::default(), |curve| {
                curve.from(class.virtual_time, class.total)
            });
            class.put_forward = 0;
        }
        let leaf = class.leaf;
        if is_other_rt && leaf != LeafIndex::NONE {
            self.adjust_real_time(leaf, new, now, pool);
        }
        // Its limit counts for the classes above it, too.
        let mut index = index;
        while index != self.root() && self.classes[index.index()].active > 0 {
            self.fit(index);
            index = self.classes[index.index()].parent;
        }
    }

    fn adjust_real_time(&mut self, leaf: LeafIndex, new: &Hfsc, now: Time, pool: &mut Pool) {
        let real_time = &mut self.leaves[leaf.index()].real_time;
        let Some(curve) = new.leaves[leaf.index()].real_time.curve else {
            return;
        };
        real_time.curve = Some(curve);
        real_time.course = curve.from(self.now, real_time.served);
        if !self.leaves[leaf.index()].is_active {
            return;
        }
        match self.inner.get_mut(leaf).peek(now, pool) {
            Some(first) => {
                self.stop_waiting(leaf);
                self.schedule(leaf, pool[first].length);
            }
            None => self.deactivate(leaf, 0),
        }
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
            // A leaf that was idle has no packets. Its discipline is not asked: thousands of them take
            // milliseconds.
            let minor = self.tree.minor(self.leaves[leaf.index()].class);
            if self.carry_over_real_time(leaf, old) {
                self.resume(leaf, &goes_on, now, pool);
            } else if old
                .tree
                .leaf(minor)
                .is_some_and(|before| old.inner.is_parked(before))
            {
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
