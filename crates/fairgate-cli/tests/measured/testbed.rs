//! A link of 20 Mbit/s with four TCP connections: a shaper with fq_codel, and a shaper with a deep fifo.

use crate::attempts::{Times, measured};
use crate::{fairgate, number};

#[test]
fn a_shaped_link_holds_its_rate_and_fq_codel_keeps_ping_short() {
    measured(
        "a_shaped_link_holds_its_rate_and_fq_codel_keeps_ping_short",
        0.0,
        rate_and_pings,
    );
}

fn rate_and_pings() -> Times {
    let queues = ["--queue", "fq_codel", "--queue", "fifo limit=1000"];
    let document = fairgate(&[&["testbed"], &queues[..], &["--duration", "3s"]].concat());
    assert_eq!(document["schema"], "fairgate.testbed/1");
    let (fq_codel, fifo) = (&document["outcomes"][0], &document["outcomes"][1]);
    let mut times = Times::default();
    for outcome in [fq_codel, fifo] {
        assert_eq!(outcome["flows"].as_array().unwrap().len(), 4);
        // Ethernet headers are included, as in the shaper.
        let of_rate = number(outcome, "/frames_bps") / 20e6;
        times.expect(
            (0.98..1.02).contains(&of_rate),
            format!("{of_rate} of the rate: {outcome}"),
        );
    }
    // A frame of 1514 bytes has 1448 bytes of payload. Retransmissions and pings need a little, too.
    let payload = number(fq_codel, "/goodput_bps") / 20e6;
    times.expect(
        (0.92..0.97).contains(&payload),
        format!("{payload} of the rate is payload: {fq_codel}"),
    );
    // The median ignores single packets that other work delays. The link contributes two delays of 5 ms.
    let short = number(fq_codel, "/ping_load/p50_ms");
    times.expect(
        (10.0..15.0).contains(&short),
        format!("ping beside fq_codel: {short} ms"),
    );
    let long = number(fifo, "/ping_load/p50_ms");
    times.expect(
        long > 100.0,
        format!("ping beside a fifo of 1000 packets: {long} ms"),
    );
    let jain = number(fq_codel, "/jain");
    times.expect(jain > 0.99, format!("Jain's index is {jain}: {fq_codel}"));
    times
}
