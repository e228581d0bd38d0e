//! What a sending device does to its queue: a timer with ticks, and a send buffer.

use crate::common::{read, run};

/// A bucket of 10 kB, filled at 80 Mbit/s, on a line of 1 Gbit/s. A queue of packets of 1000 bytes waits.
fn bucket(timer: &str) -> u64 {
    let text = format!(
        r#"
[queue.bucket]
discipline = "tbf"
rate = "80mbit"
burst = "10kb"
[queue.bucket.inner]
discipline = "fifo"
limit = 2000

[simulate]
duration = "4s"
measure = ["1s", "4s"]

[[simulate.link]]
a = "left"
b = "right"
rate = "1gbit"
overhead = 0
queue_a = "bucket"
{timer}

[[simulate.flow]]
name = "burst"
from = "left"
to = "right"
udp = {{ rate = "500mbit", size = "972b" }}
stop = "10ms"

[[simulate.flow]]
name = "queue"
from = "left"
to = "right"
tcp = {{ fixed_window = 500, mss = 948, delayed_ack = false }}
"#
    );
    let results = run(&text);
    let mut groups = results.groups.iter();
    groups
        .find(|group| group.name == "queue")
        .expect("it exists")
        .throughput_bps
}

/// With ticks a queue is asked again at the second one. A full bucket goes out in each 20 ms: after it has
/// sent, acknowledgements come back at once, when the bucket is still empty.
#[test]
fn a_timer_with_ticks_limits_a_shaper_to_a_burst_in_two_ticks() {
    let exact = bucket("");
    assert!((79_000_000..=80_100_000).contains(&exact), "{exact}");
    let coarse = bucket("timer = \"10ms\"");
    // 10,240 bytes, and packets that come while the bucket fills.
    let limit = 10_240 * 8 * 50;
    assert!(
        (limit * 9 / 10..limit * 13 / 10).contains(&coarse),
        "{coarse} instead of {limit}"
    );
    let fine = bucket("timer = \"100us\"");
    assert!((78_000_000..=80_100_000).contains(&fine), "{fine}");
}

/// A priority queue before a line of 1 Mbit/s: a packet of 1000 bytes takes 8 ms. What the device has taken,
/// the queue does not control.
#[test]
fn packets_of_high_priority_wait_for_what_is_in_the_send_buffer() {
    let delays = [0, 8000, 16_000].map(|bytes| {
        let text = format!(
            r#"
[queue.bands]
discipline = "pfifo_fast"

[simulate]
duration = "60s"
measure = ["10s", "60s"]

[[simulate.link]]
a = "left"
b = "right"
rate = "1mbit"
overhead = 0
queue_a = "bands"
send_buffer = "{bytes}b"

[[simulate.flow]]
name = "high"
from = "left"
to = "right"
priority = 6
udp = {{ rate = "8kbit", size = "72b", pattern = "poisson" }}

[[simulate.flow]]
name = "low"
from = "left"
to = "right"
udp = {{ rate = "2mbit", size = "972b" }}
"#
        );
        let results = run(&text);
        let high = &results.groups[0];
        assert_eq!((high.name.as_str(), high.lost), ("high", 0));
        let mut interfaces = results.interfaces.iter();
        let line = interfaces.find(|interface| interface.name == "left->right");
        let utilisation = line.and_then(|line| line.utilisation).expect("it has a rate");
        assert!(utilisation > 0.999, "{utilisation}");
        high.delay_mean_ns as f64 * 1e-6
    });
    // Half a packet in transmission, and its own 0.8 ms; the buffer takes 64 ms for 8000 bytes.
    for (delay, expected) in delays.into_iter().zip([4.8, 68.8, 132.8]) {
        assert!((delay - expected).abs() < 1.0, "{delay} instead of {expected}");
    }
}

#[test]
fn a_send_buffer_needs_a_constant_rate() {
    let text = r#"
[simulate]
duration = "1s"

[[simulate.link]]
a = "left"
b = "right"
rate_a = "1mbit"
send_buffer = "16kb"

[[simulate.flow]]
name = "flow"
from = "left"
to = "right"
udp = { rate = "10kbit" }
"#;
    let error = format!("{:?}", read(text).expect_err("the other direction has no rate"));
    assert!(
        error.contains("a send buffer is emptied at a constant rate"),
        "{error}"
    );
    let flow = &run(&text.replace("rate_a", "rate")).flows[0];
    assert_eq!(flow.lost, 0);
}
