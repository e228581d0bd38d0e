//! Bodies of requests: JSON of bounded length that arrives in bounded time.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::http::problem::{Kind, Problem};
use crate::http::shared::Shared;

/// The longest body, bytes. A change of all classes of a large tree has less.
pub(crate) const LONGEST: usize = 16 << 20;

/// The longest body that needs no turn, bytes.
const SHORT: u64 = 64 << 10;

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// A document that a client has sent.
pub(crate) struct Document<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Document<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Shared) -> Result<Document<T>, Problem> {
        check_media_type(request.headers())?;
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let _turn = match length {
            Some(0..=SHORT) => None,
            _ => Some(shared.turn_to_receive().await?),
        };
        let bytes = receive(request.into_body()).await?;
        serde_json::from_slice(&bytes)
            .map(Document)
            .map_err(|error| Problem::new(Kind::Malformed, format!("the body is not understood: {error}")))
    }
}

/// A form of another site can send other media types without asking first, but not this one.
fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let wrong = |detail: &str| Err(Problem::new(Kind::MediaType, detail));
    if headers.contains_key(CONTENT_ENCODING) {
        return wrong("the body must not be compressed");
    }
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let (media_type, parameters) = match media_type.unwrap_or("").split_once(';') {
        Some((media_type, parameters)) => (media_type, parameters.trim()),
        None => (media_type.unwrap_or(""), ""),
    };
    let is_utf8 = parameters.is_empty() || parameters.eq_ignore_ascii_case("charset=utf-8");
    match media_type.trim().eq_ignore_ascii_case("application/json") && is_utf8 {
        true => Ok(()),
        false => wrong("send `Content-Type: application/json`, in UTF-8"),
    }
}

async fn receive(body: Body) -> Result<Vec<u8>, Problem> {
    let collected = timeout(PATIENCE, Limited::new(body, LONGEST).collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(Problem::new(
            Kind::TooLarge,
            format!("the body has more than {LONGEST} bytes; make the change in parts"),
        )),
        Ok(Err(_)) => Err(Problem::new(Kind::Malformed, "the body ends too early")),
        Err(_) => Err(Problem::new(
            Kind::Slow,
            format!("the body took more than {} s", PATIENCE.as_secs()),
        )),
    }
}
