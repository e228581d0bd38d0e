//! The shape of a tree of classes.

use alloc::vec::Vec;

use crate::classify::{ClassMap, Classifier, Filter, Filtered, Templates};
use crate::error::ConfigError;
use crate::pool::{PacketId, Pool};
use crate::sharing::index::{ClassIndex, LeafIndex};
use crate::time::Time;

/// The number of levels of a tree of htb and cbq, as in Linux's htb.
pub(super) const LEVELS: usize = 8;

/// Classes in the order of their numbers. A class that another one names as its parent is an inner class. The
/// others are leaves.
#[derive(Debug)]
pub(super) struct ClassTree {
    minors: Vec<u32>,
    parents: Vec<Option<ClassIndex>>,
    /// The children of all classes: those of one class together, in the order of their numbers.
    children: Vec<ClassIndex>,
    /// The index in `children` of each class's first child, then the length of `children`.
    first_child: Vec<u32>,
    /// The number of classes above each class.
    depths: Vec<u8>,
    /// The number of levels below each class.
    heights: Vec<u8>,
    leaves: Vec<ClassIndex>,
    class_map: ClassMap,
    leaf_map: ClassMap,
}

impl ClassTree {
    /// Creates a tree of at most `levels` levels from the number and the parent of each class.
    ///
    /// # Errors
    /// Fails if the numbers do not ascend, if a parent does not exist, if classes are their own ancestors, or
    /// if there are more levels.
    pub(super) fn new(
        classes: impl Iterator<Item = (u32, Option<u32>)>,
        levels: u8,
    ) -> Result<ClassTree, ConfigError> {
        let (minors, parents): (Vec<u32>, Vec<Option<u32>>) = classes.unzip();
        let class_map = ClassMap::new(minors.iter().copied())?;
        let parent_of = |(&minor, parent): (&u32, Option<u32>)| {
            let Some(parent) = parent else { return Ok(None) };
            match class_map.index(parent) {
                Some(index) => Ok(Some(ClassIndex::new(index))),
                None => Err(ConfigError::class_conflict(
                    minor,
                    "parent",
                    parent,
                    "the number of another class",
                    "name an existing class, or leave it out to put the class at the top",
                )),
            }
        };
        let parents: Vec<Option<ClassIndex>> = minors
            .iter()
            .zip(parents)
            .map(parent_of)
            .collect::<Result<_, _>>()?;
        let depths = depths(&minors, &parents, levels)?;
        let (children, first_child) = children(&parents);
        let leaves: Vec<ClassIndex> = (0..minors.len())
            .filter(|&index| first_child[index] == first_child[index + 1])
            .map(ClassIndex::new)
            .collect();
        let leaf_map = ClassMap::new(leaves.iter().map(|leaf| minors[leaf.index()]))?;
        Ok(ClassTree {
            minors,
            children,
            first_child,
            heights: heights(&parents, &depths),
            parents,
            depths,
            leaves,
            class_map,
            leaf_map,
        })
    }

    /// Checks that there is a class. Most disciplines cannot queue a packet without one.
    pub(super) fn check_any(&self) -> Result<(), ConfigError> {
        match self.minors.is_empty() {
            false => Ok(()),
            true => Err(ConfigError::conflict("classes", 0, "at least 1", "add a class")),
        }
    }

    /// Returns whether another tree has the same classes with the same parents.
    pub(super) fn has_shape_of(&self, other: &ClassTree) -> bool {
        self.minors == other.minors && self.parents == other.parents
    }

    /// Returns the number of classes.
    pub(super) fn len(&self) -> usize {
        self.minors.len()
    }

    /// Returns the indices of all classes.
    pub(super) fn classes(&self) -> impl Iterator<Item = ClassIndex> + Clone + use<> {
        (0..self.minors.len()).map(ClassIndex::new)
    }

    /// Returns the number of a class.
    pub(super) fn minor(&self, class: ClassIndex) -> u32 {
        self.minors[class.index()]
    }

    /// Returns the index of class `minor`.
    pub(super) fn index(&self, minor: u32) -> Option<ClassIndex> {
        self.class_map.index(minor).map(ClassIndex::new)
    }

    /// Returns the number of classes whose numbers are below `minor`.
    pub(super) fn count_below(&self, minor: u32) -> usize {
        self.minors.partition_point(|&other| other < minor)
    }

    /// Returns the parent of a class, or `None` for a class at the top.
    pub(super) fn parent(&self, class: ClassIndex) -> Option<ClassIndex> {
        self.parents[class.index()]
    }

    /// Returns a class, then the classes above it, from the bottom up.
    pub(super) fn path(&self, class: ClassIndex) -> impl Iterator<Item = ClassIndex> {
        core::iter::successors(Some(class), |&class| self.parent(class))
    }

    /// Returns the number of classes above a class.
    pub(super) fn depth(&self, class: ClassIndex) -> u8 {
        self.depths[class.index()]
    }

    /// Returns the number of levels below a class.
    pub(super) fn height(&self, class: ClassIndex) -> u8 {
        self.heights[class.index()]
    }

    /// Returns whether a class has no children.
    #[inline]
    pub(super) fn is_leaf(&self, class: ClassIndex) -> bool {
        self.children(class).is_empty()
    }

    /// Returns the children of a class in the order of their numbers.
    #[inline]
    pub(super) fn children(&self, class: ClassIndex) -> &[ClassIndex] {
        let index = class.index();
        &self.children[self.first_child[index] as usize..self.first_child[index + 1] as usize]
    }

    /// Returns the class of each leaf.
    pub(super) fn leaves(&self) -> &[ClassIndex] {
        &self.leaves
    }

    /// Returns the index of leaf `minor` among the leaves.
    #[inline]
    pub(super) fn leaf(&self, minor: u32) -> Option<LeafIndex> {
        self.leaf_map.index(minor).map(LeafIndex::new)
    }

    /// Returns the index of a leaf that is known to exist.
    pub(super) fn checked_leaf(&self, minor: u32) -> LeafIndex {
        LeafIndex::new(self.leaf_map.checked_index(minor))
    }

    /// Returns the leaf for a packet: the leaf that it names, else the one of the filters or the default. A
    /// packet that names an inner class, or a class that does not exist, names no leaf.
    ///
    /// # Errors
    /// If a filter drops the packet.
    #[inline]
    pub(super) fn leaf_of(
        &self,
        classifier: &mut Classifier,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<LeafIndex>, Filtered> {
        match self.named(classifier, id, pool) {
            None => self.unnamed(classifier, id, now, pool),
            named => Ok(named),
        }
    }

    /// Returns the leaf that a packet names.
    #[inline]
    pub(super) fn named(&self, classifier: &Classifier, id: PacketId, pool: &Pool) -> Option<LeafIndex> {
        self.leaf(classifier.explicit(pool[id].class)?)
    }

    /// Returns the leaf that the filters or the default choose for a packet, whatever it names.
    ///
    /// # Errors
    /// If a filter drops the packet.
    #[inline]
    pub(super) fn unnamed(
        &self,
        classifier: &mut Classifier,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<LeafIndex>, Filtered> {
        if !classifier.filters.is_empty()
            && let Some(leaf) = self.filtered(None, classifier, id, now, pool)?
        {
            return Ok(Some(leaf));
        }
        Ok(classifier.default.and_then(|default| self.leaf(default)))
    }

    /// Returns the leaf by the filters of the discipline itself, or of the inner class `at`. If they lead to
    /// an inner class, the filters of that class decide, and so on, as in Linux (`htb_classify`).
    ///
    /// # Errors
    /// If a filter drops the packet.
    #[inline]
    pub(super) fn filtered(
        &self,
        mut at: Option<u32>,
        classifier: &mut Classifier,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<LeafIndex>, Filtered> {
        // Each round leads to a class further down: that of a filter was checked. One that is computed and
        // is not further down is none.
        loop {
            let Some(minor) = classifier.by_filter(at, id, now, pool)? else {
                return Ok(None);
            };
            match self.leaf(minor) {
                None if classifier.filters.has_chain(minor) && self.is_below(minor, at) => at = Some(minor),
                leaf => return Ok(leaf),
            }
        }
    }

    /// Whether class `minor` has fewer levels below it than the class `at`.
    fn is_below(&self, minor: u32, at: Option<u32>) -> bool {
        let height = |minor| {
            self.class_map
                .index(minor)
                .map(|class| self.height(ClassIndex::new(class)))
        };
        at.is_none_or(|at| height(minor) < height(at))
    }

    /// Checks that filters, default and templates of a discipline name leaves.
    pub(super) fn check(
        &self,
        classifier: &Classifier,
        templates: &Templates,
        discipline: &'static str,
    ) -> Result<(), ConfigError> {
        self.class_map.check_named(classifier, discipline)?;
        classifier.check_filters()?;
        for filter in classifier.filters.iter() {
            self.check_filter(filter, classifier)?;
        }
        match classifier.default.filter(|minor| self.leaf(*minor).is_none()) {
            None => templates.check(classifier, |minor| self.leaf(minor).is_some()),
            Some(minor) => Err(not_a_leaf("default", minor, "name one of the classes below it")),
        }
    }

    /// Checks that a filter leads down: from the discipline or an inner class to a leaf, or to an inner class
    /// with filters.
    fn check_filter(&self, filter: &Filter, classifier: &Classifier) -> Result<(), ConfigError> {
        let height = |minor: u32| {
            self.class_map
                .index(minor)
                .map(|class| self.height(ClassIndex::new(class)))
        };
        if let Some(at) = filter.at {
            if height(at).is_none_or(|height| height == 0) {
                return Err(ConfigError::conflict(
                    "at",
                    at,
                    "a class with classes below it, because only such a class chooses between classes",
                    "leave it out, or name a class with classes below it",
                ));
            }
            if let Some(class) = filter.outcome.class()
                && height(class) >= height(at)
            {
                return Err(ConfigError::conflict(
                    "class",
                    class,
                    format!("a class with fewer levels below it than class {at}, where the filter is tried"),
                    "name a class further down",
                ));
            }
        }
        match filter.outcome.class() {
            Some(class) if self.leaf(class).is_none() && !classifier.filters.has_chain(class) => {
                let remedy = "name one of the classes below it, or add filters that are tried `at` it";
                Err(not_a_leaf("class", class, remedy))
            }
            _ => Ok(()),
        }
    }

    /// Checks that there is one inner discipline for each leaf. `disciplines` is their number.
    pub(super) fn check_disciplines(&self, disciplines: usize) -> Result<(), ConfigError> {
        self.leaf_map.check_disciplines(disciplines)
    }
}

fn not_a_leaf(parameter: &'static str, minor: u32, remedy: &str) -> ConfigError {
    let rule = "a leaf, and this class has classes below it";
    ConfigError::conflict(parameter, minor, rule, remedy)
}

/// Returns the number of classes above each class.
fn depths(minors: &[u32], parents: &[Option<ClassIndex>], levels: u8) -> Result<Vec<u8>, ConfigError> {
    let parent_conflict = |class: ClassIndex, rule: &str, remedy: &str| {
        let parent = parents[class.index()].expect("only a class with a parent can be in a wrong position");
        ConfigError::class_conflict(
            minors[class.index()],
            "parent",
            minors[parent.index()],
            rule,
            remedy,
        )
    };
    let mut depths: Vec<Option<u32>> = vec![None; minors.len()];
    // The class from which each class was last reached. A class that is reached twice from the same one is in
    // a circle.
    let mut reached_from = vec![None; minors.len()];
    let mut path = Vec::new();
    for start in 0..minors.len() {
        let mut next = Some(ClassIndex::new(start));
        let top = loop {
            let Some(class) = next else { break 0 };
            if let Some(depth) = depths[class.index()] {
                break depth + 1;
            }
            if reached_from[class.index()].replace(start) == Some(start) {
                return Err(parent_conflict(
                    class,
                    "a class that is not below this one",
                    "the classes form a circle: put one of them at the top",
                ));
            }
            path.push(class);
            next = parents[class.index()];
        };
        for (depth, class) in (top..).zip(path.drain(..).rev()) {
            if depth >= u32::from(levels) {
                return Err(parent_conflict(
                    class,
                    &format!("a class with fewer than {} above it", levels - 1),
                    &format!("arrange the classes in at most {levels} levels"),
                ));
            }
            depths[class.index()] = Some(depth);
        }
    }
    // Each depth is known now, and below `levels`.
    Ok(depths.into_iter().flatten().map(|depth| depth as u8).collect())
}

/// Returns the number of levels below each class.
fn heights(parents: &[Option<ClassIndex>], depths: &[u8]) -> Vec<u8> {
    let mut heights = vec![0; parents.len()];
    for index in 0..parents.len() {
        let mut above = parents[index];
        while let Some(class) = above {
            let height = depths[index] - depths[class.index()];
            heights[class.index()] = height.max(heights[class.index()]);
            above = parents[class.index()];
        }
    }
    heights
}

/// Returns the children of all classes, and the position of each class's first child.
fn children(parents: &[Option<ClassIndex>]) -> (Vec<ClassIndex>, Vec<u32>) {
    let mut first_child = vec![0; parents.len() + 1];
    for parent in parents.iter().flatten() {
        first_child[parent.index() + 1] += 1;
    }
    for index in 0..parents.len() {
        first_child[index + 1] += first_child[index];
    }
    let mut children = vec![ClassIndex::NONE; first_child[parents.len()] as usize];
    let mut next = first_child.clone();
    for (index, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            children[next[parent.index()] as usize] = ClassIndex::new(index);
            next[parent.index()] += 1;
        }
    }
    (children, first_child)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Outcome;

    fn tree(classes: &[(u32, Option<u32>)]) -> Result<ClassTree, ConfigError> {
        ClassTree::new(classes.iter().copied(), 4)
    }

    /// Returns the class and the parameter that are rejected.
    fn rejected(classes: &[(u32, Option<u32>)]) -> (u32, &'static str) {
        match tree(classes).expect_err("the tree is wrong") {
            ConfigError::Conflict(refusal) => {
                let class = refusal.path.class.expect("the error names a class");
                (class, refusal.path.parameter)
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn children_and_leaves_are_in_the_order_of_their_numbers() {
        let tree = tree(&[(1, None), (5, Some(9)), (6, Some(1)), (7, Some(9)), (9, Some(1))]).unwrap();
        let class = ClassIndex::new;
        assert_eq!(tree.children(class(0)), [2, 4].map(class));
        assert_eq!(tree.children(class(4)), [1, 3].map(class));
        assert_eq!(tree.leaves(), [1, 2, 3].map(class));
        assert!(tree.path(class(1)).eq([1, 4, 0].map(class)));
        assert_eq!(tree.leaf(7), Some(LeafIndex::new(2)));
        assert_eq!(tree.leaf(9), None);
        assert_eq!([0, 4, 1].map(|index| tree.depth(class(index))), [0, 1, 2]);
        assert_eq!([0, 4, 1].map(|index| tree.height(class(index))), [2, 1, 0]);
        assert_eq!([6, 8, 10].map(|minor| tree.count_below(minor)), [2, 4, 5]);
    }

    #[test]
    fn circles_missing_parents_and_too_many_levels_are_rejected_with_their_class() {
        assert_eq!(rejected(&[(1, Some(1))]), (1, "parent"));
        assert_eq!(
            rejected(&[(1, Some(2)), (2, Some(3)), (3, Some(2))]),
            (2, "parent")
        );
        let long: Vec<_> = (1..=9).map(|minor| (minor, Some(minor % 9 + 1))).collect();
        assert_eq!(rejected(&long), (1, "parent"));
        assert_eq!(rejected(&[(1, None), (2, Some(7))]), (2, "parent"));
        let chain = [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(3)), (5, Some(4))];
        assert!(tree(&chain[..4]).is_ok());
        assert_eq!(rejected(&chain), (5, "parent"));
        let none = tree(&[]).unwrap().check_any();
        assert_eq!(none.err().and_then(|error| error.parameter()), Some("classes"));
    }

    #[test]
    fn packets_are_classified_to_leaves_only() {
        let tree = tree(&[(1, None), (2, Some(1))]).unwrap();
        let to = |class| Classifier {
            default: Some(class),
            filters: vec![Filter {
                outcome: Outcome::Class(class),
                ..Filter::default()
            }]
            .into(),
            ..Classifier::default()
        };
        let check = |classifier| tree.check(&classifier, &Templates::default(), "htb");
        assert!(check(to(2)).is_ok());
        let inner = check(to(1)).unwrap_err();
        assert_eq!(inner.parameter(), Some("class"));
        let missing = check(to(3)).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "`htb` has no class 3; name one of its classes or add it"
        );
    }
}
