//! What a class of a shard gets of the line, and the few kinds of classes that the balancer tells apart.
//!
//! Flows are all alike: each gets the level. A class of htb or hfsc has a guarantee, a share of the rest and
//! a limit. A provider has thousands of classes, but a dozen plans. So a shard reports how many backlogged
//! classes it has of each *kind*, and the balancer knows what a kind gets at a level.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The fraction bits of a level.
pub(super) const FRACTION: u32 = 16;
/// The largest number of kinds.
pub const KINDS: usize = 16;
/// The largest weight after scaling. Thousands of classes of this weight still give a level of many bits.
const HEAVIEST: u64 = u32::MAX as u64;

/// What a class gets at a level: `weight * level`, with a guarantee and a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Terms {
    /// What is guaranteed to it, bytes per second.
    pub least: u64,
    /// Whether its share comes on top of the guarantee (htb). Otherwise it gets the greater one of the two
    /// (hfsc).
    pub adds_up: bool,
    /// Its share of the rest, from 1.
    pub weight: u32,
    /// What it never exceeds, bytes per second.
    pub most: u64,
}

impl Terms {
    /// Those of a flow: it gets the level.
    pub const FLOW: Terms = Terms {
        least: 0,
        adds_up: true,
        weight: 1,
        most: u64::MAX,
    };

    /// Returns what a class gets whose guarantee is `least`, whose share is `shared` and whose limit is
    /// `most`.
    fn combine(&self, least: u128, shared: u128, most: u128) -> u128 {
        let wanted = match self.adds_up {
            true => least + shared,
            false => least.max(shared),
        };
        wanted.min(most)
    }

    /// Returns the bytes per second that `count` classes use at `level`, in 2^-16 bytes per second.
    pub(super) fn used(&self, count: u32, level: u128) -> u128 {
        let count = u128::from(count);
        let shared = (count * u128::from(self.weight)).saturating_mul(level) >> FRACTION;
        self.combine(
            count * u128::from(self.least),
            shared,
            count * u128::from(self.most),
        )
    }

    /// Returns the bytes that a class gets in a window of `nanos` ns, if the level grants `level` bytes for
    /// the weight of 1 in this time (with [`FRACTION`] bits).
    pub(super) fn bytes(&self, level: u128, nanos: u64) -> u128 {
        let shared = (u128::from(self.weight)).saturating_mul(level) >> FRACTION;
        self.combine(in_window(self.least, nanos), shared, in_window(self.most, nanos))
    }

    /// Returns the level at which a class gets `bytes` in a window of `nanos` ns, as of [`Terms::bytes`].
    pub(super) fn level(&self, bytes: u64, nanos: u64) -> u128 {
        let (bytes, least) = (u128::from(bytes), in_window(self.least, nanos));
        let shared = match self.adds_up {
            true => bytes.saturating_sub(least),
            // A class that has its guarantee and no more may have a lower level.
            false if bytes > least => bytes,
            false => 0,
        };
        (shared << FRACTION) / u128::from(self.weight)
    }

    /// The level from which on the limit holds, with [`FRACTION`] bits.
    fn limit(&self) -> u128 {
        let shared = match self.adds_up {
            true => self.most.saturating_sub(self.least),
            false => self.most,
        };
        (u128::from(shared) << FRACTION) / u128::from(self.weight)
    }
}

/// Returns the bytes of a rate in bytes per second in `nanos` ns.
pub(super) fn in_window(rate: u64, nanos: u64) -> u128 {
    u128::from(rate) * u128::from(nanos) / 1_000_000_000
}

/// A class that packets of a shard are counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub minor: u32,
    /// What it gets of the line.
    pub terms: Terms,
    /// The class above it, if that has a limit of its own.
    pub above: Option<u32>,
}

/// A class above others that limits them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// Its number.
    pub minor: u32,
    /// What all below it never exceed, bytes per second.
    pub most: u64,
    /// The class above it, if that has a limit of its own.
    pub above: Option<u32>,
}

/// The classes of a tree as its shards count them: the kind of each, and what limits several together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// The terms of each kind.
    terms: Vec<Terms>,
    /// The kind of each class, by its number.
    kind_of: Box<[u8]>,
    /// The limit of each group of classes, and the group that it belongs to.
    groups: Vec<(u64, Group)>,
    /// The group of each class, by its number.
    group_of: Box<[Group]>,
}

/// The number of a group from 1 on, or 0 for none.
pub(super) type Group = u32;

impl Classes {
    /// Describes `members`, which are below the line or below classes of `limited`. Weights may have any
    /// unit; only their ratios count. If there are more than [`KINDS`] different terms, classes whose limits
    /// hold at similar levels are one kind, which has their mean terms.
    ///
    /// # Panics
    /// If a class is below one that is not in `limited`.
    pub fn new(members: &[Member], limited: &[Limited]) -> Classes {
        let numbers: BTreeMap<u32, Group> = limited.iter().map(|class| class.minor).zip(1..).collect();
        let group = |above: Option<u32>| above.map_or(0, |minor| numbers[&minor]);
        let mut group_of = by_number(members);
        for member in members {
            group_of[member.minor as usize] = group(member.above);
        }
        let (terms, kind_of) = kinds(members);
        Classes {
            terms,
            kind_of,
            groups: limited
                .iter()
                .map(|class| (class.most, group(class.above)))
                .collect(),
            group_of,
        }
    }

    /// Returns the terms of each kind.
    pub(super) fn terms(&self) -> &[Terms] {
        &self.terms
    }

    /// Returns the kind and the group of each class, by its number, up to the highest one.
    pub(super) fn places(&self) -> impl ExactSizeIterator<Item = (u8, Group)> {
        self.kind_of.iter().copied().zip(self.group_of.iter().copied())
    }

    /// Returns the limit of each group, bytes per second, and the group that it belongs to. The first one is
    /// group 1.
    pub(super) fn groups(&self) -> &[(u64, Group)] {
        &self.groups
    }
}

/// Returns a zero for each number up to the highest one of `members`.
fn by_number<T: Copy + Default>(members: &[Member]) -> Box<[T]> {
    let highest = members.iter().map(|member| member.minor).max().unwrap_or(0);
    vec![T::default(); highest as usize + 1].into_boxed_slice()
}

/// Sorts classes into kinds. Returns the terms of each kind, and the kind of each class by its number.
fn kinds(members: &[Member]) -> (Vec<Terms>, Box<[u8]>) {
    let weights = members.iter().map(|member| u64::from(member.terms.weight));
    let divisor = weights.clone().fold(0, gcd).max(1);
    let heaviest = weights.max().unwrap_or(1) / divisor;
    let scaled = |weight: u32| {
        let weight = u64::from(weight) / divisor;
        let weight = match heaviest > HEAVIEST {
            true => weight * HEAVIEST / heaviest,
            false => weight,
        };
        weight.max(1) as u32
    };
    let mut alike: BTreeMap<(u128, Terms), Vec<u32>> = BTreeMap::new();
    for member in members {
        let terms = Terms {
            weight: scaled(member.terms.weight),
            ..member.terms
        };
        alike
            .entry((terms.limit(), terms))
            .or_default()
            .push(member.minor);
    }
    let alike: Vec<(Terms, Vec<u32>)> = alike
        .into_iter()
        .map(|((_, terms), minors)| (terms, minors))
        .collect();
    let of_each = alike.len().div_ceil(KINDS).max(1);
    let mut kind_of = by_number(members);
    let mut all = Vec::with_capacity(KINDS);
    for group in alike.chunks(of_each) {
        for minor in group.iter().flat_map(|(_, minors)| minors) {
            kind_of[*minor as usize] = all.len() as u8;
        }
        all.push(mean(group));
    }
    (all, kind_of)
}

/// Returns the mean terms of classes.
fn mean(group: &[(Terms, Vec<u32>)]) -> Terms {
    let count: u128 = group.iter().map(|(_, minors)| minors.len() as u128).sum();
    let mean = |value: &dyn Fn(&Terms) -> u64| {
        let sum: u128 = group
            .iter()
            .map(|(terms, minors)| u128::from(value(terms)) * minors.len() as u128)
            .sum();
        (sum / count.max(1)) as u64
    };
    Terms {
        least: mean(&|terms| terms.least),
        adds_up: group.iter().all(|(terms, _)| terms.adds_up),
        weight: mean(&|terms| terms.weight.into()) as u32,
        most: mean(&|terms| terms.most),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(least: u64, weight: u32, most: u64) -> Terms {
        Terms {
            least,
            adds_up: true,
            weight,
            most,
        }
    }

    fn member((minor, terms): (u32, Terms)) -> Member {
        Member {
            minor,
            terms,
            above: None,
        }
    }

    #[test]
    fn a_class_gets_its_guarantee_its_share_and_not_more_than_its_limit() {
        let class = terms(100, 3, 400);
        let at = |level: u128| class.used(2, level << FRACTION);
        assert_eq!([at(0), at(50), at(100), at(1000)], [200, 500, 800, 800]);
        assert_eq!(class.level(250, 1_000_000_000), 50 << FRACTION);
        assert_eq!(class.bytes(50 << FRACTION, 1_000_000_000), 250);
        assert_eq!(class.bytes(500 << FRACTION, 500_000_000), 200);
        let class = Terms {
            adds_up: false,
            ..class
        };
        let at = |level: u128| class.used(2, level << FRACTION);
        assert_eq!([at(0), at(10), at(50), at(1000)], [200, 200, 300, 800]);
        assert_eq!(class.level(300, 1_000_000_000), 100 << FRACTION);
        assert_eq!(class.level(100, 1_000_000_000), 0);
    }

    #[test]
    fn equal_classes_are_one_kind() {
        let small = terms(10, 1518, 1000);
        let large = terms(10, 3036, 5000);
        let classes = Classes::new(&[(7, large), (9, small), (300, small)].map(member), &[]);
        assert_eq!(classes.terms(), [terms(10, 1, 1000), terms(10, 2, 5000)]);
        let of = |minor: usize| classes.kind_of[minor];
        assert_eq!([of(7), of(9), of(300)], [1, 0, 0]);
    }

    proptest! {
        /// However many different terms there are, there are few kinds, and together they use about what the
        /// classes use.
        #[test]
        fn many_terms_become_few_kinds(
            list in proptest::collection::vec((0u64..1000, 1u32..=u32::MAX, 1u64..1 << 32), 1..200),
        ) {
            let list: Vec<Member> = (1..)
                .zip(list)
                .map(|(minor, (least, weight, above))| member((minor, terms(least, weight, least + above))))
                .collect();
            let classes = Classes::new(&list, &[]);
            prop_assert!((1..=KINDS).contains(&classes.terms().len()));
            let most: u128 = list.iter().map(|member| u128::from(member.terms.most)).sum();
            let counts = list.iter().fold([0; KINDS], |mut counts, member| {
                counts[usize::from(classes.kind_of[member.minor as usize])] += 1;
                counts
            });
            let used: u128 = classes.terms().iter().zip(counts)
                .map(|(terms, count)| terms.used(count, u128::MAX >> 40))
                .sum();
            prop_assert!(used.abs_diff(most) <= list.len() as u128, "{used} is not {most}");
        }
    }
}
