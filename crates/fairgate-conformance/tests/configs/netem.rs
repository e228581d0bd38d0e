//! Random parameters of the emulators.

use std::time::Duration;

use fairgate::Probability;
use fairgate::queues::busy_link;
use fairgate::queues::netem::{Chance, Config, LinkRate, Loss, Reorder, Shape, SlotConfig, SlotGap};
use fairgate_conformance::proptest::collection::vec;
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;

use super::rate;

fn probability() -> impl Strategy<Value = Probability> + Clone {
    prop_oneof![
        3 => Just(Probability::ZERO),
        2 => (0u32..1000).prop_map(|thousandths| Probability::ratio(thousandths, 1000)),
        1 => Just(Probability::ONE),
    ]
}

fn chance() -> impl Strategy<Value = Chance> {
    (probability(), probability()).prop_map(|(probability, correlation)| Chance {
        probability,
        correlation,
    })
}

fn time() -> impl Strategy<Value = Duration> + Clone {
    prop_oneof![1 => Just(0), 3 => 0u64..50_000_000].prop_map(Duration::from_nanos)
}

/// A shape, and the numbers of a table.
fn shape() -> impl Strategy<Value = (Shape, Vec<i32>)> {
    prop_oneof![
        Just((Shape::Uniform, Vec::new())),
        Just((Shape::Normal, Vec::new())),
        Just((Shape::Pareto, Vec::new())),
        Just((Shape::ParetoNormal, Vec::new())),
        vec(-32_768i32..=32_767, 1..20).prop_map(|table| (Shape::Table, table)),
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    let half = || (0u32..=500).prop_map(|thousandths| Probability::ratio(thousandths, 1000));
    let random = (probability(), probability()).prop_map(|(probability, correlation)| Loss::Random {
        probability,
        correlation,
    });
    let states = (half(), half(), half(), probability(), half()).prop_map(|(p13, p31, p32, p23, p14)| {
        Loss::FourStates {
            p13,
            p31,
            p32,
            p23,
            p14,
        }
    });
    let bursts = (probability(), probability(), probability(), probability()).prop_map(
        |(p, r, loss_bad, loss_good)| Loss::GilbertElliott {
            p,
            r,
            loss_bad,
            loss_good,
        },
    );
    prop_oneof![2 => Just(Loss::None), 1 => random, 1 => states, 1 => bursts]
}

fn link_rate() -> impl Strategy<Value = LinkRate> {
    (
        100_000u64..1_000_000_000,
        -40i32..40,
        prop_oneof![Just(0u32), 1u32..200],
        0i32..20,
    )
        .prop_map(|(bits, packet_overhead, cell_size, cell_overhead)| LinkRate {
            rate: rate(bits),
            packet_overhead,
            cell_size,
            cell_overhead: if cell_size == 0 { 0 } else { cell_overhead },
        })
}

fn slots() -> impl Strategy<Value = SlotConfig> {
    let between = (time(), time()).prop_map(|(least, more)| SlotGap::Between(least, least + more));
    let drawn = (time(), time(), shape()).prop_map(|(mean, deviation, (shape, table))| SlotGap::Drawn {
        mean,
        deviation,
        shape,
        table,
    });
    (prop_oneof![between, drawn], 1u32..10, 1u32..20_000).prop_map(|(gap, packets, bytes)| SlotConfig {
        gap,
        packets,
        bytes,
    })
}

pub(crate) fn netem() -> impl Strategy<Value = Config> {
    let fates = (loss(), any::<bool>(), chance(), chance());
    let times = (time(), time(), probability(), shape());
    let order = option::of((0u32..5, chance()));
    (
        1u32..60,
        times,
        fates,
        order,
        option::of(link_rate()),
        option::of(slots()),
    )
        .prop_map(
            |(limit, times, (loss, ecn, duplicate, corrupt), order, rate, slots)| {
                let (delay, jitter, delay_correlation, (shape, table)) = times;
                let is_fixed = jitter == Duration::ZERO;
                let (shape, table) = if is_fixed {
                    (Shape::Uniform, Vec::new())
                } else {
                    (shape, table)
                };
                let reorder = order.filter(|_| delay > Duration::ZERO);
                Config {
                    limit,
                    delay,
                    jitter,
                    delay_correlation: if is_fixed {
                        Probability::ZERO
                    } else {
                        delay_correlation
                    },
                    shape,
                    table,
                    ecn: ecn && loss != Loss::None,
                    loss,
                    duplicate,
                    corrupt,
                    reorder: reorder.map_or_else(Reorder::default, |(gap, chance)| Reorder { gap, chance }),
                    rate,
                    slots,
                }
            },
        )
}

pub(crate) fn busy_link() -> impl Strategy<Value = busy_link::Config> {
    let lossless = vec(0u32..20_000, 0..20).prop_map(|extra| (extra, None));
    let lossy = vec(0u32..20_000, 1..20).prop_flat_map(|extra| {
        let entries = extra.len() as u32;
        (Just(extra), (0..entries).prop_map(Some))
    });
    (
        100_000u64..1_000_000_000,
        prop_oneof![lossless, lossy],
        prop_oneof![Just(0u32), 1u32..20_000],
    )
        .prop_map(|(bits, (extra, lost_from), burst)| busy_link::Config {
            rate: rate(bits),
            extra,
            lost_from,
            burst,
        })
}
