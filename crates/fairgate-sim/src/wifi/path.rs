//! What distance does to a signal: received power, the MCS that it allows, and the errors that remain.
//!
//! Source: path loss, the log-distance model (Rappaport, Wireless Communications, 2nd ed., section 4.9), with
//! the loss of free space over the first metre at 5.15 GHz. MCS: the minimum sensitivities of IEEE
//! 802.11-2020, Table 21-25, and 802.11ax-2021, Table 27-51, which assume a noise figure of 10 dB and an
//! implementation loss of 5 dB (17.3.10.2). Errors: Pei and Henderson, "Validation of OFDM error rate model
//! in ns-3" (2010): the bit error rate of the modulation, then the union bound of the convolutional code with
//! constraint length 7 (Frenger, Orten, Ottosson 1999; Haccoun and Bégin 1989 for punctured codes).
//!
//! A station uses the highest MCS whose sensitivity its signal reaches. The error rate follows from the
//! signal to noise ratio, so that a signal at the sensitivity has the error rate that the standard allows.
//!
//! Deviations: no fading and no shadowing. The ratio is the same on all streams. LDPC codes get the error
//! rate of convolutional ones. A station nearer than one metre is treated as one metre away.

use crate::wifi::phy::{Modulation, Radio};

/// Loss over the first metre at 5.15 GHz, dB: 20 log10(4 pi / wavelength).
pub(crate) const FIRST_METRE: f64 = 46.6777;
/// Thermal noise at 290 K, dBm in 1 Hz.
const THERMAL_NOISE: f64 = -174.0;
const NOISE_FIGURE: f64 = 10.0;
/// What remains of the 5 dB: the decoder of the error model makes hard decisions, which cost about 3 dB.
const IMPLEMENTATION_LOSS: f64 = 2.0;

/// Minimum sensitivity by MCS at 20 MHz, dBm. Each doubling of the width adds 3 dB.
const SENSITIVITY: [f64; 12] = [
    -82.0, -79.0, -77.0, -74.0, -70.0, -66.0, -65.0, -64.0, -59.0, -57.0, -54.0, -52.0,
];

/// How signals fade with distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Path {
    /// Transmission power, dBm.
    pub(crate) power: f64,
    /// Path loss exponent: 2 in free space, about 3 in buildings.
    pub(crate) exponent: f64,
}

impl Path {
    /// The received power at `distance` metres, dBm.
    pub(crate) fn received(&self, distance: f64) -> f64 {
        self.power - FIRST_METRE - 10.0 * self.exponent * libm::log10(distance.max(1.0))
    }

    /// The highest MCS that reaches `distance`. `None` if none does.
    pub(crate) fn mcs(&self, radio: &Radio, distance: f64) -> Option<u8> {
        let power = self.received(distance);
        (0..=radio.standard.last_mcs())
            .rev()
            .filter(|&mcs| radio.data(mcs).is_some())
            .find(|&mcs| power >= sensitivity(mcs, radio.width))
    }

    /// The natural logarithm of the probability that a bit arrives undamaged. It is 0 or negative.
    pub(crate) fn log_success(&self, radio: &Radio, mcs: u8, distance: f64) -> f64 {
        let hertz = f64::from(radio.width) * 1e6;
        let noise = THERMAL_NOISE + 10.0 * libm::log10(hertz) + NOISE_FIGURE + IMPLEMENTATION_LOSS;
        let ratio = libm::pow(10.0, (self.received(distance) - noise) / 10.0);
        let modulation = Modulation::of_mcs(mcs);
        libm::log1p(-decoded_error_rate(modulation, ratio).min(1.0 - f64::EPSILON))
    }
}

/// Minimum sensitivity, dBm.
fn sensitivity(mcs: u8, width: u32) -> f64 {
    SENSITIVITY[usize::from(mcs)] + 3.0 * f64::from((width / 20).ilog2())
}

/// The bit error rate before decoding, by the ratio of a symbol's energy to noise.
fn raw_error_rate(modulation: Modulation, ratio: f64) -> f64 {
    match modulation.bits {
        1 => 0.5 * libm::erfc(libm::sqrt(ratio)),
        bits => {
            // Square constellations with Gray code (Proakis, Digital Communications).
            let points = (1u64 << bits) as f64;
            let per_axis = bits as f64 / 2.0;
            let argument = libm::sqrt(1.5 * ratio / (points - 1.0));
            (1.0 - 1.0 / libm::sqrt(points)) * libm::erfc(argument) / per_axis
        }
    }
}

/// The number of wrong information bits on all paths of each weight, from the free distance on.
struct Spectrum {
    free_distance: i32,
    /// The difference of successive weights. The rate 1/2 code has even weights only.
    step: i32,
    /// Information bits per step of the puncturing pattern.
    period: f64,
    weights: [f64; 9],
}

fn spectrum(rate: (u64, u64)) -> Spectrum {
    let of = |free_distance, step, period, weights| Spectrum {
        free_distance,
        step,
        period,
        weights,
    };
    match rate {
        (1, 2) => of(
            10,
            2,
            1.0,
            [
                36.0,
                211.0,
                1_404.0,
                11_633.0,
                77_433.0,
                502_690.0,
                3_322_763.0,
                21_292_910.0,
                134_365_911.0,
            ],
        ),
        (2, 3) => of(
            6,
            1,
            2.0,
            [
                3.0,
                70.0,
                285.0,
                1_276.0,
                6_160.0,
                27_128.0,
                117_019.0,
                498_860.0,
                2_103_891.0,
            ],
        ),
        (3, 4) => of(
            5,
            1,
            3.0,
            [
                42.0,
                201.0,
                1_492.0,
                10_469.0,
                62_935.0,
                379_644.0,
                2_253_373.0,
                13_073_811.0,
                75_152_755.0,
            ],
        ),
        _ => of(
            4,
            1,
            5.0,
            [
                92.0,
                528.0,
                8_694.0,
                79_453.0,
                792_114.0,
                7_375_573.0,
                67_884_974.0,
                610_875_423.0,
                5_427_275_376.0,
            ],
        ),
    }
}

/// The bit error rate after hard decisions and Viterbi decoding: the union bound over wrong paths, at most
/// 1/2.
fn decoded_error_rate(modulation: Modulation, ratio: f64) -> f64 {
    let raw = raw_error_rate(modulation, ratio);
    let spectrum = spectrum(modulation.rate);
    // The Chernoff bound of the probability that a path that differs in d bits wins is base^d.
    let base = libm::sqrt(4.0 * raw * (1.0 - raw));
    let sum: f64 = (spectrum.free_distance..)
        .step_by(spectrum.step as usize)
        .zip(spectrum.weights)
        .map(|(distance, weight)| weight * libm::pow(base, f64::from(distance)))
        .sum();
    (sum / (2.0 * spectrum.period)).min(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::Standard;

    const PATH: Path = Path {
        power: 20.0,
        exponent: 3.0,
    };

    fn radio(width: u32) -> Radio {
        Radio {
            standard: Standard::Ax,
            width,
            streams: 1,
            guard_interval: 800,
        }
    }

    /// The probability that 4096 bytes arrive damaged, by received power.
    fn damage(mcs: u8, received: f64) -> f64 {
        let path = Path {
            power: received + FIRST_METRE,
            exponent: 3.0,
        };
        1.0 - libm::exp(path.log_success(&radio(20), mcs, 1.0) * 4096.0 * 8.0)
    }

    /// The sensitivity is the power at which at most 10 % of PSDUs of 4096 bytes are damaged (21.3.18.1).
    /// With 5 dB less, nearly all are.
    #[test]
    fn error_rates_agree_with_the_sensitivities() {
        for mcs in 0..=11 {
            let at = damage(mcs, sensitivity(mcs, 20));
            let below = damage(mcs, sensitivity(mcs, 20) - 5.0);
            assert!(at <= 0.1, "MCS {mcs}: {at} at the sensitivity");
            assert!(below > 0.9, "MCS {mcs}: {below} at 5 dB below the sensitivity");
        }
    }

    #[test]
    fn a_weaker_signal_is_never_damaged_less() {
        for mcs in 0..=11 {
            let rates: Vec<f64> = (-95..-40).map(|power| damage(mcs, f64::from(power))).collect();
            assert!(
                rates.is_sorted_by(|weak, strong| weak >= strong),
                "MCS {mcs}: {rates:?}"
            );
        }
    }

    #[test]
    fn the_mcs_falls_with_distance_and_width() {
        for width in [20, 40, 80, 160] {
            let by_distance: Vec<Option<u8>> = (1..300)
                .map(|metres| PATH.mcs(&radio(width), f64::from(metres)))
                .collect();
            assert!(
                by_distance.is_sorted_by(|near, far| near >= far),
                "{by_distance:?}"
            );
            assert_eq!(by_distance[0], Some(11));
            assert_eq!(by_distance.last(), Some(&None));
        }
        // 20 dBm - 46.7 dB - 30 log10(40) = -74.7 dBm: MCS 2 with 20 MHz (-77), MCS 0 with 80 MHz (-76).
        assert_eq!(PATH.mcs(&radio(20), 40.0), Some(2));
        assert_eq!(PATH.mcs(&radio(80), 40.0), Some(0));
    }
}
