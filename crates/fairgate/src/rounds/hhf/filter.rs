//! The multi-stage filter, which finds the flows that send most without a counter for each flow (Estan and
//! Varghese: "New Directions in Traffic Measurement and Accounting", SIGCOMM 2002, section 3.2).
//!
//! ```text
//!   hash, 32 bits    [ 10 ][ 10 ][ 10 ][ 2 ]
//!                      |     |     |     + their sum without carries (XOR)
//!   array              0     1     2     3        1024 counters of bytes each
//! ```
//!
//! A flow has a counter in each array. Each is at least what the flow has sent, so no heavy flow is missed. A
//! light flow is caught only if it shares all four with others that send much. A packet raises only those
//! counters that are less than the least of them plus the packet: the paper's conservative update.

/// Arrays of counters.
const ARRAYS: usize = 4;
/// Bits of the hash that select a counter.
const BITS: u32 = 10;
/// Counters of an array.
pub(super) const COUNTERS: usize = 1 << BITS;

/// The counters. A counter without its valid bit is 0.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    counters: [[u32; COUNTERS]; ARRAYS],
    valid: [[u64; COUNTERS / 64]; ARRAYS],
}

impl Filter {
    pub(super) fn new() -> Filter {
        Filter {
            counters: [[0; COUNTERS]; ARRAYS],
            valid: [[0; COUNTERS / 64]; ARRAYS],
        }
    }

    /// Sets all counters to 0. That writes 512 bytes.
    pub(super) fn reset(&mut self) {
        self.valid = [[0; COUNTERS / 64]; ARRAYS];
    }

    /// Counts a packet of `length` bytes. Returns true if its flow has sent more than `most` bytes. The
    /// packet is not counted then.
    pub(super) fn exceeds(&mut self, hash: u32, length: u32, most: u32) -> bool {
        let positions = positions(hash);
        let mut least = u32::MAX;
        for ((counters, valid), position) in self.counters.iter_mut().zip(&mut self.valid).zip(positions) {
            let (word, bit) = (&mut valid[position / 64], 1 << (position % 64));
            if *word & bit == 0 {
                *word |= bit;
                counters[position] = 0;
            }
            least = least.min(counters[position].saturating_add(length));
        }
        if least > most {
            return true;
        }
        for (counters, position) in self.counters.iter_mut().zip(positions) {
            counters[position] = counters[position].max(least);
        }
        false
    }
}

/// The counter of a flow in each array.
#[inline]
fn positions(hash: u32) -> [usize; ARRAYS] {
    let part = |number: u32| (hash >> (BITS * number)) as usize % COUNTERS;
    let [first, second, third] = [part(0), part(1), part(2)];
    let rest = (hash >> (BITS * 3)) as usize;
    [first, second, third, first ^ second ^ third ^ rest]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// No flow that has sent more than the threshold escapes, whatever else is sent. Bytes that were not
        /// counted do not matter: the flow was caught then.
        #[test]
        fn no_heavy_flow_is_missed(
            packets in prop::collection::vec((0u32..40, 40u32..1600), 0..600),
            salt in any::<u32>(),
        ) {
            const MOST: u32 = 20_000;
            let mut filter = Filter::new();
            let mut sent: BTreeMap<u32, u32> = BTreeMap::new();
            for (flow, length) in packets {
                let hash = (flow ^ salt).wrapping_mul(0x9e37_79b9);
                let bytes = sent.entry(flow).or_default();
                let is_caught = filter.exceeds(hash, length, MOST);
                prop_assert!(is_caught || *bytes + length <= MOST, "flow {} has sent {}", flow, bytes);
                if !is_caught {
                    *bytes += length;
                }
            }
        }

        /// A flow alone is caught exactly when it exceeds the threshold.
        #[test]
        fn a_flow_alone_is_counted_exactly(
            hash in any::<u32>(),
            lengths in prop::collection::vec(1u32..2000, 1..60),
        ) {
            let mut filter = Filter::new();
            let mut sent = 0;
            for length in lengths {
                let is_over = sent + length > 30_000;
                prop_assert_eq!(filter.exceeds(hash, length, 30_000), is_over);
                sent += if is_over { 0 } else { length };
            }
        }
    }

    /// Ninety light flows and ten heavy ones, whose bytes are never counted once they are caught: hardly a
    /// light one is taken for a heavy one.
    #[test]
    fn light_flows_are_rarely_caught() {
        let mut filter = Filter::new();
        let mut caught = 0;
        for round in 0..50u32 {
            filter.reset();
            for packet in 0..20 {
                for flow in 0..90 {
                    let hash = (flow + 1000 * round).wrapping_mul(0x9e37_79b9) ^ flow << 7;
                    caught += u32::from(filter.exceeds(hash, 500, 12_000));
                    let _ = packet;
                }
                for flow in 100..110 {
                    let hash = (flow + 1000 * round).wrapping_mul(0x9e37_79b9) ^ flow << 7;
                    filter.exceeds(hash, 1500, 12_000);
                }
            }
        }
        assert!(caught < 10, "{caught} of 90,000 packets");
    }

    #[test]
    fn a_reset_forgets_everything() {
        let mut filter = Filter::new();
        assert!(!filter.exceeds(7, 900, 1000));
        assert!(filter.exceeds(7, 900, 1000));
        filter.reset();
        assert!(!filter.exceeds(7, 900, 1000));
    }
}
