//! Problem details (RFC 9457), as the API sends them.

use fairgate_run_api::Mistake;
use serde::Deserialize;

use super::error::ClientError;

/// The media type of problems.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request has failed.
#[derive(Debug, Deserialize)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: String,
    detail: String,
    #[serde(default)]
    errors: Vec<Mistake>,
    #[serde(default)]
    revision: Option<u64>,
}

impl From<Problem> for ClientError {
    fn from(problem: Problem) -> ClientError {
        match (problem.kind.as_str(), problem.revision) {
            ("urn:fairgate:problem:stale", Some(revision)) => ClientError::Stale { revision },
            _ if !problem.errors.is_empty() => ClientError::Refused(problem.errors),
            _ => ClientError::Problem {
                kind: problem.kind,
                title: problem.title,
                detail: problem.detail,
            },
        }
    }
}
