//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control; RFC 9331, section 4): DCTCP's law for the
//! Internet.
//!
//! Like DCTCP, it reduces the window by half the average share of marked segments, once per round trip. Four
//! things are different:
//!
//! * Marks are counted by the receiver (AccECN, RFC 9768), so no mark is lost with its acknowledgement.
//! * Segments are paced, because a burst alone fills the shallow queue of L4S.
//! * The window has a fraction. Segments that were not marked increase it, also in a round trip with marks.
//! * It depends less on the RTT: a flow behaves as if its RTT was at least 25 ms. Its rate then grows like
//!   that of a flow with 25 ms, and it reduces its window at most once in this time.
//!
//! The first mark ends slow start. Before it the share counts as 1, so it halves the window. A loss halves
//! the window, too.
//!
//! Deviations from the draft: the independence of the RTT begins at once, not after 500 round trips. The
//! minimum window is 2 segments. Non-goal: the detection of a bottleneck that marks in the classic way.

use super::{Progress, Window};
use crate::tcp::clock::Moment;

/// The value 1 in fixed point, of shares and windows.
const ONE: u64 = 1 << 20;
/// The weight of a round trip in the average is 2^-4.
const WEIGHT_SHIFT: u32 = 4;
/// The RTT that shorter ones are treated as, µs.
const VIRTUAL_RTT: u64 = 25_000;
const MIN_WINDOW: u64 = 2 * ONE;

/// The state of Prague.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Prague {
    /// The average share of marked segments, in units of 1 / `ONE`. `None` before the first mark.
    alpha: Option<u64>,
    /// The segments delivered in this round trip, and how many of them were marked.
    delivered: u64,
    marked: u64,
    /// The round trip is over when this number is acknowledged and this time has come, µs.
    round_end: u64,
    round_until: u64,
    /// Segments delivered since the window was last moved, and how many of them were marked.
    unmarked_pending: u64,
    marked_pending: u64,
    /// The window is not reduced again before this number is acknowledged and this time has come, µs.
    reduced_end: u64,
    reduced_until: u64,
    /// The fraction of the window, in units of 1 / `ONE`.
    fraction: u64,
    /// The sender's first unacknowledged and next number, and the smoothed RTT, µs.
    una: u64,
    next: u64,
    rtt: u64,
}

impl Prague {
    pub(super) fn new(next: u64) -> Prague {
        Prague {
            alpha: None,
            delivered: 0,
            marked: 0,
            round_end: next,
            round_until: 0,
            unmarked_pending: 0,
            marked_pending: 0,
            reduced_end: 0,
            reduced_until: 0,
            fraction: 0,
            una: 0,
            next,
            rtt: VIRTUAL_RTT,
        }
    }

    fn virtual_rtt(&self) -> u64 {
        self.rtt.max(VIRTUAL_RTT)
    }

    /// Handles delivered segments, of which `marked` were marked.
    pub(super) fn on_delivered(
        &mut self,
        (delivered, marked): (u32, u32),
        (una, next): (u64, u64),
        smoothed: Option<u64>,
        now: Moment,
    ) {
        (self.una, self.next) = (una, next);
        self.rtt = smoothed.unwrap_or(VIRTUAL_RTT);
        let marked = u64::from(marked);
        let unmarked = u64::from(delivered).saturating_sub(marked);
        self.unmarked_pending += unmarked;
        self.marked_pending += marked;
        self.delivered += unmarked + marked;
        self.marked += marked;
        if una < self.round_end || now.micros < self.round_until {
            return;
        }
        if let Some(alpha) = &mut self.alpha {
            let share = self.marked * ONE / self.delivered.max(1);
            *alpha = *alpha - (*alpha >> WEIGHT_SHIFT) + (share >> WEIGHT_SHIFT);
        }
        (self.delivered, self.marked) = (0, 0);
        self.round_end = next;
        self.round_until = now.micros + self.virtual_rtt();
    }

    /// Moves the window for what was delivered. Returns whether a mark has reduced it.
    pub(super) fn move_window(&mut self, progress: Progress, now: Moment, window: &mut Window) -> bool {
        let unmarked = std::mem::take(&mut self.unmarked_pending);
        let marked = std::mem::take(&mut self.marked_pending);
        let mut size = u64::from(window.size) * ONE + self.fraction;
        if progress.limited && window.in_slow_start() {
            let limit = u64::from(window.threshold) * ONE;
            size = (size + unmarked * ONE).min(limit.max(size));
        } else if progress.limited {
            // (RTT / virtual RTT)^2 segments per round trip.
            let ratio = self.rtt * ONE / self.virtual_rtt();
            let growth = u128::from(unmarked) * u128::from(ratio) * u128::from(ratio);
            size += (growth / u128::from(size)) as u64;
        }
        let reduces = marked > 0 && self.una >= self.reduced_end && now.micros >= self.reduced_until;
        if reduces {
            let alpha = *self.alpha.get_or_insert(ONE);
            let less = u128::from(size) * u128::from(alpha) / u128::from(2 * ONE);
            size = (size - less as u64).max(MIN_WINDOW);
            window.threshold = (size / ONE) as u32;
            self.reduced_end = self.next;
            self.reduced_until = now.micros + self.virtual_rtt();
        }
        window.size = (size / ONE) as u32;
        self.fraction = size % ONE;
        reduces
    }

    /// Returns the threshold after a loss, which halves the window.
    pub(super) fn reduced_threshold(&mut self, window: u32) -> u32 {
        self.fraction = 0;
        (window / 2).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::clock::Clock;
    use fairgate::Time;

    /// Lets round trips of `rtt` µs pass, in which every `each`th segment is marked. Returns the window after
    /// each round trip.
    fn rounds(prague: &mut Prague, window: &mut Window, rtt: u64, count: u64, each: Option<u32>) -> Vec<f64> {
        let clock = Clock::new(1000);
        let (mut number, mut sent) = (0u64, 0u32);
        let start = prague.round_until.max(prague.reduced_until) + rtt;
        (0..count)
            .map(|round| {
                let size = window.size;
                for _ in 0..size {
                    number += 1;
                    sent += 1;
                    let marked = u32::from(each.is_some_and(|each| sent.is_multiple_of(each)));
                    let now = clock.read(Time::from_micros(start + round * rtt));
                    let next = number + u64::from(size);
                    prague.on_delivered((1, marked), (number, next), Some(rtt), now);
                    let progress = Progress {
                        delivered: 1,
                        outstanding: size,
                        limited: true,
                    };
                    prague.move_window(progress, now, window);
                }
                f64::from(window.size) + prague.fraction as f64 / ONE as f64
            })
            .collect()
    }

    #[test]
    fn without_marks_the_window_grows_by_the_square_of_the_rtt() {
        for (rtt, growth) in [(25_000, 1.0), (100_000, 1.0), (12_500, 0.25), (2_500, 0.01)] {
            let mut window = Window::new(100);
            window.threshold = 100;
            let mut prague = Prague::new(0);
            let sizes = rounds(&mut prague, &mut window, rtt, 50, None);
            let measured = (sizes[49] - sizes[9]) / 40.0;
            assert!((measured - growth).abs() < 0.03 * growth, "{rtt}: {measured}");
        }
    }

    #[test]
    fn the_first_mark_halves_the_window_and_ends_slow_start() {
        let mut window = Window::new(100);
        let mut prague = Prague::new(0);
        assert!(window.in_slow_start());
        rounds(&mut prague, &mut window, 50_000, 1, Some(100));
        // 99 segments have doubled the window, and the hundredth was marked.
        assert_eq!(window.size, 99);
        assert!(!window.in_slow_start());
    }

    /// In equilibrium, growth and reduction are equal: with a share p of marks, alpha = p. The window gains
    /// 1 - p, and loses W p / 2, per round trip. So W = 2 (1 - p) / p.
    #[test]
    fn the_window_settles_at_two_over_the_share_of_marks() {
        for each in [20, 50] {
            let mut window = Window::new(each);
            window.threshold = each;
            let mut prague = Prague::new(0);
            let sizes = rounds(&mut prague, &mut window, 50_000, 600, Some(each));
            let mean = sizes[300..].iter().sum::<f64>() / 300.0;
            let expected = 2.0 * f64::from(each - 1);
            // The window is whole segments in flight: up to one less. A round trip sees one mark more or
            // less.
            assert!(
                (mean - expected).abs() < 0.15 * expected,
                "1 of {each}: {mean} for {expected}"
            );
        }
    }
}
