//! Random trees of classes. Leaves are numbered from 1, so that packets can name them. The inner classes
//! follow. A class that is a leaf in one configuration may be an inner class in another, or may not exist
//! there.

use fairgate::classify::Classifier;
use fairgate::sharing::{cbq, hfsc, htb};
use std::time::Duration;

use fairgate_conformance::proptest::collection::vec;
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;

use super::{classification, rate};

/// The most inner classes.
const ABOVE: usize = 4;

/// Returns the parent of each class. The first `leaves` classes are leaves, and every other class has a
/// child.
fn parents(leaves: usize) -> impl Strategy<Value = Vec<Option<u32>>> {
    (vec(0..=ABOVE, leaves), vec(0..=ABOVE, ABOVE)).prop_map(move |(of_leaves, of_inner)| {
        // Choices are indices of inner classes, counted from 1. The parent of an inner class has a greater
        // index.
        let above = |inner: usize| of_inner[inner - 1].max(inner) % (ABOVE + 1);
        let above = |inner: usize| if above(inner) == inner { 0 } else { above(inner) };
        let mut used = [false; ABOVE + 1];
        for &leaf in &of_leaves {
            let mut at = leaf;
            while at != 0 && !std::mem::replace(&mut used[at], true) {
                at = above(at);
            }
        }
        let number = |inner: usize| {
            let position = (1..=inner).filter(|&other| used[other]).count();
            (inner != 0).then_some((leaves + position) as u32)
        };
        let of_leaves = of_leaves.iter().map(|&leaf| number(leaf));
        let of_inner = (1..=ABOVE)
            .filter(|&inner| used[inner])
            .map(|inner| number(above(inner)));
        of_leaves.chain(of_inner).collect()
    })
}

pub(crate) fn htb(leaves: usize) -> impl Strategy<Value = htb::Config> {
    let class = || {
        (
            // Rates are from less than a packet a second to more than the suite's driver uses.
            (4u32..34).prop_flat_map(|bits| 1u64 << bits..2 << bits),
            option::of(0u32..4),
            option::of(600u32..20_000),
            option::of(600u32..20_000),
            (0u8..8, option::of((1u64..100, 16u64..2000))),
            option::of(64u32..3000),
        )
    };
    (
        parents(leaves),
        vec(class(), leaves + ABOVE),
        classification(leaves),
        1u32..20,
        0u32..20,
    )
        .prop_map(|(parents, settings, (classifier, templates), r2q, direct_qlen)| {
            let mut classes: Vec<htb::ClassConfig> = Vec::new();
            for (minor, (parent, (bits, ceil, burst, cburst, (prio, for_a_time), quantum))) in
                (1..).zip(parents.into_iter().zip(settings))
            {
                // A burst must be less than a slow class sends in a minute.
                let holds = |burst: &u32| u64::from(*burst) < bits * 7;
                classes.push(htb::ClassConfig {
                    ceil: ceil.map(|doubled| rate(bits << doubled)),
                    burst: burst.filter(holds),
                    cburst: cburst.filter(holds),
                    prio,
                    quantum,
                    // A burst at twice the rate, until the average is a part of that.
                    burst_rate: for_a_time.map(|_| rate(2 * bits)),
                    burst_threshold: for_a_time.map(|(percent, _)| rate((2 * bits * percent / 100).max(1))),
                    burst_time: for_a_time.map(|(_, millis)| Duration::from_millis(millis)),
                    ..htb::ClassConfig::of_rate(minor, parent, rate(bits))
                });
            }
            // A parent has a higher number than its children, and no lower rate.
            for index in 0..classes.len() {
                let (below, parent) = (classes[index].clone(), classes[index].parent);
                if let Some(parent) = parent {
                    let above = &mut classes[parent as usize - 1];
                    above.rate = above.rate.max(below.rate);
                    above.ceil = above.ceil.map(|ceil| ceil.max(above.rate));
                }
            }
            htb::Config {
                classifier,
                classes,
                templates,
                r2q,
                direct_qlen,
            }
        })
}

/// A default class may be named before it exists.
pub(crate) fn htb_without_classes() -> impl Strategy<Value = htb::Config> {
    (0u16..2, option::of(1u32..5), 0u32..20).prop_map(|(handle, default, direct_qlen)| htb::Config {
        classifier: Classifier {
            handle,
            default,
            ..Classifier::default()
        },
        direct_qlen,
        ..htb::Config::default()
    })
}

pub(crate) fn hfsc(leaves: usize) -> impl Strategy<Value = hfsc::Config> {
    let curve = || {
        let slope = || (3u32..32).prop_flat_map(|bits| 1u64 << bits..2 << bits);
        (option::of(slope()), 0u64..100_000, slope()).prop_map(|(m1, micros, m2)| hfsc::ServiceCurve {
            m1: m1.unwrap_or(0),
            d: Duration::from_micros(micros),
            m2,
        })
    };
    let class = move || {
        (
            option::of(curve()),
            option::weighted(0.8, curve()),
            option::weighted(0.3, curve()),
        )
    };
    (
        parents(leaves),
        vec(class(), leaves + ABOVE),
        classification(leaves),
    )
        .prop_map(move |(parents, curves, (classifier, templates))| {
            let is_inner = |minor: u32| parents.contains(&Some(minor));
            let mut classes = Vec::new();
            for (minor, (&parent, (rt, ls, ul))) in (1..).zip(parents.iter().zip(curves)) {
                let mut class = hfsc::ClassConfig::of_rate(minor, parent, rate(1_000_000));
                let ls = ls.or(class.ls.filter(|_| is_inner(minor) || rt.is_none()));
                class.rt = rt;
                class.ul = ul.filter(|_| ls.is_some());
                class.ls = ls;
                classes.push(class);
            }
            hfsc::Config {
                classifier,
                classes,
                templates,
                rate: None,
                link_layer: fairgate::LinkLayer::NONE,
            }
        })
}

pub(crate) fn hfsc_without_classes() -> impl Strategy<Value = hfsc::Config> {
    (0u16..2, option::of(1u32..5)).prop_map(|(handle, default)| hfsc::Config {
        classifier: Classifier {
            handle,
            default,
            ..Classifier::default()
        },
        ..hfsc::Config::default()
    })
}

pub(crate) fn cbq(leaves: usize) -> impl Strategy<Value = cbq::Config> {
    let class = || {
        (
            (6u32..34).prop_flat_map(|bits| 1u64 << bits..2 << bits),
            0u8..8,
            any::<bool>(),
            option::of(3u16..40),
            option::of(1u16..4),
            option::of(6u32..34),
        )
    };
    (
        parents(leaves),
        vec(class(), leaves + ABOVE),
        classification(leaves),
        200u32..1514,
        prop::sample::select(vec![cbq::LinkSharing::Formal, cbq::LinkSharing::TopLevel]),
    )
        .prop_map(
            |(parents, settings, (classifier, templates), packet, link_sharing)| {
                let mut classes: Vec<cbq::ClassConfig> = Vec::new();
                for (minor, (parent, (bits, priority, borrow, maxburst, minburst, weight))) in
                    (1..).zip(parents.into_iter().zip(settings))
                {
                    classes.push(cbq::ClassConfig {
                        priority,
                        borrow,
                        maxburst,
                        minburst,
                        weight: weight.map(|log| rate(1 << log)),
                        ..cbq::ClassConfig::of_rate(minor, parent, rate(bits))
                    });
                }
                // A parent has a higher number than its children, and no lower rate.
                for index in 0..classes.len() {
                    let (below, parent) = (classes[index].rate, classes[index].parent);
                    if let Some(parent) = parent {
                        let above = &mut classes[parent as usize - 1].rate;
                        *above = below.max(*above);
                    }
                }
                let bandwidth = classes.iter().map(|class| class.rate).max();
                cbq::Config {
                    classifier,
                    classes,
                    templates,
                    packet,
                    link_sharing,
                    ..cbq::Config::of_bandwidth(bandwidth.expect("there are classes"))
                }
            },
        )
}
