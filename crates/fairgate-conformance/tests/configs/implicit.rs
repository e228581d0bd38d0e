//! Random parameters of the disciplines that differentiate implicitly.

use std::time::Duration;

use fairgate::Rate;
use fairgate::implicit::{FlowBy, admission, hsqf, pdrr, sqf};
use fairgate_conformance::proptest::collection::vec;
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;

use super::drop_from;

/// Returns configurations of sqf: half of them the paper's, without credit.
pub(crate) fn sqf() -> impl Strategy<Value = sqf::Config> {
    (lqf(), prop_oneof![Just(0), 1u32..100_000]).prop_map(|(config, credit)| sqf::Config { credit, ..config })
}

/// Returns configurations of lqf.
pub(crate) fn lqf() -> impl Strategy<Value = sqf::Config> {
    (
        1u32..60,
        option::of(1u64..50_000),
        drop_from(),
        flow_by(),
        option::of(1u32..20),
    )
        .prop_map(|(limit, limit_bytes, drop_from, key, flows)| sqf::Config {
            limit,
            limit_bytes,
            drop_from,
            key,
            flows,
            credit: 0,
        })
}

fn flow_by() -> impl Strategy<Value = FlowBy> {
    prop::sample::select(vec![
        FlowBy::FiveTuple,
        FlowBy::Source,
        FlowBy::Destination,
        FlowBy::SourcePort,
        FlowBy::DestinationPort,
        FlowBy::HostPair,
        FlowBy::Interface,
        FlowBy::FlowLabel,
    ])
}

pub(crate) fn hsqf() -> impl Strategy<Value = hsqf::Config> {
    (1u32..60, 64u32..3000, 1u32..8, flow_by(), flow_by(), drop_from()).prop_map(
        |(limit, quantum, users, user, key, drop_from)| hsqf::Config {
            limit,
            quantum,
            users,
            user,
            key,
            drop_from,
        },
    )
}

pub(crate) fn pdrr() -> impl Strategy<Value = pdrr::Config> {
    let admission = (option::of(rate()), 1u8..=100, idle_timeout(), 1u32..10).prop_map(
        |(fair_rate, priority_load, idle_timeout, flows_in_progress)| pdrr::Admission {
            fair_rate,
            priority_load,
            idle_timeout,
            flows_in_progress,
        },
    );
    let measured = option::of((rate(), measurement(), option::of(admission)));
    let quanta = (64u32..3000, vec(64u32..3000, 0..4), super::classifier(4));
    (1u32..60, 1u32..14, quanta, flow_by(), measured).prop_map(
        |(limit, afl, (quantum, quanta, classifier), key, measured)| {
            let (rate, measurement, admission) = match measured {
                Some((rate, measurement, admission)) => (Some(rate), measurement, admission),
                None => (None, pdrr::Measurement::default(), None),
            };
            pdrr::Config {
                limit,
                afl,
                quantum,
                quanta,
                classifier,
                key,
                rate,
                measurement,
                admission,
            }
        },
    )
}

fn measurement() -> impl Strategy<Value = pdrr::Measurement> {
    (1u64..300, 1u64..300, 0u8..=99).prop_map(|(fair_rate, priority_load, smoothing)| pdrr::Measurement {
        fair_rate_interval: Duration::from_millis(fair_rate),
        priority_load_interval: Duration::from_millis(priority_load),
        smoothing,
    })
}

pub(crate) fn admission(_classes: usize) -> impl Strategy<Value = admission::Config> {
    (
        rate(),
        option::of(rate()),
        measurement(),
        64u32..3000,
        flow_by(),
        idle_timeout(),
        1u32..10,
    )
        .prop_map(
            |(rate, fair_rate, measurement, quantum, key, idle_timeout, flows_in_progress)| {
                admission::Config {
                    rate,
                    fair_rate,
                    fair_rate_interval: measurement.fair_rate_interval,
                    smoothing: measurement.smoothing,
                    quantum,
                    key,
                    idle_timeout,
                    flows_in_progress,
                }
            },
        )
}

fn rate() -> impl Strategy<Value = Rate> {
    (10_000u64..1_000_000_000).prop_map(super::rate)
}

fn idle_timeout() -> impl Strategy<Value = Duration> {
    (1u64..20_000).prop_map(Duration::from_millis)
}
