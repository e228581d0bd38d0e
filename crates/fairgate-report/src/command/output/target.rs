//! Files that results are written to.
//!
//! A [`Target`] is opened before the work begins. So a file that cannot be written is reported at once and
//! not after an hour. The result has no name while it is written, so that a signal does not leave an
//! incomplete file behind. When it is safe on disk, it replaces the old file in one step. A replaced file
//! keeps its mode, owner and other attributes, and symbolic links are followed. Where replacement is not
//! possible, the result is written in place: a device, a pipe, a file with several names, a file in a folder
//! without write permission. What another user may have put at the name as a trap is refused
//! ([`fairgate_config::folder`]).
//!
//! [`replace`] is for what belongs to a folder of the program's own, and [`fairgate_config::folder::create`]
//! for what is read while it grows. Nothing is written by other ways.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use fairgate_config::folder::{Folder, folder_of};
use miette::Diagnostic;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::linkat;
use thiserror::Error;
use xattr::FileExt;

use crate::command::failure::Failure;

#[derive(Debug, Error, Diagnostic)]
enum TargetError {
    #[error("can't write {path}")]
    #[diagnostic(help("nothing was changed; make room or choose another place"))]
    Refused { path: String, source: io::Error },
    #[error("can't write {path}: the command reads {input}, and that is the same file")]
    #[diagnostic(help("name another file; what it holds now would be lost"))]
    Input { path: String, input: String },
    #[error("can't write {path}: {other} is the same file, and is written too")]
    #[diagnostic(help("name each output once"))]
    Twice { path: String, other: String },
}

/// A result that was computed and printed, but cannot be written to a file.
#[derive(Debug, Error, Diagnostic)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Unwritten {
    #[error("can't write {path}")]
    #[diagnostic(help("nothing was changed; make room or choose another place"))]
    Nothing { path: String, source: io::Error },
    #[error("can't write all of {path}")]
    #[diagnostic(help("it is written in place, and what it holds now is not complete"))]
    Part { path: String, source: io::Error },
}

/// What identifies a file under any name: device and inode number.
type Identity = (u64, u64);

/// All outputs of a command. They are checked against its inputs and against each other.
#[derive(Debug)]
pub struct Targets {
    inputs: Vec<(PathBuf, Identity)>,
    /// The name as given, the identity if the file exists, and the final path.
    outputs: Vec<(PathBuf, Option<Identity>, PathBuf)>,
}

impl Targets {
    /// Creates the outputs of a command that reads these files. Missing inputs are ignored here; the code
    /// that reads them reports them.
    pub fn beside<'p>(inputs: impl IntoIterator<Item = &'p Path>) -> Targets {
        let found = |path: &'p Path| Some((path.to_owned(), identity(&fs::metadata(path).ok()?)?));
        let stdout = standard_output().map(|own| ("standard output".into(), Some(own), PathBuf::new()));
        Targets {
            inputs: inputs.into_iter().filter_map(found).collect(),
            outputs: stdout.into_iter().collect(),
        }
    }

    /// Checks whether a result can be written to `path`, and changes nothing there.
    pub fn open(&mut self, path: &Path) -> Result<Target, Failure> {
        self.keep_apart(path)?;
        Target::open(path).map_err(|source| {
            let path = path.display().to_string();
            Failure::environment(TargetError::Refused { path, source })
        })
    }

    /// Does the same for a file in a folder of results. The folder is created with its first file.
    pub fn open_in(&mut self, folder: &Path, name: &str) -> Result<Target, Failure> {
        let path = folder.join(name);
        if folder.exists() {
            return self.open(&path);
        }
        self.keep_apart(&path)?;
        let is_there = |folder: &&Path| !folder.as_os_str().is_empty() && folder.symlink_metadata().is_ok();
        let outer = folder.ancestors().find(is_there).unwrap_or(Path::new("."));
        match Folder::open(outer).and_then(|outer| draft_in(&outer)) {
            Ok(draft) => Ok(Target {
                present: None,
                place: Some(Destination {
                    folder: None,
                    path: path.clone(),
                }),
                path,
                draft,
            }),
            Err(source) => {
                let path = path.display().to_string();
                Err(Failure::environment(TargetError::Refused { path, source }))
            }
        }
    }

    fn keep_apart(&mut self, path: &Path) -> Result<(), TargetError> {
        let name = || path.display().to_string();
        let own = fs::metadata(path).ok().as_ref().and_then(identity);
        if let Some((input, _)) = self.inputs.iter().find(|(_, input)| Some(*input) == own) {
            let input = input.display().to_string();
            return Err(TargetError::Input { path: name(), input });
        }
        let end = Folder::end_of(path).map(|(folder, name)| folder.path().join(name));
        let place = end.unwrap_or_else(|_| path.to_owned());
        let is_same = |(_, other, at): &&(PathBuf, Option<Identity>, PathBuf)| match own {
            Some(_) => *other == own,
            None => *at == place,
        };
        if let Some((other, ..)) = self.outputs.iter().find(is_same) {
            let other = other.display().to_string();
            return Err(TargetError::Twice { path: name(), other });
        }
        self.outputs.push((path.to_owned(), own, place));
        Ok(())
    }
}

/// Returns the identity of the file that standard output is redirected to, if it is one.
fn standard_output() -> Option<Identity> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned().ok()?);
    let metadata = stdout.metadata().ok()?;
    metadata.is_file().then(|| identity(&metadata))?
}

/// Returns the identity of a file whose content can be overwritten. A terminal or /dev/null may be input and
/// output at the same time.
fn identity(metadata: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::FileTypeExt;
    let is_stream = metadata.file_type().is_char_device();
    (!is_stream).then(|| (metadata.dev(), metadata.ino()))
}

/// A file for a result, which was found to be writable.
#[derive(Debug)]
pub struct Target {
    /// The path as the user gave it.
    path: PathBuf,
    /// The existing file, open for writing.
    present: Option<File>,
    /// Where the result gets its name. If none, the result is written into the existing file.
    place: Option<Destination>,
    /// The file that receives the result. It has no name.
    draft: File,
}

/// Where a result gets its name.
#[derive(Debug)]
struct Destination {
    /// Kept open, so that nobody exchanges it meanwhile. None if it does not exist yet.
    folder: Option<Folder>,
    path: PathBuf,
}

impl Destination {
    fn new(folder: Folder, name: &OsStr) -> Destination {
        let path = folder.path().join(name);
        Destination {
            folder: Some(folder),
            path,
        }
    }

    /// Gives the draft this name. `adapt` changes it before. Returns `false` if `adapt` fails.
    fn name(&self, draft: &File, adapt: impl FnOnce(&File) -> io::Result<()>) -> io::Result<bool> {
        let made;
        let folder = match &self.folder {
            Some(folder) => folder,
            None => {
                made = Folder::create(folder_of(&self.path))?;
                &made
            }
        };
        let place = folder.fixed_path();
        let (file, name) = named(draft, &place)?;
        if adapt(&file).is_err() {
            return Ok(false);
        }
        file.sync_all()?;
        name.persist(place.join(self.path.file_name().unwrap_or_default()))?;
        Ok(true)
    }
}

impl Target {
    fn open(path: &Path) -> io::Result<Target> {
        let target = |present, place, draft| Target {
            path: path.to_owned(),
            present,
            place,
            draft,
        };
        let (folder, name) = Folder::end_of(path)?;
        // It is not truncated. This only asks the kernel whether writing is allowed.
        let present = folder.open_present(&name)?;
        let is_place = match &present {
            Some(present) => present.metadata()?.is_file(),
            None => true,
        };
        match is_place.then(|| draft_in(&folder)) {
            Some(Ok(draft)) => Ok(target(present, Some(Destination::new(folder, &name)), draft)),
            Some(Err(error)) if present.is_none() => Err(error),
            _ => Ok(target(present, None, tempfile::tempfile()?)),
        }
    }

    /// Returns the file that receives the result, for what is written before [`write`](Target::write).
    pub fn draft(&self) -> io::Result<File> {
        self.draft.try_clone()
    }

    /// Writes the result. `write` fills a file without a name. This file then gets its name, or is copied
    /// into the existing file.
    pub fn write(mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Failure> {
        let path = self.path.display().to_string();
        let nothing = |source| {
            let path = path.clone();
            Failure::environment(Unwritten::Nothing { path, source })
        };
        write(&mut self.draft).map_err(nothing)?;
        if let Some(place) = &self.place
            && self.replace(place).map_err(nothing)?
        {
            return Ok(());
        }
        let part = |source| {
            let path = path.clone();
            Failure::environment(Unwritten::Part { path, source })
        };
        self.overwrite().map_err(part)
    }

    /// Replaces the existing file with the draft. Returns `false` and does nothing if that would lose other
    /// names or attributes.
    fn replace(&self, place: &Destination) -> io::Result<bool> {
        if let Some(present) = &self.present
            && present.metadata()?.nlink() > 1
        {
            return Ok(false);
        }
        self.draft.sync_all()?;
        let _whole = Uninterrupted::begin()?;
        place.name(&self.draft, |file| match &self.present {
            Some(present) => keep_attributes(present, file),
            None => Ok(()),
        })
    }

    /// Copies the draft into the existing file.
    fn overwrite(&mut self) -> io::Result<()> {
        let Some(present) = &mut self.present else {
            return Err(io::ErrorKind::NotFound.into());
        };
        self.draft.rewind()?;
        let length = io::copy(&mut self.draft, present)?;
        if present.metadata()?.is_file() {
            present.set_len(length)?;
            present.sync_all()?;
        }
        Ok(())
    }
}

/// Creates a file without a name. If the file system can name it later, its permissions follow the user's
/// umask like those of any new file.
fn draft_in(folder: &Folder) -> io::Result<File> {
    let folder = folder.fixed_path();
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o666);
    match options.custom_flags(OFlag::O_TMPFILE.bits()).open(&folder) {
        Ok(file) => Ok(file),
        // Some file systems do not support O_TMPFILE. There the file is deleted at once and copied later.
        Err(_) => tempfile::tempfile_in(folder),
    }
}

/// Gives the draft a temporary name that is unique. The name is removed when the value is dropped.
fn named(draft: &File, folder: &Path) -> io::Result<(File, tempfile::TempPath)> {
    let mut builder = tempfile::Builder::new();
    let builder = builder
        .prefix(".fairgate-")
        .permissions(Permissions::from_mode(0o666));
    let own = format!("/proc/self/fd/{}", draft.as_raw_fd());
    let linked = builder.make_in(folder, |name| {
        let follow = AtFlags::AT_SYMLINK_FOLLOW;
        Ok(linkat(AT_FDCWD, own.as_str(), AT_FDCWD, name, follow)?)
    });
    if let Ok(linked) = linked {
        return Ok((draft.try_clone()?, linked.into_temp_path()));
    }
    let mut copy = builder.tempfile_in(folder)?;
    let mut draft = draft.try_clone()?;
    draft.rewind()?;
    io::copy(&mut draft, copy.as_file_mut())?;
    Ok(copy.into_parts())
}

/// Copies owner, mode and extended attributes (which include access lists) to `file`.
pub fn keep_attributes(of: &File, file: &File) -> io::Result<()> {
    let (kept, own) = (of.metadata()?, file.metadata()?);
    if (kept.uid(), kept.gid()) != (own.uid(), own.gid()) {
        fchown(file, Some(kept.uid()), Some(kept.gid()))?;
    }
    for name in file.list_xattr().into_iter().flatten() {
        if of.get_xattr(&name)?.is_none() {
            file.remove_xattr(&name)?;
        }
    }
    for name in of.list_xattr().into_iter().flatten() {
        let value = of.get_xattr(&name)?;
        if let Some(value) =
            value.filter(|value| file.get_xattr(&name).ok().flatten().as_ref() != Some(value))
        {
            file.set_xattr(&name, &value)?;
        }
    }
    // The mode is set last, because a change of owner clears bits of it.
    file.set_permissions(Permissions::from_mode(kept.mode() & 0o7777))
}

/// Removes what [`create`](fairgate_config::folder::create) has made at `path`, if the name still leads
/// there.
pub fn remove(path: &Path, file: &File) {
    let remove = || -> io::Result<()> {
        let (folder, name) = Folder::end_of(path)?;
        let [there, own] = [folder.look(&name)?.metadata()?, file.metadata()?];
        match (there.dev(), there.ino()) == (own.dev(), own.ino()) {
            true => folder.remove(&name),
            false => Ok(()),
        }
    };
    // The failure that led here is the one to report.
    let _ = remove();
}

/// Gives `path` what `write` puts into a file without a name, in one step. Whatever had this name before is
/// replaced, and a link is not followed.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = Folder::of(path)?;
    let mut draft = draft_in(&folder)?;
    write(&mut draft)?;
    draft.sync_all()?;
    let place = Destination::new(folder, path.file_name().unwrap_or_default());
    place.name(&draft, |_| Ok(())).map(drop)
}

/// A scope in which signals that end the program are blocked. The program must have no other thread that
/// could receive them.
struct Uninterrupted(SigSet);

impl Uninterrupted {
    fn begin() -> io::Result<Uninterrupted> {
        let ends: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
            .into_iter()
            .collect();
        Ok(Uninterrupted(ends.thread_swap_mask(SigmaskHow::SIG_BLOCK)?))
    }
}

impl Drop for Uninterrupted {
    fn drop(&mut self) {
        // Fails only for an invalid mask, and this one came from the kernel.
        let _ = self.0.thread_set_mask();
    }
}

#[cfg(test)]
mod tests;
