//! What lies above the screen: help, and the dialog that changes a rate.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

use super::paint::{alarm, bold, dim, lines, reversed, write};
use super::words::wrapped;
use crate::top::dialog::{Answered, Dialog, Edit, Order};
use crate::top::model::Model;

/// A line of a box.
type Line = (String, Style);

const HELP: &[(&str, &str)] = &[
    (
        "up, down, j, k",
        "select a class; also page up, page down, home, end",
    ),
    ("enter", "open or close the class; in a list, show it in the tree"),
    ("right, left", "open or close; then to the class below or above"),
    ("tab", "the other direction"),
    ("s, S", "sort by class, rate, delay, drops, backlog; backwards"),
    ("v", "the tree, a flat list of classes, or the classes of hosts"),
    ("u", "leave out what no packet has come to, or show it"),
    ("/", "show names with this text, or class:20; esc removes it"),
    ("r", "change a rate of the class; you are asked before"),
    (
        "f",
        "the flows instead of the classes, and back; s sorts them, too",
    ),
    ("p, space", "pause, and go on"),
    ("q, Ctrl-C", "end. The run goes on"),
];

const NOTES: &str = "Rates and delays are those of the last interval. 50 %, 95 % and 99 % are percentiles of \
    the delay, accurate to 7 %. An inner class has the sum of its classes, and no percentiles.";

pub(super) fn draw(model: &Model, area: Rect, cells: &mut Buffer) {
    if let Some(dialog) = &model.dialog {
        draw_dialog(model, dialog, area, cells);
    } else if model.shows_help {
        let keys = HELP.iter().map(|(keys, what)| plain(format!("{keys:15} {what}")));
        let lines = keys.chain([plain(String::new()), plain(NOTES.to_owned())]);
        draw_box("keys", &lines.collect::<Vec<_>>(), 78, area, cells);
    }
}

fn plain(text: impl Into<String>) -> Line {
    (text.into(), Style::new())
}

fn draw_dialog(model: &Model, dialog: &Dialog, area: Rect, cells: &mut Buffer) {
    let (title, lines) = match dialog {
        Dialog::Nothing(why) => ("change a rate", vec![plain(*why), plain(""), any_key()]),
        Dialog::Edit(edit) => ("change a rate", edit_lines(edit, area)),
        Dialog::Confirm(edit) => ("make this change?", confirm_lines(model, edit)),
        Dialog::Sent(order) => {
            let lines = vec![
                order_line(model, order),
                plain(""),
                plain("The run makes it ...   esc: do not wait"),
            ];
            ("change a rate", lines)
        }
        Dialog::Answer(order, answered) => answer_lines(model, order, answered),
    };
    draw_box(title, &lines, 72, area, cells);
}

fn edit_lines(edit: &Edit, area: Rect) -> Vec<Line> {
    let mut lines = Vec::new();
    // A discipline has few rates. If there is no room, only the chosen one is shown.
    let has_room = edit.rates().len() + 6 <= usize::from(area.height);
    for (place, rate) in edit.rates().iter().enumerate() {
        let is_chosen = place == edit.chosen();
        if !is_chosen && !has_room {
            continue;
        }
        let text = format!("{} of {}: {}", rate.name, rate.owner, rate.value);
        lines.push((text, if is_chosen { reversed() } else { Style::new() }));
    }
    lines.push(plain(""));
    lines.push((format!("{} = {}_", edit.rate().name, edit.text()), bold()));
    let hint = "up, down: another rate   enter: go on   esc: leave   empty: default";
    lines.push((hint.to_owned(), dim()));
    lines
}

fn confirm_lines(model: &Model, edit: &Edit) -> Vec<Line> {
    let rate = edit.rate();
    let new = match edit.text() {
        "" => "its default",
        text => text,
    };
    vec![
        plain(format!(
            "{} of {}: {} becomes {new}",
            rate.name, rate.owner, rate.value
        )),
        order_line(model, &edit.order()),
        plain(""),
        ("y: make it   n: back".to_owned(), bold()),
    ]
}

fn answer_lines(model: &Model, order: &Order, answered: &Answered) -> (&'static str, Vec<Line>) {
    let mut lines = vec![order_line(model, order), plain("")];
    let title = match answered {
        Answered::Made(text) => {
            lines.extend(text.lines().map(plain));
            "changed"
        }
        Answered::Refused { message, help } => {
            lines.extend(message.lines().map(|line| (line.to_owned(), alarm(model))));
            lines.extend(help.lines().map(|line| plain(format!("help: {line}"))));
            "not changed"
        }
    };
    lines.extend([plain(""), any_key()]);
    (title, lines)
}

/// The command that would do the same.
fn order_line(model: &Model, order: &Order) -> Line {
    let options = &model.options;
    let text = match order.line.split_once(' ') {
        Some((what, rest)) => format!("fairgate {what} --from {} {rest}{options}", order.from),
        None => order.line.clone(),
    };
    (text, dim())
}

fn any_key() -> Line {
    ("any key: back".to_owned(), dim())
}

/// Draws a box with text in the middle. It is as small as the text, and at most as large as the screen.
fn draw_box(title: &str, text: &[Line], width: u16, area: Rect, cells: &mut Buffer) {
    let width = width.min(area.width);
    let room = usize::from(width.saturating_sub(4)).max(1);
    let broken = |(text, style): &Line| {
        let style = *style;
        wrapped(text, room).into_iter().map(move |line| (line, style))
    };
    let text: Vec<Line> = text.iter().flat_map(broken).collect();
    let height = (text.len() + 2).min(usize::from(area.height)) as u16;
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(place, cells);
    let block = Block::bordered().title(format!(" {title} "));
    let inside = block.inner(place);
    block.render(place, cells);
    let inside = Rect {
        x: inside.x + u16::from(inside.width > 2),
        width: inside.width.saturating_sub(2),
        ..inside
    };
    for ((text, style), line) in text.iter().zip(lines(inside)) {
        write(line, text, *style, cells);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// docs/top.md lists the same keys.
    #[test]
    fn the_documentation_has_the_keys() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/top.md");
        let text = std::fs::read_to_string(file).unwrap();
        let rows = text.lines().filter_map(|line| {
            let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
            row.split_once(" | ")
        });
        let rows: Vec<(&str, &str)> = rows.filter(|(key, _)| *key != "key").collect();
        assert_eq!(rows, HELP);
    }
}
