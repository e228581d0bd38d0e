//! A change of parameters and classes while packets are queued.

use crate::packet::DropReason;
use crate::pool::{PacketQueue, Pool};
use crate::rate::Rate;
use crate::sharing::{ClassTree, place_again};
use crate::time::Time;

use super::{Buckets, ClassConfig, Config, Htb, LONGEST, TICK, tokens};

impl Htb {
    /// Makes the tree anew and takes over what the old one knew: buckets, deficits, turns, packets.
    pub(super) fn change(&mut self, config: Config, tree: ClassTree, now: Time, pool: &mut Pool) {
        let mut homeless = PacketQueue::new();
        let inner = self
            .classes
            .move_leaves(&tree, &config.templates, &mut homeless, pool);
        let new = Htb::new(config, tree, inner);
        let mut old = core::mem::replace(self, new);
        self.directly_sent = old.directly_sent;
        let (was, is) = (&old.config.classes, &self.config.classes);
        self.classes
            .take_over(&old.classes, now, |buckets, place, before, now| {
                buckets.charged_at = now;
                if let Some((before, was_at)) = before {
                    buckets.carry_over(&is[place], *before, &was[was_at], now);
                }
            });
        while let Some(id) = old.direct.pop_front(pool) {
            match self.direct.count().packets < u64::from(self.config.direct_qlen) {
                true => self.direct.push_back(id, pool),
                false => pool.give_back(id, DropReason::Reconfigured),
            }
        }
        place_again(self, &mut homeless, now, pool);
    }
}

impl Buckets {
    /// As many bytes as there were before, or as fit.
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

/// Tokens in ns at `new` that are as many bytes as `tokens` ns at `old`.
fn in_bytes(tokens: i64, old: Rate, new: Rate) -> i64 {
    let bytes = i128::from(tokens) * i128::from(old.bits_per_second());
    let nanos = bytes / i128::from(new.bits_per_second());
    nanos.clamp((1 - LONGEST).into(), LONGEST.into()) as i64
}
