//! The subscribers of a run, as documents, and changes of one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::difference::Difference;
use crate::entry::Entry;
use crate::refused::Refused;
use crate::trees::Mistake;

/// The subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubscriberDocument {
    /// The revision of the trees.
    pub revision: u64,
    /// The subscribers, in the order of the list.
    pub subscribers: Vec<Entry>,
    /// The class of each one in both trees, by its identifier.
    pub classes: BTreeMap<String, u32>,
    /// What each one gets, by its identifier, as the list and the plans say it.
    pub shaped: BTreeMap<String, Shaped>,
    /// The nodes of the network that they are connected to, each behind the one above it.
    pub nodes: Vec<ListedNode>,
    /// How the list differed from the one before it when it was last read from its files or when several
    /// subscribers were changed. None if that never happened.
    pub difference: Option<Difference>,
    /// Whether they may be changed by the API.
    pub is_changeable: bool,
    /// Why they may not, as far as that is known before: their files can't be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchangeable: Option<Mistake>,
}

/// What a subscriber gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Shaped {
    /// The most that it gets, bit/s.
    pub down_bps: u64,
    /// The most that it sends, bit/s.
    pub up_bps: u64,
    /// What it gets in any case, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_min_bps: Option<u64>,
    /// What it may send in any case, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_min_bps: Option<u64>,
    /// The node of the network that it is connected to. None: the line itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Until when it has these rates in place of those of the list, seconds since 1970 (Unix time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_until_s: Option<u64>,
}

/// A node of the network: a site, an access point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ListedNode {
    /// Its name.
    pub name: String,
    /// Its class in both trees.
    pub class: u32,
    /// The node above it. None: the line itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<String>,
    /// What it sends at most to the subscribers, bit/s.
    pub down_bps: u64,
    /// What it sends at most from them, bit/s.
    pub up_bps: u64,
}

/// Rates of a node that change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NodePatch {
    /// What it sends at most to the subscribers, like `200mbit`. Null or left out: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<String>,
    /// What it sends at most from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<String>,
}

/// A subscriber and its class.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubscriberStatus {
    /// The number of its class in both trees.
    pub class: u32,
    /// The directions of the status, from 0 on, in which its packets go down to it and up from it. Not in the
    /// document.
    #[serde(skip)]
    pub directions: [usize; 2],
    /// What it gets, as the list and the plans say it.
    pub shaped: Shaped,
    /// The subscriber.
    pub subscriber: Entry,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubscriberMade {
    /// The revision of the trees from now on.
    pub revision: u64,
    /// For how long nothing was forwarded, microseconds.
    pub pause_us: f64,
    /// Packets that had no room any more.
    pub dropped: u64,
    /// How the list differs from the one before it, if several subscribers were changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
}

/// What became of a subscriber.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubscriberChanged {
    /// The change.
    pub made: SubscriberMade,
    /// Whether there was none with this identifier.
    pub is_new: bool,
    /// The subscriber as it is from now on, or as it was if it was removed.
    pub subscriber: Entry,
}

/// What is done with a subscriber.
#[derive(Clone, Debug, PartialEq)]
pub enum SubscriberChange {
    /// It is added, or changed as a whole.
    Put(Entry),
    /// Members of its document change. Null leaves one to the plan.
    Patch(Map<String, Value>),
    /// It is removed.
    Remove,
}

/// Returns what tells a subscriber from what it was before a change.
pub fn version(entry: &Entry) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(&serde_json::to_vec(entry).unwrap_or_default());
    hasher.finish()
}

impl SubscriberChange {
    /// Returns the method of HTTP that asks for it.
    pub fn method(&self) -> &'static str {
        match self {
            SubscriberChange::Put(_) => "PUT",
            SubscriberChange::Patch(_) => "PATCH",
            SubscriberChange::Remove => "DELETE",
        }
    }

    /// Returns what becomes of the subscriber `id`, which is as `known`: nothing if it is removed.
    ///
    /// # Errors
    /// Refuses if it has none of these versions, or if the change does not fit.
    pub fn apply(
        self,
        id: &str,
        known: Option<&Entry>,
        if_version: Option<&[u64]>,
    ) -> Result<Option<Entry>, Refused> {
        if let Some(versions) = if_version
            && known.is_none_or(|known| !versions.contains(&version(known)))
        {
            return Err(Refused::Outdated(known.cloned().map(Box::new)));
        }
        let made = match (self, known) {
            (SubscriberChange::Put(entry), _) => entry,
            (_, None) => return Err(unknown(id)),
            (SubscriberChange::Remove, Some(_)) => return Ok(None),
            (SubscriberChange::Patch(members), Some(known)) => patched(known, members)?,
        };
        if !made.id.is_empty() && made.id != id {
            let why = format!("the path names `{id}`, and the document names `{}`", made.id);
            return Err(Refused::Malformed(why));
        }
        Ok(Some(Entry {
            id: id.to_owned(),
            ..made
        }))
    }
}

/// Returns the refusal of a subscriber that is not there.
pub fn unknown(id: &str) -> Refused {
    Refused::missing(format!("there is no subscriber `{id}`"), "")
}

/// Returns the refusal of a run without subscribers.
pub fn no_list() -> Refused {
    Refused::missing("this run has no subscribers", "add [subscribers] to its file")
}

/// Returns a document with other members: RFC 7396. Its members are no objects, so none is merged.
fn patched(known: &Entry, members: Map<String, Value>) -> Result<Entry, Refused> {
    let wrong = |error: serde_json::Error| {
        Refused::Malformed(format!("the changed subscriber is not understood: {error}"))
    };
    let mut document = match serde_json::to_value(known).map_err(wrong)? {
        Value::Object(document) => document,
        _ => Map::new(),
    };
    for (name, value) in members {
        match value {
            Value::Null => drop(document.remove(&name)),
            _ => drop(document.insert(name, value)),
        }
    }
    serde_json::from_value(Value::Object(document)).map_err(wrong)
}
