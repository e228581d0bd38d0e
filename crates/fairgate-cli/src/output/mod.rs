//! Output of results: text, JSON documents, tables, files.

pub(crate) mod colour;
mod tables;
mod target;

use std::fmt::Display;
use std::io::{self, Write};

use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::embedded;
use crate::failure::Failure;

pub(crate) use tables::{page_table, page_width, table, table_text, wrap};
pub(crate) use target::{Target, Targets, Unwritten, create, replace};

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

impl Format {
    /// Returns the format for the value of `--json`.
    pub(crate) fn from_json_flag(json: bool) -> Format {
        if json { Format::Json } else { Format::Text }
    }
}

#[derive(Debug, Error, Diagnostic)]
#[error("can't write to standard output: {0}")]
#[diagnostic(help("look at where the output is sent: a full disk, a closed terminal"))]
struct StdoutError(io::Error);

/// Prints text unchanged.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    if embedded::takes(text) {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(lost)
}

/// Converts an error of standard output.
pub(crate) fn lost(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::environment(StdoutError(error)),
    }
}

/// Escapes control characters. Names come from files, interfaces and other processes, and must not control
/// the terminal. Line ends, tabs and colours (`ESC [ numbers m`) are kept.
pub(crate) fn harmless(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let colour = colour_length(rest);
        let (first, behind) = rest.split_at(colour.unwrap_or(character.len_utf8()));
        if colour.is_some() || matches!(character, '\n' | '\t') || !character.is_control() {
            plain.push_str(first);
        } else {
            plain.extend(character.escape_default());
        }
        rest = behind;
    }
    plain
}

/// Returns the length in bytes of a colour sequence at the beginning of the text (ECMA-48, "select graphic
/// rendition").
fn colour_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let length = parameters.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    parameters[length..].starts_with('m').then_some(length + 3)
}

/// Prints a line on standard error. If standard error is closed or full, the line is lost. Unlike
/// `eprintln!`, this never panics.
pub(crate) fn say(line: impl Display) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{line}");
}

/// A result with the name and version of its schema: `{"schema": "fairgate.NAME/1", ...}`.
#[derive(Serialize)]
struct Envelope<'a, T> {
    schema: String,
    #[serde(flatten)]
    content: &'a T,
}

/// Returns the JSON document `fairgate.NAME/1`. `docs/json.md` describes every schema.
pub(crate) fn json_text(name: &str, content: &impl Serialize) -> String {
    let envelope = Envelope {
        schema: format!("fairgate.{name}/1"),
        content,
    };
    let mut text =
        serde_json::to_string_pretty(&envelope).expect("results have text keys and finite numbers");
    text.push('\n');
    text
}

/// Prints the JSON document `fairgate.NAME/1` in one line, as one of many.
pub(crate) fn json_line(name: &str, content: &impl Serialize) -> Result<(), Failure> {
    let envelope = Envelope {
        schema: format!("fairgate.{name}/1"),
        content,
    };
    let line = serde_json::to_string(&envelope).expect("results have text keys and finite numbers");
    text(&(line + "\n"))
}

/// Prints the JSON document `fairgate.NAME/1`.
pub(crate) fn json(name: &str, content: &impl Serialize) -> Result<(), Failure> {
    text(&json_text(name, content))
}

/// Writes the files of a result and prints the result. If a file cannot be written, the result is still
/// printed: `print` receives whether all files were written, and the failure is returned afterwards.
pub(crate) fn deliver(
    write: impl FnOnce() -> Result<(), Failure>,
    print: impl FnOnce(bool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let written = write();
    let printed = print(written.is_ok());
    written.and(printed)
}

/// Writes all outputs and returns the first failure.
pub(crate) fn each<T>(outputs: Vec<T>, write: impl FnMut(T) -> Result<(), Failure>) -> Result<(), Failure> {
    outputs.into_iter().map(write).fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        assert_eq!(
            harmless("a\x1b[2Jb\nc\u{9b}2Jd\r"),
            "a\\u{1b}[2Jb\nc\\u{9b}2Jd\\r"
        );
        assert_eq!(
            harmless("\x1b[31;1mred\x1b[0m\t\u{e9}"),
            "\x1b[31;1mred\x1b[0m\t\u{e9}"
        );
        assert_eq!(harmless("\x1b[3"), "\\u{1b}[3");
    }
}
