//! A real link of 20 Mbit/s with four TCP connections: with a shaper over fq_codel, and with a deep fifo.

mod common;
#[path = "common/json.rs"]
mod json;

use common::can_build_networks;
use json::{fairgate, measured, number};

#[test]
fn a_shaped_link_keeps_its_rate_and_fq_codel_keeps_the_delay_low() {
    if !can_build_networks("a_shaped_link_keeps_its_rate_and_fq_codel_keeps_the_delay_low") {
        return;
    }
    measured(rate_and_pings);
}

fn rate_and_pings() {
    let document = fairgate(&[
        "testbed",
        "--queue",
        "fq_codel",
        "--queue",
        "fifo limit=1000",
        "--duration",
        "8s",
    ]);
    assert_eq!(document["schema"], "fairgate.testbed/1");
    let (fq_codel, fifo) = (&document["outcomes"][0], &document["outcomes"][1]);
    for outcome in [fq_codel, fifo] {
        // Ethernet headers count, as in the shaper.
        let of_rate = number(outcome, "/frames_bps") / 20e6;
        assert!(
            (0.98..1.02).contains(&of_rate),
            "{of_rate} of the rate: {outcome}"
        );
        assert_eq!(outcome["flows"].as_array().unwrap().len(), 4);
    }
    // A frame of 1514 bytes has 1448 bytes of payload. Retransmissions and pings take a little.
    let payload = number(fq_codel, "/goodput_bps") / 20e6;
    assert!(
        (0.92..0.97).contains(&payload),
        "{payload} of the rate is payload: {fq_codel}"
    );
    // The median is used, because a busy machine delays single packets. The link adds 5 ms each way.
    let short = number(fq_codel, "/ping_load/p50_ms");
    assert!((10.0..15.0).contains(&short), "ping beside fq_codel: {short} ms");
    let long = number(fifo, "/ping_load/p50_ms");
    assert!(long > 100.0, "ping beside a fifo of 1000 packets: {long} ms");
    assert!(number(fq_codel, "/jain") > 0.99, "{fq_codel}");
}
