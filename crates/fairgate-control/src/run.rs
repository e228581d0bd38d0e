//! What is controlled: a run, as the clients of its status socket see it.

use fairgate_config::Registry;
use fairgate_live::status::protocol::{Answer, ReserveOrder, Reserved, TreesStatus};
use fairgate_live::status::{Detail, Inside, Status};
use fairgate_subscribers::Entry;

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

    /// Returns the disciplines that the trees are made of.
    fn registry(&self) -> Registry {
        Registry::builtin()
    }

    /// Returns the list of subscribers, if the run has one.
    fn subscribers(&self) -> Option<&dyn Subscribers> {
        None
    }
}

/// The subscribers of a run. The methods may wait, so they are called on threads of their own.
pub trait Subscribers {
    /// Returns all subscribers.
    fn all(&self) -> SubscriberList;

    /// Returns a subscriber and its class.
    fn one(&self, id: &str) -> Option<(Entry, u16)>;

    /// Adds, changes or removes the subscriber `id`, for `who`. `change` gets it as it is, if it is there,
    /// and returns what it becomes: nothing if it is removed. If `change` refuses, nothing is changed. No
    /// other change comes in between.
    fn change(&self, who: &str, id: &str, change: &mut SubscriberChange<'_>) -> SubscriberChanged;

    /// Puts another list in the place of the whole one, for `who`. If the trees have another revision than
    /// `if_revision`, nothing is changed.
    fn replace(&self, who: &str, entries: Vec<Entry>, if_revision: Option<u64>) -> SubscriberChanged;

    /// Returns the revision of the trees.
    fn revision(&self) -> u64;
}

/// What becomes of a subscriber, or nothing at all if the change is refused.
pub type SubscriberChange<'c> = dyn FnMut(Option<&Entry>) -> Option<Option<Entry>> + 'c;

/// The subscribers of a run.
#[derive(Clone, Debug, Default)]
pub struct SubscriberList {
    /// The revision of the trees.
    pub revision: u64,
    /// The subscribers, in the order of the list.
    pub entries: Vec<Entry>,
    /// The number of each one's class.
    pub classes: Vec<u16>,
}

/// What became of a change of subscribers.
#[derive(Clone, Debug)]
pub enum SubscriberChanged {
    /// It was made, or refused by the run.
    Asked(Answer),
    /// The function that makes the change has refused it.
    Stopped,
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
