//! Scripts of tc that shape both directions.

use fairgate_live::testbed::Network;
use fairgate_run_api::NodeStatus;

use crate::common::live;
use crate::run::{Run, call, transfer, transfer_between, transfer_of};

/// Shapes what leaves by `left` and, with an ifb, what arrives there, as wondershaper and sqm-scripts do.
const BOTH_WAYS: &str = "\
tc qdisc del dev left root 2>/dev/null
tc qdisc del dev left handle ffff: ingress 2>/dev/null
tc qdisc add dev left root handle 1: htb default 20
tc class add dev left parent 1: classid 1:1 htb rate 20mbit
tc class add dev left parent 1:1 classid 1:20 htb rate 16mbit ceil 20mbit prio 2
tc qdisc add dev left parent 1:20 handle 20: fq_codel
tc qdisc add dev left handle ffff: ingress
tc filter add dev left parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 \\
    action mirred egress redirect dev ifb4left
tc qdisc add dev ifb4left root handle 1: htb default 10
tc class add dev ifb4left parent 1: classid 1:10 htb rate 25mbit
tc qdisc add dev ifb4left parent 1:10 handle 10: fq_codel
";

/// Sends real TCP in both directions. All packets of each pass the default class of that direction, and wait
/// there, because 4 MB arrive at once.
#[test]
fn scripts_shape_both_directions() {
    let Some(_watched) = live("scripts_shape_both_directions") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::of_script(&network.router, "tc", BOTH_WAYS, ["right", "left"]);
    let to_left = format!("{}:4000", Network::LEFT);
    transfer_between(
        &network.right,
        &network.left,
        &to_left,
        "what leaves by the script's device",
    );
    let to_right = format!("{}:4000", Network::RIGHT);
    transfer(&network, &to_right, "what arrives there");
    let status = run.status();
    let [out, back] = &status.directions[..] else {
        panic!("two directions")
    };
    for (direction, to, class) in [(out, "left", 0x20), (back, "right", 0x10)] {
        let tree = &direction.tree;
        assert_eq!((direction.to.as_str(), tree.discipline.as_str()), (to, "htb"));
        assert_eq!((tree.classes.len(), tree.classes[0].class), (1, Some(class)));
        let sent = &tree.classes[0].dequeued;
        assert!(sent.bytes > 4_000_000, "to {to}: {sent:?}");
        assert!(tree.overlimits > 0, "to {to}: nothing waited");
    }
    run.stop();
    two_hundred_subscribers(&network);
    policed(&network);
    generators(&network);
}

/// How many subscribers LibreQoS' tree has, on each of two transmit queues.
const SUBSCRIBERS: u32 = 100;

/// How many subscribers an access point has.
const OF_ACCESS_POINT: u32 = 25;

/// The lines of LibreQoS for a network with 200 subscribers: a tree for each device, one for each direction,
/// and in it a tree for each transmit queue: a site, its access points, their subscribers.
fn libreqos() -> String {
    let mut script = String::new();
    for device in ["left", "right"] {
        script += &format!("qdisc replace dev {device} root handle 7FFF: mq\n");
        for queue in 1..=2 {
            script += &format!(
                "qdisc add dev {device} parent 7FFF:{queue:#x} handle {queue:#x}: htb default 2
                class add dev {device} parent {queue:#x}: classid {queue:#x}:1 htb rate 300mbit ceil 300mbit
                qdisc add dev {device} parent {queue:#x}:1 cake diffserv4
                class add dev {device} parent {queue:#x}:1 classid {queue:#x}:2 htb rate 75mbit ceil 299mbit \
                    prio 5
                qdisc add dev {device} parent {queue:#x}:2 cake diffserv4
                class add dev {device} parent {queue:#x}: classid 0x3 htb rate 285mbit ceil 300mbit prio 3\n"
            );
        }
    }
    for queue in 1..=2 {
        let mut minor = 4;
        for access_point in 0..SUBSCRIBERS / OF_ACCESS_POINT {
            let site = minor;
            minor += 1;
            for device in ["left", "right"] {
                script += &format!(
                    "class add dev {device} parent {queue:#x}:0x3 classid {site:#x} htb rate 95mbit ceil \
                     100mbit prio 3\n"
                );
            }
            for number in 0..OF_ACCESS_POINT {
                let circuit = access_point * OF_ACCESS_POINT + number;
                for device in ["left", "right"] {
                    script += &format!(
                        "class add dev {device} parent {queue:#x}:{site:#x} classid {minor:#x} htb rate \
                         27mbit ceil 55mbit prio 3 # CircuitID: {circuit} DeviceIDs: {circuit},
                        qdisc add dev {device} parent {queue:#x}:{minor:#x} cake diffserv4\n"
                    );
                }
                minor += 1;
            }
        }
    }
    script
}

/// The packets of a subscriber get their class from LibreQoS' program in the kernel, and not from these
/// lines. By these alone, all of them take the default class.
fn two_hundred_subscribers(network: &Network) {
    let run = Run::of_script(&network.router, "tc", &libreqos(), ["right", "left"]);
    let [to_right, to_left] = [Network::RIGHT, Network::LEFT].map(|address| format!("{address}:4001"));
    transfer(network, &to_right, "to the subscribers");
    transfer_between(&network.right, &network.left, &to_left, "from the subscribers");
    let status = run.status();
    for direction in &status.directions {
        let tree = &direction.tree;
        assert_eq!((tree.discipline.as_str(), tree.classes.len()), ("mq", 2));
        let subscribers: usize = tree.classes.iter().map(|queue| queue.classes.len() - 1).sum();
        assert_eq!(subscribers, 2 * SUBSCRIBERS as usize, "beside the default class");
        let sent: u64 = tree.classes.iter().map(|queue| queue.dequeued.packets).sum();
        assert_eq!(tree.dequeued.packets, sent, "to {}", direction.to);
        let of_defaults = |queue: &NodeStatus| {
            let mut classes = queue.classes.iter().filter(|class| class.class == Some(2));
            classes.next().map_or(0, |class| class.dequeued.bytes)
        };
        let most = tree.classes.iter().map(of_defaults).max();
        assert!(
            most > Some(4_000_000),
            "a flow stays in one queue: {most:?} to {}",
            direction.to
        );
    }
    subscribers_by_address(network, &run);
    run.stop();
}

/// The queue, counted from 1, and the class of a subscriber.
fn place_of(subscriber: u32) -> (u32, u32) {
    let (queue, of_queue) = (subscriber / SUBSCRIBERS, subscriber % SUBSCRIBERS);
    let (access_point, number) = (of_queue / OF_ACCESS_POINT, of_queue % OF_ACCESS_POINT);
    (queue + 1, 4 + access_point * (1 + OF_ACCESS_POINT) + 1 + number)
}

fn address_of(subscriber: u32) -> String {
    format!("10.77.1.{}", subscriber + 1)
}

/// The ceil of a subscriber's class, bit/s.
const CEIL: f64 = 55e6;

/// More than a class may have saved, and the frames under way when the clock was read.
const SAVED: f64 = 40_000.0;

/// Filters in place of LibreQoS' program: by the address of a subscriber to the queue, and in the queue to
/// the class. All are added to the running trees. Two subscribers, one on each queue, send and receive.
fn subscribers_by_address(network: &Network, run: &Run) {
    for (from, address_is) in [("left", "destination"), ("right", "source")] {
        let mut lines = Vec::new();
        for subscriber in 0..2 * SUBSCRIBERS {
            let ((queue, class), address) = (place_of(subscriber), address_of(subscriber));
            lines.push(format!("filter add class={queue} {address_is}={address}"));
            lines.push(format!(
                "filter add in={queue} class={class} {address_is}={address}"
            ));
        }
        run.change(Some(from), &lines).unwrap();
    }
    call(
        &network.left,
        "ip",
        &["route", "add", "10.77.1.0/24", "dev", "eth0"],
    );
    for subscriber in [7, SUBSCRIBERS + 60] {
        let address = address_of(subscriber);
        let own = format!("{address}/32");
        call(&network.right, "ip", &["address", "add", &own, "dev", "eth0"]);
        // What it sends to the left host has this address.
        let route = ["route", "replace", Network::LEFT, "dev", "eth0", "src", &address];
        call(&network.right, "ip", &route);
        let to_left = format!("{}:{}", Network::LEFT, 4100 + subscriber);
        for to in ["right", "left"] {
            let before = traffic_of(run, subscriber, to);
            match to {
                "right" => transfer(network, &format!("{address}:4100"), "to a subscriber"),
                _ => transfer_between(&network.right, &network.left, &to_left, "from a subscriber"),
            }
            let after = traffic_of(run, subscriber, to);
            let sent = after.bytes - before.bytes;
            assert!(sent > 4e6, "{subscriber}: {before:?}, {after:?}");
            let most = CEIL / 8.0 * (after.at - before.at) + SAVED;
            assert!(
                sent < most,
                "{subscriber}: more than {most}: {before:?}, {after:?}"
            );
            assert!(after.overlimits > before.overlimits, "{before:?}, {after:?}");
        }
    }
    call(
        &network.right,
        "ip",
        &["route", "del", Network::LEFT, "dev", "eth0"],
    );
    // Nobody else has sent or received anything.
    let status = run.status();
    for direction in &status.directions {
        let queues = direction.tree.classes.iter();
        let used = queues
            .flat_map(|queue| &queue.classes)
            .filter(|class| class.dequeued.packets > 0);
        let used: Vec<_> = used
            .filter_map(|class| class.class)
            .filter(|class| *class > 2)
            .collect();
        let two = [7, SUBSCRIBERS + 60].map(|subscriber| place_of(subscriber).1);
        assert_eq!(used, two, "to {}", direction.to);
    }
}

/// What left a subscriber's class.
#[derive(Debug)]
struct Traffic {
    bytes: f64,
    overlimits: u64,
    /// When the class was read, seconds.
    at: f64,
}

/// Returns what left a subscriber's class in the direction to an interface.
fn traffic_of(run: &Run, subscriber: u32, to: &str) -> Traffic {
    let (queue, class) = place_of(subscriber);
    let status = run.status();
    let direction = status.directions.iter().find(|direction| direction.to == to);
    let tree = &direction.expect("both directions").tree;
    let states = &tree.classes[queue as usize - 1].class_states;
    let state = states.iter().find(|state| state.class == class);
    let state = state.expect("the tree has the class");
    Traffic {
        bytes: state.sent.bytes as f64,
        overlimits: state.overlimits,
        at: state.at_s,
    }
}

/// The policer of "Linux Advanced Routing & Traffic Control": what arrives faster is dropped. TCP gets
/// through all the same.
const POLICED: &str = "\
tc qdisc add dev left handle ffff: ingress
tc filter add dev left parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 \\
    police rate 20mbit burst 10k drop flowid :1
tc qdisc add dev left root handle 1: htb default 1
tc class add dev left parent 1: classid 1:1 htb rate 100mbit
";

fn policed(network: &Network) {
    let run = Run::of_script(&network.router, "tc", POLICED, ["right", "left"]);
    let address = format!("{}:4030", Network::RIGHT);
    transfer_of(1_000_000, &network.left, &network.right, &address, "policed");
    let status = run.status();
    let arriving = status.directions.iter().find(|direction| direction.to == "right");
    let tree = &arriving.expect("both directions").tree;
    assert!(tree.dequeued.bytes > 1_000_000, "{:?}", tree.dequeued);
    let policed = tree.drops.get("policed").copied().unwrap_or(0);
    assert!(policed > 0, "1 MB at once exceeds 20 Mbit/s: {:?}", tree.drops);
    run.stop();
}

/// What the generators write, as in the corpus of `fairgate-scripts`.
const SQM_SIMPLE: &str = include_str!("../../../fairgate-scripts/tests/corpus/sqm-simple.tc");
const WONDERSHAPER: &str = include_str!("../../../fairgate-scripts/tests/corpus/wondershaper.tc");

/// Each is run unedited but for the names of devices. TCP is sent both ways.
fn generators(network: &Network) {
    let on_left = |script: &str, device: &str, ifb: &str| {
        script
            .replace(&format!("dev {ifb}"), "dev ifb4left")
            .replace(&format!("dev {device} "), "dev left ")
    };
    let simple = on_left(SQM_SIMPLE, "wan", "ifb4wan");
    both_ways(
        network,
        "sqm's simple.qos",
        &simple,
        4010,
        [("htb", 1_000_000), ("htb", 4_000_000)],
    );
    // Its ifb gets only IP. All other frames pass in a class of their own.
    let wondershaper = on_left(WONDERSHAPER, "enp1s0", "ifb0");
    both_ways(
        network,
        "wondershaper",
        &wondershaper,
        4020,
        [("htb", 500_000), ("prio", 4_000_000)],
    );
}

/// Runs a script, and sends so many bytes to the left host, out by the script's device, and to the right one.
fn both_ways(network: &Network, name: &str, script: &str, port: u16, expected: [(&str, u32); 2]) {
    let run = Run::of_script(&network.router, "tc", script, ["right", "left"]);
    let [(out, up), (back, down)] = expected;
    let to_left = format!("{}:{port}", Network::LEFT);
    transfer_of(up, &network.right, &network.left, &to_left, name);
    let to_right = format!("{}:{}", Network::RIGHT, port + 1);
    transfer_of(down, &network.left, &network.right, &to_right, name);
    let status = run.status();
    for (discipline, bytes, to) in [(out, up, "left"), (back, down, "right")] {
        let direction = status.directions.iter().find(|direction| direction.to == to);
        let tree = &direction.expect("both directions").tree;
        assert_eq!(tree.discipline, discipline, "{name}");
        assert!(
            tree.dequeued.bytes > bytes.into(),
            "{name} to {to}: {:?}",
            tree.dequeued
        );
        assert_eq!(
            tree.dropped.packets + tree.dequeued.packets + tree.backlog.packets,
            tree.enqueued.packets
        );
    }
    run.stop();
}
