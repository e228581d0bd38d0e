//! Any tree changes to any other tree while packets are queued.

use std::collections::BTreeMap;

use fairgate::{ClassId, Count, Discipline, DropReason, FlowHash, Packet, PacketId, Pool, Time};
use fairgate_config::{Children, Document, Registry, Spec};
use proptest::prelude::*;

/// Disciplines that reorder the packets of a flow on purpose, or do not keep packets without a time stamp.
const REORDERING: [&str; 3] = ["etf", "netem", "hhf"];

/// Returns the names of the disciplines of one kind that need no settings.
fn names(children: Children) -> Vec<&'static str> {
    Registry::builtin()
        .iter()
        .map(fairgate_config::Entry::about)
        .filter(|about| about.children == children && !REORDERING.contains(&about.name))
        .map(|about| about.name)
        .collect()
}

/// Returns disciplines that queue packets themselves, in one line each.
fn leaves() -> Vec<String> {
    let names = names(Children::None).into_iter();
    let leaves: Vec<String> = names
        .map(str::to_owned)
        .filter(|line| Spec::inline(line).is_ok())
        .chain(["fifo limit=100", "codel target=20ms", "fq_codel flows=16"].map(str::to_owned))
        .collect();
    assert!(leaves.len() > 20, "{leaves:?}");
    leaves
}

/// Returns disciplines with classes. `CLASSES` stands for the braces and what is in them.
fn classful() -> Vec<&'static str> {
    let names: Vec<&str> = names(Children::Classes)
        .into_iter()
        .filter(|name| Spec::inline(&format!("{name} handle=1 default=2 {{ 2 / fifo }}")).is_ok())
        .collect();
    assert!(names.len() >= 6, "{names:?}");
    names
}

/// A random tree, in one line.
fn tree() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(leaves());
    leaf.prop_recursive(3, 12, 3, |inner| {
        let of_class =
            |settings: &'static str| inner.clone().prop_map(move |tree| format!("{settings} / {tree}"));
        let minors = prop::sample::subsequence(vec![1, 2, 3, 10, 20], 1..4);
        let some = (
            prop::sample::select(classful()),
            minors,
            prop::collection::vec(inner.clone(), 3),
        );
        prop_oneof![
            some.prop_map(|(name, minors, trees)| {
                let classes = minors
                    .iter()
                    .zip(trees)
                    .map(|(minor, tree)| format!("{minor} / {tree}"));
                let classes: Vec<String> = classes.collect();
                format!(
                    "{name} handle=1 default={} {{ {} }}",
                    minors[0],
                    classes.join("; ")
                )
            }),
            (prop::collection::vec(inner.clone(), 2..4)).prop_map(|trees| {
                let classes = trees
                    .iter()
                    .enumerate()
                    .map(|(index, tree)| format!("{} / {tree}", index + 1));
                let classes: Vec<String> = classes.collect();
                let map = vec!["1"; 16].join(",");
                format!("prio handle=1 priomap={map} {{ {} }}", classes.join("; "))
            }),
            (
                of_class("10 rate=20mbit ceil=50mbit"),
                of_class("20 rate=10mbit"),
                1..4u8
            )
                .prop_map(|(first, second, rate)| format!(
                    "htb handle=1 default=10 {{ 1 rate={rate}0mbit {{ {first}; {second} }} }}"
                )),
            (of_class("10 rt=4mbit ls=4mbit"), of_class("3 ls=2mbit")).prop_map(|(first, second)| format!(
                "hfsc handle=1 default=10 {{ 1 ls=80mbit {{ {first}; {second} }} }}"
            )),
            (inner.clone(), 1..4u8)
                .prop_map(|(tree, rate)| format!("tbf rate={rate}0mbit burst=50kb / {tree}")),
            inner.clone().prop_map(|tree| format!("red limit=1mb / {tree}")),
            Just("tbf rate=10mbit burst=50kb limit=1mb".to_owned()),
            Just("prio".to_owned()),
        ]
    })
    .prop_filter("a valid tree", |line| Spec::inline(line).is_ok())
}

#[derive(Clone, Debug)]
enum Step {
    /// Packets arrive, of this flow and for this class.
    Arrive { flow: u8, minor: u32, count: u8 },
    /// Up to this number of packets leave.
    Leave(u8),
    /// The next packet is chosen, but does not leave.
    Peek,
    /// This much time passes, us.
    Wait(u16),
    /// Another tree.
    Change(String),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4u8, prop::sample::select(vec![0, 1, 2, 3, 10, 20]), 1..6u8)
            .prop_map(|(flow, minor, count)| Step::Arrive { flow, minor, count }),
        2 => (1..4u8).prop_map(Step::Leave),
        1 => Just(Step::Peek),
        1 => (1..2000u16).prop_map(Step::Wait),
        2 => tree().prop_map(Step::Change),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..30)
}

/// A tree and what is known of its packets.
struct Run {
    running: Spec,
    root: Box<dyn Discipline>,
    pool: Pool,
    now: Time,
    arrived: Count,
    left: Count,
    dropped: Count,
    /// The number of changes so far.
    epoch: u64,
    /// What arrived, by cookie: flow, class, epoch, time.
    packets: Vec<(u8, u32, u64, Time)>,
    /// The last packet that left, by flow, class and epoch.
    last: BTreeMap<(u8, u32, u64), u64>,
}

impl Run {
    fn new(line: &str) -> Run {
        let running = Spec::inline(line).unwrap();
        let none = Count::default();
        Run {
            root: running.build(7).unwrap(),
            running,
            pool: Pool::with_capacity(4096),
            now: Time::from_millis(1),
            arrived: none,
            left: none,
            dropped: none,
            epoch: 0,
            packets: Vec::new(),
            last: BTreeMap::new(),
        }
    }

    /// Counts and releases the packets that a call gave back. Returns why.
    fn bury(&mut self) -> Vec<DropReason> {
        let mut reasons = Vec::new();
        while let Some((id, reason)) = self.pool.take_returned() {
            self.dropped.packets += 1;
            self.dropped.bytes += u64::from(self.pool[id].length);
            self.pool.release(id);
            reasons.push(reason);
        }
        reasons
    }

    fn arrive(&mut self, flow: u8, minor: u32) {
        let packet = Packet {
            flow: FlowHash::from_raw(u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            class: ClassId::new(u16::from(minor > 0), minor as u16),
            cookie: self.packets.len() as u64,
            ..Packet::of_length(100 + u32::from(flow))
        };
        self.packets.push((flow, minor, self.epoch, self.now));
        self.arrived.packets += 1;
        self.arrived.bytes += u64::from(packet.length);
        let id = self.pool.insert(packet).unwrap();
        self.root.enqueue(id, self.now, &mut self.pool);
        self.bury();
    }

    /// Takes the next packet. Packets of a flow that arrived between two changes leave in their order.
    fn leave(&mut self) -> Option<PacketId> {
        let id = self.root.dequeue(self.now, &mut self.pool);
        self.bury();
        let id = id?;
        let cookie = self.pool[id].cookie;
        let (flow, minor, epoch, arrival) = self.packets[cookie as usize];
        assert_eq!(self.pool[id].enqueued_at, arrival, "the sojourn time goes on");
        let before = self.last.insert((flow, minor, epoch), cookie);
        assert!(before < Some(cookie), "{before:?} left before {cookie}");
        self.left.packets += 1;
        self.left.bytes += u64::from(self.pool[id].length);
        self.pool.release(id);
        Some(id)
    }

    fn change(&mut self, line: &str) {
        let wanted = Spec::inline(line).unwrap();
        let queued = self.root.backlog();
        let before = self.root.statistics();
        let change = self.running.change_to(&wanted, self.epoch).unwrap();
        change.apply(&mut self.root, self.now, &mut self.pool).unwrap();
        // All limits have room. Only a packet that names a class that does not exist is lost.
        let lost = self.bury();
        assert!(
            lost.iter().all(|reason| *reason == DropReason::NoClass),
            "{lost:?}"
        );
        assert_eq!(self.root.backlog().packets + lost.len() as u64, queued.packets);
        let after = self.root.statistics();
        assert_eq!(after.enqueued, before.enqueued, "the statistics go on");
        assert_eq!(after.dequeued, before.dequeued, "the statistics go on");
        assert_eq!(
            names_below(self.root.as_ref()),
            names_below(wanted.build(1).unwrap().as_ref())
        );
        self.running = wanted;
        self.epoch += 1;
    }

    /// Conservation at every node, and all over.
    fn check(&self) {
        let queued = Count {
            packets: self.arrived.packets - self.left.packets - self.dropped.packets,
            bytes: self.arrived.bytes - self.left.bytes - self.dropped.bytes,
        };
        assert_eq!(u64::from(self.pool.len()), queued.packets);
        self.root.statistics().check("the root", queued).unwrap();
        check_below(self.root.as_ref());
    }

    fn finish(mut self) {
        while self.root.backlog().packets > 0 {
            if self.leave().is_none() && self.root.backlog().packets > 0 {
                let due = self.root.watchdog().expect("it holds packets");
                self.now = due.max(self.now + 1);
            }
        }
        self.check();
        assert!(self.pool.is_empty());
    }
}

/// Returns the names of all disciplines, with their classes.
fn names_below(node: &dyn Discipline) -> Vec<(u32, String)> {
    let mut found = vec![(0, node.name().to_owned())];
    node.visit_classes(&mut |class| {
        let below = names_below(class.discipline).into_iter();
        found.extend(below.map(|(minor, name)| (minor * 7 + class.minor, name)));
    });
    found
}

/// Checks that a class holds no more than its parent.
fn check_below(node: &dyn Discipline) {
    let statistics = node.statistics();
    statistics.check(node.name(), statistics.backlog()).unwrap();
    let mut below = 0;
    node.visit_classes(&mut |class| {
        below += class.discipline.backlog().packets;
        check_below(class.discipline);
    });
    assert!(
        below <= statistics.backlog().packets,
        "{} packets in {}",
        below,
        node.name()
    );
}

proptest! {
    /// What is printed for a change is read as the same tree.
    #[test]
    fn a_change_without_lines_leaves_the_tree(line in tree()) {
        let spec = Spec::inline(&line).unwrap();
        prop_assert_eq!(spec.edited("", &Registry::builtin()).unwrap(), spec);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn packets_move_in_order_and_none_is_lost(first in tree(), steps in steps()) {
        let mut run = Run::new(&first);
        for step in steps {
            match step {
                Step::Arrive { flow, minor, count } => (0..count).for_each(|_| run.arrive(flow, minor)),
                Step::Leave(count) => {
                    for _ in 0..count {
                        run.leave();
                    }
                }
                Step::Peek => {
                    run.root.peek(run.now, &mut run.pool);
                    run.bury();
                }
                Step::Wait(micros) => run.now += u64::from(micros) * 1000,
                Step::Change(line) => run.change(&line),
            }
            run.check();
        }
        run.finish();
    }
}

/// A lower limit is the only reason for a loss, and the loss is counted.
#[test]
fn a_smaller_queue_drops_what_has_no_room() {
    let mut run = Run::new("fq_codel");
    (0..10).for_each(|_| run.arrive(1, 0));
    let wanted = Spec::inline("fifo limit=4").unwrap();
    let change = run.running.change_to(&wanted, 0).unwrap();
    let old = change.apply(&mut run.root, run.now, &mut run.pool).unwrap();
    assert_eq!(old.count(), 1);
    assert_eq!(run.bury().len(), 6);
    assert_eq!(run.root.statistics().dropped.packets, 6);
    assert!((0..4).all(|_| run.leave().is_some()));
    run.check();
}

/// A class that both trees have keeps its discipline with its state; the others are drained. A packet that
/// names a class which does not exist any more is dropped, as when it arrives.
#[test]
fn classes_that_remain_are_not_touched() {
    let mut run = Run::new("drr handle=1 default=1 { 1 / fq_codel; 2 / fifo; 3 / codel }");
    for minor in [1, 2, 3, 3] {
        run.arrive(1, minor);
    }
    run.change("drr handle=1 default=1 { 1 / fq_codel; 3 / codel; 4 / pie }");
    let mut counts = Vec::new();
    run.root.visit_classes(&mut |class| {
        let statistics = class.discipline.statistics();
        counts.push((
            class.minor,
            statistics.enqueued.packets,
            statistics.backlog().packets,
        ));
    });
    assert_eq!(counts, [(1, 1, 1), (3, 2, 2), (4, 0, 0)]);
    run.finish();
}

/// A tree of `count` leaves below class 1.
fn wide(discipline: &str, count: usize, rates: impl Fn(usize) -> u32) -> Spec {
    let class = |number: usize, parent: &str, rate: u32| match discipline {
        "hfsc" => format!("[[queue.q.class]]\nid = {number}\n{parent}ls = \"{rate}kbit\"\n"),
        _ => format!("[[queue.q.class]]\nid = {number}\n{parent}rate = \"{rate}kbit\"\n"),
    };
    let mut text = format!("[queue.q]\ndiscipline = \"{discipline}\"\nhandle = \"1\"\n");
    if discipline == "cbq" {
        text += "bandwidth = \"1gbit\"\n";
    }
    text += &class(1, "", 1_000_000);
    for number in 0..count {
        text += &class(number + 2, "parent = 1\n", rates(number));
        text += "discipline = \"fifo\"\n";
    }
    let document = Document::parse("test.toml", &text).unwrap();
    document.queue("q").unwrap().clone()
}

/// What the thread that forwards packets does for a change of rates does not depend on the number of classes:
/// it takes the same memory, and gives back none, for ten classes and for a thousand.
#[test]
fn a_change_of_rates_needs_no_memory_for_each_class() {
    for discipline in ["htb", "hfsc", "cbq"] {
        for changed in [1, usize::MAX] {
            let taken = [10, 1000].map(|count| {
                let running = wide(discipline, count, |_| 500);
                let wanted = wide(
                    discipline,
                    count,
                    |number| if number < changed { 400 } else { 500 },
                );
                let mut pool = Pool::with_capacity(16);
                let mut root = running.build(1).unwrap();
                for minor in 2..10 {
                    let class = ClassId::new(1, minor);
                    let packet = Packet {
                        class,
                        ..Packet::of_length(1000)
                    };
                    let id = pool.insert(packet).unwrap();
                    root.enqueue(id, Time::ZERO, &mut pool);
                }
                let change = running.change_to(&wanted, 1).unwrap();
                let mut replaced = None;
                let info = allocation_counter::measure(|| {
                    replaced = Some(change.apply(&mut root, Time::from_millis(1), &mut pool).unwrap());
                });
                assert_eq!((replaced.unwrap().count(), root.backlog().packets), (1, 8));
                (info.count_total, info.count_current, info.bytes_current)
            });
            assert_eq!(taken, [(0, 0, 0); 2], "{discipline}");
        }
    }
}
