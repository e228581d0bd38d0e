//! What users set of every scheduler, over hashed flows and over classes: the same parameters for all.
//!
//! An entry is written by [`flat!`] or [`classful!`]: the scheduler, what users should know, and the parameters that
//! only this scheduler has.

use std::ops::RangeInclusive;

use fairgate::ConfigError;
use fairgate::rounds::drr::Quantum;
use fairgate::scheduler::{MAX_PACKET, Scheduler, classes, flows};
use fairgate::timestamps::{MAX_WEIGHT, Share, Weight};

use super::Parameter;
use crate::value::Unit;

/// What a flow or class is entitled to, as users write it: a number.
pub(super) trait Entitlement: Clone {
    /// The weight, or the quantum.
    fn amount_mut(&mut self) -> &mut u32;
}

impl Entitlement for Quantum {
    fn amount_mut(&mut self) -> &mut u32 {
        &mut self.0
    }
}

impl Entitlement for Weight {
    fn amount_mut(&mut self) -> &mut u32 {
        &mut self.0
    }
}

impl Entitlement for Share {
    fn amount_mut(&mut self) -> &mut u32 {
        &mut self.weight
    }
}

/// A flat scheduler as users write it.
pub(super) struct FlatSettings<S: Scheduler> {
    pub(super) config: flows::ConfigOf<S>,
    /// Weights or quanta of the first flows.
    pub(super) amounts: Vec<u32>,
}

impl<S: Scheduler> FlatSettings<S> {
    pub(super) fn start() -> FlatSettings<S>
    where
        S::Share: Default,
        S::Settings: Default,
    {
        FlatSettings {
            config: flows::Config::default(),
            amounts: Vec::new(),
        }
    }
}

impl<S: Scheduler<Share: Entitlement>> FlatSettings<S> {
    pub(super) fn config(self) -> Result<flows::ConfigOf<S>, ConfigError> {
        let of_amount = |amount: &u32| {
            let mut share = self.config.share.clone();
            *share.amount_mut() = *amount;
            share
        };
        Ok(flows::Config {
            shares: self.amounts.iter().map(of_amount).collect(),
            ..self.config
        })
    }
}

/// All classes alike, without settings of their own.
pub(super) fn classes_start<S: Scheduler>(minors: &[u16]) -> classes::ConfigOf<S>
where
    S::Share: Default,
    S::Settings: Default,
{
    classes::Config {
        classifier: Default::default(),
        classes: minors
            .iter()
            .map(|&minor| classes::ClassConfig {
                minor,
                share: S::Share::default(),
            })
            .collect(),
        templates: Default::default(),
        settings: S::Settings::default(),
    }
}

const WEIGHTS: RangeInclusive<u64> = 1..=MAX_WEIGHT as u64;

pub(super) const fn flows<S: Scheduler>() -> Parameter<FlatSettings<S>> {
    Parameter::new(
        "flows",
        Unit::Count("flows"),
        1..=flows::MAX_FLOWS as u64,
        "Queues that flows are hashed into. More queues, fewer flows that share one by chance.",
        |flat, _| &mut flat.config.flows,
    )
}

pub(super) const fn limit<S: Scheduler>() -> Parameter<FlatSettings<S>> {
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=1 << 25,
        "Most packets queued in all; beyond, the longest flow pays.",
        |flat, _| &mut flat.config.limit,
    )
}

pub(super) const fn weights<S: Scheduler>() -> Parameter<FlatSettings<S>> {
    Parameter::new(
        "weights",
        Unit::Numbers(4096),
        WEIGHTS,
        "Weights of the first flows, for filters to place packets in; the others have weight 1.",
        |flat, _| &mut flat.amounts,
    )
}

pub(super) const fn max_packet<S: Scheduler<Share = Share>>() -> Parameter<FlatSettings<S>> {
    Parameter::new(
        "max_packet",
        Unit::Bytes,
        1..=MAX_PACKET as u64,
        "Length of the longest packet, for the guarantee of delay; where a longer one comes it counts from then on.",
        |flat, _| &mut flat.config.share.max_packet,
    )
}

pub(super) const fn class_weight<S: Scheduler<Share: Entitlement>>() -> Parameter<classes::ConfigOf<S>> {
    Parameter::new(
        "weight",
        Unit::Count("weight"),
        WEIGHTS,
        "The class's share is its part of the sum of weights.",
        |classes, class| classes.classes[class].share.amount_mut(),
    )
}

pub(super) const fn class_max_packet<S: Scheduler<Share = Share>>() -> Parameter<classes::ConfigOf<S>> {
    Parameter::new(
        "max_packet",
        Unit::Bytes,
        1..=MAX_PACKET as u64,
        "Length of the class's longest packet, for the guarantee of delay; a longer one counts from when it comes.",
        |classes, class| &mut classes.classes[class].share.max_packet,
    )
}

/// An entry for a scheduler over hashed flows.
macro_rules! flat {
    ($scheduler:ty, $family:expr, $summary:expr, $when:expr, [$($parameter:expr),* $(,)?]) => {
        crate::registry::Description {
            about: crate::registry::About {
                name: <$scheduler as fairgate::scheduler::Scheduler>::NAME,
                family: $family,
                summary: $summary,
                when: $when,
                children: crate::registry::Children::None,
            },
            parameters: &[
                crate::registry::schedulers::flows::<$scheduler>(),
                crate::registry::schedulers::limit::<$scheduler>(),
                $($parameter,)*
            ],
            class_parameters: &[],
            placing: crate::registry::Placing::Classifier(
                |flat| &mut flat.config.classifier,
                |flat| flat.config.flows,
            ),
            start: |_| crate::registry::schedulers::FlatSettings::start(),
            config: crate::registry::schedulers::FlatSettings::config,
            build: |config, parts| {
                Ok(Box::new(fairgate::scheduler::Flows::<$scheduler>::node(config, parts.seed)?))
            },
        }
    };
}

/// An entry for a scheduler over classes.
macro_rules! classful {
    (
        $scheduler:ty, $family:expr, $summary:expr, $when:expr,
        [$($parameter:expr),* $(,)?], [$($of_class:expr),* $(,)?]
    ) => {
        crate::registry::Description {
            about: crate::registry::About {
                name: <$scheduler as fairgate::scheduler::Scheduler>::NAME,
                family: $family,
                summary: $summary,
                when: $when,
                children: crate::registry::Children::Classes,
            },
            parameters: &[$($parameter,)*],
            class_parameters: &[$($of_class,)*],
            placing: crate::registry::Placing::Classes(
                |classes| &mut classes.classifier,
                |classes| &mut classes.templates,
            ),
            start: crate::registry::schedulers::classes_start::<$scheduler>,
            config: Ok,
            build: |config, parts| {
                Ok(Box::new(fairgate::scheduler::Classes::<$scheduler>::node(config, parts.children)?))
            },
        }
    };
}

pub(super) use {classful, flat};
