//! Every accepted scenario runs to its end, or stops with a reason, even if all parameters are at the ends of
//! their ranges.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::{Distribution, Error, Flow, Link, Pattern, Scenario, Simulation, Tcp, Traffic, Udp, tcp};
use proptest::prelude::*;
use proptest::sample::select;

fn rate() -> impl Strategy<Value = Rate> {
    let bits = select(vec![1, 7, 8, 1_000, 1_000_000, 1 << 40, u64::MAX - 1, u64::MAX]);
    bits.prop_map(|bits| Rate::from_bits_per_second(bits).expect("above 0"))
}

fn time() -> impl Strategy<Value = Duration> {
    let nanos = select(vec![0, 1, 1_000, 50_000, 1_000_000_000, 31_536_000_000_000_000]);
    nanos.prop_map(Duration::from_nanos)
}

fn size() -> impl Strategy<Value = Distribution> {
    select(vec![1u64, 100, 1472, 65_507]).prop_map(Distribution::Constant)
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let pattern = prop_oneof![
        rate().prop_map(|rate| Pattern::Constant { rate }),
        rate().prop_map(|rate| Pattern::Poisson { rate }),
    ];
    prop_oneof![
        (size(), pattern).prop_map(|(size, pattern)| Udp { size, pattern }.into()),
        Just(Tcp::bulk(small_window()).into()),
    ]
}

/// A window of few segments. If a round trip takes 1 ns, the number of segments is the window times the
/// duration in ns.
fn small_window() -> tcp::Config {
    tcp::Config {
        receive_buffer: 65_536,
        receive_buffer_max: 65_536,
        send_buffer_max: 65_536,
        ..tcp::Config::default()
    }
}

/// Returns the number of datagrams that a flow sends in a nanosecond.
fn datagrams_per_nanosecond(traffic: &Traffic) -> f64 {
    let Traffic::Udp(Udp { size, pattern }) = traffic else {
        return 0.0;
    };
    let (Pattern::Constant { rate } | Pattern::Poisson { rate }) = pattern else {
        unreachable!("no flow has another pattern")
    };
    let Distribution::Constant(size) = size else {
        unreachable!("no flow has another distribution")
    };
    rate.bits_per_second() as f64 / (*size as f64 * 8.0) / 1e9
}

fn queue() -> impl Strategy<Value = &'static str> {
    select(vec![
        "fifo",
        "fifo limit=1",
        "fifo limit=4294967295",
        "tbf rate=18446744073709551615bit burst=4294967295 / fifo",
        "tbf rate=1 burst=1 / fq_codel",
        "cake bandwidth=18446744073709551615bit",
        "leaky_bucket rate=8 bucket=18446744073709551615b",
        "htb default=1 { 1 rate=18446744073709551615bit / sqf }",
    ])
}

/// The most datagrams of a flow, where a nanosecond has fewer.
const MOST_DATAGRAMS: f64 = 500_000.0;

fn scenario() -> impl Strategy<Value = Scenario> {
    (
        (time(), time(), time(), time()),
        (prop::option::of(rate()), prop::option::of(rate()), 0u32..=1000),
        queue(),
        prop::collection::vec((traffic(), time(), prop::option::of(time()), 1u32..3), 1..3),
    )
        .prop_map(
            |((duration, start, interval, delay), (a, b, overhead), queue, flows)| {
                // The fastest flow sends up to 4 million datagrams in a nanosecond.
                let fastest = flows
                    .iter()
                    .map(|(traffic, ..)| datagrams_per_nanosecond(traffic));
                // Without a delay, only the rate limits the segments. The shortest has 40 bytes.
                let has_tcp = flows
                    .iter()
                    .any(|(traffic, ..)| matches!(traffic, Traffic::Tcp(_)));
                let rates = [a, b]
                    .into_iter()
                    .flatten()
                    .filter(|_| has_tcp && delay.is_zero());
                let segments = rates.map(|rate| rate.bits_per_second() as f64 / (40.0 * 8.0) / 1e9);
                let fastest = fastest.chain(segments).fold(0.0, f64::max);
                let most = (MOST_DATAGRAMS / fastest).clamp(1.0, 5_000.0);
                let mut scenario = Scenario::new(duration.min(Duration::from_nanos(most as u64)));
                scenario.measure = start.min(scenario.duration)..scenario.duration;
                scenario.interval = interval;
                let (left, right) = (scenario.node("left"), scenario.node("right"));
                let queue = Spec::inline(queue).expect("the tree is valid");
                scenario.links.push(Link {
                    rate_a: a.into(),
                    rate_b: b.into(),
                    overhead,
                    ..Link::unlimited(left, right, delay).with_queue_a(queue.into())
                });
                for (number, (traffic, start, stop, count)) in flows.into_iter().enumerate() {
                    let mut flow = Flow::new(format!("flow {number}"), left, right, traffic);
                    (flow.start, flow.stop, flow.count) = (start, stop, count);
                    scenario.flows.push(flow);
                }
                scenario
            },
        )
}

proptest! {
    // Each attempt to make a failing scenario smaller may take seconds.
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn accepted_scenarios_run_to_their_end_or_report_why_not(scenario in scenario()) {
        prop_assume!(scenario.memory() < 100_000_000);
        let in_a_nanosecond = |flow: &Flow| datagrams_per_nanosecond(&flow.traffic);
        prop_assume!(scenario.flows.iter().all(|flow| in_a_nanosecond(flow) < 4e6));
        // Some scenarios are rejected, with the field that is wrong.
        let Ok(simulation) = Simulation::new(&scenario) else { return Ok(()) };
        match simulation.run() {
            Ok(_) | Err(Error::StandsStill { .. } | Error::TooManyPackets(_)) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

fn over(
    link: impl Fn(fairgate_sim::NodeId, fairgate_sim::NodeId) -> Link,
    traffic: Traffic,
) -> Result<(), Error> {
    let mut scenario = Scenario::new(Duration::from_millis(100));
    let (left, right) = (scenario.node("left"), scenario.node("right"));
    scenario.links.push(link(left, right));
    scenario.flows.push(Flow::new("flow", left, right, traffic));
    Simulation::new(&scenario)?.run().map(|_| ())
}

/// If nothing on the path takes time, the simulation would never end.
#[test]
fn a_simulation_without_delays_is_stopped() {
    let free = |left, right| Link::unlimited(left, right, Duration::ZERO);
    let error = over(free, Tcp::bulk(Default::default()).into()).expect_err("it would never end");
    assert!(matches!(error, Error::StandsStill { .. }), "{error}");
    assert!(
        error.to_string().contains("give the links rates and delays"),
        "{error}"
    );
}

#[test]
fn a_flow_with_an_excessive_rate_is_rejected() {
    let fast = Udp::constant(Rate::from_bits_per_second(u64::MAX).expect("above 0"), 100);
    let error = over(
        |left, right| Link::new(left, right, Rate::mbit(1), Duration::ZERO),
        fast.into(),
    );
    let Err(Error::Scenario(error)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(error.field, "udp");
    assert!(error.what.contains("lower its rate"), "{}", error.what);
}

/// Three transfers have more than 2^64 bit/s together. The results say the greatest number then.
#[test]
fn excessive_goodput_is_reported() {
    let mut scenario = Scenario::new(Duration::from_nanos(1));
    scenario.interval = scenario.duration;
    scenario.measure = Duration::ZERO..scenario.duration;
    let (left, right) = (scenario.node("left"), scenario.node("right"));
    // Simulated time goes on because of the acknowledgements' link: a bit takes 1/18 of a femtosecond.
    scenario.links.push(Link {
        rate_b: Rate::from_bits_per_second(u64::MAX).expect("above 0").into(),
        overhead: 1_000,
        ..Link::unlimited(left, right, Duration::ZERO)
    });
    for name in ["one", "two", "three"] {
        let traffic = Traffic::from(Tcp::bulk(small_window()));
        scenario.flows.push(Flow::new(name, left, right, traffic));
    }
    let results = Simulation::new(&scenario).expect("is valid").run().expect("ends");
    assert_eq!(results.goodput_bps, u64::MAX);
    assert!(results.groups.iter().all(|group| group.goodput_bps > 1 << 60));
}

/// The interval is as long as the run, so only the question in between can stop it.
#[test]
fn a_caller_can_stop_a_run() {
    let mut scenario = Scenario::new(Duration::from_secs(1000));
    scenario.interval = scenario.duration;
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    let link = Link::new(a, b, Rate::mbit(10), Duration::from_millis(1));
    scenario.links.push(link);
    let traffic = Udp::constant(Rate::mbit(8), 1000);
    scenario.flows.push(Flow::new("stream", a, b, traffic));
    let mut asked = 0;
    let result = Simulation::new(&scenario).unwrap().run_while(|_| {
        asked += 1;
        asked < 3
    });
    let Err(Error::Stopped { at }) = result else {
        panic!("it ran to the end");
    };
    assert_eq!(asked, 3);
    assert!(at.nanos() < 100_000_000_000, "stopped only at {at}");
    scenario.duration = Duration::from_secs(1);
    scenario.interval = scenario.duration;
    scenario.measure = Duration::ZERO..scenario.duration;
    let whole = Simulation::new(&scenario).unwrap().run().unwrap();
    let asked = Simulation::new(&scenario).unwrap().run_while(|_| true).unwrap();
    assert_eq!(whole, asked);
}
