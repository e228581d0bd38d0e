//! VLAN tags. The kernel removes the outermost tag from received frames and reports it separately.

/// An IEEE 802.1Q tag: four bytes between the MAC addresses and the EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The tag protocol identifier (TPID): 0x8100 or 0x88a8.
    pub(crate) tpid: u16,
    /// Priority, drop eligibility and the 12-bit VLAN identifier.
    pub(crate) tci: u16,
}

impl Tag {
    /// The EtherType of a customer tag.
    pub(crate) const CUSTOMER: u16 = 0x8100;
    /// The EtherType of a service tag (802.1ad).
    pub(crate) const SERVICE: u16 = 0x88a8;
    /// The bytes that a tag takes in a frame.
    pub(crate) const BYTES: usize = 4;
    /// The bytes before the outermost tag: two MAC addresses.
    pub(crate) const POSITION: usize = 12;

    /// Returns the outermost tag of a frame, if there is one.
    pub(crate) fn of(frame: &[u8]) -> Option<Tag> {
        let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let tpid = word(Tag::POSITION)?;
        let tci = word(Tag::POSITION + 2)?;
        matches!(tpid, Tag::CUSTOMER | Tag::SERVICE).then_some(Tag { tpid, tci })
    }

    /// Inserts the tag into a frame. `space` starts with [`Tag::BYTES`] free bytes, followed by a frame of at
    /// least 12 bytes. Afterwards the tagged frame begins at the start of `space`.
    pub(crate) fn insert(self, space: &mut [u8]) {
        space.copy_within(Tag::BYTES..Tag::BYTES + Tag::POSITION, 0);
        space[Tag::POSITION..Tag::POSITION + 2].copy_from_slice(&self.tpid.to_be_bytes());
        space[Tag::POSITION + 2..Tag::POSITION + Tag::BYTES].copy_from_slice(&self.tci.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_inserted_after_the_addresses() {
        let mut space = [0; 4 + 16];
        for (index, byte) in space[4..].iter_mut().enumerate() {
            *byte = index as u8;
        }
        let tag = Tag {
            tpid: Tag::SERVICE,
            tci: 0xe123,
        };
        tag.insert(&mut space);
        assert_eq!(
            space,
            [
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x88, 0xa8, 0xe1, 0x23, 12, 13, 14, 15
            ]
        );
        assert_eq!(Tag::of(&space), Some(tag));
        assert_eq!(Tag::of(&space[..15]), None);
        assert_eq!(Tag::of(&space[1..]), None);
    }
}
