//! Repeatable random numbers.

use std::hash::Hasher;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use siphasher::sip::SipHasher13;

/// A stream of random numbers. Equal seeds and names give equal streams.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// Creates the stream of the user `name`.
    pub fn new(seed: u64, name: &str) -> Dice {
        let mut hasher = SipHasher13::new_with_keys(seed, 0);
        hasher.write(name.as_bytes());
        Dice(Xoshiro256PlusPlus::seed_from_u64(hasher.finish()))
    }

    /// Returns a number uniform in (0, 1], in steps of 2^-53. It is never 0, so its logarithm is finite.
    pub fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a whole number uniform in 0 to `count - 1`. `count` must be above 0.
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(count)) >> 64) as u64
    }

    /// Returns an exponentially distributed number.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(self.unit()) * mean
    }

    /// Returns a Poisson distributed number. It takes one draw more than the result, so the mean should be
    /// small.
    pub fn poisson(&mut self, mean: f64) -> u64 {
        let enough = libm::exp(-mean);
        let mut count = 0;
        let mut product = self.unit();
        while product > enough {
            product *= self.unit();
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_as_requested() {
        let mut dice = Dice::new(3, "dice");
        let draws = 100_000;
        let mean = |sum: f64| sum / f64::from(draws);
        assert!((mean((0..draws).map(|_| dice.exponential(2.0)).sum()) - 2.0).abs() < 0.03);
        assert!((mean((0..draws).map(|_| dice.poisson(0.6) as f64).sum()) - 0.6).abs() < 0.015);
    }

    #[test]
    fn below_returns_every_number_about_equally_often() {
        let mut dice = Dice::new(1, "below");
        let mut met = [0; 7];
        (0..7000).for_each(|_| met[dice.below(7) as usize] += 1);
        assert!(met.iter().all(|&times| (800..1200).contains(&times)), "{met:?}");
    }

    #[test]
    fn streams_differ_by_seed_and_name() {
        let first = |seed, name| Dice::new(seed, name).unit();
        assert_eq!(first(1, "a"), first(1, "a"));
        assert_ne!(first(1, "a"), first(2, "a"));
        assert_ne!(first(1, "a"), first(1, "b"));
    }
}
