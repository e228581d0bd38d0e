//! The errors of captures, with their offset in the file.

use std::io;

use thiserror::Error;

use crate::link::LinkType;

/// The reason why a capture can't be read further.
///
/// `offset` counts bytes from the start of the capture. If the file is compressed, it counts bytes of the
/// decompressed stream. `packets` is the number of packets that were read before the error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file can't be opened.
    #[error("cannot open the capture `{path}`")]
    Open {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A read from the file failed.
    #[error("reading the capture failed at byte {offset}, after {packets} packets")]
    Read {
        /// The offset of the error.
        offset: u64,
        /// The number of packets read before.
        packets: u64,
        /// The error of the operating system or of the decompressor.
        source: io::Error,
    },
    /// The file has no bytes.
    #[error("the capture is empty and has no file header; was it still being written?")]
    Empty,
    /// The first bytes are not those of a known capture format.
    #[error(
        "not a packet capture: it starts with {found}, but pcap starts with d4c3b2a1, a1b2c3d4, 4d3cb2a1, \
         a1b23c4d, 34cdb2a1 or a1b2cd34, pcapng with 0a0d0d0a, and compressed files with 1f8b (gzip), \
         28b52ffd (zstd), fd377a58 (xz), 04224d18 (lz4) or 425a68 (bzip2); convert it with \
         `tshark -F pcap -r IN -w OUT`"
    )]
    NotACapture {
        /// The first bytes in hexadecimal.
        found: String,
    },
    /// The file ends within a record.
    #[error(
        "the capture ends in the middle of {what} that starts at byte {offset}: {there} of {needed} bytes \
         are there; {packets} packets were read before it"
    )]
    Truncated {
        /// The offset of the record.
        offset: u64,
        /// The number of packets read before.
        packets: u64,
        /// The kind of record.
        what: &'static str,
        /// The number of bytes of the record that are in the file.
        there: u64,
        /// The number of bytes that the record needs.
        needed: u64,
    },
    /// A record is invalid.
    #[error("the capture is damaged at byte {offset}: {what}; {packets} packets were read before it")]
    Damaged {
        /// The offset of the record.
        offset: u64,
        /// The number of packets read before.
        packets: u64,
        /// The invalid value, and what is valid.
        what: String,
    },
    /// A packet has a link type that this crate doesn't read.
    #[error(
        "the packet at byte {offset} has link type {link}{}, which is not supported ({packets} packets \
         were read before it); supported are {}", name_of(*link), known()
    )]
    UnsupportedLink {
        /// The offset of the packet's record.
        offset: u64,
        /// The number of packets read before.
        packets: u64,
        /// The number of the link type.
        link: u16,
    },
}

impl CaptureError {
    /// Whether packets were read correctly before the error, so that a user may choose to go on with them.
    pub fn leaves_a_sound_beginning(&self) -> bool {
        match self {
            CaptureError::Open { .. } | CaptureError::Empty | CaptureError::NotACapture { .. } => false,
            CaptureError::Read { packets, .. }
            | CaptureError::Truncated { packets, .. }
            | CaptureError::Damaged { packets, .. }
            | CaptureError::UnsupportedLink { packets, .. } => *packets > 0,
        }
    }
}

/// Returns the names of common link types that are not supported.
fn name_of(link: u16) -> &'static str {
    match link {
        147..=162 => " (reserved for private use)",
        186 | 189 | 220 | 249 | 266 | 288 | 293..=295 => " (USB)",
        187 | 201 | 251 | 254..=256 | 272 => " (Bluetooth)",
        190 | 227 => " (CAN)",
        191 | 195 | 215 | 230 | 283 => " (802.15.4)",
        252 => " (packets that Wireshark exported without their headers)",
        253 => " (netlink)",
        _ => "",
    }
}

/// Returns the supported link types. Numbers with the same name are listed together.
fn known() -> String {
    let mut known: Vec<(&str, String)> = Vec::new();
    for link in LinkType::all() {
        match known.iter_mut().find(|(name, _)| *name == link.name()) {
            Some((_, numbers)) => *numbers += &format!(", {}", link.number()),
            None => known.push((link.name(), link.number().to_string())),
        }
    }
    let each: Vec<String> = known
        .into_iter()
        .map(|(name, numbers)| format!("{name} ({numbers})"))
        .collect();
    each.join(", ")
}
