//! Values on the command line that cannot work are rejected before any work, with the rule and the remedy.

use super::{ends, folder, json};

#[track_caller]
fn is_refused(arguments: &[&str], rule: &str) {
    let (stdout, stderr) = ends(arguments, 2);
    assert_eq!(stdout, "", "{arguments:?}");
    let stderr: Vec<&str> = stderr.split_whitespace().filter(|word| *word != "│").collect();
    let stderr = stderr.join(" ");
    assert!(stderr.contains(rule), "{arguments:?}: {stderr}");
}

#[test]
fn a_run_has_a_duration_above_0() {
    let scenario = folder("../../examples/dumbbell.toml");
    let scenario = scenario.to_str().expect("an ordinary path");
    let capture = folder("../../examples/home.pcap.gz");
    let capture = capture.to_str().expect("an ordinary path");
    is_refused(&["compare", "--duration", "0s"], "must be above 0");
    is_refused(
        &["compare", "--trace", capture, "--duration", "0ms"],
        "must be above 0",
    );
    is_refused(&["simulate", scenario, "--duration", "0s"], "must be above 0");
    is_refused(&["testbed", "--duration", "0s"], "must be from 1s");
    is_refused(&["simulate", scenario, "--duration", "5"], "unit");
}

#[test]
fn a_very_short_simulation_works() {
    let result = json(&["compare", "--duration", "1us", "--queue", "fifo", "--json"], 0);
    assert_eq!(result["duration_ns"], 1000);
}
