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
    /// When the next transmission may begin.
    free_from: Time,
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
    pub(crate) fn new(rate: &LineRate) -> Line {
        let (free_from, pace) = match rate {
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
        Line { free_from, pace }
    }

    /// Returns when the next transmission may begin. It may begin now if this is not after `now`.
    #[inline]
    pub(crate) fn free_from(&mut self, now: Time) -> Time {
        if self.free_from < now
            && let Pace::Trace(clock) = &mut self.pace
        {
            // What was not used has passed.
            self.free_from = clock.skip_to(now);
        }
        self.free_from
    }

    /// Transmits `bytes` from now on. The line must be free. Returns when the last bit has left.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Time, bytes: u32) -> Time {
        let was_idle = self.free_from < now;
        let end = match &mut self.pace {
            Pace::Instant => now,
            Pace::Constant(clock) => {
                if was_idle {
                    clock.restart();
                }
                now + clock.advance(bytes)
            }
            Pace::Schedule(clock) => clock.transmit(now, was_idle, bytes),
            Pace::Trace(clock) => {
                let end = clock.transmit(bytes);
                self.free_from = clock.next();
                return end;
            }
        };
        self.free_from = end;
        end
    }
}
