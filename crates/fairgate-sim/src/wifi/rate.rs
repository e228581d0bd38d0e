//! How long an exchange of frames takes: data, acknowledgement, and RTS and CTS before them.
//!
//! Source: IEEE 802.11-2020: interframe spaces, 10.3.7 and Table 17-21; frame lengths, 9.3.1; rates of
//! control responses, 10.6.6.5 and Table 10-9; EIFS, 10.3.7.

use crate::wifi::path::Path;
use crate::wifi::phy::{Modulation, Ppdu, Radio};

/// Frame lengths with their check sequence, bytes.
const ACK: u32 = 14;
const CTS: u32 = 14;
const RTS: u32 = 20;
/// A compressed block acknowledgement without its bitmap.
const BLOCK_ACK: u32 = 24;
/// The header of a QoS data frame with three addresses, and the check sequence.
const MAC_HEADER: u32 = 26 + 4;
/// LLC and SNAP, which carry the EtherType.
const LLC_HEADER: u32 = 8;
/// Before each MPDU of an A-MPDU.
const DELIMITER: u32 = 4;

/// What all exchanges of a channel have in common. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) slot: u64,
    pub(crate) sifs: u64,
    /// How long a signal takes from one member to another.
    pub(crate) propagation: u64,
    /// After a collision or a lost PPDU, the channel counts as busy for this much longer: EIFS - DIFS.
    pub(crate) recovery: u64,
    /// Bytes that the MAC adds to a packet.
    pub(crate) header: u32,
    /// MPDUs are padded to a multiple of this, bytes.
    pub(crate) alignment: u32,
}

impl Timing {
    /// OFDM at 5 GHz.
    pub(crate) fn ofdm() -> Timing {
        let (slot, sifs) = (9_000, 16_000);
        Timing {
            slot,
            sifs,
            // The slot includes it, and 30 m take 0.1 µs.
            propagation: 0,
            recovery: sifs + Ppdu::non_ht(6).duration(ACK),
            header: MAC_HEADER + LLC_HEADER + DELIMITER,
            alignment: 4,
        }
    }

    /// The bytes that a packet takes in an A-MPDU.
    pub(crate) fn mpdu(&self, length: u32) -> u32 {
        (length + self.header).next_multiple_of(self.alignment)
    }
}

/// How a frame gets damaged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Errors {
    /// The natural logarithm of the probability that a bit arrives undamaged.
    pub(crate) log_success_per_bit: f64,
    /// The probability that an MPDU is damaged for another reason, whatever its length.
    pub(crate) of_any_mpdu: f64,
}

impl Errors {
    pub(crate) const NONE: Errors = Errors {
        log_success_per_bit: 0.0,
        of_any_mpdu: 0.0,
    };

    pub(crate) fn are_impossible(&self) -> bool {
        *self == Errors::NONE
    }

    /// The probability that an MPDU of `bytes` arrives undamaged.
    pub(crate) fn success(&self, bytes: u32) -> f64 {
        let bits = 8.0 * f64::from(bytes);
        (1.0 - self.of_any_mpdu) * libm::exp(self.log_success_per_bit * bits)
    }
}

/// The exchanges between the access point and one station, the same in both directions. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StationRate {
    /// The MCS, for results.
    pub(crate) mcs: u8,
    pub(crate) data: Ppdu,
    /// RTS, SIFS, CTS and SIFS before the data.
    pub(crate) protection: u64,
    /// The RTS alone, which is what collides.
    pub(crate) rts: u64,
    /// The acknowledgement of one MPDU, and of more than one.
    pub(crate) ack: u64,
    pub(crate) block_ack: u64,
    pub(crate) errors: Errors,
}

impl StationRate {
    /// Exchanges at this MCS, or `None` if the standard excludes it for this width and number of streams.
    pub(crate) fn new(radio: &Radio, mcs: u8, errors: Errors) -> Option<StationRate> {
        let control = Ppdu::non_ht(control_rate(mcs));
        let bitmap = radio.standard.window() / 8;
        let sifs = Timing::ofdm().sifs;
        let rts = control.duration(RTS);
        Some(StationRate {
            mcs,
            data: radio.data(mcs)?,
            protection: rts + sifs + control.duration(CTS) + sifs,
            rts,
            ack: control.duration(ACK),
            block_ack: control.duration(BLOCK_ACK + bitmap),
            errors,
        })
    }

    /// Exchanges with a station at `distance` metres. Without an MCS, the highest that reaches it is used.
    pub(crate) fn at(
        radio: &Radio,
        path: &Path,
        distance: f64,
        mcs: Option<u8>,
        of_any_mpdu: f64,
    ) -> Option<StationRate> {
        let mcs = match mcs {
            Some(mcs) => mcs,
            None => path.mcs(radio, distance)?,
        };
        let errors = Errors {
            log_success_per_bit: path.log_success(radio, mcs, distance),
            of_any_mpdu,
        };
        StationRate::new(radio, mcs, errors)
    }

    /// The answer to an A-MPDU of `frames`.
    pub(crate) fn response(&self, frames: u32) -> u64 {
        if frames == 1 { self.ack } else { self.block_ack }
    }
}

/// The rate of control frames, Mb/s: the highest of 6, 12 and 24 that is at most the reference rate of the
/// MCS.
fn control_rate(mcs: u8) -> u64 {
    let modulation = Modulation::of_mcs(mcs);
    match (modulation.bits, modulation.rate) {
        (1, _) => 6,
        (2, _) => 12,
        _ => 24,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::Standard;

    #[test]
    fn an_exchange_has_the_durations_of_the_standard() {
        let timing = Timing::ofdm();
        // DIFS is 34 µs, EIFS is SIFS + 44 µs + DIFS.
        assert_eq!(timing.sifs + 2 * timing.slot, 34_000);
        assert_eq!(timing.recovery, 60_000);
        // 1500 bytes: 38 bytes of headers, 4 of delimiter, and padding to a multiple of 4.
        assert_eq!(timing.mpdu(1500), 1544);
        let radio = Radio {
            standard: Standard::Ac,
            width: 80,
            streams: 1,
            guard_interval: 800,
        };
        let rate = StationRate::new(&radio, 9, Errors::NONE).unwrap();
        // At 24 Mb/s, 96 bits per symbol: RTS 182 bits and CTS 134 bits are 2 symbols each, and 32 bytes of
        // block acknowledgement are 278 bits and 3 symbols.
        assert_eq!((rate.rts, rate.ack, rate.block_ack), (28_000, 28_000, 32_000));
        assert_eq!(rate.protection, 28_000 + 16_000 + 28_000 + 16_000);
    }

    #[test]
    fn both_kinds_of_errors_multiply() {
        let errors = Errors {
            log_success_per_bit: libm::log(0.5) / 800.0,
            of_any_mpdu: 0.2,
        };
        assert!((errors.success(100) - 0.4).abs() < 1e-12);
        assert!((errors.success(200) - 0.2).abs() < 1e-12);
        assert!(Errors::NONE.are_impossible() && !errors.are_impossible());
    }
}
