//! BBR, version 1 (Cardwell et al., "BBR: congestion-based congestion control", 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00), in Linux's form (`tcp_bbr.c` of 6.1).
//!
//! BBR measures two properties of the path: the bandwidth (the largest delivery rate of ten round trips) and
//! the RTT without a queue (the smallest one of ten seconds). It paces at that bandwidth, and its window is
//! two times their product, so that pacing and not the window limits it. It never reacts to a loss as such.
//!
//! ```text
//!   Startup --bandwidth grows no more in 3 rounds--> Drain --queue empty--> ProbeBandwidth <--+
//!     x 2.89                                          x 0.35                 x 1.25, 0.75, 1 ... |
//!                                    10 s without a smaller RTT: ProbeRtt, 4 segments for 200 ms
//! ```
//!
//! Once per eight round trips it paces at 1.25 times the bandwidth, to find more, and then at 0.75 times, to
//! drain the queue that this has caused. The phase of this cycle at its beginning is random.
//!
//! Deviations from Linux: the excess of bundled acknowledgements is the maximum of ten round trips, not of
//! two alternating periods of five. An acknowledgement that may have been delayed is taken as a sample of the
//! RTT when the filter has expired. Non-goals: the detection of token bucket policers (`lt_bw`, removed from
//! later versions), and a reaction to ECN marks, which version 1 does not have.

use super::Window;
use super::max_filter::MaxFilter;
use super::path::{self, Excess, Feedback, Moment, Repair, Rounds, UNITY};
use crate::random::{Distribution, Stream};
use crate::tcp::config::Config;
use crate::tcp::delivery_rate::RATE_SHIFT;
use crate::tcp::pacing::Pacer;

/// 2 / ln 2: the smallest gain by which the rate doubles in each round trip.
const HIGH_GAIN: u64 = UNITY * 2885 / 1000 + 1;
/// Its inverse empties the queue of Startup in one round trip.
const DRAIN_GAIN: u64 = UNITY * 1000 / 2885;
const WINDOW_GAIN: u64 = 2 * UNITY;
/// The gains of the cycle, one per RTT.
const CYCLE: [u64; 8] = [
    UNITY * 5 / 4,
    UNITY * 3 / 4,
    UNITY,
    UNITY,
    UNITY,
    UNITY,
    UNITY,
    UNITY,
];
/// The first phase of the cycle is random among these many: all but the one that drains.
const CYCLE_RANDOM: u64 = 7;
/// The bandwidth is the maximum of this many round trips: a cycle and two more.
const BANDWIDTH_ROUNDS: u64 = CYCLE.len() as u64 + 2;
/// The minimum of the RTT is kept for this time, µs.
const MIN_RTT_WINDOW: u64 = 10_000_000;
/// The duration of ProbeRtt, µs.
const PROBE_RTT: u64 = 200_000;
/// The minimum window, segments. ProbeRtt has this window.
const MIN_WINDOW: u32 = 4;
/// The bandwidth grows if it is a quarter above the last one that grew. Startup ends after three round trips
/// without growth.
const GROWTH_QUARTERS: u64 = 5;
const FULL_ROUNDS: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    /// The index in [`CYCLE`].
    ProbeBandwidth(usize),
    ProbeRtt,
}

/// The state of BBR.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Bbr {
    mode: Mode,
    bandwidth: MaxFilter,
    rounds: Rounds,
    /// The minimum RTT and when it was measured, µs.
    min_rtt: Option<u64>,
    min_rtt_at: u64,
    /// When ProbeRtt may end, µs, and whether a round trip of it is over.
    probe_rtt_ends: Option<u64>,
    probe_rtt_round: bool,
    /// Whether the sender restarts after the application was idle.
    restarting: bool,
    /// The bandwidth that last grew, and the round trips since.
    full_bandwidth: u64,
    full_rounds: u8,
    is_full: bool,
    /// When the phase of the cycle began, µs.
    phase_since: u64,
    excess: Excess,
    /// The window before recovery or ProbeRtt.
    prior_window: u32,
    repair: Repair,
    /// Whether each delivered segment releases one: the first round trip of a recovery.
    conserves: bool,
    /// Whether the pacing rate was derived from a measured RTT.
    has_rtt: bool,
    stream: Stream,
}

impl Bbr {
    pub(super) fn new(config: &Config, now: Moment) -> Bbr {
        Bbr {
            mode: Mode::Startup,
            bandwidth: MaxFilter::default(),
            rounds: Rounds::default(),
            min_rtt: None,
            min_rtt_at: now.micros,
            probe_rtt_ends: None,
            probe_rtt_round: false,
            restarting: false,
            full_bandwidth: 0,
            full_rounds: 0,
            is_full: false,
            phase_since: now.micros,
            excess: Excess::default(),
            prior_window: 0,
            repair: Repair::None,
            conserves: false,
            has_rtt: false,
            stream: Stream::new(config.seed, "bbr", ""),
        }
    }

    /// Sets the first pacing rate, when the handshake has given an RTT or not.
    pub(super) fn begin(&mut self, rtt: Option<u64>, window: &Window, mss: u32, pacer: &mut Pacer) {
        self.has_rtt = rtt.is_some();
        self.min_rtt = rtt;
        pacer.set_rate(path::initial_rate(window.size, rtt, HIGH_GAIN, mss));
    }

    /// Handles an acknowledgement. Returns true if the sender sends less than the path could deliver, on
    /// purpose.
    pub(super) fn on_feedback(
        &mut self,
        feedback: &Feedback<'_>,
        window: &mut Window,
        pacer: &mut Pacer,
    ) -> bool {
        self.update_bandwidth(feedback);
        let bandwidth = self.bandwidth.max();
        self.excess
            .observe(feedback, bandwidth, window.size, &self.rounds, self.is_full);
        self.update_cycle(feedback, pacer);
        self.check_full(feedback);
        self.check_drain(feedback, window, pacer);
        let limits = self.update_min_rtt(feedback, window);
        self.set_pacing(feedback, window, pacer);
        self.set_window(feedback, window, pacer);
        limits
    }

    fn update_bandwidth(&mut self, feedback: &Feedback<'_>) {
        let sample = &feedback.rate;
        self.rounds.started = false;
        if sample.interval == 0 {
            return;
        }
        self.rounds.observe(feedback);
        if self.rounds.started {
            self.conserves = false;
        }
        let rate = sample.rate();
        if !sample.app_limited || rate >= self.bandwidth.max() {
            self.bandwidth.add(rate, self.rounds.count, BANDWIDTH_ROUNDS);
        }
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBandwidth(phase) => CYCLE[phase],
            Mode::ProbeRtt => UNITY,
        }
    }

    fn window_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth(_) => WINDOW_GAIN,
            Mode::ProbeRtt => UNITY,
        }
    }

    /// Returns the volume of a gain, with room for the bursts that senders and receivers make.
    fn target(&self, gain: u64, quantum: u32) -> u32 {
        self.budget(path::volume(self.bandwidth.max(), self.min_rtt, gain), quantum)
    }

    fn budget(&self, volume: u32, quantum: u32) -> u32 {
        let even = (volume.saturating_add(3 * quantum) + 1) & !1;
        match self.mode {
            // Even a small volume must be able to grow.
            Mode::ProbeBandwidth(0) => even.saturating_add(2),
            _ => even,
        }
    }

    /// Returns what will be in flight when the next segment leaves, if `in_flight` segments are now.
    fn in_flight_at_departure(&self, in_flight: u32, feedback: &Feedback<'_>, quantum: u32) -> u32 {
        let delivered = (u128::from(self.bandwidth.max()) * u128::from(feedback.pacing_delay)) >> RATE_SHIFT;
        let burst = if self.pacing_gain() > UNITY { quantum } else { 0 };
        (in_flight + burst).saturating_sub(delivered as u32)
    }

    fn update_cycle(&mut self, feedback: &Feedback<'_>, pacer: &Pacer) {
        let Mode::ProbeBandwidth(phase) = self.mode else {
            return;
        };
        let lasted = feedback.now.micros - self.phase_since > self.min_rtt.unwrap_or(u64::MAX);
        let quantum = path::quantum(pacer.rate().unwrap_or(0), feedback.mss);
        let in_flight = self.in_flight_at_departure(feedback.prior_in_flight, feedback, quantum);
        let gain = CYCLE[phase];
        let is_over = if gain > UNITY {
            // Until the path was really filled to the gain, or something was lost.
            lasted && (!feedback.lost.is_empty() || in_flight >= self.target(gain, quantum))
        } else if gain < UNITY {
            lasted || in_flight <= self.target(UNITY, quantum)
        } else {
            lasted
        };
        if is_over {
            self.begin_phase((phase + 1) % CYCLE.len(), feedback.now);
        }
    }

    fn begin_phase(&mut self, phase: usize, now: Moment) {
        self.mode = Mode::ProbeBandwidth(phase);
        self.phase_since = now.micros;
    }

    /// Begins the cycle anywhere but in the phase that drains.
    fn begin_cycle(&mut self, now: Moment) {
        let uniform = Distribution::Uniform {
            low: 0,
            high: CYCLE_RANDOM - 1,
        };
        let back = uniform.sample(&mut self.stream) as usize;
        self.begin_phase((CYCLE.len() - back) % CYCLE.len(), now);
    }

    fn check_full(&mut self, feedback: &Feedback<'_>) {
        if self.is_full || !self.rounds.started || feedback.rate.app_limited {
            return;
        }
        let bandwidth = self.bandwidth.max();
        if 4 * bandwidth >= GROWTH_QUARTERS * self.full_bandwidth {
            (self.full_bandwidth, self.full_rounds) = (bandwidth, 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, feedback: &Feedback<'_>, window: &mut Window, pacer: &Pacer) {
        let quantum = path::quantum(pacer.rate().unwrap_or(0), feedback.mss);
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            window.threshold = self.target(UNITY, quantum);
        }
        if self.mode == Mode::Drain {
            let in_flight = self.in_flight_at_departure(feedback.in_flight, feedback, quantum);
            if in_flight <= self.target(UNITY, quantum) {
                self.begin_cycle(feedback.now);
            }
        }
    }

    /// Updates the minimum RTT, and probes for it if it has expired. Returns whether samples of the delivery
    /// rate have to be ignored for that.
    fn update_min_rtt(&mut self, feedback: &Feedback<'_>, window: &mut Window) -> bool {
        let now = feedback.now.micros;
        let expired = now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = feedback.rtt
            && (expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = now;
        }
        if expired && !self.restarting && self.mode != Mode::ProbeRtt {
            self.save_window(window.size);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_ends = None;
        }
        let probing = self.mode == Mode::ProbeRtt;
        if probing {
            if self.probe_rtt_ends.is_none() {
                if feedback.in_flight <= MIN_WINDOW {
                    self.probe_rtt_ends = Some(now + PROBE_RTT);
                    self.probe_rtt_round = false;
                    self.rounds.restart(feedback.total_delivered);
                }
            } else {
                self.probe_rtt_round |= self.rounds.started;
                if self.probe_rtt_round {
                    self.check_probe_rtt_end(feedback.now, window);
                }
            }
        }
        if feedback.rate.delivered.is_some() {
            self.restarting = false;
        }
        probing
    }

    fn check_probe_rtt_end(&mut self, now: Moment, window: &mut Window) {
        if self.probe_rtt_ends.is_none_or(|end| now.micros <= end) {
            return;
        }
        self.min_rtt_at = now.micros;
        window.size = window.size.max(self.prior_window);
        if self.is_full {
            self.begin_cycle(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn set_pacing(&mut self, feedback: &Feedback<'_>, window: &Window, pacer: &mut Pacer) {
        if !self.has_rtt && feedback.smoothed.is_some() {
            self.has_rtt = true;
            let rate = path::initial_rate(window.size, feedback.smoothed, HIGH_GAIN, feedback.mss);
            pacer.set_rate(rate);
        }
        let rate = path::pacing_rate(self.bandwidth.max(), self.pacing_gain(), feedback.mss);
        if self.is_full || pacer.rate().is_none_or(|current| rate > current) {
            pacer.set_rate(rate);
        }
    }

    fn set_window(&mut self, feedback: &Feedback<'_>, window: &mut Window, pacer: &Pacer) {
        let acked = feedback.delivered;
        if acked > 0 && !self.follow_recovery(feedback, window) {
            let quantum = path::quantum(pacer.rate().unwrap_or(0), feedback.mss);
            let bandwidth = self.bandwidth.max();
            let mut volume = path::volume(bandwidth, self.min_rtt, self.window_gain());
            if self.is_full {
                volume = volume.saturating_add(self.excess.segments(bandwidth));
            }
            let target = self.budget(volume, quantum);
            if self.is_full {
                window.size = window.size.saturating_add(acked).min(target);
            } else if window.size < target || feedback.total_delivered < 10 {
                window.size = window.size.saturating_add(acked);
            }
            window.size = window.size.max(MIN_WINDOW);
        }
        if self.mode == Mode::ProbeRtt {
            window.size = window.size.min(MIN_WINDOW);
        }
    }

    /// In the first round trip of a recovery, sends as much as arrives. Restores the window after a recovery.
    /// Returns whether this has decided the window.
    fn follow_recovery(&mut self, feedback: &Feedback<'_>, window: &mut Window) -> bool {
        let conserved = feedback.in_flight.saturating_add(feedback.delivered);
        window.size = window.size.saturating_sub(feedback.lost.len() as u32).max(1);
        if feedback.repair == Repair::Recovery && self.repair != Repair::Recovery {
            self.conserves = true;
            self.rounds.restart(feedback.total_delivered);
            window.size = conserved;
        } else if feedback.repair == Repair::None && self.repair != Repair::None {
            self.conserves = false;
            window.size = window.size.max(self.prior_window);
        }
        self.repair = feedback.repair;
        if self.conserves {
            window.size = window.size.max(conserved);
        }
        self.conserves
    }

    /// Remembers the window before it is reduced.
    pub(super) fn save_window(&mut self, size: u32) {
        let is_untouched = self.repair == Repair::None && self.mode != Mode::ProbeRtt;
        self.prior_window = if is_untouched {
            size
        } else {
            self.prior_window.max(size)
        };
    }

    /// Handles a timeout. The window becomes one segment and grows from there.
    pub(super) fn on_timeout(&mut self) {
        self.repair = Repair::Timeout;
        self.full_bandwidth = 0;
        self.rounds.started = true;
    }

    /// A recovery was unnecessary: the bandwidth may not be full after all.
    pub(super) fn on_undo(&mut self) {
        (self.full_bandwidth, self.full_rounds) = (0, 0);
    }

    /// The sender restarts with nothing in flight after the application was idle: it paces at the bandwidth,
    /// so that the first segments don't cause a queue.
    pub(super) fn on_restart(&mut self, now: Moment, mss: u32, window: &mut Window, pacer: &mut Pacer) {
        self.restarting = true;
        self.excess.restart(now);
        match self.mode {
            Mode::ProbeBandwidth(_) => {
                pacer.set_rate(path::pacing_rate(self.bandwidth.max(), UNITY, mss));
            }
            Mode::ProbeRtt => self.check_probe_rtt_end(now, window),
            Mode::Startup | Mode::Drain => {}
        }
    }
}
