//! Processes acknowledgements.

use super::transmit::Resend;
use super::{Sender, State};
use crate::tcp::congestion::{Progress, Sample};
use crate::tcp::scoreboard::{AckContext, Findings};
use crate::tcp::segment::{Flags, Segment};

/// The content of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ack {
    /// Whether it acknowledges new data.
    pub(super) advances: bool,
    /// Whether it contains nothing new.
    pub(super) repeats: bool,
    /// The number of segments acknowledged cumulatively.
    acked: u32,
    /// The number of segments newly SACKed.
    pub(super) sacked: u32,
    /// The number of segments that it reports as duplicates (DSACK).
    duplicates: u32,
    /// Whether the duplicate is that of the loss probe.
    probe_duplicate: bool,
    /// Whether it echoes a CE mark, to which the sender reacts once per round trip.
    pub(super) marked: bool,
    /// The RTT of the newest delivered segment, µs, if it was measured.
    pub(super) rtt: Option<u64>,
    /// Whether data has arrived that was sent once, before the recovery.
    pub(super) original_delivered: bool,
    /// The timestamp that it echoes, ms.
    pub(super) echo: u32,
    /// The first unacknowledged number before it.
    pub(super) prior_una: u64,
}

/// What the state machine decided about an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// What to retransmit.
    pub(super) resend: Resend,
    /// Whether the timer now waits for reordered segments and must not be changed.
    pub(super) waits_for_reordering: bool,
    /// Whether a retransmission was lost.
    pub(super) lost_again: bool,
}

impl Sender {
    pub(super) fn on_ack(&mut self, segment: &Segment) {
        // Ignore acknowledgements of numbers that were never sent, and old copies.
        if segment.ack > self.next || (segment.ack < self.una && segment.sack.is_empty()) {
            return;
        }
        let delivered_before = self.board.delivered();
        let losses_before = self.board.losses();
        let outstanding_before = self.board.outstanding_segments();
        let in_flight_before = self.board.in_flight();
        let highest_before = self.board.highest_sacked(self.una);
        let is_old = segment.ack < self.una;
        let mut ack = self.read(segment);

        let mut findings = Findings::new();
        self.read_sack(segment, &mut ack, &mut findings);
        if is_old || outstanding_before == 0 {
            if is_old || ack.duplicates > 0 {
                self.resend = self.decide(&ack).resend;
            }
            return;
        }
        self.read_acknowledgement(segment, highest_before, &mut ack, &mut findings);
        let delivered = (self.board.delivered() - delivered_before) as u32;
        let marked = match &mut self.marks {
            Some(marks) => marks.read(segment.accurate_ecn, delivered, self.config.mss),
            None if ack.marked => delivered,
            None => 0,
        };
        let smoothed = self.rtt.smoothed();
        self.control
            .on_delivered((delivered, marked), (self.una, self.next), smoothed, self.now);
        // An echo that comes with new data belongs to a segment that has just arrived. Other echoes belong to
        // old segments (RFC 7323, section 4.3).
        if ack.advances && ack.echo != 0 {
            let millis = segment.timestamp.saturating_sub(ack.echo);
            self.control.on_one_way_delay(millis, self.now);
        }
        let mut set_timer = self.measure_rtt(&mut ack, &findings);
        if findings.delivered_before > 0 {
            self.rack.adapt(self.board.delivered(), findings.delivered_before);
        }
        self.check_probe(&ack);

        let is_dubious = ack.repeats || ack.sacked > 0 || ack.duplicates > 0 || ack.marked || !self.is_open();
        let decision = if is_dubious {
            self.decide(&ack)
        } else {
            Decision::default()
        };
        set_timer &= !decision.waits_for_reordering;
        if set_timer {
            self.set_transmission_timer();
        }
        let delivered = (self.board.delivered() - delivered_before) as u32 + ack.duplicates;
        let progress = Progress {
            delivered,
            outstanding: outstanding_before,
            limited: self
                .usage
                .is_limited(self.window.size, self.window.in_slow_start()),
        };
        if self.control.owns_window() {
            self.consult(&ack, delivered, in_flight_before);
        } else {
            self.control_window(&ack, progress, self.board.losses() > losses_before);
            let (smoothed, mss) = (self.rtt.smoothed(), self.config.mss);
            let outstanding = self.board.outstanding_segments();
            self.control
                .pace(smoothed, outstanding, &self.window, mss, &mut self.pacer);
        }
        self.resend = decision.resend;
        if self.fin_sent && self.una == self.next {
            self.state = State::Closed;
            self.timer = None;
        }
    }

    /// Reads the header: acknowledgement, window, timestamp, echo of a mark.
    fn read(&mut self, segment: &Segment) -> Ack {
        let prior_una = self.una;
        let advances = segment.ack > self.una;
        let edge = segment.ack + u64::from(segment.window);
        let opens_window = edge > self.peer_edge;
        self.peer_edge = self.peer_edge.max(edge);
        self.una = self.una.max(segment.ack);
        self.timestamp = self.timestamp.max(segment.timestamp);
        if advances {
            self.timeouts = 0;
        }
        Ack {
            advances,
            repeats: !advances && !opens_window,
            marked: self.ecn && self.marks.is_none() && segment.flags.contains(Flags::ECE),
            echo: segment.echo,
            prior_una,
            ..Ack::default()
        }
    }

    fn context(&self, segment: &Segment) -> AckContext {
        AckContext {
            now: self.now.micros,
            rtt_min: self.rtt.minimum(),
            high: self.high,
            echo: segment.echo,
        }
    }

    fn read_sack(&mut self, segment: &Segment, ack: &mut Ack, findings: &mut Findings) {
        let blocks = segment.sack.as_slice();
        let Some(&first) = blocks.first() else {
            return;
        };
        // RFC 2883, 4: a first block below the acknowledgement, or inside the second block, reports a
        // duplicate.
        let is_duplicate =
            first.start < segment.ack || blocks.get(1).is_some_and(|second| second.contains(first));
        if is_duplicate {
            self.read_duplicate(first, ack);
        }
        let context = self.context(segment);
        let rack = &mut self.rack;
        self.board
            .read_sack(&segment.sack, is_duplicate, self.una, context, rack, findings);
        ack.sacked = findings.sacked;
        ack.original_delivered = findings.original_delivered;
        if findings.late_from < u64::MAX && self.may_learn_reordering() {
            self.note_reordering(findings.late_from, self.board.highest_sacked(self.una));
        }
    }

    fn read_acknowledgement(
        &mut self,
        segment: &Segment,
        highest_before: u64,
        ack: &mut Ack,
        findings: &mut Findings,
    ) {
        findings.late_from = u64::MAX;
        let context = self.context(segment);
        self.board
            .acknowledge(self.una, context, &mut self.rack, findings);
        ack.acked = findings.acked;
        ack.original_delivered = findings.original_delivered;
        if !self.config.sack {
            // Which of the acknowledged segments had arrived before is unknown.
            ack.original_delivered &= !findings.resent_acked;
            if self.board.remove_duplicates(findings.acked) {
                self.learn_from_duplicates(findings.acked);
            }
        }
        // A segment that was never retransmitted has filled a hole, which shows reordering.
        if findings.late_from < highest_before {
            self.note_reordering(findings.late_from, self.board.highest_sacked(self.una));
        }
    }

    /// Measures the RTT of the delivered segments. Returns true if the retransmission timer has to be set
    /// again.
    fn measure_rtt(&mut self, ack: &mut Ack, findings: &Findings) -> bool {
        let since = |sent_at: u64| self.now.micros - sent_at;
        let mut measured = None;
        let mut newest = None;
        if let Some((first, last)) = findings.acked_sent_at
            && !findings.resent_acked
        {
            (measured, newest) = (Some(since(first)), Some(since(last)));
        }
        let sacked = findings.sacked_sent_at.map(|(first, _)| since(first));
        if let Some((_, last)) = findings.sacked_sent_at {
            newest = Some(since(last));
        }
        measured = measured.or(sacked);
        if measured.is_none() && ack.acked > 0 && ack.echo != 0 {
            // Only the timestamp is unambiguous by Karn's algorithm (RFC 7323, 4.1).
            let millis = u64::from(self.now.timestamp().saturating_sub(ack.echo));
            (measured, newest) = (Some(millis * 1000), Some(millis * 1000));
        }
        let mut set_timer = ack.acked > 0;
        if let (Some(measured), Some(newest)) = (measured, newest) {
            self.rtt.observe_minimum(newest);
            self.rtt.measure(measured, self.una, self.next);
            self.timeout = self.clock.ticks(self.rtt.timeout());
            // Data has arrived that was sent after the first segment's last transmission, so the timer may
            // move.
            if let (Some(head), Some(sacked)) = (self.board.head(), sacked) {
                set_timer |= sacked > since(head.sent_at);
            }
            let sample = Sample {
                rtt: newest,
                una: self.una,
                next: self.next,
            };
            self.control.on_sample(sample, self.now, &mut self.window);
            ack.rtt = Some(newest);
        }
        set_timer
    }

    /// Handles the answer to a loss probe: checks whether the probe has repaired a loss.
    fn check_probe(&mut self, ack: &Ack) {
        let Some((probe_next, resent)) = self.probe_sent else {
            return;
        };
        if self.una < probe_next {
            return;
        }
        let both_arrived = ack.probe_duplicate || (ack.repeats && ack.sacked == 0);
        if !resent || both_arrived {
            self.probe_sent = None;
        } else if self.una > probe_next {
            self.reduce_once();
        }
    }

    /// Changes the congestion window: down during a reduction, otherwise as the congestion control decides.
    fn control_window(&mut self, ack: &Ack, progress: Progress, lost: bool) {
        if self.is_reducing() {
            self.reduce_window(progress.delivered, ack.advances && !lost);
            return;
        }
        // On a path with much reordering, all segments that arrive count. Otherwise only those in order count
        // (RFC 5681).
        let counted = if self.reordering > super::REORDERING {
            ack.acked + ack.sacked + ack.duplicates
        } else {
            ack.acked
        };
        if counted == 0 {
            return;
        }
        if self.control.on_progress(progress, self.now, &mut self.window) {
            self.counters.ecn_reductions += 1;
        }
        self.usage.stamp = self.now.jiffies;
    }
}

impl Ack {
    /// Adds `segments` that were reported as duplicates.
    pub(super) fn add_duplicates(&mut self, segments: u32, of_probe: bool) {
        self.duplicates += segments;
        self.probe_duplicate = of_probe;
        self.repeats = false;
    }
}
