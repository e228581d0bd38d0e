//! LEDBAT (RFC 6817): a sender that uses only the capacity that others leave. It keeps the queueing delay
//! that it causes at a target, and so yields to every sender that causes a longer queue.
//!
//! While nothing is queued, the window grows by one segment per round trip. It grows more slowly the nearer
//! the queueing delay is to the target, and shrinks in the same way above the target. It never exceeds the
//! outstanding segments by more than one. A loss or a mark halves it, once per round trip. During the
//! reduction, the delay does not change it.
//!
//! There is no slow start, neither at the start nor after a timeout, because the RFC has none. The RFC's
//! initial window is 2 segments; here it is the initial window of the connection.

use super::queueing::Queueing;
use super::{Progress, Window};
use crate::tcp::clock::Moment;

/// The target of the queueing delay, ms (`TARGET`, section 2.5: 100 ms or less).
const TARGET: i64 = 100;
/// The segments by which the window may exceed the outstanding segments (`ALLOWED_INCREASE`).
const ALLOWED_INCREASE: i64 = 1;
/// The minimum window, segments (`MIN_CWND`).
const MIN_WINDOW: i64 = 2;
/// One segment in fixed point.
const SEGMENT: i64 = 1 << 20;

/// The state of LEDBAT.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Ledbat {
    queueing: Queueing,
    /// The fractional part of the window, in units of 1 / `SEGMENT`.
    fraction: i64,
}

impl Ledbat {
    pub(super) fn new() -> Ledbat {
        Ledbat {
            queueing: Queueing::new(),
            fraction: 0,
        }
    }

    /// Handles the one-way delay of a segment, by the clocks of the two ends, ms.
    pub(super) fn on_delay(&mut self, millis: u32, now: Moment) {
        self.queueing.observe(millis, now);
    }

    /// Changes the window by section 2.4.2 with a `GAIN` of 1, the maximum. Without a queue it grows like
    /// NewReno.
    pub(super) fn move_window(&mut self, progress: Progress, window: &mut Window) {
        let off_target = TARGET - i64::from(self.queueing.millis());
        let size = i64::from(window.size);
        let change = off_target * i64::from(progress.delivered) * SEGMENT / (TARGET * size);
        let most = i64::from(progress.outstanding) + ALLOWED_INCREASE;
        let moved = (size * SEGMENT + self.fraction + change)
            .min(most * SEGMENT)
            .max(MIN_WINDOW * SEGMENT);
        window.size = (moved / SEGMENT) as u32;
        self.fraction = moved % SEGMENT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Creates the state for a path of 50 ms with a queue of `millis`.
    fn with_queue(millis: u32) -> Ledbat {
        let mut ledbat = Ledbat::new();
        for delay in [50, 50 + millis, 50 + millis, 50 + millis, 50 + millis] {
            ledbat.on_delay(delay, Moment::default());
        }
        ledbat
    }

    /// Simulates a round trip with a full window, in acknowledgements of `each` segments.
    fn round(ledbat: &mut Ledbat, window: &mut Window, each: u32) {
        for _ in 0..window.size / each {
            let progress = Progress {
                delivered: each,
                outstanding: window.size,
                limited: true,
            };
            ledbat.move_window(progress, window);
        }
    }

    /// In a round trip the window moves by `(TARGET - queueing) / TARGET` segments.
    #[test]
    fn a_round_trip_changes_the_window_by_the_distance_to_the_target() {
        for (queue, expected) in [(0, 110), (50, 105), (100, 100), (150, 95), (200, 90)] {
            let mut ledbat = with_queue(queue);
            let mut window = Window::new(100);
            for _ in 0..10 {
                round(&mut ledbat, &mut window, 1);
            }
            assert!(
                window.size.abs_diff(expected) <= 1,
                "{} after {queue} ms",
                window.size
            );
        }
    }

    #[test]
    fn the_minimum_window_is_two_segments() {
        let mut ledbat = with_queue(10_000);
        let mut window = Window::new(30);
        for _ in 0..10 {
            round(&mut ledbat, &mut window, 2);
        }
        assert_eq!(window.size, 2);
    }

    #[test]
    fn an_unused_window_is_reduced() {
        let mut ledbat = with_queue(0);
        let mut window = Window::new(100);
        let progress = Progress {
            delivered: 1,
            outstanding: 10,
            limited: false,
        };
        ledbat.move_window(progress, &mut window);
        assert_eq!(window.size, 11);
    }

    proptest! {
        /// Compares with the RFC's pseudocode in floating point.
        #[test]
        fn follows_the_pseudocode(
            queue in 0u32..1000,
            initial in 2u32..200,
            acks in prop::collection::vec((1u32..20, 0u32..300), 1..300),
        ) {
            let mut ledbat = with_queue(queue);
            let mut window = Window::new(initial);
            let mut cwnd = f64::from(initial);
            let off_target = (100.0 - f64::from(queue)) / 100.0;
            for (delivered, outstanding) in acks {
                let progress = Progress { delivered, outstanding, limited: outstanding >= window.size };
                // The pseudocode divides by whole segments, because all windows here are whole segments.
                let change = off_target * f64::from(delivered) / f64::from(window.size);
                cwnd = (cwnd + change).min(f64::from(outstanding) + 1.0).max(2.0);
                ledbat.move_window(progress, &mut window);
                let size = f64::from(window.size) + ledbat.fraction as f64 / SEGMENT as f64;
                prop_assert!((size - cwnd).abs() < 1e-3, "{size} {cwnd}");
            }
        }
    }
}
