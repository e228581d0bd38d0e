//! What is known of the selected class.

use std::collections::BTreeMap;

use fairgate_run_api::{ClassStatus, NodeStatus, RateStatus, ValueStatus};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{RenderDirection, Sparkline, Widget};

use super::paint::{bold, curve, dim, lines, warning, write};
use super::words::{bytes, megabits, millis, per_second, wrapped};
use crate::top::layout::WIDE;
use crate::top::listing;
use crate::top::model::{Data, Model};

pub(super) fn draw(model: &Model, area: Rect, cells: &mut Buffer) {
    if area.height < 2 || area.width < 20 {
        return;
    }
    let Some(index) = model.selected_place() else {
        return;
    };
    let is_beside = area.height > area.width / 3 || area.x > 0;
    let (text, curves) = divided(area, is_beside);
    draw_text(model, index, text, cells);
    draw_curves(model, index, curves, cells);
}

/// Divides the area between text and curves.
fn divided(area: Rect, is_beside: bool) -> (Rect, Rect) {
    match is_beside {
        true => {
            // A space divides it from the classes.
            let area = Rect {
                x: area.x + 2,
                width: area.width - 2,
                ..area
            };
            let height = (area.height / 2).clamp(4, 14).min(area.height / 2);
            let text = Rect {
                height: area.height - height,
                ..area
            };
            let curves = Rect {
                y: area.y + text.height,
                height,
                ..area
            };
            (text, curves)
        }
        false => {
            let width = (area.width * 3 / 5).min(area.width - 16);
            let text = Rect { width, ..area };
            let curves = Rect {
                x: area.x + width + 1,
                width: area.width - width - 1,
                ..area
            };
            (text, curves)
        }
    }
}

fn draw_text(model: &Model, index: usize, area: Rect, cells: &mut Buffer) {
    let data = model.data();
    let tree = &data.trees[model.side];
    let mut left = lines(area);
    if let Some(line) = left.next() {
        write(line, &listing::name(tree, index), bold(), cells);
    }
    for (text, is_notable) in facts(model, index) {
        for part in wrapped(&text, usize::from(area.width)) {
            let Some(line) = left.next() else { return };
            let style = if is_notable { warning(model) } else { Style::new() };
            write(line, &part, style, cells);
        }
    }
}

/// Returns what is known of a place, the most important first, and whether it is notable.
fn facts(model: &Model, index: usize) -> Vec<(String, bool)> {
    let data = model.data();
    let tree = &data.trees[model.side];
    let mut facts = Vec::new();
    let settings = tree.settings(index);
    if !settings.is_empty() {
        facts.push((settings.join(", "), false));
    }
    if data.is_unknown(model.side) {
        facts.push((
            "this program does not know a discipline of the tree".to_owned(),
            true,
        ));
    }
    let figures = tree.figures(index).cloned().unwrap_or_default();
    if let Some(delay) = figures.delay {
        let text = format!(
            "delay 50 % {}, 95 % {}, 99 % {}, max {} ms",
            millis(delay.p50_us),
            millis(delay.p95_us),
            millis(delay.p99_us),
            millis(delay.max_us)
        );
        facts.push((text, false));
    } else if let Some(mean) = figures.mean_us {
        facts.push((format!("delay mean {} ms", millis(mean)), false));
    }
    let backlog = (figures.backlog, bytes(figures.backlog_bytes));
    facts.push((format!("queued {} packets, {}", backlog.0, backlog.1), false));
    for (reason, count) in &figures.drops {
        let rate = per_second(figures.per_second(*count));
        facts.push((format!("dropped for {reason}: {rate}/s"), true));
    }
    if figures.marked > 0 {
        facts.push((
            format!("marked: {}/s", per_second(figures.per_second(figures.marked))),
            true,
        ));
    }
    facts.extend(since_start(data, model.side, &tree.node(index).key));
    if index == 0 {
        facts.extend(of_direction(data, model.side));
    }
    facts
}

/// Returns what the status says of a place since the start of the run.
fn since_start(data: &Data, side: usize, key: &str) -> Vec<(String, bool)> {
    let Some(direction) = data
        .status
        .as_ref()
        .and_then(|status| status.directions.get(side))
    else {
        return Vec::new();
    };
    let mut facts = Vec::new();
    let (node, class, rate) = found(&direction.tree, key);
    facts.extend(estimated(rate));
    if let Some(node) = node {
        let sent = format!("since the start: sent {}", bytes(node.dequeued.bytes));
        let dropped = reasons(&node.drops);
        let marked = match node.marked {
            0 => String::new(),
            marked => format!(", marked {marked}"),
        };
        facts.push((format!("{sent}{dropped}{marked}"), false));
        facts.extend(estimated(node.estimated));
        facts.extend(variables(&node.variables));
    }
    if let Some(class) = class {
        if node.is_none() {
            facts.push((
                format!("since the start: sent {}", bytes(class.sent.bytes)),
                false,
            ));
        }
        facts.extend(variables(&class.variables));
    }
    facts
}

fn estimated(rate: Option<RateStatus>) -> Option<(String, bool)> {
    let rate = rate?;
    let text = format!(
        "estimated {} Mbit/s, {} packets/s",
        megabits(rate.rate_bps as f64),
        rate.rate_pps
    );
    Some((text, false))
}

fn reasons(drops: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> = drops
        .iter()
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(", dropped {}", all.join(", ")),
    }
}

fn variables(variables: &BTreeMap<String, ValueStatus>) -> Option<(String, bool)> {
    let shown = |(name, value): (&String, &ValueStatus)| match value {
        ValueStatus::Integer(number) => Some(format!("{name} {number}")),
        ValueStatus::Nanos(nanos) => Some(format!("{name} {} ms", millis(*nanos as f64 / 1e3))),
        ValueStatus::Flag(flag) => Some(format!("{name} {flag}")),
        ValueStatus::Unset => None,
    };
    let all: Vec<String> = variables.iter().filter_map(shown).collect();
    (!all.is_empty()).then(|| (all.join(", "), false))
}

/// What a status has of a place: its discipline, the state of its class, and what the estimator of its class
/// says.
type Found<'s> = (
    Option<&'s NodeStatus>,
    Option<&'s ClassStatus>,
    Option<RateStatus>,
);

/// Returns what is at the end of a path.
fn found<'s>(root: &'s NodeStatus, key: &str) -> Found<'s> {
    let (mut node, mut class, mut rate) = (Some(root), None, None);
    for step in key.split('/').filter(|step| !step.is_empty()) {
        let (Some(above), Ok(minor)) = (node, step.parse::<u32>()) else {
            return (None, None, None);
        };
        class = above.class_states.iter().find(|state| state.class == minor);
        let estimated = &above.estimated_classes;
        rate = estimated
            .iter()
            .find(|rate| rate.class == minor)
            .map(|of_class| of_class.rate);
        node = above.in_class(minor);
    }
    (node, class, rate)
}

/// Returns what is wrong outside of the tree.
fn of_direction(data: &Data, side: usize) -> Vec<(String, bool)> {
    let mut facts = Vec::new();
    let Some(status) = &data.status else { return facts };
    if let Some(why) = &status.fallback {
        facts.push((why.clone(), true));
    }
    if let Some(direction) = status.directions.get(side) {
        if direction.passed_by > 0 {
            let text = format!("went past the run, unshaped: {} packets", direction.passed_by);
            facts.push((text, true));
        }
        for (reason, count) in direction.lost.by_reason() {
            if count > 0 {
                facts.push((format!("lost outside of the queues: {count} {reason}"), true));
            }
        }
    }
    let processor = &status.processor;
    if processor.stalls > 0 {
        let text = format!(
            "processor: {} stalls of more than 5 ms, at most {} ms",
            processor.stalls,
            millis(processor.longest_stall_us)
        );
        facts.push((text, true));
    }
    if data.missed > 0 {
        facts.push((
            format!(
                "percentiles lack {} packets: the machine is too busy",
                data.missed
            ),
            true,
        ));
    }
    facts
}

/// Draws the rate above the delay, newest at the right.
fn draw_curves(model: &Model, index: usize, area: Rect, cells: &mut Buffer) {
    if area.height < 4 || area.width < 10 {
        return;
    }
    let tree = &model.data().trees[model.side];
    let (rates, delays) = tree.history(index);
    let has_percentiles = tree.figures(index).is_some_and(|figures| figures.delay.is_some());
    let kind = if has_percentiles { "99 % delay" } else { "delay" };
    let upper = Rect {
        height: area.height.div_ceil(2),
        ..area
    };
    let lower = Rect {
        y: upper.bottom(),
        height: area.height - upper.height,
        ..area
    };
    let width = usize::from(area.width);
    let most = |values: &[u64]| values.iter().take(width).copied().max().unwrap_or(0);
    let is_wide = area.width >= WIDE / 4;
    let up_to = if is_wide { "up to " } else { "<" };
    let title = format!("rate, {up_to}{} Mbit/s", megabits(most(&rates) as f64));
    draw_curve(model, &title, &rates, upper, cells);
    let title = format!("{kind}, {up_to}{} ms", millis(most(&delays) as f64));
    draw_curve(model, &title, &delays, lower, cells);
}

fn draw_curve(model: &Model, title: &str, values: &[u64], area: Rect, cells: &mut Buffer) {
    let mut left = lines(area);
    if let Some(line) = left.next() {
        write(line, title, dim(), cells);
    }
    let below = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
    let shown = &values[..values.len().min(usize::from(area.width))];
    Sparkline::default()
        .data(shown)
        .direction(RenderDirection::RightToLeft)
        .style(curve(model))
        .render(below, cells);
}
