//! Flows that arrive at random for as long as the run lasts.

use fairgate::Rate;

use crate::random::Distribution;

/// The largest rate of arrivals, flows per second. Times are whole nanoseconds.
const MOST_PER_SECOND: f64 = 1e6;

/// When the flows of a group arrive.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Arrivals {
    /// Poisson arrivals: independent of each other, with exponential intervals.
    Poisson {
        /// The mean number of flows per second.
        per_second: f64,
    },
    /// Independent intervals between successive arrivals.
    Renewal {
        /// The length of the intervals, ns.
        interval: Distribution,
    },
    /// Poisson arrivals at the rate at which all flows together offer this load.
    Load {
        /// The mean rate of payload that the flows offer.
        load: Rate,
    },
}

impl Arrivals {
    /// Returns the mean interval between arrivals of flows, ns, or why there is none. `payload` is the mean
    /// number of bytes of payload that each offers, if it is known.
    pub(crate) fn mean_interval(&self, payload: Option<f64>) -> Result<f64, String> {
        let interval = match self {
            Arrivals::Poisson { per_second } => 1e9 / per_second,
            Arrivals::Renewal { interval } => interval.expected(),
            Arrivals::Load { load } => {
                let bytes = payload.ok_or(
                    "the rate of arrivals follows from a `load` only if the flows offer a known mean number \
                     of bytes; give TCP flows a `size` and `transfers`, or give the flows a rate and a \
                     `lifetime`, or give the `rate` of arrivals instead",
                )?;
                8e9 * bytes / load.bits_per_second() as f64
            }
        };
        if !(interval.is_finite() && interval >= 1e9 / MOST_PER_SECOND) {
            return Err(format!(
                "{} flows arrive per second, but must be above 0 and at most {MOST_PER_SECOND}; lower the \
                 rate",
                1e9 / interval
            ));
        }
        Ok(interval)
    }

    /// Checks the arrivals of flows with this mean number of bytes of payload.
    pub(super) fn check(&self, payload: Option<f64>) -> Result<(), String> {
        if let Arrivals::Renewal { interval } = self {
            interval.check()?;
        }
        self.mean_interval(payload).map(drop)
    }
}
