//! The congestion window: the common part of NewReno, CUBIC, DCTCP and LEDBAT, and the choice between them.

mod cubic;
mod cubic_root;
mod dctcp;
mod hystart;
mod ledbat;
mod queueing;

use cubic::Cubic;
use dctcp::Dctcp;
use ledbat::Ledbat;

use super::clock::{Clock, Moment};
use super::config::{Config, CongestionControl};

/// The threshold before the first reduction. Slow start lasts until something is lost.
pub(super) const INFINITE: u32 = 0x7fff_ffff;

/// The congestion window and its slow-start threshold, segments.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The congestion window.
    pub(super) size: u32,
    /// Below this it is slow start, from here on congestion avoidance.
    pub(super) threshold: u32,
    /// The segments acknowledged towards the next increase.
    pub(super) credit: u32,
}

impl Window {
    pub(super) fn new(initial: u32) -> Window {
        Window {
            size: initial,
            threshold: INFINITE,
            credit: 0,
        }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Grows by slow start for `acked` segments. After slow start, grows by one segment per
    /// `per_increase(window, remaining)` of the remaining segments.
    fn grow(&mut self, acked: u32, per_increase: impl FnOnce(u32, u32) -> u32) {
        let mut left = acked;
        if self.in_slow_start() {
            left = self.slow_start(acked);
            if left == 0 {
                return;
            }
        }
        let per_increase = per_increase(self.size, left);
        self.increase_additively(per_increase, left);
    }

    /// Grows by one segment per acknowledged segment, up to the threshold. Returns the remaining acknowledged
    /// segments.
    fn slow_start(&mut self, acked: u32) -> u32 {
        let size = self.size.saturating_add(acked).min(self.threshold);
        let left = acked - (size - self.size);
        self.size = size;
        left
    }

    /// Grows by one segment per `per_increase` acknowledged segments.
    fn increase_additively(&mut self, per_increase: u32, acked: u32) {
        // Credit gathered with a larger `per_increase` gives only one segment.
        if self.credit >= per_increase {
            self.credit = 0;
            self.size += 1;
        }
        self.credit += acked;
        if self.credit >= per_increase {
            let steps = self.credit / per_increase;
            self.credit -= steps * per_increase;
            self.size += steps;
        }
    }
}

/// The measurements of an acknowledgement for the congestion control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The RTT of the newest delivered segment, µs.
    pub(super) rtt: u64,
    /// The sender's first unacknowledged number.
    pub(super) una: u64,
    /// The sender's next number.
    pub(super) next: u64,
}

/// What an acknowledgement of new data contributes to the growth of the window, outside of a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// The number of segments that it reports as delivered.
    pub(super) delivered: u32,
    /// The number of segments outstanding before it.
    pub(super) outstanding: u32,
    /// Whether the window limits the sender.
    pub(super) limited: bool,
}

/// The congestion control algorithm and its state.
#[derive(Clone, Debug)]
pub(super) enum Control {
    /// NewReno has no state besides the window.
    Reno,
    /// CUBIC.
    Cubic(Cubic),
    /// DCTCP.
    Dctcp(Dctcp),
    /// LEDBAT.
    Ledbat(Ledbat),
}

/// The reason for a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Mark,
    Loss,
}

impl Control {
    pub(super) fn new(config: &Config, clock: Clock, now: Moment, next: u64) -> Control {
        match config.congestion_control {
            CongestionControl::Reno => Control::Reno,
            CongestionControl::Cubic => Control::Cubic(Cubic::new(config, clock, now, next)),
            CongestionControl::Dctcp => Control::Dctcp(Dctcp::new(next)),
            CongestionControl::Ledbat => Control::Ledbat(Ledbat::new()),
        }
    }

    /// Handles a measured delay.
    pub(super) fn on_sample(&mut self, sample: Sample, now: Moment, window: &mut Window) {
        if let Control::Cubic(cubic) = self {
            cubic.on_sample(sample, now, window);
        }
    }

    /// Handles the one-way delay of an acknowledged segment, by the clocks of the two ends, ms.
    pub(super) fn on_one_way_delay(&mut self, millis: u32, now: Moment) {
        if let Control::Ledbat(ledbat) = self {
            ledbat.on_delay(millis, now);
        }
    }

    /// Handles the number of segments that an acknowledgement reports as delivered, and whether it echoes a
    /// mark.
    pub(super) fn on_delivered(&mut self, delivered: u32, marked: bool, una: u64, next: u64) {
        if let Control::Dctcp(dctcp) = self {
            dctcp.on_delivered(delivered, marked, una, next);
        }
    }

    /// Grows the window if it limits the sender. LEDBAT may also reduce it, and has its own bound.
    pub(super) fn on_progress(&mut self, progress: Progress, now: Moment, window: &mut Window) {
        match self {
            Control::Ledbat(ledbat) => ledbat.move_window(progress, window),
            _ if !progress.limited => {}
            Control::Reno | Control::Dctcp(_) => window.grow(progress.delivered, |size, _| size),
            Control::Cubic(cubic) => window.grow(progress.delivered, |size, left| {
                cubic.per_increase(left, now, size)
            }),
        }
    }

    /// Returns the threshold after a loss or mark.
    pub(super) fn reduced_threshold(&mut self, window: u32, signal: Signal) -> u32 {
        match self {
            Control::Cubic(cubic) => cubic.reduced_threshold(window),
            Control::Dctcp(dctcp) if signal == Signal::Mark => dctcp.reduced_threshold(window),
            Control::Reno | Control::Dctcp(_) | Control::Ledbat(_) => (window / 2).max(2),
        }
    }

    /// Resets the state after a timeout.
    pub(super) fn on_timeout(&mut self, now: Moment, next: u64) {
        if let Control::Cubic(cubic) = self {
            cubic.restart(now, next);
        }
    }

    /// Handles the start of a transmission with nothing in flight. `idle_since` is the tick of the last
    /// segment sent.
    pub(super) fn on_transmission_start(&mut self, idle_since: u64, now: Moment) {
        if let Control::Cubic(cubic) = self {
            cubic.on_transmission_start(idle_since, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(delivered: u32, window: &Window) -> Progress {
        Progress {
            delivered,
            outstanding: window.size,
            limited: true,
        }
    }

    #[test]
    fn a_window_that_is_not_full_does_not_grow() {
        let mut window = Window::new(10);
        let unused = Progress {
            limited: false,
            ..progress(5, &window)
        };
        Control::Reno.on_progress(unused, Moment::default(), &mut window);
        assert_eq!((window.size, window.credit), (10, 0));
    }

    #[test]
    fn slow_start_ends_exactly_at_the_threshold() {
        let mut window = Window::new(10);
        window.threshold = 13;
        let mut reno = Control::Reno;
        reno.on_progress(progress(5, &window), Moment::default(), &mut window);
        assert_eq!((window.size, window.credit), (13, 2));
        assert!(!window.in_slow_start());
    }

    #[test]
    fn reno_grows_by_one_segment_per_window() {
        let mut window = Window::new(10);
        window.threshold = 10;
        let mut reno = Control::Reno;
        for _ in 0..10 {
            reno.on_progress(progress(1, &window), Moment::default(), &mut window);
        }
        assert_eq!(window.size, 11);
        assert_eq!(reno.reduced_threshold(11, Signal::Loss), 5);
        assert_eq!(reno.reduced_threshold(3, Signal::Mark), 2);
    }
}
