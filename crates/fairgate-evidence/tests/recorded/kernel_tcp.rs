//! Compares the simulator with TCP recorded from Linux, in some cells of every discipline and both congestion
//! controls. `fairgate-lab validate kernel-tcp` compares all cells.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fairgate_evidence::validation::{Recording, Validation};

/// The names of all recorded cells: the common start, then the rest of each name. A missing cell and an
/// unlisted cell are both errors, so that no evidence is lost or ignored unnoticed.
const RECORDED: &str = "
cake-cubic-rtt100: n1-udp1 n16-udp0 n16-udp1 n4-udp1-seed1 n4-udp1-seed2 n4-udp1
cake-cubic-rtt20: n1-udp0 n16-udp0 n16-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1
    n4-udp1-seed2 n4-udp1
cake_ecn-cubic-rtt20: n4-udp0
codel-cubic-rtt100: n1-udp1 n16-udp0 n16-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1
    n4-udp1-seed2 n4-udp1
codel-cubic-rtt20: n1-udp0 n16-udp0 n16-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1
    n4-udp1-seed2 n4-udp1
codel-reno-rtt100: n1-udp0 n1-udp1 n16-udp0 n16-udp1 n4-udp0
codel-reno-rtt20: n1-udp0 n1-udp1 n16-udp0 n16-udp1 n4-udp0 n4-udp1
codel_ecn-cubic-rtt100: n16-udp0 n4-udp0
codel_ecn-cubic-rtt20: n1-udp0 n16-udp0 n4-udp0
drr-cubic-rtt100: n1-udp0 n1-udp1 n16-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1
    n4-udp1-seed2 n4-udp1
drr-cubic-rtt20: n1-udp0 n16-udp0 n4-udp0-seed1 n4-udp0-seed2 n4-udp0
fq_codel-cubic-rtt100: n1-udp0 n1-udp1 n4-udp1-seed1 n4-udp1-seed2 n4-udp1
fq_codel-cubic-rtt20: n1-udp0 n16-udp0 n16-udp1 n4-udp1-seed1 n4-udp1-seed2 n4-udp1
fq_codel-reno-rtt100: n1-udp0 n1-udp1 n16-udp0 n4-udp0 n4-udp1
fq_codel-reno-rtt20: n1-udp0 n1-udp1 n4-udp0 n4-udp1
fq_codel_ecn-cubic-rtt100: n1-udp0 n16-udp0 n4-udp0
fq_codel_ecn-cubic-rtt20: n16-udp0
pfifo100-cubic-rtt100: n1-udp1 n16-udp0 n16-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0
pfifo100-cubic-rtt20: n1-udp0 n4-udp1-seed1 n4-udp1-seed2 n4-udp1
pfifo100-reno-rtt100: n1-udp0 n1-udp1 n16-udp0 n16-udp1 n4-udp1
pfifo100-reno-rtt20: n16-udp1 n4-udp0
pfifo1000-cubic-rtt100: n1-udp0 n1-udp1 n16-udp0 n16-udp1 n4-udp0 n4-udp1
pfifo1000-cubic-rtt20: n1-udp0 n1-udp1 n16-udp1 n4-udp0 n4-udp1
pie-cubic-rtt100: n1-udp0 n1-udp1 n16-udp0 n16-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1
    n4-udp1-seed2 n4-udp1
pie-cubic-rtt20: n1-udp0 n1-udp1 n16-udp0 n16-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1
    n4-udp1-seed2 n4-udp1
pie_ecn-cubic-rtt100: n4-udp0
pie_ecn-cubic-rtt20: n4-udp0
red-cubic-rtt100: n1-udp0 n1-udp1 n16-udp0 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1
    n4-udp1-seed2 n4-udp1
red-cubic-rtt20: n1-udp0 n1-udp1 n16-udp0 n16-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1
    n4-udp1-seed2 n4-udp1
red_adaptive-cubic-rtt100: n1-udp0 n1-udp1 n16-udp0 n16-udp1 n4-udp1
red_adaptive-cubic-rtt20: n16-udp0 n16-udp1 n4-udp1
red_ecn-cubic-rtt100: n4-udp0
red_ecn-cubic-rtt20: n4-udp0
sfq-cubic-rtt100: n1-udp1 n16-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1 n4-udp1-seed2
    n4-udp1
sfq-cubic-rtt20: n1-udp1 n4-udp0-seed1 n4-udp0-seed2 n4-udp0 n4-udp1-seed1 n4-udp1-seed2 n4-udp1
";

/// The cells that this test runs: one or two of each kind, with little randomness, so that two runs suffice.
const CELLS: [&str; 23] = [
    "codel-cubic-rtt20-n1-udp0",
    "codel-cubic-rtt20-n4-udp1",
    "codel-reno-rtt20-n1-udp0",
    "codel-reno-rtt20-n16-udp0",
    "fq_codel-cubic-rtt100-n1-udp1",
    "fq_codel-cubic-rtt20-n16-udp1",
    "fq_codel-reno-rtt20-n4-udp0",
    "codel_ecn-cubic-rtt20-n4-udp0",
    "pfifo100-cubic-rtt20-n1-udp0",
    "pfifo100-reno-rtt100-n1-udp0",
    "pfifo1000-cubic-rtt100-n1-udp0",
    "pfifo1000-cubic-rtt20-n1-udp1",
    "red-cubic-rtt20-n4-udp1",
    "red-cubic-rtt100-n1-udp0",
    "red_adaptive-cubic-rtt20-n16-udp0",
    "red_ecn-cubic-rtt20-n4-udp0",
    "sfq-cubic-rtt20-n1-udp1",
    "drr-cubic-rtt20-n4-udp0",
    "pie-cubic-rtt20-n16-udp0",
    "pie_ecn-cubic-rtt20-n4-udp0",
    "cake-cubic-rtt20-n1-udp0",
    "cake-cubic-rtt20-n4-udp1",
    "cake_ecn-cubic-rtt20-n4-udp0",
];

/// The recordings. They are part of the repository, so no test may pass without them.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kernel-tcp")
}

/// The names in [`RECORDED`].
fn listed() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut shared = "";
    for word in RECORDED.split_whitespace() {
        match word.strip_suffix(':') {
            Some(start) => shared = start,
            None => _ = names.insert(format!("{shared}-{word}")),
        }
    }
    names
}

fn read(path: &Path) -> Recording {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_selection_of_cells_agrees_with_linux() {
    let folder = folder();
    let validation = Validation::new().expect("the data files are valid");
    let mut differing = Vec::new();
    for cell in CELLS {
        let recording = read(&folder.join(format!("{cell}.json")));
        let comparison = validation
            .compare(&recording, 1, 2)
            .expect("the scenario can be run");
        if !comparison.is_settled() {
            differing.push(format!("{comparison:?}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn the_recorded_cells_are_listed_and_each_becomes_a_scenario() {
    let validation = Validation::new().expect("the data files are valid");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder()).expect("the folder is part of the repository") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let recording = read(&path);
        if validation.knows(&recording.cell) {
            let scenario = validation.scenario(&recording.cell, 1).expect("a scenario");
            let flows = recording.cell.tcp_flows as usize + usize::from(recording.cell.udp_2mbit);
            assert_eq!(scenario.flows.len(), flows);
        }
        let name = recording.cell.name;
        assert_eq!(
            path.file_stem(),
            Some(name.as_ref()),
            "a recording has the name of its cell"
        );
        names.insert(name);
    }
    let listed = listed();
    assert_eq!(listed.len(), 182);
    let missing: Vec<&String> = listed.difference(&names).collect();
    let unlisted: Vec<&String> = names.difference(&listed).collect();
    assert!(
        missing.is_empty() && unlisted.is_empty(),
        "missing {missing:?}, not listed {unlisted:?}"
    );
    for cell in validation.explained() {
        assert!(
            names.contains(cell),
            "an explanation for `{cell}`, which is not a cell"
        );
    }
}
