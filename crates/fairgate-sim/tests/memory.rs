//! Compares the estimate of memory with what is really allocated, and checks what a flow costs.

use std::time::Duration;

use fairgate::Rate;
use fairgate_sim::{
    Application, Arrivals, Distribution, Flow, LineRate, Link, Scenario, Simulation, Tcp, Traffic, Udp, tcp,
};

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

/// The same without rows of results.
fn together(mut scenario: Scenario) -> Scenario {
    scenario.flows[0].rows = Some(false);
    scenario
}

fn udp() -> Traffic {
    Udp::constant(Rate::from_bits_per_second(80_000).expect("above 0"), 1000).into()
}

fn tcp() -> Traffic {
    Tcp::bulk(Default::default()).into()
}

/// A transfer of this many bytes after each pause.
fn transfers(size: u64, pause: Duration, count: Option<u64>) -> Traffic {
    let application = Application::Transfers {
        size: Distribution::Constant(size),
        pause: Distribution::Constant(pause.as_nanos() as u64),
        count,
    };
    Tcp {
        config: tcp::Config::default(),
        application,
    }
    .into()
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
fn the_estimate_is_within_a_factor_of_two() {
    let (seconds, micros) = (Duration::from_secs(2), Duration::from_micros(50));
    let arriving = |traffic, rows| {
        let mut scenario = scenario(traffic, 1, seconds, 1);
        scenario.flows[0].arrivals = Some(Arrivals::Poisson { per_second: 2_000.0 });
        scenario.flows[0].lifetime = Some(Distribution::Constant(500_000_000));
        scenario.flows[0].rows = Some(rows);
        scenario
    };
    let mut wrong = Vec::new();
    for scenario in [
        scenario(udp(), 2_000, seconds, 1),
        scenario(tcp(), 2_000, seconds, 1),
        together(scenario(udp(), 5_000, seconds, 1)),
        together(scenario(tcp(), 5_000, seconds, 1)),
        scenario(udp(), 1, micros, 1),
        scenario(tcp(), 1, micros, 1),
        scenario(tcp(), 20, micros, 2),
        scenario(udp(), 1, micros, 10),
        scenario(udp(), 1, seconds, 300),
        arriving(udp(), false),
        arriving(udp(), true),
    ] {
        let (taken, estimate) = (taken(&scenario), scenario.memory());
        let line = format!(
            "{} flows, {} links, intervals of {:?}, {:?} take {taken} bytes, but the estimate is {estimate}",
            scenario.flows[0].count,
            scenario.links.len(),
            scenario.interval,
            scenario.flows[0].arrivals,
        );
        if !(taken / 2..=taken * 2).contains(&estimate) {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns by how many bytes the maximum grows with each additional flow.
fn of_a_flow(scenario_of: impl Fn(u32) -> Scenario, few: u32, many: u32) -> u64 {
    let [few_bytes, many_bytes] = [few, many].map(|count| taken(&scenario_of(count)));
    many_bytes.saturating_sub(few_bytes) / u64::from(many - few)
}

/// A flow that has sent 20 kB and now waits has both ends of its connection, and its measurements.
#[test]
fn an_idle_tcp_flow_takes_at_most_four_kilobytes() {
    let idle = |count| {
        let traffic = transfers(20_000, Duration::from_secs(100), None);
        let mut scenario = together(scenario(traffic, count, Duration::from_millis(100), 1));
        // One after another, so that few are busy at a time.
        scenario.flows[0].stagger = Duration::from_micros(1_900_000 / u64::from(count));
        scenario.links[0].rate_a = LineRate::Unlimited;
        scenario
    };
    let bytes = of_a_flow(idle, 2_000, 6_000);
    assert!((1_000..=4_000).contains(&bytes), "{bytes}");
}

#[test]
fn a_flow_that_is_over_takes_no_memory() {
    let over = |per_second: u32| {
        let traffic = transfers(20_000, Duration::ZERO, Some(1));
        let mut scenario = scenario(traffic, 1, Duration::from_millis(100), 1);
        scenario.links[0].rate_a = LineRate::Unlimited;
        scenario.duration = Duration::from_secs(20);
        scenario.measure.end = scenario.duration;
        scenario.flows[0].arrivals = Some(Arrivals::Renewal {
            interval: Distribution::Constant(1_000_000_000 / u64::from(per_second)),
        });
        scenario
    };
    let short = over(100);
    let mut long = over(100);
    long.duration *= 4;
    long.measure.end = long.duration;
    long.interval *= 4;
    let [short, long] = [short, long].map(|scenario| taken(&scenario));
    // 6,000 flows more.
    assert!(long < short + 6_000 * 10, "{short} {long}");
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
    let error = crowd.check_memory(4 << 30).expect_err("more than 10 GB");
    assert_eq!(error.field, "count");
    assert!(error.what.contains("1000000 flows `flow`"), "{}", error.what);
}
