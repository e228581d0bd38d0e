//! Pacing: segments leave at a rate and not in bursts, as Linux's TCP does without the qdisc `fq` ("internal
//! pacing").
//!
//! Each segment moves the time of the next one by its length divided by the rate. If a segment is sent
//! later than it might have been, the next gap is shorter by that delay, but at least half as long. The
//! first ten segments leave at once. Without a congestion control that sets the rate, it is a multiple of
//! one window per smoothed RTT: twice that in the first half of slow start, 1.2 times that later. So the
//! window and not the pacing limits the sender.

use fairgate::Time;

/// The segments that leave without pacing.
const UNPACED: u64 = 10;
/// The factors of the rate, per cent (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
pub(super) const SLOW_START_PERCENT: u64 = 200;
pub(super) const AVOIDANCE_PERCENT: u64 = 120;
const NANOS: u128 = 1_000_000_000;

/// The time at which the next segment may leave.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    /// Bytes of payload per second. `None`: segments leave at once.
    rate: Option<u64>,
    is_on: bool,
    next: Time,
    /// The time that the sender waits for.
    wake: Option<Time>,
}

impl Pacer {
    /// Creates a pacer without a rate. If it is off, it never gets one.
    pub(super) fn new(is_on: bool) -> Pacer {
        Pacer {
            rate: None,
            is_on,
            next: Time::ZERO,
            wake: None,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Sets the rate, bytes of payload per second. 0 is taken as 1.
    pub(super) fn set_rate(&mut self, rate: u64) {
        if self.is_on {
            self.rate = Some(rate.max(1));
        }
    }

    /// Returns the rate, bytes of payload per second, if one is set.
    pub(super) fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Returns whether no segment may leave now. The sender then waits for [`wake`](Pacer::wake).
    #[inline]
    pub(super) fn must_wait(&mut self, now: Time) -> bool {
        if self.rate.is_none() || self.next <= now {
            return false;
        }
        self.wake = Some(self.next);
        true
    }

    /// Handles that a segment with this payload leaves, the `number`th of the connection.
    pub(super) fn sent(&mut self, bytes: u32, number: u64, now: Time) {
        let Some(rate) = self.rate else { return };
        let late = now.nanos().saturating_sub(self.next.nanos());
        self.next = self.next.max(now);
        if number >= UNPACED {
            let gap = (u128::from(bytes) * NANOS / u128::from(rate)).min(u128::from(u32::MAX) * 64) as u64;
            self.next += gap - late.min(gap / 2);
        }
    }

    /// Returns when the sender has to be asked again, if it waits.
    #[inline]
    pub(super) fn wake(&self) -> Option<Time> {
        self.wake
    }

    /// Returns whether the wait is over.
    pub(super) fn rings(&mut self, now: Time) -> bool {
        self.wake.take_if(|wake| *wake <= now).is_some()
    }

    /// Returns how long the next segment has to wait, µs. Timers of segments count from then.
    pub(super) fn delay(&self, now: Time) -> u64 {
        match self.rate {
            Some(_) => self.next.nanos().saturating_sub(now.nanos()) / 1000,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends segments as soon as possible, and returns when.
    fn departures(pacer: &mut Pacer, count: u64, from: Time) -> Vec<u64> {
        let mut now = from;
        (0..count)
            .map(|number| {
                if pacer.must_wait(now) {
                    now = pacer.wake().expect("it waits");
                    assert!(pacer.rings(now));
                }
                pacer.sent(1_000, number, now);
                now.nanos()
            })
            .collect()
    }

    #[test]
    fn the_first_ten_leave_at_once_and_the_others_at_the_rate() {
        let mut pacer = Pacer::new(true);
        pacer.set_rate(1_000_000);
        let times = departures(&mut pacer, 15, Time::from_secs(1));
        assert_eq!(times[..11], [1_000_000_000; 11]);
        let gaps: Vec<u64> = times[10..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The first gap is shorter: the first paced segment could have left long before.
        assert_eq!(gaps, [1_000_000; 4]);
    }

    #[test]
    fn a_late_segment_shortens_the_next_gap_by_half_at_most() {
        for (late, gap) in [(0, 1_000_000), (300_000, 700_000), (5_000_000, 500_000)] {
            let mut pacer = Pacer::new(true);
            pacer.set_rate(1_000_000);
            pacer.sent(1_000, 10, Time::from_secs(1));
            let next = pacer.next + late;
            pacer.sent(1_000, 11, next);
            assert_eq!(pacer.next - next, gap, "{late} ns late");
        }
    }

    #[test]
    fn a_pacer_that_is_off_never_waits() {
        let mut pacer = Pacer::new(false);
        pacer.set_rate(1);
        assert_eq!(
            departures(&mut pacer, 20, Time::from_secs(1)),
            [1_000_000_000; 20]
        );
        assert_eq!(pacer.delay(Time::ZERO), 0);
    }
}
