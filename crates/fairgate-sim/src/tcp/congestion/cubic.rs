//! CUBIC (RFC 9438) in Linux's integer arithmetic.
//!
//! After a loss at window W_max, the window follows W(t) = C (t - K)^3 + W_max. K is chosen so that W(0) is
//! the reduced window, 0.7 W_max. Growth is fast at first, slow near the old maximum, and fast again beyond
//! it. It depends on the time since the loss and not on the RTT. If Reno would have a larger window, the
//! window follows Reno ("TCP friendliness").
//!
//! Units: time is in 2^-10 s. C = 0.4 is 410 / 1024, with the curve evaluated at the end of the coming round
//! trip. beta = 0.7 is 717 / 1024. Deviation from Linux: the cube root is exact, while Linux's is off by up
//! to 0.2 %.

use super::cubic_root::cubic_root;
use super::hystart::HyStart;
use super::{Sample, Window};
use crate::tcp::clock::{Clock, Moment};
use crate::tcp::config::Config;

/// The unit of beta.
const SCALE: u32 = 1024;
/// The share of the window that is kept after a loss: 717 / 1024, about 0.7.
const BETA: u32 = 717;
/// The binary logarithm of the number of time units per second.
const TIME_SHIFT: u32 = 10;
/// C = 0.4 in 1024ths.
const C: u64 = 410;
/// The number of acknowledged segments after which Reno's window grows by one, per segment of window, in
/// eighths: (1 + beta) / (3 (1 - beta)). With it, Reno with beta = 0.7 has the same average window.
const FRIENDLY_EIGHTHS: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);

/// The state of CUBIC between losses.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Cubic {
    clock: Clock,
    hz: u64,
    hystart: Option<HyStart>,
    /// The number of acknowledged segments per increase by one.
    per_increase: u32,
    /// The window before the last reduction. It is lowered further if it was below the previous one (fast
    /// convergence).
    last_max: u32,
    /// The window and tick at the last evaluation of the curve.
    last_window: u32,
    last_time: u64,
    /// The window of the plateau.
    origin: u32,
    /// The time at which the plateau is reached, in 2^-10 s after the epoch.
    k: u64,
    /// The minimum RTT, µs. It is 0 before the first measurement.
    delay_min: u64,
    /// The tick at which the curve begins. `None` after a reduction until the window grows again.
    epoch: Option<u64>,
    /// The segments acknowledged since the epoch, for the comparison with Reno.
    acked: u32,
    /// The window that Reno would have.
    reno_window: u32,
}

impl Cubic {
    pub(super) fn new(config: &Config, clock: Clock, now: Moment, next: u64) -> Cubic {
        let hystart = config.hystart.then(|| HyStart::new(now, next));
        Cubic::blank(clock, u64::from(config.hz), hystart)
    }

    fn blank(clock: Clock, hz: u64, hystart: Option<HyStart>) -> Cubic {
        Cubic {
            clock,
            hz,
            hystart,
            per_increase: 0,
            last_max: 0,
            last_window: 0,
            last_time: 0,
            origin: 0,
            k: 0,
            delay_min: 0,
            epoch: None,
            acked: 0,
            reno_window: 0,
        }
    }

    /// Resets the state after a timeout.
    pub(super) fn restart(&mut self, now: Moment, next: u64) {
        let hystart = self.hystart.is_some().then(|| HyStart::new(now, next));
        *self = Cubic::blank(self.clock, self.hz, hystart);
    }

    pub(super) fn on_sample(&mut self, sample: Sample, now: Moment, window: &mut Window) {
        // Delays right after a fast recovery are caused by the recovery and not by the path.
        if self.epoch.is_some_and(|epoch| now.jiffies - epoch < self.hz) {
            return;
        }
        let delay = sample.rtt.max(1);
        if self.delay_min == 0 || self.delay_min > delay {
            self.delay_min = delay;
        }
        if let Some(hystart) = &mut self.hystart
            && window.in_slow_start()
            && hystart.is_time_to_leave(sample, self.delay_min, window.size, now)
        {
            window.threshold = window.size;
        }
    }

    pub(super) fn reduced_threshold(&mut self, window: u32) -> u32 {
        self.epoch = None;
        self.last_max = if window < self.last_max {
            // Fast convergence (RFC 9438, 4.7): leave room for new flows.
            window * (SCALE + BETA) / (2 * SCALE)
        } else {
            window
        };
        (window * BETA / SCALE).max(2)
    }

    pub(super) fn on_transmission_start(&mut self, idle_since: u64, now: Moment) {
        // The curve pauses while nothing is sent.
        if let Some(epoch) = &mut self.epoch
            && now.jiffies > idle_since
        {
            *epoch = (*epoch + (now.jiffies - idle_since)).min(now.jiffies);
        }
    }

    /// Returns the number of acknowledged segments per increase by one at `window`, after `acked` more.
    pub(super) fn per_increase(&mut self, acked: u32, now: Moment, window: u32) -> u32 {
        self.acked += acked;
        // For the same window, the curve is evaluated again only after 1/32 s.
        if self.last_window == window && now.jiffies - self.last_time <= self.hz / 32 {
            return self.per_increase;
        }
        if self.epoch.is_none() || now.jiffies != self.last_time {
            self.last_window = window;
            self.last_time = now.jiffies;
            self.follow_curve(acked, now, window);
        }
        self.follow_reno(window);
        self.per_increase = self.per_increase.max(2);
        self.per_increase
    }

    fn follow_curve(&mut self, acked: u32, now: Moment, window: u32) {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.begin_epoch(acked, now, window);
                now.jiffies
            }
        };
        let ticks = now.jiffies - epoch + self.clock.ticks(self.delay_min);
        let target = self.target((ticks << TIME_SHIFT) / self.hz);
        self.per_increase = if target > window {
            window / (target - window)
        } else {
            100 * window
        };
        // Before the first loss the capacity is unknown, so keep probing.
        if self.last_max == 0 {
            self.per_increase = self.per_increase.min(20);
        }
    }

    fn begin_epoch(&mut self, acked: u32, now: Moment, window: u32) {
        self.epoch = Some(now.jiffies);
        self.acked = acked;
        self.reno_window = window;
        self.origin = self.last_max.max(window);
        // K^3 = (W_max - W) / C
        let distance = u64::from(self.origin - window);
        self.k = cubic_root((distance << (10 + 3 * TIME_SHIFT)) / C);
    }

    /// Returns W(t), for t in 2^-10 s after the epoch.
    fn target(&self, t: u64) -> u32 {
        let offset = u128::from(t.abs_diff(self.k));
        let delta = (u128::from(C) * offset.pow(3)) >> (10 + 3 * TIME_SHIFT);
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        }
    }

    fn follow_reno(&mut self, window: u32) {
        let per_segment = (window * FRIENDLY_EIGHTHS) >> 3;
        while self.acked > per_segment {
            self.acked -= per_segment;
            self.reno_window += 1;
        }
        if self.reno_window > window {
            self.per_increase = self.per_increase.min(window / (self.reno_window - window));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::Time;
    use proptest::prelude::*;

    fn after_loss_at(window: u32) -> (Cubic, u32) {
        let clock = Clock::new(1000);
        let now = clock.read(Time::from_secs(1));
        let config = Config {
            hz: 1000,
            ..Config::default()
        };
        let mut cubic = Cubic::new(&config, clock, now, 0);
        let kept = cubic.reduced_threshold(window);
        cubic.begin_epoch(1, now, kept);
        (cubic, kept)
    }

    #[test]
    fn reno_friendliness_equals_the_rfcs_alpha() {
        // RFC 9438, 4.3: alpha = 3 (1 - beta) / (1 + beta). This is its inverse in eighths, rounded down.
        let beta = f64::from(BETA) / f64::from(SCALE);
        let exact = 8.0 * (1.0 + beta) / (3.0 * (1.0 - beta));
        assert_eq!(FRIENDLY_EIGHTHS, exact as u32);
    }

    #[test]
    fn fast_convergence_leaves_room() {
        let (mut cubic, _) = after_loss_at(100);
        assert_eq!(cubic.last_max, 100);
        assert_eq!(cubic.reduced_threshold(90), 63);
        assert_eq!(cubic.last_max, 90 * 1741 / 2048);
    }

    #[test]
    fn growth_before_the_first_loss_is_at_least_one_in_twenty() {
        let clock = Clock::new(100);
        let mut cubic = Cubic::new(&Config::default(), clock, Moment::default(), 0);
        assert_eq!(
            cubic.per_increase(1, clock.read(Time::from_millis(500)), 1000),
            20
        );
    }

    proptest! {
        /// Compares with W(t) and K of RFC 9438, figures 1 and 2, in floating point.
        #[test]
        fn follows_the_rfcs_curve(max in 10u32..100_000, millis in 0u64..60_000) {
            let (cubic, kept) = after_loss_at(max);
            let c = C as f64 / 1024.0;
            let k = (f64::from(max - kept) / c).cbrt();
            prop_assert!((cubic.k as f64 / 1024.0 - k).abs() <= 1.0 / 1024.0 + 1e-9 * k);
            let t = (millis * 1024 / 1000) as f64 / 1024.0;
            let exact = c * (t - k).powi(3) + f64::from(max);
            let target = f64::from(cubic.target(millis * 1024 / 1000));
            // An error of one unit in K shifts the curve by its slope.
            let slope = 3.0 * c * (t - k).powi(2) / 1024.0;
            let tolerance = 1.0 + 1.1 * slope + 1e-6 * exact.abs();
            prop_assert!((target - exact).abs() <= tolerance, "{target} {exact}");
        }
    }
}
