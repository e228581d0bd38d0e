//! Round trip times of TCP connections that pass by, from their timestamps (RFC 7323).
//!
//! A receiver echoes the timestamp of a segment in its acknowledgement. So the time from a segment's
//! departure here to the arrival of its echo is the round trip from here to the receiver and back, our own
//! queue not included. The method is that of Kathleen Nichols' pping. Several segments may have the same
//! timestamp, because clocks tick in milliseconds: only the first one is measured. An acknowledgement may be
//! delayed by its sender, so the minimum says more about the path than the others.

use std::collections::VecDeque;

use fairgate::Time;

/// The number of timestamps that wait for their echo. During a long round trip the later ones are not
/// measured.
const WAITING: usize = 32;

/// How long an echo is waited for, ns. It does not come if the segment or its acknowledgement is lost.
const PATIENCE: u64 = 10_000_000_000;

/// The number of round trips from which the median is taken.
const RECENT: usize = 16;

/// The round trips of the segments in one direction of a connection.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    waiting: VecDeque<(u32, Time)>,
    /// The latest timestamp that was sent.
    last: Option<u32>,
    /// The last ones, ns. The oldest is at `count % RECENT`, if there are that many.
    recent: [u64; RECENT],
    count: usize,
    minimum: u64,
}

/// What was measured, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) latest: u64,
    pub(super) minimum: u64,
    /// Of the last round trips.
    pub(super) median: u64,
}

impl RoundTrips {
    /// Notes that a segment with this timestamp was sent. Only one that is acknowledged without delay is
    /// measured: with data, or one that opens or closes the connection.
    pub(super) fn sent(&mut self, timestamp: u32, at: Time) {
        // Timestamps never go back (RFC 7323, section 5.4). A segment that is sent again may have an older
        // one, and its echo would be ambiguous.
        let is_new = |last: u32| timestamp.wrapping_sub(last) as i32 > 0;
        if !self.last.is_none_or(is_new) {
            return;
        }
        self.last = Some(timestamp);
        while let Some((_, sent)) = self.waiting.front()
            && at.nanos_since(*sent) > PATIENCE
        {
            self.waiting.pop_front();
        }
        if self.waiting.len() < WAITING {
            self.waiting.push_back((timestamp, at));
        }
    }

    /// Notes that the receiver's echo of a timestamp has arrived.
    pub(super) fn echoed(&mut self, timestamp: u32, at: Time) {
        let Some(place) = self.waiting.iter().position(|(sent, _)| *sent == timestamp) else {
            return;
        };
        let (_, sent) = self.waiting[place];
        // What is older can't be echoed any more.
        self.waiting.drain(..=place);
        let time = at.nanos_since(sent);
        self.minimum = match self.count {
            0 => time,
            _ => self.minimum.min(time),
        };
        self.recent[self.count % RECENT] = time;
        self.count += 1;
    }

    /// Returns what was measured, if anything was.
    pub(super) fn measured(&self) -> Option<Measured> {
        let last = self.count.checked_sub(1)?;
        let mut recent = self.recent;
        let recent = &mut recent[..self.count.min(RECENT)];
        recent.sort_unstable();
        Some(Measured {
            latest: self.recent[last % RECENT],
            minimum: self.minimum,
            median: recent[(recent.len() - 1) / 2],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn millis(trips: &RoundTrips) -> Option<[u64; 3]> {
        let Measured {
            latest,
            minimum,
            median,
        } = trips.measured()?;
        Some([latest, minimum, median].map(|nanos| nanos / 1_000_000))
    }

    #[test]
    fn the_first_segment_of_a_tick_is_measured_once() {
        let mut trips = RoundTrips::default();
        trips.sent(7, at(100));
        trips.sent(7, at(101));
        assert_eq!(millis(&trips), None);
        trips.echoed(6, at(110));
        assert_eq!(millis(&trips), None, "it is not an echo");
        trips.echoed(7, at(120));
        trips.echoed(7, at(150));
        assert_eq!(millis(&trips), Some([20, 20, 20]));
    }

    #[test]
    fn latest_minimum_and_median_are_told_apart() {
        let mut trips = RoundTrips::default();
        for (number, round_trip) in [30, 10, 90, 50, 70].into_iter().enumerate() {
            let began = 1_000 * number as u64;
            trips.sent(number as u32, at(began));
            trips.echoed(number as u32, at(began + round_trip));
        }
        assert_eq!(millis(&trips), Some([70, 10, 50]));
        // The median is that of the last 16, the minimum that of all.
        for number in 10..26 {
            trips.sent(number, at(10_000));
            trips.echoed(number, at(10_200));
        }
        assert_eq!(millis(&trips), Some([200, 10, 200]));
    }

    /// The clock of a sender passes 2^32. Older timestamps are of segments that were sent again.
    #[test]
    fn timestamps_go_on_behind_their_end() {
        let mut trips = RoundTrips::default();
        for timestamp in [u32::MAX - 1, 3, u32::MAX, 4] {
            trips.sent(timestamp, at(1));
        }
        trips.echoed(u32::MAX, at(2));
        assert_eq!(millis(&trips), None);
        trips.echoed(4, at(6));
        assert_eq!(millis(&trips), Some([5, 5, 5]));
        assert!(trips.waiting.is_empty());
    }

    /// All echoes are lost for a while.
    #[test]
    fn what_is_not_echoed_is_given_up() {
        let mut trips = RoundTrips::default();
        for timestamp in 0..100 {
            trips.sent(timestamp, at(timestamp.into()));
        }
        trips.sent(100, at(10_033));
        trips.echoed(100, at(10_063));
        assert_eq!(millis(&trips), Some([30, 30, 30]));
    }

    #[test]
    fn memory_is_bounded_and_round_trips_of_any_length_are_found() {
        for round_trip in [1, 20, 50, 300] {
            let mut trips = RoundTrips::default();
            for millisecond in 0..2_000 {
                trips.sent(millisecond, at(millisecond.into()));
                if let Some(echo) = millisecond.checked_sub(round_trip) {
                    trips.echoed(echo, at(millisecond.into()));
                }
                assert!(trips.waiting.len() <= WAITING);
            }
            let expected = u64::from(round_trip);
            assert_eq!(millis(&trips), Some([expected; 3]), "of {round_trip} ms");
        }
    }
}
