//! A root discipline and the rules of driving it.
//!
//! Every driver obeys three rules, and each was broken by a driver once. [`Egress`] obeys them for all.
//!
//! * A discipline that holds packets back names the time to ask again ([`Discipline::watchdog`]).
//! * A discipline that sent its last packet is asked once more when the link is idle, as a network device does.
//!   Disciplines use this call: RED's average decays from then on, and CoDel leaves its dropping state.
//! * An enqueue and a dequeue may drop packets. The driver takes them out of the pool after each call.
//!
//! The simulator's interfaces use an [`Egress`] each over one pool for the whole network. A driver with a pool of its
//! own uses a [`Link`](crate::Link), which adds the pool and a payload for each packet.

use core::ops::DerefMut;

use alloc::boxed::Box;

use crate::discipline::{Discipline, Verdict};
use crate::pool::{PacketId, Pool};
use crate::stats::Count;
use crate::time::Time;

/// The answer to a dequeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<P> {
    /// Transmit this packet now.
    Packet(P),
    /// Packets are queued, and none may be sent before this time. [`Time::MAX`] if the discipline named no time: this
    /// breaks its contract, and only an enqueue can help.
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

    /// The packet, if there is one.
    #[inline]
    pub fn packet(self) -> Option<P> {
        match self {
            Next::Packet(packet) => Some(packet),
            Next::Wait(_) | Next::Idle => None,
        }
    }

    /// The same answer with the packet changed by `change`.
    #[inline]
    pub fn map<Q>(self, change: impl FnOnce(P) -> Q) -> Next<Q> {
        match self {
            Next::Packet(packet) => Next::Packet(change(packet)),
            Next::Wait(until) => Next::Wait(until),
            Next::Idle => Next::Idle,
        }
    }
}

/// No dequeue is owed.
const NOT_OWED: Time = Time::MAX;

/// A root discipline, driven.
///
/// `D` owns or borrows the discipline: `Box<dyn Discipline>`, `&mut dyn Discipline`, `Box<Node<Codel>>`.
#[derive(Debug)]
pub struct Egress<D = Box<dyn Discipline>> {
    root: D,
    /// The last dequeue took the last packet.
    is_drained: bool,
    /// The link is idle from this time on, and the discipline has not been asked since.
    idle_from: Time,
}

impl<D: DerefMut<Target: Discipline>> Egress<D> {
    /// Drives `root`.
    pub fn new(root: D) -> Egress<D> {
        Egress {
            root,
            is_drained: false,
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

    /// Asks for the next packet at `now`, when the link is free. Afterwards the driver empties
    /// [`Pool::take_returned`], transmits the packet and releases it.
    #[inline]
    pub fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Next<PacketId> {
        let chosen = self.root.dequeue(now, pool);
        let is_empty = self.root.backlog().packets == 0;
        match chosen {
            Some(id) => {
                self.is_drained = is_empty;
                Next::Packet(id)
            }
            None if is_empty => {
                self.idle_from = NOT_OWED;
                Next::Idle
            }
            None => Next::Wait(match self.root.watchdog() {
                Some(until) => until.max(now + 1),
                None => Time::MAX,
            }),
        }
    }

    /// Says that the link transmits the packet of the last dequeue until `end`. Returns whether more packets were
    /// queued then: the driver asks again at `end`. If none were, it need not: the next enqueue after `end` tells the
    /// discipline that the link was idle from `end` on. A driver that asks at `end` in any case need not call this.
    #[inline]
    pub fn transmits_until(&mut self, end: Time) -> bool {
        if self.is_drained {
            self.idle_from = end;
        }
        !self.is_drained
    }

    /// Nothing was enqueued since the link became idle, so the question can be made up for now.
    fn ask_idle(&mut self, pool: &mut Pool) {
        let none = self.root.dequeue(self.idle_from, pool);
        debug_assert_eq!(none, None, "an empty discipline has no packet");
    }

    /// What is queued.
    #[inline]
    pub fn backlog(&self) -> Count {
        self.root.backlog()
    }

    /// The discipline.
    #[inline]
    pub fn root(&self) -> &D::Target {
        &self.root
    }

    /// The discipline, to be reconfigured, flushed or replaced. Packets go through [`enqueue`](Egress::enqueue) and
    /// [`dequeue`](Egress::dequeue).
    #[inline]
    pub fn root_mut(&mut self) -> &mut D {
        &mut self.root
    }
}
