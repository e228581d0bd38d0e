//! The status socket of a run. It answers one request of each client ([`wire`](super::wire)) and closes the
//! connection. A client that says nothing gets the status, so that `socat - UNIX:PATH` is a sufficient
//! client.
//!
//! Threads of ordinary priority accept clients, ask the run and write its answers.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairgate_live::LiveError;
use fairgate_run_api::{Ask, LocalRun, Mistake, Recorder, Refused, SHORTEST_INTERVAL_US};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};

use super::listening::Listening;
use super::wire::{self, Reply, Request};
use crate::run::Reserver;

/// How long a client may take to read or write.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client may say nothing before it gets the status.
const SILENCE: Duration = Duration::from_secs(1);

/// The maximum number of clients that are served at the same time. Further ones are disconnected.
const MOST_CLIENTS: usize = 16;

/// The longest request, bytes. A change of all classes of a large tree has less.
const LONGEST_REQUEST: usize = 16 << 20;

/// Serves a run at its status socket, which is removed on drop.
#[derive(Debug)]
pub struct StatusServer {
    /// Dropped when the reserver is told to end.
    _listening: Listening,
    /// Ended on drop.
    reserver: Reserver,
}

impl StatusServer {
    /// Listens at `path`. From now on reservations end when nobody refreshes them.
    ///
    /// # Errors
    /// Fails if another process listens there, or if the socket can't be created.
    pub fn start(
        path: &Path,
        run: impl Ask<Error = Refused, Recording = Recorder> + 'static,
        reserver: Reserver,
    ) -> Result<StatusServer, LiveError> {
        let system = || LiveError::io(format!("listening at {}", path.display()));
        let listening = Listening::at(path, None)?;
        let for_clients = listening.listener().try_clone().map_err(system())?;
        let watching = reserver.clone();
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn(work).map_err(system())
        };
        start("reservations", Box::new(move || watching.watch()))?;
        let run: Arc<LocalRun> = Arc::new(run);
        start("status", Box::new(move || serve(&for_clients, &run)))?;
        Ok(StatusServer {
            _listening: listening,
            reserver,
        })
    }
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        self.reserver.end();
    }
}

/// Accepts clients until the listener is shut down. A thread serves each.
fn serve(listener: &UnixListener, run: &Arc<LocalRun>) {
    let served = Arc::new(AtomicUsize::new(0));
    for client in listener.incoming() {
        match client {
            Ok(_) if served.load(Ordering::Acquire) >= MOST_CLIENTS => {}
            Ok(client) => {
                served.fetch_add(1, Ordering::AcqRel);
                let (run, of_client) = (Arc::clone(run), Arc::clone(&served));
                let serve = move || {
                    // A client that has gone or reads nothing is none of the run's business.
                    let _ = answer(&*run, client);
                    of_client.fetch_sub(1, Ordering::AcqRel);
                };
                if thread::Builder::new()
                    .name("status".to_owned())
                    .spawn(serve)
                    .is_err()
                {
                    served.fetch_sub(1, Ordering::AcqRel);
                }
            }
            Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => return,
            // Too many open files, for example.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Reads the request of a client and answers it, as long as the client reads.
fn answer(run: &LocalRun, mut client: UnixStream) -> io::Result<()> {
    let request = wire::read(&heard(&client)?);
    client.set_write_timeout(Some(PATIENCE))?;
    let answer = match request {
        Ok(Request::Ask(question)) => run.ask(&who(&client), *question),
        Ok(Request::Record { interval_us }) if interval_us < SHORTEST_INTERVAL_US => {
            let message = format!("an interval of {interval_us} us is too short");
            let help = format!("record intervals of at least {SHORTEST_INTERVAL_US} us");
            Err(Mistake::new(message, help).into())
        }
        Ok(Request::Record { interval_us }) => {
            let interval = Duration::from_micros(interval_us);
            match run.record(interval) {
                Ok(recorder) => return record(recorder, &mut client, interval),
                Err(refused) => Err(refused),
            }
        }
        Err(refused) => Err(refused),
    };
    match wire::write(answer)? {
        Some(bytes) => client.write_all(&bytes),
        None => Ok(()),
    }
}

/// Tells a client at each interval what each class did, until the client goes or the run ends.
fn record(recorder: Recorder, client: &mut UnixStream, interval: Duration) -> io::Result<()> {
    let mut next = Instant::now();
    for done in recorder {
        client.write_all(&wire::line(&Reply::Interval(done))?)?;
        // If a reading takes longer than an interval, the next one begins at once.
        next = (next + interval).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Returns what a client says: up to the end of its side, or of a line.
fn heard(mut client: &UnixStream) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    client.set_read_timeout(Some(SILENCE))?;
    while request.len() < LONGEST_REQUEST && !request.ends_with(b"\n") {
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
pub(crate) fn who_is(user: u32, process: i32) -> String {
    format!("uid {user}, pid {process}")
}
