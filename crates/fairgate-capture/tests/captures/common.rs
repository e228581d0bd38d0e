//! Captures that are built byte by byte from the drafts, so that the reader is not only tested with its own
//! writer.

use std::io::{Cursor, Write};

use fairgate_capture::{Capture, CaptureError, Counts};

/// A packet as a test expects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) nanos: u64,
    pub(crate) link: u32,
    pub(crate) length: u32,
    pub(crate) data: Vec<u8>,
}

/// Reads a whole capture. Returns the packets, the counts, and the error if there was one.
pub(crate) fn read(bytes: &[u8]) -> (Vec<Packet>, Counts, Option<CaptureError>) {
    let mut capture = match Capture::from_reader(Box::new(Cursor::new(bytes.to_vec()))) {
        Ok(capture) => capture,
        Err(error) => return (Vec::new(), Counts::default(), Some(error)),
    };
    let mut packets = Vec::new();
    loop {
        match capture.next_record() {
            Ok(Some(record)) => packets.push(Packet {
                nanos: record.time.nanos(),
                link: u32::from(record.link.number()),
                length: record.length,
                data: record.data.to_vec(),
            }),
            Ok(None) => return (packets, capture.counts(), None),
            Err(error) => return (packets, capture.counts(), Some(error)),
        }
    }
}

/// Writes numbers in either byte order.
pub(crate) struct Bytes {
    pub(crate) big: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(big: bool) -> Bytes {
        Bytes {
            big,
            bytes: Vec::new(),
        }
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Bytes {
        let bytes = if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.raw(&bytes)
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Bytes {
        let bytes = if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.raw(&bytes)
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Bytes {
        let bytes = if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.raw(&bytes)
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Creates a pcap file header.
    pub(crate) fn pcap(big: bool, nanos: bool, link: u32) -> Bytes {
        let mut file = Bytes::new(big);
        file.u32(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
        file.u16(2).u16(4).u64(0).u32(65_535).u32(link);
        file
    }

    /// Adds a pcap record.
    pub(crate) fn record(&mut self, seconds: u32, fraction: u32, length: u32, data: &[u8]) -> &mut Bytes {
        self.u32(seconds)
            .u32(fraction)
            .u32(data.len() as u32)
            .u32(length)
            .raw(data)
    }

    /// Adds a pcapng block with `body`.
    pub(crate) fn block(&mut self, kind: u32, body: &Bytes) -> &mut Bytes {
        let padding = body.bytes.len().next_multiple_of(4) - body.bytes.len();
        let length = (12 + body.bytes.len() + padding) as u32;
        self.u32(kind)
            .u32(length)
            .raw(&body.bytes)
            .raw(&vec![0; padding])
            .u32(length)
    }

    /// Adds a section header. Later numbers are in the byte order of `big`.
    pub(crate) fn section(&mut self, big: bool) -> &mut Bytes {
        self.big = big;
        let mut body = Bytes::new(big);
        body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX);
        self.block(0x0a0d_0d0a, &body)
    }

    /// Adds an interface with options as pairs of code and value.
    pub(crate) fn interface(&mut self, link: u16, snap_length: u32, options: &[(u16, &[u8])]) -> &mut Bytes {
        let mut body = Bytes::new(self.big);
        body.u16(link).u16(0).u32(snap_length);
        for (code, value) in options {
            body.u16(*code).u16(value.len() as u16).raw(value);
            body.raw(&vec![0; value.len().next_multiple_of(4) - value.len()]);
        }
        body.u32(0);
        self.block(1, &body)
    }

    /// Adds an enhanced packet block.
    pub(crate) fn enhanced(&mut self, interface: u32, ticks: u64, length: u32, data: &[u8]) -> &mut Bytes {
        let mut body = Bytes::new(self.big);
        body.u32(interface).u32((ticks >> 32) as u32).u32(ticks as u32);
        body.u32(data.len() as u32).u32(length).raw(data);
        self.block(6, &body)
    }
}

/// Compresses bytes.
type Pack = fn(&[u8]) -> Vec<u8>;

/// All supported compressions.
pub(crate) const COMPRESSIONS: [(&str, Pack); 4] = [
    ("gzip", |plain| {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(plain).unwrap();
        writer.finish().unwrap()
    }),
    ("zstd", |plain| {
        ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest)
    }),
    ("xz", |plain| {
        let options = lzma_rust2::XzOptions::with_preset(1);
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        writer.write_all(plain).unwrap();
        writer.finish().unwrap()
    }),
    ("lz4", |plain| {
        let mut writer = lz4_flex::frame::FrameEncoder::new(Vec::new());
        writer.write_all(plain).unwrap();
        writer.finish().unwrap()
    }),
];

/// Returns a capture of 10,000 packets.
pub(crate) fn many_packets() -> Vec<u8> {
    let mut file = Bytes::pcap(false, false, 1);
    for second in 0..10_000 {
        file.record(second, 0, 1514, &[0; 60]);
    }
    file.bytes
}
