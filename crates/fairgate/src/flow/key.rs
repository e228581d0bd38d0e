//! The header fields that tell flows apart.

use core::net::IpAddr;

use crate::flow::numbers::{ethertype, protocol};

/// Addresses, ports and protocol of a packet, and what else filters match on. 48 bytes.
///
/// IPv4 addresses are kept in the last four bytes, as IPv4-mapped IPv6 addresses (`::ffff:a.b.c.d`). Fields that a
/// packet does not have are 0: a fragment has no ports, ARP has no addresses here. Keys are read from real headers by
/// [`dissect()`](crate::flow::dissect()).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Source port of TCP, UDP, UDP-Lite, SCTP and DCCP; ICMP's identifier.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// EtherType of the innermost payload: 0x0800 for IPv4, 0x86dd for IPv6.
    pub ethertype: u16,
    /// VLAN identifier of the outermost tag, 0 without one.
    pub vlan: u16,
    /// IPv6 flow label, 20 bits.
    pub flow_label: u32,
    /// IP protocol number of the transport header.
    pub protocol: u8,
    /// The traffic class byte: DSCP and ECN. Of a tunnelled packet it is the outer header's.
    pub traffic_class: u8,
    /// The driver's number of the interface that the packet came in on; 0 if it tells none. Not read from headers.
    pub interface: u16,
}

impl FlowKey {
    /// A key of two addresses of one family, ports and protocol.
    pub fn of(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        source_port: u16,
        destination_port: u16,
    ) -> FlowKey {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        FlowKey {
            source: octets(source),
            destination: octets(destination),
            source_port,
            destination_port,
            ethertype: if source.is_ipv4() {
                ethertype::IPV4
            } else {
                ethertype::IPV6
            },
            protocol,
            ..FlowKey::default()
        }
    }

    /// Whether the packet has ports: TCP, UDP, UDP-Lite, SCTP and DCCP do, but for their fragments.
    #[inline]
    pub fn has_ports(&self) -> bool {
        protocol::has_ports(self.protocol) && (self.source_port, self.destination_port) != (0, 0)
    }
}
