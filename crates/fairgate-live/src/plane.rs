//! What forwards the packets of a run, as those see it who ask and change the run.

use std::sync::Arc;
use std::time::Duration;

use fairgate_config::Problem;
use fairgate_run_api::{ChangeMade, Detail, FlowOrder, FlowsStatus, Recorder, Refused, Status};

use crate::config::Plan;
use crate::error::ReloadError;

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Anything, for somebody who has asked for it.
    Trees,
    /// The rate at the root of a tree, because it follows the line. It is not counted as a change, and the
    /// revision stays.
    Rate,
}

/// What a change has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// The longest time in which nothing was forwarded: the trees of the directions change one after the
    /// other.
    pub pause: Duration,
    /// Packets for which a new limit had no room, or that no class takes any more.
    pub dropped: u64,
    /// The revision of the trees from now on.
    pub revision: u64,
    /// The number of changes by hand that this one has replaced, because the trees are read from a file.
    pub undone: u64,
}

impl Changed {
    /// Returns a change that cost nothing, and led to this revision.
    pub fn of(revision: u64) -> Changed {
        Changed {
            revision,
            ..Changed::default()
        }
    }
}

impl From<Changed> for ChangeMade {
    fn from(changed: Changed) -> ChangeMade {
        ChangeMade {
            pause_us: changed.pause.as_nanos() as f64 / 1e3,
            dropped: changed.dropped,
            revision: changed.revision,
        }
    }
}

/// What forwards packets: threads of this process ([`Bridge::observe`](crate::Bridge::observe)), the kernel,
/// or whatever else has two trees that change and are read. Its methods may wait, so they are called on
/// threads that forward nothing.
pub trait Plane: Send + Sync {
    /// Returns the configuration that is running.
    fn plan(&self) -> Arc<Plan>;

    /// Changes to the plan that `new` makes from the running one. No other change comes in between.
    ///
    /// # Errors
    /// With the error of `new`, if a setting differs that is fixed, if a tree does not suit the plane, or if
    /// it does not run any more. Then nothing is changed.
    fn change(
        &self,
        kind: Kind,
        new: &mut dyn FnMut(&Plan) -> Result<Plan, ReloadError>,
    ) -> Result<Changed, ReloadError>;

    /// Returns the parts of the running trees that accept full-sized frames but drop full-sized frames with a
    /// VLAN tag.
    fn warnings(&self) -> Vec<Problem>;

    /// Returns the status.
    ///
    /// # Errors
    /// Fails if the run has ended, or with [`Refused::Unread`] if it goes on and could not be read.
    fn status(&self, detail: Detail) -> Result<Status, Refused>;

    /// Begins to record what the classes do.
    fn record(&self) -> Recorder;

    /// Returns the first `limit` flows. The first call may take a second.
    ///
    /// # Errors
    /// Fails if the run has ended, or does not see its packets.
    fn flows(&self, order: FlowOrder, limit: usize) -> Result<FlowsStatus, Refused>;

    /// Returns the packets of the last time of this length, at most those that are kept, as a capture in
    /// pcapng. `from` is the interface that has received them. Without it, packets of both are returned.
    ///
    /// # Errors
    /// Says why there is none.
    fn last_packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, Refused>;

    /// Returns the length of the longest packet, bytes.
    fn longest(&self) -> u32;
}
