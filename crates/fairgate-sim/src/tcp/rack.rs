//! RACK: a segment is lost if a segment that was sent sufficiently later has arrived (RFC 8985).
//!
//! This type remembers the newest delivered transmission.
//! [`Scoreboard::detect_loss`](super::scoreboard::Scoreboard) compares every older one with it.
//! "Sufficiently" is the reordering window. It is zero if no reordering was ever seen and recovery is in
//! progress. Otherwise it is a quarter of the minimum RTT, and is widened each time a duplicate is reported
//! (DSACK).
//!
//! Deviation: of two transmissions at the same time, the one that was made later counts as later, not the one
//! with the higher sequence number. In simulated time, a whole window may be sent at one instant, with a
//! retransmission in the middle.

/// A widened reordering window is reset after this many recoveries without a duplicate (RFC 8985, 6.2).
const PERSISTENCE: u8 = 16;

/// The newest delivered transmission, and what is known about reordering.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// The position of that transmission in the order of all transmissions.
    order: u64,
    /// The RTT of that transmission, µs.
    pub(super) rtt: u64,
    /// Whether a segment was delivered since losses were last detected.
    pub(super) advanced: bool,
    /// Whether reordering was seen on the path.
    reordering_seen: bool,
    /// Whether a duplicate was reported that is not processed yet.
    duplicate_seen: bool,
    /// The width of the reordering window, in quarters of the minimum RTT.
    steps: u8,
    /// The number of recoveries for which the width is kept.
    persistence: u8,
    /// The total number of segments delivered when the width was last changed.
    widened_at: u64,
}

impl Rack {
    pub(super) fn new() -> Rack {
        Rack {
            order: 0,
            rtt: 0,
            advanced: false,
            reordering_seen: false,
            duplicate_seen: false,
            steps: 1,
            persistence: 0,
            widened_at: 0,
        }
    }

    /// Records that the transmission `order`, made at `sent_at`, has arrived. With `retransmitted`, it is
    /// unknown which of several transmissions it was.
    pub(super) fn delivered(
        &mut self,
        order: u64,
        sent_at: u64,
        retransmitted: bool,
        now: u64,
        rtt_min: u64,
    ) {
        let rtt = now - sent_at;
        if retransmitted && rtt < rtt_min {
            // This is too soon for the retransmission, so the original was late.
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.order = self.order.max(order);
    }

    /// Returns whether the newest delivered transmission was made after this one.
    pub(super) fn is_newer_than(&self, order: u64) -> bool {
        self.order > order
    }

    pub(super) fn reordering_seen(&mut self) {
        self.reordering_seen = true;
    }

    pub(super) fn duplicate_seen(&mut self) {
        self.duplicate_seen |= self.reordering_seen;
    }

    /// Records that a recovery was spurious. The width was useful, so it is kept for longer.
    pub(super) fn recovery_undone(&mut self) {
        self.persistence = (self.persistence + 1).min(PERSISTENCE);
    }

    /// Records that a necessary recovery has ended.
    pub(super) fn recovery_ended(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
    }

    /// Adapts the width, at most once per round trip. `delivered` is the total number of segments delivered.
    /// `delivered_before` is that total when the newest delivered segment was sent.
    pub(super) fn adapt(&mut self, delivered: u64, delivered_before: u64) {
        if delivered_before < self.widened_at {
            self.duplicate_seen = false;
        }
        if self.duplicate_seen {
            self.duplicate_seen = false;
            self.steps = self.steps.saturating_add(1);
            self.widened_at = delivered;
            self.persistence = PERSISTENCE;
        } else if self.persistence == 0 {
            self.steps = 1;
        }
    }

    /// Returns the reordering window: how much later a segment must have been sent, µs. `eager` means that
    /// recovery is in progress, or that three segments arrived behind a hole.
    pub(super) fn reordering_window(&self, eager: bool, rtt_min: u64, smoothed: u64) -> u64 {
        if eager && !self.reordering_seen {
            return 0;
        }
        (rtt_min / 4).saturating_mul(u64::from(self.steps)).min(smoothed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_widened_by_duplicates_and_reset_without_them() {
        let mut rack = Rack::new();
        assert_eq!(rack.reordering_window(true, 40_000, 90_000), 0);
        rack.reordering_seen();
        assert_eq!(rack.reordering_window(true, 40_000, 90_000), 10_000);
        rack.duplicate_seen();
        rack.adapt(50, 10);
        assert_eq!(rack.reordering_window(true, 40_000, 90_000), 20_000);
        // A second duplicate in the same round trip changes nothing.
        rack.duplicate_seen();
        rack.adapt(60, 49);
        assert_eq!(rack.reordering_window(true, 40_000, 90_000), 20_000);
        for _ in 0..PERSISTENCE {
            rack.recovery_ended();
        }
        rack.adapt(100, 70);
        assert_eq!(rack.reordering_window(true, 40_000, 90_000), 10_000);
    }

    #[test]
    fn an_ambiguous_quick_arrival_is_ignored() {
        let mut rack = Rack::new();
        rack.delivered(100, 1_000, true, 1_500, 10_000);
        assert!(!rack.advanced);
        rack.delivered(100, 1_000, false, 11_500, 10_000);
        assert!(rack.is_newer_than(99) && !rack.is_newer_than(100));
    }
}
