//! Results: tables, JSON documents, result files.

use std::fmt::Display;
use std::fs::{File, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::exit::Failure;

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

impl Format {
    /// From `--json`.
    pub(crate) fn from_json_flag(json: bool) -> Format {
        if json { Format::Json } else { Format::Text }
    }
}

/// A result that could not be written.
#[derive(Debug, Error, Diagnostic)]
pub(crate) enum WriteError {
    #[error("can't write to standard output: {0}")]
    #[diagnostic(help("look at where the output is sent: a full disk, a closed terminal"))]
    Stdout(io::Error),
    #[error("can't write {path}")]
    #[diagnostic(help("nothing was left under this name; make room or choose another place"))]
    File { path: String, source: io::Error },
}

/// Prints text as it is.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(lost)
}

/// Why standard output did not take what was printed.
pub(crate) fn lost(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::environment(WriteError::Stdout(error)),
    }
}

/// Says a line to people, on standard error. If that is closed or full there is nobody to tell: unlike `eprintln!`,
/// this never panics.
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

/// The JSON document `fairgate.NAME/1`. Every schema is described in `docs/json.md`.
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

/// Prints the JSON document `fairgate.NAME/1`.
pub(crate) fn json(name: &str, content: &impl Serialize) -> Result<(), Failure> {
    text(&json_text(name, content))
}

/// A table in the program's one style: columns aligned, no frames. Lines are wrapped on a terminal only, so that
/// `grep` sees whole rows.
pub(crate) fn table<'a>(header: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.into_iter());
    if io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// Text in lines of at most `width` characters, broken between words, for a cell of a table.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// A table as text, without blanks at the ends of lines.
pub(crate) fn table_text(table: &Table) -> String {
    table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// A progress bar of so many steps on standard error; none beside JSON.
pub(crate) fn progress(format: Format, steps: u64) -> ProgressBar {
    let bar = match format {
        Format::Text => ProgressBar::new(steps),
        Format::Json => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}");
    bar.with_style(style.expect("the template is right"))
}

/// Writes a result file whole or not at all: `write` fills a temporary file beside it, which gets the final name only
/// when it is safe on the disk.
pub(crate) fn file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Failure> {
    let whole = || {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // Removed when dropped before `persist`.
        // Readable by whoever the user's mask lets, as any file a program creates.
        let mut temporary = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)?;
        write(temporary.as_file_mut())?;
        temporary.as_file_mut().flush()?;
        temporary.as_file().sync_all()?;
        temporary.persist(path)?;
        Ok(())
    };
    whole().map_err(|source| {
        let path = path.display().to_string();
        Failure::environment(WriteError::File { path, source })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        entries.map(name).collect()
    }

    #[test]
    fn a_result_file_is_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        file(&path, |file| file.write_all(b"first")).unwrap();
        file(&path, |file| file.write_all(b"second")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn on_a_full_disk_the_old_result_stays_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        std::fs::write(&path, "old").unwrap();
        let failure = file(&path, |file| {
            file.write_all(b"half of it")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        let Err(Failure::Environment(report)) = failure else {
            panic!("a full disk is the environment's refusal");
        };
        assert!(report.to_string().starts_with("can't write "), "{report}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_said_to_be_so() {
        let folder = tempfile::tempdir().unwrap();
        let failure = file(&folder.path().join("none/result.json"), |_| Ok(()));
        assert!(matches!(failure, Err(Failure::Environment(_))));
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrap("a queue without flows", 8), "a queue\nwithout\nflows");
        assert_eq!(wrap("", 8), "");
        assert_eq!(wrap("incomprehensibilities", 8), "incomprehensibilities");
    }
}
