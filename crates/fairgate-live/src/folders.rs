//! The folders where runs have their sockets and the locks of their interfaces, and which of them can be
//! trusted.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, geteuid};
use thiserror::Error;

/// The folder of root's sockets.
const ROOTS: &str = "/run/fairgate";

/// The folder of the sockets of services, which have a user of their own (`packaging/systemd`). Only root can
/// create it. So root trusts its owner.
pub const SERVICES: &str = "/run/fairgate/service";

/// Why a folder is not used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// Other users can write to it, or own it.
    #[error("{folder} can't be trusted: {why}", folder = .folder.display())]
    Untrusted {
        /// The folder.
        folder: PathBuf,
        /// Why it can't be trusted.
        why: &'static str,
    },
    /// It can't be created or looked at.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns the folder of the sockets: /run/fairgate for root, otherwise a folder of the user's own.
pub fn of_sockets() -> PathBuf {
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
pub(crate) fn lock_folders() -> Result<Vec<PathBuf>, FolderError> {
    let services = Path::new(SERVICES);
    let owner = owner_chosen_by_root(services).ok();
    if !geteuid().is_root() && owner == Some(geteuid()) {
        return Ok(vec![services.to_path_buf()]);
    }
    let own = of_sockets();
    let made = match create(&own) {
        Err(_) if geteuid().is_root() => None,
        made => Some(made?),
    };
    match made {
        Some(()) if owner.is_some() && geteuid().is_root() => Ok(vec![own, services.to_path_buf()]),
        Some(()) => Ok(vec![own]),
        None => create(&own_folder()).map(|()| vec![own_folder()]),
    }
}

/// Creates a folder that only this user may write to.
///
/// # Errors
/// Fails if it can't be created, or if other users may write to it.
pub fn create(folder: &Path) -> Result<(), FolderError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o755).create(folder)?;
    check(folder)
}

/// Checks that a folder belongs to this user and that no one else may write to it.
///
/// # Errors
/// Says which of both does not hold.
pub fn check(folder: &Path) -> Result<(), FolderError> {
    match sole_owner(folder)? {
        owner if owner == geteuid() => Ok(()),
        _ => Err(untrusted(folder, "it belongs to another user")),
    }
}

/// Returns the only user who may write to a folder.
fn sole_owner(folder: &Path) -> Result<Uid, FolderError> {
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
///
/// # Errors
/// Fails if others could have placed it, or may write to it.
pub fn owner_chosen_by_root(folder: &Path) -> Result<Uid, FolderError> {
    let above = folder.parent().unwrap_or(folder);
    match sole_owner(above)? {
        owner if owner.is_root() => sole_owner(folder),
        _ => Err(untrusted(above, "it belongs to another user")),
    }
}

fn untrusted(folder: &Path, why: &'static str) -> FolderError {
    FolderError::Untrusted {
        folder: folder.to_path_buf(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::testing::live;

    #[test]
    fn a_folder_that_others_may_write_to_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check(folder.path()).is_ok());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(check(folder.path()).is_err());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(check(&link).is_err());
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
