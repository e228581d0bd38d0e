//! Parameters in the path and behind the question mark. Unknown ones are refused.

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::http::problem::{Kind, Problem};

/// Parameters behind the question mark.
pub(crate) struct Parameters<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Parameters<T>, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(parameters)) => Ok(Parameters(parameters)),
            Err(error) => Err(Problem::new(Kind::Malformed, error.body_text())),
        }
    }
}

/// A name in the path.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named, Problem> {
        let named: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        match named {
            Ok(Path(name)) => Ok(Named(name)),
            Err(error) => Err(Problem::new(Kind::Malformed, error.body_text())),
        }
    }
}
