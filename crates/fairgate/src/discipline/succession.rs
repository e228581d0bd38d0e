//! How a discipline takes the place of another one while packets are queued.
//!
//! The new discipline is built before, on any thread. Then only packets move, and classes that are inherited.
//! A class that is inherited keeps its discipline with all that is in it: queues, statistics, state. The
//! other packets leave the old discipline flow by flow, and are enqueued in that order.
//!
//! A tree of classes that succeeds another one of the same kind also keeps the state of each class
//! ([`Algorithm::succeed`]).

use alloc::boxed::Box;
use core::any::Any;

use super::node::Peeked;
use super::{Algorithm, Discipline, Heritage, Node, Reconfigure};
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::time::Time;

/// Enqueues all packets of `old` in `new`. The sojourn time of a packet continues: it is measured from its
/// arrival at the old discipline.
pub(super) fn move_packets<D: Discipline + ?Sized>(
    new: &mut D,
    old: &mut dyn Discipline,
    now: Time,
    pool: &mut Pool,
) {
    let mut moving = PacketQueue::new();
    old.drain(pool, &mut moving);
    pool.enqueue_moved(moving, |id, pool| {
        new.enqueue(id, now, pool);
    });
}

impl<A: Algorithm> Node<A> {
    /// Takes over all of `old`, if the algorithm knows how. Returns whether it does.
    fn succeed(&mut self, old: &mut Node<A>, kept: &[u32], now: Time, pool: &mut Pool) -> bool {
        let before = pool.changes();
        if !self.algorithm.succeed(&mut old.algorithm, kept, now, pool) {
            return false;
        }
        core::mem::swap(&mut self.counters, &mut old.counters);
        self.peeked = core::mem::take(&mut old.peeked);
        self.number = old.number;
        self.settle(before, pool);
        true
    }
}

impl<A: Algorithm> Reconfigure for Node<A> {
    fn reconfigure(&mut self, config: &dyn Any, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let config = config
            .downcast_ref::<A::Config>()
            .ok_or(ConfigError::WrongDiscipline {
                discipline: self.algorithm.name(),
            })?
            .clone();
        self.set_config(config, now, pool)
    }

    fn change_class(
        &mut self,
        minor: u32,
        pool: &mut Pool,
        change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) -> Result<(), ConfigError> {
        let before = pool.changes();
        change(self.class(minor)?.as_mut(), pool);
        self.settle(before, pool);
        Ok(())
    }

    fn succeed_class(
        &mut self,
        minor: u32,
        mut child: Box<dyn Discipline>,
        heritage: &Heritage,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Box<dyn Discipline>, ConfigError> {
        let before = pool.changes();
        let current = self.class(minor)?;
        child.take_over(current.as_mut(), heritage, now, pool);
        let old = core::mem::replace(current, child);
        self.algorithm.class_replaced(minor, now, pool);
        self.settle(before, pool);
        Ok(old)
    }

    fn exchange_class(
        &mut self,
        minor: u32,
        child: &mut Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError> {
        let before = pool.changes();
        let current = self.class(minor)?;
        core::mem::swap(current, child);
        let got = current.backlog();
        self.counters.moved(child.backlog());
        self.counters.got(got);
        self.algorithm.class_replaced(minor, now, pool);
        self.settle(before, pool);
        Ok(())
    }

    fn take_over(&mut self, old: &mut dyn Discipline, heritage: &Heritage, now: Time, pool: &mut Pool) {
        if heritage.statistics
            && let Some(old) = old.as_any_mut().and_then(|old| old.downcast_mut())
            && self.succeed(old, &heritage.classes, now, pool)
        {
            return;
        }
        if heritage.statistics {
            self.counters.continue_from(&old.statistics());
        }
        // The packet was chosen from a queue that may be inherited, whose other packets are behind it. So it
        // stays chosen.
        if !heritage.classes.is_empty()
            && let Some(chosen) = old.take_chosen(pool)
        {
            if !heritage.statistics {
                self.counters.enqueued(pool[chosen].length);
            }
            self.peeked = Peeked::TakenOut(chosen);
        }
        for &minor in &heritage.classes {
            let before = pool.changes();
            let child = self.class(minor).expect("an inherited class exists");
            old.exchange_class(minor, child, now, pool)
                .expect("an inherited class existed");
            let count = child.backlog();
            if !heritage.statistics {
                self.counters.got(count);
            }
            self.algorithm.class_replaced(minor, now, pool);
            self.settle(before, pool);
        }
        if !heritage.statistics {
            return move_packets(self, old, now, pool);
        }
        let mut moving = PacketQueue::new();
        old.drain(pool, &mut moving);
        pool.enqueue_moved(moving, |id, pool| {
            pool[id].enqueued_at = now;
            let before = pool.changes();
            self.algorithm.enqueue(id, now, pool);
            self.settle(before, pool);
        });
    }

    fn prepare_to_take_over(&mut self, old: &dyn Any) {
        if let Some(old) = old.downcast_ref() {
            self.algorithm.prepare_to_succeed(old);
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        // A table of a million flows is not looked through for nothing while packets wait.
        if self.backlog().packets == 0 {
            return;
        }
        let mut own = PacketQueue::new();
        if let Peeked::TakenOut(peeked) = core::mem::take(&mut self.peeked) {
            own.push_back(peeked, pool);
        }
        self.algorithm.drain(pool, &mut own);
        self.counters.moved(own.count());
        own.append_to(into, pool);
    }

    fn take_chosen(&mut self, pool: &mut Pool) -> Option<PacketId> {
        match core::mem::take(&mut self.peeked) {
            Peeked::TakenOut(id) => {
                let mut one = PacketQueue::new();
                one.push_back(id, pool);
                self.counters.moved(one.count());
                one.pop_front(pool)
            }
            // It is still the first of its queue.
            Peeked::InPlace(_) | Peeked::Nothing => None,
        }
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Reconfigure, Verdict};
    use crate::packet::Packet;
    use crate::queues::fifo::{self, Fifo};
    use crate::testing::Driver;

    /// One packet, in a table that takes long to look through.
    #[derive(Default)]
    struct Slow {
        packet: Option<PacketId>,
        looked_through: u32,
    }

    impl Algorithm for Slow {
        const NAME: &'static str = "slow";
        type Config = ();

        fn enqueue(&mut self, packet: PacketId, _now: Time, _pool: &mut Pool) -> Verdict {
            self.packet = Some(packet);
            Verdict::Queued
        }

        fn dequeue(&mut self, _now: Time, _pool: &mut Pool) -> Option<PacketId> {
            self.packet.take()
        }

        fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
            self.looked_through += 1;
            into.push_back(self.packet.take().expect("something is queued"), pool);
        }

        fn config(&self) {}

        fn reconfigure(&mut self, (): (), _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
            Ok(())
        }
    }

    #[test]
    fn a_discipline_without_packets_is_not_looked_through() {
        let mut driver = Driver::new(Node::new(Slow::default()));
        let fresh = || Fifo::node(fifo::Config::default()).expect("the default is valid");
        driver.root.flush(&mut driver.pool);
        fresh().take_over(
            &mut driver.root,
            &Heritage::default(),
            Time::ZERO,
            &mut driver.pool,
        );
        assert_eq!(driver.root.algorithm.looked_through, 0);
        driver.offer(Packet::of_length(100), Time::ZERO);
        let mut next = fresh();
        next.take_over(
            &mut driver.root,
            &Heritage::default(),
            Time::ZERO,
            &mut driver.pool,
        );
        assert_eq!(driver.root.algorithm.looked_through, 1);
        assert_eq!(next.backlog().packets, 1);
    }
}
