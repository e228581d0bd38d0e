//! The only filter of an index. Each of its conditions reads only the field that it is about, and the
//! condition that holds for the fewest values is tried first.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::RangeInclusive;

use crate::classify::{Masked, Match, Prefix};
use crate::flow::FlowKey;
use crate::slot::Slot;

#[derive(Debug)]
pub(super) struct Single {
    pub(super) rank: u32,
    /// Whether there are conditions on bytes, too.
    pub(super) has_bytes: bool,
    has_one_condition: bool,
    first: Condition,
    others: Vec<Condition>,
}

/// A condition on one field. Those on header fields fail for packets without headers.
#[derive(Debug)]
enum Condition {
    /// Holds for every packet.
    Always,
    Source(Network),
    Destination(Network),
    SourcePort(Range),
    DestinationPort(Range),
    Ethertype(Range),
    OuterEthertype(Range),
    Vlan(Range),
    Interface(Range),
    Protocol(Range),
    Dscp(Range),
    Priority(Range),
    TrafficClass(Masked<u8>),
    Mark(Masked<u32>),
}

/// Numbers in a row.
#[derive(Debug)]
struct Range {
    first: u16,
    /// How many there are besides the first.
    others: u16,
}

impl Range {
    fn of<T: Copy + Into<u16>>(range: &RangeInclusive<T>) -> Range {
        let (first, last): (u16, u16) = ((*range.start()).into(), (*range.end()).into());
        debug_assert!(first <= last, "an impossible filter is in no index");
        Range {
            first,
            others: last - first,
        }
    }

    #[inline]
    fn contains(&self, number: u16) -> bool {
        number.wrapping_sub(self.first) <= self.others
    }
}

/// A prefix. Addresses are compared as they are in memory.
#[derive(Debug)]
struct Network {
    bits: u128,
    mask: u128,
    ethertype: u16,
}

impl Network {
    fn of(prefix: Prefix) -> Network {
        let (bits, mask, ethertype) = prefix.bits();
        Network {
            bits: bits.to_be(),
            mask: mask.to_be(),
            ethertype,
        }
    }

    #[inline]
    fn contains(&self, address: &[u8; 16], ethertype: u16) -> bool {
        u128::from_ne_bytes(*address) & self.mask == self.bits && ethertype == self.ethertype
    }
}

impl Condition {
    #[inline(always)]
    fn holds(&self, packet: &Slot, headers: Option<&FlowKey>) -> bool {
        match self {
            Condition::Always => true,
            Condition::Dscp(range) => range.contains(packet.dscp.into()),
            Condition::Priority(range) => range.contains(packet.priority.into()),
            Condition::TrafficClass(bits) => bits.matches(packet.traffic_class()),
            Condition::Mark(bits) => bits.matches(packet.mark),
            _ => headers.is_some_and(|key| self.holds_in(key)),
        }
    }

    #[inline(always)]
    fn holds_in(&self, key: &FlowKey) -> bool {
        match self {
            Condition::Source(network) => network.contains(&key.source, key.ethertype),
            Condition::Destination(network) => network.contains(&key.destination, key.ethertype),
            Condition::SourcePort(range) => range.contains(key.source_port) && key.has_ports(),
            Condition::DestinationPort(range) => range.contains(key.destination_port) && key.has_ports(),
            Condition::Ethertype(range) => range.contains(key.ethertype),
            Condition::OuterEthertype(range) => range.contains(key.outer_ethertype),
            Condition::Vlan(range) => range.contains(key.vlan),
            Condition::Interface(range) => range.contains(key.interface),
            Condition::Protocol(range) => range.contains(key.protocol.into()),
            _ => true,
        }
    }

    // Not inlined, so only the field of this condition is read. In a loop, the compiler would read all.
    #[inline(never)]
    fn holds_apart(&self, packet: &Slot, headers: Option<&FlowKey>) -> bool {
        self.holds(packet, headers)
    }

    /// Returns how many bits are fixed, about.
    fn fixed_bits(&self) -> u32 {
        match self {
            Condition::Always => 0,
            Condition::Source(network) | Condition::Destination(network) => network.mask.count_ones(),
            Condition::TrafficClass(bits) => bits.mask().count_ones(),
            Condition::Mark(bits) => bits.mask().count_ones(),
            Condition::Dscp(range) | Condition::Priority(range) | Condition::Protocol(range) => {
                u8::BITS.saturating_sub(u16::BITS - range.others.leading_zeros())
            }
            Condition::SourcePort(range)
            | Condition::DestinationPort(range)
            | Condition::Ethertype(range)
            | Condition::OuterEthertype(range)
            | Condition::Vlan(range)
            | Condition::Interface(range) => range.others.leading_zeros(),
        }
    }
}

impl Single {
    /// `filter` is not impossible.
    pub(super) fn new(rank: u32, filter: &Match) -> Single {
        let exactly = |number: u16| Range {
            first: number,
            others: 0,
        };
        let mut conditions: Vec<Condition> = Vec::new();
        // One at a time: an array of all would be large, and the kernel's stack is small.
        let mut add = |condition: Option<Condition>| conditions.extend(condition);
        add(filter.source.map(Network::of).map(Condition::Source));
        add(filter.destination.map(Network::of).map(Condition::Destination));
        add(filter
            .source_port
            .as_ref()
            .map(Range::of)
            .map(Condition::SourcePort));
        add(filter
            .destination_port
            .as_ref()
            .map(Range::of)
            .map(Condition::DestinationPort));
        add(filter.ethertype.map(exactly).map(Condition::Ethertype));
        add(filter.outer_ethertype.map(exactly).map(Condition::OuterEthertype));
        add(filter.vlan.map(exactly).map(Condition::Vlan));
        add(filter.interface.map(exactly).map(Condition::Interface));
        add(filter
            .protocol
            .map(u16::from)
            .map(exactly)
            .map(Condition::Protocol));
        add(filter.dscp.as_ref().map(Range::of).map(Condition::Dscp));
        add(filter.priority.as_ref().map(Range::of).map(Condition::Priority));
        add(filter.traffic_class.map(Condition::TrafficClass));
        add(filter.mark.map(Condition::Mark));
        conditions.sort_unstable_by_key(|condition| Reverse(condition.fixed_bits()));
        let has_bytes = !filter.bytes.is_empty();
        let has_one_condition = conditions.len() <= 1 && !has_bytes;
        let mut conditions = conditions.into_iter();
        Single {
            rank,
            has_bytes,
            has_one_condition,
            first: conditions.next().unwrap_or(Condition::Always),
            others: conditions.collect(),
        }
    }

    /// Returns whether a packet matches, if the first condition decides it.
    #[inline]
    pub(super) fn is_decided(&self, packet: &Slot, headers: Option<&FlowKey>) -> Option<bool> {
        match self.first.holds(packet, headers) {
            false => Some(false),
            true if self.has_one_condition => Some(true),
            true => None,
        }
    }

    /// Returns whether the conditions on fields hold for a packet.
    #[inline]
    pub(super) fn holds(&self, packet: &Slot, headers: Option<&FlowKey>) -> bool {
        let mut all = core::iter::once(&self.first).chain(&self.others);
        all.all(|condition| condition.holds_apart(packet, headers))
    }
}
