//! A subscriber as a document: what a JSON file has, and what the API answers.

use serde::{Deserialize, Serialize};

/// A subscriber. What is null or left out comes from the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Identifies it.
    #[serde(default)]
    pub id: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its addresses and prefixes.
    #[serde(default)]
    pub prefixes: Vec<String>,
    /// The most that it gets, like `100mbit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<String>,
    /// The most that it sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<String>,
    /// What it gets in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_min: Option<String>,
    /// What it may send in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_min: Option<String>,
    /// The name of its plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}
