//! Random parameters of the disciplines of time-sensitive networks.

use std::time::Duration;

use fairgate::queues::{cbs, etf};
use fairgate_conformance::proptest::prelude::*;

use super::rate;

pub(crate) fn cbs(_classes: usize) -> impl Strategy<Value = cbs::Config> {
    (
        100_000u64..1_000_000_000,
        100_000u64..1_000_000_000,
        0u32..20_000,
        0u32..20_000,
    )
        .prop_map(|(idle, send, hicredit, locredit)| cbs::Config {
            idleslope: rate(idle),
            sendslope: rate(send),
            hicredit,
            locredit,
        })
}

pub(crate) fn etf() -> impl Strategy<Value = etf::Config> {
    (0u64..5_000_000, any::<bool>()).prop_map(|(delta, deadline_mode)| etf::Config {
        delta: Duration::from_nanos(delta),
        deadline_mode,
    })
}
