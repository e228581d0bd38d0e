//! Replays recorded operations of a queueing discipline through ours and compares operation by operation.
//!
//! A trace is two files: `TRACE.jsonl.gz`, one JSON line for each operation with what became of it, and `TRACE.json`,
//! the tc commands that set the recorded discipline up. The path of a trace:
//!
//! ```text
//!   find      paths of files and folders -> traces
//!   setup     TRACE.json -> tc commands  -> fairgate_scripts::tc -> a tree of our disciplines
//!   format    TRACE.jsonl.gz -> operations, one at a time
//!   replay    operation -> the same call on our tree -> equal, or the first operation that differs
//! ```
//!
//! A trace of a discipline that there is none of here is *unsupported*, and never counts as equal. Files that can't be
//! read, and options of tc that can't be carried over, are an [`Error`] that names the file and the line.

#![forbid(unsafe_code)]

mod error;
mod find;
mod format;
mod replay;
mod setup;

pub use error::{Error, Mistake};
pub use find::find;
pub use replay::{Difference, Mismatch, Outcome, replay, replay_with};
