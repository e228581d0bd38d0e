//! `fairgate-lab reproduce --live`: cases side by side, and what it leaves behind.

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

/// Two slow lines and a fast one. More is sent than they carry.
const LINES: &str = r#"
[experiment]
paper = "none"
place = "nowhere"
title = "A test"
about = "A test."

[experiment.live]
duration = "2s"
measure = ["1s", "2s"]

[experiment.live.slow]
cases = "slow *"
duration = "6s"
measure = ["2s", "6s"]

[[experiment.show]]
id = "rates"
text = "each line carries its rate"
holds = [
    { value = ["throughput of data", "slow one"], from = 90, to = 105 },
    { value = ["throughput of data", "slow other"], from = 180, to = 210 },
    { value = ["throughput of data", "fast"], from = 3600, to = 4200 },
]

[[experiment.dimension]]
name = "line"
[[experiment.dimension.cases]]
name = "slow one"
[[experiment.dimension.cases]]
name = "fast"
set."simulate.link.0.rate" = "4mbit"
[[experiment.dimension.cases]]
name = "slow other"
set."simulate.link.0.rate" = "200kbit"

[[experiment.measure]]
figure = "throughput"
of = ["data"]

[queue.line]
discipline = "fifo"
limit = 10

[simulate]
duration = "60s"

[[simulate.link]]
a = "A"
b = "B"
rate = "100kbit"
overhead = 0
queue_a = "line"

[[simulate.flow]]
name = "data"
from = "A"
to = "B"
udp = { rate = "5mbit", size = "472b" }
"#;

/// Each run is shorter than the file says. Results stand at their own cases, though the slow ones run first.
#[test]
fn slow_cases_run_side_by_side() {
    let Some(_watched) = live("slow_cases_run_side_by_side") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines.toml");
    std::fs::write(&file, LINES).expect("the folder can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate-lab"));
    command.args(["reproduce", "--live", "--json", "--out"]);
    let mut program = Program::start(command.arg(folder.path()).arg(&file));
    let id = program.id();
    let mut most = 0;
    until("the runs end", || {
        most = most.max(namespaces(id));
        program.has_ended()
    });
    let output = program.output();
    assert!(output.status.success(), "{output:?}");
    // Two hosts, and a bridge between them, of each slow case.
    assert_eq!(most, 6);
    assert_eq!(namespaces(id), 0);
}
