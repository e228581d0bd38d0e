//! 802.11, with and without the headers that radios add: radiotap, Prism, AVS, PPI.
//!
//! Only data frames contain a packet: LLC follows their header. Of an aggregate (A-MSDU) only the first frame
//! is read. The others almost always have the same flow. Of encrypted frames only the stations are read.
//! Management and control frames, frames without data, and all fragments but the first have no packet.

use fairgate::flow::ethertype::LLC;

use super::{LinkHeader, LinkType, bytes_at, inner};

/// The length of a captured frame check sequence.
const CHECK_SEQUENCE: u8 = 4;

/// Reads a frame without a radio header.
pub(super) fn frame(frame: &[u8]) -> Option<LinkHeader<'_>> {
    data(frame, 1)
}

/// Reads a data frame (802.11-2020, section 9.3.2.1). Its header is padded to a multiple of `alignment`.
fn data(frame: &[u8], alignment: usize) -> Option<LinkHeader<'_>> {
    const DATA: u8 = 2;
    const WITHOUT_DATA: u8 = 0x40;
    const QOS: u8 = 0x80;
    const TO_DISTRIBUTION: u8 = 0x01;
    const FROM_DISTRIBUTION: u8 = 0x02;
    const PROTECTED: u8 = 0x40;
    /// In QoS data this flag means that four bytes of HT control follow.
    const ORDER: u8 = 0x80;
    const AGGREGATE: u8 = 0x80;

    let [control, flags] = bytes_at(frame, 0)?;
    if control & 3 != 0 || control >> 2 & 3 != DATA || control & WITHOUT_DATA != 0 {
        return None;
    }
    let address = |number: usize| bytes_at::<6>(frame, [4, 10, 16, 24][number - 1]);
    let (stations, mut header) = match flags & (TO_DISTRIBUTION | FROM_DISTRIBUTION) {
        0 => ([address(2)?, address(1)?], 24),
        TO_DISTRIBUTION => ([address(2)?, address(3)?], 24),
        FROM_DISTRIBUTION => ([address(3)?, address(1)?], 24),
        _ => ([address(4)?, address(3)?], 30),
    };
    let mut is_aggregate = false;
    if control & QOS != 0 {
        is_aggregate = frame.get(header)? & AGGREGATE != 0;
        header += if flags & ORDER != 0 { 6 } else { 2 };
    }
    if flags & PROTECTED != 0 {
        return Some(LinkHeader {
            stations: Some(stations),
            ..LinkHeader::of(0, &[])
        });
    }
    let fragment = frame.get(22)? & 0x0f;
    if fragment != 0 {
        return None;
    }
    let mut body = header.next_multiple_of(alignment);
    if is_aggregate {
        // Skip destination, source and length.
        body += 14;
    }
    Some(LinkHeader::of(LLC, frame.get(body..)?))
}

/// Reads radiotap (radiotap.org): version, pad, length, and a chain of 32-bit words, little endian. The words
/// say which fields follow. The flags are the second field. Only the time may come before them, with 8 bytes
/// and an alignment of 8.
pub(super) fn radiotap(whole: &[u8]) -> Option<LinkHeader<'_>> {
    const HAS_TIME: u32 = 1;
    const HAS_FLAGS: u32 = 1 << 1;
    const CHAINED: u32 = 1 << 31;
    const WITH_CHECK_SEQUENCE: u8 = 0x10;
    const PADDED: u8 = 0x20;
    const MOST_WORDS: usize = 64;

    let length = usize::from(u16::from_le_bytes(bytes_at(whole, 2)?));
    let header = whole.get(..length)?;
    let word = |number: usize| bytes_at(header, 4 + 4 * number).map(u32::from_le_bytes);
    let first = word(0)?;
    let mut words = 1;
    while word(words - 1)? & CHAINED != 0 {
        words += 1;
        if words > MOST_WORDS {
            return None;
        }
    }
    let mut at = 4 + 4 * words;
    if first & HAS_TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if first & HAS_FLAGS != 0 {
        *header.get(at)?
    } else {
        0
    };
    let alignment = if flags & PADDED != 0 { 4 } else { 1 };
    let header = data(&whole[length..], alignment)?;
    Some(match flags & WITH_CHECK_SEQUENCE {
        0 => header,
        _ => header.with_trailer(CHECK_SEQUENCE),
    })
}

/// Reads Prism: 144 bytes. Some drivers write AVS headers with the same number.
pub(super) fn prism(whole: &[u8]) -> Option<LinkHeader<'_>> {
    match u32::from_be_bytes(bytes_at(whole, 0)?) {
        0x8021_1001 | 0x8021_1002 => avs(whole),
        _ => frame(whole.get(144..)?),
    }
}

/// Reads AVS: a version, and then the length of the header.
pub(super) fn avs(whole: &[u8]) -> Option<LinkHeader<'_>> {
    let length = u32::from_be_bytes(bytes_at(whole, 4)?);
    frame(whole.get(usize::try_from(length).ok()?..)?)
}

/// Reads PPI: version, flags, length and link type of the frame after it, and then fields with a type and a
/// length, little endian. For 802.11 a flag of the field "common" says whether there is a check sequence.
pub(super) fn ppi(whole: &[u8]) -> Option<LinkHeader<'_>> {
    const COMMON: u16 = 2;
    const MOST_FIELDS: usize = 64;
    let length = usize::from(u16::from_le_bytes(bytes_at(whole, 2)?));
    let link = u32::from_le_bytes(bytes_at(whole, 4)?);
    let header = inner(link, whole.get(length..)?)?;
    if link != u32::from(LinkType::WIFI.number()) {
        return Some(header);
    }
    let mut fields = whole.get(8..length)?;
    for _ in 0..MOST_FIELDS {
        let Some([kind_low, kind_high, size_low, size_high]) = bytes_at(fields, 0) else {
            break;
        };
        let size = usize::from(u16::from_le_bytes([size_low, size_high]));
        if u16::from_le_bytes([kind_low, kind_high]) == COMMON {
            let with_check_sequence = fields.get(12).is_some_and(|flags| flags & 1 != 0);
            return Some(match with_check_sequence {
                true => header.with_trailer(CHECK_SEQUENCE),
                false => header,
            });
        }
        fields = fields.get(4 + size..).unwrap_or(&[]);
    }
    Some(header)
}
