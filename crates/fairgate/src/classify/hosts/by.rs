//! The fields that identify hosts, and the host of a packet.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::ConfigError;
use crate::flow::ethertype::{IPV4, IPV6};
use crate::flow::{FlowHash, FlowKey, Sip};
use crate::slot::Slot;

/// The bits in front of an IPv4 address in a [`FlowKey`]. They are the same in all of them.
const ABOVE_IPV4: u128 = u128::MAX << 32;

/// The bits of an address that identify a host, for each family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMask {
    ipv4: u32,
    ipv6: u128,
}

impl AddressMask {
    /// All bits of addresses.
    pub const ALL: AddressMask = AddressMask::of_bits(u32::MAX, u128::MAX);

    /// Creates a mask of these bits. They need not be a prefix.
    pub const fn of_bits(ipv4: u32, ipv6: u128) -> AddressMask {
        AddressMask { ipv4, ipv6 }
    }

    /// Creates a mask of the first `ipv4` and `ipv6` bits.
    pub fn of_prefixes(ipv4: u8, ipv6: u8) -> Result<AddressMask, ConfigError> {
        let leading = |parameter, length: u8, longest: u8| match length <= longest {
            true => Ok(u128::MAX.checked_shl((128 - length).into()).unwrap_or(0)),
            false => Err(ConfigError::conflict(
                parameter,
                length,
                format!("0 to {longest}"),
                "set it to the number of leading bits that identify a host",
            )),
        };
        Ok(AddressMask {
            ipv4: (leading("ipv4", ipv4, 32)? >> 96) as u32,
            ipv6: leading("ipv6", ipv6, 128)?,
        })
    }

    /// Returns the bits of an IPv4 address.
    pub const fn ipv4(self) -> u32 {
        self.ipv4
    }

    /// Returns the bits of an IPv6 address.
    pub const fn ipv6(self) -> u128 {
        self.ipv6
    }

    /// Masks an address in the form of [`FlowKey`]. Returns `None` if the packet belongs to neither family.
    #[inline]
    fn apply(self, address: &[u8; 16], ethertype: u16) -> Option<u128> {
        let mask = match ethertype {
            IPV4 => u128::from(self.ipv4) | ABOVE_IPV4,
            IPV6 => self.ipv6,
            _ => return None,
        };
        Some(u128::from_be_bytes(*address) & mask)
    }

    /// Displays a masked address like `192.0.2.0/24`.
    fn show(self, address: u128, ethertype: u16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, mask, longest): (IpAddr, u128, u32) = match ethertype {
            IPV4 => (
                Ipv4Addr::from_bits(address as u32).into(),
                u128::from(self.ipv4) << 96,
                32,
            ),
            _ => (Ipv6Addr::from_bits(address).into(), self.ipv6, 128),
        };
        write!(f, "{address}")?;
        match mask.leading_ones() {
            length if length == longest => Ok(()),
            length if length == mask.count_ones() => write!(f, "/{length}"),
            _ if longest == 32 => write!(f, "/{}", Ipv4Addr::from_bits(self.ipv4)),
            _ => write!(f, "/{}", Ipv6Addr::from_bits(self.ipv6)),
        }
    }
}

/// The fields that identify hosts. Packets in which all of them are equal belong to the same host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostBy {
    /// These bits of the source address.
    pub source: Option<AddressMask>,
    /// These bits of the destination address.
    pub destination: Option<AddressMask>,
    /// The source port.
    pub source_port: bool,
    /// The destination port.
    pub destination_port: bool,
    /// The IP protocol.
    pub protocol: bool,
    /// The VLAN identifier.
    pub vlan: bool,
    /// These bits of the driver's mark.
    pub mark: u32,
}

/// A host, identified by the selected fields of its packets. All other fields are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Host {
    source: u128,
    destination: u128,
    source_port: u16,
    destination_port: u16,
    vlan: u16,
    /// The EtherType of the addresses, if these are selected.
    ethertype: u16,
    mark: u32,
    protocol: u8,
}

impl HostBy {
    /// Selects whole source addresses.
    pub fn source() -> HostBy {
        HostBy {
            source: Some(AddressMask::ALL),
            ..HostBy::default()
        }
    }

    /// Selects whole destination addresses.
    pub fn destination() -> HostBy {
        HostBy {
            destination: Some(AddressMask::ALL),
            ..HostBy::default()
        }
    }

    fn counts_numbers(&self) -> bool {
        self.source_port | self.destination_port | self.protocol | self.vlan
    }

    /// Returns the host of a packet. Returns `None` if the packet lacks a selected field: headers, or
    /// addresses.
    #[inline]
    pub fn host(&self, packet: &Slot, headers: Option<&FlowKey>) -> Option<Host> {
        let mut host = Host {
            mark: packet.mark & self.mark,
            ..Host::default()
        };
        if let Some(mask) = self.source {
            let key = headers?;
            host.source = mask.apply(&key.source, key.ethertype)?;
            host.ethertype = key.ethertype;
        }
        if let Some(mask) = self.destination {
            let key = headers?;
            host.destination = mask.apply(&key.destination, key.ethertype)?;
            host.ethertype = key.ethertype;
        }
        if self.counts_numbers() {
            let key = headers?;
            let where_counted = |counts: bool, number: u16| if counts { number } else { 0 };
            host.source_port = where_counted(self.source_port, key.source_port);
            host.destination_port = where_counted(self.destination_port, key.destination_port);
            host.vlan = where_counted(self.vlan, key.vlan);
            host.protocol = where_counted(self.protocol, key.protocol.into()) as u8;
        }
        Some(host)
    }

    /// Returns the host's hash under the key in `start`. What is not selected is left out, and of an IPv4
    /// address the upper half, which is 0. Lengths and the last word tell IPv4 from IPv6.
    #[inline]
    pub(super) fn hash(&self, host: &Host, start: Sip) -> FlowHash {
        let is_ipv6 = host.ethertype == IPV6;
        let mut message = (start, 0);
        let mut add = |word: u64| message = (message.0.word(word), message.1 + 8);
        for (mask, address) in [(self.source, host.source), (self.destination, host.destination)] {
            if mask.is_some() {
                add(address as u64);
                if is_ipv6 {
                    add((address >> 64) as u64);
                }
            }
        }
        if self.mark != 0 {
            add(host.mark.into());
        }
        let numbers = match self.counts_numbers() {
            true => {
                let ports = u64::from(host.source_port) << 48 | u64::from(host.destination_port) << 32;
                ports | u64::from(host.vlan) << 16 | u64::from(host.protocol) << 8
            }
            false => 0,
        };
        add(numbers | u64::from(is_ipv6));
        let (state, length) = message;
        FlowHash::from_raw(state.finish(length))
    }

    /// Displays a host like `192.0.2.7`, `192.0.2.7 > 198.51.100.1` or `vlan 7`.
    pub(super) fn show(&self, host: &Host, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        if let Some(mask) = self.source {
            mask.show(host.source, host.ethertype, f)?;
            gap = " ";
        }
        if let Some(mask) = self.destination {
            if self.source.is_some() {
                f.write_str(" > ")?;
            }
            mask.show(host.destination, host.ethertype, f)?;
            gap = " ";
        }
        let numbers = [
            (self.protocol, "protocol", u16::from(host.protocol)),
            (self.source_port, "source port", host.source_port),
            (self.destination_port, "destination port", host.destination_port),
            (self.vlan, "vlan", host.vlan),
        ];
        for (_, name, number) in numbers.into_iter().filter(|(counts, ..)| *counts) {
            write!(f, "{gap}{name} {number}")?;
            gap = " ";
        }
        match self.mark {
            0 => Ok(()),
            _ => write!(f, "{gap}mark {:#x}", host.mark),
        }
    }
}
