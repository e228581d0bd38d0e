//! The choice of a class, the same for every classful discipline: what the driver said, then filters, then the default.

use crate::classify::Filter;
use crate::packet::ClassId;
use crate::pool::{PacketId, Pool};

/// Chooses a class by its minor number.
///
/// Order, as in Linux: a class named in the packet whose major number is this discipline's handle; the first filter
/// that matches; the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classifier {
    /// The handle by which packets name classes of this discipline; 0 for none.
    pub handle: u16,
    /// Tried in order; the first match wins.
    pub filters: Vec<Filter>,
    /// For packets that nothing else places.
    pub default: Option<u16>,
}

impl Classifier {
    /// The class for a packet, or `None` if nothing places it.
    #[inline]
    pub fn classify(&self, id: PacketId, pool: &Pool) -> Option<u16> {
        self.explicit(pool[id].class)
            .or_else(|| self.by_filter(id, pool))
            .or(self.default)
    }

    /// The class that the packet itself names, if it names one of this discipline's.
    #[inline]
    pub fn explicit(&self, class: ClassId) -> Option<u16> {
        (self.handle != 0 && class.major() == self.handle && class.minor() != 0).then_some(class.minor())
    }

    /// The flow for a packet, 0 to `flows - 1`, in a discipline that hashes: the class chosen as above counts flows from
    /// 1, as in Linux; where nothing chooses one of them the hash decides, under `salt`.
    #[inline]
    pub fn flow(&self, id: PacketId, pool: &Pool, salt: u64, flows: u32) -> u32 {
        match self.classify(id, pool) {
            Some(minor) if (1..=flows).contains(&u32::from(minor)) => u32::from(minor) - 1,
            _ => pool[id].flow.bucket(salt, flows),
        }
    }

    #[inline]
    fn by_filter(&self, id: PacketId, pool: &Pool) -> Option<u16> {
        let (packet, headers) = (&pool[id], pool.headers(id));
        self.filters
            .iter()
            .find(|filter| filter.condition.matches(packet, headers))
            .map(|filter| filter.class)
    }
}
