//! LibreQoS' files. The examples are written by us in the way of its own ones.

use std::collections::BTreeMap;

use fairgate_run::subscribers::{DOWN, Subscribers, UP};
use fairgate_run_api::ClassName;

use super::{mistakes, read_with, settings, text};

/// With comments before the line of names, several devices in a circuit, decimals, lists of addresses, a
/// comment with commas, and disciplines for single circuits.
const DEVICES: &str = include_str!("ShapedDevices.csv");
const NETWORK: &str = include_str!("network.json");

fn read(devices: &str, network: &str) -> Result<Subscribers, fairgate_config::FileError> {
    let settings = settings("libreqos = { devices = \"ShapedDevices.csv\", network = \"network.json\" }");
    let texts = [text("ShapedDevices.csv", devices), text("network.json", network)];
    read_with(settings, &texts, None)
}

#[test]
fn its_files_are_read_as_they_are() {
    let subscribers = read(DEVICES, NETWORK).unwrap();
    let list = subscribers.list();
    let ids: Vec<&str> = list.subscribers.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "10", "11", "2794", "5", "9", "30"]);
    let nodes: Vec<_> = list
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.above.as_deref()))
        .collect();
    assert_eq!(
        nodes,
        [
            ("Site_1", None),
            ("AP_A", Some("Site_1")),
            ("Site_3", Some("Site_1")),
            ("PoP_5", Some("Site_3")),
            ("AP_9", Some("PoP_5")),
            ("AP_B", Some("Site_1")),
            ("Site_2", None),
        ]
    );
    assert_eq!(list.nodes[4].rates, [120_500_000, 60_000_000]);
    let find = |id: &str| list.find(id).unwrap();
    // A circuit with two devices, of which one has two addresses.
    assert_eq!(find("2794").prefixes.len(), 5);
    assert_eq!(find("1").node.as_deref(), Some("AP_A"));
    assert_eq!(find("9").node, None);
    // Its node is below a virtual one.
    assert_eq!(find("30").node.as_deref(), Some("AP_B"));
    // A virtual node shapes nothing.
    assert_eq!(find("5").node.as_deref(), Some("Site_1"));
    assert_eq!(find("2").rates[DOWN].least, Some(500_000));
    assert_eq!(find("2").rates[DOWN].most, Some(2_500_000));
    let leaves = |id: &str| {
        let leaves = &find(id).leaves;
        [DOWN, UP].map(|side| leaves[side].as_ref().map(|leaf| leaf.discipline()))
    };
    assert_eq!(leaves("1"), [None, None]);
    assert_eq!(leaves("2"), [Some("fq_codel"), Some("fq_codel")]);
    assert_eq!(leaves("10"), [Some("cake"), Some("fq_codel")]);
    assert_eq!(leaves("11"), [None, Some("fifo")]);
    for tree in subscribers.trees() {
        assert!(tree.build(1).is_ok());
    }
    // Both trees are as deep as HTB allows; the guarantees fit.
    assert_eq!(subscribers.warnings(), Vec::<String>::new());
}

#[test]
fn mistakes_in_its_files_have_their_places() {
    let names = "Circuit ID,Parent Node,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,\
        Upload Max Mbps,sqm\n";
    let devices = format!(
        "{names}1,AP_Z,10.0.0.1,,1,1,10,10,\n,AP_A,10.0.0.2,,1,1,10,10,\n2,AP_A,10.0.0.3,,20,1,10,10,\n\
         3,AP_A,10.0.0.4,,1,1,ten,10,\n4,AP_A,10.0.0.5,,1,1,10,10,red\n5,AP_A,10.0.0.6,,1,1,10,10,\n\
         5,AP_A,10.0.0.7,,1,1,10,20,\n6,AP_A,10.0.0.6,,1,1,10,10,\n7,AP_A,10.0.0.8,,1,1,10\n"
    );
    let found = mistakes(read(&devices, NETWORK));
    let expected = [
        "ShapedDevices.csv:2:3: there is no node `AP_Z`",
        "ShapedDevices.csv:3:1: the device has no Circuit ID",
        "ShapedDevices.csv:4:18: 20000000 bit/s are guaranteed, but `download max Mbps` allows 10000000",
        "ShapedDevices.csv:5:22: `download max Mbps` is `ten`",
        "ShapedDevices.csv:6:28: `sqm` is `red`",
        "ShapedDevices.csv:8:1: the devices of circuit `5` differ in their rates, node or sqm",
        "ShapedDevices.csv:9:8: 10.0.0.6/32 overlaps with 10.0.0.6/32 of subscriber `5`",
        "ShapedDevices.csv:10:1: this line has 7 fields, but the line of names has 9",
    ];
    assert_eq!(found, expected);
}

#[test]
fn mistakes_in_the_network_have_their_places() {
    let rates = "\"downloadBandwidthMbps\": 10, \"uploadBandwidthMbps\": 10";
    let mut deep = format!("{{\"last\": {{{rates}}}}}");
    for level in 0..6 {
        deep = format!("{{\"n{level}\": {{{rates}, \"children\": {deep}}}}}");
    }
    let cases = [
        ("[]".to_owned(), "network.json:1:1: the nodes are a list"),
        (
            "{\"A\": 1}".to_owned(),
            "network.json:1:7: the node `A` is a number",
        ),
        (
            "{\"A\": {\"downloadBandwidthMbps\": 10}}".to_owned(),
            "network.json:1:2: the node `A` has no rate for each direction",
        ),
        (
            "{\"A\": {\"downloadBandwidthMbps\": 0, \"uploadBandwidthMbps\": 10}}".to_owned(),
            "network.json:1:33: `downloadBandwidthMbps` is 0 bit/s, but must be at least 10000",
        ),
        (
            format!("{{\"A\": {{{rates}, \"children\": {{\"A\": {{{rates}}}}}}}}}"),
            "network.json:1:77: there are two nodes `A`",
        ),
    ];
    for (network, expected) in cases {
        assert_eq!(mistakes(read(DEVICES, &network)), [expected], "{network}");
    }
    let found = mistakes(read(DEVICES, &deep));
    assert!(
        found[0].contains("`last` is the 7th node on the way from the line"),
        "{found:?}"
    );
}

/// Guarantees that exceed a node are read, as LibreQoS reads them, with a warning.
#[test]
fn guarantees_above_a_node_are_a_warning() {
    let devices = DEVICES.replace(",0.5,0.5,2.5,", ",130,0.5,250,");
    let warnings = read(&devices, NETWORK).unwrap().warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("`AP_9` has 120500000"), "{warnings:?}");
}

/// Many nodes give one line, with the three that lack most.
#[test]
fn nodes_with_too_little_are_one_warning() {
    let nodes: Vec<String> = (1..=50)
        .map(|number| {
            format!("\"N{number}\": {{\"downloadBandwidthMbps\": 10, \"uploadBandwidthMbps\": 100}}")
        })
        .collect();
    let circuits: String = (1..=50)
        .map(|number| format!("{number},N{number},10.0.0.{number},,{},1,200,10,\n", 10 + number))
        .collect();
    let names = "Circuit ID,Parent Node,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,\
        Upload Max Mbps,sqm\n";
    let list = read(
        &format!("{names}{circuits}"),
        &format!("{{{}}}", nodes.join(", ")),
    )
    .unwrap();
    let warnings = list.warnings();
    let of_nodes: Vec<&String> = warnings.iter().filter(|one| one.contains("50 nodes")).collect();
    assert_eq!((of_nodes.len(), warnings.len()), (1, 2), "{warnings:?}");
    let worst = "the worst: `N50` has 10000000 for 60000000 bit/s, `N49` has 10000000 for 59000000 bit/s, \
        `N48` has 10000000 for 58000000 bit/s";
    assert!(of_nodes[0].ends_with(worst), "{warnings:?}");
    // The tree itself says it in one line, too.
    assert_eq!(
        list.trees()[0].warnings().len(),
        1,
        "{:?}",
        list.trees()[0].warnings()
    );
}

/// Each class of both trees has a name, and knows what it is connected to and what it may send.
#[test]
fn classes_are_called_as_in_its_files() {
    let subscribers = read(DEVICES, NETWORK).unwrap();
    let class = |name: &str| subscribers.numbers().of_node(name);
    for side in [DOWN, UP] {
        let names: BTreeMap<u32, ClassName> = subscribers.names(side).collect();
        let tree = &subscribers.trees()[side];
        let classes: Vec<u32> = tree.classes().iter().map(|class| class.minor).collect();
        assert!(classes.iter().all(|class| names.contains_key(class)), "{names:?}");
        let of = |class: Option<u32>| &names[&class.unwrap()];
        let ap = of(class("AP_9"));
        assert_eq!((ap.name.as_str(), ap.node), ("AP_9", class("PoP_5")));
        assert_eq!(ap.limit_bps, [120_500_000, 60_000_000][side]);
        assert_eq!(of(class("Site_1")).node, Some(1));
        let school = of(subscribers.numbers().of_subscriber("10"));
        assert_eq!(
            (school.name.as_str(), school.node),
            ("School", class("AP_A")),
            "{school:?}"
        );
        assert_eq!(school.subscriber.as_ref().unwrap().id, "10");
        assert_eq!(school.limit_bps, [200_000_000, 50_000_000][side]);
        assert_eq!(names[&1].limit_bps, [1_000_000_000, 500_000_000][side]);
        assert_eq!(
            (names[&2].name.as_str(), names[&2].node),
            ("unknown addresses", Some(1))
        );
    }
    let shaped = subscribers.shaped();
    assert_eq!((shaped["2"].down_bps, shaped["2"].up_bps), (2_500_000, 1_000_000));
    assert_eq!(shaped["2"].node.as_deref(), Some("AP_9"));
    assert_eq!(shaped["9"].node, None);
}
