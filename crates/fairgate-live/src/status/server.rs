//! The socket of a run. It answers one request of each client ([`protocol`](super::protocol)) and closes the
//! connection. A client that says nothing gets the status, so that `socat - UNIX:PATH` is a sufficient
//! client.
//!
//! Threads of ordinary priority accept clients, plan changes, make the document and write it. The
//! forwarding thread is only asked for a reading of its counters, which it makes in steps.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fairgate_config::{FileError, Spec};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{Shutdown, getsockopt, shutdown, sockopt};
use nix::unistd::{Uid, geteuid};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::clock;
use crate::config::{PacketLog, Plan};
use crate::error::LiveError;
use crate::packets::{self, FlowOrder, FlowsStatus, PacketDesk, PacketTap};
use crate::reserve::Reserver;
use crate::status::control::{self, Control, LONGEST_REQUEST, refused};
use crate::status::delays::{self, DelayDesk, DelayTap};
use crate::status::document::{Detail, Status};
use crate::status::protocol::{
    Answer, Recorded, Request, ReserveOrder, Reserved, SHORTEST_INTERVAL_US, TreesStatus,
};
use crate::status::queue_names::QueueNames;
use crate::status::reading::RunReading;
use crate::status::recording::Recording;

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

/// The folder of root's sockets.
const ROOTS: &str = "/run/fairgate";

/// The folder of the sockets of services, which have a user of their own (`packaging/systemd`). Only root can
/// create it. So root trusts its owner.
const SERVICES: &str = "/run/fairgate/service";

/// Returns the folder of the sockets: /run/fairgate for root, otherwise a folder of the user's own.
fn folder() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from(ROOTS);
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

/// Returns the sockets of this user's runs, sorted by name. For root, these include the runs of services.
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
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect()
}

/// Checks that a folder belongs to this user and that no one else may write to it.
fn check_folder(folder: &Path) -> Result<(), FetchError> {
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
fn is_trusted(user: Uid, socket: &Path) -> bool {
    let is_of_a_service = || {
        let chosen = socket.parent().filter(|folder| *folder == Path::new(SERVICES));
        chosen.is_some_and(|folder| owner_chosen_by_root(folder).is_ok_and(|owner| owner == user))
    };
    user == geteuid() || user.is_root() || is_of_a_service()
}

/// Fetches the status of the run that listens at `socket`.
///
/// # Errors
/// Fails if no process answers, if the answer is not a status, or if the process belongs to neither this user
/// nor root.
pub fn fetch(socket: &Path) -> Result<Status, FetchError> {
    ask(socket, &Request::Status { only_used: false }, Some(PATIENCE))
}

/// Fetches the status without disciplines that no packet has come to. With thousands of classes this is much
/// faster.
///
/// # Errors
/// Fails as [`fetch`] does.
pub fn fetch_used(socket: &Path) -> Result<Status, FetchError> {
    ask(socket, &Request::Status { only_used: true }, Some(PATIENCE))
}

/// Fetches the descriptions of the trees, and their revision. No counters are read.
///
/// # Errors
/// Fails as [`fetch`] does.
pub fn fetch_trees(socket: &Path) -> Result<TreesStatus, FetchError> {
    // Those of many thousand classes take a while.
    ask(socket, &Request::Trees, None)
}

/// Has the run that listens at `socket` change its trees, and waits until it has: see [`Request::Change`].
///
/// # Errors
/// Fails if no process answers, if the answer is not one, or if the process belongs to neither this user nor
/// root. A change that is refused is an answer.
pub fn ask_change(socket: &Path, from: Option<&str>, lines: &[String]) -> Result<Answer, FetchError> {
    ask_change_of(socket, from, lines, None)
}

/// Does the same if the trees have this revision.
///
/// # Errors
/// Fails as [`ask_change`] does. A change of another revision is refused, which is an answer.
pub fn ask_change_of(
    socket: &Path,
    from: Option<&str>,
    lines: &[String],
    if_revision: Option<u64>,
) -> Result<Answer, FetchError> {
    let request = Request::Change {
        from: from.map(str::to_owned),
        lines: lines.to_vec(),
        if_revision,
    };
    // To plan a change of many thousand classes takes seconds.
    ask(socket, &request, None)
}

/// Has the run that listens at `socket` carry out an order about reservations: see [`Request::Reserve`].
///
/// # Errors
/// Fails as [`ask_change`] does. An order that is refused is an answer.
pub fn ask_reserve(socket: &Path, from: Option<&str>, order: ReserveOrder) -> Result<Reserved, FetchError> {
    let request = Request::Reserve {
        from: from.map(str::to_owned),
        order,
        if_revision: None,
    };
    ask(socket, &request, None)
}

/// Asks the run that listens at `socket` for its first `limit` flows: see [`Request::Flows`].
///
/// # Errors
/// Fails as [`fetch`] does.
pub fn fetch_flows(socket: &Path, order: FlowOrder, limit: u32) -> Result<FlowsStatus, FetchError> {
    ask(socket, &Request::Flows { order, limit }, Some(PATIENCE))
}

/// Asks the run that listens at `socket` for its last packets: see [`Request::Packets`]. If the run keeps
/// none, the answer is why.
///
/// # Errors
/// Fails as [`fetch`] does.
pub fn fetch_packets(
    socket: &Path,
    last: Option<Duration>,
    from: Option<&str>,
) -> Result<Result<Vec<u8>, Answer>, FetchError> {
    let last_us = last.map(|last| u64::try_from(last.as_micros()).unwrap_or(u64::MAX));
    let from = from.map(str::to_owned);
    let (stream, process) = connect(socket, &Request::Packets { last_us, from }, Some(PATIENCE))?;
    let bytes = read_whole(stream, process)?;
    Ok(match bytes.starts_with(PCAPNG) {
        true => Ok(bytes),
        false => Err(understood(&bytes)?),
    })
}

/// The first bytes of a capture in pcapng.
const PCAPNG: &[u8] = &[0x0a, 0x0d, 0x0d, 0x0a];

/// Sends a request and returns the answer. `patience` is how long it may take.
fn ask<A: DeserializeOwned>(
    socket: &Path,
    request: &Request,
    patience: Option<Duration>,
) -> Result<A, FetchError> {
    let (stream, process) = connect(socket, request, patience)?;
    read_answer(stream, process)
}

/// Sends a request. Returns the connection, and the process that answers.
fn connect(
    socket: &Path,
    request: &Request,
    patience: Option<Duration>,
) -> Result<(UnixStream, i32), FetchError> {
    let length = socket.as_os_str().len();
    if length > LONGEST_PATH {
        return Err(FetchError::LongPath(length));
    }
    let mut stream = UnixStream::connect(socket)?;
    let peer = getsockopt(&stream, sockopt::PeerCredentials).map_err(io::Error::from)?;
    if !is_trusted(Uid::from_raw(peer.uid()), socket) {
        return Err(FetchError::Stranger(peer.uid()));
    }
    stream.set_read_timeout(patience)?;
    let bytes = serde_json::to_vec(request).map_err(io::Error::from)?;
    // A run that serves too many clients has ended the connection: the answer is missing then.
    let _ = stream
        .write_all(&bytes)
        .and_then(|()| stream.shutdown(std::net::Shutdown::Write));
    Ok((stream, peer.pid()))
}

fn read_answer<A: DeserializeOwned>(stream: UnixStream, process: i32) -> Result<A, FetchError> {
    // A document of many megabytes is read faster as a whole than byte by byte.
    understood(&read_whole(stream, process)?)
}

fn read_whole(stream: UnixStream, process: i32) -> Result<Vec<u8>, FetchError> {
    let mut bytes = Vec::new();
    (&stream)
        .read_to_end(&mut bytes)
        .map_err(|error| unanswered(error, process))?;
    Ok(bytes)
}

fn understood<A: DeserializeOwned>(bytes: &[u8]) -> Result<A, FetchError> {
    serde_json::from_slice(bytes).map_err(|error| FetchError::Io(error.into()))
}

fn unanswered(error: io::Error, process: i32) -> FetchError {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => FetchError::Silent {
            process,
            stopped: is_stopped(process),
        },
        _ => FetchError::Io(error),
    }
}

/// Has the run that listens at `socket` say at each interval what its classes did.
///
/// # Errors
/// Fails if no process answers, or if the process belongs to neither this user nor root.
pub fn record(socket: &Path, interval: Duration) -> Result<Recordings, FetchError> {
    let interval_us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
    let (stream, process) = connect(
        socket,
        &Request::Record { interval_us },
        Some(PATIENCE.saturating_add(interval)),
    )?;
    Ok(Recordings {
        lines: BufReader::new(stream),
        process,
    })
}

/// The intervals of a recording, as they end. It ends with the run.
#[derive(Debug)]
pub struct Recordings {
    lines: BufReader<UnixStream>,
    process: i32,
}

impl Recordings {
    /// Returns a function that ends the recording from another thread.
    ///
    /// # Errors
    /// Fails if this process has too many open files.
    pub fn stopper(&self) -> io::Result<impl Fn() + Send + 'static> {
        let stream = self.lines.get_ref().try_clone()?;
        Ok(move || {
            // It fails only if the run has ended the connection.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        })
    }
}

impl Iterator for Recordings {
    type Item = Result<Recorded, FetchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => None,
            // The run was killed while it wrote.
            Ok(_) if !line.ends_with('\n') => None,
            Ok(_) => Some(serde_json::from_str(&line).map_err(|error| FetchError::Io(error.into()))),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => Some(Err(unanswered(error, self.process))),
        }
    }
}

/// Returns whether a signal has stopped a process (proc_pid_stat(5): the field after the name in
/// parentheses).
fn is_stopped(process: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = text.rsplit(") ").next().unwrap_or_default();
    state.starts_with(['T', 't'])
}

/// A unix socket that is listened at. Its file is removed on drop.
#[derive(Debug)]
pub struct Listening {
    listener: Arc<UnixListener>,
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
            listener: Arc::new(listener),
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

/// The ends of a worker's logs.
#[derive(Debug)]
pub(crate) struct Taps {
    /// The log of sojourn times for recordings.
    pub(crate) delays: DelayTap,
    /// The log of packets.
    pub(crate) packets: PacketTap,
}

/// Serves the status at a socket, which is removed on drop.
#[derive(Debug)]
pub(crate) struct Server {
    /// Dropped when the reserver is told to end.
    _listening: Listening,
    /// Readable when a client wants a reading.
    wanted: Arc<EventFd>,
    readings: Sender<RunReading>,
    inside: Inside,
    /// Ended on drop.
    reserver: Option<Reserver>,
}

impl Server {
    /// Listens at `path`, as of [`Listening::at`]. Returns the logs of each worker, too.
    pub(crate) fn bind(
        path: &Path,
        control: Option<Control>,
        workers: usize,
        packet_log: Option<PacketLog>,
    ) -> Result<(Server, Vec<Taps>), LiveError> {
        let system = || LiveError::io(format!("listening at {}", path.display()));
        let listening = Listening::at(path)?;
        let wanted = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(LiveError::system("preparing the status socket"))?;
        let (readings, made) = mpsc::channel();
        let wanted = Arc::new(wanted);
        let for_clients = Arc::clone(&listening.listener);
        let reserver = control.as_ref().map(|control| control.reserver.clone());
        if let Some(reserver) = reserver.clone() {
            thread::Builder::new()
                .name("reservations".to_owned())
                .spawn(move || reserver.watch())
                .map_err(system())?;
        }
        let (delays, desk, count) = delays::ends(workers);
        thread::Builder::new()
            .name("delays".to_owned())
            .spawn(count)
            .map_err(system())?;
        let (packets, packet_desk, take_in) = packets::ends(workers, packet_log);
        thread::Builder::new()
            .name("packets".to_owned())
            .spawn(take_in)
            .map_err(system())?;
        let taps = delays.into_iter().zip(packets);
        let taps = taps.map(|(delays, packets)| Taps { delays, packets }).collect();
        let desk = Arc::new(Desk::new(Arc::clone(&wanted), made, control, desk, packet_desk));
        let inside = Inside(Arc::clone(&desk));
        thread::Builder::new()
            .name("status".to_owned())
            .spawn(move || serve(&for_clients, &desk))
            .map_err(system())?;
        let server = Server {
            _listening: listening,
            wanted,
            readings,
            inside,
            reserver,
        };
        Ok((server, taps))
    }

    /// Returns the handle for other threads of this process.
    pub(crate) fn inside(&self) -> Inside {
        self.inside.clone()
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

/// Why there are no last packets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoPackets {
    /// The run does not keep them.
    #[error("the run keeps no packets")]
    NotKept,
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
    /// No direction is from this interface.
    #[error("no direction is from `{from}`")]
    NoDirection {
        /// The interface.
        from: String,
        /// The interfaces that there are.
        ends: [String; 2],
    },
}

impl NoPackets {
    /// Returns what to do.
    pub fn remedy(&self) -> String {
        match self {
            NoPackets::NotKept => "add packet_log = \"30s\" to [run], and start the run again".to_owned(),
            NoPackets::Ended => "start it again".to_owned(),
            NoPackets::NoDirection { ends, .. } => format!("name {} or {}", ends[0], ends[1]),
        }
    }
}

/// Asks a run from within its process what clients ask at its socket. Calls wait for the forwarding thread.
#[derive(Clone)]
pub struct Inside(Arc<Desk>);

impl Inside {
    /// Returns the status, or nothing if the run has ended.
    pub fn status(&self, detail: Detail) -> Option<Status> {
        Some(Status::of_reading(self.0.reading()?, detail))
    }

    /// Returns the trees.
    pub fn trees(&self) -> TreesStatus {
        self.control().trees()
    }

    /// Changes the trees for `who`, as [`Request::Change`] says.
    pub fn change(
        &self,
        who: &str,
        from: Option<&str>,
        lines: &[String],
        if_revision: Option<u64>,
    ) -> Answer {
        self.control().change(who, from, lines, if_revision)
    }

    /// Changes to the trees of the plan that `new` makes from the running one, for `who`. `what` says in the
    /// audit what was asked for. If the trees have another revision than the expected one, nothing changes.
    pub fn replace(
        &self,
        who: &str,
        what: &str,
        if_revision: Option<u64>,
        new: impl FnOnce(&Plan) -> Result<Plan, FileError>,
    ) -> Answer {
        self.control().replace(who, what, if_revision, new)
    }

    /// Returns the revision of the trees.
    pub fn revision(&self) -> u64 {
        self.control().reserver.changer().plan().revision
    }

    /// Carries out an order about reservations for `who`, as [`Request::Reserve`] says.
    pub fn reserve(
        &self,
        who: &str,
        from: Option<&str>,
        order: ReserveOrder,
        if_revision: Option<u64>,
    ) -> Reserved {
        self.control().reserve(who, from, order, if_revision)
    }

    /// Returns the first `limit` flows. The first call may take a second. Returns nothing if the run has
    /// ended.
    pub fn flows(&self, order: FlowOrder, limit: usize) -> Option<FlowsStatus> {
        self.0.flows(order, limit)
    }

    /// Returns whether the last packets are kept.
    pub fn keeps_packets(&self) -> bool {
        self.0.packets.keeps_packets()
    }

    /// Returns the packets of the last time of this length, at most those that are kept, as a capture in
    /// pcapng. `from` is the interface that has received them. Without it, packets of both are returned.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn last_packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, NoPackets> {
        self.0.last_packets(last, from)
    }

    /// Returns the tree of the direction that receives from this interface, if there is one.
    pub fn tree(&self, from: &str) -> Option<Spec> {
        let plan = self.control().reserver.changer().plan();
        let side = plan.ends.iter().position(|end| end.title() == from)?;
        Some(plan.queues[side].clone())
    }

    fn control(&self) -> &Control {
        self.0.control.as_ref().expect("only a test serves without it")
    }
}

/// Prints the name of the type only.
impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}

/// What the threads of clients share.
struct Desk {
    wanted: Arc<EventFd>,
    /// Locked while a reading is made, so that there is one at a time.
    made: Mutex<Receiver<RunReading>>,
    control: Option<Control>,
    delays: Arc<DelayDesk>,
    packets: Arc<PacketDesk>,
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
    fn new(
        wanted: Arc<EventFd>,
        made: Receiver<RunReading>,
        control: Option<Control>,
        delays: Arc<DelayDesk>,
        packets: Arc<PacketDesk>,
    ) -> Desk {
        Desk {
            wanted,
            made: Mutex::new(made),
            control,
            delays,
            packets,
            served: AtomicUsize::new(0),
        }
    }

    /// Reads the request of a client and answers it, as long as the client reads.
    fn answer(&self, mut client: UnixStream) -> io::Result<()> {
        let request = control::read(&heard(&client)?);
        client.set_write_timeout(Some(PATIENCE))?;
        match (request, &self.control) {
            (
                Ok(Request::Change {
                    from,
                    lines,
                    if_revision,
                }),
                Some(control),
            ) => {
                let answer = control.change(&who(&client), from.as_deref(), &lines, if_revision);
                send(&mut client, &answer)
            }
            (
                Ok(Request::Reserve {
                    from,
                    order,
                    if_revision,
                }),
                Some(control),
            ) => {
                let answer = control.reserve(&who(&client), from.as_deref(), order, if_revision);
                send(&mut client, &answer)
            }
            (Ok(Request::Flows { order, limit }), _) => match self.flows(order, limit as usize) {
                Some(flows) => send(&mut client, &flows),
                None => Ok(()),
            },
            (Ok(Request::Packets { last_us, from }), _) => {
                match self.last_packets(last_us.map(Duration::from_micros), from.as_deref()) {
                    Ok(capture) => client.write_all(&capture),
                    Err(NoPackets::Ended) => Ok(()),
                    Err(error) => send(&mut client, &refused(error.to_string(), &error.remedy())),
                }
            }
            (Ok(Request::Trees), Some(control)) => send(&mut client, &control.trees()),
            (Ok(Request::Record { interval_us }), _) if interval_us < SHORTEST_INTERVAL_US => {
                let message = format!("an interval of {interval_us} us is too short");
                let help = format!("record intervals of at least {SHORTEST_INTERVAL_US} us");
                send(&mut client, &refused(message, &help))
            }
            (Ok(Request::Record { interval_us }), _) => {
                self.record(&mut client, Duration::from_micros(interval_us))
            }
            (Err(refused), _) => send(&mut client, &refused),
            (Ok(Request::Status { only_used }), _) => {
                let detail = if only_used { Detail::Used } else { Detail::All };
                match self.reading() {
                    Some(reading) => send(&mut client, &Status::of_reading(reading, detail)),
                    None => Ok(()),
                }
            }
            // Only a test serves without it.
            (Ok(Request::Change { .. } | Request::Reserve { .. } | Request::Trees), None) => Ok(()),
        }
    }

    /// Tells a client at each interval what each class did, until the client goes or the run ends.
    fn record(&self, client: &mut UnixStream, interval: Duration) -> io::Result<()> {
        let delays = self.delays.subscribe();
        let mut recording = Recording::default();
        let mut next = Instant::now();
        while let Some(reading) = self.reading() {
            let sent: Vec<u64> = reading.sent.iter().map(|sent| sent.delays).collect();
            let delays = delays.take(&sent);
            let line = Recorded::Interval(recording.interval(reading, &delays));
            send(client, &line)?;
            // If a reading takes longer than an interval, the next one begins at once.
            next = (next + interval).max(Instant::now());
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    fn flows(&self, order: FlowOrder, limit: usize) -> Option<FlowsStatus> {
        self.packets.observe_flows();
        let reading = self.reading()?;
        self.wait_for_packets(&reading);
        let queues = QueueNames::of(&reading);
        let [left, right] = &reading.directions;
        let ends = [left.from.as_str(), right.from.as_str()];
        Some(self.packets.flows(order, limit, ends, &|worker, side, node| {
            queues.name(worker, side, node)
        }))
    }

    /// Waits until all is taken in that the workers had noted before a reading.
    fn wait_for_packets(&self, reading: &RunReading) {
        let sent: Vec<u64> = reading.sent.iter().map(|sent| sent.packets).collect();
        self.packets.wait(&sent);
    }

    fn last_packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, NoPackets> {
        if !self.packets.keeps_packets() {
            return Err(NoPackets::NotKept);
        }
        let reading = self.reading().ok_or(NoPackets::Ended)?;
        self.wait_for_packets(&reading);
        let queues = QueueNames::of(&reading);
        let [left, right] = &reading.directions;
        let ends = [left.from.as_str(), right.from.as_str()];
        if let Some(from) = from
            && !ends.contains(&from)
        {
            return Err(NoPackets::NoDirection {
                from: from.to_owned(),
                ends: ends.map(str::to_owned),
            });
        }
        let now = clock::now();
        let capture = packets::pcapng(
            &self.packets.last_packets(last, now),
            &reading.plan.name,
            ends,
            from,
            &|worker, side, node| queues.name(worker, side, node),
            clock::since_epoch(now),
        );
        Ok(capture.expect("memory takes all bytes"))
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

/// Returns who the client is, for the audit.
fn who(client: &UnixStream) -> String {
    match getsockopt(client, sockopt::PeerCredentials) {
        Ok(peer) => who_is(peer.uid(), peer.pid()),
        Err(_) => "a client that has gone".to_owned(),
    }
}

/// Names a client by its user and process.
pub fn who_is(user: u32, process: i32) -> String {
    format!("uid {user}, pid {process}")
}

/// Sends a document as one line.
fn send(client: &mut UnixStream, document: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(document).map_err(io::Error::from)?;
    bytes.push(b'\n');
    client.write_all(&bytes)
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
        if let Some(reserver) = &self.reserver {
            reserver.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::live;

    #[test]
    fn only_a_dead_socket_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("precious.txt");
        fs::write(&file, "precious").unwrap();
        assert!(matches!(
            Server::bind(&file, None, 1, None),
            Err(LiveError::NoSocket { .. })
        ));
        assert_eq!(fs::read(&file).unwrap(), b"precious");

        let dead = folder.path().join("dead.sock");
        drop(UnixListener::bind(&dead).unwrap());
        let server = Server::bind(&dead, None, 1, None).unwrap();
        assert_eq!(fs::metadata(&dead).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(
            Server::bind(&dead, None, 1, None),
            Err(LiveError::SocketInUse { .. })
        ));
        // A symbolic link to a dead socket is not a socket.
        let link = folder.path().join("link.sock");
        std::os::unix::fs::symlink(&dead, &link).unwrap();
        assert!(matches!(
            Server::bind(&link, None, 1, None),
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

    #[test]
    fn a_path_that_is_too_long_is_reported() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        assert!(matches!(fetch(&path), Err(FetchError::LongPath(125))));
        let error = Server::bind(&path, None, 1, None).unwrap_err();
        assert!(error.to_string().contains("at most 107 bytes"), "{error}");
    }
}
