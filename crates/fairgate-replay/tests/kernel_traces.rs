//! Every trace of the disciplines that there are, recorded from Linux 6.1, is equal operation by operation.

use std::io::Write;
use std::path::PathBuf;

use fairgate_replay::{Outcome, find, replay};

/// The recorded disciplines that there are here. The others are unsupported, which the test checks too: whoever adds one
/// moves its name.
const EQUAL: [&str; 16] = [
    "bfifo",
    "codel",
    "drr",
    "ets",
    "fq_codel",
    "hfsc",
    "htb",
    "pfifo",
    "pfifo_head_drop",
    "prio",
    "qfq_aggregate",
    "qfq_distinct",
    "qfq_textbook",
    "red",
    "sfq",
    "tbf",
];

#[test]
fn every_trace_is_equal_or_of_a_discipline_to_come() {
    let shared = std::env::var_os("FAIRGATE_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = shared.join("data/kernel-traces");
    if !folder.is_dir() {
        // Past the test harness, which swallows what `eprintln!` says.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no kernel traces in {}; set FAIRGATE_SHARED",
            folder.display()
        );
        return;
    }
    let traces = find(&folder).expect("the folder has traces");
    let (mut equal, mut unsupported, mut wrong) = (0, 0, Vec::new());
    for trace in &traces {
        let discipline = trace.parent().and_then(|folder| folder.file_name());
        let is_here = discipline.is_some_and(|name| EQUAL.iter().any(|here| name == *here));
        match replay(trace, 1).expect("the recorded traces are whole") {
            Outcome::Equal { operations } if is_here && operations > 0 => equal += 1,
            Outcome::Unsupported { .. } if !is_here => unsupported += 1,
            other => wrong.push(format!("{}: {other:?}", trace.display())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(equal > 0);
    println!("{equal} equal, {unsupported} of disciplines to come");
}
