//! Text in cells.

use fairgate::harmless;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::top::model::Model;

/// Writes text into a line, from its beginning. Returns the rest of the line.
pub(super) fn write(line: Rect, text: &str, style: Style, cells: &mut Buffer) -> Rect {
    if line.width == 0 || line.height == 0 {
        return line;
    }
    let (end, _) = cells.set_stringn(line.x, line.y, harmless::name(text), line.width.into(), style);
    Rect {
        x: end,
        width: line.right().saturating_sub(end),
        ..line
    }
}

/// Writes text at the end of a line.
pub(super) fn write_right(line: Rect, text: &str, style: Style, cells: &mut Buffer) {
    let text = &harmless::name(text);
    let length = text.chars().count().min(usize::from(line.width)) as u16;
    let end = Rect {
        x: line.right() - length,
        width: length,
        ..line
    };
    write(end, text, style, cells);
}

/// Returns each line of an area.
pub(super) fn lines(area: Rect) -> impl Iterator<Item = Rect> {
    (area.y..area.bottom()).map(move |y| Rect { y, height: 1, ..area })
}

/// Returns the cells as text, without spaces at the ends of lines and without empty lines at the end.
pub(super) fn text(cells: &Buffer) -> String {
    let mut text = String::new();
    for line in lines(cells.area) {
        let symbols = (line.x..line.right()).map(|x| cells[(x, line.y)].symbol());
        text.push_str(symbols.collect::<String>().trim_end());
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

pub(super) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub(super) fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

pub(super) fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

/// The style of what needs attention.
pub(super) fn warning(model: &Model) -> Style {
    match model.colour {
        true => Style::new().fg(Color::Yellow),
        false => bold(),
    }
}

/// The style of what is wrong.
pub(super) fn alarm(model: &Model) -> Style {
    match model.colour {
        true => bold().fg(Color::Red),
        false => bold(),
    }
}

/// The style of curves.
pub(super) fn curve(model: &Model) -> Style {
    match model.colour {
        true => Style::new().fg(Color::Cyan),
        false => Style::new(),
    }
}
