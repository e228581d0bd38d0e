//! Asks whether a run forwards.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Plan;
use crate::status::Board;

/// Asks a run for a sign of life, from other threads. Copies ask the same run.
#[derive(Clone)]
pub struct Pulse(Arc<dyn Heart>);

/// What the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// It has forwarded since it was asked, or could have: each of its threads has made a turn.
    Alive,
    /// At least one of its threads has not answered in time.
    Late,
    /// The run has ended.
    Ended,
}

/// What forwards, for those who watch it or follow a line.
pub(crate) trait Heart: Send + Sync {
    /// Asks it, and waits for the answer. Without `patience` it waits until the run ends.
    fn beat(&self, patience: Option<Duration>) -> Beat;

    /// Returns the configuration that is running.
    fn plan(&self) -> Arc<Plan>;

    /// Returns where the follower of the line says what it does.
    fn board(&self) -> &Board;

    /// Returns how many bytes have left the trees of each direction since the start. `None` if the run has
    /// ended.
    fn sent(&self) -> Option<[u64; 2]>;
}

impl Pulse {
    pub(crate) fn of(heart: Arc<dyn Heart>) -> Pulse {
        Pulse(heart)
    }

    /// Asks the run, and waits until it has answered. Without `patience` it waits until the run ends.
    pub fn beat(&self, patience: Option<Duration>) -> Beat {
        self.0.beat(patience)
    }

    pub(crate) fn heart(&self) -> &dyn Heart {
        &*self.0
    }
}

/// Prints the name of the type only.
impl fmt::Debug for Pulse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulse").finish_non_exhaustive()
    }
}
