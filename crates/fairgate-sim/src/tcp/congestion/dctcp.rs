//! DCTCP (RFC 8257): the window comes down by how many segments are marked, not by whether one is.
//!
//! With shallow marks in each round trip the window stays near what the path holds: the scalable congestion control that
//! DualPI2 couples with classic ones (RFC 9332). Segments say ECT(1), by which such senders are told apart (RFC 9331, section 4.1);
//! DCTCP in Linux says ECT(0). Otherwise it is Linux's: its fixed point, and a loss halves the window.
//!
//! Not here: what TCP Prague adds, pacing and independence of the round-trip time above all.

/// Parts of 1.
const ONE: u32 = 1 << ALPHA_SHIFT;
const ALPHA_SHIFT: u32 = 10;
/// The weight of a round trip in the average is 2^-4 (section 4.2).
const WEIGHT_SHIFT: u32 = 4;

/// The state.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Dctcp {
    /// Average share of marked segments, of `ONE`.
    alpha: u32,
    /// Delivered in this round trip, and of them marked, segments.
    delivered: u32,
    marked: u32,
    /// When this number is acknowledged, the round trip is over.
    round_end: u64,
}

impl Dctcp {
    /// Nothing is known yet: the first mark halves the window (section 3.3).
    pub(super) fn new(next: u64) -> Dctcp {
        Dctcp {
            alpha: ONE,
            delivered: 0,
            marked: 0,
            round_end: next,
        }
    }

    /// So many segments have been delivered.
    pub(super) fn on_delivered(&mut self, delivered: u32, marked: bool, una: u64, next: u64) {
        self.delivered += delivered;
        if marked {
            self.marked += delivered;
        }
        if una < self.round_end {
            return;
        }
        let decay = (self.alpha >> WEIGHT_SHIFT).max(1).min(self.alpha);
        let share = (self.marked << (ALPHA_SHIFT - WEIGHT_SHIFT)) / self.delivered.max(1);
        self.alpha = (self.alpha - decay + share).min(ONE);
        (self.delivered, self.marked) = (0, 0);
        self.round_end = next;
    }

    /// The threshold after a mark.
    pub(super) fn reduced_threshold(&self, window: u32) -> u32 {
        let less = (u64::from(window) * u64::from(self.alpha)) >> (ALPHA_SHIFT + 1);
        (window - less as u32).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After `rounds` round trips of 100 segments of which `marked` are.
    fn after(rounds: u64, marked: u32) -> Dctcp {
        let mut dctcp = Dctcp::new(0);
        for round in 0..rounds {
            dctcp.on_delivered(marked, true, 100 * round, 100 * round + 100);
            dctcp.on_delivered(100 - marked, false, 100 * round + 99, 100 * round + 100);
        }
        dctcp
    }

    #[test]
    fn the_window_comes_down_by_half_the_share_of_marks() {
        assert_eq!(Dctcp::new(1).reduced_threshold(100), 50);
        for marked in [0, 10, 50, 100] {
            let kept = after(200, marked).reduced_threshold(1000);
            let exact = 1000 - 5 * marked;
            assert!(kept.abs_diff(exact) <= 10, "{marked} %: {kept}");
        }
        assert_eq!(after(200, 100).reduced_threshold(3), 2);
    }

    #[test]
    fn a_round_trip_weighs_a_sixteenth() {
        // From certainty, 1024, a round trip without marks takes 64.
        assert_eq!(after(2, 0).alpha, 1024 - 64 - 60);
    }
}
