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
ping = { interval = "25ms" }

[[simulate.flow]]
name = "call"
from = "home"
to = "server"
udp = { rate = "64kbit", size = "160b" }

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

/// Returns the 95th percentile of the call's delay in milliseconds, and the payload of the uploads in Mbit/s.
fn figures(results: &Results) -> [f64; 2] {
    let group = |name: &str| results.groups.iter().find(|group| group.name == name).unwrap();
    let delay = group("call").delay.p95_ns as f64 / 1e6;
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

/// A line whose capacity is another one, from 5 to 35 Mbit/s, in each second of a minute. Returns the file,
/// and the mean capacity from second 5 on in Mbit/s. Both directions have the same capacity.
fn jumping(seed: u64, from: &str, to: &str) -> (String, f64) {
    let mut state = seed;
    let capacities: Vec<u64> = (0..60)
        .map(|_| {
            // Knuth's linear congruential generator (MMIX); its upper bits are good.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            5_000 + (state >> 33) % 30_000
        })
        .collect();
    let mean = capacities[5..].iter().sum::<u64>() as f64 / 55.0 / 1e3;
    let schedule: Vec<String> = (capacities.iter().enumerate())
        .map(|(second, kbit)| format!("[\"{second}s\", \"{kbit}kbit\"]"))
        .collect();
    let schedule = format!("[{}]", schedule.join(", "));
    let text = format!("{LINE}{FOLLOWS}{}", FOLLOWS.replace("home->modem", "modem->home"))
        .replace(
            "[[\"0s\", \"8mbit\"], [\"7s\", \"16mbit\"], [\"15s\", \"4mbit\"]], repeat = \"20s\"",
            &schedule,
        )
        .replace("queue_a = \"wan\"", "queue_a = \"wan\"\nqueue_b = \"wan\"")
        .replace(
            "base = \"8mbit\", max = \"20mbit\"",
            "base = \"20mbit\", max = \"40mbit\"",
        )
        .replace(
            "name = \"call\"\nfrom = \"home\"\nto = \"server\"",
            &format!("name = \"call\"\nfrom = \"{from}\"\nto = \"{to}\""),
        )
        .replace(
            "name = \"upload\"\nfrom = \"home\"\nto = \"server\"\ncount = 2",
            &format!("name = \"upload\"\nfrom = \"{from}\"\nto = \"{to}\"\ncount = 4"),
        );
    (text, mean)
}

/// What was learned is worth nothing after a second. So a queue drains at once, and then the rate is back.
#[test]
fn a_line_that_jumps_each_second_is_used() {
    for (from, to) in [("home", "server"), ("server", "home")] {
        let (mut used, mut delays) = (0.0, 0.0);
        for seed in 1..=4 {
            let (text, capacity) = jumping(seed, from, to);
            let [delay, goodput] = figures(&run(&text));
            // Of 1514 bytes 1448 are payload.
            used += goodput * 1514.0 / 1448.0 / capacity / 4.0;
            delays += delay / 4.0;
        }
        assert!(used > 0.8, "{from} to {to}: {used} of the line");
        assert!(delays < 110.0, "{from} to {to}: {delays} ms");
    }
}

/// The acknowledgements of a download are more than a tenth of the rate of the upload, which is not to blame.
#[test]
fn a_direction_that_only_acknowledges_keeps_its_rate() {
    let (text, _) = jumping(1, "server", "home");
    let slow = text.replacen(
        "base = \"20mbit\", max = \"40mbit\"",
        "base = \"5mbit\", max = \"40mbit\"",
        1,
    );
    let results = run(&slow);
    let upload = &results.observations[0];
    assert_eq!(upload.name, "rate of home->modem");
    assert_eq!((upload.least, upload.most), (5e6, 5e6));
    assert!(results.observations[1].least < 5e6, "the download follows");
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
