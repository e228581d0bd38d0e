//! Values on the command line that cannot work are rejected before any work, with the rule and the remedy.

use super::{ends, json};

#[track_caller]
fn is_refused(arguments: &[&str], rule: &str) {
    let (stdout, stderr) = ends(arguments, 2);
    assert_eq!(stdout, "", "{arguments:?}");
    let stderr: Vec<&str> = stderr.split_whitespace().filter(|word| *word != "│").collect();
    let stderr = stderr.join(" ");
    assert!(stderr.contains(rule), "{arguments:?}: {stderr}");
}

#[test]
fn a_range_is_ascending() {
    is_refused(&["bench", "schedulers", "--sizes", "1500-64"], "write 64-1500");
}

#[test]
fn theory_rejects_what_it_cannot_compute() {
    for load in ["0.999999999", "0.991"] {
        is_refused(&["theory", "mm1", "--load", load], "at most 0.99");
        is_refused(&["theory", "md1", "--load", load], "at most 0.99");
        is_refused(&["theory", "pdrr", "--load", load], "at most 0.99");
    }
    is_refused(&["theory", "mm1", "--load", "NaN"], "above 0 and below 1");
    is_refused(
        &["theory", "sqf", "--buffer", "100000", "--flows", "1"],
        "at most 256",
    );
    for question in ["mm1", "sqf"] {
        is_refused(&["theory", question, "--packet", "65536b"], "from 1 to 65535");
    }
    is_refused(&["theory", "sqf", "--time", "0s"], "must be above 0");
}

/// A faster link does the same in less time. The last case has more flows than are simulated.
#[test]
fn theory_accepts_any_link() {
    for line in [
        ["--rate", "1bit"],
        ["--rate", "4294967295"],
        ["--rate", "4tbit"],
        ["--flows", "10000"],
    ] {
        let arguments = [
            &["theory", "sqf", "--seeds", "1", "--buffer", "100", "--json"],
            &line[..],
        ]
        .concat();
        let answer = json(&arguments, 0);
        assert_eq!(answer["rows"].as_array().map(Vec::len), Some(19), "{line:?}");
    }
    let most = [
        "theory", "sqf", "--seeds", "1", "--flows", "10000", "--buffer", "100000", "--json",
    ];
    json(&most, 0);
}
