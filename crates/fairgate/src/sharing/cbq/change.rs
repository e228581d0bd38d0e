//! A change of parameters and classes while packets are queued.

use crate::discipline::Algorithm;
use crate::pool::{PacketQueue, Pool};
use crate::sharing::index::ClassIndex;
use crate::sharing::leaves::Leaves;
use crate::sharing::tree::ClassTree;
use crate::time::Time;

use super::{Cbq, Config, Estimator};

impl Cbq {
    /// Becomes the new tree. A tree of the same shape changes in place.
    pub(super) fn change(&mut self, config: Config, tree: ClassTree, now: Time, pool: &mut Pool) {
        let mut unclassified = PacketQueue::new();
        let differences = config.differences(&self.config);
        let inner = match differences.in_place(0, 0) {
            Some(_) => Leaves::none(),
            None => self
                .classes
                .move_leaves(&tree, &config.templates, &mut unclassified, pool),
        };
        let mut new = Cbq::new(config, tree, inner);
        match differences.in_place(0, 0) {
            Some(differing) => new.adjust(self, differing, now),
            None => new.carry_over(self, unclassified, now, pool),
        }
        *self = new;
    }

    /// Takes over the state of `old`, and its leaves that are in `kept`.
    pub(super) fn take_over(&mut self, old: &mut Cbq, kept: &[u32], now: Time, pool: &mut Pool) {
        let differences = self.differences.take();
        let differences = differences.unwrap_or_else(|| self.config.differences(&old.config));
        self.config.classifier.take_over(&old.config.classifier);
        match differences.in_place(self.classes.tree.leaves().len(), kept.len()) {
            Some(differing) => self.adjust(old, differing, now),
            None => {
                let mut unclassified = PacketQueue::new();
                let templates = &self.config.templates;
                self.classes
                    .inherit_leaves(&mut old.classes, templates, kept, &mut unclassified, pool);
                self.carry_over(old, unclassified, now, pool);
            }
        }
        // Its memory is released with that of the old tree.
        old.differences = Some(differences);
    }

    /// Takes over all of `old`, which has the same shape, and sets what is different. `old` gets the new
    /// classes.
    fn adjust(&mut self, old: &mut Cbq, differing: &[ClassIndex], now: Time) {
        (self.completion, self.cutoff) = (old.completion, old.cutoff);
        core::mem::swap(&mut self.classes, &mut old.classes);
        self.classes
            .adjust(&old.classes, differing, now, |estimator, before, _, _| {
                estimator.carry_over(before);
            });
    }

    /// Takes over averages, suspensions, deficits and turns, and classifies `unclassified` packets.
    fn carry_over(&mut self, old: &Cbq, unclassified: PacketQueue, now: Time, pool: &mut Pool) {
        self.completion = old.completion;
        self.classes
            .take_over(&old.classes, now, |estimator, _, before, _| {
                if let Some((before, _)) = before {
                    estimator.carry_over(before);
                }
            });
        pool.enqueue_moved(unclassified, |id, pool| {
            self.enqueue(id, now, pool);
        });
    }
}

impl Estimator {
    /// Goes on from what there was before.
    fn carry_over(&mut self, before: &Estimator) {
        self.average = before.average.clamp(self.least, self.most);
        (self.next, self.last) = (before.next, before.last);
    }
}
