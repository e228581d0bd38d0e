//! netem in the place of a link's queue: duplicates and wrong bits are the driver's, and all packets add up.

use crate::common::run;
use fairgate_sim::Results;

/// A flow over a link of 10 Mbit/s with 5 ms of delay, whose queue is `netem` in both directions.
fn over(netem: &str, flow: &str) -> Results {
    run(&format!(
        r#"
[queue.path]
discipline = "netem"
{netem}

[simulate]
duration = "10s"

[[simulate.link]]
a = "left"
b = "right"
rate = "10mbit"
delay = "5ms"
queue = "path"

[[simulate.flow]]
name = "flow"
from = "left"
to = "right"
{flow}
"#
    ))
}

const DATAGRAMS: &str = r#"udp = { rate = "1mbit", size = "1000b" }"#;

#[test]
fn a_duplicate_counts_as_sent_and_arrives() {
    let flow = &over("duplicate = 1.0", DATAGRAMS).flows[0];
    // 1 Mbit/s for 10 s.
    assert!((2480..=2520).contains(&flow.sent), "{}", flow.sent);
    assert!(flow.sent - flow.received <= 20 && flow.lost == 0, "{flow:?}");
}

#[test]
fn a_packet_with_a_wrong_bit_is_lost_on_the_link() {
    let results = over("corrupt = 0.25", DATAGRAMS);
    let flow = &results.flows[0];
    assert_eq!(flow.lost_by_reason.get("link"), Some(&flow.lost));
    assert!((0.2..0.3).contains(&flow.loss_ratio), "{}", flow.loss_ratio);
}

#[test]
fn lost_packets_have_a_reason_and_delays_add_up() {
    let flow = &over("delay = \"20ms\"\nloss = 0.1\nlimit = 10000", DATAGRAMS).flows[0];
    assert_eq!(flow.lost_by_reason.get("lost"), Some(&flow.lost));
    assert!((0.07..0.13).contains(&flow.loss_ratio), "{}", flow.loss_ratio);
    // 20 ms of netem, 5 ms of the link, and less than 1 ms of transmission.
    assert!(
        (25_000_000..26_000_000).contains(&flow.delay.mean_ns),
        "{}",
        flow.delay.mean_ns
    );
}

/// TCP gets its data through a path that does everything at once, and ends.
#[test]
fn a_transfer_arrives_over_a_bad_path() {
    let bad = "delay = \"10ms\"\njitter = \"3ms\"\nduplicate = 0.05\ncorrupt = 0.01\nloss = 0.01\n\
               reorder = 0.02\nlimit = 10000";
    let results = over(bad, r#"tcp = { size = "1mb", transfers = 1 }"#);
    let flow = &results.flows[0];
    assert!(flow.ended_ns.is_some(), "{flow:?}");
    assert!(
        flow.lost > 0 && flow.received + flow.lost == flow.sent,
        "{flow:?}"
    );
}
