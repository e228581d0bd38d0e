//! The filters of a discipline: a list, the indices that find the first match, and the state of policers and
//! of hashes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use super::computed::HashKey;
use super::index::{Index, Limits, NONE};
use super::police::Meter;
use crate::classify::{Computed, Control, Filter, Match, Outcome};
use crate::flow::{FlowKey, HeaderBytes};
use crate::packet::DropReason;
use crate::pool::{PacketId, Pool};
use crate::slot::Slot;
use crate::structures::random::Random;
use crate::time::Time;

/// Filters. They are tried by ascending [`preference`](Filter::preference), and in the order of the list if
/// it is equal. The first one that matches decides, unless its outcome is to continue.
///
/// The list is never changed in place. A change creates a new list with its index ([`with`](Filters::with),
/// [`without`](Filters::without)), on another thread if necessary. Meanwhile the old list is in use. The
/// discipline switches to the new list in one step, by [`reconfigure`](crate::Algorithm::reconfigure). Each
/// packet is therefore classified by the old or by the new list, never by a mixture. Packets that are already
/// queued stay where they are. Copies share the list. Each copy has policers of its own, with full buckets,
/// and hashes with the keys that follow from its seed.
#[derive(Default)]
pub struct Filters {
    built: Option<Arc<Built>>,
    state: State,
    seed: u64,
}

/// What changes while packets are classified.
#[derive(Clone, Debug)]
struct State {
    /// The state of each policer.
    meters: Box<[Meter]>,
    /// The key of each hash.
    keys: Box<[HashKey]>,
    /// Draws later keys.
    random: Random,
}

impl Default for State {
    fn default() -> State {
        State {
            meters: Box::default(),
            keys: Box::default(),
            random: Random::new(0),
        }
    }
}

struct Built {
    list: Vec<Filter>,
    /// The filters of the discipline itself, in chain 0.
    root: Chain,
    /// The filters of other chains and of inner classes, ascending.
    others: Vec<(Spot, Chain)>,
    /// The place of each filter with a policer, ascending.
    policed: Vec<u32>,
    /// The place of each filter with a hash, ascending.
    hashing: Vec<u32>,
    /// Whether any filter matches bytes of headers.
    reads_bytes: bool,
}

/// The inner class at which filters are tried, and their chain.
type Spot = (Option<u32>, u32);

/// Filters that are tried one after the other.
///
/// The index finds only the first one that matches. So filters after which others may be tried end a segment,
/// and each segment has an index.
#[derive(Default)]
struct Chain {
    /// Indices in the list, by rank.
    order: Vec<u32>,
    /// The class of each rank. 0 if the filter does more than choose a class.
    classes: Vec<u32>,
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
        order.sort_unstable_by_key(|place| (list[*place as usize].preference, *place));
        let mut chains: BTreeMap<Spot, Vec<u32>> = BTreeMap::new();
        for place in order {
            let filter = &list[place as usize];
            chains.entry((filter.at, filter.chain)).or_default().push(place);
        }
        let places = |is_meant: fn(&Filter) -> bool| {
            let all = (0..).zip(&list);
            all.filter(|(_, filter)| is_meant(filter))
                .map(|(place, _)| place)
                .collect()
        };
        let policed = places(|filter| filter.police.is_some());
        let hashing = places(|filter| {
            filter
                .outcome
                .computed()
                .is_some_and(|computed| computed.hashes())
        });
        let reads_bytes = list.iter().any(|filter| !filter.condition.bytes.is_empty());
        let root = chains.remove(&(None, 0)).unwrap_or_default();
        let root = Chain::new(&list, root, limits);
        let built = |(spot, order)| (spot, Chain::new(&list, order, limits));
        let others = chains.into_iter().map(built).collect();
        let mut filters = Filters {
            built: Some(Arc::new(Built {
                list,
                root,
                others,
                policed,
                hashing,
                reads_bytes,
            })),
            ..Filters::default()
        };
        filters.begin(0);
        filters
    }

    /// Fills the buckets of policers, and draws the keys of hashes.
    fn begin(&mut self, seed: u64) {
        self.seed = seed;
        let Some(built) = self.built.as_deref() else {
            return;
        };
        let policers = built
            .policed
            .iter()
            .filter_map(|place| built.filter(*place).police);
        let mut random = Random::new(seed);
        self.state = State {
            meters: policers.map(|police| Meter::full(&police)).collect(),
            keys: HashKey::draw(built.hashing.len(), &mut random),
            random,
        };
    }

    /// Returns the same filters, whose hashes have keys from `seed`. Whoever knows the seed can choose the
    /// classes of packets: on a live system it must be random.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Filters {
        let mut filters = Filters {
            built: self.built.clone(),
            ..Filters::default()
        };
        filters.begin(seed);
        filters
    }

    /// Takes over the hashes of `old`, if its filters are the same, and the policer of each filter that `old`
    /// has too. A change of other settings or filters does not fill their buckets again. The keys of other
    /// filters follow from the seed of `old`.
    pub(super) fn take_over(&mut self, old: &Filters) {
        let has_state = !self.state.meters.is_empty() || !self.state.keys.is_empty();
        match has_state && self == old {
            true => self.state = old.state.clone(),
            false if has_state => {
                self.begin(Random::new(old.seed).bits());
                self.take_over_meters(old);
            }
            false => {}
        }
        self.seed = old.seed;
    }

    /// Takes over the policers of filters that both lists have. Filters that were moved within the list have
    /// theirs only if few others are between.
    fn take_over_meters(&mut self, old: &Filters) {
        let (Some(new), Some(was)) = (self.built.as_deref(), old.built.as_deref()) else {
            return;
        };
        let same = |own: usize, other: usize| new.filter(new.policed[own]) == was.filter(was.policed[other]);
        let shorter = new.policed.len().min(was.policed.len());
        let first = (0..shorter).take_while(|&place| same(place, place)).count();
        let (own, other) = (new.policed.len() - first, was.policed.len() - first);
        let last = (1..=own.min(other))
            .take_while(|&back| same(first + own - back, first + other - back))
            .count();
        let meters = &mut self.state.meters;
        meters[..first].copy_from_slice(&old.state.meters[..first]);
        for back in 1..=last {
            meters[first + own - back] = old.state.meters[first + other - back];
        }
        // Between what both lists begin and end with, each filter takes the policer of one that is equal.
        let mut left: Vec<usize> = (first..first + other - last).collect();
        for place in first..first + own - last {
            let equal = left
                .iter()
                .take(MOST_COMPARED)
                .position(|&other| same(place, other));
            if let Some(equal) = equal {
                meters[place] = old.state.meters[left.remove(equal)];
            }
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
    pub fn find(&self, packet: &Slot, headers: Option<&FlowKey>, bytes: Option<&HeaderBytes>) -> Option<u32> {
        let built = self.built.as_deref()?;
        match built.root.decided(packet, headers) {
            Some(class) => class,
            None => built.find(packet, headers, bytes),
        }
    }

    /// Returns whether the inner class has filters.
    #[inline]
    pub(crate) fn has_chain(&self, class: u32) -> bool {
        self.built
            .as_deref()
            .is_some_and(|built| built.chain((Some(class), 0)).is_some())
    }

    /// Applies the filters of the discipline itself, or of the inner class `at`. Returns the class, or `None`
    /// if the packet is unclassified.
    ///
    /// # Errors
    /// If the packet is dropped. It was given back.
    #[inline]
    pub(crate) fn apply(
        &mut self,
        at: Option<u32>,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<u32>, DropReason> {
        let Filters { built, state, .. } = self;
        let Some(built) = built.as_deref() else {
            return Ok(None);
        };
        if at.is_none()
            && let Some(class) = built.root.decided(&pool[id], pool.headers(id))
        {
            return Ok(class);
        }
        built.apply(at, state, id, now, pool)
    }

    /// Returns the class of a packet that was classified before, when it arrived. Policers measure nothing,
    /// and nothing is dropped or changed.
    pub(crate) fn class_again(&self, id: PacketId, pool: &Pool) -> Option<u32> {
        let built = self.built.as_deref()?;
        let (mut chain, packet) = (&built.root, Seen::of(id, pool));
        let (mut from, mut restarts) = (0, 0);
        loop {
            let rank = chain.find_next(from, &built.list, &packet)?;
            let place = chain.order[rank as usize];
            let filter = built.filter(place);
            // The packet was not dropped, so it went the way that does not drop.
            let control = match &filter.police {
                None => Control::Pass,
                Some(police) if matches!(police.conform, Control::Pass | Control::Continue) => police.conform,
                Some(police) => police.exceed,
            };
            match (control, filter.outcome) {
                (Control::Pass, Outcome::Class(class)) => return Some(class),
                (Control::Pass, Outcome::Computed(computed)) => {
                    let key = self.state.keys.get(built.hash(place));
                    match computed.class(packet.slot, packet.headers, key) {
                        0 => from = rank + 1,
                        class => return Some(class.into()),
                    }
                }
                (Control::Pass, Outcome::Chain(number)) if restarts < MOST_RESTARTS => {
                    restarts += 1;
                    (chain, from) = (built.chain((None, number))?, 0);
                }
                (Control::Continue, _) | (Control::Pass, Outcome::Continue) => from = rank + 1,
                _ => return None,
            }
        }
    }

    /// Returns whether any filter matches bytes of headers, without reading the list.
    pub(crate) fn read_bytes(&self) -> bool {
        self.built.as_deref().is_some_and(|built| built.reads_bytes)
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

    #[inline]
    fn matches(&self, filter: &Filter) -> bool {
        filter.condition.matches(self.slot, self.headers, self.bytes)
    }
}

/// With how many policers of the old list one of the new list is compared, if the lists differ: the change is
/// made while packets wait.
const MOST_COMPARED: usize = 64;

/// How often a packet is classified again or by another chain before it is dropped (Linux:
/// `max_reclassify_loop`).
const MOST_RESTARTS: u32 = 16;

impl Built {
    #[inline]
    fn chain(&self, spot: Spot) -> Option<&Chain> {
        if spot == (None, 0) {
            return Some(&self.root);
        }
        let place = self.others.binary_search_by_key(&spot, |(spot, _)| *spot).ok()?;
        Some(&self.others[place].1)
    }

    fn filter(&self, place: u32) -> &Filter {
        &self.list[place as usize]
    }

    /// Does what [`Filters::find`] does.
    // Not inlined, so that where one condition decides, few registers are needed.
    #[inline(never)]
    fn find(&self, slot: &Slot, headers: Option<&FlowKey>, bytes: Option<&HeaderBytes>) -> Option<u32> {
        let seen = Seen { slot, headers, bytes };
        let rank = self.root.find(0, &self.list, &seen)?;
        Some(self.root.classes[rank as usize]).filter(|class| *class != 0)
    }

    /// Does what [`Filters::apply`] does.
    // Not inlined, as `find`.
    #[inline(never)]
    fn apply(
        &self,
        at: Option<u32>,
        state: &mut State,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<u32>, DropReason> {
        let Some(chain) = self.chain((at, 0)) else {
            return Ok(None);
        };
        let Some(rank) = chain.find(0, &self.list, &Seen::of(id, pool)) else {
            return Ok(None);
        };
        match chain.classes[rank as usize] {
            0 => self.act(at, (chain, rank), state, id, now, pool),
            class => Ok(Some(class)),
        }
    }

    /// Returns the number of the hash of the filter at `place`.
    fn hash(&self, place: u32) -> usize {
        self.hashing.partition_point(|hashing| *hashing < place)
    }

    /// Does what the filter of this rank says, and the filters after it.
    // Not inlined: most filters only choose a class.
    #[inline(never)]
    fn act(
        &self,
        at: Option<u32>,
        (first, mut rank): (&Chain, u32),
        state: &mut State,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Option<u32>, DropReason> {
        let mut restarts = 0;
        let mut chain = first;
        loop {
            let place = chain.order[rank as usize];
            let filter = self.filter(place);
            let control = match &filter.police {
                None => Control::Pass,
                Some(police) => {
                    let meter = self.policed.partition_point(|policed| *policed < place);
                    match state.meters[meter].conforms(pool[id].length, now) {
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
                    chain = first;
                    0
                }
                Control::Default => return Ok(None),
                Control::Continue => rank + 1,
                Control::Pass => {
                    filter.edit.apply(id, pool);
                    match filter.outcome {
                        Outcome::Class(class) => return Ok(Some(class)),
                        Outcome::Computed(computed) => {
                            match self.compute(&computed, place, state, now, Seen::of(id, pool)) {
                                0 => rank + 1,
                                class => return Ok(Some(class)),
                            }
                        }
                        Outcome::Unclassified => return Ok(None),
                        Outcome::Drop => return Err(DropReason::Filtered),
                        Outcome::Continue => rank + 1,
                        Outcome::Chain(_) if restarts == MOST_RESTARTS => return Err(DropReason::Filtered),
                        Outcome::Chain(number) => {
                            restarts += 1;
                            let Some(other) = self.chain((at, number)) else {
                                return Ok(None);
                            };
                            chain = other;
                            0
                        }
                    }
                }
            };
            match chain.find_next(next, &self.list, &Seen::of(id, pool)) {
                Some(found) => rank = found,
                None => return Ok(None),
            }
        }
    }

    /// Returns the class that the filter at `place` computes.
    fn compute(
        &self,
        computed: &Computed,
        place: u32,
        state: &mut State,
        now: Time,
        packet: Seen<'_>,
    ) -> u32 {
        let State { keys, random, .. } = state;
        let mut key = match computed.hashes() {
            true => keys.get_mut(self.hash(place)),
            false => None,
        };
        if let Some(key) = &mut key {
            key.keep_fresh(computed, now, random);
        }
        computed.class(packet.slot, packet.headers, key.as_deref()).into()
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

    /// Returns the class of a packet, or that it has none, if this takes one condition only.
    #[inline]
    fn decided(&self, slot: &Slot, headers: Option<&FlowKey>) -> Option<Option<u32>> {
        if !self.later.is_empty() {
            return None;
        }
        match self.index.decided(slot, headers)? {
            NONE => Some(None),
            rank => match self.classes[rank as usize] {
                0 => None,
                class => Some(Some(class)),
            },
        }
    }

    /// As [`find`](Chain::find), for what seldom happens.
    #[inline(never)]
    fn find_next(&self, from: u32, list: &[Filter], packet: &Seen<'_>) -> Option<u32> {
        self.find(from, list, packet)
    }

    /// Returns the first rank from `from` on that matches. `from` is the first rank of a segment.
    // As a call, it takes 50 instructions more.
    #[inline(always)]
    fn find(&self, from: u32, list: &[Filter], packet: &Seen<'_>) -> Option<u32> {
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
    fn find_later(&self, from: u32, list: &[Filter], packet: &Seen<'_>) -> Option<u32> {
        let skipped = self.later.partition_point(|(first, _)| *first < from);
        let mut later = self.later[skipped..].iter();
        later.find_map(|(first, index)| self.find_in(index, *first, list, packet))
    }

    /// Searches the segment that begins with the rank `first`.
    #[inline]
    fn find_in(&self, index: &Index, first: u32, list: &[Filter], packet: &Seen<'_>) -> Option<u32> {
        let matches = move |rank: u32| packet.matches(&list[self.order[(first + rank) as usize] as usize]);
        match index.find(packet.slot, packet.headers, matches) {
            NONE => None,
            rank => Some(first + rank),
        }
    }
}

impl Clone for Filters {
    fn clone(&self) -> Filters {
        self.with_seed(self.seed)
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
