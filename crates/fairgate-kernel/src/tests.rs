//! Trees from text to bytes and back, and bytes that nobody checked.

use fairgate::flow::{dissect_payload, ethertype};
use fairgate::{DropReason, Next, Packet, Time};
use fairgate_config::{Document, Spec};
use proptest::prelude::*;

use crate::convert::tree_of;
use crate::queue::common_key;
use crate::tree::Reads;
use crate::{Arriving, Plan, Queue, Successor};

fn plan(line: &str) -> Plan {
    let spec = Spec::inline(line).unwrap();
    Plan {
        slots: 100,
        cuts: true,
        tree: tree_of(&spec).unwrap(),
    }
}

fn with_classes() -> Plan {
    let document = Document::parse("test", FILE).unwrap();
    Plan {
        slots: 100,
        cuts: true,
        tree: tree_of(document.queue("shared").unwrap()).unwrap(),
    }
}

fn queue(line: &str) -> Queue {
    Successor::new(&plan(line), 7).unwrap().into_queue([1, 2])
}

/// The headers of an IPv4 packet of UDP from this port.
fn udp(port: u16, traffic_class: u8) -> [u8; 28] {
    let mut head = [0u8; 28];
    head[0] = 0x45;
    head[1] = traffic_class;
    head[3] = 28;
    head[9] = 17;
    head[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    head[20..22].copy_from_slice(&port.to_be_bytes());
    head
}

/// A packet with these headers. The cookie is `number`.
fn arriving(head: &[u8], number: u64) -> Arriving<'_> {
    Arriving {
        head,
        ethertype: ethertype::IPV4,
        outer_ethertype: ethertype::IPV4,
        vlan: 0,
        priority: 0,
        packet: Packet {
            cookie: number,
            ..Packet::of_length(1000)
        },
    }
}

fn offer(queue: &mut Queue, port: u16, number: u64, now: Time) -> bool {
    queue.enqueue(&arriving(&udp(port, 0), number), now)
}

fn drain(queue: &mut Queue, now: Time) -> Vec<u64> {
    let mut cookies = Vec::new();
    while let Next::Packet(departure) = queue.dequeue(now) {
        cookies.push(departure.slot.cookie);
    }
    cookies
}

const LINES: [&str; 9] = [
    "fq_codel",
    "fifo limit=10",
    "tbf rate=20mbit burst=20kb / sqf limit=100",
    "cake bandwidth=50mbit",
    "netem delay=5ms",
    "qfq",
    "ared bandwidth=10mbit",
    "hhf",
    "pfifo_fast",
];

/// A tree of each discipline that does not read everything of headers.
const READERS: [(Reads, &[&str]); 3] = [
    (
        Reads::Nothing,
        &[
            "fifo limit=20",
            "pfifo_fast",
            "tbf rate=200mbit burst=20kb limit=20kb",
        ],
    ),
    (
        Reads::TrafficClass,
        &[
            "ared bandwidth=200mbit",
            "codel limit=20 target=100us interval=1ms ecn=true",
            "dualpi2",
            "pie limit=20 target=100us ecn=true",
            "red limit=20kb min=5kb max=20kb ecn=true",
        ],
    ),
    (
        Reads::Flow,
        &[
            "choke",
            "drr",
            "fq",
            "fq_codel target=100us interval=1ms",
            "fq_nagle",
            "fq_pie",
            "frr",
            "gfq",
            "hhf",
            "msfc",
            "pfq",
            "qfq",
            "qfq_plus",
            "s_kps",
            "scfq",
            "sfb",
            "sfq",
            "wf2q_plus",
            "wfq rate=200mbit",
        ],
    ),
];

/// A tree of classes with a filter.
const FILE: &str = r#"
[queue.shared]
discipline = "htb"
default = 2
[[queue.shared.class]]
id = 1
rate = "10mbit"
[[queue.shared.class]]
id = 2
parent = 1
rate = "4mbit"
discipline = "fq_codel"
[[queue.shared.class]]
id = 3
parent = 1
rate = "6mbit"
discipline = "sqf"
[[queue.shared.filter]]
source = "192.0.2.0/24"
destination_port = 53
protocol = "udp"
class = 3
"#;

#[test]
fn a_plan_is_read_back_as_it_was_written() {
    for line in LINES {
        let Ok(spec) = Spec::inline(line) else {
            panic!("{line} is a valid tree")
        };
        let plan = Plan {
            slots: 1000,
            cuts: !spec.takes_super_packets(),
            tree: tree_of(&spec).unwrap(),
        };
        assert_eq!(Plan::from_bytes(&plan.to_bytes()).as_ref(), Ok(&plan), "{line}");
        Successor::new(&plan, 1).unwrap();
    }
}

/// Every tree of the examples is built from its compact form.
#[test]
fn the_examples_are_read_back() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            let Ok(document) = Document::parse(&path.to_string_lossy(), &text) else {
                continue;
            };
            for (name, spec) in document.queues() {
                let Ok(tree) = tree_of(spec) else {
                    panic!("{}: {name}", path.display())
                };
                let plan = Plan {
                    slots: 1000,
                    cuts: false,
                    tree,
                };
                let bytes = plan.to_bytes();
                assert_eq!(
                    Plan::from_bytes(&bytes).as_ref(),
                    Ok(&plan),
                    "{}: {name}",
                    path.display()
                );
                assert!(bytes.len() < 60_000, "{}: {} bytes", path.display(), bytes.len());
                Successor::new(&plan, 1).unwrap();
                count += 1;
            }
        }
    }
    assert!(count >= 8, "{count} trees");
}

#[test]
fn a_tree_with_classes_and_filters_classifies() {
    let plan = Plan::from_bytes(&with_classes().to_bytes()).unwrap();
    let mut queue = Successor::new(&plan, 7).unwrap().into_queue([1, 2]);
    assert!(offer(&mut queue, 1, 1, Time::ZERO));
    let mut classes = Vec::new();
    queue.visit_classes(&mut |class| classes.push((class.minor, class.discipline.backlog().packets)));
    assert_eq!(classes, [(2, 1), (3, 0)]);
}

#[test]
fn a_number_out_of_range_is_refused_by_name() {
    let bytes = plan("fifo limit=10").to_bytes();
    // The limit is the only number of eight bytes with this value.
    let ten = 10u64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == ten).unwrap();
    let mut wrong = bytes.clone();
    wrong[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let text = Plan::from_bytes(&wrong).unwrap_err().0;
    assert!(text.starts_with("fifo: `limit` is outside of"), "{text}");
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(Plan::from_bytes(&longer).unwrap_err().0, "bytes follow the tree");
    for length in 0..bytes.len() {
        Plan::from_bytes(&bytes[..length]).unwrap_err();
    }
}

#[test]
fn a_deep_tree_is_refused() {
    let deep = ["tbf rate=1gbit burst=10kb"; 8].join(" / ") + " / fifo";
    let text = Plan::from_bytes(&plan(&deep).to_bytes()).unwrap_err().0;
    assert!(text.contains("deeper than 8"), "{text}");
}

#[test]
fn packets_survive_a_change_in_order() {
    let mut queue = queue("fifo limit=50");
    for number in 1..=5 {
        assert!(offer(&mut queue, 1, number, Time::from_millis(number)));
    }
    let mut successor = Successor::new(&plan("tbf rate=1gbit burst=100kb / sqf limit=50"), 8).unwrap();
    queue.check_succession(&successor).unwrap();
    queue.succeed(&mut successor, Time::from_millis(10));
    drop(successor);
    assert_eq!(queue.statistics().enqueued.packets, 5);
    assert_eq!(drain(&mut queue, Time::from_millis(11)), [1, 2, 3, 4, 5]);
    let larger = Plan {
        slots: 200,
        ..plan("fifo")
    };
    let refusal = queue
        .check_succession(&Successor::new(&larger, 1).unwrap())
        .unwrap_err();
    assert!(refusal.0.starts_with("slots stay at 100"), "{refusal}");
}

#[test]
fn all_packets_can_be_salvaged_without_the_tree() {
    let mut queue = queue("tbf rate=1mbit burst=2kb / sqf limit=50");
    for number in 1..=5 {
        offer(&mut queue, number as u16, number, Time::ZERO);
    }
    let Next::Packet(first) = queue.dequeue(Time::ZERO) else {
        panic!("one may leave at once")
    };
    let (mut found, mut from) = (vec![first.slot.cookie], 0);
    while let Some((slot, next)) = queue.salvage(from) {
        found.push(slot.cookie);
        from = next;
    }
    found.sort_unstable();
    assert_eq!(found, [1, 2, 3, 4, 5]);
}

/// What became of packets: cookie, ECN bits, reason of a drop.
type Fates = Vec<(u64, u8, Option<DropReason>)>;

/// Offers packets, each with its headers and whether one may leave then, at 10 times what leaves.
fn fates(queue: &mut Queue, packets: &[(u16, u8, bool)]) -> Fates {
    let mut fates = Vec::new();
    for (number, (port, traffic_class, leaves)) in (1u64..).zip(packets) {
        let now = Time::from_micros(number * 40);
        let head = udp(*port, *traffic_class);
        assert!(queue.enqueue(&arriving(&head, number), now));
        if *leaves && let Next::Packet(departure) = queue.dequeue(now) {
            fates.push((departure.slot.cookie, u8::from(departure.slot.is_marked()), None));
        }
        while let Some(dropped) = queue.take_dropped() {
            fates.push((dropped.slot.cookie, 0, Some(dropped.reason)));
        }
    }
    fates
}

proptest! {
    /// What a tree does not read makes no difference: with everything read, the same packets leave in the
    /// same order, with the same marks, and the same ones are dropped.
    #[test]
    fn a_tree_reads_all_that_it_uses(
        packets in prop::collection::vec((0u16..20, 0u8..16, any::<bool>()), 80),
    ) {
        for (reads, lines) in READERS {
            for line in lines {
                let mut queue = queue(line);
                prop_assert_eq!(plan(line).tree.reads(), reads, "{}", line);
                let fates_of_less = fates(&mut queue, &packets);
                let mut queue = self::queue(line);
                queue.read_everything();
                prop_assert_eq!(fates_of_less, fates(&mut queue, &packets), "{}", line);
            }
        }
    }

    /// The short way to a key leads to the same key.
    #[test]
    fn a_common_key_is_that_of_the_dissector(
        port: u16,
        changes in prop::collection::vec((0usize..28, any::<u8>()), 0..4),
        length in 0usize..=28,
    ) {
        let mut head = udp(port, 3);
        for (at, byte) in changes {
            head[at] = byte;
        }
        let arriving = arriving(&head[..length], 0);
        if let Some(key) = common_key(&arriving) {
            prop_assert_eq!(key, dissect_payload(arriving.head, arriving.ethertype).key);
        }
    }

    /// Bytes that are nearly a plan: they are refused, or build a tree that works.
    #[test]
    fn damaged_bytes_hurt_nobody(
        which in 0..LINES.len() + 1,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = match LINES.get(which) {
            Some(line) => plan(line).to_bytes(),
            None => with_classes().to_bytes(),
        };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(mut plan) = Plan::from_bytes(&bytes) {
            plan.slots = plan.slots.min(1000);
            if let Ok(successor) = Successor::new(&plan, 3) {
                let mut queue = successor.into_queue([1, 2]);
                for number in 0..20 {
                    offer(&mut queue, number as u16, number, Time::from_millis(number));
                    queue.dequeue(Time::from_millis(number));
                    while queue.take_dropped().is_some() {}
                }
                queue.flush();
                queue.statistics();
            }
        }
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Plan::from_bytes(&bytes);
    }
}
