//! Checked descriptions of trees of disciplines, and how a tree is built of one.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use thiserror::Error;

use super::entry::{Entry, PARENT, Parts, Tables};
use super::settings::{ClassSettings, Setting, Settings};
use super::value::Value;
use crate::discipline::Discipline;
use crate::error::ConfigError;

/// The class number of the one discipline that a shaper holds.
pub const INNER: u32 = 1;

/// A checked description of a tree of disciplines.
pub trait Described: PartialEq + Sized {
    /// The registry's entry for the root discipline.
    fn entry(&self) -> &'static dyn Entry;

    /// The settings of the root discipline and of its classes.
    fn settings(&self) -> &Settings;

    /// One for each class that holds a discipline, in the order of the classes; or the inner discipline. All
    /// classes of a template have one together.
    fn children(&self) -> &[Self];
}

/// An error from building a checked description.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("can't build `{discipline}`: {source}")]
pub struct BuildError {
    /// The number of the discipline in the description: the root is 0, and each one comes before those inside
    /// it.
    pub node: u32,
    /// The discipline that returned the error.
    pub discipline: &'static str,
    /// The discipline's error.
    pub source: ConfigError,
}

/// Returns the classes that are the parent of another class.
pub fn inner_classes(entry: &dyn Entry, classes: &[ClassSettings]) -> BTreeSet<u32> {
    let parameters = entry.class_parameters();
    let parent = parameters.iter().position(|info| info.name == PARENT);
    let mut inner = BTreeSet::new();
    // One by one: collecting would sort them first, for which the kernel's stack is too small.
    for class in classes {
        inner.extend(parent_of(parent, &class.settings));
    }
    inner
}

/// Returns the parent that a class names. `index` is the index of the parameter `parent`.
pub fn parent_of(index: Option<usize>, settings: &[Setting]) -> Option<u32> {
    let (_, value) = settings.iter().find(|(other, _)| Some(*other) == index)?;
    match value {
        Value::Number(minor) => u32::try_from(*minor).ok(),
        _ => None,
    }
}

/// Returns the classes that hold a discipline.
pub fn leaves<'a>(
    entry: &dyn Entry,
    classes: &'a [ClassSettings],
) -> impl Iterator<Item = &'a ClassSettings> + use<'a> {
    let inner = inner_classes(entry, classes);
    classes
        .iter()
        .filter(move |class| class.template.is_some() || !inner.contains(&class.minor))
}

/// Returns the trees inside this one, each with the classes that hold one like it.
fn held<D: Described>(tree: &D) -> Box<dyn Iterator<Item = (RangeInclusive<u32>, &D)> + '_> {
    if !tree.entry().about().children.are_classes() {
        return Box::new(tree.children().iter().map(|child| (INNER..=INNER, child)));
    }
    let minors = leaves(tree.entry(), &tree.settings().classes).map(ClassSettings::minors);
    Box::new(minors.zip(tree.children()))
}

/// Returns the tree of each class, or the inner discipline. Each class of a template counts.
pub fn trees<D: Described>(tree: &D) -> Box<dyn Iterator<Item = (u32, &D)> + '_> {
    Box::new(held(tree).flat_map(|(minors, child)| minors.map(move |minor| (minor, child))))
}

/// Returns the number of disciplines in the description.
pub fn size<D: Described>(tree: &D) -> u32 {
    1 + tree.children().iter().map(size).sum::<u32>()
}

/// Builds the tree. Each discipline gets its own seed, derived from `seed` and the path to the discipline.
///
/// # Errors
/// Only if a discipline refuses what it accepted when the description was checked.
pub fn build<D: Described>(tree: &D, seed: u64, tables: Tables) -> Result<Box<dyn Discipline>, BuildError> {
    let mut children = Vec::new();
    let mut node = 1;
    for (minors, child) in held(tree) {
        for minor in minors {
            let built = build(child, seed_of(seed, minor), tables).map_err(|error| BuildError {
                node: node + error.node,
                ..error
            });
            children.push(built?);
        }
        node += size(child);
    }
    let parts = Parts::new(children, seed).with_tables(tables);
    tree.entry()
        .build(tree.settings(), parts)
        .map_err(|source| BuildError {
            node: 0,
            discipline: tree.entry().about().name,
            source,
        })
}

/// Returns a seed for child `minor` that differs from the seeds of its parent and siblings (SplitMix64's
/// finaliser, Steele et al. 2014).
pub fn seed_of(seed: u64, minor: u32) -> u64 {
    let mut z = seed.wrapping_add((u64::from(minor) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
