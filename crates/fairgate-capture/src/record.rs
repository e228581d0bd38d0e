//! One packet of a capture, and its headers from the link layer up.

use fairgate::Time;
use fairgate::flow::{Dissection, dissect_payload};

use crate::link::LinkType;

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The time of the capture: nanoseconds since 1970. It is never before that of the previous record.
    pub time: Time,
    /// The link layer of `data`.
    pub link: LinkType,
    /// The original length in bytes, including the link-layer header. This is the length that counts, even if
    /// fewer bytes were captured. It may be 0.
    pub length: u32,
    /// The captured bytes, including the link-layer header.
    pub data: &'a [u8],
    /// The bytes of frame check sequence at the end of the frame, if the file states them.
    pub check_sequence: u8,
}

/// The headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    /// The flow. For encrypted frames of 802.11, source and destination have the addresses of the stations in
    /// their last six bytes, and the EtherType is 0.
    pub dissection: Dissection,
    /// The IP packet, if there is a well-formed one.
    pub packet: Option<IpPacket<'a>>,
}

/// An IP packet without the headers below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket<'a> {
    /// The original length, bytes.
    pub length: u32,
    /// The captured bytes.
    pub captured: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads the headers.
    pub fn headers(&self) -> Headers<'a> {
        let header = self.link.read(self.data);
        let mut dissection = dissect_payload(header.payload, header.ethertype);
        let Some(above_link) = dissection.network_offset else {
            if let Some([source, destination]) = header.stations {
                dissection.key.source[10..].copy_from_slice(&source);
                dissection.key.destination[10..].copy_from_slice(&destination);
            }
            return Headers {
                dissection,
                packet: None,
            };
        };
        let captured = &header.payload[usize::from(above_link)..];
        let below = self.data.len() - captured.len();
        dissection.network_offset = u16::try_from(below).ok();
        let trailer = self.check_sequence.max(header.trailer);
        let around = (below as u32).saturating_add(u32::from(trailer));
        Headers {
            dissection,
            packet: Some(IpPacket {
                length: self.length.saturating_sub(around),
                captured,
            }),
        }
    }
}
