//! The status socket: whoever connects is sent the status as JSON, then the connection is closed. No request, so that
//! `socat - UNIX:PATH` will do.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{Uid, geteuid};
use thiserror::Error;

use crate::error::LiveError;
use crate::status::document::Status;

/// Ending of the sockets' file names.
const ENDING: &str = "sock";

/// Longest path of a socket, bytes: `sun_path` of unix(7) without the final zero.
const LONGEST_PATH: usize = 107;

/// How long a run may take to answer. It answers between two packets; a stopped process never does.
const PATIENCE: Duration = Duration::from_secs(5);

/// Clients that read slowly, at most; more are turned away.
const MOST_CLIENTS: usize = 16;

/// Where sockets are kept: /run/fairgate for root, else a folder of the user's own.
fn folder() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from("/run/fairgate");
    }
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("fairgate"),
        // Others may make folders there too: the name alone is no reason to trust it.
        None => env::temp_dir().join(format!("fairgate-{}", geteuid())),
    }
}

/// The socket of the run called `name`.
pub fn default_socket(name: &str) -> PathBuf {
    folder().join(format!("{name}.{ENDING}"))
}

/// Why a status can't be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The folder of the sockets is not the user's alone.
    #[error("{folder} is not to be trusted: {why}", folder = .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another user answers.
    #[error("user {0} answers there, and not you or root")]
    Stranger(u32),
    /// The process is there and does not answer.
    #[error("process {process} does not answer{}", if *.stopped { ": it is stopped" } else { "" })]
    Silent {
        /// The process.
        process: i32,
        /// Whether a signal has stopped it.
        stopped: bool,
    },
    /// A path that no socket can have.
    #[error("the path of a socket has at most {LONGEST_PATH} bytes, and this one {0}")]
    LongPath(usize),
    /// Nobody answers, or not with a status.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Sockets of the runs of this user, in the order of their names.
///
/// # Errors
/// If others could have put sockets there.
pub fn running() -> Result<Vec<PathBuf>, FetchError> {
    let folder = folder();
    let Ok(entries) = fs::read_dir(&folder) else {
        return Ok(Vec::new());
    };
    check_folder(&folder)?;
    let mut sockets: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect();
    sockets.sort();
    Ok(sockets)
}

/// A folder that belongs to this user, and that nobody else may write to.
fn check_folder(folder: &Path) -> Result<(), FetchError> {
    let refused = |why| {
        Err(FetchError::Folder {
            folder: folder.to_path_buf(),
            why,
        })
    };
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() {
        refused("it is no folder")
    } else if Uid::from_raw(found.uid()) != geteuid() {
        refused("it belongs to another user")
    } else if found.mode() & 0o022 != 0 {
        refused("others may write to it")
    } else {
        Ok(())
    }
}

/// Asks the run that answers at `socket` for its status.
///
/// # Errors
/// If nobody answers there, or not with a status, or somebody who is neither this user nor root.
pub fn fetch(socket: &Path) -> Result<Status, FetchError> {
    let length = socket.as_os_str().len();
    if length > LONGEST_PATH {
        return Err(FetchError::LongPath(length));
    }
    let stream = UnixStream::connect(socket)?;
    let peer = getsockopt(&stream, sockopt::PeerCredentials).map_err(io::Error::from)?;
    let user = Uid::from_raw(peer.uid());
    if user != geteuid() && !user.is_root() {
        return Err(FetchError::Stranger(peer.uid()));
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    serde_json::from_reader(io::BufReader::new(stream)).map_err(|error| match error.io_error_kind() {
        Some(ErrorKind::WouldBlock | ErrorKind::TimedOut) => FetchError::Silent {
            process: peer.pid(),
            stopped: is_stopped(peer.pid()),
        },
        _ => FetchError::Io(error.into()),
    })
}

/// Whether a signal has stopped a process (proc_pid_stat(5): the field after the name in parentheses).
fn is_stopped(process: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = text.rsplit(") ").next().unwrap_or_default();
    state.starts_with(['T', 't'])
}

/// Someone who is still being written to.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    answer: Vec<u8>,
    written: usize,
}

impl Client {
    /// Writes as much as there is room for. False if it is over, one way or the other.
    fn write_on(&mut self) -> bool {
        while self.written < self.answer.len() {
            match self.stream.write(&self.answer[self.written..]) {
                Ok(0) => return false,
                Ok(more) => self.written += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        false
    }
}

/// Serves the status at a socket, which it removes on drop.
#[derive(Debug)]
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
}

impl Server {
    /// Listens at `path`. A socket left behind by a killed process is replaced.
    pub(crate) fn bind(path: &Path) -> Result<Server, LiveError> {
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
        // Whoever may write to it may ask.
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(system())?;
        listener.set_nonblocking(true).map_err(system())?;
        Ok(Server {
            listener,
            path: path.to_path_buf(),
            clients: Vec::new(),
        })
    }

    /// Readable when a client has come.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Lets a client in and answers. If it does not take all of it at once, returns what becomes writable when there
    /// is room for more.
    pub(crate) fn accept(&mut self, answer: Vec<u8>) -> Option<BorrowedFd<'_>> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        let mut client = Client {
            stream,
            answer,
            written: 0,
        };
        if !client.write_on() || self.clients.len() == MOST_CLIENTS {
            return None;
        }
        self.clients.push(client);
        self.clients.last().map(|client| client.stream.as_fd())
    }

    /// Writes on to all clients that have room.
    pub(crate) fn write_on(&mut self) {
        self.clients.retain_mut(Client::write_on);
    }
}

/// Makes room at `path`, if what is there is a socket at which nobody answers.
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dead_socket_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("precious.txt");
        fs::write(&file, "precious").unwrap();
        assert!(matches!(Server::bind(&file), Err(LiveError::NoSocket { .. })));
        assert_eq!(fs::read(&file).unwrap(), b"precious");

        let dead = folder.path().join("dead.sock");
        drop(UnixListener::bind(&dead).unwrap());
        let server = Server::bind(&dead).unwrap();
        assert_eq!(fs::metadata(&dead).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(Server::bind(&dead), Err(LiveError::SocketInUse { .. })));
        // A link to a dead socket is not one.
        let link = folder.path().join("link.sock");
        std::os::unix::fs::symlink(&dead, &link).unwrap();
        assert!(matches!(Server::bind(&link), Err(LiveError::NoSocket { .. })));
        drop(server);
        assert!(!dead.exists());
    }

    #[test]
    fn a_folder_that_others_write_to_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_folder(folder.path()).is_ok());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(check_folder(folder.path()).is_err());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(check_folder(&link).is_err());
    }

    #[test]
    fn a_path_that_no_socket_can_have_is_said_to_be_so() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        assert!(matches!(fetch(&path), Err(FetchError::LongPath(125))));
        let error = Server::bind(&path).unwrap_err();
        assert!(error.to_string().contains("at most 107 bytes"), "{error}");
    }
}
