//! The line of an interface: when a transmission ends, and when the next one may begin.

mod clock;
mod schedule;
mod trace;

use fairgate::Time;

use crate::scenario::LineRate;
pub(crate) use clock::ExactClock;
use schedule::ScheduleClock;
use trace::TraceClock;

/// The line of an interface.
#[derive(Debug)]
pub(crate) struct Line {
    /// When all that was given to it is transmitted. Of a trace: its next opportunity.
    busy_until: Time,
    /// How long the send buffer takes to be transmitted, ns. The line takes packets so much earlier.
    buffer: u64,
    pace: Pace,
}

/// How fast the line is.
#[derive(Debug)]
enum Pace {
    /// Transmission takes no time.
    Instant,
    Constant(ExactClock),
    Schedule(ScheduleClock),
    Trace(TraceClock),
}

impl Line {
    /// Creates an idle line. `buffer` is the size of its send buffer in bytes, which only a constant rate may
    /// have.
    pub(crate) fn new(rate: &LineRate, buffer: u32) -> Line {
        let (busy_until, pace) = match rate {
            LineRate::Unlimited => (Time::ZERO, Pace::Instant),
            LineRate::Constant(rate) => (Time::ZERO, Pace::Constant(ExactClock::new(*rate))),
            LineRate::Schedule(schedule) => {
                (Time::ZERO, Pace::Schedule(ScheduleClock::new(schedule.clone())))
            }
            LineRate::Trace(trace) => {
                let clock = TraceClock::new(trace.clone());
                (clock.next(), Pace::Trace(clock))
            }
        };
        let buffer = match rate {
            LineRate::Constant(rate) => rate.transmission_nanos(buffer.into()),
            _ => 0,
        };
        Line {
            busy_until,
            buffer,
            pace,
        }
    }

    /// Returns when it takes the next packet: when fewer bytes than the send buffer holds are left, and
    /// without a buffer none. It takes one now if this is not after `now`.
    #[inline]
    pub(crate) fn free_from(&mut self, now: Time) -> Time {
        if self.busy_until < now
            && let Pace::Trace(clock) = &mut self.pace
        {
            // What was not used has passed.
            self.busy_until = clock.skip_to(now);
        }
        Time::from_nanos(self.busy_until.nanos().saturating_sub(self.buffer))
    }

    /// Transmits `bytes` from now on, or after what is in the send buffer. The line must be free. Returns
    /// when the last bit has left.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, now: Time, bytes: u32) -> Time {
        let was_idle = self.busy_until < now;
        let end = match &mut self.pace {
            Pace::Instant => now,
            Pace::Constant(clock) => {
                if was_idle {
                    clock.restart();
                }
                self.busy_until.max(now) + clock.advance(bytes)
            }
            Pace::Schedule(clock) => clock.transmit(now, was_idle, bytes),
            Pace::Trace(clock) => {
                let end = clock.transmit(bytes);
                self.busy_until = clock.next();
                return end;
            }
        };
        self.busy_until = end;
        end
    }
}
