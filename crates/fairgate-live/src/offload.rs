//! Does in software what a sender left to its hardware: checksums, and cutting super-packets into segments.
//!
//! Inside one machine (veth, containers, virtual machines) a packet travels with half a checksum and up to 64 KiB of
//! TCP payload; nobody has "sent" it yet. A shaper must count packets as what the wire would carry, and the next host
//! drops a packet whose checksum nobody completed. The kernel tells what is missing in a virtio header in front of
//! each frame (`PACKET_VNET_HDR`; Linux `include/uapi/linux/virtio_net.h`).
//!
//! Segments are cut as the kernel cuts them (`tcp_gso_segment`, `inet_gso_segment`): IPv4 identification counts up,
//! sequence numbers advance by the segment size, FIN and PSH stay with the last segment, CWR with the first (RFC 3168).
//!
//! Non-goals: UDP fragmentation offload (gone from Linux since 4.14), tunnels inside super-packets, and frames over
//! 64 KiB ("BIG TCP"): such frames are refused, and counted by the caller.

use crate::checksum::Sum;
use crate::vlan::Tag;

/// Bytes of the header: the legacy form, without a buffer count.
pub(crate) const VNET_HEADER: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// Set beside a GSO type if the packet carries CWR. The flag itself says the same.
const GSO_ECN: u8 = 0x80;

const TCP_FIN_PSH: u8 = 0x01 | 0x08;
const TCP_CWR: u8 = 0x80;

/// What the sender left undone in a frame. All zero if nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    flags: u8,
    gso_type: u8,
    /// Payload bytes of a segment.
    gso_size: u16,
    /// Where checksumming starts: the transport header, from the start of the frame.
    checksum_start: u16,
    /// Where the checksum goes, from there.
    checksum_offset: u16,
}

impl VnetHeader {
    /// Reads the header; `bytes` are [`VNET_HEADER`] long and in the machine's byte order.
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> VnetHeader {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VnetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            // Bytes 2 and 3 hint at the length of all headers; they are too unreliable to cut by.
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// Whether the frame can go on as it is.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.flags & NEEDS_CHECKSUM == 0 && self.gso_type == GSO_NONE
    }
}

/// A frame that this module can't finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported;

/// Transport protocols by their IP protocol numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Transport {
    Tcp = 6,
    Udp = 17,
}

impl Transport {
    /// Where in the transport header its checksum is.
    fn checksum_offset(self) -> usize {
        match self {
            Transport::Tcp => 16,
            Transport::Udp => 6,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Work {
    /// One frame, one checksum to complete.
    Checksum { start: usize, field: usize },
    /// Many segments under copies of one header.
    Cut {
        transport: Transport,
        network: usize,
        start: usize,
        headers: usize,
        size: usize,
    },
}

/// The finished frames that an unfinished one stands for, one after the other.
#[derive(Debug)]
pub(crate) struct Segments<'a> {
    frame: &'a [u8],
    work: Work,
    /// Payload bytes written so far.
    done: usize,
    index: u16,
    finished: bool,
}

impl<'a> Segments<'a> {
    /// Looks at what is to be done.
    pub(crate) fn new(frame: &'a [u8], offload: VnetHeader) -> Result<Segments<'a>, Unsupported> {
        let start = usize::from(offload.checksum_start);
        let work = match offload.gso_type & !GSO_ECN {
            GSO_NONE => {
                let field = start + usize::from(offload.checksum_offset);
                if field + 2 > frame.len() {
                    return Err(Unsupported);
                }
                Work::Checksum { start, field }
            }
            gso @ (GSO_TCP4 | GSO_TCP6 | GSO_UDP_L4) => {
                let network = network_header(frame).ok_or(Unsupported)?;
                let (transport, shortest) = match gso {
                    GSO_UDP_L4 => (Transport::Udp, 8),
                    _ => (Transport::Tcp, 20),
                };
                // An IPv4 or IPv6 header lies between, so that fields of it can be indexed below.
                let ip = frame.get(network).map_or(0, |first| first >> 4);
                let shortest_ip = if ip == 4 { 20 } else { 40 };
                let size = usize::from(offload.gso_size);
                if start < network + shortest_ip || start + shortest > frame.len() || size == 0 {
                    return Err(Unsupported);
                }
                let headers = start
                    + match transport {
                        Transport::Tcp => usize::from(frame[start + 12] >> 4) * 4,
                        Transport::Udp => 8,
                    };
                if headers < start + shortest || headers >= frame.len() || frame.len() > 0xffff + network {
                    return Err(Unsupported);
                }
                Work::Cut {
                    transport,
                    network,
                    start,
                    headers,
                    size,
                }
            }
            _ => return Err(Unsupported),
        };
        Ok(Segments {
            frame,
            work,
            done: 0,
            index: 0,
            finished: false,
        })
    }

    /// Length of the longest frame that will be written.
    pub(crate) fn longest(&self) -> usize {
        match self.work {
            Work::Checksum { .. } => self.frame.len(),
            Work::Cut { headers, size, .. } => self.frame.len().min(headers + size),
        }
    }

    /// Whether all frames have been written.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Writes the next frame to the front of `out`, which has room for [`Segments::longest`] bytes, and returns its
    /// length. To be called until [`Segments::is_finished`].
    pub(crate) fn write_next(&mut self, out: &mut [u8]) -> usize {
        debug_assert!(!self.finished);
        match self.work {
            Work::Checksum { start, field } => {
                let out = &mut out[..self.frame.len()];
                out.copy_from_slice(self.frame);
                // The field holds the sum of the pseudo header already.
                complete_checksum(out, Sum::default(), start, field);
                self.finished = true;
                out.len()
            }
            Work::Cut {
                transport,
                network,
                start,
                headers,
                size,
            } => {
                let payload = &self.frame[headers..][self.done..];
                let payload = &payload[..payload.len().min(size)];
                let out = &mut out[..headers + payload.len()];
                out[..headers].copy_from_slice(&self.frame[..headers]);
                out[headers..].copy_from_slice(payload);
                let first = self.index == 0;
                let last = headers + self.done + payload.len() == self.frame.len();
                let pseudo = patch_network(out, network, start, self.index, transport);
                match transport {
                    Transport::Tcp => patch_tcp(&mut out[start..], self.done as u32, first, last),
                    Transport::Udp => {
                        let length = ((out.len() - start) as u16).to_be_bytes();
                        out[start + 4..start + 6].copy_from_slice(&length);
                    }
                }
                let field = start + transport.checksum_offset();
                out[field..field + 2].fill(0);
                complete_checksum(out, pseudo, start, field);
                self.done += payload.len();
                self.index = self.index.wrapping_add(1);
                self.finished = last;
                out.len()
            }
        }
    }
}

/// Offset of the IP header, behind any number of VLAN tags.
fn network_header(frame: &[u8]) -> Option<usize> {
    let mut at = Tag::POSITION;
    loop {
        match u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]) {
            Tag::CUSTOMER | Tag::SERVICE => at += Tag::BYTES,
            0x0800 | 0x86dd => return Some(at + 2),
            _ => return None,
        }
    }
}

/// Writes length, identification and header checksum of segment `index`, and returns the sum of the pseudo header
/// (RFC 9293 section 3.1, RFC 8200 section 8.1).
fn patch_network(out: &mut [u8], network: usize, start: usize, index: u16, transport: Transport) -> Sum {
    let transport_length = ((out.len() - start) as u16).to_be_bytes();
    let header = &mut out[network..];
    if header[0] >> 4 == 4 {
        let length = header.len() as u16;
        header[2..4].copy_from_slice(&length.to_be_bytes());
        let identification = u16::from_be_bytes([header[4], header[5]]).wrapping_add(index);
        header[4..6].copy_from_slice(&identification.to_be_bytes());
        header[10..12].fill(0);
        let checksum = Sum::default().add(&header[..start - network]).finish();
        header[10..12].copy_from_slice(&checksum);
        Sum::default()
            .add(&header[12..20])
            .add(&[0, transport as u8])
            .add(&transport_length)
    } else {
        let length = (header.len() - 40) as u16;
        header[4..6].copy_from_slice(&length.to_be_bytes());
        // Extension headers may lie between: the protocol is the transport's, not the next header's.
        Sum::default()
            .add(&header[8..40])
            .add(&[0, transport as u8])
            .add(&transport_length)
    }
}

/// Writes what differs between the segments of one TCP super-packet; `advance` is the payload before this one.
fn patch_tcp(header: &mut [u8], advance: u32, first: bool, last: bool) {
    let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]).wrapping_add(advance);
    header[4..8].copy_from_slice(&sequence.to_be_bytes());
    if !last {
        header[13] &= !TCP_FIN_PSH;
    }
    if !first {
        header[13] &= !TCP_CWR;
    }
}

/// Sums from `start` to the end, on top of `sum`, and writes the checksum at `field`.
fn complete_checksum(frame: &mut [u8], sum: Sum, start: usize, field: usize) {
    let mut checksum = sum.add(&frame[start..]).finish();
    // All zero means "no checksum" in UDP; the other zero stands in for it (RFC 768), and is as good for TCP.
    if checksum == [0, 0] {
        checksum = [0xff, 0xff];
    }
    frame[field..field + 2].copy_from_slice(&checksum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice, VlanId};
    use proptest::prelude::*;

    /// The header as the kernel writes it.
    fn vnet(flags: u8, gso_type: u8, size: u16, start: usize, offset: u16) -> VnetHeader {
        let mut bytes = vec![flags, gso_type, 0, 0];
        for word in [size, start as u16, offset] {
            bytes.extend(word.to_ne_bytes());
        }
        VnetHeader::parse(&bytes)
    }

    /// A TCP frame with all flags that segmentation treats specially. Returns it with its transport header's offset.
    fn tcp_frame(version: u8, tagged: bool, payload: &[u8]) -> (Vec<u8>, usize) {
        let link = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let mut frame = Vec::new();
        macro_rules! write {
            ($builder:expr) => {{
                let tcp = if version == 4 {
                    $builder.ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
                } else {
                    $builder.ipv6([1; 16], [2; 16], 64)
                }
                .tcp(4242, 80, u32::MAX - 2000, 1000)
                .ack(77)
                .psh()
                .fin()
                .cwr();
                let tcp = tcp
                    .options_raw(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2])
                    .expect("a time stamp option");
                tcp.write(&mut frame, payload)
                    .expect("a frame below 64 KiB");
            }};
        }
        if tagged {
            write!(link.single_vlan(VlanId::try_new(5).unwrap()));
        } else {
            write!(link);
        }
        let start = 14 + if tagged { 4 } else { 0 } + if version == 4 { 20 } else { 40 };
        (frame, start)
    }

    /// Writes all frames out.
    fn finish(frame: &[u8], offload: VnetHeader) -> Vec<Vec<u8>> {
        let mut segments = Segments::new(frame, offload).unwrap();
        let mut out = vec![0xee; segments.longest()];
        let mut frames = Vec::new();
        while !segments.is_finished() {
            let length = segments.write_next(&mut out);
            frames.push(out[..length].to_vec());
        }
        frames
    }

    /// Checks lengths and all checksums of a frame with a parser that isn't ours; returns its TCP header and payload.
    fn check_tcp(frame: &[u8]) -> (etherparse::TcpHeader, Option<u16>, Vec<u8>) {
        let parsed = SlicedPacket::from_ethernet(frame).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = parsed.transport else {
            panic!("no TCP: {parsed:?}")
        };
        let header = tcp.to_header();
        let (identification, checksum) = match parsed.net.unwrap() {
            NetSlice::Ipv4(ip) => {
                let ip = ip.header().to_header();
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                (
                    Some(ip.identification),
                    header.calc_checksum_ipv4(&ip, tcp.payload()).unwrap(),
                )
            }
            NetSlice::Ipv6(ip) => {
                let ip = ip.header().to_header();
                (None, header.calc_checksum_ipv6(&ip, tcp.payload()).unwrap())
            }
            other => panic!("not IP: {other:?}"),
        };
        assert_eq!(header.checksum, checksum);
        (header, identification, tcp.payload().to_vec())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A super-packet becomes segments that a receiver puts together to the same bytes.
        #[test]
        fn segments_carry_the_payload_and_hold_up_to_a_parser(
            payload in proptest::collection::vec(any::<u8>(), 1..9000),
            version in prop_oneof![Just(4u8), Just(6)],
            tagged: bool,
            size in 100u16..3000,
        ) {
            let (frame, start) = tcp_frame(version, tagged, &payload);
            let gso = if version == 4 { GSO_TCP4 } else { GSO_TCP6 };
            let frames = finish(&frame, vnet(NEEDS_CHECKSUM, gso | GSO_ECN, size, start, 16));
            prop_assert_eq!(frames.len(), payload.len().div_ceil(usize::from(size)));
            let (first, first_id, _) = check_tcp(&frame);
            let mut carried = Vec::new();
            for (index, segment) in frames.iter().enumerate() {
                let (tcp, id, bytes) = check_tcp(segment);
                prop_assert!(bytes.len() <= usize::from(size));
                prop_assert_eq!(tcp.sequence_number, first.sequence_number.wrapping_add(carried.len() as u32));
                prop_assert_eq!(id, first_id.map(|id| id.wrapping_add(index as u16)));
                let last = index + 1 == frames.len();
                prop_assert_eq!((tcp.fin, tcp.psh, tcp.cwr, tcp.ack), (last, last, index == 0, true));
                prop_assert_eq!(tcp.options.as_slice(), first.options.as_slice());
                carried.extend(bytes);
            }
            prop_assert_eq!(carried, payload);
        }

        /// Half a checksum, as a sender with checksum offload leaves it, becomes a whole one.
        #[test]
        fn a_partial_checksum_is_completed(payload in proptest::collection::vec(any::<u8>(), 0..1500)) {
            let (whole, start) = tcp_frame(4, false, &payload);
            let mut half = whole.clone();
            let length = ((whole.len() - start) as u16).to_be_bytes();
            let pseudo = Sum::default().add(&whole[26..34]).add(&[0, 6]).add(&length).finish();
            // The field holds the sum itself, not its complement.
            half[start + 16] = !pseudo[0];
            half[start + 17] = !pseudo[1];
            let frames = finish(&half, vnet(NEEDS_CHECKSUM, GSO_NONE, 0, start, 16));
            prop_assert_eq!(frames.len(), 1);
            check_tcp(&frames[0]);
        }

        /// Whatever the headers claim, nothing is read or written out of bounds.
        #[test]
        fn nonsense_is_refused_or_finished(
            frame in proptest::collection::vec(any::<u8>(), 0..200),
            ethertype in prop_oneof![Just([0x08, 0x00]), Just([0x86, 0xdd]), Just([0x81, 0x00])],
            header in proptest::array::uniform10(0u8..120),
            gso in prop_oneof![Just(0u8), Just(1), Just(3), Just(4), Just(5)],
        ) {
            let mut frame = frame;
            if frame.len() > 14 {
                frame[12..14].copy_from_slice(&ethertype);
                frame[14] = if ethertype[0] == 0x08 { 0x45 } else { 0x60 };
            }
            let mut header = header;
            header[0] = NEEDS_CHECKSUM;
            header[1] = gso;
            for at in [5, 7, 9] {
                header[at] = 0;
            }
            let offload = VnetHeader::parse(&header);
            if Segments::new(&frame, offload).is_ok() {
                let total: usize = finish(&frame, offload).iter().map(Vec::len).sum();
                prop_assert!(total >= frame.len());
            }
        }
    }

    #[test]
    fn udp_is_cut_into_datagrams() {
        let payload: Vec<u8> = (0..2500).map(|byte| byte as u8).collect();
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
            .udp(1, 2)
            .write(&mut frame, &payload)
            .unwrap();
        let frames = finish(&frame, vnet(NEEDS_CHECKSUM, GSO_UDP_L4, 1000, 34, 6));
        let mut carried = Vec::new();
        for datagram in &frames {
            let parsed = SlicedPacket::from_ethernet(datagram).unwrap();
            let (Some(TransportSlice::Udp(udp)), Some(NetSlice::Ipv4(ip))) = (parsed.transport, parsed.net)
            else {
                panic!("not UDP");
            };
            let header = udp.to_header();
            assert_eq!(usize::from(header.length), 8 + udp.payload().len());
            let expected = header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload());
            assert_eq!(header.checksum, expected.unwrap());
            carried.extend(udp.payload());
        }
        assert_eq!((frames.len(), carried), (3, payload));
    }

    #[test]
    fn what_can_not_be_cut_is_refused() {
        let (frame, start) = tcp_frame(4, false, &[7; 3000]);
        // UDP fragmentation offload; no segment size; no place for the checksum.
        assert_eq!(
            Segments::new(&frame, vnet(1, 3, 1000, start, 16)).err(),
            Some(Unsupported)
        );
        assert_eq!(
            Segments::new(&frame, vnet(1, GSO_TCP4, 0, start, 16)).err(),
            Some(Unsupported)
        );
        assert_eq!(
            Segments::new(&frame, vnet(1, GSO_NONE, 0, 5000, 16)).err(),
            Some(Unsupported)
        );
    }
}
