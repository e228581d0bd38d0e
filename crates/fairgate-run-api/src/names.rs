//! The subscriber that a class belongs to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The subscriber that a class belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubscriberName {
    /// Its identifier in the list.
    pub id: String,
    /// Its name in the list, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
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
        let whole = self.to_string();
        match whole.char_indices().nth(most) {
            None => whole,
            Some(_) => whole.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        }
    }
}
