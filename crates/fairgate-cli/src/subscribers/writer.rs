//! Writes what clients change into the files of a list.
//!
//! The new file is made beside the old one and takes its name: whoever reads meanwhile reads one of both as a
//! whole, also after a crash. It belongs to whom the old one belonged, with the same permissions. If that
//! can't be, nothing is written: LibreQoS or an editor might not be able to use it any more.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fairgate_config::folder::{Folder, folder_of};
use fairgate_run::subscribers::{ListFiles, Put, Source, Subscribers};
use fairgate_run_api::Mistake;
use nix::unistd::geteuid;

use super::draft::{Draft, not_given};
use super::files;
use super::interrupted::Note;
use crate::failure::Failure;
use crate::input::Texts;
use crate::last_good::LastGood;
use crate::log::{Entry, Log};

/// Writes files of lists.
pub(crate) struct ListWriter {
    last_good: Option<LastGood>,
    log: Log,
}

/// A file that is replaced.
struct Replacement {
    /// As messages call it.
    path: PathBuf,
    draft: Draft,
    before: Option<String>,
    content: String,
}

impl ListWriter {
    /// Returns a writer that changes the text in the copy of the last good configuration, too.
    pub(crate) fn new(last_good: Option<LastGood>, log: Log) -> ListWriter {
        ListWriter { last_good, log }
    }
}

impl ListFiles for ListWriter {
    fn refusal(&self, list: &Subscribers, text: usize) -> Option<Mistake> {
        let paths = files::paths(&list.settings().source);
        // Limits are beside the list, and the files of a folder are in it.
        check(paths.get(text).or(paths.first())?).err()
    }

    fn prepare(
        &self,
        list: &Subscribers,
        changed: &[(usize, &str)],
        (who, what): (&str, &str),
    ) -> Result<Put, Mistake> {
        let source = &list.settings().source;
        let mut found = Vec::new();
        for (text, content) in changed {
            found.push((Found::look(list, *text)?, *content));
        }
        // After the files were looked at: what changes them from now on is seen below.
        are_as_read(source, list)?;
        let mut replaced = Vec::new();
        for (found, content) in found {
            replaced.push(found.replaced(content)?);
        }
        let folder = files::paths(source).into_iter().next().unwrap_or_default();
        let (last_good, log) = (self.last_good.clone(), self.log.clone());
        let (who, what) = (who.to_owned(), what.to_owned());
        Ok(Box::new(move || {
            put(&folder, &replaced)?;
            let files = replaced
                .iter()
                .map(|one| (one.path.as_path(), one.before.as_deref(), one.content.as_str()));
            let files: Vec<_> = files.collect();
            let renewed = last_good.map_or(Ok(()), |copy| copy.renew(&files, &who, &what));
            if let Err(error) = renewed {
                log.write(Entry::warning(format_args!(
                    "the copy of the last good configuration can't be written: {error}; it has the list as \
                     it was before this change"
                )));
            }
            Ok(())
        }))
    }
}

/// A file that is to be replaced.
struct Found {
    path: PathBuf,
    folder: Folder,
    name: OsString,
    /// What is there. None: nothing yet.
    found: Option<Metadata>,
    like: File,
    before: Option<String>,
}

impl Found {
    fn look(list: &Subscribers, text: usize) -> Result<Found, Mistake> {
        let known = list.texts().get(text);
        let path = path(list, text)?;
        let unwritten = |error: io::Error| unwritten(&path, &error);
        let (folder, name) = Folder::end_of(&path).map_err(unwritten)?;
        // A new file is as the list beside it.
        let like = match known {
            Some(_) => folder.open_file(&name),
            None => File::open(&files::paths(&list.settings().source)[0]),
        };
        let like = like.map_err(unwritten)?;
        let found = known.map(|_| like.metadata()).transpose().map_err(unwritten)?;
        Ok(Found {
            before: known.map(|text| text.content.clone()),
            path,
            folder,
            name,
            found,
            like,
        })
    }

    fn replaced(self, content: &str) -> Result<Replacement, Mistake> {
        let draft = Draft::write(self.folder, self.name, self.found, self.like, content);
        Ok(Replacement {
            draft: draft.map_err(|error| unwritten(&self.path, &error))?,
            path: self.path,
            before: self.before,
            content: content.to_owned(),
        })
    }
}

/// Gives the new files the names of the old ones: all of them or none. `folder` is that of a list of several
/// files.
fn put(folder: &Path, replaced: &[Replacement]) -> Result<(), Mistake> {
    for Replacement { path, draft, .. } in replaced {
        if !draft.is_due().map_err(|error| unwritten(path, &error))? {
            return Err(has_changed(&path.display().to_string()));
        }
    }
    let drafts = || replaced.iter().map(|one| &one.draft);
    let note = (replaced.len() > 1).then(|| Note::write(folder, drafts()));
    let _note = note.transpose().map_err(|error| unwritten(folder, &error))?;
    for (place, one) in replaced.iter().enumerate() {
        let Err(error) = one.draft.put() else { continue };
        let mut mistake = unwritten(&one.path, &error);
        for before in &replaced[..place] {
            if let Err(error) = before.draft.put_back(before.before.as_deref()) {
                let path = before.path.display();
                mistake.message +=
                    &format!("; {path} has the change all the same, and can't be put back: {error}");
            }
        }
        return Err(mistake);
    }
    Ok(())
}

/// Returns the file of a text of a list: one that is there, or that of the limits for a time.
fn path(list: &Subscribers, text: usize) -> Result<PathBuf, Mistake> {
    let (source, texts) = (&list.settings().source, Texts::default());
    let name = list
        .texts()
        .get(text)
        .map_or("the list", |text| text.name.as_str());
    match list.texts().get(text) {
        Some(_) => {
            let files = files::files(source, &texts).map_err(|failure| unread(name, &failure))?;
            files.get(text).cloned().ok_or_else(|| has_changed(name))
        }
        None => files::limits(source, &texts).ok_or_else(|| has_changed(name)),
    }
}

/// Refuses if a file of the list has changed since it was read.
fn are_as_read(source: &Source, list: &Subscribers) -> Result<(), Mistake> {
    let read = list.texts();
    let name = |place: usize| read.get(place).map_or_else(String::new, |text| text.name.clone());
    let now = files::texts(source, &Texts::default()).map_err(|failure| unread(&name(0), &failure))?;
    let differing = (0..now.len().max(read.len())).find(|place| now.get(*place) != read.get(*place));
    match differing {
        None => Ok(()),
        Some(place) => Err(has_changed(
            &now.get(place).map_or(name(place), |text| text.name.clone()),
        )),
    }
}

/// Checks that a file, or those in a folder, can be replaced, as far as permissions decide about it.
fn check(path: &Path) -> Result<(), Mistake> {
    let unwritten = |error: io::Error| unwritten(path, &error);
    if path.is_dir() {
        return Folder::open(path)
            .and_then(|folder| folder.check_writable())
            .map_err(unwritten);
    }
    let (folder, name) = Folder::end_of(path).map_err(unwritten)?;
    let found = folder
        .look(&name)
        .and_then(|file| file.metadata())
        .map_err(unwritten)?;
    folder.check_writable().map_err(unwritten)?;
    match found.uid() == geteuid().as_raw() {
        true => Ok(()),
        false => Err(unwritten(not_given(&found))),
    }
}

fn has_changed(name: &str) -> Mistake {
    Mistake {
        place: Some(name.to_owned()),
        message: "the file has changed since the run has read it, and nothing is written over that"
            .to_owned(),
        help:
            "ask again when the run has read it: after 0.2 s of quiet, or with `fairgate reload`; if it was \
               refused, the log says why"
                .to_owned(),
    }
}

fn unread(name: &str, failure: &Failure) -> Mistake {
    let why = match failure {
        Failure::Input(report) | Failure::Environment(report) => report.to_string(),
        Failure::ReaderGone => String::new(),
    };
    Mistake {
        place: Some(name.to_owned()),
        message: format!("the list can't be read any more: {why}"),
        help: "put its file back, and ask again".to_owned(),
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Mistake {
    let (user, folder) = (geteuid(), folder_of(path).display());
    let help = match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            "keep the list where the run may write; for a service that is /var/lib/fairgate, or a folder of \
             ReadWritePaths= in a drop-in"
                .to_owned()
        }
        io::ErrorKind::PermissionDenied => format!(
            "give the file and its folder {folder} to user {user}, whom the run has, or keep the list in a \
             folder of that user's; then start the run anew: it writes only into the folders with which it \
             has begun"
        ),
        _ => "correct that, and ask again".to_owned(),
    };
    Mistake {
        place: Some(path.display().to_string()),
        message: format!("the file can't be written, so that the change would not stay: {error}"),
        help,
    }
}
