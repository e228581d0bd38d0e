//! Runs with several workers that are refused. Each message names place, rule and remedy.

use std::fs;

use super::{ends, folder};

const INTERFACES: &str = "left = \"nowhere0\"\nright = \"nowhere1\"\nleft_to_right = \"q\"\n";

/// Checks that a run of this tree and this section is refused with all of `parts`.
#[track_caller]
fn refused(tree: &str, run: &str, arguments: &[&str], parts: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("line.toml");
    fs::write(&file, format!("[queue.q]\n{tree}\n[run]\n{run}")).unwrap();
    let file = file.display().to_string();
    let (stdout, stderr) = ends(&[&["run", &file], arguments].concat(), 2);
    assert_eq!(stdout, "");
    for part in parts {
        assert!(stderr.contains(part), "{part} is not in:\n{stderr}");
    }
}

const FAIR: &str =
    "discipline = \"tbf\"\nrate = \"100mbit\"\nburst = \"20kb\"\ninner = { discipline = \"fq_codel\" }";

#[test]
fn runs_that_workers_cannot_share_are_refused() {
    let run = |keys: &str| format!("{INTERFACES}{keys}\n");
    refused(
        FAIR,
        &run("workers = 0"),
        &[],
        &["`workers` is 0, but must be 1 to 64", "a plain number"],
    );
    refused(
        FAIR,
        &run("workers = 65"),
        &[],
        &["`workers` is 65, but must be 1 to 64"],
    );
    refused(
        FAIR,
        &run("shard_by = \"left\""),
        &[],
        &["`shard_by` says what workers divide", "add `workers`"],
    );
    for keys in [
        "left = \"tap:fg0\"\nright = \"nowhere1\"\nworkers = 2\n",
        "left = \"tun:fg0\"\nright = \"tun:fg1\"\nworkers = 2\n",
        "device = \"nowhere0\"\negress = \"q\"\nworkers = 2\n",
    ] {
        refused(
            FAIR,
            keys,
            &[],
            &["two existing interfaces", "or remove `workers`"],
        );
    }
    refused(
        "discipline = \"htb\"\ndefault = 1\nclass = [{ id = 1, rate = \"1mbit\", discipline = \"fifo\" }]",
        &run("workers = 2"),
        &[],
        &[
            "share by their settings, and not by flows or hosts",
            "set shard_by = \"class\"",
        ],
    );
    refused(
        FAIR,
        &run("workers = 2\nshard_by = \"left\""),
        &[],
        &["`fq_codel` is fair to flows, but the workers divide hosts"],
    );
}

#[test]
fn back_ends_that_do_not_divide_frames_are_refused() {
    let parts = [
        "the back end `xdp` has one worker",
        "`workers` in [run] is 2",
        "remove `workers`",
    ];
    let two = format!("{INTERFACES}workers = 2\n");
    refused(FAIR, &format!("{two}backend = \"xdp\"\n"), &[], &parts);
    refused(FAIR, &two, &["--backend", "xdp"], &parts);
}

#[test]
fn a_dry_run_has_one_worker() {
    let recorded = folder("../../examples")
        .join("recorded.pcap.gz")
        .display()
        .to_string();
    let two = format!("{INTERFACES}workers = 2\n");
    let parts = [
        "a dry run has one worker",
        "`workers` in [run] is 2",
        "remove `workers`",
    ];
    refused(FAIR, &two, &["--from-left", &recorded], &parts);
}
