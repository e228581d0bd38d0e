//! Measures packet-hops per second on a dumbbell of ten flows over 100 Mbit/s, and of 10,000 over 1 Gbit/s.
//! Criterion's "elements" are packets transmitted by an interface. The aim is more than 3 million per second
//! and core. Then measures how long it takes to set up 10,000 pairs of hosts. The aim is less than a second.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fairgate::Rate;
use fairgate_sim::{Flow, Link, NodeId, Scenario, Simulation, Tcp, Traffic, Udp, tcp};

/// Senders and receivers on links of 1 Gbit/s, connected by a link of 100 Mbit/s. With more than one flow for
/// each pair, all rates are ten times as high, and results are those of groups.
fn dumbbell(pairs: usize, traffic: &dyn Fn() -> Traffic, flows: u32) -> Scenario {
    let mut scenario = Scenario::new(Duration::from_secs(if flows == 1 { 10 } else { 4 }));
    let faster = if flows == 1 { 1 } else { 10 };
    let (left, right) = (scenario.node("left"), scenario.node("right"));
    let join = |scenario: &mut Scenario, a: NodeId, b: NodeId, mbit, millis| {
        let link = Link::new(a, b, Rate::mbit(mbit), Duration::from_millis(millis));
        scenario.links.push(link);
    };
    join(&mut scenario, left, right, 100 * faster, 10);
    for index in 0..pairs {
        let (a, b) = (
            scenario.node(format!("sender{index}")),
            scenario.node(format!("receiver{index}")),
        );
        join(&mut scenario, a, left, 1000 * faster, 1);
        join(&mut scenario, right, b, 1000 * faster, 1);
        let mut flow = Flow::new(format!("flow{index}"), a, b, traffic());
        flow.count = flows;
        flow.stagger = Duration::from_micros(100);
        flow.rows = Some(flows == 1);
        scenario.flows.push(flow);
    }
    scenario
}

fn hops(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dumbbell");
    group.sample_size(10);
    let tcp: &dyn Fn() -> Traffic = &|| Tcp::bulk(tcp::Config::default()).into();
    let kinds: [(&str, &dyn Fn() -> Traffic, u32); 4] = [
        ("tcp", tcp, 1),
        // 12 Mbit/s each: more than the link can carry.
        ("udp_constant", &|| Udp::constant(Rate::mbit(12), 1400).into(), 1),
        ("udp_poisson", &|| Udp::poisson(Rate::mbit(9), 1400).into(), 1),
        ("tcp_10000", tcp, 1_000),
    ];
    for (name, traffic, flows) in kinds {
        let scenario = dumbbell(10, traffic, flows);
        let ready = || Simulation::new(&scenario).expect("the dumbbell is valid");
        let hops = ready().run().expect("the queues have limits").packet_hops;
        group.throughput(Throughput::Elements(hops));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                ready,
                |simulation| black_box(simulation.run()),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn set_up(criterion: &mut Criterion) {
    let scenario = dumbbell(10_000, &|| Udp::constant(Rate::mbit(1), 1400).into(), 1);
    let mut group = criterion.benchmark_group("set_up");
    group.sample_size(10);
    group.bench_function("10000_pairs", |bencher| {
        bencher.iter_with_large_drop(|| black_box(Simulation::new(&scenario)));
    });
    group.finish();
}

criterion_group!(benches, hops, set_up);
criterion_main!(benches);
