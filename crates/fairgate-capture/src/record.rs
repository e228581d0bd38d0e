//! One packet of a capture, and its headers from the link layer up.

use fairgate::Time;
use fairgate::flow::{Dissection, dissect_payload};

use crate::link::LinkType;

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured: nanoseconds since 1970, never before the record that came before.
    pub time: Time,
    /// The link layer that `data` starts with.
    pub link: LinkType,
    /// Bytes on the wire, link header included: what counts, however little was captured. May be 0.
    pub length: u32,
    /// The captured bytes, from the link header on.
    pub data: &'a [u8],
    /// Bytes of frame check sequence at the end of the frame, as far as the file tells.
    pub check_sequence: u8,
}

/// What the headers of a packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    /// The flow. Frames of 802.11 that are encrypted have the addresses of their stations in the last six
    /// bytes of source and destination, and EtherType 0.
    pub dissection: Dissection,
    /// The IP packet, if there is a well-formed one.
    pub packet: Option<IpPacket<'a>>,
}

/// An IP packet without what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket<'a> {
    /// Its bytes on the wire.
    pub length: u32,
    /// Those that were captured.
    pub captured: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads the headers.
    pub fn headers(&self) -> Headers<'a> {
        let lower = self.link.read(self.data);
        let mut dissection = dissect_payload(lower.payload, lower.ethertype);
        let Some(above_link) = dissection.network_offset else {
            if let Some([source, destination]) = lower.stations {
                dissection.key.source[10..].copy_from_slice(&source);
                dissection.key.destination[10..].copy_from_slice(&destination);
            }
            return Headers {
                dissection,
                packet: None,
            };
        };
        let captured = &lower.payload[usize::from(above_link)..];
        let below = self.data.len() - captured.len();
        dissection.network_offset = u16::try_from(below).ok();
        let trailer = self.check_sequence.max(lower.trailer);
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
