//! A command within another program: one JSON document out, nothing printed.
//!
//! Python's `compare`, `theory`, `bounds` and `reproduce` are the commands of these names. So there is one
//! implementation, and its documents are those of `docs/json.md`.

use crate::command::exit;
use crate::command::failure::{Failure, Outcome};
use crate::command::output::printed;

/// The answer of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The exit code that the program would have: 0 yes, 1 no, 2 invalid input, 3 the system refused, 4 a
    /// bug.
    pub code: u8,
    /// The JSON document: the result, or with the codes 2 to 4 the error.
    pub document: String,
    /// The error as people see it, without colours. Empty if there is none.
    pub message: String,
}

/// Runs a command that prints JSON ([`Format::Json`](crate::command::output::Format)). Nothing is printed. The
/// command's own files are written.
pub fn answer(command: impl FnOnce() -> Result<Outcome, Failure>) -> Answer {
    let (result, printed) = printed::kept(command);
    match exit::judged(result) {
        (code, None) => Answer {
            code,
            document: printed,
            message: String::new(),
        },
        (code, Some(report)) => Answer {
            code,
            document: exit::error_document(&report),
            message: exit::shown(&report, false),
        },
    }
}
