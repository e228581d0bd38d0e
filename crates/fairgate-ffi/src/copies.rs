//! Copies of packets, which `netem` makes to duplicate them. Only the caller can copy what a packet carries.

use std::ffi::c_void;

use fairgate::{Copied, Time};

use crate::call::or;
use crate::node::{EARLIER, QueueNode, ready};
use crate::packet::Status;
use crate::pool::{SharedPool, State};

/// Is called for a copy that a discipline made. `cookie` is that of the original, which the caller has not
/// got back yet. It copies what the packet carries, writes the cookie of the copy, and returns true; or it
/// returns false, and there is no copy. It must not call functions with this node or its pool, and must not
/// leave by an exception or `longjmp`.
pub type MakeCopy =
    Option<unsafe extern "C" fn(context: *mut c_void, cookie: u64, copy_cookie: *mut u64) -> bool>;

/// Tells the disciplines of this pool's nodes that the caller makes copies of packets. `netem` duplicates
/// packets only then. From then on the caller calls `fairgate_node_enqueue_copies` after each enqueue,
/// dequeue and peek, before it takes what was dropped. Returns false if the pool is NULL or broken.
///
/// # Safety
/// `pool` must be from this library or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_pool_allow_copies(pool: *mut SharedPool) -> bool {
    // SAFETY: as the caller promises.
    let pool = unsafe { pool.as_ref() }.filter(|pool| pool.shared.state.get() == State::Ready);
    pool.is_some_and(|pool| {
        // SAFETY: the state is ready, so no call of this pool is under way.
        unsafe { &mut *pool.shared.pool.get() }.allow_copies();
        true
    })
}

/// Enqueues the copies that the last call of this node has asked for, as new packets. `make` is called for
/// each. Returns how many were enqueued: if there is one, a link that was idle dequeues again. Returns 0
/// after an error; `fairgate_node_mistake` names it.
///
/// # Safety
/// `node` must be from this library or NULL, and `make` must accept `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_enqueue_copies(
    node: *mut QueueNode,
    now: u64,
    make: MakeCopy,
    context: *mut c_void,
) -> u32 {
    let now = Time::from_nanos(now);
    let mut count = 0;
    // SAFETY: as the caller promises. No reference to the node or its pool is held while `make` runs.
    while let Some((copied, cookie)) = unsafe { next_copy(node, now) } {
        let mut copy_cookie = cookie;
        let is_made = make.is_some_and(|make| {
            // SAFETY: as the caller promises.
            let state = &unsafe { &*node }.shared.state;
            state.set(State::Visiting);
            // SAFETY: the pointer is valid during the call. The caller promises that `make` accepts it.
            let is_made = unsafe { make(context, cookie, &mut copy_cookie) };
            state.set(State::Ready);
            is_made
        });
        // SAFETY: as the caller promises.
        let Ok(node) = (unsafe { ready(node) }) else {
            return count;
        };
        let status = node.call(now, |egress, pool| {
            if !is_made {
                pool.release(copied.copy);
                return Status::FairgateIdle;
            }
            pool[copied.copy].cookie = copy_cookie;
            Status::of(egress.enqueue(copied.copy, now, pool))
        });
        match status {
            Status::FairgateIdle => {}
            Status::FairgateBroken | Status::FairgateInvalid => return count,
            _ => count += 1,
        }
    }
    count
}

/// Returns the next copy, with the cookie of its original.
///
/// # Safety
/// As `ready`.
unsafe fn next_copy(node: *mut QueueNode, now: Time) -> Option<(Copied, u64)> {
    // SAFETY: as the caller promises.
    let node = unsafe { ready(node) }.ok()?;
    if now < node.last {
        node.refuse(EARLIER);
        return None;
    }
    or(None, || {
        // SAFETY: the state is ready, so no call of this pool is under way.
        let (_, pool) = unsafe { node.parts() };
        let copied = pool.take_copy()?;
        Some((copied, pool[copied.original].cookie))
    })
}
