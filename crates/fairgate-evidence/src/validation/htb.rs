//! The bottleneck of the recordings: a single class of Linux's htb with a leaf.
//!
//! Unlike tbf, htb sends while its tokens are not negative, and the packet reduces them below zero. So a
//! packet leaves at the start of its serialisation, and after a pause a second one leaves immediately. htb
//! never dequeues from an empty leaf. RED lowers its average from the first dequeue that finds the queue
//! empty, so here RED never notices that its queue is idle.

use fairgate::queues::token_bucket::TokenBucket;
use fairgate::{
    Algorithm, Class, ConfigError, Discipline, Node, PacketId, PacketQueue, Pool, Rate, Time, Verdict,
};

/// The only class of an htb.
pub(super) struct HtbClass {
    bucket: TokenBucket,
    /// The time at which the tokens were last reduced.
    paid_at: Time,
    now: Time,
    leaf: Box<dyn Discipline>,
}

impl HtbClass {
    /// Returns a class with this rate and burst (in bytes), and a full bucket.
    pub(super) fn node(rate: Rate, burst: u32, leaf: Box<dyn Discipline>) -> Box<dyn Discipline> {
        Box::new(Node::new(HtbClass {
            bucket: TokenBucket::full(rate, burst),
            paid_at: Time::ZERO,
            now: Time::ZERO,
            leaf,
        }))
    }

    fn tokens(&self, now: Time) -> i64 {
        self.bucket.after(now - self.paid_at, 0)
    }
}

impl Algorithm for HtbClass {
    const NAME: &'static str = "htb_class";
    /// Rate and burst are fixed at construction.
    type Config = ();

    fn enqueue(&mut self, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.leaf.enqueue(packet, now, pool)
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.now = now;
        if self.leaf.backlog().packets == 0 || self.tokens(now) < 0 {
            return None;
        }
        let packet = self.leaf.dequeue(now, pool)?;
        self.bucket
            .set(self.bucket.after(now - self.paid_at, pool[packet].length));
        self.paid_at = now;
        Some(packet)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.leaf.drain(pool, into);
    }

    fn watchdog(&self) -> Option<Time> {
        let missing = self.tokens(self.now).min(0).unsigned_abs();
        (self.leaf.backlog().packets > 0).then(|| self.now + missing)
    }

    fn config(&self) {}

    fn reconfigure(&mut self, (): (), _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(1, &*self.leaf));
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        (minor == 1).then_some(&mut self.leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::aqm::red::{self, Red};
    use fairgate::queues::fifo::{Config, Fifo};
    use fairgate::{Packet, Variable};

    #[test]
    fn two_packets_leave_at_once_and_then_one_per_serialisation_time() {
        let mut pool = Pool::with_capacity(8);
        let fifo = Box::new(Fifo::node(Config::default()).unwrap());
        let mut class = HtbClass::node(Rate::mbit(10), 1600, fifo);
        for _ in 0..4 {
            let id = pool.insert(Packet::of_length(1514)).unwrap();
            class.enqueue(id, Time::ZERO, &mut pool);
        }
        let mut now = Time::ZERO;
        let mut left = Vec::new();
        while class.backlog().packets > 0 {
            match class.dequeue(now, &mut pool) {
                Some(_) => left.push(now.nanos()),
                None => now = class.watchdog().expect("packets are held back"),
            }
        }
        // The burst of 1600 bytes suffices for the first packet. The second one makes the tokens negative.
        assert_eq!(left[..2], [0, 0]);
        assert_eq!(left[2], 2 * 1_211_200 - 1_280_000);
        assert_eq!(left[3] - left[2], 1_211_200);
    }

    /// Returns RED's average, in RED's own unit.
    fn average(class: &dyn Discipline) -> i64 {
        let mut average = None;
        class.visit_classes(&mut |class| {
            class.discipline.visit_variables(&mut |name, value| {
                if let ("qavg", Variable::Integer(value)) = (name, value) {
                    average = Some(value);
                }
            });
        });
        average.expect("red has the variable")
    }

    #[test]
    fn an_empty_leaf_is_not_dequeued_so_reds_average_survives_a_pause() {
        let mut pool = Pool::with_capacity(32);
        let red = Box::new(Red::node(red::Config::default(), 1).unwrap());
        let mut class = HtbClass::node(Rate::mbit(10), 1600, red);
        for _ in 0..20 {
            let id = pool.insert(Packet::of_length(1514)).unwrap();
            class.enqueue(id, Time::ZERO, &mut pool);
        }
        let before = average(&*class);
        let mut now = Time::ZERO;
        while class.backlog().packets > 0 {
            if class.dequeue(now, &mut pool).is_none() {
                now = class.watchdog().expect("packets are held back");
            }
        }
        // The leaf is empty, the tokens are back, and the class is asked.
        assert!(class.dequeue(now + 10_000_000, &mut pool).is_none());
        let later = now + 10_000_000_000;
        let id = pool.insert(Packet::of_length(1514)).unwrap();
        class.enqueue(id, later, &mut pool);
        // The average has one more sample of an empty queue, and no ten seconds of idle time.
        let after = average(&*class);
        assert!(after > before / 2, "{before} became {after}");
    }
}
