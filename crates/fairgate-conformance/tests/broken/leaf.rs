//! A fifo of 20 packets that is correct except for one bug.

use std::any::Any;
use std::collections::VecDeque;
use std::hint::black_box;

use fairgate::discipline::probes::{Sealed, move_packets};
use fairgate::{
    Class, ConfigError, Discipline, DropReason, Ecn, Heritage, Inspect, PacketId, PacketQueue, Pool,
    Reconfigure, Statistics, Time, Variable, Verdict,
};

const LIMIT: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bug {
    None,
    /// Every third packet is neither queued nor returned.
    Leaks,
    /// A dequeued packet is dequeued once more.
    ReturnsTwice,
    /// A peek shows the newest packet.
    LyingPeek,
    /// An arrival drops the packet that a peek has shown.
    DropsShown,
    /// The statistics count one byte too many for each dequeued packet.
    DriftsInBytes,
    /// The statistics do not count flushed packets.
    ForgetsFlush,
    /// The newest packet leaves first.
    Reorders,
    /// Sends nothing and has no watchdog.
    Withholds,
    /// Sends nothing, and its watchdog is now.
    WakesAtOnce,
    /// Sends nothing, and its watchdog is always a microsecond later.
    NeverWakes,
    /// Allocates at each dequeue.
    Allocates,
    /// Drops packets depending on their slot.
    DependsOnSlots,
    /// Marks packets that are not ECN-capable.
    MarksIncapable,
    /// Returns the verdict that a dropped packet is queued.
    WrongVerdict,
    /// Keeps its packets when flushed.
    KeepsOnFlush,
    /// Rejects new parameters, but drops a packet.
    DropsOnRefusal,
    /// Loses the arrival time.
    LosesArrival,
}

pub(crate) struct Leaf {
    bug: Bug,
    queue: VecDeque<PacketId>,
    statistics: Statistics,
    /// Whether a peek has shown the first packet.
    shown: bool,
    /// The packet that was dequeued last.
    departed: Option<PacketId>,
    now: Time,
}

impl Leaf {
    pub(crate) fn new(bug: Bug) -> Leaf {
        Leaf {
            bug,
            queue: VecDeque::with_capacity(LIMIT),
            statistics: Statistics::default(),
            shown: false,
            departed: None,
            now: Time::ZERO,
        }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn is_shut(&self) -> bool {
        self.has(Bug::Withholds) || self.has(Bug::WakesAtOnce) || self.has(Bug::NeverWakes)
    }

    fn drop(&mut self, id: PacketId, reason: DropReason, pool: &mut Pool) {
        self.statistics.dropped.add(pool[id].length);
        self.statistics.dropped_by_reason.add(reason);
        pool.give_back(id, reason);
    }
}

impl Sealed for Leaf {}

impl Discipline for Leaf {
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        pool[id].enqueued_at = now;
        self.statistics.enqueued.add(pool[id].length);
        if self.has(Bug::Leaks) && self.statistics.enqueued.packets.is_multiple_of(3) {
            return Verdict::Queued;
        }
        if self.has(Bug::MarksIncapable) {
            pool[id].ecn = Ecn::Ce;
        }
        if self.queue.len() == LIMIT {
            self.drop(id, DropReason::QueueLimit, pool);
            return match self.has(Bug::WrongVerdict) {
                true => Verdict::Queued,
                false => Verdict::Dropped,
            };
        }
        if self.has(Bug::DropsShown)
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
            self.statistics.overlimits += u64::from(!self.queue.is_empty());
            return None;
        }
        if self.has(Bug::ReturnsTwice) && self.departed.is_some() {
            return self.departed.take();
        }
        if self.has(Bug::DependsOnSlots)
            && let Some(first) = self.queue.pop_front_if(|id| id.index().is_multiple_of(2))
        {
            self.drop(first, DropReason::Aqm, pool);
        }
        let next = match self.has(Bug::Reorders) {
            true => self.queue.pop_back(),
            false => self.queue.pop_front(),
        }?;
        self.statistics.dequeued.add(pool[next].length);
        self.statistics.sojourn += now.nanos_since(pool[next].enqueued_at) / Statistics::SOJOURN_UNIT;
        if self.has(Bug::DriftsInBytes) {
            self.statistics.dequeued.bytes += 1;
        }
        if self.has(Bug::Allocates) {
            black_box(Box::new(next));
        }
        if self.has(Bug::LosesArrival) {
            pool[next].enqueued_at = now;
        }
        self.departed = Some(next);
        Some(next)
    }

    fn peek(&mut self, now: Time, _pool: &mut Pool) -> Option<PacketId> {
        self.now = now;
        self.shown = true;
        let shown = match self.has(Bug::LyingPeek) {
            true => self.queue.back(),
            false => self.queue.front(),
        };
        shown.filter(|_| !self.is_shut()).copied()
    }

    fn flush(&mut self, pool: &mut Pool) {
        if self.has(Bug::KeepsOnFlush) {
            return;
        }
        while let Some(id) = self.queue.pop_front() {
            if !self.has(Bug::ForgetsFlush) {
                self.statistics.flushed.add(pool[id].length);
            }
            pool.give_back(id, DropReason::Flushed);
        }
        self.shown = false;
    }

    fn watchdog(&self) -> Option<Time> {
        match self.bug {
            Bug::WakesAtOnce => Some(self.now),
            Bug::NeverWakes => Some(self.now + 1_000),
            _ => None,
        }
    }
}

impl Inspect for Leaf {
    fn name(&self) -> &'static str {
        "leaf"
    }

    fn config(&self) -> Box<dyn Any> {
        Box::new(self.bug)
    }

    fn statistics(&self) -> Statistics {
        self.statistics.clone()
    }

    fn visit_classes(&self, _visit: &mut dyn FnMut(Class<'_>)) {}

    fn visit_variables(&self, _visit: &mut dyn FnMut(&'static str, Variable)) {}
}

impl Reconfigure for Leaf {
    fn reconfigure(&mut self, _config: &dyn Any, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        if self.has(Bug::DropsOnRefusal)
            && let Some(id) = self.queue.pop_back()
        {
            self.drop(id, DropReason::Reconfigured, pool);
        }
        Err(ConfigError::out_of_range("bug", "new", "the old one", "leave it"))
    }

    fn change_class(
        &mut self,
        _minor: u32,
        _pool: &mut Pool,
        _change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) -> Result<(), ConfigError> {
        unreachable!("there are no classes")
    }

    fn take_over(&mut self, old: &mut dyn Discipline, _heritage: &Heritage, now: Time, pool: &mut Pool) {
        move_packets(self, old, now, pool);
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        while let Some(id) = self.queue.pop_front() {
            self.statistics.flushed.add(pool[id].length);
            into.push_back(id, pool);
        }
    }
}
