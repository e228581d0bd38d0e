//! A change of several files of a list that was interrupted, as by a loss of power.
//!
//! ```text
//!   all new files beside the old ones, on the disk --> the note --> each gets its name --> no note
//!                                                        '-- a start from here on gives them the names
//! ```
//!
//! While there is no note, no file has changed. From then on all of them change: the next start of the run
//! does what is left. A file that somebody else has changed meanwhile stays as it is.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fairgate_config::folder::Folder;
use serde::{Deserialize, Serialize};

use super::draft::{Draft, draft_of};

/// The name of the note in the folder of the list.
const NOTE: &str = ".fairgate-change";

const SCHEMA: &str = "fairgate.list-change/1";

/// The largest note, bytes: a path for each file of a folder.
const LARGEST: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    files: Vec<Replaced>,
}

/// A file that is replaced, and what tells it from all that may have its name later.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Replaced {
    path: PathBuf,
    inode: u64,
    bytes: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Replaced {
    fn of(path: PathBuf, found: &Metadata) -> Replaced {
        Replaced {
            path,
            inode: found.ino(),
            bytes: found.len(),
            changed_s: found.mtime(),
            changed_ns: found.mtime_nsec(),
        }
    }
}

/// A note that all these files change. It is removed when this is dropped.
pub(super) struct Note(Folder);

impl Note {
    /// Writes the note into the folder of a list.
    pub(super) fn write<'d>(folder: &Path, drafts: impl Iterator<Item = &'d Draft>) -> io::Result<Note> {
        let replaced = |draft: &Draft| Some(Replaced::of(draft.path(), draft.found()?));
        let document = Document {
            schema: SCHEMA.to_owned(),
            files: drafts.filter_map(replaced).collect(),
        };
        let note = Note(Folder::open(folder)?);
        let text = serde_json::to_string(&document)?;
        let mut file = match note.0.create_new(OsStr::new(NOTE)) {
            // What is left of a run that was killed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                note.0.remove(OsStr::new(NOTE))?;
                note.0.create_new(OsStr::new(NOTE))?
            }
            created => created?,
        };
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        note.0.sync()?;
        Ok(note)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // The next start finds nothing left to do.
        let _ = self.0.remove(OsStr::new(NOTE));
    }
}

/// Does what is left of an interrupted change of these files, which are in the folder of a list. Returns
/// those that have changed.
pub(super) fn finish(folder: &Path, files: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let folder = Folder::open(folder)?;
    let document: Document = match folder.open_file(OsStr::new(NOTE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => {
            let file = opened?;
            folder.check_found(OsStr::new(NOTE), &file.metadata()?)?;
            let mut text = String::new();
            file.take(LARGEST).read_to_string(&mut text)?;
            // A note that was not written to its end: no file has changed.
            match serde_json::from_str(&text) {
                Ok(document) => document,
                Err(_) => Document {
                    schema: SCHEMA.to_owned(),
                    files: Vec::new(),
                },
            }
        }
    };
    let mut finished = Vec::new();
    for path in files.iter().filter(|_| document.schema == SCHEMA) {
        let (place, name) = Folder::end_of(path)?;
        let draft = draft_of(&name);
        let now = Replaced::of(place.path().join(&name), &place.look(&name)?.metadata()?);
        if document.files.contains(&now) && place.look(&draft).is_ok() {
            place.rename(&draft, &name)?;
            place.sync()?;
            finished.push(path.clone());
        }
    }
    folder.remove(OsStr::new(NOTE))?;
    Ok(finished)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// At whatever point it stops: all files change or none, and what somebody else has written stays.
    #[test]
    fn a_change_is_finished_or_was_not_begun() {
        for renamed in 0..3 {
            for (has_note, other) in [(true, false), (false, false), (true, true)] {
                let folder = tempfile::tempdir().unwrap();
                let at = |name: &str| folder.path().join(name);
                let files = ["a.csv", "b.csv", "c.csv"].map(at);
                for file in &files {
                    fs::write(file, "old").unwrap();
                }
                let draft = |file: &PathBuf| {
                    let (folder, name) = Folder::end_of(file).unwrap();
                    let like = fs::File::open(file).unwrap();
                    Draft::write(folder, name, like.metadata().ok(), like, "new").unwrap()
                };
                let drafts: Vec<Draft> = files.iter().map(draft).collect();
                if has_note {
                    let note = Note::write(folder.path(), drafts.iter()).unwrap();
                    for draft in &drafts[..renamed] {
                        draft.put().unwrap();
                    }
                    std::mem::forget(note);
                }
                std::mem::forget(drafts);
                if other {
                    fs::write(at("other"), "edited").unwrap();
                    fs::rename(at("other"), &files[2]).unwrap();
                }
                let finished = finish(folder.path(), &files).unwrap();
                let now = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
                let expected = match (has_note, other) {
                    (true, false) => ["new"; 3],
                    (true, true) => ["new", "new", "edited"],
                    (false, _) => ["old"; 3],
                };
                assert_eq!(now, expected, "{renamed} {has_note} {other}");
                let expected = if has_note {
                    3 - renamed - usize::from(other)
                } else {
                    0
                };
                assert_eq!(finished.len(), expected);
                assert!(!at(NOTE).exists());
                assert_eq!(finish(folder.path(), &files).unwrap(), [] as [PathBuf; 0]);
            }
        }
    }

    /// One that was cut off, that is another program's, or that names others' files.
    #[test]
    fn a_note_that_is_none_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        fs::write(&file, "old").unwrap();
        fs::write(folder.path().join(".a.csv.fairgate"), "new").unwrap();
        for note in ["", "{", "{\"schema\": \"x/1\", \"files\": []}", "[]"] {
            fs::write(folder.path().join(NOTE), note).unwrap();
            assert_eq!(
                finish(folder.path(), std::slice::from_ref(&file)).unwrap().len(),
                0,
                "{note}"
            );
            assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        }
    }
}
