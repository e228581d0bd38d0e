//! A folder in which files are made, and what other users may do there.
//!
//! Who may write to a folder may put a link, a pipe or a file of his own at a name that is used next. In a
//! folder with the sticky bit he can't replace the files of others. The rule for files that are there already
//! is that of the kernel's `fs.protected_symlinks`, `protected_fifos` and `protected_regular`
//! (proc_sys_fs(5)), which not every machine has turned on, and which a program that resolves links itself
//! passes by.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use nix::fcntl::{OFlag, openat, renameat};
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
    /// Fails if others may write here, and it belongs neither to this user nor to the folder's owner.
    pub fn check_found(&self, name: &OsStr, found: &Metadata) -> Result<(), Unsafe> {
        let owners = [self.owner, geteuid().as_raw()];
        match others_may_write(self.mode) && !owners.contains(&found.uid()) {
            true => Err(Unsafe::Planted {
                path: self.path.join(name),
                user: found.uid(),
            }),
            false => Ok(()),
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
    let file = options.mode(0o666).custom_flags(alone.bits()).open(path)?;
    folder.check_found(path.file_name().unwrap_or_default(), &file.metadata()?)?;
    Ok(file)
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
}
