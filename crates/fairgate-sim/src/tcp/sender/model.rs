//! Tells a congestion control that owns the window about acknowledgements, losses and restarts.

use super::recovery::Phase;
use super::{Sender, ack::Ack};
use crate::tcp::congestion::{Feedback, Repair};

impl Sender {
    /// Lets the congestion control set window and pacing rate. `delivered` segments were reported as
    /// delivered, and `prior_in_flight` were in flight before.
    pub(super) fn consult(&mut self, ack: &Ack, delivered: u32, prior_in_flight: u32) {
        let mut lost = std::mem::take(&mut self.lost);
        self.board.take_lost(&mut lost);
        let rate = self.board.take_rate(self.rtt.minimum(), self.now.micros);
        let feedback = Feedback {
            now: self.now,
            rate: rate.unwrap_or_default(),
            delivered,
            lost: &lost,
            rtt: ack.rtt,
            smoothed: self.rtt.smoothed(),
            total_delivered: self.board.delivered(),
            in_flight: self.board.in_flight(),
            prior_in_flight,
            repair: match self.phase {
                Phase::Recovery => Repair::Recovery,
                Phase::Loss => Repair::Timeout,
                Phase::Open | Phase::Disorder | Phase::Reduced => Repair::None,
            },
            window_limited: self.usage.is_limited(self.window.size, false),
            selective: self.config.sack,
            pacing_delay: self.pacer.delay(self.now.time),
            mss: self.config.mss,
        };
        if self
            .control
            .on_feedback(&feedback, &mut self.window, &mut self.pacer)
        {
            self.board.limit_rates();
        }
        lost.clear();
        self.lost = lost;
    }

    /// The application has nothing more to send, although the window has room.
    pub(super) fn note_idle_application(&mut self) {
        let has_room = self.board.in_flight() < self.window.size;
        let repaired = self.board.lost() <= self.board.resent_in_flight();
        if has_room && repaired && self.written.saturating_sub(self.next) < u64::from(self.config.mss) {
            self.board.limit_rates();
        }
    }

    /// A transmission begins with nothing in flight.
    pub(super) fn begin_transmission(&mut self) {
        self.control.on_transmission_start(self.last_sent, self.now);
        if self.board.is_app_limited() {
            let (delivered, mss) = (self.board.delivered(), self.config.mss);
            self.control
                .on_restart(delivered, mss, self.now, &mut self.window, &mut self.pacer);
        }
    }
}
