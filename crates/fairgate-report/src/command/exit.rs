//! How the program ends: exit codes, and errors as text or JSON.

use std::error::Error;
use std::fmt::{self, Write};
use std::io;
use std::process::ExitCode;

use fairgate::balance::Imbalance;
use fairgate_config::{FileError, Lines};
use miette::{
    Diagnostic, LabeledSpan, MietteHandler, MietteHandlerOpts, Report, ReportHandler, SourceCode, miette,
};
use nix::errno::Errno;
use serde::Serialize;

use crate::command::failure::{Failure, Outcome};
use crate::command::output::{self, Format, Unwritten, colour};

/// Exit code of an [`Imbalanced`](crate::command::failure::Imbalanced).
pub const IMBALANCE_CODE: u8 = 4;

/// Returns the exit code, and what is wrong.
pub fn judged(result: Result<Outcome, Failure>) -> (u8, Option<Report>) {
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
pub fn error_document(report: &Report) -> String {
    output::json_text("error", &ErrorDocument::of(report))
}

/// Reports a failure and returns the exit code.
pub fn finish(result: Result<Outcome, Failure>, format: Format) -> ExitCode {
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
pub fn shown(report: &Report, is_coloured: bool) -> String {
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

/// Draws the report. Several mistakes of a file are below one another.
fn drawn(report: &Report, is_coloured: bool) -> String {
    let several = report
        .downcast_ref::<FileError>()
        .filter(|error| error.problems().len() > 1);
    let Some(error) = several else {
        return drawn_one(&Helped(report), is_coloured);
    };
    let mut text = drawn_one(miette!("{error}").as_ref(), is_coloured);
    for problem in error.problems() {
        text.push('\n');
        text.push_str(&drawn_one(problem, is_coloured));
    }
    text
}

/// A report with the remedy for its cause, if that has one of its own.
#[derive(Debug)]
struct Helped<'r>(&'r Report);

impl fmt::Display for Helped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0, f)
    }
}

impl Error for Helped<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl Diagnostic for Helped<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        help(self.0)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.0.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        self.0.related()
    }

    fn diagnostic_source(&self) -> Option<&dyn Diagnostic> {
        self.0.diagnostic_source()
    }
}

/// Returns the remedy. Any file or socket can meet the limit of open files. Then the advice for it is wrong.
pub fn help(report: &Report) -> Option<Box<dyn fmt::Display + '_>> {
    // Some errors have only the text of the system's error.
    let texts = [Errno::EMFILE, Errno::ENFILE].map(|errno| errno.desc());
    let is_limit = |cause: &(dyn Error + 'static)| {
        let code = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error);
        let is_code = code.is_some_and(|code| code == Errno::EMFILE as i32 || code == Errno::ENFILE as i32);
        is_code || texts.iter().any(|text| cause.to_string().contains(text))
    };
    let own = report.help();
    // One that raises a limit knows which one: those of inotify have the same error.
    let raises = own
        .as_ref()
        .is_some_and(|help| help.to_string().starts_with("raise "));
    match !raises && report.chain().any(is_limit) {
        true => Some(Box::new(MORE_FILES)),
        false => own,
    }
}

/// The remedy for too many open files.
const MORE_FILES: &str = "raise the limit of open files: `ulimit -n 65536` in the shell, \
                          `LimitNOFILE=65536` in a unit of systemd";

/// Draws one mistake. If its location cannot be drawn, the text is only the message.
fn drawn_one(diagnostic: &dyn Diagnostic, is_coloured: bool) -> String {
    struct Drawn<'a>(&'a dyn Diagnostic, MietteHandler);

    impl fmt::Display for Drawn<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.1.debug(self.0, f)
        }
    }

    let handler = MietteHandlerOpts::new().color(is_coloured).build();
    let mut text = String::new();
    match write!(text, "{}", Drawn(diagnostic, handler)) {
        Ok(()) => text,
        Err(fmt::Error) => diagnostic.to_string(),
    }
}

/// Returns the number of lines that were read and refused, if the error is in a script.
fn lines(report: &Report) -> Option<Lines> {
    report.downcast_ref::<FileError>()?.lines()
}

/// Ends the program after arguments that clap could not parse, or after `--help` and `--version`, which clap
/// reports in the same way.
pub fn usage(error: &clap::Error) -> ExitCode {
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
pub fn usage_failure(error: &clap::Error) -> Failure {
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
                help: help(report).map(|help| help.to_string()),
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

    #[test]
    fn the_limit_of_open_files_has_its_remedy_everywhere() {
        #[derive(Debug, thiserror::Error, Diagnostic)]
        #[error("can't write a.csv")]
        #[diagnostic(help("choose another place"))]
        struct Refused(#[source] io::Error);

        let limit = || io::Error::from_raw_os_error(Errno::EMFILE as i32);
        #[derive(Debug, thiserror::Error, Diagnostic)]
        #[error("opening a socket failed: {0}")]
        struct InWords(Errno);

        for report in [
            Report::new(Refused(limit())),
            Report::new(InWords(Errno::EMFILE)),
            miette!("a.csv: {}", limit()),
        ] {
            let text = shown(&report, false);
            assert!(
                text.contains("ulimit -n") && text.contains("LimitNOFILE"),
                "{text}"
            );
            assert!(!text.contains("choose another place"), "{text}");
            assert!(error_document(&report).contains("ulimit -n"));
        }
        let other = Report::new(Refused(io::ErrorKind::NotFound.into()));
        assert!(shown(&other, false).contains("choose another place"));
    }
}
