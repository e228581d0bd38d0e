//! Reading and checking of what users provide: files and values on the command line.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fairgate_config::units::parse_duration;
use fairgate_config::{Origin, Problem, Spec};
use miette::Diagnostic;
use thiserror::Error;

use crate::command::failure::Failure;
use crate::command::output::{self, Format};

/// Why a file was not read.
#[derive(Debug, Error, Diagnostic)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    #[error("can't read {path}")]
    #[diagnostic(help("give the path of a configuration file; examples/home.toml is one"))]
    Unreadable { path: String, source: io::Error },
    #[error("the copy has no text of {path}")]
    #[diagnostic(help("correct the configuration file; the next run that forwards makes a new copy"))]
    NotInCopy { path: String },
    #[error("{path}:{line}: byte {column} of the line, 0x{byte:02x}, is not UTF-8")]
    #[diagnostic(help("save the file as UTF-8; spreadsheets call it \"CSV UTF-8\""))]
    NotText {
        path: String,
        line: usize,
        /// From 1.
        column: usize,
        byte: u8,
    },
}

/// Where the texts of a configuration come from.
#[derive(Debug, Default)]
pub struct Texts {
    /// The texts by path, instead of the files.
    copy: Option<BTreeMap<PathBuf, String>>,
    /// What was read, if it is to be noted.
    read: Option<Mutex<BTreeMap<PathBuf, String>>>,
}

impl Texts {
    /// The files, of whose texts copies are noted.
    pub fn noted() -> Texts {
        Texts {
            copy: None,
            read: Some(Mutex::default()),
        }
    }

    /// A copy, in place of the files of these paths.
    pub fn of_copy(copy: BTreeMap<PathBuf, String>) -> Texts {
        Texts {
            copy: Some(copy),
            read: None,
        }
    }

    /// Reads a text.
    pub fn text(&self, path: &Path) -> Result<String, Failure> {
        let text = match &self.copy {
            None => text(path)?,
            Some(copy) => copy.get(path).cloned().ok_or_else(|| ReadError::NotInCopy {
                path: path.display().to_string(),
            })?,
        };
        if let Some(read) = &self.read {
            let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
            read.insert(path.to_owned(), text.clone());
        }
        Ok(text)
    }

    /// Returns whether there is a text at this path.
    pub fn has(&self, path: &Path) -> bool {
        match &self.copy {
            None => path.exists(),
            Some(copy) => copy.contains_key(path),
        }
    }

    /// Returns the paths in a folder. `None` if this is no folder.
    pub fn in_folder(&self, folder: &Path) -> Option<io::Result<Vec<PathBuf>>> {
        match &self.copy {
            None if folder.is_dir() => Some(
                folder
                    .read_dir()
                    .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()),
            ),
            None => None,
            Some(copy) => {
                let inside = copy.keys().filter(|path| path.parent() == Some(folder));
                let inside: Vec<PathBuf> = inside.cloned().collect();
                (!inside.is_empty()).then_some(Ok(inside))
            }
        }
    }

    /// Returns what was read and noted.
    pub fn read(&self) -> BTreeMap<PathBuf, String> {
        let read = self.read.as_ref();
        read.map_or_else(BTreeMap::new, |read| {
            read.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })
    }
}

/// Returns warnings for settings that are valid but probably not intended.
pub fn warnings<'s>(queues: impl Iterator<Item = (&'s str, &'s Spec)>) -> Vec<String> {
    let of_queue = |(name, spec): (&str, &Spec)| -> Vec<String> {
        let warnings = spec.warnings().into_iter();
        warnings
            .map(|warning| format!("queue {}: {warning}", output::name(name)))
            .collect()
    };
    queues.flat_map(of_queue).collect()
}

/// Returns warnings for a tree that is to forward frames. `origin` says where the lines of its text come
/// from.
pub fn live_warnings(spec: &Spec, origin: impl Fn(usize) -> Option<Origin>) -> Vec<String> {
    let warnings = spec.live_warnings().into_iter();
    warnings
        .map(|problem| at_location(&problem.located(&origin)))
        .collect()
}

/// Returns what `fairgate run` rejects on any interface.
pub fn refused_live(spec: &Spec, origin: impl Fn(usize) -> Option<Origin>) -> Vec<String> {
    let refused = [spec.asks_for_marks(), spec.asks_for_departure_times()];
    let sentence = |problem: Problem| {
        let location = at_location(&problem.located(&origin));
        format!("{location}; `fairgate run` rejects this")
    };
    refused.into_iter().flatten().map(sentence).collect()
}

/// Returns the location, the problem and the remedy in one line.
pub fn at_location(problem: &Problem) -> String {
    let (line, column) = problem.position();
    format!("{}:{line}:{column}: {problem}; {}", problem.file(), problem.help)
}

/// Prints warnings for people. A JSON document has them as a key.
pub fn warn(warnings: &[String], format: Format) {
    if format == Format::Text {
        for warning in summed(warnings.iter().cloned()) {
            output::say(format_args!("warning: {warning}"));
        }
    }
}

/// How many warnings of one kind are printed.
const OF_A_KIND: usize = 3;

/// Returns the first warnings of each kind, in their order. The last one of a kind says how many more there
/// are: a tree can have thousands of classes with the same mistake. Warnings that differ in numbers only are
/// of one kind.
pub fn summed(warnings: impl Iterator<Item = String>) -> Vec<String> {
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut kept: Vec<String> = Vec::new();
    for warning in warnings {
        let kind = warning.replace(|character: char| character.is_ascii_digit(), "");
        let (count, last) = kinds.entry(kind).or_default();
        *count += 1;
        if *count <= OF_A_KIND {
            *last = kept.len();
            kept.push(warning);
        }
    }
    for (count, last) in kinds.into_values().filter(|(count, _)| *count > OF_A_KIND) {
        kept[last] += &format!(" (and {} more like this)", count - OF_A_KIND);
    }
    kept
}

/// Parses a duration above 0 from the command line.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be above 0, such as 10s".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the bytes of memory that are available without swapping, or the maximum if the system does not
/// say.
pub fn available_memory() -> u64 {
    fairgate_config::Memory::watch().available()
}

/// Reads a text file.
pub fn text(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| ReadError::Unreadable {
        path: name.clone(),
        source,
    })?;
    Ok(String::from_utf8(bytes).map_err(|error| {
        let (bytes, place) = (error.as_bytes(), error.utf8_error().valid_up_to());
        let before = &bytes[..place];
        let line_start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        ReadError::NotText {
            path: name,
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            column: 1 + place - line_start,
            byte: bytes[place],
        }
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_warnings_of_a_kind_are_summed() {
        let of_class = |class: usize| format!("class {class}: its bucket is too small");
        let few = (1..=3).map(of_class).chain(["another one".to_owned()]);
        assert_eq!(summed(few.clone()), few.collect::<Vec<_>>());
        let many = summed((1..=2000).map(of_class).chain(["another one".to_owned()]));
        assert_eq!(
            many,
            [
                "class 1: its bucket is too small",
                "class 2: its bucket is too small",
                "class 3: its bucket is too small (and 1997 more like this)",
                "another one"
            ]
        );
    }
}
