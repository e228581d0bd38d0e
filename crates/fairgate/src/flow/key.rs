//! The header fields that identify a flow.

use core::net::{IpAddr, Ipv6Addr};

use crate::flow::numbers::{ethertype, protocol};

/// Addresses, ports and protocol of a packet, and other fields that filters match. 52 bytes.
///
/// IPv4 addresses are stored as IPv4-mapped IPv6 addresses (`::ffff:a.b.c.d`), in the last four bytes. Fields
/// that a packet does not have are 0: a fragment has no ports, and ARP has no addresses here.
/// [`dissect()`](crate::flow::dissect()) reads keys from real headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey {
    /// The source address.
    pub source: [u8; 16],
    /// The destination address.
    pub destination: [u8; 16],
    /// The source port of TCP, UDP, UDP-Lite, SCTP and DCCP, or ICMP's identifier.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// The EtherType of the innermost payload: 0x0800 for IPv4, 0x86dd for IPv6.
    pub ethertype: u16,
    /// The EtherType in the frame's own header: 0x8100 or 0x88a8 if the frame has a VLAN tag. Linux calls it
    /// the packet's protocol. In a frame without tags and labels it is `ethertype`. It is 0 if the header has
    /// a length instead.
    pub outer_ethertype: u16,
    /// The VLAN identifier of the outermost tag, or 0 without a tag.
    pub vlan: u16,
    /// The IPv6 flow label, 20 bits.
    pub flow_label: u32,
    /// The IP protocol number of the transport header.
    pub protocol: u8,
    /// The traffic class byte: DSCP and ECN. For a tunnelled packet it is that of the outer header.
    pub traffic_class: u8,
    /// The driver's number of the interface that received the packet, or 0 if it is unknown. It is not read
    /// from headers.
    pub interface: u16,
}

impl FlowKey {
    /// Creates a key from two addresses of the same family, the protocol and the ports.
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
        let ethertype = match source.is_ipv4() {
            true => ethertype::IPV4,
            false => ethertype::IPV6,
        };
        FlowKey {
            source: octets(source),
            destination: octets(destination),
            source_port,
            destination_port,
            ethertype,
            outer_ethertype: ethertype,
            protocol,
            ..FlowKey::default()
        }
    }

    /// Returns the source address and the destination address.
    pub fn addresses(&self) -> [IpAddr; 2] {
        [self.source, self.destination].map(|octets| Ipv6Addr::from(octets).to_canonical())
    }

    /// Returns whether the packet has ports: TCP, UDP, UDP-Lite, SCTP and DCCP have, except for fragments.
    #[inline]
    pub fn has_ports(&self) -> bool {
        protocol::has_ports(self.protocol) && (self.source_port, self.destination_port) != (0, 0)
    }
}
