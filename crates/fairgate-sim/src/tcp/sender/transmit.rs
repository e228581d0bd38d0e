//! Sends segments: handshake, probes, retransmissions, new data.

use fairgate::{Ecn, Time};

use super::{Sender, State};
use crate::tcp::scoreboard::Outstanding;
use crate::tcp::segment::{Flags, Range, Segment};

/// What to retransmit in this poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Resend {
    #[default]
    Nothing,
    /// Lost segments, as the window allows.
    Lost,
    /// New data first, and lost segments only if there is no new data (F-RTO).
    NewFirst,
}

/// A segment that is sent without regard to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// The first segment, after a timeout.
    Head,
    /// The tail loss probe: new data, or the last segment.
    Tail,
}

impl Sender {
    /// Returns the next segment to send, if there is one.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if !self.polling {
            return None;
        }
        self.clock.advance(&mut self.now, now);
        let segment = self.next_segment();
        if segment.is_none() {
            self.end_polling();
        }
        segment
    }

    fn next_segment(&mut self) -> Option<Segment> {
        match self.state {
            State::Opening => return self.syn(),
            State::Closed if !self.ack_due => return None,
            State::Established | State::Closed => {}
        }
        if std::mem::take(&mut self.ack_due) {
            return Some(self.segment(
                Range {
                    start: self.next,
                    end: self.next,
                },
                Flags::ACK,
            ));
        }
        if let Some(probe) = self.probe.take()
            && let Some(segment) = self.probe_segment(probe)
        {
            return Some(segment);
        }
        if self.resend == Resend::NewFirst {
            if let Some(segment) = self.new_segment() {
                return Some(segment);
            }
            self.resend = Resend::Nothing;
            if self.next <= self.high {
                self.frto = false;
                self.resend = Resend::Lost;
            }
        }
        if self.resend == Resend::Lost {
            if let Some(segment) = self.lost_segment() {
                return Some(segment);
            }
            self.resend = Resend::Nothing;
            if std::mem::take(&mut self.head_resent) {
                self.restart_timeout_of_head();
            }
        }
        self.new_segment()
    }

    fn syn(&mut self) -> Option<Segment> {
        if !std::mem::take(&mut self.syn_due) {
            return None;
        }
        self.syn_sent_at = self.now.micros;
        self.next = 1;
        self.set_handshake_timer();
        let mut flags = Flags::SYN;
        if self.config.ecn {
            flags = flags | Flags::ECE | Flags::CWR;
        }
        Some(self.segment(Range { start: 0, end: 1 }, flags))
    }

    /// Builds a segment for `range`, without ECN bits.
    fn segment(&self, range: Range, mut flags: Flags) -> Segment {
        let is_syn = flags.contains(Flags::SYN);
        let has_fin = self.fin_sent && !range.is_empty() && range.end > self.written;
        if has_fin {
            flags |= Flags::FIN;
        }
        Segment {
            seq: range.start,
            ack: u64::from(!is_syn),
            length: (range.len() - u64::from(is_syn || has_fin)) as u32,
            // Only acknowledgements come back, so the window does not matter.
            window: u32::from(u16::MAX),
            timestamp: self.now.timestamp(),
            echo: self.timestamp,
            flags,
            ..Segment::default()
        }
    }

    fn probe_segment(&mut self, probe: Probe) -> Option<Segment> {
        match probe {
            Probe::Head => {
                let head = self.board.head()?;
                // After a timeout, the first segment is retransmitted first, and then the other lost
                // segments.
                let lost = self
                    .board
                    .next_to_resend()
                    .filter(|lost| lost.number == head.number)?;
                Some(self.resend(lost, false))
            }
            Probe::Tail => self.tail_probe(),
        }
    }

    fn tail_probe(&mut self) -> Option<Segment> {
        self.counters.probes += 1;
        let (segment, resent) = match self.sendable() {
            Some(range) => (Some(self.send_new(range)), false),
            None => (self.board.tail().map(|tail| self.resend(tail, true)), true),
        };
        if segment.is_some() {
            self.probe_sent = Some((self.next, resent));
            self.rearm(false);
        }
        segment
    }

    fn lost_segment(&mut self) -> Option<Segment> {
        if self.board.in_flight() >= self.window.size {
            return None;
        }
        let lost = self.board.next_to_resend()?;
        if self.pacer.must_wait(self.now.time) {
            return None;
        }
        if self.is_reducing() {
            self.reduction.sent += 1;
        }
        let is_head = self.board.head().is_some_and(|head| head.number == lost.number);
        self.head_resent |= is_head && !self.waits_for_reordering();
        Some(self.resend(lost, false))
    }

    fn resend(&mut self, outstanding: Outstanding, probe: bool) -> Segment {
        self.board.resent(outstanding.number, self.now.micros, probe);
        if !probe {
            self.undo.on_resent(self.now.timestamp());
        }
        self.counters.retransmissions += 1;
        self.note_departure(outstanding.range.len() as u32);
        self.last_sent = self.now.jiffies;
        // RFC 3168, 6.1.5: a retransmission is not ECN-capable.
        self.segment(outstanding.range, Flags::ACK)
    }

    /// Counts a data segment that leaves, and lets the pacer know.
    fn note_departure(&mut self, bytes: u32) {
        let number = self.counters.data_segments;
        self.pacer.sent(bytes, number, self.now.time);
        self.counters.data_segments += 1;
    }

    fn new_segment(&mut self) -> Option<Segment> {
        if self.board.in_flight() >= self.window.size {
            return None;
        }
        let range = self.sendable()?;
        if self.pacer.must_wait(self.now.time) {
            return None;
        }
        if self.is_reducing() {
            self.reduction.sent += 1;
        }
        self.sent_while_polling += 1;
        Some(self.send_new(range))
    }

    /// Returns the next new data that may be sent, limited by the application, the peer's window, the send
    /// buffer and Nagle's rule.
    fn sendable(&self) -> Option<Range> {
        let mss = u64::from(self.config.mss);
        let left = self.written.saturating_sub(self.next);
        let fin = u64::from(self.closing && !self.fin_sent && left <= mss);
        if left + fin == 0 {
            return None;
        }
        let allowed = self.peer_edge.saturating_sub(self.next);
        let length = left.min(mss);
        if length > allowed {
            // Silly window avoidance: send a part of a segment only if nothing else keeps the connection
            // going.
            let stalled = self.board.outstanding_segments() == 0 && allowed > 0;
            return stalled.then(|| Range {
                start: self.next,
                end: self.next + allowed,
            });
        }
        if self.board.outstanding_segments() >= self.outstanding_max {
            return None;
        }
        // Nagle's rule in Minshall's form: at most one outstanding segment that is not full, except for the
        // last one.
        let partial_unacknowledged = self.partial_end > self.una && self.partial_end <= self.next;
        if length < mss && fin == 0 && partial_unacknowledged && !self.config.no_delay {
            return None;
        }
        Some(Range {
            start: self.next,
            end: self.next + length + fin,
        })
    }

    fn send_new(&mut self, range: Range) -> Segment {
        if self.board.in_flight() == 0 {
            self.begin_transmission();
        }
        let was_idle = self.board.outstanding_segments() == 0;
        self.fin_sent |= range.end > self.written;
        self.board.sent(range, self.now.micros);
        self.next = range.end;
        self.last_sent = self.now.jiffies;
        self.note_departure(range.len() as u32);
        if was_idle || self.needs_timeout() {
            self.restart_timeout();
        }
        let mut flags = Flags::ACK;
        let mut ecn = Ecn::NotEct;
        if self.ecn {
            ecn = self.config.congestion_control.codepoint();
            if std::mem::take(&mut self.announce_reduction) {
                flags |= Flags::CWR;
            }
        }
        if range.end >= self.write_end {
            flags |= Flags::PSH;
            let write = u64::from(self.config.write_size);
            self.write_end = range.end + write - (range.end - 1) % write;
        }
        let segment = Segment {
            ecn,
            ..self.segment(range, flags)
        };
        if segment.length < self.config.mss {
            self.partial_end = range.end;
        }
        segment
    }

    /// Nothing more can be sent. Evaluates how the window was used, and sets the timer for the probe.
    fn end_polling(&mut self) {
        self.polling = false;
        let sent = std::mem::take(&mut self.sent_while_polling);
        let full = self.board.in_flight() >= self.window.size;
        let has_data = self.written > self.next;
        if self.control.owns_window() {
            self.note_idle_application();
        }
        if self.state != State::Established || (sent == 0 && !(full && has_data)) {
            return;
        }
        let size = self.window.size;
        let in_slow_start = self.window.in_slow_start();
        self.usage
            .observe(full, self.board.outstanding_segments(), self.una, self.next);
        if let Some(used) = self.usage.settle(size, in_slow_start, self.timeout, self.now) {
            self.shrink_unused(used);
        }
        if sent > 0 {
            self.schedule_probe(false);
        }
    }

    /// Handles a window that was not filled for a timeout: reduces it half way to what was used (the aim of
    /// RFC 7661).
    fn shrink_unused(&mut self, used: u32) {
        if !self.config.slow_start_after_idle || self.control.owns_window() {
            return;
        }
        if self.is_open() {
            let used = used.max(self.config.initial_window);
            if used < self.window.size {
                self.window.threshold = self.current_threshold();
                self.window.size = (self.window.size + used) / 2;
            }
        }
        self.usage.restart(self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Config, Receiver};
    use proptest::prelude::*;

    /// Returns the lengths of what leaves at once after five writes of 100 bytes.
    fn five_small_writes(no_delay: bool) -> Vec<u32> {
        let config = Config {
            no_delay,
            ..Config::default()
        };
        let now = fairgate::Time::ZERO;
        let (mut sender, mut receiver) = (Sender::new(&config, now), Receiver::new(&config, now));
        let syn = sender.poll_transmit(now).expect("a connection begins with SYN");
        receiver.on_segment(&syn, now);
        let answer = receiver.poll_transmit(now).expect("a SYN is answered");
        sender.on_segment(&answer, now);
        let mut lengths = Vec::new();
        for _ in 0..5 {
            sender.write(100, now);
            while let Some(segment) = sender.poll_transmit(now) {
                lengths.extend(Some(segment.length).filter(|length| *length > 0));
            }
        }
        lengths
    }

    #[test]
    fn nagles_rule_holds_small_segments_back_unless_it_is_off() {
        assert_eq!(five_small_writes(false), [100]);
        assert_eq!(five_small_writes(true), [100; 5]);
    }

    proptest! {
        /// Compares the remembered end of a write with divisions.
        #[test]
        fn the_segment_with_the_end_of_a_write_is_pushed(write_size in 1u32..20_000, mss in 100u32..1_500) {
            let config = Config {
                write_size,
                mss,
                ..Config::default()
            };
            let mut now = Time::ZERO;
            let (mut sender, mut receiver) = (Sender::new(&config, now), Receiver::new(&config, now));
            sender.write_forever(now);
            for round in 1..8 {
                let sent: Vec<Segment> = std::iter::from_fn(|| sender.poll_transmit(now)).collect();
                for segment in sent {
                    if segment.length > 0 {
                        let [first, next] = [segment.range().start, segment.range().end]
                            .map(|number| (number - 1) / u64::from(write_size));
                        prop_assert_eq!(segment.flags.contains(Flags::PSH), first != next);
                    }
                    receiver.on_segment(&segment, now);
                    while let Some(answer) = receiver.poll_transmit(now) {
                        sender.on_segment(&answer, now);
                    }
                }
                now = Time::from_millis(round);
            }
            prop_assert!(sender.counters().data_segments > 30);
        }
    }
}
