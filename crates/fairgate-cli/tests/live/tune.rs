//! `fairgate tune` on lines whose rate, framing and buffer are known: runs in the router between two hosts.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fairgate_live::testbed::{Namespace, Network};
use fairgate_run_api::Change;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::common::program::Program;
use crate::common::{live, output, say, until};
use crate::harness::ping;
use crate::run::{Run, call};

/// A line with ATM and PPPoE by LLC: 40 bytes are added to an IP packet, which is 14 shorter than a frame.
fn atm(rate: &str, packets: u32) -> String {
    format!(
        "discipline = \"netem\"\nrate = \"{rate}\"\npacket_overhead = 26\ncell_size = 48\ncell_overhead = 5\n\
         limit = {packets}\n"
    )
}

/// A line whose modem has a fifo of so many packets.
fn deep(rate: &str, packets: u32) -> String {
    format!(
        "discipline = \"tbf\"\nrate = \"{rate}\"\nburst = \"25kb\"\n\
         inner = {{ discipline = \"fifo\", limit = {packets} }}\n"
    )
}

fn managed(rate: &str) -> String {
    format!(
        "discipline = \"tbf\"\nrate = \"{rate}\"\nburst = \"125kb\"\n\
         inner = {{ discipline = \"fq_codel\" }}\n"
    )
}

/// Starts a line: what the left host sends goes up.
fn line(network: &Network, up: &str, down: &str) -> Run {
    let configuration = format!(
        "[queue.up]\n{up}\n[queue.down]\n{down}\n[run]\nleft = \"left\"\nright = \"right\"\n\
         left_to_right = \"up\"\nright_to_left = \"down\"\ndelay = \"5ms\"\n"
    );
    Run::start(&network.router, &configuration)
}

fn tune(host: &Namespace, words: &[&str]) -> Command {
    let mut command = host.command(env!("CARGO_BIN_EXE_fairgate"));
    command.arg("tune").args(words);
    command
}

/// Starts the server on the right host.
fn server(network: &Network) -> Program {
    let server = Program::start(&mut tune(&network.right, &["--serve", "0.0.0.0:4757"]));
    until("the server listens", || {
        let listening = network
            .right
            .command("ss")
            .args(["-Htln", "sport = :4757"])
            .output();
        !listening.expect("ss of iproute2").stdout.is_empty()
    });
    server
}

fn document(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Measures the line from the left host. Returns the exit code and the document.
fn measured(network: &Network, words: &[&str]) -> (Option<i32>, Value) {
    let _server = server(network);
    let address = format!("{}:4757", Network::RIGHT);
    let output = output(tune(&network.left, &[&address, "--dry-run", "--json"]).args(words));
    let document = document(&output);
    assert_eq!(document["schema"], "fairgate.tune/1", "{document}");
    say(&format!("MEASURED: {}", summary(&document)));
    (output.status.code(), document)
}

fn summary(document: &Value) -> String {
    let of = |way: &str, key: &str| {
        format!(
            "{way} {key} {}",
            document.pointer(&format!("/{way}{key}")).unwrap()
        )
    };
    ["down", "up"]
        .iter()
        .flat_map(|way| ["/line_bps", "/loaded_ms/p95", "/framing"].map(|key| of(way, key)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn number(document: &Value, pointer: &str) -> f64 {
    let value = document.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("no {pointer} in {document}"))
}

/// The rate of the line is found within 3 %.
fn has_rate(document: &Value, way: &str, bps: f64) {
    let found = number(document, &format!("/{way}/line_bps"));
    assert!((found / bps - 1.0).abs() < 0.03, "{way}: {found} of {bps}");
}

#[test]
fn a_slow_line_of_atm_is_found_with_its_framing() {
    let Some(_watched) = live("a_slow_line_of_atm_is_found_with_its_framing") else {
        return;
    };
    let network = Network::build().unwrap();
    let _line = line(&network, &atm("1mbit", 60), &atm("4mbit", 200));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("home.toml");
    let words = ["--load", "4s", "-o", file.to_str().unwrap()];
    let (code, document) = measured(&network, &words);
    assert_eq!(code, Some(1), "{document}");
    has_rate(&document, "up", 1e6);
    has_rate(&document, "down", 4e6);
    for way in ["up", "down"] {
        let framing = &document[way]["framing"];
        assert_eq!(
            (&framing["cells"], &framing["overhead"]),
            (&"atm".into(), &40.into())
        );
        assert_eq!(document["verdict"][format!("bufferbloat_{way}")], "much");
    }
    assert_eq!(number(&document, "/mtu"), 1500.0);
    assert_eq!(document["file"], file.to_str().unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("device = \"eth0\"") && text.contains("overhead = 40"),
        "{text}"
    );
    let mut check = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    assert!(output(check.arg("check").arg(&file)).status.success(), "{text}");
}

/// 826 packets of 1514 bytes are 500 ms at 20 Mbit/s.
#[test]
fn a_deep_buffer_in_one_direction_is_named() {
    let Some(_watched) = live("a_deep_buffer_in_one_direction_is_named") else {
        return;
    };
    let network = Network::build().unwrap();
    let _line = line(&network, &deep("20mbit", 826), &managed("50mbit"));
    let (code, document) = measured(&network, &["--load", "4s", "--line", "docsis"]);
    assert_eq!(code, Some(1), "{document}");
    has_rate(&document, "up", 20e6);
    has_rate(&document, "down", 50e6);
    assert_eq!(document["verdict"]["bufferbloat_up"], "much");
    assert_eq!(document["verdict"]["bufferbloat_down"], "none");
    let waits = number(&document, "/up/loaded_ms/p95");
    assert!(
        (350.0..=550.0).contains(&waits),
        "{waits} ms in a buffer of 500 ms"
    );
    for way in ["up", "down"] {
        let given = json!({ "line": "docsis", "cells": "uncut", "overhead": 18, "mpu": 64 });
        assert_eq!(document[way]["framing"], given);
        assert_eq!(document[way]["varies"], false);
    }
    let round_trip = number(&document, "/round_trip_ms/p50");
    assert!(
        (10.0..14.0).contains(&round_trip),
        "{round_trip} ms over a path of 10 ms"
    );
}

/// Rates of a download over LTE, Mbit/s: each holds for some hundred milliseconds.
const LTE: [u32; 6] = [24, 6, 15, 30, 9, 18];

/// The rate of the line changes all the time, downwards only.
#[test]
fn a_line_that_varies_gets_a_rate_that_follows_it() {
    let Some(_watched) = live("a_line_that_varies_gets_a_rate_that_follows_it") else {
        return;
    };
    let network = Network::build().unwrap();
    let line = line(&network, &deep("8mbit", 200), &deep("24mbit", 400));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("home.toml");
    let is_over = AtomicBool::new(false);
    let (code, document) = thread::scope(|scope| {
        scope.spawn(|| {
            for rate in LTE.iter().cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let changed = line.remote().change(Change {
                    from: Some("right".to_owned()),
                    lines: vec![format!("queue change root rate={rate}mbit")],
                    ..Change::default()
                });
                changed.unwrap_or_else(|error| panic!("{error}"));
                thread::sleep(Duration::from_millis(700));
            }
        });
        let measured = measured(&network, &["--load", "8s", "-o", file.to_str().unwrap()]);
        is_over.store(true, Ordering::Relaxed);
        measured
    });
    assert_eq!(code, Some(1), "{document}");
    assert_eq!(document["down"]["varies"], true, "{document}");
    assert_eq!(document["up"]["varies"], false, "{document}");
    has_rate(&document, "up", 8e6);
    let (low, high) = (
        number(&document, "/down/low_bps"),
        number(&document, "/down/high_bps"),
    );
    assert!(low < 12e6 && high > 20e6, "{low} to {high}");
    let wrong = document["verdict"]["wrong"].to_string();
    assert!(
        wrong.contains("changes from one half second to the next (down)"),
        "{wrong}"
    );
    let text = std::fs::read_to_string(&file).unwrap();
    let reflects = format!(
        "[run.autorate]\nreflectors = [\"{}\"]\ningress = {{ min",
        Network::RIGHT
    );
    assert!(text.contains(&reflects) && !text.contains("egress = {"), "{text}");
    let mut check = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    assert!(output(check.arg("check").arg(&file)).status.success(), "{text}");
}

/// Starts an iperf3 server on the right host. Without the program it says that the test was skipped.
fn iperf3(network: &Network, test: &str) -> Option<Program> {
    let installed = Command::new("iperf3").arg("--version").output();
    if installed.is_err() {
        say(&format!(
            "SKIPPED: {test} needs `iperf3`; `make tools` installs it"
        ));
        return None;
    }
    let server = Program::start(network.right.command("iperf3").args(["-s", "--forceflush"]));
    until("the iperf3 server listens", || {
        let listening = network
            .right
            .command("ss")
            .args(["-Htln", "sport = :5201"])
            .output();
        !listening.expect("ss of iproute2").stdout.is_empty()
    });
    Some(server)
}

/// Returns the congestion control with which the iperf3 server sends.
fn congestion(network: &Network) -> Value {
    let arguments = ["-c", Network::RIGHT, "-R", "-t", "1", "--json"];
    let ended: Value = serde_json::from_str(&call(&network.left, "iperf3", &arguments)).unwrap();
    let congestion = ended.pointer("/end/sender_tcp_congestion").cloned();
    congestion.unwrap_or_else(|| panic!("{ended}"))
}

/// Both directions of the line, its delay and its buffers: 413 packets of 1514 bytes are 250 ms at 20 Mbit/s.
#[test]
fn a_line_is_measured_with_an_iperf3_server() {
    const TEST: &str = "a_line_is_measured_with_an_iperf3_server";
    let Some(_watched) = live(TEST) else {
        return;
    };
    let network = Network::build().unwrap();
    let _line = line(&network, &deep("5mbit", 103), &deep("20mbit", 413));
    let Some(server) = iperf3(&network, TEST) else {
        return;
    };
    let address = format!("iperf3://{}", Network::RIGHT);
    let words = [&address, "--dry-run", "--json", "--load", "4s"];
    let own = congestion(&network);
    let output = output(&mut tune(&network.left, &words));
    assert_eq!(congestion(&network), own, "the server sends as it did before");
    let document = document(&output);
    say(&format!("MEASURED: {}", summary(&document)));
    assert_eq!(output.status.code(), Some(1), "{document}");
    assert_eq!(document["server"], format!("{address}:5201"));
    has_rate(&document, "down", 20e6);
    has_rate(&document, "up", 5e6);
    for way in ["down", "up"] {
        let waits = number(&document, &format!("/{way}/loaded_ms/p95"));
        assert!(
            (150.0..=300.0).contains(&waits),
            "{waits} ms in a buffer of 250 ms"
        );
        assert_eq!(document["verdict"][format!("bufferbloat_{way}")], "much");
        assert_eq!(document[way]["loss_idle"], 0.0);
        for key in ["framing", "rpm"] {
            assert_eq!(document[way][key], Value::Null);
        }
    }
    let round_trip = number(&document, "/round_trip_ms/p50");
    assert!(
        (10.0..14.0).contains(&round_trip),
        "{round_trip} ms over a path of 10 ms"
    );
    assert_eq!(
        (&document["mtu"], &document["one_way"]),
        (&Value::Null, &false.into())
    );
    assert_eq!(
        (&document["packet"], &document["congestion_down"]),
        (&1500.into(), &"reno".into())
    );
    let missing = document["not_measured"].as_array().unwrap();
    let keys: Vec<&Value> = missing.iter().map(|missing| &missing["key"]).collect();
    assert_eq!(keys, ["mtu", "framing", "rpm"]);
    // Each test has ended as the server expects it, and it was not disturbed by what timed the line.
    server.signal(Signal::SIGINT);
    let served = server.output();
    let text =
        String::from_utf8_lossy(&served.stdout).into_owned() + &String::from_utf8_lossy(&served.stderr);
    assert_eq!(text.matches("Accepted connection").count(), 3 + 2, "{text}");
    assert!(
        !text.contains("error") && !text.contains("unexpectedly"),
        "{text}"
    );
}

#[test]
fn an_iperf3_server_that_is_busy_or_none_is_named() {
    const TEST: &str = "an_iperf3_server_that_is_busy_or_none_is_named";
    let Some(_watched) = live(TEST) else {
        return;
    };
    let network = Network::build().unwrap();
    let _line = line(&network, &managed("100mbit"), &managed("100mbit"));
    let Some(_server) = iperf3(&network, TEST) else {
        return;
    };
    let message = |words: &[&str]| {
        let output = output(tune(&network.left, words).args(["--dry-run", "--json", "--load", "3s"]));
        assert_eq!(output.status.code(), Some(3));
        document(&output)["errors"][0]["message"].to_string()
    };
    let address = format!("iperf3://{}", Network::RIGHT);
    let _ours = self::server(&network);
    let of_another = message(&[&format!("{address}:4757")]);
    assert!(of_another.contains("is no `iperf3 -s`"), "{of_another}");
    let mut other = network.left.command("iperf3");
    let _other = Program::start(other.args(["-c", Network::RIGHT, "-t", "60", "-b", "1M"]));
    until("the other client is served", || {
        let connections = ["-Htn", "state", "established", "sport = :5201"];
        let served = network.right.command("ss").args(connections).output();
        String::from_utf8_lossy(&served.expect("ss of iproute2").stdout)
            .lines()
            .count()
            == 2
    });
    let busy = message(&[&address]);
    assert!(busy.contains("measures another line now"), "{busy}");
}

/// Returns whether the left host has the device of a run.
fn is_shaped(network: &Network) -> bool {
    call(&network.left, "ip", &["-brief", "link"]).contains("fairgate0")
}

#[test]
fn a_search_that_is_interrupted_leaves_the_line_as_it_was() {
    let Some(_watched) = live("a_search_that_is_interrupted_leaves_the_line_as_it_was") else {
        return;
    };
    let network = Network::build().unwrap();
    let _line = line(&network, &deep("20mbit", 400), &deep("20mbit", 400));
    let _server = server(&network);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("home.toml");
    let words = [
        Network::RIGHT,
        "--json",
        "--load",
        "3s",
        "-o",
        file.to_str().unwrap(),
    ];
    let searching = Program::start(&mut tune(&network.left, &words));
    until("our shaper runs", || is_shaped(&network));
    searching.signal(Signal::SIGINT);
    let output = searching.output();
    assert_eq!(output.status.code(), Some(3));
    let message = document(&output)["errors"][0]["message"].to_string();
    assert!(message.contains("interrupted"), "{message}");
    assert!(!is_shaped(&network) && !file.exists());
    assert!(ping(&network, Network::RIGHT));
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let Some(_watched) = live("a_server_that_is_not_there_is_named") else {
        return;
    };
    let network = Network::build().unwrap();
    let output = output(&mut tune(&network.left, &["127.0.0.1", "--dry-run", "--json"]));
    assert_eq!(output.status.code(), Some(3));
    let message = document(&output)["errors"][0]["message"].to_string();
    assert!(
        message.contains("no connection to the server at 127.0.0.1:4757"),
        "{message}"
    );
}
