//! The classes, one in each line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::paint::{bold, dim, lines as lines_of, reversed, warning, write, write_right};
use super::words::{megabits, millis, per_second};
use crate::top::figures::Figures;
use crate::top::layout::room;
use crate::top::listing::{self, Line, Shape};
use crate::top::model::Model;
use crate::top::tree::Tree;

/// A column of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Rate,
    Used,
    P99,
    Drops,
    Backlog,
    P50,
    Mean,
    Marks,
    P95,
    Max,
    Packets,
    Set,
    Reasons,
}

/// All columns, the most important first. A narrow screen has the first ones.
const BY_IMPORTANCE: [Column; 13] = [
    Column::Rate,
    Column::Used,
    Column::P99,
    Column::Drops,
    Column::Backlog,
    Column::P50,
    Column::Marks,
    Column::Mean,
    Column::Set,
    Column::P95,
    Column::Reasons,
    Column::Max,
    Column::Packets,
];

/// All columns, from left to right.
const IN_ORDER: [Column; 13] = [
    Column::Rate,
    Column::Used,
    Column::Packets,
    Column::Mean,
    Column::P50,
    Column::P95,
    Column::P99,
    Column::Max,
    Column::Drops,
    Column::Marks,
    Column::Backlog,
    Column::Set,
    Column::Reasons,
];

/// The least width of the names in a table of this width.
fn least_names(width: u16) -> u16 {
    (width / 4).clamp(20, 40)
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Column::Rate => "MBIT/S",
            Column::Used => "USED",
            Column::Packets => "PACKETS/S",
            Column::Mean => "MEAN MS",
            Column::P50 => "50 %",
            Column::P95 => "95 %",
            Column::P99 => "99 % MS",
            Column::Max => "MAX MS",
            Column::Drops => "DROPS/S",
            Column::Marks => "MARKS/S",
            Column::Backlog => "QUEUED",
            Column::Set => "SET",
            Column::Reasons => "DROPPED FOR",
        }
    }

    /// The width with the space before it.
    fn width(self) -> u16 {
        match self {
            Column::Rate | Column::P99 | Column::Drops | Column::Marks => 9,
            Column::Mean => 9,
            Column::Used => 7,
            Column::Backlog | Column::P50 | Column::P95 | Column::Max => 8,
            Column::Packets => 11,
            Column::Set => 28,
            Column::Reasons => 30,
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Column::Set | Column::Reasons)
    }

    fn text(self, figures: &Figures, settings: &[String], limit_bps: Option<u64>) -> String {
        let delay = |of: fn(&fairgate_run_api::Percentiles) -> f64| {
            figures
                .delay
                .as_ref()
                .map_or("-".to_owned(), |delay| millis(of(delay)))
        };
        match self {
            Column::Rate => megabits(figures.rate_bps),
            Column::Used => limit_bps.map_or_else(String::new, |limit| {
                format!("{:.0} %", 100.0 * figures.rate_bps / limit.max(1) as f64)
            }),
            Column::Packets => per_second(figures.per_second(figures.packets)),
            Column::Mean => figures.mean_us.map_or("-".to_owned(), millis),
            Column::P50 => delay(|delay| delay.p50_us),
            Column::P95 => delay(|delay| delay.p95_us),
            Column::P99 => delay(|delay| delay.p99_us),
            Column::Max => delay(|delay| delay.max_us),
            Column::Drops => per_second(figures.per_second(figures.dropped())),
            Column::Marks => per_second(figures.per_second(figures.marked)),
            Column::Backlog => figures.backlog.to_string(),
            Column::Set => settings.join(", "),
            Column::Reasons => {
                let reasons = figures.drops.iter();
                let reasons: Vec<String> = reasons
                    .map(|(reason, count)| format!("{reason} {count}"))
                    .collect();
                reasons.join(", ")
            }
        }
    }
}

/// Returns the columns that the table of a tree has at this width, and the width of the names.
fn columns(tree: &Tree, width: u16) -> (Vec<Column>, u16) {
    let has_limits = tree.has_limits();
    let mut left = width;
    let mut chosen = Vec::new();
    for column in BY_IMPORTANCE {
        if column == Column::Used && !has_limits {
            continue;
        }
        let least = if chosen.is_empty() { 8 } else { least_names(width) };
        if left < least + column.width() {
            break;
        }
        left -= column.width();
        chosen.push(column);
    }
    let ordered = IN_ORDER.into_iter().filter(|column| chosen.contains(column));
    (ordered.collect(), left)
}

/// Draws the classes of the shown direction, from the first line of the screen on.
pub(super) fn draw(model: &Model, area: Rect, cells: &mut Buffer) {
    let room = usize::from(room(area));
    let all = model.lines();
    let top = model.top().min(all.len());
    let shown = &all[top..all.len().min(top + room)];
    let selected = model.selected().checked_sub(top);
    let has_head = area.height > 2;
    draw_lines(model, model.side, shown, selected, has_head, area, cells);
    if shown.is_empty() && area.height > 2 {
        let text = match model.shape {
            Shape::Hosts => "no class is given to a host here: see `each` in docs/configuration.md; v: tree",
            _ => "nothing to show: esc removes the filter",
        };
        write(
            Rect {
                y: area.y + 1,
                height: 1,
                ..area
            },
            text,
            dim(),
            cells,
        );
    }
    if all.len() > room && has_head {
        let place = format!(" {}-{} of {}", top + 1, top + shown.len(), all.len());
        let (_, names) = columns(&model.data().trees[model.side], area.width);
        let title = model.shape.title().len() as u16 + 1;
        if names > title + place.len() as u16 {
            let line = Rect {
                x: area.x + title,
                width: names - title,
                height: 1,
                ..area
            };
            write(line, &place, dim(), cells);
        }
    }
}

/// Draws lines of a direction, none of them selected.
pub(super) fn draw_page(model: &Model, side: usize, shown: &[Line], area: Rect, cells: &mut Buffer) {
    draw_lines(model, side, shown, None, true, area, cells);
}

fn draw_lines(
    model: &Model,
    side: usize,
    shown: &[Line],
    selected: Option<usize>,
    has_head: bool,
    area: Rect,
    cells: &mut Buffer,
) {
    let tree = &model.data().trees[side];
    let (columns, names) = columns(tree, area.width);
    let mut rows = lines_of(area);
    if has_head && let Some(row) = rows.next() {
        let rest = write(Rect { width: names, ..row }, model.shape.title(), bold(), cells);
        debug_assert!(rest.x <= row.x + names);
        for (column, cell) in cells_of(&columns, names, row) {
            put(column, cell, column.title(), bold(), cells);
        }
    }
    for (number, (line, row)) in shown.iter().zip(rows).enumerate() {
        let is_selected = selected == Some(number);
        draw_line(model, tree, *line, is_selected, (&columns, names), row, cells);
    }
}

fn draw_line(
    model: &Model,
    tree: &Tree,
    line: Line,
    is_selected: bool,
    (columns, names): (&[Column], u16),
    row: Rect,
    cells: &mut Buffer,
) {
    let figures = tree.figures(line.index);
    let style = if figures.is_none() { dim() } else { Style::new() };
    let name = name(model, tree, line, usize::from(names));
    write(Rect { width: names, ..row }, &name, style, cells);
    let nothing = Figures::default();
    let figures = figures.unwrap_or(&nothing);
    for (column, cell) in cells_of(columns, names, row) {
        let text = column.text(
            figures,
            tree.settings(line.index),
            tree.node(line.index).limit_bps,
        );
        let is_notable = match column {
            Column::Drops | Column::Reasons => figures.dropped() > 0,
            Column::Marks => figures.marked > 0,
            _ => false,
        };
        let style = if is_notable { warning(model) } else { style };
        put(*column, cell, &text, style, cells);
    }
    if is_selected {
        cells.set_style(row, reversed());
    }
}

/// Returns the name of a line with its place in the tree. If there is no room, deep lines are indented less.
fn name(model: &Model, tree: &Tree, line: Line, room: usize) -> String {
    if model.shape != Shape::Tree {
        return listing::name(tree, line.index);
    }
    let node = tree.node(line.index);
    let sign = match (node.children.is_empty(), model.is_collapsed(&node.key)) {
        (true, _) => ' ',
        (false, true) => '+',
        (false, false) => '-',
    };
    let indent = (2 * line.depth).min(room / 2);
    format!("{:indent$}{sign} {}", "", listing::short_name(tree, line.index))
}

/// Returns the cell of each column in a row.
fn cells_of(columns: &[Column], names: u16, row: Rect) -> impl Iterator<Item = (&Column, Rect)> {
    let mut x = row.x + names;
    columns.iter().map(move |column| {
        let cell = Rect {
            x,
            width: column.width(),
            ..row
        };
        x += column.width();
        (column, cell)
    })
}

fn put(column: impl std::borrow::Borrow<Column>, cell: Rect, text: &str, style: Style, cells: &mut Buffer) {
    match column.borrow().is_text() {
        true => {
            let behind = Rect {
                x: cell.x + 2,
                width: cell.width - 2,
                ..cell
            };
            write(behind, text, style, cells);
        }
        false => write_right(cell, text, style, cells),
    }
}
