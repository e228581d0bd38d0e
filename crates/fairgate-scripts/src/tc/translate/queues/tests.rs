use crate::tc::{Device, Script};

/// The line and the message of each mistake.
type Mistakes = Vec<(usize, String)>;

/// Returns the tree and the warnings.
fn read(text: &str, queues: Option<u16>) -> Result<(String, Vec<String>), Mistakes> {
    let device = Device {
        queues,
        ..Device::default()
    };
    let script = Script::parse("test.tc", text, device);
    match script.and_then(|script| script.translate()) {
        Ok((spec, notes)) => {
            let warnings = notes.iter().map(ToString::to_string).collect();
            Ok((spec.to_string(), warnings))
        }
        Err(error) => {
            let of = |problem: &fairgate_config::Problem| (problem.position().0, problem.to_string());
            Err(error.problems().iter().map(of).collect())
        }
    }
}

fn tree(text: &str, queues: Option<u16>) -> String {
    read(text, queues).expect("the script is valid").0
}

fn mistakes(text: &str, queues: Option<u16>) -> Mistakes {
    read(text, queues).expect_err("the script has a mistake")
}

/// The lines of LibreQoS for two queues: a tree each, whose first class gets a qdisc and then classes.
const LIBREQOS: &str = "\
qdisc replace dev eth1 root handle 7FFF: mq
qdisc add dev eth1 parent 7FFF:0x1 handle 0x1: htb default 2
class add dev eth1 parent 0x1: classid 0x1:1 htb rate 1000mbit ceil 1000mbit prio 3
qdisc add dev eth1 parent 0x1:1 cake diffserv4
class add dev eth1 parent 0x1:1 classid 0x1:2 htb rate 200mbit ceil 999mbit prio 5
qdisc add dev eth1 parent 0x1:2 cake diffserv4
qdisc add dev eth1 parent 7FFF:0x2 handle 0x2: htb default 2
class add dev eth1 parent 0x2: classid 0x2:1 htb rate 1000mbit ceil 1000mbit prio 3
qdisc add dev eth1 parent 0x2:1 cake diffserv4
class add dev eth1 parent 0x2:1 classid 0x2:2 htb rate 200mbit ceil 999mbit prio 5
qdisc add dev eth1 parent 0x2:2 cake diffserv4
class add dev eth1 parent 0x2:1 classid 0x2:3 htb rate 25mbit ceil 100mbit prio 3
class add dev eth1 parent 0x2:3 classid 0x2:4 htb rate 1mbit ceil 20mbit prio 3
qdisc add dev eth1 parent 0x2:4 cake diffserv4";

#[test]
fn the_lines_of_libreqos_pass() {
    let (tree, warnings) = read(LIBREQOS, None).expect("the script is valid");
    assert!(tree.starts_with("mq handle=7fff:"), "{tree}");
    for part in [
        "1: htb handle=1: default=2",
        "2: htb handle=2: default=2",
        "rate=1mbit ceil=20mbit",
        "cake",
    ] {
        assert!(tree.contains(part), "{part}: {tree}");
    }
    let taken = warnings
        .iter()
        .filter(|text| text.contains("taken to have 2 transmit queues"));
    assert_eq!(taken.count(), 1, "{warnings:?}");
    let known = read(LIBREQOS, Some(4)).expect("the script is valid");
    assert!(
        known.1.iter().all(|text| !text.contains("taken to have")),
        "{:?}",
        known.1
    );
    assert_eq!(
        known.0.matches("pfifo_fast").count(),
        2,
        "queues 3 and 4: {}",
        known.0
    );
}

#[test]
fn queues_without_a_qdisc_have_the_kernels_default() {
    assert_eq!(
        tree("qdisc add dev e root mq", Some(2)),
        tree("qdisc add dev e root handle 1: mq", Some(2)).replace(" handle=1:", "")
    );
    let mq = tree(
        "qdisc add dev e root handle 1: mq\nqdisc add dev e parent 1:2 pfifo limit 7",
        None,
    );
    assert!(
        mq.contains("1: pfifo_fast limit=1000") && mq.contains("2: fifo handle=8001: limit=7"),
        "{mq}"
    );
    let multiq = tree(
        "qdisc add dev e root handle 1: multiq\nqdisc add dev e parent 1:2 codel",
        None,
    );
    assert!(
        multiq.contains("1: fifo limit=1000") && multiq.contains("2: codel"),
        "{multiq}"
    );
    // In Linux a multiq is also inside of others.
    let inside = "qdisc add dev e root handle 1: prio\nqdisc add dev e parent 1:1 multiq";
    assert!(
        tree(inside, Some(3)).contains("1: mq"),
        "{}",
        tree(inside, Some(3))
    );
}

#[test]
fn mqprio_maps_priorities_to_traffic_classes() {
    let map = "map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2";
    let script = format!("qdisc add dev e root handle 100: mqprio num_tc 3 {map} queues 1@0 1@1 2@2 hw 0");
    let (tree, warnings) = read(&script, None).expect("the script is valid");
    assert_eq!(warnings, [""; 0]);
    assert!(
        tree.starts_with("mq handle=100: priomap=[2, 2, 1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]"),
        "{tree}"
    );
    for class in [
        "1 traffic_class=0",
        "2 traffic_class=1",
        "3 traffic_class=2",
        "4 traffic_class=2",
    ] {
        assert!(tree.contains(class), "{class}: {tree}");
    }
    // Without words: tc's defaults, which ask the device.
    let (tree, warnings) = read("qdisc add dev e root mqprio", None).expect("the script is valid");
    assert!(
        tree.starts_with("mq priomap=[0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 1, 1, 3, 3, 3, 3]"),
        "{tree}"
    );
    assert!(tree.contains("8 traffic_class=7"), "{tree}");
    assert!(warnings[0].contains("as with hw 0"), "{warnings:?}");
    // A queue of no traffic class gets no packets.
    let gap = format!("qdisc add dev e root mqprio num_tc 3 {map} queues 1@0 1@2 1@3 hw 0");
    assert!(
        self::tree(&gap, Some(5)).contains("2 traffic_class=3"),
        "{}",
        self::tree(&gap, Some(5))
    );
}

#[test]
fn what_the_kernel_refuses_is_an_error() {
    let mqprio = |options: &str| format!("qdisc add dev e root mqprio {options}");
    let map = "map 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1";
    let cases = [
        (mqprio("num_tc 17"), "`num_tc` must be 1 to 16"),
        (
            mqprio("num_tc 2"),
            "`map` names traffic class 2, but `num_tc` is 2",
        ),
        (
            mqprio(&format!("num_tc 2 {map} 1")),
            "`map` is 16 traffic classes",
        ),
        (
            mqprio(&format!("num_tc 2 {map} queues 1@0 hw 0")),
            "`queues` has 1 ranges, but `num_tc` is 2",
        ),
        (
            mqprio(&format!("num_tc 2 {map} queues 2@0 1@1 hw 0")),
            "the queues of a traffic class begin after those of the one before",
        ),
        (
            mqprio(&format!("num_tc 2 {map} queues 0@0 1@1 hw 0")),
            "a range of queues is a count above 0 and the first one, like 2@4",
        ),
        (
            mqprio(&format!("num_tc 2 {map} queues 4@0 1@4 hw 0")),
            "`queues` needs 5 transmit queues, and the device has 4",
        ),
        (mqprio("hw 2"), "`hw` must be 0 to 1, as in the kernel"),
        (mqprio("mode channel"), "the option `mode` is not supported"),
    ];
    for (script, message) in cases {
        assert_eq!(mistakes(&script, Some(4))[0], (1, message.to_owned()), "{script}");
    }
    let many = "qdisc add dev e root handle 1: mq\nqdisc add dev e parent 1:ffff pfifo";
    assert_eq!(
        mistakes(many, None),
        [(1, "`mq` with 65535 transmit queues: at most 64".to_owned())]
    );
    let prio = "qdisc add dev e root handle 1: prio\n";
    let mq = "qdisc add dev e root handle 1: mq\n";
    for (script, message) in [
        (
            format!("{prio}qdisc add dev e parent 1:1 mq"),
            "`mq` is attached to the root only",
        ),
        (
            format!("{prio}qdisc add dev e parent 1:1 mqprio"),
            "`mqprio` is attached to the root only",
        ),
        (
            format!("{prio}qdisc add dev e parent 1:1 noqueue"),
            "`noqueue` is attached to the root only",
        ),
        (
            format!("{mq}qdisc add dev e parent 1:5 pfifo"),
            "a `mq` has no class 5 to hold this",
        ),
        (
            format!("{mq}filter add dev e parent 1: protocol ip u32 match u32 0 0 flowid 1:1"),
            "filters of a `mq` don't choose a queue: the hash and the priority do",
        ),
    ] {
        assert_eq!(mistakes(&script, Some(4)), [(2, message.to_owned())], "{script}");
    }
}

#[test]
fn noqueue_passes_packets_through() {
    assert_eq!(
        tree("qdisc add dev e root noqueue", None),
        tree("qdisc add dev e root pfifo", None)
    );
    let inside = "qdisc add dev e root handle 1: noqueue\nqdisc add dev e parent 1:1 pfifo";
    assert_eq!(
        mistakes(inside, None),
        [(2, "a `noqueue` has no class 1 to hold this".to_owned())]
    );
}

#[test]
fn an_absent_kind_says_what_to_use_instead() {
    let [(line, message)] = &mistakes("qdisc add dev e root teql0", None)[..] else {
        panic!("one mistake")
    };
    assert_eq!(*line, 1);
    assert!(
        message
            .ends_with("it sends one flow of packets over several devices, and a run joins two interfaces")
    );
}
