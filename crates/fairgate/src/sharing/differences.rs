//! What differs between two trees of the same shape: such a tree becomes the other one in place, and the work
//! depends on how many classes differ, not on how many there are.

use alloc::vec::Vec;

use crate::classify::Templates;
use crate::sharing::index::ClassIndex;

/// The classes whose parameters differ, ascending. `None` if the trees do not have the same shape.
#[derive(Debug)]
pub(super) struct Differences(Option<Vec<ClassIndex>>);

impl Differences {
    /// Compares the classes of two trees. `is_alike` says whether a class has the same place among the others
    /// with the parameters of both, and `differs` whether something else is different.
    pub(super) fn between<C>(
        (classes, templates): (&[C], &Templates),
        (old, old_templates): (&[C], &Templates),
        is_alike: impl Fn(&C, &C) -> bool,
        differs: impl Fn(&C, &C) -> bool,
    ) -> Differences {
        let pairs = || classes.iter().zip(old);
        let has_same_shape = classes.len() == old.len()
            && templates.list == old_templates.list
            && pairs().all(|(class, old)| is_alike(class, old));
        Differences(has_same_shape.then(|| {
            let differing = pairs()
                .enumerate()
                .filter(|(_, (class, old))| differs(class, old));
            differing.map(|(index, _)| ClassIndex::new(index)).collect()
        }))
    }

    /// Returns the classes that differ, if the tree has the same shape and keeps the disciplines of all of
    /// its `leaves`. `kept` are those that it keeps.
    pub(super) fn in_place(&self, leaves: usize, kept: usize) -> Option<&[ClassIndex]> {
        self.0.as_deref().filter(|_| leaves == kept)
    }
}
