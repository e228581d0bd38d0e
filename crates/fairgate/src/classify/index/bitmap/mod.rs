//! Filters of all kinds, with one bit for each. Each field of the packet selects a row of the filters that
//! accept its value. A filter that is in all rows matches (the bit vectors of Lakshman and Stiliadis, SIGCOMM
//! 1998).
//!
//! ```text
//!   field's value --table, trie--> row      a row: which blocks of 512 filters have bits, and the numbers of
//!                                           these blocks
//!   row of source        [ 101 | 0 | 7 | 3 ]
//!   row of port          [ 111 | 4 | 3 | 3 ]      a block is not read if one row has no bits in it
//!                                  |
//!                         blocks[7] & blocks[3] ...        512 bits, a cache line, ANDed at once
//! ```
//!
//! Equal blocks are stored once. Within a block, bits are in the order of rank, so the lowest bit decides.
//!
//! The order of the filters determines how many blocks are read. If they are sorted by rank alone, the first
//! match ends the search, but with filters that seldom match all blocks have to be read. If filters that
//! leave the same fields open are grouped and sorted by address, most blocks of most rows are all ones or all
//! zeros, but filters that often match are spread over many blocks. So windows of eight blocks are sorted by
//! rank, and filters within a window by group. (Plain bit vectors would read 10,000 bits per field.
//! Aggregated ones, after Baboescu and Varghese, need the same sorting to be sparse.)
//!
//! Fields with few cases are combined in advance: a row for each combination of their cases (recursive flow
//! classification, Gupta and McKeown, SIGCOMM 1999). This reduces a dozen fields to four to six rows to be
//! ANDed.
//!
//! A lookup has almost no jump that depends on a value. It takes the same steps for every packet, except for
//! the address family, whether there are ports, and the blocks that are read. A mispredicted jump costs as
//! much as thirty instructions.

mod build;
mod dimension;

use alloc::vec::Vec;

use self::build::{Builder, Combined};
use self::dimension::{Address, Dimension, FIELDS, Mark, Number, Values};
use crate::classify::Match;
use crate::flow::FlowKey;
use crate::slot::Slot;

/// Up to this many blocks are sorted by rank and all read, whatever the rows contain.
const FEW_BLOCKS: usize = 3;

/// The number of blocks in a window.
const WINDOW: usize = 8;

/// The maximum number of blocks. Each has a bit in the first word of a row.
pub(super) const MOST_BLOCKS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(align(64))]
struct Block<const WORDS: usize>([u64; WORDS]);

/// A bitmap with blocks of `WORDS` words: 8, which is a cache line, or 1 if all filters fit into one word.
#[derive(Debug)]
pub(super) struct Bitmap<const WORDS: usize> {
    /// The lowest rank in the bitmap.
    pub(super) best: u32,
    addresses: Vec<Part<Address>>,
    marks: Vec<Part<Mark>>,
    numbers: Vec<Part<Number>>,
    /// The index in `rows` at which those of each group begin.
    groups: [u32; FIELDS],
    /// The number of groups.
    count: usize,
    /// The rows: first a word that says which blocks have bits, then the numbers of the blocks.
    rows: Vec<u32>,
    /// One bit for each block of a row.
    all: u32,
    has_few_blocks: bool,
    /// Whether the rows contain all conditions of all filters. They don't contain those on bytes.
    is_exact: bool,
    blocks: Vec<Block<WORDS>>,
    /// The rank of the filter of each bit, ascending within a block.
    ranks: Vec<u32>,
}

/// A field's contribution to the choice of its group's row.
#[derive(Debug)]
struct Part<D> {
    field: D,
    group: usize,
    /// The distance between the rows of the field's cases.
    stride: u32,
}

impl<const WORDS: usize> Bitmap<WORDS> {
    /// Builds a bitmap of filters and their ranks, by ascending rank. There must be at least one, and no more
    /// than fit into the maximum number of blocks.
    pub(super) fn new(mut filters: Vec<(u32, &Match)>) -> Bitmap<WORDS> {
        let best = filters[0].0;
        let width = filters.len().div_ceil(WORDS * 64);
        if width > FEW_BLOCKS {
            for window in filters.chunks_mut(WINDOW * WORDS * 64) {
                window.sort_by_cached_key(|(rank, condition)| build::neighbourhood(condition, *rank));
            }
            for block in filters.chunks_mut(WORDS * 64) {
                block.sort_unstable_by_key(|(rank, _)| *rank);
            }
        }
        let conditions: Vec<&Match> = filters.iter().map(|(_, condition)| *condition).collect();
        let mut bitmap = Bitmap {
            best,
            addresses: Vec::new(),
            marks: Vec::new(),
            numbers: Vec::new(),
            groups: [0; FIELDS],
            count: 0,
            rows: Vec::new(),
            all: u32::MAX >> (MOST_BLOCKS - width),
            has_few_blocks: width <= FEW_BLOCKS,
            is_exact: conditions.iter().all(|condition| condition.bytes.is_empty()),
            blocks: Vec::new(),
            ranks: filters.iter().map(|(rank, _)| *rank).collect(),
        };
        let mut builder = Builder::new(&conditions, width);
        for group in builder.groups() {
            bitmap.add(group, width as u32 + 1);
        }
        bitmap.rows = builder.rows;
        bitmap.blocks = builder.blocks;
        bitmap
    }

    /// Adds a group whose rows have the distance `stride`.
    fn add(&mut self, combined: Combined, mut stride: u32) {
        let group = self.count;
        for (dimension, cases) in combined.fields {
            match dimension {
                Dimension::Address(field) => self.addresses.push(Part { field, group, stride }),
                Dimension::Mark(field) => self.marks.push(Part { field, group, stride }),
                Dimension::Number(field) => self.numbers.push(Part { field, group, stride }),
            }
            stride *= cases as u32;
        }
        self.groups[group] = combined.start;
        self.count += 1;
    }

    /// Returns the lowest rank below `best` of a filter that matches, otherwise `best`. `matches` returns
    /// whether all conditions of a rank hold.
    #[inline]
    pub(super) fn find(
        &self,
        packet: &Slot,
        headers: Option<&FlowKey>,
        best: u32,
        matches: impl Fn(u32) -> bool,
    ) -> u32 {
        match self.is_exact {
            true => self.search(packet, headers, best, |_| true),
            false => self.search(packet, headers, best, matches),
        }
    }

    #[inline(always)]
    fn search(
        &self,
        packet: &Slot,
        headers: Option<&FlowKey>,
        mut best: u32,
        matches: impl Fn(u32) -> bool,
    ) -> u32 {
        let values = Values::of(packet, headers);
        let mut rows = self.groups;
        for part in &self.addresses {
            rows[part.group] += part.field.case(&values) * part.stride;
        }
        for part in &self.marks {
            rows[part.group] += part.field.case(&values) * part.stride;
        }
        for part in &self.numbers {
            rows[part.group] += part.field.case(&values) * part.stride;
        }
        let rows = &rows[..self.count];
        let mut blocks = self.all;
        if !self.has_few_blocks {
            blocks = rows
                .iter()
                .fold(blocks, |blocks, row| blocks & self.rows[*row as usize]);
        }
        while blocks != 0 {
            let block = blocks.trailing_zeros();
            blocks &= blocks - 1;
            let ranks = &self.ranks[block as usize * WORDS * 64..];
            if ranks[0] >= best {
                continue;
            }
            let mut agreed = self.agreed(block, rows);
            // Bits after the last filter have no rank.
            while let Some(bit) = first_bit(&agreed)
                && let Some(rank) = ranks.get(bit).copied().filter(|rank| *rank < best)
            {
                if matches(rank) {
                    best = rank;
                    break;
                }
                agreed[bit / 64] &= !(1 << (bit % 64));
            }
        }
        best
    }

    /// Returns the filters of a block that are in all rows.
    #[inline(always)]
    fn agreed(&self, block: u32, rows: &[u32]) -> [u64; WORDS] {
        let mut agreed = [u64::MAX; WORDS];
        for row in rows {
            let number = self.rows[(row + 1 + block) as usize];
            let bits = &self.blocks[number as usize].0;
            for (word, agreed) in agreed.iter_mut().enumerate() {
                *agreed &= bits[word];
            }
        }
        agreed
    }
}

// Not inlined, so that the compiler combines the words two at a time.
#[inline(never)]
fn first_bit<const WORDS: usize>(words: &[u64; WORDS]) -> Option<usize> {
    let mut with_bits = 0;
    for (place, word) in words.iter().enumerate() {
        with_bits |= usize::from(*word != 0) << place;
    }
    let word = with_bits.trailing_zeros() as usize;
    Some(word * 64 + words.get(word)?.trailing_zeros() as usize)
}
