//! Interleaved ticks: on one time axis each group of flows has its own ticks, and no two groups have the same
//! tick.
//!
//! The group of bit `b` has ticks at the odd multiples of `2^b`, so one tick every `2^(b + 1)`, its *width*.
//! Time `t` is a tick of the group of its lowest set bit and of no other group.
//!
//! ```text
//!   time   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//!   bit 0      |       |       |       |       |       |       |       |
//!   bit 1          |               |               |               |
//!   bit 2                  |                               |
//!   bit 3                                  |
//! ```
//!
//! A set of groups is a word, with bit `b` for the group of bit `b`. The group that ticks first after `v` is
//! found without a search:
//!
//! * If bit `b` of `v` is 0, the next tick sets it and clears the bits below. Among such groups the lowest is
//!   first.
//! * If bit `b` of `v` is 1, a carry must pass it before it is set again. Among such groups too the lowest is
//!   first.
//!
//! So there are two candidates, each the lowest bit of a word. The order among ticks that are any number of
//! widths later is the same, because the width grows with the bit.

/// Returns the distance between two ticks of the group of `bit`.
#[inline]
pub(super) const fn width(bit: u32) -> u64 {
    2 << bit
}

/// Returns the last tick of the group of `bit` at or before `v`.
#[inline]
pub(super) const fn last(v: u64, bit: u32) -> u64 {
    let half = 1 << bit;
    (v.wrapping_sub(half) & !(width(bit) - 1)).wrapping_add(half)
}

/// Returns the first tick of the group of `bit` at or after `v`.
#[inline]
pub(super) const fn first(v: u64, bit: u32) -> u64 {
    last(v.wrapping_sub(1), bit).wrapping_add(width(bit))
}

/// Returns the lowest set bit of a word, or 0 for 0.
#[inline]
const fn lowest(word: u64) -> u64 {
    word & word.wrapping_neg()
}

/// A tick ahead of `v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// The distance from `v`, or `u64::MAX` if there is no tick.
    pub(super) distance: u64,
    /// The group's bit, or 64 if there is no tick.
    pub(super) bit: u32,
}

/// Returns the tick of the group in the set `groups` that comes first: the first tick after `v`, or `widths`
/// ticks later.
#[inline]
pub(super) const fn soonest(groups: u64, v: u64, widths: u64) -> Ahead {
    let clear = lowest(groups & !v);
    let set = lowest(groups & v);
    // Bits below `clear` are cleared, and `clear` is set. For the empty set `clear` and the mask are 0.
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

    /// Ticks of a group are the times with the remainder `2^bit` when divided by its width.
    fn is_tick(time: u64, bit: u32) -> bool {
        time % width(bit) == 1 << bit
    }

    proptest! {
        /// No two groups tick at once. `last` and `first` return ticks, and no tick is nearer.
        #[test]
        fn ticks_are_interleaved(near in 0u64..1 << 12, before_wrap in any::<bool>(), bit in 0u32..8) {
            let v = if before_wrap { near.wrapping_sub(1 << 11) } else { near };
            let (before, after) = (last(v, bit), first(v, bit));
            prop_assert!(is_tick(before, bit) && is_tick(after, bit));
            prop_assert!(v.wrapping_sub(before) < width(bit) && after.wrapping_sub(v) < width(bit));
            prop_assert_eq!(before.trailing_zeros(), bit);
        }

        /// Compares with a walk along the time axis.
        #[test]
        fn the_soonest_is_found(
            groups in 0u64..1 << 8,
            near in any::<u64>(),
            at_wrap in any::<bool>(),
            widths in 0u64..3,
        ) {
            let v = if at_wrap { (near % 2000).wrapping_sub(1000) } else { near };
            let walked = (0..8u32)
                .filter(|bit| groups >> bit & 1 == 1)
                .map(|bit| {
                    let next = (1..).find(|step| is_tick(v.wrapping_add(*step), bit)).unwrap();
                    (next + widths * width(bit), bit)
                })
                .min();
            let none = Ahead { distance: u64::MAX, bit: 64 };
            let expected = walked.map_or(none, |(distance, bit)| Ahead { distance, bit });
            prop_assert_eq!(soonest(groups, v, widths), expected);
        }
    }
}
