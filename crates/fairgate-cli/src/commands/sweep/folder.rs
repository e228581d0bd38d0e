//! The folder of a sweep's data set. `fairgate.sweep` of the Python package has the same format, so each goes
//! on where the other was interrupted.
//!
//! Its parts are complete Parquet files: each gets its name when it is written. The footer of a part names
//! its runs. Names of other files begin with `_`, so that readers of data sets pass over them.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fairgate_config::folder::lock_file;
use fairgate_sim::results::{Table, parquet_note};
use fairgate_sim::sweep::Sweep;
use miette::Diagnostic;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::failure::Failure;
use crate::output::replace;

/// The key in a part's footer.
const RUNS: &str = "fairgate.runs";
const PLAN: &str = "_sweep.json";
const LOCK: &str = "_lock";
/// A part has a sixteenth of the runs before it. So a sweep that is killed does at most about this share of
/// its runs again, there are few files, and they are the same whatever the number of jobs.
const SHARE: usize = 16;
/// The largest number of runs of a part. They are held in memory until all of them are finished.
const LARGEST: usize = 4096;

#[derive(Debug, Error, Diagnostic)]
enum FolderError {
    #[error("can't use the folder {path}")]
    #[diagnostic(help("make room, or choose another folder with --out; the same command goes on"))]
    Refused { path: String, source: io::Error },
    #[error("{path} is broken or no part of a sweep: {what}")]
    #[diagnostic(help("remove it, and the same command does its runs again"))]
    Broken { path: String, what: String },
    #[error("{path} has another sweep, of {grid} with the table `{measure}`")]
    #[diagnostic(help("choose another folder with --out"))]
    Other {
        path: String,
        grid: String,
        measure: String,
    },
    #[error("another sweep is writing into {path}")]
    #[diagnostic(help("wait until it has ended, or choose another folder with --out"))]
    Busy { path: String },
    #[error("can't write {path}")]
    #[diagnostic(help("make room; the same command does the last {runs} runs again"))]
    Unwritten {
        path: String,
        runs: usize,
        source: io::Error,
    },
}

/// What all parts have in common.
#[derive(PartialEq, Serialize, Deserialize)]
struct Plan {
    /// The varied paths, sorted.
    grid: Vec<String>,
    measure: String,
}

/// A folder that no other sweep writes into.
pub(super) struct Folder {
    path: PathBuf,
    finished: HashSet<String>,
    /// Locked as long as it is open.
    _lock: File,
}

impl Folder {
    /// Creates or opens the folder, and finds out which runs it has.
    pub(super) fn open(path: PathBuf, sweep: &Sweep<'_>) -> Result<Folder, Failure> {
        let refused = |source| {
            Failure::environment(FolderError::Refused {
                path: path.display().to_string(),
                source,
            })
        };
        let lock = lock_file(&path.join(LOCK)).map_err(refused)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let path = path.display().to_string();
                return Err(Failure::environment(FolderError::Busy { path }));
            }
            // Some file systems have no locks. Then nobody is kept away.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut grid: Vec<String> = sweep.axes().iter().map(|axis| axis.path.clone()).collect();
        grid.sort();
        let measure = sweep.measure().word().to_owned();
        check_plan(&path, &Plan { grid, measure }, refused)?;
        let mut finished = HashSet::new();
        for entry in fs::read_dir(&path).map_err(refused)? {
            let part = entry.map_err(refused)?.path();
            if is_part(&part) {
                finished.extend(runs_of(&part)?);
            } else if part.extension() == Some(OsStr::new("draft")) {
                // A killed sweep of the Python package left it. Nobody else writes now.
                fs::remove_file(&part).map_err(refused)?;
            }
        }
        Ok(Folder {
            path,
            finished,
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the data set has this run.
    pub(super) fn has(&self, id: &str) -> bool {
        self.finished.contains(id)
    }

    pub(super) fn writer(self) -> Writer {
        Writer {
            folder: self,
            waiting: BTreeMap::new(),
            first: 0,
            finished: 0,
            done: 0,
        }
    }
}

fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.starts_with("part-") && name.ends_with(".parquet")
}

/// Checks that the folder is for the same columns, and notes them there.
fn check_plan(folder: &Path, plan: &Plan, refused: impl Fn(io::Error) -> Failure) -> Result<(), Failure> {
    let file = folder.join(PLAN);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = serde_json::to_string(plan).expect("a plan has text keys");
            return replace(&file, |draft| draft.write_all(text.as_bytes())).map_err(refused);
        }
        Err(error) => return Err(refused(error)),
    };
    let found: Plan = serde_json::from_str(&text).map_err(|error| FolderError::Broken {
        path: file.display().to_string(),
        what: error.to_string(),
    })?;
    if found == *plan {
        return Ok(());
    }
    Err(FolderError::Other {
        path: folder.display().to_string(),
        grid: match found.grid.is_empty() {
            true => "nothing but seeds".to_owned(),
            false => found.grid.join(", "),
        },
        measure: found.measure,
    }
    .into())
}

/// Returns the runs that a part has.
fn runs_of(part: &Path) -> Result<Vec<String>, FolderError> {
    let broken = |what: String| FolderError::Broken {
        path: part.display().to_string(),
        what,
    };
    let note = File::open(part).and_then(|file| parquet_note(file, RUNS));
    let note = note.map_err(|error| broken(error.to_string()))?;
    let note = note.ok_or_else(|| broken("its footer names no runs".to_owned()))?;
    serde_json::from_str(&note).map_err(|error| broken(error.to_string()))
}

/// Collects finished runs, and writes them as parts. Runs are known by their place among those that this call
/// does. The rows are in this order.
pub(super) struct Writer {
    folder: Folder,
    /// What is finished and not written, by place.
    waiting: BTreeMap<usize, (String, Table)>,
    /// The place of the first run that is not written.
    first: usize,
    /// The place of the first run that is not finished.
    finished: usize,
    done: usize,
}

impl Writer {
    /// Adds a run. Writes each part whose runs are all finished.
    pub(super) fn add(&mut self, place: usize, id: String, table: Table) -> Result<(), Failure> {
        self.waiting.insert(place, (id, table));
        while self.waiting.contains_key(&self.finished) {
            self.finished += 1;
        }
        while self.finished >= end_of_part(self.first) {
            let end = end_of_part(self.first);
            let later = self.waiting.split_off(&end);
            let ready = std::mem::replace(&mut self.waiting, later);
            self.first = end;
            self.write(ready)?;
        }
        Ok(())
    }

    /// Writes everything that is finished, as the last part.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        let ready = std::mem::take(&mut self.waiting);
        self.write(ready)
    }

    fn write(&mut self, ready: BTreeMap<usize, (String, Table)>) -> Result<(), Failure> {
        let place = ready.keys().next().copied().unwrap_or_default();
        let (ids, tables): (Vec<String>, Vec<Table>) = ready.into_values().unzip();
        let Some(table) = Table::concatenated(tables) else {
            return Ok(());
        };
        // The first run is in no other part, so the name is new.
        // Its place comes first, because readers take the parts in the order of their names.
        let name = format!("part-{place:08}-{}.parquet", ids[0]);
        let part = self.folder.path.join(name);
        let note = serde_json::to_string(&ids).expect("a list of text");
        let written = replace(&part, |draft| table.write_parquet_with(RUNS, note, draft));
        written.map_err(|source| {
            Failure::environment(FolderError::Unwritten {
                path: part.display().to_string(),
                runs: ids.len(),
                source,
            })
        })?;
        self.done += ids.len();
        Ok(())
    }

    /// Returns how many runs were written.
    pub(super) fn done(&self) -> usize {
        self.done
    }
}

/// Returns the place after the last run of the part that begins at `first`.
fn end_of_part(first: usize) -> usize {
    first + (first / SHARE).clamp(1, LARGEST)
}
