//! The files that a list is read from.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fairgate_subscribers::{Source, Text};
use miette::Diagnostic;
use thiserror::Error;

use crate::failure::Failure;
use crate::input;

#[derive(Debug, Error, Diagnostic)]
#[error("can't read the folder {path}")]
#[diagnostic(help("name a file or a folder of files with `file` in [subscribers]"))]
struct UnreadableFolder {
    path: String,
    source: io::Error,
}

/// Reads the texts of a list, in a fixed order.
pub(super) fn texts(source: &Source) -> Result<Vec<Text>, Failure> {
    let files = match source {
        Source::Api => Vec::new(),
        Source::File(path) if path.is_dir() => in_folder(path).map_err(|source| UnreadableFolder {
            path: path.display().to_string(),
            source,
        })?,
        Source::File(path) => vec![path.clone()],
        Source::LibreQos { devices, network } => vec![devices.clone(), network.clone()],
    };
    let text = |file: PathBuf| {
        Ok(Text {
            name: file.display().to_string(),
            content: input::text(&file)?,
        })
    };
    files.into_iter().map(text).collect()
}

/// Returns the files and folders that a list is read from.
pub(super) fn paths(source: &Source) -> Vec<PathBuf> {
    match source {
        Source::Api => Vec::new(),
        Source::File(path) => vec![path.clone()],
        Source::LibreQos { devices, network } => vec![devices.clone(), network.clone()],
    }
}

/// Returns the files of a folder that are lists, sorted by name. Those of editors begin with a dot or end
/// otherwise.
fn in_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if !name.starts_with('.') && (name.ends_with(".csv") || name.ends_with(".json")) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// What tells one state of the files from another one: for each its inode, its length, and the time of its
/// last change.
pub(super) type State = Vec<(PathBuf, u64, u64, (i64, i64))>;

/// Returns the state of the files of a list. Those that can't be looked at are left out.
pub(super) fn state(source: &Source) -> State {
    let files = match source {
        Source::File(path) if path.is_dir() => in_folder(path).unwrap_or_default(),
        other => paths(other),
    };
    let of = |file: PathBuf| {
        let found = file.metadata().ok()?;
        let changed = (found.mtime(), found.mtime_nsec());
        Some((file, found.ino(), found.len(), changed))
    };
    files.into_iter().filter_map(of).collect()
}
