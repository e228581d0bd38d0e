//! Lines between two ends: PPP, HDLC, frame relay, ATM, and what Juniper's routers put before them.

use fairgate::flow::ethertype::{IPV4, IPV6, LLC};

use super::{Lower, bytes_at, ip, lan, llc, ppp_payload, u16_at};

/// 16 bytes of direction and the compressed header, then IP.
pub(super) fn slip(frame: &[u8]) -> Option<Lower<'_>> {
    ip(frame.get(16..)?)
}

/// PPP, in HDLC framing or without: address and control are 0xff 0x03, or left out.
pub(super) fn ppp(frame: &[u8]) -> Option<Lower<'_>> {
    ppp_payload(frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame))
}

/// PPP in HDLC framing; addresses 0x0f and 0x8f are Cisco's.
pub(super) fn ppp_or_hdlc(frame: &[u8]) -> Option<Lower<'_>> {
    match frame.first()? {
        0x0f | 0x8f => hdlc(frame),
        _ => ppp(frame),
    }
}

/// The daemon's record: a byte of direction in place of the address, which may be left out with the control
/// byte.
pub(super) fn ppp_of_pppd(frame: &[u8]) -> Option<Lower<'_>> {
    match *frame {
        [0 | 1, 0x03, ref rest @ ..] => ppp_payload(rest),
        [0 | 1, ref rest @ ..] => ppp(rest),
        _ => ppp(frame),
    }
}

pub(super) fn ppp_with_direction(frame: &[u8]) -> Option<Lower<'_>> {
    ppp(frame.get(1..)?)
}

/// Cisco's HDLC: address, control, EtherType.
pub(super) fn hdlc(frame: &[u8]) -> Option<Lower<'_>> {
    Some(Lower::of(u16_at(frame, 2)?, frame.get(4..)?))
}

pub(super) fn hdlc_with_direction(frame: &[u8]) -> Option<Lower<'_>> {
    hdlc(frame.get(1..)?)
}

/// Frame relay: an address of two to four bytes, of which the last has its lowest bit set. Behind it RFC
/// 2427's control byte 0x03, perhaps a pad, and a network layer's identifier; or, as Cisco does it, an
/// EtherType.
pub(super) fn frame_relay(frame: &[u8]) -> Option<Lower<'_>> {
    let last = frame.iter().take(4).position(|byte| byte & 1 != 0)?;
    let behind = frame.get(last + 1..)?;
    let rest = match *behind {
        [0x03, 0x00, ref rest @ ..] | [0x03, ref rest @ ..] => rest,
        _ => return Some(Lower::of(u16_at(behind, 0)?, behind.get(2..)?)),
    };
    match *rest.first()? {
        0xcc => Some(Lower::of(IPV4, &rest[1..])),
        0x8e => Some(Lower::of(IPV6, &rest[1..])),
        0xcf => ppp_payload(&rest[1..]),
        // SNAP: no organisation, then an EtherType; or a bridged Ethernet frame, with its check sequence or
        // without.
        0x80 => match bytes_at(rest, 1)? {
            [0, 0, 0] => Some(Lower::of(u16_at(rest, 4)?, rest.get(6..)?)),
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

pub(super) fn frame_relay_with_direction(frame: &[u8]) -> Option<Lower<'_>> {
    frame_relay(frame.get(1..)?)
}

/// FRF.16: two bytes of flags and sequence number, then frame relay, if this is the first fragment.
pub(super) fn multilink_frame_relay(frame: &[u8]) -> Option<Lower<'_>> {
    const BEGINS: u8 = 0x80;
    const CONTROL: u8 = 0x20;
    match frame.first()? & (BEGINS | CONTROL) {
        BEGINS => frame_relay(frame.get(2..)?),
        _ => None,
    }
}

/// Classical IP over ATM, with LLC or without.
pub(super) fn atm_clip(frame: &[u8]) -> Option<Lower<'_>> {
    match frame.first()? {
        0xaa => llc(frame),
        _ => ip(frame),
    }
}

/// Flags and circuit, then LLC or LANE by the lowest four bits.
pub(super) fn sun_atm(frame: &[u8]) -> Option<Lower<'_>> {
    let cell = frame.get(4..)?;
    match frame[0] & 0x0f {
        1 => lan::lane(cell),
        2 => Some(Lower::of(LLC, cell)),
        _ => None,
    }
}

/// What Juniper's routers put before a frame: "MGC", flags, extensions behind their length.
struct Juniper<'a> {
    /// The router has taken the link header off and left four bytes in its place.
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

/// Reads a frame with Juniper's header, and the link header by `link`.
fn juniper(frame: &[u8], link: fn(&[u8]) -> Option<Lower<'_>>) -> Option<Lower<'_>> {
    let Juniper {
        is_without_link,
        rest,
    } = Juniper::read(frame)?;
    match is_without_link {
        true => ip(rest.get(4..)?),
        false => link(rest),
    }
}

pub(super) fn juniper_ethernet(frame: &[u8]) -> Option<Lower<'_>> {
    juniper(frame, lan::ethernet)
}

pub(super) fn juniper_ppp(frame: &[u8]) -> Option<Lower<'_>> {
    juniper(frame, ppp)
}

pub(super) fn juniper_frame_relay(frame: &[u8]) -> Option<Lower<'_>> {
    juniper(frame, frame_relay)
}

pub(super) fn juniper_hdlc(frame: &[u8]) -> Option<Lower<'_>> {
    juniper(frame, hdlc)
}
