//! First in, first out, with a limit of packets, bytes or both. ALTQ's FIFOQ; Linux's `pfifo`, `bfifo` and
//! `pfifo_head_drop`.
//!
//! This is the simplest discipline, and the template for new ones: parameters, state, [`Algorithm`], tests.
//!
//! Over the limit the arriving packet is dropped. With [`DropFrom::Head`] the oldest packets are dropped
//! until the new one fits. A packet fits if `packets < limit` and `bytes + length <= limit`, as in Linux.
//! Deviation: Linux has head drop for packet limits only. Here a packet longer than the whole byte limit is
//! dropped itself, and removes no other packet.

use alloc::boxed::Box;

use crate::discipline::{Algorithm, ByFlow, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::{About, Children, Description, Family, Longest, Parameter, Unit, check_ranges};
use crate::time::Time;

/// Which packet is dropped when the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropFrom {
    /// The arriving packet.
    #[default]
    Tail,
    /// The oldest packet.
    Head,
}

crate::words!(DropFrom {
    "tail" => DropFrom::Tail,
    "head" => DropFrom::Head,
});

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog, packets.
    pub limit_packets: Option<u32>,
    /// The largest backlog, bytes.
    pub limit_bytes: Option<u64>,
    /// Which packet is dropped when the queue is full.
    pub drop_from: DropFrom,
}

/// 1000 packets, Linux's default queue of an Ethernet device.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit_packets: Some(1000),
            limit_bytes: None,
            drop_from: DropFrom::Tail,
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "The largest backlog in packets.",
        |fifo, _| &mut fifo.limit_packets,
    ),
    Parameter::bounding(
        |fifo, _| fifo.limit_bytes.map(Longest::Length),
        Parameter::new(
            "limit_bytes",
            Unit::Bytes,
            1..=u64::MAX,
            "The largest backlog in bytes.",
            |fifo, _| &mut fifo.limit_bytes,
        ),
    ),
    Parameter::word(
        "drop",
        Unit::Choice(DropFrom::WORDS),
        "Which packet is dropped when the queue is full: the arriving one or the oldest.",
        |fifo, _| &mut fifo.drop_from,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "fifo",
        family: Family::Queues,
        summary: "First in, first out, with a limit of packets, bytes or both",
        when: "As a leaf of other disciplines, and as the baseline of comparisons.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, _| Ok(Box::new(Fifo::node(config)?)),
);

/// The discipline. Make one with [`Fifo::node`].
#[derive(Debug)]
pub struct Fifo {
    queue: PacketQueue,
    limit_packets: u32,
    limit_bytes: u64,
    config: Config,
}

impl Fifo {
    /// Creates an empty queue.
    ///
    /// ```
    /// use fairgate::queues::fifo::{Config, Fifo};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut fifo = Fifo::node(Config::default())?;
    /// let id = pool.insert(Packet::of_length(1514)).expect("16 slots");
    /// fifo.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(fifo.dequeue(Time::from_millis(1), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config) -> Result<Node<Fifo>, ConfigError> {
        let mut fifo = Fifo {
            queue: PacketQueue::new(),
            limit_packets: 0,
            limit_bytes: 0,
            config: config.clone(),
        };
        fifo.apply(config)?;
        Ok(Node::new(fifo))
    }

    fn apply(&mut self, mut config: Config) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut config)?;
        self.limit_packets = config.limit_packets.unwrap_or(u32::MAX);
        self.limit_bytes = config.limit_bytes.unwrap_or(u64::MAX);
        self.config = config;
        Ok(())
    }

    #[inline]
    fn fits(&self, length: u32) -> bool {
        self.queue.len() < self.limit_packets && self.queue.bytes() + u64::from(length) <= self.limit_bytes
    }

    /// Drops a packet that does not fit, or older ones to make room. It is not inlined, so that the common
    /// path keeps its registers.
    #[cold]
    #[inline(never)]
    fn overflow(&mut self, id: PacketId, pool: &mut Pool) -> Verdict {
        let length = pool[id].length;
        if self.config.drop_from == DropFrom::Tail || u64::from(length) > self.limit_bytes {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        while !self.fits(length) {
            let oldest = self
                .queue
                .pop_front(pool)
                .expect("an empty queue has room for a packet");
            pool.give_back(oldest, DropReason::HeadDrop);
        }
        self.queue.push_back(id, pool);
        Verdict::Congested
    }
}

/// A fifo accepts every flow number and puts all flows in one queue.
impl ByFlow for Fifo {
    fn flows(&self) -> u32 {
        u32::MAX
    }

    #[inline]
    fn enqueue_flow(&mut self, _flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.enqueue(id, now, pool)
    }
}

impl Algorithm for Fifo {
    const NAME: &'static str = "fifo";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        if self.fits(pool[id].length) {
            self.queue.push_back(id, pool);
            return Verdict::Queued;
        }
        self.overflow(id, pool)
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.queue.pop_front(pool)
    }

    #[inline]
    fn idle(&mut self, _now: Time, _pool: &mut Pool) {}

    /// With head drop an enqueue may drop the first packet, so a peek has to take it out.
    #[inline]
    fn first(&self) -> Option<PacketId> {
        match self.config.drop_from {
            DropFrom::Tail => self.queue.front(),
            DropFrom::Head => None,
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        self.apply(config)?;
        while self.queue.len() > self.limit_packets || self.queue.bytes() > self.limit_bytes {
            let newest = self
                .queue
                .pop_back(pool)
                .expect("a queue over its limit is not empty");
            pool.give_back(newest, DropReason::Reconfigured);
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit(
            "limit_packets",
            self.config
                .limit_packets
                .map_or(Variable::Unset, |limit| Variable::Integer(limit.into())),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Discipline;
    use crate::discipline::{Inspect, Reconfigure};
    use crate::packet::Packet;

    fn offer(fifo: &mut Node<Fifo>, pool: &mut Pool, length: u32) -> (PacketId, Verdict) {
        let id = pool.insert(Packet::of_length(length)).unwrap();
        let verdict = fifo.enqueue(id, Time::ZERO, pool);
        (id, verdict)
    }

    #[test]
    fn a_limit_of_zero_is_rejected() {
        let error = Fifo::node(Config {
            limit_packets: Some(0),
            ..Config::default()
        })
        .unwrap_err();
        assert_eq!(error.parameter(), Some("limit"));
    }

    #[test]
    fn head_drop_makes_room_and_gives_its_reason() {
        let mut pool = Pool::with_capacity(8);
        let config = Config {
            limit_packets: None,
            limit_bytes: Some(1000),
            drop_from: DropFrom::Head,
        };
        let mut fifo = Fifo::node(config).unwrap();
        let (first, _) = offer(&mut fifo, &mut pool, 400);
        let (second, _) = offer(&mut fifo, &mut pool, 400);
        let (third, verdict) = offer(&mut fifo, &mut pool, 700);
        assert_eq!(verdict, Verdict::Congested);
        assert_eq!(pool.take_returned(), Some((first, DropReason::HeadDrop)));
        assert_eq!(pool.take_returned(), Some((second, DropReason::HeadDrop)));
        let (giant, verdict) = offer(&mut fifo, &mut pool, 1001);
        assert_eq!(verdict, Verdict::Dropped);
        assert_eq!(pool.take_returned(), Some((giant, DropReason::QueueLimit)));
        assert_eq!(fifo.dequeue(Time::ZERO, &mut pool), Some(third));
        assert_eq!(fifo.statistics().dropped_for(DropReason::HeadDrop), 2);
    }

    #[test]
    fn a_peeked_packet_counts_against_the_limit() {
        let mut pool = Pool::with_capacity(8);
        let config = Config {
            limit_packets: Some(1),
            ..Config::default()
        };
        let mut fifo = Fifo::node(config).unwrap();
        let (first, _) = offer(&mut fifo, &mut pool, 100);
        assert_eq!(fifo.peek(Time::ZERO, &mut pool), Some(first));
        assert_eq!(offer(&mut fifo, &mut pool, 100).1, Verdict::Dropped);
        assert_eq!(fifo.dequeue(Time::ZERO, &mut pool), Some(first));
    }

    #[test]
    fn a_peeked_packet_stays_the_next_after_a_change_of_parameters() {
        let lower = Config {
            limit_packets: None,
            limit_bytes: Some(50),
            drop_from: DropFrom::Tail,
        };
        let from_head = Config {
            limit_packets: Some(1),
            limit_bytes: None,
            drop_from: DropFrom::Head,
        };
        for change in [lower, from_head] {
            let mut pool = Pool::with_capacity(8);
            let mut fifo = Fifo::node(Config::default()).unwrap();
            let (first, _) = offer(&mut fifo, &mut pool, 100);
            offer(&mut fifo, &mut pool, 100);
            assert_eq!(fifo.peek(Time::ZERO, &mut pool), Some(first));
            fifo.reconfigure(&change, Time::ZERO, &mut pool).unwrap();
            offer(&mut fifo, &mut pool, 100);
            assert_eq!(
                fifo.dequeue(Time::ZERO, &mut pool),
                Some(first),
                "after {change:?}"
            );
        }
    }

    #[test]
    fn a_lowered_limit_drops_the_newest_packets() {
        let mut pool = Pool::with_capacity(8);
        let mut fifo = Fifo::node(Config::default()).unwrap();
        let (first, _) = offer(&mut fifo, &mut pool, 100);
        let (second, _) = offer(&mut fifo, &mut pool, 100);
        let lower = Config {
            limit_packets: Some(1),
            ..Config::default()
        };
        fifo.reconfigure(&lower, Time::ZERO, &mut pool).unwrap();
        assert_eq!(pool.take_returned(), Some((second, DropReason::Reconfigured)));
        assert_eq!(fifo.backlog().packets, 1);
        assert_eq!(fifo.dequeue(Time::ZERO, &mut pool), Some(first));
    }

    /// Whoever is told that the link is idle has the same statistics as whoever is asked for a packet then.
    #[test]
    fn an_idle_link_changes_nothing() {
        let mut pool = Pool::with_capacity(8);
        let mut both = [0, 1].map(|_| Fifo::node(Config::default()).unwrap());
        for round in 0..3 {
            let now = Time::from_millis(round);
            for fifo in &mut both {
                offer(fifo, &mut pool, 100);
                assert!(fifo.dequeue(now, &mut pool).is_some());
            }
            let [told, asked] = &mut both;
            told.idle(now, &mut pool);
            assert_eq!(asked.dequeue(now, &mut pool), None);
            assert_eq!(told.statistics(), asked.statistics());
        }
    }
}
