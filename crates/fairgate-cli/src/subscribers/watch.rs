//! Watches the files of a list, and says when they have changed.
//!
//! What is watched are folders: a file that an editor or a program replaces is another file. Any event in a
//! folder is only a reason to look at the files, so that links to files elsewhere are followed, too. Files
//! with the texts that the run has are no change: it may have written them itself.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::time::TimeSpec;

use fairgate_run::RunningList;

use super::{are_news, files, watched};

/// How long nothing may happen before the files are read. Who replaces several files needs a moment.
const QUIET: Duration = Duration::from_millis(200);

/// How often the time until then may begin anew.
const PATIENCE: u32 = 20;

/// Watches the folders of a list. It must be made before the run is confined.
pub(crate) struct Watch {
    events: Inotify,
    /// Ends when the other end is dropped.
    stop: UnixStream,
}

/// Ends a watch when it is dropped.
pub(crate) struct Stop(UnixStream);

impl Drop for Stop {
    fn drop(&mut self) {
        // The other end may be gone already.
        let _ = self.0.write_all(b".");
    }
}

impl Watch {
    /// Watches the folders of the list, if its changes are to be taken over.
    ///
    /// # Errors
    /// If a folder can't be watched.
    pub(crate) fn start(list: &RunningList) -> io::Result<Option<(Watch, Stop)>> {
        let Some(source) = watched(list) else {
            return Ok(None);
        };
        let paths = files::paths(&source);
        if paths.is_empty() {
            return Ok(None);
        }
        let events = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let interesting = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_CREATE;
        let mut folders: Vec<PathBuf> = paths.iter().map(|path| folder_of(path)).collect();
        folders.sort();
        folders.dedup();
        for folder in folders {
            events.add_watch(&folder, interesting)?;
        }
        let (stop, stopper) = UnixStream::pair()?;
        Ok(Some((Watch { events, stop }, Stop(stopper))))
    }

    /// Calls `changed` when the files have changed, until the [`Stop`] is dropped.
    pub(crate) fn attend(mut self, list: &RunningList, changed: impl Fn()) {
        let now = || watched(list).as_ref().map(files::state).unwrap_or_default();
        let mut known = now();
        while self.waits(None) {
            // A few more events often follow the first one.
            let mut left = PATIENCE;
            while self.take_all() && left > 0 {
                left -= 1;
                if !self.waits(Some(QUIET)) {
                    return;
                }
            }
            let state = now();
            if state != known {
                known = state;
                if watched(list).is_none_or(|source| are_news(list, &source)) {
                    changed();
                }
            }
        }
    }

    /// Waits for an event, at most for this time. Returns false when the watch ends.
    fn waits(&mut self, most: Option<Duration>) -> bool {
        let mut ready = [
            PollFd::new(self.events.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.stop.as_fd(), PollFlags::POLLIN),
        ];
        loop {
            match ppoll(&mut ready, most.map(TimeSpec::from_duration), None) {
                Err(Errno::EINTR) => {}
                Err(_) => return false,
                Ok(_) => break,
            }
        }
        ready[1].any() != Some(true)
    }

    /// Forgets the events that have come. Returns whether there were any.
    fn take_all(&self) -> bool {
        let mut any = false;
        while let Ok(events) = self.events.read_events() {
            any |= !events.is_empty();
        }
        any
    }
}

/// Returns the folder of a file, or a folder itself.
fn folder_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_path_buf();
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
