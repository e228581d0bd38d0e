//! A change of parameters and classes while packets are queued.

use crate::discipline::Algorithm;
use crate::pool::{PacketQueue, Pool};
use crate::sharing::tree::ClassTree;
use crate::time::Time;

use super::{Cbq, Config};

impl Cbq {
    /// Creates the new tree and takes over the state of the old one.
    pub(super) fn change(&mut self, config: Config, tree: ClassTree, now: Time, pool: &mut Pool) {
        let mut unclassified = PacketQueue::new();
        let inner = self
            .classes
            .move_leaves(&tree, &config.templates, &mut unclassified, pool);
        let old = core::mem::replace(self, Cbq::new(config, tree, inner));
        self.carry_over(&old, unclassified, now, pool);
    }

    /// Takes over the state of `old`, and its leaves that are in `kept`.
    pub(super) fn take_over(&mut self, old: &mut Cbq, kept: &[u16], now: Time, pool: &mut Pool) {
        let mut unclassified = PacketQueue::new();
        let templates = &self.config.templates;
        self.classes
            .inherit_leaves(&mut old.classes, templates, kept, &mut unclassified, pool);
        self.config.classifier.take_over(&old.config.classifier);
        self.carry_over(old, unclassified, now, pool);
    }

    /// Takes over averages, suspensions, deficits and turns, and classifies `unclassified` packets.
    fn carry_over(&mut self, old: &Cbq, unclassified: PacketQueue, now: Time, pool: &mut Pool) {
        self.completion = old.completion;
        self.classes
            .take_over(&old.classes, now, |estimator, _, before, _| {
                if let Some((before, _)) = before {
                    estimator.average = before.average.clamp(estimator.least, estimator.most);
                    (estimator.next, estimator.last) = (before.next, before.last);
                }
            });
        pool.enqueue_moved(unclassified, |id, pool| {
            self.enqueue(id, now, pool);
        });
    }
}
