//! The interface between disciplines and drivers (ALTQ, section 2).
//!
//! There are two traits. The author of a discipline implements [`Algorithm`]: it decides where a packet goes
//! and which packet is next. Drivers and parents use [`Discipline`]: it adds statistics, conservation, and a
//! peek whose answer the next dequeue returns. [`Node`] implements [`Discipline`] for every [`Algorithm`], so
//! there is one implementation of the statistics.

mod succession;

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;
use core::ops::Range;

use crate::arrival::Needs;
use crate::class_reading::ClassReading;
use crate::classify::Holder;
use crate::count::Count;
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{Changes, NodeNumber, PacketId, PacketQueue, Pool};
use crate::stats::{Counters, Statistics};
use crate::time::Time;

pub use succession::Heritage;

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

/// A child of a classful discipline.
#[derive(Debug)]
pub struct Class<'a> {
    /// The class's number within its parent.
    pub minor: u16,
    /// The discipline that holds its packets.
    pub discipline: &'a dyn Discipline,
    /// The host that the class belongs to, if it is one of a template.
    pub holder: Holder<'a>,
}

impl<'a> Class<'a> {
    /// Returns a class for all packets that are sent there.
    pub fn new(minor: u16, discipline: &'a dyn Discipline) -> Class<'a> {
        Class {
            minor,
            discipline,
            holder: Holder::Anyone,
        }
    }
}

/// The state of a class, for a leaf or an inner node.
#[derive(Clone, Copy, Debug)]
pub struct ClassState<'a> {
    /// The class's number.
    pub minor: u16,
    /// The packets that left the class or a class below it. The count stays with the class when its
    /// discipline is replaced.
    pub sent: Count,
    /// How often the class was throttled by its own limit.
    pub overlimits: u64,
    /// Other state, under the field's usual names.
    pub variables: &'a [(&'static str, Variable)],
}

/// A value of a discipline's internal state. The enum is exhaustive, so that a program that shows values is
/// not compiled if it misses a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variable {
    /// A count, a length, a state.
    Integer(i64),
    /// A point in time or a duration, in nanoseconds.
    Nanos(u64),
    /// True or false.
    Flag(bool),
    /// There is no value yet.
    Unset,
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
    /// [`DropReason::Reconfigured`].
    fn reconfigure(&mut self, config: Self::Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError>;

    /// Takes the place of `old` with its state and its packets. The classes that `kept` names, ascending,
    /// exist in both and keep their disciplines. `old` is left empty. A tree of classes implements it: it
    /// keeps state for each class besides the class's discipline.
    ///
    /// Returns false, and changes nothing, if there is no such way. Then the classes and the packets move.
    ///
    /// What is queued may be moved, and what differs may be set. All that takes longer with every class there
    /// is, is done before, by [`prepare_to_succeed`](Algorithm::prepare_to_succeed), if that is possible.
    fn succeed(&mut self, _old: &mut Self, _kept: &[u16], _now: Time, _pool: &mut Pool) -> bool {
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
    fn class_mut(&mut self, _minor: u16) -> Option<&mut Box<dyn Discipline>> {
        None
    }

    /// Is called after the discipline of class `minor` was replaced. The new discipline has the packets of
    /// the old one. This function updates lists of active classes.
    fn class_replaced(&mut self, _minor: u16, _now: Time, _pool: &mut Pool) {}

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
}

/// A discipline with numbered flows. A program uses it if it knows the flow of each packet and needs neither
/// hash nor filters.
pub trait ByFlow: Algorithm {
    /// Returns the number of flows. They are numbered from 0.
    fn flows(&self) -> u32;

    /// Enqueues a packet of flow `flow`, like [`enqueue`](Algorithm::enqueue). If there is no such flow, the
    /// packet is given back with [`DropReason::NoFreeFlow`].
    fn enqueue_flow(&mut self, flow: u32, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict;
}

/// A queueing discipline as drivers and parents use it.
pub trait Discipline: Send {
    /// Returns the name by which users configure it.
    fn name(&self) -> &'static str;

    /// Enqueues a packet. Afterwards the driver empties [`Pool::take_returned`].
    fn enqueue(&mut self, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict;

    /// Dequeues the next packet, if one may be sent now. Afterwards the driver empties
    /// [`Pool::take_returned`].
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;

    /// Returns the packet that the next `dequeue` will return, now or later. It stays in the backlog.
    fn peek(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;

    /// Gives all packets back with [`DropReason::Flushed`]. Without packets nothing happens.
    fn flush(&mut self, pool: &mut Pool);

    /// Moves all packets to `into`, in the order of their flows, for the discipline that replaces this one.
    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue);

    /// Returns when to call `dequeue` again after it returned nothing although
    /// [`backlog`](Discipline::backlog) is not empty. Returns `None` if the discipline does not throttle.
    fn watchdog(&self) -> Option<Time>;

    /// Changes parameters. `config` is the discipline's own `Config`. On an error nothing has changed.
    fn reconfigure(&mut self, config: &dyn Any, now: Time, pool: &mut Pool) -> Result<(), ConfigError>;

    /// Replaces the discipline of class `minor` by `child` and moves the packets to it. Packets that `child`
    /// drops are given back through the pool.
    fn replace_class(
        &mut self,
        minor: u16,
        child: Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError>;

    /// Takes the place of `old`, which ran until now. The packets are moved in the order of their flows, and
    /// keep their arrival times. Packets that this discipline drops are given back through the pool.
    ///
    /// This discipline must be new. Its classes that `heritage` names must exist in both.
    fn take_over(&mut self, old: &mut dyn Discipline, heritage: &Heritage, now: Time, pool: &mut Pool) {
        debug_assert!(
            heritage.classes.is_empty(),
            "this discipline cannot inherit classes"
        );
        succession::move_packets(self, old, now, pool);
    }

    /// Does what [`take_over`](Discipline::take_over) would have to do otherwise, if the discipline whose
    /// place this one takes has the parameters `old` then. A driver calls it on a thread that forwards
    /// nothing.
    fn prepare_to_take_over(&mut self, _old: &dyn Any) {}

    /// Replaces the discipline of class `minor` by `child`, which takes over from it as of
    /// [`take_over`](Discipline::take_over). Returns the old one, so that its memory can be released
    /// elsewhere.
    ///
    /// # Errors
    /// If there is no such class, or if this discipline does not support it. Nothing has changed then.
    fn succeed_class(
        &mut self,
        minor: u16,
        child: Box<dyn Discipline>,
        heritage: &Heritage,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Box<dyn Discipline>, ConfigError> {
        let _ = (child, heritage, now, pool);
        Err(succession::no_such_class(self.name(), minor))
    }

    /// Exchanges the discipline of class `minor` for another one. Both keep their packets. A successor gets
    /// the classes that it inherits in this way.
    ///
    /// # Errors
    /// If there is no such class, or if this discipline does not support it. Nothing has changed then.
    fn exchange_class(
        &mut self,
        minor: u16,
        child: &mut Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError> {
        let _ = (child, now, pool);
        Err(succession::no_such_class(self.name(), minor))
    }

    /// Takes out the packet that a peek has chosen and that is no longer in a queue. A successor sends it
    /// first.
    fn take_chosen(&mut self, _pool: &mut Pool) -> Option<PacketId> {
        None
    }

    /// Returns the statistics.
    fn statistics(&self) -> Statistics;

    /// Returns the backlog. Parents call it for every packet, so it should be faster than
    /// [`statistics`](Discipline::statistics).
    fn backlog(&self) -> Count {
        self.statistics().backlog()
    }

    /// Calls `visit` for each class, in the order of their numbers.
    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>));

    /// Calls `visit` for the classes at these places of the same order. A driver that forwards packets visits
    /// thousands of classes in steps, and packets pass between the steps.
    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        self.visit_classes(&mut at_places(places, visit));
    }

    /// Calls `change` to reconfigure or flush the discipline of class `minor`, or to go down to one of its
    /// classes. Packets that this drops and flushes are counted at every node on the path. Afterwards the
    /// driver empties [`Pool::take_returned`]. Only the root may be used to enqueue and dequeue.
    fn change_class(
        &mut self,
        minor: u16,
        pool: &mut Pool,
        change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) -> Result<(), ConfigError>;

    /// Calls `visit` with the state of each class, for disciplines whose classes have state besides a queue.
    /// Inner nodes are included.
    fn visit_class_states(&self, visit: &mut dyn FnMut(ClassState<'_>)) {
        self.read_class_states(&mut ClassReading::default(), usize::MAX, visit);
    }

    /// Does the same in steps: goes on with `reading`, by about `most` classes, and calls `visit` for each
    /// that is read. Returns true if there is more. What is sent meanwhile may be counted or not. After a
    /// change of classes a reading must begin anew.
    fn read_class_states(
        &self,
        _reading: &mut ClassReading,
        _most: usize,
        _visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        false
    }

    /// Calls `visit` with internal state, under the field's usual names.
    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable));

    /// Returns what the disciplines of the tree read of packets besides descriptors and header fields. It
    /// changes only with parameters and classes. The driver's pool then [keeps](Pool::keep) it, and the
    /// driver tells it with each [`Arrival`](crate::Arrival).
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns the number by which the pool knows this node ([`Pool::keep_delays`], [`Pool::keep_places`]).
    fn number(&self) -> NodeNumber {
        NodeNumber::NONE
    }

    /// Returns the current parameters: the discipline's own `Config`.
    fn config(&self) -> Box<dyn Any>;

    /// Returns this discipline as the value that it is, for a successor of the same type, which may take over
    /// its state. `None` if no successor can.
    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

/// Returns a visitor of all classes that passes on the classes at these places.
fn at_places<'v>(places: Range<usize>, visit: &'v mut dyn FnMut(Class<'_>)) -> impl FnMut(Class<'_>) + 'v {
    let mut place = 0;
    move |class| {
        if places.contains(&place) {
            visit(class);
        }
        place += 1;
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

/// An [`Algorithm`] with statistics. This is the only implementation of [`Discipline`].
#[derive(Debug)]
pub struct Node<A> {
    algorithm: A,
    counters: Counters,
    peeked: Peeked,
    number: NodeNumber,
}

/// The result of the last peek. The packet is still in the backlog.
#[derive(Clone, Copy, Debug, Default)]
enum Peeked {
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
    /// [`Discipline::reconfigure`] is the same for a program that does not know the type.
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

    /// Counts a packet that is dequeued.
    #[inline]
    fn hand_out(&mut self, id: PacketId, now: Time, pool: &mut Pool) {
        let packet = &pool[id];
        let sojourn = now.nanos_since(packet.enqueued_at);
        self.counters.dequeued(packet.length, sojourn);
        if pool.is_observed() {
            pool.note_departure(&mut self.number, id, sojourn);
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

    fn class(&mut self, minor: u16) -> Result<&mut Box<dyn Discipline>, ConfigError> {
        let name = self.algorithm.name();
        self.algorithm
            .class_mut(minor)
            .ok_or_else(|| succession::no_such_class(name, minor))
    }

    /// Counts what was given back and marked during a call.
    #[inline]
    fn settle(&mut self, before: Changes, pool: &mut Pool) {
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

impl<A: Algorithm> Discipline for Node<A> {
    fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.take_in(id, now, pool, |algorithm, pool| algorithm.enqueue(id, now, pool))
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        if !matches!(self.peeked, Peeked::Nothing)
            && let Peeked::TakenOut(id) = core::mem::take(&mut self.peeked)
        {
            self.hand_out(id, now, pool);
            return Some(id);
        }
        let before = pool.changes();
        let Some(id) = self.algorithm.dequeue(now, pool) else {
            return self.sent_nothing(before, pool);
        };
        self.settle(before, pool);
        self.hand_out(id, now, pool);
        Some(id)
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

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        // A table of a million flows is not looked through for nothing while packets wait.
        if self.backlog().packets == 0 {
            return;
        }
        let mut own = PacketQueue::new();
        if let Peeked::TakenOut(peeked) = core::mem::take(&mut self.peeked) {
            own.push_back(peeked, pool);
        }
        self.algorithm.drain(pool, &mut own);
        self.counters.moved(own.count());
        own.append_to(into, pool);
    }

    fn watchdog(&self) -> Option<Time> {
        self.algorithm.watchdog()
    }

    fn reconfigure(&mut self, config: &dyn Any, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let config = config
            .downcast_ref::<A::Config>()
            .ok_or(ConfigError::WrongDiscipline {
                discipline: self.algorithm.name(),
            })?
            .clone();
        self.set_config(config, now, pool)
    }

    fn replace_class(
        &mut self,
        minor: u16,
        child: Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError> {
        self.succeed_class(minor, child, &Heritage::default(), now, pool)
            .map(drop)
    }

    fn take_over(&mut self, old: &mut dyn Discipline, heritage: &Heritage, now: Time, pool: &mut Pool) {
        self.inherit(old, heritage, now, pool);
    }

    fn prepare_to_take_over(&mut self, old: &dyn Any) {
        if let Some(old) = old.downcast_ref() {
            self.algorithm.prepare_to_succeed(old);
        }
    }

    fn succeed_class(
        &mut self,
        minor: u16,
        mut child: Box<dyn Discipline>,
        heritage: &Heritage,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Box<dyn Discipline>, ConfigError> {
        let before = pool.changes();
        let current = self.class(minor)?;
        child.take_over(current.as_mut(), heritage, now, pool);
        let old = core::mem::replace(current, child);
        self.algorithm.class_replaced(minor, now, pool);
        self.settle(before, pool);
        Ok(old)
    }

    fn exchange_class(
        &mut self,
        minor: u16,
        child: &mut Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError> {
        self.exchange(minor, child, now, pool)
    }

    fn take_chosen(&mut self, pool: &mut Pool) -> Option<PacketId> {
        self.release_chosen(pool)
    }

    fn statistics(&self) -> Statistics {
        self.counters.statistics()
    }

    #[inline]
    fn backlog(&self) -> Count {
        self.counters.backlog()
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.algorithm.visit_classes(visit);
    }

    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        self.algorithm.visit_classes_at(places, visit);
    }

    fn change_class(
        &mut self,
        minor: u16,
        pool: &mut Pool,
        change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) -> Result<(), ConfigError> {
        let before = pool.changes();
        change(self.class(minor)?.as_mut(), pool);
        self.settle(before, pool);
        Ok(())
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

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn number(&self) -> NodeNumber {
        self.number
    }

    fn config(&self) -> Box<dyn Any> {
        Box::new(self.algorithm.config())
    }
}
