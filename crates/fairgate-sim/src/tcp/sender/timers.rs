//! The sender's only timer, and its purposes.

use fairgate::Time;

use super::recovery::Phase;
use super::transmit::{Probe, Resend};
use super::{Sender, State};
use crate::tcp::rtt::RTO_MAX;

/// The minimum wait of a probe or reordering timer, µs (`TCP_TIMEOUT_MIN_US`). Until Linux 6.1.59 it was two
/// ticks, which is ten times as long with HZ = 100.
const LEAST_WAIT: u64 = 2_000;

/// The purpose that the timer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Retransmission timeout (RFC 6298), also of the SYN.
    Retransmit,
    /// Tail loss probe (RFC 8985, section 7).
    Probe,
    /// Segments that may only be reordered are now considered lost (RFC 8985, section 6.2).
    Reordering,
}

/// The timer as it is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    purpose: Purpose,
    pub(super) at: Time,
}

impl Sender {
    /// Handles the timer. Afterwards, poll for segments to send, and read the timer again. If it is called
    /// too early, it does nothing.
    pub fn on_timer(&mut self, now: Time) {
        self.clock.advance(&mut self.now, now);
        if self.pacer.rings(now) {
            self.polling = true;
            if self.resend == Resend::Nothing && self.board.lost() > self.board.resent_in_flight() {
                self.resend = Resend::Lost;
            }
        }
        let Some(timer) = self.timer.filter(|timer| timer.at <= now) else {
            return;
        };
        self.polling = true;
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

    /// Sends at most one probe at a time: new data if there is some, otherwise the last segment again.
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
                if !self.control.owns_window() {
                    self.reduce_window(1, self.board.losses() == losses);
                }
            }
            self.resend = Resend::Lost;
        }
        self.rearm(true);
    }

    fn set_timer(&mut self, purpose: Purpose, ticks: u64) {
        // A segment that is paced has not left yet.
        let waits = match self.pacer.delay(self.now.time) {
            0 => 0,
            micros => self.clock.ticks(micros),
        };
        let at = self.clock.expiry(self.now, ticks + waits);
        self.timer = Some(Timer { purpose, at });
    }

    /// Sets the timer after the SYN was sent.
    pub(super) fn set_handshake_timer(&mut self) {
        let ticks = self.timeout.max(self.clock.ticks(self.rtt.timeout_initial()));
        self.set_timer(Purpose::Retransmit, ticks);
    }

    /// Sets the timer to wait `micros` for segments that may only be reordered.
    pub(super) fn set_reordering_timer(&mut self, micros: u64) {
        let ticks = self.clock.ticks(micros + LEAST_WAIT);
        self.set_timer(Purpose::Reordering, ticks.min(self.timeout));
    }

    /// After progress, sets the timer for a probe if one may be sent, otherwise for the retransmission
    /// timeout.
    pub(super) fn set_transmission_timer(&mut self) {
        if !self.schedule_probe(true) {
            self.restart_timeout();
        }
    }

    /// Sets the retransmission timeout from now on, or clears it if nothing is outstanding. If the timer had
    /// another purpose, the timeout counts from the first segment's last transmission.
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

    /// Returns the time until the first segment's timeout, µs. It is negative if the timeout has passed.
    fn until_timeout(&self) -> i64 {
        let head = self.board.head().map_or(self.now.micros, |head| head.sent_at);
        (head + self.clock.micros(self.timeout)) as i64 - self.now.micros as i64
    }

    /// Sets the timer for a tail loss probe, two round trips from now. Returns false if no probe is to be
    /// sent. With `advancing`, the retransmission timeout counts from now on, otherwise from the first
    /// segment's transmission.
    pub(super) fn schedule_probe(&mut self, advancing: bool) -> bool {
        if self.board.outstanding_segments() == 0
            || !self.config.sack
            || !matches!(self.phase, Phase::Open | Phase::Reduced)
        {
            return false;
        }
        let ticks = match self.rtt.smoothed() {
            // The acknowledgement of a single segment may be delayed.
            Some(rtt) if self.board.outstanding_segments() == 1 => {
                self.clock.ticks(2 * rtt + self.rtt.timeout_minimum())
            }
            Some(rtt) => self.clock.ticks(2 * rtt + LEAST_WAIT),
            None => self.clock.ticks(self.rtt.timeout_initial()),
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

    /// Returns whether new data must start the retransmission timer, because none is set or only a probe's,
    /// which it replaces.
    pub(super) fn needs_timeout(&self) -> bool {
        !matches!(
            self.timer,
            Some(Timer {
                purpose: Purpose::Retransmit | Purpose::Reordering,
                ..
            })
        )
    }

    /// Returns whether the timer waits for reordered segments.
    pub(super) fn waits_for_reordering(&self) -> bool {
        matches!(
            self.timer,
            Some(Timer {
                purpose: Purpose::Reordering,
                ..
            })
        )
    }

    /// The first segment was retransmitted, so its timeout starts again.
    pub(super) fn restart_timeout_of_head(&mut self) {
        self.set_timer(Purpose::Retransmit, self.timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Config;

    /// 5 ms of reordering and the minimum wait of 2 ms, rounded up to whole ticks, plus the tick that the
    /// timer wheel adds.
    #[test]
    fn the_wait_for_reordering_is_in_milliseconds_not_in_ticks() {
        for (hz, millis) in [(100, 20), (250, 12), (1000, 8)] {
            let config = Config {
                hz,
                ..Config::default()
            };
            let mut sender = Sender::new(&config, Time::ZERO);
            sender.set_reordering_timer(5_000);
            // Before the first RTT measurement the timeout is long. Otherwise it could come first.
            assert_eq!(
                sender.timer(),
                Some(Time::from_millis(millis)),
                "{hz} ticks a second"
            );
        }
    }
}
