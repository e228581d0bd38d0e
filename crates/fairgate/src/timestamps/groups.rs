//! The data structure of Quick Fair Queueing: groups in four sets, and a ring of slots in each group.
//! Checconi, Rizzo & Valente, "QFQ: Efficient Packet Scheduling With Tight Guarantees", IEEE/ACM Transactions
//! on Networking 2013, section IV.
//!
//! An *entry* (a flow; in QFQ+ an aggregate of flows) belongs to group i if its longest packet takes at most
//! sigma_i = 2^i of virtual time. Its start time, rounded down to a multiple of sigma_i, is its slot. A
//! group's start S_i is the first full slot. Its finish is F_i = S_i + 2 sigma_i.
//!
//! ```text
//!              ready          blocked: an eligible group of a higher index has a lower F
//!   eligible   ER     <----   EB         S_i <= V
//!              ^              ^          the lowest bit of ER has the lowest F and is served
//!   ineligible IR     <----   IB         S_i >  V
//! ```
//!
//! In each set the order of groups by F is the order by index. So an operation on several groups always
//! affects all groups above or below an index, and is an AND and an OR. When V advances, the highest bit that
//! changes tells which groups reached a new slot. All ineligible groups among them become eligible
//! ([`Groups::make_eligible`]). When the group that is served gets a later finish, it unblocks either all
//! lower groups or none ([`Groups::unblock`], theorem 6).
//!
//! Invariants, checked by [`Groups::check`]: every set is ordered by F. Each group is in the set that matches
//! its state. ER is not empty if any group has entries and V has jumped. S_i <= V rounded + sigma_i (theorem
//! 1). All slots fit into the ring (theorem 3).
//!
//! The slots fit into the ring if `L / (sum of weights * sigma_i)` is small enough, where L is the longest
//! packet. If it is above [`MOST_SLOTS`], because packets of one flow are that much longer than packets of
//! another, an entry is put into the last allowed slot, which is too early. Linux and FreeBSD do the same.
//!
//! Deviation from the paper: in a slot the entry that came last goes first, as in Linux and FreeBSD. The
//! guarantees do not depend on this order. First in, first out would read the cache line of one more flow.

use alloc::boxed::Box;

use crate::structures::boxed;
use crate::timestamps::slots::{END, SLOTS, Slots};

/// The slots of group 0 have 2^22 units of virtual time: a packet of 256 bytes at the largest weight.
pub(super) const MIN_SHIFT: u32 = 22;

/// The number of groups. The last has slots of 2^47 units: the longest packet at weight 1.
pub(super) const GROUPS: usize = 26;

/// The largest distance between an entry's slot and the first slot of its group. The other slots are room for
/// the group's start to move back.
const MOST_SLOTS: u64 = SLOTS as u64 - 2;

/// The indices of the sets. Bit 0 is set for ineligible, bit 1 for blocked.
const ER: usize = 0;
const IR: usize = 1;
const EB: usize = 2;
const IB: usize = 3;

/// A group.
#[derive(Debug)]
struct Group {
    /// S_i: the time of the first full slot. Valid only if the group has entries.
    start: u64,
    slots: Slots,
}

/// All groups, and virtual time.
#[derive(Debug)]
pub(super) struct Groups {
    /// V.
    now: u64,
    sets: [u32; 4],
    groups: Box<[Group; GROUPS]>,
}

/// Returns log2 of sigma_i.
#[inline]
fn shift(group: u8) -> u32 {
    MIN_SHIFT + u32::from(group)
}

/// Returns sigma_i.
#[inline]
fn sigma(group: u8) -> u64 {
    1 << shift(group)
}

/// Returns the start of the slot that contains `time`.
#[inline]
pub(super) fn floor(time: u64, group: u8) -> u64 {
    time & !(sigma(group) - 1)
}

/// Returns the number of the slot that contains `time`.
#[inline]
fn number(time: u64, group: u8) -> u64 {
    time >> shift(group)
}

/// Whether the wrapping time `time` is after `other`.
#[inline]
pub(super) fn is_after(time: u64, other: u64) -> bool {
    time.wrapping_sub(other) as i64 > 0
}

/// Returns the groups with a higher index.
#[inline]
fn above(group: u8) -> u32 {
    (u32::MAX << 1) << group
}

/// Returns the groups with a lower index.
#[inline]
fn below(group: u8) -> u32 {
    !(u32::MAX << group)
}

/// Returns the group for entries whose longest packet takes `span` of virtual time: `ceil(log2(span))`.
#[inline]
pub(super) fn group_of(span: u64) -> u8 {
    let bits = u64::BITS - (span - 1).leading_zeros();
    bits.saturating_sub(MIN_SHIFT) as u8
}

/// Returns the groups that enter a new slot when virtual time advances from `old` to `new`.
#[inline]
pub(super) fn entering(old: u64, new: u64) -> u32 {
    // A bit below is always set, so the case without a changed bit needs no branch. Bits above the groups are
    // cut off.
    let flipped = (old ^ new) >> MIN_SHIFT << 1 | 1;
    (u64::MAX >> flipped.leading_zeros() >> 1) as u32
}

impl Groups {
    /// Returns empty groups at virtual time `origin`.
    pub(super) fn new(origin: u64) -> Groups {
        Groups {
            now: origin,
            sets: [0; 4],
            groups: boxed((0..GROUPS).map(|_| Group {
                start: 0,
                slots: Slots::new(),
            })),
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

    /// Returns virtual time.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Advances virtual time by `step` for a packet sent. [`Groups::make_eligible`] must be called next.
    #[inline]
    pub(super) fn pass(&mut self, step: u64) {
        self.now = self.now.wrapping_add(step);
    }

    /// Returns the least finish of all groups that have entries. It is the finish of the lowest ready group,
    /// eligible or not, because each set is ordered by finish times and a blocked group finishes after the
    /// group that blocks it.
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

    /// Whether there are entries and none is eligible. Then V must jump.
    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        self.sets[ER] == 0 && self.sets[IR] != 0
    }

    /// Updates the sets to V. They were last updated at `old`. If no group is eligible, V jumps to the first
    /// start.
    #[inline]
    pub(super) fn catch_up(&mut self, old: u64) {
        if self.is_stalled() {
            // The lowest group: nothing blocks it, and ineligible groups are also ordered by S.
            let start = self.groups[self.sets[IR].trailing_zeros() as usize].start;
            if is_after(start, self.now) {
                self.now = start;
            }
        }
        self.make_eligible(old);
    }

    /// Sets V. All groups must be empty.
    #[inline]
    pub(super) fn set_now(&mut self, now: u64) {
        debug_assert_eq!(self.busy(), 0);
        self.now = now;
    }

    /// Returns the start that Linux gives to an aggregate of `group` that was idle and finished at `finish`.
    /// It is [`Groups::start_from`], except for a finish that is too far ahead. Such a finish is replaced by
    /// the latest allowed one, or by the finish of the first ready group.
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

    /// Returns the entry to serve: the first in the first slot of the lowest group that is ready and
    /// eligible.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        let ready = self.sets[ER];
        (ready != 0).then(|| self.group(ready.trailing_zeros() as u8).slots.first())
    }

    /// Returns the start of an entry of `group` that was idle and finished at `finish`. It is `finish` if
    /// this is ahead of V, but not further than a flow of this group can be.
    #[inline]
    pub(super) fn start_from(&self, group: u8, finish: u64) -> u64 {
        let ahead = floor(finish, group).wrapping_sub(floor(self.now, group));
        if is_after(finish, self.now) && ahead <= sigma(group) {
            finish
        } else {
            self.start_now(group)
        }
    }

    /// Returns the start of an entry of `group` that was idle and finished in the past. It is V, or the
    /// finish of the group that would block it if V has passed this finish. Without this *back-shifting*
    /// (equation 17) the order of EB would break.
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

    /// Puts `entry` into `group` at `start`, or as near as possible if `start` is outside the ring. Returns
    /// its start, and the entry that follows it in its slot.
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

    /// Inserts an entry before the first slot. The group's start moves back.
    #[cold]
    fn insert_before(&mut self, index: u8, entry: u32, start: u64) -> (u64, u32) {
        let group = self.group_mut(index);
        let first = number(group.start, index);
        let room = u64::from(SLOTS - 1 - group.slots.last_after(first)) << shift(index);
        let back = group.start.wrapping_sub(floor(start, index));
        if back > room && room == 0 {
            // No slot is left before the first one.
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

    /// Puts an entry into a slot after the first.
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

    /// Moves `entry`, the first of `group`, to `start`. `follows` follows it in its slot. V has advanced.
    /// Returns its start, and the entry that follows it then.
    ///
    /// While other entries are in the slot, the group does not change. So the next choice does not have to
    /// wait for `start`.
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

    /// Removes the first entry of `group`. `follows` follows it in its slot.
    #[inline]
    pub(super) fn remove_first(&mut self, index: u8, follows: u32) {
        self.group_mut(index).slots.pop_first(follows);
        if follows == END {
            self.settle(index);
        }
    }

    /// Updates the state of `group`, which was served and whose first slot is empty, and the state of the
    /// groups that it blocked.
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

    /// Puts a group with a new start into the set that matches its state.
    #[inline]
    fn enter(&mut self, index: u8, start: u64) {
        self.group_mut(index).start = start;
        let higher = self.sets[ER] & above(index);
        let is_ineligible = is_after(start, self.now);
        let is_blocked =
            higher != 0 && is_after(self.finish(index), self.finish(higher.trailing_zeros() as u8));
        self.sets[usize::from(is_ineligible) | usize::from(is_blocked) << 1] |= 1 << index;
    }

    /// Applies theorem 6. Group `index` was served and finished at `old_finish`. Now it finishes later or not
    /// at all. If no ready group above it finished as early, it was the only one that blocked the lower
    /// groups.
    #[inline]
    fn unblock(&mut self, index: u8, old_finish: u64) {
        let higher = self.sets[ER] & above(index);
        if higher != 0 && !is_after(self.finish(higher.trailing_zeros() as u8), old_finish) {
            return;
        }
        self.shift_groups(below(index), EB, ER);
        self.shift_groups(below(index), IB, IR);
    }

    /// V has advanced from `old`. The ineligible groups whose next slot it entered become eligible.
    #[inline]
    pub(super) fn make_eligible(&mut self, old: u64) {
        // Few steps of V reach a group. With a branch, the next choice need not wait until this packet's
        // length is read: the sets stay as they were.
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

    /// Returns F_i.
    #[inline]
    fn finish(&self, index: u8) -> u64 {
        self.group(index).start.wrapping_add(2 << shift(index))
    }

    /// Removes all entries. V does not change.
    pub(super) fn clear(&mut self) {
        self.sets = [0; 4];
        for group in self.groups.iter_mut() {
            group.slots.clear();
        }
    }

    /// Returns the groups that have entries, as a set of bits.
    pub(super) fn busy(&self) -> u32 {
        self.sets.iter().fold(0, |all, set| all | set)
    }

    /// Returns all entries with their groups and the times of their slots. `follows` returns the entry that
    /// follows an entry.
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

    /// Checks what holds after the sets were updated to V, in whatever order groups are served: the sets tell
    /// which groups have entries, all groups are eligible that must be, an entry can be served, and no group
    /// is further ahead than theorem 1 allows.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    #[cfg(any(test, debug_assertions))]
    pub(super) fn check_sets(&self) {
        let sets = self.sets;
        assert_eq!(
            sets.iter().map(|set| set.count_ones()).sum::<u32>(),
            self.busy().count_ones(),
            "each group is in one set: {sets:x?}"
        );
        assert!(
            self.busy() == 0 || sets[ER] | sets[IR] != 0,
            "nothing is ready: {sets:x?}"
        );
        assert!(
            sets[ER] != 0 || sets[EB] | sets[IB] == 0,
            "blocked by nothing: {sets:x?}"
        );
        for index in 0..GROUPS as u8 {
            let group = self.group(index);
            let is_busy = self.busy() >> index & 1 != 0;
            assert_eq!(
                group.slots.is_empty(),
                !is_busy,
                "group {index} is in a set only if it has entries"
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
            assert!(
                self.is_eligible(index) || self.ahead_of_now(group.start) > 0,
                "group {index}: not eligible {sets:x?}"
            );
            let limit = self.ahead_of_now(floor(self.now, index)) + i128::from(sigma(index));
            assert!(
                self.ahead_of_now(group.start) <= limit,
                "theorem 1, group {index}"
            );
        }
    }

    /// Checks all invariants of QFQ. `slack` is the longest step of V for a packet (theorem 2: V <= F_i +
    /// slack).
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    #[cfg(any(test, debug_assertions))]
    pub(super) fn check(&self, slack: u64) {
        self.check_sets();
        let sets = self.sets;
        let all = || (0..GROUPS as u8).filter(|&index| self.busy() >> index & 1 != 0);
        for index in all() {
            assert!(
                !self.is_eligible(index) || self.ahead_of_now(self.group(index).start) <= 0,
                "group {index}: eligible early {sets:x?}"
            );
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

    #[cfg(any(test, debug_assertions))]
    fn is_eligible(&self, index: u8) -> bool {
        (self.sets[ER] | self.sets[EB]) >> index & 1 != 0
    }

    /// Returns how far a time is ahead of V, as a number that does not wrap.
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

    /// V moves, an entry comes, and then the sets are updated: as QFQ+ does it, and QFQ does not.
    #[test]
    fn a_group_that_came_after_v_has_moved_may_be_eligible_early() {
        let mut groups = Groups::new(0);
        groups.pass(5 << shift(10));
        let now = groups.now();
        groups.insert(12, 0, now);
        groups.insert(3, 1, now + sigma(3));
        assert!(!groups.is_eligible(3));
        groups.catch_up(0);
        assert_eq!(groups.now(), now);
        assert!(groups.is_eligible(3));
        groups.check_sets();
    }

    /// An entry further ahead or further back than the ring reaches is put as near as possible.
    #[test]
    fn an_entry_outside_the_ring_is_put_into_the_last_or_the_first_slot() {
        const GROUP: u8 = 3;
        for origin in [0, 0u64.wrapping_sub(5 << shift(GROUP))] {
            let slot = |number: i64| origin.wrapping_add_signed(number << shift(GROUP));
            let mut groups = Groups::new(origin);
            assert_eq!(groups.insert(GROUP, 0, slot(0)), (slot(0), END));
            let last = slot(62) + 5;
            assert_eq!(
                groups.insert(GROUP, 1, last),
                (last, END),
                "as far ahead as possible"
            );
            assert_eq!(groups.insert(GROUP, 2, slot(63)), (slot(62), 1));
            assert_eq!(groups.insert(GROUP, 3, slot(1000) + 7), (slot(62), 2));
            assert_eq!(
                groups.insert(GROUP, 4, slot(-1)),
                (slot(-1), END),
                "the only slot left"
            );
            assert_eq!(groups.insert(GROUP, 5, slot(-2) + 1), (slot(-1), 4));
            groups.check(0);
            let follows = [END, END, 1, 2, END, 4];
            let mut order = Vec::new();
            while groups.busy() != 0 {
                groups.catch_up(groups.now());
                // Theorem 1 is not checked. It holds for what schedulers insert.
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
        fn the_highest_changed_bit_gives_the_groups_that_enter_a_slot(old: u64, step in 0u64..1 << 50) {
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
