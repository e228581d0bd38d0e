//! An algorithm with statistics, conservation, and a peek that holds.

use alloc::boxed::Box;
use core::any::Any;
use core::ops::Range;

use super::reconfigure::no_such_class;
use super::sealed::Sealed;
use super::{Algorithm, ByFlow, Class, ClassState, Discipline, Inspect, Reconfigure, Variable, Verdict};
use crate::arrival::Needs;
use crate::class_reading::ClassReading;
use crate::count::Count;
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{Changes, NodeNumber, PacketId, PacketQueue, Pool, TableKind};
use crate::stats::{Counters, Statistics};
use crate::time::Time;

/// An [`Algorithm`] with statistics. This is the only implementation of [`Discipline`].
#[derive(Debug)]
pub struct Node<A> {
    pub(super) algorithm: A,
    pub(super) counters: Counters,
    pub(super) peeked: Peeked,
    pub(super) number: NodeNumber,
}

/// The result of the last peek. The packet is still in the backlog.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Peeked {
    #[default]
    Nothing,
    /// The algorithm's [`first`](Algorithm::first) packet. It is still in the algorithm's queue.
    InPlace(PacketId),
    /// A packet that the algorithm has dequeued.
    TakenOut(PacketId),
}

impl<A: Algorithm> Node<A> {
    /// Adds statistics to an algorithm.
    pub fn new(algorithm: A) -> Node<A> {
        Node {
            algorithm,
            counters: Counters::default(),
            peeked: Peeked::Nothing,
            number: NodeNumber::NONE,
        }
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Returns the algorithm without statistics, for programs that need none.
    pub fn into_algorithm(self) -> A {
        self.algorithm
    }

    /// Changes parameters in place. Afterwards the driver empties [`Pool::take_returned`].
    /// [`Reconfigure::reconfigure`] is the same for a program that does not know the type.
    ///
    /// # Errors
    /// If the discipline rejects the parameters. Nothing has changed then.
    pub fn set_config(&mut self, config: A::Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        if let Peeked::InPlace(_) = self.peeked {
            self.take_out(now, pool);
        }
        let before = pool.changes();
        let result = self.algorithm.reconfigure(config, now, pool);
        self.settle(before, pool);
        result
    }

    /// Counts a packet and lets the algorithm enqueue it.
    #[inline]
    fn take_in(
        &mut self,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
        enqueue: impl FnOnce(&mut A, &mut Pool) -> Verdict,
    ) -> Verdict {
        let packet = &mut pool[id];
        packet.enqueued_at = now;
        self.counters.enqueued(packet.length);
        let before = pool.changes();
        let verdict = enqueue(&mut self.algorithm, pool);
        self.settle(before, pool);
        verdict
    }

    /// Counts a packet that is dequeued, and returns it.
    #[inline]
    fn hand_out(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let packet = &pool[id];
        let sojourn = now.nanos_since(packet.enqueued_at);
        self.counters.dequeued(packet.length, sojourn);
        match pool.is_observed() {
            false => Some(id),
            // The last call, so that nothing has to be kept for what comes after it.
            true => pool.note_departure(&mut self.number, id, sojourn),
        }
    }

    /// Lets the algorithm dequeue a packet, and keeps the packet for the next dequeue.
    fn take_out(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let before = pool.changes();
        let chosen = self.algorithm.dequeue(now, pool);
        self.settle(before, pool);
        self.peeked = chosen.map_or(Peeked::Nothing, Peeked::TakenOut);
        chosen
    }

    pub(super) fn class(&mut self, minor: u32) -> Result<&mut Box<dyn Discipline>, ConfigError> {
        let name = self.algorithm.name();
        self.algorithm
            .class_mut(minor)
            .ok_or_else(|| no_such_class(name, minor))
    }

    /// Counts what was given back and marked during a call.
    #[inline]
    pub(super) fn settle(&mut self, before: Changes, pool: &mut Pool) {
        if pool.changes() != before {
            self.settle_changes(before, pool);
        }
    }

    #[cold]
    fn sent_nothing(&mut self, before: Changes, pool: &mut Pool) -> Option<PacketId> {
        self.settle(before, pool);
        self.counters.sent_nothing();
        None
    }

    #[cold]
    #[inline(never)]
    fn settle_changes(&mut self, before: Changes, pool: &mut Pool) {
        let (returned, marked) = pool.changes().since(before);
        debug_assert!(
            pool.returned().count() as u64 >= u64::from(returned),
            "returned packets must not be taken during a call"
        );
        for (id, reason) in pool.returned().take(returned as usize) {
            self.counters.returned(pool[id].length, reason);
        }
        if pool.keeps_places() {
            pool.note_returned(&mut self.number, returned);
        }
        self.counters.marked(marked);
    }
}

impl<A: ByFlow> Node<A> {
    /// Enqueues a packet of flow `flow`. Afterwards the driver empties [`Pool::take_returned`].
    #[inline]
    pub fn enqueue_flow(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.take_in(id, now, pool, |algorithm, pool| {
            algorithm.enqueue_flow(flow, id, now, pool)
        })
    }
}

impl<A: Algorithm> Sealed for Node<A> {}

impl<A: Algorithm> Discipline for Node<A> {
    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.take_in(id, now, pool, |algorithm, pool| algorithm.enqueue(id, now, pool))
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        if !matches!(self.peeked, Peeked::Nothing)
            && let Peeked::TakenOut(id) = core::mem::take(&mut self.peeked)
        {
            return self.hand_out(id, now, pool);
        }
        let before = pool.changes();
        let Some(id) = self.algorithm.dequeue(now, pool) else {
            return self.sent_nothing(before, pool);
        };
        self.settle(before, pool);
        self.hand_out(id, now, pool)
    }

    #[inline]
    fn idle(&mut self, now: Time, pool: &mut Pool) {
        debug_assert!(self.counters.is_empty(), "a link with packets is not idle");
        let before = pool.changes();
        self.algorithm.idle(now, pool);
        self.settle(before, pool);
    }

    #[inline]
    fn peek(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        match self.peeked {
            Peeked::InPlace(shown) | Peeked::TakenOut(shown) => return Some(shown),
            Peeked::Nothing => {}
        }
        if let Some(first) = self.algorithm.first() {
            self.peeked = Peeked::InPlace(first);
            return Some(first);
        }
        self.take_out(now, pool)
    }

    fn flush(&mut self, pool: &mut Pool) {
        let mut all = PacketQueue::new();
        self.drain(pool, &mut all);
        while let Some(id) = all.pop_front(pool) {
            pool.give_back(id, DropReason::Flushed);
        }
    }

    fn watchdog(&self) -> Option<Time> {
        self.algorithm.watchdog()
    }

    #[inline]
    fn backlog(&self) -> Count {
        self.counters.backlog()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }
}

impl<A: Algorithm> Inspect for Node<A> {
    fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    fn config(&self) -> Box<dyn Any> {
        Box::new(self.algorithm.config())
    }

    fn statistics(&self) -> Statistics {
        self.counters.statistics()
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.algorithm.visit_classes(visit);
    }

    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        self.algorithm.visit_classes_at(places, visit);
    }

    fn read_class_states(
        &self,
        reading: &mut ClassReading,
        most: usize,
        visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        self.algorithm.read_class_states(reading, most, visit)
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        self.algorithm.visit_variables(visit);
    }

    fn needs(&self) -> Needs {
        let mut needs = self.algorithm.needs();
        self.visit_classes(&mut |class| needs |= class.discipline.needs());
        needs
    }

    fn visit_tables(&self, visit: &mut dyn FnMut(TableKind)) {
        let kinds = self.algorithm.tables();
        kinds.into_iter().flatten().for_each(&mut *visit);
        self.visit_classes(&mut |class| class.discipline.visit_tables(visit));
    }

    fn number(&self) -> NodeNumber {
        self.number
    }
}
