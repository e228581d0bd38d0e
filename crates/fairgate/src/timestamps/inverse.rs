//! Inverses in fixed point, without a division: for virtual time that advances by bytes over the sum of weights, where
//! this sum changes with every flow that comes or goes.
//!
//! A table gives 9 bits of the inverse of `x`, `1/2 <= x < 1`; each of three steps of Newton's, `r <- r (2 - x r)`, doubles
//! them. A step never ends above the true inverse (it falls short by `x` times the square of the error), and all is rounded
//! downwards, so the result falls short too, by less than 2 in its last place: one correction makes it exact.

/// Binary places of an inverse.
pub(crate) const PLACES: u32 = 62;

/// Inverses of the 256 parts of `1/2 <= x < 1`, in the middle of each, with 15 binary places.
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

/// `2^62 / n`, rounded down.
#[inline]
pub(crate) fn inverse(n: u32) -> u64 {
    debug_assert!(n > 0);
    let shift = n.leading_zeros();
    // x has 32 places; r has 15, then 31, 63 and 126.
    let x = u64::from(n) << shift;
    let r = u64::from(SEEDS[(x >> 23) as usize & 0xff]);
    let r = (r * ((1 << 48) - x * r)) >> 31;
    let r = ((u128::from(r) * u128::from((x * r).wrapping_neg())) >> 31) as u64;
    // The complement of x r rounded down is 2 less x r rounded up.
    let x_r = ((u128::from(x) * u128::from(r)) >> 32) as u64;
    let r = u128::from(r) * u128::from(!x_r);
    let inverse = (r >> (96 - shift)) as u64;
    let missing = (1 << PLACES) - inverse * u64::from(n);
    inverse + u64::from(missing >= n.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(n: u32) {
        assert_eq!(inverse(n), (1 << PLACES) / u64::from(n), "of {n}");
    }

    #[test]
    fn small_and_large_numbers_and_those_beside_powers_of_two_have_inverses() {
        (1..100_000).for_each(check);
        (u32::MAX - 1000..=u32::MAX).for_each(check);
        for power in 1..32 {
            ((1u32 << power) - 1..=(1 << power) + 1).for_each(check);
        }
    }

    proptest! {
        #[test]
        fn every_number_has_an_inverse(n in 1u32..) {
            check(n);
        }
    }
}
