//! Trees of htb and hfsc whose classes several workers divide.
//!
//! The one class at the top is the line, which the workers share. Each class right below it belongs to one
//! worker, with all that is below it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairgate::classify::{Filter, Match, Prefix};
use fairgate::flow::ethertype;
use fairgate::hfsc::{self, ServiceCurve};
use fairgate::htb;
use fairgate::sharding::{Division, Lengths, Limit, Limited, Member, Parts, Side, Terms, Unit};
use fairgate::{LinkLayer, Rate};

use super::{Spec, Workers, burst};
use crate::error::Problem;

/// A class of a tree, whatever its discipline.
struct Class {
    minor: u32,
    parent: Option<u32>,
    terms: Terms,
}

/// The shape of a tree.
struct Shape {
    classes: BTreeMap<u32, Class>,
    /// The classes that have others below them.
    inner: BTreeSet<u32>,
    /// The class at the top.
    line: u32,
}

impl Shape {
    /// Returns a class and those above it, up to the class right below the line.
    fn path(&self, minor: u32) -> impl Iterator<Item = u32> {
        let above = |minor: &u32| self.classes[minor].parent;
        std::iter::successors(Some(minor), above).take_while(|minor| *minor != self.line)
    }

    /// Returns the class right below the line that a class belongs to.
    fn unit(&self, minor: u32) -> Option<u32> {
        self.path(minor).last()
    }

    fn leaves(&self) -> impl Iterator<Item = &Class> + Clone {
        let classes = self.classes.values();
        classes.filter(|class| !self.inner.contains(&class.minor))
    }
}

impl Spec {
    /// Returns what workers share that divide the classes of this tree, and how these are divided. Classes of
    /// `before` stay with their workers.
    pub(super) fn divided(
        &self,
        workers: Workers,
        before: Option<&Division>,
    ) -> Result<(Limit, Division), Box<Problem>> {
        let (limit, shape) = match self.discipline() {
            "htb" => self.shape_of_htb()?,
            "hfsc" => self.shape_of_hfsc()?,
            _ => return Err(self.without_classes()),
        };
        let (side, without_address) = self.side_of_filters(&shape)?;
        let parts = match self.discipline() {
            "htb" => parts_by_leaf(&shape),
            _ => parts_by_unit(&shape),
        };
        let classifier = self.settings.classifier.clone();
        Ok((
            limit,
            Division::new(side, classifier, parts, &without_address, workers.count, before),
        ))
    }

    /// Returns the tree of one worker: the line, the worker's classes, and the default class, which takes
    /// what comes to the worker by mistake.
    pub(super) fn part(&self, division: &Division, worker: usize) -> Spec {
        let parents: BTreeMap<u32, Option<u32>> = self
            .classes()
            .iter()
            .map(|class| (class.minor, class.parent()))
            .collect();
        let path = |minor: u32| std::iter::successors(Some(minor), |minor| parents[minor]);
        let is_own = |minor: u32| {
            // The last one is the line, the one before it a unit.
            let path: Vec<u32> = path(minor).collect();
            path.len() < 2 || division.worker(path[path.len() - 2]) == worker
        };
        let mut kept: BTreeSet<u32> = parents.keys().copied().filter(|minor| is_own(*minor)).collect();
        kept.extend(self.settings.classifier.default.into_iter().flat_map(path));
        self.with_classes(&kept)
    }

    /// Returns this tree without all classes but `kept`, and without filters that lead to others.
    fn with_classes(&self, kept: &BTreeSet<u32>) -> Spec {
        let mut part = self.clone();
        let trees = self
            .classes_and_trees()
            .filter(|(class, _)| kept.contains(&class.minor));
        part.children = Arc::new(trees.filter_map(|(_, tree)| tree.cloned()).collect());
        let estimators = Arc::make_mut(&mut part.estimators);
        estimators.classes.retain(|minor, _| kept.contains(minor));
        let leads_elsewhere =
            |filter: &Filter| filter.outcome.class().is_none_or(|minor| !kept.contains(&minor));
        let settings = Arc::make_mut(&mut part.settings);
        settings.classes.retain(|class| kept.contains(&class.minor));
        settings.classifier.filters = self.settings.classifier.filters.without(leads_elsewhere);
        part
    }

    /// Returns the line and the classes of a tree of htb.
    fn shape_of_htb(&self) -> Result<(Limit, Shape), Box<Problem>> {
        let config = self.as_config::<htb::Config>();
        let shape = self.shape(config.classes.iter().map(|class| Class {
            minor: class.minor,
            parent: class.parent,
            terms: Terms {
                least: in_bytes(class.rate.bits_per_second()),
                adds_up: true,
                weight: class.quantum(config.r2q),
                most: in_bytes(class.most().bits_per_second()),
            },
        }))?;
        // They ascend. A list of subscribers has thousands.
        let of = |minor: u32| {
            let place = config.classes.binary_search_by_key(&minor, |class| class.minor);
            Some(&config.classes[place.ok()?])
        };
        let line = of(shape.line).expect("the line is a class");
        for class in &config.classes {
            if class.link_layer != line.link_layer {
                return Err(self.refused_class(
                    (class.minor, "overhead"),
                    "its lengths are counted in another way than the line's",
                    "workers count lengths as the line does",
                    "give all classes the same `overhead`, `mpu` and `cells`",
                ));
            }
        }
        let leaves = shape.leaves().filter_map(|leaf| of(leaf.minor));
        let first = leaves.clone().next().map_or(0, |leaf| leaf.prio);
        let other = leaves.into_iter().find(|leaf| leaf.prio != first);
        if let Some(other) = other {
            return Err(self.refused_class(
                (other.minor, "prio"),
                "it borrows from the line before or after others, whichever worker they belong to",
                "workers need one `prio` for all leaves",
                "set the same `prio`; put a `prio` discipline into the classes",
            ));
        }
        // What a node guarantees to those of its leaves that have packets would depend on which they are.
        for leaf in shape.leaves() {
            let nodes = shape.path(leaf.minor).skip(1);
            if let Some(node) = nodes
                .into_iter()
                .find(|node| shape.classes[node].terms.least > leaf.terms.least)
            {
                return Err(self.refused_class(
                    (node, "rate"),
                    "it guarantees more than each class below it has of its own",
                    "workers need the guarantees in the leaves",
                    "lower its `rate` to the least one below it, and leave its `ceil`",
                ));
            }
        }
        let limit = Limit {
            rate: line.rate.min(line.ceil()),
            burst: line.bursts().0,
            lengths: Lengths::LinkLayer(line.link_layer),
        };
        self.check_guarantees(&shape, limit)?;
        Ok((limit, shape))
    }

    /// Returns the line and the classes of a tree of hfsc.
    fn shape_of_hfsc(&self) -> Result<(Limit, Shape), Box<Problem>> {
        let config = self.as_config::<hfsc::Config>();
        for class in &config.classes {
            let curves = [class.rt, class.ls, class.ul];
            if curves
                .into_iter()
                .flatten()
                .any(|curve| curve.m1 != curve.m2 && !curve.d.is_zero())
            {
                return Err(self.refused_class(
                    (class.minor, "rt"),
                    "its curve has two slopes, and its worker's part of the rate may come later",
                    "workers need curves of one slope",
                    "write the curve as one rate",
                ));
            }
            if class.ls.is_none() {
                return Err(self.refused_class(
                    (class.minor, "rt"),
                    "it has no share of the line",
                    "workers share the line by `ls`",
                    "give it an `ls`",
                ));
            }
        }
        let slope = |curve: Option<ServiceCurve>| curve.map(|curve| curve.m2);
        let shape = self.shape(config.classes.iter().map(|class| {
            Class {
                minor: class.minor,
                parent: class.parent,
                terms: Terms {
                    least: slope(class.rt).map_or(0, in_bytes),
                    adds_up: false,
                    weight: u32::try_from(slope(class.ls).unwrap_or(0) / 1000)
                        .unwrap_or(u32::MAX)
                        .max(1),
                    most: slope(class.ul).map_or(u64::MAX, in_bytes),
                },
            }
        }))?;
        let line = config.classes.iter().find(|class| class.minor == shape.line);
        let Some(rate) = line.and_then(|line| slope(line.ul)) else {
            return Err(self.refused_class(
                (shape.line, "ls"),
                "it has no upper limit, so there is no rate that workers could share",
                "workers share the rate of the line",
                "give it a `ul`",
            ));
        };
        let rate = Rate::from_bits_per_second(rate).expect("the limit was checked");
        let limit = Limit {
            rate,
            burst: burst(rate),
            lengths: Lengths::LinkLayer(LinkLayer::NONE),
        };
        self.check_guarantees(&shape, limit)?;
        Ok((limit, shape))
    }

    /// Checks that the tree has one class at the top, and others below it.
    fn shape(&self, classes: impl Iterator<Item = Class>) -> Result<Shape, Box<Problem>> {
        let classes: BTreeMap<u32, Class> = classes.map(|class| (class.minor, class)).collect();
        if let Some(class) = self
            .settings
            .classes
            .iter()
            .find(|class| class.template.is_some())
        {
            return Err(self.refused_class(
                (class.minor, "hosts"),
                "its classes are given to hosts as these appear, in each worker to others",
                "workers need classes of their own for hosts that are known",
                "write a class for each, or use cake with shard_by = \"left\" or \"right\"",
            ));
        }
        let tops: Vec<u32> = classes
            .values()
            .filter(|class| class.parent.is_none())
            .map(|class| class.minor)
            .collect();
        let inner: BTreeSet<u32> = classes.values().filter_map(|class| class.parent).collect();
        let line = match tops[..] {
            [line] if inner.contains(&line) => line,
            _ => {
                let name = self.discipline();
                return Err(self.refused(
                    "",
                    format!(
                        "this `{name}` has {} classes at the top, and workers share the rate of one",
                        tops.len()
                    ),
                    "workers share the rate of one class",
                    "put a class with the rate of the line above the others; or use one worker",
                ));
            }
        };
        Ok(Shape { classes, inner, line })
    }

    /// Checks that the line can keep all guarantees: otherwise who loses would depend on the workers.
    fn check_guarantees(&self, shape: &Shape, limit: Limit) -> Result<(), Box<Problem>> {
        let all: u64 = shape.leaves().map(|leaf| leaf.terms.least).sum();
        if all <= in_bytes(limit.rate.bits_per_second()) {
            return Ok(());
        }
        Err(self.refused_class(
            (shape.line, "rate"),
            "the guarantees below it exceed its rate",
            "workers keep guarantees that the line can keep",
            "lower the guarantees, or raise the rate of the line",
        ))
    }

    /// Checks that filters choose leaves by one address, the same in all filters, or by the EtherType of
    /// frames without such addresses. Returns which address, and the leaves of the latter.
    fn side_of_filters(&self, shape: &Shape) -> Result<(Side, Vec<u32>), Box<Problem>> {
        let is_leaf = |minor: u32| shape.classes.contains_key(&minor) && !shape.inner.contains(&minor);
        let (without_address, filters): (Vec<Filter>, Vec<Filter>) = self
            .settings
            .classifier
            .filters
            .iter()
            .cloned()
            .partition(|filter| leaf_without_address(filter).is_some_and(is_leaf));
        let leaves = without_address.iter().filter_map(leaf_without_address).collect();
        let only = |side: Side, filter: &Filter| {
            let prefix = side.prefix(&filter.condition)?;
            let (source, destination) = match side {
                Side::Source => (Some(prefix), None),
                Side::Destination => (None, Some(prefix)),
            };
            let plain = Filter {
                preference: filter.preference,
                condition: Match {
                    source,
                    destination,
                    ..Match::default()
                },
                outcome: filter.outcome,
                ..Filter::default()
            };
            let leaf = filter.outcome.class()?;
            (*filter == plain && is_leaf(leaf)).then_some((prefix, leaf))
        };
        let all = |side: Side| {
            let pairs = filters.iter().map(|filter| only(side, filter));
            pairs.collect::<Option<Vec<(Prefix, u32)>>>()
        };
        let found = [Side::Destination, Side::Source]
            .into_iter()
            .find_map(|side| Some((side, all(side)?)));
        let refused = |message: String, remedy: &str| {
            self.refused("", message, "the kernel divides frames by one address", remedy)
        };
        let Some((side, pairs)) = found.filter(|(_, pairs)| !pairs.is_empty()) else {
            return Err(refused(
                "the filters must choose leaves by the source address alone, or all by the destination"
                    .to_owned(),
                "use filters with `source` or with `destination`, and nothing else; or one worker",
            ));
        };
        match hidden(&filters, &pairs) {
            None => Ok((side, leaves)),
            Some((wide, narrow)) => Err(refused(
                format!("the filter for {wide} comes before the one for {narrow}, which is within it"),
                "put longer prefixes first, or use one worker",
            )),
        }
    }

    fn without_classes(&self) -> Box<Problem> {
        let name = self.discipline();
        self.refused(
            "",
            format!("workers can divide the classes of htb and hfsc, but not those of `{name}`"),
            "workers divide classes below a line",
            "use htb or hfsc, set another `shard_by`, or use one worker",
        )
    }

    /// Returns a problem at a class.
    fn refused_class(
        &self,
        (minor, parameter): (u32, &str),
        message: &str,
        rule: &str,
        remedy: &str,
    ) -> Box<Problem> {
        Box::new(self.origin.problem(
            self.origin.class_parameter(minor, parameter),
            format!("class {minor}: {message}"),
            rule.to_owned(),
            format!("{remedy}; or use one worker"),
        ))
    }
}

/// Returns two prefixes of which the second one is within the first and leads elsewhere, but is tried later:
/// the kernel would choose the longer one. Pairs are in the order of `filters`.
fn hidden(filters: &[Filter], pairs: &[(Prefix, u32)]) -> Option<(Prefix, Prefix)> {
    let mut tried: Vec<(u16, usize)> = filters.iter().map(|filter| filter.preference).zip(0..).collect();
    tried.sort_unstable();
    let mut sorted: Vec<(Prefix, u32, usize)> = tried
        .into_iter()
        .enumerate()
        .map(|(rank, (_, place))| (pairs[place].0, pairs[place].1, rank))
        .collect();
    sorted.sort_by_key(|(prefix, _, rank)| (prefix.address(), prefix.length(), *rank));
    // The prefixes that contain the one that is looked at, the longest one last.
    let mut around: Vec<(Prefix, u32, usize)> = Vec::new();
    for (prefix, leaf, rank) in sorted {
        while around.last().is_some_and(|(outer, ..)| !outer.covers(&prefix)) {
            around.pop();
        }
        let hides = |(_, other, before): &&(Prefix, u32, usize)| *before < rank && *other != leaf;
        if let Some((outer, ..)) = around.iter().find(hides) {
            return Some((*outer, prefix));
        }
        around.push((prefix, leaf, rank));
    }
    None
}

/// Returns the leaf of a filter that matches frames by their EtherType only, and no frame with an address.
/// Worker 0 gets these frames.
fn leaf_without_address(filter: &Filter) -> Option<u32> {
    let ethertype = filter.condition.ethertype?;
    let plain = Filter {
        preference: filter.preference,
        condition: Match {
            ethertype: Some(ethertype),
            ..Match::default()
        },
        outcome: filter.outcome,
        ..Filter::default()
    };
    let has_address = matches!(ethertype, ethertype::IPV4 | ethertype::IPV6);
    filter
        .outcome
        .class()
        .filter(|_| *filter == plain && !has_address)
}

/// In htb leaves take turns, also those of nodes.
fn parts_by_leaf(shape: &Shape) -> Parts {
    let nodes = shape.inner.iter().filter(|minor| **minor != shape.line);
    let above = |minor: u32| shape.classes[&minor].parent.filter(|above| *above != shape.line);
    Parts {
        units: units(shape, |leaf| leaf),
        members: shape
            .leaves()
            .map(|leaf| Member {
                minor: leaf.minor,
                terms: leaf.terms,
                above: above(leaf.minor),
            })
            .collect(),
        limited: nodes
            .map(|minor| Limited {
                minor: *minor,
                most: shape.classes[minor].terms.most,
                above: above(*minor),
            })
            .collect(),
    }
}

/// In hfsc the classes right below the line share it, each with all that is below it.
fn parts_by_unit(shape: &Shape) -> Parts {
    let mut guaranteed: BTreeMap<u32, u64> = BTreeMap::new();
    for leaf in shape.leaves() {
        let unit = shape.unit(leaf.minor).unwrap_or(leaf.minor);
        *guaranteed.entry(unit).or_default() += leaf.terms.least;
    }
    let members = guaranteed.into_iter().map(|(minor, least)| Member {
        minor,
        terms: Terms {
            least,
            ..shape.classes[&minor].terms
        },
        above: None,
    });
    Parts {
        units: units(shape, |leaf| shape.unit(leaf).unwrap_or(leaf)),
        members: members.collect(),
        limited: Vec::new(),
    }
}

/// Returns the classes right below the line. `member` returns what a leaf counts for.
fn units(shape: &Shape, member: impl Fn(u32) -> u32) -> Vec<Unit> {
    let line = shape.classes[&shape.line].terms.most;
    let mut units: BTreeMap<u32, Unit> = BTreeMap::new();
    for leaf in shape.leaves() {
        let minor = shape.unit(leaf.minor).unwrap_or(leaf.minor);
        let unit = units.entry(minor).or_insert_with(|| Unit {
            minor,
            most: shape.classes[&minor].terms.most.min(line),
            leaves: Vec::new(),
        });
        unit.leaves.push((leaf.minor, member(leaf.minor)));
    }
    units.into_values().collect()
}

/// Converts bit/s to bytes per second.
fn in_bytes(bits: u64) -> u64 {
    (bits / 8).max(1)
}
