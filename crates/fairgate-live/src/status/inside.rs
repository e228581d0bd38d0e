//! Asks a run from within its process.

use std::sync::Arc;
use std::time::Duration;

use fairgate_config::{FileError, Spec};

use super::control::Control;
use super::desk::{Desk, NoPackets, Recorder};
use super::document::{Detail, Status};
use super::protocol::{Answer, ReserveOrder, Reserved, TreesStatus};
use crate::config::Plan;
use crate::packets::{FlowOrder, FlowsStatus};

/// Asks a run from within its process what clients ask at its socket. Calls wait for the forwarding thread.
#[derive(Clone)]
pub struct Inside(pub(super) Arc<Desk>);

/// The trees of a run as it has them. [`TreesStatus`] has them as text.
#[derive(Debug)]
pub struct RunningTrees<'r> {
    /// It grows by 1 with each change of the trees.
    pub revision: u64,
    /// From left to right, and from right to left.
    pub directions: [RunningTree<'r>; 2],
}

/// The tree of a direction.
#[derive(Debug)]
pub struct RunningTree<'r> {
    /// The interface that frames are received from.
    pub from: &'r str,
    /// The interface that frames are sent to.
    pub to: &'r str,
    /// The tree.
    pub tree: &'r Spec,
}

impl Inside {
    /// Returns the status, or nothing if the run has ended.
    pub fn status(&self, detail: Detail) -> Option<Status> {
        Some(Status::of_reading(self.0.reading()?, detail))
    }

    /// Returns the trees.
    pub fn trees(&self) -> TreesStatus {
        self.control().trees()
    }

    /// Shows the trees to `look`, without a copy.
    pub fn look_at_trees(&self, look: &mut dyn FnMut(&RunningTrees<'_>)) {
        let plan = self.control().reserver.changer().plan();
        let direction = |side: usize| RunningTree {
            from: plan.ends[side].title(),
            to: plan.ends[1 - side].title(),
            tree: &plan.queues[side],
        };
        look(&RunningTrees {
            revision: plan.revision,
            directions: [direction(0), direction(1)],
        });
    }

    /// Changes the trees for `who`, as [`Request::Change`](super::protocol::Request::Change) says.
    pub fn change(
        &self,
        who: &str,
        from: Option<&str>,
        lines: &[String],
        if_revision: Option<u64>,
    ) -> Answer {
        self.control().change(who, from, lines, if_revision)
    }

    /// Notes in the audit that something else was asked for, and what became of it.
    pub fn note(&self, who: &str, what: &str, outcome: &str) {
        self.control().note(who, what, outcome);
    }

    /// Changes to the trees of the plan that `new` makes from the running one, for `who`. `what` says in the
    /// audit what was asked for. If the trees have another revision than the expected one, nothing changes.
    pub fn replace(
        &self,
        who: &str,
        what: &str,
        if_revision: Option<u64>,
        new: impl FnOnce(&Plan) -> Result<Plan, FileError>,
    ) -> Answer {
        self.control().replace(who, what, if_revision, new)
    }

    /// Returns the revision of the trees.
    pub fn revision(&self) -> u64 {
        self.control().reserver.changer().plan().revision
    }

    /// Carries out an order about reservations for `who`, as
    /// [`Request::Reserve`](super::protocol::Request::Reserve) says.
    pub fn reserve(
        &self,
        who: &str,
        from: Option<&str>,
        order: ReserveOrder,
        if_revision: Option<u64>,
    ) -> Reserved {
        self.control().reserve(who, from, order, if_revision)
    }

    /// Returns the first `limit` flows. The first call may take a second. Returns nothing if the run has
    /// ended.
    pub fn flows(&self, order: FlowOrder, limit: usize) -> Option<FlowsStatus> {
        self.0.flows(order, limit)
    }

    /// Begins to record what the classes do.
    pub fn recorder(&self) -> Recorder {
        self.0.recorder()
    }

    /// Returns whether the last packets are kept.
    pub fn keeps_packets(&self) -> bool {
        self.0.keeps_packets()
    }

    /// Returns the packets of the last time of this length, at most those that are kept, as a capture in
    /// pcapng. `from` is the interface that has received them. Without it, packets of both are returned.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn last_packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, NoPackets> {
        self.0.last_packets(last, from)
    }

    /// Returns the tree of the direction that receives from this interface, if there is one.
    pub fn tree(&self, from: &str) -> Option<Spec> {
        let plan = self.control().reserver.changer().plan();
        let side = plan.ends.iter().position(|end| end.title() == from)?;
        Some(plan.queues[side].clone())
    }

    fn control(&self) -> &Control {
        &self.0.control
    }
}

/// Prints the name of the type only.
impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}
