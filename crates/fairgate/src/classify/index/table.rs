//! A hash table of filters that fix the same bits: a tuple of tuple-space search (Srinivasan, Suri and
//! Varghese, SIGCOMM 1999). The cost of a lookup does not depend on the number of filters.
//!
//! It uses open addressing with linear probing, and is at most half full. The hash needs no secret key: the
//! content of a table comes from the configuration, so attackers can't lengthen its probes.

use alloc::vec::Vec;

use super::NONE;
use super::fields::{Fields, WORDS};
use alloc::collections::BTreeMap;

/// The maximum number of filters per key. Only filters with additional ranges can share a key. Further ones
/// go into bitmaps.
const MOST_UNDER_A_KEY: usize = 8;

/// An empty slot.
const EMPTY: u32 = u32::MAX;

/// A slot of the table.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The low half of the hash. It is seldom equal for different keys, so that few other records are read.
    tag: u32,
    record: u32,
}

#[derive(Debug)]
pub(super) struct Table {
    /// The lowest rank in the table. No better one can be found here.
    pub(super) best: u32,
    /// The words with fixed bits, and these bits.
    words: Vec<(usize, u64)>,
    slots: Vec<Slot>,
    /// The bits of the hash above this shift select the slot.
    shift: u32,
    /// Records of `words.len()` words of key and one word of `Candidates`.
    records: Vec<u64>,
    /// The ranks of filters with ranges. Those with the same key are adjacent.
    ranks: Vec<u32>,
}

/// The filters of a key. If the high half is 0, the low half is a rank. Otherwise the high half is a count,
/// and the low half the first index in `ranks`.
#[derive(Clone, Copy, Debug)]
struct Candidates(u64);

impl Table {
    /// Builds a table of the filters that fix the bits of `mask`. For each filter it takes the rank, the
    /// fixed bits, and whether there are ranges, by ascending rank. Returns the ranks that do not fit.
    pub(super) fn new(mask: &Fields, filters: &[(u32, Fields, bool)]) -> (Table, Vec<u32>) {
        let words: Vec<(usize, u64)> = mask
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, bits)| *bits != 0)
            .collect();
        let mut by_key: BTreeMap<Fields, Vec<(u32, bool)>> = BTreeMap::new();
        let mut keys = Vec::new();
        let mut left_over = Vec::new();
        for &(rank, value, has_ranges) in filters {
            let under_key = by_key.entry(value).or_insert_with(|| {
                keys.push(value);
                Vec::new()
            });
            // Filters after one that matches for certain are never reached.
            if under_key.last().is_some_and(|(_, has_ranges)| !has_ranges) {
                continue;
            }
            if under_key.len() == MOST_UNDER_A_KEY {
                left_over.push(rank);
            } else {
                under_key.push((rank, has_ranges));
            }
        }
        let slots = (keys.len() * 2).next_power_of_two().max(2);
        let mut table = Table {
            best: filters.first().map_or(NONE, |(rank, ..)| *rank),
            words,
            slots: vec![
                Slot {
                    tag: 0,
                    record: EMPTY
                };
                slots
            ],
            shift: 64 - slots.trailing_zeros(),
            records: Vec::new(),
            ranks: Vec::new(),
        };
        for key in keys {
            table.insert(&key, &by_key[&key]);
        }
        (table, left_over)
    }

    fn insert(&mut self, key: &Fields, filters: &[(u32, bool)]) {
        let candidates = match filters {
            [(rank, false)] => u64::from(*rank),
            _ => {
                let first = self.ranks.len() as u64;
                self.ranks.extend(filters.iter().map(|(rank, _)| *rank));
                (filters.len() as u64) << 32 | first
            }
        };
        let hash = self.hash(key);
        let record = (self.records.len() / self.stride()) as u32;
        self.records.extend(self.words.iter().map(|(word, _)| key[*word]));
        self.records.push(candidates);
        let mut at = (hash >> self.shift) as usize;
        while self.slots[at].record != EMPTY {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = Slot {
            tag: hash as u32,
            record,
        };
    }

    /// Returns the number of words of a record.
    #[inline]
    fn stride(&self) -> usize {
        self.words.len() + 1
    }

    /// Returns the hash: products of pairs of words with odd constants (those of wyhash), folded. The
    /// products are independent of each other.
    #[inline]
    fn hash(&self, fields: &Fields) -> u64 {
        const KEYS: [u64; WORDS + 1] = [
            0xa076_1d64_78bd_642f,
            0xe703_7ed1_a0b4_28db,
            0x8ebc_6af0_9c88_c6e3,
            0x5899_65cc_7537_4cc3,
            0x1d8e_4e27_c47d_124f,
            0xeb44_acca_b455_d165,
            0x9c6e_6877_736c_46e3,
            0x9e37_79b9_7f4a_7c15,
        ];
        let mut hash = KEYS[WORDS];
        for pair in self.words.chunks(2) {
            let [first, second] = match *pair {
                [(a, bits_a), (b, bits_b)] => [fields[a] & bits_a ^ KEYS[a], fields[b] & bits_b ^ KEYS[b]],
                [(a, bits_a)] => [fields[a] & bits_a ^ KEYS[a], KEYS[WORDS]],
                _ => unreachable!("chunks of two have one or two"),
            };
            hash ^= fold(first, second);
        }
        fold(hash, KEYS[0])
    }

    /// Returns the lowest rank below `best` of a filter that matches, otherwise `best`. `matches` returns
    /// whether the ranges of a rank hold.
    #[inline]
    pub(super) fn find(&self, fields: &Fields, best: u32, matches: impl Fn(u32) -> bool) -> u32 {
        let hash = self.hash(fields);
        let mut at = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[at];
            if slot.record == EMPTY {
                return best;
            }
            if slot.tag == hash as u32
                && let Some(candidates) = self.candidates(slot.record, fields)
            {
                return self.choose(candidates, best, matches);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Returns the filters of the record, if its key is that of the packet.
    #[inline]
    fn candidates(&self, record: u32, fields: &Fields) -> Option<Candidates> {
        let start = record as usize * self.stride();
        let record = &self.records[start..start + self.stride()];
        let (candidates, key) = record.split_last()?;
        let is_equal = self
            .words
            .iter()
            .zip(key)
            .all(|((word, bits), key)| fields[*word] & bits == *key);
        is_equal.then_some(Candidates(*candidates))
    }

    #[inline]
    fn choose(&self, Candidates(candidates): Candidates, best: u32, matches: impl Fn(u32) -> bool) -> u32 {
        let (count, first) = ((candidates >> 32) as usize, candidates as u32);
        if count == 0 {
            return best.min(first);
        }
        let ranks = &self.ranks[first as usize..first as usize + count];
        let better = ranks.iter().copied().take_while(|&rank| rank < best);
        better.into_iter().find(|&rank| matches(rank)).unwrap_or(best)
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
