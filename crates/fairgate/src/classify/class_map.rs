//! Maps the number of a class to its index in its parent's array.

use alloc::vec::Vec;

use crate::classify::Classifier;
use crate::error::ConfigError;

/// Marks a number without a class.
const NONE: u16 = u16::MAX;

/// Finds a class by its minor number with one load. The numbers may have gaps.
#[derive(Clone, Debug, Default)]
pub struct ClassMap {
    /// The index by minor number.
    places: Vec<u16>,
}

impl ClassMap {
    /// Creates a map in the order of `minors`. A minor number must be from 1 to 0xffff and occur once.
    pub fn new(minors: impl IntoIterator<Item = u16>) -> Result<ClassMap, ConfigError> {
        let mut places: Vec<u16> = Vec::new();
        for (place, minor) in minors.into_iter().enumerate() {
            let index = usize::from(minor);
            if minor == 0 || places.get(index).is_some_and(|&taken| taken != NONE) {
                return Err(ConfigError::conflict(
                    "class",
                    format!("{minor:x}"),
                    "a number from 1 to ffff (hexadecimal) that no other class of the discipline has",
                    "give every class a different number",
                ));
            }
            places.resize(places.len().max(index + 1), NONE);
            places[index] = place as u16;
        }
        Ok(ClassMap { places })
    }

    /// Returns the index of class `minor`.
    #[inline]
    pub fn place(&self, minor: u16) -> Option<usize> {
        let place = *self.places.get(usize::from(minor))?;
        (place != NONE).then_some(usize::from(place))
    }

    /// Returns the index of a class that is known to exist.
    pub(crate) fn checked_place(&self, minor: u16) -> usize {
        self.place(minor).expect("the class was checked to exist")
    }

    /// Checks that the filters and the default of `classifier` name existing classes.
    pub fn check(&self, classifier: &Classifier, discipline: &'static str) -> Result<(), ConfigError> {
        let named = classifier.filters.iter().map(|filter| filter.class);
        match named
            .chain(classifier.default)
            .find(|&minor| self.place(minor).is_none())
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
    fn indices_follow_the_given_order() {
        let map = ClassMap::new([7, 1, 0xffff]).unwrap();
        assert_eq!(map.place(7), Some(0));
        assert_eq!(map.place(1), Some(1));
        assert_eq!(map.place(0xffff), Some(2));
        assert_eq!(map.place(2), None);
        assert_eq!(ClassMap::default().place(1), None);
    }

    #[test]
    fn zero_and_duplicates_are_rejected() {
        assert!(ClassMap::new([0]).is_err());
        assert!(ClassMap::new([3, 3]).is_err());
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
