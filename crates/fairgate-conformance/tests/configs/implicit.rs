//! Random parameters of the disciplines that differentiate implicitly.

use fairgate::implicit::{FlowBy, sqf};
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;

use super::drop_from;

/// Of lqf too.
pub(crate) fn sqf() -> impl Strategy<Value = sqf::Config> {
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
    ])
}
