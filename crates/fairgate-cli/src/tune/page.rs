//! A measurement as one HTML page: the line as it is, and shaped, if it was.

use fairgate_report::chart::{Chart, Curve, Scale};
use fairgate_report::sheet::{Block, Cell, Sheet, Table};

use crate::tune::measured::{Direction, Figures, Measured};
use crate::tune::shown::{Row, notes, rows};
use crate::tune::verdict::Verdict;

/// The colours of the line as it is, and of the shaped one.
const AS_IT_IS: usize = 0;
const SHAPED: usize = 1;

/// Returns the page. `configuration` is what the shaper ran, or what was written.
pub(crate) fn page(
    before: &Measured,
    after: Option<&Measured>,
    verdict: &Verdict,
    configuration: Option<&str>,
) -> String {
    let mut blocks = vec![
        Block::List(
            verdict
                .sentences()
                .map(str::to_owned)
                .chain(notes(before))
                .collect(),
        ),
        Block::Table(table(before, after)),
    ];
    for way in [Direction::Down, Direction::Up] {
        let (line, shaped) = (before.of(way), after.map(|after| after.of(way)));
        blocks.push(Block::Heading(match way {
            Direction::Down => "Download".to_owned(),
            Direction::Up => "Upload".to_owned(),
        }));
        blocks.push(Block::Chart(chart(
            "What a packet waits while it is loaded",
            "ms",
            [Some(line), shaped],
            |direction| {
                direction
                    .over_time
                    .delay_ms
                    .iter()
                    .map(|delay| delay.unwrap_or(f64::NAN))
                    .collect()
            },
        )));
        blocks.push(Block::Chart(chart(
            "What comes through",
            "Mbit/s",
            [Some(line), shaped],
            |direction| direction.over_time.rate_bps.iter().map(|bps| bps / 1e6).collect(),
        )));
    }
    if let Some(configuration) = configuration {
        blocks.push(Block::Heading("Configuration".to_owned()));
        blocks.push(Block::Code(configuration.to_owned()));
    }
    let sheet = Sheet {
        title: format!("The line to {}", before.server),
        lead: format!(
            "Measured by fairgate tune with {} TCP connections in each direction, {} s each.",
            before.connections, before.load_s
        ),
        blocks,
    };
    sheet.render()
}

fn table(before: &Measured, after: Option<&Measured>) -> Table {
    let mut head = vec![String::new(), "Down".to_owned(), "Up".to_owned()];
    if after.is_some() {
        head.extend(["Down, shaped".to_owned(), "Up, shaped".to_owned()]);
    }
    let row = |(name, show): &Row| {
        let ways = [before]
            .into_iter()
            .chain(after)
            .flat_map(|line| [(line, &line.down), (line, &line.up)]);
        let cells = ways.map(|(line, way)| Cell::Number(show(line, way)));
        [Cell::Words((*name).to_owned())]
            .into_iter()
            .chain(cells)
            .collect()
    };
    Table {
        head,
        rows: rows().iter().map(row).collect(),
    }
}

/// Draws a value over the time of the load.
fn chart(
    title: &str,
    unit: &str,
    directions: [Option<&Figures>; 2],
    values: impl Fn(&Figures) -> Vec<f64>,
) -> Chart {
    let mut curves = Vec::new();
    let (mut longest, mut most) = (1.0f64, 0.0f64);
    let names = [("as it is", AS_IT_IS), ("shaped", SHAPED)];
    for ((name, colour), direction) in names.into_iter().zip(directions) {
        let Some(direction) = direction else {
            continue;
        };
        let values = values(direction);
        let interval = direction.over_time.interval_s;
        longest = longest.max(interval * values.len() as f64);
        most = values
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .fold(most, f64::max);
        let points = values.into_iter().enumerate();
        curves.push(Curve::line(
            name,
            colour,
            points.map(|(index, value)| (interval * index as f64, value)),
        ));
    }
    Chart {
        title: title.to_owned(),
        x: Scale::linear("s", 0.0, longest),
        y: Scale::linear(unit, 0.0, if most > 0.0 { most * 1.05 } else { 1.0 }),
        curves,
    }
}
