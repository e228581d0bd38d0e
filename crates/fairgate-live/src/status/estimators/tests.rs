use std::collections::BTreeMap;

use fairgate::{ClassId, FlowKey, Packet, Pool};
use proptest::prelude::*;

use super::*;
use crate::status::TreeReading;

const SECOND: u64 = 1_000_000_000;

fn spec(tree: &str) -> Spec {
    Spec::inline(tree).expect("a valid tree")
}

/// A tree that packets pass at once.
struct Tree {
    root: Box<dyn Discipline>,
    pool: Pool,
    now: Time,
}

impl Tree {
    fn new(spec: &Spec) -> Tree {
        Tree {
            root: spec.build(1).expect("a valid tree"),
            pool: Pool::with_capacity(1000),
            now: Time::ZERO,
        }
    }

    /// Sends packets of this length through a class of the root.
    fn send(&mut self, class: u32, length: u32, count: usize) {
        self.send_of(class, [10, 0, 0, 1], length, count);
    }

    fn send_of(&mut self, class: u32, host: [u8; 4], length: u32, count: usize) {
        for _ in 0..count {
            let packet = Packet {
                class: ClassId::new(1, class as u16),
                ..Packet::of_length(length)
            };
            let key = FlowKey::of(host.into(), [192, 0, 2, 1].into(), 17, 1, 2);
            let id = self.pool.insert((packet, key)).expect("there is room");
            self.root.enqueue(id, self.now, &mut self.pool);
            while self.root.backlog().packets > 0 {
                match self.root.dequeue(self.now, &mut self.pool) {
                    Some(sent) => _ = self.pool.release(sent),
                    None => self.now = self.root.watchdog().expect("a shaper says when"),
                }
            }
        }
    }

    /// Looks at the estimators as the loop does, which has a turn for each step.
    fn look(&mut self, estimators: &mut Estimators, now: Time) {
        self.now = self.now.max(now);
        loop {
            estimators.look_at(&*self.root, now);
            if estimators.due().is_none_or(|due| due > now) {
                return;
            }
        }
    }
}

/// What the estimators say, by path; `true` for classes.
fn said(estimators: &Estimators) -> BTreeMap<(Vec<u32>, bool), (u64, u64)> {
    let mut said = BTreeMap::new();
    estimators.rates().visit(|path, is_class, rate| {
        said.insert((path.to_vec(), is_class), (rate.bytes, rate.packets));
    });
    said
}

/// Each second 1000 bytes in two packets, three times, and then nothing. A sample counts 1/8 of the average.
/// Worked out by hand, in 1/256: of the bytes 256000 / 8 = 32000, then 32000 - 4000 + 32000 = 60000, then
/// 60000 - 7500 + 32000 = 84500, then 84500 - 10562 = 73938; of the packets 512 / 8 = 64, 64 - 8 + 64 = 120,
/// 120 - 15 + 64 = 169, 169 - 21 = 148.
#[test]
fn the_average_is_the_kernels() {
    let spec = spec("fifo estimator=1s,8s");
    let (mut tree, mut estimators) = (Tree::new(&spec), Estimators::of(&spec));
    let mut rates = Vec::new();
    for second in 0..=4 {
        tree.look(&mut estimators, Time::from_secs(second));
        rates.push(said(&estimators)[&(vec![], false)]);
        if second < 3 {
            tree.send(0, 500, 2);
        }
    }
    assert_eq!(
        rates,
        [
            (0, 0),
            (32_000 >> 8, 64 >> 8),
            (60_000 >> 8, 120 >> 8),
            (84_500 >> 8, 169 >> 8),
            (73_938 >> 8, 148 >> 8),
        ]
    );
}

/// Samples of 250 ms, each of 100 bytes: 400 bytes per second. A sample counts 1/32. By hand, in 1/256:
/// 102400 / 32 = 3200, 3200 - 100 + 3200 = 6300, 6300 - 196 + 3200 = 9304.
#[test]
fn short_samples_are_rates_per_second() {
    let spec = spec("fifo estimator=250ms,8s");
    let (mut tree, mut estimators) = (Tree::new(&spec), Estimators::of(&spec));
    tree.look(&mut estimators, Time::ZERO);
    for average in [3200, 6300, 9304] {
        tree.send(0, 100, 1);
        let due = estimators.due().expect("it has an estimator");
        tree.look(&mut estimators, due);
        assert_eq!(said(&estimators)[&(vec![], false)].0, average >> 8);
    }
    // A steady rate is reached up to the rounding of the average.
    for sample in 4..2000 {
        tree.send(0, 100, 1);
        tree.look(&mut estimators, Time::from_millis(250 * sample));
    }
    let (bytes, packets) = said(&estimators)[&(vec![], false)];
    assert!((396..=400).contains(&bytes), "{bytes}");
    assert!((3..=4).contains(&packets), "{packets}");
}

#[test]
fn a_tree_without_estimators_costs_nothing() {
    let spec = spec("drr { 1 / fifo; 2 / fq_codel }");
    let estimators = Estimators::of(&spec);
    assert_eq!(estimators.due(), None);
    assert!(said(&estimators).is_empty());
}

const HTB: &str = "htb handle=1 estimator=500ms,4s { 1 rate=1gbit ceil=1gbit estimator=250ms,8s { \
    10 rate=1gbit ceil=1gbit estimator=1s,8s / fifo; 20 rate=1gbit ceil=1gbit { \
    21 rate=1gbit ceil=1gbit / fifo; \
    22 rate=1gbit ceil=1gbit estimator=2s,16s / fifo estimator=250ms,1s } }; \
    30 rate=1gbit ceil=1gbit estimator=250ms,8s / fifo }";

proptest! {
    /// Samples that are taken late, several at once, are those that would have been taken in time, if
    /// nothing was sent meanwhile. Each number of `sleeps` is a number of samples that the loop sleeps.
    #[test]
    fn samples_that_are_slept_through_are_made_up_for(
        sleeps in proptest::collection::vec((1u64..40, 0u64..250, 0usize..3, 0usize..3), 1..20),
    ) {
        let spec = spec(HTB);
        let (mut tree, mut late) = (Tree::new(&spec), Estimators::of(&spec));
        let mut punctual = Estimators::of(&spec);
        let mut now = Time::ZERO;
        tree.look(&mut late, now);
        tree.look(&mut punctual, now);
        let mut sample = 0;
        for (samples, offset, ten, twenty) in sleeps {
            tree.send(10, 1500, ten);
            tree.send(22, 100, twenty);
            for _ in 0..samples {
                sample += 1;
                now = Time::from_millis(250 * sample);
                tree.look(&mut punctual, now);
            }
            now += offset * 1_000_000;
            tree.look(&mut late, now);
            prop_assert_eq!(said(&late), said(&punctual));
        }
    }

    /// A class with classes below it has sent what the leaves below it have sent, in any steps.
    #[test]
    fn inner_classes_have_the_sums(sent in proptest::collection::vec((0usize..150, 64u32..1500), 1..200)) {
        let mut tree = String::from("htb handle=1 { 1000 rate=1gbit ceil=1gbit estimator=250ms,361ms { ");
        for minor in 1..=150 {
            tree += &format!("{minor} rate=1gbit ceil=1gbit estimator=250ms,361ms / fifo; ");
        }
        tree += "500 rate=1gbit ceil=1gbit / fifo } }";
        let spec = spec(&tree);
        let (mut tree, mut estimators) = (Tree::new(&spec), Estimators::of(&spec));
        tree.look(&mut estimators, Time::ZERO);
        let mut bytes = vec![0; 151];
        for (class, length) in sent {
            tree.send(class as u32 + 1, length, 1);
            bytes[class + 1] += u64::from(length);
        }
        tree.look(&mut estimators, Time::from_millis(250));
        let said = said(&estimators);
        // A sample counts one half: 4 * bytes / 2 per second.
        for (minor, bytes) in bytes.iter().enumerate().skip(1) {
            prop_assert_eq!(said[&(vec![minor as u32], true)].0, bytes * 2);
        }
        prop_assert_eq!(said[&(vec![1000], true)].0, bytes.iter().sum::<u64>() * 2);
    }
}

/// The path of each estimator of [`HTB`] leads to the right counters.
#[test]
fn disciplines_and_classes_are_told_apart() {
    let spec = spec(HTB);
    let (mut tree, mut estimators) = (Tree::new(&spec), Estimators::of(&spec));
    tree.look(&mut estimators, Time::ZERO);
    tree.send(22, 1000, 3);
    tree.send(10, 500, 1);
    tree.send(30, 50, 1);
    tree.look(&mut estimators, Time::from_secs(2));
    let said = said(&estimators);
    let paths: Vec<_> = said.keys().cloned().collect();
    let expected = [
        (vec![], false),
        (vec![1], true),
        (vec![10], true),
        (vec![22], false),
        (vec![22], true),
        (vec![30], true),
    ];
    assert_eq!(paths, expected);
    // 3500 bytes in the first of eight samples, which count 1/32.
    let after = |bytes: u64, samples: u64, log: u32, doublings: u32| {
        let mut average = (bytes << (10 - doublings)) >> log;
        for _ in 1..samples {
            average -= average >> log;
        }
        average >> 8
    };
    assert_eq!(said[&(vec![1], true)].0, after(3500, 8, 5, 0));
    assert_eq!(said[&(vec![], false)].0, after(3550, 4, 3, 1));
    assert_eq!(said[&(vec![10], true)].0, after(500, 2, 3, 2));
    assert_eq!(said[&(vec![22], true)].0, after(3000, 1, 3, 3));
    assert_eq!(said[&(vec![22], false)].0, after(3000, 8, 2, 0));
    assert_eq!(said[&(vec![30], true)].0, after(50, 8, 5, 0));
}

/// Changes a running tree and its estimators as the bridge does.
fn change(tree: &mut Tree, estimators: &mut Estimators, from: &Spec, to: &Spec) {
    let mut new = Estimators::of(to);
    estimators.hold(&*tree.root);
    let planned = from.change_to(to, 2).expect("a valid change");
    planned
        .apply(&mut tree.root, tree.now, &mut tree.pool)
        .expect("a valid change");
    estimators.change_to(&mut new, tree.now);
    estimators.resume(&*tree.root);
}

/// A change in the middle of a sample, which replaces disciplines, loses nothing of it.
#[test]
fn averages_survive_changes_of_the_tree() {
    let before = spec("drr handle=1 estimator=1s,8s { 1 estimator=1s,8s / fifo; 2 / fifo estimator=1s,8s }");
    let after = spec(
        "drr handle=1 estimator=1s,8s { 1 estimator=1s,8s / fq_codel; 2 / fifo estimator=250ms,8s; \
         3 estimator=1s,8s / fifo }",
    );
    let (mut tree, mut estimators) = (Tree::new(&before), Estimators::of(&before));
    let (mut unchanged, mut others) = (Tree::new(&before), Estimators::of(&before));
    for (tree, estimators) in [(&mut tree, &mut estimators), (&mut unchanged, &mut others)] {
        tree.look(estimators, Time::ZERO);
        tree.send(1, 1000, 2);
        tree.send(2, 800, 1);
        tree.look(estimators, Time::from_secs(1));
        tree.send(1, 300, 1);
        tree.look(estimators, Time::from_millis(1300));
    }
    change(&mut tree, &mut estimators, &before, &after);
    for (tree, estimators) in [(&mut tree, &mut estimators), (&mut unchanged, &mut others)] {
        tree.send(1, 700, 1);
        tree.look(estimators, Time::from_secs(2));
    }
    let (changed, unchanged) = (said(&estimators), said(&others));
    for same in [(vec![], false), (vec![1], true)] {
        assert!(unchanged[&same].0 > 0);
        assert_eq!(changed[&same], unchanged[&same], "{same:?}");
    }
    // Its estimator has other times: it goes on with the average, 800 * 256 / 8 in 1/256. Two samples of
    // 250 ms have passed.
    let mut average = 800 * 256 / 8;
    for _ in 0..2 {
        average -= average >> 5;
    }
    assert_eq!(changed[&(vec![2], false)].0, average >> 8);
    assert_eq!(changed[&(vec![3], true)], (0, 0));
    // And back: what has no estimator any more is forgotten.
    change(&mut tree, &mut estimators, &after, &before);
    assert_eq!(said(&estimators).len(), 3);
    assert_eq!(said(&estimators)[&(vec![1], true)], changed[&(vec![1], true)]);
}

/// A change that failed leaves the estimators as they were.
#[test]
fn averages_survive_a_change_that_failed() {
    let spec = spec("fifo estimator=1s,8s");
    let (mut tree, mut estimators) = (Tree::new(&spec), Estimators::of(&spec));
    tree.look(&mut estimators, Time::ZERO);
    tree.send(0, 500, 1);
    estimators.hold(&*tree.root);
    estimators.resume(&*tree.root);
    tree.send(0, 500, 1);
    tree.look(&mut estimators, Time::from_secs(1));
    assert_eq!(said(&estimators)[&(vec![], false)].0, 125);
}

/// A class for hosts has the rate of its host.
#[test]
fn a_host_that_gets_a_class_begins_at_0() {
    let spec = spec("drr handle=1 default=9 { 1 each=source count=1 estimator=1s,8s / fifo; 9 / fifo }");
    let (mut tree, mut estimators) = (Tree::new(&spec), Estimators::of(&spec));
    tree.look(&mut estimators, Time::ZERO);
    tree.send_of(1, [10, 0, 0, 1], 1000, 8);
    tree.look(&mut estimators, Time::from_secs(1));
    assert_eq!(said(&estimators)[&(vec![1], true)].0, 1000);
    // The second host gets the only class, and has sent less.
    tree.send_of(1, [10, 0, 0, 2], 100, 8);
    tree.look(&mut estimators, Time::from_secs(2));
    assert_eq!(said(&estimators)[&(vec![1], true)].0, 100);
}

/// In the kernel only what was read is at hand: leaves, a class above leaves, a tree in a class.
#[test]
fn what_was_read_of_a_tree_counts_as_the_tree_does() {
    let spec = spec(
        "htb handle=1 default=20 estimator=1s,8s { 1 rate=1gbit estimator=1s,8s { 10 rate=1gbit \
         estimator=1s,8s / drr handle=2 default=3 { 3 / fifo estimator=1s,8s }; 20 rate=1gbit \
         estimator=1s,8s / fifo } }",
    );
    let (mut tree, mut here) = (Tree::new(&spec), Estimators::of(&spec));
    let mut there = Estimators::of(&spec);
    for second in 0..6 {
        let now = Time::from_secs(second);
        tree.look(&mut here, now);
        there.look_at(&TreeReading::of(&*tree.root), now);
        assert_eq!(said(&here), said(&there));
        tree.send(10, 700, second as usize);
        tree.send(20, 300, 2);
        if second == 3 {
            there.hold(&TreeReading::of(&*tree.root));
            there.resume(&TreeReading::of(&*tree.root));
        }
    }
    let rates = said(&here);
    assert_eq!(rates.len(), 5);
    assert!(rates.values().all(|(bytes, _)| *bytes > 0), "{rates:?}");
    let bytes = |path: &[u32], is_class| rates[&(path.to_vec(), is_class)].0;
    assert_eq!(bytes(&[], false), bytes(&[1], true));
    assert_eq!(bytes(&[10], true), bytes(&[10, 3], false));
}

#[test]
fn workers_are_added_up() {
    let spec = spec("tbf rate=1gbit burst=10kb estimator=1s,8s / fq_codel estimator=1s,8s");
    let mut rates = Rates::default();
    for worker in 1..=2 {
        let (mut tree, mut estimators) = (Tree::new(&spec), Estimators::of(&spec));
        tree.look(&mut estimators, Time::ZERO);
        tree.send(0, 800, worker);
        tree.look(&mut estimators, Time::ZERO + SECOND);
        rates.include(estimators.rates().of_worker(worker as u32));
    }
    let mut said = Vec::new();
    rates.visit(|path, is_class, rate| said.push((path.to_vec(), is_class, rate.bytes)));
    said.sort();
    let expected = [
        (vec![], false, 300),
        (vec![1], false, 100),
        (vec![1, 1], false, 100),
        (vec![2], false, 200),
        (vec![2, 1], false, 200),
    ];
    assert_eq!(said, expected);
}
