//! The policer of a filter: it measures the packets that match, and decides what happens to those that exceed
//! a rate (Linux's `act_police.c`).
//!
//! The arithmetic is that of [`Buckets`], which is Linux's: the same packets conform. A packet that exceeds
//! takes no tokens.

use crate::error::ConfigError;
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
}

/// What a policer measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Only the length of each packet.
    Length,
    /// Bytes.
    Bytes(Profile),
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
            longest: u32::MAX,
            conform: Control::Pass,
            exceed: Control::Drop,
        }
    }

    /// Whether `control` is what happens to some packet.
    pub(super) fn may(&self, control: Control) -> bool {
        self.conform == control || self.exceed == control
    }

    /// Checks the measure.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match self.measure {
            Measure::Length => Ok(()),
            Measure::Bytes(profile) => {
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
    buckets: Option<Buckets>,
    counts_packets: bool,
    longest: u32,
}

impl Meter {
    /// Full buckets.
    pub(super) fn full(police: &Police) -> Meter {
        let (buckets, counts_packets) = match police.measure {
            Measure::Length => (None, false),
            Measure::Bytes(profile) => (Some(Buckets::full(profile)), false),
            Measure::Packets { rate, burst } => {
                // A packet counts as one byte.
                let rate = Rate::from_bits_per_second(8 * rate).unwrap_or(Rate::mbit(1));
                (Some(Buckets::full(Profile::new(rate, burst))), true)
            }
        };
        Meter {
            buckets,
            counts_packets,
            longest: police.longest,
        }
    }

    /// Pays for a packet. Returns whether it conforms.
    #[inline]
    pub(super) fn conforms(&mut self, length: u32, now: Time) -> bool {
        if length > self.longest {
            return false;
        }
        let Some(buckets) = &mut self.buckets else {
            return true;
        };
        let units = if self.counts_packets { 1 } else { length };
        buckets.pay(units, now).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
