//! Measures packet-hops per second on a dumbbell of ten flows over 100 Mbit/s. Criterion's "elements" are
//! packets transmitted by an interface. The aim is more than 3 million per second and core.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fairgate::Rate;
use fairgate_sim::{Flow, Link, NodeId, Scenario, Simulation, Tcp, Traffic, Udp, tcp};

const PAIRS: usize = 10;

/// Ten senders and ten receivers on links of 1 Gbit/s, connected by a link of 100 Mbit/s.
fn dumbbell(traffic: &dyn Fn() -> Traffic) -> Scenario {
    let mut scenario = Scenario::new(Duration::from_secs(10));
    let (left, right) = (scenario.node("left"), scenario.node("right"));
    let join = |scenario: &mut Scenario, a: NodeId, b: NodeId, mbit, millis| {
        let link = Link::new(a, b, Rate::mbit(mbit), Duration::from_millis(millis));
        scenario.links.push(link);
    };
    join(&mut scenario, left, right, 100, 10);
    for index in 0..PAIRS {
        let (a, b) = (
            scenario.node(format!("sender{index}")),
            scenario.node(format!("receiver{index}")),
        );
        join(&mut scenario, a, left, 1000, 1);
        join(&mut scenario, right, b, 1000, 1);
        scenario
            .flows
            .push(Flow::new(format!("flow{index}"), a, b, traffic()));
    }
    scenario
}

fn hops(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dumbbell");
    group.sample_size(10);
    let kinds: [(&str, &dyn Fn() -> Traffic); 3] = [
        ("tcp", &|| Tcp::bulk(tcp::Config::default()).into()),
        // 12 Mbit/s each: more than the link can carry.
        ("udp_constant", &|| Udp::constant(Rate::mbit(12), 1400).into()),
        ("udp_poisson", &|| Udp::poisson(Rate::mbit(9), 1400).into()),
    ];
    for (name, traffic) in kinds {
        let scenario = dumbbell(traffic);
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

criterion_group!(benches, hops);
criterion_main!(benches);
