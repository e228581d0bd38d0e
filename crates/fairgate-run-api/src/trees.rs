//! The trees of a run, and changes of them, as documents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The trees of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreesStatus {
    /// It grows by 1 with each change of the trees, whoever makes it. A run starts with 0.
    pub revision: u64,
    /// From left to right, and from right to left.
    pub directions: Vec<TreeStatus>,
}

/// The tree of a direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreeStatus {
    /// The interface that frames are received from.
    pub from: String,
    /// The interface that frames are sent to.
    pub to: String,
    /// The name that the configuration gives to the tree. None if the direction has the fifo of one for which
    /// it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its description: `[queue.tree]` of a configuration file.
    pub queue: String,
    /// What people call the classes of a list of subscribers, by their numbers: nodes by their names, and
    /// subscribers by their identifiers and names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<u32, String>,
    /// The classes that each worker has, if several workers divide the classes of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Vec<Vec<u32>>>,
}

/// A change that was made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangeMade {
    /// The revision of the trees from now on.
    pub revision: u64,
    /// For how long nothing was forwarded, microseconds.
    pub pause_us: f64,
    /// Packets for which a new limit had no room, or whose class was removed.
    pub dropped: u64,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Mistake {
    /// Where: `word 3` or `line 2, word 3` of a change, or a place in the tree that would result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Mistake {
    /// Returns a mistake that has no place in a tree.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Mistake {
        Mistake {
            place: None,
            message: message.into(),
            help: help.into(),
        }
    }
}
