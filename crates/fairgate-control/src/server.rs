//! The thread that answers. A connection is a task of it; what waits for the run is done on further threads.
//! If the API is offered, there is also the thread that keeps the history.
//!
//! All of them have ordinary priority, so that the forwarding threads go first. A client that is slow, silent
//! or one of many costs a place among [`CONNECTIONS`] for a bounded time and nothing else.

use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use fairgate_live::Offer;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::unistd::{Gid, Uid, User, geteuid, getgrouplist};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::UCred;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use crate::api::router;
use crate::door::{Door, Entry};
use crate::guard::Client;
use crate::history::{self, Sampler};
use crate::run::Run;
use crate::shared::Shared;
use crate::streams::Streams;

/// How many connections each door has at the same time. Further ones are closed at once.
pub(crate) const CONNECTIONS: usize = 64;

/// How long a handshake, or the head of a request, may take. It is also how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(10);

/// After this time a connection takes no further request.
const LIFETIME: Duration = Duration::from_secs(60);

/// How long its last request may take then, before the connection is cut. An answer without an end is cut
/// when the client does not read it.
const LAST: Duration = Duration::from_secs(60);

/// The most bytes of a head, and the most header fields.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_FIELDS: usize = 64;

/// How many threads ask the run at the same time.
const ASKING: usize = 8;

/// How long to wait for the threads that ask the run when everything ends.
const GRACE: Duration = Duration::from_secs(1);

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Control {
    /// The thread ends when this is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The thread that keeps the history, if the API is offered.
    _sampler: Option<Sampler>,
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was reported there.
            let _ = thread.join();
        }
    }
}

/// A door of the runtime.
enum Open {
    Unix(UnixListener, Option<Gid>),
    Tcp(TcpListener, Option<TlsAcceptor>),
}

/// Answers at these doors, on a thread of its own. Without doors there is no thread.
pub(crate) fn start(doors: Vec<Door>, run: Arc<dyn Run>) -> io::Result<Control> {
    let (stop, stopped) = oneshot::channel();
    if doors.is_empty() {
        return Ok(Control {
            stop: None,
            thread: None,
            _sampler: None,
        });
    }
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(ASKING)
        .thread_name("api")
        .build()?;
    let shared = Shared::new(Arc::clone(&run));
    let sampler = match doors.iter().any(|door| door.offer == Offer::Api) {
        true => Some(history::start(run, Arc::clone(shared.history()))?),
        false => None,
    };
    let mut sockets = Vec::new();
    let mut open = Vec::new();
    {
        let _inside = runtime.enter();
        for Door { offer, entry, rules } in doors {
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
            open.push((listener, router(shared.clone(), rules, offer)));
        }
    }
    let answer = move || {
        runtime.block_on(async {
            for (door, router) in open {
                tokio::spawn(accept(door, router));
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
    let thread = thread::Builder::new().name("api".to_owned()).spawn(answer)?;
    Ok(Control {
        stop: Some(stop),
        thread: Some(thread),
        _sampler: sampler,
    })
}

/// Accepts clients. A task serves each.
async fn accept(door: Open, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let accepted = match &door {
            Open::Unix(listener, group) => listener
                .accept()
                .await
                .map(|(stream, _)| Accepted::Unix(stream, *group)),
            Open::Tcp(listener, tls) => listener
                .accept()
                .await
                .map(|(stream, _)| Accepted::Tcp(stream, tls.clone())),
        };
        match (accepted, Arc::clone(&places).try_acquire_owned()) {
            (Ok(client), Ok(place)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    client.serve(router).await;
                    drop(place);
                });
            }
            // All places are taken.
            (Ok(_), Err(_)) => {}
            // Too many open files, for example.
            (Err(_), _) => sleep(Duration::from_millis(100)).await,
        }
    }
}

enum Accepted {
    Unix(UnixStream, Option<Gid>),
    Tcp(TcpStream, Option<TlsAcceptor>),
}

impl Accepted {
    async fn serve(self, router: Router) {
        match self {
            Accepted::Unix(stream, group) => {
                let Ok(peer) = stream.peer_cred() else {
                    return;
                };
                let client = Client::Process {
                    user: peer.uid(),
                    process: peer.pid().unwrap_or(0),
                    is_allowed: is_allowed(&peer, group),
                };
                talk(stream, client, router).await;
            }
            Accepted::Tcp(stream, tls) => {
                // Answers are short, and written at once.
                let _ = stream.set_nodelay(true);
                match tls {
                    None => talk(stream, Client::Remote, router).await,
                    Some(tls) => {
                        if let Ok(Ok(stream)) = timeout(HEAD, tls.accept(stream)).await {
                            talk(stream, Client::Remote, router).await;
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
async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin, client: Client, router: Router) {
    let streams = Streams::default();
    let answer = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(client.clone());
        request.extensions_mut().insert(streams.clone());
        let mut router = router.clone();
        async move { Ok::<_, Infallible>(router.call(request).await.unwrap_or_else(|never| match never {})) }
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
