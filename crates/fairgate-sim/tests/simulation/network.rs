//! Properties of simulated networks: conservation, repeatability, exact rates, and formulas of queueing
//! theory.

use std::time::Duration;

use fairgate::discipline::{Algorithm, Node};
use fairgate::{ConfigError, Discipline, PacketId, PacketQueue, Pool, Rate, Time, Verdict};
use fairgate_config::Spec;
use fairgate_sim::results::InterfaceResults;
use fairgate_sim::{
    Distribution, Error, Flow, Link, NodeId, Pattern, Queue, Results, Scenario, Simulation, Udp,
};
use proptest::prelude::*;

fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_second(bits).expect("tests use rates above 0")
}

fn run(scenario: &Scenario) -> Results {
    Simulation::new(scenario)
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end")
}

/// Creates two nodes and a link.
fn two_nodes(seconds: u64, link: impl FnOnce(NodeId, NodeId) -> Link) -> (Scenario, NodeId, NodeId) {
    let mut scenario = Scenario::new(Duration::from_secs(seconds));
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    let link = link(a, b);
    scenario.links.push(link);
    (scenario, a, b)
}

/// Creates `pairs` hosts on each side of a bottleneck.
fn dumbbell(seconds: u64, pairs: usize, bottleneck: Rate, queue: Queue) -> (Scenario, Vec<(NodeId, NodeId)>) {
    let mut scenario = Scenario::new(Duration::from_secs(seconds));
    let (left, right) = (scenario.node("left"), scenario.node("right"));
    let delay = Duration::from_millis(1);
    scenario
        .links
        .push(Link::new(left, right, bottleneck, Duration::from_millis(8)).with_queue_a(queue));
    let hosts = (0..pairs)
        .map(|index| {
            let (a, b) = (
                scenario.node(format!("sender{index}")),
                scenario.node(format!("receiver{index}")),
            );
            scenario.links.push(Link::new(a, left, Rate::mbit(1000), delay));
            scenario.links.push(Link::new(right, b, Rate::mbit(1000), delay));
            (a, b)
        })
        .collect();
    (scenario, hosts)
}

fn mixed_dumbbell(seed: u64) -> Scenario {
    let (mut scenario, hosts) = dumbbell(5, 3, Rate::mbit(10), Queue::fifo(20));
    scenario.seed = seed;
    scenario.measure = Duration::from_secs(1)..Duration::from_secs(4);
    let bursts = Udp {
        size: Distribution::Uniform { low: 100, high: 1400 },
        pattern: Pattern::OnOff {
            rate: Rate::mbit(8),
            on: Distribution::Pareto {
                mean: 100_000_000,
                shape: 1.5,
            },
            off: Distribution::Exponential { mean: 100_000_000 },
        },
    };
    let mut flow = Flow::new("bursts", hosts[0].0, hosts[0].1, bursts);
    flow.count = 3;
    flow.stagger = Duration::from_millis(10);
    scenario.flows.push(flow);
    scenario.flows.push(Flow::new(
        "poisson",
        hosts[1].0,
        hosts[1].1,
        Udp::poisson(Rate::mbit(2), 500),
    ));
    scenario.flows.push(Flow::new(
        "constant",
        hosts[2].1,
        hosts[2].0,
        Udp::constant(Rate::mbit(3), 700),
    ));
    scenario
}

#[test]
fn equal_seeds_give_equal_results_and_others_differ() {
    let bytes = |seed| serde_json::to_string(&run(&mixed_dumbbell(seed))).expect("results are plain data");
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn a_flow_added_in_front_does_not_change_other_flows_random_numbers() {
    // Transmission on this link takes no time, so flows influence each other only through the queue.
    let scenario = |names: &[&str]| {
        let (mut scenario, a, b) = two_nodes(2, |a, b| Link::unlimited(a, b, Duration::from_millis(3)));
        for name in names {
            scenario
                .flows
                .push(Flow::new(*name, a, b, Udp::poisson(Rate::mbit(1), 100)));
        }
        run(&scenario)
    };
    let (without, with) = (scenario(&["y"]), scenario(&["x", "y"]));
    assert_eq!(without.flows[0], with.flows[1]);
    assert_ne!(with.flows[0].sent, with.flows[1].sent);
}

#[test]
fn a_single_packet_takes_transmission_and_propagation_of_each_link() {
    let mut scenario = Scenario::new(Duration::from_secs(1));
    let nodes: Vec<NodeId> = ["a", "b", "c"].map(|name| scenario.node(name)).to_vec();
    scenario.links.push(Link::new(
        nodes[0],
        nodes[1],
        Rate::mbit(8),
        Duration::from_millis(2),
    ));
    scenario.links.push(Link::new(
        nodes[1],
        nodes[2],
        Rate::mbit(80),
        Duration::from_millis(3),
    ));
    scenario.flows.push(Flow::new(
        "f",
        nodes[0],
        nodes[2],
        Udp::constant(Rate::mbit(1), 1000),
    ));
    let delay = &run(&scenario).flows[0].delay;
    // 1042 bytes with headers and framing: 1.042 ms and 0.1042 ms.
    assert_eq!((delay.min_ns, delay.max_ns), (6_146_200, 6_146_200));
}

#[test]
fn a_saturated_link_keeps_its_rate_to_the_nanosecond() {
    // 1042 bytes at 7 Mbit/s take 1,190,857 and 1/7 ns. In 1000 s exactly 839,731 fit, and the 839,732nd is
    // in transmission.
    let (mut scenario, a, b) = two_nodes(1000, |a, b| Link::new(a, b, Rate::mbit(7), Duration::ZERO));
    scenario
        .flows
        .push(Flow::new("f", a, b, Udp::constant(Rate::mbit(8), 1000)));
    let results = run(&scenario);
    let fit = 1_000_000_000_000u128 * 7_000_000 / (1042 * 8 * 1_000_000_000);
    assert_eq!(u128::from(results.flows[0].received), fit);
    assert_eq!(u128::from(results.interfaces[0].transmitted), fit + 1);
}

/// RED counts idle time from the dequeue that finds no packet. Eight packets that arrive after a pause find a
/// lower average. If they arrive at once, they find the average that the first flow left behind.
#[test]
fn reds_average_falls_while_the_link_is_idle() {
    let dropped_after = |pause: Duration| {
        let red = "red limit=150000 min=5000 max=15000 avpkt=1000 burst=60 bandwidth=10mbit";
        let red = Queue::from(Spec::inline(red).expect("the description of red is valid"));
        let (mut scenario, a, b) = two_nodes(100, |a, b| {
            Link::new(a, b, Rate::mbit(10), Duration::ZERO).with_queue_a(red)
        });
        // The queue exceeds `max` before the average does. From then on everything is dropped. The packets
        // queued then have left after 150 ms.
        scenario.flows.push(Flow {
            stop: Some(Duration::from_millis(10)),
            ..Flow::new("first", a, b, Udp::constant(Rate::mbit(200), 1000))
        });
        let start = Duration::from_millis(150) + pause;
        scenario.flows.push(Flow {
            start,
            stop: Some(start + Duration::from_millis(8)),
            ..Flow::new("second", a, b, Udp::constant(Rate::mbit(8), 1000))
        });
        let results = run(&scenario);
        assert!(results.flows[0].lost > 0 && results.flows[1].sent == 8);
        results.flows[1].lost
    };
    assert!(dropped_after(Duration::ZERO) > 0);
    assert_eq!(dropped_after(Duration::from_secs(60)), 0);
}

/// A fifo with a bug: it loses packets without reporting them.
struct Forgetful {
    queue: PacketQueue,
    /// One of this many packets is lost when the queue is drained.
    forgets: u32,
}

impl Algorithm for Forgetful {
    const NAME: &'static str = "forgetful";
    type Config = ();

    fn enqueue(&mut self, id: PacketId, _: Time, pool: &mut Pool) -> Verdict {
        self.queue.push_back(id, pool);
        Verdict::Queued
    }

    fn dequeue(&mut self, _: Time, pool: &mut Pool) -> Option<PacketId> {
        self.queue.pop_front(pool)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        let mut kept = 0;
        while let Some(id) = self.queue.pop_front(pool) {
            kept += 1;
            if kept % self.forgets != 0 {
                into.push_back(id, pool);
            }
        }
    }

    fn config(&self) {}

    fn reconfigure(&mut self, (): (), _: Time, _: &mut Pool) -> Result<(), ConfigError> {
        Ok(())
    }
}

#[test]
fn a_lost_packet_is_an_error_instead_of_a_result() {
    let outcome = |forgets| {
        let queue = Queue::new(move |_| {
            let queue = PacketQueue::new();
            Ok::<Box<dyn Discipline>, ConfigError>(Box::new(Node::new(Forgetful { queue, forgets })))
        });
        let (mut scenario, a, b) = two_nodes(1, |a, b| {
            Link::new(a, b, Rate::mbit(1), Duration::ZERO).with_queue_a(queue)
        });
        let flow = Flow::new("too much", a, b, Udp::constant(Rate::mbit(2), 1000));
        scenario.flows.push(flow);
        Simulation::new(&scenario).expect("the scenario is valid").run()
    };
    let correct = outcome(u32::MAX).expect("no packet is lost");
    assert!(correct.flows[0].whole_run.in_flight > 50);
    let Err(Error::Imbalance(imbalance)) = outcome(10) else {
        panic!("lost packets must be an error");
    };
    assert!(
        imbalance
            .to_string()
            .contains("the figures of forgetful do not add up"),
        "{imbalance}"
    );
}

#[test]
fn losses_are_reported_by_reason_at_flow_and_interface() {
    let (mut scenario, a, b) = two_nodes(10, |a, b| {
        Link::new(a, b, Rate::mbit(1), Duration::ZERO).with_queue_a(Queue::fifo(5))
    });
    scenario
        .flows
        .push(Flow::new("f", a, b, Udp::constant(Rate::mbit(2), 1000)));
    let results = run(&scenario);
    let flow = &results.flows[0];
    assert!(flow.lost > 1000, "{}", flow.lost);
    assert_eq!(flow.lost_by_reason["queue_limit"], flow.lost);
    assert_eq!(results.interfaces[0].dropped_by_reason, flow.lost_by_reason);
    assert_eq!(
        results.interfaces[0].backlog_series_packets.iter().max(),
        Some(&5)
    );
    assert!(results.interfaces[0].utilisation > Some(0.999));
}

/// Returns the mean of the mean sojourn times over several seeds, and its standard error, ns.
fn mean_wait(size: Distribution, arrivals: Rate, link_rate: Rate) -> (f64, f64) {
    let waits: Vec<f64> = (1..=12)
        .map(|seed| {
            let (mut scenario, a, b) = two_nodes(300, |a, b| {
                Link::new(a, b, link_rate, Duration::ZERO).with_queue_a(Queue::fifo(1_000_000))
            });
            scenario.seed = seed;
            scenario.measure.start = Duration::from_secs(10);
            let pattern = Pattern::Poisson { rate: arrivals };
            let size = size.clone();
            scenario.flows.push(Flow::new("f", a, b, Udp { size, pattern }));
            run(&scenario).interfaces[0].sojourn.mean_ns as f64
        })
        .collect();
    let count = waits.len() as f64;
    let mean = waits.iter().sum::<f64>() / count;
    let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// Returns the mean waiting time in M/G/1 (Pollaczek and Khinchine), from arrivals per second and the mean
/// and second moment of the service time.
fn pollaczek_khinchine(arrivals: f64, service: f64, service_squared: f64) -> f64 {
    arrivals * service_squared / (2.0 * (1.0 - arrivals * service))
}

fn assert_agrees(measured: (f64, f64), theory_seconds: f64) {
    let (mean, error) = measured;
    let theory = theory_seconds * 1e9;
    assert!(
        error < 0.03 * theory,
        "the measurement is too noisy: {mean} +- {error} ns"
    );
    assert!(
        (mean - theory).abs() < 4.0 * error,
        "measured {mean} +- {error} ns, theory {theory} ns"
    );
}

#[test]
fn the_mean_wait_equals_that_of_m_d_1() {
    // 1042 bytes at 8.336 Mbit/s take 1 ms. 700 arrive per second.
    let measured = mean_wait(Distribution::Constant(1000), rate(5_600_000), rate(8_336_000));
    assert_agrees(measured, pollaczek_khinchine(700.0, 1e-3, 1e-6));
}

#[test]
fn the_mean_wait_equals_that_of_m_m_1() {
    // Exponential payloads of 5000 bytes on average at 40.336 Mbit/s, 700 per second. This is M/M/1 except
    // for the 42 constant bytes of headers. The formula includes them: second moment = variance + square of
    // the mean.
    let measured = mean_wait(
        Distribution::Exponential { mean: 5000 },
        rate(28_000_000),
        rate(40_336_000),
    );
    let of_bytes = |bytes: f64| bytes * 8.0 / 40_336_000.0;
    let second_moment = of_bytes(5000.0).powi(2) + of_bytes(5042.0).powi(2);
    assert_agrees(
        measured,
        pollaczek_khinchine(700.0, of_bytes(5042.0), second_moment),
    );
}

/// Returns the goodputs of four sources that join a chain of routers one after another (MSFC, Figure 1.5),
/// and the last link.
fn parking_lot(queue: &Queue) -> (Vec<f64>, InterfaceResults) {
    let mut scenario = Scenario::new(Duration::from_secs(40));
    scenario.measure.start = Duration::from_secs(5);
    let routers: Vec<NodeId> = (0..4).map(|index| scenario.node(format!("r{index}"))).collect();
    for pair in routers.windows(2) {
        scenario.links.push(
            Link::new(pair[0], pair[1], Rate::mbit(10), Duration::from_millis(1)).with_queue_a(queue.clone()),
        );
    }
    for (index, at) in [0, 0, 1, 2].into_iter().enumerate() {
        let host = scenario.node(format!("host{index}"));
        let access = Link::new(host, routers[at], Rate::mbit(1000), Duration::from_millis(1));
        scenario.links.push(access);
        // As much as the link can carry, with random gaps and lengths. Equal lengths at equal rates lock in
        // phase, and one of two sources gets everything (Floyd and Jacobson 1992).
        let udp = Udp {
            size: Distribution::Uniform { low: 200, high: 1400 },
            pattern: Pattern::Poisson {
                rate: rate(9_500_000),
            },
        };
        scenario
            .flows
            .push(Flow::new(format!("f{index}"), host, routers[3], udp));
    }
    let results = run(&scenario);
    let goodputs = results.flows.iter().map(|flow| flow.goodput_bps as f64).collect();
    (goodputs, results.interfaces[4].clone())
}

#[test]
fn a_parking_lot_of_fifos_starves_flows_with_long_paths() {
    let (goodputs, last) = parking_lot(&Queue::fifo(50));
    // Drop-tail favours the smoother stream, so the shares are only near 1/8, 1/8, 1/4 and 1/2.
    assert!((goodputs[0] / goodputs[1] - 1.0).abs() < 0.05, "{goodputs:?}");
    assert!(goodputs[2] > 1.3 * goodputs[1], "{goodputs:?}");
    assert!(goodputs[3] > 1.5 * goodputs[2], "{goodputs:?}");
    assert_eq!((last.name.as_str(), last.rate_bps), ("r2->r3", Some(10_000_000)));
    assert!(last.utilisation > Some(0.999), "{:?}", last.utilisation);
}

#[test]
fn a_parking_lot_of_fair_queues_gives_each_flow_a_quarter() {
    let drr = Spec::inline("drr").expect("drr needs no parameters");
    let (goodputs, last) = parking_lot(&drr.into());
    let total: f64 = goodputs.iter().sum();
    for goodput in &goodputs {
        assert!((goodput / total - 0.25).abs() < 0.005, "{goodputs:?}");
    }
    assert!(last.utilisation > Some(0.999), "{:?}", last.utilisation);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// In random networks, every packet sent was received, was lost, or is in flight.
    #[test]
    fn packets_are_conserved(
        seed in any::<u64>(),
        bottleneck in 1_000_000u64..50_000_000,
        limit in 1u32..200,
        offered in prop::collection::vec((100_000u64..20_000_000, 1u32..1400, 0u8..3, any::<bool>()), 1..6),
    ) {
        let (mut scenario, hosts) = dumbbell(2, offered.len(), rate(bottleneck), Queue::fifo(limit));
        scenario.seed = seed;
        for (index, (bits, size, kind, back)) in offered.into_iter().enumerate() {
            let (a, b) = if back { (hosts[index].1, hosts[index].0) } else { hosts[index] };
            let distribution = Distribution::Exponential { mean: 50_000_000 };
            let pattern = match kind {
                0 => Pattern::Constant { rate: rate(bits) },
                1 => Pattern::Poisson { rate: rate(bits) },
                _ => Pattern::OnOff { rate: rate(bits), on: distribution.clone(), off: distribution },
            };
            let size = Distribution::Constant(size.into());
            scenario.flows.push(Flow::new(format!("f{index}"), a, b, Udp { size, pattern }));
        }
        let results = run(&scenario);
        let mut in_flight = 0;
        for flow in &results.flows {
            let totals = &flow.whole_run;
            prop_assert_eq!(totals.sent, totals.received + totals.lost + totals.in_flight);
            in_flight += totals.in_flight;
        }
        let lost: u64 = results.flows.iter().map(|flow| flow.lost).sum();
        prop_assert_eq!(lost, results.interfaces.iter().map(|interface| interface.dropped).sum::<u64>());
        // At most bandwidth times delay, plus all queues full.
        prop_assert!(in_flight < 200 + 50_000_000 / 8 / 10 + 2000 * results.flows.len() as u64);
    }
}
