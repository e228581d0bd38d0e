//! Finds the first of many filters that matches a packet. The cost hardly grows with the number of filters.
//!
//! ```text
//!   tables    many filters that fix the same bits (five-tuples, host pairs, /24 networks): a hash table
//!             for each set of bits                                                    `table`
//!   bitmaps   all others: ranges, unusual prefixes, mixed conditions                  `bitmap`, `trie`
//!   few       up to 16 filters: one after the other; a single one reads only what it fixes
//! ```
//!
//! The parts are searched in the order of the lowest rank in each, until none can be better than the match
//! found. Why two kinds: a table costs two cache misses even for a million filters. But every set of bits
//! needs its own table, and mixed filters have hundreds of sets (pure tuple-space search). A bitmap accepts
//! all kinds of filters, but its memory grows with the square of their number. So large groups of similar
//! filters are hashed, and the smaller rest goes into bitmaps.
//!
//! The index is built when filters change. A lookup neither allocates nor divides.

mod bitmap;
mod fields;
mod single;
mod table;
mod trie;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bitmap::{Bitmap, MOST_BLOCKS};
use fields::{Fields, Pattern, fields};
use single::Single;
use table::Table;

use crate::classify::Match;
use crate::flow::FlowKey;
use crate::slot::Slot;

/// The rank that means no filter.
pub(super) const NONE: u32 = u32::MAX;

/// The sizes at which each part is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Up to this many filters are tried one after the other.
    pub(super) few: usize,
    /// Up to this many filters are in a bitmap of words instead of blocks.
    pub(super) small: usize,
    /// A set of bits gets its own table if this many filters use it. The second, lower number applies while
    /// more filters remain than a bitmap should hold.
    pub(super) worth_a_table: [usize; 2],
    /// The maximum number of tables. Each costs every packet a lookup. The second number applies while more
    /// filters remain than a bitmap should hold.
    pub(super) most_tables: [usize; 2],
    /// The maximum number of filters in a bitmap, limited by its blocks. In the worst case, the bits of its
    /// rows grow with the square of it.
    pub(super) most_in_a_bitmap: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            few: 16,
            small: 64,
            worth_a_table: [512, 64],
            most_tables: [4, 16],
            most_in_a_bitmap: MOST_BLOCKS * 512,
        }
    }
}

/// An index over conditions. The caller keeps the conditions. They are identified by their rank, which is
/// their position in the order of trial.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Sorted by the lowest rank in each, as are the bitmaps.
    tables: Vec<Table>,
    bitmaps: Vec<Bitmap<8>>,
    /// A bitmap of up to 64 filters.
    small: Option<Bitmap<1>>,
    few: Vec<(u32, Pattern)>,
    /// The only filter, if there is one only.
    single: Option<Single>,
}

/// Returns the patterns of the conditions with these ranks.
#[inline(never)]
fn patterns(ranks: Vec<u32>, conditions: &[&Match]) -> Vec<(u32, Pattern)> {
    let with_pattern = |rank: u32| (rank, Pattern::of(conditions[rank as usize]));
    ranks.into_iter().map(with_pattern).collect()
}

impl Index {
    /// Builds the index over `conditions`, in the order of rank. At most 2^32 - 2 are allowed.
    // Not inlined: its own frame is not added to that of the caller.
    #[inline(never)]
    pub(super) fn new(conditions: &[&Match], limits: Limits) -> Index {
        let mut index = Index::default();
        let all = (0..conditions.len() as u32).collect();
        let mut rest = patterns(all, conditions);
        rest.retain(|(_, pattern)| !pattern.is_impossible);
        let mut rest = match rest.len() <= limits.few {
            true => rest.into_iter().map(|(rank, _)| rank).collect(),
            false => index.take_tables(rest, &limits),
        };
        rest.sort_unstable();
        if index.tables.is_empty()
            && let [rank] = rest[..]
        {
            index.single = Some(Single::new(rank, conditions[rank as usize]));
            return index;
        }
        if rest.len() <= limits.few {
            index.few = patterns(rest, conditions);
            return index;
        }
        let with_condition = |rank: u32| (rank, conditions[rank as usize]);
        let rest: Vec<(u32, &Match)> = rest.into_iter().map(with_condition).collect();
        if rest.len() <= limits.small {
            index.small = Some(Bitmap::new(rest));
            return index;
        }
        for filters in rest.chunks(limits.most_in_a_bitmap) {
            index.bitmaps.push(Bitmap::new(filters.to_vec()));
        }
        index
    }

    /// Builds the tables. Returns the ranks of the filters that are in no table.
    #[inline(never)]
    fn take_tables(&mut self, filters: Vec<(u32, Pattern)>, limits: &Limits) -> Vec<u32> {
        let mut left = filters.len();
        let mut by_mask: BTreeMap<Fields, Vec<(u32, Fields, bool)>> = BTreeMap::new();
        for (rank, pattern) in filters {
            let alike = by_mask.entry(pattern.mask).or_default();
            alike.push((rank, pattern.value, pattern.has_ranges));
        }
        let mut groups: Vec<_> = by_mask.into_iter().collect();
        // The largest group first. Equal ones are in an order that is the same in every run.
        groups.sort_unstable_by_key(|(_, filters)| (usize::MAX - filters.len(), filters[0].0));
        let mut rest = Vec::new();
        for (mask, filters) in groups {
            let are_very_many = usize::from(left > limits.most_in_a_bitmap);
            let is_worth_it = filters.len() >= limits.worth_a_table[are_very_many]
                && self.tables.len() < limits.most_tables[are_very_many];
            if !is_worth_it || mask.iter().all(|bits| *bits == 0) {
                rest.extend(filters.iter().map(|(rank, ..)| *rank));
                continue;
            }
            let (table, left_over) = Table::new(&mask, &filters);
            left -= filters.len() - left_over.len();
            rest.extend(left_over);
            self.tables.push(table);
        }
        self.tables.sort_unstable_by_key(|table| table.best);
        rest
    }

    /// Returns what [`find`](Index::find) does, if there is one filter, and one condition of it decides.
    #[inline]
    pub(super) fn decided(&self, packet: &Slot, headers: Option<&FlowKey>) -> Option<u32> {
        let single = self.single.as_ref()?;
        match single.is_decided(packet, headers)? {
            true => Some(single.rank),
            false => Some(NONE),
        }
    }

    /// Returns the lowest rank of a filter that matches, or [`NONE`]. `matches` returns whether all
    /// conditions of a rank hold.
    #[inline(always)]
    pub(super) fn find(
        &self,
        packet: &Slot,
        headers: Option<&FlowKey>,
        matches: impl Fn(u32) -> bool,
    ) -> u32 {
        if let Some(single) = &self.single {
            let is_match = single.holds(packet, headers) && (!single.has_bytes || matches(single.rank));
            return if is_match { single.rank } else { NONE };
        }
        let mut best = NONE;
        let fields = || fields(packet, headers);
        if !self.tables.is_empty() {
            let fields = fields();
            for table in &self.tables {
                if table.best >= best {
                    break;
                }
                best = table.find(&fields, best, &matches);
            }
        }
        for bitmap in &self.bitmaps {
            if bitmap.best >= best {
                break;
            }
            best = bitmap.find(packet, headers, best, &matches);
        }
        if let Some(bitmap) = &self.small
            && bitmap.best < best
        {
            best = bitmap.find(packet, headers, best, &matches);
        }
        if !self.few.is_empty() {
            let fields = fields();
            for (rank, pattern) in &self.few {
                if *rank >= best {
                    break;
                }
                if pattern.is_in(&fields) && (!pattern.has_ranges || matches(*rank)) {
                    return *rank;
                }
            }
        }
        best
    }
}
