//! The bottleneck link. Its rate may change over time, while the rate of a simulated link is constant.
//!
//! A packet leaves at the start of its transmission. The simulated link under this discipline has no rate, so
//! it adds no transmission time.

use std::time::Duration;

use fairgate::{
    Algorithm, Class, ConfigError, Discipline, Egress, Next, Node, PacketId, PacketQueue, Pool, Rate, Time,
    Verdict,
};

/// Rates with durations. They repeat. A single rate is constant.
#[derive(Clone, Debug)]
pub(super) struct Phases(Vec<(Rate, Duration)>);

impl Phases {
    /// Creates a constant rate.
    pub(super) fn constant(rate: Rate) -> Phases {
        Phases(vec![(rate, Duration::MAX)])
    }

    /// Creates a sequence of rates. Returns `None` if it is empty or if a duration is 0.
    pub(super) fn new(phases: Vec<(Rate, Duration)>) -> Option<Phases> {
        let sound = !phases.is_empty() && phases.iter().all(|phase| !phase.1.is_zero());
        sound.then_some(Phases(phases))
    }

    /// Returns the greatest rate.
    pub(super) fn fastest(&self) -> Rate {
        let rates = self.0.iter().map(|phase| phase.0);
        rates
            .max_by_key(|rate| rate.bits_per_second())
            .expect("there is at least one phase")
    }

    fn at(&self, now: Time) -> Rate {
        if let [(rate, _)] = self.0[..] {
            return rate;
        }
        let round: u128 = self.0.iter().map(|phase| phase.1.as_nanos()).sum();
        let mut left = u128::from(now.nanos()) % round;
        for &(rate, duration) in &self.0 {
            if left < duration.as_nanos() {
                return rate;
            }
            left -= duration.as_nanos();
        }
        unreachable!("the rest of a cycle is shorter than all phases together")
    }
}

/// The bottleneck link.
pub(super) struct Line {
    phases: Phases,
    /// The end of the last packet's transmission.
    free_at: Time,
    /// The time of the last dequeue.
    now: Time,
    leaf: Egress,
}

impl Line {
    pub(super) fn node(phases: Phases, leaf: Box<dyn Discipline>) -> Box<dyn Discipline> {
        Box::new(Node::new(Line {
            phases,
            free_at: Time::ZERO,
            now: Time::ZERO,
            leaf: Egress::new(leaf),
        }))
    }
}

impl Algorithm for Line {
    const NAME: &'static str = "line";
    /// The rates are fixed at construction.
    type Config = ();

    fn enqueue(&mut self, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.leaf.enqueue(packet, now, pool)
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.now = now;
        if now < self.free_at {
            return None;
        }
        let Next::Packet(packet) = self.leaf.dequeue(now, pool) else {
            return None;
        };
        let bits = u64::from(pool[packet].length) * 8;
        // The rate at the start of a transmission is used until its end. A packet takes 1.2 ms at 10 Mbit/s.
        let rate = self.phases.at(now).bits_per_second();
        self.free_at = now + (bits * 1_000_000_000).div_ceil(rate);
        self.leaf.transmits_until(self.free_at);
        Some(packet)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.leaf.root_mut().drain(pool, into);
    }

    fn watchdog(&self) -> Option<Time> {
        if self.leaf.backlog().packets == 0 {
            return None;
        }
        match self.now < self.free_at {
            true => Some(self.free_at),
            false => self.leaf.root().watchdog(),
        }
    }

    fn config(&self) {}

    fn reconfigure(&mut self, (): (), _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(1, self.leaf.root()));
    }

    fn class_mut(&mut self, minor: u16) -> Option<&mut Box<dyn Discipline>> {
        (minor == 1).then_some(self.leaf.root_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::aqm::red::{self, Red};
    use fairgate::queues::fifo::{self, Fifo};
    use fairgate::{Packet, Variable};
    use fairgate_conformance::{RATE, check_driver};

    fn offer(line: &mut Box<dyn Discipline>, now: Time, pool: &mut Pool) {
        let id = pool.insert(Packet::of_length(1250)).unwrap();
        line.enqueue(id, now, pool);
    }

    /// Dequeues all packets. Returns when each packet left, ms.
    fn departures(line: &mut Box<dyn Discipline>, mut now: Time, pool: &mut Pool) -> Vec<u64> {
        let mut left = Vec::new();
        while line.backlog().packets > 0 {
            match line.dequeue(now, pool) {
                Some(_) => left.push(now.nanos() / 1_000_000),
                None => now = line.watchdog().expect("packets are held back"),
            }
        }
        left
    }

    #[test]
    fn packets_leave_at_the_rate_of_the_phase() {
        let mut pool = Pool::with_capacity(16);
        let phases = vec![
            (Rate::mbit(10), Duration::from_millis(3)),
            (Rate::mbit(1), Duration::from_millis(20)),
        ];
        let fifo = Box::new(Fifo::node(fifo::Config::default()).unwrap());
        let mut line = Line::node(Phases::new(phases).unwrap(), fifo);
        for _ in 0..8 {
            offer(&mut line, Time::ZERO, &mut pool);
        }
        // A packet takes 1 ms at 10 Mbit/s and 10 ms at 1 Mbit/s. The phases repeat at 23 ms.
        assert_eq!(
            departures(&mut line, Time::ZERO, &mut pool),
            [0, 1, 2, 3, 13, 23, 24, 25]
        );
        assert!(Phases::new(vec![(Rate::mbit(1), Duration::ZERO)]).is_none());
    }

    #[test]
    fn reds_idle_time_starts_at_the_end_of_the_last_transmission() {
        let average_after = |pause: u64| {
            let mut pool = Pool::with_capacity(64);
            let red = Box::new(Red::node(red::Config::default(), 1).unwrap());
            let mut line = Line::node(Phases::constant(Rate::mbit(10)), red);
            for _ in 0..40 {
                offer(&mut line, Time::ZERO, &mut pool);
            }
            let last = departures(&mut line, Time::ZERO, &mut pool).pop().unwrap();
            offer(&mut line, Time::from_millis(last + 1 + pause), &mut pool);
            let mut average = 0;
            line.visit_classes(&mut |class| {
                class.discipline.visit_variables(&mut |name, value| {
                    if let ("qavg", Variable::Integer(value)) = (name, value) {
                        average = value;
                    }
                });
            });
            average
        };
        assert!(average_after(0) > 0);
        assert_eq!(average_after(20_000), 0);
    }

    /// The link around it takes no time.
    #[test]
    fn the_line_drives_by_the_rules() {
        check_driver(Some(RATE), |discipline, arrivals| {
            let mut pool = Pool::with_capacity(4096);
            let mut line = Line::node(Phases::constant(RATE), discipline);
            let mut began = vec![None; arrivals.len()];
            let mut coming = arrivals.iter().enumerate().peekable();
            let mut due: Option<Time> = None;
            while let Some(now) = due
                .into_iter()
                .chain(coming.peek().map(|(_, packet)| packet.at))
                .min()
            {
                if let Some((number, packet)) = coming.next_if(|(_, packet)| packet.at == now) {
                    let packet = Packet {
                        cookie: number as u64,
                        ..Packet::of_length(packet.length)
                    };
                    let id = pool.insert(packet).unwrap();
                    line.enqueue(id, now, &mut pool);
                }
                while let Some(id) = line.dequeue(now, &mut pool) {
                    began[pool.release(id).cookie as usize] = Some(now);
                }
                while let Some((id, _)) = pool.take_returned() {
                    pool.release(id);
                }
                due = (line.backlog().packets > 0).then(|| line.watchdog()).flatten();
            }
            began
        });
    }
}
