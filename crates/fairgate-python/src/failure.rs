//! The failure of a discipline in Python, on its way to whoever drives it.
//!
//! The library's calls can't fail, so the exception waits here. A tree is driven by one thread at a time, and
//! its driver asks on the same thread.

use std::cell::RefCell;

use pyo3::prelude::*;

thread_local! {
    static FAILURE: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Remembers a failure, unless there is an earlier one.
pub(crate) fn set(error: PyErr) {
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
