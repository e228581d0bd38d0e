//! Output files.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use super::{ends, lab, text};

/// Every command that writes files prints its figures even if the file cannot be written.
#[test]
fn figures_are_printed_even_if_the_disk_is_full() {
    let commands: [&[&str]; 4] = [
        &["bounds", "drr", "--effort", "quick", "--out", "full.csv"],
        &["theory", "md1", "--seeds", "2", "--plot", "full.svg"],
        &["reproduce", "sqf-fig3", "--quick", "--seeds", "2", "--out", "."],
        &[
            "bench",
            "schedulers",
            "--algorithms",
            "drr",
            "--flows",
            "1",
            "--runs",
            "1",
            "--no-instructions",
            "--out",
            "full.json",
        ],
    ];
    for arguments in commands {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        // Every write to these names fails because the device is full.
        fs::create_dir(scratch.path().join("sqf-fig3")).unwrap();
        for name in ["full.csv", "full.svg", "full.json", "sqf-fig3/result.json"] {
            symlink("/dev/full", scratch.path().join(name)).unwrap();
        }
        let run = |arguments: &[&str]| {
            let mut command = lab(arguments);
            command.current_dir(scratch.path()).output().expect("built")
        };
        let output = run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {stderr}");
        assert!(stderr.contains("No space left"), "{arguments:?}: {stderr}");
        assert!(text(&output.stdout).lines().count() > 3, "{arguments:?}");

        let output = run(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        let result: Value = serde_json::from_slice(&output.stdout).expect("the result");
        let error: Value = serde_json::from_slice(&output.stderr).expect("the error");
        assert_ne!(result["schema"], "fairgate.error/1");
        assert_eq!(error["schema"], "fairgate.error/1");
    }
}

#[test]
fn outputs_are_kept_apart_from_each_other() {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let once = scratch.path().join("a.csv").display().to_string();
    let again = scratch.path().join("./a.csv").display().to_string();
    let twice = [
        "bounds", "drr", "--effort", "quick", "--out", &once, "--out", &again,
    ];
    let (_, stderr) = ends(&twice, 2);
    assert!(stderr.contains("is written too"), "{stderr}");
}
