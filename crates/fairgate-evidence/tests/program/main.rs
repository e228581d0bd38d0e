//! Tests of the program as users run it: output, errors, exit codes.

mod bench;
#[path = "../../../fairgate-cli/tests/common/blocked.rs"]
mod blocked;
mod bounds;
#[path = "../../../fairgate-cli/tests/common/mod.rs"]
#[allow(dead_code, unused_imports)]
mod common;
mod files;
mod live_run;
mod replay;
mod reproduce;
mod validate;
mod values;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Returns the program with a fixed environment: no colours, Unicode, no terminal.
fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate-lab"));
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("RUST_BACKTRACE")
        .current_dir(folder("tests/program"));
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program prints text")
}

/// Checks the exit code and returns standard output and standard error.
#[track_caller]
fn ends(arguments: &[&str], code: i32) -> (String, String) {
    let output = lab(arguments).output().expect("the program was built");
    let (stdout, stderr) = (text(&output.stdout).to_owned(), text(&output.stderr).to_owned());
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    (stdout, stderr)
}

#[track_caller]
fn json(arguments: &[&str], code: i32) -> Value {
    let (stdout, stderr) = ends(arguments, code);
    assert_eq!(stderr, "", "standard error is empty with --json");
    serde_json::from_str(&stdout).expect("one JSON document on standard output")
}

#[test]
fn every_command_has_help_with_examples() {
    let (help, _) = ends(&["--help"], 0);
    for command in [
        "reproduce",
        "bounds",
        "theory",
        "replay",
        "validate",
        "bench",
        "figures",
        "tc-testing",
    ] {
        assert!(help.contains(command), "{help}");
        let (help, _) = ends(&[command, "--help"], 0);
        assert!(help.contains("Examples:"), "{command}: {help}");
    }
}

#[test]
fn nothing_panics_when_a_stream_takes_nothing() {
    let families: &[(&[&str], i32)] = &[
        (&["replay"], 2),
        (&["validate", "kernel-tcp", "nowhere"], 2),
        (&["validate", "kernel-tcp"], 2),
        (&["reproduce"], 0),
        (&["reproduce", "nonsense"], 2),
        (&["bounds", "nonsense"], 2),
        (&["bench", "schedulers", "--flows", "0"], 2),
        (&["theory", "mm1", "--load", "2"], 2),
    ];
    blocked::all(lab, families);
}
