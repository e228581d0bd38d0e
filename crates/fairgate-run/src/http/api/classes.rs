//! What the classes do just now.

use axum::extract::State;
use axum::response::Response;
use fairgate_run_api::{Losses, PassedByStatus, Sojourn};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::history::ClassFigures;
use crate::http::answer::{held, json_bytes};
use crate::http::api::history::{find, readings};
use crate::http::problem::Problem;
use crate::http::query::Parameters;
use crate::http::shared::Shared;

/// Which classes are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedClasses {
    from: String,
    #[serde(default)]
    sort: Sort,
    limit: Option<usize>,
}

/// The order of classes: what they have most of.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sort {
    #[default]
    Rate,
    Delay,
    P95,
    Drops,
    Backlog,
    Use,
}

/// What the classes of a direction did between the last two readings of the run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClassesDocument {
    /// `fairgate.classes/1`.
    schema: &'static str,
    /// The interface that the direction receives from.
    from: String,
    /// The interface that it sends to.
    to: String,
    /// The revision of the trees.
    revision: u64,
    /// When the last reading was made, seconds since the start of the run.
    at_s: f64,
    /// The time between the two readings; null before the second one.
    seconds: Option<f64>,
    /// The times that packets have spent in the tree since the start of the run.
    sojourn: Sojourn,
    /// Sojourn times of both directions between the two readings that are not in the percentiles, because the
    /// run was too busy to count them; null if none were counted, because nobody had asked in the minute
    /// before.
    missed_delays: Option<u64>,
    /// Frames lost outside of the tree since the start of the run.
    lost: Losses,
    /// Why the run has another configuration than its file says; null if it has that one.
    fallback: Option<String>,
    /// The times in which packets went past this run on one interface, because it took none.
    passed_by: PassedByStatus,
    /// How many classes packets have come to, with the root.
    count: usize,
    /// How many of these are the classes of subscribers.
    subscribers: usize,
    /// The root, and the classes that have most of what is sorted by.
    classes: Vec<ClassFigures>,
    /// The nodes of the network above subscribers, all that packets have come to: the sums of the classes
    /// below them, without percentiles.
    nodes: Vec<ClassFigures>,
}

/// What the classes of a direction do just now
///
/// The run is read once a second, or less often if a reading takes more than 5 % of the time. All clients get
/// the same reading. Percentiles of delays are counted from the first request for the classes or the history
/// on, until nobody has asked for a minute.
#[utoipa::path(
    get,
    path = "/v1/classes",
    operation_id = "classes",
    tag = "status",
    params(
        ("from" = String, Query, description = "The interface that the direction receives from"),
        ("sort" = inline(Option<Sort>), Query, description = "What the first classes have most of. Default: \
                                                            `rate`"),
        ("limit" = Option<usize>, Query, description = "How many classes at most, besides the root. Default: \
                                                        100")
    ),
    responses(
        (status = 200, description = "The classes that packets have come to", body = ClassesDocument),
        (status = 404, description = "There is no such direction", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn classes(
    State(shared): State<Shared>,
    Parameters(wanted): Parameters<WantedClasses>,
) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let asked = shared.wait(move |shared| {
        let history = readings(shared)?;
        let direction = find(&history, &wanted.from)?;
        let document = ClassesDocument {
            schema: "fairgate.classes/1",
            from: direction.from.clone(),
            to: direction.to.clone(),
            revision: history.revision,
            at_s: direction.at_s,
            seconds: direction.seconds,
            sojourn: direction.delay,
            missed_delays: history.missed_delays,
            lost: direction.lost,
            fallback: history.fallback.clone(),
            passed_by: history.passed_by,
            count: direction.latest.len(),
            subscribers: direction
                .latest
                .iter()
                .filter(|class| class.subscriber.is_some())
                .count(),
            classes: first(&direction.latest, wanted.sort, wanted.limit.unwrap_or(100)),
            nodes: direction.nodes.clone(),
        };
        drop(history);
        json_bytes(&document)
    });
    Ok(held("application/json", asked.await??, turn))
}

/// Returns the root, and the `limit` classes that have most.
fn first(latest: &[ClassFigures], sort: Sort, limit: usize) -> Vec<ClassFigures> {
    let key = |class: &ClassFigures| match sort {
        Sort::Rate => class.rate_bps,
        Sort::Delay => class.delay_ms.unwrap_or(-1.0),
        Sort::P95 => class.p95_ms.unwrap_or(-1.0),
        Sort::Drops => class.dropped_per_s,
        Sort::Backlog => class.backlog_bytes as f64,
        Sort::Use => class
            .limit_bps
            .map_or(-1.0, |limit| class.rate_bps / limit.max(1) as f64),
    };
    // The root is the last of a tree's nodes.
    let Some((root, below)) = latest.split_last() else {
        return Vec::new();
    };
    let mut sorted: Vec<&ClassFigures> = below.iter().collect();
    // Of those that have as much, the ones with the higher rate are first.
    sorted.sort_by(|one, other| {
        key(other)
            .total_cmp(&key(one))
            .then(other.rate_bps.total_cmp(&one.rate_bps))
    });
    sorted.truncate(limit);
    std::iter::once(root).chain(sorted).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_have_most() {
        let class = |name: &str, rate_bps: f64, delay_ms: Option<f64>| ClassFigures {
            class: name.to_owned(),
            discipline: "fifo".to_owned(),
            rate_bps,
            delay_ms,
            p95_ms: delay_ms.map(|delay| 10.0 - delay),
            ..ClassFigures::default()
        };
        let all = [
            class("1", 5.0, Some(0.0)),
            class("2", 9.0, None),
            class("3", 7.0, Some(4.0)),
            class("root", 21.0, Some(1.0)),
        ];
        let names = |sort, limit| -> Vec<String> {
            first(&all, sort, limit)
                .into_iter()
                .map(|class| class.class)
                .collect()
        };
        assert_eq!(names(Sort::Rate, 2), ["root", "2", "3"]);
        assert_eq!(names(Sort::Delay, 9), ["root", "3", "1", "2"]);
        assert_eq!(names(Sort::P95, 9), ["root", "1", "3", "2"]);
        assert_eq!(names(Sort::Drops, 1), ["root", "2"]);
        assert!(first(&[], Sort::Rate, 3).is_empty());
    }
}
