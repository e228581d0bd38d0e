//! Replays the recorded operations of a queueing discipline through this project's implementation and
//! compares the results of each operation.
//!
//! A trace is two files. `TRACE.jsonl.gz` has one JSON line for each operation with its results. `TRACE.json`
//! has the tc commands that set up the recorded discipline. The modules process a trace in this order:
//!
//! ```text
//!   find      paths of files and folders -> traces
//!   setup     TRACE.json -> tc commands  -> fairgate_scripts::tc -> a tree of disciplines
//!   format    TRACE.jsonl.gz -> operations, one at a time
//!   replay    operation -> the same call on the tree -> equal, or the first operation that differs
//! ```
//!
//! A trace of a discipline that is not implemented here is *unsupported*. It never counts as equal. If a file
//! can't be read, or an option of tc is not supported, an [`Error`] names the file and the line.

mod error;
mod find;
mod format;
mod replay;
mod setup;

pub use error::{Error, Mistake};
pub use find::find;
pub use replay::{Difference, Mismatch, Outcome, replay, replay_with};
