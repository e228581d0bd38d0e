//! Answers: JSON documents whose memory is bounded while slow clients read them.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::http::problem::{Kind, Problem};

/// Documents up to this length, bytes, take no turn while they are sent: all connections together can hold
/// less than one long document.
const SHORT: usize = 256 << 10;

/// Bytes that keep their turn until all of them are written and forgotten.
struct Held {
    bytes: Bytes,
    _turn: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns the bytes of a JSON document.
pub(crate) fn json_bytes(document: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(document)
        .map_err(|error| Problem::new(Kind::Internal, format!("the answer is not JSON: {error}")))
}

/// Returns an answer that keeps its turn as long as it is long.
pub(crate) fn held(
    media_type: &'static str,
    bytes: impl Into<Bytes>,
    turn: OwnedSemaphorePermit,
) -> Response {
    let bytes = bytes.into();
    let body = match bytes.len() <= SHORT {
        true => Body::from(bytes),
        false => Body::from(Bytes::from_owner(Held { bytes, _turn: turn })),
    };
    let mut response = Response::new(body);
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// Returns a short JSON document, with the entity tag of the trees if there is one.
pub(crate) fn json(
    status: StatusCode,
    tag: Option<&str>,
    document: &impl Serialize,
) -> Result<Response, Problem> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(tag).ok()) {
        headers.insert(ETAG, tag);
    }
    Ok((status, headers, json_bytes(document)?).into_response())
}
