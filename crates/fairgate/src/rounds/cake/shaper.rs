//! A shaper without a bucket. It stores the time when the next packet may leave, and each packet advances it
//! by its own transmission time.
//!
//! If a packet leaves late, the time advances from the stored time and not from now. So during a backlog lost
//! time is regained, to the nanosecond. Without a backlog no time is saved up.

use crate::rate::{Rate, RateMeter};
use crate::time::Time;

/// The shaper of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaper {
    meter: RateMeter,
    /// When the next packet may leave.
    next: Time,
    /// When a packet may leave although counted drops would not allow it: one may always leave at two thirds
    /// of the rate.
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

    /// Changes the rate for all later packets.
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

    /// Notes that a packet arrives at empty queues: unused time is lost.
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

    /// Counts a packet that has used the link before and is dropped here.
    pub(super) fn dropped(&mut self, bytes: u64) {
        self.next += self.meter.nanos(bytes);
    }
}

/// The soft shaper of a tin: the time until which it has used its part.
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

    /// Changes the rate for all later packets.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.meter = rate.meter();
    }

    /// When the tin is below its part again.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Notes that a packet arrives at an empty tin.
    #[inline]
    pub(super) fn refresh(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// Counts a packet. An excess above the part is not accumulated: other tins did not need it.
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
