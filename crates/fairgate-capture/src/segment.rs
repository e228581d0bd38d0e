//! The TCP header of a captured packet, as far as a reconstruction of connections needs it.

use crate::record::IpPacket;

/// The header of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// The sequence number of the first byte, or of the SYN.
    pub sequence: u32,
    /// The next number that the sender expects, if the segment has an acknowledgement.
    pub acknowledged: Option<u32>,
    /// Whether the segment opens a connection.
    pub syn: bool,
    /// Whether the segment ends a direction (FIN) or the connection (RST).
    pub ends: bool,
    /// The length of the payload, bytes. Several segments may have been merged by the capturing host.
    pub payload: u32,
}

const TCP: u8 = 6;

/// The length of a TCP header without options, bytes.
const TCP_HEADER: usize = 20;

/// The maximum number of IPv6 extension headers that are read.
const EXTENSIONS_MAX: usize = 8;

impl TcpSegment {
    /// Reads the header. Returns `None` if the packet is no TCP segment, is a fragment other than the first,
    /// is malformed, or was captured without the whole fixed part of the header.
    pub fn of(packet: &IpPacket<'_>) -> Option<TcpSegment> {
        let bytes = packet.captured;
        let (offset, length) = match bytes.first()? >> 4 {
            4 => ipv4(bytes)?,
            6 => ipv6(bytes)?,
            _ => return None,
        };
        // A packet that was merged by the host may be too long for the field, which is then 0.
        let length = match length {
            0 => packet.length,
            length => length.min(packet.length),
        };
        let header = bytes.get(offset..offset + TCP_HEADER)?;
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("it has four bytes"));
        let header_length = usize::from(header[12] >> 4) * 4;
        let flags = header[13];
        let (fin, syn, rst, ack) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0, flags & 16 != 0);
        if header_length < TCP_HEADER {
            return None;
        }
        Some(TcpSegment {
            sequence: word(4),
            acknowledged: ack.then(|| word(8)),
            syn,
            ends: fin || rst,
            payload: length.saturating_sub((offset + header_length) as u32),
        })
    }
}

/// Returns the offset of the TCP header, and the length of the packet that the IPv4 header states.
fn ipv4(bytes: &[u8]) -> Option<(usize, u32)> {
    let header = bytes.get(..20)?;
    let fragment_offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    let length = usize::from(header[0] & 15) * 4;
    let is_tcp = header[9] == TCP && fragment_offset == 0 && length >= 20;
    is_tcp.then(|| (length, u16::from_be_bytes([header[2], header[3]]).into()))
}

/// The same for IPv6, behind its extension headers (RFC 8200, section 4).
fn ipv6(bytes: &[u8]) -> Option<(usize, u32)> {
    const HEADER: usize = 40;
    let header = bytes.get(..HEADER)?;
    let payload = u32::from(u16::from_be_bytes([header[4], header[5]]));
    let length = if payload == 0 { 0 } else { payload + HEADER as u32 };
    let (mut next, mut offset) = (header[6], HEADER);
    for _ in 0..EXTENSIONS_MAX {
        let units = match next {
            TCP => return Some((offset, length)),
            // Hop by hop, routing, destination options: the length counts units of 8 bytes, without the
            // first.
            0 | 43 | 60 => (usize::from(*bytes.get(offset + 1)?) + 1) * 8,
            // A fragment. Only the first one has the TCP header.
            44 if u16::from_be_bytes([*bytes.get(offset + 2)?, *bytes.get(offset + 3)?]) & 0xfff8 == 0 => 8,
            // Authentication: units of 4 bytes, without two.
            51 => (usize::from(*bytes.get(offset + 1)?) + 2) * 4,
            _ => return None,
        };
        next = *bytes.get(offset)?;
        offset += units;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn read(bytes: &[u8], length: u32) -> Option<TcpSegment> {
        TcpSegment::of(&IpPacket {
            length,
            captured: bytes,
        })
    }

    #[test]
    fn headers_of_both_families_are_read() {
        let v4 = PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64);
        let v6 = PacketBuilder::ipv6([1; 16], [2; 16], 64);
        for builder in [v4, v6] {
            let mut bytes = Vec::new();
            let tcp = builder.tcp(443, 50_000, 0xffff_fff0, 1000).ack(77).psh();
            let tcp = tcp
                .options(&[etherparse::TcpOptionElement::Timestamp(1, 2)])
                .expect("it fits");
            tcp.write(&mut bytes, &[0; 300]).expect("a vector takes all");
            let expected = TcpSegment {
                sequence: 0xffff_fff0,
                acknowledged: Some(77),
                syn: false,
                ends: false,
                payload: 300,
            };
            let length = bytes.len() as u32;
            assert_eq!(read(&bytes, length), Some(expected));
            // Cut by the snap length, and with padding of the link behind the packet.
            assert_eq!(read(&bytes[..72], length), Some(expected));
            assert_eq!(read(&bytes, length + 6), Some(expected));
            for end in 0..60 {
                assert_eq!(read(&bytes[..end.min(39)], length), None);
            }
        }
    }

    #[test]
    fn a_merged_packet_has_the_length_of_its_record() {
        let mut bytes = Vec::new();
        let tcp = PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64).tcp(443, 50_000, 5, 1000);
        tcp.write(&mut bytes, &[]).expect("a vector takes all");
        bytes[2..4].fill(0);
        assert_eq!(
            read(&bytes, 40 + 90_000).map(|segment| segment.payload),
            Some(90_000)
        );
    }

    #[test]
    fn other_packets_have_no_segment() {
        let mut bytes = Vec::new();
        let udp = PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64).udp(53, 53);
        udp.write(&mut bytes, &[0; 50]).expect("a vector takes all");
        assert_eq!(read(&bytes, 78), None);
        let mut fragment = Vec::new();
        let tcp = PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64).tcp(443, 50_000, 5, 1000);
        tcp.write(&mut fragment, &[]).expect("a vector takes all");
        fragment[7] = 1;
        assert_eq!(read(&fragment, 40), None);
        assert_eq!(read(&[], 0), None);
    }
}
