//! Tunnel headers after a UDP header.
//!
//! Reserved bits must be zero and extensions must be known. An unknown extension may change what follows, or
//! what the receiver does with the inner checksums ("remote checksum offload"). Cutting would then turn valid
//! packets into invalid ones.

use super::protocol::{ETHERNET, IPV4, IPV6, MPLS, NextHeader, PROTOCOL_GRE, PROTOCOL_IPV4, PROTOCOL_IPV6};

/// The format of what follows a UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// VXLAN (RFC 7348), with or without group policy, and its generic protocol extension.
    Vxlan,
    /// GENEVE (RFC 8926).
    Geneve,
    /// Generic UDP encapsulation (draft-ietf-intarea-gue). Its variant 1 has IP directly after UDP. So have
    /// "foo over UDP" with IP, and Linux's bare UDP tunnels.
    Gue,
    /// MPLS in UDP (RFC 7510).
    Mpls,
    /// GRE in UDP (RFC 8086), "foo over UDP" with GRE.
    Gre,
}

impl Format {
    /// The formats that are recognisable by their structure on any port. MPLS is not: a label may be any four
    /// bytes, so labels could hide headers that have to be patched.
    pub(super) const RECOGNISABLE: [Format; 4] = [Format::Vxlan, Format::Geneve, Format::Gue, Format::Gre];

    /// Returns the format of a well-known destination port.
    pub(super) fn of_port(port: u16) -> Option<Format> {
        match port {
            // IANA's port, the port that Linux used before, and the port of the extension.
            4789 | 8472 | 4790 => Some(Format::Vxlan),
            6081 => Some(Format::Geneve),
            6080 => Some(Format::Gue),
            6635 => Some(Format::Mpls),
            4754 => Some(Format::Gre),
            _ => None,
        }
    }

    /// Returns the offset and kind of what follows the tunnel header at `at`, or `None` if it is not such a
    /// header.
    pub(super) fn inside(self, headers: &[u8], at: usize) -> Option<(usize, NextHeader)> {
        let header = headers.get(at..)?;
        match self {
            Format::Vxlan => vxlan(header).map(|next| (at + VXLAN_HEADER, next)),
            Format::Geneve => geneve(header).map(|(length, next)| (at + length, next)),
            Format::Gue => gue(header).map(|(length, next)| (at + length, next)),
            Format::Mpls => Some((at, NextHeader::Type(MPLS))),
            Format::Gre => Some((at, NextHeader::Protocol(PROTOCOL_GRE))),
        }
    }
}

const VXLAN_HEADER: usize = 8;

/// Parses VXLAN. The layouts are those of Linux `include/net/vxlan.h`.
fn vxlan(header: &[u8]) -> Option<NextHeader> {
    const HAS_NUMBER: u8 = 0x08;
    const HAS_POLICY: u8 = 0x80;
    /// "Don't learn" and "policy was applied".
    const POLICY_FLAGS: u8 = 0x48;
    const HAS_PROTOCOL: u8 = 0x04;
    match *header.first_chunk::<VXLAN_HEADER>()? {
        [HAS_NUMBER, 0, 0, 0, _, _, _, 0] => Some(NextHeader::Ethernet),
        [flags, policy, _, _, _, _, _, 0]
            if flags == HAS_NUMBER | HAS_POLICY && policy & !POLICY_FLAGS == 0 =>
        {
            Some(NextHeader::Ethernet)
        }
        [flags, 0, 0, protocol, _, _, _, 0] if flags == HAS_NUMBER | HAS_PROTOCOL => match protocol {
            1 => Some(NextHeader::Type(IPV4)),
            2 => Some(NextHeader::Type(IPV6)),
            3 => Some(NextHeader::Ethernet),
            5 => Some(NextHeader::Type(MPLS)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the length of the header with its options, and what follows.
fn geneve(header: &[u8]) -> Option<(usize, NextHeader)> {
    /// Set if an option must not be ignored. All other flags are reserved, or mark control messages.
    const CRITICAL: u8 = 0x40;
    let [first, flags, high, low, _, _, _, reserved] = *header.first_chunk::<8>()?;
    let (version, options) = (first >> 6, usize::from(first & 0x3f) * 4);
    if version != 0 || flags & !CRITICAL != 0 || reserved != 0 {
        return None;
    }
    match u16::from_be_bytes([high, low]) {
        next @ (ETHERNET | IPV4 | IPV6 | MPLS) => Some((8 + options, NextHeader::Type(next))),
        _ => None,
    }
}

/// Returns the length of the header with its fields, and what follows.
fn gue(header: &[u8]) -> Option<(usize, NextHeader)> {
    let [first, protocol, high, low] = *header.first_chunk::<4>()?;
    match first >> 4 {
        // The first byte: the variant, the bit for control messages, and the length of the fields in words. A
        // flag announces each field. No field is known to leave the inner checksums alone, so all flags must
        // be zero.
        0 | 1 if [high, low] == [0, 0] => match protocol {
            // TCP and UDP could follow, too, with a pseudo header of the outer addresses. No implementation
            // sends that.
            PROTOCOL_IPV4 | PROTOCOL_IPV6 | PROTOCOL_GRE => {
                Some((4 + usize::from(first) * 4, NextHeader::Protocol(protocol)))
            }
            _ => None,
        },
        4 => Some((0, NextHeader::Type(IPV4))),
        6 => Some((0, NextHeader::Type(IPV6))),
        _ => None,
    }
}
