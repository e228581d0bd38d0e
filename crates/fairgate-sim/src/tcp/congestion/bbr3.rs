//! BBR, version 3 (draft-ietf-ccwg-bbr): BBR that also bounds its volume by what was lost.
//!
//! Like version 1, it measures the bandwidth and the RTT without a queue, and paces. Unlike version 1, it
//! keeps two bounds. The long-term bound is the volume in flight at which more than 2 % were lost, found by
//! probing. The short-term bound follows the losses of the last round trips, and is forgotten at each probe.
//!
//! ```text
//!   Startup --> Drain --> Down --> Cruise --> Refill --> Up --> Down ...
//!                          x 0.9    x 1        x 1       x 1.25    every 2 to 3 s, or 63 round trips
//!                                   5 s without a smaller RTT: ProbeRtt, half the volume for 200 ms
//! ```
//!
//! The names of the draft's procedures are in the comments. Deviations: the bandwidth and the RTT are in the
//! units of version 1. A burst has the size that Linux gives it (see `path::quantum`), although segments are
//! never merged here. Losses before an acknowledgement is handled are handled together with it, and those of
//! a timer together with the next acknowledgement. Non-goals: ECN, to which the draft does not react.

use super::Window;
use super::path::{self, Excess, Feedback, Moment, Repair, Rounds, UNITY};
use crate::random::{Distribution, Stream};
use crate::tcp::config::Config;
use crate::tcp::delivery_rate::{LostTransmission, RateSample};
use crate::tcp::pacing::Pacer;

/// 4 ln 2 (`StartupPacingGain`).
const STARTUP_GAIN: u64 = UNITY * 277 / 100;
const DRAIN_GAIN: u64 = UNITY / 2;
const DOWN_GAIN: u64 = UNITY * 90 / 100;
const UP_GAIN: u64 = UNITY * 5 / 4;
const WINDOW_GAIN: u64 = 2 * UNITY;
const UP_WINDOW_GAIN: u64 = UNITY * 9 / 4;
const PROBE_RTT_WINDOW_GAIN: u64 = UNITY / 2;
/// The inverse of the tolerated share of losses, 2 % (`LossThresh`).
const LOSS_INVERSE: u32 = 50;
/// What a round trip with losses keeps, tenths (`Beta`).
const BETA_TENTHS: u64 = 7;
/// The share of the long-term bound that is left to other flows, per cent (`Headroom`).
const HEADROOM_PERCENT: u64 = 15;
/// `MinPipeCwnd`, segments.
const MIN_WINDOW: u32 = 4;
/// Times in µs: `MinRTTFilterLen`, `ProbeRTTInterval`, `ProbeRTTDuration`.
const MIN_RTT_WINDOW: u64 = 10_000_000;
const PROBE_RTT_INTERVAL: u64 = 5_000_000;
const PROBE_RTT: u64 = 200_000;
/// The acknowledgements with losses in a round trip that end Startup (`StartupFullLossCnt`).
const STARTUP_LOSSES: u32 = 6;
const FULL_ROUNDS: u8 = 3;
/// The maximum of round trips between two probes, so that Reno and CUBIC get their share.
const MOST_ROUNDS: u64 = 63;
/// Drain ends after this many round trips.
const DRAIN_ROUNDS: u64 = 3;
const NO_BOUND: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Mode {
    /// `IsInAProbeBWState`.
    fn probes_bandwidth(self) -> bool {
        matches!(self, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }

    /// `IsProbingBW`.
    fn accelerates(self) -> bool {
        matches!(self, Mode::Startup | Mode::Refill | Mode::Up)
    }
}

/// What the acknowledgements of a probe mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    None,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// The bounds, and the mode, before a loss that may turn out to be spurious.
#[derive(Clone, Copy, Debug)]
struct Saved {
    mode: Option<Mode>,
    bandwidth_short: u64,
    short: u32,
    long: u32,
}

/// Whether the bandwidth has stopped growing (`CheckFullBWReached`).
#[derive(Clone, Debug, Default)]
struct Plateau {
    bandwidth: u64,
    rounds: u8,
    now: bool,
}

/// The state of BBR.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Bbr3 {
    mode: Mode,
    rounds: Rounds,
    /// The largest bandwidth of the previous and of this cycle.
    bandwidths: [u64; 2],
    /// The bandwidth that is used: the maximum, below the short-term bound.
    bandwidth: u64,
    /// The short-term bounds. The largest number: none.
    bandwidth_short: u64,
    short: u32,
    /// The long-term bound, segments.
    long: u32,
    /// The minimum RTT of ten seconds and of the time since ProbeRtt, and when they were measured, µs.
    min_rtt: Option<u64>,
    min_rtt_at: u64,
    probe_rtt_least: Option<u64>,
    probe_rtt_least_at: u64,
    probe_rtt_expired: bool,
    probe_rtt_ends: Option<u64>,
    probe_rtt_round: bool,
    restarting: bool,
    plateau: Plateau,
    is_full: bool,
    drain_began: u64,
    /// The latest delivery signals and losses of this round trip.
    bandwidth_latest: u64,
    volume_latest: u32,
    loss_round_next: u64,
    loss_round_started: bool,
    lost_in_round: bool,
    startup_losses: u32,
    /// The cycle of probes.
    answers: Answers,
    is_probe_sample: bool,
    cycle_at: u64,
    wait: u64,
    rounds_since_up: u64,
    up_rounds: u32,
    up_acked: u32,
    acked_per_step: u32,
    was_too_high: bool,
    was_precautionary: bool,
    excess: Excess,
    prior_window: u32,
    repair: Repair,
    saved: Saved,
    stream: Stream,
    has_rtt: bool,
}

impl Bbr3 {
    pub(super) fn new(config: &Config, now: Moment) -> Bbr3 {
        Bbr3 {
            mode: Mode::Startup,
            rounds: Rounds::default(),
            bandwidths: [0; 2],
            bandwidth: 0,
            bandwidth_short: u64::MAX,
            short: NO_BOUND,
            long: NO_BOUND,
            min_rtt: None,
            min_rtt_at: now.micros,
            probe_rtt_least: None,
            probe_rtt_least_at: now.micros,
            probe_rtt_expired: false,
            probe_rtt_ends: None,
            probe_rtt_round: false,
            restarting: false,
            plateau: Plateau::default(),
            is_full: false,
            drain_began: 0,
            bandwidth_latest: 0,
            volume_latest: 0,
            loss_round_next: 0,
            loss_round_started: false,
            lost_in_round: false,
            startup_losses: 0,
            answers: Answers::None,
            is_probe_sample: false,
            cycle_at: now.micros,
            wait: 0,
            rounds_since_up: 0,
            up_rounds: 0,
            up_acked: 0,
            acked_per_step: NO_BOUND,
            was_too_high: false,
            was_precautionary: false,
            excess: Excess::default(),
            prior_window: 0,
            repair: Repair::None,
            saved: Saved {
                mode: None,
                bandwidth_short: u64::MAX,
                short: NO_BOUND,
                long: NO_BOUND,
            },
            stream: Stream::new(config.seed, "bbr3", ""),
            has_rtt: false,
        }
    }

    /// Sets the first pacing rate, when the handshake has given an RTT or not.
    pub(super) fn begin(&mut self, rtt: Option<u64>, window: &Window, mss: u32, pacer: &mut Pacer) {
        self.has_rtt = rtt.is_some();
        (self.min_rtt, self.probe_rtt_least) = (rtt, rtt);
        pacer.set_rate(path::initial_rate(window.size, rtt, STARTUP_GAIN, mss));
    }

    /// Handles an acknowledgement (`UpdateOnACK`). Returns true if the sender sends less than the path could
    /// deliver, on purpose.
    pub(super) fn on_feedback(
        &mut self,
        feedback: &Feedback<'_>,
        window: &mut Window,
        pacer: &mut Pacer,
    ) -> bool {
        let quantum = path::quantum(pacer.rate().unwrap_or(0), feedback.mss);
        for lost in feedback.lost {
            self.on_lost(lost, feedback, window.size);
        }
        self.update_latest(&feedback.rate, feedback.total_delivered);
        self.update_congestion(feedback, window.size);
        self.excess
            .observe(feedback, self.bandwidth, window.size, &self.rounds, self.is_full);
        self.check_plateau(&feedback.rate);
        self.check_startup(feedback);
        self.check_drain(feedback, quantum);
        self.update_cycle(feedback, window.size, quantum);
        let limits = self.update_min_rtt(feedback, window);
        // `AdvanceLatestDeliverySignals`
        if self.loss_round_started {
            self.bandwidth_latest = feedback.rate.rate();
            self.volume_latest = feedback.rate.delivered.unwrap_or(0);
        }
        self.bandwidth = self.bandwidth_max().min(self.bandwidth_short);
        self.set_pacing(feedback, window, pacer);
        self.set_window(feedback, window, quantum);
        limits
    }

    fn bandwidth_max(&self) -> u64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => STARTUP_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::Down => DOWN_GAIN,
            Mode::Up => UP_GAIN,
            Mode::Cruise | Mode::Refill | Mode::ProbeRtt => UNITY,
        }
    }

    fn window_gain(&self) -> u64 {
        match self.mode {
            Mode::Up => UP_WINDOW_GAIN,
            Mode::ProbeRtt => PROBE_RTT_WINDOW_GAIN,
            _ => WINDOW_GAIN,
        }
    }

    /// `QuantizationBudget`.
    fn budget(&self, volume: u32, quantum: u32) -> u32 {
        let volume = volume.max(3 * quantum).max(MIN_WINDOW);
        match self.mode {
            Mode::Up => volume.saturating_add(2),
            _ => volume,
        }
    }

    /// `Inflight`.
    fn target(&self, bandwidth: u64, gain: u64, quantum: u32) -> u32 {
        self.budget(path::volume(bandwidth, self.min_rtt, gain), quantum)
    }

    /// Returns the volume that is wanted in flight (`TargetInflight`).
    fn wanted(&self, window: u32) -> u32 {
        path::volume(self.bandwidth, self.min_rtt, UNITY).min(window)
    }

    // Losses.

    /// `HandleLostPacket`, with `NoteLoss`.
    fn on_lost(&mut self, lost: &LostTransmission, feedback: &Feedback<'_>, window: u32) {
        if !self.lost_in_round {
            self.loss_round_next = feedback.total_delivered;
            self.save(window);
        }
        self.lost_in_round = true;
        if !self.is_probe_sample || !too_many(lost.losses, lost.in_flight, feedback.selective) {
            return;
        }
        self.on_volume_too_high(volume_at_loss(lost), lost.app_limited, feedback, window);
    }

    /// `HandleInflightTooHigh`.
    fn on_volume_too_high(
        &mut self,
        in_flight: u32,
        app_limited: bool,
        feedback: &Feedback<'_>,
        window: u32,
    ) {
        self.was_too_high = true;
        self.is_probe_sample = false;
        if !app_limited {
            let kept = u64::from(self.wanted(window)) * BETA_TENTHS / 10;
            self.long = in_flight.max(kept as u32).max(MIN_WINDOW);
        }
        if self.mode == Mode::Up {
            self.saved.mode = Some(Mode::Up);
            self.begin_down(feedback);
        }
    }

    /// `SaveStateUponLoss`.
    fn save(&mut self, window: u32) {
        self.save_window(window);
        self.saved = Saved {
            mode: None,
            bandwidth_short: self.bandwidth_short,
            short: self.short,
            long: self.long,
        };
    }

    /// Remembers the window before it is reduced (`SaveCwnd`).
    pub(super) fn save_window(&mut self, size: u32) {
        let is_untouched = self.repair == Repair::None && self.mode != Mode::ProbeRtt;
        self.prior_window = if is_untouched {
            size
        } else {
            self.prior_window.max(size)
        };
    }

    /// Handles a timeout (`OnEnterRTO`). The window becomes one segment and grows from there.
    pub(super) fn on_timeout(&mut self) {
        self.repair = Repair::Timeout;
    }

    /// A recovery was unnecessary (`HandleSpuriousLossDetection`).
    pub(super) fn on_undo(&mut self, now: Moment, total_delivered: u64, window: &mut Window) {
        window.size = window.size.max(self.prior_window);
        self.lost_in_round = false;
        self.plateau = Plateau::default();
        self.bandwidth_short = self.bandwidth_short.max(self.saved.bandwidth_short);
        self.short = self.short.max(self.saved.short);
        self.long = self.long.max(self.saved.long);
        match self.saved.mode.take() {
            Some(Mode::Startup) if self.mode != Mode::Startup => {
                self.is_full = false;
                if self.mode != Mode::ProbeRtt {
                    self.mode = Mode::Startup;
                }
            }
            Some(Mode::Up) if !matches!(self.mode, Mode::Up | Mode::ProbeRtt) => {
                self.begin_refill(total_delivered);
            }
            _ => {}
        }
        self.cycle_at = self.cycle_at.min(now.micros);
    }

    // The model.

    /// `UpdateLatestDeliverySignals`.
    fn update_latest(&mut self, sample: &RateSample, total_delivered: u64) {
        self.loss_round_started = false;
        let Some(delivered) = sample.delivered else { return };
        self.bandwidth_latest = self.bandwidth_latest.max(sample.rate());
        self.volume_latest = self.volume_latest.max(delivered);
        if sample.prior_delivered >= self.loss_round_next {
            self.loss_round_next = total_delivered;
            self.loss_round_started = true;
        }
    }

    /// `UpdateCongestionSignals`, with `UpdateMaxBw` and `AdaptLowerBoundsFromCongestion`.
    fn update_congestion(&mut self, feedback: &Feedback<'_>, window: u32) {
        self.rounds.observe(feedback);
        if self.rounds.started {
            self.rounds_since_up += 1;
        }
        let rate = feedback.rate.rate();
        if rate > 0 && (rate >= self.bandwidth_max() || !feedback.rate.app_limited) {
            self.bandwidths[1] = self.bandwidths[1].max(rate);
        }
        if !self.loss_round_started {
            return;
        }
        if !self.mode.accelerates() && self.lost_in_round {
            if self.bandwidth_short == u64::MAX {
                self.bandwidth_short = self.bandwidth_max();
            }
            if self.short == NO_BOUND {
                self.short = window;
            }
            let kept = self.bandwidth_short / 10 * BETA_TENTHS;
            self.bandwidth_short = self.bandwidth_latest.max(kept);
            let kept = u64::from(self.short) * BETA_TENTHS / 10;
            self.short = self.volume_latest.max(kept as u32);
        }
        self.lost_in_round = false;
    }

    /// `ResetShortTermModel`.
    fn forget_short_term(&mut self) {
        (self.bandwidth_short, self.short) = (u64::MAX, NO_BOUND);
    }

    /// `CheckFullBWReached`.
    fn check_plateau(&mut self, sample: &RateSample) {
        if self.plateau.now || !self.rounds.started || sample.app_limited {
            return;
        }
        let rate = sample.rate();
        if 4 * rate >= 5 * self.plateau.bandwidth {
            self.plateau = Plateau::from(rate);
            return;
        }
        self.plateau.rounds += 1;
        self.plateau.now = self.plateau.rounds >= FULL_ROUNDS;
        self.is_full |= self.plateau.now;
    }

    // Startup and Drain.

    /// `CheckStartupDone`, with `CheckStartupHighLoss`.
    fn check_startup(&mut self, feedback: &Feedback<'_>) {
        if !self.is_full {
            self.startup_losses += u32::from(!feedback.lost.is_empty());
            let sample = &feedback.rate;
            let enough = if feedback.selective { STARTUP_LOSSES } else { 1 };
            if self.loss_round_started
                && feedback.repair == Repair::Recovery
                && self.startup_losses >= enough
                && too_many(sample.losses, sample.in_flight, feedback.selective)
            {
                self.saved.mode = Some(Mode::Startup);
                self.is_full = true;
                let volume = path::volume(self.bandwidth_max(), self.min_rtt, UNITY);
                self.long = volume.max(self.volume_latest);
            }
            if self.loss_round_started {
                self.startup_losses = 0;
            }
        }
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            self.drain_began = self.rounds.count;
        }
    }

    /// `CheckDrainDone`.
    fn check_drain(&mut self, feedback: &Feedback<'_>, quantum: u32) {
        if self.mode == Mode::Drain
            && (feedback.in_flight <= self.target(self.bandwidth, UNITY, quantum)
                || self.rounds.count > self.drain_began + DRAIN_ROUNDS)
        {
            self.begin_down(feedback);
        }
    }

    // The cycle of probes.

    /// `StartProbeBW_DOWN`.
    fn begin_down(&mut self, feedback: &Feedback<'_>) {
        self.begin_down_at(feedback.now, feedback.total_delivered);
    }

    fn begin_down_at(&mut self, now: Moment, total_delivered: u64) {
        // `ResetCongestionSignals`
        self.lost_in_round = false;
        (self.bandwidth_latest, self.volume_latest) = (0, 0);
        self.acked_per_step = NO_BOUND;
        // `PickProbeWait`
        let mut draw = |low, high| Distribution::Uniform { low, high }.sample(&mut self.stream);
        self.rounds_since_up = draw(0, 1);
        self.wait = draw(2_000_000, 3_000_000);
        self.cycle_at = now.micros;
        self.answers = Answers::Stopping;
        self.rounds.restart(total_delivered);
        self.mode = Mode::Down;
    }

    /// `StartProbeBW_REFILL`.
    fn begin_refill(&mut self, total_delivered: u64) {
        self.forget_short_term();
        (self.up_rounds, self.up_acked) = (0, 0);
        self.was_precautionary = false;
        self.answers = Answers::Refilling;
        self.rounds.restart(total_delivered);
        self.mode = Mode::Refill;
    }

    /// `StartProbeBW_UP`.
    fn begin_up(&mut self, feedback: &Feedback<'_>, window: u32) {
        self.answers = Answers::Starting;
        self.rounds.restart(feedback.total_delivered);
        self.plateau = Plateau::from(feedback.rate.rate());
        self.mode = Mode::Up;
        self.raise_slope(window);
    }

    /// `UpdateProbeBWCyclePhase`.
    fn update_cycle(&mut self, feedback: &Feedback<'_>, window: u32, quantum: u32) {
        if !self.is_full || self.adapt_long_term(feedback, window) {
            return;
        }
        let mode = self.mode;
        match mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(feedback.now, window) => {
                self.begin_refill(feedback.total_delivered);
            }
            Mode::Down if self.is_time_to_cruise(feedback.in_flight, quantum) => self.mode = Mode::Cruise,
            Mode::Refill if self.rounds.started => {
                self.is_probe_sample = true;
                self.begin_up(feedback, window);
            }
            Mode::Up if self.is_time_to_go_down(feedback, window) => {
                self.was_too_high = false;
                self.begin_down(feedback);
            }
            _ => {}
        }
    }

    /// `IsTimeToProbeBW`, with `IsRenoCoexistenceProbeTime`.
    fn is_time_to_probe(&self, now: Moment, window: u32) -> bool {
        now.micros > self.cycle_at + self.wait
            || self.rounds_since_up >= u64::from(self.wanted(window)).min(MOST_ROUNDS)
    }

    fn is_time_to_cruise(&self, in_flight: u32, quantum: u32) -> bool {
        in_flight <= self.with_headroom() && in_flight <= self.target(self.bandwidth_max(), UNITY, quantum)
    }

    fn is_time_to_go_down(&mut self, feedback: &Feedback<'_>, window: u32) -> bool {
        if self.was_too_high && feedback.in_flight >= self.long {
            self.was_precautionary = true;
            return true;
        }
        if feedback.window_limited && window >= self.long {
            // The long-term bound and not the path limits the bandwidth.
            self.plateau = Plateau::from(feedback.rate.rate());
            return false;
        }
        self.plateau.now
    }

    /// `InflightWithHeadroom`.
    fn with_headroom(&self) -> u32 {
        if self.long == NO_BOUND {
            return NO_BOUND;
        }
        let headroom = (u64::from(self.long) * HEADROOM_PERCENT / 100).max(1) as u32;
        self.long.saturating_sub(headroom).max(MIN_WINDOW)
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self, window: u32) {
        self.acked_per_step = (window >> self.up_rounds).max(1);
        self.up_rounds = (self.up_rounds + 1).min(30);
    }

    /// `ProbeInflightLongtermUpward`.
    fn raise_long_term(&mut self, feedback: &Feedback<'_>, window: u32) {
        if !feedback.window_limited || window < self.long {
            return;
        }
        self.up_acked += feedback.delivered;
        let steps = self.up_acked / self.acked_per_step;
        self.up_acked -= steps * self.acked_per_step;
        self.long = self.long.saturating_add(steps);
        if self.rounds.started {
            self.raise_slope(window);
        }
    }

    /// `AdaptLongTermModel`. Returns whether it has changed the mode.
    fn adapt_long_term(&mut self, feedback: &Feedback<'_>, window: u32) -> bool {
        if self.answers == Answers::Starting && self.rounds.started {
            self.answers = Answers::Feedback;
        }
        if self.answers == Answers::Stopping && self.rounds.started {
            self.is_probe_sample = false;
            self.answers = Answers::None;
            if self.mode.probes_bandwidth() {
                if !feedback.rate.app_limited && self.bandwidths[1] > 0 {
                    // `AdvanceMaxBwFilter`
                    self.bandwidths = [self.bandwidths[1], 0];
                }
                if self.was_precautionary && !self.was_too_high {
                    self.begin_refill(feedback.total_delivered);
                    return true;
                }
            }
        }
        let sample = &feedback.rate;
        if too_many(sample.losses, sample.in_flight, feedback.selective) || self.long == NO_BOUND {
            return false;
        }
        self.long = self.long.max(sample.in_flight);
        if self.mode == Mode::Up {
            self.raise_long_term(feedback, window);
        }
        false
    }

    // The minimum RTT.

    /// `UpdateMinRTT` and `CheckProbeRTT`. Returns whether samples of the delivery rate have to be ignored.
    fn update_min_rtt(&mut self, feedback: &Feedback<'_>, window: &mut Window) -> bool {
        let now = feedback.now.micros;
        self.probe_rtt_expired = now > self.probe_rtt_least_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = feedback.rtt
            && (self.probe_rtt_expired || self.probe_rtt_least.is_none_or(|least| rtt < least))
        {
            (self.probe_rtt_least, self.probe_rtt_least_at) = (Some(rtt), now);
        }
        let expired = now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(least) = self.probe_rtt_least
            && (expired || self.min_rtt.is_none_or(|known| least < known))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(least), self.probe_rtt_least_at);
        }
        if self.mode != Mode::ProbeRtt && self.probe_rtt_expired && !self.restarting {
            self.save_window(window.size);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_ends = None;
            self.answers = Answers::Stopping;
            self.rounds.restart(feedback.total_delivered);
        }
        let probing = self.mode == Mode::ProbeRtt;
        if probing {
            self.proceed_with_probe_rtt(feedback, window);
        }
        if feedback.rate.delivered.is_some() {
            self.restarting = false;
        }
        probing
    }

    /// `HandleProbeRTT`.
    fn proceed_with_probe_rtt(&mut self, feedback: &Feedback<'_>, window: &mut Window) {
        if self.probe_rtt_ends.is_none() {
            if feedback.in_flight <= self.probe_rtt_window() {
                self.probe_rtt_ends = Some(feedback.now.micros + PROBE_RTT);
                self.probe_rtt_round = false;
                self.rounds.restart(feedback.total_delivered);
            }
            return;
        }
        self.probe_rtt_round |= self.rounds.started;
        if self.probe_rtt_round {
            self.check_probe_rtt_end(feedback.now, feedback.total_delivered, window);
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    fn check_probe_rtt_end(&mut self, now: Moment, total_delivered: u64, window: &mut Window) {
        if self.probe_rtt_ends.is_none_or(|end| now.micros <= end) {
            return;
        }
        self.probe_rtt_least_at = now.micros;
        window.size = window.size.max(self.prior_window);
        self.forget_short_term();
        if self.is_full {
            self.begin_down_at(now, total_delivered);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn probe_rtt_window(&self) -> u32 {
        path::volume(self.bandwidth, self.min_rtt, PROBE_RTT_WINDOW_GAIN).max(MIN_WINDOW)
    }

    /// The sender restarts with nothing in flight after the application was idle (`HandleRestartFromIdle`).
    pub(super) fn on_restart(
        &mut self,
        now: Moment,
        total_delivered: u64,
        mss: u32,
        window: &mut Window,
        pacer: &mut Pacer,
    ) {
        self.restarting = true;
        self.excess.restart(now);
        if self.mode.probes_bandwidth() {
            pacer.set_rate(path::pacing_rate(self.bandwidth, UNITY, mss));
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_end(now, total_delivered, window);
        }
    }

    // Control.

    fn set_pacing(&mut self, feedback: &Feedback<'_>, window: &Window, pacer: &mut Pacer) {
        if !self.has_rtt && feedback.smoothed.is_some() {
            self.has_rtt = true;
            let rate = path::initial_rate(window.size, feedback.smoothed, STARTUP_GAIN, feedback.mss);
            pacer.set_rate(rate);
        }
        let rate = path::pacing_rate(self.bandwidth, self.pacing_gain(), feedback.mss);
        if self.is_full || pacer.rate().is_none_or(|current| rate > current) {
            pacer.set_rate(rate);
        }
    }

    /// `SetCwnd`, with `BoundCwndForProbeRTT` and `BoundCwndForModel`.
    fn set_window(&mut self, feedback: &Feedback<'_>, window: &mut Window, quantum: u32) {
        if self.repair == Repair::Timeout && feedback.repair != Repair::Timeout {
            window.size = window.size.max(self.prior_window);
        }
        self.repair = feedback.repair;
        let volume = path::volume(self.bandwidth, self.min_rtt, self.window_gain());
        let volume = volume.saturating_add(self.excess.segments(self.bandwidth));
        let most = self.budget(volume, quantum);
        if self.is_full {
            window.size = window.size.saturating_add(feedback.delivered).min(most);
        } else if window.size < most || feedback.total_delivered < 10 {
            window.size = window.size.saturating_add(feedback.delivered);
        }
        let bound = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.long,
            Mode::Cruise => self.with_headroom(),
            Mode::ProbeRtt => self.with_headroom().min(self.probe_rtt_window()),
            Mode::Startup | Mode::Drain => NO_BOUND,
        };
        window.size = window.size.min(bound.min(self.short)).max(MIN_WINDOW);
    }
}

impl Plateau {
    fn from(bandwidth: u64) -> Plateau {
        Plateau {
            bandwidth,
            rounds: 0,
            now: false,
        }
    }
}

/// `IsInflightTooHigh`: whether more than 2 % of what was in flight are lost. Without SACK only one loss is
/// seen in a round trip.
fn too_many(losses: u32, in_flight: u32, selective: bool) -> bool {
    losses.saturating_mul(LOSS_INVERSE) > in_flight || (losses > 0 && !selective)
}

/// `InflightAtLoss`: the volume at which the losses crossed the threshold, which may be within the burst of
/// the lost segment.
fn volume_at_loss(lost: &LostTransmission) -> u32 {
    let in_flight = i64::from(lost.in_flight) - 1;
    let losses = i64::from(lost.losses) - 1;
    let inverse = i64::from(LOSS_INVERSE);
    let prefix = (in_flight - inverse * losses) / (inverse - 1);
    (in_flight + prefix).max(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_per_cent_are_tolerated() {
        assert!(!too_many(2, 100, true));
        assert!(too_many(3, 100, true));
        assert!(too_many(1, 100, false));
        assert!(!too_many(0, 0, false));
    }

    /// Before this segment, 100 were in flight and two were lost, which are 2 %. So this loss crosses the
    /// threshold, and the volume is what was in flight before it.
    #[test]
    fn the_volume_at_a_loss_is_where_the_share_crossed_the_threshold() {
        let lost = |in_flight, losses| LostTransmission {
            in_flight,
            losses,
            app_limited: false,
        };
        assert_eq!(volume_at_loss(&lost(101, 3)), 100);
        assert_eq!(volume_at_loss(&lost(50, 2)), 49);
        assert_eq!(volume_at_loss(&lost(1, 1)), 0);
    }
}
