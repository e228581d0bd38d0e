//! What the stand-ins wrote down, in the order in which they were called.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLine {
    /// The file's name, as the script named it.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
}

/// A call of a stand-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// `tc`, `ip`, ...
    pub(crate) program: String,
    /// The words after the program's name.
    pub(crate) words: Vec<String>,
    /// The line that gave the command, if it is known.
    pub(crate) place: Option<SourceLine>,
}

/// Adds an entry. Several stand-ins of one script may run at the same time, so the file is locked.
pub(crate) fn append(journal: &Path, entry: &Entry) -> io::Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(journal)?;
    let mut file = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| io::Error::from(error))?;
    let mut line = serde_json::to_string(entry).map_err(io::Error::other)?;
    line.push('\n');
    file.write_all(line.as_bytes())
}

/// Returns all entries so far. No file is no entries.
pub(crate) fn read(journal: &Path) -> io::Result<Vec<Entry>> {
    let file = match File::open(journal) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let file = Flock::lock(file, FlockArg::LockShared).map_err(|(_, error)| io::Error::from(error))?;
    let text = io::read_to_string(&*file)?;
    entries(&text).map_err(io::Error::other)
}

/// Returns the entries of a journal's text.
pub(crate) fn entries(text: &str) -> serde_json::Result<Vec<Entry>> {
    text.lines().map(serde_json::from_str).collect()
}
