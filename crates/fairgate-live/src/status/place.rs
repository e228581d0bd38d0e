//! Where the sockets of runs are, and which of them can be trusted.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, geteuid};

use super::fetch_error::FetchError;

/// The extension of the sockets' file names.
const ENDING: &str = "sock";

/// The folder of root's sockets.
const ROOTS: &str = "/run/fairgate";

/// The folder of the sockets of services, which have a user of their own (`packaging/systemd`). Only root can
/// create it. So root trusts its owner.
const SERVICES: &str = "/run/fairgate/service";

/// Returns the folder of the sockets: /run/fairgate for root, otherwise a folder of the user's own.
pub(super) fn folder() -> PathBuf {
    match geteuid().is_root() {
        true => PathBuf::from(ROOTS),
        false => own_folder(),
    }
}

fn own_folder() -> PathBuf {
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("fairgate"),
        // Other users can create folders there too, so the name alone does not make it trustworthy.
        None => env::temp_dir().join(format!("fairgate-{}", geteuid())),
    }
}

/// Returns the folders in each of which a run locks its interfaces. For root these are its own and that of
/// services, whose runs can't open root's. Where root may not create its folder, as in a user namespace, it
/// has one as other users have it.
///
/// # Errors
/// Fails if other users may write to the folder.
pub(crate) fn lock_folders() -> Result<Vec<PathBuf>, FetchError> {
    let services = Path::new(SERVICES);
    let owner = owner_chosen_by_root(services).ok();
    if !geteuid().is_root() && owner == Some(geteuid()) {
        return Ok(vec![services.to_path_buf()]);
    }
    let own = folder();
    let made = match create(&own) {
        Err(FetchError::Io(_) | FetchError::Folder { .. }) if geteuid().is_root() => None,
        made => Some(made?),
    };
    match made {
        Some(()) if owner.is_some() && geteuid().is_root() => Ok(vec![own, services.to_path_buf()]),
        Some(()) => Ok(vec![own]),
        None => create(&own_folder()).map(|()| vec![own_folder()]),
    }
}

/// Creates a folder that only this user may write to.
pub(super) fn create(folder: &Path) -> Result<(), FetchError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o755).create(folder)?;
    check_folder(folder)
}

/// Returns the default socket of the run called `name`.
pub fn default_socket(name: &str) -> PathBuf {
    folder().join(format!("{name}.{ENDING}"))
}

/// Returns the sockets of this user's runs, sorted by name. For root, these include the runs of services. A
/// run that was killed leaves its socket behind. Such a socket is not returned.
///
/// # Errors
/// Fails if other users could have created sockets in the folder.
pub fn running() -> Result<Vec<PathBuf>, FetchError> {
    let folder = folder();
    let mut sockets = match fs::read_dir(&folder) {
        Ok(entries) => {
            check_folder(&folder)?;
            sockets_in(entries)
        }
        Err(_) => Vec::new(),
    };
    if geteuid().is_root()
        && let Ok(entries) = fs::read_dir(SERVICES)
    {
        owner_chosen_by_root(Path::new(SERVICES))?;
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

/// Checks that a folder belongs to this user and that no one else may write to it.
pub(super) fn check_folder(folder: &Path) -> Result<(), FetchError> {
    match sole_owner(folder)? {
        owner if owner == geteuid() => Ok(()),
        _ => Err(untrusted(folder, "it belongs to another user")),
    }
}

/// Returns the only user who may write to a folder.
fn sole_owner(folder: &Path) -> Result<Uid, FetchError> {
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() {
        Err(untrusted(folder, "it is not a folder"))
    } else if found.mode() & 0o022 != 0 {
        Err(untrusted(folder, "other users may write to it"))
    } else {
        Ok(Uid::from_raw(found.uid()))
    }
}

/// Returns the owner of a folder whose place only root could give to somebody.
fn owner_chosen_by_root(folder: &Path) -> Result<Uid, FetchError> {
    let above = folder.parent().unwrap_or(folder);
    match sole_owner(above)? {
        owner if owner.is_root() => sole_owner(folder),
        _ => Err(untrusted(above, "it belongs to another user")),
    }
}

fn untrusted(folder: &Path, why: &'static str) -> FetchError {
    FetchError::Folder {
        folder: folder.to_path_buf(),
        why,
    }
}

/// Returns whether this user trusts what a process of `user` answers at `socket`.
pub(crate) fn is_trusted(user: Uid, socket: &Path) -> bool {
    let is_of_a_service = || {
        let chosen = socket.parent().filter(|folder| *folder == Path::new(SERVICES));
        chosen.is_some_and(|folder| owner_chosen_by_root(folder).is_ok_and(|owner| owner == user))
    };
    user == geteuid() || user.is_root() || is_of_a_service()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::testing::live;

    #[test]
    fn a_socket_of_a_killed_run_is_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let [alive, dead, other] =
            ["alive.sock", "dead.sock", "alive.txt"].map(|name| folder.path().join(name));
        let _listening = [&alive, &other].map(|path| UnixListener::bind(path).unwrap());
        drop(UnixListener::bind(dead).unwrap());
        assert_eq!(sockets_in(fs::read_dir(folder.path()).unwrap()), [alive]);
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_folder(folder.path()).is_ok());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(check_folder(folder.path()).is_err());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(check_folder(&link).is_err());
    }

    /// What root has given to a service is trusted, and nothing in a folder that another user could have
    /// placed there.
    #[test]
    fn the_owner_of_a_folder_is_trusted_if_root_has_chosen_it() {
        let Some(_watched) = live("the_owner_of_a_folder_is_trusted_if_root_has_chosen_it") else {
            return;
        };
        let other = Uid::from_raw(65534);
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("service");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(other.as_raw()), None).unwrap();
        assert_eq!(owner_chosen_by_root(&folder).unwrap(), other);
        // Such a folder is trusted only where services have their sockets.
        assert!(!is_trusted(other, &folder.join("home.sock")));
        fs::set_permissions(&folder, Permissions::from_mode(0o775)).unwrap();
        assert!(owner_chosen_by_root(&folder).is_err());
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(above.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(owner_chosen_by_root(&folder).is_err());
        fs::set_permissions(above.path(), Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(above.path(), Some(other.as_raw()), None).unwrap();
        assert!(owner_chosen_by_root(&folder).is_err());
    }
}
