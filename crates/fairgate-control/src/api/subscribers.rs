//! Subscribers, each a resource with an entity tag of its own.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use fairgate_live::status::protocol::Answer;
use fairgate_subscribers::{Difference, Entry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::answer::{held, json, json_bytes};
use crate::body::Document;
use crate::guard::Who;
use crate::precondition::{Expected, tag};
use crate::problem::{Kind, Problem};
use crate::query::Named;
use crate::run::{Run, SubscriberChanged, Subscribers};
use crate::shared::Shared;

/// The subscribers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubscriberDocument {
    /// The revision of the trees.
    revision: u64,
    /// The subscribers, in the order of the list.
    subscribers: Vec<Entry>,
    /// The class of each one in both trees, by its identifier.
    classes: BTreeMap<String, u16>,
    /// How the list differed from the one before it when it was last read from its files or replaced as a
    /// whole. None if that never happened.
    difference: Option<Difference>,
    /// Whether they may be changed by the API. Those of LibreQoS' files are changed there.
    is_changeable: bool,
}

/// Another list of subscribers.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribersOrder {
    /// All subscribers.
    subscribers: Vec<Entry>,
}

/// A subscriber and its class.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubscriberStatus {
    /// The number of its class in both trees.
    class: u16,
    /// The subscriber.
    subscriber: Entry,
}

/// A change that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubscriberMade {
    /// The revision of the trees from now on.
    revision: u64,
    /// For how long nothing was forwarded, microseconds.
    pause_us: f64,
    /// Packets that had no room any more.
    dropped: u64,
    /// How the list differs from the one before it, if it was replaced as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

/// Members of a subscriber that change: those of the document; null leaves one to the plan.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object)]
pub(super) struct SubscriberPatch(Map<String, Value>);

/// Returns the list, if the run has one.
fn of(run: &dyn Run) -> Result<&dyn Subscribers, Problem> {
    run.subscribers().ok_or_else(no_list)
}

fn no_list() -> Problem {
    Problem::new(
        Kind::NotFound,
        "this run has no subscribers; add [subscribers] to its file",
    )
}

fn unknown(id: &str) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no subscriber `{id}`"))
}

/// Returns the entity tag of a subscriber. It is another one after each change of it, and of that alone.
fn tag_of(shared: &Shared, entry: &Entry) -> Result<String, Problem> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&json_bytes(entry)?);
    Ok(format!("\"{}-s{:016x}\"", shared.instance(), hasher.finish()))
}

/// Returns an answer to a change.
fn answer(
    shared: &Shared,
    answer: Answer,
    success: StatusCode,
    difference: Option<Difference>,
    tag: impl FnOnce(u64) -> Result<String, Problem>,
) -> Result<Response, Problem> {
    match answer {
        Answer::Changed {
            pause_us,
            dropped,
            revision,
        } => {
            let made = SubscriberMade {
                revision,
                pause_us,
                dropped,
                difference,
            };
            json(success, Some(&tag(revision)?), &made)
        }
        Answer::Refused { errors } => Err(Problem::refused(errors)),
        Answer::Stale { revision } => Err(Problem::stale(revision, self::tag(shared, revision))),
    }
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
    let made = shared.ask(|shared, run| {
        let all = of(run)?.all();
        let tag = tag(shared, all.revision);
        let ids = all.entries.iter().map(|entry| entry.id.clone());
        let classes = ids.zip(all.classes).collect();
        let document = SubscriberDocument {
            revision: all.revision,
            subscribers: all.entries,
            classes,
            difference: all.difference,
            is_changeable: all.is_changeable,
        };
        Ok((tag, json_bytes(&document)?))
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
/// With `If-Match`, nothing is changed if anyone has changed the trees since the client has read them.
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
        (status = 422, description = "The list has mistakes", body = Problem,
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
    let asked = shared.ask(move |shared, run| {
        let list = of(run)?;
        let revision = expected.revision(shared, || list.revision());
        let (made, difference) = list
            .replace(&who, order.subscribers, revision)
            .ok_or_else(no_list)?;
        answer(shared, made, StatusCode::OK, Some(difference), |revision| {
            Ok(tag(shared, revision))
        })
    });
    asked.await?
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
    let asked = shared.ask(move |shared, run| {
        let (subscriber, class) = of(run)?.one(&id).ok_or_else(|| unknown(&id))?;
        let tag = tag_of(shared, &subscriber)?;
        json(
            StatusCode::OK,
            Some(&tag),
            &SubscriberStatus { class, subscriber },
        )
    });
    asked.await?
}

/// What is done with a subscriber.
enum Order {
    Put(Entry),
    Patch(Map<String, Value>),
    Remove,
}

impl Order {
    /// Returns what becomes of a subscriber.
    fn made(&self, id: &str, known: Option<&Entry>) -> Result<Option<Entry>, Problem> {
        let made = match (self, known) {
            (Order::Put(entry), _) => Some(entry.clone()),
            (_, None) => return Err(unknown(id)),
            (Order::Remove, Some(_)) => None,
            (Order::Patch(members), Some(known)) => Some(patched(known, members)?),
        };
        match made {
            Some(entry) if !entry.id.is_empty() && entry.id != id => {
                let detail = format!("the path names `{id}`, and the document names `{}`", entry.id);
                Err(Problem::new(Kind::Malformed, detail))
            }
            Some(entry) => Ok(Some(Entry {
                id: id.to_owned(),
                ..entry
            })),
            None => Ok(None),
        }
    }
}

/// Returns a document with other members: RFC 7396. Its members are no objects, so none is merged.
fn patched(known: &Entry, members: &Map<String, Value>) -> Result<Entry, Problem> {
    let wrong = |error: serde_json::Error| {
        Problem::new(
            Kind::Malformed,
            format!("the changed subscriber is not understood: {error}"),
        )
    };
    let mut document = match serde_json::to_value(known).map_err(wrong)? {
        Value::Object(document) => document,
        _ => Map::new(),
    };
    for (name, value) in members {
        match value {
            Value::Null => drop(document.remove(name)),
            _ => drop(document.insert(name.clone(), value.clone())),
        }
    }
    serde_json::from_value(Value::Object(document)).map_err(wrong)
}

/// Carries out an order about a subscriber.
async fn carry_out(
    shared: &Shared,
    who: Arc<str>,
    id: String,
    headers: &HeaderMap,
    order: Order,
) -> Result<Response, Problem> {
    let expected = Expected::read(headers)?;
    let asked = shared.ask(move |shared, run| {
        let (mut refusal, mut success, mut tag) = (None, StatusCode::OK, None);
        let mut decide = |known: Option<&Entry>| -> Result<Option<Entry>, Problem> {
            if let Expected::OneOf(tags) = &expected {
                let current = known.map(|known| tag_of(shared, known)).transpose()?;
                if current.as_ref().is_none_or(|current| !tags.contains(current)) {
                    return Err(Problem::outdated(current));
                }
            }
            if known.is_none() {
                success = StatusCode::CREATED;
            }
            order.made(&id, known)
        };
        let mut change = |known: Option<&Entry>| match decide(known) {
            Ok(made) => {
                tag = made.clone();
                Some(made)
            }
            Err(problem) => {
                refusal = Some(problem);
                None
            }
        };
        let method = match order {
            Order::Put(_) => "PUT",
            Order::Patch(_) => "PATCH",
            Order::Remove => "DELETE",
        };
        let list = of(run)?;
        let changed = list.change(&who, method, &id, &mut change);
        // As it is from now on: the run writes rates and prefixes in its own way.
        let shown = || list.one(&id).map(|(entry, _)| entry).or(tag).unwrap_or_default();
        match (changed, refusal) {
            (SubscriberChanged::Asked(made), _) => {
                answer(shared, made, success, None, |_| tag_of(shared, &shown()))
            }
            (SubscriberChanged::Stopped, Some(problem)) => Err(problem),
            (SubscriberChanged::Stopped, None) => Err(Problem::new(Kind::Internal, "nobody has refused it")),
        }
    });
    asked.await?
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
    carry_out(&shared, who, id, &headers, Order::Put(entry)).await
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
    carry_out(&shared, who, id, &headers, Order::Patch(members)).await
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
    carry_out(&shared, who, id, &headers, Order::Remove).await
}
