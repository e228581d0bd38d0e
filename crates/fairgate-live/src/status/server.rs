//! The socket of a run. It answers one request of each client ([`protocol`](super::protocol)) and closes the
//! connection. A client that says nothing gets the status, so that `socat - UNIX:PATH` is a sufficient
//! client.
//!
//! Threads of ordinary priority accept clients, plan changes, make the document and write it. The
//! forwarding thread is only asked for a reading of its counters, which it makes in steps.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{Shutdown, getsockopt, shutdown, sockopt};
use nix::unistd::{Uid, geteuid};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::error::LiveError;
use crate::status::control::{self, Control, LONGEST_REQUEST};
use crate::status::document::Status;
use crate::status::protocol::{Answer, Request};
use crate::status::reading::RunReading;

/// The extension of the sockets' file names.
const ENDING: &str = "sock";

/// The longest path of a socket, bytes: `sun_path` of unix(7) without the terminating zero.
const LONGEST_PATH: usize = 107;

/// How long to wait for an answer. A run answers between two packets; a stopped process never does.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client may say nothing before it gets the status.
const SILENCE: Duration = Duration::from_secs(1);

/// The maximum number of clients that are served at the same time. Further ones are disconnected.
const MOST_CLIENTS: usize = 16;

/// Returns the folder of the sockets: /run/fairgate for root, otherwise a folder of the user's own.
fn folder() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from("/run/fairgate");
    }
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("fairgate"),
        // Other users can create folders there too, so the name alone does not make it trustworthy.
        None => env::temp_dir().join(format!("fairgate-{}", geteuid())),
    }
}

/// Returns the default socket of the run called `name`.
pub fn default_socket(name: &str) -> PathBuf {
    folder().join(format!("{name}.{ENDING}"))
}

/// Why a status can't be fetched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Other users can write to the folder of the sockets, or own it.
    #[error("{folder} can't be trusted: {why}", folder = .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why it can't be trusted.
        why: &'static str,
    },
    /// Another user answers.
    #[error("the process that answers belongs to user {0}, and not to you or root")]
    Stranger(u32),
    /// The process accepts the connection but does not answer.
    #[error("process {process} does not answer{}", if *.stopped { ": it is stopped" } else { "" })]
    Silent {
        /// The process id.
        process: i32,
        /// Whether a signal has stopped the process.
        stopped: bool,
    },
    /// The path is too long for a socket.
    #[error("the path of the socket has {0} bytes, but may have at most {LONGEST_PATH} bytes")]
    LongPath(usize),
    /// No process answers, or the answer is not a status.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns the sockets of this user's runs, sorted by name.
///
/// # Errors
/// Fails if other users could have created sockets in the folder.
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

/// Checks that a folder belongs to this user and that no one else may write to it.
fn check_folder(folder: &Path) -> Result<(), FetchError> {
    let refused = |why| {
        Err(FetchError::Folder {
            folder: folder.to_path_buf(),
            why,
        })
    };
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() {
        refused("it is not a folder")
    } else if Uid::from_raw(found.uid()) != geteuid() {
        refused("it belongs to another user")
    } else if found.mode() & 0o022 != 0 {
        refused("other users may write to it")
    } else {
        Ok(())
    }
}

/// Fetches the status of the run that listens at `socket`.
///
/// # Errors
/// Fails if no process answers, if the answer is not a status, or if the process belongs to neither this user
/// nor root.
pub fn fetch(socket: &Path) -> Result<Status, FetchError> {
    ask(socket, &Request::Status, Some(PATIENCE))
}

/// Has the run that listens at `socket` change its trees, and waits until it has: see [`Request::Change`].
///
/// # Errors
/// Fails if no process answers, if the answer is not one, or if the process belongs to neither this user nor
/// root. A change that is refused is an answer.
pub fn ask_change(socket: &Path, from: Option<&str>, lines: &[String]) -> Result<Answer, FetchError> {
    let request = Request::Change {
        from: from.map(str::to_owned),
        lines: lines.to_vec(),
    };
    // To plan a change of many thousand classes takes seconds.
    ask(socket, &request, None)
}

/// Sends a request and returns the answer. `patience` is how long it may take.
fn ask<A: DeserializeOwned>(
    socket: &Path,
    request: &Request,
    patience: Option<Duration>,
) -> Result<A, FetchError> {
    let length = socket.as_os_str().len();
    if length > LONGEST_PATH {
        return Err(FetchError::LongPath(length));
    }
    let mut stream = UnixStream::connect(socket)?;
    let peer = getsockopt(&stream, sockopt::PeerCredentials).map_err(io::Error::from)?;
    let user = Uid::from_raw(peer.uid());
    if user != geteuid() && !user.is_root() {
        return Err(FetchError::Stranger(peer.uid()));
    }
    stream.set_read_timeout(patience)?;
    let bytes = serde_json::to_vec(request).map_err(io::Error::from)?;
    // A run that serves too many clients has ended the connection: the answer is missing then.
    let _ = stream
        .write_all(&bytes)
        .and_then(|()| stream.shutdown(std::net::Shutdown::Write));
    serde_json::from_reader(io::BufReader::new(stream)).map_err(|error| match error.io_error_kind() {
        Some(ErrorKind::WouldBlock | ErrorKind::TimedOut) => FetchError::Silent {
            process: peer.pid(),
            stopped: is_stopped(peer.pid()),
        },
        _ => FetchError::Io(error.into()),
    })
}

/// Returns whether a signal has stopped a process (proc_pid_stat(5): the field after the name in
/// parentheses).
fn is_stopped(process: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = text.rsplit(") ").next().unwrap_or_default();
    state.starts_with(['T', 't'])
}

/// Serves the status at a socket, and removes the socket on drop.
#[derive(Debug)]
pub(crate) struct Server {
    listener: Arc<UnixListener>,
    path: PathBuf,
    /// Readable when a client wants a reading.
    wanted: Arc<EventFd>,
    readings: Sender<RunReading>,
}

impl Server {
    /// Listens at `path`. Replaces a socket that a killed process left behind.
    pub(crate) fn bind(path: &Path, control: Option<Control>) -> Result<Server, LiveError> {
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
        // Whoever may write to a socket may connect to it. Only this user may.
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(system())?;
        let wanted = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(LiveError::system("preparing the status socket"))?;
        let (readings, made) = mpsc::channel();
        let (listener, wanted) = (Arc::new(listener), Arc::new(wanted));
        let (for_clients, for_requests) = (Arc::clone(&listener), Arc::clone(&wanted));
        thread::Builder::new()
            .name("status".to_owned())
            .spawn(move || serve(&for_clients, &Arc::new(Desk::new(for_requests, made, control))))
            .map_err(system())?;
        Ok(Server {
            listener,
            path: path.to_path_buf(),
            wanted,
            readings,
        })
    }

    /// Returns the descriptor that is readable when a reading is wanted.
    pub(crate) fn wanted(&self) -> BorrowedFd<'_> {
        self.wanted.as_fd()
    }

    /// Takes note of the wish for a reading.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.read().is_ok()
    }

    /// Hands over a reading that was wanted.
    pub(crate) fn hand_over(&self, reading: RunReading) {
        // The other end exists as long as this one.
        let _ = self.readings.send(reading);
    }
}

/// What the threads of clients share.
struct Desk {
    wanted: Arc<EventFd>,
    /// Locked while a reading is made, so that there is one at a time.
    made: Mutex<Receiver<RunReading>>,
    control: Option<Control>,
    /// The number of clients that are served.
    served: AtomicUsize,
}

/// Accepts clients until the listener is shut down. A thread serves each.
fn serve(listener: &UnixListener, desk: &Arc<Desk>) {
    for client in listener.incoming() {
        match client {
            Ok(_) if desk.served.load(Ordering::Acquire) >= MOST_CLIENTS => {}
            Ok(client) => {
                desk.served.fetch_add(1, Ordering::AcqRel);
                let of_client = Arc::clone(desk);
                let answer = move || {
                    // A client that has gone or reads nothing is none of the run's business.
                    let _ = of_client.answer(client);
                    of_client.served.fetch_sub(1, Ordering::AcqRel);
                };
                if thread::Builder::new()
                    .name("status".to_owned())
                    .spawn(answer)
                    .is_err()
                {
                    desk.served.fetch_sub(1, Ordering::AcqRel);
                }
            }
            Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => return,
            // Too many open files, for example.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

impl Desk {
    fn new(wanted: Arc<EventFd>, made: Receiver<RunReading>, control: Option<Control>) -> Desk {
        Desk {
            wanted,
            made: Mutex::new(made),
            control,
            served: AtomicUsize::new(0),
        }
    }

    /// Reads the request of a client and answers it, as long as the client reads.
    fn answer(&self, mut client: UnixStream) -> io::Result<()> {
        let request = control::read(&heard(&client)?);
        client.set_write_timeout(Some(PATIENCE))?;
        match (request, &self.control) {
            (Ok(Request::Change { from, lines }), Some(control)) => {
                send(&mut client, &control.change(from.as_deref(), &lines))
            }
            (Err(refused), _) => send(&mut client, &refused),
            (Ok(_), _) => match self.reading() {
                Some(reading) => send(&mut client, &Status::of_reading(reading)),
                None => Ok(()),
            },
        }
    }

    /// Has the forwarding thread make a reading. Returns `None` if the run has ended.
    fn reading(&self) -> Option<RunReading> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.write(1).ok()?;
        made.recv().ok()
    }
}

/// Returns what a client says: up to the end of its side, or of a line.
fn heard(mut client: &UnixStream) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    client.set_read_timeout(Some(SILENCE))?;
    while request.len() < LONGEST_REQUEST as usize && !request.ends_with(b"\n") {
        match client.read(&mut part) {
            Ok(0) => break,
            Ok(length) => request.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && request.is_empty() => break,
            Err(error) => return Err(error),
        }
        client.set_read_timeout(Some(PATIENCE))?;
    }
    Ok(request)
}

fn send(client: &mut UnixStream, document: &impl Serialize) -> io::Result<()> {
    client.write_all(&serde_json::to_vec(document).map_err(io::Error::from)?)
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

impl Drop for Server {
    fn drop(&mut self) {
        // The listener's thread gets EINVAL from now on (unix(7), `unix_accept` in Linux).
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
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
        assert!(matches!(
            Server::bind(&file, None),
            Err(LiveError::NoSocket { .. })
        ));
        assert_eq!(fs::read(&file).unwrap(), b"precious");

        let dead = folder.path().join("dead.sock");
        drop(UnixListener::bind(&dead).unwrap());
        let server = Server::bind(&dead, None).unwrap();
        assert_eq!(fs::metadata(&dead).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(
            Server::bind(&dead, None),
            Err(LiveError::SocketInUse { .. })
        ));
        // A symbolic link to a dead socket is not a socket.
        let link = folder.path().join("link.sock");
        std::os::unix::fs::symlink(&dead, &link).unwrap();
        assert!(matches!(
            Server::bind(&link, None),
            Err(LiveError::NoSocket { .. })
        ));
        drop(server);
        assert!(!dead.exists());
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

    #[test]
    fn a_path_that_is_too_long_is_reported() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        assert!(matches!(fetch(&path), Err(FetchError::LongPath(125))));
        let error = Server::bind(&path, None).unwrap_err();
        assert!(error.to_string().contains("at most 107 bytes"), "{error}");
    }
}
