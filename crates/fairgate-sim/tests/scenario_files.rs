//! Scenario files: what they may contain, and how each mistake is reported at its location.

use std::time::Duration;

use fairgate_config::Document;
use fairgate_sim::{Scenario, Simulation};

fn read(text: &str) -> Result<Scenario, fairgate_config::FileError> {
    Scenario::read(&Document::parse("test.toml", text).expect("the queues are valid"))
}

const HOME: &str = r#"
[queue.wan]
discipline = "tbf"
rate = "20mbit"
burst = "5kb"
inner = { discipline = "fifo", limit = 100 }

[simulate]
duration = "10s"
measure = ["2s", "10s"]
seed = 7

[[simulate.node]]
name = "home"
address = "192.168.1.2"

[[simulate.link]]
a = "home"
b = "router"
delay = "5ms"
queue_b = "wan"

[[simulate.link]]
a = "router"
b = "server"
rate_a = "100mbit"
rate_b = "50mbit"
delay = "5ms"

[[simulate.flow]]
name = "downloads"
from = "server"
to = "home"
count = 2
stagger = "100ms"
tcp = { congestion_control = "reno" }

[[simulate.flow]]
name = "pages"
from = "server"
to = "home"
start = "1s"
tcp = { size = { pareto = "50kb", shape = 1.5 }, pause = { exponential = "1s" }, transfers = 5 }

[[simulate.flow]]
name = "call"
from = "home"
to = "server"
route = ["home", "router", "server"]
dscp = 46
ecn = true
class = "10:1"
udp = { rate = "64kbit", size = "160b", pattern = "on_off",
        on = { normal = "1s", deviation = "1s", between = ["0s", "2s"] }, off = "500ms" }
"#;

#[test]
fn a_whole_scenario_is_read_and_runs() {
    let scenario = read(HOME).unwrap();
    assert_eq!(scenario.measure, Duration::from_secs(2)..Duration::from_secs(10));
    assert_eq!(scenario.seed, 7);
    assert_eq!(scenario.nodes.len(), 3);
    let results = Simulation::new(&scenario).unwrap().run().unwrap();
    let names: Vec<&str> = results.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["downloads-1", "downloads-2", "pages", "call"]);
    assert_eq!(results.interfaces[1].name, "router->home");
    assert_eq!(results.interfaces[1].discipline, "tbf");
    // The shaper's 20 Mbit/s, minus headers.
    assert!(
        (18_500_000..19_150_000).contains(&results.groups[0].goodput_bps),
        "{:?}",
        results.groups
    );
}

#[test]
fn the_network_of_a_live_run_is_simulated_from_the_same_file() {
    let text = r#"
[queue.wan]
discipline = "tbf"
rate = "10mbit"
burst = "5kb"
inner = { discipline = "fifo", limit = 50 }

[run]
left = "eth0"
right = "eth1"
left_to_right = "wan"
delay = "10ms"

[simulate]
duration = "10s"
measure = ["3s", "10s"]

[[simulate.flow]]
name = "upload"
from = "left"
to = "right"
tcp = {}
"#;
    let results = Simulation::new(&read(text).unwrap()).unwrap().run().unwrap();
    assert!(
        results.goodput_bps.abs_diff(9_564_000) < 100_000,
        "{}",
        results.goodput_bps
    );
    let queue = &results.interfaces[2];
    assert_eq!(
        (queue.name.as_str(), queue.discipline.as_str()),
        ("router->right", "tbf")
    );
    assert!(results.flows[0].delay.min_ns >= 10_000_000);
}

/// Reads an invalid variant of [`HOME`]. Returns the location and the message.
fn mistake(from: &str, to: &str) -> (String, String) {
    assert!(HOME.contains(from), "{from} is not in the file");
    let text = HOME.replacen(from, to, 1);
    let error = read(&text).expect_err(to);
    let problem = &error.problems()[0];
    (
        text[problem.span.clone()].to_owned(),
        format!("{}; {}", problem.message, problem.help),
    )
}

#[test]
fn every_mistake_is_reported_at_its_location() {
    for (from, to, location, text) in [
        ("duration = \"10s\"", "duration = \"0s\"", "\"0s\"", "above 0"),
        ("duration = \"10s\"", "duration = \"10\"", "\"10\"", "unit"),
        (
            "[\"2s\", \"10s\"]",
            "[\"2s\", \"11s\"]",
            "[\"2s\", \"11s\"]",
            "measurement window",
        ),
        (
            "[\"2s\", \"10s\"]",
            "[\"2s\", \"9s\", \"10s\"]",
            "[\"2s\", \"9s\", \"10s\"]",
            "the list has 3",
        ),
        ("[\"2s\", \"10s\"]", "[\"2s\"]", "[\"2s\"]", "the list has 1"),
        (
            "{ exponential = \"1s\" }",
            "{ uniform = [\"1s\", \"2s\", \"3s\"] }",
            "[\"1s\", \"2s\", \"3s\"]",
            "the list has 3",
        ),
        ("seed = 7", "seeds = 7", "seeds", "unknown field"),
        (
            "\"192.168.1.2\"",
            "\"192.168.1\"",
            "\"192.168.1\"",
            "not an IP address",
        ),
        ("b = \"router\"", "b = \"home\"", "\"home\"", "to itself"),
        (
            "queue_b = \"wan\"",
            "queue_b = \"lan\"",
            "\"lan\"",
            "no queue `lan`",
        ),
        (
            "rate_a = \"100mbit\"",
            "rate_a = \"0mbit\"",
            "\"0mbit\"",
            "above 0",
        ),
        (
            "rate_b = \"50mbit\"",
            "rate = \"50mbit\"",
            "\"100mbit\"",
            "for both ends and also for one",
        ),
        ("to = \"home\"", "to = \"hone\"", "\"hone\"", "no node `hone`"),
        (
            "b = \"server\"",
            "b = \"other\"",
            "\"server\"",
            "no node `server`",
        ),
        ("count = 2", "count = 0", "0", "from 1"),
        ("dscp = 46", "dscp = 64", "64", "six bits"),
        (
            "start = \"1s\"",
            "start = \"3s\"\nstop = \"2s\"",
            "\"2s\"",
            "before it starts",
        ),
        (
            "[\"home\", \"router\", \"server\"]",
            "[\"home\", \"server\"]",
            "[\"home\", \"server\"]",
            "no link does",
        ),
        ("class = \"10:1\"", "class = \"10\"", "\"10\"", "not a class"),
        (
            "shape = 1.5",
            "shape = 0.5",
            "{ pareto = \"50kb\", shape = 0.5 }",
            "above 1",
        ),
        ("shape = 1.5", "mean = 3", "mean", "unknown field"),
        (
            "pattern = \"on_off\"",
            "pattern = \"onoff\"",
            "\"onoff\"",
            "unknown variant",
        ),
        (", off = \"500ms\"", "", "{ rate", "needs both"),
        ("name = \"pages\"", "name = \"call\"", "\"call\"", "two flows"),
        (
            "tcp = { congestion_control = \"reno\" }",
            "",
            "\"downloads\"",
            "either `udp` or `tcp`",
        ),
        ("\"reno\"", "\"vegas\"", "\"vegas\"", "unknown variant"),
    ] {
        let (at, message) = mistake(from, to);
        assert!(
            at.starts_with(location),
            "{to}: reported at {at}, not at {location}: {message}"
        );
        assert!(message.contains(text), "{to}: {message}");
    }
}

#[test]
fn a_missing_path_is_reported_at_the_flow() {
    let island = r#"
[[simulate.link]]
a = "x"
b = "y"
[[simulate.flow]]
name = "lost"
from = "home"
to = "x"
udp = { rate = "1mbit" }
"#;
    let text = format!("{HOME}{island}");
    let error = read(&text).unwrap_err();
    let problem = &error.problems()[0];
    assert_eq!(&text[problem.span.clone()], "\"x\"");
    assert!(
        problem.message.contains("no path from `home` to `x`"),
        "{}",
        problem.message
    );
    assert!(problem.help.contains("add the links"), "{}", problem.help);
}

#[test]
fn a_missing_section_link_or_flow_is_reported() {
    for (text, expected) in [
        ("[queue.a]\ndiscipline = \"fifo\"\n", "no [simulate] section"),
        (
            "[simulate]\nduration = \"1s\"\n",
            "no links, and there is no [run]",
        ),
        (
            "[simulate]\nduration = \"1s\"\n[[simulate.link]]\na = \"a\"\nb = \"b\"\n",
            "has no flows",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(
            error.problems()[0].message.contains(expected),
            "{}",
            error.problems()[0].message
        );
    }
}
