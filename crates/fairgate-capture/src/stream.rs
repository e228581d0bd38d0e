//! A buffer that slides over a file: formats see whole records as slices, and errors know the byte.

use std::io::{self, Read};
use std::ops::Range;

use crate::decompress::Source;
use crate::error::CaptureError;
use crate::link::LinkType;

/// Bytes asked of the source at a time.
const CHUNK: usize = 256 * 1024;

/// The part of a stream that has been read and not yet consumed.
pub(crate) struct Stream {
    source: Source,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Position of `start` in the stream.
    offset: u64,
    /// Packets consumed so far, for errors to tell.
    packets: u64,
    pub(crate) byte_order: ByteOrder,
    /// Why the source can't be read on: a decompressor asked again would say that this is the end.
    failure: Option<(io::ErrorKind, String)>,
    /// The source has ended: a decompressor asked again might look for another stream.
    has_ended: bool,
}

/// How the file's numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Two bytes as a number.
    pub(crate) fn u16(self, data: &[u8], at: usize) -> u16 {
        let bytes = [data[at], data[at + 1]];
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Four bytes as a number.
    pub(crate) fn u32(self, data: &[u8], at: usize) -> u32 {
        let bytes = [data[at], data[at + 1], data[at + 2], data[at + 3]];
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Eight bytes as a signed number.
    pub(crate) fn i64(self, data: &[u8], at: usize) -> i64 {
        let (first, second) = (u64::from(self.u32(data, at)), u64::from(self.u32(data, at + 4)));
        match self {
            ByteOrder::Little => (second << 32 | first) as i64,
            ByteOrder::Big => (first << 32 | second) as i64,
        }
    }
}

/// Where the next packet lies: what a format found out from its record.
pub(crate) struct Extent {
    /// Nanoseconds since 1970, if the record has a time.
    pub(crate) nanos: Option<u64>,
    pub(crate) link: LinkType,
    /// Bytes on the wire.
    pub(crate) length: u32,
    /// The captured bytes, counted from the record's first.
    pub(crate) data: Range<usize>,
    /// Bytes of frame check sequence at the frame's end.
    pub(crate) check_sequence: u8,
    /// Bytes of the whole record.
    pub(crate) record: usize,
}

impl Stream {
    /// A record is never longer: what says so is garbage. Far above what any program captures of one packet.
    pub(crate) const LONGEST_RECORD: u32 = 16 << 20;

    /// A packet was never longer on the wire, nor when a host joined it: Linux joins 8 times 65,535 bytes at
    /// most (`GSO_MAX_SIZE`), and a link header comes before them. What a packet costs to replay follows from
    /// its length, so that a longer one must not be believed.
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

    /// Reads until `wanted` bytes are there or the stream ends, and tells how many are there. The buffer grows if it
    /// must: the caller has checked `wanted` against [`Stream::LONGEST_RECORD`].
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

    /// Reads the first `needed` bytes of the record that starts here, which is `what`, or fails.
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

    /// Moves on by `count` bytes that are there.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start, "only what is there is consumed");
        self.start += count;
        self.offset += count as u64;
    }

    /// Moves on over a packet's record.
    pub(crate) fn consume_packet(&mut self, record: usize) {
        self.consume(record);
        self.packets += 1;
    }

    /// What is there, from the current position.
    pub(crate) fn data(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The number at byte `at` of the record that starts here.
    pub(crate) fn u32(&self, at: usize) -> u32 {
        self.byte_order.u32(self.data(), at)
    }

    /// An error at the record that starts here.
    pub(crate) fn damaged(&self, what: String) -> CaptureError {
        CaptureError::Damaged {
            offset: self.offset,
            packets: self.packets,
            what,
        }
    }

    /// The link of that number, or an error: packets come from a link that isn't read here.
    pub(crate) fn link(&self, number: u16) -> Result<LinkType, CaptureError> {
        LinkType::from_number(number).ok_or(CaptureError::UnsupportedLink {
            offset: self.offset,
            packets: self.packets,
            link: number,
        })
    }

    /// The whole stream again, as a reader: for a decompressor, after a look at the first bytes.
    pub(crate) fn into_reader(mut self) -> impl Read + Send {
        self.buffer.truncate(self.end);
        self.buffer.drain(..self.start);
        io::Cursor::new(self.buffer).chain(self.source)
    }

    /// A packet's length on the wire, if it can be one.
    pub(crate) fn length_on_wire(&self, length: u32) -> Result<u32, CaptureError> {
        if length > Stream::LONGEST_PACKET {
            return Err(self.damaged(format!(
                "a packet claims to have had {length} bytes on the wire, more than {} no host sends at once",
                Stream::LONGEST_PACKET
            )));
        }
        Ok(length)
    }
}
