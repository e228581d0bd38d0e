//! Errors as documents: problem details, RFC 9457.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use fairgate_run_api::Mistake;
use serde::Serialize;
use utoipa::ToSchema;

/// The media type of problems.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// What is wrong with a request: problem details of RFC 9457.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// `urn:fairgate:problem:` and a name that does not change.
    #[serde(rename = "type")]
    kind: &'static str,
    /// What this type means.
    title: &'static str,
    /// The HTTP status code.
    status: u16,
    /// What is wrong with this request, and what to do.
    detail: String,
    /// The mistakes in what the run was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Mistake>,
    /// The revision of the trees, if another one was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip)]
    tag: Option<Box<str>>,
}

/// The types of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request breaks a rule of HTTP or JSON, or of the document that is expected.
    Malformed,
    /// A token is missing or wrong.
    Unauthorized,
    /// This user may not use the socket.
    Forbidden,
    /// A browser sends the request for another site.
    CrossSite,
    /// The request is for another host.
    Misdirected,
    /// There is nothing at this path.
    NotFound,
    /// This path has no such method.
    Method,
    /// The body did not arrive in time.
    Slow,
    /// The trees have changed since.
    Stale,
    /// The body is too long.
    TooLarge,
    /// The body is not JSON.
    MediaType,
    /// The run refuses the change.
    Refused,
    /// Too many requests are being answered.
    Busy,
    /// The run ends, or does not answer.
    Silent,
    /// A bug.
    Internal,
}

impl Kind {
    fn parts(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Kind::Malformed => (
                "urn:fairgate:problem:malformed",
                StatusCode::BAD_REQUEST,
                "The request is not understood",
            ),
            Kind::Unauthorized => (
                "urn:fairgate:problem:unauthorized",
                StatusCode::UNAUTHORIZED,
                "A token is missing or wrong",
            ),
            Kind::Forbidden => (
                "urn:fairgate:problem:forbidden",
                StatusCode::FORBIDDEN,
                "This user may not control the run",
            ),
            Kind::CrossSite => (
                "urn:fairgate:problem:cross-site",
                StatusCode::FORBIDDEN,
                "Requests of other sites are refused",
            ),
            Kind::Misdirected => (
                "urn:fairgate:problem:misdirected",
                StatusCode::MISDIRECTED_REQUEST,
                "The request is for another host",
            ),
            Kind::NotFound => (
                "urn:fairgate:problem:not-found",
                StatusCode::NOT_FOUND,
                "There is nothing here",
            ),
            Kind::Method => (
                "urn:fairgate:problem:method",
                StatusCode::METHOD_NOT_ALLOWED,
                "This path has no such method",
            ),
            Kind::Slow => (
                "urn:fairgate:problem:slow",
                StatusCode::REQUEST_TIMEOUT,
                "The body did not arrive in time",
            ),
            Kind::Stale => (
                "urn:fairgate:problem:stale",
                StatusCode::PRECONDITION_FAILED,
                "The trees or the subscriber have changed since",
            ),
            Kind::TooLarge => (
                "urn:fairgate:problem:too-large",
                StatusCode::PAYLOAD_TOO_LARGE,
                "The body is too long",
            ),
            Kind::MediaType => (
                "urn:fairgate:problem:media-type",
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "The body must be JSON",
            ),
            Kind::Refused => (
                "urn:fairgate:problem:refused",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Nothing was changed",
            ),
            Kind::Busy => (
                "urn:fairgate:problem:busy",
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many requests are being answered",
            ),
            Kind::Silent => (
                "urn:fairgate:problem:silent",
                StatusCode::SERVICE_UNAVAILABLE,
                "The run does not answer",
            ),
            Kind::Internal => (
                "urn:fairgate:problem:internal",
                StatusCode::INTERNAL_SERVER_ERROR,
                "A bug in Fairgate",
            ),
        }
    }
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Problem {
        let (kind, status, title) = kind.parts();
        Problem {
            kind,
            title,
            status: status.as_u16(),
            detail: detail.into(),
            errors: Vec::new(),
            revision: None,
            tag: None,
        }
    }

    /// Returns the problem of a change that the run refuses.
    pub(crate) fn refused(errors: Vec<Mistake>) -> Problem {
        let one = |mistake: &Mistake| match &mistake.place {
            Some(place) => format!("{place}: {}", mistake.message),
            None => mistake.message.clone(),
        };
        let detail: Vec<String> = errors.iter().map(one).collect();
        Problem {
            errors,
            ..Problem::new(Kind::Refused, detail.join("; "))
        }
    }

    /// Returns the problem of a question with one mistake.
    pub(crate) fn mistaken(kind: Kind, mistake: Mistake) -> Problem {
        let detail = match mistake.help.is_empty() {
            true => mistake.message.clone(),
            false => format!("{}; {}", mistake.message, mistake.help),
        };
        Problem {
            errors: vec![mistake],
            ..Problem::new(kind, detail)
        }
    }

    /// Returns the problem of a change of another revision. `tag` is the entity tag of the current one.
    pub(crate) fn stale(revision: u64, tag: String) -> Problem {
        Problem {
            revision: Some(revision),
            tag: Some(tag.into()),
            ..Problem::new(
                Kind::Stale,
                format!(
                    "nothing was changed: the trees have revision {revision} by now; read them again, and \
                     repeat the request if it still makes sense"
                ),
            )
        }
    }
}

impl Problem {
    /// Returns the problem of a change of a subscriber that has another entity tag by now, or none.
    pub(crate) fn outdated(current: Option<String>) -> Problem {
        let now = match current {
            Some(_) => "the subscriber has changed since; read it again",
            None => "there is no such subscriber any more; leave out If-Match to add it",
        };
        Problem {
            tag: current.map(Into::into),
            ..Problem::new(Kind::Stale, format!("nothing was changed: {now}"))
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let bytes = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, bytes).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        match status {
            StatusCode::UNAUTHORIZED => {
                let scheme = HeaderValue::from_static("Bearer realm=\"fairgate\"");
                headers.insert(WWW_AUTHENTICATE, scheme);
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        if let Some(tag) = self.tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
            headers.insert(ETAG, tag);
        }
        response
    }
}
