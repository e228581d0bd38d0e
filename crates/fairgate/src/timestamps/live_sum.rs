//! The sum of the weights of the flows that count, which is what virtual time's slope is the inverse of, as far as `qfq.rs` lets it.
//!
//! A flow that becomes busy counts at once. One that falls idle has been served ahead of virtual time and goes on counting until
//! virtual time passes its finish: else those that stay would be promised more than there is. It is not looked for then. Its
//! weight lies in a bucket for the slot in which it is due, and a bucket is emptied when virtual time enters that slot;
//! a flow that comes back before takes its weight out again. So no flow is touched but the one at hand, and a bucket is emptied
//! at most once for each flow that fell idle.
//!
//! The inverse is worked out when it is wanted and the sum is not that of the last time.

use crate::timestamps::ONE;
use crate::timestamps::inverse;

use super::groups::{GROUPS, MIN_SHIFT, entering, floor, is_after};

/// Binary places of the inverse beyond those of virtual time.
pub(super) const PLACES: u32 = 16;

/// Above this sum weights leave at once. Busy flows alone don't reach it; only shares changed after each packet could.
const MOST: u32 = 1 << 31;

/// The sum, and what is to leave it.
#[derive(Debug)]
pub(super) struct LiveSum {
    sum: u32,
    /// The sum that `inverse` is the inverse of.
    inverted: u32,
    inverse: u64,
    /// Groups with something in their buckets; some may be empty again.
    waiting: u32,
    /// Of each group, by the number of the slot modulo 4: it is at most three after virtual time's.
    leaving: [[u32; 4]; GROUPS],
}

/// The bucket of a flow that finished at `finish`: it is emptied in the slot after.
#[inline]
fn bucket(group: u8, finish: u64) -> usize {
    ((finish >> (MIN_SHIFT + u32::from(group))).wrapping_add(1) % 4) as usize
}

/// When the bucket of a flow that finished at `finish` is emptied.
#[inline]
fn due(group: u8, finish: u64) -> u64 {
    floor(finish, group).wrapping_add(1 << (MIN_SHIFT + u32::from(group)))
}

/// Virtual time that a byte takes where weights sum up to `sum`, with [`PLACES`] more binary places; rounded down.
pub(super) fn inverse_of(sum: u32) -> u64 {
    inverse::inverse(sum) >> (inverse::PLACES - ONE.trailing_zeros() - PLACES)
}

impl LiveSum {
    pub(super) const fn new() -> LiveSum {
        LiveSum {
            sum: 0,
            inverted: 0,
            inverse: 0,
            waiting: 0,
            leaving: [[0; 4]; GROUPS],
        }
    }

    /// The sum.
    pub(super) fn sum(&self) -> u32 {
        self.sum
    }

    /// Virtual time that a byte takes, with [`PLACES`] more binary places; rounded down, so that V never runs ahead of the flows.
    #[inline]
    pub(super) fn inverse(&mut self) -> u64 {
        if self.inverted != self.sum {
            self.invert();
        }
        self.inverse
    }

    #[cold]
    #[inline(never)]
    fn invert(&mut self) {
        self.inverse = inverse_of(self.sum);
        self.inverted = self.sum;
    }

    /// A weight counts from now on.
    #[inline]
    pub(super) fn add(&mut self, weight: u32) {
        self.sum += weight;
    }

    /// A weight doesn't count any more.
    #[inline]
    pub(super) fn subtract(&mut self, weight: u32) {
        self.sum -= weight;
    }

    /// A flow of `group` that finished at `finish` fell idle at `now`. Whether it goes on counting.
    #[inline]
    pub(super) fn leave(&mut self, weight: u32, group: u8, finish: u64, now: u64) -> bool {
        if !is_after(finish, now) || self.sum > MOST {
            self.subtract(weight);
            return false;
        }
        self.leaving[usize::from(group)][bucket(group, finish)] += weight;
        self.waiting |= 1 << group;
        true
    }

    /// A flow that went on counting when it fell idle, less than 2^63 ago, is busy again.
    #[inline]
    pub(super) fn come_back(&mut self, weight: u32, group: u8, finish: u64, now: u64) {
        if is_after(due(group, finish), now) {
            self.leaving[usize::from(group)][bucket(group, finish)] -= weight;
        } else {
            self.add(weight);
        }
    }

    /// Virtual time has gone on from `old` to `now`.
    #[inline]
    pub(super) fn move_on(&mut self, old: u64, now: u64) {
        let due = entering(old, now) & self.waiting;
        if due != 0 {
            self.empty(due, old, now);
        }
    }

    #[inline(never)]
    fn empty(&mut self, mut due: u32, old: u64, now: u64) {
        while due != 0 {
            let group = due.trailing_zeros() as u8;
            due &= due - 1;
            let shift = MIN_SHIFT + u32::from(group);
            let passed = floor(now, group).wrapping_sub(floor(old, group)) >> shift;
            let buckets = &mut self.leaving[usize::from(group)];
            for number in 1..=passed.min(4) {
                let place = (old >> shift).wrapping_add(number) % 4;
                self.sum -= core::mem::take(&mut buckets[place as usize]);
            }
            if *buckets == [0; 4] {
                self.waiting &= !(1 << group);
            }
        }
    }

    /// All flows are idle and none counts.
    pub(super) fn clear(&mut self) {
        self.sum = 0;
        self.waiting = 0;
        self.leaving = [[0; 4]; GROUPS];
    }

    /// What is still to leave.
    #[cfg(test)]
    pub(super) fn leaving(&self) -> u32 {
        self.leaving.iter().flatten().sum()
    }
}
