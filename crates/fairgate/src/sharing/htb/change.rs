//! A change of parameters and classes while packets are queued.

use crate::discipline::Algorithm;
use crate::packet::DropReason;
use crate::pool::{PacketQueue, Pool};
use crate::rate::Rate;
use crate::sharing::index::ClassIndex;
use crate::sharing::leaves::Leaves;
use crate::sharing::tree::ClassTree;
use crate::time::Time;

use super::{Buckets, ClassConfig, Config, Htb, LONGEST, TICK, tokens};

impl Htb {
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
        let mut new = Htb::new(config, tree, inner);
        match differences.in_place(0, 0) {
            Some(differing) => new.adjust(self, differing, now, pool),
            None => new.carry_over(self, unclassified, now, pool),
        }
        *self = new;
    }

    /// Takes over the state of `old`, and its leaves that are in `kept`.
    pub(super) fn take_over(&mut self, old: &mut Htb, kept: &[u32], now: Time, pool: &mut Pool) {
        let differences = self.differences.take();
        let differences = differences.unwrap_or_else(|| self.config.differences(&old.config));
        self.config.classifier.take_over(&old.config.classifier);
        match differences.in_place(self.classes.tree.leaves().len(), kept.len()) {
            Some(differing) => self.adjust(old, differing, now, pool),
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
    fn adjust(&mut self, old: &mut Htb, differing: &[ClassIndex], now: Time, pool: &mut Pool) {
        core::mem::swap(&mut self.classes, &mut old.classes);
        core::mem::swap(&mut self.bursts, &mut old.bursts);
        self.bursts.adjust(&mut old.bursts, differing);
        let (was, is) = (&old.config.classes, &self.config.classes);
        let bursts = &self.bursts;
        self.classes
            .adjust(&old.classes, differing, now, |buckets, before, class, now| {
                buckets.charged_at = now;
                buckets.carry_over(&is[class.index()], *before, &was[class.index()], now);
                bursts.apply(class, buckets);
            });
        self.take_over_direct(old, pool);
    }

    /// Takes over buckets, deficits, turns and unclassified packets, and classifies `unclassified` packets.
    fn carry_over(&mut self, old: &mut Htb, unclassified: PacketQueue, now: Time, pool: &mut Pool) {
        let (was, is) = (&old.config.classes, &self.config.classes);
        let bursts = &mut self.bursts;
        self.classes
            .take_over(&old.classes, now, |buckets, class, before, now| {
                buckets.charged_at = now;
                if let Some((before, old_class)) = before {
                    buckets.carry_over(&is[class.index()], *before, &was[old_class.index()], now);
                    bursts.carry_over(class, &old.bursts, old_class);
                }
                bursts.apply(class, buckets);
            });
        self.take_over_direct(old, pool);
        pool.enqueue_moved(unclassified, |id, pool| {
            self.enqueue(id, now, pool);
        });
    }

    /// Takes over the direct queue.
    fn take_over_direct(&mut self, old: &mut Htb, pool: &mut Pool) {
        self.direct_packets = old.direct_packets;
        while let Some(id) = old.direct.pop_front(pool) {
            match self.direct.count().packets < u64::from(self.config.direct_qlen) {
                true => self.direct.push_back(id, pool),
                false => pool.give_back(id, DropReason::Reconfigured),
            }
        }
    }
}

impl Buckets {
    /// Fills the buckets with as many bytes as there were before, or as fit.
    fn carry_over(&mut self, is: &ClassConfig, mut before: Buckets, was: &ClassConfig, now: u64) {
        before.idle_until(now);
        let carried = |empty_at: u64, was: (u32, Rate), is: (u32, Rate)| {
            let filled = |tokens: i64, depth: u32| tokens.min(i64::from(depth) << TICK);
            let left = in_bytes(filled(tokens(empty_at, now), was.0), was.1, is.1);
            now.wrapping_sub(filled(left, is.0) as u64)
        };
        self.empty_at = carried(before.empty_at, (before.depth, was.rate), (self.depth, is.rate));
        self.ceil_empty_at = carried(
            before.ceil_empty_at,
            (before.ceil_depth, was.ceil()),
            (self.ceil_depth, is.ceil()),
        );
    }
}

/// Returns the tokens in ns at the rate `new` that are as many bytes as `tokens` ns at the rate `old`.
fn in_bytes(tokens: i64, old: Rate, new: Rate) -> i64 {
    if old == new {
        return tokens;
    }
    let bytes = i128::from(tokens) * i128::from(old.bits_per_second());
    let nanos = bytes / i128::from(new.bits_per_second());
    nanos.clamp((1 - LONGEST).into(), (i64::from(u32::MAX) << TICK).into()) as i64
}
