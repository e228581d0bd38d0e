//! A fifo of 20 packets, correct but for one fault.

use std::any::Any;
use std::collections::VecDeque;
use std::hint::black_box;

use fairgate::{
    Class, ConfigError, Discipline, DropReason, Ecn, PacketId, PacketQueue, Pool, Statistics, Time, Variable,
    Verdict,
};

const LIMIT: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// Every third packet is neither queued nor given back.
    Leaks,
    /// A departed packet leaves once more.
    ReturnsTwice,
    /// A peek shows the newest packet.
    LyingPeek,
    /// An arrival pushes out the packet that a peek has shown.
    DropsShown,
    /// The books count a byte too many for each departure.
    DriftsInBytes,
    /// The books miss what a flush gave back.
    ForgetsFlush,
    /// The newest packet leaves first.
    Reorders,
    /// Sends nothing, and has no watchdog.
    Withholds,
    /// Sends nothing, and wants to be asked again at once.
    WakesAtOnce,
    /// Sends nothing, and wants to be asked again in a microsecond.
    NeverWakes,
    /// Allocates at each departure.
    Allocates,
    /// Drops packets by the slot that they sit in.
    DependsOnSlots,
    /// Marks packets that can't do ECN.
    MarksIncapable,
    /// Says that a dropped packet is queued.
    WrongVerdict,
    /// Keeps its packets when flushed.
    KeepsOnFlush,
    /// Refuses new parameters, but gives a packet back.
    DropsOnRefusal,
    /// Loses the time of arrival.
    LosesArrival,
}

pub(crate) struct Leaf {
    fault: Fault,
    queue: VecDeque<PacketId>,
    books: Statistics,
    /// Shown by a peek.
    shown: bool,
    /// What departed last.
    departed: Option<PacketId>,
    now: Time,
}

impl Leaf {
    pub(crate) fn new(fault: Fault) -> Leaf {
        Leaf {
            fault,
            queue: VecDeque::with_capacity(LIMIT),
            books: Statistics::default(),
            shown: false,
            departed: None,
            now: Time::ZERO,
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn is_shut(&self) -> bool {
        self.has(Fault::Withholds) || self.has(Fault::WakesAtOnce) || self.has(Fault::NeverWakes)
    }

    fn drop(&mut self, id: PacketId, reason: DropReason, pool: &mut Pool) {
        self.books.dropped.add(pool[id].length);
        self.books.dropped_by_reason[reason as usize] += 1;
        pool.give_back(id, reason);
    }
}

impl Discipline for Leaf {
    fn name(&self) -> &'static str {
        "leaf"
    }

    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        pool[id].enqueued_at = now;
        self.books.enqueued.add(pool[id].length);
        if self.has(Fault::Leaks) && self.books.enqueued.packets.is_multiple_of(3) {
            return Verdict::Queued;
        }
        if self.has(Fault::MarksIncapable) {
            pool[id].ecn = Ecn::Ce;
        }
        if self.queue.len() == LIMIT {
            self.drop(id, DropReason::QueueLimit, pool);
            return match self.has(Fault::WrongVerdict) {
                true => Verdict::Queued,
                false => Verdict::Dropped,
            };
        }
        if self.has(Fault::DropsShown)
            && self.shown
            && let Some(first) = self.queue.pop_front()
        {
            self.drop(first, DropReason::HeadDrop, pool);
        }
        self.queue.push_back(id);
        Verdict::Queued
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.now = now;
        self.shown = false;
        if self.is_shut() {
            self.books.overlimits += u64::from(!self.queue.is_empty());
            return None;
        }
        if self.has(Fault::ReturnsTwice) && self.departed.is_some() {
            return self.departed.take();
        }
        if self.has(Fault::DependsOnSlots)
            && let Some(first) = self.queue.pop_front_if(|id| id.index().is_multiple_of(2))
        {
            self.drop(first, DropReason::Aqm, pool);
        }
        let next = match self.has(Fault::Reorders) {
            true => self.queue.pop_back(),
            false => self.queue.pop_front(),
        }?;
        self.books.dequeued.add(pool[next].length);
        self.books.sojourn += now.nanos_since(pool[next].enqueued_at) / Statistics::SOJOURN_UNIT;
        if self.has(Fault::DriftsInBytes) {
            self.books.dequeued.bytes += 1;
        }
        if self.has(Fault::Allocates) {
            black_box(Box::new(next));
        }
        if self.has(Fault::LosesArrival) {
            pool[next].enqueued_at = now;
        }
        self.departed = Some(next);
        Some(next)
    }

    fn peek(&mut self, now: Time, _pool: &mut Pool) -> Option<PacketId> {
        self.now = now;
        self.shown = true;
        let shown = match self.has(Fault::LyingPeek) {
            true => self.queue.back(),
            false => self.queue.front(),
        };
        shown.filter(|_| !self.is_shut()).copied()
    }

    fn flush(&mut self, pool: &mut Pool) {
        if self.has(Fault::KeepsOnFlush) {
            return;
        }
        while let Some(id) = self.queue.pop_front() {
            if !self.has(Fault::ForgetsFlush) {
                self.books.flushed.add(pool[id].length);
            }
            pool.give_back(id, DropReason::Flushed);
        }
        self.shown = false;
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        while let Some(id) = self.queue.pop_front() {
            self.books.flushed.add(pool[id].length);
            into.push_back(id, pool);
        }
    }

    fn watchdog(&self) -> Option<Time> {
        match self.fault {
            Fault::WakesAtOnce => Some(self.now),
            Fault::NeverWakes => Some(self.now + 1_000),
            _ => None,
        }
    }

    fn reconfigure(&mut self, _config: &dyn Any, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        if self.has(Fault::DropsOnRefusal)
            && let Some(id) = self.queue.pop_back()
        {
            self.drop(id, DropReason::Reconfigured, pool);
        }
        Err(ConfigError::out_of_range(
            "fault",
            "new",
            "the old one",
            "leave it",
        ))
    }

    fn replace_class(
        &mut self,
        _minor: u16,
        _child: Box<dyn Discipline>,
        _now: Time,
        _pool: &mut Pool,
    ) -> Result<(), ConfigError> {
        unreachable!("there are no classes")
    }

    fn statistics(&self) -> Statistics {
        self.books.clone()
    }

    fn visit_classes(&self, _visit: &mut dyn FnMut(Class<'_>)) {}

    fn change_class(
        &mut self,
        _minor: u16,
        _pool: &mut Pool,
        _change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) -> Result<(), ConfigError> {
        unreachable!("there are no classes")
    }

    fn visit_variables(&self, _visit: &mut dyn FnMut(&'static str, Variable)) {}

    fn config(&self) -> Box<dyn Any> {
        Box::new(self.fault)
    }
}
