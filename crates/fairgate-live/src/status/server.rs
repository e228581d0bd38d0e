//! The status socket: whoever connects is sent the status as JSON, then the connection is closed. No request, so that
//! `socat - UNIX:PATH` will do.

use std::env;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use crate::error::LiveError;
use crate::status::document::Status;

/// Ending of the sockets' file names.
const ENDING: &str = "sock";

/// Clients that read slowly, at most; more are turned away.
const MOST_CLIENTS: usize = 16;

/// Where sockets are kept: /run/fairgate for root, else a folder of the user's.
fn folder() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from("/run/fairgate");
    }
    env::var_os("XDG_RUNTIME_DIR")
        .map_or_else(env::temp_dir, PathBuf::from)
        .join("fairgate")
}

/// The socket of the run called `name`.
pub fn default_socket(name: &str) -> PathBuf {
    folder().join(format!("{name}.{ENDING}"))
}

/// Sockets of the runs of this user, in the order of their names.
pub fn running() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder()) else {
        return Vec::new();
    };
    let mut sockets: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect();
    sockets.sort();
    sockets
}

/// Asks the run that answers at `socket` for its status.
///
/// # Errors
/// If nobody answers there, or not with a status.
pub fn fetch(socket: &Path) -> io::Result<Status> {
    let stream = UnixStream::connect(socket)?;
    serde_json::from_reader(stream).map_err(io::Error::from)
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
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(system())?;
        }
        match UnixStream::connect(path) {
            Ok(_) => {
                return Err(LiveError::SocketInUse {
                    path: path.to_path_buf(),
                });
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(system())?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(system())?;
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
