//! Builds a bitmap.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Block;
use super::dimension::{Address, AddressField, Dimension, FIELDS, Mark, NO_NUMBER, Number, NumberField};
use crate::classify::index::trie::{Leaf, Trie};
use crate::classify::{Match, Prefix};
use crate::flow::ethertype::{IPV4, IPV6};

/// Fields are combined while there are at most this many cases.
const MOST_CASES: usize = 2048;

/// Returns the sort key of filters in a window: first which fields are open, then addresses, so that rows are
/// sparse, and then rank.
pub(super) fn neighbourhood(condition: &Match, rank: u32) -> (u8, u128, u128, u32) {
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

/// The state while a bitmap is built.
pub(super) struct Builder<'a, const WORDS: usize> {
    filters: &'a [&'a Match],
    width: usize,
    pub(super) blocks: Vec<Block<WORDS>>,
    pub(super) rows: Vec<u32>,
    known_blocks: BTreeMap<Block<WORDS>, u32>,
}

/// The fields of a group with their numbers of cases, and the index at which the rows of their combinations
/// begin.
pub(super) struct Combined {
    pub(super) fields: Vec<(Dimension, usize)>,
    pub(super) start: u32,
}

/// One bit for each filter.
type Bits = Vec<u64>;

/// The distinct cases of one or more fields, each with the filters that accept it.
#[derive(Default)]
struct Cases {
    bits: Vec<Bits>,
    known: BTreeMap<Bits, u32>,
}

impl Cases {
    /// Returns the number of the case with these bits.
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
    pub(super) fn new(filters: &'a [&'a Match], width: usize) -> Builder<'a, WORDS> {
        Builder {
            filters,
            width,
            known_blocks: BTreeMap::new(),
            blocks: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Returns all fields on which some filter has a condition, in groups with few cases.
    pub(super) fn groups(&mut self) -> Vec<Combined> {
        let mut groups: Vec<(Combined, Vec<Bits>)> = Vec::new();
        for (dimension, cases) in self.dimensions() {
            let room = groups
                .iter_mut()
                .find(|(_, other)| other.len() * cases.len() <= MOST_CASES);
            match room {
                Some((group, so_far)) => {
                    group.fields.push((dimension, cases.len()));
                    // The case of the first field changes fastest.
                    *so_far = cases
                        .iter()
                        .flat_map(|own| so_far.iter().map(|bits| both(bits, own)))
                        .collect();
                }
                None => {
                    let group = Combined {
                        fields: vec![(dimension, cases.len())],
                        start: 0,
                    };
                    groups.push((group, cases));
                }
            }
        }
        let with_rows = |(mut group, cases): (Combined, Vec<Bits>)| {
            group.start = self.rows.len() as u32;
            cases.iter().for_each(|bits| self.row(bits));
            group
        };
        groups.into_iter().map(with_rows).collect()
    }

    fn dimensions(&self) -> Vec<(Dimension, Vec<Bits>)> {
        let mut dimensions = Vec::new();
        for field in [AddressField::Destination, AddressField::Source] {
            dimensions.extend(self.addresses(field));
        }
        use NumberField::{DestinationPort, Ethertype, Interface, OuterEthertype, SourcePort, Vlan};
        let numbers = [
            DestinationPort,
            SourcePort,
            Vlan,
            Interface,
            Ethertype,
            OuterEthertype,
        ];
        for field in numbers {
            dimensions.extend(self.shorts(field));
        }
        use NumberField::{Mark0, Mark1, Mark2, Mark3, Priority, Protocol, TrafficClass};
        let are_whole = |filter: &&Match| filter.mark.is_none_or(|bits| bits.mask() == u32::MAX);
        match self.filters.iter().all(are_whole) {
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

    /// Returns the bits of the filters for which `is_so` is true.
    fn bits(&self, is_so: impl Fn(&Match) -> bool) -> Bits {
        let mut bits = vec![0; self.width * WORDS];
        for (bit, filter) in self.filters.iter().enumerate() {
            bits[bit / 64] |= u64::from(is_so(filter)) << (bit % 64);
        }
        self.fill_up(&mut bits);
        bits
    }

    /// Sets the bits after the last filter to the last filter's bit, so that the last block can also be all
    /// ones or all zeros. They are never the lowest bit of their block, because the last filter accepts
    /// whatever they accept.
    fn fill_up(&self, bits: &mut Bits) {
        let count = self.filters.len();
        let last = bits[(count - 1) / 64] >> ((count - 1) % 64) & 1;
        for bit in count..bits.len() * 64 {
            let mask = 1 << (bit % 64);
            bits[bit / 64] = bits[bit / 64] & !mask | if last == 1 { mask } else { 0 };
        }
    }

    /// Adds a row with these bits.
    fn row(&mut self, bits: &Bits) {
        let row = self.rows.len();
        self.rows.push(0);
        for (place, words) in bits.chunks(WORDS).enumerate() {
            self.rows[row] |= u32::from(words.iter().any(|word| *word != 0)) << place;
            let block = Block(words.try_into().expect("rows are whole blocks"));
            let blocks = &mut self.blocks;
            let number = *self.known_blocks.entry(block).or_insert_with(|| {
                blocks.push(block);
                (blocks.len() - 1) as u32
            });
            self.rows.push(number);
        }
    }

    fn bytes(&self, field: NumberField) -> Option<(Dimension, Vec<Bits>)> {
        if !self.filters.iter().any(|filter| field.is_asked(filter)) {
            return None;
        }
        let mut cases = Cases::default();
        let none = cases.number(&self.bits(|filter| !field.is_asked(filter)));
        let case_of = |value: u8| cases.number(&self.bits(|filter| field.agrees(filter, value)));
        let mut of_value: Vec<u32> = (0..=u8::MAX).map(case_of).collect();
        of_value.resize(512, none);
        let mut pages = Box::new([256; 257]);
        pages[0] = 0;
        let number = Number {
            field,
            pages,
            cases: of_value,
        };
        Some((Dimension::Number(number), cases.bits))
    }

    fn shorts(&self, field: NumberField) -> Option<(Dimension, Vec<Bits>)> {
        // At each value, the filters whose range begins or ends there. Their bits flip.
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
        let mut flat = vec![none; NO_NUMBER as usize + 256];
        let mut flips = flips.into_iter().peekable();
        while let Some((value, bit)) = flips.next() {
            bits[bit / 64] ^= 1 << (bit % 64);
            let next = flips.peek().map_or(NO_NUMBER, |(next, _)| *next);
            if next > value && value < NO_NUMBER {
                self.fill_up(&mut bits);
                flat[value as usize..next.min(NO_NUMBER) as usize].fill(cases.number(&bits));
            }
        }
        let mut known: BTreeMap<&[u32], u32> = BTreeMap::new();
        let mut pages = Box::new([0; 257]);
        let mut distinct = Vec::new();
        for (page, values) in pages.iter_mut().zip(flat.chunks(256)) {
            *page = *known.entry(values).or_insert_with(|| {
                distinct.extend(values);
                (distinct.len() - 256) as u32
            });
        }
        let number = Number {
            field,
            pages,
            cases: distinct,
        };
        Some((Dimension::Number(number), cases.bits))
    }

    /// Returns the dimension of marks that are matched as a whole: prefixes of full length.
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
        let leaves = self.leaves(&asked, &open, &mut cases);
        let trie = Trie::new(&leaves, none, |bits| (bits >> 96) as u32);
        Some((Dimension::Mark(Mark(trie)), cases.bits))
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
            self.leaves(&asked, &open, &mut cases)
        };
        let (v4, v6) = (of_family(IPV4), of_family(IPV6));
        let address = Address {
            field,
            v4: Trie::new(&v4, none, |bits| (bits >> 96) as u32),
            v6: Trie::new(&v6, none, |bits| bits),
            none,
        };
        Some((Dimension::Address(address), cases.bits))
    }

    /// Returns the case of each prefix: the filters that match it, a shorter prefix that contains it, or any
    /// address.
    fn leaves(&self, asked: &[(u128, u8, usize)], open: &Bits, cases: &mut Cases) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        // The prefixes that contain the current one, the shortest first.
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
                case: cases.number(&bits),
            });
            around.push((address, length, bits));
        }
        leaves
    }
}

/// Returns the filters that are in both.
fn both(some: &Bits, others: &Bits) -> Bits {
    some.iter()
        .zip(others)
        .map(|(some, others)| some & others)
        .collect()
}
