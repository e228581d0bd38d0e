//! The first lines, about the run and its directions, and the last line, about keys.

use fairgate_run_api::DirectionStatus;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::paint::{alarm, bold, dim, lines, reversed, warning, write, write_right};
use super::words::{duration, megabits, millis, per_second};
use crate::top::figures::Figures;
use crate::top::listing::Shape;
use crate::top::model::{Link, Model};

/// Lines of at least this width say more.
const WIDE: u16 = 110;

pub(super) fn draw(model: &Model, area: Rect, cells: &mut Buffer) {
    let mut lines = lines(area);
    if let Some(line) = lines.next() {
        draw_title(model, line, cells);
    }
    for (side, line) in lines.enumerate() {
        draw_direction(model, side, line, cells);
    }
}

/// Draws the line about the run. Returns where it is.
pub(super) fn draw_title(model: &Model, line: Rect, cells: &mut Buffer) -> u16 {
    let Some(status) = &model.data().status else {
        write(line, state(model).0.as_str(), Style::new(), cells);
        return line.y;
    };
    let rest = write(line, &status.name, bold(), cells);
    let text = format!(
        "  process {}, running for {}, revision {}",
        status.pid,
        duration(model.data().at_s.max(status.uptime_s)),
        status.revision
    );
    write(rest, &text, Style::new(), cells);
    let (text, is_good) = state(model);
    let style = if is_good { dim() } else { alarm(model) };
    if !text.is_empty() {
        write_right(line, &format!(" {text}"), style, cells);
    }
    line.y
}

/// Returns what to say about the connection, and whether all is well.
fn state(model: &Model) -> (String, bool) {
    let text = match model.link() {
        Link::Waiting => "waiting for the run".to_owned(),
        Link::Lost(why) => format!("NO ANSWER: {why}; waiting for it"),
        Link::Restarted => "the run was started again".to_owned(),
        Link::Live if model.is_paused() => "PAUSED: p goes on".to_owned(),
        Link::Live => String::new(),
    };
    (
        text,
        matches!(model.link(), Link::Live | Link::Waiting) && !model.is_paused(),
    )
}

/// Draws the line about a direction.
pub(super) fn draw_direction(model: &Model, side: usize, line: Rect, cells: &mut Buffer) {
    let data = model.data();
    let directions = data.status.as_ref().map(|status| &status.directions);
    let direction = directions.and_then(|directions| directions.get(side));
    let name = match direction {
        Some(direction) => format!("{} -> {}", direction.from, direction.to),
        None => ["left to right", "right to left"][side.min(1)].to_owned(),
    };
    let is_shown = model.side == side;
    let style = if is_shown { bold() } else { Style::new() };
    let rest = write(line, &format!("{name}  "), style, cells);
    let Some(figures) = data.trees[side].figures(0) else {
        write(rest, "no figures yet", dim(), cells);
        return;
    };
    let rest = write(
        rest,
        &format!("{} Mbit/s", megabits(figures.rate_bps)),
        Style::new(),
        cells,
    );
    // A narrow screen has room for what comes first.
    let rest = match direction.map_or(0, lost) {
        0 => rest,
        lost => write(rest, &format!(", {lost} lost outside"), alarm(model), cells),
    };
    let mut rest = write(rest, &delay_and_queue(figures, line.width), Style::new(), cells);
    for (count, what) in [(figures.dropped(), "drops/s"), (figures.marked, "marks/s")] {
        if count > 0 {
            let text = format!(", {} {what}", per_second(figures.per_second(count)));
            rest = write(rest, &text, warning(model), cells);
        }
    }
}

fn delay_and_queue(figures: &Figures, width: u16) -> String {
    let delay = match (figures.delay, figures.mean_us) {
        (Some(delay), _) => {
            let [p50, p95, p99] = [delay.p50_us, delay.p95_us, delay.p99_us].map(millis);
            match width {
                WIDE.. => format!(", delay {p50} / {p95} / {p99} ms (50, 95, 99 %)"),
                _ => format!(", {p50}/{p95}/{p99} ms"),
            }
        }
        (None, Some(mean)) => format!(", delay {} ms", millis(mean)),
        (None, None) => String::new(),
    };
    format!("{delay}, {} queued", figures.backlog)
}

/// Returns how many frames were lost outside of the tree since the start.
fn lost(direction: &DirectionStatus) -> u64 {
    direction.lost.by_reason().iter().map(|(_, count)| count).sum()
}

/// Draws the line about keys, or the filter that is being written.
pub(super) fn draw_foot(model: &Model, line: Rect, cells: &mut Buffer) {
    if model.is_filtering {
        let text = format!("filter: {}_", model.filter);
        write(line, &text, bold(), cells);
        write_right(line, " enter keeps it, esc removes it", dim(), cells);
        return;
    }
    let mut rest = line;
    let keys: &[(&str, &str)] = match line.width {
        _ if model.flows.is_some() => &[
            ("q", "quit"),
            ("?", "help"),
            ("f", "classes"),
            ("s", "sort"),
            ("p", "pause"),
        ],
        WIDE.. => &[
            ("q", "quit"),
            ("?", "help"),
            ("tab", "other direction"),
            ("enter", "open/close"),
            ("s", "sort"),
            ("v", "tree/flat/hosts"),
            ("f", "flows"),
            ("/", "filter"),
            ("r", "change rate"),
            ("p", "pause"),
        ],
        _ => &[
            ("q", "quit"),
            ("?", "help"),
            ("tab", "turn"),
            ("s", "sort"),
            ("v", "view"),
            ("f", "flows"),
            ("/", "filter"),
            ("r", "rate"),
            ("p", "pause"),
        ],
    };
    for (key, what) in keys {
        rest = write(rest, key, reversed(), cells);
        rest = write(rest, &format!(" {what}  "), Style::new(), cells);
    }
    if model.flows.is_some() {
        return;
    }
    let mut facts = vec![format!("by {}", model.sort)];
    if !model.filter.is_empty() {
        facts.push(format!("filter {}", model.filter));
    }
    if model.only_used() && model.shape != Shape::Hosts {
        facts.push("used".to_owned());
    }
    let text = format!(" {}", facts.join(", "));
    if text.chars().count() <= usize::from(rest.width) {
        write_right(rest, &text, dim(), cells);
    }
}
