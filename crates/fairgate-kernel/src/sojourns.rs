//! How long packets were in the tree: a histogram that costs the path of a packet a few instructions.

use alloc::boxed::Box;
use alloc::vec;

/// The buckets of an octave: a value stands for others that differ by at most 1/64.
const PART_BITS: u32 = 6;

/// The longest sojourn time that is told apart is 2^40 ns, 18 minutes.
const LONGEST_BITS: u32 = 40;

/// The number of buckets.
pub const BUCKETS: usize = ((LONGEST_BITS - PART_BITS + 1) as usize) << PART_BITS;

/// The number of packets in each bucket.
#[derive(Clone, Debug)]
pub(crate) struct Sojourns(Box<[u64; BUCKETS]>);

impl Sojourns {
    pub(crate) fn new() -> Sojourns {
        let empty = vec![0; BUCKETS].into_boxed_slice();
        Sojourns(empty.try_into().expect("it has this length"))
    }

    /// Counts a packet.
    #[inline]
    pub(crate) fn add(&mut self, nanos: u64) {
        self.0[bucket(nanos)] += 1;
    }

    pub(crate) fn copy_from(&mut self, other: &Sojourns) {
        self.0.copy_from_slice(&other.0[..]);
    }

    /// Returns the first bucket from `from` on that is not empty, and the number of its packets.
    pub(crate) fn next(&self, from: usize) -> Option<(usize, u64)> {
        let left = self.0.get(from..)?;
        let place = left.iter().position(|count| *count > 0)?;
        Some((from + place, left[place]))
    }
}

/// Returns the bucket of a time: times of an octave are shifted to 64..128, those of the first to 0..128.
#[inline]
fn bucket(nanos: u64) -> usize {
    let nanos = nanos.min((1 << LONGEST_BITS) - 1);
    let octave = (nanos | 1 << PART_BITS).ilog2() - PART_BITS;
    ((octave as usize) << PART_BITS) + (nanos >> octave) as usize
}

/// Returns a time in the middle of a bucket, ns.
pub fn middle(bucket: usize) -> u64 {
    let part = (bucket & ((1 << PART_BITS) - 1)) as u64;
    match bucket >> PART_BITS {
        0 => part,
        octave => {
            let octave = (octave - 1).min(LONGEST_BITS as usize);
            (((1 << PART_BITS) | part) << octave) + ((1 << octave) >> 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each time is in a bucket whose middle is near it, and longer ones are in later buckets.
        #[test]
        fn a_bucket_stands_for_times_near_its_middle(bits in 0..40_u32, low in any::<u64>()) {
            let nanos = low >> (63 - bits);
            let found = bucket(nanos);
            prop_assert!(found < BUCKETS);
            prop_assert!(middle(found).abs_diff(nanos) * 128 <= nanos, "{nanos} {}", middle(found));
            prop_assert_eq!(bucket(middle(found)), found);
            prop_assert!(bucket(nanos + 1) - found <= 1);
        }
    }

    #[test]
    fn all_buckets_are_used_in_order() {
        for place in 0..BUCKETS {
            assert_eq!(bucket(middle(place)), place);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        let mut counted = Sojourns::new();
        for nanos in [3, 1000, 1000, u64::MAX] {
            counted.add(nanos);
        }
        let found: Vec<_> = core::iter::successors(counted.next(0), |(at, _)| counted.next(at + 1)).collect();
        assert_eq!(found, [(3, 1), (bucket(1000), 2), (BUCKETS - 1, 1)]);
    }
}
