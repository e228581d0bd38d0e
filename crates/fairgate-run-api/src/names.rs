//! What a list of subscribers calls the classes of its trees.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a list of subscribers says about a class: whose it is, or which node of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassName {
    /// What people call it: the name of a node, or that of a subscriber, or its identifier if it has none.
    pub name: String,
    /// The subscriber that it belongs to, if it is one's.
    pub subscriber: Option<SubscriberName>,
    /// The class of the node that it is connected to. None for the line.
    pub node: Option<u32>,
    /// What it sends at most, bit/s.
    pub limit_bps: u64,
}

/// The subscriber that a class belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubscriberName {
    /// Its identifier in the list.
    pub id: String,
    /// Its name in the list, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its plan, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Until when it has other rates than those of the list, seconds since 1970 (Unix time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_until_s: Option<u64>,
}

/// Writes the identifier, and behind it the name.
impl fmt::Display for SubscriberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} {name}", self.id),
            None => f.write_str(&self.id),
        }
    }
}

impl SubscriberName {
    /// Returns the same in at most so many characters: the end of what is longer is cut.
    pub fn brief(&self, most: usize) -> String {
        brief(&self.to_string(), most)
    }
}

/// Returns a name in at most so many characters: the end of what is longer is cut.
pub fn brief(name: &str, most: usize) -> String {
    match name.char_indices().nth(most) {
        None => name.to_owned(),
        Some(_) => name.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}
