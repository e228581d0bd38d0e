//! The arithmetic of token buckets, for shapers and policers.
//!
//! Tokens are counted in nanoseconds of sending at the bucket's rate, as in Linux. So time refills the bucket
//! by an addition, and only a packet's length has to be converted. A bucket of B bytes at rate R lets at most
//! `B + R t` bytes pass in any time t. Its longest burst at an output rate of M is `M B / (M - R)` bytes.
//!
//! Invariant: tokens never exceed the depth. Shapers that pay before they send (tbf) keep them at 0 or above.
//! Shapers that pay afterwards may go below 0.

use crate::error::ConfigError;
use crate::link_layer::LinkLayer;
use crate::rate::{Rate, RateMeter};
use crate::time::Time;

/// A token bucket. Its owner keeps the time of the last payment, because buckets that are filled together
/// share it.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    meter: RateMeter,
    /// The depth: the largest number of tokens, ns.
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

    /// Returns the tokens, in ns, that a payment for `bytes` would leave, `elapsed` ns after the last
    /// payment. If it is negative, its absolute value is the time until the packet can be sent.
    #[inline]
    pub fn after(&self, elapsed: u64, bytes: u32) -> i64 {
        // 2^62 ns fill any bucket, so longer times need not be distinguished.
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

    /// The depth: the largest number of tokens, ns.
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

/// The second bucket of a [`Profile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The rate of bursts: above the profile's `rate`.
    pub rate: Rate,
    /// Bytes that may pass at once: at least the longest packet.
    pub mtu: u32,
}

/// The bounds of a traffic stream (tc: `rate`, `burst`, `peakrate`, `mtu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The rate, in bytes on the link.
    pub rate: Rate,
    /// Bytes that may pass at once after an idle time: at least the longest packet.
    pub burst: u32,
    /// The bound on the rate of bursts; `None` for no bound.
    pub peak: Option<Peak>,
    /// How the rates count the length of a packet.
    pub link_layer: LinkLayer,
}

impl Profile {
    /// `rate` with a burst of 1 ms, but at least 10 full frames.
    pub fn of_rate(rate: Rate) -> Profile {
        const TEN_FRAMES: u64 = 15_140;
        let millisecond = (rate.bits_per_second() / 8000).clamp(TEN_FRAMES, u64::from(u32::MAX));
        Profile::new(rate, millisecond as u32)
    }

    /// A profile of `rate` and `burst`, without a peak rate.
    pub const fn new(rate: Rate, burst: u32) -> Profile {
        Profile {
            rate,
            burst,
            peak: None,
            link_layer: LinkLayer::NONE,
        }
    }

    /// The longest packet that both buckets can hold.
    pub fn longest_packet(&self) -> u32 {
        self.peak.map_or(self.burst, |peak| self.burst.min(peak.mtu))
    }

    /// Checks that the peak rate is above the rate.
    pub(crate) fn check_peak(&self) -> Result<(), ConfigError> {
        match self.peak {
            Some(peak) if peak.rate <= self.rate => Err(ConfigError::conflict(
                "peakrate",
                peak.rate,
                format!("above the rate, {}", self.rate),
                "raise it, or leave it out",
            )),
            _ => Ok(()),
        }
    }
}

/// The buckets of a [`Profile`], from which packets are paid together.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    bucket: TokenBucket,
    peak: Option<TokenBucket>,
    /// The time of the last payment.
    paid_at: Time,
    profile: Profile,
}

impl Buckets {
    /// Full buckets.
    pub fn full(profile: Profile) -> Buckets {
        Buckets {
            bucket: TokenBucket::full(profile.rate, profile.link_layer.count(profile.burst)),
            peak: profile
                .peak
                .map(|peak| TokenBucket::full(peak.rate, profile.link_layer.count(peak.mtu))),
            paid_at: Time::ZERO,
            profile,
        }
    }

    /// The profile of the buckets.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Pays for `length` bytes.
    ///
    /// # Errors
    /// If there are too few tokens, nothing is paid. The error is the time when there will be enough.
    #[inline]
    pub fn pay(&mut self, length: u32, now: Time) -> Result<(), Time> {
        // As in Linux, the first bucket's depth bounds the time also for the second bucket.
        let length = self.profile.link_layer.count(length);
        let elapsed = now.nanos_since(self.paid_at).min(self.bucket.depth());
        let left = self.bucket.after(elapsed, length);
        let left_of_peak = self.peak.map_or(0, |bucket| bucket.after(elapsed, length));
        let least = left.min(left_of_peak);
        if least < 0 {
            return Err(self.paid_at.max(now) + least.unsigned_abs());
        }
        self.bucket.set(left);
        if let Some(bucket) = &mut self.peak {
            bucket.set(left_of_peak);
        }
        self.paid_at = self.paid_at.max(now);
        Ok(())
    }

    /// Changes the profile at time `now`. Tokens are carried over, in bytes, up to the new depths, so that
    /// repeated changes cannot pass more than the rates allow.
    pub fn change(&mut self, profile: Profile, now: Time) {
        let elapsed = now.nanos_since(self.paid_at);
        let old = self.profile;
        let link = profile.link_layer;
        let depth = link.count(profile.burst);
        self.bucket = carried_over(self.bucket, old.rate, elapsed, profile.rate, depth);
        self.peak = profile.peak.map(|peak| match (self.peak, old.peak) {
            (Some(bucket), Some(old)) => {
                carried_over(bucket, old.rate, elapsed, peak.rate, link.count(peak.mtu))
            }
            _ => TokenBucket::full(peak.rate, link.count(peak.mtu)),
        });
        self.paid_at = self.paid_at.max(now);
        self.profile = profile;
    }

    /// The tokens at the time of the last payment, ns: in the first and in the second bucket.
    pub fn tokens(&self) -> (i64, Option<i64>) {
        (self.bucket.tokens(), self.peak.map(|peak| peak.tokens()))
    }
}

/// A bucket of `burst` bytes at `rate` with the tokens of `old`, in bytes, up to its depth. `old` is filled
/// first for `elapsed` ns since its last payment.
fn carried_over(old: TokenBucket, old_rate: Rate, elapsed: u64, rate: Rate, burst: u32) -> TokenBucket {
    let mut bucket = TokenBucket::full(rate, burst);
    let nanos = i128::from(old.after(elapsed, 0));
    let nanos = nanos * i128::from(old_rate.bits_per_second()) / i128::from(rate.bits_per_second());
    bucket.set(nanos.min(i128::from(bucket.depth())) as i64);
    bucket
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
        /// For any sequence of requests, no interval passes more than the burst plus the rate times its
        /// length.
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
