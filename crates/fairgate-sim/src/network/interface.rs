//! One end of a link: the queue in front of it, the line, and the packets that are on their way to the other end.

use fairgate::{Discipline, PacketQueue, Pool, Rate, Time};

use crate::events::Alarm;
use crate::monitor::InterfaceMonitor;
use crate::network::ExactClock;

/// An interface.
pub(crate) struct Interface {
    pub(crate) discipline: Box<dyn Discipline>,
    /// Transmitted, not arrived yet.
    pub(crate) in_flight: PacketQueue,
    /// When the last bit of what is being transmitted has left.
    pub(crate) busy_until: Time,
    /// Nothing is queued, and the discipline has not been asked since it gave its last packet: it does not know yet.
    pub(crate) is_unasked: bool,
    /// Has the queue served.
    pub(crate) alarm: Alarm,
    /// `None` for a line that takes no time.
    line: Option<ExactClock>,
    /// Propagation delay, ns.
    pub(crate) delay: u64,
    /// Bytes that framing adds to a packet.
    pub(crate) overhead: u32,
    pub(crate) rate: Option<Rate>,
    pub(crate) monitor: InterfaceMonitor,
}

impl Interface {
    pub(crate) fn new(
        discipline: Box<dyn Discipline>,
        rate: Option<Rate>,
        delay: u64,
        overhead: u32,
        monitor: InterfaceMonitor,
    ) -> Interface {
        Interface {
            discipline,
            in_flight: PacketQueue::new(),
            busy_until: Time::ZERO,
            is_unasked: false,
            alarm: Alarm::UNSET,
            line: rate.map(ExactClock::new),
            delay,
            overhead,
            rate,
            monitor,
        }
    }

    /// Occupies the line with a packet of `length` bytes from now on.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Time, length: u32) {
        let Some(line) = &mut self.line else {
            self.busy_until = now;
            return;
        };
        if self.busy_until < now {
            line.restart();
        }
        self.busy_until = now + line.advance(length);
    }

    /// Tells the discipline that it has been idle since its last packet left the line, if that is before `now`.
    ///
    /// A device asks until it is told that there is nothing more, and disciplines look at that: RED's average sinks from then on.
    /// As nothing is handed to the discipline in between, that can be made up for when the next packet comes, before it is
    /// queued, and costs no event.
    #[inline]
    pub(crate) fn ask_once_more(&mut self, now: Time, pool: &mut Pool) {
        if std::mem::take(&mut self.is_unasked) && self.busy_until < now {
            let none = self.discipline.dequeue(self.busy_until, pool);
            debug_assert_eq!(none, None, "an empty discipline has no packet");
        }
    }
}
