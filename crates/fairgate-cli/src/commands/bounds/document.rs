//! The survey as a page: how the index grows, every figure, and where each bound comes from.

use fairgate_report::scaling::{Scaling, Series};
use fairgate_report::sheet::{Block, Cell, Sheet, Table};
use fairgate_theory::guarantees::candidates::CANDIDATES;
use fairgate_theory::guarantees::growth::LENGTH;
use fairgate_theory::guarantees::survey::{Row, Survey, Surveyed};

use super::cells;

/// How the B-WFI of a heavy flow grows with the number of light ones beside it.
pub(super) fn figure(survey: &Survey) -> Scaling {
    // A curve for each scheduler that can be measured, so that each has its colour whatever else was.
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

/// None of a scheduler that takes fewer flows: it would end among the others' curves.
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
            "A scheduler that serves in rounds, or far ahead of the ideal, lets the heavy flow wait for a packet of each light \
             one: its curve rises with their number. The others' are constant. Schedulers that know no weights have no \
             heavy flow and no curve; ets, deficit round robin too, has 64 bands at most."
                .into(),
        ),
        Block::Heading("Measured beside the bounds".into()),
        Block::Text(
            "The worst that was found, by chance and by an adversary that makes traffic worse step by step. Decided in \
             fractions: above is above."
                .into(),
        ),
        Block::Table(measured(survey)),
        Block::Heading("Where the bounds come from".into()),
        Block::Text(
            "Published; a corollary of what is published; or derived from the scheduler's own rules, with the proof beside it \
             in the source."
                .into(),
        ),
        Block::Table(sources(survey)),
    ];
    Sheet {
        title: "What schedulers promise, and what they keep".into(),
        lead: format!(
            "Worst-case fairness on a link of {} Mbit/s, seed {}; {}.",
            survey.rate_bps / 1_000_000,
            survey.seed,
            if survey.all_within() {
                "nothing measured is above its bound"
            } else {
                "something measured is above its bound"
            }
        ),
        blocks,
    }
    .render()
}

/// Every measure of every scheduler.
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
    let place = |row: &Vec<Cell>| {
        survey
            .schedulers
            .iter()
            .position(|surveyed| row[0] == Cell::Words(surveyed.scheduler.into()))
    };
    rows.sort_by_key(place);
    Table {
        head: ["Scheduler", "Measure", "Bound", "Source, or why there is none"]
            .map(String::from)
            .to_vec(),
        rows,
    }
}
