//! Point-to-point links: PPP, HDLC, frame relay and ATM, and the headers that Juniper's routers put before
//! them.

use fairgate::flow::ethertype::{IPV4, IPV6, LLC};

use super::{LinkHeader, bytes_at, ip, lan, llc, ppp_payload, u16_at};

/// Reads 16 bytes of direction and compressed header, and then IP.
pub(super) fn slip(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ip(frame.get(16..)?)
}

/// Reads PPP with or without HDLC framing. Address and control are 0xff 0x03, or are left out.
pub(super) fn ppp(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ppp_payload(frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame))
}

/// Reads PPP in HDLC framing. The addresses 0x0f and 0x8f are Cisco's.
pub(super) fn ppp_or_hdlc(frame: &[u8]) -> Option<LinkHeader<'_>> {
    match frame.first()? {
        0x0f | 0x8f => hdlc(frame),
        _ => ppp(frame),
    }
}

/// Reads a record of pppd. A byte of direction replaces the address. Address and control byte may be left
/// out.
pub(super) fn ppp_of_pppd(frame: &[u8]) -> Option<LinkHeader<'_>> {
    match *frame {
        [0 | 1, 0x03, ref rest @ ..] => ppp_payload(rest),
        [0 | 1, ref rest @ ..] => ppp(rest),
        _ => ppp(frame),
    }
}

pub(super) fn ppp_with_direction(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ppp(frame.get(1..)?)
}

/// Reads Cisco's HDLC: address, control, EtherType.
pub(super) fn hdlc(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(u16_at(frame, 2)?, frame.get(4..)?))
}

pub(super) fn hdlc_with_direction(frame: &[u8]) -> Option<LinkHeader<'_>> {
    hdlc(frame.get(1..)?)
}

/// Reads frame relay. The address has two to four bytes, and the last one has its lowest bit set. After it
/// come RFC 2427's control byte 0x03, an optional pad, and the identifier of a network layer. Cisco has an
/// EtherType instead.
pub(super) fn frame_relay(frame: &[u8]) -> Option<LinkHeader<'_>> {
    let last = frame.iter().take(4).position(|byte| byte & 1 != 0)?;
    let behind = frame.get(last + 1..)?;
    let rest = match *behind {
        [0x03, 0x00, ref rest @ ..] | [0x03, ref rest @ ..] => rest,
        _ => return Some(LinkHeader::of(u16_at(behind, 0)?, behind.get(2..)?)),
    };
    match *rest.first()? {
        0xcc => Some(LinkHeader::of(IPV4, &rest[1..])),
        0x8e => Some(LinkHeader::of(IPV6, &rest[1..])),
        0xcf => ppp_payload(&rest[1..]),
        // SNAP: no organisation, and then an EtherType; or a bridged Ethernet frame, with or without its
        // check sequence.
        0x80 => match bytes_at(rest, 1)? {
            [0, 0, 0] => Some(LinkHeader::of(u16_at(rest, 4)?, rest.get(6..)?)),
            [0, 0x80, 0xc2] => match u16_at(rest, 4)? {
                0x0001 => Some(lan::ethernet(rest.get(6..)?)?.with_trailer(4)),
                0x0007 => lan::ethernet(rest.get(6..)?),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn frame_relay_with_direction(frame: &[u8]) -> Option<LinkHeader<'_>> {
    frame_relay(frame.get(1..)?)
}

/// Reads FRF.16: two bytes of flags and sequence number. Frame relay follows in the first fragment.
pub(super) fn multilink_frame_relay(frame: &[u8]) -> Option<LinkHeader<'_>> {
    const BEGINS: u8 = 0x80;
    const CONTROL: u8 = 0x20;
    match frame.first()? & (BEGINS | CONTROL) {
        BEGINS => frame_relay(frame.get(2..)?),
        _ => None,
    }
}

/// Reads classical IP over ATM, with or without LLC.
pub(super) fn atm_clip(frame: &[u8]) -> Option<LinkHeader<'_>> {
    match frame.first()? {
        0xaa => llc(frame),
        _ => ip(frame),
    }
}

/// Reads flags and circuit, and then LLC or LANE, depending on the lowest four bits.
pub(super) fn sun_atm(frame: &[u8]) -> Option<LinkHeader<'_>> {
    let cell = frame.get(4..)?;
    match frame[0] & 0x0f {
        1 => lan::lane(cell),
        2 => Some(LinkHeader::of(LLC, cell)),
        _ => None,
    }
}

/// The header that Juniper's routers put before a frame: "MGC", flags, and extensions with their length.
struct Juniper<'a> {
    /// Whether the router has replaced the link-layer header by four bytes.
    is_without_link: bool,
    rest: &'a [u8],
}

impl Juniper<'_> {
    fn read(frame: &[u8]) -> Option<Juniper<'_>> {
        const WITHOUT_LINK: u8 = 0x02;
        const EXTENDED: u8 = 0x80;
        let rest = frame.strip_prefix(b"MGC")?;
        let (flags, mut rest) = rest.split_first()?;
        if flags & EXTENDED != 0 {
            rest = rest.get(2 + usize::from(u16_at(rest, 0)?)..)?;
        }
        Some(Juniper {
            is_without_link: flags & WITHOUT_LINK != 0,
            rest,
        })
    }
}

/// Reads Juniper's header, and then the link-layer header with `link`.
fn juniper(frame: &[u8], link: fn(&[u8]) -> Option<LinkHeader<'_>>) -> Option<LinkHeader<'_>> {
    let Juniper {
        is_without_link,
        rest,
    } = Juniper::read(frame)?;
    match is_without_link {
        true => ip(rest.get(4..)?),
        false => link(rest),
    }
}

pub(super) fn juniper_ethernet(frame: &[u8]) -> Option<LinkHeader<'_>> {
    juniper(frame, lan::ethernet)
}

pub(super) fn juniper_ppp(frame: &[u8]) -> Option<LinkHeader<'_>> {
    juniper(frame, ppp)
}

pub(super) fn juniper_frame_relay(frame: &[u8]) -> Option<LinkHeader<'_>> {
    juniper(frame, frame_relay)
}

pub(super) fn juniper_hdlc(frame: &[u8]) -> Option<LinkHeader<'_>> {
    juniper(frame, hdlc)
}
