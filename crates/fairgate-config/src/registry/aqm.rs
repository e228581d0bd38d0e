//! Active queue management over one queue.

use fairgate::aqm::codel::{self, Codel};

use super::{About, Children, Description, Family, Parameter, Placing};
use crate::value::{Field, Unit};

/// What the control law can tell apart: from a tick of 1024 ns to under 2^37 ns.
const LAW_TIMES: std::ops::RangeInclusive<u64> = 1024..=137_000_000_000;

/// CoDel's parameters, for every discipline that runs it: `$codel` is the path to them.
macro_rules! codel_parameters {
    (|$config:ident| $codel:expr; $($first:expr,)*) => {
        &[
            $($first,)*
            crate::registry::aqm::target(|$config, _| &mut $codel.target),
            crate::registry::aqm::interval(|$config, _| &mut $codel.interval),
            crate::registry::aqm::ecn(|$config, _| &mut $codel.ecn),
            crate::registry::aqm::ce_threshold(|$config, _| &mut $codel.ce_threshold),
            crate::registry::aqm::mtu(|$config, _| &mut $codel.mtu),
        ]
    };
}

pub(super) use codel_parameters;

type Lens<S> = fn(&mut S, usize) -> &mut dyn Field;

pub(super) const fn target<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "target",
        Unit::Time,
        LAW_TIMES,
        "Acceptable standing delay.",
        field,
    )
}

pub(super) const fn interval<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "interval",
        Unit::Time,
        LAW_TIMES,
        "How long the delay may stay above the target: about the longest round-trip time expected.",
        field,
    )
}

pub(super) const fn ecn<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "Whether to mark ECN-capable packets instead of dropping them.";
    Parameter::word("ecn", Unit::Flag, doc, field)
}

pub(super) const fn ce_threshold<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "ce_threshold",
        Unit::Time,
        0..=*LAW_TIMES.end(),
        "Marks every ECN-capable packet that waited longer than this, for DCTCP.",
        field,
    )
}

pub(super) const fn mtu<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "mtu",
        Unit::Bytes,
        0..=u32::MAX as u64,
        "Nothing is dropped while at most this much is queued behind it: the longest packet.",
        field,
    )
}

pub(super) static CODEL: Description<codel::Config, codel::Config> = Description {
    about: About {
        name: "codel",
        family: Family::Aqm,
        summary: "Controlled Delay (RFC 8289): drops by how long packets waited, not by how many there are",
        when: "On one queue whose delay must stay low, where flows need not be kept apart.",
        children: Children::None,
    },
    parameters: codel_parameters![|codel| codel.codel;
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets queued.",
            |codel, _| &mut codel.limit,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| codel::Config::default(),
    config: Ok,
    build: |config, _| Ok(Box::new(Codel::node(config)?)),
};
