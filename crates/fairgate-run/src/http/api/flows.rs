//! The flows of a run.

use axum::extract::State;
use axum::response::Response;
use fairgate_run_api::{DEFAULT_FLOWS, FlowOrder, FlowsStatus, Question};
use serde::Deserialize;

use crate::http::answer::{held, json_bytes};
use crate::http::problem::{Kind, Problem};
use crate::http::query::Parameters;
use crate::http::shared::{NOBODY, Shared};

/// The most flows of an answer.
pub(super) const MOST: u32 = 10_000;

/// Which flows are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(default)]
    sort: FlowOrder,
    #[serde(default = "default_limit")]
    limit: u32,
}

fn default_limit() -> u32 {
    DEFAULT_FLOWS
}

/// The flows that had packets in the last minute
///
/// They are observed while somebody asks: the first answer takes a second.
#[utoipa::path(
    get,
    path = "/v1/flows",
    operation_id = "flows",
    tag = "status",
    params(
        ("sort" = Option<FlowOrder>, Query, description = "The order, the largest first; by rate without it"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 10_000,
            description = "How many of them, 100 without it")
    ),
    responses(
        (status = 200, description = "The flows", body = FlowsStatus),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn flows(
    State(shared): State<Shared>,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Response, Problem> {
    if !(1..=MOST).contains(&wanted.limit) {
        let detail = format!("`limit` is {}, but must be from 1 to {MOST}", wanted.limit);
        return Err(Problem::new(Kind::Malformed, detail));
    }
    let turn = shared.turn_to_answer().await?;
    let question = Question::Flows {
        order: wanted.sort,
        limit: wanted.limit,
    };
    let flows: FlowsStatus = shared.ask(NOBODY.into(), question).await?;
    Ok(held("application/json", json_bytes(&flows)?, turn))
}
