//! The rate estimator of a discipline or a class: how a run averages what they send.
//!
//! It has Linux's parameters (net/core/gen_estimator.c): the time of a sample A and the weight W of a sample
//! in the average, a power of two. Users write the time constant T instead of the weight. They are related by
//! T = A / -ln(1 - W). The weight is the smallest one whose time constant is not longer, as in tc.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;
use toml::Spanned;

use super::given::{Given, Mistake};
use crate::units::{format_duration, parse_duration};

/// The key in a table.
pub(crate) const KEY: &str = "estimator";

/// How the rate of a discipline or a class is estimated: the bytes and packets of each sample, averaged with
/// a weight that is a power of two.
///
/// ```
/// use fairgate_config::Estimator;
///
/// let estimator: Estimator = "250ms 8s".parse()?;
/// // A sample counts 1/32 of the average: the time constant is 7.9 s.
/// assert_eq!(estimator.ewma_log(), 5);
/// assert!("300ms 8s".parse::<Estimator>().is_err());
/// # Ok::<(), fairgate_config::EstimatorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimator {
    /// The number of doublings of the shortest sample.
    sample: u8,
    /// As it was written.
    time_constant: Duration,
    ewma_log: u8,
}

/// Why two times are not those of an estimator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EstimatorError {
    /// The text does not have the form.
    #[error("`{text}` is not the time of a sample and a time constant")]
    Form {
        /// The text.
        text: String,
    },
    /// There are no samples of this length.
    #[error(
        "the time of a sample is {}, but must be 250ms, 500ms, 1s, 2s, 4s or 8s",
        format_duration(*.sample)
    )]
    Sample {
        /// The time of a sample.
        sample: Duration,
    },
    /// The average would be too fast or too slow.
    #[error(
        "the time constant is {}, but must be {} to {} for samples of {}",
        format_duration(*.time_constant),
        format_duration(*.shortest),
        format_duration(*.longest),
        format_duration(*.sample)
    )]
    TimeConstant {
        /// The time of a sample.
        sample: Duration,
        /// The time constant.
        time_constant: Duration,
        /// The shortest one.
        shortest: Duration,
        /// The longest one.
        longest: Duration,
    },
}

/// The shortest sample.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(250);

impl Estimator {
    /// The base-2 logarithm of the smallest inverse weight. A larger weight would be no average.
    const LEAST_LOG: u8 = 1;

    /// The base-2 logarithm of the largest inverse weight (`gen_new_estimator`).
    const MOST_LOG: u8 = 30;

    /// The number of doublings of the longest sample.
    const LONGEST_SAMPLE: u8 = 5;

    /// Returns an estimator with samples of this time and with this time constant.
    ///
    /// # Errors
    /// If the kernel has no such estimator.
    pub fn new(sample: Duration, time_constant: Duration) -> Result<Estimator, EstimatorError> {
        let doublings = (0..=Estimator::LONGEST_SAMPLE).find(|&doublings| sample_of(doublings) == sample);
        let Some(doublings) = doublings else {
            return Err(EstimatorError::Sample { sample });
        };
        let (shortest, longest) = (
            shortest_constant(sample, Estimator::LEAST_LOG),
            shortest_constant(sample, Estimator::MOST_LOG),
        );
        match Estimator::log_of(sample, time_constant) {
            Some(ewma_log) if time_constant <= longest || ewma_log < Estimator::MOST_LOG => Ok(Estimator {
                sample: doublings,
                time_constant,
                ewma_log,
            }),
            _ => Err(EstimatorError::TimeConstant {
                sample,
                time_constant,
                shortest,
                longest,
            }),
        }
    }

    /// Returns the estimator with samples of at least `sample` that gives each sample the weight
    /// 2^-`ewma_log`. Returns `None` if the kernel has none.
    pub fn with_log(sample: Duration, ewma_log: u8) -> Option<Estimator> {
        let doublings = (0..=Estimator::LONGEST_SAMPLE).find(|&doublings| sample <= sample_of(doublings))?;
        let is_known = (Estimator::LEAST_LOG..=Estimator::MOST_LOG).contains(&ewma_log);
        is_known.then(|| Estimator {
            sample: doublings,
            time_constant: shortest_constant(sample_of(doublings), ewma_log),
            ewma_log,
        })
    }

    /// Returns the base-2 logarithm of the inverse weight for samples and a time constant of any length. It
    /// is that of the smallest weight whose time constant is not longer. Returns `None` if even the largest
    /// weight has a longer one.
    pub fn log_of(sample: Duration, time_constant: Duration) -> Option<u8> {
        let fits = |log: &u8| constant_of(sample, *log) <= time_constant.as_secs_f64();
        (Estimator::LEAST_LOG..=Estimator::MOST_LOG).rev().find(fits)
    }

    /// Returns the time of a sample.
    pub fn sample(&self) -> Duration {
        sample_of(self.sample)
    }

    /// Returns the number of doublings of 250 ms that make a sample.
    pub fn sample_log(&self) -> u8 {
        self.sample
    }

    /// Returns the time constant as it was written.
    pub fn time_constant(&self) -> Duration {
        self.time_constant
    }

    /// Returns the base-2 logarithm of the inverse weight of a sample.
    pub fn ewma_log(&self) -> u8 {
        self.ewma_log
    }

    /// Returns both times in one word, for a line.
    pub(super) fn word(&self) -> String {
        self.to_string().replace(' ', ",")
    }
}

fn sample_of(doublings: u8) -> Duration {
    SHORTEST_SAMPLE * (1 << doublings)
}

/// Returns the time constant of the weight 2^-`log`, in seconds.
fn constant_of(sample: Duration, log: u8) -> f64 {
    let weight = 1.0 / f64::from(1u32 << log);
    sample.as_secs_f64() / -(1.0 - weight).ln()
}

/// Returns the shortest time constant in whole milliseconds for which the weight is at most 2^-`log`.
fn shortest_constant(sample: Duration, log: u8) -> Duration {
    let millis = (constant_of(sample, log) * 1e3).ceil();
    Duration::from_millis(millis as u64)
}

/// Both times, as in a file.
impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [sample, constant] = [self.sample(), self.time_constant].map(format_duration);
        write!(f, "{sample} {constant}")
    }
}

/// Reads two times, with a space or a comma between them.
impl FromStr for Estimator {
    type Err = EstimatorError;

    fn from_str(text: &str) -> Result<Estimator, EstimatorError> {
        let mut times = text
            .split([' ', ','])
            .filter(|part| !part.is_empty())
            .map(parse_duration);
        match (times.next(), times.next(), times.next()) {
            (Some(Ok(sample)), Some(Ok(time_constant)), None) => Estimator::new(sample, time_constant),
            _ => Err(EstimatorError::Form {
                text: text.to_owned(),
            }),
        }
    }
}

/// Reads the value of the key.
pub(super) fn read(given: &Spanned<Given>) -> Result<Estimator, Mistake> {
    let mistake = |message: String, help: &str| Mistake {
        span: given.span(),
        message,
        label: "expected two times".to_owned(),
        help: help.to_owned(),
    };
    let (Given::Text(text) | Given::Word(text) | Given::Meant(text)) = given.get_ref() else {
        let message = format!(
            "`{KEY}` is {}, but must be two times",
            given.get_ref().type_name()
        );
        return Err(mistake(message, FORM));
    };
    text.parse().map_err(|error: EstimatorError| {
        let help = match error {
            EstimatorError::Form { .. } | EstimatorError::Sample { .. } => FORM,
            EstimatorError::TimeConstant { .. } => "write a time constant of several samples",
        };
        mistake(format!("`{KEY}`: {error}"), help)
    })
}

const FORM: &str = "write the time of a sample and the time constant of the average, like \"250ms 8s\"";

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    /// The weights that tc of iproute2 6.1 sends to the kernel (`TCA_RATE`).
    #[test]
    fn the_weight_is_that_of_tc() {
        for (sample, constant, log) in [
            (250, 361, 1),
            (250, 1_000, 2),
            (250, 8_000, 5),
            (1_000, 8_000, 3),
            (1_000, 7_000, 2),
            (8_000, 4_294_000, 9),
        ] {
            let estimator = Estimator::new(MILLI * sample, MILLI * constant).expect("it is valid");
            assert_eq!(estimator.ewma_log(), log, "{estimator}");
        }
    }

    #[test]
    fn a_time_constant_in_whole_milliseconds_gives_each_weight() {
        for sample in 0..=5 {
            let sample = sample_of(sample);
            for log in 1..=30 {
                let estimator = Estimator::with_log(sample, log).expect("the kernel has it");
                assert_eq!(estimator.sample(), sample);
                assert_eq!(Estimator::log_of(sample, estimator.time_constant()), Some(log));
                assert_eq!(Estimator::new(sample, estimator.time_constant()), Ok(estimator));
                assert_eq!(estimator.to_string().parse(), Ok(estimator));
                assert_eq!(estimator.word().parse(), Ok(estimator));
            }
            assert_eq!(Estimator::with_log(sample, 31), None);
            assert_eq!(Estimator::with_log(sample, 0), None);
        }
        let rounded = Estimator::with_log(MILLI * 300, 4).expect("it is rounded up");
        assert_eq!(rounded.sample(), MILLI * 500);
        assert_eq!(Estimator::with_log(MILLI * 8_001, 4), None);
    }

    #[test]
    fn times_that_the_kernel_does_not_take_are_refused() {
        for (text, complaint) in [
            (
                "300ms 8s",
                "the time of a sample is 300ms, but must be 250ms, 500ms",
            ),
            ("16s 80s", "the time of a sample is 16s"),
            (
                "250ms 360ms",
                "the time constant is 360ms, but must be 361ms to 268435455875ms",
            ),
            ("8s 9000000000s", "must be 11542ms to"),
            ("250ms", "`250ms` is not the time of a sample and a time constant"),
            ("250ms 8s 9s", "is not the time of a sample"),
            ("250 8s", "is not the time of a sample"),
            ("", "`` is not the time"),
        ] {
            let error = text.parse::<Estimator>().expect_err(text).to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
