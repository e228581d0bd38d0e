//! What is controlled: a run, as the clients of its status socket see it.

use std::time::Duration;

use fairgate_live::status::protocol::{Answer, Interval, Mistake, ReserveOrder, Reserved, TreesStatus};
use fairgate_live::status::{Detail, FlowOrder, FlowsStatus, NoPackets, RunningTrees, Status};
use fairgate_subscribers::{Difference, Entry};
use serde::Deserialize;
use utoipa::ToSchema;

/// A run that can be asked and changed. Its methods may wait, so they are called on threads of their own.
pub trait Run: Send + Sync + 'static {
    /// Returns the status, or nothing if the run has ended.
    fn status(&self, detail: Detail) -> Option<Status>;

    /// Returns the trees and their revision.
    fn trees(&self) -> TreesStatus;

    /// Shows the trees to `look` as the run has them: a text of thousands of classes takes seconds to parse.
    fn look_at_trees(&self, look: &mut dyn FnMut(&RunningTrees<'_>));

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

    /// Notes in the audit that somebody was refused who asked for something.
    fn note(&self, who: &str, what: &str, outcome: &str);

    /// Returns the first `limit` flows, or nothing if the run has ended. The first call may take a second.
    fn flows(&self, order: FlowOrder, limit: usize) -> Option<FlowsStatus>;

    /// Begins to record what the classes do.
    fn record(&self) -> Recorder;

    /// Returns whether the last packets are kept.
    fn keeps_packets(&self) -> bool;

    /// Returns the last packets as a capture, those from this interface or all.
    ///
    /// # Errors
    /// Says why there is none.
    fn last_packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, NoPackets>;

    /// Compares what disciplines would have done with the last packets. Returns a page of HTML.
    ///
    /// # Errors
    /// Says what is wrong with the question, or why there are no packets.
    fn what_if(&self, question: &WhatIf) -> Result<String, WhatIfRefused>;

    /// Returns the list of subscribers, if the run has one.
    fn subscribers(&self) -> Option<&dyn Subscribers> {
        None
    }
}

/// Returns what each class did since the last call, or nothing if the run has ended. The first interval has
/// no rows. The run notes sojourn times as long as this exists.
pub type Recorder = Box<dyn FnMut() -> Option<Interval> + Send>;

/// What would other disciplines have done just now?
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIf {
    /// The interface that the direction receives from. It may be left out if only one direction has a rate at
    /// the root of its tree.
    #[serde(default)]
    pub from: Option<String>,
    /// Disciplines with settings, like `fifo limit=100`, at most 8. The tree as it is comes first, whatever
    /// is given here. Without any, these are fifo, fq_codel and cake.
    #[serde(default)]
    pub queues: Vec<String>,
    /// The time before now from which packets are taken, seconds. Without it, all that are kept.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The rate of the link, like `20mbit`. Without it, the rate at the root of the tree.
    #[serde(default)]
    pub rate: Option<String>,
}

/// Why a question is not answered.
#[derive(Clone, Debug)]
pub enum WhatIfRefused {
    /// There are no packets.
    NoPackets(NoPackets),
    /// The question is wrong, or can't be answered.
    Mistakes(Vec<Mistake>),
}

/// The subscribers of a run. The methods may wait, so they are called on threads of their own.
pub trait Subscribers {
    /// Returns all subscribers.
    fn all(&self) -> SubscriberList;

    /// Returns a subscriber and its class.
    fn one(&self, id: &str) -> Option<(Entry, u16)>;

    /// Adds, changes or removes the subscriber `id`, for `who`, who has asked for it with `method`. `change`
    /// gets it as it is, if it is there, and returns what it becomes: nothing if it is removed. If `change`
    /// refuses, nothing is changed. No other change comes in between.
    fn change(
        &self,
        who: &str,
        method: &str,
        id: &str,
        change: &mut SubscriberChange<'_>,
    ) -> SubscriberChanged;

    /// Puts another list in the place of the whole one, for `who`. If the trees have another revision than
    /// `if_revision`, nothing is changed. Returns the answer of the run and how the lists differ, or nothing
    /// if the run has no list any more.
    fn replace(
        &self,
        who: &str,
        entries: Vec<Entry>,
        if_revision: Option<u64>,
    ) -> Option<(Answer, Difference)>;

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
    /// How the list differed from the one before it when it was last read or replaced as a whole.
    pub difference: Option<Difference>,
    /// Whether they may be changed here: those of LibreQoS' files are changed there.
    pub is_changeable: bool,
}

/// What became of a change of subscribers.
#[derive(Clone, Debug)]
pub enum SubscriberChanged {
    /// It was made, or refused by the run.
    Asked(Answer),
    /// The function that makes the change has refused it.
    Stopped,
}
