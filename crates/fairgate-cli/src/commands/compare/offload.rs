//! Cuts merged packets. Hosts merge received segments, and leave the segmentation of large packets to their
//! interface (GRO, TSO). A capture on the host shows packets that are longer than the MTU. On the link they
//! were packets of at most the MTU.

/// How a captured packet was cut on the link. Lengths are of IP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// The number of packets of full length.
    pub(super) full: u32,
    /// The full length, in bytes.
    pub(super) full_length: u32,
    /// The length of one more packet, or 0 if there is none.
    pub(super) last_length: u32,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Cuts an IP packet of `length` bytes into packets of at most `mtu` bytes, each with the headers of the
/// first. `captured` is its beginning. Returns `None` if it fits, or if it is neither TCP nor UDP, because
/// only these are merged.
pub(super) fn cut(captured: &[u8], length: u32, protocol: u8, mtu: u32) -> Option<Pieces> {
    if length <= mtu {
        return None;
    }
    let headers = headers(captured, protocol)?;
    let room = mtu.checked_sub(headers).filter(|&room| room > 0)?;
    let payload = length.checked_sub(headers)?;
    let (full, rest) = (payload / room, payload % room);
    Some(Pieces {
        full,
        full_length: mtu,
        last_length: if rest == 0 { 0 } else { headers + rest },
    })
}

/// Returns the length of the IP and transport headers in bytes.
fn headers(captured: &[u8], protocol: u8) -> Option<u32> {
    let ip = match captured.first()? >> 4 {
        4 => u32::from(captured[0] & 0xf) * 4,
        _ => 40,
    };
    let transport = match protocol {
        // If the header was not captured completely, assume the usual 32 bytes, with time stamps.
        TCP => captured
            .get(ip as usize + 12)
            .map_or(32, |byte| u32::from(byte >> 4) * 4),
        UDP => 8,
        _ => return None,
    };
    Some(ip + transport)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_segments_are_cut_at_the_mtu() {
        let mut captured = [0u8; 52];
        captured[0] = 0x45;
        captured[20 + 12] = 0x80;
        let pieces = cut(&captured, 52 + 3 * 1448 + 10, TCP, 1500);
        assert_eq!(
            pieces,
            Some(Pieces {
                full: 3,
                full_length: 1500,
                last_length: 62
            })
        );
        assert_eq!(
            cut(&captured, 52 + 2 * 1448, TCP, 1500).map(|p| p.last_length),
            Some(0)
        );
        assert_eq!(cut(&captured, 1500, TCP, 1500), None);
        assert_eq!(cut(&captured, 9000, 50, 1500), None, "ESP is never merged");
        assert_eq!(cut(&[], 9000, TCP, 1500), None);
    }
}
