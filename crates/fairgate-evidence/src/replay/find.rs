//! Finds the traces that a path names.

use std::fs;
use std::path::{Path, PathBuf};

use crate::replay::error::{Error, Mistake};

/// The ending of a trace's name.
const SUFFIX: &str = ".jsonl.gz";

/// Returns the traces that `path` names: the file itself, or all traces below a folder, ordered by name.
///
/// # Errors
/// Returns an error if the path can't be read or names no trace.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let metadata = fs::metadata(path).map_err(|error| Mistake::Unreadable(error).in_file(path))?;
    if !metadata.is_dir() {
        return match is_trace(path) {
            true => Ok(vec![path.to_owned()]),
            false => Err(Mistake::NoTrace.in_file(path)),
        };
    }
    let mut traces = Vec::new();
    collect(path, &mut traces)?;
    if traces.is_empty() {
        return Err(Mistake::NoTraceBelow.in_file(path));
    }
    traces.sort();
    Ok(traces)
}

fn collect(folder: &Path, traces: &mut Vec<PathBuf>) -> Result<(), Error> {
    let unreadable = |error| Mistake::Unreadable(error).in_file(folder);
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Links to folders are not followed, because they may lead back to a folder above.
        if entry.file_type().map_err(unreadable)?.is_dir() {
            collect(&entry.path(), traces)?;
        } else if is_trace(&entry.path()) {
            traces.push(entry.path());
        }
    }
    Ok(())
}

fn is_trace(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().ends_with(SUFFIX))
}

/// Returns the path of a trace's setup: `TRACE.json` beside `TRACE.jsonl.gz`.
pub(crate) fn setup_of(trace: &Path) -> PathBuf {
    // This removes .jsonl.gz. The rest of the name need not be valid text.
    trace.with_extension("").with_extension("json")
}
