//! The replay of every trace recorded from Linux 6.1 is equal for every operation.

use std::collections::BTreeSet;
use std::path::Path;

use fairgate_evidence::replay::{Outcome, find, replay};

/// All traces by name. A missing trace and a trace that is not listed are both errors, so that none is lost
/// or left out unnoticed.
const TRACES: [(&str, &str); 16] = [
    ("bfifo", "mixed overload small"),
    ("codel", "bulk bulk_ecn ce_threshold mixed onoff overload small"),
    ("drr", "backlogged mixed overload small"),
    ("ets", "backlogged mixed overload small"),
    (
        "fq_codel",
        "ce_threshold codel_drops ecn mixed overload overload_batch overload_memory small",
    ),
    ("hfsc", "backlogged mixed overload small"),
    ("htb", "backlogged burst mixed overload polled small"),
    ("pfifo", "mixed overload small"),
    ("pfifo_head_drop", "mixed overload small"),
    ("prio", "mixed overload small"),
    ("qfq_aggregate", "backlogged mixed overload small"),
    ("qfq_distinct", "backlogged mixed overload small"),
    (
        "qfq_textbook",
        "backlogged mixed overload primed primed_mixed small",
    ),
    (
        "red",
        "below_min limit overload overload_ecn overload_harddrop small",
    ),
    ("sfq", "mixed overload overload_depth overload_headdrop small"),
    ("tbf", "child_drr mixed overload peakrate small"),
];

/// Returns `FOLDER/TRACE` of a file.
fn name(trace: &Path) -> String {
    let part = |part: Option<&std::ffi::OsStr>| part.expect("it has a name").to_string_lossy().into_owned();
    let folder = part(trace.parent().and_then(Path::file_name));
    let file = part(trace.file_name());
    format!("{folder}/{}", file.trim_end_matches(".jsonl.gz"))
}

#[test]
fn the_recorded_traces_equal_the_list() {
    let listed: BTreeSet<String> = TRACES
        .iter()
        .flat_map(|(folder, traces)| traces.split(' ').map(move |trace| format!("{folder}/{trace}")))
        .collect();
    assert_eq!(listed.len(), 75);
    let found = find(&crate::common::kernel_traces()).expect("the folder has traces");
    let found: BTreeSet<String> = found.iter().map(|trace| name(trace)).collect();
    let missing: Vec<&String> = listed.difference(&found).collect();
    let unlisted: Vec<&String> = found.difference(&listed).collect();
    assert!(
        missing.is_empty() && unlisted.is_empty(),
        "missing {missing:?}, not listed {unlisted:?}"
    );
}

#[test]
fn every_trace_is_equal() {
    let mut wrong = Vec::new();
    for (folder, traces) in TRACES {
        for trace in traces.split(' ') {
            let file = crate::common::kernel_traces().join(format!("{folder}/{trace}.jsonl.gz"));
            match replay(&file, 1) {
                Ok(Outcome::Equal { operations }) if operations > 0 => {}
                other => wrong.push(format!("{folder}/{trace}: {other:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
