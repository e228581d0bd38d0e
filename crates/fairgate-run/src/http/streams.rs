//! Answers without an end: a connection lives as long as one is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The answers without an end of a connection. It is an extension of each request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(Arc<AtomicUsize>);

/// An answer without an end, until it is dropped.
#[derive(Debug)]
pub(crate) struct Stream(Streams);

impl Streams {
    /// Begins an answer.
    pub(crate) fn begin(&self) -> Stream {
        self.0.fetch_add(1, Ordering::AcqRel);
        Stream(self.clone())
    }

    /// Returns whether one is being sent.
    pub(crate) fn is_any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}
