//! What the changes of a run have done.

use std::sync::atomic::{AtomicU64, Ordering};

use fairgate_run_api::ChangesStatus;

use crate::plane::{Changed, Kind};

/// What the changes so far have done.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    applied: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    longest_pause: AtomicU64,
}

impl Tally {
    /// Counts a change, or that it was refused.
    pub(crate) fn note<E>(&self, kind: Kind, changed: &Result<Changed, E>) {
        match changed {
            _ if kind == Kind::Rate => {}
            Ok(changed) => {
                let pause = changed.pause.as_nanos() as u64;
                self.longest_pause.fetch_max(pause, Ordering::Relaxed);
                self.dropped.fetch_add(changed.dropped, Ordering::Relaxed);
                self.applied.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Returns what the status says.
    pub(crate) fn status(&self) -> ChangesStatus {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ChangesStatus {
            unconfirmed_s: None,
            applied: count(&self.applied),
            refused: count(&self.refused),
            dropped: count(&self.dropped),
            longest_pause_us: count(&self.longest_pause) as f64 / 1e3,
        }
    }
}
