//! Trees from text to bytes and back, and bytes that nobody checked.

use fairgate::classify::{Filter, Filters, Measure};
use fairgate::flow::{dissect_payload, ethertype};
use fairgate::{DropReason, Next, Packet, Time, Variable};
use fairgate_config::{Document, Spec};
use proptest::prelude::*;

use crate::convert::tree_of;
use crate::form::{Form, Reader, write_short};
use crate::queue::common_key;
use crate::tree::Reads;
use crate::{
    Arriving, BUCKETS, ClassRecord, NodeRecord, Plan, Prepared, Queue, Reading, Record, middle, records,
};

fn plan(line: &str) -> Plan {
    let spec = Spec::inline(line).unwrap();
    Plan {
        slots: 100,
        cuts: true,
        tree: tree_of(&spec).unwrap(),
    }
}

/// Returns a plan's bytes with another number in the place of one that they have once.
fn patched(bytes: &[u8], old: u64, new: u64) -> Vec<u8> {
    let form = |number| {
        let mut form = Vec::new();
        write_short(number, &mut form);
        form
    };
    let old = form(old);
    let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
    [&bytes[..at], &form(new), &bytes[at + old.len()..]].concat()
}

/// A provider's tree fits into a message: 3,000 classes, each with other rates, and what is in them.
#[test]
fn thousands_of_classes_fit_into_a_message() {
    let mut line = "htb default=2 { 1 rate=9gbit".to_owned();
    for minor in 2..=3001 {
        line += &format!(
            "; {minor} parent=1 rate={}kbit ceil={}kbit / fq_codel",
            100 + minor,
            9000 + minor
        );
    }
    let plan = plan(&(line + " }"));
    let bytes = plan.to_bytes();
    assert!(bytes.len() < 65_000, "{} bytes", bytes.len());
    assert_eq!(Plan::from_bytes(&bytes).as_ref(), Ok(&plan));
}

/// Builds a queue, and what its next change is planned from.
fn run(plan: &Plan) -> (Queue, Box<Prepared>) {
    let mut prepared = Prepared::new(plan.clone(), 7).unwrap();
    (Queue::new(&mut prepared, [1, 2]), prepared)
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
    run(&plan(line)).0
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
        Prepared::new(plan, 1).unwrap();
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
                Prepared::new(plan, 1).unwrap();
                count += 1;
            }
        }
    }
    assert!(count >= 8, "{count} trees");
}

#[test]
fn a_tree_with_classes_and_filters_classifies() {
    let plan = Plan::from_bytes(&with_classes().to_bytes()).unwrap();
    let mut queue = run(&plan).0;
    assert!(offer(&mut queue, 1, 1, Time::ZERO));
    let mut classes = Vec::new();
    queue.visit_classes(&mut |class| classes.push((class.minor, class.discipline.backlog().packets)));
    assert_eq!(classes, [(2, 1), (3, 0)]);
}

/// What `tc class show` prints: the classes above others, too, with the sums of what is below them.
#[test]
fn classes_above_others_are_shown_with_their_sums() {
    const TREE: &str = r#"
[queue.line]
discipline = "tbf"
rate = "1gbit"
burst = "100kb"
[queue.line.inner]
discipline = "htb"
[[queue.line.inner.class]]
id = 1
rate = "10mbit"
[[queue.line.inner.class]]
id = 20
parent = 1
rate = "5mbit"
discipline = "fifo"
[[queue.line.inner.class]]
id = 30
parent = 40
rate = "2mbit"
discipline = "fifo"
[[queue.line.inner.class]]
id = 40
parent = 1
rate = "5mbit"
[[queue.line.inner.class]]
id = 50
rate = "2mbit"
discipline = "fifo"
[[queue.line.inner.filter]]
class = 20
source_port = 1
[[queue.line.inner.filter]]
class = 30
source_port = 2
"#;
    let document = Document::parse("test", TREE).unwrap();
    let tree = tree_of(document.queue("line").unwrap()).unwrap();
    let plan = Plan {
        slots: 100,
        cuts: true,
        tree,
    };
    let (mut queue, prepared) = run(&plan);
    for (number, port) in [1, 1, 2].into_iter().enumerate() {
        assert!(offer(&mut queue, port, number as u64 + 1, Time::ZERO));
    }
    let parents = prepared.parents();
    let mut shown = Vec::new();
    let mut next = 1;
    while let Some(class) = parents.first(queue.root(), next) {
        let waiting = parents.statistics(queue.root(), class).backlog().packets;
        shown.push((class, parents.parent(class), waiting));
        next = u64::from(class) + 1;
    }
    let wanted = [
        (1, None, 3),
        (20, Some(1), 2),
        (30, Some(40), 1),
        (40, Some(1), 1),
        (50, None, 0),
    ];
    assert_eq!(shown, wanted);
}

#[test]
fn a_number_out_of_range_is_refused_by_name() {
    let bytes = plan("fifo limit=12345").to_bytes();
    let wrong = patched(&bytes, 12_345, u64::MAX);
    let text = Plan::from_bytes(&wrong).unwrap_err().text;
    assert!(text.starts_with("fifo: `limit` is outside of"), "{text}");
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(
        Plan::from_bytes(&longer).unwrap_err().text,
        "bytes follow the tree"
    );
    for length in 0..bytes.len() {
        Plan::from_bytes(&bytes[..length]).unwrap_err();
    }
}

#[test]
fn a_deep_tree_is_refused() {
    let deep = ["tbf rate=1gbit burst=10kb"; 8].join(" / ") + " / fifo";
    let refused = Plan::from_bytes(&plan(&deep).to_bytes()).unwrap_err();
    assert!(refused.text.contains("deeper than 8"), "{refused}");
    assert_eq!(refused.node, Some(8));
}

/// Found by the fuzz target `netlink`: the state of a policer was made before its numbers were checked.
#[test]
fn a_policer_with_impossible_numbers_is_refused() {
    const POLICE: &str = r#"
[queue.access]
discipline = "prio"
[[queue.access.class]]
id = 1
discipline = "fifo"
[[queue.access.filter]]
class = 1
police = { average = "2mbit", estimator = "250ms 1s" }
"#;
    let document = Document::parse("test", POLICE).unwrap();
    let spec = document.queue("access").unwrap();
    let mut filters = spec.classifier().filters.to_vec();
    let bytes = |filters: &Vec<Filter>| {
        let mut bytes = Vec::new();
        filters.write(&mut bytes);
        bytes
    };
    assert!(Filters::read(&mut Reader::new(&bytes(&filters))).is_ok());
    let police = filters[0].police.as_mut().unwrap();
    police.average.as_mut().unwrap().sample_log = 63;
    let refused = Filters::read(&mut Reader::new(&bytes(&filters))).unwrap_err();
    assert!(refused.text.contains("estimator"), "{refused}");
    let police = filters[0].police.as_mut().unwrap();
    police.average = None;
    police.measure = Measure::Packets {
        rate: 3 << 61,
        burst: 1,
    };
    let refused = Filters::read(&mut Reader::new(&bytes(&filters))).unwrap_err();
    assert!(refused.text.contains("packets"), "{refused}");
}

/// A mistake is at the discipline that has it, counted as the description counts them.
#[test]
fn a_refusal_says_which_discipline_it_is_about() {
    let line = "htb default=4 { 2 rate=1mbit / tbf rate=1mbit burst=10kb / fifo limit=77777; \
                3 rate=1mbit / sqf; 4 rate=1mbit / fifo limit=78888 }";
    let bytes = plan(line).to_bytes();
    for (limit, node) in [(77_777, 2), (78_888, 4)] {
        let refused = Plan::from_bytes(&patched(&bytes, limit, u64::MAX)).unwrap_err();
        assert_eq!(refused.node, Some(node), "{refused}");
        let problem = Spec::inline(line)
            .unwrap()
            .refused_by(node, "the kernel", "no", "")
            .unwrap();
        assert!(line[problem.span].starts_with("fifo"));
    }
    // What is wrong with the plan and not with its tree has no place.
    let mut other = bytes;
    other[0] = 99;
    assert_eq!(Plan::from_bytes(&other).unwrap_err().node, None);
}

/// Changes the tree that runs.
fn change(queue: &mut Queue, running: &mut Prepared, line: &str, now: Time) {
    let mut next = running.change_to(plan(line), 8).unwrap();
    queue.succeed(&mut next, now).unwrap();
    next.settle();
    *running = *next;
}

#[test]
fn packets_survive_a_change_in_order() {
    let (mut queue, mut running) = run(&plan("fifo limit=50"));
    for number in 1..=5 {
        assert!(offer(&mut queue, 1, number, Time::from_millis(number)));
    }
    let wanted = "tbf rate=1gbit burst=100kb / sqf limit=50";
    change(&mut queue, &mut running, wanted, Time::from_millis(10));
    assert_eq!(queue.statistics().enqueued.packets, 5);
    assert_eq!(drain(&mut queue, Time::from_millis(11)), [1, 2, 3, 4, 5]);
    let larger = Plan {
        slots: 200,
        ..plan("fifo")
    };
    let refusal = running.change_to(larger, 1).unwrap_err();
    assert!(refusal.text.starts_with("slots stay at 100"), "{refusal}");
}

/// A change of a rate keeps the tokens of the shaper, and what is inside it goes on: its packets, its
/// statistics, and what it knows of flows.
#[test]
fn a_change_keeps_the_state_below_the_root() {
    let (mut queue, mut running) = run(&plan("tbf rate=1mbit burst=2000b / fq_codel"));
    for number in 1..=9 {
        offer(&mut queue, 1, number, Time::ZERO);
    }
    let sent = drain(&mut queue, Time::ZERO);
    let wanted = "tbf rate=2mbit burst=2000b / fq_codel";
    change(&mut queue, &mut running, wanted, Time::ZERO);
    // A new bucket would be full.
    assert_eq!(drain(&mut queue, Time::ZERO), [0; 0]);
    let mut inner = 0;
    queue.visit_classes(&mut |class| inner = class.discipline.statistics().dequeued.packets);
    assert_eq!(inner, sent.len() as u64);
    assert_eq!(queue.statistics().dequeued.packets, sent.len() as u64);
}

/// What is wrong with a change is named with its discipline, as in a new tree.
#[test]
fn a_refused_change_names_the_discipline() {
    let (_, running) = run(&plan("tbf rate=1mbit burst=2000b / fq_codel"));
    let line = "tbf rate=1mbit burst=2000b / red min=30001b max=90003b";
    // Each number alone is in its range.
    let wrong = Plan::from_bytes(&patched(&plan(line).to_bytes(), 90_003, 20_002)).unwrap();
    let refused = running.change_to(wrong.clone(), 1).unwrap_err();
    assert_eq!(refused, Prepared::new(wrong, 1).unwrap_err());
    assert_eq!(refused.node, Some(1));
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
            if let Ok(mut prepared) = Prepared::new(plan, 3) {
                let mut queue = Queue::new(&mut prepared, [1, 2]);
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

/// Reads a queue part by part. `between` may do something with it after each part.
fn read(queue: &mut Queue, mut between: impl FnMut(&mut Queue)) -> Vec<Record> {
    let mut reading = Reading::new(queue);
    let mut all = Vec::new();
    loop {
        let part = reading.part(queue, Time::from_nanos(7));
        assert!(part.len() < 14_336, "{} bytes in a part", part.len());
        if part.is_empty() {
            return all;
        }
        all.extend(records(part).unwrap());
        between(queue);
    }
}

#[test]
fn what_is_read_is_what_the_tree_has() {
    let mut queue = run(&with_classes()).0;
    for number in 0..50 {
        offer(&mut queue, number as u16, number, Time::ZERO);
    }
    let left = drain(&mut queue, Time::from_micros(300)).len() as u64;
    while queue.take_dropped().is_some() {}
    let read = read(&mut queue, |_| {});
    let nodes: Vec<&NodeRecord> = read
        .iter()
        .filter_map(|record| match record {
            Record::Node(node) => Some(&**node),
            _ => None,
        })
        .collect();
    assert_eq!(nodes[0].statistics, queue.statistics());
    assert!(left > 0);
    let mut classes = Vec::new();
    queue.visit_classes(&mut |class| classes.push((class.minor, class.discipline.statistics())));
    for (minor, statistics) in classes {
        let node = nodes.iter().find(|node| node.class == Some(minor)).unwrap();
        assert_eq!(node.statistics, statistics);
    }
    let counted = read.iter().map(|record| match record {
        Record::Sojourn { bucket, packets } => {
            assert!(middle((*bucket).into()).abs_diff(300_000) < 5_000);
            *packets
        }
        _ => 0,
    });
    assert_eq!(counted.sum::<u64>(), left);
}

/// A tree whose reading takes many parts, while packets come and go.
#[test]
fn thousands_of_classes_are_read_in_parts() {
    let classes: Vec<String> = (1..=2000)
        .map(|minor| format!("{minor} rate=1mbit / fifo"))
        .collect();
    let mut queue = queue(&format!("htb default=1 {{ {} }}", classes.join("; ")));
    let mut parts = 0;
    let read = read(&mut queue, |queue| {
        parts += 1;
        offer(queue, parts, parts.into(), Time::ZERO);
    });
    let count = |of: fn(&Record) -> bool| read.iter().filter(|record| of(record)).count();
    assert!(parts > 50, "{parts}");
    assert_eq!(count(|record| matches!(record, Record::Node(_))), 2001);
    assert_eq!(count(|record| matches!(record, Record::Class(_))), 2000);
}

fn variables() -> impl Strategy<Value = Vec<(String, Variable)>> {
    let value = prop_oneof![
        any::<i64>().prop_map(Variable::Integer),
        any::<u64>().prop_map(Variable::Nanos),
        any::<bool>().prop_map(Variable::Flag),
        Just(Variable::Unset),
    ];
    prop::collection::vec(("[a-z_]{0,12}", value), 0..5)
}

fn record() -> impl Strategy<Value = Record> {
    let node = (
        0..8_u8,
        any::<u32>(),
        prop::option::of("[0-9.]{0,15}"),
        any::<[u64; 14]>(),
        variables(),
    );
    let node = node.prop_map(|(depth, class, host, numbers, variables)| {
        let pair = |at: usize| fairgate::Count {
            packets: numbers[at],
            bytes: numbers[at + 1],
        };
        let mut statistics = fairgate::Statistics {
            enqueued: pair(0),
            dequeued: pair(2),
            dropped: pair(4),
            flushed: pair(6),
            marked: numbers[8],
            overlimits: numbers[9],
            sojourn: numbers[10],
            ..Default::default()
        };
        statistics.dropped_by_reason.set(DropReason::Aqm, numbers[11]);
        Record::Node(Box::new(NodeRecord {
            depth,
            class: (depth > 0).then_some(class),
            host,
            at: numbers[12],
            name: "htb".to_owned(),
            statistics,
            variables,
        }))
    });
    let class = (any::<u32>(), any::<[u64; 4]>(), variables());
    let class = class.prop_map(|(minor, [at, packets, bytes, overlimits], variables)| {
        Record::Class(ClassRecord {
            minor,
            at,
            sent: fairgate::Count { packets, bytes },
            overlimits,
            variables,
        })
    });
    let sojourn = (0..BUCKETS as u16, any::<u64>());
    prop_oneof![
        node,
        class,
        sojourn.prop_map(|(bucket, packets)| Record::Sojourn { bucket, packets })
    ]
}

proptest! {
    #[test]
    fn records_are_read_back(written in prop::collection::vec(record(), 0..5)) {
        let mut bytes = Vec::new();
        written.iter().for_each(|record| record.write(&mut bytes));
        prop_assert_eq!(records(&bytes), Ok(written));
    }

    /// Bytes that are no part are an error, and never more than they say.
    #[test]
    fn damaged_parts_are_refused_or_read(
        written in prop::collection::vec(record(), 1..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        written.iter().for_each(|record| record.write(&mut bytes));
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        if let Ok(read) = records(&bytes) {
            let mut again = Vec::new();
            read.iter().for_each(|record| record.write(&mut again));
            prop_assert_eq!(records(&again), Ok(read));
        }
    }
}
