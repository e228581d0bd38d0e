//! Interleaved ticks: one timeline on which every group of flows has its own, and no two groups have the same.
//!
//! The group of bit `b` ticks at the odd multiples of `2^b`, so every `2^(b + 1)`, its *width*. Time `t` is a tick of the
//! group of its lowest set bit and of no other.
//!
//! ```text
//!   time   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//!   bit 0      |       |       |       |       |       |       |       |
//!   bit 1          |               |               |               |
//!   bit 2                  |                               |
//!   bit 3                                  |
//! ```
//!
//! A set of groups is a word, bit `b` for the group of bit `b`. Which of them ticks first after `v` needs no search:
//!
//! * where bit `b` of `v` is 0, the next tick sets it and clears what is below; among such groups the lowest is first;
//! * where it is 1, a carry has to run past it before it is set again; among such groups too the lowest is first.
//!
//! So there are two candidates, each the lowest bit of a word. The order among ticks that are any number of widths later is the
//! same, for the width grows with the bit.

/// The distance between two ticks of the group of `bit`.
#[inline]
pub(super) const fn width(bit: u32) -> u64 {
    2 << bit
}

/// The last tick of the group of `bit` at or before `v`.
#[inline]
pub(super) const fn last(v: u64, bit: u32) -> u64 {
    let half = 1 << bit;
    (v.wrapping_sub(half) & !(width(bit) - 1)).wrapping_add(half)
}

/// The first tick of the group of `bit` at or after `v`.
#[inline]
pub(super) const fn first(v: u64, bit: u32) -> u64 {
    last(v.wrapping_sub(1), bit).wrapping_add(width(bit))
}

/// The lowest bit of a word alone; 0 of 0.
#[inline]
const fn lowest(word: u64) -> u64 {
    word & word.wrapping_neg()
}

/// A tick ahead of `v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// How far; `u64::MAX` if there is none.
    pub(super) distance: u64,
    /// Of which group; 64 if there is none.
    pub(super) bit: u32,
}

/// The group in the set `groups` whose tick comes first: the first tick after `v`, or `widths` ticks later.
#[inline]
pub(super) const fn soonest(groups: u64, v: u64, widths: u64) -> Ahead {
    let clear = lowest(groups & !v);
    let set = lowest(groups & v);
    // Bits below `clear` are cleared, itself is set. For the empty set `clear` is 0, and so is the mask.
    let without_carry = Ahead {
        distance: if clear == 0 {
            u64::MAX
        } else {
            ((v | clear) & !(clear - 1)).wrapping_sub(v) + widths * 2 * clear
        },
        bit: clear.trailing_zeros(),
    };
    let with_carry = Ahead {
        distance: if set == 0 {
            u64::MAX
        } else {
            (v | (2 * set - 1)).wrapping_add(1 + set).wrapping_sub(v) + widths * 2 * set
        },
        bit: set.trailing_zeros(),
    };
    if without_carry.distance <= with_carry.distance {
        without_carry
    } else {
        with_carry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ticks of a group are the times that leave `2^bit` when divided by its width.
    fn is_tick(time: u64, bit: u32) -> bool {
        time % width(bit) == 1 << bit
    }

    proptest! {
        /// No two groups tick at once; `last` and `first` are ticks, and none is nearer.
        #[test]
        fn ticks_are_interleaved(near in 0u64..1 << 12, before_wrap in any::<bool>(), bit in 0u32..8) {
            let v = if before_wrap { near.wrapping_sub(1 << 11) } else { near };
            let (before, after) = (last(v, bit), first(v, bit));
            prop_assert!(is_tick(before, bit) && is_tick(after, bit));
            prop_assert!(v.wrapping_sub(before) < width(bit) && after.wrapping_sub(v) < width(bit));
            prop_assert_eq!(before.trailing_zeros(), bit);
        }

        /// Against a walk along the timeline.
        #[test]
        fn the_soonest_is_found(groups in 0u64..1 << 8, near in any::<u64>(), at_wrap in any::<bool>(), widths in 0u64..3) {
            let v = if at_wrap { (near % 2000).wrapping_sub(1000) } else { near };
            let walked = (0..8u32)
                .filter(|bit| groups >> bit & 1 == 1)
                .map(|bit| {
                    let next = (1..).find(|step| is_tick(v.wrapping_add(*step), bit)).unwrap();
                    (next + widths * width(bit), bit)
                })
                .min();
            let expected = walked.map_or(Ahead { distance: u64::MAX, bit: 64 }, |(distance, bit)| Ahead { distance, bit });
            prop_assert_eq!(soonest(groups, v, widths), expected);
        }
    }
}
