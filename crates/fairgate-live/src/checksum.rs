//! The Internet checksum (RFC 1071): ones' complement sums of 16-bit words.
//!
//! The sum does not depend on the byte order (RFC 1071, section 2.B). Words are therefore read, and the
//! result is written, in the machine's byte order.

/// A running sum. The 64-bit accumulator can add four gigabytes of 32-bit words without overflow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds bytes that start at an even offset. If the number of bytes is odd, the last one is padded with
    /// zero.
    #[inline]
    pub(crate) fn add(mut self, bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            self.0 += u64::from(u32::from_ne_bytes(*word));
        }
        let (words, rest) = rest.as_chunks::<2>();
        for word in words {
            self.0 += u64::from(u16::from_ne_bytes(*word));
        }
        if let [last] = rest {
            self.0 += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        self
    }

    /// Adds another sum.
    #[inline]
    pub(crate) fn add_sum(self, other: Sum) -> Sum {
        Sum(self.0 + other.0)
    }

    /// Returns the checksum as the bytes of a header field.
    pub(crate) fn finish(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (!(sum as u16)).to_ne_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition in RFC 1071 section 4.1, word by word in network order.
    fn reference(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn checksum_of_the_example_in_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().add(&bytes).finish(), (!0xddf2u16).to_be_bytes());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn checksum_equals_the_definition(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(Sum::default().add(&bytes).finish(), reference(&bytes).to_be_bytes());
        }
    }
}
