//! Scenarios with real traffic, a few seconds each. They need root, and say so if they did not run.

#[path = "../../../fairgate-live/src/testing/attempts.rs"]
mod attempts;
#[path = "../../../fairgate-live/src/testing/deadline.rs"]
#[allow(dead_code)]
mod deadline;

use std::ops::Range;
use std::process::Command;

use attempts::{Times, measured};
use deadline::{alone, say, watch_live};

use fairgate_config::Document;
use fairgate_evidence::lab::{KernelQueue, Lab, Live};
use fairgate_live::testbed::Interrupt;
use fairgate_sim::results::GroupResults;
use fairgate_sim::{Scenario, Simulation};

/// Two classes of CBQ as in the experiment `altq-guarantee`, a call, a ping, and requests over TCP.
const CLASSES: &str = r#"
[queue.line]
discipline = "cbq"
bandwidth = "20mbit"
packet = "1500b"
max_packet = "1500b"
default = 9
[[queue.line.class]]
id = 100
rate = "20mbit"
[[queue.line.class]]
id = 1
parent = 100
rate = "4mbit"
borrow = false
discipline = "fifo"
limit = 50
[[queue.line.class]]
id = 9
parent = 100
rate = "16mbit"
discipline = "fifo"
limit = 50
[[queue.line.filter]]
class = 1
destination_port = 5000

[simulate]
duration = "3s"
interval = "400ms"
measure = ["1s", "3s"]

[[simulate.link]]
a = "A"
b = "B"
rate = "100mbit"
delay = "300us"
overhead = 0

[[simulate.link]]
a = "B"
b = "C"
rate = "20mbit"
delay = "1ms"
overhead = 0
queue_a = "line"

[[simulate.flow]]
name = "held"
from = "B"
to = "C"
port = 5000
start = "200ms"
tcp = { receive_buffer = "64kb" }

[[simulate.flow]]
name = "background"
from = "A"
to = "C"
port = 6000
count = 2
tcp = {}

[[simulate.flow]]
name = "call"
from = "C"
to = "A"
udp = { rate = "80kbit", size = "200b" }

[[simulate.flow]]
name = "ping"
from = "C"
to = "B"
ping = { interval = "50ms" }

[[simulate.flow]]
name = "requests"
from = "B"
to = "A"
request = { request = "100b", response = "2000b", think = "20ms" }
"#;

fn scenario(text: &str) -> Scenario {
    let document = Document::parse("lab.toml", text).expect("the text is a configuration");
    Scenario::read(&document).unwrap_or_else(|error| panic!("{error:?}"))
}

fn run(scenario: &Scenario, kernel: &[KernelQueue]) -> Live {
    let interrupt = Interrupt::catch_while_busy().expect("signals can be caught");
    let lab = Lab {
        interrupt: &interrupt,
        kernel,
    };
    let live = lab.run(scenario, &|_| ());
    assert_eq!(namespaces(), "", "everything is taken down");
    live.unwrap_or_else(|error| panic!("{error:?}"))
}

fn group<'a>(live: &'a Live, name: &str) -> &'a GroupResults {
    let mut groups = live.results.groups.iter();
    groups
        .find(|group| group.name == name)
        .expect("the scenario has it")
}

/// Returns the namespaces of this process.
fn namespaces() -> String {
    let output = Command::new("ip")
        .args(["netns", "list"])
        .output()
        .expect("ip is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let own = format!("fg-{}-", std::process::id());
    text.lines().filter(|line| line.starts_with(&own)).collect()
}

/// Records whether a measured value is in its range.
fn expect(times: &mut Times, what: &str, value: f64, range: Range<f64>) {
    times.expect(
        range.contains(&value),
        format!("{what}: {value}, not in {range:?}"),
    );
}

/// The shares of classes, and that every kind of traffic arrives. CBQ alone holds the class at its rate, or
/// it has all or nothing. Of 14 attempts beside light commands the lowest were 3.11 Mbit/s and a
/// utilisation of 0.777; why is not measured.
#[test]
fn classes_have_their_shares_live_as_in_the_simulator() {
    let scenario = scenario(CLASSES);
    let simulated = Simulation::new(&scenario).unwrap().run().unwrap();
    measured("classes_have_their_shares_live_as_in_the_simulator", 0.0, || {
        let mut times = Times::default();
        let live = run(&scenario, &[]);
        for (own, other) in live.results.groups.iter().zip(&simulated.groups) {
            assert_eq!(
                (&own.name, &own.transport, own.flows),
                (&other.name, &other.transport, other.flows)
            );
            assert_eq!(own.throughput_series_bps.len(), other.throughput_series_bps.len());
        }
        let mbit = |name: &str| group(&live, name).throughput_bps as f64 / 1e6;
        expect(&mut times, "the class of 4 Mbit/s", mbit("held"), 3.0..4.4);
        expect(
            &mut times,
            "the rest of 20 Mbit/s",
            mbit("background"),
            12.0..16.5,
        );
        let bottleneck = &live.results.interfaces[2];
        assert_eq!(bottleneck.name, "B->C");
        let utilisation = bottleneck.utilisation.expect("the link has a rate");
        expect(&mut times, "utilisation", utilisation, 0.75..1.05);

        let call = group(&live, "call");
        // 50 datagrams a second.
        expect(&mut times, "datagrams of the call", call.sent as f64, 80.0..121.0);
        assert_eq!(call.lost, 0);
        // Two links, with 1.3 ms of propagation. Nothing arrives earlier.
        assert!(call.delay.p50_ns > 1_200_000, "{}", call.delay.p50_ns);
        let ping = group(&live, "ping");
        assert!(ping.delay.p50_ns > 900_000, "{ping:?}");
        expect(&mut times, "pings", ping.sent as f64, 30.0..42.0);
        let requests = group(&live, "requests").transfers.count as f64;
        expect(&mut times, "requests", requests, 11.0..f64::INFINITY);
        assert!((0.0..=1.0).contains(&live.machine.idle));
        times
    });
}

/// The kernel's own discipline in the place of ours.
#[test]
fn the_kernels_fifo_shapes_too() {
    let mut scenario = scenario(CLASSES);
    scenario.flows.retain(|flow| flow.name == "background");
    measured("the_kernels_fifo_shapes_too", 0.0, || {
        let queue = KernelQueue {
            interface: "B->C".into(),
            script: "qdisc add dev DEV root tbf rate 8mbit burst 6000 limit 75000".into(),
        };
        let live = run(&scenario, &[queue]);
        let rate = group(&live, "background").throughput_bps as f64 / 1e6;
        let mut times = Times::default();
        expect(&mut times, "the rate", rate, 6.5..8.5);
        times
    });
}
