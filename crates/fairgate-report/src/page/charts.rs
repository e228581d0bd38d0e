//! The plots of the report, by section.

use maud::{Markup, html};

use super::section;
use crate::comparison::{Comparison, Delay, Measured};
use crate::plot::{Axis, Bar, Frame, Layer, Line, Range, bars, lines, ranges, stack, steps};
use crate::units;

/// The width of a small plot in units of its view box. A wide plot is as wide as three small ones.
const SMALL: f64 = 380.0;
const WIDE: f64 = 1180.0;

/// The number of colours in the style sheet. Groups beyond this number repeat the colours.
const COLOURS: usize = 10;

const NANOS_A_MILLI: f64 = 1e6;

pub(super) fn delay_ranges(comparison: &Comparison) -> Markup {
    let axis = delay_axis(comparison);
    let room = name_room(comparison);
    section(
        "Delay at a glance",
        "Each bar starts at the median delay (dot), passes the 95th percentile (tick) and ends at the 99th \
         (ring). Further left is better. Each grid line is ten times the one before it.",
        html! { div.panels { @for (index, group) in comparison.groups.iter().enumerate() {
            @let rows: Vec<Range> = comparison.disciplines.iter().enumerate().map(|(colour, discipline)| {
                let measured = &discipline.groups[index];
                let delay = measured.delay.as_ref();
                Range {
                    name: &discipline.name,
                    colour: colour % COLOURS,
                    values: delay.map(|d| [d.p50_ns, d.p95_ns, d.p99_ns].map(|ns| ns as f64 / NANOS_A_MILLI)),
                    note: match delay {
                        Some(delay) => in_words(delay),
                        None if measured.delivered == 0 => "nothing delivered".to_owned(),
                        None => "delays are not measured".to_owned(),
                    },
                }
            }).collect();
            @let frame = Frame::with_rows(SMALL, rows.len(), room, axis.clone());
            (panel(&group.name, &group.detail,
                frame.draw(&format!("Delay of {} under each discipline", group.name), ranges(&frame, &rows))))
        } } },
    )
}

pub(super) fn delay_distributions(comparison: &Comparison) -> Markup {
    let axis = delay_axis(comparison);
    section(
        "Distribution of delays",
        "A curve shows which share of the packets (upwards) was delivered within a delay (to the right). \
         Further up and further left is better. A long flat end is a delay that people notice.",
        html! {
            (discipline_legend(comparison))
            div.panels {
                @for (index, group) in comparison.groups.iter().enumerate() {
                    (panel(&group.name, &group.detail,
                        distribution(comparison, axis.clone(), SMALL, &group.name,
                        |discipline| &discipline.groups[index])))
                }
                (panel("everything", "all packets together",
                    distribution(comparison, axis, SMALL, "everything", |discipline| &discipline.total)))
            }
        },
    )
}

fn distribution(
    comparison: &Comparison,
    axis: Axis,
    width: f64,
    name: &str,
    of: impl Fn(&crate::comparison::Discipline) -> &Measured,
) -> Markup {
    let share = Axis::exact("share of packets", 1.0, |value| format!("{:.0} %", value * 100.0));
    let frame = Frame::new(width, 210.0, axis, share);
    let curves: Vec<Line> = comparison
        .disciplines
        .iter()
        .enumerate()
        .map(|(colour, discipline)| Line {
            name: &discipline.name,
            colour: colour % COLOURS,
            dash: colour % COLOURS,
            points: of(discipline).delay.as_ref().map_or(Vec::new(), curve),
        })
        .collect();
    frame.draw(
        &format!("Distribution of the delays of {name}"),
        lines(&frame, &curves),
    )
}

pub(super) fn throughput(comparison: &Comparison) -> Markup {
    let xs = bin_edges(comparison);
    let link = comparison.rate_bps.map(|rate| rate as f64 / 1e6);
    let highest = comparison
        .disciplines
        .iter()
        .flat_map(|discipline| &discipline.total.throughput_over_time_bps)
        .fold(link.unwrap_or(0.0) * 1.02, |most, &bps| most.max(bps / 1e6));
    section(
        "Throughput over time",
        "The layers show the throughput of each application or flow, stacked. The dashed line is the link's \
         rate. The space below it is unused.",
        html! {
            (group_legend(comparison))
            div.panels { @for discipline in &comparison.disciplines {
                @let frame = Frame::new(SMALL, 210.0, time_axis(comparison),
                    Axis::linear("Mbit/s", highest, units::plain));
                @let in_mbps = |group: &Measured| {
                    group.throughput_over_time_bps.iter().map(|bps| bps / 1e6).collect::<Vec<f64>>()
                };
                @let values: Vec<Vec<f64>> = discipline.groups.iter().map(in_mbps).collect();
                @let layers: Vec<Layer> = comparison.groups.iter().zip(&values).enumerate()
                    .map(|(index, (group, values))| {
                        Layer { name: &group.name, colour: index % COLOURS, values }
                    })
                    .collect();
                (panel(&discipline.name,
                    &format!("{} of the link used", units::percent(discipline.utilisation)),
                    frame.draw(&format!("Throughput over time with {}", discipline.name), html! {
                        (stack(&frame, &xs, &layers))
                        @if let Some(link) = link {
                            line.limit x1=(frame.at_x(0.0)) x2=(frame.at_x(f64::MAX))
                                y1=(frame.at_y(link)) y2=(frame.at_y(link)) {}
                        }
                    })))
            } }
        },
    )
}

pub(super) fn queues(comparison: &Comparison) -> Markup {
    let xs = bin_edges(comparison);
    let longest = comparison
        .disciplines
        .iter()
        .map(|d| d.queue.most_bytes)
        .max()
        .unwrap_or(0);
    let (unit, label) = match longest {
        0..5_000_000 => (1e3, "kB queued"),
        _ => (1e6, "MB queued"),
    };
    let in_unit = |bytes: &u64| *bytes as f64 / unit;
    let wait = |bytes: u64| {
        let nanos = |rate: u64| (u128::from(bytes) * 8_000_000_000 / u128::from(rate)) as u64;
        comparison.rate_bps.map_or(String::new(), |rate| {
            format!(", or {} at the link's rate", units::duration(nanos(rate)))
        })
    };
    section(
        "Queue over time",
        "The line is the mean backlog of each interval, and the shade behind it the longest. A queue that \
         stays long delays all packets behind it. The last plot shows the means of all disciplines on a \
         logarithmic scale.",
        html! { div.panels {
            @for (colour, discipline) in comparison.disciplines.iter().enumerate() {
                @let frame = Frame::new(SMALL, 180.0, time_axis(comparison),
                    Axis::linear(label, in_unit(&longest), units::plain));
                @let most: Vec<f64> = discipline.queue.most_bytes_over_time.iter().map(in_unit).collect();
                @let mean: Vec<f64> = discipline.queue.mean_bytes_over_time.iter().map(in_unit).collect();
                (panel(&discipline.name,
                    &format!("longest {} packets, {}{}",
                        discipline.queue.most_packets, units::bytes(discipline.queue.most_bytes),
                        wait(discipline.queue.most_bytes)),
                    frame.draw(&format!("Queue over time with {}", discipline.name), html! {
                        @let colour = colour % COLOURS;
                        @let layer = Layer { name: "longest", colour, values: &most };
                        @let line = Line { name: "mean", colour, dash: colour, points: steps(&xs, &mean) };
                        g.shade { (stack(&frame, &xs, &[layer])) }
                        (lines(&frame, &[line]))
                    })))
            }
            @let frame = Frame::new(WIDE, 220.0, time_axis(comparison),
                Axis::log(label, 100.0 / unit, in_unit(&longest), units::plain));
            @let curves: Vec<Line> = comparison.disciplines.iter().enumerate().map(|(index, discipline)| {
                let means: Vec<f64> = discipline.queue.mean_bytes_over_time.iter().map(in_unit).collect();
                Line {
                    name: &discipline.name,
                    colour: index % COLOURS,
                    dash: index % COLOURS,
                    points: steps(&xs, &means),
                }
            }).collect();
            div.wide {
                (panel("all disciplines", "mean backlog, logarithmic", html! {
                    (discipline_legend(comparison))
                    (frame.draw("Queue over time, all disciplines", lines(&frame, &curves)))
                }))
            }
        } },
    )
}

pub(super) fn loss(comparison: &Comparison) -> Markup {
    let most = comparison
        .disciplines
        .iter()
        .flat_map(|discipline| &discipline.groups)
        .fold(0.0f64, |most, group| most.max(group.loss));
    let room = name_room(comparison);
    section(
        "Loss",
        "The share of the offered packets that were dropped. All plots have the same scale.",
        html! { div.panels { @for (index, group) in comparison.groups.iter().enumerate() {
            @let rows: Vec<Bar> = comparison.disciplines.iter().enumerate().map(|(colour, discipline)| Bar {
                name: &discipline.name,
                colour: colour % COLOURS,
                value: discipline.groups[index].loss,
                note: units::percent(discipline.groups[index].loss),
            }).collect();
            // Space for the text after the longest bar.
            @let axis = Axis::exact("packets dropped", (most * 1.25).max(0.001),
                |share| units::plain(share * 100.0) + " %");
            @let frame = Frame::with_rows(SMALL, rows.len(), room, axis);
            (panel(&group.name, &group.detail,
                frame.draw(&format!("Loss of {} under each discipline", group.name), bars(&frame, &rows))))
        } } },
    )
}

fn panel(name: &str, detail: &str, plot: Markup) -> Markup {
    html! { figure { figcaption { b title=(name) { (name) } span title=(detail) { (detail) } } (plot) } }
}

fn discipline_legend(comparison: &Comparison) -> Markup {
    legend(
        comparison
            .disciplines
            .iter()
            .map(|discipline| discipline.name.as_str()),
        true,
    )
}

fn group_legend(comparison: &Comparison) -> Markup {
    legend(comparison.groups.iter().map(|group| group.name.as_str()), false)
}

fn legend<'a>(names: impl Iterator<Item = &'a str>, as_lines: bool) -> Markup {
    html! { ul.legend { @for (colour, name) in names.enumerate() { li {
        svg viewBox="0 0 26 12" aria-hidden="true" {
            @if as_lines {
                line class={ "line c" (colour % COLOURS) " d" (colour % COLOURS) }
                    x1="0" x2="26" y1="6" y2="6" {}
            } @else {
                rect class={ "bar c" (colour % COLOURS) } width="26" height="12" {}
            }
        }
        (name)
    } } } }
}

/// Returns one axis for all plots of delay, so that they can be compared.
fn delay_axis(comparison: &Comparison) -> Axis {
    let delays: Vec<&Delay> = comparison
        .disciplines
        .iter()
        .flat_map(|discipline| discipline.groups.iter().chain([&discipline.total]))
        .filter_map(|measured| measured.delay.as_ref())
        .collect();
    let least = delays
        .iter()
        .filter_map(|delay| low_end(delay))
        .min()
        .unwrap_or(0);
    let most = delays.iter().map(|delay| delay.p99_ns).max().unwrap_or(0);
    Axis::log(
        "delay, ms",
        least as f64 / NANOS_A_MILLI,
        most as f64 / NANOS_A_MILLI,
        units::plain,
    )
}

/// Returns the delay at or below which 3 % of the packets are. The axis leaves out shorter delays.
fn low_end(delay: &Delay) -> Option<u64> {
    delay
        .distribution
        .iter()
        .find(|point| point.1 >= 0.03)
        .map(|point| point.0)
}

fn time_axis(comparison: &Comparison) -> Axis {
    Axis::exact("time, s", comparison.duration_ns as f64 / 1e9, units::plain)
}

/// Returns the starts of all bins, and the end of the last one, s.
fn bin_edges(comparison: &Comparison) -> Vec<f64> {
    let bins = comparison
        .disciplines
        .first()
        .map_or(0, |d| d.total.throughput_over_time_bps.len());
    (0..=bins)
        .map(|index| (index as u64 * comparison.bin_ns).min(comparison.duration_ns) as f64 / 1e9)
        .collect()
}

/// Returns the corners of a distribution's curve: a step up at each delay.
fn curve(delay: &Delay) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(2 * delay.distribution.len());
    let mut below = 0.0;
    for &(nanos, share) in &delay.distribution {
        let x = nanos as f64 / NANOS_A_MILLI;
        points.extend([(x, below), (x, share)]);
        below = share;
    }
    points
}

fn in_words(delay: &Delay) -> String {
    format!(
        "median {}, 95 % within {}, 99 % within {}",
        units::duration(delay.p50_ns),
        units::duration(delay.p95_ns),
        units::duration(delay.p99_ns)
    )
}

/// Returns the space for the longest name, in units of the view box.
fn name_room(comparison: &Comparison) -> f64 {
    let longest = comparison
        .disciplines
        .iter()
        .map(|d| d.name.chars().count())
        .max()
        .unwrap_or(0);
    (longest as f64 * 6.0 + 14.0).clamp(60.0, 180.0)
}
