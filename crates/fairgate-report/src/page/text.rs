//! The sentences of the report.

use crate::comparison::{Comparison, Input, Measured};
use crate::units;

/// The most findings that get a sentence.
const MOST_FINDINGS: usize = 5;

/// Delays that differ by less than this factor get no sentence.
const NOTABLE_RATIO: f64 = 1.5;

pub(super) fn title(comparison: &Comparison) -> String {
    let link = comparison.rate_bps.map_or("the link".to_owned(), |rate| {
        format!("a link of {}", units::nominal_rate(rate))
    });
    match &comparison.input {
        Input::Scenario { name } => format!("{name}: {} disciplines on {link}", comparison.disciplines.len()),
        Input::Capture { file, .. } | Input::Connections { file, .. } => {
            let name = std::path::Path::new(file)
                .file_name()
                .map_or(file.as_str().into(), |name| name.to_string_lossy());
            format!("{name} on {link}")
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
        Input::Connections { connections, .. } => format!(
            "The effect of each queueing discipline on the {connections} TCP connections of this recording, \
             simulated over {length}. They transfer what was recorded, after the pauses that were recorded, \
             and their senders react to what happens to their packets."
        ),
    }
}

/// Returns sentences on the groups that depend most on the discipline, and on loss.
pub(super) fn findings(comparison: &Comparison) -> Vec<String> {
    let mut findings = Vec::new();
    if comparison.has_completion() {
        findings = notable(
            comparison,
            |measured| {
                let completion = measured.completion.as_ref()?;
                // The time of an incomplete connection is unknown.
                (completion.completed == completion.connections).then_some(completion.p50_ns)
            },
            |least, best, most, worst| {
                format!("half of the connections took at most {least} with {best}, and {most} with {worst}.")
            },
        );
    }
    findings.extend(notable(
        comparison,
        |measured| Some(measured.delay.as_ref()?.p95_ns),
        |least, best, most, worst| {
            format!(
                "95 of 100 packets were delivered within {least} with {best}, and within {most} with {worst}."
            )
        },
    ));
    findings.push(losses(comparison));
    findings
}

/// Returns sentences on the groups for which a duration depends most on the discipline. `sentence` gets the
/// shortest duration, its discipline, the longest duration, and its discipline.
fn notable(
    comparison: &Comparison,
    duration: impl Fn(&Measured) -> Option<u64>,
    sentence: impl Fn(&str, &str, &str, &str) -> String,
) -> Vec<String> {
    let mut by_ratio: Vec<(f64, usize, String)> = Vec::new();
    for (index, group) in comparison.groups.iter().enumerate() {
        let mut delays: Vec<(u64, &str)> = comparison
            .disciplines
            .iter()
            .filter_map(|discipline| Some((duration(&discipline.groups[index])?, discipline.name.as_str())))
            .collect();
        delays.sort();
        let (Some(&(least, best)), Some(&(most, worst))) = (delays.first(), delays.last()) else {
            continue;
        };
        let ratio = most as f64 / least.max(1) as f64;
        if ratio >= NOTABLE_RATIO {
            let sentence = sentence(&units::duration(least), best, &units::duration(most), worst);
            by_ratio.push((ratio, index, format!("{}: {sentence}", capitalised(&group.name))));
        }
    }
    by_ratio.sort_by(|a, b| b.0.total_cmp(&a.0));
    by_ratio.truncate(MOST_FINDINGS);
    // Back to the order of the tables.
    by_ratio.sort_by_key(|(_, index, _)| *index);
    by_ratio.into_iter().map(|(_, _, sentence)| sentence).collect()
}

/// Returns a sentence on loss.
fn losses(comparison: &Comparison) -> String {
    let by_loss = |a: &&crate::comparison::Discipline, b: &&crate::comparison::Discipline| {
        a.total.loss.total_cmp(&b.total.loss)
    };
    let least = comparison.disciplines.iter().min_by(by_loss);
    let most = comparison.disciplines.iter().max_by(by_loss);
    match (least, most) {
        (Some(least), Some(most)) if most.total.loss > 0.0 => format!(
            "Of all packets, {} were dropped with {}, {} with {}.",
            units::percent(least.total.loss),
            least.name,
            units::percent(most.total.loss),
            most.name
        ),
        _ => "No discipline dropped a packet: the link was never overloaded for long.".into(),
    }
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
