//! Allows only one run per interface. Two would forward every frame twice.
//!
//! A lock is a file that is locked with flock(2), in a folder that no other user may write to. No other user
//! may open it: whoever can open a file can lock it. The kernel ends the lock with the process, even if it is
//! killed. The file is named after the network namespace and the interface. There is one with the interface's
//! name, which it has again when it comes back, and one with its index, which stays when it is renamed. Both
//! are held until the run ends, so that nobody can take them while the interface is away.
//!
//! The file with the index also has a note of the offloads that the run has disabled. It is emptied when they
//! are enabled again. If nobody was left to do that, the next run finds the note. It holds for the network
//! namespace with the cookie in it, because the number of a namespace that is gone is used again.
//!
//! Root's runs and those of services share folders. Users without privileges have a folder of their own:
//! their runs exclude each other, but not those of other users.
//!
//! ```text
//!   1234                   the process, in 20 columns
//!   17 gro lro             the cookie of the namespace and the offloads, in 40 columns
//! ```

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use thiserror::Error;

use crate::error::LiveError;
use crate::folders::lock_folders;
use crate::sys::interface::{Interface, Merging, namespace_cookie};
use fairgate_config::folder::Folder;

/// The columns of the process, without the end of the line.
const PROCESS: usize = 20;

/// The columns of the note: those of the largest cookie, and of both offloads.
const NOTE: usize = 40;

/// Where the note is, and what is there if there is none.
pub(super) const NO_NOTE: (u64, &[u8]) = (PROCESS as u64 + 1, &EMPTY);

const EMPTY: [u8; NOTE + 1] = {
    let mut line = [b' '; NOTE + 1];
    line[NOTE] = b'\n';
    line
};

/// How long the children of a run that has died may take to restore its settings.
const PATIENCE: Duration = Duration::from_secs(5);

/// A note that no run has written.
#[derive(Debug, Error)]
#[error("the note in {path} is damaged", path = .0.display())]
pub(super) struct DamagedNote(PathBuf);

/// A lock that is held until its last copy is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    held: Arc<[Held]>,
    /// The cookie of the interface's network namespace.
    namespace: u64,
}

/// A locked file. It is removed on drop, if that is still allowed then.
#[derive(Debug)]
struct Held {
    folder: Folder,
    path: PathBuf,
    name: String,
    file: File,
    /// Whether the note is in this file.
    is_index: bool,
    /// The note that was there.
    found: Vec<u8>,
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
        let cookie = namespace_cookie().map_err(|errno| system(errno.into()))?;
        let mut held = Vec::new();
        for path in folders {
            for (name, is_index) in names.iter().zip([false, true]) {
                match Held::take(path, name, is_index).map_err(system)? {
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
        Ok(Lock {
            held: held.into(),
            namespace: cookie,
        })
    }

    fn with_notes(&self) -> impl Iterator<Item = &Held> {
        self.held.iter().filter(|held| held.is_index)
    }

    /// Returns which offloads of [`Merging::ALL`] a killed run has left disabled.
    pub(super) fn left_off(&self) -> Result<[bool; 2], DamagedNote> {
        let mut all = [false; 2];
        for held in self.with_notes() {
            let note = parsed(&held.found).ok_or_else(|| DamagedNote(held.path.clone()))?;
            // No note is for no namespace.
            if let Some((_, off)) = note.filter(|(namespace, _)| *namespace == self.namespace) {
                all = [0, 1].map(|number: usize| all[number] | off[number]);
            }
        }
        Ok(all)
    }

    /// Notes which offloads of [`Merging::ALL`] this run is about to disable, in place of what was noted.
    pub(super) fn note(&self, off: [bool; 2]) -> io::Result<()> {
        let mut line = EMPTY.to_vec();
        if off != [false; 2] {
            let mut words = vec![self.namespace.to_string()];
            let all = off.iter().zip(Merging::ALL);
            words.extend(
                all.filter(|(is_off, _)| **is_off)
                    .map(|(_, merging)| merging.to_string()),
            );
            let words = words.join(" ");
            line[..words.len()].copy_from_slice(words.as_bytes());
        }
        self.with_notes()
            .try_for_each(|held| held.write(NO_NOTE.0, &line))
    }

    /// Returns the files with the notes.
    pub(super) fn notes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.with_notes().map(|held| held.file.as_fd())
    }
}

/// Reads a note: the cookie of a namespace, and which offloads of [`Merging::ALL`] are off. Returns `None` if
/// it is damaged.
fn parsed(note: &[u8]) -> Option<Option<(u64, [bool; 2])>> {
    let text = std::str::from_utf8(note).ok()?;
    let mut words = text.split_ascii_whitespace();
    let Some(namespace) = words.next() else {
        return Some(None);
    };
    let namespace = namespace.parse().ok()?;
    let mut off = [false; 2];
    for word in words {
        let number = Merging::ALL
            .iter()
            .position(|merging| merging.to_string() == word)?;
        off[number] = true;
    }
    (off != [false; 2]).then_some(Some((namespace, off)))
}

/// Returns whether there is no such process.
fn has_ended(process: i32) -> bool {
    process > 0 && kill(Pid::from_raw(process), None) == Err(Errno::ESRCH)
}

impl Held {
    /// Locks a file. If another process has locked it, returns its id, if it is known. The children of a run
    /// that has died hold its locks until they have restored its settings: waits for them.
    fn take(path: &Path, name: &str, is_index: bool) -> io::Result<Result<Held, Option<i32>>> {
        let folder = Folder::open(path)?;
        let begun = Instant::now();
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
                    let _ = file.take(PROCESS as u64).read_to_string(&mut text);
                    let process = text.trim().parse().ok();
                    if process.is_some_and(has_ended) && begun.elapsed() < PATIENCE {
                        thread::sleep(Duration::from_millis(10));
                        continue;
                    }
                    return Ok(Err(process));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The one that held it may have removed the file before it was locked here.
            let present = folder.look(OsStr::new(name)).and_then(|file| file.metadata());
            if !present.is_ok_and(|present| (present.dev(), present.ino()) == (found.dev(), found.ino())) {
                continue;
            }
            let mut found = Vec::new();
            if is_index {
                file.seek(SeekFrom::Start(NO_NOTE.0))?;
                (&file).take(4096).read_to_end(&mut found)?;
                if found.len() > EMPTY.len() {
                    file.set_len(NO_NOTE.0 + EMPTY.len() as u64)?;
                }
            } else {
                file.set_len(0)?;
            }
            let held = Held {
                folder,
                path: path.join(name),
                name: name.to_owned(),
                file,
                is_index,
                found,
            };
            // The note stays until its settings are restored.
            held.write(0, format!("{:<PROCESS$}\n", std::process::id()).as_bytes())?;
            return Ok(Ok(held));
        }
    }

    fn write(&self, place: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(place))?;
        file.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;
    use crate::sys::interface::Layer;

    fn interface(name: &str, index: u32) -> Interface {
        Interface {
            layer: Layer::Ethernet,
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

    fn index_file(folder: &Path, index: u32) -> PathBuf {
        let namespace = fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
        folder.join(format!("{namespace}-index {index}.lock"))
    }

    /// What a run that was killed has noted is there for the next one, in its own namespace, until that one
    /// has noted something else.
    #[test]
    fn a_note_outlives_its_run() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_path_buf()];
        let file = index_file(folder.path(), 7);
        for off in [[true, false], [false, true], [true, true]] {
            let lock = Lock::take_in(&folders, &interface("lan", 7)).unwrap();
            assert_eq!(lock.left_off().unwrap(), [false, false]);
            lock.note(off).unwrap();
            let left = fs::read(&file).unwrap();
            drop(lock);
            fs::write(&file, &left).unwrap();
            let next = Lock::take_in(&folders, &interface("renamed", 7)).unwrap();
            assert_eq!(next.left_off().unwrap(), off);
            // Also if that one is killed before it has restored anything.
            assert_eq!(fs::read(&file).unwrap(), left);
            next.note([false, false]).unwrap();
            let left = fs::read(&file).unwrap();
            drop(next);
            fs::write(&file, &left).unwrap();
            let third = Lock::take_in(&folders, &interface("lan", 7)).unwrap();
            assert_eq!(third.left_off().unwrap(), [false, false]);
        }
        let elsewhere = format!("{:<PROCESS$}\n{} gro", 1, u64::MAX);
        fs::write(&file, elsewhere).unwrap();
        let lock = Lock::take_in(&folders, &interface("lan", 7)).unwrap();
        assert_eq!(lock.left_off().unwrap(), [false, false]);
    }

    proptest! {
        /// A damaged note is an error or says something, and the next note takes its place.
        #[test]
        fn any_bytes_are_a_note_or_damaged(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            words in "[0-9]{0,3}( gro| lro| ufo|\t|\n){0,3}",
            is_random in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let folders = [folder.path().to_path_buf()];
            let file = index_file(folder.path(), 7);
            let process = format!("{:<PROCESS$}\n", 1);
            let note = if is_random { &bytes[..] } else { words.as_bytes() };
            fs::write(&file, [process.as_bytes(), note].concat()).unwrap();
            let lock = Lock::take_in(&folders, &interface("lan", 7)).unwrap();
            if let Err(error) = lock.left_off() {
                let path = file.display();
                prop_assert_eq!(error.to_string(), format!("the note in {path} is damaged"));
            }
            lock.note([true, false]).unwrap();
            let left = fs::read(&file).unwrap();
            drop(lock);
            fs::write(&file, left).unwrap();
            let next = Lock::take_in(&folders, &interface("lan", 7)).unwrap();
            prop_assert_eq!(next.left_off().unwrap(), [true, false]);
        }
    }

    /// The children of a run that has died hold its lock until they have restored its settings.
    #[test]
    fn who_restores_after_a_killed_run_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_path_buf()];
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let file = index_file(folder.path(), 7);
        fs::write(&file, format!("{}\n", ended.id())).unwrap();
        let held = File::open(&file).unwrap();
        held.lock().unwrap();
        let child = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            drop(held);
        });
        Lock::take_in(&folders, &interface("lan", 7)).unwrap();
        child.join().unwrap();
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
