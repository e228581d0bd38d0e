//! A folder in which files are made, and what other users may do there.
//!
//! All files that the program and the Python package write are opened here: [`create`] and [`Folder::end_of`]
//! for results, [`lock_file`] for locks, and [`Folder`] for what is made by descriptor.
//!
//! Who may write to a folder may put a link, a pipe or a file of his own at a name that is used next. In a
//! folder with the sticky bit he can't replace the files of others. The rule for what is there already is
//! that of the kernel's `fs.protected_symlinks`, `protected_fifos` and `protected_regular` (proc_sys_fs(5)),
//! which not every machine has turned on. It holds for all links of a path, also for those to folders. As
//! there, the owner of a folder is trusted in it: he can exchange whatever is there anyway. But a link of his
//! must lead to what is his, and a file with other names must be his: by neither does he reach what is
//! others'.
//!
//! A path is followed name by name, from one open folder to the next, so that nobody exchanges a folder that
//! was found to be safe.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Component, Path, PathBuf};

use miette::Diagnostic;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, FcntlArg, OFlag, fcntl, openat, readlinkat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, geteuid, unlinkat};
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
    /// A link of another user leads to what is not his.
    #[error(
        "{path} belongs to user {user} and leads to {end}, which does not: it may be a trap",
        path = .path.display(), end = .end.display()
    )]
    #[diagnostic(help("name {} itself", .end.display()))]
    Misleading {
        /// The link.
        path: PathBuf,
        /// Its owner.
        user: u32,
        /// Where the whole path ends.
        end: PathBuf,
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
    /// Opens the folder at `path`. Links are followed.
    ///
    /// # Errors
    /// Fails if there is no folder, and for a link that another user may have put there as a trap.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Walk::begin(path)?.into_folder(false)
    }

    /// Opens the folder at `path` as [`open`](Folder::open) does. It is made if it is missing, as those above
    /// it are.
    ///
    /// # Errors
    /// Fails as [`open`](Folder::open) does, and if the system refuses.
    pub fn create(path: &Path) -> io::Result<Folder> {
        Walk::begin(path)?.into_folder(true)
    }

    /// Opens the folder of the file at `path`.
    ///
    /// # Errors
    /// Fails as [`open`](Folder::open) does.
    pub fn of(path: &Path) -> io::Result<Folder> {
        Folder::open(folder_of(path))
    }

    /// Follows all links of `path` to where a file is, or would be created. Returns the folder and the name
    /// there. Only in procfs this is the name of a link, if it leads to what has no path.
    ///
    /// # Errors
    /// Fails if the folder does not exist, and for a link that another user may have put there as a trap.
    pub fn end_of(path: &Path) -> io::Result<(Folder, OsString)> {
        Walk::begin(path)?.into_file()
    }

    fn opened(opened: File, path: PathBuf) -> io::Result<Folder> {
        let found = opened.metadata()?;
        Ok(Folder {
            path,
            opened,
            owner: found.uid(),
            group: found.gid(),
            mode: found.mode(),
        })
    }

    /// Returns the path by which the folder was found, without links.
    pub fn path(&self) -> &Path {
        &self.path
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
    /// Fails if others may write here, and it belongs neither to this user nor to the folder's owner. Fails
    /// for a file with other names if others may write here, or if it is not the folder's owner's and he is
    /// another user.
    pub fn check_found(&self, name: &OsStr, found: &Metadata) -> Result<(), Unsafe> {
        let (path, user) = (|| self.path.join(name), found.uid());
        let may_others_write = others_may_write(self.mode);
        if may_others_write && user != self.owner && user != geteuid().as_raw() {
            return Err(Unsafe::Planted { path: path(), user });
        }
        // Whoever can see a file can give it another name, unless the kernel protects it
        // (`fs.protected_hardlinks`).
        let may_be_a_trap = may_others_write || (is_other(self.owner) && user != self.owner);
        if may_be_a_trap && found.is_file() && found.nlink() > 1 {
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

    /// Creates a file of this name for writing, which only this user may use. Nothing may have the name yet.
    ///
    /// # Errors
    /// Fails if there is something, or if the system refuses.
    pub fn create_new(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        Ok(openat(&self.opened, name, flags, mode)?.into())
    }

    /// Checks that this process may make and remove files here, as far as permissions and the file system
    /// decide about it.
    ///
    /// # Errors
    /// Says why not.
    pub fn check_writable(&self) -> io::Result<()> {
        let writes = AccessFlags::W_OK | AccessFlags::X_OK;
        Ok(faccessat(AT_FDCWD, &self.path, writes, AtFlags::AT_EACCESS)?)
    }

    /// Waits until the names of the files in this folder are on its disk.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        File::from(openat(&self.opened, ".", flags, Mode::empty())?).sync_all()
    }

    /// Opens what has this name for writing, if there is anything, and changes nothing. A link is not
    /// followed, but for one of procfs.
    ///
    /// # Errors
    /// Fails if the system refuses, if another user may have put something there, and if it is a pipe that
    /// nobody reads.
    pub fn open_present(&self, name: &OsStr) -> io::Result<Option<File>> {
        let alone = match self.is_procfs()? {
            true => OFlag::empty(),
            false => OFlag::O_NOFOLLOW,
        };
        // A pipe that nobody reads would block for ever.
        let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | alone;
        let present = match openat(&self.opened, name, flags, Mode::empty()) {
            Ok(present) => File::from(present),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ENXIO) => {
                let message = "nobody reads this pipe: start its reader first";
                return Err(io::Error::other(message));
            }
            Err(error) => return Err(error.into()),
        };
        self.check_found(name, &present.metadata()?)?;
        let flags = OFlag::from_bits_retain(fcntl(&present, FcntlArg::F_GETFL)?) - OFlag::O_NONBLOCK;
        fcntl(&present, FcntlArg::F_SETFL(flags))?;
        Ok(Some(present))
    }

    fn is_procfs(&self) -> io::Result<bool> {
        Ok(fstatfs(&self.opened)?.filesystem_type() == PROC_SUPER_MAGIC)
    }

    /// Opens the file of this name for reading. A link is not followed, and a pipe does not block.
    ///
    /// # Errors
    /// Fails if there is no file, or if the system refuses.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        Ok(openat(&self.opened, name, flags, Mode::empty())?.into())
    }

    /// Opens the file of this name for reading, if only this user and root may write to it. A link is not
    /// followed, and a pipe does not block.
    ///
    /// # Errors
    /// Fails if there is no such file, or if others may write to it or exchange it.
    pub fn open_trusted(&self, name: &OsStr) -> io::Result<File> {
        self.check_exchange()?;
        let file = self.open_file(name)?;
        let found = file.metadata()?;
        if !found.is_file() || is_other(found.uid()) || found.mode() & 0o022 != 0 {
            let message = "it is no file that only this user and root may write to";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(file)
    }

    /// Makes a file that only this user may use, in place of the one of this name, which stays until the new
    /// one is whole and on the disk. Returns the new one, to write more behind this content.
    ///
    /// # Errors
    /// Fails if others may exchange files here, or if the system refuses.
    pub fn replace(&self, name: &OsStr, content: &[u8]) -> io::Result<File> {
        self.check_exchange()?;
        let mut draft = name.to_owned();
        draft.push(".new");
        // What is left of a process that was killed meanwhile.
        match self.remove(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = self.create_own(&draft)?;
        file.write_all(content)?;
        file.sync_all()?;
        self.rename(&draft, name)?;
        Ok(file)
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

/// A path that is followed, as the kernel does, but from one open folder to the next.
struct Walk {
    at: Folder,
    /// The names to come, the next one last.
    names: Vec<OsString>,
    links: usize,
    /// The links that another user has made, and their owners.
    led_by: Vec<(PathBuf, u32)>,
}

impl Walk {
    fn begin(path: &Path) -> io::Result<Walk> {
        let at = match path.is_absolute() {
            true => root()?,
            false => {
                let opened = openat(AT_FDCWD, ".", FOLDER, Mode::empty())?;
                Folder::opened(opened.into(), env::current_dir().unwrap_or_else(|_| ".".into()))?
            }
        };
        Ok(Walk {
            at,
            names: names(path),
            links: 0,
            led_by: Vec::new(),
        })
    }

    fn into_folder(mut self, is_made: bool) -> io::Result<Folder> {
        while let Some(name) = self.names.pop() {
            self.enter(&name, is_made)?;
        }
        self.check_end(self.at.owner, &self.at.path)?;
        Ok(self.at)
    }

    fn into_file(mut self) -> io::Result<(Folder, OsString)> {
        loop {
            let name = self.names.pop().ok_or(Errno::EISDIR)?;
            if !self.names.is_empty() || name == ".." {
                self.enter(&name, false)?;
                continue;
            }
            match self.follow(&name) {
                Ok(true) => continue,
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let owner = match self.at.look(&name) {
                Ok(found) => found.metadata()?.uid(),
                Err(_) => self.at.owner,
            };
            self.check_end(owner, &self.at.path.join(&name))?;
            return Ok((self.at, name));
        }
    }

    /// Goes on in the folder of this name, or to where a link of this name leads.
    fn enter(&mut self, name: &OsStr, is_made: bool) -> io::Result<()> {
        let open = |at: &Folder| openat(&at.opened, name, FOLDER | OFlag::O_NOFOLLOW, Mode::empty());
        let opened = match open(&self.at) {
            Err(Errno::ENOENT) if is_made => {
                match mkdirat(&self.at.opened, name, Mode::from_bits_retain(0o777)) {
                    Ok(()) | Err(Errno::EEXIST) => open(&self.at),
                    Err(error) => Err(error),
                }
            }
            opened => opened,
        };
        let opened = match opened {
            Ok(opened) => opened,
            // A link is none, too.
            Err(Errno::ENOTDIR | Errno::ELOOP) => {
                return match self.follow(name)? {
                    true => Ok(()),
                    false => Err(Errno::ENOTDIR.into()),
                };
            }
            Err(error) => return Err(error.into()),
        };
        let mut path = self.at.path.clone();
        match name == ".." {
            true => drop(path.pop()),
            false => path.push(name),
        }
        self.at = Folder::opened(opened.into(), path)?;
        Ok(())
    }

    /// Puts what a link says in place of its name. Returns `false` if there is no link, or one of procfs that
    /// leads to what is no folder and has no path.
    fn follow(&mut self, name: &OsStr) -> io::Result<bool> {
        let link = self.at.look(name)?;
        let found = link.metadata()?;
        if !found.is_symlink() {
            return Ok(false);
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::ELOOP.into());
        }
        let next = PathBuf::from(readlinkat(&link, "")?);
        if self.at.is_procfs()? {
            let path = self.at.path.join(next);
            let opened = openat(
                &self.at.opened,
                name,
                OFlag::O_PATH | OFlag::O_CLOEXEC,
                Mode::empty(),
            )?;
            let opened = File::from(opened);
            let end = opened.metadata()?;
            if end.is_dir() {
                self.at = Folder::opened(opened, path)?;
                return Ok(true);
            }
            // Of a file that was deleted the path leads to nothing, and of a pipe it is none.
            let is_there = |there: Metadata| (there.dev(), there.ino()) == (end.dev(), end.ino());
            if !fs::metadata(&path).is_ok_and(is_there) {
                return Ok(false);
            }
            return self.go_on(&path);
        }
        self.at.check_found(name, &found)?;
        if is_other(found.uid()) {
            self.led_by.push((self.at.path.join(name), found.uid()));
        }
        self.go_on(&next)
    }

    fn go_on(&mut self, path: &Path) -> io::Result<bool> {
        if path.is_absolute() {
            self.at = root()?;
        }
        self.names.extend(names(path));
        Ok(true)
    }

    /// Checks that links of other users lead only to what is theirs.
    fn check_end(&self, owner: u32, end: &Path) -> Result<(), Unsafe> {
        match self.led_by.iter().find(|(_, user)| *user != owner) {
            Some((path, user)) => Err(Unsafe::Misleading {
                path: path.clone(),
                user: *user,
                end: end.to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// For a folder that is no more than a place.
const FOLDER: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// The maximum number of symbolic links that are followed, as in the kernel.
const MOST_LINKS: usize = 40;

fn root() -> io::Result<Folder> {
    let opened = openat(AT_FDCWD, "/", FOLDER, Mode::empty())?;
    Folder::opened(opened.into(), "/".into())
}

/// Returns the names of a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// Opens a file of this name that other processes lock, too. It is created if it is missing, and so is its
/// folder. Its content is not touched, and a link is not followed.
///
/// # Errors
/// Fails as [`Folder::create`] does, and if another user may have put the file there.
pub fn lock_file(path: &Path) -> io::Result<File> {
    let folder = Folder::create(folder_of(path))?;
    let name = path.file_name().unwrap_or_default();
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = match openat(&folder.opened, name, flags, NEW) {
        Ok(file) => File::from(file),
        Err(Errno::ELOOP) => return Err(Unsafe::Link { path: path.into() }.into()),
        Err(error) => return Err(error.into()),
    };
    folder.check_found(name, &file.metadata()?)?;
    Ok(file)
}

/// Creates a file that others may read while it grows, or empties the one that is there. Links are followed
/// as by [`Folder::end_of`].
///
/// # Errors
/// Fails as [`Folder::end_of`] and [`Folder::open_present`] do.
pub fn create(path: &Path) -> io::Result<File> {
    let (folder, name) = Folder::end_of(path)?;
    if let Some(present) = folder.open_present(&name)? {
        if present.metadata()?.is_file() {
            present.set_len(0)?;
        }
        return Ok(present);
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    Ok(openat(&folder.opened, &*name, flags, NEW)?.into())
}

/// The mode of a new file, of which the user's umask takes some bits.
const NEW: Mode = Mode::from_bits_retain(0o666);

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

/// Returns whether this is another user than this one and root, whom everybody trusts.
fn is_other(user: u32) -> bool {
    user != 0 && user != geteuid().as_raw()
}

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
        let (end, name) = Folder::end_of(&at("first")).unwrap();
        assert_eq!(end.path().join(name), at("third"));
        symlink("loop", at("loop")).unwrap();
        Folder::end_of(&at("loop")).unwrap_err();
    }

    /// Gives files and links to another user. Returns `false` where that can't be done: only root may.
    fn give_away(paths: &[&Path]) -> bool {
        let give = |path: &&Path| std::os::unix::fs::lchown(path, Some(65_534), Some(65_534));
        let is_given = paths.iter().all(|path| give(path).is_ok());
        if !is_given {
            let text = b"SKIPPED: lchown needs root\n";
            let _ = io::Write::write_all(&mut io::stderr(), text);
        }
        is_given
    }

    /// All ways to open or make a file.
    const WAYS: [fn(&Path) -> io::Result<()>; 4] = [
        |path| Folder::end_of(path).and_then(|(folder, name)| folder.open_present(&name).map(drop)),
        |path| create(path).map(drop),
        |path| lock_file(path).map(drop),
        |path| Folder::of(path)?.create_own(path.file_name().unwrap()).map(drop),
    ];

    #[test]
    fn links_of_others_are_followed_only_where_others_may_not_write() {
        let scratch = tempfile::tempdir().unwrap();
        let [folder, victims] = ["folder", "victims"].map(|name| scratch.path().join(name));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&victims).unwrap();
        let [file, way] = ["file", "way"].map(|name| folder.join(name));
        symlink("../victims/first", &file).unwrap();
        symlink(&victims, &way).unwrap();
        if !give_away(&[&file, &way, &victims]) {
            return;
        }
        for (mode, is_fine) in [(0o755, true), (0o1777, false), (0o777, false), (0o775, false)] {
            fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            let ends = [&file, &way.join("second"), &way.join("none/third")].map(|path| Folder::end_of(path));
            let found = ends.map(|end| end.map(drop).map_err(|error| error.to_string()));
            assert_eq!(found[0].is_ok(), is_fine, "{mode:o}: {found:?}");
            assert_eq!(found[1].is_ok(), is_fine, "{mode:o}: {found:?}");
            assert!(found[2].is_err(), "{mode:o}: {found:?}");
            if !is_fine {
                for open in WAYS {
                    open(&way.join("second")).unwrap_err();
                }
                Folder::create(&way.join("none/third")).unwrap_err();
                assert_eq!(fs::read_dir(&victims).unwrap().count(), 0);
            }
        }
        for open in WAYS {
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
            open(&way.join("second")).unwrap();
        }
    }

    /// In a folder of his own nobody stops him from making links. They lead to nothing that is not his.
    #[test]
    fn a_link_of_another_user_leads_only_to_what_is_his() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("his")).unwrap();
        fs::write(at("precious"), "precious").unwrap();
        fs::write(at("his/own"), "").unwrap();
        let names = ["his/root", "his/new", "his/way", "his/himself", "his/later"];
        let ends = ["../precious", "../new", "..", "own", "not-yet"];
        for (name, end) in names.iter().zip(ends) {
            symlink(end, at(name)).unwrap();
        }
        let his = names.map(at);
        let mut given: Vec<&Path> = his.iter().map(PathBuf::as_path).collect();
        let [folder, own] = [at("his"), at("his/own")];
        given.extend([&*folder, &*own]);
        if !give_away(&given) {
            return;
        }
        for open in [WAYS[0], WAYS[1]] {
            for trap in ["his/root", "his/new", "his/way/precious", "his/way/new"] {
                let what = open(&at(trap)).unwrap_err().to_string();
                assert!(what.contains("belongs to user 65534"), "{trap}: {what}");
            }
            open(&at("his/himself")).unwrap();
            open(&at("his/later")).unwrap();
        }
        for open in [WAYS[2], WAYS[3]] {
            open(&at("his/way/precious")).unwrap_err();
        }
        assert_eq!(fs::read(at("precious")).unwrap(), b"precious");
        assert!(!at("new").exists());
        // A name of a file that is not his.
        fs::hard_link(at("precious"), at("his/name")).unwrap();
        for open in WAYS {
            let what = open(&at("his/name")).unwrap_err().to_string();
            assert!(what.contains("name is one of 2 names of a file"), "{what}");
        }
        assert_eq!(fs::read(at("precious")).unwrap(), b"precious");
    }

    #[test]
    fn links_of_the_kernel_lead_to_what_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create_new(folder.path().join("file")).unwrap();
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let (end, name) = Folder::end_of(Path::new(&own)).unwrap();
        assert_eq!(
            end.path().join(name),
            folder.path().canonicalize().unwrap().join("file")
        );
        let (reader, writer) = io::pipe().unwrap();
        let pipe = format!("/proc/self/fd/{}", writer.as_raw_fd());
        create(Path::new(&pipe)).unwrap().write_all(b"through").unwrap();
        drop(writer);
        assert_eq!(io::read_to_string(reader).unwrap(), "through");
        let opened = Folder::open(folder.path()).unwrap();
        create(&opened.fixed_path().join("second")).unwrap();
        assert!(folder.path().join("second").exists());
    }

    #[test]
    fn a_folder_is_made_with_those_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/../a/b/c");
        assert!(Folder::open(&path).is_err());
        drop(Folder::create(&path).unwrap());
        assert!(folder.path().join("a/b/c").is_dir());
        drop(Folder::create(&path).unwrap());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(Folder::create(&folder.path().join("file/d")).is_err());
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
            for open in [WAYS[0], WAYS[2]] {
                let result = open(&trap).map_err(|error| error.to_string());
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
