//! TCP connections over simulated networks: saturated links, programs that write, conservation.

use std::time::Duration;

use fairgate::Rate;
use fairgate_sim::{
    Application, Distribution, Flow, Link, NodeId, Queue, Results, Scenario, Simulation, Tcp, tcp,
};

fn run(scenario: &Scenario) -> Results {
    let results = Simulation::new(scenario)
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end");
    for flow in &results.flows {
        let connection = flow.connection.as_ref().expect("all flows here are TCP");
        for totals in [&flow.whole_run, &connection.acknowledgements] {
            assert_eq!(totals.sent, totals.received + totals.lost + totals.in_flight);
        }
    }
    results
}

/// Creates a link of 10 Mbit/s with a round-trip time of 20 ms.
fn link(seconds: u64, queue: Queue) -> (Scenario, NodeId, NodeId) {
    let mut scenario = Scenario::new(Duration::from_secs(seconds));
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    scenario
        .links
        .push(Link::new(a, b, Rate::mbit(10), Duration::from_millis(10)).with_queue_a(queue));
    (scenario, a, b)
}

fn with(application: Application) -> Tcp {
    Tcp {
        config: tcp::Config::default(),
        application,
    }
}

#[test]
fn bulk_transfers_fill_the_link_and_share_it() {
    let (mut scenario, a, b) = link(30, Queue::fifo(100));
    scenario.measure.start = Duration::from_secs(5);
    let mut flow = Flow::new("bulk", a, b, with(Application::Bulk));
    flow.count = 4;
    flow.stagger = Duration::from_millis(100);
    scenario.flows.push(flow);
    let results = run(&scenario);
    // 1448 of 1514 bytes are payload.
    let most = 10_000_000 * 1448 / 1514;
    assert!(
        results.goodput_bps.abs_diff(most) < most / 100,
        "{}",
        results.goodput_bps
    );
    assert!(results.jain > 0.8, "{}", results.jain);
    assert!(results.interfaces[0].dropped > 0);
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.connection.as_ref().unwrap().retransmissions > 0)
    );
}

#[test]
fn a_limited_application_gets_its_rate_at_the_delay_of_an_idle_link() {
    let (mut scenario, a, b) = link(20, Queue::fifo(100));
    scenario.measure.start = Duration::from_secs(2);
    let rate = Rate::mbit(2);
    scenario.flows.push(Flow::new(
        "stream",
        a,
        b,
        with(Application::Limited { rate, size: 1000 }),
    ));
    let results = run(&scenario);
    assert!(
        results.goodput_bps.abs_diff(2_000_000) < 20_000,
        "{}",
        results.goodput_bps
    );
    assert!(
        results.flows[0].delay.p99_ns < 15_000_000,
        "{}",
        results.flows[0].delay.p99_ns
    );
}

#[test]
fn transfers_follow_one_another_with_pauses() {
    let (mut scenario, a, b) = link(60, Queue::fifo(1000));
    let application = Application::Transfers {
        size: Distribution::Constant(100_000),
        pause: Distribution::Constant(1_000_000_000),
        count: Some(5),
    };
    scenario.flows.push(Flow::new("pages", a, b, with(application)));
    let results = run(&scenario);
    let transfers = &results.flows[0].connection.as_ref().unwrap().transfers;
    assert_eq!(transfers.count, 5);
    assert_eq!(results.flows[0].received, results.flows[0].sent);
    // Transmission alone takes 84 ms. Slow start takes a few round trips more.
    assert!(
        transfers.min_ns > 84_000_000 && transfers.max_ns < 400_000_000,
        "{transfers:?}"
    );
    // Nothing is sent after the fifth transfer.
    assert_eq!(results.flows[0].throughput_series_bps[100..], [0; 500]);
}

#[test]
fn a_stopped_sender_is_silent() {
    let (mut scenario, a, b) = link(10, Queue::fifo(20));
    let mut flow = Flow::new("bulk", a, b, with(Application::Bulk));
    flow.start = Duration::from_secs(2);
    flow.stop = Some(Duration::from_secs(5));
    scenario.flows.push(flow);
    let series = &run(&scenario).flows[0].throughput_series_bps;
    assert_eq!(series[..20], [0; 20]);
    assert!(series[25..50].iter().all(|&bps| bps > 5_000_000), "{series:?}");
    // Packets queued or in flight still arrive: 20 packets and 10 ms.
    assert_eq!(series[51..], [0; 49]);
}

#[test]
fn equal_seeds_give_equal_bytes() {
    let bytes = || {
        let (mut scenario, a, b) = link(10, Queue::fifo(50));
        let application = Application::Transfers {
            size: Distribution::Pareto {
                mean: 200_000,
                shape: 1.5,
            },
            pause: Distribution::Exponential { mean: 200_000_000 },
            count: None,
        };
        let mut flow = Flow::new("pages", a, b, with(application));
        flow.count = 5;
        scenario.flows.push(flow);
        serde_json::to_string(&run(&scenario)).expect("results are plain data")
    };
    assert_eq!(bytes(), bytes());
}
