//! The fields of a packet, and the filters that accept each of their values.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::classify::index::trie::Trie;
use crate::classify::{Match, Prefix};
use crate::flow::FlowKey;
use crate::flow::ethertype::{IPV4, IPV6};
use crate::slot::Slot;

/// The number of fields, which is also the maximum number of groups.
pub(super) const FIELDS: usize = 15;

/// A field of up to 16 bits, with the case of each value. A case is the number of a distinct row.
#[derive(Debug)]
pub(super) struct Number {
    pub(super) field: NumberField,
    /// The index in `cases` at which the page of each high byte begins. The last page is for packets without
    /// the field.
    pub(super) pages: Box<[u32; 257]>,
    pub(super) cases: Vec<u32>,
}

/// An address field, of which filters match prefixes.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) field: AddressField,
    pub(super) v4: Trie<u32>,
    pub(super) v6: Trie<u128>,
    /// The case of packets without such an address.
    pub(super) none: u32,
}

/// The whole mark, if no filter matches only a part of it.
#[derive(Debug)]
pub(super) struct Mark(pub(super) Trie<u32>);

#[derive(Debug)]
pub(super) enum Dimension {
    Number(Number),
    Address(Address),
    Mark(Mark),
}

/// The first bytes of an IPv4 address in a [`FlowKey`].
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// The value of a number that the packet does not have.
pub(super) const NO_NUMBER: u32 = 1 << 16;

/// The fields of a packet in the form that dimensions look up.
pub(super) struct Values<'p> {
    numbers: [u32; 13],
    mark: u32,
    family: Family<'p>,
}

/// The addresses of a packet, by its EtherType.
enum Family<'p> {
    V4(&'p FlowKey),
    V6(&'p FlowKey),
    Other,
}

impl Values<'_> {
    #[inline]
    pub(super) fn of<'p>(packet: &Slot, headers: Option<&'p FlowKey>) -> Values<'p> {
        let mark = |byte: u32| packet.mark >> (8 * byte) & 0xff;
        let (class, priority) = (packet.traffic_class().into(), packet.priority.into());
        let (
            [
                source,
                destination,
                ethertype,
                outer_ethertype,
                vlan,
                interface,
                protocol,
            ],
            family,
        ) = match headers {
            Some(key) => {
                let has_ports = key.has_ports();
                let port = |port: u16| if has_ports { port.into() } else { NO_NUMBER };
                let (source, destination) = (port(key.source_port), port(key.destination_port));
                let family = match key.ethertype {
                    IPV4 => Family::V4(key),
                    IPV6 => Family::V6(key),
                    _ => Family::Other,
                };
                (
                    [
                        source,
                        destination,
                        key.ethertype.into(),
                        key.outer_ethertype.into(),
                        key.vlan.into(),
                        key.interface.into(),
                        key.protocol.into(),
                    ],
                    family,
                )
            }
            None => ([NO_NUMBER; 7], Family::Other),
        };
        Values {
            numbers: [
                source,
                destination,
                ethertype,
                outer_ethertype,
                vlan,
                interface,
                protocol,
                class,
                priority,
                mark(0),
                mark(1),
                mark(2),
                mark(3),
            ],
            mark: packet.mark,
            family,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum AddressField {
    Source,
    Destination,
}

/// The fields of up to 16 bits, in the order of [`Values`]. A mark is split into four fields, the lowest byte
/// first, because its mask may select single bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberField {
    SourcePort,
    DestinationPort,
    Ethertype,
    OuterEthertype,
    Vlan,
    Interface,
    Protocol,
    TrafficClass,
    Priority,
    Mark0,
    Mark1,
    Mark2,
    Mark3,
}

impl AddressField {
    pub(super) fn asked(self, condition: &Match) -> Option<Prefix> {
        match self {
            AddressField::Source => condition.source,
            AddressField::Destination => condition.destination,
        }
    }

    #[inline]
    fn of(self, key: &FlowKey) -> &[u8; 16] {
        match self {
            AddressField::Source => &key.source,
            AddressField::Destination => &key.destination,
        }
    }
}

impl NumberField {
    /// Returns the range of values that the filter accepts, for fields that are matched by ranges.
    pub(super) fn asked(self, condition: &Match) -> Option<RangeInclusive<u16>> {
        let single = |value: Option<u16>| value.map(|value| value..=value);
        match self {
            NumberField::SourcePort => condition.source_port.clone(),
            NumberField::DestinationPort => condition.destination_port.clone(),
            NumberField::Ethertype => single(condition.ethertype),
            NumberField::OuterEthertype => single(condition.outer_ethertype),
            NumberField::Vlan => single(condition.vlan),
            NumberField::Interface => single(condition.interface),
            _ => None,
        }
    }

    /// Returns the shift of the byte in the mark. `None` if the field is not a byte of the mark.
    fn shift(self) -> Option<u32> {
        (self as u32)
            .checked_sub(NumberField::Mark0 as u32)
            .map(|byte| 8 * byte)
    }

    /// Returns whether the filter has a condition on the byte.
    pub(super) fn is_asked(self, condition: &Match) -> bool {
        match self {
            NumberField::Protocol => condition.protocol.is_some(),
            NumberField::TrafficClass => condition.dscp.is_some() || condition.traffic_class.is_some(),
            NumberField::Priority => condition.priority.is_some(),
            _ => self
                .shift()
                .zip(condition.mark)
                .is_some_and(|(shift, bits)| bits.mask() >> shift & 0xff != 0),
        }
    }

    /// Returns whether the filter accepts `value`.
    pub(super) fn agrees(self, condition: &Match, value: u8) -> bool {
        match self {
            NumberField::Protocol => condition.protocol.is_none_or(|protocol| protocol == value),
            NumberField::TrafficClass => {
                let dscp = condition.dscp.as_ref();
                dscp.is_none_or(|range| range.contains(&(value >> 2)))
                    && condition.traffic_class.is_none_or(|bits| bits.matches(value))
            }
            NumberField::Priority => condition
                .priority
                .as_ref()
                .is_none_or(|range| range.contains(&value)),
            _ => self.shift().zip(condition.mark).is_none_or(|(shift, bits)| {
                u32::from(value) & bits.mask() >> shift & 0xff == bits.value() >> shift & 0xff
            }),
        }
    }
}

impl Number {
    /// Returns the case of a packet.
    #[inline(always)]
    pub(super) fn case(&self, values: &Values) -> u32 {
        let value = values.numbers[self.field as usize] as usize;
        self.cases[self.pages[value >> 8] as usize + (value & 0xff)]
    }
}

impl Address {
    /// Returns the case of a packet.
    #[inline(always)]
    pub(super) fn case(&self, values: &Values) -> u32 {
        match values.family {
            Family::V4(key) => {
                let bytes = self.field.of(key);
                // An IPv4 packet has another kind of address only if its header is broken.
                match bytes.split_last_chunk::<4>() {
                    Some((prefix, host)) if *prefix == MAPPED => {
                        self.v4.case(host, u32::from_be_bytes(*host))
                    }
                    _ => self.none,
                }
            }
            Family::V6(key) => {
                let bytes = self.field.of(key);
                self.v6.case(bytes, u128::from_be_bytes(*bytes))
            }
            Family::Other => self.none,
        }
    }
}

impl Mark {
    /// Returns the case of a packet.
    #[inline(always)]
    pub(super) fn case(&self, values: &Values) -> u32 {
        self.0.case(&values.mark.to_be_bytes(), values.mark)
    }
}
