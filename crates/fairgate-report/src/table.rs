//! The result as tables for a terminal.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, Color, Table};

use crate::comparison::{Comparison, Measured};
use crate::units;

/// A column of figures.
pub struct Column {
    /// Its heading.
    pub heading: &'static str,
    /// Its value, less is better; `None` where there is none.
    rank: fn(&Measured) -> Option<f64>,
    text: fn(&Measured) -> Option<String>,
}

impl Column {
    /// The figure for people.
    pub fn text(&self, measured: &Measured) -> String {
        (self.text)(measured).unwrap_or_else(|| "–".into())
    }
}

/// The figures of a group, in the order of the tables.
pub fn columns() -> [Column; 6] {
    fn delay(measured: &Measured, of: fn(&crate::comparison::Delay) -> u64) -> Option<u64> {
        measured.delay.as_ref().map(of)
    }
    [
        Column {
            heading: "Throughput",
            rank: |m| Some(-m.throughput_bps),
            text: |m| Some(units::rate(m.throughput_bps)),
        },
        Column {
            heading: "Delay p50",
            rank: |m| delay(m, |d| d.p50_ns).map(|ns| ns as f64),
            text: |m| delay(m, |d| d.p50_ns).map(units::duration),
        },
        Column {
            heading: "p95",
            rank: |m| delay(m, |d| d.p95_ns).map(|ns| ns as f64),
            text: |m| delay(m, |d| d.p95_ns).map(units::duration),
        },
        Column {
            heading: "p99",
            rank: |m| delay(m, |d| d.p99_ns).map(|ns| ns as f64),
            text: |m| delay(m, |d| d.p99_ns).map(units::duration),
        },
        Column {
            heading: "Jitter",
            rank: |m| m.jitter_ns.map(|ns| ns as f64),
            text: |m| m.jitter_ns.map(units::duration),
        },
        Column {
            heading: "Loss",
            rank: |m| Some(m.loss),
            text: |m| Some(units::percent(m.loss)),
        },
    ]
}

/// Rows that are best in a column: those that read the same as the best one. None, if all read the same.
pub fn best_of(column: &Column, rows: &[&Measured]) -> Vec<usize> {
    let best = rows
        .iter()
        .filter(|row| (column.rank)(row).is_some())
        .min_by(|a, b| {
            (column.rank)(a)
                .unwrap_or(f64::MAX)
                .total_cmp(&(column.rank)(b).unwrap_or(f64::MAX))
        });
    let Some(best) = best.map(|row| column.text(row)) else {
        return Vec::new();
    };
    let rows_like_it: Vec<usize> = (0..rows.len())
        .filter(|&row| column.text(rows[row]) == best)
        .collect();
    if rows_like_it.len() == rows.len() {
        Vec::new()
    } else {
        rows_like_it
    }
}

/// Both tables: each group under each discipline, then each discipline as a whole. With `colour`, best values stand
/// out.
pub fn render(comparison: &Comparison, colour: bool) -> String {
    format!(
        "{}\n\n{}",
        groups(comparison, colour),
        disciplines(comparison, colour)
    )
}

fn groups(comparison: &Comparison, colour: bool) -> Table {
    let columns = columns();
    let mut table = new_table(
        ["", "Discipline"]
            .into_iter()
            .chain(columns.iter().map(|c| c.heading)),
    );
    for (index, group) in comparison.groups.iter().enumerate() {
        let rows: Vec<&Measured> = comparison.disciplines.iter().map(|d| &d.groups[index]).collect();
        let best: Vec<Vec<usize>> = columns.iter().map(|column| best_of(column, &rows)).collect();
        // One row of the table holds a group, so that the rules lie between groups.
        let lines = |text: &dyn Fn(usize) -> String| (0..rows.len()).map(text).collect::<Vec<_>>().join("\n");
        let mut cells = vec![
            bold(Cell::new(&group.name), colour),
            Cell::new(lines(&|row| comparison.disciplines[row].name.clone())),
        ];
        for (column, best) in columns.iter().zip(&best) {
            let text = lines(&|row| {
                let mark = if best.contains(&row) { "*" } else { " " };
                format!("{}{mark}", column.text(rows[row]))
            });
            cells.push(Cell::new(text).set_alignment(CellAlignment::Right));
        }
        table.add_row(cells);
    }
    table
}

fn disciplines(comparison: &Comparison, colour: bool) -> Table {
    let headings = [
        "Discipline",
        "Line used",
        "Jain's index",
        "Loss",
        "Delay p50",
        "p95",
        "p99",
        "Mean queue",
    ];
    let mut table = new_table(headings.into_iter());
    for discipline in &comparison.disciplines {
        let delay = discipline.total.delay.as_ref();
        let in_words = |nanos: Option<u64>| nanos.map_or("–".into(), units::duration);
        let figures = [
            units::percent(discipline.utilisation),
            discipline
                .fairness
                .map_or("–".into(), |index| format!("{index:.3}")),
            units::percent(discipline.total.loss),
            in_words(delay.map(|d| d.p50_ns)),
            in_words(delay.map(|d| d.p95_ns)),
            in_words(delay.map(|d| d.p99_ns)),
            units::bytes(discipline.queue.mean_bytes),
        ];
        let name = bold(Cell::new(&discipline.name), colour);
        let figures = figures.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
        table.add_row([name].into_iter().chain(figures));
    }
    table
}

fn new_table(headings: impl Iterator<Item = &'static str>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(headings.map(Cell::new));
    table
}

fn bold(cell: Cell, colour: bool) -> Cell {
    if colour {
        cell.add_attribute(Attribute::Bold).fg(Color::Cyan)
    } else {
        cell
    }
}
