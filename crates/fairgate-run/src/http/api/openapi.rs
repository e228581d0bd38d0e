//! The OpenAPI document.

use std::sync::LazyLock;

use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use fairgate_run_api::FlowOrder;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

use crate::http::problem::Problem;
use crate::http::shared::Shared;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Fairgate",
        description = "Controls a running `fairgate run`: its state, its trees, and changes of them. All \
                       errors are problem details (RFC 9457)."
    ),
    components(schemas(FlowOrder, Problem)),
    modifiers(&Access),
    tags(
        (name = "status", description = "What the run does"),
        (name = "trees", description = "What it is configured to do"),
        (name = "reservations", description = "Promises of a rate and a delay"),
        (name = "subscribers", description = "Who has which rates"),
        (name = "service", description = "The API itself")
    )
)]
struct Empty;

/// Over TCP a token is needed. At a unix socket the kernel says who asks.
struct Access;

impl Modify for Access {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A token of the run's file. At a unix socket none is needed: the kernel says who asks.",
            ))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
        document.security = Some(vec![
            SecurityRequirement::default(),
            SecurityRequirement::new("token", Vec::<String>::new()),
        ]);
    }
}

/// Returns the document without routes.
pub(super) fn empty() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(Empty::openapi())
}

/// Returns the OpenAPI 3.1 document of the API.
pub fn openapi() -> String {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let (_, document) = super::described().split_for_parts();
        document.to_json().expect("it has no maps with odd keys")
    });
    DOCUMENT.clone()
}

/// The description of this API: OpenAPI 3.1
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    operation_id = "openapi",
    tag = "service",
    responses((status = 200, description = "This document", body = Object))
)]
pub(super) async fn document() -> Response {
    let mut response = openapi().into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
