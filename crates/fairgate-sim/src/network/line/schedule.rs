//! A line whose rate changes by a schedule.

use fairgate::{Rate, Time};

use super::clock::ExactClock;
use crate::scenario::Schedule;

/// Turns bytes into times under a schedule, without drift: the end of a transmission is the time at which the
/// integral of the rate reaches the bits, rounded down. The remainder counts for the next packet.
///
/// Phases begin on whole nanoseconds. So the state is a whole nanosecond and a remainder in units of 1/rate
/// of the current phase.
#[derive(Debug)]
pub(super) struct ScheduleClock {
    schedule: Schedule,
    /// The index of the current phase.
    phase: usize,
    /// The start of the current round of the schedule.
    round: Time,
    /// The end of the current phase.
    until: Time,
    clock: ExactClock,
    /// What a round can transmit, in units of 10^-9 bits. 0 if the schedule does not repeat.
    capacity: u128,
}

impl ScheduleClock {
    pub(super) fn new(schedule: Schedule) -> ScheduleClock {
        let capacity = schedule
            .period()
            .map_or(0, |period| schedule.nanobits_until(period));
        let clock = ExactClock::new(schedule.phases()[0].1);
        let mut schedule = ScheduleClock {
            schedule,
            phase: 0,
            round: Time::ZERO,
            until: Time::ZERO,
            clock,
            capacity,
        };
        schedule.until = schedule.end_of_phase();
        schedule
    }

    /// Transmits `bytes` from `now` on. Returns when the last bit has left.
    pub(super) fn transmit(&mut self, now: Time, was_idle: bool, bytes: u32) -> Time {
        if was_idle {
            self.clock.restart();
        }
        if now >= self.until {
            self.move_to(now);
        }
        let carried = self.clock.carried();
        let end = now + self.clock.advance(bytes);
        if end < self.until || end == self.until && self.clock.carried() == 0 {
            return end;
        }
        self.cross(now, carried, bytes)
    }

    /// Transmits over the end of the phase. `carried` is the part of a nanosecond after `now` that is over.
    #[cold]
    fn cross(&mut self, mut now: Time, carried: u64, bytes: u32) -> Time {
        let mut work = u128::from(bytes) * 8_000_000_000;
        let mut carried = u128::from(carried);
        loop {
            let rate = u128::from(self.rate().bits_per_second());
            let room = rate * u128::from(self.until - now) - carried;
            if work <= room {
                let total = work + carried;
                self.clock = ExactClock::resume(self.rate(), (total % rate) as u64);
                return now + (total / rate) as u64;
            }
            work -= room;
            carried = 0;
            now = self.until;
            self.next_phase();
            if self.phase == 0 {
                // Whole rounds are skipped. At least one nanobit is left, so the end is found in a phase.
                let rounds = (work - 1) / self.capacity;
                work -= rounds * self.capacity;
                self.skip(rounds as u64);
                now = self.round;
            }
        }
    }

    /// Makes the phase of `now` the current one. `now` is not before the end of the current phase.
    #[cold]
    fn move_to(&mut self, now: Time) {
        if let Some(period) = self.schedule.period() {
            let rounds = (now - self.round) / period.nanos();
            if rounds > 0 {
                self.phase = 0;
                self.skip(rounds);
            }
        }
        while now >= self.until {
            self.next_phase();
        }
        self.clock = ExactClock::new(self.rate());
    }

    fn rate(&self) -> Rate {
        self.schedule.phases()[self.phase].1
    }

    /// Moves this number of rounds on.
    fn skip(&mut self, rounds: u64) {
        let period = self.schedule.period().map_or(0, Time::nanos);
        self.round += rounds * period;
        self.until = self.end_of_phase();
    }

    fn next_phase(&mut self) {
        self.phase += 1;
        if self.phase == self.schedule.phases().len() {
            self.phase = 0;
            self.round = self.until;
        }
        self.until = self.end_of_phase();
    }

    /// Returns the end of the current phase. [`Time::MAX`]: it lasts for ever.
    fn end_of_phase(&self) -> Time {
        let next = self.schedule.phases().get(self.phase + 1).map(|phase| phase.0);
        let end = next.or(self.schedule.period());
        end.map_or(Time::MAX, |end| self.round + end.nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// The time at which `work` more nanobits have been transmitted after the exact time `from`, as a
    /// fraction of a nanosecond. The reference goes from phase to phase, and never rounds.
    fn reference(schedule: &Schedule, from: (u128, u128), mut work: u128) -> (u128, u128) {
        let (mut numerator, mut denominator) = from;
        let (mut round, mut phase) = (0u128, 0);
        loop {
            let phases = schedule.phases();
            let rate = u128::from(phases[phase].1.bits_per_second());
            let next = phases.get(phase + 1).map(|phase| phase.0).or(schedule.period());
            let end = next.map(|end| round + u128::from(end.nanos()));
            // Whether the exact time is before the end of this phase.
            if end.is_none_or(|end| numerator < end * denominator) {
                // In units of 1/(rate * denominator) ns the time is a whole number.
                let at = numerator * rate;
                let done = at + work * denominator;
                let Some(limit) = end.map(|end| end * denominator * rate) else {
                    return (done, denominator * rate);
                };
                if done <= limit {
                    return (done, denominator * rate);
                }
                work -= (limit - at) / denominator;
                (numerator, denominator) = (end.expect("a limit has an end"), 1);
            }
            phase += 1;
            if phase == phases.len() {
                phase = 0;
                round = end.expect("the last phase has an end if it is left");
            }
        }
    }

    fn schedules() -> impl Strategy<Value = Schedule> {
        let phase = (50_000u64..2_000_000, 1_000_000u64..40_000_000);
        (
            prop::collection::vec(phase, 1..5),
            prop::option::of(50_000u64..2_000_000),
        )
            .prop_map(|(steps, repeats)| {
                let mut at = 0;
                let phases: Vec<(Duration, Rate)> = steps
                    .iter()
                    .map(|&(length, bits)| {
                        let from = Duration::from_nanos(at);
                        at += length;
                        (from, Rate::from_bits_per_second(bits).unwrap())
                    })
                    .collect();
                let last = phases[phases.len() - 1].0;
                let period = repeats.map(|more| last + Duration::from_nanos(more));
                Schedule::new(&phases, period).unwrap()
            })
    }

    proptest! {
        /// Packets back to back, with pauses between them.
        #[test]
        fn transmissions_end_at_the_exact_nanosecond(
            schedule in schedules(),
            packets in prop::collection::vec(
                (1u32..3_000, prop::option::weighted(0.2, 0u64..9_000_000)),
                1..20,
            ),
        ) {
            let mut clock = ScheduleClock::new(schedule.clone());
            let (mut begin, mut total) = (Time::ZERO, 0);
            let mut now = Time::ZERO;
            for (bytes, pause) in packets {
                // All packets since the last pause are transmitted like one.
                let was_idle = pause.is_some_and(|pause| pause > 0);
                if let Some(pause) = pause {
                    now += pause;
                    if was_idle {
                        (begin, total) = (now, 0);
                    }
                }
                total += u128::from(bytes) * 8_000_000_000;
                let exact = reference(&schedule, (begin.nanos().into(), 1), total);
                now = clock.transmit(now, was_idle, bytes);
                prop_assert_eq!(u128::from(now.nanos()), exact.0 / exact.1);
            }
        }
    }

    #[test]
    fn many_rounds_are_skipped_at_once() {
        // 1000 bytes at 1 bit/s take 8000 s, which is 8 * 10^12 rounds of a nanosecond.
        let schedule = Schedule::new(
            &[(Duration::ZERO, Rate::from_bits_per_second(1).unwrap())],
            Some(Duration::from_nanos(1)),
        );
        let mut clock = ScheduleClock::new(schedule.unwrap());
        assert_eq!(clock.transmit(Time::ZERO, false, 1000), Time::from_secs(8000));
        assert_eq!(
            clock.transmit(Time::from_secs(9000), true, 1),
            Time::from_secs(9008)
        );
    }
}
