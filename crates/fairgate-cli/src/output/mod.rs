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
pub(crate) use target::{Target, Targets, Unwritten};

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

/// Escapes everything that a terminal obeys or does not show: control characters, also those of colours;
/// marks of text direction; characters of no width. Names come from files, interfaces and other processes,
/// and must neither control the terminal nor look like other names. Line ends and tabs are kept.
pub(crate) fn harmless(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\n' | '\t') || !is_hidden(character) {
            plain.push(character);
        } else {
            plain.extend(character.escape_default());
        }
    }
    plain
}

/// Returns a text with our own colours, if without them it is [`harmless`]. Otherwise its colours can't be
/// told from those that a name brings: the text is returned without colours, and escaped.
pub(crate) fn coloured(plain: &str, colours: impl FnOnce() -> String) -> String {
    let shown = harmless(plain);
    if shown == plain { colours() } else { shown }
}

/// Returns whether a terminal obeys the character or does not show it: Unicode's categories Cc, Zl, Zp and
/// Cf (but not its signs of Arabic and Indic numbers, which are drawn), and its property
/// `Default_Ignorable_Code_Point`.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
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
    fn what_a_terminal_obeys_or_hides_is_shown_and_not_sent() {
        assert_eq!(
            harmless("a\x1b[2Jb\nc\u{9b}2Jd\r"),
            "a\\u{1b}[2Jb\nc\\u{9b}2Jd\\r"
        );
        assert_eq!(
            harmless("\x1b[31;1mred\x1b[0m\t\u{e9}\u{4e2d}"),
            "\\u{1b}[31;1mred\\u{1b}[0m\t\u{e9}\u{4e2d}"
        );
        let hidden = "\u{7f}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{200f}\u{2028}\u{202a}\u{202e}\u{2060}\u{2066}\
                      \u{2069}\u{3164}\u{fe0f}\u{feff}\u{e0041}";
        for character in hidden.chars() {
            assert_eq!(
                harmless(&character.to_string()),
                character.escape_unicode().to_string()
            );
        }
    }
}
