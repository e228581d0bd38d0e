//! A root discipline, and the rules for calling it.
//!
//! A driver must follow three rules. A driver that forgot the second one gave wrong results for RED.
//! [`Egress`] follows them for all drivers.
//!
//! * A discipline that throttles returns the time to call it again ([`Discipline::watchdog`]).
//! * After a discipline has sent its last packet, it is called once more when the link is idle, as a network
//!   device does. Disciplines use this call: RED's average decays from then on, and CoDel leaves its dropping
//!   state.
//! * Enqueue and dequeue can drop packets. The driver takes them out of the pool after each call.
//!
//! The simulator uses one [`Egress`] per interface and one pool for the whole network. A driver with its own
//! pool uses a [`Link`](crate::Link), which adds the pool and a payload for each packet.

use core::ops::DerefMut;

use alloc::boxed::Box;

use crate::count::Count;
use crate::discipline::{Discipline, Verdict};
use crate::pool::{PacketId, Pool};
use crate::time::Time;

/// The result of a dequeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<P> {
    /// Transmit this packet now.
    Packet(P),
    /// Packets are queued, but none may be sent before this time. It is [`Time::MAX`] if the discipline
    /// returned no time. That violates its contract, and it can only be called again after an enqueue.
    Wait(Time),
    /// Nothing is queued.
    Idle,
}

impl<P> Next<P> {
    /// Whether nothing is queued.
    #[inline]
    pub fn is_idle(&self) -> bool {
        matches!(self, Next::Idle)
    }

    /// Returns the packet, if there is one.
    #[inline]
    pub fn packet(self) -> Option<P> {
        match self {
            Next::Packet(packet) => Some(packet),
            Next::Wait(_) | Next::Idle => None,
        }
    }
}

/// No call at the idle time is pending.
const NOT_OWED: Time = Time::MAX;

/// A root discipline with the state of its link.
///
/// `D` owns or borrows the discipline: `Box<dyn Discipline>`, `&mut dyn Discipline`, `Box<Node<Codel>>`.
#[derive(Debug)]
pub struct Egress<D = Box<dyn Discipline>> {
    root: D,
    /// The link is idle from this time, and the discipline has not been called since.
    idle_from: Time,
}

impl<D: DerefMut<Target: Discipline>> Egress<D> {
    /// Returns an egress with the discipline `root`.
    pub fn new(root: D) -> Egress<D> {
        Egress {
            root,
            idle_from: NOT_OWED,
        }
    }

    /// Enqueues a packet of `pool` at `now`. Afterwards the driver empties [`Pool::take_returned`].
    #[inline]
    pub fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if self.idle_from < now {
            self.ask_idle(pool);
        }
        self.idle_from = NOT_OWED;
        self.root.enqueue(id, now, pool)
    }

    /// Dequeues the next packet at `now`, when the link is free. Afterwards the driver empties
    /// [`Pool::take_returned`], transmits the packet and releases it.
    #[inline]
    pub fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Next<PacketId> {
        match self.root.dequeue(now, pool) {
            Some(id) => Next::Packet(id),
            None => self.without_packet(now),
        }
    }

    // Not inlined, so that a packet that leaves keeps its registers.
    #[inline(never)]
    fn without_packet(&mut self, now: Time) -> Next<PacketId> {
        if self.is_empty() {
            self.idle_from = NOT_OWED;
            return Next::Idle;
        }
        Next::Wait(match self.root.watchdog() {
            Some(until) => until.max(now + 1),
            None => Time::MAX,
        })
    }

    /// Reports that the link transmits the packet of the last dequeue until `end`. Returns whether more
    /// packets are queued.
    ///
    /// If it returns true, the driver calls `dequeue` at `end`. If it returns false, the driver need not: the
    /// next enqueue after `end` first tells the discipline that the link was idle since `end`. A driver that
    /// always calls `dequeue` at `end` need not call this function.
    #[inline]
    pub fn transmits_until(&mut self, end: Time) -> bool {
        let is_empty = self.is_empty();
        if is_empty {
            self.idle_from = end;
        }
        !is_empty
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Makes the pending call for the time at which the link became idle. Nothing was enqueued since then.
    fn ask_idle(&mut self, pool: &mut Pool) {
        self.root.idle(self.idle_from, pool);
    }

    /// Returns the backlog.
    #[inline]
    pub fn backlog(&self) -> Count {
        self.root.backlog()
    }

    /// Returns the discipline.
    #[inline]
    pub fn root(&self) -> &D::Target {
        &self.root
    }

    /// Returns the discipline, to reconfigure, flush or replace it. Packets must go through
    /// [`enqueue`](Egress::enqueue) and [`dequeue`](Egress::dequeue).
    #[inline]
    pub fn root_mut(&mut self) -> &mut D {
        &mut self.root
    }
}
