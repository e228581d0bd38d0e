//! COBALT, the queue management of CAKE: CoDel and BLUE together over one queue (Høiland-Jørgensen, Täht,
//! Morton 2018, section III-C; Linux's `sch_cake`).
//!
//! CoDel signals to senders that respond, by marks or drops whose rate grows while the delay stays above the
//! target. BLUE is for senders that do not respond. Each overflow of the buffer raises BLUE's drop
//! probability, and each time that the queue is found empty lowers it.
//!
//! This CoDel differs from that of RFC 8289 (`codel/control_law.rs`). It keeps one time, `drop_next`: one
//! mechanism gives the interval before the first signal and those between signals. When the delay is good
//! again, the count is not reset. It decreases by one for each signal that would be due. It decides on one
//! packet at a time: after a drop, the caller asks again for the next packet.
//!
//! Times are in nanoseconds, and `1 / sqrt(count)` is a 32-bit fraction, both as in Linux 6.1. BLUE's state
//! is stored separately: it does not change unless the buffer overflows, and CoDel's state fits into the
//! cache line of a flow.

use core::time::Duration;

use crate::pool::{PacketId, Pool};
use crate::structures::Random;
use crate::time::Time;

/// The parameters as the packet path needs them, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ControlLaw {
    target: u64,
    interval: u64,
    /// The transmission time of the longest packet.
    frame_time: u64,
}

/// CoDel's state, and whether BLUE is active: 24 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// When the next signal is due. Before the first signal: until when the queue is known to have been in
    /// use.
    drop_next: Time,
    /// Signals since the delay was last good for long.
    count: u32,
    /// `2^32 / sqrt(count)`. In a queue without signals so far it is 0, and the first signal comes without an
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
    /// The drop probability, in units of 2^-32.
    probability: u32,
    /// When the probability was last changed. It changes at most once per target.
    changed: Option<Time>,
}

/// A packet that was just taken out of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub(crate) id: PacketId,
    pub(crate) now: Time,
    /// Number of other queues that are always backlogged. A delay of two frames of each is accepted. 0 if
    /// this does not count.
    pub(crate) bulk_flows: u32,
}

/// An overflow adds this to BLUE's probability: 1/256.
const INCREMENT: u32 = 1 << 24;
/// An empty queue subtracts this from it: 1/4096.
const DECREMENT: u32 = 1 << 20;

/// The number of counts whose square roots are in a table. One Newton step is inaccurate for the first few,
/// above all from 1 to 2.
const TABLED: usize = 16;
static REC_INV_SQRTS: [u32; TABLED] = rec_inv_sqrts();

const fn rec_inv_sqrts() -> [u32; TABLED] {
    let mut table = [u32::MAX; TABLED];
    let mut count = 1;
    while count < TABLED {
        // From the previous value, four Newton steps are exact to the last digits.
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

/// `x (3 - count x^2) / 2`: closer to `1 / sqrt(count)` than `x`. `x` has 32 fractional bits.
const fn newton_step(x: u32, count: u32) -> u32 {
    let x_squared = (x as u64 * x as u64) >> 32;
    let three_less = (3u64 << 32).wrapping_sub(count as u64 * x_squared);
    // Two bits less, so that the product fits into 64 bits.
    ((three_less >> 2).wrapping_mul(x as u64) >> (32 - 2 + 1)) as u32
}

impl ControlLaw {
    /// The control law of a queue whose longest packet takes `frame_time` nanoseconds, for round trips of
    /// `rtt`. The target is a twentieth of `rtt`, but at least one and a half frames, so that a slow link
    /// does not drop what it cannot send earlier.
    pub(crate) fn new(rtt: Duration, frame_time: u64) -> ControlLaw {
        let rtt = rtt.as_nanos() as u64;
        let wanted = rtt / 20;
        let target = wanted.max(frame_time * 3 / 2);
        ControlLaw {
            target,
            interval: (rtt + target - wanted).max(2 * target),
            frame_time,
        }
    }

    /// The acceptable standing delay, ns.
    pub(crate) fn target(&self) -> u64 {
        self.target
    }

    /// The time between the first two signals, ns.
    pub(crate) fn interval(&self) -> u64 {
        self.interval
    }

    /// Whether the packet must be dropped. An ECN-capable packet is marked instead.
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
            // The common case.
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
        // BLUE ignores ECN: senders that do not respond to drops do not respond to marks either.
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

    /// Notes that a packet of this queue was dropped because the buffer was full. Returns whether BLUE was
    /// inactive before.
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

    /// Notes that the queue was asked for a packet and was empty. Returns whether BLUE became inactive.
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

    /// Decreases the count of signals by one.
    fn run_down(&self, state: &mut State) {
        state.set_count(state.count - 1);
        self.schedule(state);
    }

    /// Sets the next signal to `interval / sqrt(count)` after the last due one.
    fn schedule(&self, state: &mut State) {
        state.drop_next += ((u128::from(self.interval) * u128::from(state.rec_inv_sqrt)) >> 32) as u64;
    }
}

impl State {
    /// Whether the state equals that of a new queue: no signals, no probability and no recent use are
    /// remembered.
    #[inline]
    pub(crate) fn is_at_rest(&self, now: Time) -> bool {
        self.count == 0 && !self.is_blue && now >= self.drop_next
    }

    /// Whether a signal was due by now, given or not.
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
        let fast = ControlLaw::new(Duration::from_millis(100), 0);
        assert_eq!((fast.target, fast.interval), (5 * MILLI, 100 * MILLI));
        // 1514 bytes at 1 Mbit/s.
        let slow = ControlLaw::new(Duration::from_millis(100), 12_112_000);
        assert_eq!((slow.target, slow.interval), (18_168_000, 113_168_000));
        let slower = ControlLaw::new(Duration::from_millis(100), 121_120_000);
        assert_eq!((slower.target, slower.interval), (181_680_000, 363_360_000));
    }

    /// Compares the fixed-point fraction with exact arithmetic while the count rises and falls.
    #[test]
    fn newton_steps_follow_the_square_root() {
        let mut state = State::default();
        for count in (0..50_000).chain((1..50_000).rev()) {
            state.set_count(count);
            let exact = 4_294_967_296.0 / f64::from(count.max(1)).sqrt();
            let relative = f64::from(state.rec_inv_sqrt) / exact;
            assert!((relative - 1.0).abs() < 0.002, "count {count}: {relative}");
        }
    }

    /// Makes the same decisions as the kernel's source writes them: with one signed difference, kept while
    /// the schedule advances.
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
        fn control(&self, from: i128, law: &ControlLaw) -> i128 {
            from + ((i128::from(law.interval) * i128::from(self.rec_inv_sqrt)) >> 32)
        }

        fn step_to(&mut self, count: u32, law: &ControlLaw) {
            let mut state = State {
                rec_inv_sqrt: self.rec_inv_sqrt,
                ..State::default()
            };
            state.set_count(count);
            (self.count, self.rec_inv_sqrt) = (count, state.rec_inv_sqrt);
            self.drop_next = self.control(self.drop_next, law);
        }

        fn may_change(&self, now: i128, law: &ControlLaw) -> bool {
            self.blue_timer
                .is_none_or(|timer| now - timer > law.target.into())
        }

        /// Returns whether the packet is dropped, and whether it is marked.
        fn packet(
            &mut self,
            law: &ControlLaw,
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

        fn empty(&mut self, law: &ControlLaw, now: i128) {
            if self.probability > 0 && self.may_change(now, law) {
                self.probability = self.probability.saturating_sub(1 << 20);
                self.blue_timer = Some(now);
            }
            self.dropping = false;
            if self.count > 0 && now >= self.drop_next {
                self.step_to(self.count - 1, law);
            }
        }

        fn full(&mut self, law: &ControlLaw, now: i128) {
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
        fn decisions_equal_those_of_the_model(
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
            let law = ControlLaw::new(Duration::from_millis(rtt), frame_time);
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
                        let is_at_rest =
                            model.count == 0 && model.probability == 0 && nanos >= model.drop_next;
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
