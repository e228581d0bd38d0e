//! The survey as an HTML page: how the index grows, all values, and the sources of the bounds.

use fairgate_report::scaling::{Scaling, Series};
use fairgate_report::sheet::{Block, Cell, Sheet, Table};
use fairgate_theory::guarantees::candidates::CANDIDATES;
use fairgate_theory::guarantees::growth::LENGTH;
use fairgate_theory::guarantees::survey::{Row, Survey, Surveyed};

use super::cells;

/// Returns the figure of how the B-WFI of a heavy flow grows with the number of light flows.
pub(super) fn figure(survey: &Survey) -> Scaling {
    // All schedulers get a curve, so that the colour of a scheduler does not depend on the selection.
    let curve = |name: &str| {
        let surveyed = survey
            .schedulers
            .iter()
            .find(|surveyed| surveyed.scheduler == name);
        Series {
            name: name.into(),
            points: surveyed.map_or(Vec::new(), |surveyed| points(survey, surveyed)),
        }
    };
    Scaling {
        title: format!("B-WFI of a flow with half of the link, bytes; packets of {LENGTH} bytes"),
        x: "light flows that share the other half",
        y: "bytes",
        curves: CANDIDATES
            .iter()
            .filter(|candidate| candidate.weighted)
            .map(|candidate| curve(candidate.name))
            .collect(),
    }
}

/// Returns no points for a scheduler that accepts fewer flows. Its curve would end before the others.
fn points(survey: &Survey, surveyed: &Surveyed) -> Vec<(f64, f64)> {
    let bytes = |(&light, packets): (&u32, &Option<f64>)| {
        let bytes = (*packets)? * f64::from(LENGTH);
        Some((f64::from(light), bytes))
    };
    let points = survey.light_flows.iter().zip(&surveyed.heavy_b_wfi).map(bytes);
    points.collect::<Option<_>>().unwrap_or_default()
}

pub(super) fn page(survey: &Survey) -> String {
    let blocks = vec![
        Block::Scaling(figure(survey)),
        Block::Text(
            "A scheduler that serves in rounds, or far ahead of the ideal, lets the heavy flow wait for a \
             packet of each light flow, so its curve rises with their number. The other curves are constant. \
             Schedulers without weights have no heavy flow and no curve. ets, which is deficit round robin \
             too, has at most 64 bands."
                .into(),
        ),
        Block::Heading("Measured beside the bounds".into()),
        Block::Text(
            "The worst values that were found with random traffic and with traffic that an adversary makes \
             worse step by step. They are compared with the bounds in exact fractions."
                .into(),
        ),
        Block::Table(measured(survey)),
        Block::Heading("Sources of the bounds".into()),
        Block::Text(
            "A bound is published, or it is a corollary of a published bound, or it is derived from the \
             scheduler's own rules, with the proof in the source code."
                .into(),
        ),
        Block::Table(sources(survey)),
    ];
    Sheet {
        title: "Fairness of schedulers against their bounds".into(),
        lead: format!(
            "Worst-case fairness on a link of {} Mbit/s, seed {}; {}.",
            survey.rate_bps / 1_000_000,
            survey.seed,
            if survey.all_within() {
                "all measured values are within their bounds"
            } else {
                "a measured value is above its bound"
            }
        ),
        blocks,
    }
    .render()
}

/// Returns every measure of every scheduler.
fn rows(survey: &Survey) -> impl Iterator<Item = (&Surveyed, &Row)> {
    let of = |surveyed| {
        let surveyed: &Surveyed = surveyed;
        surveyed.measures.iter().map(move |row| (surveyed, row))
    };
    survey.schedulers.iter().flat_map(of)
}

fn measured(survey: &Survey) -> Table {
    let head = [
        "Scheduler",
        "Measure",
        "Random",
        "Bound",
        "Of it",
        "Adversarial",
        "Bound",
        "Of it",
        "",
    ];
    let row = |(surveyed, row): (&Surveyed, &Row)| {
        let mut line = vec![
            Cell::Words(surveyed.scheduler.into()),
            Cell::Words(row.measure.into()),
        ];
        for finding in [&row.random, &row.adversarial] {
            line.extend(cells(row, finding.as_ref()).map(Cell::Number));
        }
        line.push(match row.within {
            None => Cell::Words(String::new()),
            Some(true) => Cell::Words("within".into()),
            Some(false) => Cell::Alarm("ABOVE".into()),
        });
        line
    };
    Table {
        head: head.map(String::from).to_vec(),
        rows: rows(survey).map(row).collect(),
    }
}

fn sources(survey: &Survey) -> Table {
    let bounds = rows(survey).filter_map(|(surveyed, row)| {
        let cells = [surveyed.scheduler, row.measure, row.formula?, row.source?];
        Some(cells.map(|text| Cell::Words(text.into())).to_vec())
    });
    let remarks = survey
        .schedulers
        .iter()
        .filter(|surveyed| !surveyed.remark.is_empty())
        .map(|surveyed| {
            [surveyed.scheduler, "", "", surveyed.remark]
                .map(|text| Cell::Words(text.into()))
                .to_vec()
        });
    let mut rows: Vec<Vec<Cell>> = bounds.chain(remarks).collect();
    let position = |row: &Vec<Cell>| {
        survey
            .schedulers
            .iter()
            .position(|surveyed| row[0] == Cell::Words(surveyed.scheduler.into()))
    };
    rows.sort_by_key(position);
    Table {
        head: ["Scheduler", "Measure", "Bound", "Source, or why there is none"]
            .map(String::from)
            .to_vec(),
        rows,
    }
}
