//! Allows only one run per interface. Two would forward every frame twice.
//!
//! A lock is a file that is locked with flock(2), in a folder that no other user may write to. No other user
//! may open it: whoever can open a file can lock it. The kernel ends the lock with the process, even if it is
//! killed. The file is named after the network namespace and the interface. There is one with the interface's
//! name, which it has again when it comes back, and one with its index, which stays when it is renamed. Both
//! are held until the run ends, so that nobody can take them while the interface is away.
//!
//! Root's runs and those of services share folders. Users without privileges have a folder of their own:
//! their runs exclude each other, but not those of other users.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::LiveError;
use crate::folder::Folder;
use crate::status::lock_folders;
use crate::sys::interface::Interface;

/// A lock that is held until its last copy is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    _held: Arc<[Held]>,
}

/// A locked file. It is removed on drop, if that is still allowed then.
#[derive(Debug)]
struct Held {
    folder: Folder,
    name: String,
    _file: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.folder.remove(OsStr::new(&self.name));
    }
}

impl Lock {
    /// Locks an interface.
    ///
    /// # Errors
    /// Fails if another process holds the lock, or if there is no folder that only this user may write to.
    pub(crate) fn take(interface: &Interface) -> Result<Lock, LiveError> {
        let folders = lock_folders().map_err(|error| LiveError::Socket(error.to_string()))?;
        Lock::take_in(&folders, interface)
    }

    fn take_in(folders: &[PathBuf], interface: &Interface) -> Result<Lock, LiveError> {
        let system = |error| LiveError::io(format!("locking `{}`", interface.name))(error);
        let namespace = std::fs::metadata("/proc/thread-self/ns/net")
            .map_err(system)?
            .ino();
        let names = [
            format!("{namespace}-{}.lock", interface.name),
            // No interface's name has a space.
            format!("{namespace}-index {}.lock", interface.index),
        ];
        let mut held = Vec::new();
        for path in folders {
            for name in &names {
                match Held::take(path, name).map_err(system)? {
                    Ok(lock) => held.push(lock),
                    Err(process) => {
                        return Err(LiveError::InterfaceInUse {
                            interface: interface.name.clone(),
                            process: process
                                .map_or("another process".to_owned(), |id| format!("process {id}")),
                        });
                    }
                }
            }
        }
        Ok(Lock { _held: held.into() })
    }
}

impl Held {
    /// Locks a file. If another process has locked it, returns its id, if it is known.
    fn take(path: &Path, name: &str) -> io::Result<Result<Held, Option<i32>>> {
        let folder = Folder::open(path)?;
        loop {
            let mut file = folder.create_own(OsStr::new(name))?;
            let found = file.metadata()?;
            if !found.is_file() || found.nlink() > 1 {
                let message = format!("{} is no file of a run; remove it", path.join(name).display());
                return Err(io::Error::new(ErrorKind::InvalidInput, message));
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    let _ = file.take(20).read_to_string(&mut text);
                    return Ok(Err(text.trim().parse().ok()));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The one that held it may have removed the file before it was locked here.
            let present = folder.look(OsStr::new(name)).and_then(|file| file.metadata());
            if !present.is_ok_and(|present| (present.dev(), present.ino()) == (found.dev(), found.ino())) {
                continue;
            }
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())?;
            return Ok(Ok(Held {
                folder,
                name: name.to_owned(),
                _file: file,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn interface(name: &str, index: u32) -> Interface {
        Interface {
            name: name.to_owned(),
            index,
            mtu: 1500,
        }
    }

    #[test]
    fn a_name_and_an_index_are_locked_once() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_path_buf()];
        let take = |name: &str, index| Lock::take_in(&folders, &interface(name, index));
        let lock = take("lan", 7).unwrap();
        let copy = lock.clone();
        for (name, index) in [("lan", 7), ("lan", 8), ("renamed", 7)] {
            let error = take(name, index).unwrap_err().to_string();
            let process = format!("process {} already forwards", std::process::id());
            assert!(error.starts_with(&process), "{error}");
        }
        take("wan", 8).unwrap();
        drop(lock);
        take("lan", 7).unwrap_err();
        drop(copy);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        take("lan", 7).unwrap();
    }

    /// A run that was killed leaves its files behind.
    #[test]
    fn a_file_without_a_lock_locks_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_path_buf()];
        let lock = Lock::take_in(&folders, &interface("lan", 7)).unwrap();
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .collect();
        assert_eq!(names.len(), 2);
        for entry in &names {
            assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600);
        }
        drop(lock);
        for entry in &names {
            fs::write(entry.path(), "999999999\n").unwrap();
        }
        Lock::take_in(&folders, &interface("lan", 7)).unwrap();
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_path_buf()];
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let namespace = fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
        let links: [fn(&Path, &Path) -> io::Result<()>; 2] =
            [|of, at| symlink(of, at), |of, at| fs::hard_link(of, at)];
        for link in links {
            let path = folder.path().join(format!("{namespace}-lan.lock"));
            link(&victim, &path).unwrap();
            Lock::take_in(&folders, &interface("lan", 7)).unwrap_err();
            fs::remove_file(&path).unwrap();
            assert_eq!(fs::read(&victim).unwrap(), b"precious");
        }
    }
}
