//! The state of the screen as text in cells.

mod details;
mod flows;
mod head;
mod overlay;
mod paint;
mod table;
mod words;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::model::Model;

/// Screens of at least this width have the details beside the classes.
const WIDE: u16 = 120;

/// How many lines of classes a page of text has for each direction.
const LINES_OF_A_PAGE: usize = 60;

/// Where the parts of the screen are. Parts that have no room are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Areas {
    head: Rect,
    table: Rect,
    details: Rect,
    foot: Rect,
}

impl Areas {
    fn of(area: Rect) -> Areas {
        let height = area.height;
        let head = match height {
            0..=2 => 0,
            3..=9 => 1,
            _ => 3,
        };
        let foot = u16::from(height >= 5);
        let middle = Rect {
            y: area.y + head,
            height: height - head - foot,
            ..area
        };
        let (table, details) = beside_or_below(middle);
        Areas {
            head: Rect { height: head, ..area },
            table,
            details,
            foot: Rect {
                y: area.y + height - foot,
                height: foot,
                ..area
            },
        }
    }

    /// What is between head and foot.
    fn middle(&self) -> Rect {
        match self.details.is_empty() {
            true => self.table,
            false => self.table.union(self.details),
        }
    }
}

/// Divides an area between the classes and the details of one.
fn beside_or_below(area: Rect) -> (Rect, Rect) {
    let none = Rect { height: 0, ..area };
    if area.width >= WIDE && area.height >= 6 {
        let width = (area.width / 3).clamp(44, 72);
        let table = Rect {
            width: area.width - width,
            ..area
        };
        let details = Rect {
            x: area.x + table.width,
            width,
            ..area
        };
        return (table, details);
    }
    let below = match area.height {
        _ if area.width < 40 => 0,
        0..=11 => 0,
        12..=15 => 4,
        16..=27 => 8,
        more => (more / 3).clamp(9, 14),
    };
    if below == 0 {
        return (area, none);
    }
    let table = Rect {
        height: area.height - below,
        ..area
    };
    let details = Rect {
        y: area.y + table.height,
        height: below,
        ..area
    };
    (table, details)
}

/// Returns how many lines a screen of this size has for classes.
pub(crate) fn lines_of_classes(width: u16, height: u16) -> usize {
    usize::from(table::lines(Areas::of(Rect::new(0, 0, width, height)).table))
}

/// Returns how many lines a screen of this size has for flows.
pub(crate) fn lines_of_flows(width: u16, height: u16) -> usize {
    usize::from(flows::lines(Areas::of(Rect::new(0, 0, width, height)).middle()))
}

/// Draws the screen.
pub fn screen(model: &Model, area: Rect, cells: &mut Buffer) {
    let areas = Areas::of(area);
    head::draw(model, areas.head, cells);
    match model.flows {
        Some(list) => flows::draw(model, list, areas.middle(), cells),
        None => {
            table::draw(model, areas.table, cells);
            details::draw(model, areas.details, cells);
        }
    }
    head::draw_foot(model, areas.foot, cells);
    overlay::draw(model, area, cells);
}

/// Returns the screen as text: both directions, one below the other, without keys. Lines have at most `width`
/// columns.
pub fn page(model: &Model, width: u16) -> String {
    let width = width.max(20);
    let sides = [0, 1].map(|side| (side, model.lines_of(side)));
    let length = |(_, lines): &(usize, Vec<_>)| lines.len().min(LINES_OF_A_PAGE) + 4;
    let height = 1 + sides.iter().map(length).sum::<usize>();
    let area = Rect::new(0, 0, width, height as u16);
    let mut cells = Buffer::empty(area);
    let mut y = head::draw_title(model, Rect { height: 1, ..area }, &mut cells);
    for (side, lines) in &sides {
        y += 1;
        let line = Rect { y, height: 1, ..area };
        head::draw_direction(model, *side, line, &mut cells);
        y += 1;
        let shown = &lines[..lines.len().min(LINES_OF_A_PAGE)];
        let rows = Rect {
            y,
            height: shown.len() as u16 + 1,
            ..area
        };
        table::draw_page(model, *side, shown, rows, &mut cells);
        y += rows.height;
        if shown.len() < lines.len() {
            let more = format!("and {} more lines", lines.len() - shown.len());
            cells.set_stringn(0, y, more, width.into(), ratatui::style::Style::new());
            y += 1;
        }
    }
    paint::text(&cells)
}
