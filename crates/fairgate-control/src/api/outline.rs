//! The trees as data, for programs that do not read configuration files.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{ETAG, HeaderValue};
use axum::response::Response;
use fairgate_live::status::RunningTree;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{held, json_bytes};
use crate::outline::{Changeable, Place, changeable, places};
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

/// The outlines that were asked for, as JSON, of one revision of the trees: two documents at most. That of a
/// direction with 20,000 classes has 2 MB.
#[derive(Debug, Default)]
pub(crate) struct Outlines {
    revision: u64,
    /// By the interface that the direction receives from.
    documents: BTreeMap<String, Bytes>,
}

impl Outlines {
    /// Returns the outline of a direction, which is made if it is the first one of this revision.
    fn get(
        &mut self,
        revision: u64,
        from: &str,
        make: impl FnOnce() -> Result<Vec<u8>, Problem>,
    ) -> Result<Bytes, Problem> {
        if self.revision != revision {
            self.documents.clear();
            self.revision = revision;
        }
        if let Some(document) = self.documents.get(from) {
            return Ok(document.clone());
        }
        let document = Bytes::from(make()?);
        self.documents.insert(from.to_owned(), document.clone());
        Ok(document)
    }
}

/// Shows the tree of a direction and its revision to `look`. Returns what it returns.
fn look_at<T>(
    run: &dyn Run,
    from: &str,
    look: impl FnOnce(u64, &RunningTree<'_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let mut look = Some(look);
    let mut seen = None;
    run.look_at_trees(&mut |trees| {
        let direction = trees.directions.iter().find(|direction| direction.from == from);
        seen = match (direction, look.take()) {
            (Some(direction), Some(look)) => Some(look(trees.revision, direction)),
            _ => {
                let [one, other] = &trees.directions;
                let detail = format!(
                    "no direction is from `{from}`; name {} or {}",
                    one.from, other.from
                );
                Some(Err(Problem::new(Kind::NotFound, detail)))
            }
        };
    });
    seen.unwrap_or_else(|| Err(Problem::new(Kind::Internal, "the run shows no trees")))
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
        look_at(run, &wanted.from, |revision, direction| {
            let make = || {
                json_bytes(&OutlineDocument {
                    revision,
                    from: direction.from.to_owned(),
                    to: direction.to.to_owned(),
                    places: places(direction.tree),
                })
            };
            let mut outlines = shared.outlines().lock().unwrap_or_else(PoisonError::into_inner);
            let document = outlines.get(revision, direction.from, make)?;
            Ok((tag(shared, revision), document))
        })
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
        look_at(run, &wanted.from, |revision, direction| {
            let changeable = changeable(direction.tree, &wanted.path).ok_or_else(|| {
                let detail = format!("there is no class `{}` from {}", wanted.path, direction.from);
                Problem::new(Kind::NotFound, detail)
            })?;
            let document = PlaceDocument {
                revision,
                from: direction.from.to_owned(),
                path: wanted.path.clone(),
                changeable,
            };
            Ok((tag(shared, revision), json_bytes(&document)?))
        })
    });
    let (tag, bytes) = asked.await??;
    Ok(tagged(held("application/json", bytes, turn), &tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_is_made_once_for_each_revision() {
        let mut outlines = Outlines::default();
        let mut made = Vec::new();
        let asked = [
            (0, "left"),
            (0, "right"),
            (0, "left"),
            (1, "left"),
            (1, "left"),
            (2, "right"),
        ];
        for (revision, from) in asked {
            let text = format!("{revision} {from}");
            let document = outlines.get(revision, from, || {
                made.push(text.clone());
                Ok(text.clone().into_bytes())
            });
            assert_eq!(document.unwrap(), text.as_bytes());
            assert!(outlines.documents.len() <= 2);
        }
        assert_eq!(made, ["0 left", "0 right", "1 left", "2 right"]);
        // A failure is not kept.
        let failed = outlines.get(2, "left", || Err(Problem::new(Kind::Internal, "no")));
        assert!(failed.is_err());
        assert!(outlines.get(2, "left", || Ok(vec![7])).is_ok());
    }
}
