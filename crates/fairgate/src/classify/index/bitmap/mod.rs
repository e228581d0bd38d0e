//! Filters of every kind, a bit for each: each field of the packet says which filters it agrees with, and what all fields agree with matches
//! (the bit vectors of Lakshman and Stiliadis, SIGCOMM 1998).
//!
//! ```text
//!   field's value --table, trie--> row      a row: which blocks of 512 filters have bits, and for each the number of its bits
//!   row of source        [ 101 | 0 | 7 | 3 ]
//!   row of port          [ 111 | 4 | 3 | 3 ]      of a block where one field has no bits nothing is read
//!                                  |
//!                         blocks[7] & blocks[3] ...        512 bits, a cache line, ANDed at once
//! ```
//!
//! Equal blocks are stored once. Within a block bits rise by rank: the lowest is the one that counts.
//!
//! Which filters share a block decides over how many are read. By rank alone the first that has a bit ends the search, but
//! filters that match little make it read them all; with those together that leave the same fields open, in the order
//! of addresses, most blocks of most rows are all or none, but what matches often is found in many of them. So it is the one
//! between windows of eight blocks, and the other within. (Plain bit vectors would read 10,000 bits a field; aggregated ones,
//! after Baboescu and Varghese, need the same sorting to be sparse.)
//!
//! Fields of which filters tell few values apart are combined beforehand: a row for each combination of their cases
//! (recursive flow classification, Gupta and McKeown, SIGCOMM 1999). A dozen fields so become four to six rows to be ANDed.
//!
//! No jump depends on a value: a look takes the same steps for every packet, but for its family, whether it has ports, and the
//! blocks that are read. Guessed wrong, a jump costs as much as thirty instructions.

mod build;
mod dimension;

use alloc::vec::Vec;

use self::build::{Builder, Combined};
use self::dimension::{Address, Dimension, FIELDS, Mark, Number, Values};
use crate::classify::Match;
use crate::flow::FlowKey;
use crate::slot::Slot;

/// So many blocks are in the order of rank and all read, whatever the rows say.
const FEW_BLOCKS: usize = 3;

/// Blocks of one window.
const WINDOW: usize = 8;

/// Most blocks: one bit each in a row's first word.
pub(super) const MOST_BLOCKS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(align(64))]
struct Block<const WORDS: usize>([u64; WORDS]);

/// With blocks of so many words: 8, a cache line; or 1 where all filters fit into it.
#[derive(Debug)]
pub(super) struct Bitmap<const WORDS: usize> {
    /// The lowest rank in the bitmap.
    pub(super) best: u32,
    addresses: Vec<Part<Address>>,
    marks: Vec<Part<Mark>>,
    numbers: Vec<Part<Number>>,
    /// Where in `rows` those of each group begin.
    groups: [u32; FIELDS],
    /// How many groups there are.
    count: usize,
    /// Of each row, which of its blocks have bits, then the numbers of its blocks.
    rows: Vec<u32>,
    /// A bit for each block of a row.
    all: u32,
    has_few_blocks: bool,
    blocks: Vec<Block<WORDS>>,
    /// Of the filter of each bit, rising within a block.
    ranks: Vec<u32>,
}

/// A field's part in the choice of its group's row.
#[derive(Debug)]
struct Part<D> {
    field: D,
    group: usize,
    /// How far the rows of the field's cases are apart.
    stride: u32,
}

impl<const WORDS: usize> Bitmap<WORDS> {
    /// Of filters and their ranks, rising. At least one, and as many as most blocks hold.
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

    /// Adds a group whose rows are so far apart.
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

    /// The lowest rank below `best` of a filter that matches, else `best`.
    pub(super) fn find(&self, packet: &Slot, headers: Option<&FlowKey>, mut best: u32) -> u32 {
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
            if let Some(bit) = first_bit(&self.agreed(block, rows)) {
                best = best.min(ranks[bit]);
            }
        }
        best
    }

    /// The filters of a block that all rows agree with.
    #[inline(always)]
    fn agreed(&self, block: u32, rows: &[u32]) -> [u64; WORDS] {
        let mut agreed = [u64::MAX; WORDS];
        for row in rows {
            let number = self.rows[(row + 1 + block) as usize];
            let bits = &self.blocks[number as usize].0;
            for (agreed, bits) in agreed.iter_mut().zip(bits) {
                *agreed &= bits;
            }
        }
        agreed
    }
}

/// The lowest bit of all words. Out of line, so that the words are made two at a time.
#[inline(never)]
fn first_bit<const WORDS: usize>(words: &[u64; WORDS]) -> Option<usize> {
    let has_bits = |set: usize, (place, word): (usize, &u64)| set | usize::from(*word != 0) << place;
    let word = words.iter().enumerate().fold(0, has_bits).trailing_zeros() as usize;
    Some(word * 64 + words.get(word)?.trailing_zeros() as usize)
}
