//! Which trees several workers can run, and how they change.

use super::*;
use fairgate::{FlowHash, Packet, Pool, Time};

fn workers(by: ShardBy) -> Workers {
    Workers { count: 3, by }
}

fn tree(text: &str) -> Spec {
    Spec::inline(text).unwrap()
}

#[test]
fn fair_trees_with_a_rate_can_be_sharded() {
    for (by, text) in [
        (ShardBy::Flow, "tbf rate=100mbit burst=20kb / fq_codel"),
        (ShardBy::Flow, "tbf rate=100mbit burst=20kb overhead=24 / drr"),
        (
            ShardBy::Flow,
            "tbf rate=100mbit burst=20kb / cake tins=besteffort isolation=flows",
        ),
        (
            ShardBy::Flow,
            "cake bandwidth=100mbit tins=besteffort isolation=flows",
        ),
        (
            ShardBy::Source,
            "cake bandwidth=100mbit tins=besteffort isolation=dual-srchost",
        ),
        (
            ShardBy::Destination,
            "cake bandwidth=100mbit tins=besteffort isolation=dsthost",
        ),
    ] {
        let sharded = tree(text)
            .sharded(workers(by))
            .unwrap_or_else(|problem| panic!("{text}: {problem}"));
        assert_eq!(sharded.limit().rate, Rate::mbit(100), "{text}");
        assert_eq!(sharded.build(1).unwrap().name(), "sharded");
    }
}

/// Each refusal names the place, the rule and a remedy.
#[test]
fn trees_whose_shares_would_depend_on_the_workers_are_refused() {
    for (by, text, place, remedy) in [
        (ShardBy::Flow, "fq_codel", "fq_codel", "put it into a shaper"),
        (
            ShardBy::Flow,
            "tbf rate=1mbit burst=2kb limit=9kb",
            "9kb",
            "fq_codel",
        ),
        (
            ShardBy::Flow,
            "tbf rate=1mbit burst=2kb / fifo",
            "fifo",
            "use fq_codel",
        ),
        (
            ShardBy::Flow,
            "tbf rate=1mbit burst=2kb / sqf",
            "sqf",
            "use fq_codel",
        ),
        (
            ShardBy::Flow,
            "tbf rate=1mbit burst=2kb peakrate=2mbit mtu=1600b / fq",
            "2mbit",
            "remove `peakrate`",
        ),
        (
            ShardBy::Source,
            "tbf rate=1mbit burst=2kb / fq_codel",
            "fq_codel",
            "use cake",
        ),
        (
            ShardBy::Flow,
            "cake tins=besteffort isolation=flows",
            "cake",
            "bandwidth",
        ),
        (
            ShardBy::Flow,
            "cake bandwidth=1mbit isolation=flows",
            "cake",
            "besteffort",
        ),
        (
            ShardBy::Flow,
            "cake bandwidth=1mbit tins=besteffort",
            "cake",
            "isolation = \"flows\"",
        ),
        (
            ShardBy::Source,
            "cake bandwidth=1mbit tins=besteffort isolation=dual-dsthost",
            "dual-dsthost",
            "\"srchost\" or \"dual-srchost\"",
        ),
        (
            ShardBy::Flow,
            "cake bandwidth=1mbit tins=besteffort isolation=flows ingress=true",
            "true",
            "remove `ingress`",
        ),
        (
            ShardBy::Flow,
            "tbf rate=1mbit burst=2kb / cake bandwidth=1mbit tins=besteffort isolation=flows",
            "1mbit",
            "remove this `bandwidth`",
        ),
    ] {
        let problem = tree(text).sharded(workers(by)).expect_err(text);
        assert_eq!(&text[problem.span.clone()], place, "{text}: {problem}");
        assert!(problem.help.contains(remedy), "{text}: {}", problem.help);
        assert!(!problem.label.is_empty());
    }
}

/// All trees change, and so does the rate that they share. Packets stay queued.
#[test]
fn a_change_reaches_all_workers() {
    let by_flow = workers(ShardBy::Flow);
    let running = tree("tbf rate=10mbit burst=20kb / fq_codel")
        .sharded(by_flow)
        .unwrap();
    for text in [
        "tbf rate=20mbit burst=20kb / fq_codel",
        "tbf rate=20mbit burst=20kb / drr",
        "cake bandwidth=20mbit tins=besteffort isolation=flows",
    ] {
        let wanted = tree(text).sharded(by_flow).unwrap();
        let mut root = running.build(1).unwrap();
        let mut pool = Pool::with_capacity(100);
        for number in 0..50u64 {
            let flow = FlowHash::from_raw(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let id = pool
                .insert(Packet {
                    flow,
                    ..Packet::of_length(1000)
                })
                .unwrap();
            root.enqueue(id, Time::ZERO, &mut pool);
        }
        let change = running.change_to(&wanted, 2).unwrap();
        change.apply(&mut root, Time::from_millis(1), &mut pool).unwrap();
        assert_eq!(root.backlog().packets, 50, "{text}");
        let config = root.config();
        assert_eq!(config.downcast_ref::<Config>().unwrap().limit, wanted.limit());
        let mut names = Vec::new();
        root.visit_classes(&mut |class| names.push(class.discipline.name()));
        assert_eq!(names, [wanted.tree().discipline(); 3]);
        let mut now = Time::from_millis(1);
        let mut left = 50;
        while left > 0 {
            match root.dequeue(now, &mut pool) {
                Some(id) => {
                    pool.release(id);
                    left -= 1;
                }
                None => now = root.watchdog().expect("packets wait").max(now + 1),
            }
        }
        // 50 packets at 20 Mbit/s, less the burst.
        assert!(now < Time::from_millis(25), "{text}: {now}");
        root.statistics()
            .check("sharded", fairgate::Count::default())
            .unwrap();
    }
}

#[test]
fn the_workers_cannot_change() {
    let spec = tree("tbf rate=10mbit burst=20kb / fq_codel");
    let running = spec.sharded(workers(ShardBy::Flow)).unwrap();
    let wanted = spec
        .sharded(Workers {
            count: 4,
            by: ShardBy::Flow,
        })
        .unwrap();
    let refused = running.change_to(&wanted, 1).unwrap_err();
    assert_eq!(refused.source.parameter(), Some("workers"));
}

const BY_CLASS: Workers = Workers {
    count: 2,
    by: ShardBy::Class,
};

/// Returns a tree with a filter for each pair of a class and conditions.
fn filtered(text: &str, filters: &[(u32, &str)]) -> Spec {
    let lines = filters
        .iter()
        .map(|(class, conditions)| format!("filter add class={class} {conditions}\n"));
    let lines: String = lines.collect();
    tree(text).edited(&lines, &crate::Registry::builtin()).unwrap()
}

const HTB: &str = "htb default=2 { 1 rate=100mbit { 2 rate=10kbit ceil=10mbit / fifo; \
    3 rate=10kbit ceil=50mbit { 30 rate=1mbit ceil=40mbit / fq_codel; 31 rate=10kbit ceil=20mbit / fifo }; \
    4 rate=10kbit ceil=30mbit / cake bandwidth=20mbit; 5 rate=10kbit ceil=80mbit / fifo } }";

const FILTERS: [(u32, &str); 5] = [
    (30, "destination=192.0.2.30/32"),
    (31, "destination=192.0.2.128/25"),
    (4, "destination=192.0.2.4/32"),
    (5, "destination=2001:db8:5::/48"),
    (30, "destination=198.51.100.0/24"),
];

fn minors(spec: &Spec) -> Vec<u32> {
    spec.classes().iter().map(|class| class.minor).collect()
}

/// Each worker has the line, its own classes with their filters, and the default class.
#[test]
fn workers_have_parts_of_a_tree_of_classes() {
    let sharded = filtered(HTB, &FILTERS).sharded(BY_CLASS).unwrap();
    assert_eq!(sharded.limit().rate, Rate::mbit(100));
    // 10 Mbit/s for the default in worker 0; then 80 in worker 1, 50 in worker 0, 30 in worker 0.
    assert_eq!(minors(sharded.part(0)), [1, 2, 3, 4, 30, 31]);
    assert_eq!(minors(sharded.part(1)), [1, 2, 5]);
    let filters = [0, 1].map(|worker| sharded.part(worker).classifier().filters.len());
    assert_eq!(filters, [4, 1]);
    let names: Vec<&str> = sharded
        .part(0)
        .classes()
        .iter()
        .filter_map(|class| class.tree.map(Spec::discipline))
        .collect();
    assert_eq!(names, ["fifo", "cake", "fq_codel", "fifo"]);
    assert!(sharded.build(1).is_ok());
    assert!(sharded.memory() < 2 * sharded.tree().memory());
}

/// Classes stay with their workers, whatever is added, removed and changed. Packets stay queued.
#[test]
fn classes_stay_with_their_workers_when_others_change() {
    let running = filtered(HTB, &FILTERS).sharded(BY_CLASS).unwrap();
    let registry = crate::Registry::builtin();
    let lines = [
        "filter delete 4",
        "class delete 5",
        "class change 4 ceil=90mbit",
        "class add 6 parent=1 rate=10kbit ceil=1mbit / fifo",
        "filter add class=6 destination=192.0.2.6/32",
    ]
    .join("\n");
    let wanted = running.tree().edited(&lines, &registry).unwrap();
    let wanted = wanted.sharded_after(BY_CLASS, Some(&running)).unwrap();
    assert_eq!(minors(wanted.part(0)), [1, 2, 3, 4, 30, 31]);
    assert_eq!(minors(wanted.part(1)), [1, 2, 6]);

    let mut root = running.build(1).unwrap();
    let mut pool = Pool::with_capacity(100);
    for last in [30, 200, 4, 9] {
        let key = fairgate::FlowKey::of([10, 0, 0, 1].into(), [192, 0, 2, last].into(), 17, 1, 2);
        let id = pool.insert((Packet::of_length(1000), key)).unwrap();
        root.enqueue(id, Time::ZERO, &mut pool);
    }
    let change = running.change_to(&wanted, 2).unwrap();
    change.apply(&mut root, Time::from_millis(1), &mut pool).unwrap();
    assert_eq!(root.backlog().packets, 4);
    let mut now = Time::from_millis(1);
    for _ in 0..4 {
        loop {
            match root.dequeue(now, &mut pool) {
                Some(id) => {
                    pool.release(id);
                    break;
                }
                None => now = root.watchdog().expect("packets wait").max(now + 1),
            }
        }
    }
    root.statistics()
        .check("sharded", fairgate::Count::default())
        .unwrap();
}

/// Frames without an address come to worker 0. Filters may choose leaves for them, which then are there.
#[test]
fn leaves_of_frames_without_an_address_are_in_worker_0() {
    let text = HTB.replace("default=2", "");
    let first = filtered(&text, &FILTERS).sharded(BY_CLASS).unwrap();
    let is_in = |sharded: &ShardedSpec, worker: usize| minors(sharded.part(worker)).contains(&5);
    assert!(is_in(&first, 0) != is_in(&first, 1));
    let arp = [&FILTERS[..], &[(5, "ethertype=arp")]].concat();
    let sharded = filtered(&text, &arp).sharded(BY_CLASS).unwrap();
    assert!(is_in(&sharded, 0) && !is_in(&sharded, 1));
    // A filter for a protocol of frames with addresses would need the whole tree in each worker.
    let ip = [&FILTERS[..], &[(5, "ethertype=ipv4")]].concat();
    assert!(filtered(&text, &ip).sharded(BY_CLASS).is_err());
}

/// The same tree has the same division, which a change then leaves alone.
#[test]
fn an_equal_division_is_the_same() {
    let spec = filtered(HTB, &FILTERS);
    let first = spec.sharded(BY_CLASS).unwrap();
    let again = spec.sharded_after(BY_CLASS, Some(&first)).unwrap();
    assert!(Arc::ptr_eq(first.division().unwrap(), again.division().unwrap()));
    assert!(first.change_to(&again, 1).unwrap().is_empty());
}

#[test]
fn trees_of_classes_that_workers_cannot_divide_are_refused() {
    let by = |text: &str| -> Vec<(u32, String)> { vec![(10, text.to_owned())] };
    let two = "{ 10 rate=1mbit ceil=9mbit / fifo; 11 rate=1mbit ceil=9mbit / fifo }";
    let htb = format!("htb {{ 1 rate=10mbit {two} }}");
    for (text, filters, message, remedy) in [
        ("fq_codel", vec![], "not those of `fq_codel`", "use htb or hfsc"),
        (
            "htb { 1 rate=1mbit / fifo; 2 rate=1mbit / fifo }",
            vec![],
            "has 2 classes at the top",
            "put a class with the rate of the line above",
        ),
        (
            "htb { 1 rate=9mbit { 10 rate=1mbit prio=1 / fifo; 11 rate=1mbit / fifo } }",
            by("destination=192.0.2.1/32"),
            "class 11: it borrows from the line before or after others",
            "set the same `prio`",
        ),
        (
            "htb { 1 rate=9mbit { 10 rate=1mbit overhead=24 / fifo; 11 rate=1mbit / fifo } }",
            by("destination=192.0.2.1/32"),
            "class 10: its lengths are counted in another way",
            "same `overhead`",
        ),
        (
            "htb { 1 rate=9mbit { 3 rate=5mbit { 10 rate=1mbit / fifo }; 11 rate=1mbit / fifo } }",
            by("destination=192.0.2.1/32"),
            "class 3: it guarantees more than each class below it",
            "lower its `rate`",
        ),
        (
            "htb { 1 rate=9mbit { 10 rate=5mbit / fifo; 11 rate=5mbit / fifo } }",
            by("destination=192.0.2.1/32"),
            "class 1: the guarantees below it exceed its rate",
            "lower the guarantees",
        ),
        (
            "hfsc { 1 ls=9mbit { 10 ls=1mbit / fifo } }",
            by("destination=192.0.2.1/32"),
            "class 1: it has no upper limit",
            "give it a `ul`",
        ),
        (
            "hfsc { 1 ls=9mbit ul=9mbit { 10 rt=1mbit ls=none / fifo } }",
            by("destination=192.0.2.1/32"),
            "class 10: it has no share of the line",
            "give it an `ls`",
        ),
        (
            "hfsc { 1 ls=9mbit ul=9mbit { 10 ls=2mbit:10ms:1mbit / fifo } }",
            by("destination=192.0.2.1/32"),
            "class 10: its curve has two slopes",
            "write the curve as one rate",
        ),
        (&htb, vec![], "the filters must choose leaves", "use filters with"),
        (
            &htb,
            by("destination=192.0.2.1/32 protocol=udp"),
            "the filters must choose leaves",
            "and nothing else",
        ),
        (
            &htb,
            vec![
                (10, "destination=192.0.2.1/32".to_owned()),
                (11, "source=192.0.2.1/32".to_owned()),
            ],
            "all by the destination",
            "use filters with",
        ),
        (
            &htb,
            vec![
                (10, "destination=192.0.2.0/24".to_owned()),
                (11, "destination=192.0.2.7/32".to_owned()),
            ],
            "the filter for 192.0.2.0/24 comes before the one for 192.0.2.7/32",
            "put longer prefixes first",
        ),
    ] {
        let filters: Vec<(u32, &str)> = filters
            .iter()
            .map(|(class, conditions)| (*class, conditions.as_str()))
            .collect();
        let spec = match filters.is_empty() {
            true => tree(text),
            false => filtered(text, &filters),
        };
        let problem = spec.sharded(BY_CLASS).map(drop).expect_err(text);
        assert!(problem.message.contains(message), "{text}: {}", problem.message);
        assert!(problem.help.contains(remedy), "{text}: {}", problem.help);
    }
    // The longer prefix is tried first, or both lead to the same class.
    for filters in [
        [(11, "destination=192.0.2.7/32"), (10, "destination=192.0.2.0/24")],
        [(10, "destination=192.0.2.0/24"), (10, "destination=192.0.2.7/32")],
        [
            (10, "destination=192.0.2.0/24"),
            (11, "preference=0 destination=198.51.100.7/32"),
        ],
    ] {
        filtered(&htb, &filters).sharded(BY_CLASS).unwrap();
    }
}
