//! The throughput of a saturated channel beside Bianchi's formula.
//!
//! Source: G. Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE JSAC
//! 18(3), 2000: equations 7 and 9 (the probability that a station transmits in a slot, and that this
//! collides), 13 (throughput), 14 (durations with basic access), 15 (with RTS and CTS), and the parameters of
//! Table II.
//!
//! A-MPDUs generalise it: a success delivers all payloads of the PPDU, and the durations are those of the
//! PPDU and the block acknowledgement.

use fairgate::Time;

use crate::random::Stream;
use crate::wifi::category::{AccessCategory, CategoryParameters};
use crate::wifi::contention::Countdown;
use crate::wifi::medium::{AirDirection, Medium, Resolved, Settings};
use crate::wifi::phy::{Ppdu, Radio, Standard};
use crate::wifi::queue::AggregateLimits;
use crate::wifi::rate::{Errors, StationRate, Timing};

/// A saturated channel, for both the formula and the medium.
#[derive(Clone, Debug)]
struct Saturated {
    settings: Settings,
    rate: StationRate,
    /// Bytes of payload of a frame.
    payload: u32,
    /// Frames of a PPDU.
    frames: u32,
    /// Stages of the contention window: it is at most (CWmin + 1) 2^stages - 1.
    stages: u32,
}

/// The probability that a station transmits in a slot, if a transmission collides with probability `p`:
/// equation 7. Its form with a sum has no division by 0 at p = 1/2.
fn transmission_probability(windows: f64, stages: u32, p: f64) -> f64 {
    let sum: f64 = (0..stages)
        .map(|stage| libm::pow(2.0 * p, f64::from(stage)))
        .sum();
    2.0 / (1.0 + windows + p * windows * sum)
}

impl Saturated {
    /// Bits of payload per nanosecond by Bianchi's formula.
    fn formula(&self, stations: u32) -> f64 {
        let parameters = self.settings.parameters[AccessCategory::BestEffort.index()];
        let timing = self.settings.timing;
        let windows = f64::from(parameters.cw_min + 1);
        let others = f64::from(stations) - 1.0;
        let transmits = |p: f64| transmission_probability(windows, self.stages, p);
        // Equation 9. The right side grows with p and the left one falls, so bisection finds their meeting.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let p = (low + high) / 2.0;
            let collides = 1.0 - libm::pow(1.0 - transmits(p), others);
            if collides > p {
                low = p;
            } else {
                high = p;
            }
        }
        let tau = transmits(low);
        let somebody = 1.0 - libm::pow(1.0 - tau, others + 1.0);
        let alone = (others + 1.0) * tau * libm::pow(1.0 - tau, others) / somebody;
        let aifs = (timing.sifs + u64::from(parameters.aifsn) * timing.slot) as f64;
        let bytes = self.frames * timing.mpdu(self.payload);
        let data = (self.rate.data.duration(bytes) + timing.propagation) as f64;
        let answer = (timing.sifs + self.rate.response(self.frames) + timing.propagation) as f64;
        let (success, collision) = match self.settings.rts_from {
            None => (data + answer + aifs, data + timing.recovery as f64 + aifs),
            Some(_) => (
                self.rate.protection as f64 + data + answer + aifs,
                (self.rate.rts + timing.propagation + timing.recovery) as f64 + aifs,
            ),
        };
        let bits = f64::from(8 * self.frames * self.payload);
        let slot = (1.0 - somebody) * timing.slot as f64
            + somebody * alone * success
            + somebody * (1.0 - alone) * collision;
        somebody * alone * bits / slot
    }

    /// Bits of payload per nanosecond of the medium, over `successes` PPDUs.
    fn measured(&self, stations: u32, successes: u64) -> f64 {
        let mut random = Stream::new(1, "test", "saturation");
        let mut medium = Medium::new(self.settings.clone(), vec![self.rate; stations as usize]);
        let offer = |medium: &mut Medium<u32>, station: u32, now, random: &mut Stream| {
            let way = AirDirection {
                station,
                is_down: false,
            };
            medium.offer(
                way,
                AccessCategory::BestEffort,
                station,
                self.payload,
                now,
                random,
            );
        };
        for station in 0..stations {
            for _ in 0..2 * self.frames {
                offer(&mut medium, station, Time::ZERO, &mut random);
            }
        }
        let mut left: Vec<Resolved<u32>> = Vec::new();
        let (mut delivered, mut now) = (0, Time::ZERO);
        while delivered < successes * u64::from(self.frames) {
            now = medium.next().expect("all stations have frames");
            medium.advance(now, &mut random, &mut left);
            for frame in left.drain(..) {
                delivered += 1;
                offer(&mut medium, frame.id, now, &mut random);
            }
        }
        (delivered * u64::from(8 * self.payload)) as f64 / now.nanos() as f64
    }

    fn check(&self, tolerance: f64) {
        for stations in [1, 2, 3, 5, 10, 15, 20, 30, 40, 50] {
            let (expected, measured) = (self.formula(stations), self.measured(stations, 20_000));
            let error = measured / expected - 1.0;
            assert!(
                error.abs() < tolerance,
                "{stations} stations: {measured:.5} bit/ns, by the formula {expected:.5} ({error:+.3})"
            );
            println!(
                "{stations:2} stations: {measured:.6} bit/ns, by the formula {expected:.6} ({error:+.4})"
            );
        }
    }
}

/// Bianchi's Table II: 1 Mb/s, payload 8184 bits, MAC header 272 bits, PHY header 128 bits, acknowledgement
/// and CTS 112 bits, RTS 160 bits and PHY header, slot 50 µs, SIFS 28 µs, DIFS 128 µs, propagation 1 µs.
fn bianchi(cw_min: u32, stages: u32, rts: bool) -> Saturated {
    let ppdu = Ppdu {
        preamble: 128_000,
        symbol: 1_000,
        bits_per_symbol: 1,
        extra_bits: 0,
        multiple: 1_000,
    };
    let (sifs, propagation) = (28_000, 1_000);
    let (ack, cts, rts_frame) = (ppdu.duration(14), ppdu.duration(14), ppdu.duration(20));
    let rate = StationRate {
        mcs: 0,
        data: ppdu,
        protection: rts_frame + sifs + cts + sifs + 2 * propagation,
        rts: rts_frame,
        ack,
        block_ack: ack,
        errors: Errors::NONE,
    };
    let parameters = CategoryParameters {
        cw_min,
        cw_max: ((cw_min + 1) << stages) - 1,
        ..CategoryParameters::DCF
    };
    let settings = Settings {
        timing: Timing {
            slot: 50_000,
            sifs,
            propagation,
            // His stations continue DIFS after a collision.
            recovery: 0,
            header: 34,
            alignment: 1,
        },
        limits: AggregateLimits {
            frames: 1,
            bytes: u32::MAX,
            duration: u64::MAX,
        },
        window: 1,
        parameters: [parameters; 4],
        countdown: Countdown::AfterSlot,
        // His stations never give up.
        retries: None,
        rts_from: rts.then_some(0),
        queue_limit: u32::MAX,
    };
    Saturated {
        settings,
        rate,
        payload: 1023,
        frames: 1,
        stages,
    }
}

/// A cell of 802.11ac with the parameters of EDCA's best effort, but one PPDU for each opportunity.
fn aggregated(frames: u32) -> Saturated {
    let radio = Radio {
        standard: Standard::Ac,
        width: 80,
        streams: 1,
        guard_interval: 800,
    };
    let parameters = CategoryParameters {
        txop: 0,
        ..CategoryParameters::EDCA[AccessCategory::BestEffort.index()]
    };
    let settings = Settings {
        timing: Timing::ofdm(),
        limits: AggregateLimits {
            frames,
            bytes: u32::MAX,
            duration: 5_484_000,
        },
        window: 64,
        parameters: [parameters; 4],
        countdown: Countdown::AtBoundary,
        retries: None,
        rts_from: None,
        queue_limit: u32::MAX,
    };
    Saturated {
        settings,
        rate: StationRate::new(&radio, 9, Errors::NONE).expect("the combination exists"),
        payload: 1500,
        frames,
        stages: 6,
    }
}

/// Equation 7 against the stationary distribution of the chain of Figure 4, which is found by iteration.
#[test]
fn the_formula_solves_the_markov_chain() {
    let (window, stages) = (8usize, 3usize);
    for collides in [0.0, 0.2, 0.5, 0.7] {
        let windows: Vec<usize> = (0..=stages).map(|stage| window << stage).collect();
        let mut shares: Vec<Vec<f64>> = windows.iter().map(|&window| vec![1.0; window]).collect();
        for _ in 0..20_000 {
            let mut next: Vec<Vec<f64>> = windows.iter().map(|&window| vec![0.0; window]).collect();
            for (stage, counters) in shares.iter().enumerate() {
                for (counter, share) in counters.iter().enumerate() {
                    if counter > 0 {
                        next[stage][counter - 1] += share;
                        continue;
                    }
                    let failed = (stage + 1).min(stages);
                    for (to, part) in [(0, 1.0 - collides), (failed, collides)] {
                        let width = windows[to];
                        next[to]
                            .iter_mut()
                            .for_each(|place| *place += share * part / width as f64);
                    }
                }
            }
            // The mean of two steps has the same fixed point, and does not oscillate.
            for (old, new) in shares.iter_mut().flatten().zip(next.into_iter().flatten()) {
                *old = (*old + new) / 2.0;
            }
        }
        let all: f64 = shares.iter().flatten().sum();
        let transmitting: f64 = shares.iter().map(|counters| counters[0]).sum();
        let expected = transmission_probability(window as f64, stages as u32, collides);
        assert!(
            (transmitting / all - expected).abs() < 1e-6,
            "{collides}: {} {expected}",
            transmitting / all
        );
    }
}

/// One station never collides, and waits (W - 1) / 2 slots on average.
#[test]
fn the_formula_is_exact_for_one_station() {
    let alone = bianchi(31, 5, false);
    let success = 8_584.0 + 28.0 + 1.0 + 240.0 + 128.0 + 1.0;
    let expected = 8_184.0 / (success + 15.5 * 50.0) / 1000.0;
    assert!((alone.formula(1) / expected - 1.0).abs() < 1e-9);
}

#[test]
fn basic_access_has_the_throughput_of_bianchis_formula() {
    for (cw_min, stages) in [(31, 3), (31, 5), (127, 3)] {
        bianchi(cw_min, stages, false).check(0.02);
    }
}

#[test]
fn protected_access_has_the_throughput_of_bianchis_formula() {
    bianchi(31, 5, true).check(0.02);
}

#[test]
fn aggregates_have_the_throughput_of_the_generalised_formula() {
    for frames in [1, 8, 64] {
        aggregated(frames).check(0.02);
    }
}
