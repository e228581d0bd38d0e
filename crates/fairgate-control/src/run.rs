//! What is controlled: a run, as the clients of its status socket see it.

use fairgate_live::status::protocol::{Answer, ReserveOrder, Reserved, TreesStatus};
use fairgate_live::status::{Detail, Inside, Status};

/// A run that can be asked and changed. Its methods may wait, so they are called on threads of their own.
pub trait Run: Send + Sync + 'static {
    /// Returns the status, or nothing if the run has ended.
    fn status(&self, detail: Detail) -> Option<Status>;

    /// Returns the trees and their revision.
    fn trees(&self) -> TreesStatus;

    /// Makes the changes of these lines together or not at all, for `who`. If the trees have another revision
    /// than `if_revision`, nothing is changed.
    fn change(&self, who: &str, from: Option<&str>, lines: &[String], if_revision: Option<u64>) -> Answer;

    /// Carries out an order about reservations, for `who`.
    fn reserve(
        &self,
        who: &str,
        from: Option<&str>,
        order: ReserveOrder,
        if_revision: Option<u64>,
    ) -> Reserved;
}

impl Run for Inside {
    fn status(&self, detail: Detail) -> Option<Status> {
        Inside::status(self, detail)
    }

    fn trees(&self) -> TreesStatus {
        Inside::trees(self)
    }

    fn change(&self, who: &str, from: Option<&str>, lines: &[String], if_revision: Option<u64>) -> Answer {
        Inside::change(self, who, from, lines, if_revision)
    }

    fn reserve(
        &self,
        who: &str,
        from: Option<&str>,
        order: ReserveOrder,
        if_revision: Option<u64>,
    ) -> Reserved {
        Inside::reserve(self, who, from, order, if_revision)
    }
}
