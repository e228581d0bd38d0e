//! The shape of a tree of classes.

use alloc::vec::Vec;

use crate::classify::{ClassMap, Classifier, Templates};
use crate::error::ConfigError;
use crate::pool::{PacketId, Pool};

/// The parent of a class at the top.
pub(super) const NO_PARENT: u32 = u32::MAX;

/// Classes by their *place*: their order by number. A class that another one names as its parent is an inner class, the
/// others are leaves, which have places of their own among the leaves.
pub(super) struct ClassTree {
    minors: Vec<u16>,
    parents: Vec<u32>,
    /// The children of all classes, those of one class together and in their order.
    children: Vec<u32>,
    /// Where those of each class begin, and behind the last where they end.
    first_child: Vec<u32>,
    /// How many classes are above each.
    depths: Vec<u8>,
    /// How many levels are below each.
    heights: Vec<u8>,
    /// The classes that are leaves.
    leaves: Vec<u32>,
    places: ClassMap,
    leaf_places: ClassMap,
}

impl ClassTree {
    /// The tree of classes with these numbers and parents, given by rising number, of at most `levels` levels.
    pub(super) fn new(
        classes: impl Iterator<Item = (u16, Option<u16>)>,
        levels: u8,
    ) -> Result<ClassTree, ConfigError> {
        let (minors, named): (Vec<u16>, Vec<Option<u16>>) = classes.unzip();
        let places = ClassMap::new(minors.iter().copied())?;
        if let Some(pair) = minors.windows(2).find(|pair| pair[0] > pair[1]) {
            return Err(ConfigError::conflict(
                "class",
                format!("{:x}", pair[1]),
                format!("above {:x}, the class before it", pair[0]),
                "give the classes in the order of their numbers",
            ));
        }
        let mut parents = Vec::with_capacity(minors.len());
        for (&minor, parent) in minors.iter().zip(named) {
            parents.push(match parent {
                None => NO_PARENT,
                Some(parent) => places.place(parent).ok_or_else(|| {
                    ConfigError::class_conflict(
                        minor,
                        "parent",
                        parent,
                        "the number of another class",
                        "name a class that there is, or leave it out for a class at the top",
                    )
                })? as u32,
            });
        }
        let depths = depths(&minors, &parents, levels)?;
        let (children, first_child) = children(&parents);
        let is_leaf = |place: usize| first_child[place] == first_child[place + 1];
        let leaves: Vec<u32> = (0..minors.len() as u32)
            .filter(|&place| is_leaf(place as usize))
            .collect();
        let leaf_places = ClassMap::new(leaves.iter().map(|&place| minors[place as usize]))?;
        Ok(ClassTree {
            minors,
            children,
            first_child,
            heights: heights(&parents, &depths),
            parents,
            depths,
            leaves,
            places,
            leaf_places,
        })
    }

    /// Checks that there is a class: most disciplines have nowhere else to queue a packet.
    pub(super) fn check_any(&self) -> Result<(), ConfigError> {
        match self.minors.is_empty() {
            false => Ok(()),
            true => Err(ConfigError::conflict("classes", 0, "at least 1", "add a class")),
        }
    }

    /// How many classes there are.
    pub(super) fn len(&self) -> usize {
        self.minors.len()
    }

    /// The number of the class at `place`.
    pub(super) fn minor(&self, place: usize) -> u16 {
        self.minors[place]
    }

    /// The place of class `minor`.
    pub(super) fn place(&self, minor: u16) -> Option<usize> {
        self.places.place(minor)
    }

    /// The first place whose number is at least `minor`; behind the last if there is none.
    pub(super) fn place_from(&self, minor: u16) -> usize {
        self.minors.partition_point(|&other| other < minor)
    }

    /// The place of the parent, or [`NO_PARENT`].
    pub(super) fn parent(&self, place: usize) -> u32 {
        self.parents[place]
    }

    /// How many classes are above the one at `place`.
    pub(super) fn depth(&self, place: usize) -> u8 {
        self.depths[place]
    }

    /// How many levels are below the class at `place`.
    pub(super) fn height(&self, place: usize) -> u8 {
        self.heights[place]
    }

    /// Whether no class is below the one at `place`.
    #[inline]
    pub(super) fn is_leaf(&self, place: usize) -> bool {
        self.first_child[place] == self.first_child[place + 1]
    }

    /// The places of the children of the class at `place`, in their order.
    #[inline]
    pub(super) fn children(&self, place: usize) -> &[u32] {
        &self.children[self.first_child[place] as usize..self.first_child[place + 1] as usize]
    }

    /// The leaves' places among all classes.
    pub(super) fn leaves(&self) -> &[u32] {
        &self.leaves
    }

    /// The place of leaf `minor` among the leaves.
    #[inline]
    pub(super) fn leaf(&self, minor: u16) -> Option<usize> {
        self.leaf_places.place(minor)
    }

    /// The same of a leaf that is known to be there.
    pub(super) fn checked_leaf(&self, minor: u16) -> usize {
        self.leaf(minor).expect("the class was checked to be a leaf")
    }

    /// The leaf for a packet: the one that it names, else by filter or default. A packet that names an inner class, or a
    /// class that there is not, names none.
    #[inline]
    pub(super) fn leaf_of(&self, classifier: &Classifier, id: PacketId, pool: &Pool) -> Option<usize> {
        self.named(classifier, id, pool)
            .or_else(|| self.unnamed(classifier, id, pool))
    }

    /// The leaf that a packet names.
    #[inline]
    pub(super) fn named(&self, classifier: &Classifier, id: PacketId, pool: &Pool) -> Option<usize> {
        self.leaf(classifier.explicit(pool[id].class)?)
    }

    /// The leaf for a packet whatever it names, by filter or default.
    #[inline]
    pub(super) fn unnamed(&self, classifier: &Classifier, id: PacketId, pool: &Pool) -> Option<usize> {
        self.leaf(classifier.unnamed(id, pool)?)
    }

    /// Checks that the filters and the default of `classifier` name leaves, and that the templates are made of leaves.
    pub(super) fn check(
        &self,
        classifier: &Classifier,
        templates: &Templates,
        discipline: &'static str,
    ) -> Result<(), ConfigError> {
        self.places.check(classifier, discipline)?;
        let of_filters = classifier.filters.iter().map(|filter| ("class", filter.class));
        let of_default = classifier.default.map(|class| ("default", class));
        match of_filters
            .chain(of_default)
            .find(|(_, minor)| self.leaf(*minor).is_none())
        {
            None => templates.check(classifier, |minor| self.leaf(minor).is_some()),
            Some((parameter, minor)) => Err(ConfigError::conflict(
                parameter,
                minor,
                "a leaf, and this class has classes below it",
                "name one of those",
            )),
        }
    }

    /// Checks that there is one discipline for each leaf.
    pub(super) fn check_inner(&self, count: usize) -> Result<(), ConfigError> {
        if count == self.leaves.len() {
            return Ok(());
        }
        Err(ConfigError::conflict(
            "classes",
            self.leaves.len(),
            format!("{count}, the number of inner disciplines"),
            "give one discipline for each class that has no classes below it",
        ))
    }
}

/// How many classes are above each.
fn depths(minors: &[u16], parents: &[u32], levels: u8) -> Result<Vec<u8>, ConfigError> {
    const UNKNOWN: u32 = u32::MAX;
    let mut depths = vec![UNKNOWN; minors.len()];
    // From which class each was last come by: who comes by a class twice goes round in a circle.
    let mut seen_from = vec![UNKNOWN; minors.len()];
    let mut way = Vec::new();
    for start in 0..minors.len() as u32 {
        let mut at = start;
        let top = loop {
            match depths.get(at as usize) {
                None => break 0,
                Some(&UNKNOWN) => {}
                Some(depth) => break depth + 1,
            }
            if core::mem::replace(&mut seen_from[at as usize], start) == start {
                return Err(ConfigError::class_conflict(
                    minors[at as usize],
                    "parent",
                    minors[parents[at as usize] as usize],
                    "no class that is below this one",
                    "let one of the classes that follow one another in a circle be at the top",
                ));
            }
            way.push(at);
            at = parents[at as usize];
        };
        for (depth, at) in (top..).zip(way.drain(..).rev()) {
            if depth >= u32::from(levels) {
                return Err(ConfigError::class_conflict(
                    minors[at as usize],
                    "parent",
                    minors[parents[at as usize] as usize],
                    format!("a class with fewer than {} above it", levels - 1),
                    format!("arrange the classes in at most {levels} levels"),
                ));
            }
            depths[at as usize] = depth;
        }
    }
    Ok(depths.into_iter().map(|depth| depth as u8).collect())
}

/// How many levels are below each.
fn heights(parents: &[u32], depths: &[u8]) -> Vec<u8> {
    let mut heights = vec![0; parents.len()];
    for place in 0..parents.len() {
        let mut above = parents[place];
        while above != NO_PARENT {
            let height = depths[place] - depths[above as usize];
            heights[above as usize] = height.max(heights[above as usize]);
            above = parents[above as usize];
        }
    }
    heights
}

/// The children of all classes, and where those of each begin.
fn children(parents: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut first_child = vec![0; parents.len() + 1];
    for &parent in parents.iter().filter(|&&parent| parent != NO_PARENT) {
        first_child[parent as usize + 1] += 1;
    }
    for place in 0..parents.len() {
        first_child[place + 1] += first_child[place];
    }
    let mut children = vec![0; first_child[parents.len()] as usize];
    let mut next = first_child.clone();
    for (place, &parent) in parents.iter().enumerate() {
        if parent != NO_PARENT {
            children[next[parent as usize] as usize] = place as u32;
            next[parent as usize] += 1;
        }
    }
    (children, first_child)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Filter, Match};

    fn tree(classes: &[(u16, Option<u16>)]) -> Result<ClassTree, ConfigError> {
        ClassTree::new(classes.iter().copied(), 4)
    }

    /// The class and the parameter at fault.
    fn fault(classes: &[(u16, Option<u16>)]) -> (u16, &'static str) {
        match tree(classes).err().expect("the tree is wrong") {
            ConfigError::Conflict(refusal) => {
                let class = refusal.path.class.expect("it is about a class");
                (class, refusal.path.parameter)
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn children_and_leaves_are_in_the_order_of_their_numbers() {
        let tree = tree(&[(1, None), (5, Some(9)), (6, Some(1)), (7, Some(9)), (9, Some(1))]).unwrap();
        assert_eq!(tree.children(0), [2, 4]);
        assert_eq!(tree.children(4), [1, 3]);
        assert_eq!(tree.leaves(), [1, 2, 3]);
        assert_eq!(tree.leaf(7), Some(2));
        assert_eq!(tree.leaf(9), None);
        assert_eq!((tree.depth(0), tree.depth(4), tree.depth(1)), (0, 1, 2));
        assert_eq!((tree.height(0), tree.height(4), tree.height(1)), (2, 1, 0));
        assert_eq!(
            (tree.place_from(6), tree.place_from(8), tree.place_from(10)),
            (2, 4, 5)
        );
    }

    #[test]
    fn circles_missing_parents_and_heights_are_refused_at_their_class() {
        assert_eq!(fault(&[(1, Some(1))]), (1, "parent"));
        assert_eq!(fault(&[(1, Some(2)), (2, Some(3)), (3, Some(2))]), (2, "parent"));
        let long: Vec<_> = (1..=9).map(|minor| (minor, Some(minor % 9 + 1))).collect();
        assert_eq!(fault(&long), (1, "parent"));
        assert_eq!(fault(&[(1, None), (2, Some(7))]), (2, "parent"));
        let chain = [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(3)), (5, Some(4))];
        assert!(tree(&chain[..4]).is_ok());
        assert_eq!(fault(&chain), (5, "parent"));
        let none = tree(&[]).unwrap().check_any();
        assert_eq!(none.err().and_then(|error| error.parameter()), Some("classes"));
    }

    #[test]
    fn packets_are_placed_in_leaves_only() {
        let tree = tree(&[(1, None), (2, Some(1))]).unwrap();
        let to = |class| Classifier {
            default: Some(class),
            filters: vec![Filter {
                condition: Match::default(),
                class,
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
