//! The files that a list is read from.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use fairgate_run::subscribers::{Source, Text};
use miette::Diagnostic;
use thiserror::Error;

use crate::failure::Failure;
use crate::input::{ReadError, Texts};

#[derive(Debug, Error, Diagnostic)]
#[error("can't read the folder {path}")]
#[diagnostic(help("name a file or a folder of files with `file` in [subscribers]"))]
struct UnreadableFolder {
    path: String,
    source: io::Error,
}

#[derive(Debug, Error, Diagnostic)]
#[error("there is no list of subscribers {path}: it was deleted or moved, or its name is wrong")]
#[diagnostic(help(
    "put it back, or correct its name in [subscribers]; a run keeps the list that it has until then"
))]
struct NoList {
    path: String,
}

/// Says of a list that is not there that it is one.
fn missing(failure: Failure) -> Failure {
    let Failure::Input(report) = &failure else {
        return failure;
    };
    match report.downcast_ref::<ReadError>() {
        Some(ReadError::Unreadable { path, source }) if source.kind() == io::ErrorKind::NotFound => {
            NoList { path: path.clone() }.into()
        }
        _ => failure,
    }
}

/// Returns the files of a list, in a fixed order, and that with the limits for a time if it is there.
pub(super) fn files(source: &Source, texts: &Texts) -> Result<Vec<PathBuf>, Failure> {
    let mut files = lists_of(source, texts)?;
    files.extend(limits(source, texts).filter(|limits| texts.has(limits)));
    Ok(files)
}

/// Returns the files of a list, without the limits for a time.
pub(super) fn lists_of(source: &Source, texts: &Texts) -> Result<Vec<PathBuf>, Failure> {
    Ok(match source {
        Source::Api => Vec::new(),
        Source::File(path) => match texts.in_folder(path) {
            Some(found) => lists(found.map_err(|source| UnreadableFolder {
                path: path.display().to_string(),
                source,
            })?),
            None => vec![path.clone()],
        },
        Source::LibreQos { devices, network } => vec![devices.clone(), network.clone()],
    })
}

/// Returns the file with the limits for a time. It may not be there.
pub(super) fn limits(source: &Source, texts: &Texts) -> Option<PathBuf> {
    let is_folder = matches!(source, Source::File(path) if texts.in_folder(path).is_some());
    source.limits(is_folder)
}

/// Reads the texts of a list, in the order of its files, and the limits for a time if there are some.
pub(super) fn texts(source: &Source, texts: &Texts) -> Result<Vec<Text>, Failure> {
    let text = |file: PathBuf| {
        Ok(Text {
            name: file.display().to_string(),
            content: texts.text(&file).map_err(missing)?,
        })
    };
    files(source, texts)?.into_iter().map(text).collect()
}

/// Returns the files and folders that a list is read from.
pub(super) fn paths(source: &Source) -> Vec<PathBuf> {
    match source {
        Source::Api => Vec::new(),
        Source::File(path) => vec![path.clone()],
        Source::LibreQos { devices, network } => vec![devices.clone(), network.clone()],
    }
}

/// Returns the files that are lists, sorted by name. Those of editors begin with a dot or end otherwise.
fn lists(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    files.retain(|file| {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        !name.starts_with('.') && (name.ends_with(".csv") || name.ends_with(".json"))
    });
    files.sort();
    files
}

/// What tells one state of the files from another one: for each its inode, its length, and the time of its
/// last change.
pub(super) type State = Vec<(PathBuf, u64, u64, (i64, i64))>;

/// Returns the state of the files of a list. Those that can't be looked at are left out.
pub(super) fn state(source: &Source) -> State {
    let in_folder = match source {
        Source::File(path) => Texts::default().in_folder(path),
        _ => None,
    };
    let is_folder = in_folder.is_some();
    let mut files = match in_folder {
        Some(found) => found.map(lists).unwrap_or_default(),
        None => paths(source),
    };
    files.extend(source.limits(is_folder));
    let of = |file: PathBuf| {
        let found = file.metadata().ok()?;
        let changed = (found.mtime(), found.mtime_nsec());
        Some((file, found.ino(), found.len(), changed))
    };
    files.into_iter().filter_map(of).collect()
}
