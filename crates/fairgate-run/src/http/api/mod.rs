//! The routes. Each handler has its description, of which the OpenAPI document is made.

mod changes;
mod classes;
mod flows;
mod health;
mod history;
mod intervals;
mod metrics;
mod nodes;
mod openapi;
mod outline;
mod packets;
mod reservations;
mod status;
mod subscriber_now;
mod subscribers;
mod trees;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use fairgate_live::Offer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::guard::{Rules, guard};
use crate::http::page::page;
use crate::http::problem::{Kind, Problem};
use crate::http::shared::Shared;

pub use openapi::openapi;

/// What a door has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Routes {
    /// All that a run is asked, at its status socket: not the page, and not what is kept of the past for it.
    Questions,
    /// What `[run]` offers.
    Offered(Offer),
}

/// Returns what is answered at a door.
pub(crate) fn router(shared: Shared, rules: Rules, routes: Routes) -> Router {
    let (answered, _) = match routes {
        Routes::Questions => questions().fallback(nothing_at_the_socket),
        Routes::Offered(Offer::Api) => described().fallback(nothing_here),
        Routes::Offered(Offer::Metrics) => OpenApiRouter::new()
            .routes(routes!(metrics::metrics))
            .fallback(nothing_here),
    }
    .split_for_parts();
    let guarded = answered
        .method_not_allowed_fallback(no_such_method)
        .with_state(shared.clone())
        .layer(from_fn_with_state((rules, shared), guard));
    match routes {
        // The page needs no permission, and without the API it would have nothing to show.
        Routes::Offered(Offer::Api) => guarded.layer(from_fn(page)),
        Routes::Questions | Routes::Offered(Offer::Metrics) => guarded,
    }
}

/// Returns the routes of the API, with their descriptions.
fn described() -> OpenApiRouter<Shared> {
    questions()
        .routes(routes!(classes::classes))
        .routes(routes!(history::history))
        .routes(routes!(subscriber_now::now))
}

/// Returns those of them that need no thread to read the run all the time.
fn questions() -> OpenApiRouter<Shared> {
    openapi::empty()
        .routes(routes!(health::health))
        .routes(routes!(status::status))
        .routes(routes!(status::direction))
        .routes(routes!(status::class))
        .routes(routes!(intervals::intervals))
        .routes(routes!(flows::flows))
        .routes(routes!(packets::packets))
        .routes(routes!(packets::what_if))
        .routes(routes!(trees::trees))
        .routes(routes!(outline::outline))
        .routes(routes!(outline::place))
        .routes(routes!(changes::changes, changes::change))
        .routes(routes!(changes::confirm))
        .routes(routes!(changes::reload))
        .routes(routes!(reservations::list, reservations::add))
        .routes(routes!(reservations::replace, reservations::withdraw))
        .routes(routes!(reservations::refresh))
        .routes(routes!(
            subscribers::list,
            subscribers::replace_all,
            subscribers::patch_all
        ))
        .routes(routes!(
            subscribers::one,
            subscribers::put,
            subscribers::patch,
            subscribers::remove
        ))
        .routes(routes!(nodes::patch))
        .routes(routes!(openapi::document))
        .routes(routes!(metrics::metrics))
}

async fn nothing_here() -> Problem {
    Problem::new(Kind::NotFound, "/v1/openapi.json lists what is here")
}

async fn nothing_at_the_socket() -> Problem {
    let detail = "/v1/openapi.json lists what an API has; the page, and what it reads each second, need \
        one: `api` in [run]";
    Problem::new(Kind::NotFound, detail)
}

async fn no_such_method() -> Problem {
    Problem::new(Kind::Method, "the header `Allow` lists the methods of this path")
}
