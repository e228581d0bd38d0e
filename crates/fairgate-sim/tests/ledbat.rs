//! LEDBAT in a network (RFC 6817, section 2.1): it fills a line that is free, holds its queueing delay near the target, and gives way.

use std::ops::Range;
use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::tcp::{Config, CongestionControl};
use fairgate_sim::{Flow, Link, NodeId, Queue, Results, Scenario, Simulation, Tcp};

use CongestionControl::{Cubic, Ledbat, Reno};

const RATE: Rate = Rate::mbit(10);
/// LEDBAT's target, ms.
const TARGET: f64 = 100.0;
/// Room for 600 ms of the line.
const DEEP: &str = "fifo limit=500";

/// A line of 50 ms there and back, the queues at its two ends, and no flows yet. Measured from 60 to 120 s.
fn line(forth: &str, back: &str) -> (Scenario, NodeId, NodeId) {
    let mut scenario = Scenario::new(Duration::from_secs(120));
    scenario.measure = Duration::from_secs(60)..Duration::from_secs(120);
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    let queue = |text: &str| {
        let spec = Spec::inline(text).expect("the line is right");
        Queue::new(move |seed| spec.build(seed))
    };
    let mut link = Link::new(a, b, RATE, Duration::from_millis(25));
    (link.queue_a, link.queue_b) = (queue(forth), queue(back));
    scenario.links.push(link);
    (scenario, a, b)
}

/// A bulk transfer from and to these seconds; LEDBAT with the initial window of its RFC.
fn transfer(control: CongestionControl, ends: (NodeId, NodeId), seconds: Range<u64>) -> Flow {
    let mut config = Config {
        congestion_control: control,
        ..Config::default()
    };
    if control == Ledbat {
        config.initial_window = 2;
    }
    Flow {
        start: Duration::from_secs(seconds.start),
        stop: Some(Duration::from_secs(seconds.end)),
        ..Flow::new(control.name(), ends.0, ends.1, Tcp::bulk(config))
    }
}

fn run(scenario: &Scenario) -> Results {
    Simulation::new(scenario)
        .expect("the scenario makes sense")
        .run()
        .expect("the simulation runs to its end")
}

/// Transfers over a queue, each with its seconds.
fn over(queue: &str, transfers: &[(CongestionControl, Range<u64>)]) -> Results {
    let (mut scenario, a, b) = line(queue, DEEP);
    for (control, seconds) in transfers {
        scenario.flows.push(transfer(*control, (a, b), seconds.clone()));
    }
    run(&scenario)
}

/// Of the line, per cent.
fn share(results: &Results, flow: usize) -> f64 {
    results.flows[flow].goodput_bps as f64 / RATE.bits_per_second() as f64 * 100.0
}

/// Mean queueing delay of the line, ms.
fn queueing(results: &Results) -> f64 {
    results.interfaces[0].sojourn.mean_ns as f64 * 1e-6
}

#[test]
fn alone_it_fills_the_line_and_holds_its_delay_near_the_target() {
    let results = over(DEEP, &[(Ledbat, 0..120)]);
    // 1448 of 1514 bytes are payload.
    assert!(share(&results, 0) > 95.0, "{} %", share(&results, 0));
    let queue = queueing(&results);
    assert!((0.8 * TARGET..1.02 * TARGET).contains(&queue), "{queue} ms");
    assert_eq!(results.flows[0].whole_run.lost, 0);
}

#[test]
fn it_leaves_a_long_queue_to_cubic_and_takes_the_line_back() {
    let beside = over(DEEP, &[(Ledbat, 0..120), (Cubic, 10..120)]);
    let (ledbat, cubic) = (share(&beside, 0), share(&beside, 1));
    assert!(ledbat < 3.0 && cubic > 92.0, "{ledbat} and {cubic} %");
    let after = over(DEEP, &[(Ledbat, 0..120), (Cubic, 10..40)]);
    assert!(share(&after, 0) > 94.0, "{} %", share(&after, 0));
}

/// Delays are those one way. By round-trip time LEDBAT would take the queue of these CUBIC flows for its own, and be left with two segments;
/// so it only grows more slowly, by a segment in a round trip that has become long.
#[test]
fn queues_on_the_way_back_do_not_count() {
    let (mut scenario, a, b) = line(DEEP, "fifo limit=400");
    scenario.flows.push(transfer(Ledbat, (a, b), 0..120));
    scenario.flows.push(Flow {
        count: 4,
        ..transfer(Cubic, (b, a), 10..120)
    });
    let results = run(&scenario);
    let back = results.interfaces[1].sojourn.mean_ns as f64 * 1e-6;
    assert!(back > 2.0 * TARGET, "{back} ms");
    assert!(share(&results, 0) > 50.0, "{} %", share(&results, 0));
    assert!(queueing(&results) < TARGET, "{} ms", queueing(&results));
}

/// What holds it back is delay: where a discipline allows less than the target, it is a sender like any other.
#[test]
fn where_the_queue_is_kept_short_it_competes() {
    for queue in ["fq_codel", "codel", "pie", "fifo limit=20"] {
        let results = over(queue, &[(Ledbat, 0..120), (Reno, 0..120)]);
        assert!(
            queueing(&results) < TARGET / 2.0,
            "{queue}: {} ms",
            queueing(&results)
        );
        let (ledbat, reno) = (share(&results, 0), share(&results, 1));
        let ratio = ledbat / reno;
        assert!((0.5..2.0).contains(&ratio), "{queue}: {ledbat} and {reno} %");
    }
}
