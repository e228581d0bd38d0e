//! Filters of every kind, a bit for each: each field of the packet says which filters it agrees with, and what all fields agree with matches
//! (the bit vectors of Lakshman and Stiliadis, SIGCOMM 1998).
//!
//! ```text
//!   field's value --table, trie--> row      a row: for each block of 512 filters the number of its bits
//!   row of source        [ 0 | 7 | 3 ]      0: none of the block
//!   row of port          [ 4 | 3 | 3 ]      nothing is read of a block where one field says 0
//!                              |
//!                     blocks[7] & blocks[3] ...        512 bits, a cache line, ANDed at once
//! ```
//!
//! Equal blocks are stored once. Filters that leave the same fields open have their bits side by side, in the order of
//! addresses: so most blocks of most rows are all or none, and of 10,000 filters a handful of blocks is read. (Plain bit vectors
//! would read 10,000 bits a field; aggregated ones, after Baboescu and Varghese, need the same sorting to be sparse.)
//!
//! Fields of which filters tell few values apart are combined beforehand: a table gives for a row of one and a row of the
//! other what both agree with (recursive flow classification, Gupta and McKeown, SIGCOMM 1999). A dozen fields so become
//! four or five rows to be ANDed.

mod build;
mod dimension;

use self::build::Builder;
use self::dimension::{Dimension, FIELDS, Values};
use super::NONE;
use crate::classify::Match;
use crate::flow::FlowKey;
use crate::packet::Packet;

/// The number of the block without bits, which every bitmap has.
const NOTHING: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Block<const WORDS: usize>([u64; WORDS]);

/// With blocks of so many words: 8, a cache line; or 1 where all filters fit into it.
#[derive(Debug)]
pub(super) struct Bitmap<const WORDS: usize> {
    /// The lowest rank in the bitmap.
    pub(super) best: u32,
    /// The most telling first.
    groups: Vec<Group>,
    blocks: Vec<Block<WORDS>>,
    /// Numbers of blocks, `width` to a row.
    rows: Vec<u32>,
    /// Of each row, which of its blocks have bits.
    present: Vec<u64>,
    width: usize,
    ranks: Vec<Ranks<WORDS>>,
}

/// Of a block: the rank of each bit's filter, and the lowest of each word and of all.
#[derive(Debug)]
struct Ranks<const WORDS: usize> {
    of_bit: [[u32; 64]; WORDS],
    best_of_word: [u32; WORDS],
    best: u32,
}

/// Fields that are combined to one row.
#[derive(Debug)]
struct Group {
    first: Dimension,
    others: Vec<Combination>,
    /// The row of each case.
    rows: Vec<u32>,
}

/// A field more: the case for each case so far and each of the field's own.
#[derive(Debug)]
struct Combination {
    with: Dimension,
    cases: usize,
    table: Vec<u32>,
}

impl<const WORDS: usize> Bitmap<WORDS> {
    /// Of filters and their ranks. At least one.
    pub(super) fn new(mut filters: Vec<(u32, &Match)>) -> Bitmap<WORDS> {
        let best = filters.iter().map(|(rank, _)| *rank).min().unwrap_or(NONE);
        filters.sort_by_cached_key(|(rank, condition)| build::neighbourhood(condition, *rank));
        let ranks: Vec<u32> = filters.iter().map(|(rank, _)| *rank).collect();
        let conditions: Vec<&Match> = filters.iter().map(|(_, condition)| *condition).collect();
        let width = filters.len().div_ceil(WORDS * 64);
        let mut builder = Builder::new(&conditions, width);
        let groups = builder.groups();
        Bitmap {
            best,
            groups,
            blocks: builder.blocks,
            rows: builder.rows,
            present: builder.present,
            width,
            ranks: ranks.chunks(WORDS * 64).map(Ranks::of).collect(),
        }
    }

    /// The lowest rank below `best` of a filter that matches, else `best`.
    #[inline]
    pub(super) fn find(&self, packet: &Packet, headers: Option<&FlowKey>, mut best: u32) -> u32 {
        let values = Values::of(packet, headers);
        let mut starts = [0; FIELDS];
        let mut blocks = u64::MAX >> (64 - self.width);
        for (start, group) in starts.iter_mut().zip(&self.groups) {
            let row = group.row(&values, headers);
            blocks &= self.present[row];
            *start = row * self.width;
        }
        let starts = &starts[..self.groups.len().min(FIELDS)];
        while blocks != 0 {
            let block = blocks.trailing_zeros() as usize;
            blocks &= blocks - 1;
            if self.ranks[block].best < best {
                best = self.find_in(block, starts, best);
            }
        }
        best
    }

    #[inline]
    fn find_in(&self, block: usize, starts: &[usize], mut best: u32) -> u32 {
        let ranks = &self.ranks[block];
        let mut agreed = [u64::MAX; WORDS];
        for start in starts {
            let number = self.rows[start + block];
            let bits = &self.blocks[number as usize].0;
            for (agreed, bits) in agreed.iter_mut().zip(bits) {
                *agreed &= bits;
            }
        }
        for (word, &(mut bits)) in agreed.iter().enumerate() {
            if bits == 0 || ranks.best_of_word[word] >= best {
                continue;
            }
            let ranks = &ranks.of_bit[word];
            while bits != 0 {
                best = best.min(ranks[bits.trailing_zeros() as usize]);
                bits &= bits - 1;
            }
        }
        best
    }
}

impl<const WORDS: usize> Ranks<WORDS> {
    /// Of up to a block of ranks.
    fn of(ranks: &[u32]) -> Ranks<WORDS> {
        let mut of_bit = [[NONE; 64]; WORDS];
        let mut best_of_word = [NONE; WORDS];
        for (bit, rank) in ranks.iter().enumerate() {
            of_bit[bit / 64][bit % 64] = *rank;
            best_of_word[bit / 64] = best_of_word[bit / 64].min(*rank);
        }
        Ranks {
            of_bit,
            best_of_word,
            best: best_of_word.into_iter().fold(NONE, u32::min),
        }
    }
}

impl Group {
    /// The row for a packet.
    #[inline]
    fn row(&self, values: &Values, headers: Option<&FlowKey>) -> usize {
        let mut case = self.first.case(values, headers);
        for other in &self.others {
            let own = other.with.case(values, headers) as usize;
            case = other.table[case as usize * other.cases + own];
        }
        self.rows[case as usize] as usize
    }
}
