//! How the program ends: exit codes that mean something, and errors as text or JSON.

use std::fmt::Write;
use std::process::ExitCode;

use fairgate_config::FileError;
use miette::{Diagnostic, Report, miette};
use serde::Serialize;

use crate::output::{self, Format};

/// What a command that worked found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done, and the answer, if there was a question, is yes. Exit code 0.
    Yes,
    /// The answer is no: a difference, a failed check. Exit code 1.
    No,
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
        Err(Failure::Input(report)) => (2, report),
        Err(Failure::Environment(report)) => (3, report),
    };
    match format {
        Format::Text => eprintln!("{}", shown(&report)),
        Format::Json => {
            // If even this can't be written, the exit code still tells.
            let _ = output::json("error", &ErrorDocument::of(&report));
        }
    }
    ExitCode::from(code)
}

/// The report as people read it. Where its place can't be drawn, what it says is all the more needed.
fn shown(report: &Report) -> String {
    let mut text = String::new();
    match write!(text, "{report:?}") {
        Ok(()) => text,
        Err(_) => format!("{report}"),
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
    // Fails when the reader has gone away, which is no error.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
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
