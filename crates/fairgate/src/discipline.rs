//! The interface between disciplines and drivers (ALTQ, section 2).
//!
//! The author of a discipline implements [`Algorithm`]: it decides where a packet goes and which packet is
//! next. Drivers and parents use [`Discipline`], the path of a packet; [`Inspect`] reads, and [`Reconfigure`]
//! changes what runs. [`Node`] implements these three for every [`Algorithm`]. It adds statistics,
//! conservation, and a peek whose answer the next dequeue returns, so each of them exists once.

mod inspect;
mod node;
mod reconfigure;
mod succession;
mod walk;

use alloc::boxed::Box;
use core::fmt;
use core::ops::Range;

use crate::arrival::Needs;
use crate::class_reading::ClassReading;
use crate::count::Count;
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool, TableKind};
use crate::time::Time;
use inspect::at_places;
use sealed::Sealed;

pub use inspect::{Class, ClassState, Inspect, Variable};
pub use node::Node;
pub use reconfigure::{Heritage, Reconfigure};
pub use walk::{Found, Visitor, Walk};

/// What happened to an enqueued packet. The numbers in parentheses are Linux's return values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is queued (`NET_XMIT_SUCCESS`, 0). Packets of other flows may have been dropped to make room.
    Queued,
    /// It was dropped (`NET_XMIT_DROP`, 1), or another packet was dropped instead and the sender should know.
    Dropped,
    /// It may or may not be queued, but its flow lost a packet and should slow down (`NET_XMIT_CN`, 2).
    Congested,
    /// No class takes it, and it was dropped (`__NET_XMIT_BYPASS`, 0x20000).
    Unclassified,
}

impl Verdict {
    /// Returns the verdict on a packet after its class was peeked. A class drops packets when it is asked for
    /// the next one, and that can be the packet that it has just queued (DualPI2 with a high probability).
    #[inline]
    pub(crate) fn after_peek(self, id: PacketId, pool: &Pool) -> Verdict {
        match self {
            Verdict::Queued if pool.is_returned(id) => Verdict::Dropped,
            verdict => verdict,
        }
    }
}

/// A queueing discipline as its author implements it. `queues/fifo.rs` is a template.
///
/// Each packet given to `enqueue` must leave exactly once: from `dequeue`, through [`Pool::give_back`], or
/// into the queue given to `drain`. `now` never goes backwards. `enqueue`, `dequeue` and `watchdog` do not
/// allocate.
pub trait Algorithm: Send + 'static {
    /// The name by which users configure it.
    const NAME: &'static str;

    /// Returns the name of this one. It is another one only if its author is a user, who names disciplines
    /// while the program runs.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// The parameters of the discipline.
    type Config: Clone + core::fmt::Debug + Send + 'static;

    /// Enqueues a packet. It may drop any packet in the queue, including this one.
    fn enqueue(&mut self, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict;

    /// Returns the next packet. A work-conserving discipline returns `None` only if it is empty.
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;

    /// Is called if the link is idle from `now` on and nothing is queued. By default this is a `dequeue`
    /// without a packet. A discipline implements it if such a call changes nothing.
    #[inline]
    fn idle(&mut self, now: Time, pool: &mut Pool) {
        let none = self.dequeue(now, pool);
        debug_assert_eq!(none, None, "an empty discipline has no packet");
    }

    /// Returns the packet that the next `dequeue` is certain to return, now or later, whatever is enqueued
    /// before and whatever happens to the classes. A discipline implements this if it knows the packet
    /// without making a choice. A peek then leaves the packet in the queue, where limits count it. (Before
    /// parameters change, such a packet is dequeued.)
    fn first(&self) -> Option<PacketId> {
        None
    }

    /// Moves all packets to `into`, in the order of their flows, and resets the state. It is not called if
    /// nothing is queued.
    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue);

    /// Returns when to call `dequeue` again after it returned nothing although packets are queued.
    fn watchdog(&self) -> Option<Time> {
        None
    }

    /// Returns the current parameters.
    fn config(&self) -> Self::Config;

    /// Changes parameters. On an error nothing has changed. Packets above a lowered limit are given back with
    /// [`DropReason::Reconfigured`](crate::DropReason::Reconfigured).
    fn reconfigure(&mut self, config: Self::Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError>;

    /// Takes the place of `old` with its state and its packets. The classes that `kept` names, ascending,
    /// exist in both and keep their disciplines. `old` is left empty. A tree of classes implements it: it
    /// keeps state for each class besides the class's discipline.
    ///
    /// Returns false, and changes nothing, if there is no such way. Then the classes and the packets move.
    ///
    /// What is queued may be moved, and what differs may be set. All that takes longer with every class there
    /// is, is done before, by [`prepare_to_succeed`](Algorithm::prepare_to_succeed), if that is possible.
    fn succeed(&mut self, _old: &mut Self, _kept: &[u32], _now: Time, _pool: &mut Pool) -> bool {
        false
    }

    /// Finds out what is different from a discipline that runs with the parameters `old`, and that this one
    /// will [succeed](Algorithm::succeed). No packet waits for it.
    fn prepare_to_succeed(&mut self, _old: &Self::Config) {}

    /// Calls `visit` for each class, in the order of their numbers.
    fn visit_classes(&self, _visit: &mut dyn FnMut(Class<'_>)) {}

    /// Calls `visit` for the classes at these places of the order of [`visit_classes`](Self::visit_classes).
    /// A discipline that can have thousands of classes implements it without passing over the classes before
    /// them.
    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        self.visit_classes(&mut at_places(places, visit));
    }

    /// Returns the discipline of class `minor`. The caller may flush and reconfigure it without further
    /// notice. It may also drop packets at any time.
    fn class_mut(&mut self, _minor: u32) -> Option<&mut Box<dyn Discipline>> {
        None
    }

    /// Is called after the discipline of class `minor` was replaced. The new discipline has the packets of
    /// the old one. This function updates lists of active classes.
    fn class_replaced(&mut self, _minor: u32, _now: Time, _pool: &mut Pool) {}

    /// Reads the states of the classes, for disciplines whose classes have state besides a queue: goes on
    /// with `reading`, by about `most` classes, and calls `visit` for each that is read. Returns true if
    /// there is more.
    fn read_class_states(
        &self,
        _reading: &mut ClassReading,
        _most: usize,
        _visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        false
    }

    /// Calls `visit` with internal state, under the field's usual names.
    fn visit_variables(&self, _visit: &mut dyn FnMut(&'static str, Variable)) {}

    /// Returns what it reads of packets besides descriptors and header fields, with its current parameters.
    /// What its classes need is not included.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns the kinds of its tables that it takes from the [pool's reserve](Pool::refill) when its first
    /// packet comes.
    fn tables(&self) -> [Option<TableKind>; 2] {
        [None; 2]
    }
}

/// A discipline with numbered flows. A program uses it if it knows the flow of each packet and needs neither
/// hash nor filters.
pub trait ByFlow: Algorithm {
    /// Returns the number of flows. They are numbered from 0.
    fn flows(&self) -> u32;

    /// Enqueues a packet of flow `flow`, like [`enqueue`](Algorithm::enqueue). If there is no such flow, the
    /// packet is given back with [`DropReason::NoFreeFlow`](crate::DropReason::NoFreeFlow).
    fn enqueue_flow(&mut self, flow: u32, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict;
}

/// A queueing discipline as drivers and parents use it (ALTQ, section 2.2).
///
/// Only [`Node`] implements it, so a method can be added without a change of anybody's code. A discipline of
/// your own is an [`Algorithm`].
pub trait Discipline: Inspect + Reconfigure + Sealed + Send {
    /// Enqueues a packet. Afterwards the driver empties [`Pool::take_returned`].
    fn enqueue(&mut self, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict;

    /// Dequeues the next packet, if one may be sent now. Afterwards the driver empties
    /// [`Pool::take_returned`].
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;

    /// Tells the discipline that the link is idle from `now` on. Nothing may be queued.
    fn idle(&mut self, now: Time, pool: &mut Pool) {
        let none = self.dequeue(now, pool);
        debug_assert_eq!(none, None, "an empty discipline has no packet");
    }

    /// Returns the packet that the next `dequeue` will return, now or later. It stays in the backlog.
    fn peek(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;

    /// Gives all packets back with [`Flushed`](crate::DropReason::Flushed). Without packets nothing happens.
    fn flush(&mut self, pool: &mut Pool);

    /// Returns when to call `dequeue` again after it returned nothing although
    /// [`backlog`](Discipline::backlog) is not empty. Returns `None` if the discipline does not throttle.
    fn watchdog(&self) -> Option<Time>;

    /// Returns the backlog. Parents call it for every packet, so it should be faster than
    /// [`statistics`](Inspect::statistics).
    fn backlog(&self) -> Count {
        self.statistics().backlog()
    }

    /// Whether the backlog is empty. Parents ask it for every packet, and need not know how long it is.
    fn is_empty(&self) -> bool {
        self.backlog().packets == 0
    }
}

mod sealed {
    /// Nothing outside of this crate can name it, except with the feature `probes`.
    pub trait Sealed {}
}

/// What a test suite needs to put a probe, or a deliberate fault, in the place of a discipline.
#[cfg(feature = "probes")]
pub mod probes {
    pub use super::sealed::Sealed;

    use super::{Discipline, succession};
    use crate::pool::Pool;
    use crate::time::Time;

    /// Enqueues all packets of `old` in `new`: what [`take_over`](super::Reconfigure::take_over) must do.
    pub fn move_packets(new: &mut dyn Discipline, old: &mut dyn Discipline, now: Time, pool: &mut Pool) {
        succession::move_packets(new, old, now, pool);
    }
}

/// So that functions take a discipline of any type, boxed or not, as `impl Into<Box<dyn Discipline>>`.
impl<A: Algorithm> From<Node<A>> for Box<dyn Discipline> {
    fn from(node: Node<A>) -> Box<dyn Discipline> {
        Box::new(node)
    }
}

/// Prints the name.
impl fmt::Debug for dyn Discipline + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
