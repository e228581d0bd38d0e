//! Endace's extensible record format, around frames of local and wide area networks.

use super::{LinkHeader, bytes_at, ip, lan, wan};

/// Reads Endace's extensible record format. It has 16 bytes, with the record type in byte 8. Bit 7 of the
/// type announces an extension header of 8 bytes, whose first bit announces the next one.
pub(super) fn erf(frame: &[u8]) -> Option<LinkHeader<'_>> {
    const MOST_EXTENSIONS: usize = 16;
    let kind = *frame.get(8)?;
    let (mut more, mut at) = (kind & 0x80 != 0, 16);
    for _ in 0..MOST_EXTENSIONS {
        if !more {
            break;
        }
        let [first] = bytes_at(frame, at)?;
        (more, at) = (first & 0x80 != 0, at + 8);
    }
    let record = frame.get(at..)?;
    match kind & 0x7f {
        // HDLC, and its variants with a colour or a channel.
        1 | 10 => wan::ppp_or_hdlc(record),
        // Ethernet after an offset and a byte of padding.
        2 | 11 | 16 => Some(lan::ethernet(record.get(2..)?)?.with_trailer(lan::CHECK_SEQUENCE)),
        22 | 23 => ip(record),
        _ => None,
    }
}
