//! Reads the classic format: a file header of 24 bytes, then records of a 16-byte header and data.
//!
//! Source: draft-ietf-opsawg-pcap. Both byte orders are read, microseconds and nanoseconds, and the variant
//! of old Linux distributions with a longer record header.
//!
//! ```text
//!   file header  magic 4 | version 2+2 | zone 4 | accuracy 4 | snap length 4 | link type 4
//!   record       seconds 4 | sub-second 4 | captured 4 | original length 4 | data
//!   modified     the same header, then interface 4 | protocol 2 | kind 2 | data
//! ```

use crate::error::CaptureError;
use crate::link::LinkType;
use crate::stream::{ByteOrder, Extent, Stream};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const MODIFIED_RECORD_HEADER: usize = 24;

/// The most bytes that libpcap captures of a packet (`MAXIMUM_SNAPLEN`). A longer record is damaged, unless
/// the file header announces it.
const MAXIMUM_SNAPLEN: u32 = 262_144;

/// The content of the file header.
pub(crate) struct Pcap {
    /// Nanoseconds in a unit of the sub-second field: 1 or 1000.
    unit_nanos: u32,
    record_header: usize,
    lengths: Lengths,
    longest: u32,
    link: LinkType,
    check_sequence: u8,
}

/// The order of the captured and the original length in a record header.
enum Lengths {
    CapturedFirst,
    CapturedLast,
    /// Version 2.3: programs used either order. The smaller number is the captured length.
    Either,
}

/// Returns the byte order, the unit of the sub-second field in ns, and the length of a record header. Returns
/// `None` if `magic` is not that of the format.
fn decode_magic(magic: &[u8]) -> Option<(ByteOrder, u32, usize)> {
    match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => Some((ByteOrder::Little, 1000, RECORD_HEADER)),
        [0xa1, 0xb2, 0xc3, 0xd4] => Some((ByteOrder::Big, 1000, RECORD_HEADER)),
        [0x4d, 0x3c, 0xb2, 0xa1] => Some((ByteOrder::Little, 1, RECORD_HEADER)),
        [0xa1, 0xb2, 0x3c, 0x4d] => Some((ByteOrder::Big, 1, RECORD_HEADER)),
        [0x34, 0xcd, 0xb2, 0xa1] => Some((ByteOrder::Little, 1000, MODIFIED_RECORD_HEADER)),
        [0xa1, 0xb2, 0xcd, 0x34] => Some((ByteOrder::Big, 1000, MODIFIED_RECORD_HEADER)),
        _ => None,
    }
}

/// Returns the bytes of frame check sequence, from the upper bits of the link type. If bit 26 is set, bits 28
/// to 31 count them in units of 16 bits.
fn check_sequence(link_and_more: u32) -> u8 {
    match link_and_more >> 26 & 1 {
        0 => 0,
        _ => (link_and_more >> 28) as u8 * 2,
    }
}

impl Pcap {
    /// Reads the file header if `stream` starts with the magic number of the format.
    pub(crate) fn start(stream: &mut Stream) -> Result<Option<Pcap>, CaptureError> {
        let Some((byte_order, unit_nanos, record_header)) = decode_magic(&stream.data()[..4]) else {
            return Ok(None);
        };
        stream.byte_order = byte_order;
        stream.need(FILE_HEADER, "the file header")?;
        let version = byte_order.u16(stream.data(), 4);
        if version != 2 {
            return Err(stream.damaged(format!(
                "the file header has format version {version}, but only version 2 is supported"
            )));
        }
        let lengths = match byte_order.u16(stream.data(), 6) {
            0..=2 => Lengths::CapturedLast,
            3 => Lengths::Either,
            _ => Lengths::CapturedFirst,
        };
        let link_and_more = stream.u32(20);
        let link = stream.link(link_and_more as u16)?;
        let longest = stream.u32(16).clamp(MAXIMUM_SNAPLEN, Stream::LONGEST_RECORD);
        stream.consume(FILE_HEADER);
        Ok(Some(Pcap {
            unit_nanos,
            record_header,
            lengths,
            longest,
            link,
            check_sequence: check_sequence(link_and_more),
        }))
    }

    /// Finds the next packet.
    pub(crate) fn next(&mut self, stream: &mut Stream) -> Result<Option<Extent>, CaptureError> {
        if stream.at_end()? {
            return Ok(None);
        }
        stream.need(self.record_header, "a packet's header")?;
        let (seconds, fraction, first, second) =
            (stream.u32(0), stream.u32(4), stream.u32(8), stream.u32(12));
        let (captured, length) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::CapturedLast => (second, first),
            Lengths::Either => (first.min(second), first.max(second)),
        };
        if captured > self.longest {
            return Err(stream.damaged(format!(
                "a packet's header says that {captured} bytes were captured, but at most {} are possible",
                self.longest
            )));
        }
        // Some programs round up to the next second or beyond without a carry.
        let units_a_second = 1_000_000_000 / self.unit_nanos;
        if fraction >= 2 * units_a_second {
            return Err(stream.damaged(format!(
                "a packet's time is {fraction} units past the second, but a second has only {units_a_second}"
            )));
        }
        let length = stream.original_length(length)?;
        let record = self.record_header + captured as usize;
        stream.need(record, "a packet")?;
        Ok(Some(Extent {
            nanos: Some(u64::from(seconds) * 1_000_000_000 + u64::from(fraction * self.unit_nanos)),
            link: self.link,
            length,
            data: self.record_header..record,
            check_sequence: self.check_sequence,
            record,
        }))
    }
}
