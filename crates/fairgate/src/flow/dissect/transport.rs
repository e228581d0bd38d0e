//! Parses ports, and the identifier of ICMP messages.

use super::{bytes_at, u16_at};
use crate::flow::numbers::protocol::{ICMP, ICMPV6, has_ports};

/// The protocol and payload above IP.
pub(super) struct Above<'a> {
    pub(super) protocol: u8,
    /// The transport header and everything after it, if the packet is not a fragment and not cut off.
    pub(super) transport: Option<&'a [u8]>,
}

/// Returns the ports, or an echo's identifier and 0. Returns zeros if there are none.
#[inline(always)]
pub(super) fn ports(above: &Above) -> (u16, u16) {
    let Some(transport) = above.transport else {
        return (0, 0);
    };
    match above.protocol {
        protocol if has_ports(protocol) => match bytes_at::<4>(transport, 0) {
            Some([a, b, c, d]) => (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])),
            None => (0, 0),
        },
        ICMP | ICMPV6 => (identifier(transport, above.protocol).unwrap_or(0), 0),
        _ => (0, 0),
    }
}

/// Returns the identifier of ICMP messages that have one: echo, and for IPv4 also timestamp, information and
/// address mask.
fn identifier(message: &[u8], protocol: u8) -> Option<u16> {
    let has_identifier = matches!(
        (protocol, message.first()?),
        (ICMP, 0 | 8 | 13..=18) | (ICMPV6, 128 | 129)
    );
    if has_identifier { u16_at(message, 4) } else { None }
}
