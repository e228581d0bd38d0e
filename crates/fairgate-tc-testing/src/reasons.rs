//! Why cases can't be met. The list is written by hand.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cases::Case;

const LIST: &str = include_str!("reasons.toml");

/// The list.
#[derive(Debug, Deserialize)]
struct List {
    reason: Vec<Reason>,
}

/// A reason, for whole files or for single cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    cases: Vec<String>,
    why: String,
}

/// The reasons by file and by case.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    files: BTreeMap<String, String>,
    cases: BTreeMap<String, String>,
}

impl Reasons {
    /// Reads the list.
    pub(crate) fn read() -> Result<Reasons, String> {
        let list: List = toml::from_str(LIST).map_err(|error| format!("reasons.toml: {error}"))?;
        let mut reasons = Reasons::default();
        for Reason { files, cases, why } in list.reason {
            reasons
                .files
                .extend(files.into_iter().map(|file| (file, why.clone())));
            reasons
                .cases
                .extend(cases.into_iter().map(|case| (case, why.clone())));
        }
        Ok(reasons)
    }

    /// Returns the reason of a whole file.
    pub(crate) fn of_file(&self, case: &Case) -> Option<&str> {
        let path = format!("{}/{}", case.folder, case.file);
        self.files.get(&path).map(String::as_str)
    }

    /// Returns the reason of one case.
    pub(crate) fn of_case(&self, case: &Case) -> Option<&str> {
        self.cases.get(&case.id).map(String::as_str)
    }

    /// Returns the cases with a reason.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &str> {
        self.cases.keys().map(String::as_str)
    }
}
