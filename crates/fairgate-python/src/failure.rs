//! The failure of a discipline in Python, on its way to whoever drives it.
//!
//! The library's calls can't fail, so the exception waits here. A tree is driven by one thread at a time, and
//! its driver asks on the same thread.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// The last failure of any thread, for a command that simulates on threads of its own.
static LAST: Mutex<Option<PyErr>> = Mutex::new(None);

thread_local! {
    static FAILURE: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Remembers a failure, unless there is an earlier one.
pub(crate) fn set(error: PyErr) {
    let copy = Python::attach(|py| error.clone_ref(py));
    LAST.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert(copy);
    FAILURE.with_borrow_mut(|failure| {
        failure.get_or_insert(error);
    });
}

/// Whether a call on this thread has failed.
pub(crate) fn is_set() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// Returns the failure, and forgets it.
pub(crate) fn take() -> Option<PyErr> {
    FAILURE.take()
}

/// Returns the last failure of any thread, and forgets it.
pub(crate) fn take_of_any_thread() -> Option<PyErr> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).take()
}
