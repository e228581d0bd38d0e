//! The leaky bucket as a queue (Turner, "New directions in communications", 1986). Packets arrive at any rate
//! and leave at a constant rate. The gap after each packet is its transmission time at that rate. There are
//! no bursts at all.
//!
//! The bucket is the queue: a packet that does not fit is dropped on arrival. After an idle time the next
//! packet leaves at once. Unlike a token bucket ([`tbf`](super::tbf)), an idle time saves up nothing.
//!
//! Invariant: the time between the departures of two successive packets is at least the time that the first
//! one's bytes take at the rate. While packets are queued it is exactly that, if the driver asks in time.
//! Times have a resolution of 2^-30 ns, so that the rate is exact over any length of time.
//!
//! Not work-conserving: [`watchdog`](crate::Discipline::watchdog) is the time when the first packet may
//! leave. For a policer, which drops instead of queueing, see [`policer`](super::policer).
//!
//! If the clock goes backwards, nothing leaves until it has caught up.

use alloc::boxed::Box;

use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Longest, Parameter, Unit, check_ranges};
use crate::time::Time;

/// Binary fraction digits of [`LeakyBucket::fraction`] and of the time that a byte takes.
const PLACES: u32 = 30;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate at which packets leave, in bytes on the link; at least 8 bit/s.
    pub rate: Rate,
    /// The largest backlog, bytes: at least the longest packet.
    pub bucket: u64,
}

impl Config {
    /// `rate` with a bucket that drains in 50 ms, but holds at least 10 full frames.
    pub fn of_rate(rate: Rate) -> Config {
        const TEN_FRAMES: u64 = 15_140;
        Config {
            rate,
            bucket: (rate.bits_per_second() / 160).max(TEN_FRAMES),
        }
    }

    /// Returns the time that a byte takes, in units of 2^-[`PLACES`] ns.
    fn check(&self) -> Result<u64, ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        // At 8 bit/s a byte takes one second, so the time of 2^32 bytes fits in 64 bits of ns.
        let per_byte = (8_000_000_000u128 << PLACES).div_ceil(self.rate.bits_per_second().into());
        Ok(per_byte as u64)
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::required(
        "rate",
        Unit::Rate,
        8..=u64::MAX,
        "The rate at which packets leave.",
        |bucket, _| &mut bucket.rate,
    ),
    Parameter::bounding(
        |bucket, _| Some(Longest::Length(bucket.bucket)),
        Parameter::required(
            "bucket",
            Unit::Bytes,
            1..=u64::MAX,
            "The largest backlog: at least the longest packet.",
            |bucket, _| &mut bucket.bucket,
        ),
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "leaky_bucket",
        family: Family::Queues,
        summary: "A queue that sends at a constant rate, without bursts, and drops on overflow",
        when: "In front of something that takes no bursts at all: a radio link, a policer, a short \
            hardware queue.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::of_rate(Rate::mbit(1)),
    |config, _| Ok(Box::new(LeakyBucket::node(config)?)),
);

/// The discipline. Make one with [`LeakyBucket::node`].
#[derive(Debug)]
pub struct LeakyBucket {
    queue: PacketQueue,
    /// The time that a byte takes, rounded up, in units of 2^-[`PLACES`] ns.
    per_byte: u64,
    /// When the next packet may leave, in whole ns.
    free_at: Time,
    /// The part of a nanosecond after `free_at`, in units of 2^-[`PLACES`] ns.
    fraction: u64,
    /// [`free_at`](Self::free_at) if the last dequeue found the first packet too early.
    due: Option<Time>,
    config: Config,
}

impl LeakyBucket {
    /// Creates an empty bucket.
    ///
    /// ```
    /// use fairgate::queues::leaky_bucket::{Config, LeakyBucket};
    /// use fairgate::{Discipline, Packet, Pool, Rate, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut bucket = LeakyBucket::node(Config::of_rate(Rate::mbit(8)))?;
    /// for _ in 0..2 {
    ///     let id = pool.insert(Packet::of_length(1000)).expect("16 slots");
    ///     bucket.enqueue(id, Time::ZERO, &mut pool);
    /// }
    /// assert!(bucket.dequeue(Time::ZERO, &mut pool).is_some());
    /// assert!(bucket.dequeue(Time::ZERO, &mut pool).is_none());
    /// assert_eq!(bucket.watchdog(), Some(Time::from_millis(1)));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If the size of the bucket is 0 or the rate is below 8 bit/s.
    pub fn node(config: Config) -> Result<Node<LeakyBucket>, ConfigError> {
        Ok(Node::new(LeakyBucket {
            queue: PacketQueue::new(),
            per_byte: config.check()?,
            free_at: Time::ZERO,
            fraction: 0,
            due: None,
            config,
        }))
    }

    /// Accounts for a packet of `length` bytes that leaves.
    #[inline]
    fn leak(&mut self, length: u32, now: Time) {
        if now > self.free_at {
            // The queue was idle: the next packet's time counts from now.
            (self.free_at, self.fraction) = (now, 0);
        }
        let taken = u128::from(length) * u128::from(self.per_byte) + u128::from(self.fraction);
        self.fraction = taken as u64 & ((1 << PLACES) - 1);
        self.free_at += (taken >> PLACES) as u64;
    }

    /// When the first packet may leave, rounded up to a whole nanosecond.
    #[inline]
    fn opens_at(&self) -> Time {
        self.free_at + u64::from(self.fraction > 0)
    }
}

impl Algorithm for LeakyBucket {
    const NAME: &'static str = "leaky_bucket";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        if self.queue.bytes() + u64::from(pool[id].length) > self.config.bucket {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        self.queue.push_back(id, pool);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let first = self.queue.front()?;
        let opens_at = self.opens_at();
        if now < opens_at {
            self.due = Some(opens_at);
            return None;
        }
        self.due = None;
        let _ = self.queue.pop_front(pool);
        // A driver that asks in the first whole nanosecond after the exact time asks in time.
        let asked = if now == opens_at { self.free_at } else { now };
        self.leak(pool[first].length, asked);
        Some(first)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
        self.due = None;
    }

    fn watchdog(&self) -> Option<Time> {
        self.due
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// The gap after the last packet sent keeps the old rate.
    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        self.per_byte = config.check()?;
        self.config = config;
        while self.queue.bytes() > self.config.bucket {
            let newest = self.queue.pop_back(pool).expect("its bytes are queued");
            pool.give_back(newest, DropReason::Reconfigured);
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("free_at", Variable::Nanos(self.opens_at().nanos()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Discipline;
    use crate::packet::Packet;
    use crate::testing::Driver;
    use proptest::prelude::*;

    fn bucket(rate: Rate, bytes: u64) -> Driver<LeakyBucket> {
        Driver::new(LeakyBucket::node(Config { rate, bucket: bytes }).unwrap())
    }

    fn offer(driver: &mut Driver<LeakyBucket>, length: u32, now: Time) -> Verdict {
        driver.offer(Packet::of_length(length), now)
    }

    /// When packets leave if the driver asks in time.
    fn departures(driver: &mut Driver<LeakyBucket>, mut now: Time) -> Vec<Time> {
        let mut times = Vec::new();
        while driver.root.backlog().packets > 0 {
            match driver.next(now) {
                Some(_) => times.push(now),
                None => {
                    now = driver
                        .root
                        .watchdog()
                        .expect("a throttled discipline has a watchdog")
                }
            }
        }
        times
    }

    #[test]
    fn packets_leave_one_transmission_apart_after_any_idle_time() {
        let mut driver = bucket(Rate::mbit(8), 10_000);
        for _ in 0..3 {
            offer(&mut driver, 1000, Time::ZERO);
        }
        let millis = |times: &[u64]| {
            times
                .iter()
                .map(|&time| Time::from_millis(time))
                .collect::<Vec<_>>()
        };
        assert_eq!(departures(&mut driver, Time::ZERO), millis(&[0, 1, 2]));
        for _ in 0..3 {
            offer(&mut driver, 1000, Time::from_millis(500));
        }
        let after_idle = departures(&mut driver, Time::from_millis(500));
        assert_eq!(after_idle, millis(&[500, 501, 502]), "nothing was saved up");
    }

    #[test]
    fn a_bucket_that_is_full_overflows() {
        let mut driver = bucket(Rate::mbit(8), 2500);
        assert_eq!(offer(&mut driver, 1000, Time::ZERO), Verdict::Queued);
        assert_eq!(offer(&mut driver, 1000, Time::ZERO), Verdict::Queued);
        assert_eq!(offer(&mut driver, 501, Time::ZERO), Verdict::Dropped);
        assert_eq!(driver.returned, [(2, DropReason::QueueLimit)]);
        assert_eq!(offer(&mut driver, 500, Time::ZERO), Verdict::Queued);
    }

    #[test]
    fn a_smaller_bucket_drops_the_newest_packets() {
        let mut driver = bucket(Rate::mbit(8), 3000);
        for _ in 0..3 {
            offer(&mut driver, 1000, Time::ZERO);
        }
        let smaller = Config {
            rate: Rate::mbit(80),
            bucket: 1000,
        };
        driver.reconfigure(smaller, Time::ZERO);
        assert_eq!(
            driver.returned,
            [(2, DropReason::Reconfigured), (1, DropReason::Reconfigured)]
        );
        assert_eq!(driver.drain(Time::ZERO), [0]);
    }

    #[test]
    fn an_empty_bucket_and_a_rate_below_the_range_are_rejected() {
        let parameter = |rate, bucket| {
            let error = LeakyBucket::node(Config { rate, bucket }).unwrap_err();
            error.parameter()
        };
        assert_eq!(parameter(Rate::mbit(1), 0), Some("bucket"));
        let slow = Rate::from_bits_per_second(7).unwrap();
        assert_eq!(parameter(slow, 1000), Some("rate"));
    }

    proptest! {
        /// At any rate and over any length of time, the n-th packet of a busy period leaves in the first
        /// nanosecond in which the bytes before it have been sent. Rounding errors do not add up.
        #[test]
        fn the_rate_is_exact(
            bits in 8u64..100_000_000_000,
            lengths in prop::collection::vec(1u32..9000, 1..300),
        ) {
            let rate = Rate::from_bits_per_second(bits).unwrap();
            let mut driver = bucket(rate, u64::MAX / 2);
            for &length in &lengths {
                offer(&mut driver, length, Time::ZERO);
            }
            let mut bytes = 0u64;
            for (time, length) in departures(&mut driver, Time::ZERO).into_iter().zip(lengths) {
                let exact = rate.transmission_nanos(bytes);
                // The time of a byte is rounded up to 2^-30 ns.
                let slack = 1 + (bytes >> PLACES);
                prop_assert!((exact..=exact + slack).contains(&time.nanos()), "{} for {}", time, exact);
                bytes += u64::from(length);
            }
        }
    }
}
