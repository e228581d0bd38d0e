//! What the run does.

use axum::extract::State;
use axum::response::Response;
use fairgate_run_api::{
    ClassStatus, Detail, DirectionStatus, NodeStatus, Question, RateStatus, SHARDED, Status,
};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::http::answer::{held, json_bytes};
use crate::http::problem::{Kind, Problem};
use crate::http::query::{Named, Parameters};
use crate::http::shared::{NOBODY, PATIENCE, Shared};

/// Has the run make its status, and `part` take what is wanted of it, on a thread that may wait.
pub(super) async fn ask_status<T: Send + 'static>(
    shared: &Shared,
    detail: Detail,
    part: impl FnOnce(Status) -> T + Send + 'static,
) -> Result<T, Problem> {
    let asked = shared.wait(move |shared| shared.put(NOBODY, Question::Status { detail }).map(part));
    match timeout(PATIENCE, asked).await {
        Ok(answer) => answer?,
        Err(_) => Err(Problem::new(
            Kind::Silent,
            format!("the forwarding threads said nothing for {} s", PATIENCE.as_secs()),
        )),
    }
}

/// How much is wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(default)]
    used: bool,
    classes: Option<String>,
}

impl Wanted {
    fn detail(&self) -> Result<Detail, Problem> {
        let Some(classes) = &self.classes else {
            return Ok(Detail::of(self.used));
        };
        let (first, last) = classes.split_once('-').unwrap_or((classes, classes));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Detail::Classes { first, last }),
            _ => Err(Problem::new(
                Kind::Malformed,
                "`classes` is the first and the last number of a page of classes, as `16-115`",
            )),
        }
    }
}

/// Which class is wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedClass {
    path: String,
}

/// A class: the state that the discipline above it keeps for it, and the discipline in it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClassDocument {
    /// The interface that its direction receives from.
    from: String,
    /// The numbers of the classes from the root on, as `20/3`.
    path: String,
    /// What the discipline above it keeps for it: only of htb, hfsc and cbq.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<ClassStatus>,
    /// Its rate, if it has an estimator.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated: Option<RateStatus>,
    /// The discipline in it. An inner class of a tree of classes has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    discipline: Option<NodeStatus>,
}

/// The whole status
#[utoipa::path(
    get,
    path = "/v1/status",
    operation_id = "status",
    tag = "status",
    params(("used" = Option<bool>, Query, description = "Leave out what no packet has come to, and the \
                                                         description of the trees: with thousands of \
                                                         classes this is much faster"),
           ("classes" = Option<String>, Query, description = "The numbers of a page of the classes at the \
                                                              roots, as `16-115`: the counters of these and \
                                                              of what is in them, however many there are")),
    responses(
        (status = 200, description = "The document `fairgate.status/1` of docs/json.md", body = Status),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn status(
    State(shared): State<Shared>,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let bytes = ask_status(&shared, wanted.detail()?, |status| json_bytes(&status)).await??;
    Ok(held("application/json", bytes, turn))
}

/// The status of one direction
#[utoipa::path(
    get,
    path = "/v1/status/{from}",
    operation_id = "directionStatus",
    tag = "status",
    params(
        ("from" = String, Path, description = "The interface that the direction receives from"),
        ("used" = Option<bool>, Query, description = "Leave out what no packet has come to"),
        ("classes" = Option<String>, Query, description = "The numbers of a page of the classes at the root, \
                                                           as `16-115`")
    ),
    responses(
        (status = 200, description = "The direction", body = DirectionStatus),
        (status = 404, description = "No direction is from this interface", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn direction(
    State(shared): State<Shared>,
    Named(from): Named,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let part = move |status| find_direction(status, &from).and_then(|found| json_bytes(&found));
    let bytes = ask_status(&shared, wanted.detail()?, part).await??;
    Ok(held("application/json", bytes, turn))
}

/// The status of one class, and of what is below it
#[utoipa::path(
    get,
    path = "/v1/status/{from}/class",
    operation_id = "classStatus",
    tag = "status",
    params(
        ("from" = String, Path, description = "The interface that the direction receives from"),
        ("path" = String, Query, description = "The numbers of the classes from the root on, as `20/3`")
    ),
    responses(
        (status = 200, description = "The class", body = ClassDocument),
        (status = 404, description = "There is no such class", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn class(
    State(shared): State<Shared>,
    Named(from): Named,
    Parameters(wanted): Parameters<WantedClass>,
) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let WantedClass { path } = wanted;
    let detail = |place: usize| match path.split('/').nth(place).map(str::parse) {
        Some(Ok(number)) => Detail::Classes {
            first: number,
            last: number,
        },
        _ => Detail::Counters,
    };
    let find = |from: String, path: String| {
        move |status: Status| {
            let found = find_direction(status, &from)?;
            let has_workers = found.tree.discipline == SHARDED;
            Ok((
                has_workers,
                find_class(found, path).and_then(|class| json_bytes(&class)),
            ))
        }
    };
    let asked = ask_status(&shared, detail(0), find(from.clone(), path.clone())).await?;
    let (has_workers, mut bytes) = asked?;
    if has_workers {
        // The first number is that of a worker.
        (_, bytes) = ask_status(&shared, detail(1), find(from, path.clone())).await??;
    }
    Ok(held("application/json", bytes?, turn))
}

fn find_direction(status: Status, from: &str) -> Result<DirectionStatus, Problem> {
    let names: Vec<String> = status
        .directions
        .iter()
        .map(|direction| direction.from.clone())
        .collect();
    let found = status.directions.into_iter().find(|found| found.from == from);
    found.ok_or_else(|| {
        let detail = format!("no direction is from `{from}`; name {}", names.join(" or "));
        Problem::new(Kind::NotFound, detail)
    })
}

fn find_class(direction: DirectionStatus, path: String) -> Result<ClassDocument, Problem> {
    let missing = || {
        let detail = format!("there is no class `{path}` from {}", direction.from);
        Problem::new(Kind::NotFound, detail)
    };
    let numbers = path.split('/').map(str::parse);
    let numbers: Vec<u32> = numbers.collect::<Result<_, _>>().map_err(|_| {
        let detail = "`path` is not made of the numbers of classes, as `20/3`";
        Problem::new(Kind::Malformed, detail)
    })?;
    let mut holder = direction.tree;
    for (depth, number) in (1..).zip(&numbers) {
        let mut classes = holder.classes.into_iter();
        let below = classes.find(|class| class.class == Some(*number));
        if depth == numbers.len() {
            let mut states = holder.class_states.into_iter();
            let state = states.find(|state| state.class == *number);
            if state.is_none() && below.is_none() {
                return Err(missing());
            }
            let mut rates = holder.estimated_classes.iter();
            return Ok(ClassDocument {
                from: direction.from,
                path,
                state,
                estimated: rates
                    .find(|estimated| estimated.class == *number)
                    .map(|found| found.rate),
                discipline: below,
            });
        }
        holder = below.ok_or_else(missing)?;
    }
    Err(missing())
}
