//! The threads that answer: one at the status socket, and one at the endpoints that `[run]` offers, so that
//! their clients can keep no command of this machine waiting. A connection is a task of its thread; what
//! waits for the run is done on further threads, a bounded number for each. If the API is offered, there is
//! also the thread that keeps the history.
//!
//! All of them have ordinary priority, so that the forwarding threads go first. A client that is slow, silent
//! or one of many costs a place at its door ([`places`](super::places)) for a bounded time and nothing else.

use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use fairgate_live::Offer;
use fairgate_run_api::{Audit, LocalRun};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::unistd::{Gid, Uid, User, geteuid, getgrouplist};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::UCred;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use crate::history::{self, HistoryFile, Sampler};
use crate::http::api::{Routes, router};
use crate::http::door::{Door, Doors, Entry};
use crate::http::error::ControlError;
use crate::http::guard::Client;
use crate::http::places::{Origin, Place, Places, Room};
use crate::http::shared::{Shared, new_instance};
use crate::http::streams::Streams;

/// How long the first byte, a handshake or the head of a request may take, each. It is also how long a
/// connection may be idle.
const HEAD: Duration = Duration::from_secs(10);

/// After this time a connection takes no further request.
const LIFETIME: Duration = Duration::from_secs(60);

/// How long its last request may take then, before the connection is cut. An answer without an end is cut
/// when the client does not read it.
const LAST: Duration = Duration::from_secs(60);

/// The most bytes of a head, and the most header fields.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_FIELDS: usize = 64;

/// How many threads of a server ask the run at the same time.
const ASKING: usize = 8;

/// How many clients are told at the same time what the classes do in each interval: at the endpoints, and at
/// the status socket.
const RECORDINGS: u32 = 4;
const STATUS_RECORDINGS: u32 = 16;

/// How long to wait for the threads that ask the run when everything ends.
const GRACE: Duration = Duration::from_secs(1);

/// Answers until it is dropped.
#[derive(Debug)]
pub struct ServerHandle {
    servers: Vec<Server>,
    /// The thread that keeps the history, if the API is offered.
    sampler: Option<Sampler>,
}

/// A thread that answers.
#[derive(Debug)]
struct Server {
    /// The thread ends when this is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        for server in &mut self.servers {
            drop(server.stop.take());
        }
        for server in &mut self.servers {
            if let Some(thread) = server.thread.take() {
                // A panic there was reported there.
                let _ = thread.join();
            }
        }
    }
}

/// A door of the runtime.
enum Open {
    Unix(UnixListener, Option<Gid>),
    Tcp(TcpListener, Option<TlsAcceptor>),
}

impl Doors {
    /// Answers at all doors from now on, on threads of ordinary priority. `audit` is told who was refused. If
    /// the API is offered, the history is kept in `file`.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub fn serve(
        self,
        run: Arc<LocalRun>,
        audit: Audit,
        file: Option<HistoryFile>,
    ) -> Result<ServerHandle, ControlError> {
        start(self.0, &run, &audit, file).map_err(ControlError::Thread)
    }
}

fn start(
    doors: Vec<Door>,
    run: &Arc<LocalRun>,
    audit: &Audit,
    mut file: Option<HistoryFile>,
) -> io::Result<ServerHandle> {
    let is_status = |door: &Door| door.routes == Routes::Questions;
    let (status, offered): (Vec<Door>, Vec<Door>) = doors.into_iter().partition(is_status);
    let mut control = ServerHandle {
        servers: Vec::new(),
        sampler: None,
    };
    let instance = new_instance();
    for (name, recordings, doors) in [
        ("status", STATUS_RECORDINGS, status),
        ("api", RECORDINGS, offered),
    ] {
        if doors.is_empty() {
            continue;
        }
        let shared = Shared::new(Arc::clone(run), audit.clone(), Arc::clone(&instance), recordings);
        if doors
            .iter()
            .any(|door| door.routes == Routes::Offered(Offer::Api))
        {
            let history = Arc::clone(shared.history());
            control.sampler = Some(history::start(Arc::clone(run), history, file.take())?);
        }
        control.servers.push(Server::start(name, doors, shared)?);
    }
    Ok(control)
}

impl Server {
    /// Answers at these doors, on a thread of this name.
    fn start(name: &str, doors: Vec<Door>, shared: Shared) -> io::Result<Server> {
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(ASKING)
            .thread_name(name)
            .build()?;
        let mut sockets = Vec::new();
        let mut open = Vec::new();
        {
            let _inside = runtime.enter();
            for Door { routes, entry, rules } in doors {
                let listener = match entry {
                    Entry::Unix { listening, group } => {
                        let listener = listening.listener().try_clone()?;
                        listener.set_nonblocking(true)?;
                        sockets.push(listening);
                        Open::Unix(UnixListener::from_std(listener)?, group)
                    }
                    Entry::Tcp { listener, tls } => {
                        listener.set_nonblocking(true)?;
                        Open::Tcp(TcpListener::from_std(listener)?, tls)
                    }
                };
                let room = match routes {
                    Routes::Questions => Room::STATUS,
                    Routes::Offered(_) => Room::ENDPOINT,
                };
                open.push((listener, Places::new(room), router(shared.clone(), rules, routes)));
            }
        }
        let answer = move || {
            runtime.block_on(async {
                for (door, places, router) in open {
                    tokio::spawn(accept(door, places, router));
                }
                // It ends with an error when the sender is dropped.
                let _ = stopped.await;
                // A client that does not read gets no more time than others.
                let _ = timeout(GRACE, shared.end_recordings()).await;
            });
            runtime.shutdown_timeout(GRACE);
            // The files of the sockets are removed.
            drop(sockets);
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(answer)?;
        Ok(Server {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// Accepts clients. A task serves each.
async fn accept(door: Open, places: Places, router: Router) {
    loop {
        let accepted = match &door {
            Open::Unix(listener, group) => {
                let accepted = listener.accept().await;
                accepted.and_then(|(stream, _)| Accepted::process(stream, *group))
            }
            Open::Tcp(listener, tls) => {
                let accepted = listener.accept().await;
                accepted.map(|(stream, peer)| Accepted::Tcp(stream, peer.ip(), tls.clone()))
            }
        };
        match accepted {
            Ok(client) => {
                let place = Arc::new(places.enter(client.origin()));
                let router = router.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = client.serve(router, &place) => {}
                        () = place.lost() => {}
                    }
                });
                // In a crowd there is always another client to accept. Those who are here and have said
                // something must be heard before the silent ones lose their places.
                yield_now().await;
            }
            // Too many open files, for example.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

enum Accepted {
    Unix(UnixStream, UCred, Option<Gid>),
    Tcp(TcpStream, IpAddr, Option<TlsAcceptor>),
}

impl Accepted {
    fn process(stream: UnixStream, group: Option<Gid>) -> io::Result<Accepted> {
        let peer = stream.peer_cred()?;
        Ok(Accepted::Unix(stream, peer, group))
    }

    fn origin(&self) -> Origin {
        match self {
            Accepted::Unix(_, peer, _) => Origin::User(peer.uid()),
            Accepted::Tcp(_, address, _) => Origin::of(*address),
        }
    }

    async fn serve(self, router: Router, place: &Arc<Place>) {
        match self {
            Accepted::Unix(stream, peer, group) => {
                let client = Client::Process {
                    user: peer.uid(),
                    process: peer.pid().unwrap_or(0),
                    is_allowed: is_allowed(&peer, group),
                };
                if let Ok(Ok(())) = timeout(HEAD, stream.readable()).await {
                    talk(stream, client, router, place).await;
                }
            }
            Accepted::Tcp(stream, address, tls) => {
                // Answers are short, and written at once.
                let _ = stream.set_nodelay(true);
                let client = Client::Remote(address);
                if !matches!(timeout(HEAD, stream.readable()).await, Ok(Ok(()))) {
                    return;
                }
                place.set_active(true);
                match tls {
                    None => talk(stream, client, router, place).await,
                    Some(tls) => {
                        if let Ok(Ok(stream)) = timeout(HEAD, tls.accept(stream)).await {
                            talk(stream, client, router, place).await;
                        }
                    }
                }
            }
        }
    }
}

/// Returns whether a process may control the run: root, the run's own user, and the members of a group. The
/// kernel has already checked who may write to the socket.
fn is_allowed(peer: &UCred, group: Option<Gid>) -> bool {
    let user = Uid::from_raw(peer.uid());
    if user.is_root() || user == geteuid() {
        return true;
    }
    let Some(group) = group else {
        return false;
    };
    let is_member = || {
        let user = User::from_uid(user).ok()??;
        let groups = getgrouplist(&CString::new(user.name).ok()?, user.gid).ok()?;
        Some(groups.contains(&group))
    };
    Gid::from_raw(peer.gid()) == group || is_member().unwrap_or(false)
}

/// Answers the requests of a connection.
async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    client: Client,
    router: Router,
    place: &Arc<Place>,
) {
    place.set_active(true);
    let streams = Streams::default();
    let answer = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(client.clone());
        request.extensions_mut().insert(streams.clone());
        request.extensions_mut().insert(Arc::clone(place));
        let mut router = router.clone();
        async move {
            place.set_active(true);
            let answer = router.call(request).await.unwrap_or_else(|never| match never {});
            place.set_active(false);
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_FIELDS)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    if timeout(LIFETIME, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        while timeout(LAST, connection.as_mut()).await.is_err() && streams.is_any() {}
    }
}
