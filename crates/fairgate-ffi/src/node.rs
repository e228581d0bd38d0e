//! A running tree of disciplines.
//!
//! A panic in a call needs no cleaning up: node and pool are broken then, and what it left half done is never
//! used again.

use std::cell::Cell;
use std::ffi::c_char;
use std::ptr;
use std::rc::Rc;
use std::slice;

use fairgate::flow::{Dissection, HeaderBytes, LinkType, dissect};
use fairgate::{Arrival, Discipline, Egress, FlowHasher, Needs, Next, Packet, PacketQueue, Pool, Slot, Time};
use fairgate_config::Spec;

use crate::FAIRGATE_NEVER;
use crate::call::{BUG, create, give, or, to_c};
use crate::packet::{CDeparture, CPacket, Status, link_type_of};
use crate::pool::{Shared, SharedPool, State};
use crate::tree::Tree;

/// A running tree of disciplines at the entrance of a link.
pub struct QueueNode {
    pub(crate) egress: Egress<Box<dyn Discipline>>,
    pub(crate) shared: Rc<Shared>,
    hasher: FlowHasher,
    /// The description of the running tree.
    spec: Spec,
    /// The seed of disciplines that are built later.
    seed: u64,
    /// What its disciplines read of packets. Other nodes of the pool may need more.
    needs: Needs,
    /// The time of the last call.
    pub(crate) last: Time,
    /// What was wrong in the last call that was refused. It ends with a zero byte.
    mistake: Cell<&'static str>,
}

impl std::fmt::Debug for QueueNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("QueueNode")
            .field(&self.egress.root().name())
            .finish()
    }
}

impl QueueNode {
    /// Notes what is wrong.
    #[cold]
    pub(crate) fn refuse(&self, mistake: &'static str) -> Status {
        self.mistake.set(mistake);
        Status::FairgateInvalid
    }

    /// Returns the pool, and the node's egress.
    ///
    /// # Safety
    /// No other reference to the pool may exist: no call of this pool is under way.
    #[inline]
    pub(crate) unsafe fn parts(&mut self) -> (&mut Egress<Box<dyn Discipline>>, &mut Pool) {
        // SAFETY: as the caller promises. The pool is no part of the node, so the two do not overlap.
        (&mut self.egress, unsafe { &mut *self.shared.pool.get() })
    }

    /// Runs `work` at `now`, which must not be before the time of an earlier call. The node must be ready.
    #[inline]
    pub(crate) fn call(
        &mut self,
        now: Time,
        work: impl FnOnce(&mut Egress<Box<dyn Discipline>>, &mut Pool) -> Status,
    ) -> Status {
        if now < self.last {
            return self.refuse(EARLIER);
        }
        self.last = now;
        let shared = &*self.shared;
        let egress = &mut self.egress;
        shared.guard(Status::FairgateBroken, || {
            // SAFETY: the state was ready, so no call of this pool is under way.
            work(egress, unsafe { &mut *shared.pool.get() })
        })
    }

    /// Enqueues a checked packet.
    #[inline]
    fn enqueue(&mut self, packet: Packet, now: Time) -> Status {
        self.call(now, |egress, pool| match pool.insert(packet) {
            Ok(id) => Status::of(egress.enqueue(id, now, pool)),
            Err(_) => Status::FairgateFull,
        })
    }

    /// Enqueues a checked packet whose headers were read from `frame`.
    fn enqueue_dissected(
        &mut self,
        packet: Packet,
        dissection: &Dissection,
        frame: &[u8],
        link_type: LinkType,
        now: Time,
    ) -> Status {
        let needs = self.needs;
        let arrival = Arrival {
            packet,
            headers: Some(dissection.key),
            acknowledgement: match needs.acknowledgements {
                true => dissection.acknowledgement(frame),
                false => None,
            },
            bytes: match needs.bytes {
                true => Some(HeaderBytes::of_frame(frame, link_type)),
                false => None,
            },
        };
        self.call(now, |egress, pool| match pool.insert(arrival) {
            Ok(id) => Status::of(egress.enqueue(id, now, pool)),
            Err(_) => Status::FairgateFull,
        })
    }
}

/// Returns the node, if it accepts a call now, or the answer.
///
/// # Safety
/// `node` must be from this library or NULL, and used by this thread alone while the result is used.
#[inline]
pub(crate) unsafe fn ready<'n>(node: *mut QueueNode) -> Result<&'n mut QueueNode, Status> {
    // SAFETY: as the caller promises. A visit holds a shared reference to the node. So only a shared one may
    // be made before it is known that there is no visit.
    let state = unsafe { node.as_ref() }.map(|node| (node, node.shared.state.get()));
    match state {
        // SAFETY: as the caller promises; and no visit is running, so there is no other reference.
        Some((_, State::Ready)) => Ok(unsafe { &mut *node }),
        Some((node, State::Visiting)) => Err(node.refuse(VISITING)),
        Some((_, State::Broken)) => Err(Status::FairgateBroken),
        None => Err(Status::FairgateInvalid),
    }
}

const VISITING: &str = "a function that visits is running; call this after it has returned\0";
pub(crate) const EARLIER: &str =
    "`now` is before the time of an earlier call; pass a monotonic clock in nanoseconds\0";
const NO_PACKET: &str = "the packet is NULL; pass a packet\0";
const NO_PLACE: &str = "`departure` is NULL; pass a place for the packet\0";
const NO_FRAME: &str = "the frame is NULL, but its size is not 0; pass its bytes\0";
const LINK_TYPE: &str = "there is no such link type; pass FAIRGATE_ETHERNET or FAIRGATE_RAW_IP\0";

/// Makes a node that runs `tree`, with its packets in `pool`. All random choices depend on `seed`, also the
/// hash of flows: if senders may be hostile, it must be a number that they can't know. Returns NULL if the
/// tree can't be built.
///
/// # Safety
/// `tree` and `pool` must be from this library or NULL, and `error` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_new(
    tree: *const Tree,
    pool: *const SharedPool,
    seed: u64,
    error: *mut *mut c_char,
) -> *mut QueueNode {
    // SAFETY: as the caller promises.
    unsafe {
        create(error, || {
            let tree = tree.as_ref().ok_or("the tree is NULL; make one first")?;
            let pool = pool.as_ref().ok_or("the pool is NULL; make one first")?;
            if pool.shared.state.get() != State::Ready {
                return Err(
                    "the pool is broken, or a function that visits is running; call this later".into(),
                );
            }
            let root = tree.spec.build(seed).map_err(|error| error.to_string())?;
            let needs = root.needs();
            // SAFETY: the state is ready, so no call of this pool is under way.
            let slots = &mut *pool.shared.pool.get();
            slots.keep(needs);
            Ok(QueueNode {
                needs,
                egress: Egress::new(root),
                shared: Rc::clone(&pool.shared),
                spec: tree.spec.clone(),
                seed,
                // Its two halves differ, and neither is a seed of a discipline.
                hasher: FlowHasher::new([seed ^ 0x666c_6f77, seed.rotate_left(32)]),
                last: Time::ZERO,
                mistake: Cell::new("\0"),
            })
        })
    }
}

/// Enqueues a packet. Filters see no addresses. The answer is FAIRGATE_QUEUED, FAIRGATE_DROPPED,
/// FAIRGATE_CONGESTED, FAIRGATE_UNCLASSIFIED, FAIRGATE_FULL, or an error. Then the caller takes what was
/// dropped:
/// `fairgate_pool_take_dropped`. The packet's own cookie is among it if it was dropped.
///
/// # Safety
/// `node` must be from this library or NULL, `packet` valid for a read or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_enqueue(
    node: *mut QueueNode,
    packet: *const CPacket,
    now: u64,
) -> Status {
    // SAFETY: as the caller promises.
    let (node, packet) = match unsafe { (ready(node), packet.as_ref()) } {
        (Ok(node), packet) => (node, packet),
        (Err(status), _) => return status,
    };
    let Some(packet) = packet else {
        return node.refuse(NO_PACKET);
    };
    match packet.checked() {
        Ok(packet) => node.enqueue(packet, Time::from_nanos(now)),
        Err(mistake) => node.refuse(mistake),
    }
}

/// Enqueues a packet whose headers are read from its first `size` bytes: filters see them, DSCP and ECN are
/// taken from them, and `flow` is computed from the five-tuple if it is 0. 128 bytes are enough unless there
/// are IPv6 extension headers. `link_type` is FAIRGATE_ETHERNET or FAIRGATE_RAW_IP. The bytes are not kept.
/// Bytes that are no such frame are a packet without addresses.
///
/// # Safety
/// As `fairgate_node_enqueue`; `frame` must be valid for reads of `size` bytes, or NULL if `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_enqueue_frame(
    node: *mut QueueNode,
    packet: *const CPacket,
    frame: *const u8,
    size: usize,
    link_type: u32,
    now: u64,
) -> Status {
    // SAFETY: as the caller promises.
    let (node, packet) = match unsafe { (ready(node), packet.as_ref()) } {
        (Ok(node), packet) => (node, packet),
        (Err(status), _) => return status,
    };
    let Some(link_type) = link_type_of(link_type) else {
        return node.refuse(LINK_TYPE);
    };
    let frame = match (frame.is_null(), size) {
        (_, 0) => &[],
        (true, _) => return node.refuse(NO_FRAME),
        // SAFETY: as the caller promises.
        (false, _) => unsafe { slice::from_raw_parts(frame, size) },
    };
    let Some(packet) = packet else {
        return node.refuse(NO_PACKET);
    };
    let mut packet = match packet.checked() {
        Ok(packet) => packet,
        Err(mistake) => return node.refuse(mistake),
    };
    // The dissector is safe code that accepts all bytes. A panic in it would be a bug, but would change
    // nothing.
    let read = or(None, || Some(dissect(frame, link_type)));
    let Some(dissection) = read else {
        return Status::FairgateBroken;
    };
    if dissection.network_offset.is_some() {
        packet.dscp = dissection.dscp();
        packet.ecn = dissection.ecn();
    }
    if packet.flow.raw() == 0 {
        packet.flow = node.hasher.five_tuple(&dissection.key);
    }
    node.enqueue_dissected(packet, &dissection, frame, link_type, Time::from_nanos(now))
}

/// Dequeues the next packet, when the link is free. The answer is FAIRGATE_PACKET: then `departure` is
/// written; FAIRGATE_WAIT: then `wait_until`, if it is not NULL, is the time for the next call
/// (FAIRGATE_NEVER: after the next enqueue); FAIRGATE_IDLE, or an error. Then the caller takes what was
/// dropped.
///
/// # Safety
/// `node` must be from this library or NULL, `departure` valid for a write or NULL, `wait_until` likewise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_dequeue(
    node: *mut QueueNode,
    now: u64,
    departure: *mut CDeparture,
    wait_until: *mut u64,
) -> Status {
    // SAFETY: as the caller promises.
    let node = match unsafe { ready(node) } {
        Ok(node) => node,
        Err(status) => return status,
    };
    if departure.is_null() {
        return node.refuse(NO_PLACE);
    }
    let now = Time::from_nanos(now);
    node.call(now, |egress, pool| {
        match egress.dequeue(now, pool) {
            Next::Packet(id) => {
                // SAFETY: it is not NULL, and the caller promises that it is valid for a write.
                unsafe { departure.write(CDeparture::of(&pool[id])) };
                pool.release(id);
                Status::FairgatePacket
            }
            Next::Wait(until) => {
                if !wait_until.is_null() {
                    // SAFETY: the caller promises that it is valid for a write.
                    unsafe { wait_until.write(until.nanos()) };
                }
                Status::FairgateWait
            }
            Next::Idle => Status::FairgateIdle,
        }
    })
}

/// Shows the packet that the next dequeue will return, now or later. It stays queued. The answer is
/// FAIRGATE_PACKET, FAIRGATE_WAIT, FAIRGATE_IDLE, or an error. Then the caller takes what was dropped.
///
/// # Safety
/// `node` must be from this library or NULL, `departure` valid for a write or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_peek(
    node: *mut QueueNode,
    now: u64,
    departure: *mut CDeparture,
) -> Status {
    // SAFETY: as the caller promises.
    let node = match unsafe { ready(node) } {
        Ok(node) => node,
        Err(status) => return status,
    };
    if departure.is_null() {
        return node.refuse(NO_PLACE);
    }
    let now = Time::from_nanos(now);
    node.call(now, |egress, pool| {
        match egress.root_mut().peek(now, pool) {
            Some(id) => {
                let slot: &Slot = &pool[id];
                // SAFETY: it is not NULL, and the caller promises that it is valid for a write.
                unsafe { departure.write(CDeparture::of(slot)) };
                Status::FairgatePacket
            }
            None if egress.backlog().packets == 0 => Status::FairgateIdle,
            None => Status::FairgateWait,
        }
    })
}

/// Reports that the link transmits the last dequeued packet until `end`. Returns whether more packets are
/// queued: then the caller dequeues at `end`; otherwise it need not. Disciplines learn so when the link was
/// idle. A caller that always dequeues at the end of a transmission need not call it.
///
/// # Safety
/// `node` must be from this library or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_transmits_until(node: *mut QueueNode, end: u64) -> bool {
    // SAFETY: as the caller promises.
    let node = unsafe { ready(node) };
    node.is_ok_and(|node| node.egress.transmits_until(Time::from_nanos(end)))
}

/// Returns when to dequeue again, in nanoseconds: FAIRGATE_NEVER if the tree does not hold packets back now.
///
/// # Safety
/// `node` must be from this library or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_watchdog(node: *const QueueNode) -> u64 {
    // SAFETY: as the caller promises.
    let node = unsafe { node.as_ref() }.filter(|node| node.shared.state.get() != State::Broken);
    node.map_or(FAIRGATE_NEVER, |node| {
        or(FAIRGATE_NEVER, || {
            node.egress.root().watchdog().map_or(FAIRGATE_NEVER, Time::nanos)
        })
    })
}

/// Drops all packets with the reason "flushed". Then the caller takes them: `fairgate_pool_take_dropped`.
///
/// # Safety
/// `node` must be from this library or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_flush(node: *mut QueueNode) -> Status {
    // SAFETY: as the caller promises.
    let node = match unsafe { ready(node) } {
        Ok(node) => node,
        Err(status) => return status,
    };
    let last = node.last;
    node.call(last, |egress, pool| {
        egress.root_mut().flush(pool);
        Status::FairgateIdle
    })
}

/// Changes the running tree to `tree`, which may be any other tree. What both have in common stays as it is.
/// Packets stay queued: they move to the new disciplines in the order of their flows, and are dropped if a
/// new limit has no room for them. The statistics of the root and of classes that still exist go on. Returns
/// false if a discipline refuses: then nothing has changed. Then the caller takes what was dropped.
///
/// # Safety
/// `node` and `tree` must be from this library or NULL, and `error` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_change(
    node: *mut QueueNode,
    tree: *const Tree,
    now: u64,
    error: *mut *mut c_char,
) -> bool {
    // SAFETY: as the caller promises.
    let (node, tree) = unsafe { (ready(node), tree.as_ref()) };
    let changed = change(node, tree, Time::from_nanos(now));
    let text = match &changed {
        Ok(()) => ptr::null_mut(),
        Err(message) => to_c(message.clone()),
    };
    // SAFETY: as the caller promises.
    unsafe { give(error, text) };
    changed.is_ok()
}

fn change(node: Result<&mut QueueNode, Status>, tree: Option<&Tree>, now: Time) -> Result<(), String> {
    let node = node.map_err(|status| match status {
        Status::FairgateBroken => BUG.to_owned(),
        _ => "the node is NULL, or a function that visits it is running; pass a node afterwards".to_owned(),
    })?;
    let tree = tree.ok_or("the tree is NULL; make one first")?;
    let mut applied = Err(BUG.to_owned());
    let mut needs = node.needs;
    let change = node.spec.change_to(&tree.spec, node.seed);
    let change = change.map_err(|error| error.to_string())?;
    let status = node.call(now, |egress, pool| {
        let result = change.apply(egress.root_mut(), now, pool);
        applied = result.map(drop).map_err(|error| error.to_string());
        needs = egress.root().needs();
        pool.keep(needs);
        Status::FairgateIdle
    });
    node.needs = needs;
    if applied.is_ok() {
        node.spec = tree.spec.clone();
    }
    match status {
        Status::FairgateInvalid => Err(node.mistake.get().trim_end_matches('\0').to_owned()),
        _ => applied,
    }
}

/// Returns what was wrong in the last call that answered FAIRGATE_INVALID: the argument, and the remedy. It
/// is valid for ever. It is empty if there was none, and NULL if `node` is NULL.
///
/// # Safety
/// `node` must be from this library or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_mistake(node: *const QueueNode) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { node.as_ref() }.map_or(ptr::null(), |node| node.mistake.get().as_ptr().cast())
}

/// Frees a node. Its packets are given up: to get their cookies, flush it and take them first. NULL is
/// allowed.
///
/// # Safety
/// `node` must be from this library or NULL, and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_free(node: *mut QueueNode) {
    if node.is_null() {
        return;
    }
    // SAFETY: the caller promises that it is from `create`, and not freed yet.
    let mut node = unsafe { Box::from_raw(node) };
    or((), move || {
        if node.shared.state.get() == State::Ready {
            // SAFETY: the state is ready, so no call of this pool is under way.
            let (egress, pool) = unsafe { node.parts() };
            let mut left = PacketQueue::new();
            egress.root_mut().drain(pool, &mut left);
            while let Some(id) = left.pop_front(pool) {
                pool.release(id);
            }
        }
    });
}
