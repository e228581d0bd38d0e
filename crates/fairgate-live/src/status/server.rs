//! The socket of a run. It answers one request of each client ([`protocol`](super::protocol)) and closes the
//! connection. A client that says nothing gets the status, so that `socat - UNIX:PATH` is a sufficient
//! client.
//!
//! Threads of ordinary priority accept clients, plan changes, make the document and write it. The
//! forwarding thread is only asked for a reading of its counters, which it makes in steps.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{getsockopt, sockopt};
use serde::Serialize;

use super::control::{self, Control, LONGEST_REQUEST, refused};
use super::delays::{self, DelayTap};
use super::desk::{Desk, NoPackets, Recorder};
use super::document::{Detail, Status};
use super::inside::Inside;
use super::listening::Listening;
use super::protocol::{Recorded, Request, SHORTEST_INTERVAL_US};
use super::reading::RunReading;
use crate::config::Plan;
use crate::error::LiveError;
use crate::nat::Translations;
use crate::packets::{self, PacketTap};
use crate::reserve::Reserver;

/// How long a client may take to read or write.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client may say nothing before it gets the status.
const SILENCE: Duration = Duration::from_secs(1);

/// The maximum number of clients that are served at the same time. Further ones are disconnected.
const MOST_CLIENTS: usize = 16;

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
    reserver: Reserver,
}

impl Server {
    /// Listens at `path`, as of [`Listening::at`]. Returns the logs of each worker, too.
    pub(crate) fn bind(
        path: &Path,
        control: Control,
        plan: &Plan,
        translations: Option<Arc<Translations>>,
    ) -> Result<(Server, Vec<Taps>), LiveError> {
        let workers = usize::from(plan.workers);
        let system = || LiveError::io(format!("listening at {}", path.display()));
        let listening = Listening::at(path, None)?;
        let wanted = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(LiveError::system("preparing the status socket"))?;
        let (readings, made) = mpsc::channel();
        let wanted = Arc::new(wanted);
        let for_clients = listening.listener().try_clone().map_err(system())?;
        let reserver = control.reserver.clone();
        let watching = reserver.clone();
        thread::Builder::new()
            .name("reservations".to_owned())
            .spawn(move || watching.watch())
            .map_err(system())?;
        let (delays, desk, count) = delays::ends(workers);
        thread::Builder::new()
            .name("delays".to_owned())
            .spawn(count)
            .map_err(system())?;
        let (packets, packet_desk, take_in) = packets::ends(workers, plan.packet_log, translations);
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

impl Drop for Server {
    fn drop(&mut self) {
        self.reserver.end();
    }
}

/// Accepts clients until the listener is shut down. A thread serves each.
fn serve(listener: &UnixListener, desk: &Arc<Desk>) {
    let served = Arc::new(AtomicUsize::new(0));
    for client in listener.incoming() {
        match client {
            Ok(_) if served.load(Ordering::Acquire) >= MOST_CLIENTS => {}
            Ok(client) => {
                served.fetch_add(1, Ordering::AcqRel);
                let (desk, of_client) = (Arc::clone(desk), Arc::clone(&served));
                let serve = move || {
                    // A client that has gone or reads nothing is none of the run's business.
                    let _ = answer(&desk, client);
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
fn answer(desk: &Arc<Desk>, mut client: UnixStream) -> io::Result<()> {
    let request = control::read(&heard(&client)?);
    client.set_write_timeout(Some(PATIENCE))?;
    match request {
        Ok(Request::Change {
            from,
            lines,
            if_revision,
        }) => {
            let answer = desk
                .control
                .change(&who(&client), from.as_deref(), &lines, if_revision);
            send(&mut client, &answer)
        }
        Ok(Request::Reload) => {
            let answer = desk.control.reload(&who(&client));
            send(&mut client, &answer)
        }
        Ok(Request::Reserve {
            from,
            order,
            if_revision,
        }) => {
            let answer = desk
                .control
                .reserve(&who(&client), from.as_deref(), order, if_revision);
            send(&mut client, &answer)
        }
        Ok(Request::Flows { order, limit }) => match desk.flows(order, limit as usize) {
            Some(flows) => send(&mut client, &flows),
            None => Ok(()),
        },
        Ok(Request::Packets { last_us, from }) => {
            match desk.last_packets(last_us.map(Duration::from_micros), from.as_deref()) {
                Ok(capture) => client.write_all(&capture),
                Err(NoPackets::Ended) => Ok(()),
                Err(error) => send(&mut client, &refused(error.to_string(), &error.remedy())),
            }
        }
        Ok(Request::Trees) => send(&mut client, &desk.control.trees()),
        Ok(Request::Record { interval_us }) if interval_us < SHORTEST_INTERVAL_US => {
            let message = format!("an interval of {interval_us} us is too short");
            let help = format!("record intervals of at least {SHORTEST_INTERVAL_US} us");
            send(&mut client, &refused(message, &help))
        }
        Ok(Request::Record { interval_us }) => record(
            &mut desk.recorder(),
            &mut client,
            Duration::from_micros(interval_us),
        ),
        Err(refused) => send(&mut client, &refused),
        Ok(Request::Status { only_used }) => {
            let detail = if only_used { Detail::Used } else { Detail::All };
            match desk.reading() {
                Some(reading) => send(&mut client, &Status::of_reading(reading, detail)),
                None => Ok(()),
            }
        }
    }
}

/// Tells a client at each interval what each class did, until the client goes or the run ends.
fn record(recorder: &mut Recorder, client: &mut UnixStream, interval: Duration) -> io::Result<()> {
    let mut next = Instant::now();
    while let Some(done) = recorder.interval() {
        send(client, &Recorded::Interval(done))?;
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
