//! Scenario files: what they may contain, and how each mistake is reported at its location.

use std::time::Duration;

use crate::common::read;
use fairgate_config::Document;
use fairgate_sim::{Application, Arrivals, Distribution, LineRate, Loss, Scenario, Simulation, Traffic};

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
        ("duration = \"10s\"", "duration = \"10\"", "10", "unit"),
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
            "`measure` has 3 values, but must have 2",
        ),
        ("[\"2s\", \"10s\"]", "[\"2s\"]", "[\"2s\"]", "has 1 values"),
        (
            "{ exponential = \"1s\" }",
            "{ uniform = [\"1s\", \"2s\", \"3s\"] }",
            "[\"1s\", \"2s\", \"3s\"]",
            "`uniform` has 3 values, but must have 2",
        ),
        ("seed = 7", "seeds = 7", "seeds", "no key of [simulate]"),
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
        ("rate_a = \"100mbit\"", "rate_a = \"0mbit\"", "0mbit", "above 0"),
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
        ("count = 2", "count = 0", "0", "1 to 1000000"),
        ("dscp = 46", "dscp = 64", "64", "no DSCP 64"),
        (
            "dscp = 46",
            "dscp = \"AF411\"",
            "\"AF411\"",
            "did you mean \"AF41\"",
        ),
        ("dscp = 46", "dscp = true", "true", "a name like"),
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
        (
            "shape = 1.5",
            "mean = 3",
            "mean",
            "`mean` is no key of [simulate.flow.tcp.size]",
        ),
        (
            "pattern = \"on_off\"",
            "pattern = \"onoff\"",
            "\"onoff\"",
            "did you mean `on_off`?",
        ),
        (", off = \"500ms\"", "", "{ rate", "needs both"),
        ("name = \"pages\"", "name = \"call\"", "\"call\"", "two flows"),
        (
            "tcp = { congestion_control = \"reno\" }",
            "",
            "\"downloads\"",
            "flow `downloads` sends nothing; add",
        ),
        (
            "tcp = { congestion_control = \"reno\" }",
            "tcp = {}\nudp = { rate = \"1mbit\" }",
            "{}",
            "`udp` and `tcp` both say what is sent; write a [[simulate.flow]] for each",
        ),
        (
            "start = \"1s\"",
            "start = \"1s\"\nlifetime = \"0s\"",
            "\"0s\"",
            "sends nothing; lengthen its life",
        ),
        (
            "start = \"1s\"",
            "start = \"1s\"\nlifetime = { normal = \"1s\", deviation = \"1s\", between = [\"2s\", \"0s\"] }",
            "{ normal",
            "above the second one; swap the two",
        ),
        (
            "start = \"1s\"",
            "start = \"1s\"\nlifetime = { normal = \"1s\", deviation = \"0s\", between = [\"0s\", \"2s\"] }",
            "{ normal",
            "deviation of a normal distribution is 0, but must be above 0; raise it",
        ),
        ("\"reno\"", "\"vegas\"", "\"vegas\"", "can't be `vegas`"),
        (
            "count = 2",
            "arrivals = { rate = \"3\" }",
            "\"3\"",
            "not a rate of arrivals",
        ),
        ("count = 2", "arrivals = { rate = \"0/s\" }", "\"0/s\"", "above 0"),
        (
            "count = 2",
            "arrivals = { rate = \"3/s\", load = \"1mbit\" }",
            "{ rate",
            "one of `rate`, `interval` and `load`",
        ),
        (
            "count = 2",
            "arrivals = { rate = \"3/s\" }",
            "{ rate",
            "`count` and `stagger` have no effect",
        ),
        (
            "start = \"1s\"",
            "start = \"1s\"\nlifetime = { exponential = \"0s\" }",
            "{ exponential = \"0s\" }",
            "above 0",
        ),
        (
            "{ pareto = \"50kb\", shape = 1.5 }",
            "{ pareto = \"50kb\", shape = 1.5, between = [\"1kb\", \"2kb\"] }",
            "{ pareto",
            "no value",
        ),
        (
            "{ pareto = \"50kb\", shape = 1.5 }",
            "{ log_normal = \"50kb\", shape = 1.5 }",
            "{ log_normal",
            "`log_normal` with `deviation` or `sigma`",
        ),
        (
            "{ pareto = \"50kb\", shape = 1.5 }",
            "{ empirical = \"missing.txt\" }",
            "{ empirical",
            "missing.txt can't be read",
        ),
        (
            "between = [\"0s\", \"2s\"]",
            "between = [\"1s\", \"1s\"]",
            "{ normal",
            "less than a thousandth",
        ),
    ] {
        let (at, message) = mistake(from, to);
        assert!(
            at.starts_with(location),
            "{to}: reported at {at}, not at {location}: {message}"
        );
        assert!(message.contains(text), "{to}: {message}");
    }
}

/// What does not depend on another mistake is reported with it: first values and keys, then what they mean.
#[test]
fn all_mistakes_of_a_file_are_reported_at_once() {
    let mistakes = |changes: &[(&str, &str)]| -> Vec<String> {
        let text = changes.iter().fold(HOME.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        let error = read(&text).expect_err("the file has mistakes");
        let messages = error.problems().iter().map(|problem| problem.message.clone());
        messages.collect()
    };
    let of_values = [
        ("delay = \"5ms\"", "delay = \"5\""),
        ("stagger =", "stager ="),
        ("shape = 1.5", "shape = \"1.5\""),
        ("pattern = \"on_off\"", "pattern = \"onoff\""),
    ];
    assert_eq!(
        mistakes(&of_values),
        [
            "`delay`: `5` is a duration without a unit",
            "`stager` is no key of [simulate.flow]",
            "`shape` is text, but must be a number of at least 0, or none",
            "`pattern` can't be `onoff`",
        ]
    );
    let of_meanings = [
        ("to = \"home\"", "to = \"hone\""),
        (", transfers = 5", ", rate = \"1mbit\""),
        ("class = \"10:1\"", "class = \"10\""),
    ];
    let found = mistakes(&of_meanings);
    assert_eq!(found.len(), 3, "{found:?}");
    for (message, part) in found
        .iter()
        .zip(["no node `hone`", "writes without end", "not a class"])
    {
        assert!(message.contains(part), "{message}");
    }
}

/// Every setting of a connection is accepted with a sound value, and refused with its location, the rule and
/// a remedy with a wrong one.
#[test]
fn the_settings_of_a_connection_are_checked_at_their_place() {
    let plain = "tcp = { congestion_control = \"reno\" }";
    let sound = [
        "congestion_control = \"bbr\"",
        "congestion_control = \"bbr3\", pacing = true",
        "congestion_control = \"prague\"",
        "fixed_window = 20",
        "hystart = false",
        "profile = \"linux-2.6.3x\"",
        "profile = \"ns2-2004\"",
        "profile = \"ns3-2016\", congestion_control = \"cubic\", sack = true",
        "sack = false, slow_start_after_idle = false, no_delay = true",
        "pacing = true, initial_window = 3, mss = 1000",
        "delayed_ack = \"100ms\", min_rto = \"10ms\", initial_rto = \"3s\", tick = \"10ms\"",
        "delayed_ack = false",
        "send_buffer = \"64kb\", receive_buffer = \"64kb\"",
    ];
    for settings in sound {
        let text = HOME.replace(plain, &format!("tcp = {{ {settings} }}"));
        assert_ne!(text, HOME);
        let mut scenario = read(&text).expect(settings);
        scenario.duration = Duration::from_secs(3);
        scenario.measure = Duration::from_secs(1)..scenario.duration;
        let results = Simulation::new(&scenario).unwrap().run().unwrap();
        assert!(
            results.groups[0].goodput_bps > 1_000_000,
            "{settings}: {:?}",
            results.groups[0]
        );
    }
    for (settings, location, rule) in [
        ("fixed_window = 0", "0", "1 to"),
        ("profile = \"ns2\"", "\"ns2\"", "can't be `ns2`"),
        (
            "fixed_window = 10, congestion_control = \"reno\"",
            "10",
            "either a fixed window or a congestion control",
        ),
        (
            "congestion_control = \"reno\", hystart = true",
            "true",
            "part of CUBIC",
        ),
        (
            "congestion_control = \"bbr\", pacing = false",
            "false",
            "without pacing",
        ),
        ("initial_window = 0", "0", "1 to"),
        ("mss = 0", "0", "1 to"),
        ("delayed_ack = true", "true", "a duration, or false"),
        ("delayed_ack = \"2s\"", "\"2s\"", "at most 500ms"),
        ("delayed_ack = 40", "40", "a duration without a unit"),
        ("min_rto = \"0s\"", "\"0s\"", "from 1 us"),
        ("initial_rto = \"1h\"", "\"1h\"", "from 1 us"),
        ("tick = \"3ms\"", "\"3ms\"", "must make a second"),
        ("tick = \"0ms\"", "\"0ms\"", "must make a second"),
        ("tick = \"1s\"", "\"1s\"", "from 1 us to 100 ms"),
        ("receive_buffer = \"1kb\"", "\"1kb\"", "at least four segments"),
        ("receive_buffer = \"3gb\"", "\"3gb\"", "0b to 1gb"),
        ("send_buffer = \"1kb\"", "\"1kb\"", "two segments"),
    ] {
        let text = HOME.replace(plain, &format!("tcp = {{ {settings} }}"));
        let error = read(&text).expect_err(settings);
        let problem = &error.problems()[0];
        assert_eq!(
            &text[problem.span.clone()],
            location,
            "{settings}: {}",
            problem.message
        );
        assert!(problem.message.contains(rule), "{settings}: {}", problem.message);
        assert!(!problem.help.is_empty(), "{settings} has no remedy");
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

/// Reads a scenario whose transfers have the sizes of a file with this text.
fn with_sizes(text: &str) -> Result<Scenario, fairgate_config::FileError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sizes.txt"), text).unwrap();
    let scenario = HOME.replace(
        "{ pareto = \"50kb\", shape = 1.5 }",
        "{ empirical = \"sizes.txt\" }",
    );
    let name = folder.path().join("test.toml");
    let document = Document::parse(name.to_str().unwrap(), &scenario).unwrap();
    Scenario::read(&document)
}

#[test]
fn sizes_come_from_a_file_beside_the_scenario() {
    let scenario = with_sizes("# bytes, weight\n1500b\n\n3kb 2.5   # often\n").unwrap();
    let Traffic::Tcp(tcp) = &scenario.flows[1].traffic else {
        panic!("the pages are TCP");
    };
    let Application::Transfers { size, .. } = &tcp.application else {
        panic!("the pages are transfers");
    };
    assert!((size.expected() - (1500.0 + 2.5 * 3072.0) / 3.5).abs() < 1e-9);
    for (text, line, what) in [
        ("1500b\nmuch\n", "line 2", "much"),
        ("1500b x\n", "line 1", "the weight is `x`"),
        ("1500b -1\n", "line 1", "above 0"),
        ("1500b 1 2\n", "line 1", "`2` follows"),
        ("# nothing\n", "sizes.txt", "at least one value"),
    ] {
        let error = with_sizes(text).unwrap_err();
        let message = &error.problems()[0].message;
        assert!(
            message.contains(line) && message.contains(what),
            "{text}: {message}"
        );
        assert!(message.contains("sizes.txt"), "{message}");
    }
}

#[test]
fn arrivals_are_read() {
    let flow = |text: &str| {
        let text = HOME.replace("count = 2\nstagger = \"100ms\"", text);
        read(&text).map(|scenario| scenario.flows[0].clone())
    };
    let lifetime = "\nlifetime = { exponential = \"2s\" }\nrows = true";
    let it = flow(&format!("arrivals = {{ rate = \"30/min\" }}{lifetime}")).unwrap();
    assert_eq!(it.arrivals, Some(Arrivals::Poisson { per_second: 0.5 }));
    assert_eq!(
        it.lifetime,
        Some(Distribution::Exponential { mean: 2_000_000_000 })
    );
    assert_eq!(it.rows, Some(true));
    let it = flow(&format!("arrivals = {{ interval = \"10ms\" }}{lifetime}")).unwrap();
    let interval = Distribution::Constant(10_000_000);
    assert_eq!(it.arrivals, Some(Arrivals::Renewal { interval }));
    let it = flow("count = 3\nstart = { uniform = [\"1s\", \"2s\"] }\nstagger = { exponential = \"5ms\" }")
        .unwrap();
    assert_eq!(it.random_stagger, Distribution::Exponential { mean: 5_000_000 });
    assert_eq!((it.start, it.stagger), (Duration::ZERO, Duration::ZERO));
    assert!(flow("arrivals = { interval = \"0s\" }\nlifetime = \"1s\"").is_err());
}

const NETWORK: &str = r#"
[simulate]
duration = "1s"
ecmp = true

[[simulate.node]]
name = "router"
processing = { uniform = ["10us", "30us"] }

[[simulate.link]]
name = "upper"
a = "home"
b = "router"
rate_a = { schedule = [["0s", "10mbit"], ["5s", "2mbit"]], repeat = "10s" }
delay_a = "5ms"
delay_b = "9ms"
jitter = { exponential = "2ms" }
reorder = true
loss_a = 0.01
loss_b = { gilbert_elliott = { p = 0.01, r = 0.2 } }

[[simulate.link]]
name = "lower"
a = "home"
b = "router"

[[simulate.flow]]
name = "call"
from = "home"
to = "router"
route = ["home", "lower", "router"]
udp = { rate = "64kbit", size = "160b" }
"#;

#[test]
fn impairments_are_read() {
    let scenario = read(NETWORK).unwrap();
    assert!(scenario.ecmp);
    let [upper, lower] = &scenario.links[..] else {
        panic!("there are two links");
    };
    assert_eq!(
        (upper.delay_a, upper.delay_b),
        (Duration::from_millis(5), Duration::from_millis(9))
    );
    assert!(upper.jitter_a.as_ref().is_some_and(|jitter| jitter.reorder));
    assert_eq!(upper.jitter_a, upper.jitter_b);
    assert_eq!(
        [upper.loss_a, upper.loss_b],
        [
            Some(Loss::Random { probability: 0.01 }),
            Some(Loss::GilbertElliott {
                p: 0.01,
                r: 0.2,
                loss_good: 0.0,
                loss_bad: 1.0
            })
        ]
    );
    assert_eq!(
        (&upper.rate_b, &lower.rate_a),
        (&LineRate::Unlimited, &LineRate::Unlimited)
    );
    assert!(matches!(upper.rate_a, LineRate::Schedule(_)));
    assert!(lower.jitter_a.is_none() && lower.loss_b.is_none());
    Simulation::new(&scenario).unwrap().run().unwrap();
}

#[test]
fn every_mistake_in_the_network_is_reported_at_its_location() {
    let mistakes = [
        (
            "{ uniform = [\"10us\", \"30us\"] }",
            "{ uniform = [\"30us\", \"10us\"] }",
            "{ uniform",
            "above its high",
        ),
        ("ecmp = true", "ecmp = 1", "1", "true or false"),
        (
            "[\"5s\", \"2mbit\"]",
            "[\"0s\", \"2mbit\"]",
            "[[\"0s\"",
            "times must increase; sort",
        ),
        (
            "[\"0s\", \"10mbit\"]",
            "[\"1s\", \"10mbit\"]",
            "[[\"1s\"",
            "must begin at 0",
        ),
        (
            "[\"5s\", \"2mbit\"]",
            "[\"5s\"]",
            "[\"5s\"]",
            "has 1 values, but must have two",
        ),
        ("[\"5s\", \"2mbit\"]", "[\"5s\", \"0mbit\"]", "0mbit", "above 0"),
        ("repeat = \"10s\"", "repeat = \"4s\"", "\"4s\"", "repeat it later"),
        (
            ", repeat = \"10s\"",
            ", trace = \"x\"",
            "{ schedule",
            "or a `trace`",
        ),
        ("rate_a = {", "rate_a = true #", "true", "must be a rate"),
        ("delay_a = \"5ms\"", "delay_a = \"5\"", "5", "unit"),
        (
            "delay_b = \"9ms\"",
            "delay = \"9ms\"",
            "\"5ms\"",
            "for both ends and also for one",
        ),
        (
            "jitter = { exponential = \"2ms\" }",
            "",
            "true",
            "`reorder` has no effect",
        ),
        ("reorder = true", "reorder = \"yes\"", "\"yes\"", "true or false"),
        (
            "{ exponential = \"2ms\" }",
            "{ exponential = \"0ms\" }",
            "{ exponential",
            "above 0",
        ),
        (
            "loss_a = 0.01",
            "loss_a = 1.01",
            "1.01",
            "from 0 to 1, or a table; write 0.01 for 1 %. The same from `a`, instead. It may also be a table",
        ),
        (
            "loss_a = 0.01",
            "loss_a = \"1%\"",
            "\"1%\"",
            "must be a number from 0 to 1",
        ),
        ("r = 0.2", "r = 0.0", "{ gilbert_elliott", "both must be above 0"),
        ("r = 0.2", "r = 0.2, q = 0.2", "q", "`q` is no key of"),
        (
            "name = \"lower\"",
            "name = \"upper\"",
            "\"upper\"",
            "another link has the name `upper`",
        ),
        (
            "name = \"lower\"",
            "name = \"home\"",
            "\"home\"",
            "a node has the name `home`",
        ),
        (
            "\"lower\", \"router\"]",
            "\"middle\", \"router\"]",
            "\"middle\"",
            "no node `middle`",
        ),
        (
            "[\"home\", \"lower\", \"router\"]",
            "[\"home\", \"router\", \"lower\"]",
            "[\"home\"",
            "must lead from",
        ),
    ];
    for (from, to, location, text) in mistakes {
        assert!(NETWORK.contains(from), "{from} is not in the file");
        let file = NETWORK.replacen(from, to, 1);
        let error = read(&file).expect_err(to);
        let problem = &error.problems()[0];
        let message = format!("{}; {}", problem.message, problem.help);
        let at = &file[problem.span.clone()];
        assert!(
            at.starts_with(location),
            "{to}: reported at {at}, not at {location}: {message}"
        );
        assert!(message.contains(text), "{to}: {message}");
    }
}
