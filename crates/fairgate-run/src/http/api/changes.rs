//! Changes of the trees.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use fairgate_run_api::{Change, ChangeMade, ChangesStatus, Detail, Question};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::answer::json;
use crate::http::api::status::ask_status;
use crate::http::body::Document;
use crate::http::guard::Who;
use crate::http::precondition::{Expected, tag};
use crate::http::problem::Problem;
use crate::http::shared::Shared;

/// Changes that are made together or not at all.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeOrder {
    /// The interface that the changed direction receives from. It may be left out if both directions have the
    /// same tree: then both are changed.
    from: Option<String>,
    /// The changes in words, as of `fairgate class`, `filter` and `queue`: `class change 30 rate=7mbit`.
    lines: Vec<String>,
    /// The time within which the change must be confirmed, 1 to 3600 seconds. Else it is undone.
    #[serde(default)]
    confirm_within_s: Option<u64>,
    /// Why it is made, for the log of the run.
    #[serde(default)]
    because: Option<String>,
}

// A page of another site can send a request without a body, but none with one of JSON (`body.rs`).
/// Nothing: an empty object.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyOrder {}

/// An empty object, or why the configuration is read again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReloadOrder {
    /// Why, for the log of the run and for the versions of its file.
    #[serde(default)]
    because: Option<String>,
}

/// A change that is kept.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Confirmed {
    /// The revision of the trees.
    revision: u64,
}

/// The changes so far.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Changes {
    /// The revision of the trees: it grows by 1 with each change, whoever makes it.
    revision: u64,
    /// What they have done.
    changes: ChangesStatus,
}

/// What the changes so far have done
#[utoipa::path(
    get,
    path = "/v1/changes",
    operation_id = "changes",
    tag = "trees",
    responses(
        (status = 200, description = "The changes so far", body = Changes,
            headers(("ETag" = String, description = "Of the trees"))),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn changes(State(shared): State<Shared>) -> Result<Response, Problem> {
    let _turn = shared.turn_to_answer().await?;
    let made = ask_status(&shared, Detail::Used, |status| Changes {
        revision: status.revision,
        changes: status.changes,
    });
    let changes = made.await?;
    json(
        StatusCode::OK,
        Some(&tag(shared.instance(), changes.revision)),
        &changes,
    )
}

/// Change the trees: all lines or none
///
/// The lines are those of `fairgate class`, `filter` and `queue` with add, change, move and delete. They are
/// checked, and then applied while packets are forwarded. With `If-Match`, nothing is changed if anyone has
/// changed the trees since the client has read them.
#[utoipa::path(
    post,
    path = "/v1/changes",
    operation_id = "change",
    tag = "trees",
    params(("If-Match" = Option<String>, Header, description = "The entity tag of the trees that are \
                                                                changed")),
    request_body = ChangeOrder,
    responses(
        (status = 200, description = "The change was made", body = ChangeMade,
            headers(("ETag" = String, description = "Of the trees from now on"))),
        (status = 412, description = "The trees have changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The run refuses the change", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn change(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    headers: HeaderMap,
    Document(order): Document<ChangeOrder>,
) -> Result<Response, Problem> {
    let expected = Expected::read(&headers)?;
    let change = move |if_revision| {
        Question::Change(Change {
            from: order.from,
            lines: order.lines,
            if_revision,
            confirm_within_s: order.confirm_within_s,
            because: order.because,
        })
    };
    let made: ChangeMade = shared.change(who, expected, change).await?;
    json(
        StatusCode::OK,
        Some(&tag(shared.instance(), made.revision)),
        &made,
    )
}

/// Keep the change that waits for its confirmation
///
/// It was made with `confirm_within_s`, and would be undone when this time has passed.
#[utoipa::path(
    post,
    path = "/v1/changes/confirm",
    operation_id = "confirm",
    tag = "trees",
    request_body = EmptyOrder,
    responses(
        (status = 200, description = "The change is kept", body = Confirmed,
            headers(("ETag" = String, description = "Of the trees"))),
        (status = 422, description = "No change waits for its confirmation", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn confirm(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Document(EmptyOrder {}): Document<EmptyOrder>,
) -> Result<Response, Problem> {
    let revision: u64 = shared.ask(who, Question::Confirm).await?;
    json(
        StatusCode::OK,
        Some(&tag(shared.instance(), revision)),
        &Confirmed { revision },
    )
}

/// Read the configuration again, as after SIGHUP
///
/// The trees become those of the file, with the reservations. Changes by hand since the last reading are
/// undone. If the file is refused, the run continues unchanged.
#[utoipa::path(
    post,
    path = "/v1/reload",
    operation_id = "reload",
    tag = "trees",
    request_body = ReloadOrder,
    responses(
        (status = 200, description = "The file was read, and its trees are active", body = ChangeMade,
            headers(("ETag" = String, description = "Of the trees from now on"))),
        (status = 422, description = "The run refuses the file", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn reload(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Document(ReloadOrder { because }): Document<ReloadOrder>,
) -> Result<Response, Problem> {
    let made: ChangeMade = shared.ask(who, Question::Reload { because }).await?;
    json(
        StatusCode::OK,
        Some(&tag(shared.instance(), made.revision)),
        &made,
    )
}
