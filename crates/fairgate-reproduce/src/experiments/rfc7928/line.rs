//! The bottleneck's line: a rate that may change by the clock, where a simulated link has one for ever.
//!
//! Like a link, it goes on asking until it is told that there is nothing more, and disciplines look at that: RED's average sinks, and
//! CoDel's state ends, from when the queue was found empty. That is made up for before the next packet is handed in.
//!
//! A packet leaves at the start of its transmission, which takes it no time: the link that this stands in has no rate of its own.

use std::time::Duration;

use fairgate::{
    Algorithm, Class, ConfigError, Discipline, Node, PacketId, PacketQueue, Pool, Rate, Time, Verdict,
};

/// Rates, each for a while, over and over. One alone is for ever.
#[derive(Clone, Debug)]
pub(super) struct Phases(Vec<(Rate, Duration)>);

impl Phases {
    /// A rate that does not change.
    pub(super) fn constant(rate: Rate) -> Phases {
        Phases(vec![(rate, Duration::MAX)])
    }

    /// These in turn; `None` if there are none, or one takes no time.
    pub(super) fn new(phases: Vec<(Rate, Duration)>) -> Option<Phases> {
        let sound = !phases.is_empty() && phases.iter().all(|phase| !phase.1.is_zero());
        sound.then_some(Phases(phases))
    }

    /// The greatest.
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
        unreachable!("what is left of a round is shorter than its phases together")
    }
}

/// The line.
pub(super) struct Line {
    phases: Phases,
    /// When the last packet's transmission ends.
    free_at: Time,
    /// When it was asked for a packet last.
    now: Time,
    leaf: Box<dyn Discipline>,
}

impl Line {
    pub(super) fn node(phases: Phases, leaf: Box<dyn Discipline>) -> Box<dyn Discipline> {
        Box::new(Node::new(Line {
            phases,
            free_at: Time::ZERO,
            now: Time::ZERO,
            leaf,
        }))
    }
}

impl Algorithm for Line {
    const NAME: &'static str = "line";
    /// Its rates are fixed at construction.
    type Config = ();

    fn enqueue(&mut self, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let idle_from = self.free_at.max(self.now);
        if self.leaf.backlog().packets == 0 && idle_from < now {
            let none = self.leaf.dequeue(idle_from, pool);
            assert!(none.is_none(), "an empty discipline has no packet");
        }
        self.leaf.enqueue(packet, now, pool)
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.now = now;
        if now < self.free_at {
            return None;
        }
        let packet = self.leaf.dequeue(now, pool)?;
        let bits = u64::from(pool[packet].length) * 8;
        // The rate at which it begins is the one at which it ends: a packet at 10 Mbit/s takes 1.2 ms.
        let rate = self.phases.at(now).bits_per_second();
        self.free_at = now + (bits * 1_000_000_000).div_ceil(rate);
        Some(packet)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.leaf.drain(pool, into);
    }

    fn watchdog(&self) -> Option<Time> {
        if self.leaf.backlog().packets == 0 {
            return None;
        }
        match self.now < self.free_at {
            true => Some(self.free_at),
            false => self.leaf.watchdog(),
        }
    }

    fn config(&self) {}

    fn reconfigure(&mut self, (): (), _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(1, &*self.leaf));
    }

    fn class_mut(&mut self, minor: u16) -> Option<&mut Box<dyn Discipline>> {
        (minor == 1).then_some(&mut self.leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::aqm::red::{self, Red};
    use fairgate::queues::fifo::{self, Fifo};
    use fairgate::{Packet, Variable};

    fn offer(line: &mut Box<dyn Discipline>, now: Time, pool: &mut Pool) {
        let id = pool.insert(Packet::of_length(1250)).unwrap();
        let _ = line.enqueue(id, now, pool);
    }

    /// Takes everything out; when each packet left, ms.
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
        // 1 ms each at 10 Mbit/s, 10 at 1 Mbit/s; the second round begins at 23 ms.
        assert_eq!(
            departures(&mut line, Time::ZERO, &mut pool),
            [0, 1, 2, 3, 13, 23, 24, 25]
        );
        assert!(Phases::new(vec![(Rate::mbit(1), Duration::ZERO)]).is_none());
    }

    #[test]
    fn reds_queue_is_idle_from_the_end_of_the_last_transmission() {
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
}
