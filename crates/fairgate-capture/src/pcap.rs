//! The classic format: a file header of 24 bytes, then records of a 16-byte header and data.
//!
//! Source: draft-ietf-opsawg-pcap. Both byte orders, microseconds and nanoseconds.
//!
//! ```text
//!   file header  magic 4 | version 2+2 | zone 4 | accuracy 4 | snap length 4 | link type 4
//!   record       seconds 4 | sub-second 4 | captured 4 | length on the wire 4 | data
//! ```

use fairgate::flow::LinkType;

use crate::error::CaptureError;
use crate::stream::{ByteOrder, Extent, Stream};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// The most that libpcap ever captures of a packet (`MAXIMUM_SNAPLEN`). A longer record, unless the file header
/// announces it, is garbage read as a length.
const MAXIMUM_SNAPLEN: u32 = 262_144;

/// What the file header says.
pub(crate) struct Pcap {
    /// Nanoseconds in a unit of the sub-second field: 1 or 1000.
    unit_nanos: u32,
    longest: u32,
    link: LinkType,
}

/// Byte order and unit of the sub-second field in ns, if `magic` is the format's.
fn decode_magic(magic: &[u8]) -> Option<(ByteOrder, u32)> {
    match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => Some((ByteOrder::Little, 1000)),
        [0xa1, 0xb2, 0xc3, 0xd4] => Some((ByteOrder::Big, 1000)),
        [0x4d, 0x3c, 0xb2, 0xa1] => Some((ByteOrder::Little, 1)),
        [0xa1, 0xb2, 0x3c, 0x4d] => Some((ByteOrder::Big, 1)),
        _ => None,
    }
}

impl Pcap {
    /// Reads the file header, if `stream` starts with the format's magic.
    pub(crate) fn start(stream: &mut Stream) -> Result<Option<Pcap>, CaptureError> {
        let Some((byte_order, unit_nanos)) = decode_magic(&stream.data()[..4]) else {
            return Ok(None);
        };
        stream.byte_order = byte_order;
        stream.need(FILE_HEADER, "the file header")?;
        let version = byte_order.u16(stream.data(), 4);
        if version != 2 {
            return Err(stream.damaged(format!(
                "the file header says format version {version}, known is 2"
            )));
        }
        // The upper bits tell whether a frame check sequence follows the packet, which changes nothing here.
        let number = stream.u32(20) as u16;
        let link = LinkType::from_linktype(number).ok_or_else(|| stream.unsupported(number))?;
        let longest = stream.u32(16).clamp(MAXIMUM_SNAPLEN, Stream::LONGEST_RECORD);
        stream.consume(FILE_HEADER);
        Ok(Some(Pcap {
            unit_nanos,
            longest,
            link,
        }))
    }

    /// Finds the next packet.
    pub(crate) fn next(&mut self, stream: &mut Stream) -> Result<Option<Extent>, CaptureError> {
        if stream.at_end()? {
            return Ok(None);
        }
        stream.need(RECORD_HEADER, "a packet's header")?;
        let (seconds, fraction, captured) = (stream.u32(0), stream.u32(4), stream.u32(8));
        if captured > self.longest {
            return Err(stream.damaged(format!(
                "a packet's header says that {captured} bytes of it were captured, at most {} can be",
                self.longest
            )));
        }
        let units_a_second = 1_000_000_000 / self.unit_nanos;
        if fraction >= units_a_second {
            return Err(stream.damaged(format!(
                "a packet's time is {fraction} units past the second, but a second has {units_a_second}"
            )));
        }
        let length = stream.length_on_wire(stream.u32(12))?;
        let record = RECORD_HEADER + captured as usize;
        stream.need(record, "a packet")?;
        Ok(Some(Extent {
            nanos: Some(u64::from(seconds) * 1_000_000_000 + u64::from(fraction * self.unit_nanos)),
            link: self.link,
            length,
            data: RECORD_HEADER..record,
            record,
        }))
    }
}
