//! Where the sockets of runs are, and who is trusted to answer there.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use fairgate_live::folders::{self, FolderError};
use nix::unistd::{Uid, geteuid};

/// The extension of the sockets' file names.
const ENDING: &str = "sock";

/// Returns the default socket of the run called `name`.
pub fn default_socket(name: &str) -> PathBuf {
    folders::of_sockets().join(format!("{name}.{ENDING}"))
}

/// Returns the sockets of this user's runs, sorted by name. For root, these include the runs of services. A
/// run that was killed leaves its socket behind. Such a socket is not returned.
///
/// # Errors
/// Fails if other users could have created sockets in the folder.
pub fn running() -> Result<Vec<PathBuf>, FolderError> {
    let folder = folders::of_sockets();
    let mut sockets = match fs::read_dir(&folder) {
        Ok(entries) => {
            folders::check(&folder)?;
            sockets_in(entries)
        }
        Err(_) => Vec::new(),
    };
    if geteuid().is_root()
        && let Ok(entries) = fs::read_dir(folders::SERVICES)
    {
        folders::owner_chosen_by_root(Path::new(folders::SERVICES))?;
        sockets.extend(sockets_in(entries));
    }
    sockets.sort();
    Ok(sockets)
}

fn sockets_in(entries: fs::ReadDir) -> Vec<PathBuf> {
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING) && !is_dead(path))
        .collect()
}

/// Returns whether no process listens at a socket.
fn is_dead(socket: &Path) -> bool {
    UnixStream::connect(socket).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Returns whether this user trusts what a process of `user` answers at `socket`.
pub(crate) fn is_trusted(user: Uid, socket: &Path) -> bool {
    let is_of_a_service = || {
        let chosen = socket
            .parent()
            .filter(|folder| *folder == Path::new(folders::SERVICES));
        chosen.is_some_and(|folder| folders::owner_chosen_by_root(folder).is_ok_and(|owner| owner == user))
    };
    user == geteuid() || user.is_root() || is_of_a_service()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_of_a_killed_run_is_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let [alive, dead, other] =
            ["alive.sock", "dead.sock", "alive.txt"].map(|name| folder.path().join(name));
        let _listening = [&alive, &other].map(|path| UnixListener::bind(path).unwrap());
        drop(UnixListener::bind(dead).unwrap());
        assert_eq!(sockets_in(fs::read_dir(folder.path()).unwrap()), [alive]);
    }

    /// Others are trusted only where services have their sockets.
    #[test]
    fn a_stranger_is_trusted_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let other = Uid::from_raw(geteuid().as_raw() + 1);
        assert!(!is_trusted(other, &folder.path().join("home.sock")));
        assert!(is_trusted(geteuid(), &folder.path().join("home.sock")));
    }
}
