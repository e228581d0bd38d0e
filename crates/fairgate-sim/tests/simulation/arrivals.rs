//! Flows that arrive at random: queueing theory, accounting, and the independence of flows that follow one
//! another.

use std::sync::Arc;
use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::results::FlowResults;
use fairgate_sim::{
    Application, Arrivals, Distribution, Empirical, Flow, LineRate, Link, NodeId, Pattern, Queue, Results,
    Scenario, Simulation, Tcp, Udp, tcp,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// Creates two nodes with a link of 10 Mbit/s, and nearly no delay.
fn link(seconds: u64, queue: &'static str) -> (Scenario, NodeId, NodeId) {
    let mut scenario = Scenario::new(Duration::from_secs(seconds));
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    let spec = Spec::inline(queue).expect("the description is valid");
    let mut link = Link::new(a, b, Rate::mbit(10), Duration::from_micros(10));
    link.rate_b = LineRate::Unlimited;
    scenario
        .links
        .push(link.with_queue_a(Queue::new(move |seed| spec.build(seed))));
    (scenario, a, b)
}

fn transfer(size: Distribution) -> Tcp {
    Tcp {
        config: tcp::Config::default(),
        application: Application::Transfers {
            size,
            pause: Distribution::Constant(0),
            count: Some(1),
        },
    }
}

fn constant(rate: Rate) -> Udp {
    Udp {
        size: Distribution::Constant(1000),
        pattern: Pattern::Constant { rate },
    }
}

fn run(scenario: &Scenario) -> Results {
    Simulation::new(scenario)
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end")
}

/// Returns the mean and the standard error of one figure of several runs.
fn estimate(figures: &[f64]) -> (f64, f64) {
    let count = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / count;
    let variance = figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// Returns the bytes on the link that a transfer of `size` bytes takes: segments of 1448 bytes with 66 bytes
/// of headers, the SYN, and the segment that completes the handshake.
fn on_link(size: u64) -> u64 {
    size + 66 * size.div_ceil(1448) + 74 + 66
}

/// Poisson arrivals of transfers over a link that is shared fairly: M/G/1 with processor sharing. The mean
/// response time is E[S] / (1 - load), and the mean number of flows load / (1 - load), whatever the
/// distribution of sizes is (Kleinrock 1976, section 4.4).
#[test]
fn response_times_are_those_of_processor_sharing() {
    let sizes = [(100_000, 3.0), (900_000, 1.0)];
    let mean = |value: &dyn Fn(u64) -> f64| sizes.iter().map(|&(size, w)| value(size) * w).sum::<f64>() / 4.0;
    let service = mean(&|size| on_link(size) as f64 * 8.0 / 10e6);
    let load = 0.6;
    let per_second = load / service;
    let runs: Vec<(f64, f64)> = (1..=12)
        .map(|seed| {
            let (mut scenario, a, b) = link(450, "drr limit=100000 flows=4096");
            scenario.seed = seed;
            scenario.measure.start = Duration::from_secs(10);
            let size = Distribution::Empirical(Arc::new(Empirical::new(sizes).expect("sizes have weights")));
            let mut flow = Flow::new("transfer", a, b, transfer(size));
            flow.arrivals = Some(Arrivals::Poisson { per_second });
            scenario.flows.push(flow);
            let results = run(&scenario);
            let group = &results.groups[0];
            assert_eq!(group.lost, 0, "the queue holds all");
            assert!(results.flows.is_empty(), "such a group has no rows");
            (group.transfers.mean_ns as f64 / 1e9, group.active_mean)
        })
        .collect();
    let responses: Vec<f64> = runs.iter().map(|run| run.0).collect();
    let active: Vec<f64> = runs.iter().map(|run| run.1).collect();
    for (figures, theory) in [(responses, service / (1.0 - load)), (active, load / (1.0 - load))] {
        let (mean, error) = estimate(&figures);
        assert!(error < 0.05 * theory, "too noisy: {mean} +- {error}");
        // A t distribution of 11 degrees of freedom: 99.5 % are within 3.5 standard errors.
        assert!(
            (mean - theory).abs() < 3.5 * error,
            "{mean} +- {error}, but the theory is {theory}"
        );
    }
}

/// Little's law holds exactly for what the simulator counts: the integral of the number of active flows is
/// the sum of the times that flows were active in the window.
#[test]
fn active_flows_obey_littles_law() {
    let (mut scenario, a, b) = link(60, "fifo limit=1000");
    scenario.measure = Duration::from_secs(7)..Duration::from_secs(51);
    let mut flow = Flow::new(
        "transfer",
        a,
        b,
        transfer(Distribution::Exponential { mean: 100_000 }),
    );
    flow.arrivals = Some(Arrivals::Load { load: Rate::mbit(8) });
    flow.rows = Some(true);
    scenario.flows.push(flow);
    let results = run(&scenario);
    let group = &results.groups[0];
    assert!(group.flows > 400, "{}", group.flows);
    let [opens, closes] = results.measured_ns;
    let sum: u64 = results
        .flows
        .iter()
        .map(|flow| {
            let end = flow.ended_ns.unwrap_or(results.duration_ns).min(closes);
            end.saturating_sub(flow.started_ns.max(opens))
        })
        .sum();
    assert_eq!(group.active_mean, sum as f64 / (closes - opens) as f64);
    // With the law, as usual: rate of arrivals times mean time in the system, up to the ends of the window.
    let seconds = (closes - opens) as f64 / 1e9;
    let rate = group.transfers.count as f64 / seconds;
    let product = rate * group.transfers.mean_ns as f64 / 1e9;
    assert!(
        (product / group.active_mean - 1.0).abs() < 0.1,
        "{product} {}",
        group.active_mean
    );
    assert_eq!(group.transfers.count, {
        let ended = |flow: &&FlowResults| flow.ended_ns.is_some_and(|end| (opens..closes).contains(&end));
        results.flows.iter().filter(ended).count() as u64
    });
}

/// The number of flows of a memoryless system is geometric: with probability 1 - load there is none.
#[test]
fn the_number_of_active_flows_is_geometric() {
    let (mut scenario, a, b) = link(3_000, "drr limit=100000 flows=4096");
    scenario.interval = Duration::from_millis(500);
    let mut flow = Flow::new(
        "transfer",
        a,
        b,
        transfer(Distribution::Exponential { mean: 300_000 }),
    );
    // 66 bytes of headers for each segment of 1448 bytes; half a segment is lost to rounding.
    let service = (300_000.0 * 1514.0 / 1448.0 + 173.0) * 8.0 / 10e6;
    let load = 0.5;
    flow.arrivals = Some(Arrivals::Poisson {
        per_second: load / service,
    });
    scenario.flows.push(flow);
    let series = &run(&scenario).groups[0].active_series;
    for number in 0..4 {
        let share = series.iter().filter(|&&active| active == number).count() as f64 / series.len() as f64;
        let theory = (1.0 - load) * load.powi(number as i32);
        assert!(
            (share - theory).abs() < 0.025,
            "{number} flows: {share}, but {theory}"
        );
    }
}

/// Datagrams in the network when their flow stops still arrive, and do not count for the flow that comes
/// next.
#[test]
fn packets_of_a_flow_that_is_over_do_not_reach_its_successor() {
    let (mut scenario, a, b) = link(40, "fifo limit=20");
    // A second of delay: many flows end while packets of theirs are on their way.
    (scenario.links[0].delay_a, scenario.links[0].delay_b) = (Duration::from_secs(1), Duration::from_secs(1));
    let mut flow = Flow::new("call", a, b, Udp::poisson(Rate::mbit(1), 500));
    flow.arrivals = Some(Arrivals::Poisson { per_second: 40.0 });
    flow.lifetime = Some(Distribution::Exponential { mean: SECOND / 4 });
    flow.rows = Some(true);
    scenario.flows.push(flow);
    let results = run(&scenario);
    assert!(results.groups[0].lost > 0);
    for flow in &results.flows {
        let totals = &flow.whole_run;
        assert_eq!(totals.sent, totals.received + totals.lost + totals.in_flight);
        if flow.received > 0 {
            assert!(flow.delay.min_ns >= SECOND, "{}", flow.name);
        }
        let lifetime = flow.ended_ns.unwrap_or(results.duration_ns) - flow.started_ns;
        // 250 datagrams a second: five standard deviations above the mean, and a few for short lives.
        let mean = lifetime as f64 / 1e9 * 250.0;
        assert!(
            (flow.sent as f64) < mean + 5.0 * mean.sqrt() + 6.0,
            "{} sent {}",
            flow.name,
            flow.sent
        );
    }
}

/// A source that is silent when its flow ends has a datagram due later. The flow that has its place then must
/// not send it.
#[test]
fn events_of_a_flow_that_is_over_do_not_reach_its_successor() {
    let (mut scenario, a, b) = link(60, "fifo limit=20");
    let traffic = Udp {
        size: Distribution::Constant(500),
        pattern: Pattern::OnOff {
            rate: Rate::mbit(1),
            on: Distribution::Constant(10_000_000),
            off: Distribution::Constant(3 * SECOND),
        },
    };
    let mut burst = Flow::new("burst", a, b, traffic);
    burst.arrivals = Some(Arrivals::Poisson { per_second: 20.0 });
    burst.lifetime = Some(Distribution::Constant(SECOND / 10));
    burst.rows = Some(true);
    scenario.flows.push(burst);
    let results = run(&scenario);
    assert!(results.flows.len() > 1_000);
    // Datagrams at 0, 4 and 8 ms.
    let complete = results.flows.iter().filter(|flow| flow.ended_ns.is_some());
    assert!(complete.clone().all(|flow| flow.sent == 3));

    // Transfers end long before their lifetimes do, which must not stop others.
    scenario.flows[0] = Flow::new("transfer", a, b, transfer(Distribution::Constant(5_000)));
    scenario.flows[0].arrivals = Some(Arrivals::Poisson { per_second: 20.0 });
    scenario.flows[0].lifetime = Some(Distribution::Constant(2 * SECOND));
    let delay = Duration::from_millis(200);
    (scenario.links[0].delay_a, scenario.links[0].delay_b) = (delay, delay);
    let group = &run(&scenario).groups[0];
    assert!(group.ended > 1_000);
    assert_eq!(group.transfers.count, group.ended);
}

/// Whatever arrives, figures add up (the run checks them), and the rows of a group add up to the group.
fn arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        (1.0..200.0).prop_map(|per_second| Arrivals::Poisson { per_second }),
        (1u64..200).prop_map(|millis| Arrivals::Renewal {
            interval: Distribution::Uniform {
                low: 0,
                high: millis * 1_000_000
            }
        }),
        (1u64..12).prop_map(|mbit| Arrivals::Load {
            load: Rate::mbit(mbit)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn figures_add_up_and_do_not_depend_on_rows(
        arrivals in arrivals(),
        is_tcp in any::<bool>(),
        limit in 2u32..60,
        seed in any::<u64>(),
        opens in 0u64..3,
        lifetime in 0u64..800,
    ) {
        let (mut scenario, a, b) = link(6, "fifo limit=30");
        let spec = Spec::inline(&format!("fifo limit={limit}")).unwrap();
        scenario.links[0].queue_a = Queue::new(move |seed| spec.build(seed));
        let delay = Duration::from_millis(20);
        (scenario.links[0].delay_a, scenario.links[0].delay_b) = (delay, delay);
        scenario.measure = Duration::from_secs(opens)..Duration::from_secs(5);
        scenario.seed = seed;
        let mut flow = match is_tcp {
            true => Flow::new("flow", a, b, transfer(Distribution::TruncatedPareto {
                mean: 25_000,
                shape: 1.5,
                low: 8_000,
                high: 1_000_000,
            })),
            false => Flow::new("flow", a, b, Udp::constant(Rate::mbit(1), 900)),
        };
        let needs_lifetime = !is_tcp || !matches!(arrivals, Arrivals::Load { .. }) && lifetime % 2 == 0;
        if needs_lifetime {
            flow.lifetime = Some(Distribution::Exponential { mean: lifetime * 1_000_000 + 1_000_000 });
        }
        flow.arrivals = Some(arrivals);
        scenario.flows.push(flow);
        let together = run(&scenario);
        scenario.flows[0].rows = Some(true);
        let each = run(&scenario);
        prop_assert_eq!(&together.groups, &each.groups);
        prop_assert_eq!(&together.interfaces, &each.interfaces);
        prop_assert_eq!(together.flows.len(), 0);
        let group = &each.groups[0];
        prop_assert_eq!(each.flows.len() as u64, group.started);
        let ended = each.flows.iter().filter(|flow| flow.ended_ns.is_some()).count() as u64;
        prop_assert_eq!(ended, group.ended);
        prop_assert_eq!(group.started, group.ended + group.active);
        let sum = |figure: fn(&FlowResults) -> u64| each.flows.iter().map(figure).sum::<u64>();
        prop_assert_eq!(group.whole_run.in_flight, sum(|flow| flow.whole_run.in_flight));
        prop_assert_eq!(group.goodput_bps, sum(|flow| flow.goodput_bps));
        prop_assert_eq!(group.delay.count, sum(|flow| flow.delay.count));
        // The group's series of bytes is the sum of the flows' series.
        let mut series = vec![0u64; group.throughput_series_bps.len()];
        for flow in &each.flows {
            let first = (flow.series_from_ns / each.interval_ns) as usize;
            for (place, bits) in series[first.min(60)..].iter_mut().zip(&flow.throughput_series_bps) {
                *place += bits;
            }
        }
        for (all, of_group) in series.iter().zip(&group.throughput_series_bps) {
            // Each flow's rate is rounded down.
            prop_assert!(of_group.abs_diff(*all) <= group.started, "{} {}", all, of_group);
        }
    }
}

/// The rows of copies do not change when the group reports only together, and the copies' ends are found.
#[test]
fn copies_report_together_on_demand() {
    let (mut scenario, a, b) = link(20, "fifo limit=100");
    let mut flow = Flow::new("file", a, b, transfer(Distribution::Constant(50_000)));
    flow.count = 30;
    flow.random_start = Distribution::Uniform {
        low: 0,
        high: 10 * SECOND,
    };
    scenario.flows.push(flow);
    let each = run(&scenario);
    assert_eq!(each.flows.len(), 30);
    assert_eq!((each.groups[0].ended, each.groups[0].transfers.count), (30, 30));
    assert_eq!(each.flows[7].throughput_series_bps.len(), 200);
    assert!(each.flows.iter().all(|flow| flow.ended_ns.is_some()));
    scenario.flows[0].rows = Some(false);
    let together = run(&scenario);
    assert!(together.flows.is_empty());
    assert_eq!(together.groups[0].goodput, each.groups[0].goodput);
    assert_eq!(together.interfaces, each.interfaces);
}

#[test]
fn more_arrivals_than_ends_are_refused_or_stop_the_run() {
    let (mut scenario, a, b) = link(20, "fifo limit=100");
    let mut flow = Flow::new("endless", a, b, Tcp::bulk(tcp::Config::default()));
    flow.arrivals = Some(Arrivals::Poisson { per_second: 10.0 });
    scenario.flows.push(flow);
    let error = scenario.check().expect_err("the flows never end");
    assert_eq!(error.field, "arrivals");
    assert!(error.what.contains("must also end"), "{}", error.what);
    scenario.flows[0].lifetime = Some(Distribution::Constant(SECOND));
    scenario.check().expect("they end");
    scenario.flows[0].arrivals = Some(Arrivals::Load { load: Rate::mbit(1) });
    let error = scenario
        .check()
        .expect_err("nobody knows how much a download offers");
    assert!(error.what.contains("known mean"), "{}", error.what);
    for per_second in [0.0, -1.0, f64::NAN, 1e9] {
        scenario.flows[0].arrivals = Some(Arrivals::Poisson { per_second });
        assert!(scenario.check().is_err(), "{per_second}");
    }
}

/// Two flows of 8 Mbit/s fill a link of 10 Mbit/s, and more arrive. With admission control, later flows are
/// rejected. Those that give up end at their first rejected packet; the others go on to send in vain.
#[test]
fn flows_give_up_if_they_are_rejected() {
    let overload = |gives_up: bool, from: u64| {
        let (mut scenario, a, b) = link(20, "pdrr rate=10mbit admission=true fair_rate=1mbit limit=200");
        for name in ["first", "second"] {
            scenario
                .flows
                .push(Flow::new(name, a, b, constant(Rate::mbit(8))));
        }
        scenario.measure.start = Duration::from_secs(from);
        let mut late = Flow::new("late", a, b, constant(Rate::mbit(8)));
        late.start = Duration::from_secs(1);
        late.arrivals = Some(Arrivals::Poisson { per_second: 5.0 });
        late.lifetime = Some(Distribution::Constant(2 * SECOND));
        late.gives_up = gives_up;
        late.rows = Some(true);
        scenario.flows.push(late);
        run(&scenario)
    };
    let patient = overload(false, 0);
    assert_eq!(patient.groups[2].gave_up, 0);
    let rejected = |flow: &&FlowResults| flow.lost_by_reason.contains_key("not_admitted");
    assert!(
        patient.flows.iter().filter(rejected).count() > 10,
        "admission control rejects flows"
    );

    let results = overload(true, 0);
    let group = &results.groups[2];
    let gave_up: Vec<&FlowResults> = results.flows.iter().filter(rejected).collect();
    assert_eq!(group.gave_up, gave_up.len() as u64);
    // Of the same flows, those that start in a window.
    let late = &overload(true, 5).groups[2];
    let in_window = |flow: &&&FlowResults| flow.started_ns >= 5 * SECOND;
    let blocked = gave_up.iter().filter(in_window).count() as u64;
    assert_eq!((late.gave_up, late.blocked), (group.gave_up, blocked));
    assert!(blocked < late.offered && late.offered < late.started, "{late:?}");
    assert!(
        group.gave_up > 10 && group.gave_up <= group.ended,
        "{}",
        group.gave_up
    );
    for flow in gave_up {
        assert_eq!(
            flow.lost_by_reason["not_admitted"], 1,
            "{}: nothing follows",
            flow.name
        );
        let ended = flow.ended_ns.expect("it has given up");
        assert!(ended < flow.started_ns + 2 * SECOND, "{}", flow.name);
    }
    assert!(group.sent < patient.groups[2].sent, "they send no more");
}
