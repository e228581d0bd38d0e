//! The rate of the last second, to be shown to users.

use fairgate::Time;

/// The length of a slot, ns.
const SLOT: u64 = 100_000_000;

/// The number of slots per second.
const SLOTS: usize = 10;

/// Counts the bytes sent in each tenth of the last second. After a second without traffic the rate is 0, even
/// if `update` was not called during that second.
#[derive(Debug, Default)]
pub(crate) struct RateWindow {
    /// The number of the slot that is being filled, counted from time 0.
    slot: u64,
    /// The total byte count at the start of that slot.
    bytes: u64,
    /// The bytes of the slots before it. Slot `n` is at index `n % SLOTS`.
    full: [u64; SLOTS],
}

impl RateWindow {
    /// Updates the window with the total byte count at `now`. Except ten times a second, this costs one
    /// comparison.
    #[inline]
    pub(crate) fn update(&mut self, now: Time, bytes: u64) {
        if now.nanos() >= (self.slot + 1) * SLOT {
            self.roll(now, bytes);
        }
    }

    #[cold]
    fn roll(&mut self, now: Time, bytes: u64) {
        let next = now.nanos() / SLOT;
        // The bytes since the last call belong to the slot that was being filled.
        self.full[self.slot as usize % SLOTS] = bytes - self.bytes;
        for empty in (self.slot + 1..next).take(SLOTS) {
            self.full[empty as usize % SLOTS] = 0;
        }
        self.slot = next;
        self.bytes = bytes;
    }

    /// Returns the bits per second over the last ten full slots before `now`.
    pub(crate) fn bits_per_second(&mut self, now: Time, bytes: u64) -> f64 {
        self.update(now, bytes);
        let window = SLOT as f64 * SLOTS as f64 * 1e-9;
        self.full.iter().sum::<u64>() as f64 * 8.0 / window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_covers_the_last_second() {
        let mut rate = RateWindow::default();
        for tenth in 0..30 {
            rate.update(Time::from_millis(100 * tenth), 1_000 * tenth);
        }
        let sent = 30_000;
        assert_eq!(rate.bits_per_second(Time::from_millis(3_000), sent), 80_000.0);
        // Half a second later half of the window is empty.
        assert_eq!(rate.bits_per_second(Time::from_millis(3_500), sent), 40_000.0);
    }

    /// `update` is not called while nothing is sent.
    #[test]
    fn the_rate_is_zero_seconds_after_traffic_ended() {
        let mut rate = RateWindow::default();
        for tenth in 0..20 {
            rate.update(Time::from_millis(100 * tenth), 1_000_000 * tenth);
        }
        assert!(rate.bits_per_second(Time::from_millis(2_050), 19_000_000) > 0.0);
        assert_eq!(rate.bits_per_second(Time::from_millis(8_000), 19_000_000), 0.0);
        assert_eq!(rate.bits_per_second(Time::from_millis(9_000), 19_000_000), 0.0);
    }

    #[test]
    fn a_burst_is_counted_once() {
        let mut rate = RateWindow::default();
        rate.update(Time::from_millis(1_000), 0);
        rate.update(Time::from_millis(1_050), 500);
        assert_eq!(rate.bits_per_second(Time::from_millis(1_100), 500), 4_000.0);
        assert_eq!(rate.bits_per_second(Time::from_millis(1_600), 500), 4_000.0);
        assert_eq!(rate.bits_per_second(Time::from_millis(2_100), 500), 0.0);
    }
}
