//! Why cases can't be met. The list is written by hand.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::Deserialize;

use crate::tc_testing::cases::Case;
use crate::tc_testing::verdict::{Command, Shown, Verdict};

const LIST: &str = include_str!("reasons.toml");

/// The list.
#[derive(Debug, Deserialize)]
struct List {
    reason: Vec<Entry>,
}

/// An entry of the list: a reason, and what it is for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Whole files, which are left out: `qdiscs/taprio`.
    #[serde(default)]
    files: Vec<String>,
    /// Cases by their number.
    #[serde(default)]
    cases: Vec<String>,
    /// Cases with a command, under test or before it, that matches one of these patterns.
    #[serde(default)]
    commands: Vec<String>,
    /// Cases in which everything is right, but whose output is that of an object that is not shown.
    #[serde(default)]
    shows: Vec<String>,
    why: String,
}

/// The reasons.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    files: BTreeMap<String, String>,
    cases: BTreeMap<String, String>,
    commands: Vec<(Regex, String)>,
    shows: BTreeMap<String, String>,
    /// All of them.
    all: BTreeSet<String>,
}

impl Reasons {
    /// Reads the list.
    pub(crate) fn read() -> Result<Reasons, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("reasons.toml: {error}");
        let list: List = toml::from_str(LIST).map_err(|error| wrong(&error))?;
        let mut reasons = Reasons::default();
        for entry in list.reason {
            let with_why = |names: Vec<String>| {
                let why = entry.why.clone();
                names.into_iter().map(move |name| (name, why.clone()))
            };
            reasons.all.insert(entry.why.clone());
            reasons.files.extend(with_why(entry.files));
            reasons.cases.extend(with_why(entry.cases));
            reasons.shows.extend(with_why(entry.shows));
            for (pattern, why) in with_why(entry.commands) {
                let pattern = Regex::new(&pattern).map_err(|error| wrong(&error))?;
                reasons.commands.push((pattern, why));
            }
        }
        Ok(reasons)
    }

    /// Returns the reason of a whole file.
    pub(crate) fn of_file(&self, case: &Case) -> Option<&str> {
        let path = format!("{}/{}", case.folder, case.file);
        self.files.get(&path).map(String::as_str)
    }

    /// Returns the reason of a single case.
    pub(crate) fn of_case(&self, case: &Case) -> Option<&str> {
        self.cases.get(&case.id).map(String::as_str)
    }

    /// Returns the reason why a case is not met: its own, or the one of a command or an object.
    pub(crate) fn of(&self, case: &Case, verdict: &Verdict) -> Option<&str> {
        let of_command = |command: &str| {
            let mut found = self
                .commands
                .iter()
                .filter(|(pattern, _)| pattern.is_match(command));
            found.next().map(|(_, why)| why.as_str())
        };
        let of_object = || match (&verdict.command, &verdict.shown) {
            (Command::AsExpected, Shown::Hidden(object)) => self.shows.get(object).map(String::as_str),
            _ => None,
        };
        let before = case.setup.iter().map(|(command, _)| command.as_str());
        self.of_case(case)
            .or_else(|| before.chain([case.command.as_str()]).find_map(of_command))
            .or_else(of_object)
    }

    /// Returns all reasons.
    pub(crate) fn all(&self) -> &BTreeSet<String> {
        &self.all
    }

    /// Returns the numbers with a reason that no case has.
    pub(crate) fn without_case<'r>(&'r self, known: &BTreeSet<String>) -> impl Iterator<Item = &'r str> {
        self.cases
            .keys()
            .filter(|case| !known.contains(*case))
            .map(String::as_str)
    }
}
