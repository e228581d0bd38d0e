//! Exact numbers of the fluid system.
//!
//! Virtual time is a sum of quotients, each divided by another sum of weights. The denominator therefore
//! grows while some flow is busy: it has thousands of digits after thousands of packets. Reducing such a
//! fraction needs the greatest common divisor of two numbers of that size, and almost never makes the
//! fraction much shorter. A [`Fraction`] is therefore not reduced, and shares its denominator with its
//! neighbours. It is reduced only when it is converted to an [`Exact`].

use std::cmp::Ordering;
use std::sync::Arc;

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::Ratio;
use num_traits::ToPrimitive;

/// An exact number in lowest terms.
pub type Exact = Ratio<BigInt>;

/// An exact number, not in lowest terms. It is cheap to create, to compare and to share.
#[derive(Clone, Debug)]
pub struct Fraction {
    numerator: BigInt,
    /// Above 0.
    denominator: Arc<BigInt>,
}

impl Fraction {
    /// Creates `numerator / denominator`. The denominator must be above 0.
    pub(crate) fn new(numerator: BigInt, denominator: Arc<BigInt>) -> Fraction {
        debug_assert!(*denominator > BigInt::ZERO);
        Fraction {
            numerator,
            denominator,
        }
    }

    /// Creates a whole number.
    pub fn whole(number: impl Into<BigInt>) -> Fraction {
        Fraction::new(number.into(), Arc::new(BigInt::from(1)))
    }

    /// Returns the largest whole number that is not above this number.
    pub fn floor(&self) -> BigInt {
        self.numerator.div_floor(&self.denominator)
    }

    /// Returns the number of bits of the denominator. The fraction is not in lowest terms.
    pub fn bits(&self) -> u64 {
        self.denominator.bits()
    }

    /// Returns the number in lowest terms. This computes a greatest common divisor.
    pub fn reduced(&self) -> Exact {
        Exact::new(self.numerator.clone(), BigInt::clone(&self.denominator))
    }

    /// Returns the number rounded to a float.
    pub fn to_f64(&self) -> f64 {
        // Numbers beyond the range of a float are first shifted into it: their leading 1000 bits remain.
        let excess = self
            .numerator
            .bits()
            .max(self.denominator.bits())
            .saturating_sub(1000);
        let of = |number: &BigInt| (number >> excess).to_f64().unwrap_or(f64::NAN);
        of(&self.numerator) / of(&self.denominator)
    }

    pub(crate) fn minus(&self, other: &Fraction) -> Fraction {
        if Arc::ptr_eq(&self.denominator, &other.denominator) {
            return Fraction::new(&self.numerator - &other.numerator, self.denominator.clone());
        }
        Fraction::new(
            &self.numerator * &*other.denominator - &other.numerator * &*self.denominator,
            Arc::new(&*self.denominator * &*other.denominator),
        )
    }

    /// Returns `number - self`.
    pub(crate) fn minus_from(&self, number: u64) -> Fraction {
        Fraction::new(
            &*self.denominator * number - &self.numerator,
            self.denominator.clone(),
        )
    }

    pub(crate) fn plus_whole(&self, number: impl Into<BigInt>) -> Fraction {
        let more = number.into() * &*self.denominator;
        Fraction::new(&self.numerator + more, self.denominator.clone())
    }

    pub(crate) fn times(&self, factor: u64) -> Fraction {
        Fraction::new(&self.numerator * factor, self.denominator.clone())
    }

    pub(crate) fn over(&self, divisor: u64) -> Fraction {
        Fraction::new(self.numerator.clone(), Arc::new(&*self.denominator * divisor))
    }

    pub(crate) fn plus(&self, other: &Fraction) -> Fraction {
        if Arc::ptr_eq(&self.denominator, &other.denominator) {
            return Fraction::new(&self.numerator + &other.numerator, self.denominator.clone());
        }
        Fraction::new(
            &self.numerator * &*other.denominator + &other.numerator * &*self.denominator,
            Arc::new(&*self.denominator * &*other.denominator),
        )
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        if Arc::ptr_eq(&self.denominator, &other.denominator) {
            return self.numerator.cmp(&other.numerator);
        }
        (&self.numerator * &*other.denominator).cmp(&(&other.numerator * &*self.denominator))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Fraction) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}

impl From<Fraction> for Exact {
    fn from(fraction: Fraction) -> Exact {
        fraction.reduced()
    }
}

/// Finds the largest of many fractions. Most of them are excluded by their whole parts alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Largest {
    best: Option<(BigInt, Fraction)>,
}

impl Largest {
    /// Considers one more fraction.
    pub(crate) fn offer(&mut self, candidate: Fraction) {
        let floor = candidate.floor();
        let larger = match &self.best {
            None => true,
            Some((best_floor, best)) => match floor.cmp(best_floor) {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => candidate > *best,
            },
        };
        if larger {
            self.best = Some((floor, candidate));
        }
    }

    /// Returns the largest fraction, or `None` if none was offered.
    pub(crate) fn into_inner(self) -> Option<Fraction> {
        self.best.map(|(_, fraction)| fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fraction((numerator, denominator): (i64, u32)) -> Fraction {
        Fraction::new(numerator.into(), Arc::new(denominator.into()))
    }

    fn parts() -> impl Strategy<Value = (i64, u32)> {
        (-1000i64..1000, 1u32..40)
    }

    proptest! {
        /// Compares with the fractions of `num_rational`, which are always in lowest terms.
        #[test]
        fn arithmetic_equals_that_of_reduced_fractions(a in parts(), b in parts(), k in 1u64..50) {
            let (x, y) = (fraction(a), fraction(b));
            let (exact_x, exact_y) = (x.reduced(), y.reduced());
            let whole = |n: u64| Exact::from_integer(n.into());
            prop_assert_eq!(x.cmp(&y), exact_x.cmp(&exact_y));
            prop_assert_eq!(x.minus(&y).reduced(), &exact_x - &exact_y);
            prop_assert_eq!(x.plus(&y).reduced(), &exact_x + &exact_y);
            prop_assert_eq!(x.plus_whole(k).reduced(), &exact_x + whole(k));
            prop_assert_eq!(x.minus_from(k).reduced(), whole(k) - &exact_x);
            prop_assert_eq!(x.times(k).reduced(), &exact_x * whole(k));
            prop_assert_eq!(x.over(k).reduced(), &exact_x / whole(k));
            prop_assert_eq!(Exact::from_integer(x.floor()), exact_x.floor());
        }

        #[test]
        fn the_largest_is_found(all in prop::collection::vec(parts(), 0..20)) {
            let mut largest = Largest::default();
            for &one in &all {
                largest.offer(fraction(one));
            }
            let expected = all.into_iter().map(|one| fraction(one).reduced()).max();
            prop_assert_eq!(largest.into_inner().map(|found| found.reduced()), expected);
        }
    }

    #[test]
    fn numbers_beyond_the_range_of_a_float_convert() {
        let huge: BigInt = BigInt::from(3) << 5000u32;
        let fraction = Fraction::new(huge.clone() * 7, Arc::new(huge * 2));
        assert_eq!(fraction.to_f64(), 3.5);
    }
}
