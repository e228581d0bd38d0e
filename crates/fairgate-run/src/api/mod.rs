//! The routes. Each handler has its description, of which the OpenAPI document is made.

mod changes;
mod classes;
mod flows;
mod health;
mod history;
mod intervals;
mod metrics;
mod openapi;
mod outline;
mod packets;
mod reservations;
mod status;
mod subscribers;
mod trees;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use fairgate_live::Offer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::guard::{Rules, guard};
use crate::page::page;
use crate::problem::{Kind, Problem};
use crate::shared::Shared;

pub use openapi::openapi;

/// Returns what an endpoint answers.
pub(crate) fn router(shared: Shared, rules: Rules, offer: Offer) -> Router {
    let (routes, _) = match offer {
        Offer::Api => described(),
        Offer::Metrics => OpenApiRouter::new().routes(routes!(metrics::metrics)),
    }
    .split_for_parts();
    let guarded = routes
        .fallback(nothing_here)
        .method_not_allowed_fallback(no_such_method)
        .with_state(shared.clone())
        .layer(from_fn_with_state((rules, shared), guard));
    match offer {
        // The page needs no permission, and without the API it would have nothing to show.
        Offer::Api => guarded.layer(from_fn(page)),
        Offer::Metrics => guarded,
    }
}

/// Returns the routes of the API, with their descriptions.
fn described() -> OpenApiRouter<Shared> {
    openapi::empty()
        .routes(routes!(health::health))
        .routes(routes!(status::status))
        .routes(routes!(status::direction))
        .routes(routes!(status::class))
        .routes(routes!(classes::classes))
        .routes(routes!(history::history))
        .routes(routes!(intervals::intervals))
        .routes(routes!(flows::flows))
        .routes(routes!(packets::packets))
        .routes(routes!(packets::what_if))
        .routes(routes!(trees::trees))
        .routes(routes!(outline::outline))
        .routes(routes!(outline::place))
        .routes(routes!(changes::changes, changes::change))
        .routes(routes!(reservations::list, reservations::add))
        .routes(routes!(reservations::replace, reservations::withdraw))
        .routes(routes!(reservations::refresh))
        .routes(routes!(subscribers::list, subscribers::replace_all))
        .routes(routes!(
            subscribers::one,
            subscribers::put,
            subscribers::patch,
            subscribers::remove
        ))
        .routes(routes!(openapi::document))
        .routes(routes!(metrics::metrics))
}

async fn nothing_here() -> Problem {
    Problem::new(Kind::NotFound, "/v1/openapi.json lists what is here")
}

async fn no_such_method() -> Problem {
    Problem::new(Kind::Method, "the header `Allow` lists the methods of this path")
}
