//! What both versions of BBR measure and calculate in the same way: round trips, the excess of bundled
//! acknowledgements, and what a bandwidth and an RTT mean for window and pacing.
//!
//! A bandwidth is in segments per µs times 2^[`RATE_SHIFT`], a gain in 256ths, an RTT in µs.

use super::max_filter::MaxFilter;
use crate::tcp::delivery_rate::{LostTransmission, RATE_SHIFT, RateSample};

pub(super) use crate::tcp::clock::Moment;

/// The gain 1.
pub(super) const UNITY: u64 = 256;
/// The window before the first RTT measurement, segments.
const INITIAL_WINDOW: u32 = 10;
/// BBR paces at this share of the bandwidth, per cent, so that a queue that it has caused by mistake empties
/// (`PacingMarginPercent`).
const PACED_PERCENT: u128 = 99;
/// The maximum of a burst that Linux hands to the network at once, bytes.
const MOST_QUANTUM: u64 = 65_536 - 321;
/// Below this rate, 1.2 Mbit/s, a burst is one segment, bytes per second.
const SLOW: u64 = 150_000;
/// The maximum of the excess that the window allows for, in time of the bandwidth, µs.
const MOST_EXCESS: u64 = 100_000;
/// The excess is forgotten after this many round trips.
const EXCESS_ROUNDS: u64 = 10;

/// The state of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tcp) enum Repair {
    /// Nothing is being repaired.
    None,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Timeout,
}

/// What an acknowledgement, or a timer, tells a congestion control that models the path.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Feedback<'a> {
    /// The time.
    pub(in crate::tcp) now: Moment,
    /// The sample of the delivery rate.
    pub(in crate::tcp) rate: RateSample,
    /// The segments that it reports as delivered.
    pub(in crate::tcp) delivered: u32,
    /// The segments that were detected as lost since the last feedback.
    pub(in crate::tcp) lost: &'a [LostTransmission],
    /// The RTT of the newest delivered segment, µs, if it was measured.
    pub(in crate::tcp) rtt: Option<u64>,
    /// The smoothed RTT, µs, if it was measured.
    pub(in crate::tcp) smoothed: Option<u64>,
    /// The total of segments delivered.
    pub(in crate::tcp) total_delivered: u64,
    /// The segments in flight, now and before the acknowledgement.
    pub(in crate::tcp) in_flight: u32,
    pub(in crate::tcp) prior_in_flight: u32,
    /// The state of loss recovery.
    pub(in crate::tcp) repair: Repair,
    /// Whether the window limited the sender.
    pub(in crate::tcp) window_limited: bool,
    /// Whether the receiver reports by SACK what arrived behind a hole.
    pub(in crate::tcp) selective: bool,
    /// How long the next segment has to wait for pacing, µs.
    pub(in crate::tcp) pacing_delay: u64,
    /// The payload of a full segment, bytes.
    pub(in crate::tcp) mss: u32,
}

/// Returns the pacing rate for a bandwidth and a gain, bytes per second.
pub(super) fn pacing_rate(bandwidth: u64, gain: u64, mss: u32) -> u64 {
    let rate = u128::from(bandwidth) * u128::from(mss) * u128::from(gain) * 1_000_000 * PACED_PERCENT
        / (100 * u128::from(UNITY));
    (rate >> RATE_SHIFT) as u64
}

/// Returns the first pacing rate: an initial window per RTT, or per millisecond if there is no RTT yet.
pub(super) fn initial_rate(window: u32, smoothed: Option<u64>, gain: u64, mss: u32) -> u64 {
    let bandwidth = (u64::from(window) << RATE_SHIFT) / smoothed.unwrap_or(1_000).max(1);
    pacing_rate(bandwidth, gain, mss)
}

/// Returns the segments that a bandwidth delivers in an RTT, times a gain, rounded up.
pub(super) fn volume(bandwidth: u64, rtt: Option<u64>, gain: u64) -> u32 {
    let Some(rtt) = rtt else { return INITIAL_WINDOW };
    let product = u128::from(bandwidth) * u128::from(rtt) * u128::from(gain) / u128::from(UNITY);
    u32::try_from(product.div_ceil(1 << RATE_SHIFT)).unwrap_or(u32::MAX)
}

/// Returns the segments that Linux hands to the network at once: about a millisecond of the pacing rate. Here
/// segments are never merged, but the model leaves room for them, as Linux's does.
pub(super) fn quantum(pacing_rate: u64, mss: u32) -> u32 {
    let least = if pacing_rate < SLOW { 1 } else { 2 };
    let bytes = (pacing_rate >> 10).min(MOST_QUANTUM);
    ((bytes / u64::from(mss)) as u32).clamp(least, 127)
}

/// Counts round trips by delivered segments: a round trip is over when a segment is delivered that was sent
/// after it began.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// The round trip is over when a segment is delivered that was sent after this many deliveries.
    next: u64,
    /// The number of round trips.
    pub(super) count: u64,
    /// Whether the last acknowledgement began one.
    pub(super) started: bool,
}

impl Rounds {
    /// Begins a round trip.
    pub(super) fn restart(&mut self, total_delivered: u64) {
        self.next = total_delivered;
    }

    /// Handles a sample.
    pub(super) fn observe(&mut self, feedback: &Feedback<'_>) {
        self.started = feedback.rate.delivered.is_some() && feedback.rate.prior_delivered >= self.next;
        if self.started {
            self.restart(feedback.total_delivered);
            self.count += 1;
        }
    }
}

/// How many segments more are acknowledged at once than the bandwidth explains. Links and receivers bundle
/// acknowledgements. The window must allow for that, or the sender would fall silent in between.
#[derive(Clone, Debug, Default)]
pub(super) struct Excess {
    filter: MaxFilter,
    /// When the current interval began, µs, and the segments acknowledged in it.
    since: u64,
    acked: u64,
}

impl Excess {
    /// Begins a new interval.
    pub(super) fn restart(&mut self, now: Moment) {
        (self.since, self.acked) = (now.micros, 0);
    }

    /// Handles an acknowledgement.
    pub(super) fn observe(
        &mut self,
        feedback: &Feedback<'_>,
        bandwidth: u64,
        window: u32,
        rounds: &Rounds,
        is_full: bool,
    ) {
        if feedback.delivered == 0 || feedback.rate.interval == 0 {
            return;
        }
        let elapsed = u128::from(feedback.now.micros - self.since);
        let mut expected = ((u128::from(bandwidth) * elapsed) >> RATE_SHIFT) as u64;
        if self.acked <= expected {
            self.restart(feedback.now);
            expected = 0;
        }
        self.acked += u64::from(feedback.delivered);
        let excess = (self.acked - expected).min(window.into());
        let window = if is_full { EXCESS_ROUNDS } else { 1 };
        self.filter.add(excess, rounds.count, window);
    }

    /// Returns the segments that the window has to allow for.
    pub(super) fn segments(&self, bandwidth: u64) -> u32 {
        let most = (u128::from(bandwidth) * u128::from(MOST_EXCESS)) >> RATE_SHIFT;
        u128::from(self.filter.max()).min(most) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 Mbit/s of payload in segments of 1250 bytes: one segment per millisecond.
    const BANDWIDTH: u64 = (1 << RATE_SHIFT) / 1_000;

    #[test]
    fn a_bandwidth_and_an_rtt_give_window_and_pacing() {
        let bytes = pacing_rate(BANDWIDTH, UNITY, 1250);
        assert!(bytes.abs_diff(1_250_000 * 99 / 100) < 200, "{bytes}");
        assert!(pacing_rate(BANDWIDTH, 5 * UNITY / 4, 1250).abs_diff(bytes * 5 / 4) < 2);
        assert_eq!(volume(BANDWIDTH, Some(50_000), UNITY), 50);
        assert_eq!(volume(BANDWIDTH, Some(50_000), 2 * UNITY), 100);
        assert_eq!(volume(BANDWIDTH, None, UNITY), 10);
        // 1.25 kB are less than two segments; a gigabit per second is a burst of 65 kB.
        assert_eq!(quantum(1_250_000, 1250), 2);
        assert_eq!(quantum(125_000_000, 1250), 52);
    }
}
