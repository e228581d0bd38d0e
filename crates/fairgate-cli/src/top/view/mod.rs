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

use crate::top::layout::Areas;
use crate::top::model::Model;

/// How many lines of classes a page of text has for each direction.
const LINES_OF_A_PAGE: usize = 60;

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
