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
