//! The congestion window: the common part of all congestion controls, and the choice between them.
//!
//! There are two kinds. Most change the window when an acknowledgement, a mark or a loss tells them to, and
//! the sender spreads reductions over a round trip. Those that model the path (BBR) and the fixed window own
//! the window: they set it after each acknowledgement, and the sender does not.

mod bbr;
mod bbr3;
mod cubic;
mod cubic_root;
mod dctcp;
mod hystart;
mod ledbat;
mod max_filter;
mod path;
mod prague;
mod queueing;

use bbr::Bbr;
use bbr3::Bbr3;
use cubic::Cubic;
use dctcp::Dctcp;
use ledbat::Ledbat;
pub(super) use path::{Feedback, Repair};
use prague::Prague;

use super::clock::{Clock, Moment};
use super::config::{Config, CongestionControl};
use super::pacing::{AVOIDANCE_PERCENT, Pacer, SLOW_START_PERCENT};

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
pub(super) enum CongestionState {
    /// NewReno has no state besides the window.
    Reno,
    /// CUBIC.
    Cubic(Cubic),
    /// DCTCP.
    Dctcp(Dctcp),
    /// LEDBAT.
    Ledbat(Ledbat),
    /// A constant window, segments.
    Fixed(u32),
    /// BBR version 1.
    Bbr(Box<Bbr>),
    /// BBR version 3.
    Bbr3(Box<Bbr3>),
    /// TCP Prague.
    Prague(Box<Prague>),
}

/// The reason for a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Mark,
    Loss,
}

impl CongestionState {
    pub(super) fn new(config: &Config, clock: Clock, now: Moment, next: u64) -> CongestionState {
        if let Some(window) = config.fixed_window {
            return CongestionState::Fixed(window);
        }
        match config.congestion_control {
            CongestionControl::Reno => CongestionState::Reno,
            CongestionControl::Cubic => CongestionState::Cubic(Cubic::new(config, clock, now, next)),
            CongestionControl::Dctcp => CongestionState::Dctcp(Dctcp::new(next)),
            CongestionControl::Ledbat => CongestionState::Ledbat(Ledbat::new()),
            CongestionControl::Bbr => CongestionState::Bbr(Box::new(Bbr::new(config, now))),
            CongestionControl::Bbr3 => CongestionState::Bbr3(Box::new(Bbr3::new(config, now))),
            CongestionControl::Prague => CongestionState::Prague(Box::new(Prague::new(next))),
        }
    }

    /// Returns whether the congestion control needs samples of the delivery rate.
    pub(super) fn needs_rates(config: &Config) -> bool {
        config.fixed_window.is_none()
            && matches!(
                config.congestion_control,
                CongestionControl::Bbr | CongestionControl::Bbr3
            )
    }

    /// Returns whether the congestion control owns the window.
    #[inline]
    pub(super) fn owns_window(&self) -> bool {
        matches!(
            self,
            CongestionState::Fixed(_) | CongestionState::Bbr(_) | CongestionState::Bbr3(_)
        )
    }

    /// Sets the first pacing rate. `rtt`: that of the handshake, µs, if it was measured.
    pub(super) fn begin(&mut self, rtt: Option<u64>, window: &mut Window, mss: u32, pacer: &mut Pacer) {
        match self {
            CongestionState::Fixed(size) => window.size = *size,
            CongestionState::Bbr(bbr) => bbr.begin(rtt, window, mss, pacer),
            CongestionState::Bbr3(bbr) => bbr.begin(rtt, window, mss, pacer),
            _ => self.pace(rtt, 0, window, mss, pacer),
        }
    }

    /// Sets window and pacing rate after an acknowledgement, if the congestion control owns the window.
    /// Returns true if the sender sends less than the path could deliver, on purpose.
    pub(super) fn on_feedback(
        &mut self,
        feedback: &Feedback<'_>,
        window: &mut Window,
        pacer: &mut Pacer,
    ) -> bool {
        match self {
            CongestionState::Bbr(bbr) => return bbr.on_feedback(feedback, window, pacer),
            CongestionState::Bbr3(bbr) => return bbr.on_feedback(feedback, window, pacer),
            CongestionState::Fixed(size) => window.size = *size,
            _ => {}
        }
        false
    }

    /// Sets the pacing rate by window and RTT, for congestion controls that do not set it themselves.
    pub(super) fn pace(
        &self,
        smoothed: Option<u64>,
        outstanding: u32,
        window: &Window,
        mss: u32,
        pacer: &mut Pacer,
    ) {
        let Some(rtt) = smoothed.filter(|_| pacer.is_on()) else {
            return;
        };
        let percent = match self {
            _ if window.size < window.threshold / 2 => SLOW_START_PERCENT,
            // A rate above the window's would fill the shallow queue of L4S.
            CongestionState::Prague(_) => 100,
            _ => AVOIDANCE_PERCENT,
        };
        let bytes = u64::from(window.size.max(outstanding)) * u64::from(mss);
        pacer.set_rate(bytes * percent * 10_000 / rtt.max(1));
    }

    /// Handles a measured delay.
    pub(super) fn on_sample(&mut self, sample: Sample, now: Moment, window: &mut Window) {
        if let CongestionState::Cubic(cubic) = self {
            cubic.on_sample(sample, now, window);
        }
    }

    /// Handles the one-way delay of an acknowledged segment, by the clocks of the two ends, ms.
    pub(super) fn on_one_way_delay(&mut self, millis: u32, now: Moment) {
        if let CongestionState::Ledbat(ledbat) = self {
            ledbat.on_delay(millis, now);
        }
    }

    /// Handles the number of segments that an acknowledgement reports as delivered, and how many of them it
    /// reports as marked. `numbers` are the first unacknowledged and the next one.
    pub(super) fn on_delivered(
        &mut self,
        (delivered, marked): (u32, u32),
        numbers: (u64, u64),
        smoothed: Option<u64>,
        now: Moment,
    ) {
        match self {
            CongestionState::Dctcp(dctcp) => dctcp.on_delivered(delivered, marked > 0, numbers.0, numbers.1),
            CongestionState::Prague(prague) => {
                prague.on_delivered((delivered, marked), numbers, smoothed, now)
            }
            _ => {}
        }
    }

    /// Grows the window if it limits the sender. LEDBAT and Prague may also reduce it, and decide themselves.
    /// Returns whether a mark has reduced it.
    pub(super) fn on_progress(&mut self, progress: Progress, now: Moment, window: &mut Window) -> bool {
        match self {
            CongestionState::Ledbat(ledbat) => ledbat.move_window(progress, window),
            CongestionState::Prague(prague) => return prague.move_window(progress, now, window),
            _ if !progress.limited => {}
            CongestionState::Reno | CongestionState::Dctcp(_) => {
                window.grow(progress.delivered, |size, _| size)
            }
            CongestionState::Cubic(cubic) => window.grow(progress.delivered, |size, left| {
                cubic.per_increase(left, now, size)
            }),
            CongestionState::Fixed(_) | CongestionState::Bbr(_) | CongestionState::Bbr3(_) => {}
        }
        false
    }

    /// Returns the threshold after a loss or mark. A congestion control that owns the window remembers it,
    /// and keeps the threshold.
    pub(super) fn reduced_threshold(&mut self, window: &Window, signal: Signal) -> u32 {
        let size = window.size;
        match self {
            CongestionState::Cubic(cubic) => cubic.reduced_threshold(size),
            CongestionState::Dctcp(dctcp) if signal == Signal::Mark => dctcp.reduced_threshold(size),
            CongestionState::Prague(prague) => prague.reduced_threshold(size),
            CongestionState::Reno | CongestionState::Dctcp(_) | CongestionState::Ledbat(_) => {
                (size / 2).max(2)
            }
            CongestionState::Fixed(_) => window.threshold,
            CongestionState::Bbr(bbr) => {
                bbr.save_window(size);
                window.threshold
            }
            CongestionState::Bbr3(bbr) => {
                bbr.save_window(size);
                window.threshold
            }
        }
    }

    /// Handles that a reduction was unnecessary, if the congestion control owns the window.
    pub(super) fn on_undo(&mut self, total_delivered: u64, now: Moment, window: &mut Window) {
        match self {
            CongestionState::Bbr(bbr) => bbr.on_undo(),
            CongestionState::Bbr3(bbr) => bbr.on_undo(now, total_delivered, window),
            _ => {}
        }
    }

    /// Resets the state after a timeout, which has set the window to one segment.
    pub(super) fn on_timeout(&mut self, now: Moment, next: u64, window: &mut Window) {
        match self {
            CongestionState::Cubic(cubic) => cubic.restart(now, next),
            CongestionState::Bbr(bbr) => bbr.on_timeout(),
            CongestionState::Bbr3(bbr) => bbr.on_timeout(),
            CongestionState::Fixed(size) => window.size = *size,
            _ => {}
        }
    }

    /// Handles that the sender restarts with nothing in flight after the application was idle.
    pub(super) fn on_restart(
        &mut self,
        total_delivered: u64,
        mss: u32,
        now: Moment,
        window: &mut Window,
        pacer: &mut Pacer,
    ) {
        match self {
            CongestionState::Bbr(bbr) => bbr.on_restart(now, mss, window, pacer),
            CongestionState::Bbr3(bbr) => bbr.on_restart(now, total_delivered, mss, window, pacer),
            _ => {}
        }
    }

    /// Handles the start of a transmission with nothing in flight. `idle_since` is the tick of the last
    /// segment sent.
    pub(super) fn on_transmission_start(&mut self, idle_since: u64, now: Moment) {
        if let CongestionState::Cubic(cubic) = self {
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
        CongestionState::Reno.on_progress(unused, Moment::default(), &mut window);
        assert_eq!((window.size, window.credit), (10, 0));
    }

    #[test]
    fn slow_start_ends_exactly_at_the_threshold() {
        let mut window = Window::new(10);
        window.threshold = 13;
        let mut reno = CongestionState::Reno;
        reno.on_progress(progress(5, &window), Moment::default(), &mut window);
        assert_eq!((window.size, window.credit), (13, 2));
        assert!(!window.in_slow_start());
    }

    #[test]
    fn reno_grows_by_one_segment_per_window() {
        let mut window = Window::new(10);
        window.threshold = 10;
        let mut reno = CongestionState::Reno;
        for _ in 0..10 {
            reno.on_progress(progress(1, &window), Moment::default(), &mut window);
        }
        assert_eq!(window.size, 11);
        assert_eq!(reno.reduced_threshold(&window, Signal::Loss), 5);
        window.size = 3;
        assert_eq!(reno.reduced_threshold(&window, Signal::Mark), 2);
    }
}
