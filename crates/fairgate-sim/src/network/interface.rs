//! One end of a link: the queue in front of it, the line, and the packets that are on their way to the other end.

use fairgate::{Discipline, PacketQueue, Rate, Time};

use crate::events::{Event, Events};
use crate::monitor::InterfaceMonitor;
use crate::network::ExactClock;

/// An interface.
pub(crate) struct Interface {
    pub(crate) discipline: Box<dyn Discipline>,
    /// Transmitted, not arrived yet.
    pub(crate) in_flight: PacketQueue,
    /// When the last bit of what is being transmitted has left.
    pub(crate) busy_until: Time,
    /// When the next event to serve the queue is due; [`Time::MAX`] for none. Events at other times are obsolete.
    pub(crate) wake_at: Time,
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
            wake_at: Time::MAX,
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

    /// Has the queue served at `at`, if that isn't to happen earlier anyway.
    #[inline]
    pub(crate) fn wake(&mut self, index: u32, at: Time, events: &mut Events<Event>) {
        if at < self.wake_at {
            self.wake_at = at;
            events.schedule(at, Event::Wake(index));
        }
    }
}
