//! The trees as data, for programs that do not read configuration files.

use axum::extract::State;
use axum::http::header::{ETAG, HeaderValue};
use axum::response::Response;
use fairgate_config::Spec;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{held, json_bytes};
use crate::outline::{Changeable, Place, changeable, places, read};
use crate::precondition::tag;
use crate::problem::{Kind, Problem};
use crate::query::Parameters;
use crate::run::Run;
use crate::shared::Shared;

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

/// What a tree is made of.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OutlineDocument {
    /// The revision of the trees.
    revision: u64,
    /// The interface that the direction receives from.
    from: String,
    /// The interface that it sends to.
    to: String,
    /// Its places, each behind the one above it. The first is the root.
    places: Vec<Place>,
}

/// What can be set at a place.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PlaceDocument {
    /// The revision of the trees.
    revision: u64,
    /// The interface that the direction receives from.
    from: String,
    /// The path of the place.
    path: String,
    /// What can be set: of the class, then of its discipline.
    changeable: Vec<Changeable>,
}

/// A direction of the trees.
struct Direction {
    revision: u64,
    from: String,
    to: String,
    tree: Spec,
}

fn find(run: &dyn Run, from: &str) -> Result<Direction, Problem> {
    let trees = run.trees();
    let names: Vec<String> = trees
        .directions
        .iter()
        .map(|direction| direction.from.clone())
        .collect();
    let found = trees
        .directions
        .into_iter()
        .find(|direction| direction.from == from);
    let found = found.ok_or_else(|| {
        let detail = format!("no direction is from `{from}`; name {}", names.join(" or "));
        Problem::new(Kind::NotFound, detail)
    })?;
    let tree = read(&found.queue, &run.registry());
    let tree = tree.ok_or_else(|| Problem::new(Kind::Internal, "the description of the tree is not read"))?;
    Ok(Direction {
        revision: trees.revision,
        from: found.from,
        to: found.to,
        tree,
    })
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
    let asked = shared.ask(move |shared, run| {
        let found = find(run, &wanted.from)?;
        let document = OutlineDocument {
            revision: found.revision,
            from: found.from,
            to: found.to,
            places: places(&found.tree),
        };
        Ok::<_, Problem>((tag(shared, found.revision), json_bytes(&document)?))
    });
    let (tag, bytes) = asked.await??;
    Ok(tagged(held("application/json", bytes, turn), &tag))
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
    let asked = shared.ask(move |shared, run| {
        let found = find(run, &wanted.from)?;
        let changeable = changeable(&found.tree, &wanted.path).ok_or_else(|| {
            let detail = format!("there is no class `{}` from {}", wanted.path, found.from);
            Problem::new(Kind::NotFound, detail)
        })?;
        let document = PlaceDocument {
            revision: found.revision,
            from: found.from,
            path: wanted.path,
            changeable,
        };
        Ok::<_, Problem>((tag(shared, found.revision), json_bytes(&document)?))
    });
    let (tag, bytes) = asked.await??;
    Ok(tagged(held("application/json", bytes, turn), &tag))
}
