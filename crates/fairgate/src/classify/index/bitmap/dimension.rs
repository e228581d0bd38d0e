//! The fields of a packet, and which filters agree with each of their values.

use std::ops::RangeInclusive;

use crate::classify::index::trie::Trie;
use crate::classify::{Match, Prefix};
use crate::flow::FlowKey;
use crate::flow::ethertype::{IPV4, IPV6};
use crate::packet::Packet;

/// How many fields there are, and so at most groups.
pub(super) const FIELDS: usize = 14;

/// A field, and for each of its values the case that it is: a number below the number of its distinct rows.
#[derive(Debug)]
pub(super) enum Dimension {
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
pub(super) struct Values {
    shorts: [u32; 5],
    bytes: [u32; 7],
    mark: u32,
}

pub(super) const NO_SHORT: u32 = 1 << 16;
const NO_BYTE: u32 = 1 << 8;

impl Values {
    #[inline]
    pub(super) fn of(packet: &Packet, headers: Option<&FlowKey>) -> Values {
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
pub(super) enum AddressField {
    Source,
    Destination,
}

/// Fields of 16 bits, in the order of [`Values`].
#[derive(Clone, Copy, Debug)]
pub(super) enum ShortField {
    SourcePort,
    DestinationPort,
    Ethertype,
    Vlan,
    Interface,
}

/// Fields of 8 bits, in the order of [`Values`]; a mark is four of them, the lowest byte first, for its masks take bytes
/// apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum ByteField {
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
    pub(super) fn of(self, key: &FlowKey) -> u128 {
        u128::from_be_bytes(match self {
            AddressField::Source => key.source,
            AddressField::Destination => key.destination,
        })
    }
}

impl ShortField {
    pub(super) fn asked(self, condition: &Match) -> Option<RangeInclusive<u16>> {
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
    pub(super) fn is_asked(self, condition: &Match) -> bool {
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
    pub(super) fn agrees(self, condition: &Match, value: u8) -> bool {
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

impl Dimension {
    /// The case that a packet is.
    #[inline(always)]
    pub(super) fn case(&self, values: &Values, headers: Option<&FlowKey>) -> u32 {
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
