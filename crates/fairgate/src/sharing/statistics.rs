//! What the classes of a tree have sent. Leaves are counted packet by packet. The counters of the classes
//! above are added up when they are read, in steps if there are many.

use alloc::vec::Vec;

use crate::class_reading::ClassReading;
pub(super) use crate::class_reading::ClassSums as Counters;
use crate::count::Count;
use crate::discipline::Variable;
use crate::sharing::index::ClassIndex;
use crate::sharing::tree::{ClassTree, LEVELS};

/// What a leaf has sent since the last change of the tree's shape.
#[derive(Clone, Copy)]
pub(super) struct LeafCounters {
    pub(super) class: ClassIndex,
    pub(super) bytes: u64,
    /// Packets by the level of the class that lent them.
    pub(super) packets_from: [u64; LEVELS],
}

/// The statistics of all classes.
///
/// Invariant: a change of classes does not change what a class that is kept has sent. So the classes below it
/// may be removed, and its counters never decrease.
#[derive(Debug)]
pub(super) struct ClassStatistics {
    /// The counters at the last change of the tree's shape.
    before: Vec<Counters>,
    total_before: Counters,
    /// How often each class has been stopped.
    overlimits: Vec<u64>,
    /// How often any class has been stopped, removed ones included.
    all_overlimits: u64,
}

impl ClassStatistics {
    /// Creates the statistics of classes that have sent nothing.
    pub(super) fn new(classes: usize) -> ClassStatistics {
        ClassStatistics {
            before: vec![Counters::default(); classes],
            total_before: Counters::default(),
            overlimits: vec![0; classes],
            all_overlimits: 0,
        }
    }

    /// Counts that a class may no longer send.
    #[cold]
    pub(super) fn count_overlimit(&mut self, class: ClassIndex) {
        self.overlimits[class.index()] += 1;
        self.all_overlimits += 1;
    }

    /// Returns how often any class was stopped.
    pub(super) fn all_overlimits(&self) -> u64 {
        self.all_overlimits
    }

    /// Returns how often a class was stopped.
    pub(super) fn overlimits(&self, class: ClassIndex) -> u64 {
        self.overlimits[class.index()]
    }

    /// Returns the counters of each class. `level` returns the level of a class.
    pub(super) fn counters(
        &self,
        tree: &ClassTree,
        level: impl Fn(ClassIndex) -> u8,
        leaves: impl Iterator<Item = LeafCounters>,
    ) -> Vec<Counters> {
        let mut counters = self.before.clone();
        leaves.for_each(|leaf| add(&mut counters, tree, &level, &leaf));
        counters
    }

    /// Goes on with a reading by about `most` steps: copies the counters of a class, adds up what a leaf has
    /// sent, or calls `visit` with the counters of a class. `leaf` returns the counters of the leaf at a
    /// place. Returns true if there is more.
    pub(super) fn read(
        &self,
        reading: &mut ClassReading,
        most: usize,
        tree: &ClassTree,
        level: impl Fn(ClassIndex) -> u8,
        leaf: impl Fn(usize) -> LeafCounters,
        mut visit: impl FnMut(ClassIndex, &Counters),
    ) -> bool {
        let (classes, leaves) = (tree.len(), tree.leaves().len());
        let end = reading.place.saturating_add(most).min(classes + leaves + classes);
        let part = |from: usize, to: usize| reading.place.clamp(from, to) - from..end.clamp(from, to) - from;
        let [copied, added, shown] = [
            part(0, classes),
            part(classes, classes + leaves),
            part(classes + leaves, classes + leaves + classes),
        ];
        reading.sums.extend_from_slice(&self.before[copied]);
        for place in added {
            add(&mut reading.sums, tree, &level, &leaf(place));
        }
        for class in shown.map(ClassIndex::new) {
            visit(class, &reading.sums[class.index()]);
        }
        reading.place = end;
        end < classes + leaves + classes
    }

    /// Returns the sum over all leaves, removed ones included.
    pub(super) fn total(&self, leaves: impl Iterator<Item = LeafCounters>) -> Counters {
        leaves.fold(self.total_before, |total, leaf| {
            let packets: u64 = leaf.packets_from.iter().sum();
            Counters {
                sent: Count {
                    packets: total.sent.packets + packets,
                    bytes: total.sent.bytes + leaf.bytes,
                },
                lent: total.lent + leaf.packets_from[0],
                borrowed: total.borrowed + packets - leaf.packets_from[0],
            }
        })
    }

    /// Takes over the statistics of another tree. `counters` and `leaves` are that tree's.
    ///
    /// Returns whether both trees have the same shape. Then the leaves keep their counters, which the caller
    /// copies, and a reading that has begun goes on.
    pub(super) fn take_over(
        &mut self,
        tree: &ClassTree,
        old: &ClassStatistics,
        old_tree: &ClassTree,
        counters: impl FnOnce() -> Vec<Counters>,
        leaves: impl Iterator<Item = LeafCounters>,
    ) -> bool {
        self.all_overlimits = old.all_overlimits;
        if tree.has_shape_of(old_tree) {
            self.before.copy_from_slice(&old.before);
            self.total_before = old.total_before;
            self.overlimits.copy_from_slice(&old.overlimits);
            return true;
        }
        self.total_before = old.total(leaves);
        for (before, counters) in old_tree.classes().zip(&counters()) {
            if let Some(class) = tree.index(old_tree.minor(before)) {
                self.before[class.index()] = *counters;
                self.overlimits[class.index()] = old.overlimits(before);
            }
        }
        false
    }
}

/// Adds what a leaf has sent to the counters of the leaf and of the classes above it.
fn add(counters: &mut [Counters], tree: &ClassTree, level: impl Fn(ClassIndex) -> u8, leaf: &LeafCounters) {
    for class in tree.path(leaf.class) {
        let own = usize::from(level(class));
        let counters = &mut counters[class.index()];
        counters.sent.bytes += leaf.bytes;
        counters.sent.packets += leaf.packets_from.iter().sum::<u64>();
        counters.lent += leaf.packets_from[own];
        counters.borrowed += leaf.packets_from[own + 1..].iter().sum::<u64>();
    }
}

impl Counters {
    /// Returns the variables that say who lent the packets.
    pub(super) fn variables(&self) -> [(&'static str, Variable); 2] {
        [
            ("lent_packets", Variable::Integer(self.lent as i64)),
            ("borrowed_packets", Variable::Integer(self.borrowed as i64)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use crate::discipline::{Algorithm, Inspect, Node};
    use crate::sharing::shapes::{Shape, fifos, of_cbq, of_hfsc, of_htb, path, shapes};
    use crate::sharing::{cbq, hfsc, htb};
    use crate::testing::{Driver, fifo, in_class};
    use crate::time::Time;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns the statistics and variables of each class.
    fn shown<A: Algorithm>(root: &Node<A>) -> BTreeMap<u32, (Count, BTreeMap<&'static str, Variable>)> {
        let mut shown = BTreeMap::new();
        root.visit_class_states(&mut |class| {
            let variables = class.variables.iter().copied().collect();
            shown.insert(class.minor, (class.sent, variables));
        });
        shown
    }

    fn sent_by_leaves<A: Algorithm>(root: &Node<A>) -> BTreeMap<u32, u64> {
        let mut sent = BTreeMap::new();
        root.visit_classes(&mut |class| {
            sent.insert(class.minor, class.discipline.statistics().dequeued.packets);
        });
        sent
    }

    fn check<A: Algorithm>(
        mut shape: Shape,
        shapes: &[Shape],
        config: fn(&Shape) -> A::Config,
        root: Node<A>,
        steps: Vec<(u8, prop::sample::Index, u32)>,
    ) {
        let mut driver = Driver::new(root);
        let mut model: BTreeMap<u32, Count> = shape.iter().map(|class| (class.0, Count::default())).collect();
        let (mut all, mut lengths, mut now) = (0, Vec::new(), Time::ZERO);
        for (step, index, number) in steps {
            let minor = index.get(&shape).0;
            match step {
                0..=3 => {
                    lengths.push(number);
                    driver.offer(in_class(minor, number), now);
                }
                4..=8 => {
                    now += u64::from(number) * 500;
                    let (before, leaves) = (shown(&driver.root), sent_by_leaves(&driver.root));
                    let Some(cookie) = driver.next(now) else { continue };
                    let sent = sent_by_leaves(&driver.root);
                    let Some(leaf) = sent.keys().find(|minor| sent[minor] > leaves[minor]) else {
                        continue;
                    };
                    let path = path(&shape, *leaf);
                    for above in &path {
                        model.get_mut(above).unwrap().add(lengths[cookie as usize]);
                    }
                    all += 1;
                    let after = shown(&driver.root);
                    if A::NAME == "hfsc" {
                        // The discipline's own counter, which service curves use.
                        for above in &path {
                            assert_ne!(before[above].1["work"], after[above].1["work"]);
                        }
                        continue;
                    }
                    // One class lends, the classes below it borrow.
                    let increased = |name: &str| -> Vec<u32> {
                        let has_increased = |minor: &u32| after[minor].1[name] != before[minor].1[name];
                        path.iter().copied().filter(has_increased).collect()
                    };
                    let (lent, borrowed) = (increased("lent_packets"), increased("borrowed_packets"));
                    assert_eq!([&borrowed[..], &lent[..]].concat(), path[..=borrowed.len()]);
                    assert_eq!(lent.len(), 1);
                }
                9 => {
                    shape.clone_from(index.get(shapes));
                    driver.reconfigure(config(&shape), now);
                    let kept = |&(minor, _): &(u32, Option<u32>)| {
                        (minor, model.get(&minor).copied().unwrap_or_default())
                    };
                    model = shape.iter().map(kept).collect();
                }
                _ => {
                    if shape.iter().all(|class| class.1 != Some(minor)) {
                        driver.replace_class(minor, fifo(1000), now);
                    }
                }
            }
            let sent: BTreeMap<u32, Count> = shown(&driver.root)
                .into_iter()
                .map(|(minor, (sent, _))| (minor, sent))
                .collect();
            assert_eq!(sent, model);
            let mut total = 0;
            driver.root.visit_variables(&mut |name, value| {
                if let (true, Variable::Integer(packets)) = (name.starts_with("sent_"), value) {
                    total += packets;
                }
            });
            assert_eq!(total, all);
        }
    }

    /// Sends, begins a reading, changes parameters of the same tree, and reads on.
    fn check_reading<A: Algorithm>(
        shape: &Shape,
        config: A::Config,
        root: Node<A>,
        lengths: &[u32],
        (first, then): (usize, usize),
    ) {
        let mut driver = Driver::new(root);
        let mut now = Time::ZERO;
        for (&length, (minor, _)) in lengths.iter().zip(shape.iter().cycle()) {
            driver.offer(in_class(*minor, length), now);
        }
        for _ in lengths {
            now += 10_000_000;
            driver.next(now);
        }
        let expected: BTreeMap<u32, Count> = shown(&driver.root)
            .into_iter()
            .map(|(minor, (sent, _))| (minor, sent))
            .collect();
        let (mut reading, mut read) = (ClassReading::default(), BTreeMap::new());
        let mut more = driver.root.read_class_states(&mut reading, first, &mut |class| {
            read.insert(class.minor, class.sent);
        });
        driver.reconfigure(config, now);
        while more {
            more = driver.root.read_class_states(&mut reading, then, &mut |class| {
                read.insert(class.minor, class.sent);
            });
        }
        assert_eq!(read, expected);
    }

    proptest! {
        /// A rate that follows the line is changed at any time.
        #[test]
        fn a_reading_goes_on_after_a_change_of_parameters(
            shape in shapes(),
            lengths in vec(40u32..1500, 0..40),
            steps in (1usize..30, 1usize..30),
        ) {
            let htb = htb::Htb::node(of_htb(&shape), fifos(&shape)).unwrap();
            check_reading(&shape, of_htb(&shape), htb, &lengths, steps);
            let cbq = cbq::Cbq::node(of_cbq(&shape), fifos(&shape)).unwrap();
            check_reading(&shape, of_cbq(&shape), cbq, &lengths, steps);
            let hfsc = hfsc::Hfsc::node(of_hfsc(&shape), fifos(&shape)).unwrap();
            check_reading(&shape, of_hfsc(&shape), hfsc, &lengths, steps);
        }

        /// Classes are moved, put below or above others, removed, and given other disciplines.
        #[test]
        fn a_class_has_sent_what_the_leaves_below_it_have_sent(
            shapes in vec(shapes(), 1..6),
            steps in vec((0u8..11, any::<prop::sample::Index>(), 40u32..1500), 1..200),
        ) {
            let shape = shapes[0].clone();
            let htb = htb::Htb::node(of_htb(&shape), fifos(&shape)).unwrap();
            check(shape.clone(), &shapes, of_htb, htb, steps.clone());
            let cbq = cbq::Cbq::node(of_cbq(&shape), fifos(&shape)).unwrap();
            check(shape.clone(), &shapes, of_cbq, cbq, steps.clone());
            let hfsc = hfsc::Hfsc::node(of_hfsc(&shape), fifos(&shape)).unwrap();
            check(shape, &shapes, of_hfsc, hfsc, steps);
        }
    }
}
