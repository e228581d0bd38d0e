//! A shaper without a bucket: it knows when the next packet may leave, and each packet moves that by its own time on the
//! line.
//!
//! Who is late sends at once, and what he sends moves the same point in time: so lost time is made up for, to the
//! nanosecond, as long as there is a backlog, and none is saved up while there is none.

use crate::rate::{Rate, RateMeter};
use crate::time::Time;

/// The shaper of the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaper {
    meter: RateMeter,
    /// When the next packet may leave.
    next: Time,
    /// When one may leave though packets that were dropped, and counted, would not let it: at two thirds of the rate there is
    /// always one.
    failsafe: Time,
}

impl Shaper {
    pub(super) fn new(rate: Rate, now: Time) -> Shaper {
        Shaper {
            meter: rate.meter(),
            next: now,
            failsafe: now,
        }
    }

    /// Another rate for what is sent from now on.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.meter = rate.meter();
    }

    /// Whether no packet may leave yet.
    #[inline]
    pub(super) fn is_closed(&self, now: Time) -> bool {
        self.next > now && self.failsafe > now
    }

    /// When the next packet may leave.
    pub(super) fn opens_at(&self) -> Time {
        self.next.min(self.failsafe)
    }

    /// A packet comes and none is queued: time that was not used is lost.
    #[inline]
    pub(super) fn refresh(&mut self, now: Time) {
        if self.next < now {
            self.next = now;
            self.failsafe = now;
        }
    }

    /// Counts a packet that is sent.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u64) {
        let duration = self.meter.nanos(bytes);
        self.next += duration;
        self.failsafe += duration + (duration >> 1);
    }

    /// Counts a packet that used the line before, and is dropped here.
    pub(super) fn dropped(&mut self, bytes: u64) {
        self.next += self.meter.nanos(bytes);
    }
}

/// The soft shaper of a tin: until when it has used its part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    meter: RateMeter,
    next: Time,
}

impl Threshold {
    pub(super) fn new(rate: Rate, now: Time) -> Threshold {
        Threshold {
            meter: rate.meter(),
            next: now,
        }
    }

    /// Another rate for what is counted from now on.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.meter = rate.meter();
    }

    /// From when on it is below its part again.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// A packet comes and none is queued in the tin.
    #[inline]
    pub(super) fn refresh(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// Counts a packet. What exceeds the part is not added up: it came from tins that had no use for it.
    #[inline]
    pub(super) fn count(&mut self, bytes: u64, now: Time) {
        let duration = self.meter.nanos(bytes);
        if self.next < now {
            self.next += duration;
        } else {
            self.next = self.next.max(now + duration);
        }
    }
}
