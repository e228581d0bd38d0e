//! The results of classes: what passed each of them in the measurement window.

use crate::common::run;
use fairgate_sim::results::{ClassResults, InterfaceResults};

fn class<'r>(interface: &'r InterfaceResults, name: &str) -> &'r ClassResults {
    let mut classes = interface.classes.iter();
    classes
        .find(|class| class.class == name)
        .unwrap_or_else(|| panic!("there is no class {name}"))
}

/// A call in class 10, and a flow of 3 Mbit/s in class 20 that gets 2 Mbit/s.
const TREE: &str = r#"
[queue.tree]
discipline = "htb"
default = 20

[[queue.tree.class]]
id = 1
rate = "2500kbit"

[[queue.tree.class]]
id = 10
parent = 1
rate = "500kbit"
discipline = "prio"
class = [
    { id = 1, discipline = "fifo", limit = 30 },
    { id = 2, discipline = "fifo", limit = 30 },
    { id = 3, discipline = "fifo", limit = 30 },
]

[[queue.tree.class]]
id = 20
parent = 1
rate = "2mbit"
discipline = "fifo"
limit = 20

[[queue.tree.filter]]
dscp = "EF"
class = 10

[simulate]
duration = "10s"
measure = ["2s", "8s"]

[[simulate.link]]
a = "left"
b = "right"
rate = "10mbit"
queue_a = "tree"

[[simulate.flow]]
name = "call"
from = "left"
to = "right"
dscp = 46
udp = { rate = "64kbit", size = "160b" }

[[simulate.flow]]
name = "film"
from = "left"
to = "right"
udp = { rate = "3mbit", size = "1000b" }
"#;

#[test]
fn classes_have_the_packets_of_the_window() {
    let results = run(TREE);
    let interface = &results.interfaces[0];
    let names: Vec<&str> = interface
        .classes
        .iter()
        .map(|class| class.class.as_str())
        .collect();
    assert_eq!(names, ["1", "10", "10/1", "10/2", "10/3", "20"]);
    let [root, calls, film] = ["1", "10", "20"].map(|name| class(interface, name));
    assert!(root.queue.is_none(), "an inner class has no discipline");
    assert_eq!(root.sent, interface.transmitted);
    assert_eq!(root.sent_bytes, interface.transmitted_bytes);
    assert_eq!(calls.sent + film.sent, interface.transmitted);

    // 50 packets a second for six seconds. prio puts EF into its first class.
    assert_eq!(calls.sent, 300);
    assert_eq!(calls.overlimits, Some(0));
    let bands: u64 = ["10/1", "10/2", "10/3"]
        .iter()
        .map(|name| class(interface, name).sent)
        .sum();
    assert_eq!(bands, 300);
    assert_eq!(class(interface, "10/1").overlimits, None, "prio limits no class");

    let queue = film.queue.as_ref().expect("the class has a fifo");
    assert_eq!((queue.discipline.as_str(), queue.backlog_packets), ("fifo", 20));
    assert_eq!(queue.dropped, interface.dropped);
    assert_eq!(queue.dropped, queue.dropped_by_reason["queue_limit"]);
    // The queue is full at both ends of the window, but a packet may just have left it.
    assert!(
        queue.enqueued.abs_diff(film.sent + queue.dropped) <= 1,
        "{queue:?}"
    );
    // 1042 bytes on the link. 20 packets wait before each one.
    let rate = film.sent_bytes as f64 * 8.0 / 6.0;
    assert!((rate - 2e6).abs() < 0.01e6, "{rate} bit/s");
    let wait = 20.0 * 1042.0 * 8.0 / 2e6 * 1e9;
    let found = queue.sojourn_mean_ns as f64;
    assert!(
        (found - wait).abs() < 0.03 * wait,
        "{found} ns instead of {wait} ns"
    );
    assert!(film.overlimits > Some(1000), "{:?}", film.overlimits);
}

#[test]
fn a_tree_without_classes_has_no_results_of_them() {
    let results = run(TREE);
    let back = &results.interfaces[1];
    assert!(back.classes.is_empty());
    assert!(!serde_json::to_string(back).unwrap().contains("classes"));
}

#[test]
fn a_class_for_hosts_is_there_if_a_host_had_it() {
    let text = r#"
        [queue.hosts]
        discipline = "drr"
        default = 9
        class = [
            { id = 100, each = "destination", count = 50, quantum = 1514, discipline = "fifo" },
            { id = 9, quantum = 1514, discipline = "fifo" },
        ]
        filter = [{ class = 100, destination = "192.0.2.0/24" }]
        [simulate]
        duration = "4s"
        [[simulate.node]]
        name = "b"
        address = "192.0.2.7"
        [[simulate.link]]
        a = "a"
        b = "b"
        rate = "10mbit"
        queue_a = "hosts"
        [[simulate.flow]]
        name = "call"
        from = "a"
        to = "b"
        udp = { rate = "64kbit", size = "160b" }
    "#;
    let results = run(text);
    let classes = &results.interfaces[0].classes;
    let found: Vec<(&str, Option<&str>, u64)> = (classes.iter())
        .map(|class| (class.class.as_str(), class.host.as_deref(), class.sent))
        .collect();
    assert_eq!(found, [("9", None, 0), ("100", Some("192.0.2.7"), 200)]);
}
