//! A change of classes while packets are queued.

use crate::classify::Templates;
use crate::pool::{PacketQueue, Pool};
use crate::sharing::index::{ClassIndex, LeafIndex};
use crate::sharing::leaves::Leaves;
use crate::sharing::tree::ClassTree;
use crate::time::Time;

use super::{Borrowing, Meter, Mode};

impl<M: Meter> Borrowing<M> {
    /// Returns the leaves of the tree that replaces this one. The packets of removed leaves are moved to
    /// `unclassified`.
    pub(in crate::sharing) fn move_leaves(
        &mut self,
        tree: &ClassTree,
        templates: &Templates,
        unclassified: &mut PacketQueue,
        pool: &mut Pool,
    ) -> Leaves {
        self.inner.moved(&self.tree, tree, templates, unclassified, pool)
    }

    /// Takes over the leaves of `old`, as of [`Leaves::inherit`].
    pub(in crate::sharing) fn inherit_leaves(
        &mut self,
        old: &mut Borrowing<M>,
        templates: &Templates,
        kept: &[u32],
        unclassified: &mut PacketQueue,
        pool: &mut Pool,
    ) {
        let Borrowing { inner, tree, .. } = old;
        self.inner
            .inherit((inner, tree), &self.tree, templates, kept, unclassified, pool);
    }

    /// Takes over the state of another tree, by the numbers of the classes: meters, deficits, turns and
    /// statistics. `carry` adapts a meter. It gets the new meter and its class, the old ones if the class
    /// existed, and the time.
    pub(in crate::sharing) fn take_over(
        &mut self,
        old: &Borrowing<M>,
        now: Time,
        mut carry: impl FnMut(&mut M, ClassIndex, Option<(&M, ClassIndex)>, u64),
    ) {
        self.now = old.now.max(now.nanos());
        for index in self.tree.classes() {
            let before = old.tree.index(self.tree.minor(index));
            let before = before.map(|before| (&old.classes[before.index()].meter, before));
            let class = &mut self.classes[index.index()];
            carry(&mut class.meter, index, before, self.now);
            let (mode, wait) = class.meter.mode(self.now);
            class.mode = mode;
            let level = class.level;
            if mode != Mode::CanSend {
                self.add_event(index, level, wait);
            }
        }
        for leaf in &mut self.leaves {
            let minor = self.tree.minor(leaf.class);
            if let Some(before) = old.tree.leaf(minor).map(|before| &old.leaves[before.index()]) {
                for (served, before) in leaf.served_from.iter_mut().zip(&before.served_from) {
                    served.deficit = before.deficit;
                }
            }
        }
        self.take_over_statistics(old);
        self.follow_turns(old);
        for (leaf, before) in old.leaves.iter().enumerate() {
            // A leaf that was idle has no packets. Its discipline is not asked: thousands of them take
            // milliseconds.
            let was_idle = old.classes[before.class.index()].activity == 0;
            if was_idle && !old.inner.is_parked(LeafIndex::new(leaf)) {
                continue;
            }
            if let Some(leaf) = self.tree.leaf(old.tree.minor(before.class)) {
                self.activate(leaf);
            }
        }
    }

    /// Makes this tree what `new` is, which has the same shape and has never held a packet. Only the classes
    /// that are `differing` are different. `carry` adapts a meter as of [`take_over`](Borrowing::take_over).
    pub(in crate::sharing) fn adjust(
        &mut self,
        new: &Borrowing<M>,
        differing: &[ClassIndex],
        now: Time,
        carry: impl Fn(&mut M, &M, ClassIndex, u64),
    ) where
        M: Copy,
    {
        self.now = self.now.max(now.nanos());
        for &index in differing {
            let class = &mut self.classes[index.index()];
            let mut meter = new.classes[index.index()].meter;
            carry(&mut meter, &class.meter, index, self.now);
            class.meter = meter;
            let (mode, wait) = meter.mode(self.now);
            self.set_mode(index, mode, wait);
            if let Some(leaf) = self.tree.leaf(self.tree.minor(index)) {
                self.leaves[leaf.index()].quantum = new.leaves[leaf.index()].quantum;
            }
        }
    }

    fn take_over_statistics(&mut self, old: &Borrowing<M>) {
        let (statistics, leaves) = (&old.statistics, old.leaf_counters());
        let counters = || old.counters();
        if self
            .statistics
            .take_over(&self.tree, statistics, &old.tree, counters, leaves)
        {
            for (leaf, before) in self.leaves.iter_mut().zip(&old.leaves) {
                leaf.bytes = before.bytes;
                for (served, before) in leaf.served_from.iter_mut().zip(&before.served_from) {
                    served.packets = before.packets;
                }
            }
        }
    }

    /// Lets the round robins continue where those of `old` were.
    fn follow_turns(&mut self, old: &Borrowing<M>) {
        let Borrowing {
            round_robins, tree, ..
        } = self;
        let inner_classes = old.tree.classes().filter(|&class| !old.tree.is_leaf(class));
        let kept = inner_classes.filter_map(|before| {
            let class = tree.index(old.tree.minor(before))?;
            (!tree.is_leaf(class)).then_some((before, class))
        });
        let in_row = |index: u32| {
            let before = ClassIndex::new(index as usize);
            tree.count_below(old.tree.minor(before)) as u32
        };
        let in_feed = |parent: ClassIndex, sibling: u32| {
            let minor = old.tree.minor(old.tree.children(parent)[sibling as usize]);
            let parent = tree.index(old.tree.minor(parent));
            let children =
                tree.children(parent.expect("only classes that are kept have positions to follow"));
            children.partition_point(|&other| tree.minor(other) < minor) as u32
        };
        round_robins.follow(&old.round_robins, kept, in_row, in_feed);
    }
}
