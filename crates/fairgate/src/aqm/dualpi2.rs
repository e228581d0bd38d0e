//! Dual-queue coupled AQM (RFC 9332) with PI2: low latency for senders that react to every mark (L4S); Linux's `dualpi2`.
//!
//! Senders of two kinds share a line. Classic ones halve on a sign of congestion and need a queue of milliseconds; scalable ones (ECT(1), RFC
//! 9331) move by little on each of many marks and need none. So each kind has a queue, and one controller serves both: a base probability
//! `p'` follows the delay like PIE's. Classic packets are dropped or marked with `p'^2`, scalable ones marked with `k p'`: with `k = 2`
//! both kinds come to like rates (RFC 9332, section 2.1).
//!
//! ```text
//!   ECT(1), CE      -> L queue --+-- marked with k p', and above a threshold of its own delay --+
//!                                |    p' <- p' + alpha (delay - target) + beta (its change)     +-- weighted round robin
//!   Not-ECT, ECT(0) -> C queue --+-- dropped or marked with p'^2 --------------------------------+
//! ```
//!
//! The L queue goes first; **protection** gives the C queue `classic_protection` percent of the bytes while both hold packets, by a
//! credit. **Overload** (`k p'` above 1): scalable packets are dropped with `p'^2` as well, the others are no longer marked but dropped; or, with `drop_overload`
//! off, `k p'` stays at 1 and the limit does the rest.
//!
//! The arithmetic is Linux's: 32-bit probabilities, weights in 256ths of 1/s. Beyond Linux: the L queue's own marks may set in on a ramp
//! (`step_range`; RFC 9332, appendix A) instead of a step. Deviations: updates come every `tupdate` from the first packet on, and are made
//! up for at the next call; the credit begins anew with a change of parameters. Non-goals: filters that choose the queue; splitting of
//! segments.

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

/// Certainty.
const MAX_PROB: u32 = u32::MAX;
/// Weights are kept for units of 2^6 ns.
const UNIT_SHIFT: u32 = 6;
/// Updates made up for at once; after a minute of no calls the probability has long gone to where it goes.
const MOST_UPDATES: u64 = 4096;

impl Config {
    /// Most memory that queued packets may occupy, given or derived.
    pub fn memory(&self) -> u64 {
        let derived = || u64::from(self.limit) * 2 * u64::from(self.mtu);
        self.memory_limit.unwrap_or_else(derived)
    }

    fn law(&self) -> Result<Law, ConfigError> {
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
        Ok(Law {
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

/// `weight / 256` 1/s in parts of MAX_PROB for 64 ns.
fn scaled(weight: u32) -> i128 {
    i128::from(((u64::from(weight) * u64::from(MAX_PROB)) >> 2) / 1_000_000_000)
}

/// The parameters as the packet path needs them.
#[derive(Clone, Debug)]
struct Law {
    memory_limit: u64,
    target: i128,
    alpha: i128,
    beta: i128,
    most_prob: u32,
    step_nanos: u64,
    step_packets: u32,
    /// The ramp's slope, of 2^64 a ns; 0 for a step.
    per_nano: u64,
    /// With less than this many bytes queued the coupled probabilities do nothing.
    spared_bytes: u64,
    classic_weight: i64,
    scalable_weight: i64,
    /// The credit after both queues were empty: below 0, so that the L queue begins, if its weight is the greater.
    first_credit: i64,
}

impl Law {
    /// With which probability the L queue marks a packet on its own account that waited for `waited` ns and leaves `behind`.
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
    /// Low latency.
    scalable: PacketQueue,
    classic: PacketQueue,
    memory: u64,
    /// The base probability p', of MAX_PROB.
    prob: u32,
    /// At the last update, ns.
    last_delay: i128,
    /// At or below 0 the L queue's turn, in bytes times percent.
    credit: i64,
    updates: Periodic,
    random: Random,
    law: Law,
    config: Config,
}

/// What is to be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    None,
    Mark,
    Drop,
}

impl DualPi2 {
    /// Two queues, ready to use. Chances are drawn from `seed`.
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
        let law = config.law()?;
        Ok(Node::new(DualPi2 {
            scalable: PacketQueue::new(),
            classic: PacketQueue::new(),
            memory: 0,
            prob: 0,
            last_delay: 0,
            credit: law.first_credit,
            updates: Periodic::every(config.tupdate),
            random: Random::new(seed),
            law,
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

    /// Makes up for the updates that are due. Before anything changes the queues, so that they are as a timer had found them.
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

    /// One update by the delay of the queue that is longer in time, ns.
    fn update(&mut self, delay: i128) {
        let step = (delay - self.law.target) * self.law.alpha + (delay - self.last_delay) * self.law.beta;
        self.last_delay = delay;
        // Linux rounds towards zero, whatever the sign.
        let moved = i128::from(self.prob) + step / (1 << UNIT_SHIFT);
        self.prob = moved.clamp(0, self.law.most_prob.into()) as u32;
    }

    #[inline]
    fn roll(&mut self, prob: u32) -> bool {
        prob > 0 && self.random.bits32() <= prob
    }

    /// The coupled probabilities, for `queued` bytes in both queues.
    #[inline]
    fn coupled(&mut self, is_scalable: bool, ecn: Ecn, queued: u64) -> Signal {
        if self.prob == 0 || queued < self.law.spared_bytes {
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

    /// Takes the next packet out, and tells whether it was in the L queue and what it changes of the credit.
    #[inline]
    fn take(&mut self, pool: &Pool) -> Option<(PacketId, bool, i64)> {
        let is_scalable = !self.scalable.is_empty() && (self.classic.is_empty() || self.credit <= 0);
        let (id, weight) = if is_scalable {
            let id = self.scalable.pop_front(pool)?;
            let others_wait = !self.classic.is_empty();
            (id, if others_wait { self.law.classic_weight } else { 0 })
        } else {
            let Some(id) = self.classic.pop_front(pool) else {
                self.credit = self.law.first_credit;
                return None;
            };
            let others_wait = !self.scalable.is_empty();
            (id, if others_wait { -self.law.scalable_weight } else { 0 })
        };
        let packet = &pool[id];
        self.memory -= u64::from(packet.memory);
        Some((id, is_scalable, weight * i64::from(packet.length)))
    }

    /// What the queue's own step or ramp says to a packet that leaves the L queue.
    #[inline]
    fn own(&mut self, id: PacketId, now: Time, pool: &Pool) -> Signal {
        let packet = &pool[id];
        // Found fewer than this when it came: the stamp holds how many.
        if packet.stamp < u64::from(self.config.min_qlen_step) {
            return Signal::None;
        }
        let waited = now.nanos_since(packet.enqueued_at);
        match self.law.own_probability(waited, self.scalable.len()) {
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
        if self.memory + memory > self.law.memory_limit {
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
        self.credit = self.law.first_credit;
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let law = config.law()?;
        self.catch_up(now, pool);
        if config.tupdate != self.config.tupdate {
            self.updates = Periodic::every(config.tupdate);
        }
        self.credit = law.first_credit;
        self.prob = self.prob.min(law.most_prob);
        self.law = law;
        self.config = config;
        while self.packets() > self.config.limit || self.memory > self.law.memory_limit {
            let (next, ..) = self
                .take(pool)
                .expect("queues over their limit aren't both empty");
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

    /// A queue with a base probability that does not move.
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

    /// Above k p' = 1 all that is scalable is marked or dropped, and what is classic only dropped; without `drop_overload` p' stays below.
    #[test]
    fn an_overload_drops_everybody() {
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

    /// Senders that grow by a packet in a round trip of 20 ms. Classic ones halve on a drop or a mark, scalable ones lose half a packet for each mark. 20
    /// Mbit/s are two packets a millisecond.
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

    /// What DualQ is for: like rates for both kinds, milliseconds for the classic ones and much less for the scalable ones.
    #[test]
    fn both_kinds_get_their_share_and_the_scalable_ones_do_not_wait() {
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

    /// The C queue gets its percentage however many scalable packets come.
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
            assert_eq!(first[0], 0, "a scalable one first");
        }
    }

    #[test]
    fn the_step_marks_late_packets_and_the_ramp_more_and_more_of_them() {
        let law = |step, range| {
            Config {
                step,
                step_range: Duration::from_millis(range),
                ..Config::default()
            }
            .law()
            .unwrap()
        };
        let millisecond = Step::Delay(Duration::from_millis(1));
        let step = law(millisecond, 0);
        assert_eq!(step.own_probability(1_000_000, 9), 0);
        assert_eq!(step.own_probability(1_000_001, 9), MAX_PROB);
        let packets = law(Step::Packets(3), 0);
        assert_eq!(packets.own_probability(1 << 40, 3), 0);
        assert_eq!(packets.own_probability(0, 4), MAX_PROB);
        let ramp = law(millisecond, 4);
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
    fn short_queues_may_be_spared_the_step() {
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
            "the two that found two before them"
        );
    }

    #[test]
    fn limits_refuse_the_arriving_packet_and_a_lowered_one_gives_back() {
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
    fn what_cannot_work_is_refused_by_name() {
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
        /// One update against real numbers.
        #[test]
        fn an_update_is_that_of_real_numbers(prob in any::<u32>(), delays in [0u32..400_000_000, 0u32..400_000_000]) {
            let mut discipline = with_prob(prob, Config::default());
            discipline.law = Config::default().law().unwrap();
            discipline.last_delay = delays[0].into();
            discipline.update(delays[1].into());
            let (before, delay) = (f64::from(delays[0]) / 1e9, f64::from(delays[1]) / 1e9);
            let step = 41.0 / 256.0 * (delay - 0.015) + 819.0 / 256.0 * (delay - before);
            let expected = (f64::from(prob) / f64::from(MAX_PROB) + step).clamp(0.0, 1.0);
            let ours = f64::from(discipline.prob) / f64::from(MAX_PROB);
            // Scaled weights are whole numbers of about 43 and 859.
            prop_assert!((ours - expected).abs() < 0.03 * step.abs() + 1e-6, "{ours} for {expected}");
        }

        /// However calls fall between updates, the probability is the same as with a timer.
        #[test]
        fn updates_made_up_for_are_those_of_a_timer(asks in prop::collection::vec(1u64..300, 1..20)) {
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
