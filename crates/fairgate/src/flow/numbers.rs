//! Numbers assigned by IEEE and IANA.

/// EtherTypes, by which a header announces the next one.
pub mod ethertype {
    /// An 802.2 LLC header. This is not an EtherType, but Linux's number for it. An 802.3 frame has a length
    /// of up to 1500 in this field.
    pub const LLC: u16 = 0x0004;
    /// The maximum length in an 802.3 frame.
    pub(crate) const LONGEST_LLC: u16 = 1500;
    /// The first EtherType. Lower numbers are none.
    pub(crate) const FIRST: u16 = 0x0600;
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// Address resolution for IPv4.
    pub const ARP: u16 = 0x0806;
    /// A tag of 802.1Q.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// PPP, starting with its protocol number.
    pub const PPP: u16 = 0x880b;
    /// MPLS labels.
    pub const MPLS_UNICAST: u16 = 0x8847;
    /// MPLS labels assigned by the upstream router.
    pub const MPLS_MULTICAST: u16 = 0x8848;
    /// A PPPoE session.
    pub const PPPOE_SESSION: u16 = 0x8864;
    /// A service tag of 802.1ad.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// The EtherType of stacked tags before 802.1ad.
    pub(crate) const OLD_SERVICE_VLAN: u16 = 0x9100;
    /// Ethernet in GRE.
    pub(crate) const TRANSPARENT_BRIDGING: u16 = 0x6558;
}

/// Protocols over IP, and IPv6 extension headers.
pub(crate) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const IP_IN_IP: u8 = 4;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const DCCP: u8 = 33;
    pub(crate) const IPV6_IN_IP: u8 = 41;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const GRE: u8 = 47;
    pub(crate) const AUTHENTICATION: u8 = 51;
    pub(crate) const ICMPV6: u8 = 58;
    pub(crate) const DESTINATION_OPTIONS: u8 = 60;
    pub(crate) const SCTP: u8 = 132;
    pub(crate) const MOBILITY: u8 = 135;
    pub(crate) const UDP_LITE: u8 = 136;
    pub(crate) const HOST_IDENTITY: u8 = 139;
    pub(crate) const SHIM6: u8 = 140;

    /// Returns whether the header of the protocol begins with two ports.
    #[inline]
    pub(crate) fn has_ports(protocol: u8) -> bool {
        matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
    }
}
