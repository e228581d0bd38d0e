//! Earliest TxTime first: Linux's `etf`. Each packet leaves at its departure time, which its sender chose.
//!
//! Packets are sorted by their departure times ([`Packet::stamp`](crate::Packet::stamp)). A packet is handed
//! out up to `delta` before its time, so that the driver has time to send it. With `deadline_mode` the time
//! is the latest one, and a packet leaves as soon as possible, the most urgent one first.
//!
//! A packet is dropped if it has no departure time, if its time has passed when it arrives or while it waits,
//! or if it is before the time of a packet that has left ([`DropReason::Late`]).
//!
//! Invariant: packets leave in the order of their departure times, none before its time less `delta`, and
//! none after it.
//!
//! Not work-conserving: [`watchdog`](crate::Discipline::watchdog) is the first departure time less `delta`.
//!
//! Deviations from Linux: departure times are in the driver's clock; there is no socket whose options could
//! be checked. There is no limit here either, so put it behind a discipline that has one, if senders may be
//! careless. A packet leaves exactly `delta` before its time, and not only after that moment.

use alloc::boxed::Box;
use core::time::Duration;

use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketHeap, PacketId, PacketQueue, Pool};
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};
use crate::time::Time;

/// Parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// How long before its departure time a packet is handed out.
    pub delta: Duration,
    /// Whether the departure time is the latest one.
    pub deadline_mode: bool,
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "delta",
        Unit::Time,
        0..=i32::MAX as u64,
        "How long before its departure time a packet is handed to the driver.",
        |etf, _| &mut etf.delta,
    ),
    Parameter::word(
        "deadline_mode",
        Unit::Flag,
        "Whether packets leave as soon as possible, and the departure time is the latest one.",
        |etf, _| &mut etf.deadline_mode,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "etf",
        family: Family::Queues,
        summary: "Each packet leaves at its own departure time; late ones are dropped",
        when: "In a program that knows when each packet must leave; frames from an interface have no such \
            time.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, _| Ok(Box::new(Etf::node(config)?)),
);

/// The discipline. Make one with [`Etf::node`].
#[derive(Debug)]
pub struct Etf {
    packets: PacketHeap,
    /// The departure time of the last packet that has left.
    last: Time,
    due: Option<Time>,
    delta: u64,
    config: Config,
}

impl Etf {
    /// Creates an empty queue.
    ///
    /// ```
    /// use fairgate::queues::etf::{Config, Etf};
    /// use fairgate::{Discipline, Packet, Pool, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let mut etf = Etf::node(Config::default())?;
    /// let in_5_ms = Packet { stamp: 5_000_000, ..Packet::of_length(1514) };
    /// let id = pool.insert(in_5_ms).expect("16 slots");
    /// etf.enqueue(id, Time::ZERO, &mut pool);
    /// assert_eq!(etf.dequeue(Time::from_millis(4), &mut pool), None);
    /// assert_eq!(etf.watchdog(), Some(Time::from_millis(5)));
    /// assert_eq!(etf.dequeue(Time::from_millis(5), &mut pool), Some(id));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If `delta` is out of its range.
    pub fn node(config: Config) -> Result<Node<Etf>, ConfigError> {
        check_ranges(PARAMETERS, &mut config.clone())?;
        Ok(Node::new(Etf {
            packets: PacketHeap::new(),
            last: Time::ZERO,
            due: None,
            delta: config.delta.as_nanos() as u64,
            config,
        }))
    }
}

impl Algorithm for Etf {
    const NAME: &'static str = "etf";
    type Config = Config;

    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let departure = Time::from_nanos(pool[id].stamp);
        if departure == Time::ZERO || departure < now || departure < self.last {
            pool.give_back(id, DropReason::Late);
            return Verdict::Dropped;
        }
        self.packets.push(id, departure, pool);
        Verdict::Queued
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        while let Some((id, departure)) = self.packets.first(pool) {
            if departure < now {
                let _ = self.packets.pop(pool);
                pool.give_back(id, DropReason::Late);
                continue;
            }
            let opens = Time::from_nanos(departure.nanos().saturating_sub(self.delta));
            if !self.config.deadline_mode && now < opens {
                self.due = Some(opens);
                return None;
            }
            self.last = departure;
            return self.packets.pop(pool);
        }
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        while let Some((_, departure)) = self.packets.first(pool) {
            let id = self.packets.pop(pool).expect("it is the first");
            // The discipline that takes over may sort by it again.
            pool[id].stamp = departure.nanos();
            into.push_back(id, pool);
        }
        self.due = None;
        self.last = Time::ZERO;
    }

    fn watchdog(&self) -> Option<Time> {
        self.due
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut config.clone())?;
        self.delta = config.delta.as_nanos() as u64;
        self.config = config;
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("last_departure", Variable::Nanos(self.last.nanos()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Discipline;
    use crate::packet::Packet;
    use crate::testing::Driver;
    use proptest::prelude::*;

    fn etf(delta: u64, deadline_mode: bool) -> Driver<Etf> {
        let config = Config {
            delta: Duration::from_nanos(delta),
            deadline_mode,
        };
        Driver::new(Etf::node(config).unwrap())
    }

    fn at(driver: &mut Driver<Etf>, stamp: u64, now: u64) -> Verdict {
        let packet = Packet {
            stamp,
            ..Packet::of_length(100)
        };
        driver.offer(packet, Time::from_nanos(now))
    }

    #[test]
    fn packets_leave_at_their_times_and_late_ones_never() {
        let mut driver = etf(10, false);
        for stamp in [300, 100, 200] {
            assert_eq!(at(&mut driver, stamp, 0), Verdict::Queued);
        }
        assert_eq!(at(&mut driver, 0, 0), Verdict::Dropped);
        assert_eq!(at(&mut driver, 5, 6), Verdict::Dropped);
        assert_eq!(driver.next(Time::from_nanos(89)), None);
        assert_eq!(driver.root.watchdog(), Some(Time::from_nanos(90)));
        assert_eq!(driver.next(Time::from_nanos(90)), Some(1));
        // It would be sent before the one that has left.
        assert_eq!(at(&mut driver, 95, 91), Verdict::Dropped);
        assert_eq!(driver.next(Time::from_nanos(250)), None);
        assert_eq!(driver.returned, [(2, DropReason::Late)]);
        assert_eq!(driver.next(Time::from_nanos(300)), Some(0));
    }

    #[test]
    fn with_deadlines_the_most_urgent_packet_leaves_at_once() {
        let mut driver = etf(0, true);
        for stamp in [300, 100, 200] {
            at(&mut driver, stamp, 0);
        }
        assert_eq!(driver.drain(Time::ZERO), [1, 2, 0]);
    }

    proptest! {
        /// Compares with a model that searches a list.
        #[test]
        fn departures_are_those_of_the_model(
            delta in 0u64..50,
            deadline_mode: bool,
            steps in prop::collection::vec((0u64..30, any::<bool>(), 0u64..200), 1..300),
        ) {
            let mut driver = etf(delta, deadline_mode);
            let (mut now, mut last) = (0, 0);
            let mut queued: Vec<(u64, u64)> = Vec::new();
            let mut number = 0;
            for (pause, is_arrival, ahead) in steps {
                now += pause;
                if is_arrival {
                    let stamp = (now + ahead).saturating_sub(20);
                    let fits = stamp != 0 && stamp >= now && stamp >= last;
                    prop_assert_eq!(at(&mut driver, stamp, now) == Verdict::Queued, fits);
                    if fits {
                        queued.push((stamp, number));
                    }
                    number += 1;
                    continue;
                }
                queued.retain(|(stamp, _)| *stamp >= now);
                let first = queued.iter().copied().min();
                let first = first.filter(|(stamp, _)| deadline_mode || stamp.saturating_sub(delta) <= now);
                prop_assert_eq!(driver.next(Time::from_nanos(now)), first.map(|(_, number)| number));
                if let Some(first) = first {
                    queued.retain(|other| *other != first);
                    last = first.0;
                }
            }
        }
    }
}
