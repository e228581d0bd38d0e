//! Compares the estimate of memory with what is really allocated.

use std::time::Duration;

use fairgate::Rate;
use fairgate_sim::{Flow, Link, Scenario, Simulation, Tcp, Traffic, Udp};

/// Creates flows over a chain of links of 100 Mb/s, for two seconds.
fn scenario(traffic: Traffic, count: u32, interval: Duration, links: usize) -> Scenario {
    let mut scenario = Scenario::new(Duration::from_secs(2));
    scenario.interval = interval;
    let nodes: Vec<_> = (0..=links)
        .map(|number| scenario.node(format!("node {number}")))
        .collect();
    for pair in nodes.windows(2) {
        let link = Link::new(pair[0], pair[1], Rate::mbit(100), Duration::from_millis(5));
        scenario.links.push(link);
    }
    let mut flow = Flow::new("flow", nodes[0], nodes[links], traffic);
    flow.count = count;
    scenario.flows.push(flow);
    scenario
}

fn udp() -> Traffic {
    Udp::constant(Rate::from_bits_per_second(80_000).expect("above 0"), 1000).into()
}

fn tcp() -> Traffic {
    Tcp::bulk(Default::default()).into()
}

/// Returns the maximum number of bytes allocated at a time, including the results as text.
fn taken(scenario: &Scenario) -> u64 {
    let info = allocation_counter::measure(|| {
        let simulation = Simulation::new(scenario).expect("the scenario is valid");
        let results = simulation.run().expect("the packets fit into memory");
        let text = serde_json::to_string(&results).expect("results are plain data");
        assert!(!text.is_empty());
    });
    info.bytes_max
}

#[test]
fn the_estimate_is_within_a_factor_of_four() {
    let (seconds, micros) = (Duration::from_secs(2), Duration::from_micros(50));
    for scenario in [
        scenario(udp(), 300, seconds, 1),
        scenario(tcp(), 300, seconds, 1),
        scenario(udp(), 1, micros, 1),
        scenario(tcp(), 1, micros, 1),
        scenario(tcp(), 20, micros, 2),
        scenario(udp(), 1, micros, 10),
        scenario(udp(), 1, seconds, 300),
    ] {
        let (taken, estimate) = (taken(&scenario), scenario.memory());
        assert!(
            (taken / 4..=taken * 4).contains(&estimate),
            "{} flows, {} links, intervals of {:?} take {taken} bytes, but the estimate is {estimate}",
            scenario.flows[0].count,
            scenario.links.len(),
            scenario.interval,
        );
    }
}

/// None of these is started, because they would need hundreds of gigabytes.
#[test]
fn scenarios_that_fit_no_machine_are_rejected() {
    let hours = Duration::from_secs(3600);
    let mut fine = scenario(udp(), 1, hours, 1);
    fine.duration = hours;
    fine.measure = Duration::ZERO..hours;
    fine.interval = Duration::from_nanos(1);
    let error = fine.check_memory(u64::MAX).expect_err("3.6e12 intervals");
    assert_eq!(error.field, "interval");
    assert!(Simulation::new(&fine).is_err());
    let crowd = scenario(tcp(), 1_000_000, Duration::from_secs(2), 1);
    let error = crowd.check_memory(64 << 30).expect_err("400 GB");
    assert_eq!(error.field, "count");
    assert!(error.what.contains("1000000 flows `flow`"), "{}", error.what);
}
