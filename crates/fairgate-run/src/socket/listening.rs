//! A unix socket that is listened at.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use fairgate_config::folder::Folder;
use fairgate_live::LiveError;
use fairgate_live::folders::{self, FolderError};
use nix::fcntl::AtFlags;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{Gid, fchownat};

use super::path::check_length;

/// A unix socket that is listened at. Its file is removed on drop.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: UnixListener,
    path: PathBuf,
    folder: Folder,
    /// Device and inode of its file.
    identity: (u64, u64),
}

impl Listening {
    /// Listens at `path`. Only this user may connect, and the members of a group. Replaces a socket that a
    /// killed process left behind.
    ///
    /// # Errors
    /// Fails if another process listens there, if others could exchange the socket, or if it can't be
    /// created.
    pub(crate) fn at(path: &Path, group: Option<Gid>) -> Result<Listening, LiveError> {
        let system = || LiveError::io(format!("listening at {}", path.display()));
        check_length(path).map_err(|error| LiveError::Socket(error.to_string()))?;
        let ours = folders::of_sockets();
        if path.parent() == Some(&*ours) {
            folders::create(&ours).map_err(|error| match error {
                FolderError::Io(error) => system()(error),
                error => LiveError::Socket(error.to_string()),
            })?;
        }
        let folder = Folder::of(path).map_err(system())?;
        folder.check_exchange()?;
        let name = path.file_name().unwrap_or_default();
        remove_dead(path, &folder, name)?;
        let listener = bound(path).map_err(system())?;
        // The path is not used again: nobody can exchange the file in this folder.
        let file = folder.look(name).map_err(system())?;
        let found = file.metadata().map_err(system())?;
        if !found.file_type().is_socket() {
            return Err(LiveError::NoSocket {
                path: path.to_path_buf(),
            });
        }
        if let Some(group) = group {
            open_to(&file, group)
                .map_err(LiveError::io(format!("giving {} to its group", path.display())))?;
        }
        Ok(Listening {
            listener,
            path: path.to_path_buf(),
            folder,
            identity: (found.dev(), found.ino()),
        })
    }

    /// Returns the socket.
    pub(crate) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Returns where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let name = self.path.file_name().unwrap_or_default();
        let found = self.folder.look(name).and_then(|file| file.metadata());
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity) {
            let _ = self.folder.remove(name);
        }
    }
}

/// Returns a socket that listens at `path`, and that only this user may connect to.
fn bound(path: &Path) -> io::Result<UnixListener> {
    let socket: OwnedFd = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    // Whoever may write to a socket may connect to it. The file gets the mode that the socket has when it is
    // bound (`unix_bind_bsd` in Linux), so there is no moment at which it is open to others.
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok(socket.into())
}

/// Lets the members of a group connect to a socket, by its open file.
fn open_to(file: &File, group: Gid) -> io::Result<()> {
    fchownat(file, "", None, Some(group), AtFlags::AT_EMPTY_PATH)?;
    // A file that is open with O_PATH has a mode that only its path can change, and this is one that nobody
    // can exchange.
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(own, Permissions::from_mode(0o660))
}

/// Removes the socket at `path` if no process listens there.
fn remove_dead(path: &Path, folder: &Folder, name: &OsStr) -> Result<(), LiveError> {
    let system = || LiveError::io(format!("listening at {}", path.display()));
    let found = match folder.look(name).and_then(|file| file.metadata()) {
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
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => folder.remove(name).map_err(system()),
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
        assert!(matches!(
            Listening::at(&file, None),
            Err(LiveError::NoSocket { .. })
        ));
        assert_eq!(fs::read(&file).unwrap(), b"precious");

        let dead = folder.path().join("dead.sock");
        drop(UnixListener::bind(&dead).unwrap());
        let listening = Listening::at(&dead, None).unwrap();
        assert_eq!(fs::metadata(&dead).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(
            Listening::at(&dead, None),
            Err(LiveError::SocketInUse { .. })
        ));
        // A symbolic link to a dead socket is not a socket.
        let link = folder.path().join("link.sock");
        std::os::unix::fs::symlink(&dead, &link).unwrap();
        assert!(matches!(
            Listening::at(&link, None),
            Err(LiveError::NoSocket { .. })
        ));
        drop(listening);
        assert!(!dead.exists());
    }

    /// Somebody could put a link in the place of the socket between its creation and a change of its mode.
    #[test]
    fn a_folder_that_others_may_write_to_needs_the_sticky_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.sock");
        for (mode, is_fine) in [(0o777, false), (0o1777, true), (0o755, true), (0o702, false)] {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            match Listening::at(&path, None) {
                Ok(_) => assert!(is_fine, "{mode:o}"),
                Err(error) => {
                    assert!(!is_fine, "{mode:o}: {error}");
                    let text = error.to_string();
                    let named = text.contains(&folder.path().display().to_string());
                    assert!(named && text.contains("no sticky bit"), "{text}");
                    assert!(!path.exists());
                }
            }
        }
    }

    #[test]
    fn a_group_gets_the_socket_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.sock");
        let listening = Listening::at(&path, Some(nix::unistd::getegid())).unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!(found.mode() & 0o777, 0o660);
        // What somebody else has put in its place is not removed.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(listening);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_path_that_is_too_long_is_reported() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        let error = Listening::at(&path, None).unwrap_err();
        assert!(error.to_string().contains("at most 107 bytes"), "{error}");
    }
}
