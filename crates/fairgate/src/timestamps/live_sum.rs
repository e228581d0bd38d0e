//! The sum of the weights of the flows that count. The speed of virtual time is its inverse, except for the
//! limit in `qfq.rs`.
//!
//! A flow that becomes busy counts at once. A flow that becomes idle was served ahead of virtual time. It
//! continues to count until virtual time passes its finish. Otherwise the remaining flows would be promised
//! more than the link has. The flow is not searched for then: its weight is in a bucket for the slot in which
//! it is due, and a bucket is emptied when virtual time enters this slot. A flow that becomes busy before
//! takes its weight out of the bucket. So no other flow is read, and a bucket is emptied at most once for
//! each flow that became idle.
//!
//! The inverse is computed when it is needed and the sum has changed.

use alloc::boxed::Box;

use crate::structures::boxed;
use crate::timestamps::ONE;
use crate::timestamps::inverse;

use super::groups::{GROUPS, MIN_SHIFT, entering, floor, is_after};

/// The number of fraction bits of the inverse in addition to those of virtual time.
pub(super) const FRACTION_BITS: u32 = 16;

/// Above this sum, weights leave at once. Busy flows alone do not reach it. Only changes of shares after each
/// packet could.
const MOST: u32 = 1 << 31;

/// The sum, and the weights that will leave it.
#[derive(Debug)]
pub(super) struct LiveSum {
    sum: u32,
    /// The sum that `inverse` is the inverse of.
    inverted: u32,
    inverse: u64,
    /// The groups with weights in their buckets. Some may be empty again.
    waiting: u32,
    /// The buckets of each group, indexed by the number of the slot modulo 4. A slot is at most three after
    /// the slot of virtual time.
    leaving: Box<[[u32; 4]; GROUPS]>,
}

/// Returns the bucket of a flow that finished at `finish`. It is emptied in the next slot.
#[inline]
fn bucket(group: u8, finish: u64) -> usize {
    ((finish >> (MIN_SHIFT + u32::from(group))).wrapping_add(1) % 4) as usize
}

/// Returns when the bucket of a flow that finished at `finish` is emptied.
#[inline]
fn due(group: u8, finish: u64) -> u64 {
    floor(finish, group).wrapping_add(1 << (MIN_SHIFT + u32::from(group)))
}

/// Returns the virtual time per byte for the sum of weights `sum`, with [`FRACTION_BITS`] more fraction bits,
/// rounded down.
pub(super) fn inverse_of(sum: u32) -> u64 {
    inverse::inverse(sum) >> (inverse::FRACTION_BITS - ONE.trailing_zeros() - FRACTION_BITS)
}

impl LiveSum {
    pub(super) fn new() -> LiveSum {
        LiveSum {
            sum: 0,
            inverted: 0,
            inverse: 0,
            waiting: 0,
            leaving: boxed(core::iter::repeat_n([0; 4], GROUPS)),
        }
    }

    /// Returns the sum.
    pub(super) fn sum(&self) -> u32 {
        self.sum
    }

    /// Returns the virtual time per byte, with [`FRACTION_BITS`] more fraction bits. It is rounded down, so V
    /// never runs ahead of the flows.
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

    /// Adds a weight.
    #[inline]
    pub(super) fn add(&mut self, weight: u32) {
        self.sum += weight;
    }

    /// Subtracts a weight.
    #[inline]
    pub(super) fn subtract(&mut self, weight: u32) {
        self.sum -= weight;
    }

    /// Reports that a flow of `group` that finished at `finish` became idle at `now`. Returns whether it
    /// continues to count.
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

    /// Reports that a flow is busy again that continued to count when it became idle, less than 2^63 ago.
    #[inline]
    pub(super) fn come_back(&mut self, weight: u32, group: u8, finish: u64, now: u64) {
        if is_after(due(group, finish), now) {
            self.leaving[usize::from(group)][bucket(group, finish)] -= weight;
        } else {
            self.add(weight);
        }
    }

    /// Reports that virtual time has advanced from `old` to `now`.
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
                let bucket = (old >> shift).wrapping_add(number) % 4;
                self.sum -= core::mem::take(&mut buckets[bucket as usize]);
            }
            if *buckets == [0; 4] {
                self.waiting &= !(1 << group);
            }
        }
    }

    /// Removes all weights, because all flows are idle.
    pub(super) fn clear(&mut self) {
        self.sum = 0;
        self.waiting = 0;
        *self.leaving = [[0; 4]; GROUPS];
    }

    /// Returns the sum of the weights in all buckets.
    #[cfg(test)]
    pub(super) fn leaving(&self) -> u32 {
        self.leaving.iter().flatten().sum()
    }
}
