//! What the classes of a tree have sent: of leaves counted packet by packet, of classes above them added up when somebody reads.

use alloc::vec::Vec;

use crate::discipline::Variable;
use crate::sharing::ClassTree;
use crate::sharing::borrowing::LEVELS;
use crate::sharing::tree::NO_PARENT;
use crate::stats::Count;

/// What a class did: packets that left it or a leaf below it, and at whose cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) sent: Count,
    /// Packets at its own cost, those of leaves below included.
    pub(super) lent: u64,
    /// Packets at the cost of a class above.
    pub(super) borrowed: u64,
}

/// What a leaf sent since its classes were last changed.
#[derive(Clone, Copy)]
pub(super) struct LeafCount {
    /// Its place among all classes.
    pub(super) place: u32,
    pub(super) bytes: u64,
    /// Packets by the level of the class at whose cost they were.
    pub(super) from: [u64; LEVELS],
}

/// The books of all classes.
///
/// Invariant: a change of classes leaves what every class has sent as it was. So what is below a class may be taken away, and its
/// numbers never go back.
#[derive(Debug)]
pub(super) struct Books {
    /// Up to the last change of classes.
    before: Vec<Tally>,
    all_before: Tally,
    /// How often each class came to a stop.
    overlimits: Vec<u64>,
}

impl Books {
    /// Of classes that have sent nothing.
    pub(super) fn new(classes: usize) -> Books {
        Books {
            before: vec![Tally::default(); classes],
            all_before: Tally::default(),
            overlimits: vec![0; classes],
        }
    }

    /// The class at `place` may not send any more.
    #[cold]
    pub(super) fn stopped(&mut self, place: u32) {
        self.overlimits[place as usize] += 1;
    }

    /// How often the class at `place` was stopped.
    pub(super) fn overlimits(&self, place: usize) -> u64 {
        self.overlimits[place]
    }

    /// What each class has done in all; `level` is that of the class at a place.
    pub(super) fn tallies(
        &self,
        tree: &ClassTree,
        level: impl Fn(usize) -> u8,
        leaves: impl Iterator<Item = LeafCount>,
    ) -> Vec<Tally> {
        let mut tallies = self.before.clone();
        for leaf in leaves {
            let mut place = leaf.place;
            while place != NO_PARENT {
                let tally = &mut tallies[place as usize];
                let own = usize::from(level(place as usize));
                tally.sent.bytes += leaf.bytes;
                tally.sent.packets += leaf.from.iter().sum::<u64>();
                tally.lent += leaf.from[own];
                tally.borrowed += leaf.from[own + 1..].iter().sum::<u64>();
                place = tree.parent(place as usize);
            }
        }
        tallies
    }

    /// What all leaves have done, those that are no more included.
    pub(super) fn all(&self, leaves: impl Iterator<Item = LeafCount>) -> Tally {
        leaves.fold(self.all_before, |all, leaf| {
            let packets: u64 = leaf.from.iter().sum();
            Tally {
                sent: Count {
                    packets: all.sent.packets + packets,
                    bytes: all.sent.bytes + leaf.bytes,
                },
                lent: all.lent + leaf.from[0],
                borrowed: all.borrowed + packets - leaf.from[0],
            }
        })
    }

    /// Takes over what `old` knew of the classes of another tree, of which `tallies` and `leaves` are.
    pub(super) fn take_over(
        &mut self,
        tree: &ClassTree,
        old: &Books,
        old_tree: &ClassTree,
        tallies: &[Tally],
        leaves: impl Iterator<Item = LeafCount>,
    ) {
        self.all_before = old.all(leaves);
        for (was_at, tally) in tallies.iter().enumerate() {
            if let Some(place) = tree.place(old_tree.minor(was_at)) {
                self.before[place] = *tally;
                self.overlimits[place] = old.overlimits[was_at];
            }
        }
    }
}

impl Tally {
    /// Shows at whose cost packets were sent.
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

    use crate::classify::Classifier;
    use crate::discipline::{Algorithm, Discipline, Node};
    use crate::rate::Rate;
    use crate::sharing::{cbq, hfsc, htb};
    use crate::testing::{Driver, fifo, in_class};
    use crate::time::Time;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Each class with the one above it, by rising number.
    type Shape = Vec<(u16, Option<u16>)>;

    /// Trees of some of the classes 1 to 9, any of which may hang below one with a lower number.
    fn shapes() -> impl Strategy<Value = Shape> {
        vec((any::<bool>(), 0u16..9), 9).prop_map(|drawn| {
            let mut shape: Shape = vec![(1, None)];
            for (minor, (is_there, parent)) in (2..).zip(drawn) {
                let parent = Some(parent).filter(|parent| shape.iter().any(|(minor, _)| minor == parent));
                if is_there && way(&shape, parent.unwrap_or(0)).len() < LEVELS {
                    shape.push((minor, parent));
                }
            }
            shape
        })
    }

    /// A class and those above it.
    fn way(shape: &Shape, minor: u16) -> Vec<u16> {
        let parent = |minor: &u16| shape.iter().find(|class| class.0 == *minor)?.1;
        let classes = core::iter::successors(Some(minor), parent);
        classes.filter(|&minor| minor > 0).collect()
    }

    fn rate(shape: &Shape, minor: u16) -> Rate {
        Rate::from_bits_per_second(8_000_000 >> way(shape, minor).len()).unwrap()
    }

    fn by_name() -> Classifier {
        Classifier {
            handle: 1,
            ..Classifier::default()
        }
    }

    fn of_htb(shape: &Shape) -> htb::Config {
        let class = |&(minor, parent): &(u16, Option<u16>)| htb::ClassConfig {
            ceil: Some(Rate::mbit(6)),
            ..htb::ClassConfig::of_rate(minor, parent, rate(shape, minor))
        };
        htb::Config {
            classifier: by_name(),
            classes: shape.iter().map(class).collect(),
            ..htb::Config::default()
        }
    }

    fn of_cbq(shape: &Shape) -> cbq::Config {
        let class = |&(minor, parent): &(u16, Option<u16>)| {
            cbq::ClassConfig::of_rate(minor, parent, rate(shape, minor))
        };
        cbq::Config {
            classifier: by_name(),
            classes: shape.iter().map(class).collect(),
            ..cbq::Config::of_bandwidth(Rate::mbit(8))
        }
    }

    fn of_hfsc(shape: &Shape) -> hfsc::Config {
        let class = |&(minor, parent): &(u16, Option<u16>)| hfsc::ClassConfig {
            ul: Some(hfsc::ServiceCurve::linear(6_000_000)),
            ..hfsc::ClassConfig::of_rate(minor, parent, rate(shape, minor))
        };
        hfsc::Config {
            classifier: by_name(),
            classes: shape.iter().map(class).collect(),
            ..hfsc::Config::default()
        }
    }

    fn fifos(shape: &Shape) -> Vec<Box<dyn Discipline>> {
        let is_leaf = |minor: u16| shape.iter().all(|class| class.1 != Some(minor));
        let leaves = shape.iter().filter(|class| is_leaf(class.0));
        leaves.map(|_| fifo(1000)).collect()
    }

    /// What is told of each class.
    fn told<A: Algorithm>(root: &Node<A>) -> BTreeMap<u16, (Count, BTreeMap<&'static str, Variable>)> {
        let mut told = BTreeMap::new();
        root.visit_class_states(&mut |class| {
            let variables = class.variables.iter().copied().collect();
            told.insert(class.minor, (class.sent, variables));
        });
        told
    }

    fn sent_by_leaves<A: Algorithm>(root: &Node<A>) -> BTreeMap<u16, u64> {
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
        let mut model: BTreeMap<u16, Count> = shape.iter().map(|class| (class.0, Count::default())).collect();
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
                    let (before, leaves) = (told(&driver.root), sent_by_leaves(&driver.root));
                    let Some(cookie) = driver.next(now) else { continue };
                    let sent = sent_by_leaves(&driver.root);
                    let Some(leaf) = sent.keys().find(|minor| sent[minor] > leaves[minor]) else {
                        continue;
                    };
                    let way = way(&shape, *leaf);
                    way.iter()
                        .for_each(|above| model.get_mut(above).unwrap().add(lengths[cookie as usize]));
                    all += 1;
                    let after = told(&driver.root);
                    if A::NAME == "hfsc" {
                        // The discipline's own account, which curves go by.
                        for above in &way {
                            let work = |told: &BTreeMap<u16, (Count, BTreeMap<&str, Variable>)>| {
                                told[above].1["work"]
                            };
                            assert_ne!(work(&before), work(&after));
                        }
                        continue;
                    }
                    // One class pays, those below it borrow.
                    let rose = |name: &str| -> Vec<u16> {
                        let rose = |minor: &u16| after[minor].1[name] != before[minor].1[name];
                        way.iter().copied().filter(rose).collect()
                    };
                    let (lent, borrowed) = (rose("lent_packets"), rose("borrowed_packets"));
                    assert_eq!([&borrowed[..], &lent[..]].concat(), way[..=borrowed.len()]);
                    assert_eq!(lent.len(), 1);
                }
                9 => {
                    shape.clone_from(index.get(shapes));
                    driver.reconfigure(config(&shape), now);
                    let kept = |&(minor, _): &(u16, Option<u16>)| {
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
            let sent: BTreeMap<u16, Count> = told(&driver.root)
                .into_iter()
                .map(|(minor, (sent, _))| (minor, sent))
                .collect();
            assert_eq!(sent, model);
            let mut of_all = 0;
            driver.root.visit_variables(&mut |name, value| {
                if let (true, Variable::Integer(packets)) = (name.starts_with("sent_"), value) {
                    of_all += packets;
                }
            });
            assert_eq!(of_all, all);
        }
    }

    proptest! {
        /// Whatever becomes of the classes: moved, put below or above others, taken away, given other disciplines.
        #[test]
        fn what_classes_sent_is_what_their_leaves_did(
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
