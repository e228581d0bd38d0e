//! Chooses a class, in the same way for every classful discipline: by the driver's choice, then by filters,
//! then by the default.

use crate::arrival::Needs;
use crate::classify::{Filter, Filters};
use crate::error::ConfigError;
use crate::packet::ClassId;
use crate::pool::{PacketId, Pool};
use crate::time::Time;

/// A filter dropped the packet, and it was given back. Disciplines return
/// [`Verdict::Unclassified`](crate::Verdict::Unclassified), as Linux does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filtered;

/// Chooses a class by its minor number.
///
/// The order is as in Linux: first a class named in the packet whose major number is this discipline's
/// handle, then the first filter that matches, then the default. Filters can also drop, police and change
/// packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classifier {
    /// The handle by which packets name classes of this discipline. 0 means none.
    pub handle: u16,
    /// The filters. The first one that matches decides.
    pub filters: Filters,
    /// The class of packets that are otherwise unclassified.
    pub default: Option<u32>,
}

impl Classifier {
    /// Returns the class of a packet, or `None` if it is unclassified. Filters may change its descriptor.
    ///
    /// # Errors
    /// If a filter drops the packet. It was given back.
    #[inline]
    pub fn classify(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Result<Option<u32>, Filtered> {
        match self.explicit(pool[id].class) {
            None => self.unnamed(id, now, pool),
            named => Ok(named),
        }
    }

    /// As [`classify`](Classifier::classify), for disciplines that mostly classify nothing: then it is one
    /// check, and no register is saved.
    ///
    /// # Errors
    /// As of [`classify`](Classifier::classify).
    #[inline]
    pub(crate) fn class_of(
        &mut self,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<u32>, Filtered> {
        match self.classifies_nothing() {
            true => Ok(None),
            false => self.classify_apart(id, now, pool),
        }
    }

    #[inline(never)]
    fn classify_apart(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Result<Option<u32>, Filtered> {
        self.classify(id, now, pool)
    }

    /// Returns the class of a packet by filters or default, whatever class it names.
    ///
    /// # Errors
    /// As of [`classify`](Classifier::classify).
    #[inline]
    pub fn unnamed(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Result<Option<u32>, Filtered> {
        if self.filters.is_empty() {
            return Ok(self.default);
        }
        Ok(self.by_filter(None, id, now, pool)?.or(self.default))
    }

    /// Returns what its filters read of packets besides descriptors and header fields.
    pub fn needs(&self) -> Needs {
        Needs {
            bytes: self.filters.read_bytes(),
            ..Needs::default()
        }
    }

    /// Returns the class that the packet names, if it is a class of this discipline.
    #[inline]
    pub fn explicit(&self, class: ClassId) -> Option<u32> {
        (self.handle != 0 && class.major() == self.handle && class.minor() != 0)
            .then_some(class.minor().into())
    }

    /// Returns whether `class` is this discipline itself, and not one of its classes.
    #[inline]
    pub fn is_itself(&self, class: ClassId) -> bool {
        self.handle != 0 && class.major() == self.handle && class.minor() == 0
    }

    /// Returns the flow of a packet, 0 to `flows - 1`, in a discipline that hashes. If the packet is
    /// classified as above, the class numbers count flows from 1, as in Linux. Otherwise the hash decides,
    /// under `salt`.
    ///
    /// # Errors
    /// As of [`classify`](Classifier::classify).
    #[inline]
    pub fn flow(
        &mut self,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
        salt: u64,
        flows: u32,
    ) -> Result<u32, Filtered> {
        let by_hash = pool[id].flow.bucket(salt, flows);
        if self.classifies_nothing() {
            return Ok(by_hash);
        }
        Ok(self.classified_flow(id, now, pool, flows)?.unwrap_or(by_hash))
    }

    /// Returns the flow of a packet that [`flow`](Classifier::flow) has classified before, when it arrived.
    /// Policers measure nothing, and nothing is dropped or changed.
    pub(crate) fn flow_again(&self, id: PacketId, pool: &Pool, salt: u64, flows: u32) -> u32 {
        let named = self.named_flow_again(id, pool, flows);
        named.unwrap_or_else(|| pool[id].flow.bucket(salt, flows))
    }

    /// Returns the flow of a packet that was classified before, if it is classified.
    pub(crate) fn named_flow_again(&self, id: PacketId, pool: &Pool, flows: u32) -> Option<u32> {
        let minor = self.classify_again(id, pool)?;
        (1..=flows).contains(&minor).then(|| minor - 1)
    }

    /// Returns the class of a packet that was classified before.
    pub(crate) fn classify_again(&self, id: PacketId, pool: &Pool) -> Option<u32> {
        let named = self.explicit(pool[id].class);
        named
            .or_else(|| self.filters.class_again(id, pool))
            .or(self.default)
    }

    /// Returns the flow of a packet if it is classified, as [`flow`](Classifier::flow) does.
    #[inline]
    pub(crate) fn named_flow(
        &mut self,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
        flows: u32,
    ) -> Result<Option<u32>, Filtered> {
        if self.classifies_nothing() {
            return Ok(None);
        }
        self.classified_flow(id, now, pool, flows)
    }

    // Not inlined, so that a discipline that only hashes keeps its registers.
    #[inline(never)]
    fn classified_flow(
        &mut self,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
        flows: u32,
    ) -> Result<Option<u32>, Filtered> {
        let minor = self.classify(id, now, pool)?;
        Ok(minor
            .filter(|minor| (1..=flows).contains(minor))
            .map(|minor| minor - 1))
    }

    /// Returns whether the hash decides for every packet. This is the usual case, and one check is faster
    /// than three lookups.
    #[inline]
    pub(crate) fn classifies_nothing(&self) -> bool {
        self.handle == 0 && self.default.is_none() && self.filters.is_empty()
    }

    /// Returns the class by the filters of the discipline itself, or by those of the inner class `at`.
    ///
    /// # Errors
    /// As of [`classify`](Classifier::classify).
    // Not inlined, so that a discipline without filters keeps its registers.
    #[inline(never)]
    pub(crate) fn by_filter(
        &mut self,
        at: Option<u32>,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<u32>, Filtered> {
        self.filters.apply(at, id, now, pool).map_err(|reason| {
            pool.give_back(id, reason);
            Filtered
        })
    }

    /// Checks what filters set and measure, and that none is for an inner class. For disciplines without
    /// inner classes.
    ///
    /// # Errors
    /// Names the setting and the rule.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self.filters.iter().find_map(|filter| filter.at) {
            None => self.check_filters(),
            Some(class) => Err(ConfigError::conflict(
                "at",
                class,
                "left out: only a tree of classes has filters at its inner classes",
                "leave it out; a discipline inside a class can have filters of its own",
            )),
        }
    }

    /// Checks what filters set and measure.
    pub(crate) fn check_filters(&self) -> Result<(), ConfigError> {
        Filter::check_all(&self.filters)
    }

    /// Returns the same classifier, whose hashes have keys from `seed`.
    #[must_use]
    pub(crate) fn with_seed(&self, seed: u64) -> Classifier {
        Classifier {
            filters: self.filters.with_seed(seed),
            ..*self
        }
    }

    /// Takes over the state of policers and hashes from `old`, if the filters are the same.
    pub(crate) fn take_over(&mut self, old: &Classifier) {
        self.filters.take_over(&old.filters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Match, Outcome};
    use crate::flow::{FlowHash, FlowKey};
    use crate::packet::Packet;
    use proptest::prelude::*;

    /// Creates a classifier: handle 1, DSCP 46 to class 3, DSCP 40 and above to class 4, all else to class 5.
    fn classifier() -> Classifier {
        let filter = |dscp, class| Filter {
            condition: Match {
                dscp: Some(dscp),
                ..Match::default()
            },
            outcome: Outcome::Class(class),
            ..Filter::default()
        };
        Classifier {
            handle: 1,
            filters: vec![filter(46..=46, 3), filter(40..=63, 4)].into(),
            default: Some(5),
        }
    }

    fn class_of(classifier: &Classifier, class: ClassId, dscp: u8) -> Option<u32> {
        let mut pool = Pool::with_capacity(1);
        let packet = Packet {
            class,
            dscp,
            ..Packet::of_length(100)
        };
        let id = pool.insert(packet).unwrap();
        classifier.clone().classify(id, Time::ZERO, &mut pool).unwrap()
    }

    #[test]
    fn a_named_class_precedes_filters_and_filters_precede_the_default() {
        let classifier = classifier();
        assert_eq!(class_of(&classifier, ClassId::new(1, 2), 46), Some(2));
        assert_eq!(
            class_of(&classifier, ClassId::NONE, 46),
            Some(3),
            "the first filter that matches decides"
        );
        assert_eq!(class_of(&classifier, ClassId::NONE, 48), Some(4));
        assert_eq!(class_of(&classifier, ClassId::NONE, 0), Some(5));
        assert_eq!(class_of(&Classifier::default(), ClassId::NONE, 0), None);
    }

    #[test]
    fn a_class_of_another_discipline_is_ignored() {
        let classifier = classifier();
        assert_eq!(
            class_of(&classifier, ClassId::new(2, 2), 0),
            Some(5),
            "another handle"
        );
        assert_eq!(
            class_of(&classifier, ClassId::new(1, 0), 0),
            Some(5),
            "the discipline itself"
        );
        let anonymous = Classifier {
            handle: 0,
            ..classifier
        };
        assert_eq!(
            class_of(&anonymous, ClassId::new(0, 2), 0),
            Some(5),
            "handle 0 means none"
        );
    }

    #[test]
    fn filters_on_headers_need_headers() {
        let filter = Filter {
            condition: Match {
                protocol: Some(17),
                ..Match::default()
            },
            outcome: Outcome::Class(2),
            ..Filter::default()
        };
        let mut classifier = Classifier {
            filters: vec![filter].into(),
            ..Classifier::default()
        };
        let mut pool = Pool::with_capacity(2);
        let key = FlowKey::of([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, 1, 2);
        let with = pool.insert((Packet::of_length(100), key)).unwrap();
        assert_eq!(classifier.classify(with, Time::ZERO, &mut pool), Ok(Some(2)));
        pool.release(with);
        let without = pool.insert(Packet::of_length(100)).unwrap();
        assert_eq!(
            without, with,
            "the same slot, which still contains the old headers"
        );
        assert_eq!(classifier.classify(without, Time::ZERO, &mut pool), Ok(None));
    }

    proptest! {
        #[test]
        fn a_flow_is_chosen_by_class_and_otherwise_by_hash(
            minor in 0u16..8, flows in 1u32..5, hash in any::<u64>(), salt in any::<u64>(),
        ) {
            let mut pool = Pool::with_capacity(1);
            let packet = Packet {
                class: ClassId::new(1, minor),
                flow: FlowHash::from_raw(hash),
                ..Packet::of_length(100)
            };
            let id = pool.insert(packet).unwrap();
            let mut by_name = Classifier { handle: 1, ..Classifier::default() };
            let expected = match u32::from(minor) {
                named if named >= 1 && named <= flows => named - 1,
                _ => packet.flow.bucket(salt, flows),
            };
            prop_assert_eq!(by_name.flow(id, Time::ZERO, &mut pool, salt, flows), Ok(expected));
            prop_assert!(expected < flows);
        }
    }
}
