//! The data structure of Quick Fair Queueing: groups in four sets, each group a ring of slots. Checconi, Rizzo & Valente,
//! "QFQ: Efficient Packet Scheduling With Tight Guarantees", IEEE/ACM Transactions on Networking 2013, section IV.
//!
//! An *entry* (a flow; in QFQ+ an aggregate of flows) whose longest packet takes at most sigma_i = 2^i of virtual time belongs to
//! group i. Its start time is rounded down to a multiple of sigma_i: that is its slot. A group's start S_i is the
//! first full slot, its finish F_i = S_i + 2 sigma_i.
//!
//! ```text
//!              ready          blocked: some eligible group of a higher index has a lower F
//!   eligible   ER     <----   EB         S_i <= V
//!              ^              ^          lowest bit of ER = lowest F = whose turn it is
//!   ineligible IR     <----   IB         S_i >  V
//! ```
//!
//! In each set groups are ordered by F as by index, so whatever happens to several groups at a time happens to those
//! above or below an index: an AND and an OR. When V moves on, the highest bit that flips tells which groups reached a new slot,
//! and all ineligible ones among them become eligible ([`Groups::make_eligible`]). When the group that is served
//! gets a later finish, it unblocks all lower ones or none ([`Groups::unblock`], theorem 6).
//!
//! Invariants, checked by [`Groups::check`]: every set is ordered by F; the sets say of each group what is true of it; ER isn't
//! empty while any group has entries and V has jumped; S_i <= V rounded + sigma_i (theorem 1); all slots lie within the ring (theorem 3).
//!
//! What keeps the slots within the ring is `L / (sum of weights * sigma_i)`, L the longest packet. Where that is above
//! [`MOST_SLOTS`], because one flow's packets are that much longer than another's, an entry is put into the last slot allowed,
//! that is earlier than it should be, as Linux and FreeBSD do.
//!
//! Deviation from the paper: of a slot the entry that came last goes first, as in Linux and FreeBSD. Its guarantees don't
//! depend on that order, and first in first out would touch the line of one flow more.

use crate::timestamps::slots::{END, SLOTS, Slots};

/// Slots of group 0 are 2^22 units of virtual time: a packet of 256 bytes at the largest weight.
pub(super) const MIN_SHIFT: u32 = 22;

/// Up to slots of 2^47 units: the longest packet at weight 1.
pub(super) const GROUPS: usize = 26;

/// Most slots that an entry is put after the first of its group; the rest is room for the group's start to move back.
const MOST_SLOTS: u64 = SLOTS as u64 - 2;

/// The sets: bit 0 of their numbers is set for ineligible, bit 1 for blocked.
const ER: usize = 0;
const IR: usize = 1;
const EB: usize = 2;
const IB: usize = 3;

/// A group.
#[derive(Debug)]
struct Group {
    /// S_i: time of the first full slot. Means something while there are entries.
    start: u64,
    slots: Slots,
}

/// All groups, and virtual time.
#[derive(Debug)]
pub(super) struct Groups {
    /// V.
    now: u64,
    sets: [u32; 4],
    groups: [Group; GROUPS],
}

/// log2 of sigma_i.
#[inline]
fn shift(group: u8) -> u32 {
    MIN_SHIFT + u32::from(group)
}

/// sigma_i.
#[inline]
fn sigma(group: u8) -> u64 {
    1 << shift(group)
}

/// The start of the slot that `time` falls in.
#[inline]
pub(super) fn floor(time: u64, group: u8) -> u64 {
    time & !(sigma(group) - 1)
}

/// The number of the slot that `time` falls in.
#[inline]
fn number(time: u64, group: u8) -> u64 {
    time >> shift(group)
}

/// Whether one wrapping time comes after another.
#[inline]
pub(super) fn is_after(time: u64, other: u64) -> bool {
    time.wrapping_sub(other) as i64 > 0
}

/// Groups of a higher index.
#[inline]
fn above(group: u8) -> u32 {
    (u32::MAX << 1) << group
}

/// Groups of a lower index.
#[inline]
fn below(group: u8) -> u32 {
    !(u32::MAX << group)
}

/// The group for entries whose longest packet takes `span` of virtual time: `ceil(log2(span))`.
#[inline]
pub(super) fn group_of(span: u64) -> u8 {
    let bits = u64::BITS - (span - 1).leading_zeros();
    bits.saturating_sub(MIN_SHIFT) as u8
}

/// The groups that enter a new slot when virtual time goes from `old` to `new`.
#[inline]
pub(super) fn entering(old: u64, new: u64) -> u32 {
    // With a bit below that is always set, so that nothing flipped needs no branch. Bits above the groups are cut off.
    let flipped = (old ^ new) >> MIN_SHIFT << 1 | 1;
    (u64::MAX >> flipped.leading_zeros() >> 1) as u32
}

impl Groups {
    /// Empty groups at virtual time `origin`.
    pub(super) fn new(origin: u64) -> Groups {
        Groups {
            now: origin,
            sets: [0; 4],
            groups: core::array::from_fn(|_| Group {
                start: 0,
                slots: Slots::new(),
            }),
        }
    }

    #[inline]
    fn group(&self, index: u8) -> &Group {
        &self.groups[usize::from(index)]
    }

    #[inline]
    fn group_mut(&mut self, index: u8) -> &mut Group {
        &mut self.groups[usize::from(index)]
    }

    /// Virtual time.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Virtual time goes on by `step` for a packet sent. [`Groups::make_eligible`] has to follow.
    #[inline]
    pub(super) fn pass(&mut self, step: u64) {
        self.now = self.now.wrapping_add(step);
    }

    /// The least finish of any group that has entries. It is that of the lowest ready one, eligible or not, for each set is ordered by
    /// finish times, and what is blocked finishes after what blocks it.
    #[inline]
    pub(super) fn first_finish(&self) -> Option<u64> {
        let first = |set: usize| {
            let ready = self.sets[set];
            (ready != 0).then(|| self.finish(ready.trailing_zeros() as u8))
        };
        match (first(ER), first(IR)) {
            (Some(eligible), Some(ineligible)) if is_after(eligible, ineligible) => Some(ineligible),
            (Some(eligible), _) => Some(eligible),
            (None, ineligible) => ineligible,
        }
    }

    /// Whether there are entries and none is eligible: V must jump.
    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        self.sets[ER] == 0 && self.sets[IR] != 0
    }

    /// Brings the sets up to V, which they were last at `old`. If nothing is eligible V jumps to the first start there is.
    #[inline]
    pub(super) fn catch_up(&mut self, old: u64) {
        if self.is_stalled() {
            // The lowest group: nothing blocks it, and ineligible groups are ordered by S too.
            let start = self.groups[self.sets[IR].trailing_zeros() as usize].start;
            if is_after(start, self.now) {
                self.now = start;
            }
        }
        self.make_eligible(old);
    }

    /// V is another, and nothing is in any group.
    #[inline]
    pub(super) fn set_now(&mut self, now: u64) {
        debug_assert_eq!(self.busy(), 0);
        self.now = now;
    }

    /// Where Linux has an aggregate of `group` start that was idle and finished at `finish`: [`Groups::start_from`] but for a
    /// finish too far ahead to be true, which counts as far as it may, or as the finish of the first group that is ready does.
    #[inline]
    pub(super) fn start_after(&self, group: u8, finish: u64) -> u64 {
        let rounded = floor(finish, group);
        let limit = floor(self.now, group).wrapping_add(sigma(group));
        if is_after(finish, self.now) && !is_after(rounded, limit) {
            return finish;
        }
        let ready = self.sets[ER] & !below(group);
        if ready != 0 {
            let first = self.finish(ready.trailing_zeros() as u8);
            if is_after(rounded, first) {
                return if is_after(limit, first) { first } else { limit };
            }
        }
        self.now
    }

    /// The entry whose turn it is: the first of the first slot of the lowest group that is ready and eligible.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        let ready = self.sets[ER];
        (ready != 0).then(|| self.group(ready.trailing_zeros() as u8).slots.first())
    }

    /// Where an entry of `group` that was idle starts that finished at `finish`: there, if that is ahead of V and no further
    /// than a flow of this group comes by itself.
    #[inline]
    pub(super) fn start_from(&self, group: u8, finish: u64) -> u64 {
        let ahead = floor(finish, group).wrapping_sub(floor(self.now, group));
        if is_after(finish, self.now) && ahead <= sigma(group) {
            finish
        } else {
            self.start_now(group)
        }
    }

    /// The start of an entry of `group` that was idle and finished in the past: now, or the finish of the group that would
    /// block it, if that has passed already. Without this *back-shifting* (equation 17) the order of EB would break.
    #[inline]
    pub(super) fn start_now(&self, group: u8) -> u64 {
        let higher = self.sets[ER] & above(group);
        if higher != 0 {
            let finish = self.finish(higher.trailing_zeros() as u8);
            if is_after(self.now, finish) {
                return finish;
            }
        }
        self.now
    }

    /// Puts `entry` into `group`, at `start` or, if that is out of the ring, as near as can be. Returns its start and what
    /// follows it in its slot.
    #[inline]
    pub(super) fn insert(&mut self, index: u8, entry: u32, start: u64) -> (u64, u32) {
        let rounded = floor(start, index);
        let group = self.group_mut(index);
        if group.slots.is_empty() {
            group.slots.open(number(start, index), entry);
            self.enter(index, rounded);
            (start, END)
        } else if is_after(group.start, rounded) {
            self.insert_before(index, entry, start)
        } else if group.start == rounded {
            (start, group.slots.push_first(entry))
        } else {
            self.push(index, entry, start)
        }
    }

    /// The same before the first slot: the group's start moves back.
    #[cold]
    fn insert_before(&mut self, index: u8, entry: u32, start: u64) -> (u64, u32) {
        let group = self.group_mut(index);
        let first = number(group.start, index);
        let room = u64::from(SLOTS - 1 - group.slots.last_after(first)) << shift(index);
        let back = group.start.wrapping_sub(floor(start, index));
        if back > room && room == 0 {
            // No slot is left before the first.
            return (group.start, group.slots.push_first(entry));
        }
        let (start, earliest) = if back <= room {
            (start, floor(start, index))
        } else {
            let earliest = group.start.wrapping_sub(room);
            (earliest, earliest)
        };
        group.slots.open_before(first, number(earliest, index), entry);
        for set in &mut self.sets {
            *set &= !(1 << index);
        }
        self.enter(index, earliest);
        (start, END)
    }

    /// Puts an entry into a slot behind the first.
    #[inline]
    fn push(&mut self, index: u8, entry: u32, mut start: u64) -> (u64, u32) {
        let group = self.group_mut(index);
        let ahead = start.wrapping_sub(group.start) >> shift(index);
        debug_assert!(ahead > 0);
        if ahead > MOST_SLOTS {
            start = group.start.wrapping_add(MOST_SLOTS << shift(index));
        }
        let follows = group.slots.push(number(start, index), entry);
        (start, follows)
    }

    /// `entry`, the first of `group`, which `follows` follows in its slot, goes on to `start`, V having passed. Returns its start
    /// and what follows it then.
    ///
    /// While others are in the slot, the group stays as it is; so nothing that the next choice depends on waits for `start`.
    #[inline]
    pub(super) fn move_first(&mut self, index: u8, entry: u32, follows: u32, start: u64) -> (u64, u32) {
        let group = self.group_mut(index);
        debug_assert_eq!(group.slots.first(), entry);
        if start.wrapping_sub(group.start) >> shift(index) == 0 {
            return (start, follows);
        }
        group.slots.pop_first(follows);
        let moved = self.push(index, entry, start);
        if follows == END {
            self.settle(index);
        }
        moved
    }

    /// The first entry of `group`, which `follows` follows in its slot, leaves.
    #[inline]
    pub(super) fn remove_first(&mut self, index: u8, follows: u32) {
        self.group_mut(index).slots.pop_first(follows);
        if follows == END {
            self.settle(index);
        }
    }

    /// Brings the state of `group` up to date, which was served and whose first slot is empty, and of those that it blocked.
    #[cold]
    #[inline(never)]
    fn settle(&mut self, index: u8) {
        let group = self.group_mut(index);
        let start = group.start;
        let ahead = group.slots.close_first(number(start, index));
        self.sets[ER] &= !(1 << index);
        if ahead < SLOTS {
            self.enter(index, start.wrapping_add(u64::from(ahead) << shift(index)));
        }
        self.unblock(index, start.wrapping_add(2 << shift(index)));
    }

    /// Puts a group into the set where it belongs, with another start.
    #[inline]
    fn enter(&mut self, index: u8, start: u64) {
        self.group_mut(index).start = start;
        let higher = self.sets[ER] & above(index);
        let is_ineligible = is_after(start, self.now);
        let is_blocked =
            higher != 0 && is_after(self.finish(index), self.finish(higher.trailing_zeros() as u8));
        self.sets[usize::from(is_ineligible) | usize::from(is_blocked) << 1] |= 1 << index;
    }

    /// Theorem 6: group `index`, which was served and finished at `old_finish`, now finishes later or not at all. If no ready
    /// group above it finished as early, it alone blocked all that are lower.
    #[inline]
    fn unblock(&mut self, index: u8, old_finish: u64) {
        let higher = self.sets[ER] & above(index);
        if higher != 0 && !is_after(self.finish(higher.trailing_zeros() as u8), old_finish) {
            return;
        }
        self.shift_groups(below(index), EB, ER);
        self.shift_groups(below(index), IB, IR);
    }

    /// V has gone on from `old`: the ineligible groups whose next slot it entered become eligible.
    #[inline]
    pub(super) fn make_eligible(&mut self, old: u64) {
        // Few steps of V reach a group. Left to a branch, the next choice need not wait for this one's packet to be read: the
        // sets are as they were before.
        let entering = entering(old, self.now);
        if entering & (self.sets[IR] | self.sets[IB]) != 0 {
            self.shift_groups(entering, IR, ER);
            self.shift_groups(entering, IB, EB);
        }
    }

    #[inline]
    fn shift_groups(&mut self, mask: u32, from: usize, to: usize) {
        let moving = self.sets[from] & mask;
        self.sets[from] &= !mask;
        self.sets[to] |= moving;
    }

    /// F_i.
    #[inline]
    fn finish(&self, index: u8) -> u64 {
        self.group(index).start.wrapping_add(2 << shift(index))
    }

    /// Nothing is in any group from now on. V stays.
    pub(super) fn clear(&mut self) {
        self.sets = [0; 4];
        for group in &mut self.groups {
            group.slots.clear();
        }
    }

    /// The groups that have entries, as a set of bits.
    pub(super) fn busy(&self) -> u32 {
        self.sets.iter().fold(0, |all, set| all | set)
    }

    /// All entries with their groups and the times of their slots; `follows` tells what follows an entry.
    #[cfg(test)]
    pub(super) fn entries(&self, follows: impl Fn(u32) -> u32) -> Vec<(u32, u8, u64)> {
        let mut entries = Vec::new();
        for index in (0..GROUPS as u8).filter(|&index| self.busy() >> index & 1 != 0) {
            let group = self.group(index);
            let first = number(group.start, index);
            for ahead in 0..u64::from(SLOTS) {
                let slot = first.wrapping_add(ahead);
                if group.slots.is_full(slot) {
                    let next = |&entry: &u32| Some(follows(entry)).filter(|&next| next != END);
                    let chain = core::iter::successors(Some(group.slots.head(first, slot)), next);
                    entries.extend(chain.map(|entry| (entry, index, slot << shift(index))));
                }
            }
        }
        entries
    }

    /// What holds whenever the sets have been brought up to V, in whatever order groups are served: they tell which groups have
    /// entries and are eligible; something can be served; no group is further ahead than theorem 1 says.
    ///
    /// # Panics
    /// If it does not hold.
    #[cfg(any(test, debug_assertions))]
    pub(super) fn check_places(&self) {
        let sets = self.sets;
        assert_eq!(
            sets.iter().map(|set| set.count_ones()).sum::<u32>(),
            self.busy().count_ones(),
            "a group is in one set: {sets:x?}"
        );
        assert!(
            self.busy() == 0 || sets[ER] | sets[IR] != 0,
            "nothing is ready: {sets:x?}"
        );
        assert!(
            sets[ER] != 0 || sets[EB] | sets[IB] == 0,
            "nothing blocks: {sets:x?}"
        );
        for index in 0..GROUPS as u8 {
            let group = self.group(index);
            let is_busy = self.busy() >> index & 1 != 0;
            assert_eq!(
                group.slots.is_empty(),
                !is_busy,
                "group {index} is in a set if it has entries"
            );
            if !is_busy {
                continue;
            }
            assert_eq!(group.start, floor(group.start, index));
            assert_eq!(
                group.slots.first_after(number(group.start, index)),
                0,
                "the first slot is full"
            );
            let is_eligible = (sets[ER] | sets[EB]) >> index & 1 != 0;
            assert_eq!(
                is_eligible,
                self.ahead_of_now(group.start) <= 0,
                "group {index}: eligible {sets:x?}"
            );
            let limit = self.ahead_of_now(floor(self.now, index)) + i128::from(sigma(index));
            assert!(
                self.ahead_of_now(group.start) <= limit,
                "theorem 1, group {index}"
            );
        }
    }

    /// All invariants of QFQ. `slack`: the longest step that V took for a packet (theorem 2: V <= F_i + slack).
    ///
    /// # Panics
    /// If one does not hold.
    #[cfg(any(test, debug_assertions))]
    pub(super) fn check(&self, slack: u64) {
        self.check_places();
        let sets = self.sets;
        let all = || (0..GROUPS as u8).filter(|&index| self.busy() >> index & 1 != 0);
        for index in all() {
            let finish = self.ahead_of_now(self.finish(index));
            let blocks = |other: u8| {
                other > index
                    && self.ahead_of_now(self.group(other).start) <= 0
                    && self.ahead_of_now(self.finish(other)) < finish
            };
            assert_eq!(
                (sets[EB] | sets[IB]) >> index & 1 != 0,
                all().any(blocks),
                "group {index}: blocked {sets:x?}"
            );
            assert!(-finish <= i128::from(slack), "theorem 2, group {index}");
        }
        for set in sets {
            let in_set = all().filter(|index| set >> index & 1 != 0);
            assert!(
                in_set.is_sorted_by_key(|index| self.ahead_of_now(self.finish(index))),
                "a set is ordered by finish times: {sets:x?}"
            );
        }
    }

    /// How far a time is ahead of V, so that the wrap is out of the way.
    #[cfg(any(test, debug_assertions))]
    fn ahead_of_now(&self, time: u64) -> i128 {
        i128::from(time.wrapping_sub(self.now) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_group_is_the_logarithm_of_the_longest_packets_time_rounded_up() {
        assert_eq!(group_of(1), 0);
        assert_eq!(group_of(1 << 22), 0);
        assert_eq!(group_of((1 << 22) + 1), 1);
        assert_eq!(group_of(1 << 23), 1);
        assert_eq!(usize::from(group_of(1 << 47)), GROUPS - 1);
    }

    /// What lies further ahead than the ring reaches, or further back than it has room, goes as near as can be.
    #[test]
    fn an_entry_out_of_the_ring_comes_into_the_last_slot_or_the_first() {
        const GROUP: u8 = 3;
        for origin in [0, 0u64.wrapping_sub(5 << shift(GROUP))] {
            let slot = |number: i64| origin.wrapping_add_signed(number << shift(GROUP));
            let mut groups = Groups::new(origin);
            assert_eq!(groups.insert(GROUP, 0, slot(0)), (slot(0), END));
            let last = slot(62) + 5;
            assert_eq!(
                groups.insert(GROUP, 1, last),
                (last, END),
                "as far ahead as may be"
            );
            assert_eq!(groups.insert(GROUP, 2, slot(63)), (slot(62), 1));
            assert_eq!(groups.insert(GROUP, 3, slot(1000) + 7), (slot(62), 2));
            assert_eq!(
                groups.insert(GROUP, 4, slot(-1)),
                (slot(-1), END),
                "the one slot left"
            );
            assert_eq!(groups.insert(GROUP, 5, slot(-2) + 1), (slot(-1), 4));
            groups.check(0);
            let follows = [END, END, 1, 2, END, 4];
            let mut order = Vec::new();
            while groups.busy() != 0 {
                groups.catch_up(groups.now());
                // Not theorem 1, which holds of what schedulers put in.
                let first = groups.first().expect("V has jumped");
                order.push(first);
                groups.remove_first(GROUP, follows[first as usize]);
            }
            assert_eq!(order, [5, 4, 0, 3, 2, 1]);
            assert_eq!(groups.now(), slot(62));
        }
    }

    proptest! {
        #[test]
        fn the_highest_flipped_bit_tells_who_enters_a_slot(old: u64, step in 0u64..1 << 50) {
            let new = old.wrapping_add(step);
            for group in 0..GROUPS as u8 {
                prop_assert_eq!(
                    entering(old, new) >> group & 1 != 0,
                    number(old, group) != number(new, group)
                );
            }
        }
    }
}
