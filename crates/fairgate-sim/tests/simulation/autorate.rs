//! Rates that follow a line: what is gained, and how mistakes are reported.

use crate::common::{read, run};
use fairgate_sim::Results;

/// A line between 4 and 16 Mbit/s with a deep queue, behind a shaper.
const LINE: &str = r#"
[queue.wan]
discipline = "tbf"
rate = "10mbit"
burst = "20kb"
inner = { discipline = "fq_codel" }

[queue.plain]
discipline = "fq_codel"

[queue.tree]
discipline = "htb"
default = 2
class = [
    { id = 1, rate = "10mbit" },
    { id = 2, parent = 1, rate = "3mbit", ceil = "20mbit", discipline = "fq_codel" },
]

[simulate]
duration = "60s"
measure = ["5s", "60s"]

[[simulate.link]]
a = "home"
b = "modem"
rate = "1gbit"
queue_a = "wan"

[[simulate.link]]
a = "modem"
b = "server"
rate = { schedule = [["0s", "8mbit"], ["7s", "16mbit"], ["15s", "4mbit"]], repeat = "20s" }
delay = "15ms"

[[simulate.flow]]
name = "ping"
from = "home"
to = "server"
ping = { interval = "50ms" }

[[simulate.flow]]
name = "upload"
from = "home"
to = "server"
count = 2
tcp = {}
"#;

const FOLLOWS: &str = r#"
[[simulate.autorate]]
interface = "home->modem"
probe = "ping"
rate = { min = "2mbit", base = "8mbit", max = "20mbit" }
"#;

/// Returns the 95th percentile of the ping's delay in milliseconds, and the payload of the uploads in Mbit/s.
fn figures(results: &Results) -> [f64; 2] {
    let group = |name: &str| results.groups.iter().find(|group| group.name == name).unwrap();
    let delay = group("ping").delay.p95_ns as f64 / 1e6;
    [delay, group("upload").goodput_bps as f64 / 1e6]
}

#[test]
fn the_queue_of_the_line_stays_short_and_most_of_it_is_used() {
    let fixed = |rate: &str| {
        figures(&run(
            &LINE.replace("\"10mbit\"\nburst", &format!("\"{rate}\"\nburst"))
        ))
    };
    let follows = run(&format!("{LINE}{FOLLOWS}"));
    let [delay, goodput] = figures(&follows);
    let [low_delay, low] = fixed("3800kbit");
    let [high_delay, high] = fixed("16mbit");
    assert!(delay < high_delay / 3.0, "{delay} ms, fixed {high_delay} ms");
    assert!(
        goodput > 1.7 * low,
        "{goodput} Mbit/s, fixed {low} Mbit/s with {low_delay} ms"
    );
    assert!(goodput > 0.75 * high, "{goodput} Mbit/s of {high}");

    let rate = &follows.observations[0];
    assert_eq!(
        (rate.name.as_str(), rate.unit.as_str()),
        ("rate of home->modem", "bit/s")
    );
    assert!(
        rate.least >= 2e6 && rate.most <= 20e6,
        "{} to {}",
        rate.least,
        rate.most
    );
    // It was below 5 Mbit/s in some of the slow intervals, and above 12 in some of the fast ones.
    assert!(
        rate.least < 5e6 && rate.most > 12e6,
        "{} to {}",
        rate.least,
        rate.most
    );
    assert_eq!(rate.series.len(), 600);
    assert_eq!(
        follows,
        run(&format!("{LINE}{FOLLOWS}")),
        "the same file has the same results"
    );
}

/// Without load the rate is the base, whatever the tree says.
#[test]
fn the_base_is_set_at_the_start() {
    let idle = LINE.replace(
        "count = 2\ntcp = {}",
        "stop = \"1ms\"\nudp = { rate = \"8kbit\", size = \"100b\" }",
    );
    let results = run(&format!("{idle}{FOLLOWS}"));
    let rate = &results.observations[0];
    assert_eq!((rate.least, rate.most), (8e6, 8e6));
}

#[test]
fn a_class_above_all_others_follows_too() {
    let tree = LINE.replace("queue_a = \"wan\"", "queue_a = \"tree\"");
    let follows = FOLLOWS.replace("min = \"2mbit\"", "min = \"3mbit\"");
    let results = run(&format!("{tree}{follows}"));
    let [delay, goodput] = figures(&results);
    assert!(delay < 400.0 && goodput > 4.0, "{delay} ms, {goodput} Mbit/s");
    assert!(results.observations[0].least < 5e6);
}

#[test]
fn mistakes_are_reported_with_their_location() {
    let refused = |from: &str, to: &str| {
        let text = format!("{LINE}{FOLLOWS}");
        assert!(text.contains(from), "{from}");
        let error = read(&text.replace(from, to)).expect_err(to);
        let problem = &error.problems()[0];
        assert!(
            problem.position().0 > 1 && !problem.help.is_empty(),
            "{problem:?}"
        );
        problem.message.clone()
    };
    for (from, to, message) in [
        (
            "interface = \"home->modem\"",
            "interface = \"home->mode\"",
            "there is no interface `home->mode`",
        ),
        (
            "interface = \"home->modem\"",
            "interface = \"modem->server\"",
            "not a tree with a rate",
        ),
        (
            "queue_a = \"wan\"",
            "queue_a = \"plain\"",
            "`fq_codel` has no rate",
        ),
        ("probe = \"ping\"", "probe = \"pong\"", "there is no flow `pong`"),
        (
            "probe = \"ping\"",
            "probe = \"upload\"",
            "`upload` is not a single flow that pings",
        ),
        (
            "queue_a = \"wan\"",
            "queue_a = \"tree\"",
            "are guaranteed 3000000 bit/s",
        ),
        (
            "max = \"20mbit\"",
            "max = \"7mbit\"",
            "`base` is 8mbit, but must be at most `max`",
        ),
        (
            "probe = \"ping\"",
            "probe = \"ping\"\ntuning = { probe_interval = \"1s\" }",
            "in a simulation the pings",
        ),
        (
            "probe = \"ping\"",
            "probe = \"ping\"\ntuning = { late = 7 }",
            "`late` is 7",
        ),
        (
            "interface = \"home->modem\"",
            "interface = \"home->modem\"\neach = { i = 2 }",
            "follows already",
        ),
    ] {
        let found = refused(from, to);
        assert!(found.contains(message), "{to}: {found}");
    }
}
