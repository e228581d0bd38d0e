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

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::NONE;
use super::trie::{Leaf, Trie};
use crate::classify::{Match, Prefix};
use crate::flow::FlowKey;
use crate::flow::ethertype::{IPV4, IPV6};
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

/// A field, and for each of its values the case that it is: a number below the number of its distinct rows.
#[derive(Debug)]
enum Dimension {
    Address {
        field: AddressField,
        v4: Trie,
        v6: Trie,
        /// Of packets without such an address.
        none: u32,
    },
    Short {
        field: ShortField,
        /// The page of each high byte, and in it the case of each low byte. The last is of packets without the field.
        pages: Box<[u16; 257]>,
        cases: Vec<[u32; 256]>,
    },
    /// The whole mark, where no filter asks for a part of it.
    Mark(Trie),
    Byte {
        field: ByteField,
        /// The last is of packets without the field.
        cases: Box<[u32; 257]>,
    },
}

/// The fields of a packet as dimensions look them up. Those that it does not have are one more than their largest value.
struct Values {
    shorts: [u32; 5],
    bytes: [u32; 7],
    mark: u32,
}

const NO_SHORT: u32 = 1 << 16;
const NO_BYTE: u32 = 1 << 8;

impl Values {
    #[inline]
    fn of(packet: &Packet, headers: Option<&FlowKey>) -> Values {
        let mark = packet.mark.to_le_bytes().map(u32::from);
        let (class, priority) = (packet.traffic_class().into(), packet.priority.into());
        let (shorts, protocol) = match headers {
            Some(key) => {
                let port = |port: u16| if key.has_ports() { port.into() } else { NO_SHORT };
                let (source, destination) = (port(key.source_port), port(key.destination_port));
                let [ethertype, vlan, interface] = [key.ethertype, key.vlan, key.interface].map(u32::from);
                (
                    [source, destination, ethertype, vlan, interface],
                    key.protocol.into(),
                )
            }
            None => ([NO_SHORT; 5], NO_BYTE),
        };
        Values {
            shorts,
            bytes: [protocol, class, priority, mark[0], mark[1], mark[2], mark[3]],
            mark: packet.mark,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum AddressField {
    Source,
    Destination,
}

/// Fields of 16 bits, in the order of [`Values`].
#[derive(Clone, Copy, Debug)]
enum ShortField {
    SourcePort,
    DestinationPort,
    Ethertype,
    Vlan,
    Interface,
}

/// Fields of 8 bits, in the order of [`Values`]; a mark is four of them, the lowest byte first, for its masks take bytes
/// apart.
#[derive(Clone, Copy, Debug)]
enum ByteField {
    Protocol,
    TrafficClass,
    Priority,
    Mark0,
    Mark1,
    Mark2,
    Mark3,
}

/// How many fields there are, and so at most groups.
const FIELDS: usize = 14;

/// Fields are combined while there are no more cases than this.
const MOST_CASES: usize = 2048;

impl AddressField {
    fn asked(self, condition: &Match) -> Option<Prefix> {
        match self {
            AddressField::Source => condition.source,
            AddressField::Destination => condition.destination,
        }
    }

    #[inline]
    fn of(self, key: &FlowKey) -> u128 {
        u128::from_be_bytes(match self {
            AddressField::Source => key.source,
            AddressField::Destination => key.destination,
        })
    }
}

impl ShortField {
    fn asked(self, condition: &Match) -> Option<RangeInclusive<u16>> {
        let single = |value: Option<u16>| value.map(|value| value..=value);
        match self {
            ShortField::SourcePort => condition.source_port.clone(),
            ShortField::DestinationPort => condition.destination_port.clone(),
            ShortField::Ethertype => single(condition.ethertype),
            ShortField::Vlan => single(condition.vlan),
            ShortField::Interface => single(condition.interface),
        }
    }
}

impl ByteField {
    /// How far to shift a mark for the byte; `None` for what is no byte of the mark.
    fn shift(self) -> Option<u32> {
        (self as u32)
            .checked_sub(ByteField::Mark0 as u32)
            .map(|byte| 8 * byte)
    }

    /// Whether the filter asks for the field at all.
    fn is_asked(self, condition: &Match) -> bool {
        match self {
            ByteField::Protocol => condition.protocol.is_some(),
            ByteField::TrafficClass => condition.dscp.is_some() || condition.traffic_class.is_some(),
            ByteField::Priority => condition.priority.is_some(),
            _ => self
                .shift()
                .zip(condition.mark)
                .is_some_and(|(shift, bits)| bits.mask() >> shift & 0xff != 0),
        }
    }

    /// Whether the filter agrees with `value`.
    fn agrees(self, condition: &Match, value: u8) -> bool {
        match self {
            ByteField::Protocol => condition.protocol.is_none_or(|protocol| protocol == value),
            ByteField::TrafficClass => {
                let dscp = condition.dscp.as_ref();
                dscp.is_none_or(|range| range.contains(&(value >> 2)))
                    && condition.traffic_class.is_none_or(|bits| bits.matches(value))
            }
            ByteField::Priority => condition
                .priority
                .as_ref()
                .is_none_or(|range| range.contains(&value)),
            _ => self.shift().zip(condition.mark).is_none_or(|(shift, bits)| {
                u32::from(value) & bits.mask() >> shift & 0xff == bits.value() >> shift & 0xff
            }),
        }
    }
}

impl<const WORDS: usize> Bitmap<WORDS> {
    /// Of filters and their ranks. At least one.
    pub(super) fn new(mut filters: Vec<(u32, &Match)>) -> Bitmap<WORDS> {
        let best = filters.iter().map(|(rank, _)| *rank).min().unwrap_or(NONE);
        filters.sort_by_cached_key(|(rank, condition)| neighbourhood(condition, *rank));
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

impl Dimension {
    /// The case that a packet is.
    #[inline(always)]
    fn case(&self, values: &Values, headers: Option<&FlowKey>) -> u32 {
        match self {
            Dimension::Mark(trie) => trie.row(u128::from(values.mark) << 96),
            Dimension::Byte { field, cases } => cases[values.bytes[*field as usize] as usize],
            Dimension::Short { field, pages, cases } => {
                let value = values.shorts[*field as usize] as usize;
                cases[usize::from(pages[value >> 8])][value & 0xff]
            }
            Dimension::Address { field, v4, v6, none } => match headers {
                Some(key) if key.ethertype == IPV4 => {
                    let address = field.of(key);
                    // Only a broken header leaves another address in an IPv4 packet.
                    if address >> 32 == 0xffff {
                        v4.row(address << 96)
                    } else {
                        *none
                    }
                }
                Some(key) if key.ethertype == IPV6 => v6.row(field.of(key)),
                _ => *none,
            },
        }
    }
}

/// The order of bits: by which fields are open, then by addresses, so that rows are sparse; then by rank.
fn neighbourhood(condition: &Match, rank: u32) -> (u8, u128, u128, u32) {
    let open = [
        condition.destination.is_none(),
        condition.source.is_none(),
        condition.destination_port.is_none(),
        condition.source_port.is_none(),
        condition.mark.is_none(),
        condition.protocol.is_none(),
        condition.dscp.is_none() && condition.traffic_class.is_none(),
    ];
    let signature = open
        .iter()
        .fold(0, |bits, is_open| bits << 1 | u8::from(*is_open));
    let address = |prefix: Option<Prefix>| prefix.map_or(0, |prefix| prefix.bits().0);
    (
        signature,
        address(condition.destination),
        address(condition.source),
        rank,
    )
}

/// What a bitmap is made with.
struct Builder<'a, const WORDS: usize> {
    filters: &'a [&'a Match],
    width: usize,
    blocks: Vec<Block<WORDS>>,
    rows: Vec<u32>,
    present: Vec<u64>,
    known_blocks: HashMap<Block<WORDS>, u32>,
    known_rows: HashMap<Vec<u32>, u32>,
}

/// A bit for each filter.
type Bits = Vec<u64>;

/// The cases of a field or of several: what each agrees with, each once.
#[derive(Default)]
struct Cases {
    bits: Vec<Bits>,
    known: HashMap<Bits, u32>,
}

impl Cases {
    /// The number of the case with these bits.
    fn number(&mut self, bits: &Bits) -> u32 {
        if let Some(known) = self.known.get(bits) {
            return *known;
        }
        let number = self.bits.len() as u32;
        self.bits.push(bits.clone());
        self.known.insert(bits.clone(), number);
        number
    }
}

impl<'a, const WORDS: usize> Builder<'a, WORDS> {
    fn new(filters: &'a [&'a Match], width: usize) -> Builder<'a, WORDS> {
        let nothing = Block([0; WORDS]);
        Builder {
            filters,
            width,
            known_blocks: HashMap::from([(nothing, NOTHING)]),
            blocks: vec![nothing],
            rows: Vec::new(),
            present: Vec::new(),
            known_rows: HashMap::new(),
        }
    }

    /// All fields that some filter asks for, in groups of few cases.
    fn groups(&mut self) -> Vec<Group> {
        let mut groups: Vec<(Group, Vec<Bits>)> = Vec::new();
        for (dimension, cases) in self.dimensions() {
            let room = groups
                .iter_mut()
                .find(|(_, other)| other.len() * cases.len() <= MOST_CASES);
            match room {
                Some((group, so_far)) => *so_far = combine(group, so_far, dimension, &cases),
                None => {
                    let group = Group {
                        first: dimension,
                        others: Vec::new(),
                        rows: Vec::new(),
                    };
                    groups.push((group, cases));
                }
            }
        }
        let with_rows = |(mut group, cases): (Group, Vec<Bits>)| {
            group.rows = cases.iter().map(|bits| self.row(bits)).collect();
            group
        };
        groups.into_iter().map(with_rows).collect()
    }

    fn dimensions(&self) -> Vec<(Dimension, Vec<Bits>)> {
        let mut dimensions = Vec::new();
        for field in [AddressField::Destination, AddressField::Source] {
            dimensions.extend(self.addresses(field));
        }
        use ShortField::{DestinationPort, Ethertype, Interface, SourcePort, Vlan};
        for field in [DestinationPort, SourcePort, Vlan, Interface, Ethertype] {
            dimensions.extend(self.shorts(field));
        }
        use ByteField::{Mark0, Mark1, Mark2, Mark3, Priority, Protocol, TrafficClass};
        let masks = |filter: &&Match| filter.mark.is_none_or(|bits| bits.mask() == u32::MAX);
        match self.filters.iter().all(|filter| masks(filter)) {
            true => dimensions.extend(self.marks()),
            false => dimensions.extend(
                [Mark0, Mark1, Mark2, Mark3]
                    .into_iter()
                    .filter_map(|field| self.bytes(field)),
            ),
        }
        for field in [Protocol, TrafficClass, Priority] {
            dimensions.extend(self.bytes(field));
        }
        debug_assert!(dimensions.len() <= FIELDS);
        dimensions
    }

    /// The bits of the filters that are so.
    fn bits(&self, is_so: impl Fn(&Match) -> bool) -> Bits {
        let mut bits = vec![0; self.width * WORDS];
        for (bit, filter) in self.filters.iter().enumerate() {
            bits[bit / 64] |= u64::from(is_so(filter)) << (bit % 64);
        }
        self.fill_up(&mut bits);
        bits
    }

    /// Bits behind the last filter are as the one of the last: a block at the end, too, can be all or none. They have no
    /// rank, so that nothing comes of them.
    fn fill_up(&self, bits: &mut Bits) {
        let count = self.filters.len();
        let last = bits[(count - 1) / 64] >> ((count - 1) % 64) & 1;
        for bit in count..bits.len() * 64 {
            let mask = 1 << (bit % 64);
            bits[bit / 64] = bits[bit / 64] & !mask | if last == 1 { mask } else { 0 };
        }
    }

    /// The row with these bits.
    fn row(&mut self, bits: &Bits) -> u32 {
        let row: Vec<u32> = bits
            .chunks(WORDS)
            .map(|words| {
                let block = Block(words.try_into().expect("rows are whole blocks"));
                let blocks = &mut self.blocks;
                *self.known_blocks.entry(block).or_insert_with(|| {
                    blocks.push(block);
                    (blocks.len() - 1) as u32
                })
            })
            .collect();
        if let Some(known) = self.known_rows.get(&row) {
            return *known;
        }
        let number = self.present.len() as u32;
        let has_bits =
            |present: u64, (block, number): (usize, &u32)| present | u64::from(*number != NOTHING) << block;
        self.present.push(row.iter().enumerate().fold(0, has_bits));
        self.rows.extend(&row);
        self.known_rows.insert(row, number);
        number
    }

    fn bytes(&self, field: ByteField) -> Option<(Dimension, Vec<Bits>)> {
        if !self.filters.iter().any(|filter| field.is_asked(filter)) {
            return None;
        }
        let mut cases = Cases::default();
        let none = cases.number(&self.bits(|filter| !field.is_asked(filter)));
        let case_of = |value: u8| cases.number(&self.bits(|filter| field.agrees(filter, value)));
        let mut of_value: Vec<u32> = (0..=u8::MAX).map(case_of).collect();
        of_value.push(none);
        let dimension = Dimension::Byte {
            field,
            cases: of_value.try_into().expect("there are 256 bytes and none"),
        };
        Some((dimension, cases.bits))
    }

    fn shorts(&self, field: ShortField) -> Option<(Dimension, Vec<Bits>)> {
        // At each value the filters whose range begins or ends there, whose bits flip.
        let mut flips: Vec<(u32, usize)> = Vec::new();
        for (bit, filter) in self.filters.iter().enumerate() {
            if let Some(range) = field.asked(filter) {
                flips.push((u32::from(*range.start()), bit));
                flips.push((u32::from(*range.end()) + 1, bit));
            }
        }
        if flips.is_empty() {
            return None;
        }
        flips.sort_unstable();
        let mut cases = Cases::default();
        let mut bits = self.bits(|filter| field.asked(filter).is_none());
        let none = cases.number(&bits);
        let mut flat = vec![none; NO_SHORT as usize + 256];
        let mut flips = flips.into_iter().peekable();
        while let Some((value, bit)) = flips.next() {
            bits[bit / 64] ^= 1 << (bit % 64);
            let next = flips.peek().map_or(NO_SHORT, |(next, _)| *next);
            if next > value && value < NO_SHORT {
                self.fill_up(&mut bits);
                flat[value as usize..next.min(NO_SHORT) as usize].fill(cases.number(&bits));
            }
        }
        let mut known: HashMap<[u32; 256], u16> = HashMap::new();
        let mut pages = Box::new([0; 257]);
        let mut distinct = Vec::new();
        for (page, values) in pages.iter_mut().zip(flat.chunks(256)) {
            let values: [u32; 256] = values.try_into().expect("pages are whole");
            *page = *known.entry(values).or_insert_with(|| {
                distinct.push(values);
                (distinct.len() - 1) as u16
            });
        }
        let dimension = Dimension::Short {
            field,
            pages,
            cases: distinct,
        };
        Some((dimension, cases.bits))
    }

    /// Marks of which all bits are asked for: prefixes of full length.
    fn marks(&self) -> Option<(Dimension, Vec<Bits>)> {
        let bit_of =
            |(bit, filter): (usize, &&Match)| Some((u128::from(filter.mark?.value()) << 96, 32, bit));
        let mut asked: Vec<_> = self.filters.iter().enumerate().filter_map(bit_of).collect();
        if asked.is_empty() {
            return None;
        }
        asked.sort_unstable();
        let mut cases = Cases::default();
        let open = self.bits(|filter| filter.mark.is_none());
        let none = cases.number(&open);
        let trie = Trie::new(&self.leaves(&asked, &open, &mut cases), none);
        Some((Dimension::Mark(trie), cases.bits))
    }

    fn addresses(&self, field: AddressField) -> Option<(Dimension, Vec<Bits>)> {
        if !self.filters.iter().any(|filter| field.asked(filter).is_some()) {
            return None;
        }
        let mut cases = Cases::default();
        let open = self.bits(|filter| field.asked(filter).is_none());
        let none = cases.number(&open);
        let mut of_family = |ethertype: u16| {
            let mut asked: Vec<(u128, u8, usize)> = Vec::new();
            for (bit, filter) in self.filters.iter().enumerate() {
                let Some(prefix) = field.asked(filter) else {
                    continue;
                };
                let (address, _, family) = prefix.bits();
                if family == ethertype {
                    let aligned = if family == IPV4 { address << 96 } else { address };
                    asked.push((aligned, prefix.length(), bit));
                }
            }
            asked.sort_unstable();
            Trie::new(&self.leaves(&asked, &open, &mut cases), none)
        };
        let dimension = Dimension::Address {
            field,
            v4: of_family(IPV4),
            v6: of_family(IPV6),
            none,
        };
        Some((dimension, cases.bits))
    }

    /// The case of each prefix: the filters that ask for it, for a shorter one that holds it, or for none.
    fn leaves(&self, asked: &[(u128, u8, usize)], open: &Bits, cases: &mut Cases) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        // The prefixes that hold the present one, the shortest first.
        let mut around: Vec<(u128, u8, Bits)> = Vec::new();
        for same in asked.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (address, length, _) = same[0];
            let holds = |(other, length, _): &(u128, u8, Bits)| match length {
                0 => true,
                length => (address ^ other) >> (128 - u32::from(*length)) == 0,
            };
            while around.last().is_some_and(|last| !holds(last)) {
                around.pop();
            }
            let mut bits = around.last().map_or(open, |(_, _, bits)| bits).clone();
            for (_, _, bit) in same {
                bits[bit / 64] |= 1 << (bit % 64);
            }
            self.fill_up(&mut bits);
            leaves.push(Leaf {
                address,
                length,
                row: cases.number(&bits),
            });
            around.push((address, length, bits));
        }
        leaves
    }
}

/// Adds a field to a group, and returns the cases that there are then.
fn combine(group: &mut Group, so_far: &[Bits], with: Dimension, cases: &[Bits]) -> Vec<Bits> {
    let mut combined = Cases::default();
    let mut table = Vec::with_capacity(so_far.len() * cases.len());
    for bits in so_far {
        for other in cases {
            let both: Bits = bits.iter().zip(other).map(|(a, b)| a & b).collect();
            table.push(combined.number(&both));
        }
    }
    group.others.push(Combination {
        with,
        cases: cases.len(),
        table,
    });
    combined.bits
}
