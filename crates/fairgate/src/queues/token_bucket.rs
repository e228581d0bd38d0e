//! The arithmetic of a token bucket, shared by shapers.
//!
//! Tokens are counted in nanoseconds of sending at the bucket's rate, as Linux does, so that time refills the bucket by
//! an addition and only a packet's length has to be converted. A bucket of B bytes lets at most `B + R t` bytes pass in
//! any time t, and its longest burst at an output rate of M is `M B / (M - R)` bytes.
//!
//! Invariant: tokens never exceed the depth. Shapers that pay before they send (tbf) keep them at 0 or above; those
//! that pay after may go below.

use crate::rate::{Rate, RateMeter};

/// A bucket. Its owner keeps the time of the last payment, which buckets filled together share.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    meter: RateMeter,
    /// Most tokens, ns.
    depth: i64,
    /// Tokens at the time of the last payment, ns.
    tokens: i64,
}

impl TokenBucket {
    /// A full bucket of `burst` bytes at `rate`.
    pub fn full(rate: Rate, burst: u32) -> TokenBucket {
        let meter = rate.meter();
        let depth = meter.nanos(u64::from(burst)) as i64;
        TokenBucket {
            meter,
            depth,
            tokens: depth,
        }
    }

    /// What would be left after sending `bytes`, `elapsed` ns after the last payment, in ns. Below zero, it is the time
    /// until the packet could be sent.
    #[inline]
    pub fn after(&self, elapsed: u64, bytes: u32) -> i64 {
        // Longer than 2^62 ns ago is as good as 2^62: both fill any bucket.
        let elapsed = elapsed.min(1 << 62) as i64;
        let filled = (self.tokens.saturating_add(elapsed)).min(self.depth);
        filled - self.meter.nanos(u64::from(bytes)) as i64
    }

    /// Sets the tokens after a payment, ns.
    #[inline]
    pub fn set(&mut self, tokens: i64) {
        debug_assert!(
            tokens <= self.depth,
            "{tokens} tokens in a bucket of {}",
            self.depth
        );
        self.tokens = tokens;
    }

    /// Most tokens, ns.
    #[inline]
    pub fn depth(&self) -> u64 {
        self.depth as u64
    }

    /// Tokens at the time of the last payment, ns.
    #[inline]
    pub fn tokens(&self) -> i64 {
        self.tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_fills_to_its_depth_and_no_further() {
        let mut bucket = TokenBucket::full(Rate::mbit(8), 1000);
        assert_eq!(bucket.depth(), 1_000_000);
        assert_eq!(bucket.after(0, 1000), 0);
        bucket.set(0);
        assert_eq!(bucket.after(400_000, 1000), -600_000);
        assert_eq!(bucket.after(1_000_000, 1000), 0);
        assert_eq!(bucket.after(u64::MAX, 1000), 0);
    }

    proptest! {
        /// Whatever is asked for and when: no interval passes more than the burst and the rate times its length.
        #[test]
        fn no_interval_passes_more_than_burst_and_rate(
            asks in prop::collection::vec((0u64..2_000_000, 1u32..2000), 1..200),
            burst in 1u32..5000,
        ) {
            const NANOS_PER_BYTE: u64 = 1000; // 8 Mbit/s
            let mut bucket = TokenBucket::full(Rate::mbit(8), burst);
            let (mut now, mut paid_at) = (0, 0);
            let mut sent: Vec<(u64, u64)> = Vec::new();
            for (pause, bytes) in asks {
                now += pause;
                let left = bucket.after(now - paid_at, bytes);
                if left >= 0 {
                    bucket.set(left);
                    paid_at = now;
                    sent.push((now, u64::from(bytes)));
                }
            }
            for (first, &(start, _)) in sent.iter().enumerate() {
                let mut bytes = 0;
                for &(end, length) in &sent[first..] {
                    bytes += length;
                    prop_assert!(bytes * NANOS_PER_BYTE <= u64::from(burst) * NANOS_PER_BYTE + (end - start));
                }
            }
        }
    }
}
