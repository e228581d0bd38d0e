//! A change of parameters and classes while packets are queued.

use alloc::vec::Vec;

use crate::pool::{PacketQueue, Pool};
use crate::sharing::{ClassTree, place_again};
use crate::time::Time;

use super::{Config, Course, Hfsc, TICK};

impl Hfsc {
    /// Makes the tree anew and takes over what the old one knew: what each class got, its virtual time, the course of
    /// curves that did not change, packets. A curve that did change begins where the class is now.
    pub(super) fn change(&mut self, config: Config, tree: ClassTree, now: Time, pool: &mut Pool) {
        let mut homeless = PacketQueue::new();
        let inner = self
            .inner
            .moved(&self.tree, &tree, &config.templates, &mut homeless, pool);
        let new = Hfsc::new(config, tree, inner);
        let old = core::mem::replace(self, new);
        self.now = old.now.max(now.nanos() >> TICK);
        (self.turns, self.by_deadline, self.by_sharing) = (old.turns, old.by_deadline, old.by_sharing);
        let goes_on: Vec<bool> = (0..self.tree.len())
            .map(|place| self.carry_over(place, &old))
            .collect();
        self.books.take_over(
            &self.tree,
            &old.books,
            &old.tree,
            &old.tallies(),
            old.leaf_counts(),
        );
        let (root, old_root) = (self.root() as usize, old.root() as usize);
        self.siblings[root].least = old.siblings[old_root].least;
        self.siblings[root].offset = old.siblings[old_root].offset;
        for leaf in 0..self.leaves.len() {
            if self.carry_over_real_time(leaf, &old) {
                self.resume(leaf, &goes_on, now, pool);
            } else {
                self.activate(leaf, now, pool);
            }
        }
        place_again(self, &mut homeless, now, pool);
    }

    /// What a class got and where it stands. Whether it was active below the same parent.
    fn carry_over(&mut self, place: usize, old: &Hfsc) -> bool {
        let Some(before) = old.tree.place(self.tree.minor(place)) else {
            return false;
        };
        let (was, is) = (&old.config.classes[before], &self.config.classes[place]);
        self.siblings[place].least = old.siblings[before].least;
        self.siblings[place].offset = old.siblings[before].offset;
        let before = &old.classes[before];
        let class = &mut self.classes[place];
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
            // Virtual time is the parent's.
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

    /// The same of a leaf's real time. Whether the leaf was active.
    fn carry_over_real_time(&mut self, leaf: usize, old: &Hfsc) -> bool {
        let place = self.leaves[leaf].place as usize;
        let Some(before) = old.tree.leaf(self.tree.minor(place)) else {
            return false;
        };
        let before = &old.leaves[before];
        let was = &old.config.classes[before.place as usize];
        let real_time = &mut self.leaves[leaf].real_time;
        real_time.served = before.real_time.served;
        if let Some(curve) = real_time.curve {
            real_time.course = match was.rt == self.config.classes[place].rt {
                true => before.real_time.course,
                false => curve.from(self.now, real_time.served),
            };
        }
        before.is_active
    }

    /// Makes a leaf active that was active before: its backlog goes on.
    fn resume(&mut self, leaf: usize, goes_on: &[bool], now: Time, pool: &mut Pool) {
        if self.inner.is_empty(leaf) {
            return;
        }
        if self.leaves[leaf].real_time.curve.is_some() {
            let Some(first) = self.inner.get_mut(leaf).peek(now, pool) else {
                if !self.inner.is_empty(leaf) {
                    self.inner.park(leaf);
                }
                return;
            };
            self.schedule(leaf, pool[first].length);
        }
        let place = self.leaves[leaf].place;
        self.leaves[leaf].is_active = true;
        if self.classes[place as usize].sharing.is_some() {
            self.share(place, |place| goes_on[place as usize]);
        }
    }
}
