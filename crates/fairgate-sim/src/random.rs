//! Repeatable random numbers: a separate stream for each user, and the distributions of traffic.
//!
//! A stream is seeded from the scenario's seed and a name, not from a position. If a flow is added in the
//! middle, the random numbers of all other flows stay the same. Logarithms come from `libm` and not from the
//! platform, whose last digit differs between machines.

use std::hash::Hasher;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use siphasher::sip::SipHasher13;

/// Returns a seed for the user `name` of the kind `purpose`. Users and purposes get seeds that do not depend on
/// one another, so that one more flow changes no other flow's random numbers.
pub fn derive_seed(seed: u64, purpose: &str, name: &str) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, 0);
    // The length comes first, so that two different pairs of strings are never hashed as the same bytes.
    hasher.write_usize(purpose.len());
    hasher.write(purpose.as_bytes());
    hasher.write(name.as_bytes());
    hasher.finish()
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: &str, name: &str) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(derive_seed(
            seed, purpose, name,
        )))
    }

    /// Returns a uniform number in (0, 1], in steps of 2^-53. Its logarithm is always finite.
    fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// The distribution of a number of nanoseconds or bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant(u64),
    /// A whole number from `low` to `high`, both included.
    Uniform {
        /// The minimum.
        low: u64,
        /// The maximum.
        high: u64,
    },
    /// Exponential, which is memoryless.
    Exponential {
        /// The mean.
        mean: u64,
    },
    /// Heavy-tailed: P(X > x) = (least / x)^shape, with least = mean (shape - 1) / shape.
    Pareto {
        /// The mean.
        mean: u64,
        /// Must be above 1, because otherwise there is no mean. Up to 2 the variance is infinite.
        shape: f64,
    },
    /// Gaussian, drawn again until the value is between `low` and `high`.
    Normal {
        /// The mean before the cut.
        mean: u64,
        /// The standard deviation before the cut.
        deviation: u64,
        /// The minimum.
        low: u64,
        /// The maximum.
        high: u64,
    },
}

impl Distribution {
    /// Returns the mean. For a cut normal distribution, this is the mean of the uncut one.
    pub fn mean(&self) -> u64 {
        match *self {
            Distribution::Constant(value) => value,
            Distribution::Uniform { low, high } => low + (high - low) / 2,
            Distribution::Exponential { mean }
            | Distribution::Pareto { mean, .. }
            | Distribution::Normal { mean, .. } => mean,
        }
    }

    /// Checks the parameters. The error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        match *self {
            Distribution::Constant(_) => Ok(()),
            Distribution::Uniform { low, high } if low > high => {
                Err("the low end of a uniform distribution is above its high end; swap the two".into())
            }
            Distribution::Exponential { mean: 0 } | Distribution::Pareto { mean: 0, .. } => {
                Err("the mean of a distribution is 0, but must be above 0".into())
            }
            Distribution::Pareto { shape, .. } if shape <= 1.0 || !shape.is_finite() => Err(format!(
                "the shape of a Pareto distribution is {shape}, but must be above 1, because otherwise it \
                 has no mean"
            )),
            Distribution::Normal {
                mean,
                deviation,
                low,
                high,
            } if low > mean || high < mean || deviation == 0 => Err(
                "a normal distribution must have a deviation above 0, and a mean within `between`"
                    .to_string(),
            ),
            _ => Ok(()),
        }
    }

    /// Draws the next value.
    pub(crate) fn sample(&self, stream: &mut Stream) -> u64 {
        match *self {
            Distribution::Constant(value) => value,
            Distribution::Uniform { low, high } => {
                // The high half of a product. It is uniform except for 2^-64 of the range (Lemire 2016).
                let range = u128::from(high - low) + 1;
                low + ((u128::from(stream.0.next_u64()) * range) >> 64) as u64
            }
            Distribution::Exponential { mean } => (-libm::log(stream.unit()) * mean as f64) as u64,
            Distribution::Pareto { mean, shape } => {
                let least = mean as f64 * (shape - 1.0) / shape;
                (least * libm::exp(-libm::log(stream.unit()) / shape)) as u64
            }
            Distribution::Normal {
                mean,
                deviation,
                low,
                high,
            } => loop {
                // Box and Muller 1958. The second value of the pair is not kept, so that sampling has no
                // hidden state.
                let radius = libm::sqrt(-2.0 * libm::log(stream.unit()));
                let angle = libm::cos(std::f64::consts::TAU * stream.unit());
                let value = mean as f64 + deviation as f64 * radius * angle;
                if (low as f64..=high as f64).contains(&value) {
                    break value as u64;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(distribution: Distribution, samples: u64) -> f64 {
        let mut stream = Stream::new(7, "test", "mean");
        let sum: f64 = (0..samples)
            .map(|_| distribution.sample(&mut stream) as f64)
            .sum();
        sum / samples as f64
    }

    #[test]
    fn means_are_as_configured() {
        let mean = 1_000_000;
        for (distribution, tolerance) in [
            (Distribution::Constant(mean), 0.0),
            (
                Distribution::Uniform {
                    low: 0,
                    high: 2 * mean,
                },
                0.005,
            ),
            (Distribution::Exponential { mean }, 0.01),
            (Distribution::Pareto { mean, shape: 3.0 }, 0.01),
            (
                Distribution::Normal {
                    mean,
                    deviation: mean / 4,
                    low: 0,
                    high: 2 * mean,
                },
                0.005,
            ),
        ] {
            let error = (mean_of(distribution, 200_000) / mean as f64 - 1.0).abs();
            assert!(error <= tolerance, "{distribution:?}: mean off by {error}");
        }
    }

    #[test]
    fn a_pareto_tail_has_the_configured_shape() {
        let distribution = Distribution::Pareto {
            mean: 3_000_000,
            shape: 1.5,
        };
        let mut stream = Stream::new(1, "test", "tail");
        let samples = 200_000;
        let above = (0..samples)
            .filter(|_| distribution.sample(&mut stream) > 4_000_000)
            .count();
        // The minimum is 1,000,000, so P(X > 4,000,000) = 4^-1.5 = 1/8.
        let share = above as f64 / samples as f64;
        assert!((share - 0.125).abs() < 0.003, "{share}");
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_name() {
        let seeds = [
            derive_seed(1, "flow", "a"),
            derive_seed(2, "flow", "a"),
            derive_seed(1, "queue", "a"),
            derive_seed(1, "flow", "b"),
            derive_seed(1, "flo", "wa"),
        ];
        let distinct: std::collections::BTreeSet<u64> = seeds.into_iter().collect();
        assert_eq!(distinct.len(), seeds.len());
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        for wrong in [
            Distribution::Pareto { mean: 1, shape: 1.0 },
            Distribution::Exponential { mean: 0 },
            Distribution::Uniform { low: 2, high: 1 },
            Distribution::Normal {
                mean: 5,
                deviation: 1,
                low: 6,
                high: 9,
            },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
