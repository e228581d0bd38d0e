//! What a discipline did on a link, packet by packet.
//!
//! [`record`] drives a discipline as a link would: packets arrive at their times, and whenever the link is free and
//! something is queued it asks for the next packet and sends it, whole, at its rate. An arrival at the very moment at
//! which the link becomes free is queued before the choice is made.

use fairgate::{ClassId, Discipline, DropReason, FlowHash, Link as Egress, Next, Packet, Rate, Time};
use thiserror::Error;

use crate::link::Link;

/// A packet to be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// Its flow, from 0. It names class `1:flow + 1` where there is such a number, and has a hash of its own.
    pub flow: u32,
    /// Bytes on the wire, at least 1.
    pub length: u32,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Which of the arrivals it is, from 0.
    pub number: u32,
    /// Its flow.
    pub flow: u32,
    /// Bytes.
    pub length: u32,
    /// When it arrived, ticks.
    pub arrival: u64,
    /// When the link began to send it, ticks.
    pub start: u64,
    /// When the link had sent it, ticks.
    pub finish: u64,
}

impl Sent {
    /// What it took the link, ticks.
    pub fn work(&self) -> u64 {
        self.finish - self.start
    }
}

/// All that was sent.
#[derive(Clone, Debug)]
pub struct Schedule {
    link: Link,
    sent: Vec<Sent>,
    /// Work done before each packet was begun, ticks.
    before: Vec<u64>,
    /// The packets of each flow, by their place in `sent`.
    by_flow: Vec<Vec<u32>>,
    dropped: u32,
}

/// Why a schedule could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// Arrivals come in the order of their times.
    #[error("arrival {number} at {at} comes after one at {previous}; sort arrivals by time")]
    NotInOrder {
        /// Which arrival.
        number: u32,
        /// Its time.
        at: Time,
        /// The time of the one before.
        previous: Time,
    },
    /// A packet without bytes takes no time to send.
    #[error("arrival {number} has length 0; give it at least 1 byte")]
    LengthZero {
        /// Which arrival.
        number: u32,
    },
    /// Ticks are counted up to 2^62.
    #[error(
        "the schedule reaches beyond what ticks can count at this rate; use a rounder rate, or fewer packets"
    )]
    TooLong,
    /// The discipline holds packets back and doesn't say until when.
    #[error(
        "at {at} `{discipline}` sends nothing, holds {packets} packets, and names no later time to ask again"
    )]
    Stuck {
        /// When.
        at: Time,
        /// The discipline.
        discipline: &'static str,
        /// What it holds.
        packets: u64,
    },
}

/// Drives `discipline`, which is empty, with `arrivals` of flows below `flows`, until all is sent.
///
/// # Errors
/// If arrivals are not in order or too long ago from now to count, or the discipline refuses to send.
pub fn record(
    discipline: &mut dyn Discipline,
    rate: Rate,
    flows: u32,
    arrivals: &[Arrival],
) -> Result<Schedule, RecordError> {
    let link = Link::new(rate);
    let mut driver = Driver {
        link,
        arrivals,
        arrived: check(arrivals, &link)?,
        offered: 0,
        egress: Egress::new(discipline, 0),
        schedule: Schedule::empty(link, flows),
    };
    driver.run()?;
    Ok(driver.schedule)
}

/// When each of the arrivals comes, ticks.
fn check(arrivals: &[Arrival], link: &Link) -> Result<Vec<u64>, RecordError> {
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
        ticks.push(link.ticks(at).ok_or(RecordError::TooLong)?);
    }
    Ok(ticks)
}

struct Driver<'a> {
    link: Link,
    arrivals: &'a [Arrival],
    /// When each arrival comes, ticks.
    arrived: Vec<u64>,
    /// How many of them have come.
    offered: usize,
    /// A packet's payload is the number of its arrival.
    egress: Egress<u32, &'a mut dyn Discipline>,
    schedule: Schedule,
}

impl Driver<'_> {
    fn run(&mut self) -> Result<(), RecordError> {
        let mut now = 0;
        loop {
            while self.next_arrival().is_some_and(|at| at <= now) {
                self.offer();
            }
            let clock = self.link.clock(now);
            let next = self.egress.dequeue(clock);
            self.count_drops();
            let wake = match next {
                Next::Packet(departure) => {
                    now = self.send(departure.payload, departure.slot.length, now)?;
                    continue;
                }
                Next::Wait(until) => self.link.ticks(until),
                Next::Idle => None,
            };
            now = match self.next_arrival().into_iter().chain(wake).min() {
                Some(next) => next,
                None if next.is_idle() => return Ok(()),
                None => {
                    return Err(RecordError::Stuck {
                        at: clock,
                        discipline: self.egress.root().name(),
                        packets: self.egress.backlog().packets,
                    });
                }
            };
        }
    }

    fn next_arrival(&self) -> Option<u64> {
        self.arrived.get(self.offered).copied()
    }

    /// Queues the next arrival, at its own time.
    fn offer(&mut self) {
        let arrival = self.arrivals[self.offered];
        if self.egress.len() == self.egress.capacity() {
            self.egress.grow((self.egress.capacity() * 2).max(64));
        }
        let packet = Packet {
            class: u16::try_from(arrival.flow + 1).map_or(ClassId::NONE, |minor| ClassId::new(1, minor)),
            flow: FlowHash::from_raw(u64::from(arrival.flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            ..Packet::of_length(arrival.length)
        };
        self.egress
            .enqueue(packet, self.offered as u32, arrival.at)
            .expect("the pool has just grown");
        self.offered += 1;
        self.count_drops();
    }

    fn count_drops(&mut self) {
        while let Some(dropped) = self.egress.take_dropped() {
            debug_assert_ne!(dropped.reason, DropReason::Flushed, "nobody flushes");
            self.schedule.dropped += 1;
        }
    }

    /// Sends a packet from `start`. Returns the finish.
    fn send(&mut self, number: u32, length: u32, start: u64) -> Result<u64, RecordError> {
        let finish = self
            .link
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
    /// Of a link on which nothing was sent yet.
    pub fn empty(link: Link, flows: u32) -> Schedule {
        Schedule {
            link,
            sent: Vec::new(),
            before: Vec::new(),
            by_flow: vec![Vec::new(); flows as usize],
            dropped: 0,
        }
    }

    /// Appends a packet, sent after all others.
    ///
    /// # Panics
    /// If it was begun before the last one was finished, before it arrived, or is of a flow that there is not.
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

    /// The link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// How many flows there are, those that sent nothing included.
    pub fn flows(&self) -> u32 {
        self.by_flow.len() as u32
    }

    /// What was sent, in that order.
    pub fn sent(&self) -> &[Sent] {
        &self.sent
    }

    /// What one flow sent, in that order.
    pub fn of_flow(&self, flow: u32) -> impl ExactSizeIterator<Item = &Sent> {
        self.by_flow[flow as usize]
            .iter()
            .map(|&place| &self.sent[place as usize])
    }

    /// Packets that the discipline dropped. They are not in the record: to all measures it is as if they had never
    /// come.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// The work that the link had done until `ticks`, in ticks.
    pub fn work_until(&self, ticks: u64) -> u64 {
        let begun = self.sent.partition_point(|sent| sent.start <= ticks);
        match begun.checked_sub(1) {
            None => 0,
            Some(last) => self.before[last] + self.sent[last].finish.min(ticks) - self.sent[last].start,
        }
    }

    /// Whether the link was busy whenever a packet was there to be sent.
    pub fn is_work_conserving(&self) -> bool {
        // Before a pause everything that had come must have been sent: no later packet is older than the pause.
        let mut earliest_after = u64::MAX;
        self.sent.iter().enumerate().rev().all(|(place, sent)| {
            earliest_after = earliest_after.min(sent.arrival);
            let idle_since = place.checked_sub(1).map_or(0, |last| self.sent[last].finish);
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
    fn a_link_sends_one_packet_after_the_other() {
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
    fn a_shaper_is_asked_again_when_it_says() {
        let arrivals = [arrival(0, 0, 1000), arrival(0, 0, 1000)];
        let mut shaper = discipline("tbf rate=8mbit burst=1000b limit=10kb");
        let schedule = record(shaper.as_mut(), Rate::mbit(8000), 1, &arrivals).unwrap();
        let starts: Vec<u64> = schedule.sent().iter().map(|sent| sent.start).collect();
        assert_eq!(starts[0], 0);
        assert!((999_000..1_001_000).contains(&starts[1]), "{starts:?}");
        assert!(!schedule.is_work_conserving());
    }

    #[test]
    fn what_is_dropped_never_came() {
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
    fn bad_arrivals_are_refused() {
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
                began[sent.number as usize] = Some(schedule.link().clock(sent.start));
            }
            began
        });
    }
}
