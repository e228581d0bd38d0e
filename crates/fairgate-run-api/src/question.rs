//! What a run is asked, and what it answers.
//!
//! A new question is a variant of [`Question`], a handler in the run, and a route of the API. Who asks in the
//! process or over HTTP gets the same answers.
//!
//! The trees have a revision. A client that has read them can ask for a change of this revision only: if
//! somebody else has changed them since, nothing is changed.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::entry::Entry;
use crate::flows::{FlowOrder, FlowsStatus};
use crate::outline::{OutlineDocument, PlaceDocument};
use crate::recording::Recorder;
use crate::refused::Refused;
use crate::reservations::{Reservations, ReserveOrder};
use crate::status::{Detail, Status};
use crate::subscribers::{
    NodePatch, SubscriberChange, SubscriberChanged, SubscriberDocument, SubscriberMade, SubscriberStatus,
};
use crate::trees::{ChangeMade, Mistake, TreesStatus};

/// What a run is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// The status. It is answered by [`Answer::Status`].
    Status {
        /// How much it says.
        detail: Detail,
    },
    /// The revision of the trees. It is answered by [`Answer::Revision`].
    Revision,
    /// What else the run can be asked. It is answered by [`Answer::Features`].
    Features,
    /// The trees as configuration, and their revision. It is answered by [`Answer::Trees`].
    Trees,
    /// What a tree is made of. It is answered by [`Answer::Outline`].
    Outline {
        /// The interface from which its direction receives.
        from: String,
    },
    /// What can be set at a place of a tree. It is answered by [`Answer::Place`].
    Place {
        /// The interface from which its direction receives.
        from: String,
        /// The numbers of the classes from the root on, as `20/3`, or `root`.
        path: String,
    },
    /// To change the trees. It is answered by [`Answer::Changed`].
    Change(Change),
    /// To keep the change that waits for its confirmation. It is answered by [`Answer::Revision`].
    Confirm,
    /// To read the configuration again, as after SIGHUP. It is answered by [`Answer::Changed`].
    Reload {
        /// Why, for the log and for the versions of the file.
        because: Option<String>,
    },
    /// To reserve a rate and a delay. It is answered by [`Answer::Reservations`].
    Reserve(Reserve),
    /// The flows that had packets in the last minute: it is answered by [`Answer::Flows`]. The first answer
    /// takes a second.
    Flows {
        /// Their order.
        order: FlowOrder,
        /// How many of them.
        limit: u32,
    },
    /// The last packets, as far as they are kept. It is answered by [`Answer::Packets`].
    Packets {
        /// The time before now from which packets are wanted. Without it, all that are kept.
        last: Option<Duration>,
        /// The interface that has received them. Without it, both.
        from: Option<String>,
    },
    /// What disciplines would have done with the last packets. It is answered by [`Answer::Page`].
    WhatIf(WhatIf),
    /// The list of subscribers. It is answered by [`Answer::Subscribers`].
    Subscribers,
    /// A subscriber. It is answered by [`Answer::Subscriber`].
    Subscriber {
        /// Its identifier.
        id: String,
    },
    /// To add, change or remove a subscriber. It is answered by [`Answer::SubscriberChanged`].
    ChangeSubscriber {
        /// Its identifier.
        id: String,
        /// What becomes of it.
        change: SubscriberChange,
        /// The versions ([`version`](crate::version)) that it may have. If it has another one, or is not
        /// there, nothing is changed.
        if_version: Option<Vec<u64>>,
    },
    /// To change members of several subscribers: of all of them or of none. It is answered by
    /// [`Answer::SubscribersChanged`].
    PatchSubscribers {
        /// Their identifiers, and for each the members that change, as of [`SubscriberChange::Patch`].
        patches: Vec<(String, Map<String, Value>)>,
        /// For how long `down` and `up` hold, seconds; then those of the list do again. 0 ends it now.
        /// Without it, the list changes.
        for_s: Option<u64>,
        /// The revision that is changed. If the trees have another one, nothing is changed.
        if_revision: Option<u64>,
    },
    /// To put another list in the place of the whole one. It is answered by [`Answer::SubscribersChanged`].
    ReplaceSubscribers {
        /// All subscribers.
        subscribers: Vec<Entry>,
        /// The number of subscribers that it may remove whatever their share is.
        confirmed_removed: Option<u64>,
        /// The revision that is changed. If the trees have another one, nothing is changed.
        if_revision: Option<u64>,
    },
    /// To change the rates of a node of the network. It is answered by [`Answer::SubscribersChanged`].
    ChangeNode {
        /// Its name.
        name: String,
        /// What it gets.
        patch: NodePatch,
        /// The revision that is changed. If the trees have another one, nothing is changed.
        if_revision: Option<u64>,
    },
}

/// A change of the trees: all lines or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The interface from which the changed direction receives. It may be left out if both directions have
    /// the same tree: then both are changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The changes in words, as of [`Spec::edited`](fairgate_config::Spec::edited).
    pub lines: Vec<String>,
    /// The revision that is changed. If the trees have another one, nothing is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_revision: Option<u64>,
    /// The time, seconds, within which it must be confirmed ([`Question::Confirm`]). Else it is undone: it
    /// may have cut off whoever made it. From 1 to [`LONGEST_CONFIRMATION_S`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm_within_s: Option<u64>,
    /// Why it is made, for the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// The longest time that a change may wait for its confirmation, seconds. Nobody else can change the trees
/// meanwhile.
pub const LONGEST_CONFIRMATION_S: u64 = 3600;

/// An order about reservations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The interface from which the reserved direction receives. It may be left out if reservations are
    /// possible in one direction only.
    pub from: Option<String>,
    /// What is done.
    pub order: ReserveOrder,
    /// The revision of the trees that the client has seen. If they have another one, nothing is done.
    pub if_revision: Option<u64>,
}

/// What would other disciplines have done just now?
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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

/// What not every run can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Whether it has subscribers.
    pub subscribers: bool,
    /// Whether it keeps the last packets.
    pub packets: bool,
}

/// Makes the enumeration of answers, and takes each kind out of it.
macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident($kind:ty),)*) => {
        /// What a run answers.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Answer {
            $($(#[$doc])* $name($kind),)*
        }

        $(
            impl From<$kind> for Answer {
                fn from(answer: $kind) -> Answer {
                    Answer::$name(answer)
                }
            }

            impl TryFrom<Answer> for $kind {
                type Error = Unexpected;

                fn try_from(answer: Answer) -> Result<$kind, Unexpected> {
                    match answer {
                        Answer::$name(answer) => Ok(answer),
                        _ => Err(Unexpected),
                    }
                }
            }
        )*
    };
}

answers! {
    /// The status.
    Status(Status),
    /// The revision of the trees: it grows by 1 with each change, whoever makes it.
    Revision(u64),
    /// What else the run can be asked.
    Features(Features),
    /// The trees as configuration.
    Trees(TreesStatus),
    /// What a tree is made of.
    Outline(OutlineDocument),
    /// What can be set at a place.
    Place(PlaceDocument),
    /// The change was made.
    Changed(ChangeMade),
    /// The reservation that was added, changed or refreshed, none after it was withdrawn, or all.
    Reservations(Reservations),
    /// The flows.
    Flows(FlowsStatus),
    /// A capture in pcapng.
    Packets(Vec<u8>),
    /// A page of HTML.
    Page(String),
    /// The list of subscribers.
    Subscribers(SubscriberDocument),
    /// A subscriber.
    Subscriber(SubscriberStatus),
    /// A subscriber was added, changed or removed.
    SubscriberChanged(SubscriberChanged),
    /// Several subscribers were changed, or the whole list, or a node.
    SubscribersChanged(SubscriberMade),
}

/// The answer is to another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the answer is to another question")]
pub struct Unexpected;

impl From<Unexpected> for Refused {
    fn from(unexpected: Unexpected) -> Refused {
        Mistake::new(unexpected.to_string(), "use a program of the same version").into()
    }
}

/// A run that is asked: in this process, or by whatever transport.
pub trait Ask: Send + Sync {
    /// Why there is no answer. A run in this process can only refuse.
    type Error: From<Refused> + From<Unexpected>;

    /// A recording. One of this process says at each call what happened since the last one, and one of
    /// another process at the end of each interval.
    type Recording;

    /// Answers a question of `who`, who is named in the audit. A run in another process knows by itself who
    /// asks. It may wait, so it is called on threads that forward nothing.
    ///
    /// # Errors
    /// Says why there is no answer.
    fn ask(&self, who: &str, question: Question) -> Result<Answer, Self::Error>;

    /// Begins to record what the classes do in intervals of this length.
    ///
    /// # Errors
    /// Says why nothing is recorded.
    fn record(&self, interval: Duration) -> Result<Self::Recording, Self::Error>;
}

/// A run in this process.
pub type LocalRun = dyn Ask<Error = Refused, Recording = Recorder>;

/// Asks a run for an answer of this kind.
///
/// # Errors
/// Says why there is no answer.
pub fn ask<A, R: Ask + ?Sized>(run: &R, who: &str, question: Question) -> Result<A, R::Error>
where
    A: TryFrom<Answer, Error = Unexpected>,
{
    Ok(A::try_from(run.ask(who, question)?)?)
}
