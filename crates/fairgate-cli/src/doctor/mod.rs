//! Judges what was read of a run, its interfaces and its machine: pure functions from readings to findings.
//!
//! ```text
//!   interface   offloads, shapers and programs at an interface
//!   machine     clock, kernel, memory
//!   run         what a run counts over some seconds: is the queue in it, and is anything lost
//!   network     the nodes and subscribers of a list
//! ```

pub(crate) mod interface;
pub(crate) mod machine;
pub(crate) mod network;
pub(crate) mod run;

use serde::Serialize;

/// How bad a finding is. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// The run does not do what its configuration says.
    Problem,
    /// It costs packets, delay or rate, or may do so.
    Warning,
    /// Good to know, or it could not be read.
    Note,
    /// Nothing was found.
    Ok,
}

impl Level {
    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Level::Problem => "problem",
            Level::Warning => "warning",
            Level::Note => "note",
            Level::Ok => "ok",
        }
    }
}

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// The check.
    pub(crate) check: &'static str,
    /// The run, the interface or the file that it is about, or `machine`.
    pub(crate) of: String,
    /// What was seen, with its figure.
    pub(crate) seen: String,
    /// Why it matters, in a sentence. `None` if nothing was found.
    pub(crate) why: Option<String>,
    /// What to do, mostly a command. `None` if there is nothing to do.
    pub(crate) remedy: Option<String>,
}

impl Finding {
    /// Returns a finding about what is as it should be.
    pub(crate) fn ok(check: &'static str, of: &str, seen: impl Into<String>) -> Finding {
        Finding {
            level: Level::Ok,
            check,
            of: of.to_owned(),
            seen: seen.into(),
            why: None,
            remedy: None,
        }
    }

    /// Returns another finding.
    pub(crate) fn new(
        level: Level,
        check: &'static str,
        of: &str,
        seen: impl Into<String>,
        why: impl Into<String>,
    ) -> Finding {
        Finding {
            level,
            why: Some(why.into()),
            ..Finding::ok(check, of, seen)
        }
    }

    /// Adds what to do.
    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Finding {
        Finding {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

/// Returns the findings of a check, or that it has found nothing.
pub(crate) fn or_ok(found: Vec<Finding>, check: &'static str, of: &str, seen: &str) -> Vec<Finding> {
    match found.is_empty() {
        true => vec![Finding::ok(check, of, seen)],
        false => found,
    }
}

/// Writes the number of things.
pub(crate) fn counted(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}
