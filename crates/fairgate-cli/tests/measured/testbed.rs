//! A link of 20 Mbit/s with four TCP connections: a shaper with fq_codel, and a shaper with a deep fifo.

use crate::common::deadline::{alone, watch_live};
use crate::{fairgate, number};

/// One run of both is enough: with 1000 packets of backlog ping takes some 600 ms, with fq_codel some 11. The
/// rate of a link with fq_codel is that of [`both_worlds`](crate::both_worlds).
#[test]
fn ping_beside_fq_codel_is_short_and_beside_a_deep_fifo_long() {
    const TEST: &str = "ping_beside_fq_codel_is_short_and_beside_a_deep_fifo_long";
    let Some(_alone) = alone(TEST) else {
        return;
    };
    let _watched = watch_live(TEST);
    let queues = ["--queue", "fq_codel", "--queue", "fifo limit=1000"];
    let document = fairgate(&[&["testbed"], &queues[..], &["--duration", "3s"]].concat());
    assert_eq!(document["schema"], "fairgate.testbed/1");
    let outcomes = document["outcomes"].as_array().unwrap();
    for (outcome, queue) in outcomes.iter().zip(["fq_codel", "fifo limit=1000"]) {
        assert_eq!(outcome["scenario"], queue);
        assert_eq!(outcome["flows"].as_array().unwrap().len(), 4);
    }
    let [short, long] = [0, 1].map(|at| number(&outcomes[at], "/ping_load/p50_ms"));
    // The median ignores single packets that other work delays. The link contributes two delays of 5 ms.
    assert!(
        short > 10.0 && long > 8.0 * short,
        "{short} ms beside fq_codel, {long} ms beside a fifo"
    );
}
