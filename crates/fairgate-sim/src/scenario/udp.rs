//! Datagrams at times that the network does not influence.

use std::time::Duration;

use fairgate::Rate;

use crate::random::Distribution;

/// The length of the longest IP packet, bytes.
const LONGEST_PACKET: u64 = 65_535;
/// The length of the headers of IPv4 without options and of UDP, bytes.
pub(crate) const UDP_HEADERS: u32 = 28;
/// The longest payload of a datagram, bytes.
pub(crate) const LONGEST_DATAGRAM: u32 = LONGEST_PACKET as u32 - UDP_HEADERS;
/// The maximum number of datagrams of a flow. At a million per second, this takes about a day to simulate.
const MOST_DATAGRAMS: u128 = 100_000_000_000;

/// Datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct Udp {
    /// The payload of each datagram, bytes.
    pub size: Distribution,
    /// When they are sent.
    pub pattern: Pattern,
}

/// When datagrams are sent. Rates are rates of payload.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Pattern {
    /// At a constant bit rate.
    Constant {
        /// The rate of payload.
        rate: Rate,
    },
    /// With exponentially distributed gaps.
    Poisson {
        /// The mean rate of payload.
        rate: Rate,
    },
    /// With random gaps.
    Interval {
        /// The time from one datagram to the next, ns.
        gap: Distribution,
    },
    /// At a constant rate in bursts, with silences between them. If a silence interrupts the gap between two
    /// datagrams, the rest of the gap follows after the silence. The mean rate is therefore exact, however
    /// short the bursts are.
    OnOff {
        /// The rate of payload in a burst.
        rate: Rate,
        /// The length of bursts, ns.
        on: Distribution,
        /// The length of silences, ns.
        off: Distribution,
    },
}

impl Udp {
    /// Sends datagrams of `size` bytes of payload at a constant rate of payload.
    pub fn constant(rate: Rate, size: u32) -> Udp {
        Udp {
            size: Distribution::Constant(size.into()),
            pattern: Pattern::Constant { rate },
        }
    }

    /// Sends datagrams of `size` bytes of payload with exponentially distributed gaps.
    pub fn poisson(rate: Rate, size: u32) -> Udp {
        Udp {
            size: Distribution::Constant(size.into()),
            pattern: Pattern::Poisson { rate },
        }
    }

    /// Checks that the simulation ends within a reasonable time.
    pub(super) fn check_work(&self, sends_for: Duration) -> Result<(), String> {
        let nanos = sends_for.as_nanos();
        let of_rate = |rate: Rate| {
            let bits = u128::from(rate.bits_per_second()) * nanos / 1_000_000_000;
            bits / (8 * u128::from(self.size.mean().max(1)))
        };
        check_work(match &self.pattern {
            Pattern::Constant { rate } | Pattern::Poisson { rate } | Pattern::OnOff { rate, .. } => {
                of_rate(*rate)
            }
            Pattern::Interval { gap } => nanos / u128::from(gap.mean().max(1)),
        })
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.size.check()?;
        let longest = LONGEST_PACKET - u64::from(UDP_HEADERS);
        if self.size.mean() == 0 || self.size.mean() > longest {
            return Err(format!(
                "the size of datagrams is {} bytes, but must be from 1 to {longest}",
                self.size.mean()
            ));
        }
        match &self.pattern {
            Pattern::OnOff { on, off, .. } => {
                on.check()?;
                off.check()?;
                if on.mean() == 0 {
                    return Err("the mean length of bursts is 0, but must be above 0; increase it".into());
                }
            }
            Pattern::Interval { gap } => {
                gap.check()?;
                if gap.mean() == 0 {
                    return Err("the mean interval is 0, but must be above 0; increase it".into());
                }
            }
            Pattern::Constant { .. } | Pattern::Poisson { .. } => {}
        }
        Ok(())
    }

    /// Returns the payload of a datagram. A random size that is too long for an IP packet is reduced to the
    /// longest possible one.
    pub(crate) fn payload(size: u64) -> u32 {
        size.clamp(1, LONGEST_PACKET - u64::from(UDP_HEADERS)) as u32
    }
}

/// Checks that the simulation of this many datagrams ends within a reasonable time.
pub(super) fn check_work(packets: u128) -> Result<(), String> {
    match packets <= MOST_DATAGRAMS {
        true => Ok(()),
        false => Err(format!(
            "it would send up to {packets} datagrams, but at most {MOST_DATAGRAMS} can be simulated in a \
             day; lower its rate, or simulate a shorter time"
        )),
    }
}
