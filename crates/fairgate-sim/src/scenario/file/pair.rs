//! Two quantities in a file: `["10s", "60s"]`. A Rust array would accept a longer list and ignore the rest.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(super) struct Pair(pub(super) [String; 2]);

impl TryFrom<Vec<String>> for Pair {
    type Error = String;

    fn try_from(list: Vec<String>) -> Result<Pair, String> {
        let count = list.len();
        let refuse = |_| format!("the list has {count} values, but must have two: a beginning and an end");
        list.try_into().map(Pair).map_err(refuse)
    }
}
