//! The effect of msfc's additions to the thesis on real TCP: unmarked flows get their classes by their
//! behaviour.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::results::FlowResults;
use fairgate_sim::{Flow, Link, Queue, Results, Scenario, Simulation, Tcp, Udp, tcp};

/// The one-way delay of the link and the transmission time of a packet of 1400 bytes, ns.
const PATH: u64 = 10_000_000 + 1_200_000;

/// Simulates a link of 10 Mbit/s with a round-trip time of 20 ms: a call of 80 kbit/s, twelve downloads from
/// 5 s on, and a stream of 2 Mbit/s from `stream` on, which is nearly three times its fair share. No packet
/// is marked. The measurement is from 25 s to 40 s.
fn evening(queue: &str, stream: u64) -> Results {
    let mut scenario = Scenario::new(Duration::from_secs(40));
    scenario.measure = Duration::from_secs(25)..Duration::from_secs(40);
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    let spec = Spec::inline(queue).expect("the description is valid");
    let link = Link::new(a, b, Rate::mbit(10), Duration::from_millis(10));
    scenario
        .links
        .push(link.with_queue_a(Queue::new(move |seed| spec.build(seed))));
    let call = Rate::from_bits_per_second(80_000).expect("above 0");
    let stream = Flow {
        start: Duration::from_secs(stream),
        ..Flow::new("stream", a, b, Udp::constant(Rate::mbit(2), 1400))
    };
    let downloads = Flow {
        count: 12,
        start: Duration::from_secs(5),
        stagger: Duration::from_millis(100),
        ..Flow::new("download", a, b, Tcp::bulk(tcp::Config::default()))
    };
    let call = Flow::new("call", a, b, Udp::constant(call, 200));
    scenario.flows.extend([call, stream, downloads]);
    Simulation::new(&scenario)
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end")
}

fn of<'a>(results: &'a Results, group: &str) -> Vec<&'a FlowResults> {
    let flows = results.flows.iter().filter(|flow| flow.group == group);
    flows.collect()
}

fn goodput(results: &Results, group: &str) -> u64 {
    of(results, group).iter().map(|flow| flow.goodput_bps).sum()
}

/// Whenever the stream starts, it gets all it sends at once: the downloads are in a lower class and get the
/// rest.
#[test]
fn an_unmarked_stream_rises_above_downloads_whenever_it_starts() {
    for start in [0, 15] {
        let plain = evening("msfc", start);
        assert!(goodput(&plain, "stream") < 1_000_000, "a fair share");
        let auto = evening("msfc auto_priority=true", start);
        let stream = of(&auto, "stream")[0];
        assert_eq!(stream.lost, 0, "from {start} s on");
        assert!(stream.goodput_bps > 1_990_000, "{}", stream.goodput_bps);
        assert!(stream.delay.p95_ns < PATH + 5_000_000, "{}", stream.delay.p95_ns);
        let downloads = goodput(&auto, "download");
        assert!((6_500_000..7_900_000).contains(&downloads), "{downloads}");
        let least = of(&auto, "download").iter().map(|flow| flow.goodput_bps).min();
        assert!(least > Some(200_000), "no download starves: {least:?}");
    }
}

/// In the class of the downloads, a call waits for a packet of each download. In a higher class, it waits for
/// one or two packets.
#[test]
fn an_unmarked_call_waits_less_above_downloads() {
    let queueing = |queue: &str| {
        let results = evening(queue, 15);
        let call = of(&results, "call")[0];
        assert_eq!(call.lost, 0);
        call.delay.mean_ns - 10_000_000
    };
    let (plain, auto) = (queueing("msfc"), queueing("msfc auto_priority=true"));
    assert!(auto < plain / 3, "{auto} of {plain} ns");
}

/// With `flow_aware`, a class gets its ratio per flow: twice or four times the share of a download. A stream
/// that sends more and starts after the downloads falls to their class.
#[test]
fn flow_aware_holds_a_stream_to_its_ratio() {
    let results = evening("msfc auto_priority=true flow_aware=true", 15);
    assert!(goodput(&results, "stream") < 1_700_000);
    let call = of(&results, "call")[0];
    assert_eq!(call.lost, 0);
    assert!(
        call.delay.p95_ns < PATH + 5_000_000,
        "the call is in a higher class, too"
    );
}
