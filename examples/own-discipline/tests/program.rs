//! The program's commands support the discipline.

use std::io::Write;
use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_own-discipline"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the program starts")
}

/// Runs a command that must succeed, and returns its JSON document.
fn document(arguments: &[&str]) -> Value {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[test]
fn it_is_listed_with_its_parameters() {
    let document = document(&["--json", "list", "early_head"]);
    let discipline = &document["disciplines"][0];
    assert_eq!(discipline["family"], "external");
    let parameters = discipline["parameters"].as_array().expect("a list");
    let names: Vec<_> = parameters.iter().map(|parameter| &parameter["name"]).collect();
    assert_eq!(names, ["limit", "start"]);
    assert_eq!(parameters[1]["default"], "100");
}

#[test]
fn a_file_with_it_is_checked_and_a_mistake_is_reported_at_its_location() {
    let output = run(&["check", "line.toml"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("early_head limit=200 start=20"),
        "{text}"
    );

    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/mistake.toml");
    let wrong = "[queue.line]\ndiscipline = \"early_head\"\nlimit = 10\nstart = 10\n";
    std::fs::write(file, wrong).expect("the folder is there");
    let output = run(&["check", file]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("mistake.toml:4:9"), "{text}");
    assert!(
        text.contains("`start` is 10, but must be below `limit`, 10"),
        "{text}"
    );
}

#[test]
fn it_is_simulated_and_drops_early() {
    let document = document(&["--json", "simulate", "line.toml"]).to_string();
    assert!(document.contains("early_head"), "{document}");
    assert!(document.contains("\"aqm\":"), "{document}");
}

#[test]
fn it_runs_live() {
    let user = Command::new("id").arg("-u").output().expect("id is there");
    if user.stdout != b"0\n" {
        // The test harness captures `eprintln!`, but not this.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: it_runs_live needs root to build network namespaces, and this process is not root"
        );
        return;
    }
    let queue = "early_head limit=200 start=20";
    let document = document(&["--json", "testbed", "--queue", queue, "--duration", "2s"]);
    let outcome = &document["outcomes"][0];
    assert_eq!(outcome["scenario"], queue);
    let rate = outcome["frames_bps"].as_f64().expect("a number") / 20e6;
    // This checks that the traffic passes through it. The rate may be lower because of other load.
    assert!((0.5..1.1).contains(&rate), "{rate} of the rate: {outcome}");
}
