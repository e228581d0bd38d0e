//! Random parameters of active queue management.

use std::time::Duration;

use fairgate::Probability;
use fairgate::aqm::ared;
use fairgate::aqm::red::{self, Measure, Response};
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;

use super::rate;

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
