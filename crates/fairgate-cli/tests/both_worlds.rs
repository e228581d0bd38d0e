//! Runs one configuration file live and simulated, and compares shares and delays.

mod common;
#[path = "common/json.rs"]
mod json;

use common::can_build_networks;
use json::{fairgate, measured, number};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/both_worlds.toml");

#[test]
fn live_and_simulated_agree_on_shares_and_delays() {
    if !can_build_networks("live_and_simulated_agree_on_shares_and_delays") {
        return;
    }
    measured(shares_and_delays);
}

fn shares_and_delays() {
    let simulated = fairgate(&["simulate", FILE]);
    let live = fairgate(&["testbed", "--config", FILE, "--duration", "10s"]);
    let live = &live["outcomes"][0];

    let (mut downloads, mut ping_nanos) = (Vec::new(), 0.0);
    for flow in simulated["flows"].as_array().unwrap() {
        if flow["group"] == "download" {
            downloads.push(number(flow, "/goodput_bps"));
        } else {
            ping_nanos = number(flow, "/delay/p50_ns");
        }
    }
    let total: f64 = downloads.iter().sum();
    let live_total = number(live, "/goodput_bps");
    eprintln!(
        "goodput: simulated {:.3}, live {:.3} Mbit/s",
        total / 1e6,
        live_total / 1e6
    );
    assert!((live_total / total - 1.0).abs() < 0.03);

    // Each download gets a quarter.
    let flows = live["flows"].as_array().unwrap();
    assert_eq!((downloads.len(), flows.len()), (4, 4));
    for (simulated, flow) in downloads.iter().zip(flows) {
        let (simulated, live) = (simulated / total, number(flow, "/goodput_bps") / live_total);
        eprintln!("share: simulated {simulated:.4}, live {live:.4}");
        assert!((simulated - 0.25).abs() < 0.01 && (live - 0.25).abs() < 0.01);
    }

    // A sparse packet beside the downloads: 5 ms of the link each way and almost no queueing. A real machine
    // sometimes wakes up late, which does not affect the median.
    let round_trip = ping_nanos / 1e6 + 5.0;
    let live_round_trip = number(live, "/ping_load/p50_ms");
    eprintln!("ping: simulated {round_trip:.3}, live {live_round_trip:.3} ms");
    assert!((live_round_trip - round_trip).abs() < 2.0);
}
