//! 802.11, alone and behind what radios tell of a frame: radiotap, Prism, AVS, PPI.
//!
//! Only data frames lead to a packet: what is behind their header is LLC. An aggregate (A-MSDU) is read to
//! its first frame, which the others nearly always share a flow with. Encrypted frames keep their stations;
//! management and control frames, frames without data and fragments but the first have nothing.

use fairgate::flow::ethertype::LLC;

use super::{LinkType, Lower, bytes_at, inner};

/// Of a frame that is captured with its frame check sequence.
const CHECK_SEQUENCE: u8 = 4;

/// A bare frame.
pub(super) fn frame(frame: &[u8]) -> Option<Lower<'_>> {
    data(frame, 1)
}

/// A data frame (802.11-2020, section 9.3.2.1). Its header was filled up to a multiple of `alignment`.
fn data(frame: &[u8], alignment: usize) -> Option<Lower<'_>> {
    const DATA: u8 = 2;
    const WITHOUT_DATA: u8 = 0x40;
    const QOS: u8 = 0x80;
    const TO_DISTRIBUTION: u8 = 0x01;
    const FROM_DISTRIBUTION: u8 = 0x02;
    const PROTECTED: u8 = 0x40;
    /// In QoS data: four bytes of HT control follow.
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
        return Some(Lower {
            stations: Some(stations),
            ..Lower::of(0, &[])
        });
    }
    let fragment = frame.get(22)? & 0x0f;
    if fragment != 0 {
        return None;
    }
    let mut body = header.next_multiple_of(alignment);
    if is_aggregate {
        // Destination, source, length.
        body += 14;
    }
    Some(Lower::of(LLC, frame.get(body..)?))
}

/// Radiotap (radiotap.org): version, pad, length, a chain of 32-bit words that say which fields follow,
/// little endian. The one of interest is the second; only the time, of 8 bytes and aligned to 8, may come
/// before it.
pub(super) fn radiotap(whole: &[u8]) -> Option<Lower<'_>> {
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
    let lower = data(&whole[length..], alignment)?;
    Some(match flags & WITH_CHECK_SEQUENCE {
        0 => lower,
        _ => lower.with_trailer(CHECK_SEQUENCE),
    })
}

/// Prism: 144 bytes. Some drivers write AVS headers under the same number.
pub(super) fn prism(whole: &[u8]) -> Option<Lower<'_>> {
    match u32::from_be_bytes(bytes_at(whole, 0)?) {
        0x8021_1001 | 0x8021_1002 => avs(whole),
        _ => frame(whole.get(144..)?),
    }
}

/// AVS: a version, then the header's length.
pub(super) fn avs(whole: &[u8]) -> Option<Lower<'_>> {
    let length = u32::from_be_bytes(bytes_at(whole, 4)?);
    frame(whole.get(usize::try_from(length).ok()?..)?)
}

/// PPI: version, flags, length, link type of the frame behind it; then fields of a type and a length, little
/// endian. Of 802.11 the field "common" tells by a flag whether there is a check sequence.
pub(super) fn ppi(whole: &[u8]) -> Option<Lower<'_>> {
    const COMMON: u16 = 2;
    const MOST_FIELDS: usize = 64;
    let length = usize::from(u16::from_le_bytes(bytes_at(whole, 2)?));
    let link = u32::from_le_bytes(bytes_at(whole, 4)?);
    let lower = inner(link, whole.get(length..)?)?;
    if link != u32::from(LinkType::WIFI.number()) {
        return Some(lower);
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
                true => lower.with_trailer(CHECK_SEQUENCE),
                false => lower,
            });
        }
        fields = fields.get(4 + size..).unwrap_or(&[]);
    }
    Some(lower)
}
