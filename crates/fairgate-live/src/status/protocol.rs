//! What clients ask a run at its socket, and what it answers. A request is one JSON object; the client then
//! ends its side of the connection, or a line. The run answers with one JSON document and ends its side.
//!
//! `{"request": "status"}`, or nothing at all, is answered by the [`Status`](super::Status).
//! `{"request": "change", "lines": ["class add 30 rate=5mbit / fq_codel"]}` is answered by an [`Answer`].

use serde::{Deserialize, Serialize};

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The status.
    Status,
    /// To change the trees.
    Change {
        /// The interface from which the changed direction receives. It may be left out if both directions
        /// have the same tree: then both are changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// The changes in words, as of [`Spec::edited`](fairgate_config::Spec::edited). They are made
        /// together or not at all.
        lines: Vec<String>,
    },
}

/// The answer to a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It was made.
    Changed {
        /// For how long nothing was forwarded, microseconds.
        pause_us: f64,
        /// Packets for which a new limit had no room, or whose class was removed.
        dropped: u64,
    },
    /// Nothing was changed.
    Refused {
        /// Why, at least one.
        errors: Vec<Mistake>,
    },
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    /// Where: `the change:LINE:COLUMN`, or a place in the tree that would result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}
