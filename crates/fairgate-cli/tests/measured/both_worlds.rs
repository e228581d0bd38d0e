//! Runs one configuration file live and in the simulator, and compares rates, shares and delays.

use crate::attempts::{Times, measured};
use crate::{fairgate, number};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/measured/both_worlds.toml");

#[test]
fn live_and_simulated_agree_on_shares_and_delays() {
    let simulated = fairgate(&["simulate", FILE]);
    let (mut downloads, mut ping_nanos) = (Vec::new(), 0.0);
    for flow in simulated["flows"].as_array().unwrap() {
        if flow["group"] == "download" {
            downloads.push(number(flow, "/goodput_bps"));
        } else {
            ping_nanos = number(flow, "/delay/p50_ns");
        }
    }
    assert_eq!(downloads.len(), 4);
    let total: f64 = downloads.iter().sum();
    for goodput in &downloads {
        assert!((goodput / total - 0.25).abs() < 0.01, "simulated: {downloads:?}");
    }
    // A sparse packet beside the downloads is delayed by the link's 5 ms each way and almost no queue.
    let round_trip = ping_nanos / 1e6 + 5.0;
    measured("live_and_simulated_agree_on_shares_and_delays", 0.0, || {
        live_beside(total, round_trip)
    });
}

/// Measures the link live, and compares with the simulated goodput of all downloads (bit/s) and round-trip
/// time (ms).
fn live_beside(total: f64, round_trip: f64) -> Times {
    let live = fairgate(&["testbed", "--config", FILE, "--duration", "4s"]);
    let live = &live["outcomes"][0];
    let flows = live["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 4);

    let mut times = Times::default();
    // Ethernet headers are included, as in the shaper.
    let of_rate = number(live, "/frames_bps") / 20e6;
    times.expect((0.98..1.02).contains(&of_rate), format!("{of_rate} of the rate"));
    // A frame of 1514 bytes has 1448 bytes of payload. Retransmissions and pings need a little, too.
    let live_total = number(live, "/goodput_bps");
    times.expect(
        (0.92..0.97).contains(&(live_total / 20e6)),
        format!("{} of the rate is payload", live_total / 20e6),
    );
    times.expect(
        (live_total / total - 1.0).abs() < 0.03,
        format!(
            "goodput: simulated {:.3}, live {:.3} Mbit/s",
            total / 1e6,
            live_total / 1e6
        ),
    );
    for flow in flows {
        let share = number(flow, "/goodput_bps") / live_total;
        times.expect(
            (share - 0.25).abs() < 0.01,
            format!("share of a quarter: {share:.4}"),
        );
    }
    // A live machine sometimes wakes up late. The median does not show that.
    let live_round_trip = number(live, "/ping_load/p50_ms");
    times.expect(
        (live_round_trip - round_trip).abs() < 2.0,
        format!("ping: simulated {round_trip:.3}, live {live_round_trip:.3} ms"),
    );
    times
}
