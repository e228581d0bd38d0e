//! Conditions on bytes of the headers.

use core::fmt;

use crate::error::ConfigError;
use crate::flow::HeaderBytes;

/// What a [`Bytes`] compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BytesOf {
    /// Bytes at this offset from the network header. An offset of -14 to -1 is in an Ethernet header without
    /// tags.
    Network(i16),
    /// Bytes at this offset from the transport header. A fragment has none.
    Transport(u8),
    /// The TTL of IPv4, or the hop limit of IPv6.
    HopLimit,
    /// The length of the IP packet with its header, as its header says.
    Length,
}

/// A condition on up to four bytes of a packet's headers. It fails for packets that do not have all of them.
///
/// These bytes are kept with a packet if the pool does so ([`Pool::keep`](crate::Pool::keep)).
/// Otherwise the condition fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes {
    place: BytesOf,
    /// The number of bytes.
    width: u8,
    mask: u32,
    /// The range of the masked number.
    first: u32,
    last: u32,
}

impl Bytes {
    /// Creates a condition: the number of `width` bytes at `place`, in network order, is within `first` and
    /// `last` after it was masked.
    ///
    /// # Errors
    /// If the width is not 1, 2 or 4, if the place is out of reach, if the range is empty, or if its ends
    /// have bits outside of the mask.
    pub fn new(place: BytesOf, width: u8, mask: u32, first: u32, last: u32) -> Result<Bytes, ConfigError> {
        let refused = |value: &dyn fmt::Display, rule: &str, remedy: &str| {
            Err(ConfigError::conflict("bytes", value, rule, remedy))
        };
        if !matches!(width, 1 | 2 | 4) {
            return refused(&width, "1, 2 or 4 bytes", "compare a wider field in parts");
        }
        let reach = HeaderBytes::REACH as i16 - i16::from(width);
        let is_in_reach = match place {
            BytesOf::Network(offset) => (-14..=reach).contains(&offset),
            BytesOf::Transport(offset) => i16::from(offset) <= 64 - i16::from(width),
            BytesOf::HopLimit => width == 1,
            BytesOf::Length => width == 2,
        };
        if !is_in_reach {
            return refused(
                &place,
                "within the first 109 bytes from the network header, or 64 from the transport header",
                "match a field closer to the start of the packet",
            );
        }
        let most = u32::MAX >> (32 - 8 * u32::from(width));
        if mask & !most != 0 {
            return refused(
                &format_args!("{mask:#x}"),
                "a mask of this width",
                "compare more bytes",
            );
        }
        if first > last || (first | last) & !mask != 0 && first == last || last > mask {
            return refused(
                &format_args!("{first:#x}-{last:#x}"),
                "a range of numbers that the mask allows",
                "clear the bits that the mask ignores, and write the lower end first",
            );
        }
        Ok(Bytes {
            place,
            width,
            mask,
            first,
            last,
        })
    }

    /// Returns what is compared.
    pub fn place(&self) -> BytesOf {
        self.place
    }

    /// Returns the number of bytes.
    pub fn width(&self) -> u8 {
        self.width
    }

    /// Returns the mask.
    pub fn mask(&self) -> u32 {
        self.mask
    }

    /// Returns the ends of the range of the masked number.
    pub fn range(&self) -> (u32, u32) {
        (self.first, self.last)
    }

    /// Returns whether the condition holds.
    #[inline]
    pub fn matches(&self, bytes: &HeaderBytes) -> bool {
        let number = match self.place {
            BytesOf::Network(offset) => bytes.from_network(offset, self.width),
            BytesOf::Transport(offset) => bytes.from_transport(offset, self.width),
            BytesOf::HopLimit => bytes.hop_limit(),
            BytesOf::Length => bytes.packet_length(),
        };
        number.is_some_and(|number| (self.first..=self.last).contains(&(number & self.mask)))
    }
}

impl fmt::Display for BytesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BytesOf::Network(offset) => write!(f, "network{offset:+}"),
            BytesOf::Transport(offset) => write!(f, "transport+{offset}"),
            BytesOf::HopLimit => f.write_str("ttl"),
            BytesOf::Length => f.write_str("length"),
        }
    }
}
