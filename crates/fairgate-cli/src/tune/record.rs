//! What this machine's kernel says of connections over time.
//!
//! Segments count when they are acknowledged, or when they arrive, also those that wait at the receiver for a
//! lost one. What a receiver's program reads comes in bursts instead, whenever a segment was lost.

use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fairgate_live::testbed::{TcpFigures, tcp_figures};

use crate::tune::wire::{BIN, Bin, MOST_BINS};

/// The shortest time between two looks at a connection.
const OFTEN: Duration = Duration::from_millis(20);

/// The header of a TCP segment, and what timestamps add to it, bytes.
const TCP_HEADER: u32 = 20;
const TIMESTAMPS: u32 = 12;

/// A record of several connections.
pub(crate) struct Record {
    began: Instant,
    bins: Mutex<Vec<Bin>>,
    segment: Mutex<Option<Segment>>,
}

/// A full segment of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Payload, bytes.
    pub(crate) payload: u32,
    /// With the header of TCP, bytes.
    pub(crate) length: u32,
}

/// What this machine is to a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    /// What the other end has acknowledged counts.
    Sender,
    /// What has arrived here counts.
    Receiver,
}

impl Side {
    /// Returns the segments so far, and the payload of one.
    fn of(self, figures: &TcpFigures) -> (u32, u32) {
        match self {
            Side::Sender => (figures.delivered, figures.segment_payload),
            Side::Receiver => (figures.data_segments_in, figures.received_payload),
        }
    }
}

/// A connection of a record.
pub(crate) struct Watched<'a> {
    record: &'a Record,
    side: Side,
    at: Duration,
    segments: u32,
}

impl Record {
    /// Begins a record.
    pub(crate) fn begin() -> Record {
        Record {
            began: Instant::now(),
            bins: Mutex::default(),
            segment: Mutex::default(),
        }
    }

    /// Returns the time since the beginning.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether its bins are used up.
    pub(crate) fn is_full(&self) -> bool {
        self.now() >= BIN * MOST_BINS as u32
    }

    /// Returns the bins so far.
    pub(crate) fn bins(&self) -> Vec<Bin> {
        self.locked().clone()
    }

    /// Returns the largest segment so far. `None` before the first one.
    pub(crate) fn segment(&self) -> Option<Segment> {
        *self.segment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch a connection. What it has delivered before, such as the request, does not count.
    pub(crate) fn watch(&self, stream: &TcpStream, side: Side) -> Watched<'_> {
        Watched {
            record: self,
            side,
            at: self.now(),
            segments: tcp_figures(stream).map_or(0, |figures| side.of(&figures).0),
        }
    }

    fn note_segment(&self, payload: u32, has_timestamps: bool) {
        let header = TCP_HEADER + if has_timestamps { TIMESTAMPS } else { 0 };
        let segment = Segment {
            payload,
            length: payload + header,
        };
        let mut largest = self.segment.lock().unwrap_or_else(PoisonError::into_inner);
        if largest.is_none_or(|largest| largest.payload < payload) {
            *largest = Some(segment);
        }
    }

    /// The lock is held for a moment only, and the bins are whole at any time.
    fn locked(&self) -> MutexGuard<'_, Vec<Bin>> {
        self.bins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds payload that was delivered between two times, evenly, and a round trip at the second one.
    fn add(&self, from: Duration, until: Duration, payload: u64, round_trip_us: u32) {
        let bin_of = |time: Duration| (time.as_nanos() / BIN.as_nanos()) as usize;
        let last = bin_of(until).min(MOST_BINS - 1);
        let length = until.saturating_sub(from).as_nanos().max(1);
        let mut bins = self.locked();
        if bins.len() <= last {
            bins.resize(last + 1, Bin::default());
        }
        let mut added = 0;
        for (index, bin) in bins.iter_mut().enumerate().skip(bin_of(from)) {
            let end = (BIN * (index as u32 + 1)).min(until);
            let so_far = end.saturating_sub(from).as_nanos() * u128::from(payload) / length;
            bin.bytes += so_far as u64 - added;
            added = so_far as u64;
        }
        bins[last].round_trips_us += u64::from(round_trip_us);
        bins[last].round_trips += 1;
    }
}

impl Watched<'_> {
    /// Looks at the connection, unless it has just done so.
    pub(crate) fn look(&mut self, stream: &TcpStream) {
        let now = self.record.now();
        if now - self.at < OFTEN {
            return;
        }
        // A connection that is gone delivers nothing.
        if let Ok(figures) = tcp_figures(stream) {
            self.note(now, &figures);
        }
    }

    fn note(&mut self, now: Duration, figures: &TcpFigures) {
        let (segments, payload) = self.side.of(figures);
        let new = segments.wrapping_sub(self.segments);
        self.record
            .add(self.at, now, u64::from(new) * u64::from(payload), figures.rtt_us);
        if new > 0 {
            self.record.note_segment(payload, figures.has_timestamps);
        }
        (self.at, self.segments) = (now, segments);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whenever a connection is looked at, all that it has delivered is in the bins, in its time.
        #[test]
        fn bins_have_all_that_was_delivered(steps in vec((1u64..400, 0u32..1000), 1..50)) {
            let record = Record::begin();
            let mut watched = Watched {
                record: &record, side: Side::Sender, at: Duration::ZERO, segments: 0,
            };
            let (mut now, mut delivered) = (Duration::ZERO, 0);
            for (millis, segments) in steps {
                now += Duration::from_millis(millis);
                delivered += segments;
                let figures = TcpFigures {
                    delivered,
                    segment_payload: 1448,
                    rtt_us: 7,
                    ..TcpFigures::default()
                };
                watched.note(now, &figures);
                let bins = record.bins();
                prop_assert_eq!(bins.iter().map(|bin| bin.bytes).sum::<u64>(), u64::from(delivered) * 1448);
                prop_assert_eq!(bins.len(), (now.as_millis() / BIN.as_millis()) as usize + 1);
            }
            let bins = record.bins();
            let (sum, count) = bins.iter().fold((0, 0), |(sum, count), bin| {
                (sum + bin.round_trips_us, count + bin.round_trips)
            });
            prop_assert_eq!(sum, u64::from(count) * 7);
        }
    }

    #[test]
    fn what_is_delivered_between_two_looks_is_spread_evenly() {
        let record = Record::begin();
        record.add(BIN / 2, BIN * 5 / 2, 2000, 1);
        let bytes: Vec<u64> = record.bins().iter().map(|bin| bin.bytes).collect();
        assert_eq!(bytes, [500, 1000, 500]);
        // After the last bin nothing is lost, and nothing grows.
        record.add(BIN * MOST_BINS as u32, BIN * MOST_BINS as u32 * 2, 10, 1);
        assert_eq!(record.bins().len(), MOST_BINS);
    }
}
