//! Subscribers, each a resource with an entity tag of its own.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use fairgate_run_api::{
    Entry, Question, SubscriberChange, SubscriberChanged, SubscriberDocument, SubscriberMade,
    SubscriberStatus,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::http::answer::{held, json, json_bytes};
use crate::http::body::Document;
use crate::http::guard::Who;
use crate::http::precondition::{Expected, tag, tag_of};
use crate::http::problem::{Kind, Problem};
use crate::http::query::Named;
use crate::http::shared::{NOBODY, Shared};

/// Another list of subscribers.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribersOrder {
    /// All subscribers.
    subscribers: Vec<Entry>,
    /// The number of subscribers that it may remove whatever their share is.
    confirmed_removed: Option<u64>,
}

/// Members of a subscriber that change: those of the document; null leaves one to the plan.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object)]
pub(super) struct SubscriberPatch(Map<String, Value>);

/// Members that change of several subscribers.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribersPatch {
    /// For each subscriber its `id`, and the members that change; null leaves one to the plan.
    #[schema(value_type = Vec<Object>)]
    subscribers: Vec<SubscriberPatch>,
    /// For how long `down` and `up` hold, seconds, at most 31,622,400. Then those of the list do again, which
    /// stays as it is. 0 ends a limit now. Without it, the list changes.
    for_s: Option<u64>,
}

/// All subscribers
#[utoipa::path(
    get,
    path = "/v1/subscribers",
    operation_id = "subscribers",
    tag = "subscribers",
    responses(
        (status = 200, description = "The subscribers", body = SubscriberDocument,
            headers(("ETag" = String, description = "Of the trees"))),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn list(State(shared): State<Shared>) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let made = shared.wait(|shared| {
        let all: SubscriberDocument = shared.put(NOBODY, Question::Subscribers)?;
        Ok((tag(shared.instance(), all.revision), json_bytes(&all)?))
    });
    let (tag, bytes) = made.await??;
    let mut response = held("application/json", bytes, turn);
    if let Ok(tag) = tag.parse() {
        response.headers_mut().insert(axum::http::header::ETAG, tag);
    }
    Ok(response)
}

/// Put another list in the place of the whole one
///
/// With `If-Match`, nothing is changed if anyone has changed the trees since the client has read them. A list
/// that removes more subscribers than `most_removed` of the run allows, or all of them, is refused unless
/// `confirmed_removed` has their number.
#[utoipa::path(
    put,
    path = "/v1/subscribers",
    operation_id = "replaceSubscribers",
    tag = "subscribers",
    params(("If-Match" = Option<String>, Header, description = "The entity tag of the trees")),
    request_body = SubscribersOrder,
    responses(
        (status = 200, description = "The change was made", body = SubscriberMade,
            headers(("ETag" = String, description = "Of the trees from now on"))),
        (status = 412, description = "The trees have changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The list has mistakes, or removes too many", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn replace_all(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    headers: HeaderMap,
    Document(order): Document<SubscribersOrder>,
) -> Result<Response, Problem> {
    let expected = Expected::read(&headers)?;
    let replace = move |if_revision| Question::ReplaceSubscribers {
        subscribers: order.subscribers,
        confirmed_removed: order.confirmed_removed,
        if_revision,
    };
    let made: SubscriberMade = shared.change(who, expected, replace).await?;
    json(
        StatusCode::OK,
        Some(&tag(shared.instance(), made.revision)),
        &made,
    )
}

/// Change members of several subscribers
///
/// All of them change, or none. With `If-Match`, nothing is changed if anyone has changed the trees since the
/// client has read them.
#[utoipa::path(
    patch,
    path = "/v1/subscribers",
    operation_id = "patchSubscribers",
    tag = "subscribers",
    params(("If-Match" = Option<String>, Header, description = "The entity tag of the trees")),
    request_body = SubscribersPatch,
    responses(
        (status = 200, description = "The change was made", body = SubscriberMade,
            headers(("ETag" = String, description = "Of the trees from now on"))),
        (status = 412, description = "The trees have changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "A subscriber is missing, or has mistakes", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn patch_all(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    headers: HeaderMap,
    Document(order): Document<SubscribersPatch>,
) -> Result<Response, Problem> {
    let expected = Expected::read(&headers)?;
    let named = |SubscriberPatch(mut members): SubscriberPatch| match members.remove("id") {
        Some(Value::String(id)) => Ok((id, members)),
        _ => Err(Problem::new(
            Kind::Malformed,
            "each subscriber needs its `id` as text",
        )),
    };
    let patches = order
        .subscribers
        .into_iter()
        .map(named)
        .collect::<Result<Vec<_>, _>>()?;
    let for_s = order.for_s;
    let change = move |if_revision| Question::PatchSubscribers {
        patches,
        for_s,
        if_revision,
    };
    let made: SubscriberMade = shared.change(who, expected, change).await?;
    json(
        StatusCode::OK,
        Some(&tag(shared.instance(), made.revision)),
        &made,
    )
}

/// A subscriber
#[utoipa::path(
    get,
    path = "/v1/subscribers/{id}",
    operation_id = "subscriber",
    tag = "subscribers",
    params(("id" = String, Path, description = "Its identifier")),
    responses(
        (status = 200, description = "The subscriber", body = SubscriberStatus,
            headers(("ETag" = String, description = "Of the subscriber"))),
        (status = 404, description = "There is no such subscriber", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn one(State(shared): State<Shared>, Named(id): Named) -> Result<Response, Problem> {
    let found: SubscriberStatus = shared.ask(NOBODY.into(), Question::Subscriber { id }).await?;
    json(
        StatusCode::OK,
        Some(&tag_of(shared.instance(), &found.subscriber)),
        &found,
    )
}

/// Changes a subscriber.
async fn changed(
    shared: &Shared,
    who: Arc<str>,
    id: String,
    headers: &HeaderMap,
    change: SubscriberChange,
) -> Result<Response, Problem> {
    let question = Question::ChangeSubscriber {
        id,
        change,
        if_version: Expected::read(headers)?.versions(shared.instance()),
    };
    let changed: SubscriberChanged = shared.ask(who, question).await?;
    let success = match changed.is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    json(
        success,
        Some(&tag_of(shared.instance(), &changed.subscriber)),
        &changed.made,
    )
}

/// Add a subscriber, or change it as a whole
#[utoipa::path(
    put,
    path = "/v1/subscribers/{id}",
    operation_id = "putSubscriber",
    tag = "subscribers",
    params(
        ("id" = String, Path, description = "Its identifier"),
        ("If-Match" = Option<String>, Header, description = "The entity tag of the subscriber")
    ),
    request_body = Entry,
    responses(
        (status = 200, description = "It was changed", body = SubscriberMade,
            headers(("ETag" = String, description = "Of the subscriber from now on"))),
        (status = 201, description = "It was added", body = SubscriberMade,
            headers(("ETag" = String, description = "Of the subscriber"))),
        (status = 412, description = "The subscriber has changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The document has mistakes", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn put(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Named(id): Named,
    headers: HeaderMap,
    Document(entry): Document<Entry>,
) -> Result<Response, Problem> {
    changed(&shared, who, id, &headers, SubscriberChange::Put(entry)).await
}

/// Change members of a subscriber
#[utoipa::path(
    patch,
    path = "/v1/subscribers/{id}",
    operation_id = "patchSubscriber",
    tag = "subscribers",
    params(
        ("id" = String, Path, description = "Its identifier"),
        ("If-Match" = Option<String>, Header, description = "The entity tag of the subscriber")
    ),
    request_body = SubscriberPatch,
    responses(
        (status = 200, description = "It was changed", body = SubscriberMade,
            headers(("ETag" = String, description = "Of the subscriber from now on"))),
        (status = 404, description = "There is no such subscriber", body = Problem,
            content_type = "application/problem+json"),
        (status = 412, description = "The subscriber has changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The changed document has mistakes", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn patch(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Named(id): Named,
    headers: HeaderMap,
    Document(SubscriberPatch(members)): Document<SubscriberPatch>,
) -> Result<Response, Problem> {
    changed(&shared, who, id, &headers, SubscriberChange::Patch(members)).await
}

/// Remove a subscriber
#[utoipa::path(
    delete,
    path = "/v1/subscribers/{id}",
    operation_id = "removeSubscriber",
    tag = "subscribers",
    params(
        ("id" = String, Path, description = "Its identifier"),
        ("If-Match" = Option<String>, Header, description = "The entity tag of the subscriber")
    ),
    responses(
        (status = 200, description = "It was removed", body = SubscriberMade),
        (status = 404, description = "There is no such subscriber", body = Problem,
            content_type = "application/problem+json"),
        (status = 412, description = "The subscriber has changed since", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "The run refuses it", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn remove(
    State(shared): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Named(id): Named,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    changed(&shared, who, id, &headers, SubscriberChange::Remove).await
}
