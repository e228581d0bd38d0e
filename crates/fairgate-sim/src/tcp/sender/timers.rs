//! The sender's one timer and what it is set for.

use fairgate::Time;

use super::recovery::Phase;
use super::transmit::{Probe, Resend};
use super::{Sender, State};
use crate::tcp::rtt::{RTO_INITIAL, RTO_MAX, RTO_MIN};

/// What a probe or reordering timer waits at least, µs (`TCP_TIMEOUT_MIN_US`). Until 6.1.59 this was two ticks, with HZ = 100 ten
/// times as long.
const LEAST_WAIT: u64 = 2_000;

/// Why the timer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Retransmission time-out (RFC 6298), of the SYN too.
    Retransmit,
    /// Tail loss probe (RFC 8985, section 7).
    Probe,
    /// What may only be reordered is given up (RFC 8985, section 6.2).
    Reordering,
}

/// The timer as set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    purpose: Purpose,
    pub(super) at: Time,
}

impl Sender {
    /// The timer is due. Afterwards poll for what is to be sent, and look at the timer anew. Too early a call does
    /// nothing.
    pub fn on_timer(&mut self, now: Time) {
        self.now = self.clock.read(now);
        let Some(timer) = self.timer.filter(|timer| timer.at <= now) else {
            return;
        };
        self.round_open = true;
        if self.state == State::Opening {
            self.on_handshake_timeout();
            return;
        }
        match timer.purpose {
            Purpose::Retransmit => self.on_timeout(),
            Purpose::Probe => self.send_probe(),
            Purpose::Reordering => self.on_reordering_timeout(),
        }
    }

    fn on_handshake_timeout(&mut self) {
        self.counters.timeouts += 1;
        self.timeouts += 1;
        self.timeout = (self.timeout * 2).min(self.clock.ticks(RTO_MAX));
        self.syn_due = true;
    }

    fn on_timeout(&mut self) {
        self.timer = None;
        if self.board.head().is_none() {
            return;
        }
        self.counters.timeouts += 1;
        self.enter_loss();
        self.timeouts += 1;
        self.probe = Some(Probe::Head);
        self.resend = Resend::Nothing;
        self.timeout = (self.timeout * 2).min(self.clock.ticks(RTO_MAX));
        self.set_timer(Purpose::Retransmit, self.timeout);
    }

    /// At most one probe at a time: new data if there is some, else the last segment again.
    fn send_probe(&mut self) {
        self.timer = None;
        if self.probe_sent.is_none() {
            self.probe = Some(Probe::Tail);
        } else {
            self.rearm(false);
        }
    }

    fn on_reordering_timeout(&mut self) {
        let in_flight = self.board.in_flight();
        let losses = self.board.losses();
        self.timer = None;
        self.detect_loss();
        if self.board.in_flight() != in_flight {
            if self.phase != Phase::Recovery {
                self.enter_recovery(false);
                self.reduce_window(1, self.board.losses() == losses);
            }
            self.resend = Resend::Lost;
        }
        self.rearm(true);
    }

    fn set_timer(&mut self, purpose: Purpose, ticks: u64) {
        let at = self.clock.expiry(self.now, ticks);
        self.timer = Some(Timer { purpose, at });
    }

    /// The SYN was sent.
    pub(super) fn set_handshake_timer(&mut self) {
        let ticks = self.timeout.max(self.clock.ticks(RTO_INITIAL));
        self.set_timer(Purpose::Retransmit, ticks);
    }

    /// Waits `micros` for what may only be reordered.
    pub(super) fn set_reordering_timer(&mut self, micros: u64) {
        let ticks = self.clock.ticks(micros + LEAST_WAIT);
        self.set_timer(Purpose::Reordering, ticks.min(self.timeout));
    }

    /// After progress: a probe if one may be sent, else the retransmission time-out.
    pub(super) fn set_transmission_timer(&mut self) {
        if !self.schedule_probe(true) {
            self.restart_timeout();
        }
    }

    /// Sets the retransmission time-out from now on, or clears it if nothing is outstanding. If the timer was another
    /// one's, the time since the first segment's last transmission counts.
    pub(super) fn restart_timeout(&mut self) {
        let from_head = matches!(
            self.timer,
            Some(Timer {
                purpose: Purpose::Probe | Purpose::Reordering,
                ..
            })
        );
        self.rearm(from_head);
    }

    pub(super) fn rearm(&mut self, from_head: bool) {
        if self.board.outstanding_segments() == 0 {
            self.timer = None;
            return;
        }
        let ticks = if from_head {
            self.clock.ticks(self.until_timeout().max(1) as u64)
        } else {
            self.timeout
        };
        self.set_timer(Purpose::Retransmit, ticks);
    }

    /// Until the first segment's time-out, µs; negative if that is past.
    fn until_timeout(&self) -> i64 {
        let head = self.board.head().map_or(self.now.micros, |head| head.sent_at);
        (head + self.clock.micros(self.timeout)) as i64 - self.now.micros as i64
    }

    /// Sets the timer for a tail loss probe, two round trips from now. False if none is to be sent. `advancing`: the
    /// retransmission time-out counts from now on, not from the first segment's transmission.
    pub(super) fn schedule_probe(&mut self, advancing: bool) -> bool {
        if self.board.outstanding_segments() == 0 || !matches!(self.phase, Phase::Open | Phase::Reduced) {
            return false;
        }
        let ticks = match self.rtt.smoothed() {
            // A lone segment may wait for a delayed acknowledgement.
            Some(rtt) if self.board.outstanding_segments() == 1 => self.clock.ticks(2 * rtt + RTO_MIN),
            Some(rtt) => self.clock.ticks(2 * rtt + LEAST_WAIT),
            None => self.clock.ticks(RTO_INITIAL),
        };
        let timeout = if advancing {
            self.timeout
        } else {
            self.clock.ticks(self.until_timeout().max(0) as u64)
        };
        let ticks = if timeout > 0 { ticks.min(timeout) } else { ticks };
        self.set_timer(Purpose::Probe, ticks);
        true
    }

    /// Whether new data sent now must start the retransmission timer: there is none, or a probe's, which this replaces.
    pub(super) fn needs_timeout(&self) -> bool {
        !matches!(
            self.timer,
            Some(Timer {
                purpose: Purpose::Retransmit | Purpose::Reordering,
                ..
            })
        )
    }

    /// Whether the timer waits for reordered segments.
    pub(super) fn waits_for_reordering(&self) -> bool {
        matches!(
            self.timer,
            Some(Timer {
                purpose: Purpose::Reordering,
                ..
            })
        )
    }

    /// The first segment was resent: its time-out starts over.
    pub(super) fn restart_timeout_of_head(&mut self) {
        self.set_timer(Purpose::Retransmit, self.timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Config;

    /// 5 ms of reordering and the 2 ms that a timer waits at least, in whole ticks, and the one that the timer wheel adds.
    #[test]
    fn what_may_be_reordered_is_waited_for_in_milliseconds_not_in_ticks() {
        for (hz, millis) in [(100, 20), (250, 12), (1000, 8)] {
            let config = Config {
                hz,
                ..Config::default()
            };
            let mut sender = Sender::new(&config, Time::ZERO);
            sender.set_reordering_timer(5_000);
            // A sender that knows no round trip is in no hurry with time-outs, which would come first otherwise.
            assert_eq!(
                sender.timer(),
                Some(Time::from_millis(millis)),
                "{hz} ticks a second"
            );
        }
    }
}
