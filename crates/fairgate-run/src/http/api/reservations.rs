//! Reservations.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use fairgate_run_api::{Question, Reservations, Reserve, ReserveOrder, TermsStatus};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::answer::json;
use crate::http::body::Document;
use crate::http::guard::Who;
use crate::http::precondition::{Expected, tag};
use crate::http::problem::{Kind, Problem};
use crate::http::query::{Named, Parameters};
use crate::http::shared::Shared;

/// Which direction is meant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Direction {
    /// The interface that it receives from. It may be left out if reservations are possible in one direction
    /// only.
    from: Option<String>,
}

/// The terms of a reservation, and its direction.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReservationOrder {
    /// The interface that the direction receives from. It may be left out if reservations are possible in one
    /// direction only.
    from: Option<String>,
    /// What is asked for.
    terms: TermsStatus,
}

/// Who orders something, and what is demanded before.
struct Ordered {
    who: Arc<str>,
    from: Option<String>,
    expected: Expected,
    success: StatusCode,
}

impl Ordered {
    fn new(who: Arc<str>, from: Option<String>, headers: &HeaderMap) -> Result<Ordered, Problem> {
        Ok(Ordered {
            who,
            from,
            expected: Expected::read(headers)?,
            success: StatusCode::OK,
        })
    }

    async fn carry_out(self, shared: &Shared, order: ReserveOrder) -> Result<Response, Problem> {
        let Ordered {
            who,
            from,
            expected,
            success,
        } = self;
        let reserve = |if_revision| {
            Question::Reserve(Reserve {
                from,
                order,
                if_revision,
            })
        };
        let done: Reservations = shared.change(who, expected, reserve).await?;
        json(success, Some(&tag(shared.instance(), done.revision)), &done)
    }
}

/// All reservations
#[utoipa::path(
    get,
    path = "/v1/reservations",
    operation_id = "reservations",
    tag = "reservations",
    params(("from" = Option<String>, Query, description = "Only those of the direction from this interface")),
    responses(
        (status = 200, description = "The reservations", body = Reservations,
            headers(("ETag" = String, description = "Of the trees"))),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn list(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Parameters(direction): Parameters<Direction>,
) -> Result<Response, Problem> {
    let ordered = Ordered::new(who, direction.from, &HeaderMap::new())?;
    ordered.carry_out(&shared, ReserveOrder::List).await
}

/// Add a reservation
#[utoipa::path(
    post,
    path = "/v1/reservations",
    operation_id = "reserve",
    tag = "reservations",
    params(("If-Match" = Option<String>, Header, description = "The entity tag of the trees")),
    request_body = ReservationOrder,
    responses(
        (status = 201, description = "It was added", body = Reservations),
        (status = 412, description = "The trees have changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "It can't be promised", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn add(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    headers: HeaderMap,
    Document(order): Document<ReservationOrder>,
) -> Result<Response, Problem> {
    let mut ordered = Ordered::new(who, order.from, &headers)?;
    ordered.success = StatusCode::CREATED;
    ordered.carry_out(&shared, ReserveOrder::Add(order.terms)).await
}

/// Give a reservation other terms; if they are refused, the old ones hold
#[utoipa::path(
    put,
    path = "/v1/reservations/{name}",
    operation_id = "changeReservation",
    tag = "reservations",
    params(
        ("name" = String, Path, description = "The name of the reservation"),
        ("If-Match" = Option<String>, Header, description = "The entity tag of the trees")
    ),
    request_body = ReservationOrder,
    responses(
        (status = 200, description = "It was changed", body = Reservations),
        (status = 412, description = "The trees have changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The terms can't be promised", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn replace(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Named(name): Named,
    headers: HeaderMap,
    Document(order): Document<ReservationOrder>,
) -> Result<Response, Problem> {
    if order.terms.name != name {
        let detail = format!(
            "the path names `{name}`, and the terms name `{}`",
            order.terms.name
        );
        return Err(Problem::new(Kind::Malformed, detail));
    }
    let ordered = Ordered::new(who, order.from, &headers)?;
    ordered
        .carry_out(&shared, ReserveOrder::Change(order.terms))
        .await
}

/// End a reservation
#[utoipa::path(
    delete,
    path = "/v1/reservations/{name}",
    operation_id = "withdraw",
    tag = "reservations",
    params(
        ("name" = String, Path, description = "The name of the reservation"),
        ("from" = Option<String>, Query, description = "The interface that the direction receives from"),
        ("If-Match" = Option<String>, Header, description = "The entity tag of the trees")
    ),
    responses(
        (status = 200, description = "It has ended", body = Reservations),
        (status = 412, description = "The trees have changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "There is no such reservation", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn withdraw(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Named(name): Named,
    Parameters(direction): Parameters<Direction>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let ordered = Ordered::new(who, direction.from, &headers)?;
    ordered.carry_out(&shared, ReserveOrder::Withdraw { name }).await
}

/// Let a reservation live for another lifetime from now on
#[utoipa::path(
    post,
    path = "/v1/reservations/{name}/refresh",
    operation_id = "refresh",
    tag = "reservations",
    params(("name" = String, Path, description = "The name of the reservation")),
    request_body = Direction,
    responses(
        (status = 200, description = "It lives on", body = Reservations),
        (status = 422, description = "There is no such reservation", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn refresh(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Named(name): Named,
    headers: HeaderMap,
    Document(direction): Document<Direction>,
) -> Result<Response, Problem> {
    let ordered = Ordered::new(who, direction.from, &headers)?;
    ordered.carry_out(&shared, ReserveOrder::Refresh { name }).await
}
