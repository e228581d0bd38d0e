//! The filters of a discipline: a list, the indices that find the first match, and the state of policers.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use super::index::{Index, Limits, NONE};
use super::police::Meter;
use crate::classify::{Control, Filter, Match, Outcome};
use crate::flow::{FlowKey, HeaderBytes};
use crate::packet::DropReason;
use crate::pool::{PacketId, Pool};
use crate::slot::Slot;
use crate::time::Time;

/// Filters. They are tried by ascending [`preference`](Filter::preference), and in the order of the list if
/// it is equal. The first one that matches decides, unless its outcome is to continue.
///
/// The list is never changed in place. A change creates a new list with its index ([`with`](Filters::with),
/// [`without`](Filters::without)), on another thread if necessary. Meanwhile the old list is in use. The
/// discipline switches to the new list in one step, by [`reconfigure`](crate::Algorithm::reconfigure). Each
/// packet is therefore classified by the old or by the new list, never by a mixture. Packets that are already
/// queued stay where they are. Copies share the list. Each copy has policers of its own, with full buckets.
#[derive(Default)]
pub struct Filters {
    built: Option<Arc<Built>>,
    /// The state of each policer.
    meters: Box<[Meter]>,
}

struct Built {
    list: Vec<Filter>,
    /// The filters of the discipline itself.
    root: Chain,
    /// The filters of inner classes, by ascending class.
    inner: Vec<(u16, Chain)>,
    /// The place of each filter with a policer, ascending.
    policed: Vec<u32>,
}

/// Filters that are tried one after the other.
///
/// The index finds only the first one that matches. So filters after which others may be tried end a segment,
/// and each segment has an index.
#[derive(Default)]
struct Chain {
    /// Indices in the list, by rank.
    order: Vec<u32>,
    /// The class of each rank. 0 if the filter does more than choose a class.
    classes: Vec<u16>,
    /// The first segment.
    index: Index,
    /// The other segments, and the rank at which each begins.
    later: Vec<(u32, Index)>,
}

impl Filters {
    /// Creates filters, at most 2^32 - 2. Builds the index, which takes about 100 ms for 10,000 filters.
    pub fn new(list: Vec<Filter>) -> Filters {
        Filters::of(list, Limits::default())
    }

    fn of(list: Vec<Filter>, limits: Limits) -> Filters {
        if list.is_empty() {
            return Filters::default();
        }
        let mut order: Vec<u32> = (0..list.len() as u32).collect();
        order.sort_by_key(|place| list[*place as usize].preference);
        let mut chains: BTreeMap<Option<u16>, Vec<u32>> = BTreeMap::new();
        for place in order {
            chains.entry(list[place as usize].at).or_default().push(place);
        }
        let has_policer = |place: &u32| list[*place as usize].police.is_some();
        let policed = (0..list.len() as u32).filter(has_policer).collect();
        let root = chains.remove(&None).unwrap_or_default();
        let root = Chain::new(&list, root, limits);
        let of_class = |(at, order): (Option<u16>, Vec<u32>)| Some((at?, Chain::new(&list, order, limits)));
        let inner = chains.into_iter().filter_map(of_class).collect();
        let mut filters = Filters {
            built: Some(Arc::new(Built {
                list,
                root,
                inner,
                policed,
            })),
            meters: Box::default(),
        };
        filters.fill_meters();
        filters
    }

    fn fill_meters(&mut self) {
        if let Some(built) = self.built.as_deref() {
            let policers = built
                .policed
                .iter()
                .filter_map(|place| built.filter(*place).police);
            self.meters = policers.map(|police| Meter::full(&police)).collect();
        }
    }

    /// Takes over the policers of `old`, if its filters are the same. A change of other settings does not
    /// fill their buckets again.
    pub(super) fn take_over(&mut self, old: &Filters) {
        if !self.meters.is_empty() && self == old {
            self.meters.clone_from(&old.meters);
        }
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

    /// Returns the class of the first filter of the discipline itself that matches. `None` if none matches,
    /// or if that filter does not only choose a class. Without headers, no filter on header
    /// fields matches, and none on header bytes does.
    #[inline]
    pub fn find(&self, packet: &Slot, headers: Option<&FlowKey>, bytes: Option<&HeaderBytes>) -> Option<u16> {
        let built = self.built.as_deref()?;
        let seen = Seen {
            slot: packet,
            headers,
            bytes,
        };
        let rank = built.root.find(0, &built.list, seen)?;
        Some(built.root.classes[rank as usize]).filter(|class| *class != 0)
    }

    /// Returns whether the inner class has filters.
    #[inline]
    pub(crate) fn has_chain(&self, class: u16) -> bool {
        self.built
            .as_deref()
            .is_some_and(|built| built.chain(Some(class)).is_some())
    }

    /// Applies the filters of the discipline itself, or of the inner class `at`. Returns the class, or `None`
    /// if the packet is unclassified.
    ///
    /// # Errors
    /// If the packet is dropped. It was given back.
    #[inline]
    pub(crate) fn apply(
        &mut self,
        at: Option<u16>,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<u16>, DropReason> {
        let Filters { built, meters } = self;
        let Some(built) = built.as_deref() else {
            return Ok(None);
        };
        let Some(chain) = built.chain(at) else {
            return Ok(None);
        };
        let Some(rank) = chain.find(0, &built.list, Seen::of(id, pool)) else {
            return Ok(None);
        };
        match chain.classes[rank as usize] {
            0 => built.act(chain, rank, meters, id, now, pool),
            class => Ok(Some(class)),
        }
    }

    /// Returns the class of a packet that was classified before, when it arrived. Policers measure nothing,
    /// and nothing is dropped or changed.
    pub(crate) fn class_again(&self, id: PacketId, pool: &Pool) -> Option<u16> {
        let built = self.built.as_deref()?;
        let (chain, packet) = (&built.root, Seen::of(id, pool));
        let mut from = 0;
        loop {
            let rank = chain.find(from, &built.list, packet)?;
            let filter = built.filter(chain.order[rank as usize]);
            // The packet was not dropped, so it went the way that does not drop.
            let control = match &filter.police {
                None => Control::Pass,
                Some(police) if matches!(police.conform, Control::Pass | Control::Continue) => police.conform,
                Some(police) => police.exceed,
            };
            match (control, filter.outcome) {
                (Control::Pass, Outcome::Class(class)) => return Some(class),
                (Control::Continue, _) | (Control::Pass, Outcome::Continue) => from = rank + 1,
                _ => return None,
            }
        }
    }

    /// Returns whether there are no filters, without reading the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.built.is_none()
    }
}

/// What filters see of a packet.
#[derive(Clone, Copy)]
struct Seen<'p> {
    slot: &'p Slot,
    headers: Option<&'p FlowKey>,
    bytes: Option<&'p HeaderBytes>,
}

impl Seen<'_> {
    #[inline]
    fn of(id: PacketId, pool: &Pool) -> Seen<'_> {
        Seen {
            slot: &pool[id],
            headers: pool.headers(id),
            bytes: pool.bytes(id),
        }
    }
}

/// How often a packet is classified again before it is dropped (Linux: `max_reclassify_loop`).
const MOST_RESTARTS: u32 = 16;

impl Built {
    #[inline]
    fn chain(&self, at: Option<u16>) -> Option<&Chain> {
        let Some(class) = at else { return Some(&self.root) };
        let place = self
            .inner
            .binary_search_by_key(&class, |(class, _)| *class)
            .ok()?;
        Some(&self.inner[place].1)
    }

    fn filter(&self, place: u32) -> &Filter {
        &self.list[place as usize]
    }

    /// Does what the filter of `rank` says, and the filters after it.
    // Not inlined: most filters only choose a class.
    #[inline(never)]
    fn act(
        &self,
        chain: &Chain,
        mut rank: u32,
        meters: &mut [Meter],
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<u16>, DropReason> {
        let mut restarts = 0;
        loop {
            let place = chain.order[rank as usize];
            let filter = self.filter(place);
            let control = match &filter.police {
                None => Control::Pass,
                Some(police) => {
                    let meter = self.policed.partition_point(|policed| *policed < place);
                    match meters[meter].conforms(pool[id].length, now) {
                        true => police.conform,
                        false => police.exceed,
                    }
                }
            };
            let next = match control {
                Control::Drop => return Err(DropReason::Policed),
                Control::Reclassify if restarts == MOST_RESTARTS => return Err(DropReason::Policed),
                Control::Reclassify => {
                    restarts += 1;
                    0
                }
                Control::Continue => rank + 1,
                Control::Pass => {
                    filter.edit.apply(id, pool);
                    match filter.outcome {
                        Outcome::Class(class) => return Ok(Some(class)),
                        Outcome::Unclassified => return Ok(None),
                        Outcome::Drop => return Err(DropReason::Filtered),
                        Outcome::Continue => rank + 1,
                    }
                }
            };
            match chain.find(next, &self.list, Seen::of(id, pool)) {
                Some(found) => rank = found,
                None => return Ok(None),
            }
        }
    }
}

impl Chain {
    /// Builds the chain of the filters at these places of the list.
    fn new(list: &[Filter], order: Vec<u32>, limits: Limits) -> Chain {
        let filter = |place: &u32| &list[*place as usize];
        let conditions: Vec<&Match> = order.iter().map(|place| &filter(place).condition).collect();
        let class = |filter: &Filter| match filter.only_classifies() {
            true => filter.outcome.class().unwrap_or(0),
            false => 0,
        };
        let classes = order.iter().map(filter).map(class).collect();
        let mut segments = Vec::new();
        let mut first = 0;
        for segment in order.split_inclusive(|place| filter(place).may_continue()) {
            let behind = first + segment.len();
            segments.push((first as u32, Index::new(&conditions[first..behind], limits)));
            first = behind;
        }
        let mut segments = segments.into_iter();
        Chain {
            index: segments.next().map(|(_, index)| index).unwrap_or_default(),
            later: segments.collect(),
            order,
            classes,
        }
    }

    /// Returns the first rank from `from` on that matches. `from` is the first rank of a segment.
    #[inline]
    fn find(&self, from: u32, list: &[Filter], packet: Seen<'_>) -> Option<u32> {
        if from == 0 {
            let rank = self.find_in(&self.index, 0, list, packet);
            if rank.is_some() || self.later.is_empty() {
                return rank;
            }
        }
        self.find_later(from, list, packet)
    }

    // Not inlined: most chains have one segment.
    #[inline(never)]
    fn find_later(&self, from: u32, list: &[Filter], packet: Seen<'_>) -> Option<u32> {
        let skipped = self.later.partition_point(|(first, _)| *first < from);
        let mut later = self.later[skipped..].iter();
        later.find_map(|(first, index)| self.find_in(index, *first, list, packet))
    }

    /// Searches the segment that begins with the rank `first`.
    #[inline]
    fn find_in(&self, index: &Index, first: u32, list: &[Filter], packet: Seen<'_>) -> Option<u32> {
        let matches = |rank: u32| {
            let condition = &list[self.order[(first + rank) as usize] as usize].condition;
            condition.matches(packet.slot, packet.headers, packet.bytes)
        };
        match index.find(packet.slot, packet.headers, matches) {
            NONE => None,
            rank => Some(first + rank),
        }
    }
}

impl Clone for Filters {
    fn clone(&self) -> Filters {
        let mut copy = Filters {
            built: self.built.clone(),
            meters: Box::default(),
        };
        copy.fill_meters();
        copy
    }
}

impl Deref for Filters {
    type Target = [Filter];

    fn deref(&self) -> &[Filter] {
        self.built.as_deref().map_or(&[], |built| &built.list)
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
        match (&self.built, &other.built) {
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
