//! Dual-queue coupled AQM (RFC 9332) with PI2: low latency for senders that react to every mark (L4S).
//! Linux's `dualpi2`.
//!
//! Two kinds of senders share a link. Classic senders halve their rate on a sign of congestion and need a
//! queue of milliseconds. Scalable senders (ECT(1), RFC 9331) change their rate a little on each of many
//! marks and need no queue. So each kind has its own queue, and one controller serves both: a base
//! probability `p'` follows the delay as in PIE. Classic packets are dropped or marked with probability
//! `p'^2`, scalable packets are marked with `k p'`. With `k = 2` both kinds reach similar rates (RFC 9332,
//! section 2.1).
//!
//! ```text
//!   ECT(1), CE      -> L queue --+-- marked with k p', or above a threshold of its delay --+
//!                                |   p' <- p' + alpha (delay - target) + beta (change)      +-- weighted
//!   Not-ECT, ECT(0) -> C queue --+-- dropped or marked with p'^2 ---------------------------+   round robin
//! ```
//!
//! The L queue goes first. **Protection**: while both queues hold packets, a credit gives the C queue
//! `classic_protection` percent of the bytes. **Overload** (`k p'` above 1): scalable packets are also
//! dropped, with `p'^2`, and classic packets are dropped and no longer marked. Without `drop_overload`, `k
//! p'` stays at 1 and the limit drops the rest.
//!
//! The arithmetic is Linux's: 32-bit probabilities, weights in 256ths of 1/s. Beyond Linux: the L queue's own
//! marks may follow a ramp (`step_range`; RFC 9332, appendix A) instead of a step. Deviations: updates come
//! every `tupdate` from the first packet on, and are made at the next call after they are due. A change of
//! parameters resets the credit. Non-goals: filters that choose the queue; segmentation.

mod config;

use super::periodic::Periodic;
use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::{DropReason, Ecn};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::check_ranges;
use crate::structures::Random;
use crate::time::Time;

pub use config::{Config, DESCRIPTION, PARAMETERS, Settings, Step};

/// Probability 1.
const MAX_PROB: u32 = u32::MAX;
/// Weights are stored for units of 2^6 ns.
const UNIT_SHIFT: u32 = 6;
/// The largest number of updates made in one call. After a minute without calls the probability no longer
/// changes.
const MOST_UPDATES: u64 = 4096;

impl Config {
    /// The most memory that queued packets occupy, set or derived.
    pub fn memory(&self) -> u64 {
        let derived = || u64::from(self.limit) * 2 * u64::from(self.mtu);
        self.memory_limit.unwrap_or_else(derived)
    }

    fn derived(&self) -> Result<Derived, ConfigError> {
        check_ranges(PARAMETERS, &mut Settings::of(self))?;
        let (step_nanos, step_packets) = match self.step {
            Step::Delay(delay) => (delay.as_nanos() as u64, u32::MAX),
            Step::Packets(packets) => (u64::MAX, packets),
        };
        let range = self.step_range.as_nanos() as u64;
        if range > 0 && matches!(self.step, Step::Packets(_)) {
            return Err(ConfigError::conflict(
                "step_range",
                format!("{:?}", self.step_range),
                "left out where the step is in packets",
                "give the step as a time, or leave the range out",
            ));
        }
        let protected = i64::from(self.classic_protection);
        Ok(Derived {
            memory_limit: self.memory(),
            target: self.target.as_nanos() as i128,
            alpha: scaled(self.alpha),
            beta: scaled(self.beta),
            most_prob: match self.drop_overload {
                true => MAX_PROB,
                false => MAX_PROB / u32::from(self.coupling_factor),
            },
            step_nanos,
            step_packets,
            per_nano: u64::MAX.checked_div(range).unwrap_or(0),
            spared_bytes: 2 * u64::from(self.mtu),
            classic_weight: protected,
            scalable_weight: 100 - protected,
            first_credit: i64::from(self.mtu) * (2 * protected - 100),
        })
    }
}

/// `weight / 256` 1/s in units of 1/MAX_PROB per 64 ns.
fn scaled(weight: u32) -> i128 {
    i128::from(((u64::from(weight) * u64::from(MAX_PROB)) >> 2) / 1_000_000_000)
}

/// The parameters as the packet path needs them.
#[derive(Clone, Debug)]
struct Derived {
    memory_limit: u64,
    target: i128,
    alpha: i128,
    beta: i128,
    most_prob: u32,
    step_nanos: u64,
    step_packets: u32,
    /// The slope of the ramp, in units of 2^-64 per ns; 0 for a step.
    per_nano: u64,
    /// The coupled probabilities have no effect if fewer bytes than this are queued.
    spared_bytes: u64,
    classic_weight: i64,
    scalable_weight: i64,
    /// The credit after both queues were empty. It is below 0, so that the L queue begins, if that queue's
    /// weight is the greater one.
    first_credit: i64,
}

impl Derived {
    /// The probability with which the L queue itself marks a packet with sojourn time `waited`, in ns, that
    /// leaves `behind` packets in the queue.
    #[inline]
    fn own_probability(&self, waited: u64, behind: u32) -> u32 {
        if waited <= self.step_nanos && behind <= self.step_packets {
            return 0;
        }
        if self.per_nano == 0 {
            return MAX_PROB;
        }
        let on_ramp = (u128::from(waited - self.step_nanos) * u128::from(self.per_nano)) >> 32;
        u32::try_from(on_ramp).unwrap_or(MAX_PROB)
    }
}

/// The discipline. Make one with [`DualPi2::node`].
#[derive(Debug)]
pub struct DualPi2 {
    /// The L queue: low latency.
    scalable: PacketQueue,
    classic: PacketQueue,
    memory: u64,
    /// The base probability p', in units of 1/MAX_PROB.
    prob: u32,
    /// The delay at the last update, ns.
    last_delay: i128,
    /// At or below 0 it is the L queue's turn. In bytes times percent.
    credit: i64,
    updates: Periodic,
    random: Random,
    derived: Derived,
    config: Config,
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    None,
    Mark,
    Drop,
}

impl DualPi2 {
    /// Creates two empty queues. `seed` is for the random drops and marks.
    ///
    /// ```
    /// use fairgate::aqm::dualpi2::{Config, DualPi2};
    /// use fairgate::{Discipline, Ecn, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut dualpi2 = DualPi2::node(Config::default(), 42)?;
    /// let mut offer = |pool: &mut Pool, ecn| {
    ///     let id = pool.insert(Packet { ecn, ..Packet::of_length(1514) }).expect("16 slots");
    ///     dualpi2.enqueue(id, Time::ZERO, pool);
    ///     id
    /// };
    /// let classic = offer(&mut pool, Ecn::Ect0);
    /// let scalable = offer(&mut pool, Ecn::Ect1);
    /// assert_eq!(dualpi2.dequeue(Time::ZERO, &mut pool), Some(scalable));
    /// assert_eq!(dualpi2.dequeue(Time::ZERO, &mut pool), Some(classic));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<DualPi2>, ConfigError> {
        let derived = config.derived()?;
        Ok(Node::new(DualPi2 {
            scalable: PacketQueue::new(),
            classic: PacketQueue::new(),
            memory: 0,
            prob: 0,
            last_delay: 0,
            credit: derived.first_credit,
            updates: Periodic::every(config.tupdate),
            random: Random::new(seed),
            derived,
            config,
        }))
    }

    #[inline]
    fn packets(&self) -> u32 {
        self.scalable.len() + self.classic.len()
    }

    #[inline]
    fn is_scalable(&self, ecn: Ecn) -> bool {
        match ecn {
            Ecn::Ect1 | Ecn::Ce => true,
            Ecn::Ect0 => self.config.any_ect,
            Ecn::NotEct => false,
        }
    }

    /// Makes the updates that are due. It is called before the queues change, so that they are as a timer
    /// would find them.
    #[inline]
    fn catch_up(&mut self, now: Time, pool: &Pool) {
        if now >= self.updates.next() {
            self.update_until(now, pool);
        }
    }

    #[cold]
    fn update_until(&mut self, now: Time, pool: &Pool) {
        let passed = self.updates.pass(now);
        let heads = [&self.classic, &self.scalable].map(|queue| queue.front().map(|id| pool[id].enqueued_at));
        for at in self.updates.times(passed, MOST_UPDATES) {
            let before = (self.prob, self.last_delay);
            let waited = heads.iter().flatten().map(|&since| at.nanos_since(since));
            self.update(waited.max().unwrap_or(0).into());
            if heads == [None, None] && before == (self.prob, self.last_delay) {
                break;
            }
        }
    }

    /// One update, by the longer of the two queues' delays, ns.
    fn update(&mut self, delay: i128) {
        let step = (delay - self.derived.target) * self.derived.alpha
            + (delay - self.last_delay) * self.derived.beta;
        self.last_delay = delay;
        // Linux rounds towards zero for either sign.
        let moved = i128::from(self.prob) + step / (1 << UNIT_SHIFT);
        self.prob = moved.clamp(0, self.derived.most_prob.into()) as u32;
    }

    #[inline]
    fn roll(&mut self, prob: u32) -> bool {
        prob > 0 && self.random.bits32() <= prob
    }

    /// Decides by the coupled probabilities, for `queued` bytes in both queues.
    #[inline]
    fn coupled(&mut self, is_scalable: bool, ecn: Ecn, queued: u64) -> Signal {
        if self.prob == 0 || queued < self.derived.spared_bytes {
            return Signal::None;
        }
        let scalable_prob = u64::from(self.prob) * u64::from(self.config.coupling_factor);
        let is_overload = scalable_prob > MAX_PROB.into();
        if !is_scalable {
            return match self.roll(self.prob) && self.roll(self.prob) {
                false => Signal::None,
                true if is_overload || ecn == Ecn::NotEct => Signal::Drop,
                true => Signal::Mark,
            };
        }
        if is_overload {
            let is_dropped = self.config.drop_overload && self.roll(self.prob) && self.roll(self.prob);
            return if is_dropped { Signal::Drop } else { Signal::Mark };
        }
        if self.roll(scalable_prob as u32) {
            Signal::Mark
        } else {
            Signal::None
        }
    }

    /// Takes the next packet out. Returns also whether it was in the L queue, and its change of the credit.
    #[inline]
    fn take(&mut self, pool: &Pool) -> Option<(PacketId, bool, i64)> {
        let is_scalable = !self.scalable.is_empty() && (self.classic.is_empty() || self.credit <= 0);
        let (id, weight) = if is_scalable {
            let id = self.scalable.pop_front(pool)?;
            let others_wait = !self.classic.is_empty();
            (
                id,
                if others_wait {
                    self.derived.classic_weight
                } else {
                    0
                },
            )
        } else {
            let Some(id) = self.classic.pop_front(pool) else {
                self.credit = self.derived.first_credit;
                return None;
            };
            let others_wait = !self.scalable.is_empty();
            (
                id,
                if others_wait {
                    -self.derived.scalable_weight
                } else {
                    0
                },
            )
        };
        let packet = &pool[id];
        self.memory -= u64::from(packet.memory);
        Some((id, is_scalable, weight * i64::from(packet.length)))
    }

    /// Decides by the L queue's own step or ramp about a packet that leaves it.
    #[inline]
    fn own(&mut self, id: PacketId, now: Time, pool: &Pool) -> Signal {
        let packet = &pool[id];
        // The stamp holds how many packets were in the queue when this one arrived.
        if packet.stamp < u64::from(self.config.min_qlen_step) {
            return Signal::None;
        }
        let waited = now.nanos_since(packet.enqueued_at);
        match self.derived.own_probability(waited, self.scalable.len()) {
            MAX_PROB => Signal::Mark,
            prob if self.roll(prob) => Signal::Mark,
            _ => Signal::None,
        }
    }
}

impl Algorithm for DualPi2 {
    const NAME: &'static str = "dualpi2";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.catch_up(now, pool);
        let (ecn, memory) = (pool[id].ecn, u64::from(pool[id].memory));
        if self.packets() >= self.config.limit {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        if self.memory + memory > self.derived.memory_limit {
            pool.give_back(id, DropReason::MemoryLimit);
            return Verdict::Dropped;
        }
        let is_scalable = self.is_scalable(ecn);
        if self.config.drop_early {
            let queued = self.scalable.bytes() + self.classic.bytes();
            match self.coupled(is_scalable, ecn, queued) {
                Signal::None => {}
                Signal::Mark => {
                    pool.mark_congestion(id);
                }
                Signal::Drop => {
                    pool.give_back(id, DropReason::Aqm);
                    return Verdict::Congested;
                }
            }
        }
        self.memory += memory;
        if is_scalable {
            pool[id].stamp = self.scalable.len().into();
            self.scalable.push_back(id, pool);
        } else {
            self.classic.push_back(id, pool);
        }
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.catch_up(now, pool);
        loop {
            let (id, is_scalable, credit) = self.take(pool)?;
            if !self.config.drop_early {
                let queued = self.scalable.bytes() + self.classic.bytes();
                match self.coupled(is_scalable, pool[id].ecn, queued) {
                    Signal::None => {}
                    Signal::Mark => {
                        pool.mark_congestion(id);
                    }
                    Signal::Drop => {
                        pool.give_back(id, DropReason::Aqm);
                        continue;
                    }
                }
            }
            if is_scalable && self.own(id, now, pool) == Signal::Mark {
                pool.mark_congestion(id);
            }
            self.credit += credit;
            return Some(id);
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.scalable.append_to(into, pool);
        self.classic.append_to(into, pool);
        self.memory = 0;
        self.prob = 0;
        self.last_delay = 0;
        self.credit = self.derived.first_credit;
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let derived = config.derived()?;
        self.catch_up(now, pool);
        if config.tupdate != self.config.tupdate {
            self.updates = Periodic::every(config.tupdate);
        }
        self.credit = derived.first_credit;
        self.prob = self.prob.min(derived.most_prob);
        self.derived = derived;
        self.config = config;
        while self.packets() > self.config.limit || self.memory > self.derived.memory_limit {
            let (next, ..) = self
                .take(pool)
                .expect("of two queues over their limit one is not empty");
            pool.give_back(next, DropReason::Reconfigured);
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("prob", Variable::Integer(self.prob.into()));
        visit("credit", Variable::Integer(self.credit));
        visit("qlen_l", Variable::Integer(self.scalable.len().into()));
        visit("qlen_c", Variable::Integer(self.classic.len().into()));
        visit("delay", Variable::Nanos(self.last_delay as u64));
    }
}

#[cfg(test)]
mod tests {
    use crate::discipline::{Inspect, Reconfigure};
    use core::time::Duration;

    use super::*;
    use crate::discipline::Discipline;
    use crate::packet::Packet;
    use crate::testing::Driver;
    use proptest::prelude::*;

    fn packet(ecn: Ecn) -> Packet {
        Packet {
            ecn,
            ..Packet::of_length(1250)
        }
    }

    fn dualpi2(config: Config) -> Driver<DualPi2> {
        Driver::new(DualPi2::node(config, 1).unwrap())
    }

    /// A discipline with a base probability that does not change.
    fn with_prob(prob: u32, config: Config) -> DualPi2 {
        let still = Config {
            alpha: 0,
            beta: 0,
            ..config
        };
        let mut discipline = DualPi2::node(still, 5).unwrap().into_algorithm();
        discipline.prob = prob;
        discipline
    }

    fn rate(discipline: &mut DualPi2, is_scalable: bool, ecn: Ecn, signal: Signal) -> f64 {
        let all = 100_000;
        let hits = (0..all)
            .filter(|_| discipline.coupled(is_scalable, ecn, 1 << 20) == signal)
            .count();
        hits as f64 / f64::from(all)
    }

    /// RFC 9332, section 2.1: p_C = p'^2, p_L = k p'.
    #[test]
    fn probabilities_are_coupled_by_a_square_and_a_factor() {
        for tenth in [1u32, 2, 4] {
            let p = f64::from(tenth) / 10.0;
            let mut discipline = with_prob(MAX_PROB / 10 * tenth, Config::default());
            let near = |measured: f64, expected: f64| {
                assert!(
                    (measured - expected).abs() < 0.01,
                    "{measured} for {expected} at {p}"
                );
            };
            near(rate(&mut discipline, true, Ecn::Ect1, Signal::Mark), 2.0 * p);
            near(rate(&mut discipline, false, Ecn::Ect0, Signal::Mark), p * p);
            near(rate(&mut discipline, false, Ecn::NotEct, Signal::Drop), p * p);
        }
        let mut low = with_prob(MAX_PROB / 2, Config::default());
        assert_eq!(
            low.coupled(false, Ecn::NotEct, 3027),
            Signal::None,
            "less than two packets"
        );
    }

    /// Above k p' = 1 all scalable packets are marked or dropped, and classic packets are only dropped.
    /// Without `drop_overload` p' stays below.
    #[test]
    fn in_overload_both_kinds_are_dropped() {
        let mut discipline = with_prob(MAX_PROB / 10 * 6, Config::default());
        let dropped = rate(&mut discipline, true, Ecn::Ect1, Signal::Drop);
        assert!((dropped - 0.36).abs() < 0.01, "{dropped}");
        assert_eq!(rate(&mut discipline, true, Ecn::Ect1, Signal::None), 0.0);
        assert_eq!(rate(&mut discipline, false, Ecn::Ect0, Signal::Mark), 0.0);
        let config = Config {
            drop_overload: false,
            ..Config::default()
        };
        let mut kept = DualPi2::node(config, 1).unwrap().into_algorithm();
        for _ in 0..100 {
            kept.update(10_000_000_000);
        }
        assert_eq!(kept.prob, MAX_PROB / 2);
    }

    /// Senders that grow by a packet per round trip of 20 ms. Classic senders halve on a drop or mark,
    /// scalable senders lose half a packet per mark. 20 Mbit/s are two packets per millisecond.
    struct Senders {
        windows: Vec<(f64, Ecn)>,
        credit: Vec<f64>,
        sent: Vec<u64>,
        waited: Vec<u64>,
    }

    fn run(config: Config, kinds: &[Ecn], seconds: u64) -> Senders {
        let mut driver = dualpi2(config);
        let mut senders = Senders {
            windows: kinds.iter().map(|&ecn| (10.0, ecn)).collect(),
            credit: vec![0.0; kinds.len()],
            sent: vec![0; kinds.len()],
            waited: vec![0; kinds.len()],
        };
        let mut of_cookie: Vec<(usize, u64)> = Vec::new();
        for half in 0..seconds * 2000 {
            let now = Time::from_micros(half * 500);
            for flow in 0..kinds.len() {
                let (window, ecn) = senders.windows[flow];
                let waited = senders.waited[flow] as f64 / senders.sent[flow].max(1) as f64;
                senders.credit[flow] += window / (20.0 + waited / 1e6) / 2.0;
                while senders.credit[flow] >= 1.0 {
                    senders.credit[flow] -= 1.0;
                    of_cookie.push((flow, now.nanos()));
                    driver.offer(packet(ecn), now);
                    react_to_drops(&driver, &of_cookie, &mut senders);
                }
            }
            let id = driver.root.dequeue(now, &mut driver.pool);
            let left = id.map(|id| driver.pool.release(id));
            while let Some((id, _)) = driver.pool.take_returned() {
                let flow = of_cookie[driver.pool.release(id).cookie as usize].0;
                senders.windows[flow].0 = (senders.windows[flow].0 / 2.0).max(2.0);
            }
            if let Some(packet) = left {
                let (flow, since) = of_cookie[packet.cookie as usize];
                let (window, ecn) = &mut senders.windows[flow];
                *window = match (packet.ecn, *ecn) {
                    (Ecn::Ce, Ecn::Ect1) => (*window - 0.5).max(2.0),
                    (Ecn::Ce, _) => (*window / 2.0).max(2.0),
                    _ => *window + 1.0 / *window,
                };
                if half > seconds * 1000 {
                    senders.sent[flow] += 1;
                    senders.waited[flow] += now.nanos() - since;
                }
            }
        }
        senders
    }

    fn react_to_drops(driver: &Driver<DualPi2>, of_cookie: &[(usize, u64)], senders: &mut Senders) {
        for (cookie, _) in &driver.returned {
            let window = &mut senders.windows[of_cookie[*cookie as usize].0].0;
            *window = (*window / 2.0).max(2.0);
        }
    }

    /// The purpose of DualQ: similar rates for both kinds, milliseconds of delay for the classic ones and
    /// much less for the scalable ones.
    #[test]
    fn both_kinds_get_their_share_and_scalable_packets_have_almost_no_delay() {
        let kinds = [Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::NotEct];
        let senders = run(Config::default(), &kinds, 60);
        let delay = |flow: usize| senders.waited[flow] as f64 / senders.sent[flow] as f64 / 1e6;
        for scalable in [0, 1] {
            assert!(delay(scalable) < 2.0, "{} ms", delay(scalable));
        }
        for classic in [2, 3] {
            assert!((5.0..30.0).contains(&delay(classic)), "{} ms", delay(classic));
        }
        let rate = |flows: [usize; 2]| flows.iter().map(|&flow| senders.sent[flow]).sum::<u64>() as f64;
        let ratio = rate([0, 1]) / rate([2, 3]);
        assert!(
            (0.4..2.5).contains(&ratio),
            "rates differ by {ratio}: {:?}",
            senders.sent
        );
    }

    /// The C queue gets its percentage at any number of scalable packets.
    #[test]
    fn the_classic_queue_is_protected() {
        for percent in [10u8, 30] {
            let mut driver = dualpi2(Config {
                classic_protection: percent,
                alpha: 0,
                beta: 0,
                ..Config::default()
            });
            for _ in 0..1000 {
                driver.offer(packet(Ecn::Ect1), Time::ZERO);
                driver.offer(packet(Ecn::NotEct), Time::ZERO);
            }
            let first: Vec<u64> = (0..1000).map(|_| driver.next(Time::ZERO).unwrap()).collect();
            let classic = first.iter().filter(|cookie| *cookie % 2 == 1).count();
            let expected = 10 * usize::from(percent);
            assert!(
                classic.abs_diff(expected) <= 2,
                "{classic} of 1000 with {percent} %"
            );
            assert_eq!(first[0], 0, "a scalable packet is first");
        }
    }

    #[test]
    fn the_step_marks_late_packets_and_the_ramp_an_increasing_share() {
        let derived = |step, range| {
            Config {
                step,
                step_range: Duration::from_millis(range),
                ..Config::default()
            }
            .derived()
            .unwrap()
        };
        let millisecond = Step::Delay(Duration::from_millis(1));
        let step = derived(millisecond, 0);
        assert_eq!(step.own_probability(1_000_000, 9), 0);
        assert_eq!(step.own_probability(1_000_001, 9), MAX_PROB);
        let packets = derived(Step::Packets(3), 0);
        assert_eq!(packets.own_probability(1 << 40, 3), 0);
        assert_eq!(packets.own_probability(0, 4), MAX_PROB);
        let ramp = derived(millisecond, 4);
        for (micros, expected) in [
            (2_000, 0.25),
            (3_000, 0.5),
            (4_900, 0.975),
            (5_000, 1.0),
            (90_000, 1.0),
        ] {
            let prob = f64::from(ramp.own_probability(micros * 1000, 9)) / f64::from(MAX_PROB);
            assert!((prob - expected).abs() < 1e-6, "{prob} after {micros} us");
        }
    }

    #[test]
    fn the_step_may_ignore_short_queues() {
        let mut driver = dualpi2(Config {
            min_qlen_step: 2,
            ..Config::default()
        });
        for _ in 0..4 {
            driver.offer(packet(Ecn::Ect1), Time::ZERO);
        }
        assert_eq!(driver.drain(Time::from_millis(10)).len(), 4);
        assert_eq!(
            driver.root.statistics().marked,
            2,
            "the two packets that found two before them"
        );
    }

    #[test]
    fn limits_drop_the_arriving_packet_and_a_lowered_limit_drops_queued_ones() {
        let limited = |limit, memory_limit| Config {
            limit,
            memory_limit: Some(memory_limit),
            ..Config::default()
        };
        let mut driver = dualpi2(limited(2, 100_000));
        for _ in 0..3 {
            driver.offer(packet(Ecn::Ect0), Time::ZERO);
        }
        assert_eq!(driver.returned, [(2, DropReason::QueueLimit)]);
        driver.reconfigure(limited(10, 2_500), Time::ZERO);
        driver.offer(packet(Ecn::Ect0), Time::ZERO);
        assert_eq!(driver.returned, [(3, DropReason::MemoryLimit)]);
        driver.reconfigure(limited(1, 2_500), Time::ZERO);
        assert_eq!(driver.returned, [(0, DropReason::Reconfigured)]);
        let wrong = limited(0, 1);
        assert!(
            driver
                .root
                .reconfigure(&wrong, Time::ZERO, &mut driver.pool)
                .is_err()
        );
        assert_eq!(driver.root.algorithm().config(), limited(1, 2_500));
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            DualPi2::node(config, 1).unwrap_err().parameter()
        };
        assert_eq!(refused(|config| config.limit = 0), Some("limit"));
        assert_eq!(
            refused(|config| config.memory_limit = Some(0)),
            Some("memory_limit")
        );
        assert_eq!(
            refused(|config| config.coupling_factor = 0),
            Some("coupling_factor")
        );
        assert_eq!(
            refused(|config| config.classic_protection = 101),
            Some("classic_protection")
        );
        assert_eq!(refused(|config| config.alpha = 1 << 31), Some("alpha"));
        assert_eq!(refused(|config| config.mtu = 0), Some("mtu"));
        assert_eq!(refused(|config| config.tupdate = Duration::ZERO), Some("tupdate"));
        assert_eq!(refused(|config| config.target = Duration::MAX), Some("target"));
        let ramp_in_packets = |config: &mut Config| {
            config.step = Step::Packets(5);
            config.step_range = Duration::from_millis(1);
        };
        assert_eq!(refused(ramp_in_packets), Some("step_range"));
    }

    proptest! {
        /// Compares one update with floating-point numbers.
        #[test]
        fn an_update_equals_floating_point(
            prob in any::<u32>(),
            delays in [0u32..400_000_000, 0u32..400_000_000],
        ) {
            let mut discipline = with_prob(prob, Config::default());
            discipline.derived = Config::default().derived().unwrap();
            discipline.last_delay = delays[0].into();
            discipline.update(delays[1].into());
            let (before, delay) = (f64::from(delays[0]) / 1e9, f64::from(delays[1]) / 1e9);
            let terms = [41.0 / 256.0 * (delay - 0.015), 819.0 / 256.0 * (delay - before)];
            let step = terms[0] + terms[1];
            let expected = (f64::from(prob) / f64::from(MAX_PROB) + step).clamp(0.0, 1.0);
            let ours = f64::from(discipline.prob) / f64::from(MAX_PROB);
            // Scaled weights are integers of about 43 and 859, so each term has an error of its own.
            let error = 0.03 * (terms[0].abs() + terms[1].abs()) + 1e-6;
            prop_assert!((ours - expected).abs() < error, "{ours} for {expected}");
        }

        /// The probability is the same as with a timer, wherever the calls fall between updates.
        #[test]
        fn late_updates_equal_those_of_a_timer(asks in prop::collection::vec(1u64..300, 1..20)) {
            let mut pool = Pool::with_capacity(1);
            let id = pool.insert(Packet::of_length(1)).unwrap();
            let mut make = || {
                let mut discipline = DualPi2::node(Config::default(), 1).unwrap().into_algorithm();
                discipline.enqueue(id, Time::from_millis(5), &mut pool);
                discipline
            };
            let (mut timer, mut lazy) = (make(), make());
            let mut millis = 5;
            for ask in asks {
                for _ in 0..ask {
                    millis += 1;
                    timer.catch_up(Time::from_millis(millis), &pool);
                }
                lazy.catch_up(Time::from_millis(millis), &pool);
                prop_assert_eq!((timer.prob, timer.last_delay), (lazy.prob, lazy.last_delay));
            }
        }
    }
}
