//! The trees as configuration.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{ETAG, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use fairgate_run_api::{Question, TreesStatus};

use crate::http::answer::{held, json_bytes};
use crate::http::precondition::{is_known, tag};
use crate::http::problem::Problem;
use crate::http::shared::{NOBODY, Shared};

/// The trees, as a configuration file has them
#[utoipa::path(
    get,
    path = "/v1/trees",
    operation_id = "trees",
    tag = "trees",
    params(("If-None-Match" = Option<String>, Header, description = "The entity tag of trees that the client \
                                                                     has already")),
    responses(
        (status = 200, description = "The trees and their revision", body = TreesStatus,
            headers(("ETag" = String, description = "Of this revision of this run"))),
        (status = 304, description = "The client has them"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn trees(State(shared): State<Shared>, headers: HeaderMap) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let made = shared.wait(|shared| {
        let trees: TreesStatus = shared.put(NOBODY, Question::Trees)?;
        json_bytes(&trees).map(|bytes| (trees.revision, bytes))
    });
    let (revision, bytes) = made.await??;
    let mut response = match is_known(&headers, shared.instance(), revision)? {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => held("application/json", bytes, turn),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag(shared.instance(), revision)) {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}
