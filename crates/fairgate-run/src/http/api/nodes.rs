//! Nodes of the network: sites and access points.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use fairgate_run_api::{NodePatch, Question, SubscriberMade};

use crate::http::answer::json;
use crate::http::body::Document;
use crate::http::guard::Who;
use crate::http::precondition::{Expected, tag};
use crate::http::problem::Problem;
use crate::http::query::Named;
use crate::http::shared::Shared;

/// Change the rates of a node of the network
///
/// With `If-Match`, nothing is changed if anyone has changed the trees since the client has read them.
#[utoipa::path(
    patch,
    path = "/v1/nodes/{name}",
    operation_id = "patchNode",
    tag = "subscribers",
    params(
        ("name" = String, Path, description = "Its name, as in `nodes` of `GET /v1/subscribers`"),
        ("If-Match" = Option<String>, Header, description = "The entity tag of the trees")
    ),
    request_body = NodePatch,
    responses(
        (status = 200, description = "The change was made", body = SubscriberMade,
            headers(("ETag" = String, description = "Of the trees from now on"))),
        (status = 404, description = "There is no such node", body = Problem,
            content_type = "application/problem+json"),
        (status = 412, description = "The trees have changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The run refuses it", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn patch(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Named(name): Named,
    headers: HeaderMap,
    Document(patch): Document<NodePatch>,
) -> Result<Response, Problem> {
    let expected = Expected::read(&headers)?;
    let change = move |if_revision| Question::ChangeNode {
        name,
        patch,
        if_revision,
    };
    let made: SubscriberMade = shared.change(who, expected, change).await?;
    json(
        StatusCode::OK,
        Some(&tag(shared.instance(), made.revision)),
        &made,
    )
}
