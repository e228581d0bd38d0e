//! The simulator against TCP recorded from Linux: cells of every discipline and both congestion controls. All cells:
//! `fairgate validate kernel-tcp`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use fairgate_sim::validation::{Recording, Validation};

/// One or two flows of each kind: where little is left to chance, so that a run or two tell.
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

/// The recordings, if they are here.
fn folder() -> Option<PathBuf> {
    let shared = std::env::var_os("FAIRGATE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("data/kernel-tcp");
    if folder.is_dir() {
        return Some(folder);
    }
    // Past the test harness, which swallows what `eprintln!` says.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: no recordings in {}; set FAIRGATE_SHARED to the folder that has data/kernel-tcp",
        folder.display()
    );
    None
}

fn read(path: &Path) -> Recording {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_selection_of_cells_agrees_with_linux() {
    let Some(folder) = folder() else { return };
    let validation = Validation::new().expect("the data files are right");
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
fn every_recorded_cell_becomes_a_scenario_and_every_explanation_has_its_cell() {
    let Some(folder) = folder() else { return };
    let validation = Validation::new().expect("the data files are right");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("the folder was just there") {
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
        names.insert(recording.cell.name);
    }
    for cell in validation.explained() {
        assert!(
            names.contains(cell),
            "an explanation for `{cell}`, which is no cell"
        );
    }
}
