//! The counters for Prometheus.

use std::sync::PoisonError;

use axum::extract::State;
use axum::response::Response;
use fairgate_run_api::Detail;

use crate::http::answer::held;
use crate::http::api::status::ask_status;
use crate::http::problem::{Kind, Problem};
use crate::http::shared::Shared;
use crate::metrics::{MEDIA_TYPE, text};

/// The counters, as OpenMetrics text
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    tag = "status",
    responses(
        (status = 200, description = "OpenMetrics 1.0", body = String,
            content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn metrics(State(shared): State<Shared>) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let names = shared.clone();
    let made = ask_status(&shared, Detail::Used, move |status| {
        let mut classes = names.classes().lock().unwrap_or_else(PoisonError::into_inner);
        text(status, &mut classes)
    });
    let text = made
        .await?
        .map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
    Ok(held(MEDIA_TYPE, text.into_bytes(), turn))
}
