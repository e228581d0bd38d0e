//! Random trees of classes for tests, as parameters of each discipline that holds one.

use alloc::boxed::Box;
use alloc::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::classify::Classifier;
use crate::discipline::Discipline;
use crate::rate::Rate;
use crate::sharing::tree::LEVELS;
use crate::sharing::{cbq, hfsc, htb};
use crate::testing::fifo;

/// Each class with its parent, by ascending number.
pub(super) type Shape = Vec<(u32, Option<u32>)>;

/// Trees of some of the classes 1 to 9. The parent of a class has a lower number.
pub(super) fn shapes() -> impl Strategy<Value = Shape> {
    vec((any::<bool>(), 0u32..9), 9).prop_map(|drawn| {
        let mut shape: Shape = vec![(1, None)];
        for (minor, (is_there, parent)) in (2..).zip(drawn) {
            let parent = Some(parent).filter(|parent| shape.iter().any(|(minor, _)| minor == parent));
            if is_there && path(&shape, parent.unwrap_or(0)).len() < LEVELS {
                shape.push((minor, parent));
            }
        }
        shape
    })
}

/// Returns a class and the classes above it.
pub(super) fn path(shape: &Shape, minor: u32) -> Vec<u32> {
    let parent = |minor: &u32| shape.iter().find(|class| class.0 == *minor)?.1;
    let classes = core::iter::successors(Some(minor), parent);
    classes.filter(|&minor| minor > 0).collect()
}

fn rate(shape: &Shape, minor: u32) -> Rate {
    Rate::from_bits_per_second(8_000_000 >> path(shape, minor).len()).unwrap()
}

fn by_name() -> Classifier {
    Classifier {
        handle: 1,
        ..Classifier::default()
    }
}

pub(super) fn of_htb(shape: &Shape) -> htb::Config {
    let class = |&(minor, parent): &(u32, Option<u32>)| htb::ClassConfig {
        ceil: Some(Rate::mbit(6)),
        ..htb::ClassConfig::of_rate(minor, parent, rate(shape, minor))
    };
    htb::Config {
        classifier: by_name(),
        classes: shape.iter().map(class).collect(),
        ..htb::Config::default()
    }
}

pub(super) fn of_cbq(shape: &Shape) -> cbq::Config {
    let class =
        |&(minor, parent): &(u32, Option<u32>)| cbq::ClassConfig::of_rate(minor, parent, rate(shape, minor));
    cbq::Config {
        classifier: by_name(),
        classes: shape.iter().map(class).collect(),
        ..cbq::Config::of_bandwidth(Rate::mbit(8))
    }
}

pub(super) fn of_hfsc(shape: &Shape) -> hfsc::Config {
    let class = |&(minor, parent): &(u32, Option<u32>)| hfsc::ClassConfig {
        ul: Some(hfsc::ServiceCurve::linear(6_000_000)),
        ..hfsc::ClassConfig::of_rate(minor, parent, rate(shape, minor))
    };
    hfsc::Config {
        classifier: by_name(),
        classes: shape.iter().map(class).collect(),
        ..hfsc::Config::default()
    }
}

pub(super) fn fifos(shape: &Shape) -> Vec<Box<dyn Discipline>> {
    let is_leaf = |minor: u32| shape.iter().all(|class| class.1 != Some(minor));
    let leaves = shape.iter().filter(|class| is_leaf(class.0));
    leaves.map(|_| fifo(1000)).collect()
}
