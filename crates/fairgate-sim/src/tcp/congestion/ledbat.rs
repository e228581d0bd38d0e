//! LEDBAT (RFC 6817): a sender that wants what others leave over. It holds the delay that it adds to the path at a target, and so gives
//! way to whoever makes a longer queue.
//!
//! The window grows by a segment a round trip while nothing is queued, less the nearer the queueing delay is to the target, and shrinks
//! likewise above it; never by more than that segment above what is outstanding. A loss or a mark halves it, once a round trip, during
//! which the delay does not move it.
//!
//! There is no slow start, neither at first nor after a time-out: the RFC has none. Its initial window is 2 segments; here it is the
//! connection's.

use super::queueing::Queueing;
use super::{Progress, Window};
use crate::tcp::clock::Moment;

/// Queueing delay that is aimed for, ms (`TARGET`, section 2.5: 100 ms or less).
const TARGET: i64 = 100;
/// Segments that the window may be above what is outstanding (`ALLOWED_INCREASE`).
const ALLOWED_INCREASE: i64 = 1;
/// Least window, segments (`MIN_CWND`).
const MIN_WINDOW: i64 = 2;
/// A segment, in fixed point.
const SEGMENT: i64 = 1 << 20;

/// The state.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Ledbat {
    queueing: Queueing,
    /// What the window is above whole segments, of `SEGMENT`.
    fraction: i64,
}

impl Ledbat {
    pub(super) fn new() -> Ledbat {
        Ledbat {
            queueing: Queueing::new(),
            fraction: 0,
        }
    }

    /// A segment took `millis` one way, as far as the clocks of the two ends agree.
    pub(super) fn on_delay(&mut self, millis: u32, now: Moment) {
        self.queueing.observe(millis, now);
    }

    /// Section 2.4.2, with a `GAIN` of 1, the largest there may be: NewReno's growth where there is no queue.
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

    /// A path of 50 ms, and a queue on top of it.
    fn with_queue(millis: u32) -> Ledbat {
        let mut ledbat = Ledbat::new();
        for delay in [50, 50 + millis, 50 + millis, 50 + millis, 50 + millis] {
            ledbat.on_delay(delay, Moment::default());
        }
        ledbat
    }

    /// A round trip in which the window is full, in acknowledgements of so many segments.
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
    fn a_round_trip_moves_the_window_by_how_far_the_target_is() {
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
    fn two_segments_are_the_least() {
        let mut ledbat = with_queue(10_000);
        let mut window = Window::new(30);
        for _ in 0..10 {
            round(&mut ledbat, &mut window, 2);
        }
        assert_eq!(window.size, 2);
    }

    #[test]
    fn what_is_not_used_is_given_up() {
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
        /// The RFC's pseudocode in floating point.
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
                // It divides by whole segments, as all windows here are.
                let change = off_target * f64::from(delivered) / f64::from(window.size);
                cwnd = (cwnd + change).min(f64::from(outstanding) + 1.0).max(2.0);
                ledbat.move_window(progress, &mut window);
                let size = f64::from(window.size) + ledbat.fraction as f64 / SEGMENT as f64;
                prop_assert!((size - cwnd).abs() < 1e-3, "{size} {cwnd}");
            }
        }
    }
}
