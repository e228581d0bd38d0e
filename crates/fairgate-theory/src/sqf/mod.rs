//! The analysis of shortest queue first: Bonald, Muscariello, Ostallo, "Self-prioritization of audio and
//! video traffic" (papers/sqf), section IV.
//!
//! A video shares a link of `C` packets a second and a buffer of `B` packets with `n` TCP flows. The TCP
//! flows fill the buffer and have equal parts of it. With `x` packets of the video queued, each TCP flow has
//! `(B - x) / n`. The video has priority as long as `x < B / (n + 1)`. Its packets arrive in a Poisson
//! process of rate `lambda`. The analysis gives the probability that the video loses its priority at least
//! once within a time `T`, and the mean time until it does.
//!
//! There are two answers:
//! * [`Sharing::estimate`] is the paper's. The video loses its priority in an interval of length `t` if more
//!   packets arrive than the link and the buffer accept: `q(t) = P(N(t) >= C t + B / (n + 1))` with `N(t)`
//!   Poisson of mean `lambda t`. If `T` is cut into `k` intervals, the probability that this happens in at
//!   least one of them is `1 - (1 - q(T/k))^k`. `p(T)` is the greatest of these values over all `k`. Each `k`
//!   gives a lower bound, since overlapping intervals are ignored. The mean time is the integral of `1 -
//!   p(t)`.
//! * [`Exact`] makes no approximation. With a full buffer the link never pauses, so the number of video
//!   packets at the ends of transmissions is a Markov chain. The time until it first reaches the limit is
//!   computed exactly.
//!
//! **Two readings of the paper's formula.** The text of the paper states numbers for n = 20: a probability
//! close to 0 below 6 Mbit/s, and a mean time above 180 min. They do not follow from the formula with `N(t)`
//! Poisson and all `k >= 1`, which gives 0.45 at 6 Mbit/s and 17 min. They do follow if `N(t)` is normal with
//! the same mean and variance, which gives 0.0063 and above 1,000 min. That approximation is far too small in
//! the tail for the dozen packets that matter here. [`Count`] selects the reading.

mod estimate;
mod exact;

pub use exact::Exact;

use thiserror::Error;

/// The distribution of the number of arrivals in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Poisson, as the paper defines it.
    Poisson,
    /// Normal with the same mean and variance. The paper's stated numbers follow from it.
    Normal,
}

/// A link that a video shares with TCP flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharing {
    capacity: f64,
    buffer: f64,
    flows: u32,
}

/// The error for a link, a buffer or a number of flows that is 0, negative or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("the {parameter} is {value}, but must be above 0 and finite")]
pub struct SharingError {
    /// The name of the parameter.
    pub parameter: &'static str,
    /// The value given.
    pub value: f64,
}

impl Sharing {
    /// Creates a shared link: `capacity` in packets a second, `buffer` in packets, `flows` the number n of
    /// TCP flows.
    ///
    /// # Errors
    /// Returns an error if one of them is 0, negative or infinite.
    pub fn new(capacity: f64, buffer: u32, flows: u32) -> Result<Sharing, SharingError> {
        for (parameter, value) in [
            ("capacity", capacity),
            ("buffer", f64::from(buffer)),
            ("number of flows", f64::from(flows)),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(SharingError { parameter, value });
            }
        }
        Ok(Sharing {
            capacity,
            buffer: f64::from(buffer),
            flows,
        })
    }

    /// Returns the capacity in packets a second.
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Returns the number of packets that the buffer holds.
    pub fn buffer(&self) -> u32 {
        self.buffer as u32
    }

    /// Returns the number n of TCP flows.
    pub fn flows(&self) -> u32 {
        self.flows
    }

    /// Returns `B / (n + 1)`. The video has priority as long as it has fewer packets queued.
    pub fn limit(&self) -> f64 {
        self.buffer / f64::from(self.flows + 1)
    }

    /// Returns `C / (n + 1)`, packets a second. Under fair queueing a video is served at once up to this
    /// rate, and its queue grows above it.
    pub fn fair_rate(&self) -> f64 {
        self.capacity / f64::from(self.flows + 1)
    }

    /// Returns the probability that fair queueing lets the video's queue grow. It is a step function of the
    /// rate.
    pub fn fair_queueing(&self, rate: f64) -> f64 {
        if rate < self.fair_rate() { 0.0 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_papers_link() {
        let sharing = Sharing::new(1000.0, 200, 20).unwrap();
        assert!((sharing.limit() - 9.5238).abs() < 1e-4);
        // 476 kbit/s of packets of 1250 B: the paper says 480.
        assert!((sharing.fair_rate() * 10_000.0 - 476_190.0).abs() < 1.0);
        assert_eq!(
            (sharing.fair_queueing(47.0), sharing.fair_queueing(48.0)),
            (0.0, 1.0)
        );
    }

    #[test]
    fn a_share_of_nothing_is_an_error() {
        assert_eq!(
            Sharing::new(1000.0, 200, 0),
            Err(SharingError {
                parameter: "number of flows",
                value: 0.0
            })
        );
        assert!(Sharing::new(f64::NAN, 200, 5).is_err());
    }
}
