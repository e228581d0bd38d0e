//! Writes the packets that an interface sends into a capture, with headers.
//!
//! A simulated packet has no bytes. Its headers are made here: IPv4 or IPv6, then UDP, TCP or ICMP echo, with
//! valid checksums. The payload is zeros.
//!
//! * The simulator counts IPv4 headers for every packet. An IPv6 packet is 20 bytes longer in a capture.
//! * TCP's sequence numbers begin at 0 in both directions, and keep the lower 32 bits. Windows are scaled by
//!   2^7, as Linux does with its default buffers. The MSS option says 1460, whatever the connection uses.
//! * The identification of IPv4 headers is 0, with the bit "don't fragment". The TTL is 64 everywhere.

use std::io::{self, Write};

use etherparse::{
    IpDscp, IpEcn, IpHeaders, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder, PacketBuilderStep,
    TcpHeader,
};
use fairgate::flow::ethertype::IPV4;
use fairgate::{Ecn, FlowKey, Time};
use fairgate_capture::{LinkType, PcapngWriter};

use crate::tcp::{Flags, Segment};

/// The shift of the window field.
const WINDOW_SCALE: u8 = 7;
const TTL: u8 = 64;
/// The lengths of headers, bytes.
const IPV4_HEADER: u32 = 20;
const UDP_HEADER: u32 = 8;
const ECHO_HEADER: u32 = 8;
/// Protocol numbers.
const UDP: u8 = 17;
pub(super) const TCP: u8 = 6;

/// Zeros for payloads.
static PAYLOAD: [u8; 1 << 16] = [0; 1 << 16];

/// The destination of a capture.
type Sink = Box<dyn Write + Send>;

/// Captures the packets of an interface.
pub(crate) struct Tap {
    writer: PcapngWriter<Sink>,
    snap_length: u32,
    /// The packet that is being written.
    packet: Vec<u8>,
    /// The first error. Nothing is written after it.
    error: Option<io::Error>,
}

/// What is in a packet.
pub(crate) struct Content<'a> {
    pub(crate) headers: &'a FlowKey,
    pub(crate) dscp: u8,
    pub(crate) ecn: Ecn,
    /// The segment of a TCP packet, or with the number of an echo request.
    pub(crate) segment: &'a Segment,
    /// Whether it goes from the flow's destination to its source.
    pub(crate) is_back: bool,
    /// The length of the IPv4 packet.
    pub(crate) length: u32,
}

impl Tap {
    pub(crate) fn new(sink: Box<dyn Write + Send>, snap_length: u32, interface: &str) -> io::Result<Tap> {
        Ok(Tap {
            writer: PcapngWriter::new(sink, LinkType::RAW_IP, snap_length, interface)?,
            snap_length,
            packet: Vec::new(),
            error: None,
        })
    }

    /// Writes a packet that is sent now.
    pub(crate) fn packet(&mut self, now: Time, content: &Content<'_>) {
        if self.error.is_some() {
            return;
        }
        self.packet.clear();
        content.write(&mut self.packet);
        let length = self.packet.len() as u32;
        let kept = &self.packet[..length.min(self.snap_length) as usize];
        self.error = self.writer.packet(now, length, kept).err();
    }

    /// Completes the capture.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.finish().map(|_| ()),
        }
    }
}

impl Content<'_> {
    /// Appends the bytes of the packet.
    fn write(&self, into: &mut Vec<u8>) {
        let (ip, key) = (PacketBuilder::ip(self.ip()), self.headers);
        let payload = |headers: u32| self.length.saturating_sub(IPV4_HEADER + headers) as usize;
        // Only a header that does not fit its fields can fail, and packets have less than 64 KiB.
        const FITS: &str = "a simulated packet is not too long for its headers";
        match key.protocol {
            TCP => {
                let payload = &PAYLOAD[..self.segment.length as usize];
                ip.tcp_header(self.tcp()).write(into, payload).expect(FITS);
            }
            UDP => {
                let payload = &PAYLOAD[..payload(UDP_HEADER)];
                ip.udp(key.source_port, key.destination_port)
                    .write(into, payload)
                    .expect(FITS);
            }
            _ => {
                let payload = &PAYLOAD[..payload(ECHO_HEADER)];
                self.echo(ip).write(into, payload).expect(FITS);
            }
        }
    }

    fn ip(&self) -> IpHeaders {
        let key = self.headers;
        let [dscp, ecn] = [self.dscp & 0x3f, self.ecn as u8];
        if key.ethertype == IPV4 {
            // The address is the last four bytes of a mapped one.
            let address = |mapped: &[u8; 16]| [mapped[12], mapped[13], mapped[14], mapped[15]];
            let header = Ipv4Header {
                dscp: IpDscp::try_new(dscp).expect("six bits"),
                ecn: IpEcn::try_new(ecn).expect("two bits"),
                dont_fragment: true,
                time_to_live: TTL,
                source: address(&key.source),
                destination: address(&key.destination),
                ..Ipv4Header::default()
            };
            return IpHeaders::Ipv4(header, Default::default());
        }
        let header = Ipv6Header {
            traffic_class: dscp << 2 | ecn,
            flow_label: Ipv6FlowLabel::try_new(key.flow_label & 0xf_ffff).expect("20 bits"),
            hop_limit: TTL,
            source: key.source,
            destination: key.destination,
            ..Ipv6Header::default()
        };
        IpHeaders::Ipv6(header, Default::default())
    }

    fn tcp(&self) -> TcpHeader {
        let segment = self.segment;
        let has = |flag| segment.flags.contains(flag);
        // The counter of AccECN takes the place of three flags, except on a SYN.
        let counter = if has(Flags::SYN) {
            0
        } else {
            segment.accurate_ecn.packets()
        };
        let mut header = TcpHeader {
            acknowledgment_number: if has(Flags::ACK) { segment.ack as u32 } else { 0 },
            ns: counter & 4 != 0,
            cwr: has(Flags::CWR) || counter & 2 != 0,
            ece: has(Flags::ECE) || counter & 1 != 0,
            fin: has(Flags::FIN),
            syn: has(Flags::SYN),
            psh: has(Flags::PSH),
            ack: has(Flags::ACK),
            ..TcpHeader::new(
                self.headers.source_port,
                self.headers.destination_port,
                segment.seq as u32,
                window(segment),
            )
        };
        header
            .set_options_raw(&options(segment))
            .expect("the options have at most 40 bytes");
        header
    }

    fn echo(&self, ip: PacketBuilderStep<IpHeaders>) -> Echo {
        let (id, number) = (self.headers.source_port, self.segment.seq as u16);
        match (self.headers.ethertype == IPV4, self.is_back) {
            (true, false) => Echo::V4(ip.icmpv4_echo_request(id, number)),
            (true, true) => Echo::V4(ip.icmpv4_echo_reply(id, number)),
            (false, false) => Echo::V6(ip.icmpv6_echo_request(id, number)),
            (false, true) => Echo::V6(ip.icmpv6_echo_reply(id, number)),
        }
    }
}

/// An echo request or answer of one of the two protocols.
enum Echo {
    V4(PacketBuilderStep<etherparse::Icmpv4Header>),
    V6(PacketBuilderStep<etherparse::Icmpv6Header>),
}

impl Echo {
    fn write(
        self,
        into: &mut Vec<u8>,
        payload: &[u8],
    ) -> Result<(), etherparse::err::packet::BuildWriteError> {
        match self {
            Echo::V4(packet) => packet.write(into, payload),
            Echo::V6(packet) => packet.write(into, payload),
        }
    }
}

/// Returns the window field. That of a SYN is not scaled.
fn window(segment: &Segment) -> u16 {
    let shift = if segment.flags.contains(Flags::SYN) {
        0
    } else {
        WINDOW_SCALE
    };
    u16::try_from(segment.window >> shift).unwrap_or(u16::MAX)
}

/// Returns the options, which have the length that the simulator counts.
fn options(segment: &Segment) -> Vec<u8> {
    let mut options = Vec::with_capacity(40);
    if segment.flags.contains(Flags::SYN) {
        options.extend([2, 4]);
        options.extend(1460u16.to_be_bytes());
        // SACK permitted.
        options.extend([4, 2]);
    } else {
        options.extend([1, 1]);
    }
    options.extend([8, 10]);
    options.extend(segment.timestamp.to_be_bytes());
    options.extend(segment.echo.to_be_bytes());
    if segment.flags.contains(Flags::SYN) {
        options.extend([1, 3, 3, WINDOW_SCALE]);
        return options;
    }
    let blocks = segment.sack.as_slice();
    if !blocks.is_empty() {
        options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for block in blocks {
            options.extend((block.start as u32).to_be_bytes());
            options.extend((block.end as u32).to_be_bytes());
        }
    }
    if let Some(marked) = segment.accurate_ecn.bytes() {
        // AccECN0 (RFC 9768, section 3.2.3): the counter of ECT(0) bytes, which begins at 1 and is not
        // simulated, and that of marked bytes.
        options.extend([172, 8, 0, 0, 1]);
        options.extend(&marked.to_be_bytes()[1..]);
    }
    options
}
