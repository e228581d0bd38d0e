//! The exact transmission time of bytes at a rate. A remainder below one nanosecond is carried over to the
//! next packet.

use fairgate::Rate;

/// Turns bytes into nanoseconds without drift: after any number of packets back to back, the sum of what
/// [`advance`](ExactClock::advance) gave is the exact rational time, rounded down.
///
/// The division is done only when the length changes: packets of one direction mostly have the same.
#[derive(Clone, Debug)]
pub(crate) struct ExactClock {
    bits_per_second: u64,
    /// Part of a nanosecond not yet handed out, in units of 1/`bits_per_second`.
    carried: u64,
    last_bytes: u32,
    last_nanos: u64,
    last_rest: u64,
}

impl ExactClock {
    pub(crate) fn new(rate: Rate) -> ExactClock {
        ExactClock {
            bits_per_second: rate.bits_per_second(),
            carried: 0,
            last_bytes: 0,
            last_nanos: 0,
            last_rest: 0,
        }
    }

    /// Continues in the middle of a nanosecond. `carried` is the part that has passed, in units of
    /// 1/`rate`.
    pub(super) fn resume(rate: Rate, carried: u64) -> ExactClock {
        ExactClock {
            carried,
            ..ExactClock::new(rate)
        }
    }

    /// Returns the part of a nanosecond that has passed, in units of 1/rate.
    pub(super) fn carried(&self) -> u64 {
        self.carried
    }

    /// Nanoseconds until `bytes` more have passed. Up to 2 GB.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: u32) -> u64 {
        if bytes != self.last_bytes {
            let scaled = u64::from(bytes) * 8_000_000_000;
            self.last_bytes = bytes;
            self.last_nanos = scaled / self.bits_per_second;
            self.last_rest = scaled % self.bits_per_second;
        }
        // Compared with what is missing, not summed: the sum may be beyond the largest number.
        let missing = self.bits_per_second - self.last_rest;
        if self.carried >= missing {
            self.carried -= missing;
            return self.last_nanos + 1;
        }
        self.carried += self.last_rest;
        self.last_nanos
    }

    /// Starts anew on a whole nanosecond, after a pause.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.carried = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_drift(
            bits in prop_oneof![1u64..400_000_000_000, 1..=u64::MAX],
            lengths in prop::collection::vec(1u32..70_000, 1..300),
        ) {
            let mut clock = ExactClock::new(Rate::from_bits_per_second(bits).unwrap());
            let (mut bytes, mut nanos) = (0u128, 0u128);
            for length in lengths {
                bytes += u128::from(length);
                nanos += u128::from(clock.advance(length));
                prop_assert_eq!(nanos, bytes * 8_000_000_000 / u128::from(bits));
            }
        }
    }
}
