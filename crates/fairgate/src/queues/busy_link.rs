//! A link that is busy for longer than the bytes of a packet take: dummynet's pipe with a `profile` (Carbone
//! and Rizzo, "Dummynet revisited", 2010; `serve_sched` and `extra_bits` of ip_dn_io.c).
//!
//! Preambles, contention for the medium and retransmissions take time beside a packet's own bytes, and the
//! link can send nothing else meanwhile. A table holds the extra times as a distribution: its entries are
//! equally likely. For each packet one is drawn. The link is busy for the time of the packet's bytes at the
//! rate and for this extra time, and then the packet has arrived at the other end. Packets whose entry is at
//! `lost_from` or after it are lost at the end of their time, such as after too many retransmissions.
//!
//! ```text
//!   enqueue -> inner discipline -> on the link: bytes / rate + extra time -> dequeue
//!                                                                        \-> lost
//! ```
//!
//! The inner discipline is the queue in front of the link. Its next packet is chosen when the link becomes
//! free.
//!
//! Invariant: packets begin one after the other. A packet begins at the end of the one before, or when it
//! arrived at the queue, whichever is later. It does not begin when the driver asks: a late driver costs no
//! rate, as in dummynet, which gives credit for the time since the last tick. With `burst`, a packet after an
//! idle time begins earlier than it arrived, by the time of these bytes at most, so that as many leave at
//! once.
//!
//! Over a long time a backlogged link sends one packet each `length / rate + mean extra time`. Times at the
//! rate are rounded down to whole nanoseconds.
//!
//! Not work-conserving: [`watchdog`](Discipline::watchdog) is the time at which the packet on the link
//! arrives.
//!
//! Deviation: dummynet works in ticks, of a millisecond on usual kernels, and times here are exact.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::{self, Fifo};
use crate::rate::{Rate, RateMeter};
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};
use crate::structures::Random;
use crate::time::Time;

/// The number of the only class.
const INNER: u32 = 1;

/// The most extra times of a table (dummynet: `ED_MAX_SAMPLES_NO`).
pub const MOST_TIMES: usize = 1024;

/// The longest extra time, us: an hour.
pub const LONGEST_EXTRA: u32 = 3_600_000_000;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate at which bytes are sent; at least 8 bit/s.
    pub rate: Rate,
    /// The extra times, us. They are equally likely. Without any there is no extra time.
    pub extra: Vec<u32>,
    /// The index of the first extra time whose packets are lost; `None` if none are.
    pub lost_from: Option<u32>,
    /// Bytes that leave at once after an idle time.
    pub burst: u32,
}

impl Config {
    /// `rate` without extra times, losses or bursts.
    pub fn of_rate(rate: Rate) -> Config {
        Config {
            rate,
            extra: Vec::new(),
            lost_from: None,
            burst: 0,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        match self.lost_from {
            Some(first) if first as usize >= self.extra.len() => Err(ConfigError::conflict(
                "lost_from",
                first.to_string(),
                "the index of an entry of `extra`, counted from 0",
                "lower it, or leave it out if no packet is lost",
            )),
            _ => Ok(()),
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::required(
        "rate",
        Unit::Rate,
        8..=u64::MAX,
        "The rate at which the bytes of packets are sent.",
        |link, _| &mut link.rate,
    ),
    Parameter::new(
        "extra",
        Unit::Numbers(MOST_TIMES),
        0..=LONGEST_EXTRA as u64,
        "Extra times in microseconds, equally likely: the link is busy for one of them with each packet.",
        |link, _| &mut link.extra,
    ),
    Parameter::new(
        "lost_from",
        Unit::Count("entries"),
        0..=MOST_TIMES as u64 - 1,
        "The first entry of `extra`, counted from 0, whose packets are lost at the end of their time.",
        |link, _| &mut link.lost_from,
    ),
    Parameter::new(
        "burst",
        Unit::Bytes,
        0..=u32::MAX as u64,
        "Bytes that leave at once after an idle time.",
        |link, _| &mut link.burst,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "busy_link",
        family: Family::Queues,
        summary: "Emulates a link that is busy for an extra random time with each packet, and loses some",
        when: "To try disciplines in front of a radio or a shared medium, where packets cost more than their \
            bytes.",
        children: Children::Inner,
    },
    PARAMETERS,
    |_| Config::of_rate(Rate::mbit(1)),
    |config, mut parts| {
        let inner = match parts.children.pop() {
            Some(inner) => inner,
            None => Box::new(Fifo::node(fifo::Config::default())?),
        };
        Ok(Box::new(BusyLink::node(config, parts.seed, inner)?))
    },
)
.with_memory(|link| (link.extra.len() * size_of::<u64>()) as u64);

/// A packet on the link.
#[derive(Clone, Copy, Debug)]
struct Sent {
    id: PacketId,
    /// When it has arrived at the other end.
    ends: Time,
    is_lost: bool,
}

/// The discipline. Make one with [`BusyLink::node`].
#[derive(Debug)]
pub struct BusyLink {
    inner: Box<dyn Discipline>,
    on_link: Option<Sent>,
    /// When the last packet had arrived at the other end.
    free_at: Time,
    /// The earliest begin of the next packet, if the inner discipline held it back.
    held_until: Time,
    meter: RateMeter,
    /// The extra times, ns.
    extra: Vec<u64>,
    /// How much earlier than it arrived a packet may begin, ns.
    ahead: u64,
    random: Random,
    due: Option<Time>,
    /// Packets that were lost.
    lost: u64,
    config: Config,
}

impl BusyLink {
    /// Creates a link behind `inner`.
    ///
    /// ```
    /// use fairgate::queues::busy_link::{BusyLink, Config};
    /// use fairgate::queues::fifo::{self, Fifo};
    /// use fairgate::{Discipline, Packet, Pool, Rate, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let config = Config { extra: vec![3000], ..Config::of_rate(Rate::mbit(8)) };
    /// let mut link = BusyLink::node(config, 7, Box::new(Fifo::node(fifo::Config::default())?))?;
    /// for _ in 0..2 {
    ///     let id = pool.insert(Packet::of_length(1000)).expect("16 slots");
    ///     link.enqueue(id, Time::ZERO, &mut pool);
    /// }
    /// assert!(link.dequeue(Time::ZERO, &mut pool).is_none());
    /// // 1 ms for the bytes and 3 ms more.
    /// assert_eq!(link.watchdog(), Some(Time::from_millis(4)));
    /// assert!(link.dequeue(Time::from_millis(4), &mut pool).is_some());
    /// assert!(link.dequeue(Time::from_millis(4), &mut pool).is_none());
    /// assert_eq!(link.watchdog(), Some(Time::from_millis(8)));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If a parameter is out of its range, or `lost_from` is no entry of the table.
    pub fn node(
        config: Config,
        seed: u64,
        inner: Box<dyn Discipline>,
    ) -> Result<Node<BusyLink>, ConfigError> {
        config.check()?;
        let mut link = BusyLink {
            inner,
            on_link: None,
            free_at: Time::ZERO,
            held_until: Time::ZERO,
            meter: config.rate.meter(),
            extra: Vec::new(),
            ahead: 0,
            random: Random::new(seed),
            due: None,
            lost: 0,
            config: config.clone(),
        };
        link.take(config);
        Ok(Node::new(link))
    }

    fn take(&mut self, config: Config) {
        self.meter = config.rate.meter();
        self.extra = config
            .extra
            .iter()
            .map(|micros| u64::from(*micros) * 1000)
            .collect();
        self.ahead = self.meter.nanos(config.burst.into());
        self.config = config;
    }

    /// Takes the next packet of the queue onto the link. Returns `None` if there is none now.
    #[inline]
    fn begin(&mut self, now: Time, pool: &mut Pool) -> Option<Sent> {
        let Some(id) = self.inner.dequeue(now, pool) else {
            if !self.inner.is_empty() {
                self.due = self.inner.watchdog();
                self.held_until = self.due.unwrap_or(now);
            }
            return None;
        };
        let packet = &pool[id];
        let could = packet.enqueued_at.max(self.held_until);
        let begins = Time::from_nanos(could.nanos().saturating_sub(self.ahead)).max(self.free_at);
        let index = self.random.below(self.extra.len() as u32) as usize;
        let extra = self.extra.get(index).copied().unwrap_or(0);
        Some(Sent {
            id,
            ends: begins + (self.meter.nanos(packet.length.into()) + extra),
            is_lost: self.config.lost_from.is_some_and(|first| index >= first as usize),
        })
    }
}

impl Algorithm for BusyLink {
    const NAME: &'static str = "busy_link";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.inner.enqueue(id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        loop {
            let sent = match self.on_link {
                Some(sent) => sent,
                None => self.begin(now, pool)?,
            };
            if now < sent.ends {
                self.due = Some(sent.ends);
                self.on_link = Some(sent);
                return None;
            }
            self.on_link = None;
            self.free_at = sent.ends;
            if !sent.is_lost {
                return Some(sent.id);
            }
            self.lost += 1;
            pool.give_back(sent.id, DropReason::Lost);
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        if let Some(sent) = self.on_link.take() {
            into.push_back(sent.id, pool);
        }
        self.inner.drain(pool, into);
        self.due = None;
    }

    fn watchdog(&self) -> Option<Time> {
        self.due
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// The packet on the link keeps its time.
    fn reconfigure(&mut self, config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        self.take(config);
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(INNER, self.inner.as_ref()));
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        (minor == INNER).then_some(&mut self.inner)
    }

    fn class_replaced(&mut self, _minor: u32, now: Time, _pool: &mut Pool) {
        self.held_until = now;
        self.due = None;
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("on_link", Variable::Integer(self.on_link.is_some().into()));
        visit("lost", Variable::Integer(self.lost as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Inspect;
    use crate::packet::Packet;
    use crate::queues::tbf::{self, Tbf};
    use crate::queues::token_bucket::Profile;
    use crate::testing::{Driver, fifo};
    use proptest::prelude::*;

    /// One byte per microsecond.
    const RATE: Rate = Rate::mbit(8);

    fn link(config: Config) -> Driver<BusyLink> {
        Driver::new(BusyLink::node(config, 1, fifo(4096)).unwrap())
    }

    fn with_extra(extra: &[u32]) -> Config {
        Config {
            extra: extra.to_vec(),
            ..Config::of_rate(RATE)
        }
    }

    /// Returns when packets leave if the driver asks in time: cookies, and times in us.
    fn departures(driver: &mut Driver<BusyLink>, mut now: Time) -> Vec<(u64, u64)> {
        let mut left = Vec::new();
        while driver.root.backlog().packets > 0 {
            match driver.next(now) {
                Some(cookie) => left.push((cookie, now.nanos() / 1000)),
                None if driver.root.backlog().packets == 0 => break,
                None => now = driver.root.watchdog().expect("a time to ask again"),
            }
        }
        left
    }

    #[test]
    fn a_packet_arrives_after_its_bytes_and_the_extra_time_and_keeps_the_link_busy() {
        let mut driver = link(with_extra(&[300]));
        for length in [1000, 500, 100] {
            driver.offer(Packet::of_length(length), Time::ZERO);
        }
        assert_eq!(
            departures(&mut driver, Time::ZERO),
            [(0, 1300), (1, 2100), (2, 2500)]
        );
        driver.offer(Packet::of_length(1000), Time::from_micros(10_000));
        assert_eq!(departures(&mut driver, Time::from_micros(10_000)), [(3, 11_300)]);
    }

    #[test]
    fn a_late_driver_costs_no_rate() {
        let mut driver = link(with_extra(&[1000]));
        for _ in 0..3 {
            driver.offer(Packet::of_length(1000), Time::ZERO);
        }
        assert_eq!(driver.drain(Time::from_micros(4500)), [0, 1]);
        assert_eq!(driver.root.watchdog(), Some(Time::from_micros(6000)));
        driver.offer(Packet::of_length(1000), Time::from_micros(7000));
        assert_eq!(
            departures(&mut driver, Time::from_micros(9000)),
            [(2, 9000), (3, 9000)]
        );
    }

    #[test]
    fn the_queue_chooses_when_the_link_becomes_free() {
        let mut driver = Driver::new(BusyLink::node(with_extra(&[1000]), 1, fifo(1)).unwrap());
        driver.offer(Packet::of_length(1000), Time::ZERO);
        assert_eq!(driver.next(Time::ZERO), None);
        driver.offer(Packet::of_length(1000), Time::ZERO);
        driver.offer(Packet::of_length(1000), Time::ZERO);
        assert_eq!(
            driver.returned,
            [(2, DropReason::QueueLimit)],
            "one on the link, one waits"
        );
        assert_eq!(departures(&mut driver, Time::ZERO), [(0, 2000), (1, 4000)]);
    }

    #[test]
    fn entries_from_lost_from_on_lose_the_packet_after_its_time() {
        let mut driver = link(Config {
            lost_from: Some(0),
            ..with_extra(&[500])
        });
        driver.offer(Packet::of_length(1000), Time::ZERO);
        assert_eq!(driver.next(Time::from_micros(1499)), None);
        assert!(driver.returned.is_empty());
        assert_eq!(driver.next(Time::from_micros(1500)), None);
        assert_eq!(driver.returned, [(0, DropReason::Lost)]);
        assert_eq!(driver.root.watchdog(), None);
    }

    #[test]
    fn a_lost_packet_keeps_the_link_busy_too() {
        let mut driver = link(Config {
            lost_from: Some(1),
            ..with_extra(&[0, 2000])
        });
        for _ in 0..1000 {
            driver.offer(Packet::of_length(1000), Time::ZERO);
        }
        let left = departures(&mut driver, Time::ZERO);
        let lost = driver.root.statistics().dropped_for(DropReason::Lost);
        assert_eq!(left.len() as u64 + lost, 1000);
        assert!((400..600).contains(&lost), "{lost}");
        for (before, next) in left.iter().zip(&left[1..]) {
            assert_eq!(next.1 - before.1, 1000 + 3000 * (next.0 - before.0 - 1));
        }
    }

    #[test]
    fn a_burst_leaves_at_once_after_an_idle_time() {
        let mut driver = link(Config {
            burst: 2500,
            ..with_extra(&[])
        });
        let start = Time::from_micros(10_000);
        for _ in 0..4 {
            driver.offer(Packet::of_length(1000), start);
        }
        assert_eq!(
            departures(&mut driver, start),
            [(0, 10_000), (1, 10_000), (2, 10_500), (3, 11_500)]
        );
    }

    #[test]
    fn a_queue_that_holds_packets_back_delays_the_begin() {
        let config = tbf::Config {
            profile: Profile::new(Rate::mbit(1), 1000),
            ..tbf::Config::of_rate(Rate::mbit(1))
        };
        let slow = Box::new(Tbf::node(config, None).unwrap());
        let mut driver = Driver::new(BusyLink::node(with_extra(&[100]), 1, slow).unwrap());
        for _ in 0..2 {
            driver.offer(Packet::of_length(1000), Time::ZERO);
        }
        assert_eq!(departures(&mut driver, Time::ZERO), [(0, 1100), (1, 9100)]);
    }

    #[test]
    fn a_change_is_for_the_next_packet() {
        let mut driver = link(with_extra(&[300]));
        for _ in 0..2 {
            driver.offer(Packet::of_length(1000), Time::ZERO);
        }
        assert_eq!(driver.next(Time::ZERO), None);
        driver.reconfigure(with_extra(&[0]), Time::ZERO);
        assert_eq!(departures(&mut driver, Time::ZERO), [(0, 1300), (1, 2300)]);
    }

    #[test]
    fn a_loss_needs_an_entry() {
        let config = Config {
            lost_from: Some(2),
            ..with_extra(&[1, 2])
        };
        let error = BusyLink::node(config, 1, fifo(1)).unwrap_err();
        assert_eq!(error.parameter(), Some("lost_from"));
    }

    proptest! {
        /// A backlogged link sends a packet each `length / rate + mean extra time`. The deviation of a mean
        /// of n draws is that of one draw over the root of n; six of it are never exceeded.
        #[test]
        fn the_throughput_of_a_long_run_is_that_of_size_rate_and_mean(
            extra in prop::collection::vec(0u32..5000, 1..40),
            length in 40u32..1500,
            seed in any::<u64>(),
        ) {
            const PACKETS: u64 = 4000;
            let mut driver = Driver::new(BusyLink::node(with_extra(&extra), seed, fifo(4096)).unwrap());
            for _ in 0..PACKETS {
                driver.offer(Packet::of_length(length), Time::ZERO);
            }
            let left = departures(&mut driver, Time::ZERO);
            let taken = left.last().unwrap().1 as f64 / PACKETS as f64;
            let count = extra.len() as f64;
            let mean = extra.iter().map(|extra| f64::from(*extra)).sum::<f64>() / count;
            let square = extra.iter().map(|extra| (f64::from(*extra) - mean).powi(2)).sum::<f64>() / count;
            let allowed = 0.01 + 6.0 * (square / PACKETS as f64).sqrt();
            let expected = f64::from(length) + mean;
            prop_assert!((taken - expected).abs() <= allowed, "{} instead of {}", taken, expected);
        }
    }
}
