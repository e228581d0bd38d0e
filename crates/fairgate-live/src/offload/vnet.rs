//! The virtio header in front of a frame: what the sender left undone (Linux
//! `include/uapi/linux/virtio_net.h`).

/// The length of the header in bytes: the legacy form, without a buffer count.
pub(crate) const VNET_HEADER: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// With a TCP type: CWR belongs to the first segment only (RFC 3168).
const GSO_ECN: u8 = 0x80;
/// With a TCP type: CWR is part of a counter and belongs to every segment (RFC 9768). Older kernels do not
/// set it.
const GSO_ACCURATE_ECN: u8 = 0x10;

/// What the sender left undone in a frame. All fields are zero if the frame is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    flags: u8,
    gso_type: u8,
    /// The payload bytes of a segment.
    pub(super) gso_size: u16,
    /// The offset in the frame where checksumming starts: the innermost transport header.
    pub(super) checksum_start: u16,
    /// The offset of the checksum from there.
    pub(super) checksum_offset: u16,
}

/// What has to be done to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Complete the checksum.
    Checksum,
    /// Cut into segments of TCP over this version of IP.
    Tcp { version: u8, cwr: Cwr },
    /// Cut into UDP datagrams.
    Udp,
}

/// Which segments keep the flag CWR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cwr {
    First,
    All,
}

impl VnetHeader {
    /// Parses the header. `bytes` must have [`VNET_HEADER`] bytes in the machine's byte order.
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> VnetHeader {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VnetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            // Bytes 2 and 3 hint at the length of all headers. They are too unreliable to be used.
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// Returns the header for the same frame behind `bytes` more bytes.
    #[inline]
    pub(crate) fn behind(mut self, bytes: u16) -> VnetHeader {
        if self.flags & NEEDS_CHECKSUM != 0 {
            self.checksum_start = self.checksum_start.saturating_add(bytes);
        }
        self
    }

    /// Returns the header of a frame whose checksum is that of the pseudo header.
    pub(super) fn checksum(start: u16, checksum_offset: u16) -> VnetHeader {
        VnetHeader {
            flags: NEEDS_CHECKSUM,
            checksum_start: start,
            checksum_offset,
            ..VnetHeader::default()
        }
    }

    /// Returns the header of a TCP super-packet whose checksum is that of the pseudo header.
    pub(crate) fn tcp(is_ipv6: bool, size: u16, start: u16, checksum_offset: u16) -> VnetHeader {
        VnetHeader {
            flags: NEEDS_CHECKSUM,
            gso_type: if is_ipv6 { GSO_TCP6 } else { GSO_TCP4 },
            gso_size: size,
            checksum_start: start,
            checksum_offset,
        }
    }

    /// Writes the header in the machine's byte order. `headers` is the length of all headers of the frame.
    pub(super) fn write(&self, headers: u16) -> [u8; VNET_HEADER] {
        let mut bytes = [0; VNET_HEADER];
        (bytes[0], bytes[1]) = (self.flags, self.gso_type);
        let words = [headers, self.gso_size, self.checksum_start, self.checksum_offset];
        for (field, word) in bytes[2..].as_chunks_mut::<2>().0.iter_mut().zip(words) {
            *field = word.to_ne_bytes();
        }
        bytes
    }

    /// Returns whether the frame is complete and can be forwarded unchanged.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.flags & NEEDS_CHECKSUM == 0 && self.gso_type == GSO_NONE
    }

    /// Returns what has to be done to an incomplete frame, or `None` if that is unknown.
    pub(super) fn wanted(&self) -> Option<Wanted> {
        // Without the flag, the header does not say where the transport header is. This is so for lists of
        // packets that share one set of headers (`rx-gro-list`).
        if self.flags & NEEDS_CHECKSUM == 0 {
            return None;
        }
        // Senders set GSO_ECN if CWR has to be cleared. CWR without GSO_ECN was merged from packets that all
        // had it.
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
