//! Packets that an offload had merged before they were captured.
//!
//! A capture on a host shows what the host's stack saw: up to 64 KiB of a TCP connection in one frame, which
//! the interface had put together (GRO) or was going to cut (TSO). The link carried packets of the MTU.

use fairgate::flow::{LinkType, dissect};

use crate::checksum::Sum;
use crate::offload::VnetHeader;

const TCP: u8 = 6;
const IPV6_HEADER: usize = 40;
/// The offsets of TCP's header length and checksum.
const DATA_OFFSET: usize = 12;
const CHECKSUM: usize = 16;

/// Returns how to cut a TCP packet that is longer than `mtu`, and prepares its checksum for that. Returns
/// `None` if it is not a plain TCP packet.
pub(super) fn merged(frame: &mut [u8], mtu: usize) -> Option<VnetHeader> {
    let dissection = dissect(frame, LinkType::Ethernet);
    let network = usize::from(dissection.network_offset?);
    let ip = frame.get(network..)?;
    let (transport, addresses, is_ipv6) = match ip.first()? >> 4 {
        4 if ip.get(9) == Some(&TCP) => (usize::from(ip[0] & 15) * 4, 12..20, false),
        6 if ip.get(6) == Some(&TCP) => (IPV6_HEADER, 8..40, true),
        _ => return None,
    };
    let segment = ip.get(transport..)?;
    let headers = transport + usize::from(segment.get(DATA_OFFSET)? >> 4) * 4;
    let size = u16::try_from(mtu.checked_sub(headers)?)
        .ok()
        .filter(|size| *size > 0)?;
    // The field holds the sum of the pseudo header, with the length of the whole segment.
    let length = u32::try_from(segment.len()).ok()?;
    let sum = Sum::default()
        .add(ip.get(addresses)?)
        .add(&length.to_be_bytes())
        .add(&[0, TCP])
        .finish();
    let start = network + transport;
    let field = frame.get_mut(start + CHECKSUM..)?.first_chunk_mut::<2>()?;
    *field = sum.map(|byte| !byte);
    let start = u16::try_from(start).ok()?;
    Some(VnetHeader::tcp(is_ipv6, size, start, CHECKSUM as u16))
}
