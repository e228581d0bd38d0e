//! One end of a link: its queue, the transmitter, and the packets in flight to the other end.

use fairgate::{Discipline, Egress, PacketQueue, Rate, Time};

use crate::events::Alarm;
use crate::monitor::InterfaceMonitor;
use crate::network::ExactClock;

/// An interface.
pub(crate) struct Interface {
    pub(crate) egress: Egress,
    /// Transmitted, not arrived yet.
    pub(crate) in_flight: PacketQueue,
    /// When the last bit of what is being transmitted has left.
    pub(crate) busy_until: Time,
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
            egress: Egress::new(discipline),
            in_flight: PacketQueue::new(),
            busy_until: Time::ZERO,
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
}
