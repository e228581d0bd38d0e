//! LEDBAT in a network (RFC 6817, section 2.1): it fills an idle link, keeps the queueing delay near its
//! target, and yields to other traffic.

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
/// A queue for 600 ms of the link's rate.
const DEEP: &str = "fifo limit=500";

/// Creates a link with a round-trip time of 50 ms and the given queues, without flows. The measurement is
/// from 60 to 120 s.
fn link(forth: &str, back: &str) -> (Scenario, NodeId, NodeId) {
    let mut scenario = Scenario::new(Duration::from_secs(120));
    scenario.measure = Duration::from_secs(60)..Duration::from_secs(120);
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    let queue = |text: &str| {
        let spec = Spec::inline(text).expect("the description is valid");
        Queue::new(move |seed| spec.build(seed))
    };
    let mut link = Link::new(a, b, RATE, Duration::from_millis(25));
    (link.queue_a, link.queue_b) = (queue(forth), queue(back));
    scenario.links.push(link);
    (scenario, a, b)
}

/// Creates a bulk transfer during these seconds. LEDBAT has the initial window of its RFC.
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
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end")
}

/// Runs transfers over a queue, each during its seconds.
fn over(queue: &str, transfers: &[(CongestionControl, Range<u64>)]) -> Results {
    let (mut scenario, a, b) = link(queue, DEEP);
    for (control, seconds) in transfers {
        scenario.flows.push(transfer(*control, (a, b), seconds.clone()));
    }
    run(&scenario)
}

/// Returns a flow's share of the link, per cent.
fn share(results: &Results, flow: usize) -> f64 {
    results.flows[flow].goodput_bps as f64 / RATE.bits_per_second() as f64 * 100.0
}

/// Returns the mean queueing delay, ms.
fn queueing(results: &Results) -> f64 {
    results.interfaces[0].sojourn.mean_ns as f64 * 1e-6
}

#[test]
fn alone_it_fills_the_link_and_keeps_the_delay_near_the_target() {
    let results = over(DEEP, &[(Ledbat, 0..120)]);
    // 1448 of 1514 bytes are payload.
    assert!(share(&results, 0) > 95.0, "{} %", share(&results, 0));
    let queue = queueing(&results);
    assert!((0.8 * TARGET..1.02 * TARGET).contains(&queue), "{queue} ms");
    assert_eq!(results.flows[0].whole_run.lost, 0);
}

#[test]
fn it_yields_to_cubic_and_then_uses_the_link_again() {
    let beside = over(DEEP, &[(Ledbat, 0..120), (Cubic, 10..120)]);
    let (ledbat, cubic) = (share(&beside, 0), share(&beside, 1));
    assert!(ledbat < 3.0 && cubic > 92.0, "{ledbat} and {cubic} %");
    let after = over(DEEP, &[(Ledbat, 0..120), (Cubic, 10..40)]);
    assert!(share(&after, 0) > 94.0, "{} %", share(&after, 0));
}

/// LEDBAT measures one-way delays. With round-trip times, it would take the queue of these CUBIC flows for
/// its own, and its window would fall to two segments. Here it only grows more slowly, by one segment per
/// long round trip.
#[test]
fn queues_on_the_return_path_do_not_count() {
    let (mut scenario, a, b) = link(DEEP, "fifo limit=400");
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

/// Only delay holds LEDBAT back. If a discipline keeps the delay below the target, LEDBAT competes like any
/// other sender.
#[test]
fn it_competes_if_the_queue_is_kept_short() {
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
