//! The flows, one in each line.

use fairgate_run_api::FlowStatus;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::paint::{bold, dim, lines as lines_of, write, write_right};
use super::words::{bytes, megabits, millis};
use crate::top::model::{FlowList, Model};

/// A column of figures: title and width, with the space before it.
struct Column {
    title: &'static str,
    width: u16,
    text: fn(&FlowStatus) -> String,
}

/// From left to right. A narrow screen has the first ones.
const COLUMNS: [Column; 7] = [
    Column {
        title: "MBIT/S",
        width: 9,
        text: |flow| megabits(flow.rate_bps),
    },
    Column {
        title: "DELAY MS",
        width: 10,
        text: |flow| millis(flow.delay_ms * 1e3),
    },
    Column {
        title: "TRIP MS",
        width: 9,
        text: |flow| match flow.round_trip_ms {
            Some(trip) => millis(trip.median * 1e3),
            None => "-".to_owned(),
        },
    },
    Column {
        title: "DROPPED",
        width: 9,
        text: |flow| flow.dropped.to_string(),
    },
    Column {
        title: "MARKED",
        width: 8,
        text: |flow| flow.marked.to_string(),
    },
    Column {
        title: "SENT",
        width: 11,
        text: |flow| bytes(flow.bytes),
    },
    Column {
        title: "CLASS",
        width: 22,
        text: |flow| match (&flow.subscriber, flow.class.is_empty()) {
            (Some(subscriber), _) => format!("{}: {}", flow.class, subscriber.brief(14)),
            (None, true) => flow.discipline.clone(),
            (None, false) => format!("{} {}", flow.class, flow.discipline),
        },
    },
];

/// The width of a flow of IPv4 with its ports.
const NAMES: u16 = 44;

/// Draws the flows from the first one of the list on.
pub(super) fn draw(model: &Model, list: FlowList, area: Rect, cells: &mut Buffer) {
    let (columns, names) = columns(area.width);
    let mut free = lines_of(area);
    let status = model.data().flows.as_ref();
    if area.height > 2
        && let Some(line) = free.next()
    {
        draw_line(
            line,
            names,
            "FLOW",
            columns.iter().map(|column| column.title.to_owned()),
            bold(),
            cells,
        );
        if let Some(status) = status {
            let title = Rect {
                x: line.x + 5,
                width: names.saturating_sub(5),
                ..line
            };
            write(
                title,
                &format!("{} active, by {}", status.active, list.order.name()),
                dim(),
                cells,
            );
        }
    }
    let flows = status.map_or(&[][..], |status| &status.flows);
    if flows.is_empty()
        && let Some(line) = free.next()
    {
        let text = match status {
            None => "the run observes its flows for a second",
            Some(_) => "no packet has passed",
        };
        write(line, text, dim(), cells);
    }
    let top = list.top.min(flows.len());
    for (line, flow) in free.zip(&flows[top..]) {
        let style = match flow.rate_bps {
            0.0 => dim(),
            _ => Style::new(),
        };
        let texts = columns.iter().map(|column| (column.text)(flow));
        draw_line(line, names, &flow.to_string(), texts, style, cells);
    }
}

/// Returns the columns that a line of this width has, and the width of the names.
fn columns(width: u16) -> (&'static [Column], u16) {
    let mut left = width;
    let mut count = 0;
    for column in &COLUMNS {
        let least = match count {
            0 => 8,
            _ => NAMES.min(width / 2),
        };
        if left < least + column.width {
            break;
        }
        left -= column.width;
        count += 1;
    }
    (&COLUMNS[..count], left)
}

fn draw_line(
    line: Rect,
    names: u16,
    name: &str,
    texts: impl Iterator<Item = String>,
    style: Style,
    cells: &mut Buffer,
) {
    write(Rect { width: names, ..line }, name, style, cells);
    let mut x = line.x + names;
    for (column, text) in COLUMNS.iter().zip(texts) {
        let place = Rect {
            x: x + 1,
            width: column.width - 1,
            ..line
        };
        write_right(place, &text, style, cells);
        x += column.width;
    }
}
