//! What the classes did in the last 24 hours.

use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use axum::extract::State;
use axum::response::Response;
use fairgate_run_api::{Detail, Question, Status};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::history::{
    Coarse, CoarseFigure, DirectionHistory, Figure, History, MOST_SERIES, ROOT, SPAN_S, STEP_S,
};
use crate::http::answer::{held, json_bytes};
use crate::http::problem::{Kind, Problem};
use crate::http::query::Parameters;
use crate::http::shared::{NOBODY, Shared};

/// Which history is wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedHistory {
    from: String,
    class: Option<String>,
    seconds: Option<u64>,
    after: Option<f64>,
    limit: Option<usize>,
}

/// What the classes of a direction did. All lists have a member for each of the times.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HistoryDocument {
    /// `fairgate.history/1`.
    schema: &'static str,
    /// The interface that the direction receives from.
    from: String,
    /// The interface that it sends to.
    to: String,
    /// The length of a step: a reading each second or less often, or means of 10 s or of a minute. Of a class
    /// that is not among those that send most: means of 5 minutes.
    step_s: f64,
    /// When the last reading was made, seconds since the start of the run.
    now_s: f64,
    /// The ends of the steps, seconds since the start of the run. Those of runs before it are negative. Where
    /// none was there, a step has null for all values.
    at_s: Vec<f64>,
    /// The root, and the classes that are wanted.
    series: Vec<SeriesDocument>,
    /// How many classes have a history in short steps: those that send most. A class gets its place when it
    /// has clearly sent more than another one, in the last hour above all. What it did before is null.
    classes: usize,
    /// How many classes may have one.
    classes_limit: usize,
}

/// What a class did. Values are null where there are none: the class was not there, or no packet had left. Of
/// steps of 5 minutes only rate, delay and drops are kept.
#[derive(Debug, Serialize, ToSchema)]
struct SeriesDocument {
    /// The numbers of the classes from the root on, as `20/3`; `root` for the root.
    class: String,
    /// The discipline in it.
    discipline: String,
    /// What left it, bits per second.
    rate_bps: Vec<Option<f32>>,
    /// The mean time that packets spent in it, milliseconds.
    delay_ms: Vec<Option<f32>>,
    /// The 95th percentile of these times, accurate to 7 %; of longer steps, the highest one of the readings
    /// in it. It is null where none was counted: nobody had asked for the history or the classes in the
    /// minute before.
    highest_p95_ms: Vec<Option<f32>>,
    /// The 99th percentile of these times; of longer steps, the highest one of the readings in it.
    highest_p99_ms: Vec<Option<f32>>,
    /// Packets dropped in each second.
    dropped_per_s: Vec<Option<f32>>,
    /// Packets marked in each second.
    marked_per_s: Vec<Option<f32>>,
    /// What waited at the end of the step; of longer steps, the most of all readings in it.
    backlog_bytes: Vec<Option<f32>>,
}

/// Returns what was read of the run, and notes that somebody wants it. If nothing was read yet, it is read
/// now.
pub(super) fn readings<'h>(shared: &'h Shared) -> Result<MutexGuard<'h, History>, Problem> {
    let mut history = shared.history().lock().unwrap_or_else(PoisonError::into_inner);
    history.note_interest(Instant::now());
    if history.directions.is_empty() {
        let detail = Detail::Used;
        let status: Status = shared.put(NOBODY, Question::Status { detail })?;
        history.take(&status, None);
    }
    Ok(history)
}

/// Finds a direction of the history.
pub(super) fn find<'h>(history: &'h History, from: &str) -> Result<&'h DirectionHistory, Problem> {
    let names: Vec<&str> = history
        .directions
        .iter()
        .map(|direction| direction.from.as_str())
        .collect();
    history.direction(from).ok_or_else(|| {
        let detail = format!("no direction is from `{from}`; name {}", names.join(" or "));
        Problem::new(Kind::NotFound, detail)
    })
}

/// What the classes of a direction did in the last 24 hours
///
/// A point is made of each reading for 10 minutes, for each 10 s in 2 hours, and for each minute in 24 hours.
/// The answer has the finest of them that go back as far as is wanted. Only the classes that send most have
/// them. The others have a point for each 5 minutes in 24 hours: the answer if `class` is one of them.
///
/// Percentiles of delays are counted from the first request for the history or the classes on, until nobody
/// has asked for a minute.
#[utoipa::path(
    get,
    path = "/v1/history",
    operation_id = "history",
    tag = "status",
    params(
        ("from" = String, Query, description = "The interface that the direction receives from"),
        ("class" = Option<String>, Query, description = "Only this class, as `20/3`. Without it, the classes \
                                                         that have none below them and sent most"),
        ("seconds" = Option<u64>, Query, description = "How far back: at most 86400. Default: 600"),
        ("after" = Option<f64>, Query, description = "Only later points than this one of `at_s`"),
        ("limit" = Option<usize>, Query, description = "How many classes at most. Default: 8")
    ),
    responses(
        (status = 200, description = "The history", body = HistoryDocument),
        (status = 404, description = "There is no such direction, or no history of the class", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn history(
    State(shared): State<Shared>,
    Parameters(wanted): Parameters<WantedHistory>,
) -> Result<Response, Problem> {
    let seconds = wanted.seconds.unwrap_or(600);
    if !(1..=SPAN_S).contains(&seconds) {
        let detail = format!("`seconds` is {seconds}, but must be 1 to {SPAN_S}");
        return Err(Problem::new(Kind::Malformed, detail));
    }
    let limit = wanted.limit.unwrap_or(8).min(MOST_SERIES);
    let turn = shared.turn_to_answer().await?;
    let asked = shared.wait(move |shared| {
        let history = readings(shared)?;
        let direction = find(&history, &wanted.from)?;
        let document = of(
            direction,
            wanted.class.as_deref(),
            seconds as f64,
            wanted.after,
            limit,
        )?;
        drop(history);
        json_bytes(&document)
    });
    Ok(held("application/json", asked.await??, turn))
}

fn of(
    direction: &DirectionHistory,
    class: Option<&str>,
    seconds: f64,
    after: Option<f64>,
    limit: usize,
) -> Result<HistoryDocument, Problem> {
    let now_s = direction.at_s;
    let tier = direction.axis.tier(seconds, now_s);
    if let Some(class) = class
        && let Some(coarse) = direction.coarse_of(class)
    {
        let short = direction.series.get(class);
        let short = short.and_then(|series| series.rings.since(tier, &direction.axis));
        let begun = short.unwrap_or(f64::MAX);
        let goes_further_back = |since: f64| since + STEP_S < begun;
        if begun > now_s - seconds && coarse.since(&direction.coarse).is_some_and(goes_further_back) {
            return Ok(of_coarse(direction, class, coarse, seconds, after));
        }
    }
    let whole = direction.axis.times(tier, now_s - seconds).len();
    let at_s = direction
        .axis
        .times(tier, after.unwrap_or(f64::MIN).max(now_s - seconds));
    let names: Vec<&str> = match class {
        None => busiest(direction, tier, whole, limit),
        Some(class) if class == ROOT || direction.series.contains_key(class) => vec![class],
        Some(class) => {
            let detail = format!(
                "the class `{class}` from {} has no history: no packet has come to it yet, or {MOST_SERIES} \
                 other classes have sent more and it was not there 5 minutes ago",
                direction.from
            );
            return Err(Problem::new(Kind::NotFound, detail));
        }
    };
    let series = names.into_iter().filter_map(|name| {
        let series = direction.series.get(name)?;
        let values = |figure| series.rings.last(tier, at_s.len(), figure);
        Some(SeriesDocument {
            class: name.to_owned(),
            discipline: series.discipline.clone(),
            rate_bps: values(Figure::Rate),
            delay_ms: values(Figure::Delay),
            highest_p95_ms: values(Figure::P95),
            highest_p99_ms: values(Figure::P99),
            dropped_per_s: values(Figure::Dropped),
            marked_per_s: values(Figure::Marked),
            backlog_bytes: values(Figure::Backlog),
        })
    });
    Ok(HistoryDocument {
        schema: "fairgate.history/1",
        from: direction.from.clone(),
        to: direction.to.clone(),
        step_s: direction.axis.step_s(tier),
        now_s,
        series: series.collect(),
        at_s,
        classes: direction.series.len().saturating_sub(1),
        classes_limit: MOST_SERIES,
    })
}

/// Returns the points of 5 minutes of a class.
fn of_coarse(
    direction: &DirectionHistory,
    class: &str,
    coarse: &Coarse,
    seconds: f64,
    after: Option<f64>,
) -> HistoryDocument {
    let now_s = direction.at_s;
    let after = after.unwrap_or(f64::MIN).max(now_s - seconds);
    let at_s = direction.coarse.times(after);
    let values = |figure| coarse.last(at_s.len(), figure);
    let not_kept = || vec![None; at_s.len()];
    let latest = direction.latest.iter().find(|figures| figures.class == class);
    let series = SeriesDocument {
        class: class.to_owned(),
        discipline: latest.map_or_else(String::new, |figures| figures.discipline.clone()),
        rate_bps: values(CoarseFigure::Rate),
        delay_ms: values(CoarseFigure::Delay),
        highest_p95_ms: not_kept(),
        highest_p99_ms: not_kept(),
        dropped_per_s: values(CoarseFigure::Dropped),
        marked_per_s: not_kept(),
        backlog_bytes: not_kept(),
    };
    HistoryDocument {
        schema: "fairgate.history/1",
        from: direction.from.clone(),
        to: direction.to.clone(),
        step_s: STEP_S,
        now_s,
        series: vec![series],
        at_s,
        classes: direction.series.len().saturating_sub(1),
        classes_limit: MOST_SERIES,
    }
}

/// Returns the root, and those classes without others below them that sent most in the last `count` steps,
/// in the order of their paths.
fn busiest(direction: &DirectionHistory, tier: usize, count: usize, limit: usize) -> Vec<&str> {
    let leaves = direction
        .series
        .iter()
        .filter(|(class, _)| direction.is_leaf(class));
    let mut leaves: Vec<(&str, f64)> = leaves
        .map(|(class, series)| (class.as_str(), series.rings.sum(tier, count)))
        .collect();
    leaves.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    leaves.truncate(limit);
    let numbers =
        |class: &str| -> Vec<u32> { class.split('/').filter_map(|part| part.parse().ok()).collect() };
    leaves.sort_by_key(|(class, _)| numbers(class));
    std::iter::once(ROOT)
        .chain(leaves.into_iter().map(|(class, _)| class))
        .collect()
}
