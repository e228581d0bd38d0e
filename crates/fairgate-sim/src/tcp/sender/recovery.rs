//! Loss recovery: the states of congestion, how they are entered and left, and what is undone if nothing was lost.
//!
//! ```text
//!   Open --SACK--> Disorder --RACK finds a loss--> Recovery --high acknowledged--> Open
//!     |ECE           |ECE                            |  \--undo: originals arrived--> Open
//!     +-> Reduced <--+                               |
//!          --high passed--> Open        any --time-out--> Loss --high acknowledged or undo--> Open
//! ```
//!
//! In Recovery and Reduced the window follows proportional rate reduction, in Loss it starts over from one segment.
//! A reduction is undone when every retransmission is reported as a duplicate (DSACK), when an acknowledgement answers
//! an original's timestamp (Eifel, RFC 4015), or when after a time-out an original arrives (F-RTO, RFC 5682).

use super::ack::{Ack, Judgement};
use super::transmit::Resend;
use super::{REORDERING, Sender};
use crate::tcp::congestion::{INFINITE, Signal};
use crate::tcp::prr::Reduction;
use crate::tcp::segment::Range;

/// The state of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Nothing is amiss.
    Open,
    /// Something arrived behind a hole.
    Disorder,
    /// The window comes down after a mark (Linux: CWR).
    Reduced,
    /// Fast recovery.
    Recovery,
    /// After a time-out.
    Loss,
}

/// What it takes to undo a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The first unacknowledged number when recovery began; none if there is nothing to undo.
    marker: Option<u64>,
    /// Retransmissions not yet reported as duplicates; none was made if there is no number.
    resent: Option<u32>,
    /// Threshold before the reduction; none if a mark or an earlier reduction forbids going back.
    prior_threshold: Option<u32>,
    /// TSval of the first retransmission; 0 if there was none.
    first_resent: u32,
}

impl Undo {
    /// A segment was resent at `timestamp`.
    pub(super) fn on_resent(&mut self, timestamp: u32) {
        if self.first_resent == 0 {
            self.first_resent = timestamp;
        }
        self.resent = Some(self.resent.unwrap_or(0) + 1);
    }

    /// All retransmissions were unnecessary.
    fn is_all_duplicate(&self) -> bool {
        self.marker.is_some() && self.resent == Some(0)
    }

    /// An acknowledgement that answers an earlier timestamp than the first retransmission's answers an original.
    fn answers_original(&self, echo: u32) -> bool {
        self.marker.is_some() && (self.first_resent == 0 || (echo != 0 && echo < self.first_resent))
    }
}

impl Sender {
    /// The state machine, run for each acknowledgement that isn't plain progress.
    pub(super) fn judge(&mut self, ack: &Ack) -> Judgement {
        let mut judgement = Judgement::default();
        if ack.marked {
            self.undo.prior_threshold = None;
        }
        self.leave_phase(ack);
        match self.phase {
            Phase::Recovery => {
                if ack.advances && self.undo_after_partial(ack) {
                    return judgement;
                }
                if self.undo_if_duplicate() {
                    self.try_to_open(ack);
                }
                self.identify_loss(&mut judgement);
                if self.phase != Phase::Recovery {
                    if self.board.lost() == 0 {
                        return judgement;
                    }
                    self.enter_recovery(ack.marked);
                }
            }
            Phase::Loss => {
                self.proceed_after_timeout(ack, &mut judgement);
                self.identify_loss(&mut judgement);
                if self.phase != Phase::Open && !judgement.lost_again {
                    return judgement;
                }
                if !self.is_recovery_due(ack, &mut judgement) {
                    return judgement;
                }
            }
            Phase::Open | Phase::Disorder | Phase::Reduced => {
                if !self.is_recovery_due(ack, &mut judgement) {
                    return judgement;
                }
            }
        }
        judgement.resend = Resend::Lost;
        judgement
    }

    /// Leaves a phase whose end is acknowledged.
    fn leave_phase(&mut self, ack: &Ack) {
        if self.phase == Phase::Open {
            self.undo.first_resent = 0;
            return;
        }
        if self.una < self.high {
            return;
        }
        match self.phase {
            // Held until something above is acknowledged, so that CWR has reached the receiver.
            Phase::Reduced if self.una > self.high => {
                self.end_reduction();
                self.phase = Phase::Open;
            }
            Phase::Recovery => {
                self.undo_after_full(ack);
                self.end_reduction();
            }
            _ => {}
        }
    }

    /// Outside of recovery: looks for losses, and enters it if there are any.
    fn is_recovery_due(&mut self, ack: &Ack, judgement: &mut Judgement) -> bool {
        if self.phase <= Phase::Disorder {
            self.undo_if_duplicate();
        }
        self.identify_loss(judgement);
        if self.board.lost() == 0 {
            self.try_to_open(ack);
            return false;
        }
        self.enter_recovery(ack.marked);
        true
    }

    /// RACK (RFC 8985), if something was delivered since it looked last.
    fn identify_loss(&mut self, judgement: &mut Judgement) {
        if !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        let resent_before = self.board.resent_in_flight();
        let wait = self.detect_loss();
        judgement.lost_again |= self.board.resent_in_flight() < resent_before;
        if let Some(micros) = wait {
            judgement.waits_for_reordering = true;
            self.set_reordering_timer(micros);
        }
    }

    /// Marks losses. Returns how long to wait for what may only be reordered, µs.
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
        self.window.threshold = self.control.reduced_threshold(self.window.size, signal);
        self.announce_reduction = self.ecn;
    }

    /// Lets the window follow proportional rate reduction.
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
        if self.window.threshold < INFINITE && (self.phase == Phase::Reduced || self.undo.marker.is_some()) {
            self.window.size = self.window.threshold;
            self.usage.stamp = self.now.jiffies;
        }
    }

    /// A probe has repaired a loss: the window comes down all the same.
    pub(super) fn reduce_once(&mut self) {
        self.begin_reduction(Signal::Loss);
        self.phase = Phase::Reduced;
        self.end_reduction();
        self.keep_open();
    }

    /// A CE mark is echoed: once a round trip the window comes down (RFC 3168, 6.1.2).
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

    /// A time-out: everything not sent just recently is lost, and the window starts over.
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
            self.window.threshold = self.control.reduced_threshold(self.window.size, Signal::Loss);
            self.begin_undo();
        }
        self.window.size = self.board.in_flight() + 1;
        self.window.credit = 0;
        self.usage.stamp = self.now.jiffies;
        if self.phase <= Phase::Disorder && self.board.sacked() >= REORDERING {
            self.reordering = self.reordering.min(REORDERING);
        }
        self.phase = Phase::Loss;
        self.control.on_timeout(self.now, self.next);
        self.high = self.next;
        self.announce_reduction = self.ecn;
        self.frto = fresh || self.timeouts > 0;
    }

    /// An acknowledgement after a time-out: retransmits on, unless F-RTO or a timestamp shows it to be spurious.
    fn proceed_after_timeout(&mut self, ack: &Ack, judgement: &mut Judgement) {
        if ack.advances && self.undo_loss(ack, false) {
            return;
        }
        let recovered = self.una >= self.high;
        if self.frto {
            // RFC 5682, 3.1, step 3.b: what was sent only once, before the time-out, has arrived.
            if ack.original_delivered && self.undo_loss(ack, true) {
                return;
            }
            if self.next > self.high {
                if ack.sacked > 0 || ack.repeats {
                    // Step 3.a: the loss was real.
                    self.frto = false;
                }
            } else if ack.advances && !recovered {
                // Step 2.b: send new data and see.
                self.high = self.next;
                if self.written > self.next && self.peer_edge > self.next {
                    judgement.resend = Resend::NewFirst;
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.undo_after_full(ack);
            return;
        }
        judgement.resend = Resend::Lost;
    }

    /// The whole recovery is acknowledged: back to Open, and to the old window if it wasn't needed.
    fn undo_after_full(&mut self, ack: &Ack) {
        if self.undo.is_all_duplicate() || self.undo.answers_original(ack.echo) {
            self.undo_reduction(false);
        } else {
            self.rack.recovery_ended();
        }
        self.phase = Phase::Open;
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

    /// A hole is filled by the late original: reordering. True if retransmissions in flight forbid to go on.
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
            self.window.size = self.window.size.max(self.reduction.prior_window);
            if threshold > self.window.threshold {
                self.window.threshold = threshold;
                self.announce_reduction = false;
            }
        }
        self.usage.stamp = self.now.jiffies;
        self.undo.marker = None;
        // Look at all losses again.
        self.rack.advanced = true;
    }

    /// DSACK (RFC 2883): the receiver got a segment twice.
    pub(super) fn read_duplicate(&mut self, block: Range, ack: &mut Ack) {
        let segments = block.len().div_ceil(u64::from(self.config.mss)) as u32;
        self.duplicates += u64::from(segments);
        if block.is_empty() || block.end > self.next || self.duplicates > self.counters.retransmissions {
            // Not of our making: the network duplicates.
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

    /// Reordering counts except after a time-out, when retransmissions cannot be told from originals.
    pub(super) fn may_learn_reordering(&self) -> bool {
        self.phase != Phase::Loss || self.undo.marker.is_some()
    }

    /// `late_from` arrived after data up to `highest`.
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

    /// Whether proportional rate reduction governs the window.
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    /// The threshold that a sender of this window deserves: three quarters of it at least.
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
