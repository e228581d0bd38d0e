//! Bursts for a time, as RouterOS has them: a class may exceed its ceil while it has sent little.
//!
//! Source: RouterOS' documentation, "Queues", section "Burst" (`burst-limit`, `burst-threshold`,
//! `burst-time`). The average rate of the last `burst_time` is calculated every 1/16 of this time. While it
//! is below `burst_threshold`, `burst_rate` takes the place of the ceil; otherwise the ceil applies. So a
//! class that was idle and sends all it can exceeds its ceil for `burst_threshold * burst_time /
//! burst_rate`, and no longer: `burst_time` is the time of the average, not that of the burst.
//!
//! The times begin when the first packet is sent. The average is of what was sent until the last multiple of
//! 1/16 of the time. A packet of the class, or of one below it, is what changes the ceil, so a class that
//! waits for its ceil sends one more packet before it may burst. When a burst begins, the tokens of the
//! ceil's bucket are as many bytes as before, and when it ends, as much time: so `burst_rate` and `cburst`
//! are never exceeded.
//!
//! Nothing here is called in a tree without bursts.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::config::{BurstSettings, depth};
use super::{Buckets, ClassConfig, TICK, tokens};
use crate::rate::{Rate, RateMeter};
use crate::sharing::index::ClassIndex;

/// The parts of the time of the average.
const PARTS: usize = 16;

/// The bursts of a tree: of each class. Empty if no class has one.
#[derive(Debug, Default)]
pub(super) struct Bursts(Vec<Option<Box<Burst>>>);

impl Bursts {
    /// Those of checked classes, which have sent nothing.
    pub(super) fn of(classes: &[ClassConfig]) -> Bursts {
        let burst = |class: &ClassConfig| {
            let settings = BurstSettings::of(class).expect("the classes are checked")?;
            Some(Box::new(Burst::new(class, &settings)))
        };
        match classes.iter().any(|class| class.burst_rate.is_some()) {
            true => Bursts(classes.iter().map(burst).collect()),
            false => Bursts::default(),
        }
    }

    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get_mut(&mut self, class: ClassIndex) -> Option<&mut Burst> {
        self.0.get_mut(class.index())?.as_deref_mut()
    }

    /// Sets the limit of a class that applies, if it has bursts.
    pub(super) fn apply(&self, class: ClassIndex, buckets: &mut Buckets) {
        if let Some(burst) = self.get(class) {
            burst.apply(buckets);
        }
    }

    fn get(&self, class: ClassIndex) -> Option<&Burst> {
        self.0.get(class.index())?.as_deref()
    }

    /// Takes over what a class has sent, which was `before` among the classes of `old`.
    pub(super) fn carry_over(&mut self, class: ClassIndex, old: &Bursts, before: ClassIndex) {
        if let (Some(new), Some(old)) = (self.get_mut(class), old.get(before)) {
            new.carry_over(old);
        }
    }

    /// Makes these bursts, which are in use, what those in `new` are for the same classes. Only the classes
    /// that are `differing` are different. `new` gets what was here.
    pub(super) fn adjust(&mut self, new: &mut Bursts, differing: &[ClassIndex]) {
        if self.are_none() || new.are_none() {
            core::mem::swap(self, new);
            return;
        }
        for class in differing {
            new.carry_over(*class, self, *class);
            core::mem::swap(&mut self.0[class.index()], &mut new.0[class.index()]);
        }
    }
}

/// A limit: what a packet costs, and the depth of the bucket in ticks.
type Limit = (RateMeter, u32);

/// The burst of a class: what it has sent in the last 16 parts of the time.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    /// The bytes of each part.
    parts: [u64; PARTS],
    /// The part that is not complete.
    part: usize,
    /// When that part ends, ns.
    ends: u64,
    /// The bytes of all parts.
    sent: u64,
    /// The length of a part, ns.
    length: u64,
    /// The bytes that the class sends in the whole time at the threshold.
    threshold: u64,
    /// Whether the burst's limit is that of the class.
    is_on: bool,
    /// The ceil as a part of the burst's rate, in units of 2^-32.
    part_of_above: u64,
    ceil: Limit,
    above: Limit,
}

impl Burst {
    fn new(class: &ClassConfig, settings: &BurstSettings) -> Burst {
        let nanos = settings.time.as_nanos();
        let bytes = u128::from(settings.threshold.bits_per_second()) * nanos / 8_000_000_000;
        let limit = |rate: Rate| {
            let burst = class.cburst_at(rate);
            let ticks = depth(rate, burst).min(u32::MAX.into());
            (rate.meter(), ticks as u32)
        };
        let above = class.ceil().max(settings.rate);
        let bits = |rate: Rate| u128::from(rate.bits_per_second());
        Burst {
            parts: [0; PARTS],
            part: 0,
            ends: 0,
            sent: 0,
            length: (nanos / PARTS as u128) as u64,
            threshold: u64::try_from(bytes).unwrap_or(u64::MAX),
            is_on: true,
            part_of_above: ((bits(class.ceil()) << 32) / bits(above)) as u64,
            ceil: limit(class.ceil()),
            above: limit(above),
        }
    }

    /// Sets the limit of the class that applies.
    fn apply(&self, buckets: &mut Buckets) {
        (buckets.ceil, buckets.ceil_depth) = match self.is_on {
            true => self.above,
            false => self.ceil,
        };
    }

    /// Counts a packet that is being sent. Decides at the end of each part, before the packet counts.
    pub(super) fn count(&mut self, length: u32, now: u64, buckets: &mut Buckets) {
        if now >= self.ends {
            let was_on = self.is_on;
            self.end_parts(now);
            if self.is_on && !was_on {
                self.keep_bytes(now, buckets);
            }
            self.apply(buckets);
        }
        let length = u64::from(buckets.counted(length));
        self.parts[self.part] += length;
        self.sent += length;
    }

    /// Makes the tokens of the ceil as many at the burst's rate as there are bytes.
    fn keep_bytes(&self, now: u64, buckets: &mut Buckets) {
        let left = tokens(buckets.ceil_empty_at, now).min(i64::from(self.ceil.1) << TICK);
        if left > 0 {
            let left = (u128::from(left.unsigned_abs()) * u128::from(self.part_of_above)) >> 32;
            buckets.ceil_empty_at = now.wrapping_sub(left as u64);
        }
    }

    /// Ends the parts that are over.
    fn end_parts(&mut self, now: u64) {
        for _ in 0..PARTS {
            self.is_on = self.sent < self.threshold;
            self.part = (self.part + 1) % PARTS;
            self.sent -= core::mem::take(&mut self.parts[self.part]);
            self.ends = self.ends.saturating_add(self.length);
            if self.ends > now {
                return;
            }
        }
        // Nothing was sent in the whole time.
        self.is_on = true;
        self.ends = now.saturating_add(self.length);
    }

    fn carry_over(&mut self, old: &Burst) {
        if self.length == old.length {
            (self.parts, self.part, self.ends, self.sent) = (old.parts, old.part, old.ends, old.sent);
            self.is_on = match self.threshold == old.threshold {
                true => old.is_on,
                false => self.sent < self.threshold,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use core::time::Duration;

    use super::*;
    use crate::discipline::{Discipline, Inspect};
    use crate::packet::Packet;
    use crate::sharing::htb::{Config, Htb};
    use crate::testing::{Driver, fifo};
    use crate::time::Time;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn class(ceil: u64, burst: u64, threshold: u64, time: Duration) -> ClassConfig {
        let bits = |bits| Rate::from_bits_per_second(bits).expect("above 0");
        ClassConfig {
            ceil: Some(bits(ceil)),
            burst_rate: Some(bits(burst)),
            burst_threshold: Some(bits(threshold)),
            burst_time: Some(time),
            ..ClassConfig::of_rate(1, None, bits(burst))
        }
    }

    fn htb(classes: Vec<ClassConfig>) -> Config {
        let mut config = Config {
            classes,
            ..Config::default()
        };
        config.classifier.default = Some(1);
        config
    }

    /// Sends packets of 1000 bytes as fast as the tree lets them go until `until`, and returns the bytes sent
    /// in each second.
    fn greedy(driver: &mut Driver<Htb>, from: u64, until: u64) -> Vec<u64> {
        let mut sent = vec![0; (until - from) as usize];
        let mut now = Time::from_secs(from);
        while now < Time::from_secs(until) {
            while driver.root.statistics().backlog().packets < 10 {
                driver.offer(Packet::of_length(1000), now);
            }
            match driver.root.dequeue(now, &mut driver.pool) {
                Some(id) => {
                    let _ = driver.pool.release(id);
                    sent[(now.nanos() / 1_000_000_000 - from) as usize] += 1000;
                }
                None => now = driver.root.watchdog().expect("packets wait"),
            }
        }
        sent
    }

    /// The example of RouterOS' documentation: max-limit 2M, burst-limit 4M, burst-threshold 1500k and
    /// burst-time 16s give six seconds at 4M.
    #[test]
    fn the_example_of_the_documentation() {
        let settings = class(2_000_000, 4_000_000, 1_500_000, Duration::from_secs(16));
        let mut driver = Driver::new(Htb::node(htb(vec![settings]), vec![fifo(100)]).unwrap());
        let near = |bytes: u64, mbit: u64| bytes.abs_diff(mbit * 125_000) < 6000;
        let sent = greedy(&mut driver, 0, 40);
        assert!(sent[..6].iter().all(|bytes| near(*bytes, 4)), "{sent:?}");
        assert!(sent[6..].iter().all(|bytes| near(*bytes, 2)), "{sent:?}");
        // After an idle time it may burst again.
        let again = greedy(&mut driver, 60, 70);
        assert!(again[..6].iter().all(|bytes| near(*bytes, 4)), "{again:?}");
        assert!(again[6..].iter().all(|bytes| near(*bytes, 2)), "{again:?}");
    }

    /// A change of rates keeps what was sent, so that repeated changes give no bursts.
    #[test]
    fn a_change_gives_no_burst() {
        let second = Duration::from_secs(1);
        let of = |ceil| class(ceil, 8_000_000, 1_000_000, second);
        let mut driver = Driver::new(Htb::node(htb(vec![of(2_000_000)]), vec![fifo(100)]).unwrap());
        greedy(&mut driver, 0, 2);
        driver.reconfigure(htb(vec![of(2_100_000)]), Time::from_secs(2));
        let sent = greedy(&mut driver, 2, 3);
        assert!(sent[0].abs_diff(262_500) < 6000, "{sent:?}");
        // Another shape: a second class.
        let both = vec![of(2_100_000), ClassConfig::of_rate(2, None, Rate::mbit(1))];
        driver.reconfigure(htb(both), Time::from_secs(3));
        let sent = greedy(&mut driver, 3, 4);
        assert!(sent[0].abs_diff(262_500) < 6000, "{sent:?}");
        // Without the burst the ceil is all.
        let plain = ClassConfig {
            burst_rate: None,
            burst_threshold: None,
            burst_time: None,
            ..of(2_100_000)
        };
        driver.reconfigure(htb(vec![plain]), Time::from_secs(10));
        let sent = greedy(&mut driver, 10, 11);
        assert!(sent[0].abs_diff(262_500) < 6000, "{sent:?}");
    }

    #[test]
    fn a_burst_has_three_settings_and_ends() {
        let whole = class(1_000_000, 2_000_000, 500_000, Duration::from_secs(8));
        let refused = |class: ClassConfig| BurstSettings::of(&class).unwrap_err().parameter();
        for (given, parameter) in [
            ((true, true, false), "burst_rate"),
            ((false, true, true), "burst_threshold"),
            ((false, false, true), "burst_time"),
        ] {
            let class = ClassConfig {
                burst_rate: whole.burst_rate.filter(|_| given.0),
                burst_threshold: whole.burst_threshold.filter(|_| given.1),
                burst_time: whole.burst_time.filter(|_| given.2),
                ..whole.clone()
            };
            assert_eq!(refused(class), Some(parameter));
        }
        let endless = ClassConfig {
            burst_threshold: whole.burst_rate,
            ..whole.clone()
        };
        assert_eq!(refused(endless), Some("burst_threshold"));
        assert!(BurstSettings::of(&whole).is_ok());
    }

    proptest! {
        /// Whether the burst's limit applies is what the definition says: whether the average of the whole
        /// time until the last sixteenth of it is below the threshold.
        #[test]
        fn the_average_is_that_of_the_definition(
            packets in vec((0u64..200_000_000, 64u32..9000), 1..300),
            time in 16u64..4000,
            threshold in 8u64..2_000_000,
        ) {
            let settings = class(1_000_000, 3_000_000, threshold, Duration::from_millis(time));
            let config = htb(vec![settings.clone()]);
            let tree = config.check().expect("it is valid");
            let mut buckets = config.parts(&tree).remove(0).meter;
            let above = Burst::new(&settings, &BurstSettings::of(&settings).unwrap().unwrap()).above;
            let mut bursts = Bursts::of(&config.classes);
            let burst = bursts.get_mut(ClassIndex::new(0)).expect("it has one");
            let mut now = 1;
            let mut sent: Vec<(u64, u64)> = Vec::new();
            for (pause, length) in packets {
                now += pause;
                burst.count(length, now, &mut buckets);
                let last = burst.ends - burst.length;
                let first = last.saturating_sub(16 * burst.length);
                let within = sent.iter().filter(|(at, _)| (first..last).contains(at));
                let bytes: u64 = within.map(|(_, bytes)| *bytes).sum();
                let is_on = bytes < burst.threshold;
                prop_assert_eq!(burst.is_on, is_on);
                prop_assert_eq!(buckets.ceil_depth == above.1, is_on || above.1 == burst.ceil.1);
                prop_assert!(last <= now && now < burst.ends);
                sent.push((now, length.into()));
            }
        }
    }
}
