//! A packet as words, and a filter as the bits of these words that it fixes.
//!
//! ```text
//!   0 1  source                     4  source port | destination port | EtherType | VLAN
//!   2 3  destination                5  mark | interface | protocol | traffic class
//!                                   6  outer EtherType | whether it has headers, ports | priority
//! ```

use crate::classify::{Match, Prefix};
use crate::flow::FlowKey;
use crate::slot::Slot;

/// The number of words.
pub(super) const WORDS: usize = 7;

/// A flag in the last word.
const HAS_HEADERS: u64 = 1 << 8;
const HAS_PORTS: u64 = 1 << 9;

/// The position of a field: its word, and its lowest bit in the word.
type BitPosition = (usize, u32);

const SOURCE_PORT: BitPosition = (4, 48);
const DESTINATION_PORT: BitPosition = (4, 32);
const ETHERTYPE: BitPosition = (4, 16);
const VLAN: BitPosition = (4, 0);
const MARK: BitPosition = (5, 32);
const INTERFACE: BitPosition = (5, 16);
const PROTOCOL: BitPosition = (5, 8);
const TRAFFIC_CLASS: BitPosition = (5, 0);
const OUTER_ETHERTYPE: BitPosition = (6, 16);
const PRIORITY: BitPosition = (6, 0);

/// The fields of a packet that filters match.
pub(super) type Fields = [u64; WORDS];

#[inline]
pub(super) fn fields(packet: &Slot, headers: Option<&FlowKey>) -> Fields {
    let stamped = u64::from(packet.mark) << MARK.1 | u64::from(packet.traffic_class());
    let priority = u64::from(packet.priority);
    let Some(key) = headers else {
        return [0, 0, 0, 0, 0, stamped, priority];
    };
    let [source, destination] = [halves(&key.source), halves(&key.destination)];
    let ports = if key.has_ports() { HAS_PORTS } else { 0 };
    [
        source[0],
        source[1],
        destination[0],
        destination[1],
        u64::from(key.source_port) << SOURCE_PORT.1
            | u64::from(key.destination_port) << DESTINATION_PORT.1
            | u64::from(key.ethertype) << ETHERTYPE.1
            | u64::from(key.vlan),
        stamped | u64::from(key.interface) << INTERFACE.1 | u64::from(key.protocol) << PROTOCOL.1,
        priority | HAS_HEADERS | ports | u64::from(key.outer_ethertype) << OUTER_ETHERTYPE.1,
    ]
}

#[inline]
fn halves(address: &[u8; 16]) -> [u64; 2] {
    let bits = u128::from_be_bytes(*address);
    [(bits >> 64) as u64, bits as u64]
}

/// The bits that a filter fixes. Its other conditions are ranges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    pub(super) value: Fields,
    /// The mask of the fixed bits. It is the same for all filters of a hash table.
    pub(super) mask: Fields,
    /// Whether the filter also has ranges, or conditions on bytes.
    pub(super) has_ranges: bool,
    /// Whether two conditions contradict each other, so that nothing matches.
    pub(super) is_impossible: bool,
}

impl Pattern {
    pub(super) fn of(condition: &Match) -> Pattern {
        let mut pattern = Pattern {
            value: [0; WORDS],
            mask: [0; WORDS],
            has_ranges: false,
            is_impossible: false,
        };
        let headers = [
            pattern.prefix(0, condition.source),
            pattern.prefix(2, condition.destination),
            pattern.exactly(ETHERTYPE, condition.ethertype.map(u64::from), 0xffff),
            pattern.exactly(OUTER_ETHERTYPE, condition.outer_ethertype.map(u64::from), 0xffff),
            pattern.exactly(VLAN, condition.vlan.map(u64::from), 0xffff),
            pattern.exactly(INTERFACE, condition.interface.map(u64::from), 0xffff),
            pattern.exactly(PROTOCOL, condition.protocol.map(u64::from), 0xff),
        ];
        let port =
            |range: &core::ops::RangeInclusive<u16>| (u64::from(*range.start()), u64::from(*range.end()));
        let ports = [
            pattern.range(SOURCE_PORT, condition.source_port.as_ref().map(port), 0xffff),
            pattern.range(
                DESTINATION_PORT,
                condition.destination_port.as_ref().map(port),
                0xffff,
            ),
        ];
        let byte =
            |range: &core::ops::RangeInclusive<u8>| (u64::from(*range.start()), u64::from(*range.end()));
        let (class, class_bit) = TRAFFIC_CLASS;
        pattern.range((class, class_bit + 2), condition.dscp.as_ref().map(byte), 0x3f);
        pattern.range(PRIORITY, condition.priority.as_ref().map(byte), 0xff);
        if let Some(bits) = condition.traffic_class {
            pattern.set(TRAFFIC_CLASS, bits.value().into(), bits.mask().into());
        }
        pattern.has_ranges |= !condition.bytes.is_empty();
        if let Some(bits) = condition.mark {
            pattern.set(MARK, bits.value().into(), bits.mask().into());
        }
        let has_ports = ports.contains(&true);
        if has_ports {
            pattern.set((6, 0), HAS_PORTS, HAS_PORTS);
        }
        if has_ports || headers.contains(&true) {
            pattern.set((6, 0), HAS_HEADERS, HAS_HEADERS);
        }
        pattern
    }

    /// Returns whether a packet has the fixed bits. It has no branch per word, because the position of the
    /// first difference is unpredictable.
    #[inline]
    pub(super) fn is_in(&self, fields: &Fields) -> bool {
        let mut differences = 0;
        for (word, field) in fields.iter().enumerate() {
            differences |= (field ^ self.value[word]) & self.mask[word];
        }
        differences == 0
    }

    fn set(&mut self, (word, bit): BitPosition, value: u64, mask: u64) {
        let (value, mask) = (value << bit, mask << bit);
        if (self.value[word] ^ value) & self.mask[word] & mask != 0 {
            self.is_impossible = true;
        }
        self.value[word] |= value;
        self.mask[word] |= mask;
    }

    /// Adds a condition on one value. Returns whether there is one.
    fn exactly(&mut self, place: BitPosition, value: Option<u64>, mask: u64) -> bool {
        if let Some(value) = value {
            self.set(place, value, mask);
        }
        value.is_some()
    }

    /// Adds a condition on a range. Returns whether there is one. A range of one value is fixed, and a range
    /// of all values is no condition.
    fn range(&mut self, place: BitPosition, range: Option<(u64, u64)>, most: u64) -> bool {
        match range {
            None => return false,
            Some((first, last)) if first > last || first > most => self.is_impossible = true,
            Some((first, last)) if first == last => self.set(place, first, most),
            Some((0, last)) if last >= most => {}
            Some(_) => self.has_ranges = true,
        }
        true
    }

    fn prefix(&mut self, word: usize, prefix: Option<Prefix>) -> bool {
        let Some(prefix) = prefix else {
            return false;
        };
        let (address, mask, ethertype) = prefix.bits();
        self.set((word, 0), (address >> 64) as u64, (mask >> 64) as u64);
        self.set((word + 1, 0), address as u64, mask as u64);
        self.set(ETHERTYPE, ethertype.into(), 0xffff);
        true
    }
}
