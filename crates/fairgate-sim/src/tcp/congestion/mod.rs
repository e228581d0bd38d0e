//! How the congestion window moves: what NewReno, CUBIC, DCTCP and LEDBAT have in common, and the choice between them.

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

/// "No threshold yet": slow start goes on until something is lost.
pub(super) const INFINITE: u32 = 0x7fff_ffff;

/// The congestion window and its slow-start threshold, segments.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Congestion window.
    pub(super) size: u32,
    /// Slow start below, congestion avoidance from here.
    pub(super) threshold: u32,
    /// Segments acknowledged towards the next increase.
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

    /// Slow start for `acked` segments; then by a segment for as many as `per_increase` says, given the window and those left over.
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

    /// Grows by a segment for each acknowledged, up to the threshold. Returns the acknowledged segments left over.
    fn slow_start(&mut self, acked: u32) -> u32 {
        let size = self.size.saturating_add(acked).min(self.threshold);
        let left = acked - (size - self.size);
        self.size = size;
        left
    }

    /// Grows by a segment for each `per_increase` acknowledged.
    fn increase_additively(&mut self, per_increase: u32, acked: u32) {
        // Credit gathered at a larger `per_increase` is applied gently.
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

/// What an acknowledgement tells the congestion control besides how much it acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// RTT of the newest segment delivered, µs.
    pub(super) rtt: u64,
    /// The sender's first unacknowledged number.
    pub(super) una: u64,
    /// The sender's next number.
    pub(super) next: u64,
}

/// What an acknowledgement of new data lets the window do, outside of a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Segments that it says were delivered.
    pub(super) delivered: u32,
    /// Segments outstanding before it.
    pub(super) outstanding: u32,
    /// The window is what limits the sender.
    pub(super) limited: bool,
}

/// The algorithm and its state.
#[derive(Clone, Debug)]
pub(super) enum Control {
    /// NewReno keeps nothing besides the window.
    Reno,
    /// CUBIC.
    Cubic(Cubic),
    /// DCTCP.
    Dctcp(Dctcp),
    /// LEDBAT.
    Ledbat(Ledbat),
}

/// Why the window comes down.
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

    /// Sees a measured delay.
    pub(super) fn on_sample(&mut self, sample: Sample, now: Moment, window: &mut Window) {
        if let Control::Cubic(cubic) = self {
            cubic.on_sample(sample, now, window);
        }
    }

    /// Sees how long an acknowledged segment took one way, by the clocks of the two ends, ms.
    pub(super) fn on_one_way_delay(&mut self, millis: u32, now: Moment) {
        if let Control::Ledbat(ledbat) = self {
            ledbat.on_delay(millis, now);
        }
    }

    /// Sees how many segments an acknowledgement says were delivered, and whether it echoes a mark.
    pub(super) fn on_delivered(&mut self, delivered: u32, marked: bool, una: u64, next: u64) {
        if let Control::Dctcp(dctcp) = self {
            dctcp.on_delivered(delivered, marked, una, next);
        }
    }

    /// Grows the window if it is what limits the sender; LEDBAT moves it either way, and has a bound of its own.
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

    /// The threshold after a loss or mark.
    pub(super) fn reduced_threshold(&mut self, window: u32, signal: Signal) -> u32 {
        match self {
            Control::Cubic(cubic) => cubic.reduced_threshold(window),
            Control::Dctcp(dctcp) if signal == Signal::Mark => dctcp.reduced_threshold(window),
            Control::Reno | Control::Dctcp(_) | Control::Ledbat(_) => (window / 2).max(2),
        }
    }

    /// Starts over after a time-out.
    pub(super) fn on_timeout(&mut self, now: Moment, next: u64) {
        if let Control::Cubic(cubic) = self {
            cubic.restart(now, next);
        }
    }

    /// Transmission begins again with nothing in flight; `idle_since` is the tick of the last segment sent.
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
    fn reno_grows_by_one_each_window() {
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
