//! A change of parameters and classes while packets are queued.

use crate::discipline::Algorithm;
use crate::pool::{PacketQueue, Pool};
use crate::sharing::tree::ClassTree;
use crate::time::Time;

use super::{Cbq, Config};

impl Cbq {
    /// Creates the new tree and takes over the state of the old one: averages, suspensions, deficits, turns,
    /// packets.
    pub(super) fn change(&mut self, config: Config, tree: ClassTree, now: Time, pool: &mut Pool) {
        let mut unclassified = PacketQueue::new();
        let inner = self
            .classes
            .move_leaves(&tree, &config.templates, &mut unclassified, pool);
        let new = Cbq::new(config, tree, inner);
        let old = core::mem::replace(self, new);
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
