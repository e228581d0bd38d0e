//! The results as tables for a terminal.

use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{Cell, CellAlignment, Color, Table};

use fairgate::harmless::name;

use crate::comparison::{Comparison, Completion, Measured};
use crate::units;

/// A column of numbers.
#[derive(Debug)]
pub struct Column {
    /// The heading.
    pub heading: &'static str,
    /// Returns the value, or `None` if there is none.
    value: fn(&Measured) -> Option<f64>,
    /// Formats the value.
    in_words: fn(f64) -> String,
    more_is_better: bool,
}

impl Column {
    const fn less_is_better(
        heading: &'static str,
        value: fn(&Measured) -> Option<f64>,
        in_words: fn(f64) -> String,
    ) -> Column {
        Column {
            heading,
            value,
            in_words,
            more_is_better: false,
        }
    }

    /// Returns the formatted value.
    pub fn text(&self, measured: &Measured) -> String {
        (self.value)(measured).map_or("–".into(), self.in_words)
    }

    /// Returns the rows with the best value. Rows that show the same text are equal. If all rows are equal,
    /// none is returned.
    pub fn best_of(&self, rows: &[&Measured]) -> Vec<usize> {
        let rank = |measured: &Measured| {
            let value = (self.value)(measured)?;
            Some(if self.more_is_better { -value } else { value })
        };
        let best = rows
            .iter()
            .filter_map(|row| Some((rank(row)?, row)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let Some(best) = best.map(|(_, row)| self.text(row)) else {
            return Vec::new();
        };
        let like_it: Vec<usize> = (0..rows.len())
            .filter(|&row| self.text(rows[row]) == best)
            .collect();
        if like_it.len() == rows.len() {
            Vec::new()
        } else {
            like_it
        }
    }
}

fn nanos(value: f64) -> String {
    units::duration(value as u64)
}

/// The number of columns for traffic without completion times.
const PLAIN_COLUMNS: usize = 6;

/// Returns the columns for a group, in the order of the tables.
pub fn columns(comparison: &Comparison) -> &'static [Column] {
    match comparison.has_completion() {
        true => &COLUMNS,
        false => &COLUMNS[..PLAIN_COLUMNS],
    }
}

/// All columns. Those of completion times come last.
static COLUMNS: [Column; PLAIN_COLUMNS + 3] = [
    Column {
        heading: "Throughput",
        value: |m| Some(m.throughput_bps),
        in_words: units::rate,
        more_is_better: true,
    },
    Column::less_is_better("Delay p50", |m| Some(m.delay.as_ref()?.p50_ns as f64), nanos),
    Column::less_is_better("p95", |m| Some(m.delay.as_ref()?.p95_ns as f64), nanos),
    Column::less_is_better("p99", |m| Some(m.delay.as_ref()?.p99_ns as f64), nanos),
    Column::less_is_better("Jitter", |m| m.jitter_ns.map(|ns| ns as f64), nanos),
    Column::less_is_better("Loss", |m| Some(m.loss), units::percent),
    Column::less_is_better("Time p50", |m| Some(completed(m)?.p50_ns as f64), nanos),
    Column::less_is_better("p95", |m| Some(completed(m)?.p95_ns as f64), nanos),
    Column {
        heading: "Complete",
        value: |m| {
            let completion = m.completion.as_ref()?;
            Some(completion.completed as f64 / (completion.connections as f64).max(1.0))
        },
        in_words: units::percent,
        more_is_better: true,
    },
];

/// Returns the completion times, if a connection was completed.
fn completed(measured: &Measured) -> Option<&Completion> {
    measured
        .completion
        .as_ref()
        .filter(|completion| completion.completed > 0)
}

/// The width at which remarks are wrapped.
const TEXT_WIDTH: usize = 100;

/// Returns both tables, and the remarks on the accuracy of the results. The first table shows each group
/// under each discipline, the second each discipline as a whole. With `colour`, names are coloured.
pub fn render(comparison: &Comparison, colour: bool) -> String {
    let mut text = format!(
        "{}\n\n{}\n",
        groups(comparison, colour),
        disciplines(comparison, colour)
    );
    for remark in &comparison.remarks {
        text.push('\n');
        text.push_str(&wrapped(&name(remark), TEXT_WIDTH));
    }
    text
}

/// Wraps text into lines of at most `width` characters, unless a single word is longer.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            lines.push('\n');
            column = 0;
        }
        if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines + "\n"
}

fn groups(comparison: &Comparison, colour: bool) -> Table {
    let columns = columns(comparison);
    let headings = columns.iter().map(|column| column.heading);
    let mut table = new_table(["* best of its block"].into_iter().chain(headings));
    table.load_style(UTF8_HORIZONTAL_ONLY);
    for (index, group) in comparison.groups.iter().enumerate() {
        let rows: Vec<&Measured> = comparison.disciplines.iter().map(|d| &d.groups[index]).collect();
        // One table row holds a whole block, so that rules are drawn only between blocks.
        let block = |first: &str, line: &dyn Fn(usize) -> String| {
            (0..rows.len()).fold(first.to_owned(), |text, row| text + "\n" + &line(row))
        };
        let names = block(&name(&group.name), &|row| {
            format!("  {}", name(&comparison.disciplines[row].name))
        });
        let figures = columns.iter().map(|column| {
            let best = column.best_of(&rows);
            let text = block("", &|row| {
                let mark = if best.contains(&row) { "*" } else { " " };
                format!("{}{mark}", column.text(rows[row]))
            });
            Cell::new(text).set_alignment(CellAlignment::Right)
        });
        table.add_row([emphasised(Cell::new(names), colour)].into_iter().chain(figures));
    }
    table
}

fn disciplines(comparison: &Comparison, colour: bool) -> Table {
    let headings = [
        "Discipline",
        "Link used",
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
        let name = emphasised(Cell::new(name(&discipline.name)), colour);
        let figures = figures.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
        table.add_row([name].into_iter().chain(figures));
    }
    table
}

fn new_table(headings: impl Iterator<Item = &'static str>) -> Table {
    let mut table = Table::new();
    // The caller decides on colours. Otherwise comfy-table checks whether standard output is a terminal.
    table.load_style(NOTHING).enforce_styling();
    table.set_header(headings.enumerate().map(|(index, heading)| {
        let alignment = if index == 0 {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        };
        Cell::new(heading).set_alignment(alignment)
    }));
    table
}

fn emphasised(cell: Cell, colour: bool) -> Cell {
    if colour { cell.fg(Color::Cyan) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree\n");
        assert_eq!(wrapped("immeasurable", 7), "immeasurable\n");
    }
}
