//! The other end of a measurement: `fairgate tune --serve`.
//!
//! Anybody may reach it, so everything is limited: one measurement at a time, for at most
//! [`MOST_BINS`](wire::MOST_BINS) bins, with at most [`MOST_BYTES`]; at most [`MOST_CONNECTIONS`], each of
//! which must begin with a whole request within [`PATIENCE`]. A probe is answered only with the token of the
//! measurement and from the address that has opened it, and with no more bytes than it had.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::tune::error::TuneError;
use crate::tune::flood::{CHUNK, flood, is_timeout};
use crate::tune::record::{Record, Side};
use crate::tune::wire::{self, Opened, Probe, Request, Token, What};

/// The most connections at a time, of all clients.
const MOST_CONNECTIONS: usize = 64;
/// The most bytes of a measurement, both directions together.
const MOST_BYTES: u64 = 256 << 30;
/// The longest time for which one connection sends or receives.
pub(crate) const LONGEST_LOAD: Duration = Duration::from_secs(35);
/// How long a client may take for a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a waiting thread looks whether it is to end.
const TICK: Duration = Duration::from_millis(100);
/// The lock is held for a moment only, and what it guards is whole at any time.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A measurement.
struct Session {
    token: Token,
    client: IpAddr,
    record: Record,
    /// Payload of both directions.
    bytes: AtomicU64,
    probes: AtomicU64,
    is_over: AtomicBool,
}

impl Session {
    fn open(client: IpAddr) -> io::Result<Session> {
        let mut token = Token::default();
        File::open("/dev/urandom")?.read_exact(&mut token)?;
        Ok(Session {
            token,
            client,
            record: Record::begin(),
            bytes: AtomicU64::new(0),
            probes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    /// Returns whether nothing more is to be sent or received.
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
            || self.record.is_full()
            || self.bytes.load(Ordering::Relaxed) >= MOST_BYTES
    }
}

/// What the server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Served {
    pub(crate) measurements: u64,
    /// Connections that were closed: too many at a time, no request of this version, no token.
    pub(crate) refused: u64,
}

/// A server that listens.
pub(crate) struct Server {
    listener: TcpListener,
    probes: UdpSocket,
    session: Mutex<Option<Arc<Session>>>,
    connections: AtomicUsize,
    measurements: AtomicU64,
    refused: AtomicU64,
    is_over: AtomicBool,
}

/// A connection that counts, until this is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    /// Listens at an address, by TCP and UDP.
    pub(crate) fn listen(address: SocketAddr) -> Result<Server, TuneError> {
        let failed = |source| TuneError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        // With port 0 the kernel has chosen one.
        let at = listener.local_addr().map_err(failed)?;
        let probes = UdpSocket::bind(at).map_err(failed)?;
        probes.set_read_timeout(Some(TICK)).map_err(failed)?;
        // Answers are as long as probes, also to find out which length passes.
        fairgate_live::testbed::send_whole(&probes, at.is_ipv6()).map_err(failed)?;
        Ok(Server {
            listener,
            probes,
            session: Mutex::default(),
            connections: AtomicUsize::new(0),
            measurements: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    /// Returns the address at which it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `is_over`.
    pub(crate) fn serve(&self, is_over: impl Fn() -> bool) -> Result<Served, TuneError> {
        thread::scope(|scope| {
            scope.spawn(|| self.answer_probes());
            let result = loop {
                if is_over() {
                    break Ok(());
                }
                match self.accept() {
                    Ok(Some((stream, client))) => {
                        self.connections.fetch_add(1, Ordering::Relaxed);
                        let counted = Counted(&self.connections);
                        if self.connections.load(Ordering::Relaxed) > MOST_CONNECTIONS {
                            self.refused.fetch_add(1, Ordering::Relaxed);
                            continue;
                        }
                        let attend = move || {
                            let _counted = counted;
                            // A client that goes away is no error of the server's.
                            let _ = self.attend(stream, client.ip());
                        };
                        // Without a thread the connection is closed.
                        let _ = thread::Builder::new().spawn_scoped(scope, attend);
                    }
                    Ok(None) => {}
                    Err(source) => break Err(TuneError::system("accepting a connection")(source)),
                }
            };
            self.is_over.store(true, Ordering::Relaxed);
            if let Some(session) = &*locked(&self.session) {
                session.is_over.store(true, Ordering::Relaxed);
            }
            result
        })?;
        Ok(Served {
            measurements: self.measurements.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        })
    }

    /// Waits for a connection, not longer than a tick.
    fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let mut waiting = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, PollTimeout::from(TICK.as_millis() as u8)) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        match self.listener.accept() {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error) => match error.raw_os_error().map(nix::errno::Errno::from_raw) {
                // Too many files are open. They are closed by and by.
                Some(nix::errno::Errno::EMFILE | nix::errno::Errno::ENFILE | nix::errno::Errno::ENOMEM) => {
                    thread::sleep(TICK);
                    Ok(None)
                }
                // The client has gone, or its network had an error that accept(2) passes on.
                _ => Ok(None),
            },
        }
    }

    /// Answers probes of the open measurement.
    fn answer_probes(&self) {
        let mut datagram = [0; wire::LONGEST_PROBE];
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok((length, from)) = self.probes.recv_from(&mut datagram) else {
                continue;
            };
            let session = locked(&self.session).clone();
            let (Some(session), Some(mut probe)) = (session, Probe::read(&datagram[..length])) else {
                continue;
            };
            if probe.token != session.token || plain(from.ip()) != session.client || session.is_over() {
                continue;
            }
            probe.received = session.record.now().as_nanos() as u64;
            probe.count = session.probes.fetch_add(1, Ordering::Relaxed) + 1;
            probe.answered = session.record.now().as_nanos() as u64;
            probe.write(&mut datagram);
            let answer = probe.answer_length(length);
            // What can't be sent is a probe without an answer.
            let _ = self.probes.send_to(&datagram[..answer], from);
        }
    }

    fn attend(&self, mut stream: TcpStream, client: IpAddr) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let client = plain(client);
        let Some(request) = read_request(&mut stream)? else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        if request.what == What::Open {
            return self.measure(stream, client);
        }
        let session = locked(&self.session).clone();
        let is_of = |session: &Arc<Session>| session.token == request.token && session.client == client;
        let Some(session) = session.filter(is_of) else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        match request.what {
            What::Up => receive(stream, &session),
            What::Down(millis) => {
                let length = Duration::from_millis(millis.into()).min(LONGEST_LOAD);
                send(stream, &session, length)
            }
            What::Ask => stream.write_all(&wire::ASKED),
            What::Open | What::Report => Ok(()),
        }
    }

    /// Opens a measurement and keeps it until its client goes.
    fn measure(&self, mut stream: TcpStream, client: IpAddr) -> io::Result<()> {
        let session = {
            let mut open = locked(&self.session);
            match &*open {
                Some(_) => None,
                None => {
                    let session = Arc::new(Session::open(client)?);
                    *open = Some(Arc::clone(&session));
                    Some(session)
                }
            }
        };
        let Some(session) = session else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return stream.write_all(&Opened::Busy.bytes());
        };
        self.measurements.fetch_add(1, Ordering::Relaxed);
        let result = report(&mut stream, &session);
        session.is_over.store(true, Ordering::Relaxed);
        locked(&self.session).take();
        result
    }
}

/// Sends the token, and then the record as often as it is asked for.
fn report(stream: &mut TcpStream, session: &Session) -> io::Result<()> {
    stream.write_all(&Opened::Token(session.token).bytes())?;
    stream.set_read_timeout(Some(TICK))?;
    let (mut request, mut has) = ([0; wire::REQUEST], 0);
    while !session.is_over() {
        match stream.read(&mut request[has..]) {
            Ok(0) => return Ok(()),
            Ok(more) => has += more,
            Err(error) if is_timeout(&error) => continue,
            Err(error) => return Err(error),
        }
        if has < wire::REQUEST {
            continue;
        }
        has = 0;
        match Request::read(&request) {
            Some(Request {
                what: What::Report,
                token,
            }) if token == session.token => {
                stream.write_all(&wire::report(&session.record.bins()))?;
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Receives what the client sends.
fn receive(mut stream: TcpStream, session: &Session) -> io::Result<()> {
    stream.set_read_timeout(Some(TICK))?;
    let began = Instant::now();
    let mut bytes = vec![0; CHUNK];
    while !session.is_over() && began.elapsed() < LONGEST_LOAD {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                session.bytes.fetch_add(count as u64, Ordering::Relaxed);
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends for so long, and records what is delivered.
fn send(stream: TcpStream, session: &Session, length: Duration) -> io::Result<()> {
    let end = Instant::now() + length;
    let mut watched = session.record.watch(&stream, Side::Sender);
    flood(&stream, |stream, count| {
        session.bytes.fetch_add(count as u64, Ordering::Relaxed);
        watched.look(stream);
        !session.is_over() && Instant::now() < end
    })
}

/// Reads a request. `None` if it is no request.
fn read_request(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut bytes = [0; wire::REQUEST];
    let (mut has, began) = (0, Instant::now());
    // Each read has the timeout, and all of them together, too.
    while has < bytes.len() && began.elapsed() < PATIENCE {
        match stream.read(&mut bytes[has..])? {
            0 => return Ok(None),
            more => has += more,
        }
    }
    Ok(Request::read(&bytes[..has]))
}

/// An IPv4 address at a socket of IPv6 is an IPv4 address.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
