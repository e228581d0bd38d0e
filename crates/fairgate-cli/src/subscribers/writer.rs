//! Writes what clients change into the files of a list.
//!
//! The new file is made beside the old one and takes its name: whoever reads meanwhile reads one of both as a
//! whole, also after a crash. It belongs to whom the old one belonged, with the same permissions. If that
//! can't be, nothing is written: LibreQoS or an editor might not be able to use it any more.

use std::ffi::{OsStr, OsString};
use std::fs::{Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use fairgate_config::folder::{Folder, folder_of};
use fairgate_run::subscribers::{ListFiles, Put, Source, Subscribers};
use fairgate_run_api::Mistake;
use nix::unistd::geteuid;

use super::files;
use crate::failure::Failure;
use crate::input::Texts;
use crate::last_good::LastGood;
use crate::log::{Entry, Log};

/// Writes files of lists.
pub(crate) struct ListWriter {
    last_good: Option<LastGood>,
    log: Log,
}

/// A new file that has not its name yet. It is removed unless it gets it.
struct Draft {
    folder: Folder,
    /// The name of the file that is replaced.
    name: OsString,
    draft: OsString,
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

    fn prepare(&self, list: &Subscribers, text: usize, content: &str) -> Result<Put, Mistake> {
        let source = &list.settings().source;
        let known = list.texts().get(text);
        let path = path(list, text)?;
        let unwritten = |error: io::Error| unwritten(&path, &error);
        let (folder, name) = Folder::end_of(&path).map_err(unwritten)?;
        let found = known
            .map(|_| open(&folder, &name))
            .transpose()
            .map_err(unwritten)?;
        // A new file is as the list beside it.
        let like = match &found {
            Some(found) => found.clone(),
            None => files::paths(source)[0].metadata().map_err(unwritten)?,
        };
        // After the file was looked at: what changes it from now on is seen below.
        are_as_read(source, list)?;
        let draft = Draft::write(folder, name, &like, content).map_err(unwritten)?;
        let (before, now) = (known.map(|text| text.content.clone()), content.to_owned());
        let (last_good, log) = (self.last_good.clone(), self.log.clone());
        Ok(Box::new(move || {
            draft.put(&path, found.as_ref())?;
            if let Some(error) = last_good.and_then(|copy| copy.renew(&path, before.as_deref(), &now).err()) {
                log.write(Entry::warning(format_args!(
                    "the copy of the last good configuration can't be written: {error}; it has the list as \
                     it was before this change"
                )));
            }
            Ok(())
        }))
    }
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

fn open(folder: &Folder, name: &OsStr) -> io::Result<Metadata> {
    folder.open_file(name)?.metadata()
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

impl Draft {
    /// Writes a new file beside the one of this name, with the owner and the permissions of `found`.
    fn write(folder: Folder, name: OsString, found: &Metadata, content: &str) -> io::Result<Draft> {
        if found.is_file() && found.nlink() > 1 {
            let message = "it is no file with only this name, and another one would take its place";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut draft = OsString::from(".");
        draft.push(&name);
        draft.push(".fairgate");
        // What is left of a run that was killed meanwhile.
        match folder.remove(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = folder.create_new(&draft)?;
        let draft = Draft { folder, name, draft };
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (found.uid(), found.gid()) {
            fchown(&file, Some(found.uid()), Some(found.gid())).map_err(|_| not_given(found))?;
        }
        // Of a folder, nobody executes what is in it.
        file.set_permissions(Permissions::from_mode(found.mode() & 0o666))?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        Ok(draft)
    }

    /// Gives the new file the name of the old one, if this is still as it was `found`, or still missing.
    fn put(self, path: &Path, found: Option<&Metadata>) -> Result<(), Mistake> {
        let unwritten = |error: io::Error| unwritten(path, &error);
        let now = match self.folder.look(&self.name).and_then(|file| file.metadata()) {
            Ok(now) => Some(now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unwritten(error)),
        };
        if now.as_ref().map(state) != found.map(state) {
            return Err(has_changed(&path.display().to_string()));
        }
        self.folder.rename(&self.draft, &self.name).map_err(unwritten)?;
        // The new file is there, whatever becomes of this: a crash may bring back the old one as a whole.
        let _ = self.folder.sync();
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is gone if it got its name.
        let _ = self.folder.remove(&self.draft);
    }
}

/// What tells one state of a file from another one.
fn state(found: &Metadata) -> (u64, u64, u64, [i64; 4]) {
    let times = [
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    ];
    (found.dev(), found.ino(), found.len(), times)
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

/// Says that a new file can't belong to whom the old one belongs.
fn not_given(found: &Metadata) -> io::Error {
    let message = format!(
        "it belongs to user {} and group {}, and user {} can't give them a new file: a run has given up the \
         privilege",
        found.uid(),
        found.gid(),
        geteuid()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, message)
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
