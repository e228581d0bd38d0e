//! One filter: what must match, and the class that a matching packet goes to.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use crate::error::ConfigError;
use crate::flow::FlowKey;
use crate::packet::Packet;

/// An address prefix, of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: u128,
    mask: u128,
}

impl Prefix {
    /// The first `length` bits of `address`: 0 to 32 for IPv4, 0 to 128 for IPv6.
    pub fn new(address: IpAddr, length: u8) -> Result<Prefix, ConfigError> {
        let (longest, address, offset) = match address {
            IpAddr::V4(v4) => (32, u128::from(v4.to_ipv6_mapped()), 96),
            IpAddr::V6(v6) => (128, u128::from(v6), 0),
        };
        if length > longest {
            return Err(ConfigError::out_of_range(
                "prefix",
                format!("/{length}"),
                format!("at most /{longest} for this family"),
                "count only the leading bits that must match",
            ));
        }
        let bits = u32::from(length) + offset;
        let mask = if bits == 0 { 0 } else { u128::MAX << (128 - bits) };
        Ok(Prefix {
            address: address & mask,
            mask,
        })
    }

    /// Whether `address` (in the form of [`FlowKey`]) begins with this prefix.
    pub fn contains(&self, address: &[u8; 16]) -> bool {
        u128::from_be_bytes(*address) & self.mask == self.address
    }
}

/// Conditions, all of which must hold. Those left out hold for every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Source address.
    pub source: Option<Prefix>,
    /// Destination address.
    pub destination: Option<Prefix>,
    /// Source port.
    pub source_port: Option<RangeInclusive<u16>>,
    /// Destination port.
    pub destination_port: Option<RangeInclusive<u16>>,
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// EtherType: 0x0800 for IPv4, 0x86dd for IPv6.
    pub ethertype: Option<u16>,
    /// VLAN identifier.
    pub vlan: Option<u16>,
    /// DSCP.
    pub dscp: Option<RangeInclusive<u8>>,
    /// Priority, 0 to 15.
    pub priority: Option<RangeInclusive<u8>>,
    /// The driver's mark.
    pub mark: Option<u32>,
}

impl Match {
    /// Whether all conditions hold. A condition on header fields fails for a packet that came without headers.
    pub fn matches(&self, packet: &Packet, headers: Option<&FlowKey>) -> bool {
        fn within<T: PartialOrd>(range: &Option<RangeInclusive<T>>, value: T) -> bool {
            range.as_ref().is_none_or(|range| range.contains(&value))
        }
        let stamped = within(&self.dscp, packet.dscp)
            && within(&self.priority, packet.priority)
            && self.mark.is_none_or(|mark| mark == packet.mark);
        if !stamped {
            return false;
        }
        match headers {
            Some(key) => {
                self.protocol.is_none_or(|protocol| protocol == key.protocol)
                    && self.ethertype.is_none_or(|ethertype| ethertype == key.ethertype)
                    && self.vlan.is_none_or(|vlan| vlan == key.vlan)
                    && within(&self.source_port, key.source_port)
                    && within(&self.destination_port, key.destination_port)
                    && self.source.is_none_or(|prefix| prefix.contains(&key.source))
                    && self
                        .destination
                        .is_none_or(|prefix| prefix.contains(&key.destination))
            }
            None => {
                self.protocol.is_none()
                    && self.ethertype.is_none()
                    && self.vlan.is_none()
                    && self.source_port.is_none()
                    && self.destination_port.is_none()
                    && self.source.is_none()
                    && self.destination.is_none()
            }
        }
    }
}

/// Conditions and the class that they lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// What must hold.
    pub condition: Match,
    /// The class of the discipline that the filter belongs to, by its minor number.
    pub class: u16,
}
