//! What msfc's additions to the thesis do for real TCP: flows that nobody marks find their classes by what they do.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::results::FlowResults;
use fairgate_sim::{Flow, Link, Queue, Results, Scenario, Simulation, Tcp, Udp, tcp};

/// One way, of the line and of a packet of 1400 bytes on it, ns.
const PATH: u64 = 10_000_000 + 1_200_000;

/// A 10 Mbit/s line with 20 ms of round-trip time. A call of 80 kbit/s, twelve downloads from 5 s on, and a stream of 2 Mbit/s,
/// that is nearly three times its fair share, from `stream` on. Nothing is marked. Measured from 25 s to 40 s.
fn evening(queue: &str, stream: u64) -> Results {
    let mut scenario = Scenario::new(Duration::from_secs(40));
    scenario.measure = Duration::from_secs(25)..Duration::from_secs(40);
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    let spec = Spec::inline(queue).expect("the line is right");
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
        .expect("the scenario makes sense")
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

/// Whenever it comes, the stream has all it sends at once: the downloads are below it and have the rest.
#[test]
fn an_unmarked_stream_rises_above_downloads_whether_it_was_there_before_them_or_not() {
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

/// Beside downloads of its own class a call waits for a packet of each; above them, for one or two.
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

/// With `flow_aware` a class has its ratio by flows: twice a download's share, or four times. A stream that wants more and
/// comes when the downloads are there sinks among them.
#[test]
fn flow_aware_holds_a_stream_to_its_ratio() {
    let results = evening("msfc auto_priority=true flow_aware=true", 15);
    assert!(goodput(&results, "stream") < 1_700_000);
    let call = of(&results, "call")[0];
    assert_eq!(call.lost, 0);
    assert!(
        call.delay.p95_ns < PATH + 5_000_000,
        "the call has risen all the same"
    );
}
