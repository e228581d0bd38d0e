//! `fairgate-lab reproduce --live`: what it leaves behind.

use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::common::program::Program;
use super::common::{live, until};

/// Returns how many namespaces a process has.
fn namespaces(process: u32) -> usize {
    let output = Command::new("ip")
        .args(["netns", "list"])
        .output()
        .expect("ip is installed");
    let own = format!("fg-{process}-");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| line.starts_with(&own)).count()
}

/// Interrupted while the network is built, while bridges start, and while traffic flows. A bridge that opened
/// after the interrupt ran for ever.
#[test]
fn an_interrupted_live_run_ends_and_leaves_nothing() {
    let Some(_watched) = live("an_interrupted_live_run_ends_and_leaves_nothing") else {
        return;
    };
    for millis in [0, 150, 300, 500, 800, 1500] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate-lab"));
        command.args([
            "reproduce",
            "--live",
            "altq-guarantee",
            "--quick",
            "--json",
            "--out",
        ]);
        command.arg(folder.path());
        let mut program = Program::start(&mut command);
        let id = program.id();
        until("the network is being built", || {
            namespaces(id) > 0 || program.has_ended()
        });
        thread::sleep(Duration::from_millis(millis));
        program.signal(Signal::SIGINT);
        until("the interrupted run ends", || program.has_ended());
        assert_eq!(program.output().status.code(), Some(3), "after {millis} ms");
        assert_eq!(namespaces(id), 0, "after {millis} ms");
    }
}
