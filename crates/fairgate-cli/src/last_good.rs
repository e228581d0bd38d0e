//! The configuration that has forwarded last: a copy of all texts that it was read from, in one file. A run
//! whose file is refused at the start, after a bad edit and a crash for example, begins with it. With it are
//! the versions that have forwarded before, each with who brought it and why: what makes it of the next one.
//!
//! The file is a JSON document, `fairgate.last-good/1`. Only this user and root may write to it and to its
//! folder: what it says is run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use fairgate_config::folder::{Folder, folder_of};
use fairgate_run_api::brief;
use miette::Diagnostic;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::input::Texts;
use crate::log::utc;
use crate::splice::Splice;

const SCHEMA: &str = "fairgate.last-good/1";

/// The largest copy, bytes: the longest list of subscribers has less.
const LARGEST: u64 = 256 << 20;

/// The longest word about who or why, characters.
const LONGEST: usize = 200;

/// Where the copy is.
#[derive(Clone, Debug)]
pub(crate) struct LastGood {
    path: PathBuf,
    /// Held while the copy is written.
    writing: Arc<Mutex<()>>,
}

/// How many versions before the last one are kept, and how many bytes of their texts at most.
const MOST_VERSIONS: usize = 49;
const MOST_KEPT: usize = 16 << 20;

/// A copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Document {
    schema: String,
    #[serde(flatten)]
    begin: Begin,
    /// The texts by the paths that they were read from.
    texts: BTreeMap<PathBuf, String>,
    /// Those before it, the last one first.
    #[serde(default)]
    earlier: Vec<Earlier>,
}

/// Since when there is a version, and by whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// When it has forwarded first, UTC.
    pub(crate) since: String,
    #[serde(default)]
    pub(crate) who: String,
    #[serde(default)]
    pub(crate) why: String,
}

impl Begin {
    fn now(who: &str, why: &str) -> Begin {
        Begin {
            since: utc(SystemTime::now()),
            who: brief(who, LONGEST),
            why: brief(why, LONGEST),
        }
    }
}

/// A version before another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Earlier {
    #[serde(flatten)]
    begin: Begin,
    /// What makes its texts of those of the next version. None: there was no such file.
    texts: BTreeMap<PathBuf, Option<Splice>>,
}

/// A version: 0 is the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) begin: Begin,
    pub(crate) texts: BTreeMap<PathBuf, String>,
}

impl Document {
    /// Takes other texts. What was before is kept as a version. Limits for a time belong to none: they end by
    /// themselves.
    fn follow(&mut self, texts: BTreeMap<PathBuf, String>, who: &str, why: &str) {
        let paths: BTreeSet<&PathBuf> = self.texts.keys().chain(texts.keys()).collect();
        let is_changed = |path: &&PathBuf| !is_of_limits(path) && self.texts.get(*path) != texts.get(*path);
        let back = |path: &PathBuf| {
            let new = texts.get(path).map_or("", String::as_str);
            let splice = self.texts.get(path).map(|old| Splice::between(new, old));
            (path.clone(), splice)
        };
        let before: BTreeMap<_, _> = paths.into_iter().filter(is_changed).map(back).collect();
        self.texts = texts;
        if before.is_empty() {
            return;
        }
        let begin = std::mem::replace(&mut self.begin, Begin::now(who, why));
        let earlier = Earlier { begin, texts: before };
        self.earlier.insert(0, earlier);
        self.earlier.truncate(MOST_VERSIONS);
        let mut kept = 0;
        let fits = |one: &&Earlier| {
            kept += one.texts.values().flatten().map(Splice::size).sum::<usize>();
            kept <= MOST_KEPT
        };
        let count = self.earlier.iter().take_while(fits).count();
        self.earlier.truncate(count);
    }

    /// Returns the versions, the last one first, as far as the document says what they were.
    fn versions(self) -> Vec<Version> {
        let mut texts = self.texts;
        texts.retain(|path, _| !is_of_limits(path));
        let mut versions = vec![Version {
            begin: self.begin,
            texts,
        }];
        for Earlier { begin, texts } in self.earlier {
            let mut all = versions[versions.len() - 1].texts.clone();
            for (path, splice) in texts {
                match splice {
                    None => drop(all.remove(&path)),
                    Some(splice) => match splice.of(all.get(&path).map_or("", String::as_str)) {
                        Some(text) => drop(all.insert(path, text)),
                        // The file is damaged.
                        None => return versions,
                    },
                }
            }
            versions.push(Version { begin, texts: all });
        }
        versions
    }
}

/// Returns whether this is the file of limits for a time. They end by themselves.
fn is_of_limits(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') && name.ends_with(".limits")
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

fn parsed(file: File) -> io::Result<Document> {
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
            Ok(document) => Ok((document.begin.since, Texts::of_copy(document.texts))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NoCopy::None(path())),
            Err(source) => Err(NoCopy::Unusable { path: path(), source }),
        }
    }

    fn read(&self) -> io::Result<Document> {
        parsed(Folder::of(&self.path)?.open_trusted(self.name())?)
    }

    /// Keeps these texts, unless they are those of the copy. `who` brought them, because of `why`.
    pub(crate) fn keep(&self, texts: &Texts, who: &str, why: &str) -> io::Result<()> {
        let _turn = self.turn();
        let texts = texts.read();
        match self.read() {
            Ok(document) if document.texts == texts => Ok(()),
            Ok(mut document) => {
                document.follow(texts, who, why);
                self.write(&document)
            }
            Err(_) => self.write(&Document {
                schema: SCHEMA.to_owned(),
                begin: Begin::now(who, why),
                texts,
                earlier: Vec::new(),
            }),
        }
    }

    /// Keeps other texts of files, each with what it had before, if the copy has that.
    pub(crate) fn renew(
        &self,
        files: &[(&Path, Option<&str>, &str)],
        who: &str,
        why: &str,
    ) -> io::Result<()> {
        let _turn = self.turn();
        let Ok(mut document) = self.read() else {
            return Ok(());
        };
        let is_known = |(path, before, _): &(&Path, Option<&str>, &str)| {
            document.texts.get(*path).map(String::as_str) == *before
        };
        if !files.iter().all(is_known) {
            return Ok(());
        }
        let mut texts = document.texts.clone();
        for (path, _, now) in files {
            texts.insert((*path).to_owned(), (*now).to_owned());
        }
        document.follow(texts, who, why);
        self.write(&document)
    }

    /// Reads the versions, the last one first, for an operator, who is another user than the run perhaps.
    pub(crate) fn versions(path: &Path) -> io::Result<Vec<Version>> {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let folder = Folder::of(path)?;
        folder.check_exchange()?;
        let file = folder.open_file(name)?;
        let found = file.metadata()?;
        folder.check_found(name, &found)?;
        if found.mode() & 0o022 != 0 {
            let message = "others than its user may write to it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(parsed(file)?.versions())
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

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn document(texts: BTreeMap<PathBuf, String>) -> Document {
        Document {
            schema: SCHEMA.to_owned(),
            begin: Begin::now("root", "first"),
            texts,
            earlier: Vec::new(),
        }
    }

    /// A copy of a program before there were versions.
    #[test]
    fn an_old_copy_has_one_version() {
        let text = "{\"schema\": \"fairgate.last-good/1\", \"since\": \"2026-01-02T03:04:05Z\", \
                    \"texts\": {\"a\": \"b\"}}";
        let document: Document = serde_json::from_str(text).unwrap();
        let versions = document.versions();
        assert_eq!(versions.len(), 1);
        assert_eq!(versions[0].begin.since, "2026-01-02T03:04:05Z");
    }

    #[test]
    fn versions_are_bounded_in_number_and_bytes() {
        let path = PathBuf::from("a");
        let mut all = document([(path.clone(), String::new())].into());
        for number in 0..80 {
            all.follow([(path.clone(), number.to_string())].into(), "root", "more");
        }
        let versions = all.clone().versions();
        assert_eq!(versions.len(), MOST_VERSIONS + 1);
        assert_eq!(versions[49].texts[&path], "30");
        for byte in [b'a', b'b', b'c', b'd'] {
            let large = String::from_utf8(vec![byte; MOST_KEPT / 2]).unwrap();
            all.follow([(path.clone(), large)].into(), "root", "large");
        }
        assert_eq!(all.versions().len(), 3);
    }

    /// Limits for a time are in the copy, and are no version.
    #[test]
    fn limits_are_no_version() {
        let [list, limits] = ["list.csv", ".list.csv.limits"].map(PathBuf::from);
        let mut all = document([(list.clone(), "1".to_owned())].into());
        let with = |list_text: &str, limits_text: &str| {
            [
                (list.clone(), list_text.to_owned()),
                (limits.clone(), limits_text.to_owned()),
            ]
            .into()
        };
        all.follow(with("1", "x"), "ann", "for an hour");
        assert_eq!((all.earlier.len(), all.begin.who.as_str()), (0, "root"));
        all.follow(with("2", "y"), "ann", "faster");
        let versions = all.versions();
        let texts: Vec<_> = versions.iter().map(|one| one.texts.clone()).collect();
        let of = |text: &str| BTreeMap::from([(list.clone(), text.to_owned())]);
        assert_eq!(texts, [of("2"), of("1")]);
        assert_eq!(
            (versions[0].begin.who.as_str(), versions[1].begin.who.as_str()),
            ("ann", "root")
        );
    }

    proptest! {
        /// Whatever follows, each version has the texts that it had, also after it was written and read.
        #[test]
        fn each_version_is_what_it_was(
            all in vec(btree_map(select(vec!["a", "b", "c"]), "[xyé\n]{0,5}", 0..3), 1..8),
        ) {
            let texts = |map: &BTreeMap<&str, String>| -> BTreeMap<PathBuf, String> {
                map.iter().map(|(path, text)| (PathBuf::from(path), text.clone())).collect()
            };
            let mut document = document(texts(&all[0]));
            let mut expected = vec![texts(&all[0])];
            for next in &all[1..] {
                let next = texts(next);
                document.follow(next.clone(), "ann", "so");
                if next != expected[0] {
                    expected.insert(0, next);
                }
            }
            let text = serde_json::to_string(&document).unwrap();
            let read: Document = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &document);
            let found: Vec<_> = read.versions().into_iter().map(|one| one.texts).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
