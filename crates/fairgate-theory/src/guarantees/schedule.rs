//! Records what a discipline does on a link, packet by packet.
//!
//! [`record`] drives a discipline like a link. Packets are enqueued at their arrival times. Whenever the link
//! is free and something is queued, the next packet is dequeued and sent, whole, at the link's rate. If a
//! packet arrives at the time when the link becomes free, it is enqueued before the next packet is dequeued.

use fairgate::{ClassId, Discipline, DropReason, FlowHash, Link, Next, Packet, Pool, Rate, Time};
use thiserror::Error;

use crate::tick_scale::TickScale;

/// A packet to be enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The arrival time.
    pub at: Time,
    /// The flow, from 0. The packet names class `1:flow + 1` if there is such a number, and each flow has its
    /// own hash.
    pub flow: u32,
    /// The length on the link, bytes; at least 1.
    pub length: u32,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of its arrival, from 0.
    pub number: u32,
    /// Its flow.
    pub flow: u32,
    /// Bytes.
    pub length: u32,
    /// The arrival time, ticks.
    pub arrival: u64,
    /// The start of the transmission, ticks.
    pub start: u64,
    /// The end of the transmission, ticks.
    pub finish: u64,
}

impl Sent {
    /// Returns the duration of the transmission, ticks.
    pub fn work(&self) -> u64 {
        self.finish - self.start
    }
}

/// All packets that were sent.
#[derive(Clone, Debug)]
pub struct Schedule {
    tick_scale: TickScale,
    sent: Vec<Sent>,
    /// The work done before the start of each packet, ticks.
    before: Vec<u64>,
    /// The packets of each flow, by their index in `sent`.
    by_flow: Vec<Vec<u32>>,
    dropped: u32,
}

/// The reason why a schedule could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// An arrival is earlier than the one before it.
    #[error("arrival {number} at {at} comes after one at {previous}; sort arrivals by time")]
    NotInOrder {
        /// The number of the arrival.
        number: u32,
        /// Its time.
        at: Time,
        /// The time of the arrival before it.
        previous: Time,
    },
    /// A packet has no bytes, so its transmission would take no time.
    #[error("arrival {number} has length 0; give it at least 1 byte")]
    LengthZero {
        /// The number of the arrival.
        number: u32,
    },
    /// A time is above 2^62 ticks.
    #[error("the schedule is longer than 2^62 ticks at this rate; use a rounder rate, or fewer packets")]
    TooLong,
    /// The discipline is throttled but gives no time at which to ask again.
    #[error(
        "at {at} `{discipline}` sends nothing, holds {packets} packets, and names no later time to ask again"
    )]
    Stuck {
        /// The time.
        at: Time,
        /// The discipline.
        discipline: &'static str,
        /// The number of packets that it holds.
        packets: u64,
    },
}

/// Drives `discipline`, which must be empty, with `arrivals` until all packets are sent. Flow numbers are
/// below `flows`.
///
/// # Errors
/// Returns an error if arrivals are not in order, if a time is too large for ticks, or if the discipline
/// stops sending.
pub fn record(
    discipline: &mut dyn Discipline,
    rate: Rate,
    flows: u32,
    arrivals: &[Arrival],
) -> Result<Schedule, RecordError> {
    let tick_scale = TickScale::new(rate);
    let mut driver = Driver {
        tick_scale,
        arrivals,
        arrived: check(arrivals, &tick_scale)?,
        offered: 0,
        link: Link::with_pool(discipline, Pool::with_capacity(0)),
        schedule: Schedule::empty(tick_scale, flows),
    };
    driver.run()?;
    Ok(driver.schedule)
}

/// Returns the time of each arrival, ticks.
fn check(arrivals: &[Arrival], tick_scale: &TickScale) -> Result<Vec<u64>, RecordError> {
    let mut previous = Time::ZERO;
    let mut ticks = Vec::with_capacity(arrivals.len());
    for (number, &Arrival { at, length, .. }) in arrivals.iter().enumerate() {
        let number = number as u32;
        if length == 0 {
            return Err(RecordError::LengthZero { number });
        }
        if at < previous {
            return Err(RecordError::NotInOrder { number, at, previous });
        }
        previous = at;
        ticks.push(tick_scale.ticks(at).ok_or(RecordError::TooLong)?);
    }
    Ok(ticks)
}

struct Driver<'a> {
    tick_scale: TickScale,
    arrivals: &'a [Arrival],
    /// The time of each arrival, ticks.
    arrived: Vec<u64>,
    /// The number of arrivals that have been enqueued.
    offered: usize,
    /// A packet's payload is the number of its arrival.
    link: Link<u32, &'a mut dyn Discipline>,
    schedule: Schedule,
}

impl Driver<'_> {
    fn run(&mut self) -> Result<(), RecordError> {
        let mut now = 0;
        loop {
            while self.next_arrival().is_some_and(|at| at <= now) {
                self.offer();
            }
            let clock = self.tick_scale.clock(now);
            let next = self.link.dequeue(clock);
            self.count_drops();
            let wake = match next {
                Next::Packet(departure) => {
                    now = self.send(departure.payload, departure.slot.length, now)?;
                    continue;
                }
                Next::Wait(until) => self.tick_scale.ticks(until),
                Next::Idle => None,
            };
            now = match self.next_arrival().into_iter().chain(wake).min() {
                Some(next) => next,
                None if next.is_idle() => return Ok(()),
                None => {
                    return Err(RecordError::Stuck {
                        at: clock,
                        discipline: self.link.root().name(),
                        packets: self.link.backlog().packets,
                    });
                }
            };
        }
    }

    fn next_arrival(&self) -> Option<u64> {
        self.arrived.get(self.offered).copied()
    }

    /// Enqueues the next arrival, at its own time.
    fn offer(&mut self) {
        let arrival = self.arrivals[self.offered];
        if self.link.len() == self.link.capacity() {
            self.link.grow((self.link.capacity() * 2).max(64));
        }
        let packet = Packet {
            class: u16::try_from(arrival.flow + 1).map_or(ClassId::NONE, |minor| ClassId::new(1, minor)),
            flow: FlowHash::from_raw(u64::from(arrival.flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            ..Packet::of_length(arrival.length)
        };
        self.link
            .enqueue(packet, self.offered as u32, arrival.at)
            .expect("the pool has just grown");
        self.offered += 1;
        self.count_drops();
    }

    fn count_drops(&mut self) {
        while let Some(dropped) = self.link.take_dropped() {
            debug_assert_ne!(dropped.reason, DropReason::Flushed, "nobody flushes");
            self.schedule.dropped += 1;
        }
    }

    /// Sends a packet from `start` on. Returns the finish.
    fn send(&mut self, number: u32, length: u32, start: u64) -> Result<u64, RecordError> {
        let finish = self
            .tick_scale
            .work(length.into())
            .and_then(|work| start.checked_add(work))
            .filter(|finish| *finish <= 1 << 62)
            .ok_or(RecordError::TooLong)?;
        self.schedule.push(Sent {
            number,
            flow: self.arrivals[number as usize].flow,
            length,
            arrival: self.arrived[number as usize],
            start,
            finish,
        });
        Ok(finish)
    }
}

impl Schedule {
    /// Creates the schedule of a link that has sent nothing yet.
    pub fn empty(tick_scale: TickScale, flows: u32) -> Schedule {
        Schedule {
            tick_scale,
            sent: Vec::new(),
            before: Vec::new(),
            by_flow: vec![Vec::new(); flows as usize],
            dropped: 0,
        }
    }

    /// Appends a packet, sent after all others.
    ///
    /// # Panics
    /// If its transmission starts before the last one is finished or before it arrives, or if there is no
    /// such flow.
    pub fn push(&mut self, sent: Sent) {
        let (last, before) = match (self.sent.last(), self.before.last()) {
            (Some(last), Some(before)) => (last.finish, before + last.work()),
            _ => (0, 0),
        };
        assert!(sent.start >= last, "a link sends one packet at a time");
        assert!(sent.start >= sent.arrival && sent.finish > sent.start);
        self.by_flow[sent.flow as usize].push(self.sent.len() as u32);
        self.sent.push(sent);
        self.before.push(before);
    }

    /// Returns the link.
    pub fn tick_scale(&self) -> &TickScale {
        &self.tick_scale
    }

    /// Returns the number of flows, including flows that sent nothing.
    pub fn flows(&self) -> u32 {
        self.by_flow.len() as u32
    }

    /// Returns the packets in the order of their transmission.
    pub fn sent(&self) -> &[Sent] {
        &self.sent
    }

    /// Returns the packets of one flow in the order of their transmission.
    pub fn of_flow(&self, flow: u32) -> impl ExactSizeIterator<Item = &Sent> {
        self.by_flow[flow as usize]
            .iter()
            .map(|&index| &self.sent[index as usize])
    }

    /// Returns the number of packets that the discipline dropped. They are not recorded: all measures ignore
    /// them.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Returns the work that the link had done until `ticks`, in ticks.
    pub fn work_until(&self, ticks: u64) -> u64 {
        let begun = self.sent.partition_point(|sent| sent.start <= ticks);
        match begun.checked_sub(1) {
            None => 0,
            Some(last) => self.before[last] + self.sent[last].finish.min(ticks) - self.sent[last].start,
        }
    }

    /// Whether the link was busy whenever a packet was queued.
    pub fn is_work_conserving(&self) -> bool {
        // All packets that arrived before a pause must have been sent: no packet after the pause is older
        // than it.
        let mut earliest_after = u64::MAX;
        self.sent.iter().enumerate().rev().all(|(index, sent)| {
            earliest_after = earliest_after.min(sent.arrival);
            let idle_since = index.checked_sub(1).map_or(0, |last| self.sent[last].finish);
            idle_since == sent.start || earliest_after >= sent.start
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate_config::Spec;
    use fairgate_conformance::{RATE, check_driver};

    fn discipline(text: &str) -> Box<dyn Discipline> {
        Spec::inline(text).unwrap().build(1).unwrap()
    }

    fn arrival(at: u64, flow: u32, length: u32) -> Arrival {
        Arrival {
            at: Time::from_nanos(at),
            flow,
            length,
        }
    }

    #[test]
    fn a_link_sends_one_packet_at_a_time() {
        let arrivals = [arrival(10, 0, 100), arrival(20, 1, 50), arrival(500, 1, 1)];
        let schedule = record(discipline("fifo").as_mut(), Rate::mbit(8000), 2, &arrivals).unwrap();
        let times: Vec<_> = schedule
            .sent()
            .iter()
            .map(|sent| (sent.start, sent.finish))
            .collect();
        assert_eq!(times, [(10, 110), (110, 160), (500, 501)]);
        assert_eq!(schedule.work_until(0), 0);
        assert_eq!(schedule.work_until(110), 100);
        assert_eq!(schedule.work_until(130), 120);
        assert_eq!(schedule.work_until(400), 150);
        assert_eq!(schedule.of_flow(1).len(), 2);
        assert!(schedule.is_work_conserving());
    }

    #[test]
    fn a_shaper_is_asked_again_at_its_watchdog() {
        let arrivals = [arrival(0, 0, 1000), arrival(0, 0, 1000)];
        let mut shaper = discipline("tbf rate=8mbit burst=1000b limit=10kb");
        let schedule = record(shaper.as_mut(), Rate::mbit(8000), 1, &arrivals).unwrap();
        let starts: Vec<u64> = schedule.sent().iter().map(|sent| sent.start).collect();
        assert_eq!(starts[0], 0);
        assert!((999_000..1_001_000).contains(&starts[1]), "{starts:?}");
        assert!(!schedule.is_work_conserving());
    }

    #[test]
    fn dropped_packets_are_counted_and_not_recorded() {
        let arrivals = [arrival(0, 0, 10), arrival(0, 0, 20), arrival(0, 0, 30)];
        let schedule = record(
            discipline("fifo limit=2").as_mut(),
            Rate::mbit(8000),
            1,
            &arrivals,
        )
        .unwrap();
        assert_eq!((schedule.sent().len(), schedule.dropped()), (2, 1));
    }

    #[test]
    fn bad_arrivals_are_rejected() {
        let refused = |arrivals: &[Arrival]| {
            record(discipline("fifo").as_mut(), Rate::mbit(8000), 1, arrivals).unwrap_err()
        };
        assert_eq!(
            refused(&[arrival(0, 0, 0)]),
            RecordError::LengthZero { number: 0 }
        );
        assert_eq!(
            refused(&[arrival(5, 0, 1), arrival(4, 0, 1)]),
            RecordError::NotInOrder {
                number: 1,
                at: Time::from_nanos(4),
                previous: Time::from_nanos(5)
            }
        );
        assert_eq!(refused(&[arrival(u64::MAX, 0, 1)]), RecordError::TooLong);
    }

    #[test]
    fn the_recorder_drives_by_the_rules() {
        check_driver(Some(RATE), |mut discipline, arrivals| {
            let offered = arrivals
                .iter()
                .map(|packet| arrival(packet.at.nanos(), 0, packet.length));
            let offered: Vec<_> = offered.collect();
            let schedule = record(discipline.as_mut(), RATE, 1, &offered).unwrap();
            let mut began = vec![None; arrivals.len()];
            for sent in schedule.sent() {
                began[sent.number as usize] = Some(schedule.tick_scale().clock(sent.start));
            }
            began
        });
    }
}
