//! The trees as data, for programs that do not read configuration files.

use std::sync::PoisonError;

use axum::extract::State;
use axum::http::header::{ETAG, HeaderValue};
use axum::response::Response;
use fairgate_run_api::{OutlineDocument, PlaceDocument, Question};
use serde::Deserialize;

use crate::http::answer::{held, json_bytes};
use crate::http::precondition::tag;
use crate::http::problem::Problem;
use crate::http::query::Parameters;
use crate::http::shared::{NOBODY, Shared};

/// Which tree is wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedTree {
    from: String,
}

/// Which place is wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedPlace {
    from: String,
    path: String,
}

fn tagged(mut response: Response, tag: &str) -> Response {
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// What a tree is made of: its disciplines and classes, with what was set
#[utoipa::path(
    get,
    path = "/v1/outline",
    operation_id = "outline",
    tag = "trees",
    params(("from" = String, Query, description = "The interface that the direction receives from")),
    responses(
        (status = 200, description = "The tree", body = OutlineDocument,
            headers(("ETag" = String, description = "Of the trees"))),
        (status = 404, description = "There is no such direction", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn outline(
    State(shared): State<Shared>,
    Parameters(wanted): Parameters<WantedTree>,
) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let made = shared.wait(move |shared| {
        let revision = shared.put(NOBODY, Question::Revision)?;
        let make = || {
            let from = wanted.from.clone();
            let outline: OutlineDocument = shared.put(NOBODY, Question::Outline { from })?;
            Ok((outline.revision, json_bytes(&outline)?))
        };
        let mut outlines = shared.outlines().lock().unwrap_or_else(PoisonError::into_inner);
        outlines.get(revision, &wanted.from, make)
    });
    let (revision, bytes) = made.await??;
    Ok(tagged(
        held("application/json", bytes, turn),
        &tag(shared.instance(), revision),
    ))
}

/// What can be set at a place of a tree, and the words that change it
#[utoipa::path(
    get,
    path = "/v1/outline/place",
    operation_id = "place",
    tag = "trees",
    params(
        ("from" = String, Query, description = "The interface that the direction receives from"),
        ("path" = String, Query, description = "The numbers of the classes from the root on, as `20/3`, or \
                                                `root`")
    ),
    responses(
        (status = 200, description = "Its parameters", body = PlaceDocument,
            headers(("ETag" = String, description = "Of the trees"))),
        (status = 404, description = "There is no such direction or place", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn place(
    State(shared): State<Shared>,
    Parameters(wanted): Parameters<WantedPlace>,
) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let made = shared.wait(move |shared| {
        let WantedPlace { from, path } = wanted;
        let place: PlaceDocument = shared.put(NOBODY, Question::Place { from, path })?;
        Ok((place.revision, json_bytes(&place)?))
    });
    let (revision, bytes) = made.await??;
    Ok(tagged(
        held("application/json", bytes, turn),
        &tag(shared.instance(), revision),
    ))
}
