//! A buffer over a part of the file. Formats see whole records as slices, and errors have the offset.

use std::io::{self, Read};
use std::ops::Range;

use crate::decompress::Source;
use crate::error::CaptureError;
use crate::link::LinkType;

/// The number of bytes that are read from the source at a time.
const CHUNK: usize = 256 * 1024;

/// The bytes of a stream that have been read and not consumed.
pub(crate) struct Stream {
    source: Source,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset of `start` in the stream.
    offset: u64,
    /// The number of packets consumed so far, for errors.
    packets: u64,
    pub(crate) byte_order: ByteOrder,
    /// The error of the source. It is kept because a decompressor may report an end of file after an error.
    failure: Option<(io::ErrorKind, String)>,
    /// Whether the source has ended. It is kept because a decompressor may look for another stream after its
    /// end.
    has_ended: bool,
}

/// The byte order of the file's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Reads a number of two bytes.
    pub(crate) fn u16(self, data: &[u8], at: usize) -> u16 {
        let bytes = [data[at], data[at + 1]];
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Reads a number of four bytes.
    pub(crate) fn u32(self, data: &[u8], at: usize) -> u32 {
        let bytes = [data[at], data[at + 1], data[at + 2], data[at + 3]];
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Reads a signed number of eight bytes.
    pub(crate) fn i64(self, data: &[u8], at: usize) -> i64 {
        let (first, second) = (u64::from(self.u32(data, at)), u64::from(self.u32(data, at + 4)));
        match self {
            ByteOrder::Little => (second << 32 | first) as i64,
            ByteOrder::Big => (first << 32 | second) as i64,
        }
    }
}

/// The extent of the next packet, as found by a format.
pub(crate) struct Extent {
    /// Nanoseconds since 1970, if the record has a time.
    pub(crate) nanos: Option<u64>,
    pub(crate) link: LinkType,
    /// The original length, bytes.
    pub(crate) length: u32,
    /// The range of the captured bytes in the record.
    pub(crate) data: Range<usize>,
    /// The bytes of frame check sequence at the end of the frame.
    pub(crate) check_sequence: u8,
    /// The length of the whole record, bytes.
    pub(crate) record: usize,
}

impl Stream {
    /// The longest record. A longer one is damaged: this is far above what any program captures of a packet.
    pub(crate) const LONGEST_RECORD: u32 = 16 << 20;

    /// The greatest original length of a packet. Linux merges packets up to 8 times 65,535 bytes
    /// (`GSO_MAX_SIZE`), and a link-layer header comes before them. The cost of replaying a packet depends on
    /// its length, so a greater length must be rejected.
    pub(crate) const LONGEST_PACKET: u32 = 8 * 65_535 + 4096;

    pub(crate) fn new(source: Source) -> Stream {
        Stream {
            source,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            offset: 0,
            packets: 0,
            byte_order: ByteOrder::Little,
            failure: None,
            has_ended: false,
        }
    }

    /// Reads until `wanted` bytes are in the buffer or the stream ends, and returns the number of bytes in
    /// it. The buffer grows if needed. The caller has checked `wanted` against [`Stream::LONGEST_RECORD`].
    pub(crate) fn fill(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        if self.end - self.start >= wanted {
            return Ok(self.end - self.start);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted.next_multiple_of(CHUNK), 0);
        }
        while self.end < wanted && self.failure.is_none() && !self.has_ended {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.has_ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.failure = Some((error.kind(), error.to_string())),
            }
        }
        match &self.failure {
            Some((kind, message)) if self.end < wanted => Err(CaptureError::Read {
                offset: self.offset + self.end as u64,
                packets: self.packets,
                source: io::Error::new(*kind, message.as_str()),
            }),
            _ => Ok(self.end),
        }
    }

    /// Reads the first `needed` bytes of the record that starts here. Returns an error if the stream ends
    /// before. `what` is the kind of record.
    pub(crate) fn need(&mut self, needed: usize, what: &'static str) -> Result<(), CaptureError> {
        let there = self.fill(needed)?;
        if there < needed {
            return Err(CaptureError::Truncated {
                offset: self.offset,
                packets: self.packets,
                what,
                there: there as u64,
                needed: needed as u64,
            });
        }
        Ok(())
    }

    /// Whether the stream ends here, between two records.
    pub(crate) fn at_end(&mut self) -> Result<bool, CaptureError> {
        Ok(self.fill(1)? == 0)
    }

    /// Skips `count` bytes of the buffer.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start, "only buffered bytes are consumed");
        self.start += count;
        self.offset += count as u64;
    }

    /// Skips the record of a packet.
    pub(crate) fn consume_packet(&mut self, record: usize) {
        self.consume(record);
        self.packets += 1;
    }

    /// Returns the buffered bytes from the current offset on.
    pub(crate) fn data(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the number at byte `at` of the record that starts here.
    pub(crate) fn u32(&self, at: usize) -> u32 {
        self.byte_order.u32(self.data(), at)
    }

    /// Creates an error for the record that starts here.
    pub(crate) fn damaged(&self, what: String) -> CaptureError {
        CaptureError::Damaged {
            offset: self.offset,
            packets: self.packets,
            what,
        }
    }

    /// Returns the link type of that number, or an error if it is not supported.
    pub(crate) fn link(&self, number: u16) -> Result<LinkType, CaptureError> {
        LinkType::from_number(number).ok_or(CaptureError::UnsupportedLink {
            offset: self.offset,
            packets: self.packets,
            link: number,
        })
    }

    /// Returns a reader of the whole stream, for a decompressor after the format has been recognised.
    pub(crate) fn into_reader(mut self) -> impl Read + Send {
        self.buffer.truncate(self.end);
        self.buffer.drain(..self.start);
        io::Cursor::new(self.buffer).chain(self.source)
    }

    /// Checks the original length of a packet.
    pub(crate) fn original_length(&self, length: u32) -> Result<u32, CaptureError> {
        if length > Stream::LONGEST_PACKET {
            return Err(self.damaged(format!(
                "a packet claims an original length of {length} bytes, but hosts send at most {} at once",
                Stream::LONGEST_PACKET
            )));
        }
        Ok(length)
    }
}
