//! The analysis of shortest queue first: Bonald, Muscariello, Ostallo, "Self-prioritization of audio and video traffic"
//! (papers/sqf), section IV.
//!
//! A video shares a line of `C` packets a second and a buffer of `B` packets with `n` TCP flows that fill the buffer and have
//! equal parts of it. With `x` packets of the video queued, each TCP flow has `(B - x) / n`; the video goes first as long as
//! `x < B / (n + 1)`. Its packets arrive in a Poisson process of rate `lambda`. Asked for: the probability that within a time
//! `T` it loses its priority at least once, and the mean time until it does.
//!
//! Two answers:
//! * [`Sharing::estimate`], the paper's: the video loses its priority in an interval of length `t` if more arrives than the line
//!   and the buffer take, `q(t) = P(N(t) >= C t + B / (n + 1))` with `N(t)` Poisson of mean `lambda t`; in one of `k` intervals
//!   that `T` is cut into with probability `1 - (1 - q(T/k))^k`; and `p(T)` is the greatest of these over all `k`. Each `k` gives
//!   a lower bound, since intervals that overlap are not looked at. The mean time is the integral of `1 - p(t)`.
//! * [`Exact`]: with a full buffer the line never pauses, so at its transmissions' ends the number of video packets
//!   is a Markov chain, whose first passage beyond the limit is computed without approximation.
//!
//! **Two readings of the paper's formula.** The figures that the paper's text states (for n = 20 close to 0 below 6 Mbit/s, mean
//! time above 180 min) don't follow from the formula with `N(t)` Poisson and all `k >= 1`: that gives 0.45 at 6 Mbit/s and 17 min.
//! They do follow if `N(t)` is taken as normal with the same mean and variance (0.0063, and above 1,000 min), an approximation that is
//! far too small in the tail for the dozen packets that matter here. [`Count`] says which is meant.

mod estimate;
mod exact;

pub use exact::Exact;

use thiserror::Error;

/// How the number of arrivals in an interval is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// As the paper defines it.
    Poisson,
    /// Normal with the same mean and variance: what the paper's stated figures follow from.
    Normal,
}

/// A line that a video shares with TCP flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharing {
    capacity: f64,
    buffer: f64,
    flows: u32,
}

/// A line, a buffer or flows that there are none of.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("the {parameter} is {value}, but must be above 0 and finite")]
pub struct SharingError {
    /// Which.
    pub parameter: &'static str,
    /// What it is.
    pub value: f64,
}

impl Sharing {
    /// `capacity` in packets a second, `buffer` in packets, `flows` the number n of TCP flows.
    ///
    /// # Errors
    /// If one of them is 0, below, or infinite.
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

    /// Packets a second.
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Packets that the buffer holds.
    pub fn buffer(&self) -> u32 {
        self.buffer as u32
    }

    /// The number n of TCP flows.
    pub fn flows(&self) -> u32 {
        self.flows
    }

    /// `B / (n + 1)`: the video has priority as long as it has fewer packets queued.
    pub fn limit(&self) -> f64 {
        self.buffer / f64::from(self.flows + 1)
    }

    /// Under fair queueing a video is served at once up to `C / (n + 1)`, packets a second, and falls behind above.
    pub fn fair_rate(&self) -> f64 {
        self.capacity / f64::from(self.flows + 1)
    }

    /// The probability that fair queueing lets the video fall behind: a step.
    pub fn fair_queueing(&self, rate: f64) -> f64 {
        if rate < self.fair_rate() { 0.0 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_papers_line() {
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
    fn nothing_to_share_is_an_error() {
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
