//! Repeatable random numbers: a separate stream for each user, and the distributions of traffic.
//!
//! A stream is seeded from the scenario's seed and a name, not from a position. If a flow is added in the
//! middle, the random numbers of all other flows stay the same. Logarithms come from `libm` and not from the
//! platform, whose last digit differs between machines.

use std::hash::Hasher;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use siphasher::sip::SipHasher13;

/// Returns a seed for the user `name` of the kind `purpose`. The seeds of different users and purposes are
/// independent, so an additional flow does not change other flows' random numbers.
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

    /// Returns 64 uniform bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number in (0, 1], in steps of 2^-53. Its logarithm is always finite.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns an exponential number.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(self.unit()) * mean
    }

    /// Returns a Gaussian number with mean 0 and deviation 1. Box and Muller 1958. The second value of the
    /// pair is not kept, so that sampling has no hidden state.
    fn gaussian(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

/// The distribution of a number of nanoseconds or bytes. Real numbers are rounded down.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
    /// Pareto, on the condition that the value is from `low` to `high`.
    TruncatedPareto {
        /// The mean before the cut.
        mean: u64,
        /// As for [`Pareto`](Distribution::Pareto).
        shape: f64,
        /// The minimum. It has no effect below mean (shape - 1) / shape.
        low: u64,
        /// The maximum.
        high: u64,
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
    /// The logarithm is Gaussian. Drawn again until the value is between `low` and `high`.
    LogNormal {
        /// The mean before the cut.
        mean: u64,
        /// The standard deviation of the natural logarithm, before the cut.
        sigma: f64,
        /// The minimum. 0 for no cut.
        low: u64,
        /// The maximum. [`u64::MAX`] for no cut.
        high: u64,
    },
    /// One of a list of values.
    Empirical(Arc<Empirical>),
}

/// Values with weights, such as the lines of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    values: Vec<u64>,
    /// The sum of the weights of the values up to this one.
    cumulative: Vec<f64>,
}

impl Empirical {
    /// Creates the distribution of these values. The probability of a value is proportional to its weight.
    ///
    /// # Errors
    /// If there are no values, or a weight is not a number above 0.
    pub fn new(values: impl IntoIterator<Item = (u64, f64)>) -> Result<Empirical, String> {
        let (mut list, mut cumulative, mut sum) = (Vec::new(), Vec::new(), 0.0);
        for (value, weight) in values {
            if weight.is_nan() || weight <= 0.0 {
                return Err(format!("the weight of {value} is {weight}, but must be above 0"));
            }
            sum += weight;
            list.push(value);
            cumulative.push(sum);
        }
        if list.is_empty() || !f64::is_finite(sum) {
            return Err("a distribution needs at least one value, and weights with a finite sum".into());
        }
        Ok(Empirical {
            values: list,
            cumulative,
        })
    }

    fn expected(&self) -> f64 {
        let (mut below, mut sum) = (0.0, 0.0);
        for (&value, &cumulative) in self.values.iter().zip(&self.cumulative) {
            sum += value as f64 * (cumulative - below);
            below = cumulative;
        }
        sum / below
    }

    fn sample(&self, stream: &mut Stream) -> u64 {
        let last = self.values.len() - 1;
        let point = stream.unit() * self.cumulative[last];
        self.values[self.cumulative.partition_point(|&sum| sum < point).min(last)]
    }
}

/// The least share of a distribution that an interval may leave of it. Values outside are drawn again, so
/// this limits the number of draws.
const LEAST_SHARE: f64 = 0.001;

/// A Gaussian distribution on the condition that the value is from `low` to `high`, in standard deviations
/// from the mean.
#[derive(Clone, Copy)]
struct CutGaussian {
    low: f64,
    high: f64,
}

impl CutGaussian {
    /// Returns the probability of the interval before the cut, with the mean moved by `shift`. The tail with
    /// the smaller numbers is used, so that no digits are lost.
    fn share(self, shift: f64) -> f64 {
        let above = |x: f64| 0.5 * libm::erfc((x - shift) * std::f64::consts::FRAC_1_SQRT_2);
        if self.low > shift {
            above(self.low) - above(self.high)
        } else {
            let below = |x: f64| 0.5 * libm::erfc((shift - x) * std::f64::consts::FRAC_1_SQRT_2);
            below(self.high) - below(self.low)
        }
    }

    /// Returns the mean after the cut.
    fn expected(self) -> f64 {
        let density = |x: f64| libm::exp(-0.5 * x * x) / libm::sqrt(std::f64::consts::TAU);
        (density(self.low) - density(self.high)) / self.share(0.0)
    }
}

/// Returns the natural logarithm of the median of a log-normal distribution.
fn log_median(mean: u64, sigma: f64) -> f64 {
    libm::log(mean as f64) - sigma * sigma / 2.0
}

/// Returns the interval of the logarithm, in units of sigma from its mean.
fn log_interval(mean: u64, sigma: f64, low: u64, high: u64) -> CutGaussian {
    let median = log_median(mean, sigma);
    let scaled = |end: u64| (libm::log(end as f64) - median) / sigma;
    CutGaussian {
        low: scaled(low),
        high: if high == u64::MAX {
            f64::INFINITY
        } else {
            scaled(high)
        },
    }
}

fn interval(mean: u64, deviation: u64, low: u64, high: u64) -> CutGaussian {
    let scaled = |end: u64| (end as f64 - mean as f64) / deviation as f64;
    CutGaussian {
        low: scaled(low),
        high: scaled(high),
    }
}

/// Returns the standard deviation of the logarithm of a log-normal distribution with this mean and deviation.
pub(crate) fn log_normal_sigma(mean: u64, deviation: u64) -> f64 {
    let ratio = deviation as f64 / mean as f64;
    libm::sqrt(libm::log1p(ratio * ratio))
}

impl Distribution {
    /// Creates the log-normal distribution with this mean and standard deviation.
    pub fn log_normal(mean: u64, deviation: u64) -> Distribution {
        Distribution::LogNormal {
            mean,
            sigma: log_normal_sigma(mean, deviation),
            low: 0,
            high: u64::MAX,
        }
    }

    /// Returns the mean, after any cut, to the nearest whole number (of a uniform distribution, rounded
    /// down).
    pub fn mean(&self) -> u64 {
        match *self {
            Distribution::Constant(value) => value,
            Distribution::Uniform { low, high } => low + (high - low) / 2,
            Distribution::Exponential { mean } | Distribution::Pareto { mean, .. } => mean,
            _ => self.expected().round() as u64,
        }
    }

    /// Returns the exact mean, after any cut, and before numbers are rounded down.
    pub fn expected(&self) -> f64 {
        match *self {
            Distribution::Constant(value) => value as f64,
            Distribution::Uniform { low, high } => low as f64 + (high - low) as f64 / 2.0,
            Distribution::Exponential { mean } | Distribution::Pareto { mean, .. } => mean as f64,
            Distribution::TruncatedPareto {
                mean,
                shape,
                low,
                high,
            } => {
                let least = pareto_least(mean, shape).max(low as f64);
                if least >= high as f64 {
                    return least;
                }
                let log_ratio = libm::log(least / high as f64);
                least * shape / (shape - 1.0) * libm::expm1((shape - 1.0) * log_ratio)
                    / libm::expm1(shape * log_ratio)
            }
            Distribution::Normal {
                mean,
                deviation,
                low,
                high,
            } => mean as f64 + deviation as f64 * interval(mean, deviation, low, high).expected(),
            Distribution::LogNormal {
                mean,
                sigma,
                low,
                high,
            } => {
                let cut = log_interval(mean, sigma, low, high);
                mean as f64 * cut.share(sigma) / cut.share(0.0)
            }
            Distribution::Empirical(ref empirical) => empirical.expected(),
        }
    }

    /// Checks the parameters. The error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let too_narrow = |cut: CutGaussian| {
            let share = cut.share(0.0);
            // If it is not a number, it is not enough either.
            let enough = share >= LEAST_SHARE;
            (!enough).then(|| {
                "less than a thousandth of the distribution is within `between`; widen the interval"
                    .to_owned()
            })
        };
        match *self {
            Distribution::Uniform { low, high } if low > high => {
                Err("the low end of a uniform distribution is above its high end; swap the two".into())
            }
            Distribution::Exponential { mean: 0 }
            | Distribution::Pareto { mean: 0, .. }
            | Distribution::TruncatedPareto { mean: 0, .. }
            | Distribution::LogNormal { mean: 0, .. } => {
                Err("the mean of a distribution is 0, but must be above 0; raise it".into())
            }
            Distribution::Pareto { shape, .. } | Distribution::TruncatedPareto { shape, .. }
                if shape <= 1.0 || !shape.is_finite() =>
            {
                Err(format!(
                    "the shape of a Pareto distribution is {shape}, but must be above 1, because otherwise \
                     it has no mean; raise it"
                ))
            }
            Distribution::TruncatedPareto { low, high, .. }
            | Distribution::Normal { low, high, .. }
            | Distribution::LogNormal { low, high, .. }
                if low > high =>
            {
                Err("the first value of `between` is above the second one; swap the two".into())
            }
            Distribution::TruncatedPareto {
                mean, shape, high, ..
            } if pareto_least(mean, shape) > high as f64 => Err(format!(
                "no value of this Pareto distribution is within `between`: its values begin at {:.0}; raise \
                 the upper end",
                pareto_least(mean, shape)
            )),
            Distribution::Normal {
                mean,
                deviation,
                low,
                high,
            } => {
                if deviation == 0 {
                    return Err(
                        "the deviation of a normal distribution is 0, but must be above 0; raise it, \
                                or write the mean alone"
                            .into(),
                    );
                }
                if low > mean || high < mean {
                    return Err(
                        "the mean of a normal distribution must be within `between`; widen `between`".into(),
                    );
                }
                too_narrow(interval(mean, deviation, low, high)).map_or(Ok(()), Err)
            }
            Distribution::LogNormal {
                mean,
                sigma,
                low,
                high,
            } => {
                if !(sigma > 0.0 && sigma <= MOST_SIGMA) {
                    return Err(format!(
                        "the sigma of a log-normal distribution is {sigma}, but must be above 0 and at most \
                         {MOST_SIGMA}"
                    ));
                }
                too_narrow(log_interval(mean, sigma, low, high)).map_or(Ok(()), Err)
            }
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
            Distribution::Exponential { mean } => stream.exponential(mean as f64) as u64,
            Distribution::Pareto { mean, shape } => {
                (pareto_least(mean, shape) * libm::exp(-libm::log(stream.unit()) / shape)) as u64
            }
            Distribution::TruncatedPareto {
                mean,
                shape,
                low,
                high,
            } => {
                // The inverse of the distribution function on [least, high].
                let least = pareto_least(mean, shape).max(low as f64);
                let cut = libm::exp(shape * libm::log(least / high as f64));
                let rest = 1.0 - stream.unit() * (1.0 - cut);
                let value = (least * libm::exp(-libm::log(rest) / shape)) as u64;
                value.clamp(low, high)
            }
            Distribution::Normal {
                mean,
                deviation,
                low,
                high,
            } => loop {
                let value = mean as f64 + deviation as f64 * stream.gaussian();
                if (low as f64..=high as f64).contains(&value) {
                    break value as u64;
                }
            },
            Distribution::LogNormal {
                mean,
                sigma,
                low,
                high,
            } => loop {
                let value = libm::exp(log_median(mean, sigma) + sigma * stream.gaussian());
                if (low as f64..=high as f64).contains(&value) {
                    break value as u64;
                }
            },
            Distribution::Empirical(ref empirical) => empirical.sample(stream),
        }
    }
}

/// The largest sigma of a log-normal distribution. The largest of a million values is then 10^20 times the
/// median.
const MOST_SIGMA: f64 = 10.0;

/// Returns the minimum of a Pareto distribution.
fn pareto_least(mean: u64, shape: f64) -> f64 {
    mean as f64 * (shape - 1.0) / shape
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(distribution: &Distribution, samples: u64) -> f64 {
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
            let error = (mean_of(&distribution, 200_000) / mean as f64 - 1.0).abs();
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

    /// Returns the mean of a distribution with this density, up to a factor, from `low` to `high`.
    fn integrated_mean(density: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
        // Simpson's rule over the logarithm of the value: tails are long.
        let steps = 200_000;
        let (from, to) = (low.ln(), high.ln());
        let width = (to - from) / steps as f64;
        let (mut mass, mut moment) = (0.0, 0.0);
        for step in 0..=steps {
            let x = (from + step as f64 * width).exp();
            let factor = if step == 0 || step == steps {
                1.0
            } else if step % 2 == 1 {
                4.0
            } else {
                2.0
            };
            mass += factor * density(x) * x;
            moment += factor * density(x) * x * x;
        }
        moment / mass
    }

    type Density = Box<dyn Fn(f64) -> f64>;

    /// Each cut distribution, its density before the cut up to a factor, and the interval.
    fn cut_distributions() -> Vec<(Distribution, Density, f64, f64)> {
        let pareto = |mean, shape: f64, low, high| {
            let least = (mean as f64 * (shape - 1.0) / shape).max(low as f64);
            let cut = Distribution::TruncatedPareto {
                mean,
                shape,
                low,
                high,
            };
            let density: Density = Box::new(move |x: f64| x.powf(-shape - 1.0));
            (cut, density, least, high as f64)
        };
        let normal = |mean: u64, deviation: u64, low: u64, high: u64| {
            let cut = Distribution::Normal {
                mean,
                deviation,
                low,
                high,
            };
            let density: Density =
                Box::new(move |x: f64| (-0.5 * ((x - mean as f64) / deviation as f64).powi(2)).exp());
            (cut, density, (low as f64).max(1e-3), high as f64)
        };
        let log_normal = |mean: u64, sigma: f64, low: u64, high: u64| {
            let cut = Distribution::LogNormal {
                mean,
                sigma,
                low,
                high,
            };
            let median = (mean as f64).ln() - sigma * sigma / 2.0;
            let density: Density =
                Box::new(move |x: f64| (-0.5 * ((x.ln() - median) / sigma).powi(2)).exp() / x);
            (cut, density, (low as f64).max(1e-9), (high as f64).min(1e30))
        };
        vec![
            // Sizes of PDRR: mean 25, from 8 to 1000 packets of 1000 bytes.
            pareto(25_000, 1.5, 8_000, 1_000_000),
            pareto(25_000, 1.5, 20_000, 30_000),
            pareto(1_000_000, 3.0, 0, 50_000_000),
            // On and off times of MSFC: N(1, 1) cut to [0, 2] s, here in ms.
            normal(1_000, 1_000, 0, 2_000),
            normal(1_000, 500, 900, 5_000),
            log_normal(20_000, 1.0, 0, u64::MAX),
            log_normal(20_000, 1.5, 1_000, 100_000),
        ]
    }

    #[test]
    fn means_after_a_cut_are_exact() {
        for (distribution, density, low, high) in cut_distributions() {
            let (exact, integrated) = (distribution.expected(), integrated_mean(density, low, high));
            assert!(
                (exact / integrated - 1.0).abs() < 1e-6,
                "{distribution:?}: {exact}, but integrated {integrated}"
            );
        }
    }

    #[test]
    fn samples_have_the_exact_mean_and_stay_within_the_cut() {
        for (distribution, _, low, high) in cut_distributions() {
            distribution.check().unwrap();
            let mut stream = Stream::new(11, "test", "cut");
            let samples = 400_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..samples {
                let value = distribution.sample(&mut stream);
                assert!(
                    (low.floor()..=high).contains(&(value as f64)),
                    "{distribution:?}: {value}"
                );
                sum += value as f64;
                squares += value as f64 * value as f64;
            }
            let mean = sum / samples as f64;
            let error = (squares / samples as f64 - mean * mean).sqrt() / (samples as f64).sqrt();
            // Rounding down takes half a unit.
            let difference = mean + 0.5 - distribution.expected();
            assert!(
                difference.abs() < 5.0 * error,
                "{distribution:?}: off by {difference} +- {error}"
            );
        }
    }

    #[test]
    fn a_log_normal_distribution_has_the_deviation_asked_for() {
        let distribution = Distribution::log_normal(10_000, 5_000);
        let mut stream = Stream::new(5, "test", "log-normal");
        let samples: Vec<f64> = (0..400_000)
            .map(|_| distribution.sample(&mut stream) as f64)
            .collect();
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance = samples.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / samples.len() as f64;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.005, "{mean}");
        assert!(
            (variance.sqrt() / 5_000.0 - 1.0).abs() < 0.02,
            "{}",
            variance.sqrt()
        );
    }

    #[test]
    fn empirical_values_come_as_often_as_their_weights_say() {
        let values = [(100, 1.0), (300, 2.5), (200, 0.5)];
        let empirical = Empirical::new(values).unwrap();
        let distribution = Distribution::Empirical(Arc::new(empirical));
        assert_eq!(distribution.expected(), (100.0 + 750.0 + 100.0) / 4.0);
        let mut stream = Stream::new(5, "test", "empirical");
        let samples: Vec<u64> = (0..100_000).map(|_| distribution.sample(&mut stream)).collect();
        for (value, weight) in values {
            let share = samples.iter().filter(|&&sample| sample == value).count() as f64 / 1e5;
            assert!((share - weight / 4.0).abs() < 0.006, "{value}: {share}");
        }
        assert!(Empirical::new([]).is_err());
        assert!(Empirical::new([(1, 0.0)]).is_err());
        assert!(Empirical::new([(1, f64::NAN)]).is_err());
        assert!(Empirical::new([(1, f64::INFINITY)]).is_err());
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
            // Drawing until a value is within would never end.
            Distribution::Normal {
                mean: 5,
                deviation: 1_000_000,
                low: 5,
                high: 5,
            },
            Distribution::TruncatedPareto {
                mean: 30,
                shape: 1.5,
                low: 1,
                high: 9,
            },
            Distribution::TruncatedPareto {
                mean: 30,
                shape: 1.5,
                low: 50,
                high: 40,
            },
            Distribution::LogNormal {
                mean: 30,
                sigma: f64::NAN,
                low: 0,
                high: u64::MAX,
            },
            Distribution::LogNormal {
                mean: 30,
                sigma: 0.1,
                low: 1_000,
                high: u64::MAX,
            },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
