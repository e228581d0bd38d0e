//! Nodes and links that repeat (`each`), the queue of all interfaces, and queues that are replaced.

use std::net::IpAddr;

use fairgate_config::{Document, FileError, Spec};
use fairgate_sim::{Scenario, Simulation};

/// A chain of three routers. Each has two hosts, and the first host sends to the last one.
const CHAIN: &str = r#"
[queue.lan]
discipline = "fifo"
limit = 50

[queue.left]
discipline = "codel"

[queue.right]
discipline = "drr"

[simulate]
duration = "1s"
queue = "lan"

[[simulate.node]]
name = "host-{router}-{side}"
address = "10.0.{router}.7"
each = { router = 1, side = ["left", "right"] }

[[simulate.link]]
a = "router-{i}"
b = "router-{i+1}"
rate = "10mbit"
delay = "1ms"
each = { i = "1..2" }

[[simulate.link]]
a = "host-{i}-{side}"
b = "router-{i}"
rate = "100mbit"
queue_a = "{side}"
each = { i = 3, side = ["left", "right"] }

[[simulate.flow]]
name = "all the way"
from = "host-1-left"
to = "host-3-right"
udp = { rate = "1mbit" }
"#;

fn document(text: &str) -> Document {
    Document::parse("test.toml", text).expect("the queues are valid")
}

fn read(text: &str) -> Result<Scenario, FileError> {
    Scenario::read(&document(text))
}

#[test]
fn nodes_and_links_repeat() {
    let scenario = read(CHAIN).unwrap();
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "host-1-left",
            "host-1-right",
            "router-1",
            "router-2",
            "router-3",
            "host-2-left",
            "host-2-right",
            "host-3-left",
            "host-3-right"
        ]
    );
    assert_eq!(scenario.nodes[1].address, IpAddr::from([10, 0, 1, 7]));
    assert_eq!(scenario.links.len(), 2 + 6);
    let results = Simulation::new(&scenario).unwrap().run().unwrap();
    let discipline = |name: &str| {
        let found = results.interfaces.iter().find(|interface| interface.name == name);
        found
            .unwrap_or_else(|| panic!("there is no interface {name}"))
            .discipline
            .clone()
    };
    assert_eq!(discipline("host-1-left->router-1"), "codel");
    assert_eq!(discipline("host-3-right->router-3"), "drr");
    assert_eq!(discipline("router-1->router-2"), "fifo");
    assert_eq!(discipline("router-3->host-3-right"), "fifo");
    let crossed = |name: &str| {
        let found = results.interfaces.iter().find(|interface| interface.name == name);
        found.expect("the interface exists").transmitted
    };
    assert!(crossed("router-2->router-3") > 100);
}

/// Two cells of three stations. A call goes to every second station, and a transfer to each one of a cell.
const CELLS: &str = r#"
[simulate]
duration = "2s"

[[simulate.link]]
a = "server"
b = "ap-{i}"
rate = "100mbit"
delay = "5ms"
each = { i = 2 }

[[simulate.cell]]
name = "cell-{i}"
ap = "ap-{i}"
stations = 3
distances = 5
each = { i = 2 }

[[simulate.flow]]
name = "call"
from = "server"
to = "cell-{2*k/3+1}-{2*k%3+1}"
udp = { rate = "64kbit", size = "160b" }
both = true
each = { k = "0..2" }

[[simulate.flow]]
name = "transfer to {i}"
from = "server"
to = "cell-2-{i}"
tcp = { size = "50kb", transfers = 1 }
each = { i = 3 }
"#;

/// Copies of a flow with equal names are one group, also if each copy has a second flow back. Copies with
/// different names are groups of their own.
#[test]
fn flows_and_cells_repeat() {
    let results = Simulation::new(&read(CELLS).unwrap()).unwrap().run().unwrap();
    let groups: Vec<(&str, u64)> = results
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.flows))
        .collect();
    assert_eq!(
        groups,
        [
            ("call", 3),
            ("call back", 3),
            ("transfer to 1", 1),
            ("transfer to 2", 1),
            ("transfer to 3", 1)
        ]
    );
    let ends: Vec<(&str, &str, &str)> = results
        .flows
        .iter()
        .map(|flow| {
            (
                flow.name.as_str(),
                flow.source.as_str(),
                flow.destination.as_str(),
            )
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("call-1", "server", "cell-1-1"),
            ("call-1 back", "cell-1-1", "server"),
            ("call-2", "server", "cell-1-3"),
            ("call-2 back", "cell-1-3", "server"),
            ("call-3", "server", "cell-2-2"),
            ("call-3 back", "cell-2-2", "server"),
            ("transfer to 1", "server", "cell-2-1"),
            ("transfer to 2", "server", "cell-2-2"),
            ("transfer to 3", "server", "cell-2-3"),
        ]
    );
    for group in &results.groups {
        let flows = results.flows.iter().filter(|flow| flow.group == group.name);
        let sent: u64 = flows.map(|flow| flow.sent).sum();
        assert_eq!(group.sent, sent, "{}", group.name);
        assert!(sent > 0, "{}", group.name);
    }
    let cells: Vec<&str> = results.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(cells, ["cell-1", "cell-2"]);
}

#[test]
fn mistakes_of_repeated_flows_and_cells_are_reported_at_their_location() {
    for (from, to, location, message) in [
        (
            "cell-2-{i}",
            "cell-2-{i+1}",
            "\"cell-2-{i+1}\"",
            "there is no node `cell-2-4`",
        ),
        (
            "\"cell-{2*k/3+1}",
            "\"cell-{2*k/0+1}",
            "\"cell-{2*k/0+1}-{2*k%3+1}\"",
            "divides by 0",
        ),
        (
            "\"transfer to {i}\"",
            "\"call\"",
            "\"call\"",
            "there are two flows with the name `call`",
        ),
        (
            "\"transfer to {i}\"",
            "\"call back\"",
            "\"call back\"",
            "flow `call-1` has another flow with this name",
        ),
        (
            "name = \"cell-{i}\"",
            "name = \"cell\"",
            "\"cell\"",
            "two cells with the name `cell`",
        ),
    ] {
        assert!(CELLS.contains(from), "{from}");
        let text = CELLS.replacen(from, to, 1);
        let error = read(&text).expect_err(to);
        let problem = &error.problems()[0];
        assert_eq!(&text[problem.span.clone()], location, "{to}: {}", problem.message);
        assert!(problem.message.contains(message), "{to}: {}", problem.message);
    }
}

#[test]
fn queues_are_replaced_by_name() {
    let fq_codel = Spec::inline("fq_codel").unwrap();
    let replaced = |chosen: &[&str]| -> Vec<String> {
        let replace = |name: &str| chosen.contains(&name).then(|| fq_codel.clone());
        let scenario = Scenario::read_replacing(&document(CHAIN), u64::MAX, &replace).unwrap();
        let results = Simulation::new(&scenario).unwrap().run().unwrap();
        let disciplines = results
            .interfaces
            .iter()
            .map(|interface| interface.discipline.clone());
        disciplines.collect()
    };
    let count =
        |disciplines: &[String], name: &str| disciplines.iter().filter(|other| *other == name).count();
    let some = replaced(&["left"]);
    assert_eq!(
        (
            count(&some, "fq_codel"),
            count(&some, "codel"),
            count(&some, "drr")
        ),
        (3, 0, 3)
    );
    let all = replaced(&["left", "right", "lan"]);
    assert_eq!(count(&all, "fq_codel"), 16);
    assert_eq!(count(&replaced(&[]), "fq_codel"), 0);
}

#[test]
fn every_mistake_is_reported_at_its_location() {
    for (from, to, location, message) in [
        (
            "each = { i = \"1..2\" }",
            "each = {}",
            "{}",
            "`each` has no variable",
        ),
        (
            "each = { i = \"1..2\" }",
            "each = { i = 0 }",
            "{ i = 0 }",
            "variable `i`: there are no values",
        ),
        (
            "each = { i = \"1..2\" }",
            "each = { i = \"2..1\" }",
            "{ i = \"2..1\" }",
            "variable `i`: there are no values",
        ),
        (
            "each = { i = \"1..2\" }",
            "each = { i = \"many\" }",
            "{ i = \"many\" }",
            "`many` is not a range",
        ),
        (
            "each = { i = \"1..2\" }",
            "each = { i = 4194304, j = 2 }",
            "{ i = 4194304, j = 2 }",
            "more than 4194304 copies",
        ),
        (
            "\"router-{i+1}\"",
            "\"router-{j}\"",
            "\"router-{j}\"",
            "`{j}` is none of the variables i",
        ),
        (
            "\"router-{i+1}\"",
            "\"router-{i-7}\"",
            "\"router-{i-7}\"",
            "`{i-7}` is -6",
        ),
        (
            "\"router-{i+1}\"",
            "\"router-{i\"",
            "\"router-{i\"",
            "a brace of `router-{i` is not closed",
        ),
        (
            "\"host-{i}-{side}\"",
            "\"host-{i}-{side+1}\"",
            "\"host-{i}-{side+1}\"",
            "`{side+1}` calculates with `left`, which is not a number",
        ),
        (
            "\"host-{router}-{side}\"",
            "\"host-{router}\"",
            "\"host-{router}\"",
            "two nodes with the name `host-1`",
        ),
        (
            "\"10.0.{router}.7\"",
            "\"10.0.{side}.7\"",
            "\"10.0.{side}.7\"",
            "`10.0.left.7` is not an IP address",
        ),
        (
            "queue_a = \"{side}\"",
            "queue_a = \"no-{side}\"",
            "\"no-{side}\"",
            "there is no queue `no-left`",
        ),
        (
            "queue = \"lan\"",
            "queue = \"wan\"",
            "\"wan\"",
            "there is no queue `wan`",
        ),
        (
            "b = \"router-{i+1}\"",
            "b = \"router-{i}\"",
            "\"router-{i}\"",
            "leads from `router-1` to itself",
        ),
        (
            "to = \"host-3-right\"",
            "to = \"host-{i}\"",
            "\"host-{i}\"",
            "`{i}` stands for nothing without `each`",
        ),
    ] {
        assert!(CHAIN.contains(from), "{from} is not in the file");
        let text = CHAIN.replacen(from, to, 1);
        let error = read(&text).expect_err(to);
        let problem = &error.problems()[0];
        assert_eq!(&text[problem.span.clone()], location, "{to}: {}", problem.message);
        assert!(problem.message.contains(message), "{to}: {}", problem.message);
        assert!(!problem.help.is_empty(), "{to}");
    }
}
