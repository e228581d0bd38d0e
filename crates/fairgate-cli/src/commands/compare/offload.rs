//! Packets longer than any that a line carries: hosts join received segments and leave large ones to the network card
//! to cut (GRO, TSO), and a capture on the host shows them so. On the line they were packets of at most the MTU.

/// How a packet of the capture went over the line: lengths of IP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Packets of full length.
    pub(super) full: u32,
    /// Their length.
    pub(super) full_length: u32,
    /// Length of one more, 0 if there is none.
    pub(super) last_length: u32,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Cuts an IP packet of `length` bytes, of which `captured` is the beginning, to packets of at most `mtu` bytes, each
/// with the headers of the first. `None` if it fits, or is neither TCP nor UDP: nobody joins others.
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

/// Bytes of the IP and transport headers.
fn headers(captured: &[u8], protocol: u8) -> Option<u32> {
    let ip = match captured.first()? >> 4 {
        4 => u32::from(captured[0] & 0xf) * 4,
        _ => 40,
    };
    let transport = match protocol {
        // The usual 32 bytes, with a time stamp, if the capture was cut before the length.
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
    fn joined_segments_come_apart_at_the_mtu() {
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
        assert_eq!(cut(&captured, 9000, 50, 1500), None, "ESP is never joined");
        assert_eq!(cut(&[], 9000, TCP, 1500), None);
    }
}
