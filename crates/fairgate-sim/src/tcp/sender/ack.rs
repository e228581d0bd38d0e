//! What an acknowledgement says, and what follows from it.

use super::transmit::Resend;
use super::{Sender, State};
use crate::tcp::congestion::{Progress, Sample};
use crate::tcp::scoreboard::{Circumstances, Evidence};
use crate::tcp::segment::{Flags, Segment};

/// An acknowledgement, read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ack {
    /// It acknowledges new data.
    pub(super) advances: bool,
    /// It says nothing new at all.
    pub(super) repeats: bool,
    /// Segments acknowledged cumulatively.
    acked: u32,
    /// Segments newly SACKed.
    pub(super) sacked: u32,
    /// Segments of which it reports a duplicate (DSACK).
    duplicates: u32,
    /// The duplicate is the loss probe's.
    probe_duplicate: bool,
    /// It echoes a CE mark.
    pub(super) marked: bool,
    /// Data sent once, before the recovery, has arrived.
    pub(super) original_delivered: bool,
    /// The timestamp that it answers, ms.
    pub(super) echo: u32,
    /// The first unacknowledged number before it.
    pub(super) prior_una: u64,
}

/// What the state machine found in an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Judgement {
    /// What is to be sent again.
    pub(super) resend: Resend,
    /// The timer now waits for reordered segments and must not be set otherwise.
    pub(super) waits_for_reordering: bool,
    /// A retransmission was lost.
    pub(super) lost_again: bool,
}

impl Sender {
    pub(super) fn on_ack(&mut self, segment: &Segment) {
        // What was never sent cannot be acknowledged, and what an old copy says is known.
        if segment.ack > self.next || (segment.ack < self.una && segment.sack.is_empty()) {
            return;
        }
        let delivered_before = self.board.delivered();
        let losses_before = self.board.losses();
        let outstanding_before = self.board.outstanding_segments();
        let highest_before = self.board.highest_sacked(self.una);
        let is_old = segment.ack < self.una;
        let mut ack = self.read(segment);

        let mut evidence = Evidence::new();
        self.read_sack(segment, &mut ack, &mut evidence);
        if is_old || outstanding_before == 0 {
            if is_old || ack.duplicates > 0 {
                self.resend = self.judge(&ack).resend;
            }
            return;
        }
        self.read_acknowledgement(segment, highest_before, &mut ack, &mut evidence);
        let delivered = (self.board.delivered() - delivered_before) as u32;
        self.control
            .on_delivered(delivered, ack.marked, self.una, self.next);
        // An echo that comes with new data is of a segment that has just arrived; others are of old ones (RFC 7323, section 4.3).
        if ack.advances && ack.echo != 0 {
            let millis = segment.timestamp.saturating_sub(ack.echo);
            self.control.on_one_way_delay(millis, self.now);
        }
        let mut set_timer = self.measure_rtt(&ack, &evidence);
        if evidence.delivered_before > 0 {
            self.rack.adapt(self.board.delivered(), evidence.delivered_before);
        }
        self.judge_probe(&ack);

        let is_dubious = ack.repeats || ack.sacked > 0 || ack.duplicates > 0 || ack.marked || !self.is_open();
        let judgement = if is_dubious {
            self.judge(&ack)
        } else {
            Judgement::default()
        };
        set_timer &= !judgement.waits_for_reordering;
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
        self.control_window(&ack, progress, self.board.losses() > losses_before);
        self.resend = judgement.resend;
        if self.fin_sent && self.una == self.next {
            self.state = State::Closed;
            self.timer = None;
        }
    }

    /// The header: acknowledgement, window, timestamp, echo of a mark.
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
            marked: self.ecn && segment.flags.contains(Flags::ECE),
            echo: segment.echo,
            prior_una,
            ..Ack::default()
        }
    }

    fn circumstances(&self, segment: &Segment) -> Circumstances {
        Circumstances {
            now: self.now.micros,
            rtt_min: self.rtt.minimum(),
            high: self.high,
            echo: segment.echo,
        }
    }

    fn read_sack(&mut self, segment: &Segment, ack: &mut Ack, evidence: &mut Evidence) {
        let blocks = segment.sack.as_slice();
        let Some(&first) = blocks.first() else {
            return;
        };
        // RFC 2883, 4: a first block below the acknowledgement, or within the second, reports a duplicate.
        let is_duplicate =
            first.start < segment.ack || blocks.get(1).is_some_and(|second| second.contains(first));
        if is_duplicate {
            self.read_duplicate(first, ack);
        }
        let circumstances = self.circumstances(segment);
        let rack = &mut self.rack;
        self.board.read_sack(
            &segment.sack,
            is_duplicate,
            self.una,
            circumstances,
            rack,
            evidence,
        );
        ack.sacked = evidence.sacked;
        ack.original_delivered = evidence.original_delivered;
        if evidence.late_from < u64::MAX && self.may_learn_reordering() {
            self.note_reordering(evidence.late_from, self.board.highest_sacked(self.una));
        }
    }

    fn read_acknowledgement(
        &mut self,
        segment: &Segment,
        highest_before: u64,
        ack: &mut Ack,
        evidence: &mut Evidence,
    ) {
        evidence.late_from = u64::MAX;
        let circumstances = self.circumstances(segment);
        self.board
            .acknowledge(self.una, circumstances, &mut self.rack, evidence);
        ack.acked = evidence.acked;
        ack.original_delivered = evidence.original_delivered;
        // A hole was filled by a segment that had never been resent: reordering.
        if evidence.late_from < highest_before {
            self.note_reordering(evidence.late_from, self.board.highest_sacked(self.una));
        }
    }

    /// Takes the RTT of what was delivered. True if the retransmission timer is to be set anew.
    fn measure_rtt(&mut self, ack: &Ack, evidence: &Evidence) -> bool {
        let since = |sent_at: u64| self.now.micros - sent_at;
        let mut measured = None;
        let mut newest = None;
        if let Some((first, last)) = evidence.acked_sent_at
            && !evidence.resent_acked
        {
            (measured, newest) = (Some(since(first)), Some(since(last)));
        }
        let sacked = evidence.sacked_sent_at.map(|(first, _)| since(first));
        if let Some((_, last)) = evidence.sacked_sent_at {
            newest = Some(since(last));
        }
        measured = measured.or(sacked);
        if measured.is_none() && ack.acked > 0 && ack.echo != 0 {
            // Karn's algorithm leaves the timestamp (RFC 7323, 4.1).
            let millis = u64::from(self.now.timestamp().saturating_sub(ack.echo));
            (measured, newest) = (Some(millis * 1000), Some(millis * 1000));
        }
        let mut set_timer = ack.acked > 0;
        if let (Some(measured), Some(newest)) = (measured, newest) {
            self.rtt.observe_minimum(newest);
            self.rtt.measure(measured, self.una, self.next);
            self.timeout = self.clock.ticks(self.rtt.timeout());
            // Data sent after the first segment's last transmission has arrived: the timer may move.
            if let (Some(head), Some(sacked)) = (self.board.head(), sacked) {
                set_timer |= sacked > since(head.sent_at);
            }
            let sample = Sample {
                rtt: newest,
                una: self.una,
                next: self.next,
            };
            self.control.on_sample(sample, self.now, &mut self.window);
        }
        set_timer
    }

    /// A loss probe is answered: was there a loss that the probe has repaired?
    fn judge_probe(&mut self, ack: &Ack) {
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

    /// Moves the congestion window: down during a reduction, else as the congestion control says.
    fn control_window(&mut self, ack: &Ack, progress: Progress, lost: bool) {
        if self.is_reducing() {
            self.reduce_window(progress.delivered, ack.advances && !lost);
            return;
        }
        // Where much is reordered, everything that arrives counts; else only what comes in order (RFC 5681).
        let counted = if self.reordering > super::REORDERING {
            ack.acked + ack.sacked + ack.duplicates
        } else {
            ack.acked
        };
        if counted == 0 {
            return;
        }
        self.control.on_progress(progress, self.now, &mut self.window);
        self.usage.stamp = self.now.jiffies;
    }
}

impl Ack {
    /// Takes `segments` reported as duplicates in.
    pub(super) fn add_duplicates(&mut self, segments: u32, of_probe: bool) {
        self.duplicates += segments;
        self.probe_duplicate = of_probe;
        self.repeats = false;
    }
}
