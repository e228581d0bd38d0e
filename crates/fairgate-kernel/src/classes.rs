//! The classes that `tc` shows: those of the tree's first discipline that has some, with the classes above
//! them. They are read under the lock of the qdisc, so nothing is allocated for that.

use alloc::boxed::Box;
use alloc::vec::Vec;

use fairgate::registry::PARENT;
use fairgate::registry::tree::{Described, parent_of, trees};
use fairgate::{Class, Discipline, Statistics};

use crate::tree::Tree;

/// Deeper than classes of any discipline may be below one another.
const MOST_LEVELS: usize = 64;

/// Which class is above which. Found when a plan is made.
#[derive(Debug)]
pub struct Parents(Box<[Below]>);

/// Classes with a class above them, in the order of their numbers.
#[derive(Debug)]
struct Below {
    first: u32,
    last: u32,
    parent: u32,
}

impl Parents {
    pub(crate) fn of(tree: &Tree) -> Parents {
        let tree = shown(tree);
        let parameters = tree.entry().class_parameters();
        let index = parameters.iter().position(|info| info.name == PARENT);
        let below = tree.settings().classes.iter().filter_map(|class| {
            let parent = parent_of(index, &class.settings)?;
            let (first, last) = class.minors().into_inner();
            Some(Below { first, last, parent })
        });
        Parents(below.collect::<Vec<_>>().into())
    }

    /// Returns the class above a class.
    pub fn parent(&self, class: u32) -> Option<u32> {
        let place = self.0.partition_point(|below| below.last < class);
        let below = self.0.get(place).filter(|below| below.first <= class)?;
        Some(below.parent)
    }

    /// Returns the first class whose number is at least `least`.
    pub fn first(&self, root: &dyn Discipline, least: u64) -> Option<u32> {
        let mut found = self
            .0
            .iter()
            .map(|below| below.parent)
            .filter(|&above| u64::from(above) >= least)
            .min();
        visit(root, &mut |class| {
            if u64::from(class.minor) >= least && found.is_none_or(|found| class.minor < found) {
                found = Some(class.minor);
            }
        });
        found
    }

    /// Returns the statistics of a class: for one that is above others the sum of all that is below it.
    pub fn statistics(&self, root: &dyn Discipline, class: u32) -> Statistics {
        let mut sum = Statistics::default();
        visit(root, &mut |leaf| {
            let above = core::iter::successors(Some(leaf.minor), |&minor| self.parent(minor));
            if above.take(MOST_LEVELS).any(|minor| minor == class) {
                sum += &leaf.discipline.statistics();
            }
        });
        sum
    }
}

/// Returns the tree whose classes are shown: as [`visit`] does with what was built.
fn shown(tree: &Tree) -> &Tree {
    let mut inner = trees(tree);
    match (inner.next(), inner.next()) {
        (Some((_, only)), None) if trees(only).next().is_some() => shown(only),
        _ => tree,
    }
}

/// Calls `call` for the classes that hold something. A discipline with one class, like a shaper, is passed if
/// what it holds has classes.
pub(crate) fn visit(discipline: &dyn Discipline, call: &mut dyn FnMut(Class<'_>)) {
    let mut count = 0;
    discipline.visit_classes(&mut |_| count += 1);
    if count != 1 {
        discipline.visit_classes(call);
        return;
    }
    discipline.visit_classes(&mut |class| {
        let mut inner = 0;
        class.discipline.visit_classes(&mut |_| inner += 1);
        match inner {
            0 => call(class),
            _ => visit(class.discipline, call),
        }
    });
}
