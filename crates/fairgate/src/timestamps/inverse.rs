//! Fixed-point inverses without a division. Virtual time advances by bytes divided by the sum of weights, and
//! this sum changes whenever a flow becomes busy or idle.
//!
//! A table gives 9 bits of the inverse of `x`, `1/2 <= x < 1`. Each of three steps of Newton's method, `r <-
//! r (2 - x r)`, doubles the number of correct bits. A step never ends above the true inverse (it is too low
//! by `x` times the square of the error), and all results are rounded down. So the final result is too low by
//! less than 2 in its last digit, and one correction makes it exact.

/// The number of fraction bits of an inverse.
pub(crate) const FRACTION_BITS: u32 = 62;

/// The inverses of the 256 parts of `1/2 <= x < 1`, in the middle of each part, with 15 fraction bits.
static SEEDS: [u16; 256] = seeds();

const fn seeds() -> [u16; 256] {
    let mut seeds = [0; 256];
    let mut part = 0;
    while part < 256 {
        // x = (256 + part + 1/2) / 512.
        seeds[part] = ((1 << 25) / (2 * (256 + part) + 1)) as u16;
        part += 1;
    }
    seeds
}

/// Returns `2^62 / n`, rounded down.
#[inline]
pub(crate) fn inverse(n: u32) -> u64 {
    debug_assert!(n > 0);
    let shift = n.leading_zeros();
    // x has 32 fraction bits. r has 15, then 31, 63 and 126.
    let x = u64::from(n) << shift;
    let r = u64::from(SEEDS[(x >> 23) as usize & 0xff]);
    let r = (r * ((1 << 48) - x * r)) >> 31;
    let r = ((u128::from(r) * u128::from((x * r).wrapping_neg())) >> 31) as u64;
    // The complement of x r rounded down is 2 - x r rounded up.
    let x_r = ((u128::from(x) * u128::from(r)) >> 32) as u64;
    let r = u128::from(r) * u128::from(!x_r);
    let inverse = (r >> (96 - shift)) as u64;
    let missing = (1 << FRACTION_BITS) - inverse * u64::from(n);
    inverse + u64::from(missing >= n.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(n: u32) {
        assert_eq!(inverse(n), (1 << FRACTION_BITS) / u64::from(n), "of {n}");
    }

    #[test]
    fn inverses_of_small_and_large_numbers_and_near_powers_of_two_are_exact() {
        (1..100_000).for_each(check);
        (u32::MAX - 1000..=u32::MAX).for_each(check);
        for power in 1..32 {
            ((1u32 << power) - 1..=(1 << power) + 1).for_each(check);
        }
    }

    proptest! {
        #[test]
        fn the_inverse_of_every_number_is_exact(n in 1u32..) {
            check(n);
        }
    }
}
