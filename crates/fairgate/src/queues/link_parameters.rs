//! The parameters of a link layer, for the disciplines that count what a link adds to a packet.

use crate::link_layer::Cells;
use crate::registry::{Lens, Parameter, Smallest, Unit};

crate::words!(Cells { "uncut" => Cells::None, "atm" => Cells::Atm, "ptm" => Cells::Ptm });

impl Smallest for Cells {
    const SMALLEST: Cells = Cells::None;
}

pub(crate) const fn stripped<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "stripped",
        Unit::Bytes,
        0..=u8::MAX as u64,
        "The bytes of each packet that the link does not send; they are not paid for.",
        field,
    )
}

pub(crate) const fn overhead<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "overhead",
        Unit::Bytes,
        0..=u16::MAX as u64,
        "The bytes that the link adds to each packet; they are paid for.",
        field,
    )
}

pub(crate) const fn mpu<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "mpu",
        Unit::Bytes,
        0..=u16::MAX as u64,
        "The least bytes that are paid for a packet.",
        field,
    )
}

pub(crate) const fn cells<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::word(
        "cells",
        Unit::Choice(Cells::WORDS),
        "How the link encodes packets: ATM sends 53 bytes for 48, PTM 65 for 64.",
        field,
    )
}
