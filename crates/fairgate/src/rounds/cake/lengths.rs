//! The lengths of packets on the link, as tc shows them: the least and the most, before and after framing.

use super::framing::Framing;

/// What has been seen of lengths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    framing: Framing,
    link_header: u16,
    /// Without the bytes that the overhead replaces.
    pub(super) network: Span,
    /// With framing.
    pub(super) adjusted: Span,
    /// The average position of the IP header, in 2^-16 bytes.
    header_offset: u32,
}

/// The least and the most of some numbers. 65535 and 0 if there were none, as in Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) least: u32,
    pub(super) most: u32,
}

impl Span {
    const NOTHING: Span = Span {
        least: u16::MAX as u32,
        most: 0,
    };

    #[inline]
    fn add(&mut self, number: u64) {
        let number = number as u32;
        // Both are seldom written.
        if number < self.least {
            self.least = number;
        }
        if number > self.most {
            self.most = number;
        }
    }
}

impl Lengths {
    pub(super) fn new(framing: Framing, link_header: u16) -> Lengths {
        Lengths {
            framing,
            link_header,
            network: Span::NOTHING,
            adjusted: Span::NOTHING,
            header_offset: 0,
        }
    }

    /// Changes the framing. What was seen before does not count any more.
    pub(super) fn change(&mut self, framing: Framing, link_header: u16) {
        if (framing, link_header) != (self.framing, self.link_header) {
            *self = Lengths {
                header_offset: self.header_offset,
                ..Lengths::new(framing, link_header)
            };
        }
    }

    /// Returns the bytes on the link for a packet of `length` bytes.
    #[inline]
    pub(super) fn on_the_link(&mut self, length: u32) -> u64 {
        let network = self.framing.network_bytes(length, self.link_header);
        let adjusted = self.framing.encode(network);
        self.network.add(network);
        self.adjusted.add(adjusted);
        // A sample counts 1/256.
        self.header_offset -= self.header_offset >> 8;
        self.header_offset += u32::from(self.link_header) << 8;
        adjusted
    }

    /// The average position of the IP header in the frame, bytes.
    pub(super) fn header_offset(&self) -> u32 {
        (self.header_offset + 0x8000) >> 16
    }
}
