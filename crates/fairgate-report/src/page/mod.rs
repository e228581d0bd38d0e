//! The report: one HTML page without scripts. It needs no network and no other file.

mod charts;
mod text;

use fairgate::harmless;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::comparison::{Comparison, Measured};
use crate::table::columns;
use crate::units;

pub(crate) const STYLE: &str = include_str!("style.css");

/// Returns the page as text.
pub fn render(comparison: &Comparison) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "fairgate " (comparison.version) };
                title { (text::title(comparison)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (text::title(comparison)) }
                    p.lead { (text::lead(comparison)) }
                }
                main {
                    (findings(comparison))
                    (summary(comparison))
                    (charts::delay_ranges(comparison))
                    (charts::delay_distributions(comparison))
                    (charts::throughput(comparison))
                    (charts::queues(comparison))
                    (charts::loss(comparison))
                    (figures(comparison))
                    (method(comparison))
                }
                footer {
                    "Made by fairgate " (comparison.version) ". For the numbers as data, add "
                    code { "--json" } " to the command."
                }
            }
        }
    };
    harmless::text(&page.into_string())
}

/// The number of bytes at the beginning of a page that [`is_report`] needs.
pub const MARKED_WITHIN: u64 = 1024;

/// Whether a file with this beginning was rendered by this module, in this version or another.
pub fn is_report(beginning: &[u8]) -> bool {
    let mark = br#"<meta name="generator" content="fairgate "#;
    beginning.starts_with(b"<!DOCTYPE html>") && beginning.windows(mark.len()).any(|part| part == mark)
}

/// Draws a section: a heading, a text on how to read it, and its body.
fn section(heading: &str, how_to_read: &str, body: Markup) -> Markup {
    html! {
        section {
            h2 { (heading) }
            p.how { (how_to_read) }
            (body)
        }
    }
}

fn findings(comparison: &Comparison) -> Markup {
    let findings = text::findings(comparison);
    html! {
        section.findings {
            h2 { "Results" }
            ul { @for finding in &findings { li { (finding) } } }
            @if !comparison.remarks.is_empty() {
                div.remarks {
                    h3 { "Limits of these results" }
                    ul { @for remark in &comparison.remarks { li { (remark) } } }
                }
            }
        }
    }
}

fn summary(comparison: &Comparison) -> Markup {
    section(
        "The disciplines",
        &format!(
            "Each row is the whole link under one discipline. Delays are of all packets together. Jain's \
             index ({}) is 1 if all got the same.",
            comparison.fairness_over
        ),
        html! {
            div.scroll { table {
                thead { tr {
                    th { "Discipline" }
                    @for head in ["Link used", "Jain's index", "Loss", "Marked", "Delay p50", "p95", "p99",
                        "Mean queue", "Longest queue"] { th.number { (head) } }
                } }
                tbody { @for discipline in &comparison.disciplines {
                    tr {
                        th scope="row" { (discipline.name) }
                        td { (units::percent(discipline.utilisation)) }
                        td { (discipline.fairness.map_or("–".into(), |index| format!("{index:.3}"))) }
                        td { (units::percent(discipline.total.loss)) }
                        td { (discipline.total.marked) }
                        @let delay = discipline.total.delay.as_ref();
                        @let percentiles = [
                            delay.map(|d| d.p50_ns), delay.map(|d| d.p95_ns), delay.map(|d| d.p99_ns)
                        ];
                        @for value in percentiles {
                            td { (value.map_or("–".into(), units::duration)) }
                        }
                        @let queue = &discipline.queue;
                        td { (units::bytes(queue.mean_bytes)) }
                        td { (units::bytes(queue.most_bytes)) " (" (queue.most_packets) " packets)" }
                    }
                } }
            } }
        },
    )
}

fn figures(comparison: &Comparison) -> Markup {
    let columns = columns(comparison);
    section(
        "All numbers",
        "One block for each application or flow. The best value of a column within a block is bold and \
         tinted.",
        html! {
            div.scroll { table {
                thead { tr {
                    th { "Discipline" }
                    @for column in columns { th.number { (column.heading) } }
                    th.number { "Packets offered" }
                    th.number { "dropped" }
                } }
                @for (index, group) in comparison.groups.iter().enumerate() {
                    @let rows: Vec<&Measured> =
                        comparison.disciplines.iter().map(|discipline| &discipline.groups[index]).collect();
                    tbody {
                        tr.group { th colspan=(columns.len() + 3) scope="rowgroup" {
                            (group.name) " " small { (group.detail) }
                        } }
                        @for (row, measured) in rows.iter().enumerate() {
                            tr {
                                th scope="row" { (comparison.disciplines[row].name) }
                                @for column in columns {
                                    td.best[column.best_of(&rows).contains(&row)] { (column.text(measured)) }
                                }
                                td { (measured.offered) }
                                td { (measured.dropped) }
                            }
                        }
                    }
                }
            } }
        },
    )
}

fn method(comparison: &Comparison) -> Markup {
    section(
        "Method",
        "The command below reproduces these numbers exactly.",
        html! {
            pre { code { (comparison.command) } }
            dl.facts {
                @for fact in &comparison.facts { div { dt { (fact.label) } dd { (fact.value) } } }
                @if let Some(rate) = comparison.rate_bps {
                    div { dt { "Rate" } dd { (units::nominal_rate(rate)) } }
                }
                div { dt { "Length of the run" } dd { (units::duration(comparison.duration_ns)) } }
                div { dt { "Seed" } dd { (comparison.seed) } }
                div { dt { "Program" } dd { "fairgate " (comparison.version) } }
            }
            h3 { "Drops by reason" }
            ul {
                @for discipline in &comparison.disciplines {
                    li {
                        b { (discipline.name) } ": "
                        @if discipline.drops.is_empty() { "nothing" }
                        @for (index, (reason, count)) in discipline.drops.iter().enumerate() {
                            @if index > 0 { ", " }
                            (count) " for " code { (reason) }
                        }
                    }
                }
            }
        },
    )
}
