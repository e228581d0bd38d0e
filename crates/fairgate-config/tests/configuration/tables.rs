//! Trees of thousands of classes, whose disciplines make their tables when they are used.

use fairgate::{ClassId, FlowHash, Link, Next, Packet, Time};
use fairgate_config::Spec;

/// More than those for which all tables are made at once.
const CLASSES: u32 = 1_000;

/// The packets that a driver may enqueue between two refills.
const TURN: u32 = 128;

fn tree(leaf: &str) -> Spec {
    tree_of(CLASSES, leaf)
}

fn tree_of(classes: u32, leaf: &str) -> Spec {
    let classes: Vec<String> = (2..classes + 2)
        .map(|minor| format!("{minor} rate=1mbit ceil=1gbit / {leaf}"))
        .collect();
    Spec::inline(&format!(
        "htb handle=1 {{ 1 rate=1gbit {{ {} }} }}",
        classes.join("; ")
    ))
    .unwrap()
}

fn packet(class: u32, flow: u64) -> Packet {
    Packet {
        class: ClassId::new(1, class as u16),
        flow: FlowHash::from_raw(flow.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        cookie: flow,
        ..Packet::of_length(100 + flow as u32 % 1400)
    }
}

/// Offers packets of all classes, and returns what has left at each step, and what was dropped.
fn left(mut link: Link<()>) -> Vec<(u64, u64)> {
    let (mut left, mut now) = (Vec::new(), Time::ZERO);
    for number in 0..40_000 {
        let class = 2 + (number * 7 % u64::from(CLASSES)) as u32;
        link.enqueue(packet(class, number % 977), (), now).unwrap();
        if number % 3 == 0 {
            now += 10_000;
            while let Next::Packet(departure) = link.dequeue(now) {
                left.push((number, departure.slot.cookie));
            }
        }
        while let Some(dropped) = link.take_dropped() {
            left.push((number, u64::MAX - dropped.slot.cookie));
        }
        link.refill();
    }
    left
}

#[test]
fn packets_leave_as_they_do_with_tables_that_are_made_at_once() {
    let tree = tree("fq_codel flows=64 limit=10");
    let made_at_once = left(Link::new(tree.build(1).unwrap(), 30_000));
    assert!(made_at_once.len() > 10_000, "{}", made_at_once.len());
    assert!(made_at_once.iter().any(|(_, cookie)| *cookie > 977));
    let made_when_used = left(Link::new(tree.build_for_refills(1).unwrap(), 30_000));
    assert!(made_at_once == made_when_used);
}

/// Returns how much is allocated for the first packets of these classes.
fn allocated(link: &mut Link<()>, classes: std::ops::Range<u32>) -> u64 {
    let first_packets = || {
        for class in classes {
            link.enqueue(packet(class, class.into()), (), Time::ZERO).unwrap();
        }
    };
    allocation_counter::measure(first_packets).count_total
}

/// The reserve has a table for each class that gets its first packet.
#[test]
fn first_packets_allocate_nothing() {
    for leaf in ["fq_codel flows=64", "cake tins=besteffort"] {
        let tree = tree(leaf);
        let mut link: Link<()> = Link::new(tree.build_for_refills(1).unwrap(), 4_000);
        for first in (2..2 + 4 * TURN).step_by(TURN as usize) {
            assert_eq!(allocated(&mut link, first..first + TURN), 0, "{leaf}");
            link.refill();
        }
        // Without a refill the reserve runs out.
        let first = 2 + 4 * TURN;
        assert!(allocated(&mut link, first..first + TURN + 1) > 0, "{leaf}");
    }
}

/// Classes that come while packets are forwarded are like the others, also with tables of another size.
#[test]
fn first_packets_of_added_classes_allocate_nothing() {
    let running = tree("fq_codel flows=64");
    for (classes, leaf) in [
        (CLASSES + TURN, "fq_codel flows=64"),
        (CLASSES, "fq_codel flows=32"),
    ] {
        let change = running.change_for_refills(&tree_of(classes, leaf), 2).unwrap();
        let mut link: Link<()> = Link::new(running.build_for_refills(1).unwrap(), 4_000);
        link.enqueue(packet(2, 7), (), Time::ZERO).unwrap();
        link.change_root_in_part(change.needs(), |root, pool| change.apply(root, Time::ZERO, pool))
            .unwrap();
        link.refill();
        let last = classes + 2;
        assert_eq!(allocated(&mut link, last - TURN..last), 0, "{leaf}");
        assert_eq!(link.backlog().packets, u64::from(TURN) + 1);
    }
}

/// An idle class takes no table: what is measured is all that the tree allocates, in bytes for each class.
#[test]
fn idle_classes_are_small() {
    for (leaf, most, at_once) in [("fq_codel flows=64", 2_000, 4_500), ("cake", 4_000, 250_000)] {
        let tree = tree(leaf);
        let mut built = None;
        let of_idle = allocation_counter::measure(|| built = tree.build_for_refills(1).ok());
        assert!(built.is_some());
        let idle = of_idle.bytes_current / i64::from(CLASSES);
        assert!(idle < most, "{leaf}: {idle}");
        let leaf = Spec::inline(leaf).unwrap();
        let mut built = None;
        let whole = allocation_counter::measure(|| built = leaf.build(1).ok()).bytes_current;
        assert!(built.is_some());
        assert!(whole > at_once, "{leaf}: {whole}");
    }
}
