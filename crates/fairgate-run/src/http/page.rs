//! The web page. Its files hold no data, so that they are served to everyone who may connect, without a
//! token: the page asks the user for one.

mod assets;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use assets::find;

pub use assets::{ASSETS, Asset, HEADERS};

/// Answers requests for the files of the page. All others go on.
pub(crate) async fn page(request: Request, next: Next) -> Response {
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    match find(request.uri().path()).filter(|_| is_reading) {
        Some(asset) => answer(asset, &request),
        None => next.run(request).await,
    }
}

fn answer(asset: &'static Asset, request: &Request) -> Response {
    let tag = Asset::tag();
    let known = request.headers().get_all(IF_NONE_MATCH).iter();
    let mut known = known
        .filter_map(|tags| tags.to_str().ok())
        .flat_map(|tags| tags.split(','));
    let is_known = known.any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = match is_known {
        true => Response::new(Body::empty()),
        false => Response::new(Body::from(Bytes::from_static(asset.bytes))),
    };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    response
}
