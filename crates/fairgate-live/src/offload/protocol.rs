//! The numbers of protocols, flags, and what follows a header.

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const MPLS: u16 = 0x8847;
pub(super) const MPLS_MULTICAST: u16 = 0x8848;
pub(super) const PPPOE_SESSION: u16 = 0x8864;
/// A whole Ethernet frame ("transparent Ethernet bridging", RFC 7637).
pub(super) const ETHERNET: u16 = 0x6558;

pub(super) const PROTOCOL_HOP_BY_HOP: u8 = 0;
pub(super) const PROTOCOL_IPV4: u8 = 4;
pub(super) const PROTOCOL_TCP: u8 = 6;
pub(super) const PROTOCOL_UDP: u8 = 17;
pub(super) const PROTOCOL_IPV6: u8 = 41;
pub(super) const PROTOCOL_ROUTING: u8 = 43;
pub(super) const PROTOCOL_GRE: u8 = 47;
pub(super) const PROTOCOL_DESTINATION: u8 = 60;

/// Flags of TCP's header.
pub(super) const TCP_FIN_PSH: u8 = 0x01 | 0x08;
pub(super) const TCP_CWR: u8 = 0x80;

/// What follows a header, as announced by the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextHeader {
    Ethernet,
    /// A payload with this EtherType.
    Type(u16),
    /// A payload with this IP protocol number.
    Protocol(u8),
}
