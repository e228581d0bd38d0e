//! The configuration that has forwarded last: a copy of all texts that it was read from, in one file. A run
//! whose file is refused at the start, after a bad edit and a crash for example, begins with it.
//!
//! The file is a JSON document, `fairgate.last-good/1`. Only this user and root may write to it and to its
//! folder: what it says is run.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use fairgate_config::folder::{Folder, folder_of};
use miette::Diagnostic;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::input::Texts;
use crate::log::utc;

const SCHEMA: &str = "fairgate.last-good/1";

/// The largest copy, bytes: the longest list of subscribers has less.
const LARGEST: u64 = 256 << 20;

/// Where the copy is.
#[derive(Clone, Debug)]
pub(crate) struct LastGood {
    path: PathBuf,
    /// Held while the copy is written.
    writing: Arc<Mutex<()>>,
}

/// A copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Document {
    schema: String,
    /// When it has forwarded first, UTC.
    since: String,
    /// The texts by the paths that they were read from.
    texts: BTreeMap<PathBuf, String>,
}

/// Why there is no copy to begin with.
#[derive(Debug, Error, Diagnostic)]
pub(crate) enum NoCopy {
    #[error("no configuration has forwarded yet: there is no copy {0}")]
    None(String),
    #[error("the copy {path} of the last good configuration can't be used")]
    Unusable { path: String, source: io::Error },
}

/// Makes the folder of a file in which a run keeps something, if it is missing.
pub(crate) fn make_folder(file: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder_of(file))?;
    file.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(())
}

impl LastGood {
    /// Prepares the place of the copy. Its folder is made if it is missing.
    pub(crate) fn at(path: &Path) -> io::Result<LastGood> {
        make_folder(path)?;
        Ok(LastGood {
            path: path.to_owned(),
            writing: Arc::default(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn name(&self) -> &OsStr {
        self.path.file_name().expect("it was checked")
    }

    /// Reads the copy. Returns when it has forwarded first, and its texts.
    pub(crate) fn load(&self) -> Result<(String, Texts), NoCopy> {
        let path = || self.path.display().to_string();
        match self.read() {
            Ok(document) => Ok((document.since, Texts::of_copy(document.texts))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NoCopy::None(path())),
            Err(source) => Err(NoCopy::Unusable { path: path(), source }),
        }
    }

    fn read(&self) -> io::Result<Document> {
        let file = Folder::of(&self.path)?.open_trusted(self.name())?;
        let mut text = String::new();
        file.take(LARGEST).read_to_string(&mut text)?;
        let document: Document = serde_json::from_str(&text)?;
        if document.schema != SCHEMA {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it is no {SCHEMA}"),
            ));
        }
        Ok(document)
    }

    /// Keeps these texts, unless they are those of the copy.
    pub(crate) fn keep(&self, texts: &Texts) -> io::Result<()> {
        let _turn = self.turn();
        let texts = texts.read();
        if self.read().is_ok_and(|document| document.texts == texts) {
            return Ok(());
        }
        self.write(&Document {
            schema: SCHEMA.to_owned(),
            since: utc(SystemTime::now()),
            texts,
        })
    }

    /// Keeps another text of the file at `path`, if the copy has what the file had before.
    pub(crate) fn renew(&self, path: &Path, before: Option<&str>, now: &str) -> io::Result<()> {
        let _turn = self.turn();
        let Ok(mut document) = self.read() else {
            return Ok(());
        };
        if document.texts.get(path).map(String::as_str) != before {
            return Ok(());
        }
        document.texts.insert(path.to_owned(), now.to_owned());
        self.write(&document)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the copy. The old one stays until the new one is whole.
    fn write(&self, document: &Document) -> io::Result<()> {
        let text = serde_json::to_string_pretty(document)?;
        Folder::of(&self.path)?.replace(self.name(), text.as_bytes())?;
        Ok(())
    }
}
