//! Confines a run to what it still needs once everything is open: to a list of system calls (seccomp, module
//! `calls`), and to the files that its configuration names (Landlock, module `files`).
//!
//! Both hold for a thread and for the threads and processes that it starts afterwards. They can be narrowed
//! and never be undone. What a kernel lacks is left out, and [`Confined`] says so.

mod calls;
mod files;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::config::Plan;
use crate::privileges::LaterFiles;

use calls::Calls;
use files::Files;

/// What a thread is confined to. Made once, for all threads that forward.
#[derive(Debug)]
pub(crate) struct Sandbox {
    calls: Result<Calls, String>,
    files: Result<Files, String>,
}

/// How far a run is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    /// The number of system calls that are allowed, or why they are not limited.
    pub calls: Result<usize, String>,
    /// The version of Landlock's interface by which files are limited, or why they are not.
    pub files: Result<u32, String>,
}

impl Sandbox {
    /// Returns the sandbox of a run of `plan` that needs the files of `later`. Call it when everything else
    /// is open, and just before `Bridge::confine`.
    pub(crate) fn new(plan: &Plan, later: &LaterFiles<'_>) -> Sandbox {
        Sandbox {
            calls: Calls::new(plan, later),
            files: Files::new(plan, later),
        }
    }

    /// Confines this thread. Call it once for each.
    pub(crate) fn enter(&self) -> Confined {
        // Files first: the calls by which they are limited are not among those that are allowed.
        let files = self.files.as_ref().map_err(String::clone).and_then(Files::enter);
        let calls = self.calls.as_ref().map_err(String::clone).and_then(Calls::enter);
        Confined { calls, files }
    }
}

impl Confined {
    /// Returns whether nothing is missing.
    pub fn is_whole(&self) -> bool {
        self.calls.is_ok() && self.files.is_ok()
    }
}

impl fmt::Display for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.calls {
            Ok(count) => write!(f, "{count} system calls are allowed")?,
            Err(why) => write!(f, "system calls are not limited: {why}")?,
        }
        match &self.files {
            Ok(version) => write!(
                f,
                "; of all files, those that the configuration needs (Landlock {version})"
            ),
            Err(why) => write!(f, "; files are not limited: {why}"),
        }
    }
}
