//! One request over HTTP/1.1, on a connection of its own.
//!
//! Requests are rare: a connection that is kept would mostly be idle, and the run closes it after 10 s.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use nix::unistd::Uid;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::UCred;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::ApiAddress;
use super::error::ClientError;
use super::problem::{MEDIA_TYPE, Problem};
use crate::socket::{check_length, is_trusted};

/// How long it may take to connect, and how long nothing of an answer may arrive. The run itself answers that
/// its forwarding threads are silent after 5 s, and may let a request wait for its turn for another 5 s.
const PATIENCE: Duration = Duration::from_secs(15);

/// The last part of it, which a process that is stopped does not get.
const LAST: Duration = Duration::from_secs(10);

/// The longest answer. The status of 100,000 classes has 200 MB.
const LONGEST: usize = 1 << 30;

/// How requests get to a run.
pub(crate) struct Transport {
    /// How users call the run.
    pub(crate) name: String,
    pub(crate) destination: Destination,
    pub(crate) token: Option<HeaderValue>,
}

/// Where a run listens.
pub(crate) enum Destination {
    /// At its status socket, whose process must be trusted.
    Status(PathBuf),
    /// At the unix socket of its API.
    Unix(PathBuf),
    /// At its API behind TLS.
    Https(Authority, TlsConnector),
}

/// How long nothing may arrive, and from whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    time: Duration,
    /// The process at the other end, if it is one of this machine.
    process: Option<i32>,
}

/// A request.
pub(crate) struct ApiRequest<'a> {
    pub(crate) method: Method,
    /// With what is behind the question mark.
    pub(crate) target: String,
    /// JSON.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) if_match: Option<&'a str>,
    /// Whether the run may take as long as it needs, because it plans a change.
    pub(crate) is_long: bool,
}

/// An answer whose body is still to come.
pub(crate) struct ApiResponse {
    pub(crate) runtime: Runtime,
    pub(crate) response: Response<Incoming>,
    pub(crate) patience: Patience,
}

impl Transport {
    /// Sends a request and waits for the head of the answer.
    pub(crate) fn request(&self, asked: &ApiRequest<'_>) -> Result<ApiResponse, ClientError> {
        let request = self.http(asked)?;
        let response = self.destination.request(request, asked.is_long, PATIENCE)?;
        match response.response.status() {
            StatusCode::OK | StatusCode::CREATED => Ok(response),
            _ => Err(response.problem()),
        }
    }

    fn http(&self, asked: &ApiRequest<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
        let host = match &self.destination {
            Destination::Status(_) | Destination::Unix(_) => "localhost",
            Destination::Https(authority, _) => authority.as_str(),
        };
        let mut request = Request::builder()
            .method(&asked.method)
            .uri(&asked.target)
            .header(HOST, host);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(tag) = asked.if_match {
            request = request.header(hyper::header::IF_MATCH, tag);
        }
        if asked.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::from(asked.body.clone().unwrap_or_default());
        let made = request.body(body);
        made.map_err(|error| ClientError::Unexpected(format!("the request can't be written: {error}")))
    }
}

impl Destination {
    /// Sends a request and waits for the head of the answer, whatever its status is. Nothing of it may be
    /// silent for longer than `time`, unless the other end may take as long as it needs.
    pub(crate) fn request(
        &self,
        request: Request<Full<Bytes>>,
        is_long: bool,
        time: Duration,
    ) -> Result<ApiResponse, ClientError> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(ClientError::NoRoom)?;
        let (response, patience) = runtime.block_on(self.send(request, is_long, time))?;
        Ok(ApiResponse {
            runtime,
            response,
            patience,
        })
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        is_long: bool,
        time: Duration,
    ) -> Result<(Response<Incoming>, Patience), ClientError> {
        let mut patience = Patience { time, process: None };
        let response = match self {
            Destination::Status(path) => {
                let (stream, peer) = connect(path, ClientError::Socket).await?;
                if !is_trusted(Uid::from_raw(peer.uid()), path) {
                    return Err(ClientError::Stranger(peer.uid()));
                }
                patience.process = peer.pid();
                exchange(stream, request, is_long, patience).await
            }
            Destination::Unix(path) => {
                let (stream, peer) = connect(path, ClientError::Unreachable).await?;
                patience.process = peer.pid();
                exchange(stream, request, is_long, patience).await
            }
            Destination::Https(authority, tls) => {
                let (host, port) = ApiAddress::host_and_port(authority);
                let stream = patience.wait(TcpStream::connect((host, port))).await?;
                let stream = stream.map_err(ClientError::Unreachable)?;
                // Requests are short, and written at once.
                let _ = stream.set_nodelay(true);
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|error| ClientError::Insecure(io::Error::other(error)))?;
                let stream = patience.wait(tls.connect(name, stream)).await?;
                let stream = stream.map_err(ClientError::Insecure)?;
                exchange(stream, request, is_long, patience).await
            }
        };
        Ok((response?, patience))
    }
}

impl Patience {
    /// Returns one that waits for longer.
    pub(crate) fn longer_by(self, time: Duration) -> Patience {
        Patience {
            time: self.time.saturating_add(time),
            ..self
        }
    }

    /// Waits for something, but not for ever.
    async fn wait<T>(self, what: impl Future<Output = T>) -> Result<T, ClientError> {
        let mut what = pin!(what);
        if let Ok(done) = timeout(self.time.saturating_sub(LAST), what.as_mut()).await {
            return Ok(done);
        }
        if !self.process.is_some_and(is_stopped)
            && let Ok(done) = timeout(LAST, what).await
        {
            return Ok(done);
        }
        Err(match self.process {
            Some(process) => ClientError::SilentProcess {
                process,
                is_stopped: is_stopped(process),
            },
            None => ClientError::Silent,
        })
    }
}

/// Returns whether a signal has stopped a process (proc_pid_stat(5): the field after the name in
/// parentheses).
fn is_stopped(process: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = text.rsplit(") ").next().unwrap_or_default();
    state.starts_with(['T', 't'])
}

/// Connects to a unix socket. Returns whose process listens there, too.
async fn connect(
    path: &Path,
    failed: fn(io::Error) -> ClientError,
) -> Result<(UnixStream, UCred), ClientError> {
    check_length(path)?;
    let stream = UnixStream::connect(path).await.map_err(failed)?;
    let peer = stream.peer_cred().map_err(failed)?;
    Ok((stream, peer))
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    is_long: bool,
    patience: Patience,
) -> Result<Response<Incoming>, ClientError> {
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(ClientError::Cut)?;
    // It ends with the runtime. What goes wrong in it, the body says.
    tokio::spawn(connection);
    let response = sender.send_request(request);
    let response = match is_long {
        true => response.await,
        false => patience.wait(response).await?,
    };
    response.map_err(ClientError::Cut)
}

impl ApiResponse {
    /// Returns the whole body.
    pub(crate) fn whole(self) -> Result<Vec<u8>, ClientError> {
        self.up_to(LONGEST)
    }

    /// Returns the whole body, which has at most so many bytes.
    pub(crate) fn up_to(self, longest: usize) -> Result<Vec<u8>, ClientError> {
        let ApiResponse {
            runtime,
            response,
            patience,
        } = self;
        let mut body = response.into_body();
        let mut bytes = Vec::new();
        while let Some(part) = runtime.block_on(part(&mut body, patience))? {
            bytes.extend_from_slice(&part);
            if bytes.len() > longest {
                let why = format!("it has more than {longest} bytes");
                return Err(ClientError::Unexpected(why));
            }
        }
        Ok(bytes)
    }

    /// Reads the answer to a request that was refused.
    fn problem(self) -> ClientError {
        let status = self.response.status();
        let media_type = self.response.headers().get(CONTENT_TYPE);
        let unexpected = || ClientError::Unexpected(format!("status {status}"));
        if media_type.is_none_or(|found| found != MEDIA_TYPE) {
            return unexpected();
        }
        match self.whole() {
            Ok(bytes) => serde_json::from_slice::<Problem>(&bytes).map_or_else(|_| unexpected(), Into::into),
            Err(error) => error,
        }
    }
}

/// Returns the next part of a body, or nothing at its end. It must arrive in this time.
pub(crate) async fn part(body: &mut Incoming, patience: Patience) -> Result<Option<Bytes>, ClientError> {
    loop {
        match patience.wait(body.frame()).await? {
            None => return Ok(None),
            Some(frame) => {
                // Trailers say nothing that is asked for.
                if let Ok(data) = frame.map_err(ClientError::Cut)?.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
