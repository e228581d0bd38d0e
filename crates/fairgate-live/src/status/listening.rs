//! A unix socket that is listened at.

use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{Shutdown, shutdown};

use super::fetch_error::{FetchError, LONGEST_PATH};
use super::place::{check_folder, folder};
use crate::error::LiveError;

/// A unix socket that is listened at. Its file is removed on drop.
#[derive(Debug)]
pub struct Listening {
    listener: UnixListener,
    path: PathBuf,
}

impl Listening {
    /// Listens at `path`. Only this user may connect. Replaces a socket that a killed process left behind.
    ///
    /// # Errors
    /// Fails if another process listens there, or if the socket can't be created.
    pub fn at(path: &Path) -> Result<Listening, LiveError> {
        let system = || LiveError::io(format!("listening at {}", path.display()));
        let length = path.as_os_str().len();
        if length > LONGEST_PATH {
            return Err(LiveError::Socket(FetchError::LongPath(length).to_string()));
        }
        if path.parent() == Some(&*folder()) {
            let folder = folder();
            let made = DirBuilder::new().recursive(true).mode(0o755).create(&folder);
            made.map_err(system())?;
            check_folder(&folder).map_err(|error| LiveError::Socket(error.to_string()))?;
        }
        remove_dead(path)?;
        let listener = UnixListener::bind(path).map_err(system())?;
        let listening = Listening {
            listener,
            path: path.to_path_buf(),
        };
        // Whoever may write to a socket may connect to it. Only this user may.
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(system())?;
        Ok(listening)
    }

    /// Returns the socket.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // A thread that accepts gets EINVAL from now on (unix(7), `unix_accept` in Linux).
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the socket at `path` if no process listens there.
fn remove_dead(path: &Path) -> Result<(), LiveError> {
    let system = || LiveError::io(format!("listening at {}", path.display()));
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system()(error)),
    };
    if !found.file_type().is_socket() {
        return Err(LiveError::NoSocket {
            path: path.to_path_buf(),
        });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(system()),
        Err(error) => Err(system()(error)),
        Ok(_) => Err(LiveError::SocketInUse {
            path: path.to_path_buf(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn only_a_dead_socket_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("precious.txt");
        fs::write(&file, "precious").unwrap();
        assert!(matches!(Listening::at(&file), Err(LiveError::NoSocket { .. })));
        assert_eq!(fs::read(&file).unwrap(), b"precious");

        let dead = folder.path().join("dead.sock");
        drop(UnixListener::bind(&dead).unwrap());
        let listening = Listening::at(&dead).unwrap();
        assert_eq!(fs::metadata(&dead).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(Listening::at(&dead), Err(LiveError::SocketInUse { .. })));
        // A symbolic link to a dead socket is not a socket.
        let link = folder.path().join("link.sock");
        std::os::unix::fs::symlink(&dead, &link).unwrap();
        assert!(matches!(Listening::at(&link), Err(LiveError::NoSocket { .. })));
        drop(listening);
        assert!(!dead.exists());
    }

    #[test]
    fn a_path_that_is_too_long_is_reported() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        let error = Listening::at(&path).unwrap_err();
        assert!(error.to_string().contains("at most 107 bytes"), "{error}");
    }
}
