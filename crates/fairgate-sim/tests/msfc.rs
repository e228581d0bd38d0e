//! What msfc's additions to the thesis do for real TCP: unmarked flows find their classes by what they do.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::{Flow, Link, Queue, Results, Scenario, Simulation, Tcp, Udp, tcp};

/// A 10 Mbit/s line with 20 ms of round-trip time: `calls` of 80 kbit/s each, and after 20 s as many downloads. Nothing is
/// marked. Measured from 40 s to 60 s.
fn calls_and_downloads(queue: &str, call: Rate, downloads: u32) -> Results {
    let mut scenario = Scenario::new(Duration::from_secs(60));
    scenario.measure = Duration::from_secs(40)..Duration::from_secs(60);
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    let spec = Spec::inline(queue).expect("the line is right");
    let link = Link::new(a, b, Rate::mbit(10), Duration::from_millis(10));
    scenario
        .links
        .push(link.with_queue_a(Queue::new(move |seed| spec.build(seed))));
    scenario
        .flows
        .push(Flow::new("call", a, b, Udp::constant(call, 200)));
    let mut download = Flow::new("download", a, b, Tcp::bulk(tcp::Config::default()));
    download.count = downloads;
    download.start = Duration::from_secs(20);
    download.stagger = Duration::from_millis(100);
    scenario.flows.push(download);
    Simulation::new(&scenario)
        .expect("the scenario makes sense")
        .run()
        .expect("the simulation runs to its end")
}

/// Beside downloads of its own class a call waits for a packet of each; above them, for one or two.
#[test]
fn an_unmarked_call_rises_above_downloads_and_waits_less() {
    let call = Rate::from_bits_per_second(80_000).expect("above 0");
    let delay = |queue| {
        let results = calls_and_downloads(queue, call, 12);
        assert_eq!(results.flows[0].lost, 0);
        results.flows[0].delay.mean_ns
    };
    let (plain, auto) = (delay("msfc"), delay("msfc auto_priority=true"));
    let both = delay("msfc auto_priority=true flow_aware=true");
    println!("mean delay of the call: {plain} ns, auto_priority {auto} ns, and flow_aware {both} ns");
    // 10.2 ms are the line's own.
    let queueing = |delay: u64| delay - 10_000_000;
    assert!(queueing(auto) < queueing(plain) / 2, "{auto} of {plain}");
    assert!(queueing(both) < queueing(plain) / 2, "{both} of {plain}");
}

/// A stream of 1 Mbit/s beside 20 downloads: its fair share of 10 Mbit/s is half of that. It was there before them, in
/// peace, and so has risen; they sink by their drops, and it has four times their share.
#[test]
fn an_unmarked_stream_keeps_its_rate_beside_many_downloads() {
    let rate = |queue| calls_and_downloads(queue, Rate::mbit(1), 20).flows[0].goodput_bps;
    let plain = rate("msfc");
    let both = rate("msfc auto_priority=true flow_aware=true");
    println!("goodput of the stream: {plain} bit/s, auto_priority and flow_aware {both} bit/s");
    assert!(plain < 700_000, "{plain}");
    assert!(both > 950_000, "{both}");
}
