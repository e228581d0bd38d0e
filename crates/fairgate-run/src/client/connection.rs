//! One request over HTTP/1.1, on a connection of its own.
//!
//! Requests are rare: a connection that is kept would mostly be idle, and the run closes it after 10 s.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::ApiAddress;
use super::error::ClientError;
use super::problem::{MEDIA_TYPE, Problem};

/// How long it may take to connect, and how long nothing of an answer may arrive. The API itself answers that
/// the run is silent after 5 s, and may let a request wait for its turn for another 5 s.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// The longest answer. The status of 100,000 classes has 200 MB.
const LONGEST: usize = 1 << 30;

/// How requests get to an API.
#[derive(Clone)]
pub(crate) struct Transport {
    pub(crate) address: ApiAddress,
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) token: Option<HeaderValue>,
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
}

impl Transport {
    /// Sends a request and waits for the head of the answer.
    pub(crate) fn request(&self, asked: &ApiRequest<'_>) -> Result<ApiResponse, ClientError> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(ClientError::NoRoom)?;
        let response = runtime.block_on(self.send(asked))?;
        let response = ApiResponse { runtime, response };
        match response.response.status() {
            StatusCode::OK | StatusCode::CREATED => Ok(response),
            _ => Err(response.problem()),
        }
    }

    async fn send(&self, asked: &ApiRequest<'_>) -> Result<Response<Incoming>, ClientError> {
        let request = self.http(asked)?;
        match &self.address {
            ApiAddress::Unix(path) => {
                let stream = in_time(UnixStream::connect(path)).await?;
                exchange(stream.map_err(ClientError::Unreachable)?, request, asked.is_long).await
            }
            ApiAddress::Https(authority) => {
                let (host, port) = ApiAddress::host_and_port(authority);
                let stream = in_time(TcpStream::connect((host, port))).await?;
                let stream = stream.map_err(ClientError::Unreachable)?;
                // Requests are short, and written at once.
                let _ = stream.set_nodelay(true);
                let tls = self.tls.as_ref().expect("this address has it");
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|error| ClientError::Insecure(std::io::Error::other(error)))?;
                let stream = in_time(tls.connect(name, stream)).await?;
                exchange(stream.map_err(ClientError::Insecure)?, request, asked.is_long).await
            }
        }
    }

    fn http(&self, asked: &ApiRequest<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
        let host = match &self.address {
            ApiAddress::Unix(_) => "localhost",
            ApiAddress::Https(authority) => authority.as_str(),
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

/// Waits for something, but not for ever.
async fn in_time<T>(what: impl Future<Output = T>) -> Result<T, ClientError> {
    timeout(PATIENCE, what).await.map_err(|_| ClientError::Silent)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    is_long: bool,
) -> Result<Response<Incoming>, ClientError> {
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(ClientError::Cut)?;
    // It ends with the runtime. What goes wrong in it, the body says.
    tokio::spawn(connection);
    let response = sender.send_request(request);
    let response = match is_long {
        true => response.await,
        false => in_time(response).await?,
    };
    response.map_err(ClientError::Cut)
}

impl ApiResponse {
    /// Returns the whole body.
    pub(crate) fn whole(self) -> Result<Vec<u8>, ClientError> {
        let ApiResponse { runtime, response } = self;
        let mut body = response.into_body();
        let mut bytes = Vec::new();
        while let Some(part) = runtime.block_on(part(&mut body, PATIENCE))? {
            bytes.extend_from_slice(&part);
            if bytes.len() > LONGEST {
                let why = format!("it has more than {LONGEST} bytes");
                return Err(ClientError::Unexpected(why));
            }
        }
        Ok(bytes)
    }

    /// Reads the answer of a request that was refused.
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
pub(crate) async fn part(body: &mut Incoming, patience: Duration) -> Result<Option<Bytes>, ClientError> {
    loop {
        let frame = timeout(patience, body.frame()).await;
        match frame.map_err(|_| ClientError::Silent)? {
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
