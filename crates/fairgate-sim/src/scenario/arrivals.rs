//! Flows that arrive at random for as long as the run lasts.

use fairgate::Rate;

use crate::random::Distribution;
use crate::scenario::{Application, Flow, Pattern, Traffic};

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
    /// Returns the mean interval between arrivals of `flow`, ns, or why there is none.
    pub(crate) fn mean_interval(&self, flow: &Flow) -> Result<f64, String> {
        let interval = match self {
            Arrivals::Poisson { per_second } => 1e9 / per_second,
            Arrivals::Renewal { interval } => interval.expected(),
            Arrivals::Load { load } => {
                let bytes = flow.mean_payload().ok_or(
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

    /// Checks the arrivals of `flow`.
    pub(crate) fn check(&self, flow: &Flow) -> Result<(), String> {
        if let Arrivals::Renewal { interval } = self {
            interval.check()?;
        }
        self.mean_interval(flow)?;
        let ends = flow.lifetime.is_some()
            || matches!(&flow.traffic, Traffic::Tcp(tcp) if tcp.application.ends())
            || matches!(&flow.traffic, Traffic::Recorded(_));
        if !ends {
            return Err(
                "flows that arrive at random must also end; give them a `lifetime`, or give TCP flows a \
                 `size` and transfers = 1"
                    .into(),
            );
        }
        Ok(())
    }
}

impl Flow {
    /// Returns the mean number of bytes of payload that a flow offers, if it is known.
    fn mean_payload(&self) -> Option<f64> {
        let over_lifetime = |rate: &Rate, share: f64| {
            let lifetime = self.lifetime.as_ref()?.expected();
            Some(rate.bits_per_second() as f64 / 8e9 * share * lifetime)
        };
        match &self.traffic {
            Traffic::Udp(udp) => match &udp.pattern {
                Pattern::Constant { rate } | Pattern::Poisson { rate } => over_lifetime(rate, 1.0),
                Pattern::OnOff { rate, on, off } => {
                    let (on, off) = (on.expected(), off.expected());
                    over_lifetime(rate, on / (on + off))
                }
                Pattern::Interval { gap } => {
                    let lifetime = self.lifetime.as_ref()?.expected();
                    Some(udp.size.expected() * lifetime / gap.expected())
                }
            },
            Traffic::Tcp(tcp) => match &tcp.application {
                Application::Limited { rate, .. } => over_lifetime(rate, 1.0),
                Application::Transfers {
                    size,
                    count: Some(count),
                    ..
                } if self.lifetime.is_none() => Some(size.expected() * *count as f64),
                _ => None,
            },
            _ => None,
        }
    }
}
