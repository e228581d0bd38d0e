//! The sentences of the report.

use crate::comparison::{Comparison, Input};
use crate::units;

/// The most findings that get a sentence.
const MOST_FINDINGS: usize = 5;

/// Delays that differ by less than this factor get no sentence.
const NOTABLE_RATIO: f64 = 1.5;

pub(super) fn title(comparison: &Comparison) -> String {
    let link = units::nominal_rate(comparison.rate_bps);
    match &comparison.input {
        Input::Scenario { name } => format!(
            "{name}: one link of {link}, {} disciplines",
            comparison.disciplines.len()
        ),
        Input::Capture { file, .. } => {
            let name = std::path::Path::new(file)
                .file_name()
                .map_or(file.as_str().into(), |name| name.to_string_lossy());
            format!("{name} on a link of {link}")
        }
    }
}

pub(super) fn lead(comparison: &Comparison) -> String {
    let length = units::duration(comparison.duration_ns);
    match &comparison.input {
        Input::Scenario { .. } => format!(
            "The same applications share the same link for {length}, once under each queueing discipline. \
             Senders react to what happens to their packets, as real senders do."
        ),
        Input::Capture {
            packets, replayed, ..
        } => format!(
            "The effect of each queueing discipline on this traffic: {replayed} of the recording's {packets} \
             packets, over {length}. Each packet arrives at the link at the time of its recording."
        ),
    }
}

/// Returns sentences on the groups whose delay depends most on the discipline, and on loss.
pub(super) fn findings(comparison: &Comparison) -> Vec<String> {
    let mut by_ratio: Vec<(f64, usize, String)> = Vec::new();
    for (index, group) in comparison.groups.iter().enumerate() {
        let mut delays: Vec<(u64, &str)> = comparison
            .disciplines
            .iter()
            .filter_map(|discipline| {
                Some((
                    discipline.groups[index].delay.as_ref()?.p95_ns,
                    discipline.name.as_str(),
                ))
            })
            .collect();
        delays.sort();
        let (Some(&(least, best)), Some(&(most, worst))) = (delays.first(), delays.last()) else {
            continue;
        };
        let ratio = most as f64 / least.max(1) as f64;
        if ratio >= NOTABLE_RATIO {
            let sentence = format!(
                "{}: 95 of 100 packets were delivered within {} with {best}, and within {} with {worst}.",
                capitalised(&group.name),
                units::duration(least),
                units::duration(most)
            );
            by_ratio.push((ratio, index, sentence));
        }
    }
    by_ratio.sort_by(|a, b| b.0.total_cmp(&a.0));
    by_ratio.truncate(MOST_FINDINGS);
    // Back to the order of the tables.
    by_ratio.sort_by_key(|(_, index, _)| *index);
    let mut findings: Vec<String> = by_ratio.into_iter().map(|(_, _, sentence)| sentence).collect();
    let by_loss = |a: &&crate::comparison::Discipline, b: &&crate::comparison::Discipline| {
        a.total.loss.total_cmp(&b.total.loss)
    };
    let least = comparison.disciplines.iter().min_by(by_loss);
    let most = comparison.disciplines.iter().max_by(by_loss);
    match (least, most) {
        (Some(least), Some(most)) if most.total.loss > 0.0 => findings.push(format!(
            "Of all packets, {} were dropped with {}, {} with {}.",
            units::percent(least.total.loss),
            least.name,
            units::percent(most.total.loss),
            most.name
        )),
        _ => findings.push("No discipline dropped a packet: the link was never overloaded for long.".into()),
    }
    findings
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
