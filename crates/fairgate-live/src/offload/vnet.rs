//! The virtio header in front of a frame: what the sender left undone (Linux
//! `include/uapi/linux/virtio_net.h`).

/// Bytes of the header: the legacy form, without a buffer count.
pub(crate) const VNET_HEADER: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// Beside a TCP type: CWR belongs to the first segment only (RFC 3168).
const GSO_ECN: u8 = 0x80;
/// Beside a TCP type: CWR is part of a counter and belongs to every segment (RFC 9768). Older kernels do not
/// set it.
const GSO_ACCURATE_ECN: u8 = 0x10;

/// What the sender left undone in a frame. All zero if nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    flags: u8,
    gso_type: u8,
    /// Payload bytes of a segment.
    pub(super) gso_size: u16,
    /// Where checksumming starts: the innermost transport header, from the start of the frame.
    pub(super) checksum_start: u16,
    /// Where the checksum goes, from there.
    pub(super) checksum_offset: u16,
}

/// What is to become of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Nothing but its checksum.
    Checksum,
    /// Segments of TCP over this version of IP.
    Tcp { version: u8, cwr: Cwr },
    /// Datagrams of UDP.
    Udp,
}

/// Which segments keep the flag CWR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cwr {
    First,
    All,
}

impl VnetHeader {
    /// Reads the header; `bytes` are [`VNET_HEADER`] long and in the machine's byte order.
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> VnetHeader {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VnetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            // Bytes 2 and 3 hint at the length of all headers; they are too unreliable to cut by.
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// Whether the frame can go on as it is.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.flags & NEEDS_CHECKSUM == 0 && self.gso_type == GSO_NONE
    }

    /// What is to become of a frame that is not complete; `None` if it is unknown to us.
    pub(super) fn wanted(&self) -> Option<Wanted> {
        // Without the flag the header does not tell where the transport header is. So it is with lists of
        // packets that share one set of headers (`rx-gro-list`).
        if self.flags & NEEDS_CHECKSUM == 0 {
            return None;
        }
        // Senders set GSO_ECN if they want CWR cleared. CWR without it was merged from packets that all carry
        // it.
        let cwr = if self.gso_type & GSO_ECN != 0 {
            Cwr::First
        } else {
            Cwr::All
        };
        match self.gso_type & !(GSO_ECN | GSO_ACCURATE_ECN) {
            GSO_NONE => Some(Wanted::Checksum),
            GSO_TCP4 => Some(Wanted::Tcp { version: 4, cwr }),
            GSO_TCP6 => Some(Wanted::Tcp { version: 6, cwr }),
            GSO_UDP_L4 => Some(Wanted::Udp),
            _ => None,
        }
    }
}
