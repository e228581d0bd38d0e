//! COBALT, the queue management of CAKE: CoDel and BLUE side by side over one queue (Høiland-Jørgensen, Täht, Morton
//! 2018, section III-C; Linux's `sch_cake`).
//!
//! CoDel tells senders that listen, by marks or drops at a rate that grows while the delay stays above the target. BLUE is
//! for those that don't: each overflow of the buffer raises a probability by which packets are dropped, each time that the
//! queue is found empty lowers it.
//!
//! This CoDel differs from the one of RFC 8289 (`codel/law.rs`). It keeps one point in time, `drop_next`: the interval before
//! the first signal and the one between signals are the same mechanism. When the delay is good again the count is not
//! forgotten but runs down at the pace at which it ran up, one step for each signal that would have been due. And it
//! decides on one packet at a time: the caller asks anew for the packet behind one that is dropped.
//!
//! Times are in nanoseconds, `1 / sqrt(count)` is a 32-bit fraction, both as in Linux 6.1. BLUE's part of the state is apart:
//! it is at rest as long as no buffer overflows, and CoDel's fits into the cache line of a flow.

use core::time::Duration;

use crate::pool::{PacketId, Pool};
use crate::structures::Random;
use crate::time::Time;

/// The parameters as the packet path needs them, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Law {
    target: u64,
    interval: u64,
    /// How long the longest packet is on the wire.
    frame_time: u64,
}

/// CoDel's state, and whether BLUE has one: 24 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// When the next signal is due; without any so far, until when the queue is known to have been in use.
    drop_next: Time,
    /// Signals since the delay was good for long.
    count: u32,
    /// `2^32 / sqrt(count)`. In a queue that was never signalled to it is 0, and the first signal comes without the
    /// interval before it, as in Linux.
    rec_inv_sqrt: u32,
    /// Whether the last packet's delay was above the target.
    dropping: bool,
    /// Whether BLUE's probability is above 0.
    is_blue: bool,
}

/// BLUE's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blue {
    /// Of a drop, in parts of 2^32.
    probability: u32,
    /// When it was changed last. It changes at most once in a target.
    changed: Option<Time>,
}

/// A packet just taken out of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub(crate) id: PacketId,
    pub(crate) now: Time,
    /// Other queues that are always backlogged: a delay of two frames of each is no one's fault. 0 for not to heed them.
    pub(crate) bulk_flows: u32,
}

/// What an overflow adds to BLUE's probability: 1/256.
const INCREMENT: u32 = 1 << 24;
/// What an empty queue takes from it: 1/4096.
const DECREMENT: u32 = 1 << 20;

/// Counts whose square roots are tabled: one step of Newton's is far off for the first few, above all from 1 to 2.
const TABLED: usize = 16;
static REC_INV_SQRTS: [u32; TABLED] = rec_inv_sqrts();

const fn rec_inv_sqrts() -> [u32; TABLED] {
    let mut table = [u32::MAX; TABLED];
    let mut count = 1;
    while count < TABLED {
        // From the one before, four steps of Newton's are exact to the last places.
        let mut x = table[count - 1];
        let mut step = 0;
        while step < 4 {
            x = newton_step(x, count as u32);
            step += 1;
        }
        table[count] = x;
        count += 1;
    }
    table
}

/// `x (3 - count x^2) / 2`, closer to `1 / sqrt(count)` than `x`; `x` has 32 binary places.
const fn newton_step(x: u32, count: u32) -> u32 {
    let x_squared = (x as u64 * x as u64) >> 32;
    let three_less = (3u64 << 32).wrapping_sub(count as u64 * x_squared);
    // Two bits less, so that the product fits into 64.
    ((three_less >> 2).wrapping_mul(x as u64) >> (32 - 2 + 1)) as u32
}

impl Law {
    /// For a queue whose longest packet is on the wire for `frame_time` nanoseconds, and for round trips of `rtt`. The target
    /// is a twentieth of that, but one and a half frames at least, lest a slow line drop what it can't send any sooner.
    pub(crate) fn new(rtt: Duration, frame_time: u64) -> Law {
        let rtt = rtt.as_nanos() as u64;
        let wanted = rtt / 20;
        let target = wanted.max(frame_time * 3 / 2);
        Law {
            target,
            interval: (rtt + target - wanted).max(2 * target),
            frame_time,
        }
    }

    /// Nanoseconds of acceptable standing delay.
    pub(crate) fn target(&self) -> u64 {
        self.target
    }

    /// Nanoseconds between the first two signals.
    pub(crate) fn interval(&self) -> u64 {
        self.interval
    }

    /// Whether a packet is to be dropped. One that may be marked instead is marked.
    #[inline]
    pub(crate) fn should_drop(
        &self,
        state: &mut State,
        blue: &Blue,
        leaving: Leaving,
        random: &mut Random,
        pool: &mut Pool,
    ) -> bool {
        let sojourn = leaving.now.nanos_since(pool[leaving.id].enqueued_at);
        let is_over = sojourn > self.target
            && sojourn > self.frame_time * 4
            && sojourn > self.frame_time * 2 * u64::from(leaving.bulk_flows);
        if !is_over && state.count == 0 && !state.is_blue {
            // The usual case.
            state.dropping = false;
            state.drop_next = leaving.now + self.interval;
            return false;
        }
        self.control(state, blue, is_over, leaving, random, pool)
    }

    #[cold]
    #[inline(never)]
    fn control(
        &self,
        state: &mut State,
        blue: &Blue,
        is_over: bool,
        Leaving { id, now, .. }: Leaving,
        random: &mut Random,
        pool: &mut Pool,
    ) -> bool {
        let is_due = state.is_due(now);
        let mut is_behind = now > state.drop_next;
        if is_over {
            if !state.dropping {
                state.dropping = true;
                state.drop_next = now;
                self.schedule(state);
            }
            state.count = state.count.max(1);
        } else {
            state.dropping = false;
        }
        let mut drop = false;
        if is_due && state.dropping {
            drop = !pool.mark_congestion(id);
            state.set_count(state.count.saturating_add(1));
            self.schedule(state);
            is_behind = now > state.drop_next;
        } else if is_due {
            while state.is_due(now) {
                self.run_down(state);
            }
            is_behind = now > state.drop_next;
        }
        // Without regard to ECN: whom BLUE is for does not heed marks either.
        if state.is_blue && random.bits32() < blue.probability {
            drop = true;
        }
        if state.count == 0 {
            state.drop_next = now + self.interval;
        } else if is_behind && !drop {
            state.drop_next = now;
        }
        drop
    }

    /// A packet of this queue had to be dropped because the buffer was full. Returns whether BLUE was at rest before.
    #[cold]
    pub(crate) fn overflowed(&self, state: &mut State, blue: &mut Blue, now: Time) -> bool {
        let was_at_rest = !state.is_blue;
        if self.may_change(blue, now) {
            blue.probability = blue.probability.saturating_add(INCREMENT);
            blue.changed = Some(now);
            state.is_blue = true;
        }
        state.dropping = true;
        state.drop_next = now;
        state.count = state.count.max(1);
        was_at_rest && state.is_blue
    }

    /// The queue was to send and was empty. Returns whether BLUE came to rest by that.
    #[inline]
    pub(crate) fn ran_empty(&self, state: &mut State, blue: &mut Blue, now: Time) -> bool {
        let came_to_rest = state.is_blue && self.calm_down(state, blue, now);
        state.dropping = false;
        if state.is_due(now) {
            self.run_down(state);
        }
        came_to_rest
    }

    #[cold]
    fn calm_down(&self, state: &mut State, blue: &mut Blue, now: Time) -> bool {
        if !self.may_change(blue, now) {
            return false;
        }
        blue.probability = blue.probability.saturating_sub(DECREMENT);
        blue.changed = Some(now);
        state.is_blue = blue.probability > 0;
        !state.is_blue
    }

    fn may_change(&self, blue: &Blue, now: Time) -> bool {
        blue.changed
            .is_none_or(|changed| now.nanos_since(changed) > self.target)
    }

    /// One signal fewer to remember.
    fn run_down(&self, state: &mut State) {
        state.set_count(state.count - 1);
        self.schedule(state);
    }

    /// The next signal comes `interval / sqrt(count)` after the one that was due last.
    fn schedule(&self, state: &mut State) {
        state.drop_next += ((u128::from(self.interval) * u128::from(state.rec_inv_sqrt)) >> 32) as u64;
    }
}

impl State {
    /// Whether nothing is remembered that time has to wear off: neither signals, nor a probability, nor recent use.
    #[inline]
    pub(crate) fn is_at_rest(&self, now: Time) -> bool {
        self.count == 0 && !self.is_blue && now >= self.drop_next
    }

    /// Whether a signal was due by now, be it given or not.
    #[inline]
    fn is_due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.rec_inv_sqrt = match REC_INV_SQRTS.get(count as usize) {
            Some(tabled) => *tabled,
            None => newton_step(self.rec_inv_sqrt, count),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, Packet};
    use proptest::prelude::*;

    const MILLI: u64 = 1_000_000;

    #[test]
    fn the_state_of_a_queue_is_24_bytes() {
        assert_eq!(size_of::<State>(), 24);
    }

    #[test]
    fn the_target_follows_from_the_round_trip_and_the_frame() {
        let fast = Law::new(Duration::from_millis(100), 0);
        assert_eq!((fast.target, fast.interval), (5 * MILLI, 100 * MILLI));
        // 1514 bytes at 1 Mbit/s.
        let slow = Law::new(Duration::from_millis(100), 12_112_000);
        assert_eq!((slow.target, slow.interval), (18_168_000, 113_168_000));
        let slower = Law::new(Duration::from_millis(100), 121_120_000);
        assert_eq!((slower.target, slower.interval), (181_680_000, 363_360_000));
    }

    /// The fixed-point fraction against exact arithmetic, as the count rises and as it falls.
    #[test]
    fn newtons_steps_keep_up_with_the_square_root() {
        let mut state = State::default();
        for count in (0..50_000).chain((1..50_000).rev()) {
            state.set_count(count);
            let exact = 4_294_967_296.0 / f64::from(count.max(1)).sqrt();
            let relative = f64::from(state.rec_inv_sqrt) / exact;
            assert!((relative - 1.0).abs() < 0.002, "count {count}: {relative}");
        }
    }

    /// The same decisions as the kernel's source spells them: one signed difference, kept while the schedule moves on.
    #[derive(Default)]
    struct Model {
        count: u32,
        rec_inv_sqrt: u32,
        drop_next: i128,
        dropping: bool,
        probability: u64,
        blue_timer: Option<i128>,
    }

    impl Model {
        fn control(&self, from: i128, law: &Law) -> i128 {
            from + ((i128::from(law.interval) * i128::from(self.rec_inv_sqrt)) >> 32)
        }

        fn step_to(&mut self, count: u32, law: &Law) {
            let mut state = State {
                rec_inv_sqrt: self.rec_inv_sqrt,
                ..State::default()
            };
            state.set_count(count);
            (self.count, self.rec_inv_sqrt) = (count, state.rec_inv_sqrt);
            self.drop_next = self.control(self.drop_next, law);
        }

        fn may_change(&self, now: i128, law: &Law) -> bool {
            self.blue_timer
                .is_none_or(|timer| now - timer > law.target.into())
        }

        /// Whether the packet is dropped, and whether it is marked.
        fn packet(
            &mut self,
            law: &Law,
            now: i128,
            sojourn: u64,
            ecn: bool,
            random: &mut Random,
        ) -> (bool, bool) {
            let mut schedule = now - self.drop_next;
            let over_target = sojourn > law.target && sojourn > 4 * law.frame_time;
            let mut next_due = self.count > 0 && schedule >= 0;
            if over_target {
                if !self.dropping {
                    self.dropping = true;
                    self.drop_next = self.control(now, law);
                }
                if self.count == 0 {
                    self.count = 1;
                }
            } else {
                self.dropping = false;
            }
            let (mut drop, mut marked) = (false, false);
            if next_due && self.dropping {
                (drop, marked) = (!ecn, ecn);
                self.step_to(self.count + 1, law);
                schedule = now - self.drop_next;
            } else {
                while next_due {
                    self.step_to(self.count - 1, law);
                    schedule = now - self.drop_next;
                    next_due = self.count > 0 && schedule >= 0;
                }
            }
            if self.probability > 0 {
                drop |= u64::from(random.bits32()) < self.probability;
            }
            if self.count == 0 {
                self.drop_next = now + i128::from(law.interval);
            } else if schedule > 0 && !drop {
                self.drop_next = now;
            }
            (drop, marked)
        }

        fn empty(&mut self, law: &Law, now: i128) {
            if self.probability > 0 && self.may_change(now, law) {
                self.probability = self.probability.saturating_sub(1 << 20);
                self.blue_timer = Some(now);
            }
            self.dropping = false;
            if self.count > 0 && now >= self.drop_next {
                self.step_to(self.count - 1, law);
            }
        }

        fn full(&mut self, law: &Law, now: i128) {
            if self.may_change(now, law) {
                self.probability = (self.probability + (1 << 24)).min(u32::MAX.into());
                self.blue_timer = Some(now);
            }
            self.dropping = true;
            self.drop_next = now;
            self.count = self.count.max(1);
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Packet { sojourn: u64, ecn: bool },
        Empty,
        Full,
    }

    proptest! {
        #[test]
        fn decisions_are_those_of_the_model(
            frame_time in prop_oneof![Just(0), 1_000u64..20_000_000],
            rtt in 1u64..300,
            origin in 300_000_000u64..1 << 50,
            steps in prop::collection::vec(
                (
                    prop_oneof![4 => 0u64..2_000_000, 2 => 0u64..200_000_000, 1 => 0u64..3_000_000_000],
                    prop_oneof![
                        8 => (prop_oneof![0u64..10_000_000, 5_000_000u64..300_000_000], any::<bool>())
                            .prop_map(|(sojourn, ecn)| Step::Packet { sojourn, ecn }),
                        2 => Just(Step::Empty),
                        1 => Just(Step::Full),
                    ],
                ),
                1..400,
            ),
        ) {
            let law = Law::new(Duration::from_millis(rtt), frame_time);
            let (mut state, mut blue, mut model) = (State::default(), Blue::default(), Model::default());
            let (mut random, mut model_random) = (Random::new(1), Random::new(1));
            let mut pool = Pool::with_capacity(1);
            let mut now = Time::from_nanos(origin);
            for (pause, step) in steps {
                now += pause;
                let nanos = i128::from(now.nanos());
                match step {
                    Step::Packet { sojourn, ecn } => {
                        let packet = Packet {
                            ecn: if ecn { Ecn::Ect0 } else { Ecn::NotEct },
                            ..Packet::of_length(1000)
                        };
                        let id = pool.insert(packet).unwrap();
                        pool[id].enqueued_at = Time::from_nanos(now.nanos() - sojourn);
                        let leaving = Leaving { id, now, bulk_flows: 0 };
                        let dropped = law.should_drop(&mut state, &blue, leaving, &mut random, &mut pool);
                        let marked = pool.release(id).ecn == Ecn::Ce;
                        let expected = model.packet(&law, nanos, sojourn, ecn, &mut model_random);
                        prop_assert_eq!((dropped, marked), expected);
                    }
                    Step::Empty => {
                        let was_blue = state.is_blue;
                        let came_to_rest = law.ran_empty(&mut state, &mut blue, now);
                        model.empty(&law, nanos);
                        prop_assert_eq!(came_to_rest, was_blue && !state.is_blue);
                        let is_at_rest = model.count == 0 && model.probability == 0 && nanos >= model.drop_next;
                        prop_assert_eq!(state.is_at_rest(now), is_at_rest);
                    }
                    Step::Full => {
                        law.overflowed(&mut state, &mut blue, now);
                        model.full(&law, nanos);
                    }
                }
                prop_assert_eq!(state.count, model.count);
                prop_assert_eq!(i128::from(state.drop_next.nanos()), model.drop_next);
                prop_assert_eq!(state.dropping, model.dropping);
                prop_assert_eq!(u64::from(blue.probability), model.probability);
                prop_assert_eq!(state.is_blue, model.probability > 0);
            }
        }
    }
}
