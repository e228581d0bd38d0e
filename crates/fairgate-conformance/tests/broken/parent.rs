//! A discipline with one class. It notices when its child drops the packet that is being enqueued, but no
//! other drop. Linux's net/sched has had this bug several times.

use std::any::Any;

use fairgate::discipline::probes::{Sealed, move_packets};
use fairgate::{
    Class, ConfigError, Discipline, DropReason, Heritage, Inspect, PacketId, PacketQueue, Pool, Reconfigure,
    Statistics, Time, Variable, Verdict,
};

pub(crate) struct Forgetful {
    child: Box<dyn Discipline>,
    statistics: Statistics,
}

impl Forgetful {
    pub(crate) fn new(child: Box<dyn Discipline>) -> Forgetful {
        Forgetful {
            child,
            statistics: Statistics::default(),
        }
    }
}

impl Sealed for Forgetful {}

impl Discipline for Forgetful {
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.statistics.enqueued.add(pool[id].length);
        let verdict = self.child.enqueue(id, now, pool);
        if verdict == Verdict::Dropped {
            self.statistics.dropped.add(pool[id].length);
            self.statistics.dropped_by_reason.add(DropReason::QueueLimit);
        }
        verdict
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let next = self.child.dequeue(now, pool);
        if let Some(id) = next {
            self.statistics.dequeued.add(pool[id].length);
            self.statistics.sojourn += now.nanos_since(pool[id].enqueued_at) / Statistics::SOJOURN_UNIT;
        }
        next
    }

    fn peek(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.child.peek(now, pool)
    }

    fn flush(&mut self, pool: &mut Pool) {
        self.statistics.flushed.packets += self.child.backlog().packets;
        self.statistics.flushed.bytes += self.child.backlog().bytes;
        self.child.flush(pool);
    }

    fn watchdog(&self) -> Option<Time> {
        self.child.watchdog()
    }
}

impl Inspect for Forgetful {
    fn name(&self) -> &'static str {
        "forgetful"
    }

    fn config(&self) -> Box<dyn Any> {
        Box::new(())
    }

    fn statistics(&self) -> Statistics {
        self.statistics.clone()
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(1, self.child.as_ref()));
    }

    fn visit_variables(&self, _visit: &mut dyn FnMut(&'static str, Variable)) {}
}

impl Reconfigure for Forgetful {
    fn reconfigure(&mut self, _config: &dyn Any, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        Ok(())
    }

    fn change_class(
        &mut self,
        _minor: u32,
        pool: &mut Pool,
        change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) -> Result<(), ConfigError> {
        change(self.child.as_mut(), pool);
        Ok(())
    }

    fn take_over(&mut self, old: &mut dyn Discipline, _heritage: &Heritage, now: Time, pool: &mut Pool) {
        move_packets(self, old, now, pool);
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.statistics.flushed.packets += self.child.backlog().packets;
        self.statistics.flushed.bytes += self.child.backlog().bytes;
        self.child.drain(pool, into);
    }
}
