//! The result of a command, and why a command failed.

use fairgate::balance::Imbalance;
use miette::{Diagnostic, Report};
use thiserror::Error;

/// The result of a command that worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command succeeded, and the answer, if there was a question, is yes. Exit code 0.
    Yes,
    /// The answer is no: a difference, a failed check. Exit code 1.
    No,
    /// A part of the input could not be read, and the result says which. Exit code 2.
    Incomplete,
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Invalid input or usage. Exit code 2.
    Input(Report),
    /// The system refused: privileges, an interface, a full disk. Exit code 3.
    Environment(Report),
    /// The reader of our output has closed it. This is not an error: exit code 0 and no message.
    ReaderGone,
}

impl Failure {
    /// Makes a failure of the environment from an error.
    pub fn environment(error: impl Diagnostic + Send + Sync + 'static) -> Failure {
        Failure::Environment(error.into())
    }
}

/// The figures do not add up, so they are not shown. This is a bug in the program, whatever its input was.
#[derive(Debug, Error, Diagnostic)]
#[error("bug in this program: its figures do not add up, so none of them is shown")]
#[diagnostic(help("please report it, with the command and its files; other input does not avoid it"))]
pub struct Imbalanced(#[from] Imbalance);

/// An error passed on by `?` is the user's input, unless it is explicitly of the environment.
impl<E: Diagnostic + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Input(error.into())
    }
}
