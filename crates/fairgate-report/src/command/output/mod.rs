//! Output of results: text, JSON documents, tables, files.

pub mod colour;
pub mod printed;
mod tables;
mod target;

use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::command::failure::Failure;

use fairgate::harmless::is_hidden;
pub use fairgate::harmless::{name, text as harmless};
pub use fairgate_config::folder::create;
pub use tables::{Table, page_table, page_width, table, table_text, wrap};
pub use target::replace;
pub use target::{Target, Targets, Unwritten, keep_attributes, remove};

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

impl Format {
    /// Returns the format for the value of `--json`.
    pub fn from_json_flag(json: bool) -> Format {
        if json { Format::Json } else { Format::Text }
    }
}

#[derive(Debug, Error, Diagnostic)]
#[error("can't write to standard output: {0}")]
#[diagnostic(help("look at where the output is sent: a full disk, a closed terminal"))]
struct StdoutError(io::Error);

/// Prints text for people. What a terminal obeys or does not show is escaped, see [`harmless`].
pub fn text(text: &str) -> Result<(), Failure> {
    exact(&harmless(text))
}

/// Prints text unchanged: a document for programs, or text with our own styling, whose names are escaped.
pub fn exact(text: &str) -> Result<(), Failure> {
    if printed::takes(text) {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(lost)
}

/// Converts an error of standard output.
pub fn lost(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::environment(StdoutError(error)),
    }
}

/// Returns a text with our own colours, if without them it is [`harmless`]. Otherwise its colours can't be
/// told from those that a name brings: the text is returned without colours, and escaped.
pub fn coloured(plain: &str, colours: impl FnOnce() -> String) -> String {
    let shown = harmless(plain);
    if shown == plain { colours() } else { shown }
}

/// Prints a line on standard error, with everything escaped that is not [`harmless`]. If standard error is
/// closed or full, the line is lost. Unlike `eprintln!`, this never panics.
pub fn say(line: impl Display) {
    say_exact(harmless(&line.to_string()));
}

/// Prints a line on standard error unchanged, as [`exact`] does.
pub fn say_exact(line: impl Display) {
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
pub fn json_text(name: &str, content: &impl Serialize) -> String {
    let envelope = Envelope {
        schema: format!("fairgate.{name}/1"),
        content,
    };
    let mut text =
        serde_json::to_string_pretty(&envelope).expect("results have text keys and finite numbers");
    text.push('\n');
    harmless_json(&text)
}

/// Returns a JSON document with all characters escaped that [`is_hidden`].
/// Its values stay the same: JSON itself demands this only of those below U+0020.
pub fn harmless_json(document: &str) -> String {
    let mut plain = String::with_capacity(document.len());
    for character in document.chars() {
        if character == '\n' || !is_hidden(character) {
            plain.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(plain, "\\u{unit:04x}").expect("a text takes everything");
        }
    }
    plain
}

/// Prints the JSON document `fairgate.NAME/1` in one line, as one of many.
pub fn json_line(name: &str, content: &impl Serialize) -> Result<(), Failure> {
    let envelope = Envelope {
        schema: format!("fairgate.{name}/1"),
        content,
    };
    let line = serde_json::to_string(&envelope).expect("results have text keys and finite numbers");
    exact(&harmless_json(&(line + "\n")))
}

/// Prints the JSON document `fairgate.NAME/1`.
pub fn json(name: &str, content: &impl Serialize) -> Result<(), Failure> {
    exact(&json_text(name, content))
}

/// Writes the files of a result and prints the result. If a file cannot be written, the result is still
/// printed: `print` receives whether all files were written, and the failure is returned afterwards.
pub fn deliver(
    write: impl FnOnce() -> Result<(), Failure>,
    print: impl FnOnce(bool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let written = write();
    let printed = print(written.is_ok());
    written.and(printed)
}

/// Writes all outputs and returns the first failure.
pub fn each<T>(outputs: Vec<T>, write: impl FnMut(T) -> Result<(), Failure>) -> Result<(), Failure> {
    outputs.into_iter().map(write).fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_json_keep_the_values() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}\u{7f}\u{202e}\u{e0041}\u{e9}\u{1f600}\n" });
        let document = serde_json::to_string_pretty(&value).unwrap();
        let plain = harmless_json(&document);
        assert!(
            !plain.contains(|shown: char| is_hidden(shown) && shown != '\n'),
            "{plain:?}"
        );
        assert!(plain.contains("\\u202e\\udb40\\udc41\u{e9}\u{1f600}"), "{plain}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&plain).unwrap(), value);
    }
}
