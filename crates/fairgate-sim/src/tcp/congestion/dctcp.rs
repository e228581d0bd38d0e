//! DCTCP (RFC 8257): reduces the window by the share of marked segments.
//!
//! If marking is shallow, each round trip has some marks, and the window stays near the capacity of the path.
//! DualPI2 couples this scalable congestion control with classic ones (RFC 9332). Segments carry ECT(1),
//! which identifies such senders (RFC 9331, section 4.1); DCTCP in Linux uses ECT(0). Otherwise it equals
//! Linux's: the same fixed point, and a loss halves the window.
//!
//! Not implemented: the additions of TCP Prague, most of all pacing and independence of the round-trip time.

/// The value 1 in fixed point.
const ONE: u32 = 1 << ALPHA_SHIFT;
const ALPHA_SHIFT: u32 = 10;
/// The weight of a round trip in the average is 2^-4 (section 4.2).
const WEIGHT_SHIFT: u32 = 4;

/// The state of DCTCP.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Dctcp {
    /// The average share of marked segments, in units of 1 / `ONE`.
    alpha: u32,
    /// The segments delivered in this round trip, and how many of them were marked.
    delivered: u32,
    marked: u32,
    /// The round trip is over when this number is acknowledged.
    round_end: u64,
}

impl Dctcp {
    /// Creates the state before the first mark, which halves the window (section 3.3).
    pub(super) fn new(next: u64) -> Dctcp {
        Dctcp {
            alpha: ONE,
            delivered: 0,
            marked: 0,
            round_end: next,
        }
    }

    /// Handles delivered segments.
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

    /// Returns the threshold after a mark.
    pub(super) fn reduced_threshold(&self, window: u32) -> u32 {
        let less = (u64::from(window) * u64::from(self.alpha)) >> (ALPHA_SHIFT + 1);
        (window - less as u32).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the state after `rounds` round trips of 100 segments, of which `marked` are marked.
    fn after(rounds: u64, marked: u32) -> Dctcp {
        let mut dctcp = Dctcp::new(0);
        for round in 0..rounds {
            dctcp.on_delivered(marked, true, 100 * round, 100 * round + 100);
            dctcp.on_delivered(100 - marked, false, 100 * round + 99, 100 * round + 100);
        }
        dctcp
    }

    #[test]
    fn the_window_is_reduced_by_half_the_share_of_marks() {
        assert_eq!(Dctcp::new(1).reduced_threshold(100), 50);
        for marked in [0, 10, 50, 100] {
            let kept = after(200, marked).reduced_threshold(1000);
            let exact = 1000 - 5 * marked;
            assert!(kept.abs_diff(exact) <= 10, "{marked} %: {kept}");
        }
        assert_eq!(after(200, 100).reduced_threshold(3), 2);
    }

    #[test]
    fn a_round_trip_has_a_weight_of_a_sixteenth() {
        // From 1024, which is a share of 1, a round trip without marks subtracts 64.
        assert_eq!(after(2, 0).alpha, 1024 - 64 - 60);
    }
}
