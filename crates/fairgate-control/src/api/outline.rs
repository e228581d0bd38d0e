//! The trees as data, for programs that do not read configuration files.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{ETAG, HeaderValue};
use axum::response::Response;
use fairgate_run_api::{OutlineDocument, PlaceDocument, Question};
use serde::Deserialize;

use crate::answer::{held, json_bytes};
use crate::precondition::tag;
use crate::problem::Problem;
use crate::query::Parameters;
use crate::shared::{NOBODY, Shared};

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

/// The outlines that were asked for, as JSON, of one revision of the trees: two documents at most. That of a
/// direction with 20,000 classes has 2 MB.
#[derive(Debug, Default)]
pub(crate) struct Outlines {
    revision: u64,
    /// By the interface that the direction receives from.
    documents: BTreeMap<String, Bytes>,
}

impl Outlines {
    /// Returns the revision of the trees and the outline of a direction. It is made if it is the first one of
    /// this revision: `make` also returns the revision of what it makes.
    fn get(
        &mut self,
        revision: u64,
        from: &str,
        make: impl FnOnce() -> Result<(u64, Vec<u8>), Problem>,
    ) -> Result<(u64, Bytes), Problem> {
        if self.revision == revision
            && let Some(document) = self.documents.get(from)
        {
            return Ok((revision, document.clone()));
        }
        let (revision, document) = make()?;
        let document = Bytes::from(document);
        if self.revision != revision {
            self.documents.clear();
            self.revision = revision;
        }
        self.documents.insert(from.to_owned(), document.clone());
        Ok((revision, document))
    }
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
        &tag(&shared, revision),
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
        &tag(&shared, revision),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Kind;

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
                Ok((revision, text.clone().into_bytes()))
            });
            assert_eq!(document.unwrap(), (revision, Bytes::from(text)));
            assert!(outlines.documents.len() <= 2);
        }
        assert_eq!(made, ["0 left", "0 right", "1 left", "2 right"]);
        // A failure is not kept.
        let failed = outlines.get(2, "left", || Err(Problem::new(Kind::Internal, "no")));
        assert!(failed.is_err());
        assert!(outlines.get(2, "left", || Ok((2, vec![7]))).is_ok());
    }
}
