//! What can be wrong with the files of a trace.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;

/// A file that can't be read as part of a trace.
#[derive(Debug, Error, Diagnostic)]
#[error("{}{}: {mistake}", path.display(), Line(*line))]
#[diagnostic(help("{}", mistake.remedy()))]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// The line within it, from 1, where the mistake is in a line.
    pub line: Option<u64>,
    /// What is wrong.
    pub mistake: Mistake,
}

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum Mistake {
    /// It can't be opened or read.
    #[error("can't be read: {0}")]
    Unreadable(io::Error),
    /// The compressed data is damaged or ends too early.
    #[error("the compressed data ends early or is damaged: {0}")]
    Damaged(io::Error),
    /// It is neither a trace nor a folder.
    #[error("is no trace: its name does not end in .jsonl.gz")]
    NoTrace,
    /// A folder without a trace in it.
    #[error("there is no trace in this folder or below it")]
    NoTraceBelow,
    /// It is not JSON, or not with the fields that there must be.
    #[error("{0}")]
    Json(String),
    /// A line without end.
    #[error("a line of more than {limit} bytes")]
    LongLine {
        /// How many bytes a line may have.
        limit: u64,
    },
    /// The file has no operation.
    #[error("there is no operation in it")]
    Empty,
    /// A value that no recording can have.
    #[error("`{field}` is {value}, but must be {rule}")]
    Impossible {
        /// The field.
        field: &'static str,
        /// What it says.
        value: String,
        /// What it may be.
        rule: &'static str,
    },
    /// The tc commands can't be understood.
    #[error("the setup's tc commands: {0}")]
    Commands(String),
    /// More packets queued at once than a replay has room for.
    #[error("more than {capacity} packets are queued at once")]
    TooManyPackets {
        /// For how many packets there is room.
        capacity: u32,
    },
}

impl Mistake {
    /// What to do about it.
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
                "a trace has one JSON object a line: an `op` of enq, deq, none, note, origin or params, with its fields"
            }
            Mistake::Commands(_) => {
                "the setup lists the tc commands that built the recorded discipline, in their order"
            }
            Mistake::TooManyPackets { .. } => "record a trace that drains its queues more often",
        }
    }

    /// The mistake, in the file `path`.
    pub(crate) fn in_file(self, path: &Path) -> Error {
        Error {
            path: path.to_owned(),
            line: None,
            mistake: self,
        }
    }

    /// The mistake, in line `line` of the file `path`.
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
