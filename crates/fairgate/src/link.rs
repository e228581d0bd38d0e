//! The driver of a root discipline: a pool, a discipline, and a payload for each packet.
//!
//! ```text
//!   enqueue(packet, payload, now) -> pool, payloads -> root -> dequeue(now) -> Packet(departure)
//!                                                       |                      | Wait(until) | Idle
//!                                                       +---> take_dropped() -> slot, payload, reason
//! ```

use core::fmt;
use core::ops::DerefMut;

use alloc::boxed::Box;
use alloc::vec::Vec;

use thiserror::Error;

use crate::arrival::{Arrival, Needs};
use crate::count::Count;
use crate::discipline::{Discipline, Inspect, Reconfigure, Verdict};
use crate::egress::{Egress, Next};
use crate::packet::DropReason;
use crate::pool::{Copied, Delay, NodeNumber, PacketId, PacketQueue, Pool, PoolFull, TakenDelays};
use crate::slot::Slot;
use crate::time::Time;

/// A dequeued packet that is to be transmitted.
#[derive(Clone, Copy, Debug)]
pub struct Departure<T> {
    /// The packet after the discipline: its ECN bits, its DSCP, its enqueue time.
    pub slot: Slot,
    /// The payload that the driver stored with it.
    pub payload: T,
    /// The innermost node that the packet left, if the link [keeps places](Link::keep_places).
    pub node: NodeNumber,
}

/// A packet that a discipline dropped or flushed.
#[derive(Clone, Copy, Debug)]
pub struct Dropped<T> {
    /// The packet.
    pub slot: Slot,
    /// The payload that the driver stored with it.
    pub payload: T,
    /// Why it was dropped.
    pub reason: DropReason,
    /// The innermost node that dropped it, if the link [keeps places](Link::keep_places).
    pub node: NodeNumber,
}

/// All slots are in use. The error contains the payload.
#[derive(Clone, Copy, Error)]
#[error("{full}")]
pub struct LinkFull<T> {
    /// The payload that the driver wanted to store.
    pub payload: T,
    /// The error of the pool.
    pub full: PoolFull,
}

impl<T> fmt::Debug for LinkFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.full, f)
    }
}

/// A queue at the entrance of a link: a root discipline, its pool, and a payload of type `T` for each packet.
///
/// The payload is what the program sends: a buffer, a frame number, or `()` if the packet's cookie is enough.
/// Nothing is allocated after construction. `D` owns or borrows the discipline, see [`Egress`].
///
/// ```
/// use fairgate::{Codel, Link, Next, Packet, Time, codel};
///
/// let mut link = Link::new(Codel::node(codel::Config::default())?, 1000);
/// let frame = vec![0u8; 1514];
/// link.enqueue(Packet::of_length(1514), frame, Time::from_millis(1))?;
/// while let Some(dropped) = link.take_dropped() {
///     println!("{} bytes dropped: {}", dropped.payload.len(), dropped.reason.name());
/// }
/// match link.dequeue(Time::from_millis(2)) {
///     Next::Packet(departure) => println!("send {} bytes", departure.payload.len()),
///     Next::Wait(until) => println!("ask again at {until}"),
///     Next::Idle => println!("nothing is queued"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Link<T, D = Box<dyn Discipline>> {
    egress: Egress<D>,
    pool: Pool,
    /// The payload of each slot.
    payloads: Vec<T>,
    /// What the disciplines of the tree read of packets.
    needs: Needs,
}

impl<T: Default> Link<T> {
    /// Returns a link with the discipline `root`, which must be empty, and with `capacity` slots. All links
    /// have one type: a discipline that is in no box gets one.
    pub fn new(root: impl Into<Box<dyn Discipline>>, capacity: u32) -> Link<T> {
        Link::with_pool(root.into(), Pool::with_capacity(capacity))
    }
}

impl<T: Default, D: DerefMut<Target: Discipline>> Link<T, D> {
    /// Returns a link with an existing pool, which must be empty. Use it with [`Pool::without_headers`], or
    /// with a discipline that is borrowed or whose type stays known, see [`Egress`].
    pub fn with_pool(root: D, pool: Pool) -> Link<T, D> {
        let mut link = Link {
            egress: Egress::new(root),
            pool,
            payloads: Vec::new(),
            needs: Needs::default(),
        };
        link.make_payloads();
        link.look_at_tree();
        link
    }

    /// Increases the number of slots to `capacity`. This allocates.
    pub fn grow(&mut self, capacity: u32) {
        self.pool.grow(capacity);
        self.make_payloads();
    }

    fn make_payloads(&mut self) {
        self.payloads
            .resize_with(self.pool.capacity() as usize, T::default);
    }

    /// Finds out what the disciplines of the tree read, and which tables they take from the reserve.
    fn look_at_tree(&mut self) {
        self.needs = self.root().needs();
        self.pool.keep(self.needs);
        let Link { egress, pool, .. } = self;
        egress.root().visit_tables(&mut |kind| pool.provide(kind));
    }

    /// Refills the reserve of tables, as of [`Pool::refill`].
    #[inline]
    pub fn refill(&mut self) {
        self.pool.refill();
    }

    /// Returns what the disciplines read of packets, to be told with each [`Arrival`].
    #[inline]
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Enqueues a packet at `now`, which never goes backwards. A [`Packet`](crate::Packet) alone, or with its
    /// header fields, is an [`Arrival`], too.
    ///
    /// # Errors
    /// Returns an error if all slots are in use. Then nothing has changed.
    #[inline]
    pub fn enqueue(
        &mut self,
        arrival: impl Into<Arrival>,
        payload: T,
        now: Time,
    ) -> Result<Verdict, LinkFull<T>> {
        match self.pool.insert(arrival) {
            Ok(id) => Ok(self.enqueue_inserted(id, payload, now)),
            Err(full) => Err(LinkFull { payload, full }),
        }
    }

    /// Keeps a log of sojourn times from now on, as of [`Pool::keep_delays`].
    pub fn keep_delays(&mut self, empty: Vec<Delay>) -> TakenDelays {
        self.pool.keep_delays(empty)
    }

    /// Returns the number of sojourn times in the log.
    #[inline]
    pub fn delays_kept(&self) -> usize {
        self.pool.delays_kept()
    }

    /// Returns whether a log of sojourn times is kept.
    #[inline]
    pub fn keeps_delays(&self) -> bool {
        self.pool.keeps_delays()
    }

    /// Notes from now on which node each packet left or was dropped by, as of [`Pool::keep_places`].
    pub fn keep_places(&mut self, is_kept: bool) {
        self.pool.keep_places(is_kept);
    }

    #[inline]
    fn enqueue_inserted(&mut self, id: PacketId, payload: T, now: Time) -> Verdict {
        self.payloads[id.index()] = payload;
        self.egress.enqueue(id, now, &mut self.pool)
    }

    /// Dequeues the next packet at `now`, when the link is free.
    #[inline]
    pub fn dequeue(&mut self, now: Time) -> Next<Departure<T>> {
        match self.egress.dequeue(now, &mut self.pool) {
            Next::Packet(id) => Next::Packet(self.release(id)),
            Next::Wait(until) => Next::Wait(until),
            Next::Idle => Next::Idle,
        }
    }

    /// Tells the disciplines that the driver makes copies of packets. `netem` needs it to duplicate packets.
    /// From then on the driver calls [`enqueue_copies`](Link::enqueue_copies) after each call.
    pub fn allow_copies(&mut self) {
        self.pool.allow_copies();
    }

    /// Enqueues the copies that the last call has asked for, as new packets. The driver calls this before
    /// [`take_dropped`](Link::take_dropped). `make` gets cookie and payload of the original, and returns
    /// those of the copy, or `None` if it can't make one. Returns whether a copy was enqueued: then a link
    /// that was idle may have a packet to send, and the driver asks again.
    #[inline]
    pub fn enqueue_copies(&mut self, now: Time, make: impl FnMut(u64, &T) -> Option<(u64, T)>) -> bool {
        self.pool.has_copies() && self.enqueue_each_copy(now, make)
    }

    #[cold]
    fn enqueue_each_copy(&mut self, now: Time, mut make: impl FnMut(u64, &T) -> Option<(u64, T)>) -> bool {
        let mut is_any = false;
        while let Some(Copied { copy, original }) = self.pool.take_copy() {
            let Some((cookie, payload)) = make(self.pool[original].cookie, &self.payloads[original.index()])
            else {
                self.pool.release(copy);
                continue;
            };
            self.pool[copy].cookie = cookie;
            self.enqueue_inserted(copy, payload, now);
            is_any = true;
        }
        is_any
    }

    /// Returns the oldest packet that a call dropped or flushed. The driver calls this after each call until
    /// it returns `None`.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<Dropped<T>> {
        let (id, reason) = self.pool.take_returned()?;
        let Departure { slot, payload, node } = self.release(id);
        Some(Dropped {
            slot,
            payload,
            reason,
            node,
        })
    }

    /// Whether [`take_dropped`](Link::take_dropped) will return a packet.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        self.pool.has_returned()
    }

    /// Reports that the link transmits the packet of the last dequeue until `end`. Returns whether more
    /// packets are queued. See [`Egress::transmits_until`].
    #[inline]
    pub fn transmits_until(&mut self, end: Time) -> bool {
        self.egress.transmits_until(end)
    }

    /// Returns the packet that the next dequeue will return. It stays queued.
    pub fn peek(&mut self, now: Time) -> Option<(&Slot, &T)> {
        let id = self.egress.root_mut().peek(now, &mut self.pool)?;
        Some((&self.pool[id], &self.payloads[id.index()]))
    }

    /// Calls `change` to reconfigure or flush the discipline, or to go down to its classes. Packets that it
    /// drops are returned by [`take_dropped`](Link::take_dropped).
    pub fn change<R>(&mut self, change: impl FnOnce(&mut D::Target, &mut Pool) -> R) -> R {
        let result = change(self.egress.root_mut(), &mut self.pool);
        self.look_at_tree();
        result
    }

    /// Calls `change` like [`change`](Link::change), with what owns the discipline. So it may put another
    /// one in its place that takes over the packets ([`Reconfigure::take_over`]).
    pub fn change_root<R>(&mut self, change: impl FnOnce(&mut D, &mut Pool) -> R) -> R {
        let result = change(self.egress.root_mut(), &mut self.pool);
        self.look_at_tree();
        result
    }

    /// Does the same without looking through all disciplines of the tree, which takes milliseconds for
    /// thousands of classes. `needs` says what those read that are new, or have new parameters. What was read
    /// before is taken to be read still.
    pub fn change_root_in_part<R>(&mut self, needs: Needs, change: impl FnOnce(&mut D, &mut Pool) -> R) -> R {
        let result = change(self.egress.root_mut(), &mut self.pool);
        self.needs |= needs;
        self.pool.keep(self.needs);
        result
    }

    /// Removes all queued packets, in the order of their flows. They are not counted as dropped.
    pub fn drain(&mut self, mut take: impl FnMut(Departure<T>)) {
        let mut left = PacketQueue::new();
        self.egress.root_mut().drain(&mut self.pool, &mut left);
        while let Some(id) = left.pop_front(&self.pool) {
            take(self.release(id));
        }
    }

    #[inline]
    fn release(&mut self, id: PacketId) -> Departure<T> {
        Departure {
            node: self.pool.take_place(id),
            slot: self.pool.release(id),
            payload: core::mem::take(&mut self.payloads[id.index()]),
        }
    }

    /// Returns the packet in the first slot from number `from` on that holds one, and the number of the slot
    /// after it. It asks no discipline: a driver that can no longer trust its tree finds all packets so.
    pub fn packet_from(&self, from: u32) -> Option<(&Slot, u32)> {
        self.pool.packet_from(from)
    }

    /// Returns the discipline.
    pub fn root(&self) -> &D::Target {
        self.egress.root()
    }

    /// Returns the backlog.
    #[inline]
    pub fn backlog(&self) -> Count {
        self.egress.backlog()
    }

    /// Returns the number of slots.
    pub fn capacity(&self) -> u32 {
        self.pool.capacity()
    }

    /// Returns the number of packets in the pool: the queued ones, and the dropped ones that were not taken
    /// yet.
    pub fn len(&self) -> u32 {
        self.pool.len()
    }

    /// Whether the pool is empty.
    pub fn is_empty(&self) -> bool {
        self.pool.is_empty()
    }
}
