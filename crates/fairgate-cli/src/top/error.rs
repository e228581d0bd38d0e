//! Why the screen can't be shown.

use std::io;

use fairgate::balance::Imbalance;
use fairgate_run::client::ClientError;
use miette::Diagnostic;
use thiserror::Error;

/// Why the screen can't be shown.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum TopError {
    /// Standard input or output is not a terminal.
    #[error("there is no terminal to show a screen on")]
    #[diagnostic(help(
        "`fairgate top --once` prints one screen as text; `fairgate status` is for pipes and programs"
    ))]
    NoTerminal,
    /// The terminal failed.
    #[error("the terminal can't be used")]
    #[diagnostic(help("`fairgate top --once` and `fairgate status` need no terminal"))]
    Terminal(#[source] io::Error),
    /// The run does not answer.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NoAnswer(#[from] ClientError),
    /// Figures of the run do not add up.
    #[error("figures of the run do not add up, so none is shown")]
    #[diagnostic(help("this is a bug: please report it, with the configuration of the run"))]
    Imbalance(#[from] Imbalance),
    /// A thread of the screen has panicked.
    #[error("a part of the screen has ended by a bug")]
    #[diagnostic(help("please report it with the message above. The run goes on"))]
    Bug,
}
