//! Random trees of classes: leaves are numbered from 1, so that packets name them, the classes above them follow. A class that
//! is a leaf in one configuration is above others in another, or is not there at all.

use fairgate::classify::Classifier;
use fairgate::sharing::{cbq, hfsc, htb};
use std::time::Duration;

use fairgate_conformance::proptest::collection::vec;
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;

use super::{placing, rate};

/// Most classes above the leaves.
const ABOVE: usize = 4;

/// The parent of each class: the first `leaves` are leaves, and every other has one below it.
fn parents(leaves: usize) -> impl Strategy<Value = Vec<Option<u16>>> {
    (vec(0..=ABOVE, leaves), vec(0..=ABOVE, ABOVE)).prop_map(move |(of_leaves, of_inner)| {
        // Choices are places among the inner classes, counted from 1. An inner class is below a later one.
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
            let place = (1..=inner).filter(|&other| used[other]).count();
            (inner != 0).then_some((leaves + place) as u16)
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
            // From less than a packet a second to more than the suite's driver asks for.
            (4u32..34).prop_flat_map(|bits| 1u64 << bits..2 << bits),
            option::of(0u32..4),
            option::of(600u32..20_000),
            option::of(600u32..20_000),
            0u8..8,
            option::of(64u32..3000),
        )
    };
    (
        parents(leaves),
        vec(class(), leaves + ABOVE),
        placing(leaves),
        1u32..20,
        0u32..20,
    )
        .prop_map(|(parents, settings, (classifier, templates), r2q, direct_qlen)| {
            let mut classes: Vec<htb::ClassConfig> = Vec::new();
            for (minor, (parent, (bits, ceil, burst, cburst, prio, quantum))) in
                (1..).zip(parents.into_iter().zip(settings))
            {
                // A minute of a slow class is less than these bursts.
                let holds = |burst: &u32| u64::from(*burst) < bits * 7;
                classes.push(htb::ClassConfig {
                    ceil: ceil.map(|doubled| rate(bits << doubled)),
                    burst: burst.filter(holds),
                    cburst: cburst.filter(holds),
                    prio,
                    quantum,
                    ..htb::ClassConfig::of_rate(minor, parent, rate(bits))
                });
            }
            // A parent has a higher number. Going up, none is slower than what is below it.
            for place in 0..classes.len() {
                let (below, parent) = (classes[place].clone(), classes[place].parent);
                if let Some(parent) = parent {
                    let above = &mut classes[usize::from(parent) - 1];
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

/// A default may be named before there is a class.
pub(crate) fn htb_without_classes() -> impl Strategy<Value = htb::Config> {
    (0u16..2, option::of(1u16..5), 0u32..20).prop_map(|(handle, default, direct_qlen)| htb::Config {
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
    (parents(leaves), vec(class(), leaves + ABOVE), placing(leaves)).prop_map(
        move |(parents, curves, (classifier, templates))| {
            let is_inner = |minor: u16| parents.contains(&Some(minor));
            let promises = curves[..leaves].iter().any(|(rt, ..)| rt.is_some());
            let mut classes = Vec::new();
            for (minor, (&parent, (rt, ls, ul))) in (1..).zip(parents.iter().zip(curves)) {
                let mut class = hfsc::ClassConfig::of_rate(minor, parent, rate(1_000_000));
                let ls = ls.or(class.ls.filter(|_| is_inner(minor) || rt.is_none()));
                class.rt = rt.filter(|_| !is_inner(minor));
                // A limit must not be below what is promised: only those have one that are promised nothing.
                class.ul =
                    ul.filter(|_| ls.is_some() && class.rt.is_none() && !(is_inner(minor) && promises));
                class.ls = ls;
                classes.push(class);
            }
            hfsc::Config {
                classifier,
                classes,
                templates,
                rate: None,
            }
        },
    )
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
        placing(leaves),
        200u32..1514,
    )
        .prop_map(|(parents, settings, (classifier, templates), packet)| {
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
            // A parent has a higher number. Going up, none is slower than what is below it.
            for place in 0..classes.len() {
                let (below, parent) = (classes[place].rate, classes[place].parent);
                if let Some(parent) = parent {
                    let above = &mut classes[usize::from(parent) - 1].rate;
                    *above = below.max(*above);
                }
            }
            let bandwidth = classes.iter().map(|class| class.rate).max();
            cbq::Config {
                classifier,
                classes,
                templates,
                packet,
                ..cbq::Config::of_bandwidth(bandwidth.expect("there are classes"))
            }
        })
}
