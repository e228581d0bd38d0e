//! The rate of the last second, for people who look at it.

use fairgate::Time;

/// Shortest time that a rate is taken over, ns.
const WINDOW: u64 = 1_000_000_000;

/// Bytes per window, measured whenever someone comes by: at least a second apart, longer when nothing happens.
#[derive(Debug, Default)]
pub(crate) struct RateWindow {
    since: Time,
    bytes: u64,
    bits_per_second: f64,
}

impl RateWindow {
    /// Tells the count of bytes by `now`. Costs a comparison but once a second.
    #[inline]
    pub(crate) fn update(&mut self, now: Time, bytes: u64) {
        if now.nanos_since(self.since) >= WINDOW {
            self.roll(now, bytes);
        }
    }

    #[cold]
    fn roll(&mut self, now: Time, bytes: u64) {
        let seconds = now.nanos_since(self.since) as f64 * 1e-9;
        self.bits_per_second = (bytes - self.bytes) as f64 * 8.0 / seconds;
        self.since = now;
        self.bytes = bytes;
    }

    /// Over the last window.
    pub(crate) fn bits_per_second(&self) -> f64 {
        self.bits_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_at_least_a_second() {
        let mut rate = RateWindow::default();
        rate.update(Time::from_millis(999), 1_000_000);
        assert_eq!(rate.bits_per_second(), 0.0);
        rate.update(Time::from_millis(2_000), 1_000_000);
        assert_eq!(rate.bits_per_second(), 4_000_000.0);
        rate.update(Time::from_millis(2_500), 9_000_000);
        assert_eq!(rate.bits_per_second(), 4_000_000.0);
        rate.update(Time::from_millis(12_000), 1_000_000);
        assert_eq!(rate.bits_per_second(), 0.0);
    }
}
