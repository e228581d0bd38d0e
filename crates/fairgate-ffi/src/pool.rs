//! The pool: the packets of all nodes that share it.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_char;
use std::rc::Rc;

use fairgate::Pool;

use crate::call::{create, or};
use crate::packet::CDropped;

/// The packets of one or more nodes. It lives until it and all its nodes are freed.
pub struct SharedPool {
    pub(crate) shared: Rc<Shared>,
}

impl std::fmt::Debug for SharedPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedPool").finish_non_exhaustive()
    }
}

/// What pool and nodes share.
pub(crate) struct Shared {
    pub(crate) pool: UnsafeCell<Pool>,
    /// Why no call is accepted now.
    pub(crate) state: Cell<State>,
}

impl Shared {
    /// Runs `work`. If it panics, what it left half done is never used again: no call is accepted any more,
    /// and the answer is `broken`. Nothing is written before or after work that does not panic, which is what
    /// makes a call cheap.
    #[inline]
    pub(crate) fn guard<R>(&self, broken: R, work: impl FnOnce() -> R) -> R {
        or(None, || Some(work())).unwrap_or_else(|| {
            self.state.set(State::Broken);
            broken
        })
    }
}

/// Whether calls are accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// A callback of the caller runs. It may not call back.
    Visiting,
    /// A panic left something half done.
    Broken,
}

/// Makes a pool for `capacity` packets: the queued ones of all its nodes, and the dropped ones that were not
/// taken yet. It takes about 128 bytes for each. Returns NULL if `capacity` is 0.
///
/// # Safety
/// `error` must be NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_pool_new(capacity: u32, error: *mut *mut c_char) -> *mut SharedPool {
    // SAFETY: as the caller promises.
    unsafe {
        create(error, || {
            if capacity == 0 {
                return Err("a pool needs room for packets; pass at least 1".to_owned());
            }
            Ok(SharedPool {
                shared: Rc::new(Shared {
                    pool: UnsafeCell::new(Pool::with_capacity(capacity)),
                    state: Cell::new(State::Ready),
                }),
            })
        })
    }
}

/// Returns the number of packets in the pool: the queued ones, and the dropped ones that were not taken yet.
///
/// # Safety
/// `pool` must be from this library or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_pool_length(pool: *const SharedPool) -> u32 {
    // SAFETY: the caller promises the pointer. One thread uses the pool, so nobody else borrows it now.
    unsafe { pool.as_ref() }.map_or(0, |pool| unsafe { &*pool.shared.pool.get() }.len())
}

/// Takes the oldest packet that a call dropped or flushed, and frees its place in the pool. Returns false if
/// there is none. A program calls it after each enqueue, dequeue, flush and change, until it returns false.
///
/// # Safety
/// `pool` must be from this library or NULL, and `dropped` valid for a write or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_pool_take_dropped(pool: *mut SharedPool, dropped: *mut CDropped) -> bool {
    // SAFETY: as the caller promises.
    let Some(pool) = (unsafe { pool.as_ref() }) else {
        return false;
    };
    let shared = &*pool.shared;
    if dropped.is_null() || shared.state.get() != State::Ready {
        return false;
    }
    shared.guard(false, || {
        // SAFETY: one thread uses the pool and its nodes, and no call is under way: the state was ready.
        let slots = unsafe { &mut *shared.pool.get() };
        let taken = slots.take_returned();
        if let Some((id, reason)) = taken {
            let slot = slots.release(id);
            // SAFETY: the caller promises that it is valid for a write.
            unsafe { dropped.write(CDropped::of(&slot, reason)) };
        }
        taken.is_some()
    })
}

/// Frees a pool. Its memory stays until its last node is freed. NULL is allowed.
///
/// # Safety
/// `pool` must be from this library or NULL, and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_pool_free(pool: *mut SharedPool) {
    if !pool.is_null() {
        // SAFETY: the caller promises that it is from `create`, and not freed yet.
        or((), || drop(unsafe { Box::from_raw(pool) }));
    }
}
