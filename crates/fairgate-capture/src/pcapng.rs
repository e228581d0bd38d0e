//! Reads the block format. It has sections with their own byte order and their own interfaces.
//!
//! Source: draft-ietf-opsawg-pcapng. These blocks are read: section headers, interface descriptions
//! (`if_tsresol`, `if_tsoffset`, `if_fcslen`), and enhanced, simple and obsolete packet blocks. Any other
//! block is skipped and counted.
//!
//! ```text
//!   any block    type 4 | length 4 | body | length 4            length is a multiple of 4 and includes
//!   itself
//!   section      0a0d0d0a | length | byte order 1a2b3c4d | version 2+2 | section length 8 | options
//!   interface    1 | length | link type 2 | reserved 2 | snap length 4 | options
//!   packet       2 | length | interface 2 | drops 2 | time 8 | captured 4 | original length 4 | data |
//!   options
//!   simple       3 | length | original length 4 | data
//!   enhanced     6 | length | interface 4 | time 8 | captured 4 | original length 4 | data | options
//! ```

use crate::error::CaptureError;
use crate::link::LinkType;
use crate::stream::{ByteOrder, Extent, Stream};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;

/// The offset of an enhanced packet's data. The obsolete packet block has the same layout after its
/// interface.
const PACKET_DATA: usize = 28;
const SIMPLE_DATA: usize = 12;

/// The most interfaces in a section. It bounds the memory: a section with more interfaces is damaged.
const MOST_INTERFACES: usize = 65_536;

/// An interface of the current section.
struct Interface {
    /// The number of the link type. An interface without packets may have any number.
    link: u16,
    /// The most bytes captured of a packet. 0 means no limit.
    snap_length: u32,
    clock: Clock,
    /// The bytes of frame check sequence at the end of each frame.
    check_sequence: u8,
}

/// Converts an interface's ticks to nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Clock {
    ticks_a_second: u128,
    offset_seconds: i64,
}

impl Clock {
    /// Returns nanoseconds since 1970, rounded down, or `None` before 1970 or after 2554.
    fn nanos(self, ticks: u64) -> Option<u64> {
        let since_offset = match self.ticks_a_second {
            1_000_000 => u128::from(ticks) * 1_000,
            1_000_000_000 => u128::from(ticks),
            other => u128::from(ticks) * 1_000_000_000 / other,
        };
        let nanos = i128::try_from(since_offset).ok()? + i128::from(self.offset_seconds) * 1_000_000_000;
        u64::try_from(nanos).ok()
    }
}

/// The state of the reader.
pub(crate) struct Pcapng {
    interfaces: Vec<Interface>,
    /// The number of interfaces described so far in the whole file.
    pub(crate) interfaces_total: u64,
    /// The number of skipped blocks.
    pub(crate) skipped_blocks: u64,
}

impl Pcapng {
    /// Starts reading if `stream` starts with a section header.
    pub(crate) fn start(stream: &mut Stream) -> Option<Pcapng> {
        (stream.data()[..4] == SECTION.to_be_bytes()).then_some(Pcapng {
            interfaces: Vec::new(),
            interfaces_total: 0,
            skipped_blocks: 0,
        })
    }

    /// Finds the next packet. Processes all blocks before it.
    pub(crate) fn next(&mut self, stream: &mut Stream) -> Result<Option<Extent>, CaptureError> {
        while !stream.at_end()? {
            stream.need(12, "a block's header")?;
            if stream.data()[..4] == SECTION.to_be_bytes() {
                stream.byte_order = match stream.data()[8..12] {
                    [0x4d, 0x3c, 0x2b, 0x1a] => ByteOrder::Little,
                    [0x1a, 0x2b, 0x3c, 0x4d] => ByteOrder::Big,
                    _ => return Err(stream.damaged("a section header has no valid byte-order mark".into())),
                };
            }
            let block = Block::read(stream)?;
            match block.kind {
                SECTION => self.section(stream, block.length)?,
                INTERFACE => self.interface(stream, block.length)?,
                ENHANCED | PACKET => return self.packet(stream, &block).map(Some),
                SIMPLE => return self.simple(stream, &block).map(Some),
                _ => self.skipped_blocks += 1,
            }
            stream.consume(block.length);
        }
        Ok(None)
    }

    fn section(&mut self, stream: &Stream, length: usize) -> Result<(), CaptureError> {
        if length < 28 {
            return Err(stream.damaged(format!(
                "a section header has {length} bytes, but needs at least 28"
            )));
        }
        let major = stream.byte_order.u16(stream.data(), 12);
        if major != 1 {
            return Err(stream.damaged(format!(
                "a section has format version {major}, but only version 1 is supported"
            )));
        }
        self.interfaces.clear();
        Ok(())
    }

    fn interface(&mut self, stream: &Stream, length: usize) -> Result<(), CaptureError> {
        if length < 20 {
            return Err(stream.damaged(format!(
                "an interface block has {length} bytes, but needs at least 20"
            )));
        }
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(stream.damaged(format!(
                "a section describes more than {MOST_INTERFACES} interfaces, which is the limit"
            )));
        }
        let data = &stream.data()[..length - 4];
        self.interfaces.push(Interface {
            link: stream.byte_order.u16(data, 8),
            snap_length: stream.u32(12),
            clock: clock(stream, &data[16..])?,
            check_sequence: check_sequence(stream, &data[16..]),
        });
        self.interfaces_total += 1;
        Ok(())
    }

    fn packet(&self, stream: &Stream, block: &Block) -> Result<Extent, CaptureError> {
        if block.length < PACKET_DATA + 4 {
            return Err(stream.damaged(format!(
                "a packet block has {} bytes, but needs at least 32",
                block.length
            )));
        }
        let index = match block.kind {
            PACKET => u32::from(stream.byte_order.u16(stream.data(), 8)),
            _ => stream.u32(8),
        };
        let (interface, link) = self.described(stream, index)?;
        let captured = stream.u32(20) as usize;
        if captured > block.length - PACKET_DATA - 4 {
            return Err(stream.damaged(format!(
                "a packet block of {} bytes claims to contain {captured} bytes of a packet",
                block.length
            )));
        }
        let ticks = u64::from(stream.u32(12)) << 32 | u64::from(stream.u32(16));
        let nanos = interface.clock.nanos(ticks);
        if nanos.is_none() {
            return Err(stream.damaged("a packet's time is before 1970 or after 2554".into()));
        }
        Ok(Extent {
            nanos,
            link,
            length: stream.original_length(stream.u32(24))?,
            data: PACKET_DATA..PACKET_DATA + captured,
            check_sequence: interface.check_sequence,
            record: block.length,
        })
    }

    /// Reads a simple packet. It has no time, belongs to interface 0, and was cut to that interface's snap
    /// length.
    fn simple(&self, stream: &Stream, block: &Block) -> Result<Extent, CaptureError> {
        if block.length < SIMPLE_DATA + 4 {
            return Err(stream.damaged(format!(
                "a simple packet block has {} bytes, but needs at least 16",
                block.length
            )));
        }
        let (interface, link) = self.described(stream, 0)?;
        let length = stream.original_length(stream.u32(8))?;
        let snap_length = match interface.snap_length {
            0 => u32::MAX,
            limit => limit,
        };
        let captured = (length.min(snap_length) as usize).min(block.length - SIMPLE_DATA - 4);
        Ok(Extent {
            nanos: None,
            link,
            length,
            data: SIMPLE_DATA..SIMPLE_DATA + captured,
            check_sequence: interface.check_sequence,
            record: block.length,
        })
    }

    /// Returns the interface of a packet, and its link type.
    fn described(&self, stream: &Stream, index: u32) -> Result<(&Interface, LinkType), CaptureError> {
        let interface = self.interfaces.get(index as usize).ok_or_else(|| {
            stream.damaged(format!(
                "a packet comes from interface {index}, but the section describes only {} before it",
                self.interfaces.len()
            ))
        })?;
        Ok((interface, stream.link(interface.link)?))
    }
}

/// A block that is completely in the buffer.
struct Block {
    kind: u32,
    length: usize,
}

impl Block {
    /// Reads a block, and compares its length with the copy at its end.
    fn read(stream: &mut Stream) -> Result<Block, CaptureError> {
        let (kind, length) = (stream.u32(0), stream.u32(4));
        if length < 12 || !length.is_multiple_of(4) || length > Stream::LONGEST_RECORD {
            return Err(stream.damaged(format!(
                "a block has a length of {length} bytes, but it must be a multiple of 4 from 12 to {}",
                Stream::LONGEST_RECORD
            )));
        }
        stream.need(length as usize, "a block")?;
        let copy = stream.u32(length as usize - 4);
        if copy != length {
            return Err(stream.damaged(format!(
                "a block has a length of {length} bytes at its start, but {copy} at its end"
            )));
        }
        Ok(Block {
            kind,
            length: length as usize,
        })
    }
}

/// Iterates over the options of a block. An option has a code (2 bytes), a length (2 bytes) and a value that
/// is padded to a multiple of 4. Code 0 ends the options. `None` means an option that is longer than the rest
/// of the block.
fn options(order: ByteOrder, mut rest: &[u8]) -> impl Iterator<Item = Option<(u16, &[u8])>> {
    std::iter::from_fn(move || {
        if rest.len() < 4 {
            return None;
        }
        let (code, length) = (order.u16(rest, 0), usize::from(order.u16(rest, 2)));
        if code == 0 {
            return None;
        }
        let value = rest.get(4..4 + length);
        rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(value.map(|value| (code, value)))
    })
}

/// Returns the clock that an interface's options describe. The default is microseconds since 1970.
fn clock(stream: &Stream, block: &[u8]) -> Result<Clock, CaptureError> {
    const TIME_RESOLUTION: u16 = 9;
    const TIME_OFFSET: u16 = 14;
    let mut clock = Clock {
        ticks_a_second: 1_000_000,
        offset_seconds: 0,
    };
    for option in options(stream.byte_order, block) {
        let Some((code, value)) = option else {
            return Err(stream.damaged("an interface's options are longer than its block".into()));
        };
        match (code, value.len()) {
            (TIME_RESOLUTION, 1) => {
                let exponent = u32::from(value[0] & 0x7f);
                let base: u128 = if value[0] & 0x80 == 0 { 10 } else { 2 };
                clock.ticks_a_second = base.checked_pow(exponent).ok_or_else(|| {
                    stream.damaged(format!(
                        "an interface's clock has {base}^{exponent} ticks a second, which is too many"
                    ))
                })?;
            }
            (TIME_OFFSET, 8) => clock.offset_seconds = stream.byte_order.i64(value, 0),
            (TIME_RESOLUTION | TIME_OFFSET, length) => {
                return Err(stream.damaged(format!("an interface's time option {code} has {length} bytes")));
            }
            _ => {}
        }
    }
    Ok(clock)
}

/// Returns the bytes of frame check sequence at the end of an interface's frames. The draft counts bits, but
/// some programs write bytes. A number below 16 can only be bytes.
fn check_sequence(stream: &Stream, block: &[u8]) -> u8 {
    const CHECK_SEQUENCE: u16 = 13;
    options(stream.byte_order, block)
        .flatten()
        .find(|(code, value)| *code == CHECK_SEQUENCE && value.len() == 1)
        .map_or(
            0,
            |(_, value)| if value[0] < 16 { value[0] } else { value[0] / 8 },
        )
}
