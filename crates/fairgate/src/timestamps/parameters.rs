//! Parameters of all these schedulers: weights and longest packet.

use core::ops::RangeInclusive;

use super::{MAX_WEIGHT, Share};
use crate::error::ConfigError;
use crate::registry::{Parameter, Unit, check_ranges};
use crate::scheduler::{Entitlement, MAX_PACKET, classes, flows};

const WEIGHTS: RangeInclusive<u64> = 1..=MAX_WEIGHT as u64;
const PACKETS: RangeInclusive<u64> = 1..=MAX_PACKET as u64;

pub(super) const fn weights<T, U>() -> Parameter<flows::Settings<T, U>> {
    Parameter::new(
        "weights",
        Unit::Numbers(4096),
        WEIGHTS,
        "Weights of the first flows, which filters can select; all other flows have weight 1.",
        |flat, _| &mut flat.amounts,
    )
}

pub(super) const fn max_packet<U>() -> Parameter<flows::Settings<Share, U>> {
    Parameter::new(
        "max_packet",
        Unit::Bytes,
        PACKETS,
        "Length of the longest packet, for the delay guarantee; a longer packet raises it \
            when it comes.",
        |flat, _| &mut flat.config.share.max_packet,
    )
}

pub(super) const fn class_weight<T: Entitlement, U>() -> Parameter<classes::Config<T, U>> {
    Parameter::new(
        "weight",
        Unit::Count("weight"),
        WEIGHTS,
        "The weight of the class; its share is its part of the sum of weights.",
        |classes, class| classes.classes[class].share.amount_mut(),
    )
}

pub(super) const fn class_max_packet<U>() -> Parameter<classes::Config<Share, U>> {
    Parameter::new(
        "max_packet",
        Unit::Bytes,
        PACKETS,
        "Length of the class's longest packet, for the delay guarantee; a longer packet raises it when \
            it comes.",
        |classes, class| &mut classes.classes[class].share.max_packet,
    )
}

/// Checks the weight of one flow or class.
pub(super) fn check_weight(mut weight: u32) -> Result<(), ConfigError> {
    const WEIGHT: &[Parameter<u32>] = &[Parameter::new(
        "weight",
        Unit::Count("weight"),
        WEIGHTS,
        "",
        |weight, _| weight,
    )];
    check_ranges(WEIGHT, &mut weight)
}

/// Checks the longest packet of one flow or class.
pub(super) fn check_max_packet(mut length: u32) -> Result<(), ConfigError> {
    const MAX_PACKET: &[Parameter<u32>] = &[Parameter::new(
        "max_packet",
        Unit::Bytes,
        PACKETS,
        "",
        |length, _| length,
    )];
    check_ranges(MAX_PACKET, &mut length)
}
