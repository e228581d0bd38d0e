//! Maps the number of a class to its index in its parent's array.

use alloc::vec::Vec;

use crate::classify::Classifier;
use crate::error::ConfigError;
use crate::packet::LAST_CLASS;

/// Marks a number without a class.
const NONE: u32 = u32::MAX;

/// Finds a class by its minor number with one load. The numbers may have gaps.
#[derive(Clone, Debug, Default)]
pub struct ClassMap {
    /// The index by minor number.
    indices: Vec<u32>,
    classes: usize,
}

impl ClassMap {
    /// Creates a map that gives the classes indices in the order of `minors`. A minor number must be from 1
    /// to [`LAST_CLASS`].
    ///
    /// # Errors
    /// Fails if a number is 0 or too high, occurs twice, or is below the number before it.
    pub fn new(minors: impl IntoIterator<Item = u32>) -> Result<ClassMap, ConfigError> {
        let mut map = ClassMap::default();
        let mut last = 0;
        for minor in minors {
            if minor == 0 || minor > LAST_CLASS || map.index(minor).is_some() {
                return Err(ConfigError::conflict(
                    "class",
                    format!("{minor:x}"),
                    format!(
                        "a number from 1 to {LAST_CLASS:x} (hexadecimal) that no other class of the \
                         discipline has"
                    ),
                    "give every class a different number",
                ));
            }
            if minor < last {
                return Err(ConfigError::conflict(
                    "class",
                    format!("{minor:x}"),
                    format!("above {last:x}, the class before it"),
                    "sort the classes by their numbers",
                ));
            }
            last = minor;
            map.indices.resize(minor as usize + 1, NONE);
            map.indices[minor as usize] = map.classes as u32;
            map.classes += 1;
        }
        Ok(map)
    }

    /// Returns the index of class `minor`.
    #[inline]
    pub fn index(&self, minor: u32) -> Option<usize> {
        let index = *self.indices.get(minor as usize)?;
        (index != NONE).then_some(index as usize)
    }

    /// Returns the index of a class that is known to exist.
    pub(crate) fn checked_index(&self, minor: u32) -> usize {
        self.index(minor).expect("the class was checked to exist")
    }

    /// Checks that there is one inner discipline for each class. `disciplines` is their number.
    pub(crate) fn check_disciplines(&self, disciplines: usize) -> Result<(), ConfigError> {
        if disciplines == self.classes {
            return Ok(());
        }
        Err(ConfigError::conflict(
            "classes",
            self.classes,
            format!("{disciplines}, the number of inner disciplines"),
            "give one discipline for each class, in a tree for each leaf",
        ))
    }

    /// Checks that the filters and the default of `classifier` name existing classes, none of them an inner
    /// class, and that its filters are valid.
    pub fn check(&self, classifier: &Classifier, discipline: &'static str) -> Result<(), ConfigError> {
        self.check_named(classifier, discipline)?;
        classifier.check()
    }

    /// Checks that the filters and the default of `classifier` name existing classes.
    pub(crate) fn check_named(
        &self,
        classifier: &Classifier,
        discipline: &'static str,
    ) -> Result<(), ConfigError> {
        let named = classifier
            .filters
            .iter()
            .filter_map(|filter| filter.outcome.class());
        match named
            .chain(classifier.default)
            .find(|&minor| self.index(minor).is_none())
        {
            None => Ok(()),
            Some(missing) => Err(ConfigError::NoSuchClass {
                discipline,
                class: format!("{missing:x}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_follow_the_order_of_the_numbers() {
        let map = ClassMap::new([1, 7, LAST_CLASS]).unwrap();
        assert_eq!(map.index(1), Some(0));
        assert_eq!(map.index(7), Some(1));
        assert_eq!(map.index(LAST_CLASS), Some(2));
        assert_eq!(map.index(2), None);
        assert_eq!(ClassMap::default().index(1), None);
    }

    #[test]
    fn zero_duplicates_and_unsorted_numbers_are_rejected() {
        let refused = |minors: &[u32]| ClassMap::new(minors.iter().copied()).unwrap_err().to_string();
        assert_eq!(refused(&[0]), refused(&[0, 3]));
        assert!(refused(&[LAST_CLASS + 1]).contains("`class` is 40000, but"));
        assert!(refused(&[3, 3]).contains("`class` is 3, but must be a number from 1 to 3ffff"));
        assert!(refused(&[3, 5, 3]).contains("that no other class"));
        assert_eq!(
            refused(&[1, 0x1f, 0x1e]),
            "`class` is 1e, but must be above 1f, the class before it; sort the classes by their numbers"
        );
    }

    #[test]
    fn each_class_needs_one_discipline() {
        let map = ClassMap::new([1, 7]).unwrap();
        assert!(map.check_disciplines(2).is_ok());
        assert_eq!(
            map.check_disciplines(3).unwrap_err().to_string(),
            "`classes` is 2, but must be 3, the number of inner disciplines; \
             give one discipline for each class, in a tree for each leaf"
        );
    }

    #[test]
    fn the_default_must_be_an_existing_class() {
        let map = ClassMap::new([1]).unwrap();
        let classifier = Classifier {
            default: Some(2),
            ..Classifier::default()
        };
        let error = map.check(&classifier, "prio").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`prio` has no class 2; name one of its classes or add it"
        );
    }
}
