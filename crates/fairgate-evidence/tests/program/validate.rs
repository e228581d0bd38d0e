//! `fairgate-lab validate`.

use std::fs;

use super::{ends, folder, json, lab, text};

const CELL: &str = "../../../../tests/data/kernel-tcp/codel-cubic-rtt20-n1-udp0.json";

/// The default is the recordings of a checkout. Elsewhere the error says where the program looked, and what
/// to do.
#[test]
fn recordings_are_found_in_a_checkout_only() {
    let (_, stderr) = ends(&["validate", "kernel-tcp"], 2);
    assert!(
        stderr.contains("there are no recordings in tests/data/kernel-tcp"),
        "{stderr}"
    );
    assert!(stderr.contains("a checkout of Fairgate"), "{stderr}");

    // Only one cell is used, because a run of all cells takes minutes.
    let checkout = tempfile::tempdir().expect("a temporary folder");
    let recordings = checkout.path().join("tests/data/kernel-tcp");
    fs::create_dir_all(&recordings).expect("the folder is writable");
    let cell = folder("tests/program").join(CELL);
    fs::copy(cell, recordings.join("cell.json")).expect("the folder is writable");
    let output = lab(&["validate", "kernel-tcp", "--runs", "1"])
        .current_dir(checkout.path())
        .output()
        .expect("built");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("1 cells agree"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_recorded_cell_is_compared() {
    let report = json(&["validate", "kernel-tcp", "--json", "--runs", "1", CELL], 0);
    assert_eq!(report["schema"], "fairgate.validate/1");
    assert_eq!(report["summary"]["agree"], 1);
    assert_eq!(report["cells"][0]["cell"], "codel-cubic-rtt20-n1-udp0");
}
