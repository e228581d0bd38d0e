//! Random parameters of active queue management.

use std::time::Duration;

use fairgate::Probability;
use fairgate::aqm::ared;
use fairgate::aqm::pie;
use fairgate::aqm::red::{self, Measure, Response};
use fairgate::rounds::fq_pie;
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;

use super::{classifier, rate};

/// Thresholds so low that averages cross them, probabilities so high that something happens.
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

pub(crate) fn pie() -> impl Strategy<Value = pie::Config> {
    (1u32..60, pie_params()).prop_map(|(limit, pie)| pie::Config { limit, pie })
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
        1u32..3000,
    )
        .prop_map(
            |((target, tupdate), (alpha, beta), (ecn, ecn_prob), (bytemode, dq_rate_estimator), mtu)| {
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
                }
            },
        )
}
