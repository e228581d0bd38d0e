//! Sends a Poisson process of packets through a discipline on a link: what M/M/1 and M/D/1 assume. Each
//! packet is a flow of its own.
//!
//! Every packet is the first of its flow, as with streams that send rarely. A discipline that gives priority
//! to new flows therefore gives it to all of them. Greedy flows can be added. They always have packets queued
//! and use what the streams leave of the link. They show the cost of priority without preemption: a packet
//! has to wait until the packet in transmission is sent.

use fairgate::{Discipline, FlowHash, Link, Packet, Pool, Time};

use crate::measured::Dice;

/// The most packets that can be queued. At a load of 0.99 an M/M/1 queue is longer with a probability of
/// 10^-40.
const SLOTS: u32 = 16_384;
/// Packets that a greedy flow keeps queued.
const GREEDY_BACKLOG: u32 = 3;
/// The number of arrivals before the queue is in its steady state. Their delays are not counted.
const WARM_UP: u64 = 20_000;
/// The number of the first greedy flow. The packets of a greedy flow have its number.
const GREEDY: u64 = 1 << 63;

/// The distribution of the streams' packet lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// All packets have the same length: M/D/1.
    Constant,
    /// Lengths are exponentially distributed, in whole bytes: M/M/1.
    Exponential,
}

/// The traffic on the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Streams {
    /// The rate of the link, bit/s.
    pub rate: f64,
    /// The streams' share of it, above 0 and below 1.
    pub load: f64,
    /// The mean length of a packet, bytes.
    pub mean: u32,
    /// The distribution of the lengths.
    pub lengths: Lengths,
    /// The number of greedy flows. Their packets have the mean length.
    pub greedy: u32,
}

/// Sends `packets` of the streams' packets through an empty `discipline`. The discipline must accept any
/// number of packets and flows.
///
/// Returns the delay of each packet, s, from its arrival until its last bit is sent. Dropped packets are left
/// out.
pub fn delays(streams: &Streams, discipline: &mut dyn Discipline, packets: u64, dice: &mut Dice) -> Vec<f64> {
    let mut run = Run {
        streams,
        link: Link::with_pool(discipline, Pool::with_capacity(SLOTS)),
        greedy: vec![0; streams.greedy as usize],
        arrivals: Vec::new(),
        offered: 0,
        queued: 0,
    };
    let total = packets + WARM_UP;
    let gap = f64::from(streams.mean) * 8.0 / streams.rate / streams.load;
    let mut next = dice.exponential(gap);
    let (mut free, mut delays) = (0.0f64, Vec::with_capacity(packets as usize));
    while run.offered < total || run.queued > 0 {
        if run.link.backlog().packets == 0 && run.greedy.is_empty() {
            free = free.max(next);
        }
        // All packets that arrive before the link is free are queued first.
        while next <= free && run.offered < total {
            run.stream(next, dice);
            next += dice.exponential(gap);
        }
        run.refill(free);
        let Some((number, length)) = run.send(free) else {
            continue;
        };
        free += f64::from(length) * 8.0 / streams.rate;
        if (WARM_UP..GREEDY).contains(&number) {
            delays.push(free - run.arrivals[number as usize]);
        }
    }
    delays
}

/// The state of a run.
struct Run<'a> {
    streams: &'a Streams,
    /// A packet's payload is its number; those of greedy flows begin at [`GREEDY`].
    link: Link<u64, &'a mut dyn Discipline>,
    /// Packets queued of each greedy flow.
    greedy: Vec<u32>,
    /// The arrival time of each packet of the streams, s.
    arrivals: Vec<f64>,
    /// The number of the streams' packets so far.
    offered: u64,
    /// The number of the streams' packets in the queue.
    queued: u64,
}

impl Run<'_> {
    fn stream(&mut self, now: f64, dice: &mut Dice) {
        let mean = f64::from(self.streams.mean);
        let length = match self.streams.lengths {
            Lengths::Constant => mean,
            Lengths::Exponential => libm::ceil(dice.exponential(mean)),
        };
        let number = self.offered;
        self.offered += 1;
        self.queued += 1;
        self.arrivals.push(now);
        self.offer(number, length as u32, now);
    }

    fn refill(&mut self, now: f64) {
        for flow in 0..self.greedy.len() {
            while self.greedy[flow] < GREEDY_BACKLOG {
                self.greedy[flow] += 1;
                self.offer(GREEDY + flow as u64, self.streams.mean, now);
            }
        }
    }

    fn offer(&mut self, number: u64, length: u32, now: f64) {
        let packet = Packet {
            flow: FlowHash::from_raw((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            ..Packet::of_length(length)
        };
        self.link
            .enqueue(packet, number, at(now))
            .expect("the queue is stable");
        self.count_drops();
    }

    /// The number and the length of the packet that is sent.
    fn send(&mut self, now: f64) -> Option<(u64, u32)> {
        let next = self.link.dequeue(at(now));
        self.count_drops();
        let departure = next.packet()?;
        self.left(departure.payload);
        Some((departure.payload, departure.slot.length))
    }

    fn count_drops(&mut self) {
        while let Some(dropped) = self.link.take_dropped() {
            self.left(dropped.payload);
        }
    }

    fn left(&mut self, number: u64) {
        match number.checked_sub(GREEDY) {
            Some(flow) => self.greedy[flow as usize] -= 1,
            None => self.queued -= 1,
        }
    }
}

fn at(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::{Md1, Mm1};
    use fairgate::queues::fifo::{Config, Fifo};

    /// Returns the mean delay of one run, and the share of delays above `time`.
    fn measured(lengths: Lengths, load: f64, time: f64) -> [f64; 2] {
        let streams = Streams {
            rate: 10e6,
            load,
            mean: 1250,
            lengths,
            greedy: 0,
        };
        let config = Config {
            limit_packets: Some(SLOTS),
            ..Config::default()
        };
        let mut fifo = Fifo::node(config).unwrap();
        let delays = delays(&streams, &mut fifo, 400_000, &mut Dice::new(1, "line"));
        assert_eq!(delays.len(), 400_000);
        let count = delays.len() as f64;
        let above = delays.iter().filter(|&&delay| delay > time).count();
        [delays.iter().sum::<f64>() / count, above as f64 / count]
    }

    #[test]
    fn a_fifo_is_an_md1_queue() {
        let queue = Md1::new(0.7, 0.001).unwrap();
        let [mean, above] = measured(Lengths::Constant, 0.7, 0.0045);
        assert!(
            (mean / queue.mean_delay() - 1.0).abs() < 0.03,
            "{mean} {}",
            queue.mean_delay()
        );
        let expected = queue.delay_exceeds(0.0045);
        assert!((above / expected - 1.0).abs() < 0.1, "{above} {expected}");
    }

    #[test]
    fn a_fifo_is_an_mm1_queue() {
        let queue = Mm1::new(0.5, 0.001).unwrap();
        let [mean, above] = measured(Lengths::Exponential, 0.5, 0.006);
        assert!((mean / queue.mean_delay() - 1.0).abs() < 0.03, "{mean}");
        let expected = queue.delay_exceeds(0.006);
        assert!((above / expected - 1.0).abs() < 0.1, "{above} {expected}");
    }
}
