//! RACK: a segment is lost if one sent sufficiently later has arrived (RFC 8985).
//!
//! The newest delivered transmission is remembered; [`Scoreboard::detect_loss`](super::scoreboard::Scoreboard) holds
//! every older one against it. "Sufficiently" is the reordering window: nothing while no reordering was ever seen and
//! recovery is under way, else a quarter of the least RTT, widened each time a duplicate is reported (DSACK).
//!
//! Deviation: of two transmissions at the same time the later one is the one made later, not the one of the higher
//! sequence number: in simulated time a window may leave in an instant, and a retransmission in the middle of it.

/// Recoveries without a duplicate after which a widened reordering window is given up (RFC 8985, 6.2).
const PERSISTENCE: u8 = 16;

/// The newest delivered transmission and what is known of reordering.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// Its place in the order of all transmissions.
    order: u64,
    /// Its RTT, µs.
    pub(super) rtt: u64,
    /// Whether something was delivered since losses were last looked for.
    pub(super) advanced: bool,
    /// Whether the path was seen to reorder.
    reordering_seen: bool,
    /// A duplicate was reported and not yet taken into account.
    duplicate_seen: bool,
    /// Width of the reordering window, quarters of the least RTT.
    steps: u8,
    /// Recoveries for which the width is kept.
    persistence: u8,
    /// Segments delivered in all when the width was last changed.
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

    /// The transmission `order`, made at `sent_at`, has arrived. `retransmitted`: it is not known which one of several.
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
            // Too soon for the retransmission: the original was late.
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.order = self.order.max(order);
    }

    /// Whether the newest delivered transmission was made after this one.
    pub(super) fn is_newer_than(&self, order: u64) -> bool {
        self.order > order
    }

    pub(super) fn reordering_seen(&mut self) {
        self.reordering_seen = true;
    }

    pub(super) fn duplicate_seen(&mut self) {
        self.duplicate_seen |= self.reordering_seen;
    }

    /// A recovery turned out to be spurious: the width has proven its worth.
    pub(super) fn recovery_undone(&mut self) {
        self.persistence = (self.persistence + 1).min(PERSISTENCE);
    }

    /// A recovery ended, and it was needed.
    pub(super) fn recovery_ended(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
    }

    /// Adapts the width, at most once each round trip. `delivered` segments have been in all, `delivered_before` when
    /// the newest one just delivered was sent.
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

    /// How much later a segment must have been sent, µs. `eager`: recovery is under way or three segments arrived
    /// behind a hole.
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
    fn the_window_opens_with_duplicates_and_closes_with_peace() {
        let mut rack = Rack::new();
        assert_eq!(rack.reordering_window(true, 40_000, 90_000), 0);
        rack.reordering_seen();
        assert_eq!(rack.reordering_window(true, 40_000, 90_000), 10_000);
        rack.duplicate_seen();
        rack.adapt(50, 10);
        assert_eq!(rack.reordering_window(true, 40_000, 90_000), 20_000);
        // A second duplicate of the same round trip changes nothing.
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
