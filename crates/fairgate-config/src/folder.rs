//! A folder in which files are made, and what other users may do there.
//!
//! All files that the program and the Python package write are opened here: [`open_present`] and [`create`]
//! for results, [`lock_file`] for locks, and [`Folder`] for what is made by descriptor.
//!
//! Who may write to a folder may put a link, a pipe or a file of his own at a name that is used next. In a
//! folder with the sticky bit he can't replace the files of others. The rule for files that are there already
//! is that of the kernel's `fs.protected_symlinks`, `protected_fifos` and `protected_regular`
//! (proc_sys_fs(5)), which not every machine has turned on, and which a program that resolves links itself
//! passes by. As there, the owner of a folder is trusted in it: he can exchange whatever is there anyway.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use thiserror::Error;

/// A folder that is kept open. What is done in it is done in this folder, whatever gets its path later.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    opened: File,
    owner: u32,
    group: u32,
    mode: u32,
}

/// Why nothing is written in a folder.
#[derive(Clone, Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum Unsafe {
    /// Others could replace what is made there.
    #[error(
        "other users may replace files in {folder}: they may write to it, and it has no sticky bit",
        folder = .folder.display()
    )]
    #[diagnostic(help(
        "choose a folder of your own, or take their permission: chmod go-w {}", .folder.display()
    ))]
    Exchangeable {
        /// The folder.
        folder: PathBuf,
    },
    /// Somebody else has put something at this name.
    #[error(
        "{path} belongs to user {user}, and other users may write to its folder: it may be a trap",
        path = .path.display()
    )]
    #[diagnostic(help("remove it, or choose a folder of your own"))]
    Planted {
        /// What was found.
        path: PathBuf,
        /// Its owner.
        user: u32,
    },
    /// The file has other names, and somebody else may have put this one here.
    #[error(
        "{path} is one of {names} names of a file, and other users may write to its folder: it may be a trap",
        path = .path.display()
    )]
    #[diagnostic(help("remove it, or choose a folder of your own"))]
    Shared {
        /// What was found.
        path: PathBuf,
        /// How many names (hard links) the file has.
        names: u64,
    },
    /// A link is not followed where a file is expected.
    #[error("{path} is a symbolic link, and it is not followed here", path = .path.display())]
    #[diagnostic(help("remove it, or choose another folder"))]
    Link {
        /// What was found.
        path: PathBuf,
    },
}

impl From<Unsafe> for io::Error {
    fn from(error: Unsafe) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, error)
    }
}

impl Folder {
    /// Opens the folder at `path`. Links to it are followed.
    ///
    /// # Errors
    /// Fails if there is no folder.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let mut options = OpenOptions::new();
        let only_place = OFlag::O_PATH | OFlag::O_DIRECTORY;
        let opened = options.read(true).custom_flags(only_place.bits()).open(path)?;
        let found = opened.metadata()?;
        Ok(Folder {
            path: path.to_path_buf(),
            opened,
            owner: found.uid(),
            group: found.gid(),
            mode: found.mode(),
        })
    }

    /// Opens the folder of the file at `path`.
    ///
    /// # Errors
    /// Fails if there is no folder.
    pub fn of(path: &Path) -> io::Result<Folder> {
        Folder::open(folder_of(path))
    }

    /// Checks that nobody else can replace a file that is made here.
    ///
    /// # Errors
    /// Fails if others may write and the sticky bit is missing.
    pub fn check_exchange(&self) -> Result<(), Unsafe> {
        match others_may_write(self.mode) && self.mode & STICKY == 0 {
            true => Err(Unsafe::Exchangeable {
                folder: self.path.clone(),
            }),
            false => Ok(()),
        }
    }

    /// Checks that what was found at `name` is not what another user may have put there.
    ///
    /// # Errors
    /// Fails if others may write here, and it belongs neither to this user nor to the folder's owner, or is a
    /// file with other names.
    pub fn check_found(&self, name: &OsStr, found: &Metadata) -> Result<(), Unsafe> {
        if !others_may_write(self.mode) {
            return Ok(());
        }
        let path = || self.path.join(name);
        if ![self.owner, geteuid().as_raw()].contains(&found.uid()) {
            let user = found.uid();
            return Err(Unsafe::Planted { path: path(), user });
        }
        // Whoever can see a file can give it another name, unless the kernel protects it
        // (`fs.protected_hardlinks`).
        if found.is_file() && found.nlink() > 1 {
            let names = found.nlink();
            return Err(Unsafe::Shared { path: path(), names });
        }
        Ok(())
    }

    /// Returns a path that leads to this folder, whatever has its name meanwhile.
    pub fn fixed_path(&self) -> PathBuf {
        let fixed = PathBuf::from(format!("/proc/self/fd/{}", self.opened.as_raw_fd()));
        // Without procfs there is only the name.
        match fixed.exists() {
            true => fixed,
            false => self.path.clone(),
        }
    }

    /// Opens what is at `name` for nothing but asking about it. A link is not followed.
    ///
    /// # Errors
    /// Fails if there is nothing.
    pub fn look(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(openat(&self.opened, name, flags, Mode::empty())?.into())
    }

    /// Opens a file of this name for reading and writing, which only the folder's owner may use besides root.
    /// It is created if it is missing. A link is not followed, and a pipe does not block.
    ///
    /// # Errors
    /// Fails if the system refuses, or if another user may have put the file there.
    pub fn create_own(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let file = File::from(openat(&self.opened, name, flags, mode)?);
        let found = file.metadata()?;
        self.check_found(name, &found)?;
        if found.is_file() && found.nlink() == 1 && found.uid() != self.owner {
            fchown(&file, Some(self.owner), Some(self.group))?;
        }
        Ok(file)
    }

    /// Opens the file of this name for reading. A link is not followed, and a pipe does not block.
    ///
    /// # Errors
    /// Fails if there is no file, or if the system refuses.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        Ok(openat(&self.opened, name, flags, Mode::empty())?.into())
    }

    /// Gives a file another name in this folder, in place of the file that had it.
    ///
    /// # Errors
    /// Fails if there is no file, or if the system refuses.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.opened, from, &self.opened, to)?)
    }

    /// Removes the name of a file.
    ///
    /// # Errors
    /// Fails if there is no file, or if the system refuses.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.opened, name, UnlinkatFlags::NoRemoveDir)?)
    }
}

/// Returns the path of a file's folder.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Opens a file of this name that other processes lock, too. It is created if it is missing. Its content is
/// not touched, and a link is not followed.
///
/// # Errors
/// Fails if the folder does not exist, or if another user may have put the file there.
pub fn lock_file(path: &Path) -> io::Result<File> {
    let folder = Folder::of(path)?;
    let mut options = OpenOptions::new();
    let alone = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    options.read(true).write(true).create(true).truncate(false);
    let opened = options.mode(0o666).custom_flags(alone.bits()).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::ELOOP as i32 => Unsafe::Link { path: path.into() }.into(),
        _ => error,
    })?;
    folder.check_found(path.file_name().unwrap_or_default(), &file.metadata()?)?;
    Ok(file)
}

/// Opens what is at `path` for writing, if there is anything, and changes nothing. Links are followed as by
/// [`end_of_links`].
///
/// # Errors
/// Fails if the system refuses, if another user may have put something there, and if it is a pipe that nobody
/// reads.
pub fn open_present(path: &Path) -> io::Result<Option<File>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let place = end_of_links(path)?;
    let mut options = OpenOptions::new();
    // A pipe that nobody reads would block for ever.
    let options = options.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
    let present = match options.open(path) {
        Ok(present) => present,
        // The link leads to a file that is not there yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::ENXIO as i32) => {
            let message = "nobody reads this pipe: start its reader first";
            return Err(io::Error::new(error.kind(), message));
        }
        Err(error) => return Err(error),
    };
    // A link of procfs to a pipe leads to no path. Only this user has such links.
    if let Ok(folder) = Folder::of(&place)
        && let Ok(there) = fs::symlink_metadata(&place)
    {
        let found = present.metadata()?;
        folder.check_found(place.file_name().unwrap_or_default(), &found)?;
        if (there.dev(), there.ino()) != (found.dev(), found.ino()) {
            return Err(io::Error::other("it was exchanged while it was opened"));
        }
    }
    let flags = OFlag::from_bits_retain(fcntl(&present, FcntlArg::F_GETFL)?) - OFlag::O_NONBLOCK;
    fcntl(&present, FcntlArg::F_SETFL(flags))?;
    Ok(Some(present))
}

/// Creates a file that others may read while it grows, or empties the one that is there.
///
/// # Errors
/// Fails as [`open_present`] does.
pub fn create(path: &Path) -> io::Result<File> {
    if let Some(present) = open_present(path)? {
        if present.metadata()?.is_file() {
            present.set_len(0)?;
        }
        return Ok(present);
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).open(end_of_links(path)?)
}

const STICKY: u32 = 0o1000;

/// Returns whether users other than the owner may write to a folder. The members of a group trust each other,
/// but root is not one of them.
fn others_may_write(mode: u32) -> bool {
    let others = match geteuid().is_root() {
        true => 0o022,
        false => 0o002,
    };
    mode & others != 0
}

/// Follows the links of a path, as the kernel does, to where the file is or would be created. The last name
/// need not exist.
///
/// # Errors
/// Fails for a link that another user may have put there, and if there are more than 40 links.
pub fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
        let folder = fs::canonicalize(folder_of(&path))?;
        path = folder.join(&name);
        match fs::read_link(&path) {
            Ok(next) => {
                Folder::open(&folder)?.check_found(&name, &fs::symlink_metadata(&path)?)?;
                path = folder.join(next);
            }
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The maximum number of symbolic links that are followed, as in the kernel.
const MOST_LINKS: usize = 40;

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_for_locks_keeps_its_content_and_is_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        drop(lock_file(&victim).unwrap());
        let link = folder.path().join("link");
        symlink(&victim, &link).unwrap();
        lock_file(&link).unwrap_err();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(
            lock_file(&folder.path().join("new"))
                .unwrap()
                .metadata()
                .unwrap()
                .is_file()
        );
    }

    #[test]
    fn links_are_followed_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        symlink("second", at("first")).unwrap();
        symlink(at("third"), at("second")).unwrap();
        assert_eq!(end_of_links(&at("first")).unwrap(), at("third"));
        symlink("loop", at("loop")).unwrap();
        end_of_links(&at("loop")).unwrap_err();
    }

    /// The other user is 65534; only root can give files away.
    #[test]
    fn links_of_others_are_followed_only_where_others_may_not_write() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("victim", &link).unwrap();
        if std::os::unix::fs::lchown(&link, Some(65_534), Some(65_534)).is_err() {
            let text = b"SKIPPED: lchown needs root\n";
            let _ = io::Write::write_all(&mut io::stderr(), text);
            return;
        }
        for (mode, is_fine) in [(0o755, true), (0o1777, false), (0o777, false), (0o775, false)] {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            let found = end_of_links(&link).map_err(|error| error.to_string());
            assert_eq!(found.is_ok(), is_fine, "{mode:o}: {found:?}");
        }
    }

    /// Somebody who can't write a file gives it a name where its owner writes results.
    #[test]
    fn a_file_with_other_names_is_refused_where_others_may_write() {
        let folder = tempfile::tempdir().unwrap();
        let [precious, trap] = ["precious", "trap"].map(|name| folder.path().join(name));
        fs::write(&precious, "precious").unwrap();
        fs::hard_link(&precious, &trap).unwrap();
        for (mode, is_fine) in [(0o755, true), (0o1777, false), (0o777, false)] {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            let results = [open_present(&trap).map(drop), lock_file(&trap).map(drop)];
            for result in results {
                let result = result.map_err(|error| error.to_string());
                assert_eq!(result.is_ok(), is_fine, "{mode:o}: {result:?}");
                if let Err(what) = result {
                    assert!(what.contains("trap is one of 2 names of a file"), "{what}");
                }
            }
        }
        create(&trap).unwrap_err();
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
    }

    #[test]
    fn a_fixed_path_leads_to_the_folder_that_was_opened() {
        let above = tempfile::tempdir().unwrap();
        let [first, moved] = ["first", "moved"].map(|name| above.path().join(name));
        fs::create_dir(&first).unwrap();
        let folder = Folder::open(&first).unwrap();
        fs::rename(&first, &moved).unwrap();
        fs::create_dir(&first).unwrap();
        fs::write(folder.fixed_path().join("result"), "1").unwrap();
        assert!(moved.join("result").exists());
        assert!(!first.join("result").exists());
    }
}
