//! Asks a run at its socket.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Uid;
use serde::de::DeserializeOwned;

use super::document::Status;
use super::fetch_error::{FetchError, LONGEST_PATH};
use super::place::is_trusted;
use super::protocol::{Answer, Recorded, Request, ReserveOrder, Reserved, TreesStatus};
use crate::packets::{FlowOrder, FlowsStatus};

/// How long to wait for an answer. A run answers between two packets; a stopped process never does.
const PATIENCE: Duration = Duration::from_secs(5);

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

/// Has the run that listens at `socket` read its configuration again, and waits until it has.
///
/// # Errors
/// Fails as [`ask_change`] does. A configuration that is refused is an answer.
pub fn ask_reload(socket: &Path) -> Result<Answer, FetchError> {
    // To read a long list of subscribers takes seconds.
    ask(socket, &Request::Reload, None)
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_path_that_is_too_long_is_reported() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        assert!(matches!(fetch(&path), Err(FetchError::LongPath(125))));
    }
}
