//! What can be wrong with a capture, and where in it.

use std::io;

use thiserror::Error;

use crate::link::LinkType;

/// Why a capture can't be read on. `offset` counts bytes from the start of the capture; of the decompressed stream, if
/// the file is compressed. `packets` is how many were read before.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file can't be opened.
    #[error("cannot open the capture `{path}`")]
    Open {
        /// The path given.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The system refused to read on.
    #[error("reading the capture failed at byte {offset}, after {packets} packets")]
    Read {
        /// Where.
        offset: u64,
        /// Packets read before.
        packets: u64,
        /// The system's answer, or the decompressor's.
        source: io::Error,
    },
    /// There is not one byte in it.
    #[error("the capture is empty: not even a file header is there; was it still being written?")]
    Empty,
    /// The first bytes belong to no capture format known here.
    #[error(
        "not a packet capture: it starts with {found}, but pcap starts with d4c3b2a1, a1b2c3d4, 4d3cb2a1, \
         a1b23c4d, 34cdb2a1 or a1b2cd34, pcapng with 0a0d0d0a, and compressed files with 1f8b (gzip), \
         28b52ffd (zstd), fd377a58 (xz) or 04224d18 (lz4); convert it with `tshark -F pcap -r IN -w OUT`"
    )]
    NotACapture {
        /// The first bytes, hexadecimal.
        found: String,
    },
    /// The file ends within a record.
    #[error(
        "the capture ends in the middle of {what} that starts at byte {offset}: {there} of its {needed} bytes are \
         there; {packets} packets were read before it"
    )]
    Truncated {
        /// Where the record starts.
        offset: u64,
        /// Packets read before.
        packets: u64,
        /// Which kind of record it is.
        what: &'static str,
        /// Bytes that are there.
        there: u64,
        /// Bytes that the record says it has.
        needed: u64,
    },
    /// A record says something that cannot be.
    #[error("the capture is damaged at byte {offset}: {what}; {packets} packets were read before it")]
    Damaged {
        /// Where the record starts.
        offset: u64,
        /// Packets read before.
        packets: u64,
        /// What it says, and what it could say.
        what: String,
    },
    /// Packets of a link layer that isn't read here.
    #[error(
        "the packet at byte {offset} comes from link type {link}{}, which is not read here ({packets} packets were \
         read before it); read are {}", name_of(*link), known()
    )]
    UnsupportedLink {
        /// Where its record starts.
        offset: u64,
        /// Packets read before.
        packets: u64,
        /// The link type's number.
        link: u16,
    },
}

impl CaptureError {
    /// Whether what was read before the error is sound, so that a user may choose to go on with it.
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

/// What people call the link types that are most often met and not read.
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

/// The link types that are read, with those of one name together.
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
