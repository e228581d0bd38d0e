//! Errors in the files of a trace.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;

/// An error in a file of a trace.
#[derive(Debug, Error, Diagnostic)]
#[error("{}{}: {mistake}", path.display(), Line(*line))]
#[diagnostic(help("{}", mistake.remedy()))]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// The line in the file, from 1, if the error is in a line.
    pub line: Option<u64>,
    /// The error.
    pub mistake: Mistake,
}

/// The kinds of errors in a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Mistake {
    /// The file can't be opened or read.
    #[error("can't be read: {0}")]
    Unreadable(io::Error),
    /// The compressed data are damaged or end too early.
    #[error("the compressed data ends early or is damaged: {0}")]
    Damaged(io::Error),
    /// The path is neither a trace nor a folder.
    #[error("is not a trace: its name does not end in .jsonl.gz")]
    NoTrace,
    /// The folder has no trace.
    #[error("there is no trace in this folder or below it")]
    NoTraceBelow,
    /// The file is not JSON, or lacks a required field.
    #[error("{0}")]
    Json(String),
    /// A line is too long.
    #[error("a line has more than {limit} bytes")]
    LongLine {
        /// The most bytes of a line.
        limit: u64,
    },
    /// The file has no operation.
    #[error("the trace has no operation")]
    Empty,
    /// A value that no trace can have.
    #[error("`{field}` is {value}, but must be {rule}")]
    Impossible {
        /// The field.
        field: &'static str,
        /// The value.
        value: String,
        /// The allowed values.
        rule: &'static str,
    },
    /// The tc commands are invalid.
    #[error("the setup's tc commands: {0}")]
    Commands(String),
    /// More packets are queued at once than a replay has room for.
    #[error("more than {capacity} packets are queued at once")]
    TooManyPackets {
        /// The number of packets that a replay has room for.
        capacity: u32,
    },
}

impl Mistake {
    /// Returns what the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Mistake::Unreadable(_) => {
                "give the path of a trace that exists and may be read, or of a folder of traces"
            }
            Mistake::Damaged(_) => "copy the file again; `gzip -t` tests it",
            Mistake::NoTrace | Mistake::NoTraceBelow => {
                "a trace is a file TRACE.jsonl.gz with its setup TRACE.json beside it"
            }
            Mistake::Json(_) | Mistake::LongLine { .. } | Mistake::Empty | Mistake::Impossible { .. } => {
                "each line of a trace is a JSON object with an `op` of enq, deq, none, note, origin or \
                 params, and its fields"
            }
            Mistake::Commands(_) => {
                "the setup lists the tc commands that built the recorded discipline, in the order of their \
                 execution"
            }
            Mistake::TooManyPackets { .. } => "record a trace that queues fewer packets at a time",
        }
    }

    /// Returns the error with the file `path`.
    pub(crate) fn in_file(self, path: &Path) -> Error {
        Error {
            path: path.to_owned(),
            line: None,
            mistake: self,
        }
    }

    /// Returns the error with line `line` of the file `path`.
    pub(crate) fn in_line(self, path: &Path, line: u64) -> Error {
        Error {
            line: Some(line),
            ..self.in_file(path)
        }
    }
}

struct Line(Option<u64>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(line) => write!(f, ", line {line}"),
            None => Ok(()),
        }
    }
}
