//! How the program ends: exit codes that mean something, and errors as text or JSON.

use std::fmt::Write;
use std::process::ExitCode;

use fairgate::balance::Imbalance;
use fairgate_config::FileError;
use miette::{Diagnostic, Report, miette};
use serde::Serialize;
use thiserror::Error;

use crate::output::{self, Format, Unwritten};

/// What a command that worked found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done, and the answer, if there was a question, is yes. Exit code 0.
    Yes,
    /// The answer is no: a difference, a failed check. Exit code 1.
    No,
    /// Some of the input could not be read, and the result says which. Exit code 2.
    Incomplete,
}

/// Why a command did not work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad input or usage. Exit code 2.
    Input(Report),
    /// The environment refused: privileges, an interface, a full disk. Exit code 3.
    Environment(Report),
    /// Whoever read our output has gone away. Not an error: exit code 0, nothing said.
    ReaderGone,
}

impl Failure {
    /// The environment's refusal.
    pub(crate) fn environment(error: impl Diagnostic + Send + Sync + 'static) -> Failure {
        Failure::Environment(error.into())
    }
}

/// Figures that do not add up, and so are not shown: a fault of this program, whatever its input.
#[derive(Debug, Error, Diagnostic)]
#[error("a fault of this program: its figures do not add up, and none of them is shown")]
#[diagnostic(help("please report it, with the command and its files; no other input makes up for it"))]
pub(crate) struct Mistake(#[from] Imbalance);

/// Exit code of a [`Mistake`].
const MISTAKE: u8 = 4;

/// What a `?` passes on is the user's input, unless it is said to be the environment.
impl<E: Diagnostic + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Input(error.into())
    }
}

/// Reports a failure, and gives the exit code.
pub(crate) fn finish(result: Result<Outcome, Failure>, format: Format) -> ExitCode {
    let (code, report) = match result {
        Ok(Outcome::Yes) | Err(Failure::ReaderGone) => return ExitCode::SUCCESS,
        Ok(Outcome::No) => return ExitCode::from(1),
        Ok(Outcome::Incomplete) => return ExitCode::from(2),
        Err(Failure::Input(report) | Failure::Environment(report)) if is_mistake(&report) => {
            (MISTAKE, report)
        }
        Err(Failure::Input(report)) => (2, report),
        Err(Failure::Environment(report)) => (3, report),
    };
    let document = || ErrorDocument::of(&report);
    match format {
        Format::Text => output::say(shown(&report)),
        // Standard output has the result, and a document only.
        Format::Json if report.is::<Unwritten>() => {
            output::say(output::json_text("error", &document()).trim_end())
        }
        Format::Json => {
            // If even this can't be written, the exit code still tells.
            let _ = output::json("error", &document());
        }
    }
    ExitCode::from(code)
}

/// Whether figures that do not add up are the cause, of whatever command.
fn is_mistake(report: &Report) -> bool {
    report.chain().any(|cause| cause.is::<Imbalance>())
}

/// The report as people read it. Where its place can't be drawn, what it says is all the more needed.
pub(crate) fn shown(report: &Report) -> String {
    let mut text = String::new();
    match write!(text, "{report:?}") {
        Ok(()) => output::harmless(&text),
        Err(_) => output::harmless(&report.to_string()),
    }
}

/// Ends after arguments that clap could not read, or after `--help` and `--version`, which it treats alike.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && json {
        let message = error.render().to_string();
        let message = message.trim_start_matches("error: ").trim_end();
        return finish(Err(Failure::Input(miette!("{message}"))), Format::Json);
    }
    match (error.print(), error.use_stderr()) {
        // If even this can't be said, the exit code still tells.
        (_, true) => ExitCode::from(2),
        (Ok(()), false) => ExitCode::SUCCESS,
        (Err(error), false) => finish(Err(output::lost(error)), Format::Text),
    }
}

/// `fairgate.error/1`.
#[derive(Serialize)]
struct ErrorDocument {
    errors: Vec<ErrorEntry>,
}

#[derive(Serialize)]
struct ErrorEntry {
    message: String,
    help: Option<String>,
    #[serde(flatten)]
    place: Option<Place>,
}

#[derive(Serialize)]
struct Place {
    file: String,
    line: usize,
    column: usize,
    offset: usize,
    length: usize,
}

/// Behind the errors that are told, how many are not.
fn more(error: &FileError) -> Option<ErrorEntry> {
    (error.more() > 0).then(|| ErrorEntry {
        message: format!("{} more errors are not shown", error.more()),
        help: Some("correct those that are shown first".to_owned()),
        place: None,
    })
}

impl ErrorDocument {
    fn of(report: &Report) -> ErrorDocument {
        let errors = match report.downcast_ref::<FileError>() {
            Some(error) => error
                .problems()
                .iter()
                .map(|problem| {
                    let (line, column) = problem.position();
                    ErrorEntry {
                        message: problem.message.clone(),
                        help: Some(problem.help.clone()),
                        place: Some(Place {
                            file: error.file().to_owned(),
                            line,
                            column,
                            offset: problem.span.start,
                            length: problem.span.len(),
                        }),
                    }
                })
                .chain(more(error))
                .collect(),
            None => vec![ErrorEntry {
                message: report
                    .chain()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(": "),
                help: report.help().map(|help| help.to_string()),
                place: None,
            }],
        };
        ErrorDocument { errors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The simulator's own check reaches the exit code through the errors of whatever command ran it.
    #[test]
    fn figures_that_do_not_add_up_have_an_exit_code_of_their_own() {
        let imbalance = || fairgate::balance::of("a", "packets", ("in", 2), &[("out", 1)]).unwrap_err();
        let from_simulator = fairgate_sim::Error::from(imbalance());
        let failures = [
            Failure::from(Mistake::from(imbalance())),
            Failure::from(crate::commands::simulate::SimulateError::from(from_simulator)),
        ];
        for failure in failures {
            let code = finish(Err(failure), Format::Text);
            assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(MISTAKE)));
        }
        let other = finish(Err(Failure::Input(miette!("no such file"))), Format::Text);
        assert_eq!(format!("{other:?}"), format!("{:?}", ExitCode::from(2)));
    }
}
