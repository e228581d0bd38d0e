//! The policer of a filter: it measures the packets that match, and decides what happens to those that exceed
//! a rate (Linux's `act_police.c`).
//!
//! The arithmetic is that of [`Buckets`], which is Linux's: the same packets conform. It rounds the time of
//! each packet down to whole nanoseconds, so a little more than the rate passes: of packets of 61 bytes up to
//! 1.6 % at 10 Gbit/s. Where a promise depends on it, the arithmetic is
//! exact ([`Measure::ExactBytes`]). A packet that exceeds takes no tokens.

use super::average::{Average, Estimate};
use crate::error::ConfigError;
use crate::link_layer::LinkLayer;
use crate::queues::token_bucket::{Buckets, Profile};
use crate::rate::Rate;
use crate::time::Time;

/// What happens to a packet next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// The filter's outcome decides (tc's `pipe`, `pass` and `ok`).
    #[default]
    Pass,
    /// The packet is dropped (tc's `drop` and `shot`).
    Drop,
    /// The next filters are tried (tc's `continue`).
    Continue,
    /// All filters are tried again from the first on (tc's `reclassify`). After 16 times the packet is
    /// dropped, as in Linux (`tcf_classify`).
    Reclassify,
    /// The packet is classified as if no filter had matched. tc has no word for it.
    Default,
}

/// What a policer measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Only the length of each packet.
    Length,
    /// Bytes, with the rounded arithmetic of Linux.
    Bytes(Profile),
    /// Bytes, without rounding: exactly the packets conform that conform to both token buckets.
    ExactBytes(Profile),
    /// Packets.
    Packets {
        /// Packets per second, above 0.
        rate: u64,
        /// Packets that conform at once after an idle time, above 0.
        burst: u32,
    },
}

/// The policer of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Police {
    /// What conforms.
    pub measure: Measure,
    /// The average rate that packets must be below, too. It is estimated before anything else is measured.
    pub average: Option<Average>,
    /// The length of the longest packet that conforms, bytes.
    pub longest: u32,
    /// What happens to packets that conform.
    pub conform: Control,
    /// What happens to packets that exceed.
    pub exceed: Control,
}

impl Police {
    /// Packets that exceed `profile` are dropped.
    pub const fn of(profile: Profile) -> Police {
        Police {
            measure: Measure::Bytes(profile),
            average: None,
            longest: u32::MAX,
            conform: Control::Pass,
            exceed: Control::Drop,
        }
    }

    /// Whether `control` is what happens to some packet.
    pub(super) fn may(&self, control: Control) -> bool {
        self.conform == control || self.exceed == control
    }

    /// Checks what is measured.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if let Some(average) = &self.average {
            average.check()?;
        }
        match self.measure {
            Measure::Length => Ok(()),
            Measure::Bytes(profile) | Measure::ExactBytes(profile) => {
                positive("burst", profile.burst.into())?;
                if let Some(peak) = profile.peak {
                    positive("mtu", peak.mtu.into())?;
                }
                profile.check_peak()
            }
            Measure::Packets { rate, burst } => {
                positive("burst_packets", burst.into())?;
                positive("packets", rate).and_then(|()| match rate > MOST_PACKETS {
                    true => Err(ConfigError::out_of_range(
                        "packets",
                        rate,
                        format!("at most {MOST_PACKETS} packets per second"),
                        "leave out the policer: no link sends more",
                    )),
                    false => Ok(()),
                })
            }
        }
    }
}

/// The largest rate in packets per second.
const MOST_PACKETS: u64 = 1 << 40;

fn positive(parameter: &'static str, number: u64) -> Result<(), ConfigError> {
    match number {
        0 => Err(ConfigError::out_of_range(
            parameter,
            0,
            "above 0, because nothing conforms otherwise",
            "raise it, or drop all packets of the filter",
        )),
        _ => Ok(()),
    }
}

/// The state of a policer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    state: State,
    average: Option<Estimate>,
    longest: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Nothing,
    Bytes(Buckets),
    Packets(Buckets),
    Exact(ExactBuckets),
}

impl Meter {
    /// Full buckets.
    pub(super) fn full(police: &Police) -> Meter {
        let state = match police.measure {
            Measure::Length => State::Nothing,
            Measure::Bytes(profile) => State::Bytes(Buckets::full(profile)),
            Measure::ExactBytes(profile) => State::Exact(ExactBuckets::full(&profile)),
            Measure::Packets { rate, burst } => {
                // A packet counts as one byte.
                let rate = Rate::from_bits_per_second(8 * rate).unwrap_or(Rate::mbit(1));
                State::Packets(Buckets::full(Profile::new(rate, burst)))
            }
        };
        Meter {
            state,
            average: police.average.as_ref().map(Estimate::of),
            longest: police.longest,
        }
    }

    /// Pays for a packet. Returns whether it conforms.
    #[inline]
    pub(super) fn conforms(&mut self, length: u32, now: Time) -> bool {
        if let Some(average) = &mut self.average
            && !average.conforms(length, now)
        {
            return false;
        }
        if length > self.longest {
            return false;
        }
        match &mut self.state {
            State::Nothing => true,
            State::Bytes(buckets) => buckets.pay(length, now).is_ok(),
            State::Packets(buckets) => buckets.pay(1, now).is_ok(),
            State::Exact(buckets) => buckets.pay(length, now),
        }
    }
}

/// The buckets of a profile, without rounding.
#[derive(Clone, Copy, Debug)]
struct ExactBuckets {
    bucket: ExactBucket,
    peak: Option<ExactBucket>,
    paid_at: Time,
    link_layer: LinkLayer,
}

impl ExactBuckets {
    fn full(profile: &Profile) -> ExactBuckets {
        let link_layer = profile.link_layer;
        let bucket = |rate: Rate, bytes: u32| ExactBucket::full(rate, link_layer.count(bytes));
        ExactBuckets {
            bucket: bucket(profile.rate, profile.burst),
            peak: profile.peak.map(|peak| bucket(peak.rate, peak.mtu)),
            paid_at: Time::ZERO,
            link_layer,
        }
    }

    /// Pays from both buckets, or from none. Returns whether there were enough tokens.
    #[inline]
    fn pay(&mut self, length: u32, now: Time) -> bool {
        let elapsed = now.nanos_since(self.paid_at);
        let length = self.link_layer.count(length);
        let left = self.bucket.after(elapsed, length);
        let left_of_peak = self.peak.map(|peak| peak.after(elapsed, length));
        let (Some(left), Some(left_of_peak)) = (left, left_of_peak.unwrap_or(Some(0))) else {
            return false;
        };
        self.bucket.tokens = left;
        if let Some(peak) = &mut self.peak {
            peak.tokens = left_of_peak;
        }
        self.paid_at = self.paid_at.max(now);
        true
    }
}

/// A token bucket whose tokens are billionths of a bit, so that a rate in bit/s fills it with a whole number
/// of them in each nanosecond.
#[derive(Clone, Copy, Debug)]
struct ExactBucket {
    rate: u64,
    depth: u128,
    tokens: u128,
}

impl ExactBucket {
    fn full(rate: Rate, bytes: u32) -> ExactBucket {
        let depth = ExactBucket::cost(bytes);
        ExactBucket {
            rate: rate.bits_per_second(),
            depth,
            tokens: depth,
        }
    }

    fn cost(bytes: u32) -> u128 {
        u128::from(bytes) * 8_000_000_000
    }

    /// Returns the tokens after a payment, `elapsed` ns after the last one. `None` if there are too few.
    #[inline]
    fn after(&self, elapsed: u64, bytes: u32) -> Option<u128> {
        let filled = self.tokens + u128::from(elapsed) * u128::from(self.rate);
        filled.min(self.depth).checked_sub(ExactBucket::cost(bytes))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::queues::token_bucket::Peak;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    fn passed(police: &Police, packets: &[(u32, u64)]) -> Vec<bool> {
        let mut meter = Meter::full(police);
        let conforms = |(length, micros): &(u32, u64)| meter.conforms(*length, Time::from_micros(*micros));
        packets.iter().map(conforms).collect()
    }

    #[test]
    fn bytes_packets_and_lengths_are_measured() {
        let of_bytes = Police::of(Profile::new(Rate::mbit(8), 2000));
        let came = [(1500, 0), (1500, 0), (1500, 1000), (2000, 3000), (2000, 3000)];
        assert_eq!(passed(&of_bytes, &came), [true, false, true, true, false]);
        let of_packets = Police {
            measure: Measure::Packets { rate: 1000, burst: 2 },
            ..of_bytes
        };
        assert_eq!(
            passed(
                &of_packets,
                &[(1500, 0), (60, 0), (60, 999), (60, 1000), (9000, 1000)]
            ),
            [true, true, false, true, false]
        );
        let of_length = Police {
            measure: Measure::Length,
            longest: 1000,
            ..of_bytes
        };
        assert_eq!(passed(&of_length, &[(1000, 0), (1001, 0)]), [true, false]);
        // As in Linux a packet counts in the average though the bucket has no tokens for it: 6000 bytes in
        // 250 ms are 24 kB/s, of which half counts.
        let average = Average {
            rate: Rate::from_bits_per_second(96_000).unwrap(),
            sample_log: 0,
            weight_log: 1,
        };
        let of_both = Police {
            average: Some(average),
            ..of_bytes
        };
        let came = [
            (1500, 0),
            (1500, 0),
            (1500, 0),
            (1500, 0),
            (60, 250_000),
            (60, 500_000),
        ];
        assert_eq!(passed(&of_both, &came), [true, false, false, false, false, true]);
    }

    proptest! {
        /// Exactly what conforms to both buckets conforms: more than Linux's arithmetic lets pass does not,
        /// and all that the definition allows does.
        #[test]
        fn exact_buckets_are_those_of_the_definition(
            came in vec((0u64..40_000, 60u32..1500), 1..200),
            rate in 1_000_000u64..6_000_000_000,
            burst in 1500u32..6000,
            peak in option::of(1u64..1_000_000_000),
        ) {
            let bits = |bits| Rate::from_bits_per_second(bits).unwrap();
            let peak = peak.map(|more| Peak { rate: bits(rate + more), mtu: 1500 });
            let profile = Profile { peak, ..Profile::new(bits(rate), burst) };
            let police = Police { measure: Measure::ExactBytes(profile), ..Police::of(profile) };
            let mut meter = Meter::full(&police);
            let buckets = [Some((rate, burst)), peak.map(|peak| (peak.rate.bits_per_second(), peak.mtu))];
            // What has passed: times and bytes.
            let mut passed: Vec<(u64, u32)> = Vec::new();
            let mut now = 1_000_000_000;
            for (pause, length) in came {
                now += pause;
                let within = |bytes: u128, time: u64| buckets.iter().flatten().all(|&(rate, burst)| {
                    let most = u128::from(burst) * 8_000_000_000 + u128::from(time) * u128::from(rate);
                    bytes * 8_000_000_000 <= most
                });
                // In any interval that ends here: at most the burst, and the rate times its length.
                let mut bytes = u128::from(length);
                let mut expected = within(bytes, 0);
                for &(at, earlier) in passed.iter().rev() {
                    bytes += u128::from(earlier);
                    expected &= within(bytes, now - at);
                }
                prop_assert_eq!(meter.conforms(length, Time::from_nanos(now)), expected);
                if expected {
                    passed.push((now, length));
                }
            }
        }
    }

    #[test]
    fn nothing_that_never_conforms_is_accepted() {
        let refused = |measure| {
            let police = Police {
                measure,
                ..Police::of(Profile::new(Rate::mbit(8), 1))
            };
            police.check().unwrap_err().parameter()
        };
        assert_eq!(
            refused(Measure::Bytes(Profile::new(Rate::mbit(8), 0))),
            Some("burst")
        );
        assert_eq!(refused(Measure::Packets { rate: 0, burst: 1 }), Some("packets"));
        assert_eq!(
            refused(Measure::Packets { rate: 1, burst: 0 }),
            Some("burst_packets")
        );
    }
}
