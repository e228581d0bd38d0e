//! The filters of a discipline: a list, and the index that finds the first match.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use super::index::{Index, Limits, NONE};
use crate::classify::{Filter, Match};
use crate::flow::FlowKey;
use crate::slot::Slot;

/// Filters. They are tried by ascending [`preference`](Filter::preference), and in the order of the list if
/// it is equal. The first one that matches decides.
///
/// The list is never changed in place. A change creates a new list with its index ([`with`](Filters::with),
/// [`without`](Filters::without)), on another thread if necessary. Meanwhile the old list is in use. The
/// discipline switches to the new list in one step, by [`reconfigure`](crate::Algorithm::reconfigure). Each
/// packet is therefore classified by the old or by the new list, never by a mixture. Packets that are already
/// queued stay where they are. Copies share the list.
#[derive(Clone, Default)]
pub struct Filters(Option<Arc<Built>>);

struct Built {
    list: Vec<Filter>,
    /// Indices in the list, by rank.
    order: Vec<u32>,
    /// The class of each rank.
    classes: Vec<u16>,
    index: Index,
}

impl Filters {
    /// Creates filters, at most 2^32 - 2. Builds the index, which takes about 100 ms for 10,000 filters.
    pub fn new(list: Vec<Filter>) -> Filters {
        Filters::of(list, Limits::default())
    }

    fn of(list: Vec<Filter>, limits: Limits) -> Filters {
        if list.is_empty() {
            return Filters(None);
        }
        let mut order: Vec<u32> = (0..list.len() as u32).collect();
        order.sort_by_key(|place| list[*place as usize].preference);
        let ranked = || order.iter().map(|place| &list[*place as usize]);
        let conditions: Vec<&Match> = ranked().map(|filter| &filter.condition).collect();
        let index = Index::new(&conditions, limits);
        let classes = ranked().map(|filter| filter.class).collect();
        Filters(Some(Arc::new(Built {
            list,
            order,
            classes,
            index,
        })))
    }

    /// Returns these filters and `added`, which come after all others with the same preference.
    #[must_use]
    pub fn with(&self, added: impl IntoIterator<Item = Filter>) -> Filters {
        let mut list = self.to_vec();
        list.extend(added);
        Filters::new(list)
    }

    /// Returns the filters for which `is_removed` is false.
    #[must_use]
    pub fn without(&self, is_removed: impl Fn(&Filter) -> bool) -> Filters {
        let kept = self.iter().filter(|filter| !is_removed(filter)).cloned();
        Filters::new(kept.collect())
    }

    /// Returns the class of the first filter that matches. Without headers, no filter on header fields
    /// matches.
    #[inline]
    pub fn find(&self, packet: &Slot, headers: Option<&FlowKey>) -> Option<u16> {
        let built = self.0.as_deref()?;
        let condition = |rank: u32| &built.list[built.order[rank as usize] as usize].condition;
        match built.index.find(packet, headers, condition) {
            NONE => None,
            rank => Some(built.classes[rank as usize]),
        }
    }

    /// Returns whether there are no filters, without reading the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Deref for Filters {
    type Target = [Filter];

    fn deref(&self) -> &[Filter] {
        self.0.as_deref().map_or(&[], |built| &built.list)
    }
}

impl From<Vec<Filter>> for Filters {
    fn from(list: Vec<Filter>) -> Filters {
        Filters::new(list)
    }
}

impl FromIterator<Filter> for Filters {
    fn from_iter<I: IntoIterator<Item = Filter>>(filters: I) -> Filters {
        Filters::new(filters.into_iter().collect())
    }
}

impl PartialEq for Filters {
    fn eq(&self, other: &Filters) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other) || own.list == other.list,
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Filters {}

impl fmt::Debug for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
