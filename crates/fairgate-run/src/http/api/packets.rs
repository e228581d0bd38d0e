//! The last packets of a run, and what other disciplines would have done with them.

use std::time::Duration;

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, HeaderValue};
use axum::response::Response;
use fairgate_run_api::{Question, WhatIf};
use serde::Deserialize;

use crate::http::answer::held;
use crate::http::body::Document;
use crate::http::problem::{Kind, Problem};
use crate::http::query::Parameters;
use crate::http::shared::{NOBODY, Shared};

/// Which packets are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    seconds: Option<f64>,
    from: Option<String>,
}

/// The last packets, as a capture
///
/// Each packet has the time of its arrival at its queue, and a comment: what became of it, after how long,
/// and in which class. Dropped packets are included. The run needs `packet_log`.
#[utoipa::path(
    get,
    path = "/v1/packets",
    operation_id = "packets",
    tag = "status",
    params(
        ("seconds" = Option<f64>, Query, description = "The time before now from which packets are wanted; \
                                                        all that are kept without it"),
        ("from" = Option<String>, Query, description = "The interface that has received them; both \
                                                        without it")
    ),
    responses(
        (status = 200, description = "pcapng", body = Vec<u8>, content_type = "application/x-pcapng"),
        (status = 404, description = "The run keeps no packets, or has no such interface", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn packets(
    State(shared): State<Shared>,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Response, Problem> {
    let last = read_seconds(wanted.seconds)?;
    let turn = shared.turn_to_answer().await?;
    let question = Question::Packets {
        last,
        from: wanted.from,
    };
    let capture: Vec<u8> = shared.ask(NOBODY.into(), question).await?;
    let mut response = held("application/x-pcapng", capture, turn);
    let name = HeaderValue::from_static("attachment; filename=\"packets.pcapng\"");
    response.headers_mut().insert(CONTENT_DISPOSITION, name);
    Ok(response)
}

/// What would other disciplines have done just now?
///
/// The last packets are replayed through the tree as it is and through other disciplines, at the rate of the
/// link. The answer is the page of `fairgate compare`. The run needs `packet_log`.
#[utoipa::path(
    post,
    path = "/v1/what-if",
    operation_id = "whatIf",
    tag = "status",
    request_body = WhatIf,
    responses(
        (status = 200, description = "A page", body = String, content_type = "text/html; charset=utf-8"),
        (status = 404, description = "The run keeps no packets", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The question can't be answered", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn what_if(
    State(shared): State<Shared>,
    Document(question): Document<WhatIf>,
) -> Result<Response, Problem> {
    read_seconds(question.seconds)?;
    let _only = shared.turn_to_compare().await?;
    let turn = shared.turn_to_answer().await?;
    let page: String = shared.ask(NOBODY.into(), Question::WhatIf(question)).await?;
    Ok(held("text/html; charset=utf-8", page.into_bytes(), turn))
}

fn read_seconds(seconds: Option<f64>) -> Result<Option<Duration>, Problem> {
    let read = |seconds: f64| match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => {
            let detail = format!("`seconds` is {seconds}, but must be a time above 0");
            Err(Problem::new(Kind::Malformed, detail))
        }
    };
    seconds.map(read).transpose()
}
