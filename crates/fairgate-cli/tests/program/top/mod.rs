//! `fairgate top` without a run and without a terminal; its screens as text, and under random keys and
//! readings. `tests/live/top.rs` has the rest.

mod keys;
mod readings;
mod screens;
#[path = "../../../src/top/testing.rs"]
mod testing;

use super::{ends, json};

#[test]
fn a_screen_needs_a_terminal_and_says_what_does_not() {
    let (stdout, stderr) = ends(&["top"], 2);
    assert_eq!(stdout, "");
    assert!(stderr.contains("no terminal"), "{stderr}");
    assert!(
        stderr.contains("top --once") && stderr.contains("fairgate status"),
        "{stderr}"
    );
}

#[test]
fn no_run_is_an_error_of_the_environment() {
    let (_, stderr) = ends(&["top", "--once", "--socket", "/nowhere/sock"], 3);
    assert!(stderr.contains("no answer from /nowhere/sock"), "{stderr}");
    assert!(stderr.contains("check that the run still exists"), "{stderr}");
}

#[test]
fn wrong_options_are_named_with_a_remedy() {
    let (_, stderr) = ends(&["top", "--once", "--interval", "10ms"], 2);
    assert!(
        stderr.contains("too short") && stderr.contains("100ms"),
        "{stderr}"
    );
    let (_, stderr) = ends(&["top", "--sort", "colour"], 2);
    assert!(
        stderr.contains("class, rate, delay, drops or backlog"),
        "{stderr}"
    );
    let error = json(&["top", "--json"], 2);
    let help = error["errors"][0]["help"].as_str().expect("a remedy");
    assert!(help.contains("fairgate status --json"), "{help}");
}
