//! Exact numbers of the fluid system.
//!
//! Virtual time is a sum of quotients by ever other sums of weights, so that its denominator grows for as long as
//! some flow is busy: to thousands of digits after thousands of packets. Reducing such a fraction costs a greatest
//! common divisor of two numbers of that size, and nearly always finds next to nothing. A [`Fraction`] is therefore
//! left as it is, shares its denominator with its neighbours, and is reduced when somebody asks for an [`Exact`].

use std::cmp::Ordering;
use std::sync::Arc;

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::Ratio;
use num_traits::ToPrimitive;

/// An exact number in lowest terms.
pub type Exact = Ratio<BigInt>;

/// An exact number, not in lowest terms: cheap to make, to compare and to share.
#[derive(Clone, Debug)]
pub struct Fraction {
    numerator: BigInt,
    /// Above 0.
    denominator: Arc<BigInt>,
}

impl Fraction {
    /// `numerator / denominator`, the latter above 0.
    pub(crate) fn new(numerator: BigInt, denominator: Arc<BigInt>) -> Fraction {
        debug_assert!(*denominator > BigInt::ZERO);
        Fraction {
            numerator,
            denominator,
        }
    }

    /// A whole number.
    pub fn whole(number: impl Into<BigInt>) -> Fraction {
        Fraction::new(number.into(), Arc::new(BigInt::from(1)))
    }

    /// The largest whole number not above it.
    pub fn floor(&self) -> BigInt {
        self.numerator.div_floor(&self.denominator)
    }

    /// Bits of the denominator, which is not in lowest terms.
    pub fn bits(&self) -> u64 {
        self.denominator.bits()
    }

    /// In lowest terms. Costs a greatest common divisor.
    pub fn reduced(&self) -> Exact {
        Exact::new(self.numerator.clone(), BigInt::clone(&self.denominator))
    }

    /// About as much.
    pub fn to_f64(&self) -> f64 {
        // Numbers beyond the range of a float are brought back into it first, by their leading 1000 bits.
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

    /// `number - self`.
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

/// The largest of many fractions, most of which are put aside by their whole parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Largest {
    best: Option<(BigInt, Fraction)>,
}

impl Largest {
    /// Takes one more into account.
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

    /// The largest, if there was one.
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
        /// Against the library's fractions, which are always in lowest terms.
        #[test]
        fn arithmetic_is_that_of_reduced_fractions(a in parts(), b in parts(), k in 1u64..50) {
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
    fn numbers_beyond_a_float_are_shown_all_the_same() {
        let huge: BigInt = BigInt::from(3) << 5000u32;
        let fraction = Fraction::new(huge.clone() * 7, Arc::new(huge * 2));
        assert_eq!(fraction.to_f64(), 3.5);
    }
}
