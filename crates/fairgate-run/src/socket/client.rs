//! Asks a run at its status socket.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairgate_run_api::{
    Answer, Ask, Change, ChangeMade, Detail, FlowsStatus, Interval, Question, Refused, Status, TreesStatus,
    Unexpected, ask,
};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Uid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fetch_error::{FetchError, LONGEST_PATH};
use super::place::is_trusted;
use super::wire::{Reply, Stream};

/// How long to wait for an answer. A run answers between two packets; a stopped process never does.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first bytes of a capture in pcapng.
const PCAPNG: &[u8] = &[0x0a, 0x0d, 0x0d, 0x0a];

/// The run that listens at a status socket. Its methods fail if no process answers, if the answer is not one,
/// or if the process belongs to neither this user nor root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSocket(PathBuf);

impl RunSocket {
    /// Returns the run at `socket`. Nothing is asked yet.
    pub fn at(socket: impl Into<PathBuf>) -> RunSocket {
        RunSocket(socket.into())
    }

    /// Returns where the socket is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Ask for RunSocket {
    type Error = FetchError;
    type Recording = Recordings;

    fn ask(&self, _who: &str, question: Question) -> Result<Answer, FetchError> {
        let patience = match &question {
            Question::Status { .. } | Question::Flows { .. } | Question::Packets { .. } => Some(PATIENCE),
            // To plan a change of many thousand classes, and to write them, takes seconds.
            _ => None,
        };
        let (stream, process) = connect(&self.0, &question, patience)?;
        let bytes = read_whole(stream, process)?;
        match question {
            Question::Status { .. } => understood::<Status>(&bytes).map(Answer::from),
            Question::Trees => understood::<TreesStatus>(&bytes).map(Answer::from),
            Question::Flows { .. } => understood::<FlowsStatus>(&bytes).map(Answer::from),
            Question::Packets { .. } if bytes.starts_with(PCAPNG) => Ok(bytes.into()),
            _ => match understood(&bytes)? {
                Reply::Changed(made) => Ok(made.into()),
                Reply::Reservations(reservations) => Ok(reservations.into()),
                reply => Err(refused(reply)),
            },
        }
    }

    /// The first interval, which has no rows, says that the run records.
    fn record(&self, interval: Duration) -> Result<Recordings, FetchError> {
        let interval_us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        let (stream, process) = connect(
            &self.0,
            &Stream::Record { interval_us },
            Some(PATIENCE.saturating_add(interval)),
        )?;
        Ok(Recordings {
            lines: BufReader::new(stream),
            process,
        })
    }
}

/// Fetches the status of the run that listens at `socket`.
///
/// # Errors
/// Fails as of [`RunSocket`].
pub fn fetch(socket: &Path) -> Result<Status, FetchError> {
    ask(
        &RunSocket::at(socket),
        "",
        Question::Status { detail: Detail::All },
    )
}

/// Has the run that listens at `socket` change its trees, and waits until it has.
///
/// # Errors
/// Fails as of [`RunSocket`], or with [`FetchError::Refused`].
pub fn ask_change(socket: &Path, from: Option<&str>, lines: &[String]) -> Result<ChangeMade, FetchError> {
    let change = Change {
        from: from.map(str::to_owned),
        lines: lines.to_vec(),
        if_revision: None,
    };
    ask(&RunSocket::at(socket), "", Question::Change(change))
}

/// Returns why a run refuses.
fn refused(reply: Reply) -> FetchError {
    match reply {
        Reply::Stale { revision } => Refused::Stale { revision }.into(),
        Reply::Refused { errors } => Refused::Mistakes(errors).into(),
        _ => Unexpected.into(),
    }
}

fn interval(reply: Reply) -> Result<Interval, FetchError> {
    match reply {
        Reply::Interval(interval) => Ok(interval),
        reply => Err(refused(reply)),
    }
}

/// Sends a request. Returns the connection, and the process that answers.
fn connect(
    socket: &Path,
    request: &impl Serialize,
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
    type Item = Result<Interval, FetchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => None,
            // The run was killed while it wrote.
            Ok(_) if !line.ends_with('\n') => None,
            Ok(_) => Some(understood(line.as_bytes()).and_then(interval)),
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
