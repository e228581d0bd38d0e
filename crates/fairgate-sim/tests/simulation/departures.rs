//! Packets with departure times, through the disciplines that obey them.

use crate::common::{read, run};
use fairgate_sim::results::{FlowResults, Results};

/// Two flows over a fast link with jitter, and then a link of 10 Mbit/s with 5 ms of delay, whose queue is
/// `queue`.
fn over(queue: &str, departs_after: &str) -> String {
    format!(
        r#"
[queue.line]
discipline = "{queue}"

[simulate]
duration = "10s"

[[simulate.link]]
a = "left"
b = "router"
rate = "1gbit"
delay = "1ms"
jitter = {{ uniform = ["0ms", "3ms"] }}

[[simulate.link]]
a = "router"
b = "right"
rate = "10mbit"
delay = "5ms"
queue_a = "line"

[[simulate.flow]]
name = "timed"
from = "left"
to = "right"
departs_after = "{departs_after}"
udp = {{ rate = "1mbit", size = "1000b" }}
"#
    )
}

fn timed(results: &Results) -> &FlowResults {
    &results.flows[0]
}

/// The jitter of the first link is gone: each packet leaves the queue when it wants to.
#[test]
fn etf_sends_each_packet_at_its_time() {
    let results = run(&over("etf", "20ms"));
    let flow = timed(&results);
    assert_eq!(flow.lost, 0, "{flow:?}");
    // 20 ms, then 1042 bytes at 10 Mbit/s, which are the payload and all headers, then 5 ms.
    let expected = 20_000_000 + 833_600 + 5_000_000;
    assert_eq!((flow.delay.min_ns, flow.delay.max_ns), (expected, expected));
}

/// fq does not send a packet before its time, and has no other order here.
#[test]
fn fq_sends_no_packet_before_its_time() {
    let results = run(&over("fq", "20ms"));
    let flow = timed(&results);
    assert_eq!(flow.lost, 0, "{flow:?}");
    assert!(flow.delay.min_ns >= 25_833_600, "{flow:?}");
}

/// A packet that comes after its time is dropped. Without times all of them are.
#[test]
fn etf_drops_what_is_late() {
    let results = run(&over("etf", "2500us"));
    let flow = timed(&results);
    assert!(0 < flow.lost && flow.lost < flow.sent, "{flow:?}");
    assert_eq!(flow.lost_by_reason.get("late"), Some(&flow.lost));
    let results = run(&over("etf", "20ms").replace("departs_after = \"20ms\"\n", ""));
    let flow = timed(&results);
    assert_eq!(
        (flow.received, flow.lost_by_reason.get("late")),
        (0, Some(&flow.lost))
    );
}

#[test]
fn a_departure_before_the_sending_is_refused() {
    for (time, expected) in [
        ("0", "after it is sent"),
        ("40000000s", "31536000s"),
        ("soon", "soon"),
    ] {
        let error = read(&over("etf", time)).expect_err(time).to_string();
        assert!(error.contains(expected), "{time}: {error}");
    }
}
