//! What the link layer makes of a packet's length: headers, a least length, cells.
//!
//! A shaper keeps the queue out of a modem only if it counts what the modem sends. ADSL cuts packets into ATM
//! cells of 53 bytes with 48 bytes of payload, and pads the last one. VDSL2 sends 65 bytes for 64 (PTM).

/// How the link encodes packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// Unchanged.
    #[default]
    None,
    /// In ATM cells: 53 bytes for each 48 or part of them.
    Atm,
    /// In PTM's 64/65 coding: one byte more for each 64 or part of them.
    Ptm,
}

impl Cells {
    /// Returns the bytes on the link for `bytes`.
    #[inline]
    pub fn encode(self, bytes: u64) -> u64 {
        match self {
            Cells::None => bytes,
            // The compiler replaces divisions by constants with multiplications.
            Cells::Atm => bytes.div_ceil(48) * 53,
            Cells::Ptm => bytes + bytes.div_ceil(64),
        }
    }
}

/// The link layer by which a bucket counts packets, as in Linux's `psched_ratecfg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLayer {
    /// The bytes of each packet that the link does not send, such as an Ethernet header that is removed. They
    /// are subtracted before `overhead` is added. A byte is enough for headers, and a class of htb has no
    /// room for more in its cache line.
    pub stripped: u8,
    /// The bytes added to each packet.
    pub overhead: u16,
    /// The least bytes of a packet, before it is cut into cells.
    pub mpu: u16,
    /// How the link encodes packets.
    pub cells: Cells,
}

impl LinkLayer {
    /// Lengths are counted as they are.
    pub const NONE: LinkLayer = LinkLayer {
        stripped: 0,
        overhead: 0,
        mpu: 0,
        cells: Cells::None,
    };

    /// Returns the bytes that a packet of `length` bytes counts, at most 2^32 - 1.
    #[inline]
    pub fn count(self, length: u32) -> u32 {
        let sent = length.saturating_sub(self.stripped.into());
        let bytes = sent.saturating_add(self.overhead.into()).max(self.mpu.into());
        match self.cells {
            Cells::None => bytes,
            cells => cells.encode(bytes.into()).min(u32::MAX.into()) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with Linux's `psched_l2t_ns`, which counts in 32 bits.
        #[test]
        fn lengths_are_counted_as_in_linux(
            length in 0u32..1 << 20, stripped: u8, overhead: u16, mpu: u16
        ) {
            let framed = (length.saturating_sub(stripped.into()) + u32::from(overhead)).max(mpu.into());
            let count = |cells| LinkLayer { stripped, overhead, mpu, cells }.count(length);
            prop_assert_eq!(count(Cells::None), framed);
            prop_assert_eq!(count(Cells::Atm), framed.div_ceil(48) * 53);
            prop_assert_eq!(count(Cells::Ptm), framed + framed.div_ceil(64));
        }
    }

    #[test]
    fn no_length_overflows() {
        let atm = LinkLayer {
            overhead: 40,
            cells: Cells::Atm,
            ..LinkLayer::NONE
        };
        // 1514 bytes without 4 are 32 cells.
        let shorter = LinkLayer {
            stripped: 4,
            cells: Cells::Atm,
            ..LinkLayer::NONE
        };
        assert_eq!((shorter.count(1514), shorter.count(2)), (32 * 53, 0));
        assert_eq!(atm.count(u32::MAX), u32::MAX);
        assert_eq!(atm.count(0), 53);
        assert_eq!(LinkLayer::NONE.count(1500), 1500);
    }
}
