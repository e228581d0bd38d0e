//! Random parameters of active queue management.

use std::time::Duration;

use fairgate::Probability;
use fairgate::aqm::dualpi2::{self, Step};
use fairgate::aqm::red::{self, Measure, Response};
use fairgate::aqm::wred::{self, PRECEDENCES, Profile};
use fairgate::aqm::{ared, choke, gred, pie, rred, sfb};
use fairgate::rounds::{fq_pie, hhf};
use fairgate_conformance::proptest::array::uniform32;
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;

use super::{classifier, rate};

/// Thresholds are low enough for averages to cross them, and probabilities high enough to drop packets.
pub(crate) fn red() -> impl Strategy<Value = red::Config> {
    (
        (500u32..40_000, option::of(1u32..40)),
        (50u32..2_000, 2u32..4),
        (2u32..4, 0u32..20),
        (probability(), 10_000u64..10_000_000_000),
        response(),
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(
            |(
                (limit, limit_packets),
                (avpkt, times),
                (packets, burst),
                (probability, bits),
                response,
                (adaptive, gentle, in_packets, by_length),
            )| red::Config {
                limit,
                limit_packets,
                min: Some(packets * avpkt),
                max: Some(times * packets * avpkt),
                avpkt,
                burst: Some(packets + burst),
                probability,
                bandwidth: rate(bits),
                response,
                adaptive,
                gentle,
                measure: if in_packets {
                    Measure::Packets
                } else {
                    Measure::Bytes
                },
                by_length,
            },
        )
}

/// The child has the limits.
pub(crate) fn red_over(_classes: usize) -> impl Strategy<Value = red::Config> {
    red().prop_map(|config| red::Config {
        limit_packets: None,
        ..config
    })
}

pub(crate) fn ared() -> impl Strategy<Value = ared::Config> {
    (
        10_000u64..10_000_000_000,
        1u64..50_000_000,
        50u32..2_000,
        option::of(500u32..40_000),
        response(),
    )
        .prop_map(|(bits, target, avpkt, limit, response)| ared::Config {
            bandwidth: rate(bits),
            target: Duration::from_nanos(target),
            avpkt,
            limit,
            response,
        })
}

pub(crate) fn probability() -> impl Strategy<Value = Probability> {
    (0..=1u64 << 32).prop_map(Probability::from_parts)
}

pub(crate) fn response() -> impl Strategy<Value = Response> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(ecn, harddrop, nodrop)| Response {
        ecn,
        harddrop,
        nodrop: ecn && nodrop,
    })
}

/// Four virtual queues, of which each may not be set up.
pub(crate) fn gred() -> impl Strategy<Value = gred::Config> {
    let queue = || {
        (
            0u32..20_000,
            500u32..4_000,
            100u32..4_000,
            0u32..1_000_000,
            0u32..4,
        )
    };
    let queues = [queue(), queue(), queue(), queue()];
    let precedence = || uniform32(0u8..5);
    (
        queues,
        [precedence(), precedence()],
        (500u32..40_000, 0u32..4),
        any::<bool>(),
        response(),
    )
        .prop_map(|(queues, halves, (limit, default), grio, response)| {
            let list = |of: fn(&(u32, u32, u32, u32, u32)) -> u32| queues.iter().map(of).collect();
            gred::Config {
                limit,
                queues: 4,
                default_queue: default,
                grio,
                response: Response {
                    nodrop: false,
                    ..response
                },
                precedence: halves.concat().try_into().expect("twice 32 are 64"),
                limits: list(|queue| if queue.0 < 4_000 { 0 } else { queue.0 }),
                min: list(|queue| queue.1),
                max: list(|queue| queue.1 + queue.2),
                avpkt: vec![200; 4],
                burst: list(|queue| queue.1.div_ceil(200) + 1),
                probability: list(|queue| queue.3),
                bandwidth: Vec::new(),
                priority: list(|queue| queue.4),
            }
        })
}

/// Steps are large enough for a few packets to fill the penalty box, and times short enough for rehashes.
pub(crate) fn sfb() -> impl Strategy<Value = sfb::Config> {
    (
        (1u32..60, option::of(1u32..20), option::of(1u32..20)),
        (probability(), probability()),
        (0u32..2_000, 0u32..10),
        (0u64..100_000_000, 0u64..50_000_000),
        prop_oneof![2 => Just(None), 1 => classifier(12).prop_map(Some)],
    )
        .prop_map(
            |(
                (limit, max, target),
                (increment, decrement),
                (penalty_rate, penalty_burst),
                times,
                classifier,
            )| {
                sfb::Config {
                    limit,
                    max,
                    target,
                    increment,
                    decrement,
                    penalty_rate,
                    penalty_burst,
                    rehash: Duration::from_nanos(times.0),
                    warmup: Duration::from_nanos(times.1),
                    classifier: classifier.unwrap_or_default(),
                }
            },
        )
}

/// Flows become heavy after a few packets, and expire soon.
pub(crate) fn hhf() -> impl Strategy<Value = hhf::Config> {
    (
        (1u32..60, 256u32..3000, 0u32..12),
        (1u64..50_000_000, 1u64..50_000_000),
        (0u32..10_000, 1u32..5),
    )
        .prop_map(
            |((limit, quantum, hh_limit), (reset, evict), (admit_bytes, non_hh_weight))| hhf::Config {
                limit,
                quantum,
                hh_limit,
                reset_timeout: Duration::from_nanos(reset),
                admit_bytes,
                evict_timeout: Duration::from_nanos(evict),
                non_hh_weight,
            },
        )
}

pub(crate) fn pie() -> impl Strategy<Value = pie::Config> {
    let limits = (1u32..60, option::of(2000u32..60_000));
    (limits, any::<bool>(), pie_params()).prop_map(|((limit, limit_bytes), on_off, pie)| pie::Config {
        limit,
        limit_bytes,
        on_off,
        pie,
    })
}

pub(crate) fn fq_pie() -> impl Strategy<Value = fq_pie::Config> {
    (1u32..60, 1_000u64..100_000, 1u32..20, 256u32..3000, pie_params())
        .prop_flat_map(|numbers| (classifier(numbers.2 as usize), Just(numbers)))
        .prop_map(
            |(classifier, (limit, memory_limit, flows, quantum, pie))| fq_pie::Config {
                limit,
                memory_limit,
                flows,
                quantum,
                classifier,
                pie,
            },
        )
}

fn pie_params() -> impl Strategy<Value = pie::Params> {
    let below = |most: u64| (64u64..most).prop_map(Duration::from_nanos);
    (
        (below(20_000_000), below(50_000_000)),
        (0u32..=32, 0u32..=32),
        (any::<bool>(), probability()),
        (any::<bool>(), any::<bool>()),
        (
            1u32..3000,
            (0u64..200_000_000).prop_map(Duration::from_nanos),
            any::<bool>(),
            any::<bool>(),
        ),
    )
        .prop_map(
            |((target, tupdate), (alpha, beta), (ecn, ecn_prob), (bytemode, dq_rate_estimator), rules)| {
                let (mtu, max_burst, cap_drop, derandomize) = rules;
                pie::Params {
                    target,
                    tupdate,
                    alpha,
                    beta,
                    ecn,
                    ecn_prob,
                    bytemode,
                    dq_rate_estimator,
                    mtu,
                    max_burst,
                    cap_drop,
                    derandomize,
                }
            },
        )
}

pub(crate) fn choke() -> impl Strategy<Value = choke::Config> {
    (
        (8u32..60, 2u32..4, 2u32..3),
        (50u32..2_000, 0u32..20),
        (probability(), 10_000u64..10_000_000_000),
        response(),
    )
        .prop_map(
            |((limit, min, times), (avpkt, burst), (probability, bits), response)| choke::Config {
                limit,
                min: Some(min),
                max: Some(min * times),
                avpkt,
                burst: Some(min + burst),
                probability,
                bandwidth: rate(bits),
                response,
            },
        )
}

pub(crate) fn wred() -> impl Strategy<Value = wred::Config> {
    let profile = |lowest: u32| {
        (0u32..4_000, 1u32..4_000, probability()).prop_map(move |(more, above, probability)| Profile {
            min: lowest + more,
            max: lowest + more + above,
            probability,
        })
    };
    let precedence = || 0..PRECEDENCES as u8;
    (
        (50u32..1_000, 0u32..20),
        500u32..40_000,
        10_000u64..10_000_000_000,
    )
        .prop_flat_map(move |((avpkt, burst), limit, bits)| {
            (
                Just((avpkt, burst, limit, bits)),
                [profile(2 * avpkt), profile(2 * avpkt), profile(2 * avpkt)],
                [uniform32(precedence()), uniform32(precedence())],
                (response(), any::<bool>()),
            )
        })
        .prop_map(
            |((avpkt, burst, limit, bits), profiles, halves, (response, gentle))| {
                let lowest = profiles.iter().map(|profile| profile.min).min();
                wred::Config {
                    limit,
                    avpkt,
                    burst: lowest.map(|min| min.div_ceil(avpkt) + burst),
                    bandwidth: rate(bits),
                    response,
                    gentle,
                    profiles,
                    precedence: halves.concat().try_into().expect("twice 32 are 64"),
                }
            },
        )
}

pub(crate) fn rred() -> impl Strategy<Value = rred::Config> {
    (red(), 1u64..100_000_000, 0u32..8).prop_map(|(red, t_star, log2_bins)| rred::Config {
        t_star: Duration::from_nanos(t_star),
        bins: 1 << log2_bins,
        red,
    })
}

pub(crate) fn dualpi2() -> impl Strategy<Value = dualpi2::Config> {
    let below = |most: u64| (1u64..most).prop_map(Duration::from_nanos);
    let step = prop_oneof![
        (below(10_000_000), 0u64..10_000_000)
            .prop_map(|(delay, range)| (Step::Delay(delay), Duration::from_nanos(range))),
        (0u32..20).prop_map(|packets| (Step::Packets(packets), Duration::ZERO)),
    ];
    (
        (1u32..60, option::of(1_000u64..100_000)),
        (below(20_000_000), below(50_000_000)),
        (0u32..2_000, 0u32..20_000),
        (step, 0u32..5),
        (1u8..5, 0u8..=100, 1u32..3_000),
        (any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(
            |(
                (limit, memory_limit),
                (target, tupdate),
                (alpha, beta),
                ((step, step_range), min_qlen_step),
                (coupling_factor, classic_protection, mtu),
                (drop_overload, drop_early, any_ect),
            )| dualpi2::Config {
                limit,
                memory_limit,
                target,
                tupdate,
                alpha,
                beta,
                step,
                step_range,
                min_qlen_step,
                coupling_factor,
                drop_overload,
                drop_early,
                classic_protection,
                any_ect,
                mtu,
            },
        )
}
