//! What the status of a run says of its autorate.

use std::sync::{Arc, Mutex, PoisonError};

use fairgate_run_api::AutorateStatus;

use crate::config::RateSource;

/// Returns the status before the first review.
pub(crate) fn before_review(source: &RateSource) -> AutorateStatus {
    let source = match source {
        RateSource::Reflectors(_) => "probes",
        RateSource::File(_) => "file",
    };
    AutorateStatus {
        source: source.to_owned(),
        baseline_us: None,
        excess_us: None,
        changes: 0,
        refused: 0,
        longest_pause_us: 0.0,
        directions: Vec::new(),
    }
}

/// What the status of a run says of its autorate. The follower writes it, and other threads read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board(Arc<Mutex<Option<AutorateStatus>>>);

impl Board {
    /// Returns the state after the last review. `None` if no rate follows.
    pub(crate) fn read(&self) -> Option<AutorateStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the state.
    pub(crate) fn write(&self, status: AutorateStatus) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }
}
