//! Two quantities in a file: `["10s", "60s"]`. An array of Rust takes the first two of any list and says
//! nothing.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(super) struct Pair(pub(super) [String; 2]);

impl TryFrom<Vec<String>> for Pair {
    type Error = String;

    fn try_from(list: Vec<String>) -> Result<Pair, String> {
        let count = list.len();
        let refuse = |_| format!("a list of {count}, where a beginning and an end are asked for; write two");
        list.try_into().map(Pair).map_err(refuse)
    }
}
