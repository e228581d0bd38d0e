//! Scripts of tc that shape both directions.

use fairgate_live::status::NodeStatus;
use fairgate_live::testbed::Network;

use crate::common::live;
use crate::run::{Run, transfer, transfer_between};

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
fn a_script_with_an_ifb_shapes_both_directions() {
    let Some(_watched) = live("a_script_with_an_ifb_shapes_both_directions") else {
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
    a_tree_for_each_device(&network);
}

/// The lines of LibreQoS: a device's tree for each direction, and in it a tree for each transmit queue.
fn a_tree_for_each_device(network: &Network) {
    let of = |device: &str| {
        let queue = |number: u16| {
            format!(
                "qdisc add dev {device} parent 7FFF:{number} handle 0x{number}: htb default 2
                class add dev {device} parent 0x{number}: classid 0x{number}:1 htb rate 30mbit
                qdisc add dev {device} parent 0x{number}:1 cake diffserv4
                class add dev {device} parent 0x{number}:1 classid 0x{number}:2 htb rate 20mbit ceil 30mbit
                qdisc add dev {device} parent 0x{number}:2 cake diffserv4\n"
            )
        };
        format!(
            "qdisc replace dev {device} root handle 7FFF: mq\n{}{}",
            queue(1),
            queue(2)
        )
    };
    let script = of("left") + &of("right");
    let run = Run::of_script(&network.router, "tc", &script, ["right", "left"]);
    transfer(
        network,
        &format!("{}:4001", Network::RIGHT),
        "a tree for each device",
    );
    let status = run.status();
    for direction in &status.directions {
        let tree = &direction.tree;
        assert_eq!((tree.discipline.as_str(), tree.classes.len()), ("mq", 2));
        let sent: u64 = tree.classes.iter().map(|queue| queue.dequeued.packets).sum();
        assert_eq!(tree.dequeued.packets, sent, "to {}", direction.to);
    }
    let most = |tree: &NodeStatus| tree.classes.iter().map(|queue| queue.dequeued.bytes).max();
    assert!(
        most(&status.directions[1].tree) > Some(4_000_000),
        "a flow stays in one queue"
    );
    run.stop();
}
