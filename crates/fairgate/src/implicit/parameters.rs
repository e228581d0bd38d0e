//! Parameters that several of these disciplines have.

use crate::flow::FlowBy;
use crate::queues::fifo::DropFrom;
use crate::registry::{Lens, Parameter, Unit};
use crate::rounds::drr::QUANTA;

pub(super) const fn key<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::word(
        "key",
        Unit::Choice(FlowBy::WORDS),
        "What the packets of a flow have in common.",
        field,
    )
}

pub(super) const fn limit<S>(most: u64, field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=most,
        "The largest number of queued packets.",
        field,
    )
}

pub(super) const fn drop_from<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::word("drop", Unit::Choice(DropFrom::WORDS), doc, field)
}

pub(super) const fn quantum<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new("quantum", Unit::Bytes, QUANTA, doc, field)
}

pub(super) const fn fair_rate<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "fair_rate",
        Unit::Rate,
        1..=u64::MAX,
        "New flows are rejected while the fair rate is below this; none means 1 % of the rate.",
        field,
    )
}

pub(super) const fn idle_timeout<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "idle_timeout",
        Unit::Time,
        1_000_000..=3_600_000_000_000,
        "How long a flow is in progress, and admitted, after a packet.",
        field,
    )
}

pub(super) const fn flows_in_progress<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "flows_in_progress",
        Unit::Count("flows"),
        1..=1 << 20,
        "The largest number of flows in progress.",
        field,
    )
}

/// The times between two samples of a measure, in nanoseconds.
const INTERVALS: core::ops::RangeInclusive<u64> = 1_000_000..=60_000_000_000;

pub(super) const fn fair_rate_interval<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "fair_rate_interval",
        Unit::Time,
        INTERVALS,
        "Time between two samples of the fair rate (tf of the paper).",
        field,
    )
}

pub(super) const fn priority_load_interval<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "priority_load_interval",
        Unit::Time,
        INTERVALS,
        "Time between two samples of the priority load (tp of the paper).",
        field,
    )
}

pub(super) const fn smoothing<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "smoothing",
        Unit::Count("percent"),
        0..=99,
        "The weight of what was measured before; that of a sample is the rest.",
        field,
    )
}
