//! Variables of disciplines that are sampled over time: their values, and how mistakes are reported.

use std::time::Duration;

use crate::common::{read, run};
use fairgate_sim::results::ObservationResults;
use fairgate_sim::{Results, Simulation};

fn observed<'r>(results: &'r Results, name: &str) -> &'r ObservationResults {
    let mut observations = results.observations.iter();
    observations
        .find(|observation| observation.name == name)
        .unwrap_or_else(|| panic!("there is no observation {name}"))
}

/// Four calls of 1 Mbit/s each into a link of 2 Mbit/s, in a tree of two classes. After 4 s nothing is sent.
const TREE: &str = r#"
[queue.tree]
discipline = "htb"
handle = "1"
default = 20

[[queue.tree.class]]
id = 1
rate = "2mbit"

[[queue.tree.class]]
id = 10
parent = 1
rate = "1mbit"
ceil = "2mbit"
discipline = "prio"
handle = "2"
class = [
    { id = 1, discipline = "fifo", limit = 30 },
    { id = 2, discipline = "fifo", limit = 40 },
    { id = 3, discipline = "fifo", limit = 50 },
]

[[queue.tree.class]]
id = 20
parent = 1
rate = "1mbit"
ceil = "2mbit"
discipline = "pie"

[simulate]
duration = "10s"
measure = ["1s", "4s"]
interval = "500ms"

[[simulate.link]]
a = "left"
b = "right"
rate = "10mbit"
delay = "5ms"
queue_a = "tree"

[[simulate.flow]]
name = "calls"
from = "left"
to = "right"
count = 4
stop = "4s"
udp = { rate = "1mbit", size = "1000b" }

[[simulate.observe]]
name = "root"
interface = "left->right"
variable = "backlog_packets"
"#;

#[test]
fn a_sample_is_the_state_at_the_end_of_its_interval() {
    let text = format!(
        "{TREE}
        [[simulate.observe]]
        name = 'delay'
        interface = 'left->right'
        class = '20'
        variable = 'delay'

        [[simulate.observe]]
        name = 'next'
        interface = 'left->right'
        class = '1'
        variable = 'lent_packets'"
    );
    let results = run(&text);
    let root = observed(&results, "root");
    let interface = &results.interfaces[0];
    assert_eq!(interface.name, root.interface);
    let backlog: Vec<Option<f64>> = (interface.backlog_series_packets.iter())
        .map(|&packets| Some(packets as f64))
        .collect();
    assert_eq!(
        root.series, backlog,
        "the backlog is also a figure of the interface"
    );
    assert_eq!(
        (root.series.len(), root.unit.as_str(), root.class.as_deref()),
        (20, "packets", None)
    );
    // The measurement window has the intervals that end at 1.5 s, 2 s, ... 4 s.
    let mut measured: Vec<f64> = root.series[2..8].iter().flatten().copied().collect();
    assert_eq!(root.count, 6);
    let mean = measured.iter().sum::<f64>() / 6.0;
    assert!((root.mean - mean).abs() < 1e-9, "{} is not {mean}", root.mean);
    measured.sort_by(f64::total_cmp);
    assert_eq!((root.least, root.most), (measured[0], measured[5]));
    let percentile = |percent: usize| root.percentiles[percent];
    assert_eq!(root.percentiles.len(), 101);
    assert_eq!(
        [percentile(0), percentile(16), percentile(17)],
        [measured[0], measured[0], measured[1]]
    );
    assert_eq!([percentile(50), percentile(100)], [measured[2], measured[5]]);

    let delay = observed(&results, "delay");
    assert_eq!((delay.unit.as_str(), delay.class.as_deref()), ("ns", Some("20")));
    assert!(delay.most > 1e6, "PIE sees a delay: {}", delay.most);
    // All packets are in class 20, which borrows from class 1 a half of the rate: 0.5 Mbit/s of 1 Mbit/s.
    let lent = observed(&results, "next");
    assert_eq!(lent.unit, "packets");
    assert!(lent.series[0].unwrap() > 0.0 && lent.series[7] > lent.series[0]);
    assert_eq!(lent.series[19], lent.series[18], "nothing is sent any more");
}

#[test]
fn a_class_has_the_name_of_the_file_or_that_of_tc() {
    let observe = |number: usize, class: &str| {
        format!(
            "[[simulate.observe]]
            name = 'o{number}'
            interface = 'left->right'
            class = '{class}'
            variable = 'limit_packets'\n"
        )
    };
    let classes = ["10/1", "2:1", "10/3", "2:3"];
    let text: String = (0..)
        .zip(classes)
        .map(|(number, class)| observe(number, class))
        .collect();
    let results = run(&format!("{TREE}{text}"));
    let found: Vec<(&str, f64)> = results.observations[1..]
        .iter()
        .map(|observation| (observation.class.as_deref().unwrap(), observation.mean))
        .collect();
    assert_eq!(
        found,
        [("10/1", 30.0), ("10/1", 30.0), ("10/3", 50.0), ("10/3", 50.0)]
    );
}

#[test]
fn a_discipline_that_has_no_value_yet_has_no_point() {
    let text = r#"
        [queue.paced]
        discipline = "fq"

        [simulate]
        duration = "2s"
        interval = "250ms"
        queue = "paced"
        [[simulate.link]]
        a = "a"
        b = "b"
        rate = "10mbit"
        [[simulate.flow]]
        name = "call"
        from = "a"
        to = "b"
        udp = { rate = "64kbit", size = "160b" }
        [[simulate.observe]]
        name = "next"
        interface = "b->a"
        variable = "next_departure"
    "#;
    let results = run(text);
    let next = observed(&results, "next");
    assert_eq!(next.series, [None; 8], "nothing waits in this direction");
    assert_eq!((next.count, next.mean, next.most), (0, 0.0, 0.0));
    assert_eq!(next.percentiles, [0.0; 101]);
}

#[test]
fn members_of_cells_are_observed_and_observations_repeat() {
    let text = r#"
        [queue.air]
        discipline = "fq_codel"

        [simulate]
        duration = "2s"
        [[simulate.link]]
        a = "server"
        b = "ap"
        rate = "1gbit"
        [[simulate.cell]]
        name = "flat"
        ap = "ap"
        stations = 3
        mcs = 0
        queue = "air"
        [[simulate.flow]]
        name = "down-{i}"
        from = "server"
        to = "flat-{i}"
        tcp = {}
        each = { i = 3 }
        [[simulate.observe]]
        name = "station {i}"
        interface = "flat-{i}->ap"
        variable = "old_flows_len"
        each = { i = 3 }
        [[simulate.observe]]
        name = "access point"
        interface = "ap->flat"
        variable = "old_flows_len"
    "#;
    let results = run(text);
    let names: Vec<&str> = (results.observations.iter())
        .map(|observation| observation.name.as_str())
        .collect();
    assert_eq!(names, ["station 1", "station 2", "station 3", "access point"]);
    assert!(observed(&results, "access point").most >= 1.0);
}

/// Half of what is sent is too much. PIE needs a higher probability to drop it, because it spaces drops (RFC
/// 8033, section 5.4); DualPI2 needs the root of a half (RFC 9332, section 2.4). Both are observed in per
/// cent, though the kernel counts in parts of 2^32.
#[test]
fn a_drop_probability_is_observed_in_per_cent() {
    for discipline in ["pie", "dualpi2"] {
        let text = format!(
            r#"
            [queue.aqm]
            discipline = "{discipline}"
            [simulate]
            duration = "60s"
            measure = ["40s", "60s"]
            [[simulate.link]]
            a = "left"
            b = "right"
            rate = "10mbit"
            delay = "5ms"
            queue_a = "aqm"
            [[simulate.flow]]
            name = "flood"
            from = "left"
            to = "right"
            udp = {{ rate = "20mbit" }}
            [[simulate.observe]]
            name = "drops"
            interface = "left->right"
            variable = "prob"
        "#
        );
        let results = run(&text);
        let drops = observed(&results, "drops");
        assert_eq!(drops.unit, "%");
        assert!((60.0..95.0).contains(&drops.mean), "{discipline}: {}", drops.mean);
    }
}

#[test]
fn mistakes_are_reported_with_what_exists() {
    let observe = |lines: &str| {
        let text = format!("{TREE}\n[[simulate.observe]]\nname = 'other'\n{lines}");
        let error = read(&text).expect_err("the file has a mistake");
        let problem = &error.problems()[0];
        let place = &text[problem.span.clone()];
        (place.to_owned(), problem.message.clone(), problem.help.clone())
    };
    let (place, message, help) = observe("interface = 'left->rihgt'\nvariable = 'x'");
    assert_eq!(
        (place.as_str(), message.as_str()),
        ("'left->rihgt'", "there is no interface `left->rihgt`")
    );
    assert_eq!(
        help,
        "did you mean `left->right`? interfaces: left->right, right->left"
    );

    let (place, message, help) = observe("interface = 'left->right'\nvariable = 'backlog'");
    assert_eq!(
        (place.as_str(), message.as_str()),
        ("'backlog'", "`htb` at left->right has no variable `backlog`")
    );
    assert!(
        help.contains("direct_packets") && help.contains("backlog_packets"),
        "{help}"
    );

    let (place, message, help) = observe("interface = 'left->right'\nclass = '20'\nvariable = 'x'");
    assert_eq!(
        (place.as_str(), message.as_str()),
        ("'x'", "class 20 at left->right has no variable `x`")
    );
    assert!(help.contains("lent_packets") && help.contains("prob"), "{help}");

    let (place, message, help) = observe("interface = 'left->right'\nclass = '30'\nvariable = 'x'");
    assert_eq!(
        (place.as_str(), message.as_str()),
        ("'30'", "`left->right` has no class 30")
    );
    assert_eq!(help, "its classes: 1, 10, 10/1, 10/2, 10/3, 20");

    let (place, message, _) = observe("interface = 'left->right'\nclass = '1:30'\nvariable = 'x'");
    assert_eq!(
        (place.as_str(), message.as_str()),
        ("'1:30'", "`left->right` has no class 48")
    );

    let (_, message, help) = observe("interface = 'left->right'\nclass = '7:1'\nvariable = 'x'");
    assert_eq!(message, "no discipline at left->right has the handle 7");
    assert!(help.contains("20/1"), "{help}");

    for class in ["", "+1", "1/", "a", "1:", "4294967296"] {
        let lines = format!("interface = 'left->right'\nclass = '{class}'\nvariable = 'x'");
        let (_, message, _) = observe(&lines);
        assert_eq!(message, format!("`{class}` is not a class"));
    }
    let (_, message, help) = observe("interface = 'right->left'\nclass = '1'\nvariable = 'x'");
    assert_eq!(
        (message.as_str(), help.as_str()),
        (
            "`right->left` has no class 1",
            "it has no classes: remove this key"
        )
    );

    let text = format!(
        "{TREE}\n[[simulate.observe]]\nname = 'root'\ninterface = 'right->left'\nvariable = 'limit_packets'"
    );
    let error = read(&text).expect_err("the name is taken");
    assert_eq!(
        error.problems()[0].message,
        "there are two observations with the name `root`"
    );
}

#[test]
fn observing_changes_nothing_else() {
    let with = run(TREE);
    let mut scenario = read(TREE).unwrap();
    scenario.observations.clear();
    let mut without = Simulation::new(&scenario).unwrap().run().unwrap();
    assert!(without.observations.is_empty());
    assert!(!serde_json::to_string(&without).unwrap().contains("observations"));
    without.observations = with.observations.clone();
    assert_eq!(with, without);
    assert_eq!(scenario.interval, Duration::from_millis(500));
}
