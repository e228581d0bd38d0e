//! The contract between disciplines and whoever drives them (ALTQ, section 2).
//!
//! Two traits. [`Algorithm`] is what the author of a discipline writes: where a packet goes, which one is next.
//! [`Discipline`] is what drivers and parents see: the same with statistics, conservation and a peek that keeps its
//! word. [`Node`] turns the first into the second, so that the books are kept once, and the same way, for all.

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;

use crate::classify::Holder;
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{Changes, PacketId, PacketQueue, Pool};
use crate::stats::{Count, Ledger, Statistics};
use crate::time::Time;

/// What became of a packet that was handed in. The numbers in parentheses are Linux's return values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is queued (`NET_XMIT_SUCCESS`, 0). Packets of other flows may have been dropped for it.
    Queued,
    /// It was dropped (`NET_XMIT_DROP`, 1), or another one in its place of which the sender should know.
    Dropped,
    /// It is queued or not, but its flow lost a packet and should slow down (`NET_XMIT_CN`, 2).
    Congested,
    /// It belongs to no class and was dropped (`__NET_XMIT_BYPASS`, 0x20000).
    Unclassified,
}

/// A child of a classful discipline.
pub struct Class<'a> {
    /// The class's number within its parent.
    pub minor: u16,
    /// The discipline that holds its packets.
    pub discipline: &'a dyn Discipline,
    /// Whose packets these are.
    pub holder: Holder<'a>,
}

impl<'a> Class<'a> {
    /// A class for whatever packets are sent there.
    pub fn new(minor: u16, discipline: &'a dyn Discipline) -> Class<'a> {
        Class {
            minor,
            discipline,
            holder: Holder::Anyone,
        }
    }
}

/// What a discipline knows of one of its classes, be it one that holds packets or one above others.
#[derive(Clone, Copy, Debug)]
pub struct ClassState<'a> {
    /// The class's number.
    pub minor: u16,
    /// What left it, or a class below it, to be sent. It stays with the class when its discipline is replaced.
    pub sent: Count,
    /// How often it came to a stop for its own limit.
    pub overlimits: u64,
    /// What else there is, under the field's usual names.
    pub variables: &'a [(&'static str, Variable)],
}

/// A number that a discipline shows of its inner state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variable {
    /// A count, a length, a state.
    Integer(i64),
    /// A point in time or a duration, ns.
    Nanos(u64),
    /// True or false.
    Flag(bool),
    /// Nothing there yet.
    Unset,
}

/// A queueing discipline as its author writes it. See `queues/fifo.rs` for the template.
///
/// Every packet handed to `enqueue` must come back exactly once: from `dequeue`, through
/// [`Pool::give_back`], or into the queue given to `drain`.
/// `now` never goes backwards. Nothing is allocated in `enqueue`, `dequeue` and `watchdog`.
pub trait Algorithm: Send + 'static {
    /// The name that users configure it by.
    const NAME: &'static str;

    /// Its parameters.
    type Config: Clone + core::fmt::Debug + Send + 'static;

    /// Takes one packet in. It may drop any packet it holds, this one included.
    fn enqueue(&mut self, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict;

    /// Chooses the next packet. A work-conserving discipline returns `None` only if it is empty.
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;

    /// The packet that the next `dequeue`, now or later, is sure to return, whatever is enqueued before it and
    /// whatever becomes of the classes. For a discipline that knows without choosing: a peek then leaves the packet
    /// where it is, where limits count it. (Before a change of parameters such a packet is taken out.)
    fn first(&self) -> Option<PacketId> {
        None
    }

    /// Moves all packets to `into`, in the order of their flows, and starts from an empty state.
    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue);

    /// After `dequeue` gave nothing though packets are queued: when to ask again.
    fn watchdog(&self) -> Option<Time> {
        None
    }

    /// The parameters in force.
    fn config(&self) -> Self::Config;

    /// Changes parameters in place. On an error nothing has changed. Packets over a lowered limit are given back with
    /// [`DropReason::Reconfigured`].
    fn reconfigure(&mut self, config: Self::Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError>;

    /// Shows the classes, in the order of their numbers.
    fn visit_classes(&self, _visit: &mut dyn FnMut(Class<'_>)) {}

    /// The discipline of class `minor`. It may be flushed and reconfigured through this without further notice, as
    /// it may drop packets on its own account.
    fn class_mut(&mut self, _minor: u16) -> Option<&mut Box<dyn Discipline>> {
        None
    }

    /// Called after the discipline of class `minor` was replaced and has taken over the backlog of the old one: the
    /// place to bring lists of active classes up to date.
    fn class_replaced(&mut self, _minor: u16, _now: Time, _pool: &mut Pool) {}

    /// Shows what is known of the classes themselves, for disciplines in which they are more than a queue each.
    fn visit_class_states(&self, _visit: &mut dyn FnMut(ClassState<'_>)) {}

    /// Shows inner state under the field's usual names.
    fn visit_variables(&self, _visit: &mut dyn FnMut(&'static str, Variable)) {}
}

/// A discipline over numbered flows: for a program that knows each packet's flow and wants neither hash nor filters.
pub trait ByFlow: Algorithm {
    /// How many flows there are. They are numbered from 0.
    fn flows(&self) -> u32;

    /// Takes one packet of flow `flow` in, as [`enqueue`](Algorithm::enqueue) does. A packet of a flow that there is
    /// not is given back with [`DropReason::NoFreeFlow`].
    fn enqueue_flow(&mut self, flow: u32, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict;
}

/// A queueing discipline as drivers and parents see it.
pub trait Discipline: Send {
    /// The name that users configure it by.
    fn name(&self) -> &'static str;

    /// Hands one packet in. Afterwards the driver empties [`Pool::take_returned`].
    fn enqueue(&mut self, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict;

    /// Takes the next packet out, if one may be sent now. Afterwards the driver empties
    /// [`Pool::take_returned`].
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;

    /// Shows the packet that the next `dequeue`, now or later, will return. It stays in the backlog.
    fn peek(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;

    /// Gives all packets back with [`DropReason::Flushed`].
    fn flush(&mut self, pool: &mut Pool);

    /// Moves all packets to `into`, flows in order: to be handed to a discipline that takes this one's place.
    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue);

    /// After `dequeue` gave nothing though [`backlog`](Discipline::backlog) isn't empty: when to ask again. `None` for
    /// a discipline that holds nothing back.
    fn watchdog(&self) -> Option<Time>;

    /// Changes parameters in place; `config` is the discipline's own `Config`. On an error nothing has changed.
    fn reconfigure(&mut self, config: &dyn Any, now: Time, pool: &mut Pool) -> Result<(), ConfigError>;

    /// Puts `child` in the place of class `minor`'s discipline and moves the packets over. What the new one refuses
    /// comes back through the pool.
    fn replace_class(
        &mut self,
        minor: u16,
        child: Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError>;

    /// The books.
    fn statistics(&self) -> Statistics;

    /// What is queued. Parents ask for every packet: worth answering without making up all the books.
    fn backlog(&self) -> Count {
        self.statistics().backlog()
    }

    /// Shows the classes, in the order of their numbers.
    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>));

    /// Lets `change` reconfigure or flush the discipline of class `minor`, or go down to a class of that one. What this
    /// drops and flushes is entered in the books of every node on the way. Afterwards the driver empties
    /// [`Pool::take_returned`]. Packets are handed in and taken out at the root only.
    fn change_class(
        &mut self,
        minor: u16,
        pool: &mut Pool,
        change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) -> Result<(), ConfigError>;

    /// Shows what is known of the classes themselves, for disciplines in which they are more than a queue each: of every one, also
    /// of those that have no discipline because they are above others.
    fn visit_class_states(&self, _visit: &mut dyn FnMut(ClassState<'_>)) {}

    /// Shows inner state under the field's usual names.
    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable));

    /// The parameters in force: the discipline's own `Config`.
    fn config(&self) -> Box<dyn Any>;
}

/// By its name.
impl fmt::Debug for dyn Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An [`Algorithm`] with its books: the one implementation of [`Discipline`].
#[derive(Debug)]
pub struct Node<A> {
    algorithm: A,
    ledger: Ledger,
    peeked: Peeked,
}

/// What the last peek promised. The packet is still in the backlog.
#[derive(Clone, Copy, Debug, Default)]
enum Peeked {
    #[default]
    Nothing,
    /// The algorithm's [`first`](Algorithm::first), still there.
    InPlace(PacketId),
    /// Chosen by a dequeue of the algorithm's.
    TakenOut(PacketId),
}

impl<A: Algorithm> Node<A> {
    /// Puts an algorithm under books.
    pub fn new(algorithm: A) -> Node<A> {
        Node {
            algorithm,
            ledger: Ledger::default(),
            peeked: Peeked::Nothing,
        }
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The algorithm without its books: for a program that keeps none.
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

    /// Enters a packet in the books and has the algorithm place it.
    #[inline]
    fn take_in(
        &mut self,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
        place: impl FnOnce(&mut A, &mut Pool) -> Verdict,
    ) -> Verdict {
        let packet = &mut pool[id];
        packet.enqueued_at = now;
        self.ledger.enqueued(packet.length);
        let before = pool.changes();
        let verdict = place(&mut self.algorithm, pool);
        self.settle(before, pool);
        verdict
    }

    /// Enters a packet in the books that leaves to be sent.
    #[inline]
    fn hand_out(&mut self, id: PacketId, now: Time, pool: &Pool) {
        let packet = &pool[id];
        self.ledger
            .dequeued(packet.length, now.nanos_since(packet.enqueued_at));
    }

    /// Has the algorithm choose, and keeps what it chose for the next dequeue.
    fn take_out(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let before = pool.changes();
        let chosen = self.algorithm.dequeue(now, pool);
        self.settle(before, pool);
        self.peeked = chosen.map_or(Peeked::Nothing, Peeked::TakenOut);
        chosen
    }

    fn class(&mut self, minor: u16) -> Result<&mut Box<dyn Discipline>, ConfigError> {
        self.algorithm
            .class_mut(minor)
            .ok_or_else(|| ConfigError::NoSuchClass {
                discipline: A::NAME,
                class: format!("{minor:x}"),
            })
    }

    /// Enters what left during a call other than by being dequeued, and what was marked.
    #[inline]
    fn settle(&mut self, before: Changes, pool: &Pool) {
        if pool.changes() != before {
            self.settle_changes(before, pool);
        }
    }

    #[cold]
    fn sent_nothing(&mut self, before: Changes, pool: &Pool) -> Option<PacketId> {
        self.settle(before, pool);
        self.ledger.sent_nothing();
        None
    }

    #[cold]
    #[inline(never)]
    fn settle_changes(&mut self, before: Changes, pool: &Pool) {
        let (returned, marked) = pool.changes().since(before);
        debug_assert!(
            pool.returned().count() as u64 >= u64::from(returned),
            "returned packets are taken between calls, not within"
        );
        for (id, reason) in pool.returned().take(returned as usize) {
            self.ledger.returned(pool[id].length, reason);
        }
        self.ledger.marked(marked);
    }
}

impl<A: ByFlow> Node<A> {
    /// Hands one packet of flow `flow` in. Afterwards the driver empties [`Pool::take_returned`].
    #[inline]
    pub fn enqueue_flow(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.take_in(id, now, pool, |algorithm, pool| {
            algorithm.enqueue_flow(flow, id, now, pool)
        })
    }
}

impl<A: Algorithm> Discipline for Node<A> {
    fn name(&self) -> &'static str {
        A::NAME
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
        let mut own = PacketQueue::new();
        if let Peeked::TakenOut(peeked) = core::mem::take(&mut self.peeked) {
            own.push_back(peeked, pool);
        }
        self.algorithm.drain(pool, &mut own);
        self.ledger.moved(own.count());
        own.append_to(into, pool);
    }

    fn watchdog(&self) -> Option<Time> {
        self.algorithm.watchdog()
    }

    fn reconfigure(&mut self, config: &dyn Any, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        let config = config
            .downcast_ref::<A::Config>()
            .ok_or(ConfigError::WrongDiscipline { discipline: A::NAME })?
            .clone();
        self.set_config(config, now, pool)
    }

    fn replace_class(
        &mut self,
        minor: u16,
        mut child: Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError> {
        let before = pool.changes();
        let place = self.class(minor)?;
        let mut moving = PacketQueue::new();
        place.drain(pool, &mut moving);
        while let Some(id) = moving.pop_front(pool) {
            // Sojourn time goes on: the packet has waited since it came to the old discipline.
            let enqueued_at = pool[id].enqueued_at;
            child.enqueue(id, now, pool);
            pool[id].enqueued_at = enqueued_at;
        }
        *place = child;
        self.algorithm.class_replaced(minor, now, pool);
        self.settle(before, pool);
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        self.ledger.statistics()
    }

    #[inline]
    fn backlog(&self) -> Count {
        self.ledger.backlog()
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.algorithm.visit_classes(visit);
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

    fn visit_class_states(&self, visit: &mut dyn FnMut(ClassState<'_>)) {
        self.algorithm.visit_class_states(visit);
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        self.algorithm.visit_variables(visit);
    }

    fn config(&self) -> Box<dyn Any> {
        Box::new(self.algorithm.config())
    }
}
