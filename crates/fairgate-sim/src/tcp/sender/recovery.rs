//! Loss recovery: the congestion states, how they begin and end, and how a reduction is undone if nothing was
//! lost.
//!
//! ```text
//!   Open --SACK--> Disorder --RACK finds a loss--> Recovery --high acknowledged--> Open
//!     |ECE           |ECE                            |  \--undo: originals arrived--> Open
//!     +-> Reduced <--+                               |
//!          --high passed--> Open        any --time-out--> Loss --high acknowledged or undo--> Open
//! ```
//!
//! In Recovery and Reduced, the window follows proportional rate reduction. In Loss, it starts again from one
//! segment. A reduction is undone in three cases: every retransmission is reported as a duplicate (DSACK), an
//! acknowledgement echoes the timestamp of an original (Eifel, RFC 4015), or an original arrives after a
//! timeout (F-RTO, RFC 5682).

use super::ack::{Ack, Decision};
use super::transmit::Resend;
use super::{REORDERING, Sender};
use crate::tcp::congestion::{INFINITE, Signal};
use crate::tcp::prr::Reduction;
use crate::tcp::segment::Range;

/// The congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Normal operation.
    Open,
    /// A segment arrived behind a hole.
    Disorder,
    /// The window is being reduced after a mark (CWR in Linux).
    Reduced,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
}

/// The state that is needed to undo a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The first unacknowledged number when recovery began. `None` if there is nothing to undo.
    marker: Option<u64>,
    /// The number of retransmissions not reported as duplicates yet. `None` if nothing was retransmitted.
    resent: Option<u32>,
    /// The threshold before the reduction. `None` if it must not be restored because of a mark or an earlier
    /// reduction.
    prior_threshold: Option<u32>,
    /// The TSval of the first retransmission. It is 0 if there was none.
    first_resent: u32,
}

impl Undo {
    /// Records that a segment was retransmitted at `timestamp`.
    pub(super) fn on_resent(&mut self, timestamp: u32) {
        if self.first_resent == 0 {
            self.first_resent = timestamp;
        }
        self.resent = Some(self.resent.unwrap_or(0) + 1);
    }

    /// Returns whether all retransmissions were unnecessary.
    fn is_all_duplicate(&self) -> bool {
        self.marker.is_some() && self.resent == Some(0)
    }

    /// Returns whether an acknowledgement answers an original: it echoes an earlier timestamp than that of
    /// the first retransmission.
    fn answers_original(&self, echo: u32) -> bool {
        self.marker.is_some() && (self.first_resent == 0 || (echo != 0 && echo < self.first_resent))
    }
}

impl Sender {
    /// Runs the state machine for an acknowledgement that is not plain progress.
    pub(super) fn decide(&mut self, ack: &Ack) -> Decision {
        let mut decision = Decision::default();
        if ack.marked {
            self.undo.prior_threshold = None;
        }
        if self.leave_phase(ack) {
            return decision;
        }
        match self.phase {
            Phase::Recovery => {
                self.count_duplicate(ack);
                if ack.advances && self.undo_after_partial(ack) {
                    return decision;
                }
                if self.undo_if_duplicate() {
                    self.try_to_open(ack);
                }
                self.identify_loss(ack, &mut decision);
                if self.phase != Phase::Recovery {
                    if self.board.lost() == 0 {
                        return decision;
                    }
                    self.enter_recovery(ack.marked);
                }
            }
            Phase::Loss => {
                self.proceed_after_timeout(ack, &mut decision);
                self.identify_loss(ack, &mut decision);
                if self.phase != Phase::Open && !decision.lost_again {
                    return decision;
                }
                if !self.is_recovery_due(ack, &mut decision) {
                    return decision;
                }
            }
            Phase::Open | Phase::Disorder | Phase::Reduced => {
                self.count_duplicates(ack);
                if !self.is_recovery_due(ack, &mut decision) {
                    return decision;
                }
            }
        }
        decision.resend = Resend::Lost;
        decision
    }

    /// Leaves a phase whose end was acknowledged. Returns true if the phase is over, but kept for now.
    fn leave_phase(&mut self, ack: &Ack) -> bool {
        if self.phase == Phase::Open {
            self.undo.first_resent = 0;
            return false;
        }
        if self.una < self.high {
            return false;
        }
        match self.phase {
            // This phase lasts until a higher number is acknowledged, so that CWR has reached the receiver.
            Phase::Reduced if self.una > self.high => {
                self.end_reduction();
                self.phase = Phase::Open;
            }
            Phase::Recovery => {
                if !self.config.sack {
                    self.board.forget_duplicates();
                }
                if self.undo_after_full(ack) {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    /// Outside of recovery: detects losses, and enters recovery if there are any.
    fn is_recovery_due(&mut self, ack: &Ack, decision: &mut Decision) -> bool {
        if self.phase <= Phase::Disorder {
            self.undo_if_duplicate();
        }
        self.identify_loss(ack, decision);
        if self.board.lost() == 0 {
            self.try_to_open(ack);
            return false;
        }
        self.enter_recovery(ack.marked);
        true
    }

    /// Runs RACK (RFC 8985), if a segment was delivered since it last ran. Without SACK, counts duplicates.
    fn identify_loss(&mut self, ack: &Ack, decision: &mut Decision) {
        if !self.config.sack {
            self.identify_head_loss(ack);
            return;
        }
        if !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        let resent_before = self.board.resent_in_flight();
        let wait = self.detect_loss();
        decision.lost_again |= self.board.resent_in_flight() < resent_before;
        if let Some(micros) = wait {
            decision.waits_for_reordering = true;
            self.set_reordering_timer(micros);
        }
    }

    /// Marks losses. Returns how long to wait for segments that may only be reordered, µs.
    pub(super) fn detect_loss(&mut self) -> Option<u64> {
        let eager = self.phase >= Phase::Recovery || self.board.sacked() >= self.reordering;
        let smoothed = self.rtt.smoothed().unwrap_or(u64::MAX);
        let window = self.rack.reordering_window(eager, self.rtt.minimum(), smoothed);
        self.board.detect_loss(&self.rack, window, self.now.micros)
    }

    pub(super) fn enter_recovery(&mut self, marked: bool) {
        self.counters.recoveries += 1;
        self.undo.prior_threshold = None;
        self.begin_undo();
        if !self.is_reducing() {
            if !marked {
                self.undo.prior_threshold = Some(self.current_threshold());
            }
            self.begin_reduction(Signal::Loss);
        }
        self.phase = Phase::Recovery;
    }

    fn begin_undo(&mut self) {
        self.undo.marker = Some(self.una);
        let resent = self.board.resent_in_flight();
        self.undo.resent = (resent > 0).then_some(resent);
    }

    fn begin_reduction(&mut self, signal: Signal) {
        self.high = self.next;
        self.probe_sent = None;
        self.window.credit = 0;
        self.reduction = Reduction::begin(self.window.size);
        self.window.threshold = self.control.reduced_threshold(&self.window, signal);
        self.announce_reduction = self.ecn && self.marks.is_none();
    }

    /// Sets the window by proportional rate reduction.
    pub(super) fn reduce_window(&mut self, delivered: u32, progressing: bool) {
        if delivered == 0 {
            return;
        }
        let in_flight = self.board.in_flight();
        let threshold = self.window.threshold;
        self.window.size = self
            .reduction
            .window(threshold, in_flight, delivered, progressing);
    }

    fn end_reduction(&mut self) {
        if self.control.owns_window() {
            return;
        }
        if self.window.threshold < INFINITE && (self.phase == Phase::Reduced || self.undo.marker.is_some()) {
            self.window.size = self.window.threshold;
            self.usage.stamp = self.now.jiffies;
        }
    }

    /// Reduces the window although a probe has repaired the loss.
    pub(super) fn reduce_once(&mut self) {
        self.begin_reduction(Signal::Loss);
        self.phase = Phase::Reduced;
        self.end_reduction();
        self.keep_open();
    }

    /// Handles an echoed CE mark: reduces the window once per round trip (RFC 3168, 6.1.2).
    fn enter_reduced(&mut self) {
        self.undo.prior_threshold = None;
        if self.phase < Phase::Reduced {
            self.counters.ecn_reductions += 1;
            self.undo.marker = None;
            self.begin_reduction(Signal::Mark);
            self.phase = Phase::Reduced;
        }
    }

    fn try_to_open(&mut self, ack: &Ack) {
        if !self.board.is_any_resent() {
            self.undo.first_resent = 0;
        }
        if ack.marked {
            self.enter_reduced();
        }
        if self.phase != Phase::Reduced {
            self.keep_open();
        }
    }

    fn keep_open(&mut self) {
        let left_out = self.board.sacked() + self.board.lost() > 0;
        let phase = if left_out || self.board.is_any_resent() {
            Phase::Disorder
        } else {
            Phase::Open
        };
        if self.phase != phase {
            self.phase = phase;
            self.high = self.next;
        }
    }

    /// Handles a timeout: all segments that were not sent very recently are lost, and the window starts
    /// again.
    pub(super) fn enter_loss(&mut self) {
        let fresh = self.phase < Phase::Recovery;
        let forget_sack = self.board.is_head_sacked();
        self.board
            .mark_timed_out(&self.rack, forget_sack, self.now.micros);
        if self.phase <= Phase::Disorder
            || self.high <= self.una
            || (self.phase == Phase::Loss && self.timeouts == 0)
        {
            self.undo.prior_threshold = Some(self.current_threshold());
            self.reduction.prior_window = self.window.size;
            self.window.threshold = self.control.reduced_threshold(&self.window, Signal::Loss);
            self.begin_undo();
        }
        self.window.size = self.board.in_flight() + 1;
        self.window.credit = 0;
        self.usage.stamp = self.now.jiffies;
        if self.phase <= Phase::Disorder && self.board.sacked() >= REORDERING {
            self.reordering = self.reordering.min(REORDERING);
        }
        self.phase = Phase::Loss;
        self.control.on_timeout(self.now, self.next, &mut self.window);
        self.high = self.next;
        self.announce_reduction = self.ecn && self.marks.is_none();
        self.frto = fresh || self.timeouts > 0;
    }

    /// Handles an acknowledgement after a timeout: continues to retransmit, unless F-RTO or a timestamp shows
    /// that the timeout was spurious.
    fn proceed_after_timeout(&mut self, ack: &Ack, decision: &mut Decision) {
        if ack.advances && self.undo_loss(ack, false) {
            return;
        }
        let recovered = self.una >= self.high;
        if self.frto {
            // RFC 5682, 3.1, step 3.b: a segment arrived that was sent only once, before the timeout.
            if ack.original_delivered && self.undo_loss(ack, true) {
                return;
            }
            if self.next > self.high {
                if ack.sacked > 0 || ack.repeats {
                    // Step 3.a: the loss was real.
                    self.frto = false;
                }
            } else if ack.advances && !recovered {
                // Step 2.b: send new data first.
                self.high = self.next;
                if self.written > self.next && self.peer_edge > self.next {
                    decision.resend = Resend::NewFirst;
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.undo_after_full(ack);
            return;
        }
        if !self.config.sack {
            if self.next > self.high && ack.repeats {
                // The duplicate of a new segment that F-RTO has sent.
                self.count_duplicate(ack);
            } else if ack.advances {
                self.board.forget_duplicates();
            }
        }
        decision.resend = Resend::Lost;
    }

    /// The whole recovery is acknowledged: returns to Open, and restores the old window if the reduction was
    /// unnecessary. Returns true if the phase is kept for now.
    fn undo_after_full(&mut self, ack: &Ack) -> bool {
        if self.undo.is_all_duplicate() || self.undo.answers_original(ack.echo) {
            self.undo_reduction(false);
        } else {
            self.rack.recovery_ended();
        }
        if self.holds_phase() {
            if !self.board.is_any_resent() {
                self.undo.first_resent = 0;
            }
            return true;
        }
        self.phase = Phase::Open;
        false
    }

    fn undo_loss(&mut self, ack: &Ack, proven: bool) -> bool {
        if !proven && !self.undo.is_all_duplicate() && !self.undo.answers_original(ack.echo) {
            return false;
        }
        self.undo_reduction(true);
        self.timeouts = 0;
        self.phase = Phase::Open;
        true
    }

    /// A late original has filled a hole, which shows reordering. Returns true if retransmissions in flight
    /// prevent further steps.
    fn undo_after_partial(&mut self, ack: &Ack) -> bool {
        if !self.undo.answers_original(ack.echo) {
            return false;
        }
        self.note_reordering(ack.prior_una, self.board.highest_sacked(self.una));
        if self.board.resent_in_flight() > 0 {
            return true;
        }
        if !self.board.is_any_resent() {
            self.undo.first_resent = 0;
        }
        self.undo_reduction(true);
        self.keep_open();
        false
    }

    fn undo_if_duplicate(&mut self) -> bool {
        if !self.undo.is_all_duplicate() {
            return false;
        }
        self.rack.recovery_undone();
        self.undo_reduction(false);
        true
    }

    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        if let Some(threshold) = self.undo.prior_threshold {
            self.counters.undone += 1;
            if self.control.owns_window() {
                let delivered = self.board.delivered();
                self.control.on_undo(delivered, self.now, &mut self.window);
            } else {
                self.window.size = self.window.size.max(self.reduction.prior_window);
            }
            if threshold > self.window.threshold {
                self.window.threshold = threshold;
                self.announce_reduction = false;
            }
        }
        self.usage.stamp = self.now.jiffies;
        self.undo.marker = None;
        // Detect losses again.
        self.rack.advanced = true;
    }

    /// Handles a DSACK (RFC 2883): the receiver got a segment twice.
    pub(super) fn read_duplicate(&mut self, block: Range, ack: &mut Ack) {
        let segments = block.len().div_ceil(u64::from(self.config.mss)) as u32;
        self.duplicates += u64::from(segments);
        if block.is_empty() || block.end > self.next || self.duplicates > self.counters.retransmissions {
            // More duplicates than retransmissions: the network duplicates packets.
            return;
        }
        let of_probe = self.probe_sent.is_some_and(|(next, _)| next == block.end);
        if !of_probe {
            self.rack.duplicate_seen();
        }
        ack.add_duplicates(segments, of_probe);
        let resent_outstanding = self.board.read_duplicate(block);
        let concerns_undo = self.undo.marker.is_some_and(|marker| block.end > marker);
        if concerns_undo && let Some(resent) = &mut self.undo.resent {
            let unneeded = if block.end <= ack.prior_una {
                segments
            } else {
                resent_outstanding
            };
            *resent = resent.saturating_sub(unneeded);
        }
    }

    /// Returns whether reordering may be learnt. After a timeout, retransmissions can't be told from
    /// originals.
    pub(super) fn may_learn_reordering(&self) -> bool {
        self.phase != Phase::Loss || self.undo.marker.is_some()
    }

    /// Records that `late_from` arrived after data up to `highest`.
    pub(super) fn note_reordering(&mut self, late_from: u64, highest: u64) {
        if late_from >= highest {
            return;
        }
        let distance = (highest - late_from).div_ceil(u64::from(self.config.mss));
        self.reordering = self.reordering.max(distance.min(300) as u32);
        self.rack.reordering_seen();
    }

    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Returns whether proportional rate reduction controls the window.
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    /// Returns the threshold for the current window: at least three quarters of it.
    pub(super) fn current_threshold(&self) -> u32 {
        if self.is_reducing() {
            self.window.threshold
        } else {
            self.window
                .threshold
                .max(self.window.size / 2 + self.window.size / 4)
        }
    }
}
