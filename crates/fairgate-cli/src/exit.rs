//! How the program ends: exit codes, and errors as text or JSON.

use std::fmt::{self, Write};
use std::process::ExitCode;

use fairgate::balance::Imbalance;
use fairgate_config::{FileError, Lines};
use miette::{MietteHandler, MietteHandlerOpts, Report, ReportHandler, miette};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Unwritten, colour};

/// Exit code of an [`Imbalanced`](crate::failure::Imbalanced).
const IMBALANCE_CODE: u8 = 4;

/// Returns the exit code, and what is wrong.
pub(crate) fn judged(result: Result<Outcome, Failure>) -> (u8, Option<Report>) {
    match result {
        Ok(Outcome::Yes) | Err(Failure::ReaderGone) => (0, None),
        Ok(Outcome::No) => (1, None),
        Ok(Outcome::Incomplete) => (2, None),
        Err(Failure::Input(report) | Failure::Environment(report)) if is_imbalance(&report) => {
            (IMBALANCE_CODE, Some(report))
        }
        Err(Failure::Input(report)) => (2, Some(report)),
        Err(Failure::Environment(report)) => (3, Some(report)),
    }
}

/// Returns the error as the document `fairgate.error/1`.
pub(crate) fn error_document(report: &Report) -> String {
    output::json_text("error", &ErrorDocument::of(report))
}

/// Reports a failure and returns the exit code.
pub(crate) fn finish(result: Result<Outcome, Failure>, format: Format) -> ExitCode {
    let (code, report) = judged(result);
    let Some(report) = report else {
        return ExitCode::from(code);
    };
    match format {
        Format::Text => output::say_exact(shown(&report, colour::for_stderr())),
        // Standard output has the result, and must hold one document only.
        Format::Json if report.is::<Unwritten>() => output::say_exact(error_document(&report).trim_end()),
        Format::Json => {
            // If this cannot be written either, the exit code still reports the failure.
            let _ = output::exact(&error_document(&report));
        }
    }
    ExitCode::from(code)
}

/// Returns whether the cause is figures that do not add up.
fn is_imbalance(report: &Report) -> bool {
    report.chain().any(|cause| cause.is::<Imbalance>())
}

/// Returns the report as text. For a script, a last line counts the lines.
pub(crate) fn shown(report: &Report, is_coloured: bool) -> String {
    let plain = drawn(report, false);
    let mut text = output::coloured(&plain, || match is_coloured {
        true => drawn(report, true),
        false => plain.clone(),
    });
    if let Some(lines) = lines(report) {
        let _ = write!(text, "\n{lines}");
    }
    text
}

/// Draws the report. If its location cannot be drawn, the text is only the message.
fn drawn(report: &Report, is_coloured: bool) -> String {
    struct Drawn<'a>(&'a Report, MietteHandler);

    impl fmt::Display for Drawn<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.1.debug(self.0.as_ref(), f)
        }
    }

    let handler = MietteHandlerOpts::new().color(is_coloured).build();
    let mut text = String::new();
    match write!(text, "{}", Drawn(report, handler)) {
        Ok(()) => text,
        Err(fmt::Error) => report.to_string(),
    }
}

/// Returns the number of lines that were read and refused, if the error is in a script.
fn lines(report: &Report) -> Option<Lines> {
    report.downcast_ref::<FileError>()?.lines()
}

/// Ends the program after arguments that clap could not parse, or after `--help` and `--version`, which clap
/// reports in the same way.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && json {
        return finish(Err(usage_failure(error)), Format::Json);
    }
    let plain = error.render().to_string();
    if error.use_stderr() && output::harmless(&plain) != plain {
        output::say(plain.trim_end());
        return ExitCode::from(2);
    }
    match (error.print(), error.use_stderr()) {
        // If this cannot be printed either, the exit code still reports it.
        (_, true) => ExitCode::from(2),
        (Ok(()), false) => ExitCode::SUCCESS,
        (Err(error), false) => finish(Err(output::lost(error)), Format::Text),
    }
}

/// Returns arguments that clap could not parse as a failure.
pub(crate) fn usage_failure(error: &clap::Error) -> Failure {
    let message = error.render().to_string();
    let message = message.trim_start_matches("error: ").trim_end();
    Failure::Input(miette!("{message}"))
}

/// `fairgate.error/1`.
#[derive(Serialize)]
struct ErrorDocument {
    errors: Vec<ErrorEntry>,
    /// Of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<LineCounts>,
}

#[derive(Serialize)]
struct LineCounts {
    read: usize,
    refused: usize,
}

#[derive(Serialize)]
struct ErrorEntry {
    message: String,
    help: Option<String>,
    #[serde(flatten)]
    location: Option<Location>,
}

#[derive(Serialize)]
struct Location {
    file: String,
    line: usize,
    column: usize,
    offset: usize,
    length: usize,
}

/// Returns an entry with the number of errors that are not shown, if there are any.
fn more(error: &FileError) -> Option<ErrorEntry> {
    (error.more() > 0).then(|| ErrorEntry {
        message: format!("{} more errors are not shown", error.more()),
        help: Some("correct those that are shown first".to_owned()),
        location: None,
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
                        location: Some(Location {
                            file: problem.file().to_owned(),
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
                location: None,
            }],
        };
        let lines = lines(report).map(|Lines { read, refused }| LineCounts { read, refused });
        ErrorDocument { errors, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Imbalanced;

    /// The error of the simulator's own check reaches the exit code, whichever command ran it.
    #[test]
    fn figures_that_do_not_add_up_have_an_exit_code_of_their_own() {
        let imbalance = || fairgate::balance::of("a", "packets", ("in", 2), &[("out", 1)]).unwrap_err();
        let from_simulator = fairgate_sim::Error::from(imbalance());
        let failures = [
            Failure::from(Imbalanced::from(imbalance())),
            Failure::from(crate::commands::simulate::SimulateError::from(from_simulator)),
        ];
        for failure in failures {
            let code = finish(Err(failure), Format::Text);
            assert_eq!(
                format!("{code:?}"),
                format!("{:?}", ExitCode::from(IMBALANCE_CODE))
            );
        }
        let other = finish(Err(Failure::Input(miette!("no such file"))), Format::Text);
        assert_eq!(format!("{other:?}"), format!("{:?}", ExitCode::from(2)));
    }
}
