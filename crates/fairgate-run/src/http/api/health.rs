//! Whether the run answers.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use fairgate_run_api::{Detail, Features, Question};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::answer::json;
use crate::http::api::status::ask_status;
use crate::http::guard::MayChange;
use crate::http::problem::Problem;
use crate::http::shared::{NOBODY, Shared};

/// That the run answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// The run's name.
    name: String,
    /// Its process id.
    pid: u32,
    /// The version of Fairgate.
    version: &'static str,
    /// Seconds since its start.
    uptime_s: f64,
    /// The revision of the trees.
    revision: u64,
    /// Whether the run has a list of subscribers.
    subscribers: bool,
    /// Whether the run keeps its last packets (`packet_log`).
    packets: bool,
    /// Whether this client may change the run. Some tokens may only read.
    may_change: bool,
}

/// Whether the forwarding threads answer
#[utoipa::path(
    get,
    path = "/v1/health",
    operation_id = "health",
    tag = "service",
    responses(
        (status = 200, description = "They do", body = Health),
        (status = 503, description = "They do not answer within 5 s, or the run ends", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn health(
    State(shared): State<Shared>,
    Extension(MayChange(may_change)): Extension<MayChange>,
) -> Result<Response, Problem> {
    let _turn = shared.turn_to_answer().await?;
    let features: Features = shared.ask(NOBODY.into(), Question::Features).await?;
    let status = ask_status(&shared, Detail::Used, |status| status).await?;
    let health = Health {
        name: status.name,
        pid: status.pid,
        version: env!("CARGO_PKG_VERSION"),
        uptime_s: status.uptime_s,
        revision: status.revision,
        subscribers: features.subscribers,
        packets: features.packets,
        may_change,
    };
    json(StatusCode::OK, None, &health)
}
