//! PIE's control law: with which probability an arriving packet is dropped. All disciplines that run PIE use
//! it.
//!
//! Every `tupdate` the probability changes by the difference between the delay and `target`, and by the trend
//! of the delay: `p += alpha (delay - target) + beta (delay - previous delay)`. The steps are smaller while
//! `p` is small (RFC 8033, section 4.2). The RFC adds these rules:
//! * Nothing is dropped in the first 150 ms of congestion (`max_burst`), or with less than two packets
//!   queued, or while the delay is below half of the target and `p` below 20 %.
//! * Between two drops there are at least 0.85 and at most 8.5 expected drops (section 5.4, `derandomize`).
//! * Above 10 %, `p` rises by at most 2 % in an update (section 5.5, `cap_drop`).
//! * ECN-capable packets are marked instead, up to a probability of 10 %.
//!
//! The arithmetic is Linux's: time in ticks of 64 ns, probabilities in units of 2^-56. The delay is the
//! sojourn time of the last packet that left. With `dq_rate_estimator` it is the backlog divided by a
//! measured rate (Little's law).
//!
//! Linux runs a timer. The inputs of an update do not change between two calls. So updates that are due are
//! made at the next call that looks at the queue. The result is the same, and an idle queue costs nothing.
//!
//! Deviations from Linux: the probability is at most 1 (in Linux it can reach 256, and takes as long to come
//! back). A mark that was overdue resets the count as a drop does. The sum of the steps is not cut to 64
//! bits.

use core::time::Duration;

use crate::aqm::POSITIVE;
use crate::aqm::periodic::Periodic;
use crate::discipline::Variable;
use crate::pool::{PacketId, Pool};
use crate::probability::Probability;
use crate::registry::{Lens, Parameter, Unit};
use crate::structures::Random;
use crate::time::Time;

/// PIE's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The delay that PIE aims at.
    pub target: Duration,
    /// Time between two updates of the probability.
    pub tupdate: Duration,
    /// Weight of the difference between delay and target, in sixteenths of 1/s; 0 to 32.
    pub alpha: u32,
    /// Weight of the change of the delay, in sixteenths of 1/s; 0 to 32.
    pub beta: u32,
    /// Whether to mark ECN-capable packets instead of dropping them, while the probability is low.
    pub ecn: bool,
    /// The highest probability at which packets are marked; above it, ECN-capable packets are dropped too.
    pub ecn_prob: Probability,
    /// Whether a packet shorter than `mtu` is dropped in proportion to its length.
    pub bytemode: bool,
    /// Whether the delay is computed from the backlog and the rate of departures, instead of measured.
    pub dq_rate_estimator: bool,
    /// The longest packet: nothing is dropped with less than two of them queued.
    pub mtu: u32,
    /// How long nothing is dropped at the beginning of congestion.
    pub max_burst: Duration,
    /// Whether a probability above 10 % rises by at most 2 % in an update.
    pub cap_drop: bool,
    /// Whether drops are spread evenly: between two there are 0.85 to 8.5 expected drops.
    pub derandomize: bool,
}

/// The values of RFC 8033, as in Linux: twice 15 ms, 1/8 and 5/4, Ethernet frames. Its rules against bursts
/// of drops, which dummynet can switch off, hold.
impl Default for Params {
    fn default() -> Params {
        Params {
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(15),
            alpha: 2,
            beta: 20,
            ecn: false,
            ecn_prob: Probability::ratio(1, 10),
            bytemode: false,
            dq_rate_estimator: false,
            mtu: 1514,
            max_burst: Duration::from_millis(150),
            cap_drop: true,
            derandomize: true,
        }
    }
}

/// PIE's parameters for a discipline that runs it: `$pie` is the path to them.
macro_rules! pie_parameters {
    (|$config:ident| $pie:expr; $($first:expr,)*) => {
        &[
            $($first,)*
            crate::aqm::pie::pie_time("target", "The delay that PIE aims at.", |$config, _| &mut $pie.target),
            crate::aqm::pie::pie_time("tupdate", "Time between updates of the probability.", |$config, _| {
                &mut $pie.tupdate
            }),
            crate::aqm::pie::pie_weight(
                "alpha",
                "Weight of the difference between delay and target, in sixteenths of 1/s.",
                |$config, _| &mut $pie.alpha,
            ),
            crate::aqm::pie::pie_weight(
                "beta",
                "Weight of the change of the delay, in sixteenths of 1/s.",
                |$config, _| &mut $pie.beta,
            ),
            crate::aqm::codel::ecn(|$config, _| &mut $pie.ecn),
            crate::aqm::pie::ecn_prob(|$config, _| &mut $pie.ecn_prob),
            crate::aqm::pie::bytemode(|$config, _| &mut $pie.bytemode),
            crate::aqm::pie::dq_rate_estimator(|$config, _| &mut $pie.dq_rate_estimator),
            crate::aqm::pie::pie_mtu(|$config, _| &mut $pie.mtu),
            crate::aqm::pie::max_burst(|$config, _| &mut $pie.max_burst),
            crate::aqm::pie::cap_drop(|$config, _| &mut $pie.cap_drop),
            crate::aqm::pie::derandomize(|$config, _| &mut $pie.derandomize),
        ]
    };
}

pub(crate) const fn pie_time<S>(name: &'static str, doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new(name, Unit::Time, 64..=60_000_000_000, doc, field)
}

pub(crate) const fn pie_weight<S>(name: &'static str, doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new(name, Unit::Count("weight"), 0..=32, doc, field)
}

pub(crate) const fn ecn_prob<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "ecn_prob",
        Unit::Probability,
        0..=1 << 32,
        "With `ecn`: the highest probability at which packets are marked; above it they are dropped.",
        field,
    )
}

pub(crate) const fn bytemode<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "Whether a packet shorter than `mtu` is dropped in proportion to its length.";
    Parameter::word("bytemode", Unit::Flag, doc, field)
}

pub(crate) const fn dq_rate_estimator<S>(field: Lens<S>) -> Parameter<S> {
    let doc =
        "Whether the delay is computed from the backlog and the rate of departures, instead of measured.";
    Parameter::word("dq_rate_estimator", Unit::Flag, doc, field)
}

pub(crate) const fn pie_mtu<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "The longest packet: nothing is dropped with less than two of them queued.";
    Parameter::new("mtu", Unit::Bytes, POSITIVE, doc, field)
}

pub(crate) const fn max_burst<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "How long nothing is dropped at the beginning of congestion.";
    Parameter::new("max_burst", Unit::Time, 0..=60_000_000_000, doc, field)
}

pub(crate) const fn cap_drop<S>(field: Lens<S>) -> Parameter<S> {
    let doc =
        "Whether a drop probability above 10 % rises by at most 2 % in an update (RFC 8033, section 5.5).";
    Parameter::word("cap_drop", Unit::Flag, doc, field)
}

pub(crate) const fn derandomize<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "Whether drops are spread evenly: between two there are 0.85 to 8.5 expected drops (RFC 8033, \
        section 5.4).";
    Parameter::word("derandomize", Unit::Flag, doc, field)
}

pub(crate) use pie_parameters;

/// A tick is 2^6 ns.
const TICK_SHIFT: u32 = 6;
const TICKS_PER_SECOND: u64 = 1_000_000_000 >> TICK_SHIFT;
/// Probability 1.
const MAX_PROB: u64 = u64::MAX >> 8;
/// 2 %: a probability above 10 % rises by at most this in an update.
const TWO_PERCENT: i128 = (MAX_PROB / 50) as i128;
/// Above this delay the probability rises by 2 % more.
const LATE: u64 = 250_000_000 >> TICK_SHIFT;
/// The number of bytes over which the departure rate is measured.
const MEASURED: u64 = 16_384;
/// Binary fraction digits of the departure rate, in bytes per tick.
const RATE_PLACES: u32 = 8;
/// The largest number of updates made in one call, so that its time is bounded. After a minute without calls
/// the probability no longer changes.
const MOST_UPDATES: u64 = 4096;

/// The parameters as the packet path needs them.
#[derive(Clone, Debug)]
pub(crate) struct ControlLaw {
    target: u64,
    /// In units of 1/MAX_PROB per tick.
    alpha: u64,
    beta: u64,
    ecn: bool,
    ecn_most: u64,
    bytemode: bool,
    estimates: bool,
    mtu: u32,
    /// In ticks.
    max_burst: u64,
    cap_drop: bool,
    derandomize: bool,
}

/// One queue's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// In units of 2^-56.
    prob: u64,
    /// The expected drops since the last one, in units of 2^-56.
    accumulated: u64,
    /// `prob / mtu`, computed with `prob`, so that no packet needs a division.
    prob_per_byte: u64,
    /// In ticks.
    delay: u64,
    delay_before: u64,
    /// The rest of the time in which nothing is dropped, in ticks.
    burst: u64,
    /// The time of the last departure, or of the beginning of a measurement, in ticks.
    stamp: Option<u64>,
    /// The bytes sent in this measurement.
    measured: Option<u64>,
    /// In bytes per tick, with `RATE_PLACES` fraction digits.
    rate: u64,
    /// The number of updates made.
    updates: u64,
}

/// Counts the updates that are due.
#[derive(Clone, Debug)]
pub(crate) struct Updates {
    periodic: Periodic,
    due: u64,
}

impl Updates {
    pub(crate) fn every(period: Duration) -> Updates {
        Updates {
            periodic: Periodic::every(period),
            due: 0,
        }
    }

    /// Changes the period.
    pub(crate) fn set_period(&mut self, period: Duration) {
        self.periodic = Periodic::every(period);
    }

    /// The number that was due at the last call of `due`.
    pub(crate) fn so_far(&self) -> u64 {
        self.due
    }

    /// The number that is due now.
    #[inline]
    pub(crate) fn due(&mut self, now: Time) -> u64 {
        if now >= self.periodic.next() {
            self.due += self.periodic.pass(now).count;
        }
        self.due
    }
}

impl State {
    /// The state of a queue that was idle, after so many updates.
    fn idle(max_burst: u64, updates: u64) -> State {
        State {
            prob: 0,
            accumulated: 0,
            prob_per_byte: 0,
            delay: 0,
            delay_before: 0,
            burst: max_burst,
            stamp: None,
            measured: None,
            rate: 0,
            updates,
        }
    }

    /// Resets the state after congestion: nothing is dropped at the beginning of the next one.
    fn restart(&mut self, max_burst: u64) {
        self.burst = max_burst;
        self.stamp = None;
        self.accumulated = 0;
        self.measured = None;
        self.rate = 0;
    }

    /// Notes a drop, by PIE or for another reason.
    pub(crate) fn dropped(&mut self) {
        self.accumulated = 0;
    }

    /// The drop probability.
    pub(crate) fn probability(&self) -> Probability {
        Probability::from_parts(self.prob >> 24)
    }

    /// Visits the variables under Linux's names.
    pub(crate) fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("prob", Variable::Integer(self.probability().parts() as i64));
        visit("delay", Variable::Nanos(self.delay << TICK_SHIFT));
        visit("burst_time", Variable::Nanos(self.burst << TICK_SHIFT));
        let rate = (u128::from(self.rate) * u128::from(TICKS_PER_SECOND)) >> RATE_PLACES;
        visit("avg_dq_rate", Variable::Integer(rate as i64));
    }
}

impl ControlLaw {
    /// The control law with these parameters, which were checked.
    pub(crate) fn new(params: &Params) -> ControlLaw {
        let scaled = |weight: u32| (u64::from(weight) * (MAX_PROB / TICKS_PER_SECOND)) >> 4;
        ControlLaw {
            target: ticks_of(params.target),
            alpha: scaled(params.alpha),
            beta: scaled(params.beta),
            ecn: params.ecn,
            // Linux compares with a tenth of MAX_PROB, or with hundredths of it.
            ecn_most: ((u128::from(params.ecn_prob.parts()) * u128::from(MAX_PROB)) >> 32) as u64,
            bytemode: params.bytemode,
            estimates: params.dq_rate_estimator,
            mtu: params.mtu,
            max_burst: ticks_of(params.max_burst),
            cap_drop: params.cap_drop,
            derandomize: params.derandomize,
        }
    }

    /// The state of a queue that was idle, after so many updates.
    pub(crate) fn idle(&self, updates: u64) -> State {
        State::idle(self.max_burst, updates)
    }

    /// Whether congestion is over: the delay was below half of the target twice, and nothing is dropped.
    pub(crate) fn is_over(&self, state: &State) -> bool {
        let half = self.target / 2;
        state.prob == 0 && state.delay < half && state.delay_before < half
    }

    /// Whether an arriving packet may be queued; marks it if it would be dropped otherwise. `backlog` does
    /// not include it.
    #[inline]
    pub(crate) fn admits(
        &self,
        state: &mut State,
        backlog: u64,
        id: PacketId,
        random: &mut Random,
        pool: &mut Pool,
    ) -> bool {
        if !self.is_congested(state, backlog) {
            return true;
        }
        self.admits_congested(state, id, random, pool)
    }

    #[inline]
    fn is_congested(&self, state: &State, backlog: u64) -> bool {
        state.burst == 0
            && (state.delay >= self.target / 2 || state.prob >= MAX_PROB / 5)
            && backlog >= 2 * u64::from(self.mtu)
    }

    #[inline(never)]
    fn admits_congested(
        &self,
        state: &mut State,
        id: PacketId,
        random: &mut Random,
        pool: &mut Pool,
    ) -> bool {
        let length = pool[id].length;
        let prob = if self.bytemode && length <= self.mtu {
            state.prob_per_byte * u64::from(length)
        } else {
            state.prob
        };
        let mut is_overdue = false;
        if self.derandomize {
            state.accumulated = match prob {
                0 => 0,
                _ => state.accumulated.saturating_add(prob),
            };
            if state.accumulated < MAX_PROB / 100 * 85 {
                return true;
            }
            is_overdue = state.accumulated >= MAX_PROB / 2 * 17;
        }
        if !is_overdue && random.bits() >> 8 >= prob {
            return true;
        }
        state.accumulated = 0;
        self.ecn && state.prob <= self.ecn_most && pool.mark_congestion(id)
    }

    /// Updates the state after a packet left the queue with `backlog` bytes behind it.
    #[inline]
    pub(crate) fn departed(&self, state: &mut State, id: PacketId, backlog: u64, now: Time, pool: &Pool) {
        let now = ticks(now);
        if self.estimates {
            self.measure(state, pool[id].length, backlog, now);
            return;
        }
        let waited = now.saturating_sub(ticks(pool[id].enqueued_at));
        state.delay = if backlog == 0 { 0 } else { waited };
        let since_last = state.stamp.map_or(0, |last| now.saturating_sub(last));
        state.stamp = Some(now);
        state.burst = state.burst.saturating_sub(since_last);
    }

    /// Counts the bytes that leave while enough are queued. It divides once per 16 KiB.
    fn measure(&self, state: &mut State, length: u32, backlog: u64, now: u64) {
        if backlog >= MEASURED && state.measured.is_none() {
            state.stamp = Some(now);
            state.measured = Some(0);
        }
        let Some(before) = state.measured else { return };
        let measured = before + u64::from(length);
        state.measured = Some(measured);
        if measured < MEASURED {
            return;
        }
        let took = now.saturating_sub(state.stamp.unwrap_or(now));
        if took == 0 {
            return;
        }
        let rate = (measured << RATE_PLACES) / took;
        state.rate = match state.rate {
            0 => rate,
            before => before - (before >> 3) + (rate >> 3),
        };
        if backlog < MEASURED {
            state.measured = None;
        } else {
            state.measured = Some(0);
            state.stamp = Some(now);
        }
        state.burst = state.burst.saturating_sub(took);
    }

    /// Makes the updates that are due, so that `due` have been made. It is called before the queue changes.
    #[inline]
    pub(crate) fn catch_up(&self, state: &mut State, due: u64, backlog: u64) {
        if state.updates != due {
            self.update_until(state, due, backlog);
        }
    }

    #[inline(never)]
    fn update_until(&self, state: &mut State, due: u64, backlog: u64) {
        let missed = due - state.updates;
        state.updates = due;
        for _ in 0..missed.min(MOST_UPDATES) {
            let before = *state;
            self.update(state, backlog);
            if *state == before {
                break;
            }
        }
        self.take_over(state);
    }

    /// Continues with the state of another control law.
    pub(crate) fn take_over(&self, state: &mut State) {
        state.prob_per_byte = state.prob / u64::from(self.mtu);
    }

    /// One update of the probability.
    fn update(&self, state: &mut State, backlog: u64) {
        let (delay, before) = if self.estimates {
            state.delay_before = state.delay;
            let delay = match state.rate {
                0 => 0,
                rate => (backlog << RATE_PLACES) / rate,
            };
            (delay, state.delay)
        } else {
            (state.delay, state.delay_before)
        };
        // If the backlog is too small to have a delay, the probability does not decay.
        let mut may_decay = delay != 0 || backlog == 0;
        let shift = finer(state.prob);
        let step = |weight: u64, from: u64, to: u64| {
            i128::from(weight >> shift) * (i128::from(to) - i128::from(from))
        };
        let mut delta = step(self.alpha, self.target, delay) + step(self.beta, before, delay);
        if self.cap_drop && delta > TWO_PERCENT && state.prob >= MAX_PROB / 10 {
            delta = TWO_PERCENT;
        }
        if delay > LATE {
            delta += TWO_PERCENT;
        }
        let moved = i128::from(state.prob) + delta;
        if moved > i128::from(MAX_PROB) {
            may_decay = false;
        }
        state.prob = moved.clamp(0, MAX_PROB.into()) as u64;
        if delay == 0 && before == 0 && may_decay {
            state.prob -= state.prob / 64;
        }
        state.delay = delay;
        if self.is_over(state) && (!self.estimates || state.rate > 0) {
            state.restart(self.max_burst);
        }
        if !self.estimates {
            state.delay_before = delay;
        }
    }
}

/// The number of bits by which steps are smaller at a probability: 1 below a tenth, and 2 more for each
/// further tenth down to a millionth.
fn finer(prob: u64) -> u32 {
    const BELOW: [u64; 6] = [
        MAX_PROB / 10,
        MAX_PROB / 100,
        MAX_PROB / 1_000,
        MAX_PROB / 10_000,
        MAX_PROB / 100_000,
        MAX_PROB / 1_000_000,
    ];
    match BELOW.iter().filter(|&&bound| prob < bound).count() as u32 {
        0 => 0,
        tenths => 2 * tenths - 1,
    }
}

fn ticks_of(duration: Duration) -> u64 {
    (duration.as_nanos() >> TICK_SHIFT) as u64
}

#[inline]
fn ticks(time: Time) -> u64 {
    time.nanos() >> TICK_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use proptest::prelude::*;

    fn law() -> ControlLaw {
        ControlLaw::new(&Params::default())
    }

    fn of_one(prob: u64) -> f64 {
        prob as f64 / MAX_PROB as f64
    }

    /// RFC 8033, section 4.2, with floating-point numbers.
    fn rfc(p: f64, delay: f64, before: f64, has_backlog: bool) -> f64 {
        let scale = match p {
            ..0.000001 => 2048.0,
            ..0.00001 => 512.0,
            ..0.0001 => 128.0,
            ..0.001 => 32.0,
            ..0.01 => 8.0,
            ..0.1 => 2.0,
            _ => 1.0,
        };
        let mut delta = (0.125 * (delay - 0.015) + 1.25 * (delay - before)) / scale;
        if delta > 0.02 && p >= 0.1 {
            delta = 0.02;
        }
        if delay > 0.25 {
            delta += 0.02;
        }
        let p = (p + delta).clamp(0.0, 1.0);
        // The RFC has a factor of 98 %, Linux 63/64.
        if delay == 0.0 && before == 0.0 && !has_backlog {
            p * 63.0 / 64.0
        } else {
            p
        }
    }

    proptest! {
        /// From any probability and delays, one step equals that of the RFC, as exactly as 64 ns and scaled
        /// weights allow.
        #[test]
        fn a_step_equals_that_of_the_rfc(
            exponent in 0.0f64..8.0, delays in [0u64..400_000, 0u64..400_000], backlog in 0u64..2,
        ) {
            let p = 10f64.powf(-exponent);
            let law = law();
            let mut state = State {
                prob: (p * MAX_PROB as f64) as u64,
                delay: (delays[0] * 1000) >> TICK_SHIFT,
                delay_before: (delays[1] * 1000) >> TICK_SHIFT,
                ..law.idle(0)
            };
            let expected = rfc(p, delays[0] as f64 / 1e6, delays[1] as f64 / 1e6, backlog > 0);
            law.catch_up(&mut state, 1, backlog);
            let ours = of_one(state.prob);
            // Two ticks of 64 ns, and 2^-20 of the weights.
            let step = (expected - p).abs();
            prop_assert!((ours - expected).abs() <= 2e-7 + step * 1e-5, "{ours} for {expected} from {p}");
        }

        /// The probability is the same as with a timer, wherever the calls fall between updates.
        #[test]
        fn late_updates_equal_those_of_a_timer(
            prob in 0..MAX_PROB,
            delay in 0u64..10_000_000,
            backlog in 0u64..100_000,
            splits in prop::collection::vec(1u64..50, 1..20),
        ) {
            let law = law();
            let mut timer = State { prob, delay, delay_before: delay / 2, ..law.idle(0) };
            let mut lazy = timer;
            let mut due = 0;
            for split in splits {
                due += split;
                for step in due - split + 1..=due {
                    law.catch_up(&mut timer, step, backlog);
                }
                law.catch_up(&mut lazy, due, backlog);
                prop_assert_eq!(timer, lazy);
            }
        }
    }

    /// Gaps between drops at a probability of 5 %: at least 0.85 and at most 8.5 expected drops, and
    /// geometrically distributed between.
    #[test]
    fn drops_are_neither_clustered_nor_far_apart() {
        let law = law();
        let mut pool = Pool::with_capacity(1);
        let id = pool.insert(Packet::of_length(1000)).unwrap();
        let mut random = Random::new(3);
        let mut state = State {
            prob: MAX_PROB / 20,
            delay: law.target,
            burst: 0,
            ..law.idle(0)
        };
        let (mut gaps, mut gap) = (Vec::new(), 0u32);
        for _ in 0..400_000 {
            gap += 1;
            if !law.admits(&mut state, 100_000, id, &mut random, &mut pool) {
                gaps.push(gap);
                gap = 0;
            }
        }
        assert!(gaps.iter().all(|gap| (17..=171).contains(gap)));
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        // 16 packets that cannot be dropped, then one of 20 on average.
        assert!((mean / 36.0 - 1.0).abs() < 0.03, "{mean}");
    }

    /// dummynet's `noderand` and `nocapdrop`.
    #[test]
    fn rules_of_the_rfc_can_be_switched_off() {
        let params = Params {
            cap_drop: false,
            derandomize: false,
            max_burst: Duration::ZERO,
            ..Params::default()
        };
        let law = ControlLaw::new(&params);
        let mut pool = Pool::with_capacity(1);
        let id = pool.insert(Packet::of_length(1000)).unwrap();
        let mut random = Random::new(3);
        let congested = |prob| State {
            prob,
            delay: law.target,
            ..law.idle(0)
        };
        // Each packet is dropped with the same probability: of 100,000 some two in a row.
        let mut state = congested(MAX_PROB / 20);
        let drops: Vec<bool> = (0..100_000)
            .map(|_| !law.admits(&mut state, 100_000, id, &mut random, &mut pool))
            .collect();
        let count = drops.iter().filter(|dropped| **dropped).count();
        assert!((4700..5300).contains(&count), "{count}");
        assert!(drops.windows(2).any(|pair| pair == [true, true]));
        // A step of 12.5 %, which the rule would cut to 2 %.
        let rise = |law: &ControlLaw| {
            let mut state = State {
                delay: law.target + TICKS_PER_SECOND / 10,
                delay_before: law.target,
                ..congested(MAX_PROB / 5)
            };
            law.catch_up(&mut state, 1, 1);
            of_one(state.prob) - 0.2
        };
        assert!((rise(&law) - 0.1375).abs() < 1e-4, "{}", rise(&law));
        assert!((rise(&ControlLaw::new(&Params::default())) - 0.02).abs() < 1e-4);
    }

    #[test]
    fn nothing_is_dropped_where_the_rfc_forbids_it() {
        let law = law();
        let congested = State {
            prob: MAX_PROB / 10,
            delay: law.target,
            burst: 0,
            ..law.idle(0)
        };
        assert!(law.is_congested(&congested, 3028));
        assert!(!law.is_congested(&congested, 3027), "less than two packets");
        assert!(
            !law.is_congested(
                &State {
                    burst: 1,
                    ..congested
                },
                3028
            ),
            "a burst"
        );
        let quick = State {
            delay: law.target / 2 - 1,
            ..congested
        };
        assert!(!law.is_congested(&quick, 3028), "a falling delay");
        let certain = State {
            prob: MAX_PROB / 5,
            ..quick
        };
        assert!(law.is_congested(&certain, 3028));
    }

    #[test]
    fn in_byte_mode_short_packets_are_dropped_less() {
        let params = Params {
            bytemode: true,
            ..Params::default()
        };
        let law = ControlLaw::new(&params);
        let mut random = Random::new(1);
        let mut drops = |length| {
            let mut pool = Pool::with_capacity(1);
            let id = pool.insert(Packet::of_length(length)).unwrap();
            let prob = MAX_PROB / 10;
            let mut state = State {
                prob,
                prob_per_byte: prob / 1514,
                delay: law.target,
                burst: 0,
                ..law.idle(0)
            };
            (0..100_000)
                .filter(|_| !law.admits(&mut state, 100_000, id, &mut random, &mut pool))
                .count() as f64
        };
        let ratio = drops(1514) / drops(757);
        assert!((ratio - 2.0).abs() < 0.1, "{ratio}");
    }

    #[test]
    fn a_control_law_for_longer_packets_takes_over_a_state() {
        let of_mtu = |mtu| {
            let params = Params {
                bytemode: true,
                mtu,
                ..Params::default()
            };
            ControlLaw::new(&params)
        };
        let mut pool = Pool::with_capacity(1);
        let id = pool.insert(Packet::of_length(1395)).unwrap();
        let mut state = State {
            prob: MAX_PROB,
            burst: 0,
            ..of_mtu(1).idle(0)
        };
        for mtu in [1, 1395] {
            let law = of_mtu(mtu);
            law.take_over(&mut state);
            let _ = law.admits(&mut state, 100_000, id, &mut Random::new(1), &mut pool);
        }
        assert_eq!(state.prob_per_byte, MAX_PROB / 1395);
    }
}
