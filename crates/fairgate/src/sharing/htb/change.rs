//! A change of parameters and classes while packets are queued.

use crate::packet::DropReason;
use crate::pool::{PacketQueue, Pool};
use crate::rate::Rate;
use crate::sharing::{ClassTree, place_again};
use crate::time::Time;

use super::{Config, Htb, Mode, TICK};

impl Htb {
    /// Makes the tree anew and takes over what the old one knew: buckets, modes, deficits, turns, packets.
    pub(super) fn change(&mut self, config: Config, tree: ClassTree, now: Time, pool: &mut Pool) {
        let mut homeless = PacketQueue::new();
        let inner = self.inner.moved(&self.tree, &tree, &mut homeless, pool);
        let new = Htb::new(config, tree, inner);
        let mut old = std::mem::replace(self, new);
        self.now = old.now.max(now.nanos());
        self.directly_sent = old.directly_sent;
        for place in 0..self.classes.len() {
            self.carry_over(place, &old);
            let (mode, wait) = self.classes[place].mode_after(0);
            self.classes[place].mode = mode;
            if mode != Mode::CanSend {
                self.await_event(place as u32, wait);
            }
        }
        self.follow_turns(&old);
        for leaf in 0..self.leaves.len() {
            self.activate(leaf);
        }
        while let Some(id) = old.direct.pop_front(pool) {
            match self.direct.count().packets < u64::from(self.config.direct_qlen) {
                true => self.direct.push_back(id, pool),
                false => pool.give_back(id, DropReason::Reconfigured),
            }
        }
        place_again(self, &mut homeless, now, pool);
    }

    /// The buckets of a class, and what a leaf may still send in its turn.
    fn carry_over(&mut self, place: usize, old: &Htb) {
        let minor = self.tree.minor(place);
        let class = &mut self.classes[place];
        class.charged_at = self.now;
        let Some(before) = old.tree.place(minor) else {
            return;
        };
        let (was, is) = (&old.config.classes[before], &self.config.classes[place]);
        let before = &old.classes[before];
        let elapsed = before.elapsed(self.now);
        let filled = |tokens: i64, depth: u32| (tokens + elapsed).min(i64::from(depth) << TICK);
        let tokens = in_bytes(filled(before.tokens, before.depth), was.rate, is.rate);
        let ceil_tokens = in_bytes(
            filled(before.ceil_tokens, before.ceil_depth),
            was.ceil(),
            is.ceil(),
        );
        class.tokens = tokens.min(class.tokens);
        class.ceil_tokens = ceil_tokens.min(class.ceil_tokens);
        if let (Some(leaf), Some(before)) = (self.tree.leaf(minor), old.tree.leaf(minor)) {
            self.leaves[leaf].deficits = old.leaves[before].deficits;
            self.leaves[leaf].sent = old.leaves[before].sent;
            self.leaves[leaf].borrowed = old.leaves[before].borrowed;
        }
    }

    /// Rounds go on where they were.
    fn follow_turns(&mut self, old: &Htb) {
        let Htb { rounds, tree, .. } = self;
        let is_inner = |tree: &ClassTree, place: usize| !tree.children(place).is_empty();
        let kept = (0..old.tree.len()).filter(|&place| is_inner(&old.tree, place));
        let kept = kept.filter_map(|before| {
            let place = tree.place(old.tree.minor(before))?;
            is_inner(tree, place).then_some((before as u32, place as u32))
        });
        let moved = |before: u32| tree.place_from(old.tree.minor(before as usize)) as u32;
        let among_siblings = |parent: u32, sibling: u32| {
            let child = old.tree.children(parent as usize)[sibling as usize];
            let place = tree
                .place(old.tree.minor(parent as usize))
                .expect("it is one of those kept");
            let children = tree.children(place);
            children.partition_point(|&other| tree.minor(other as usize) < old.tree.minor(child as usize))
                as u32
        };
        rounds.follow(&old.rounds, kept, moved, among_siblings);
    }
}

/// Tokens in ns at `old` that are as many bytes as `tokens` ns at `new`.
fn in_bytes(tokens: i64, old: Rate, new: Rate) -> i64 {
    let bytes = i128::from(tokens) * i128::from(old.bits_per_second());
    (bytes / i128::from(new.bits_per_second())).clamp((1 - super::LONGEST).into(), super::LONGEST.into())
        as i64
}
