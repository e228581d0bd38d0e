//! Active queue management over one queue.

use fairgate::Rate;
use fairgate::aqm::ared::{self, Ared};
use fairgate::aqm::codel::{self, Codel};
use fairgate::aqm::pie::{self, Pie};
use fairgate::aqm::red::{self, Measure, Red};

use super::{About, Children, Description, Family, Parameter, Placing};
use crate::value::{Field, Unit, choice_field};

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

choice_field!(Measure {
    "bytes" => Measure::Bytes,
    "packets" => Measure::Packets,
});

/// A positive number of 32 bits.
const POSITIVE: std::ops::RangeInclusive<u64> = 1..=u32::MAX as u64;

const fn limit_in_bytes<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new("limit", Unit::Bytes, POSITIVE, "Most bytes queued.", field)
}

const fn avpkt<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "Length of a usual packet.";
    Parameter::new("avpkt", Unit::Bytes, POSITIVE, doc, field)
}

const fn probability<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "probability",
        Unit::Probability,
        0..=1 << 32,
        "Probability of a mark where the average is at `max`.",
        field,
    )
}

const fn bandwidth<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "bandwidth",
        Unit::Rate,
        1..=u64::MAX,
        "The line's rate, by which idle time is counted in packets.",
        field,
    )
}

const fn harddrop<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "With `ecn`: whether to drop all packets above `max`, ECN-capable or not.";
    Parameter::word("harddrop", Unit::Flag, doc, field)
}

const fn nodrop<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "With `ecn`: whether to queue packets that can't be marked, instead of dropping them.";
    Parameter::word("nodrop", Unit::Flag, doc, field)
}

pub(super) static RED: Description<red::Config, red::Config> = Description {
    about: About {
        name: "red",
        family: Family::Aqm,
        summary: "Random early detection: marks or drops by chance, more often the longer the queue is on average",
        when: "To compare with what routers have done since 1993, or where a line's rate and traffic are known well.",
        children: Children::None,
    },
    parameters: &[
        limit_in_bytes(|red, _| &mut red.limit),
        Parameter::new(
            "limit_packets",
            Unit::Count("packets"),
            POSITIVE,
            "Most packets queued.",
            |red, _| &mut red.limit_packets,
        ),
        Parameter::new(
            "min",
            Unit::Bytes,
            POSITIVE,
            "Average from which on packets are marked; none for a third of `max`.",
            |red, _| &mut red.min,
        ),
        Parameter::new(
            "max",
            Unit::Bytes,
            POSITIVE,
            "Average from which on every packet is marked; none for thrice `min`, or a quarter of `limit`.",
            |red, _| &mut red.max,
        ),
        avpkt(|red, _| &mut red.avpkt),
        Parameter::new(
            "burst",
            Unit::Count("packets"),
            POSITIVE,
            "Packets that may come at once unmarked; none for (2 `min` + `max`) / 3 in packets of `avpkt`.",
            |red, _| &mut red.burst,
        ),
        probability(|red, _| &mut red.probability),
        bandwidth(|red, _| &mut red.bandwidth),
        ecn(|red, _| &mut red.response.ecn),
        harddrop(|red, _| &mut red.response.harddrop),
        nodrop(|red, _| &mut red.response.nodrop),
        Parameter::word(
            "adaptive",
            Unit::Flag,
            "Whether `probability` adapts itself every 0.5 s, to hold the average half way between `min` and `max`.",
            |red, _| &mut red.adaptive,
        ),
        Parameter::word(
            "gentle",
            Unit::Flag,
            "Whether above `max` the probability rises to 1 gradually, up to twice `max`.",
            |red, _| &mut red.gentle,
        ),
        Parameter::word(
            "measure",
            Unit::Choice(&["bytes", "packets"]),
            "What the average counts; packets count as `avpkt` bytes each.",
            |red, _| &mut red.measure,
        ),
        Parameter::word(
            "by_length",
            Unit::Flag,
            "Whether a packet is marked in proportion to its length.",
            |red, _| &mut red.by_length,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| red::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Red::node(config, parts.seed)?)),
};

pub(super) static ARED: Description<ared::Config, ared::Config> = Description {
    about: About {
        name: "ared",
        family: Family::Aqm,
        summary: "Adaptive RED: finds its thresholds from the line's rate, its probability from what the queue does",
        when: "Where RED is wanted without tuning it, on a line of known rate.",
        children: Children::None,
    },
    parameters: &[
        Parameter::required(
            "bandwidth",
            Unit::Rate,
            1..=u64::MAX,
            "The line's rate.",
            |ared, _| &mut ared.bandwidth,
        ),
        Parameter::new(
            "target",
            Unit::Time,
            1..=u64::MAX,
            "The delay that the average queue should stand for.",
            |ared, _| &mut ared.target,
        ),
        avpkt(|ared, _| &mut ared.avpkt),
        Parameter::new(
            "limit",
            Unit::Bytes,
            POSITIVE,
            "Most bytes queued; none for four times RED's `max`.",
            |ared, _| &mut ared.limit,
        ),
        ecn(|ared, _| &mut ared.response.ecn),
        harddrop(|ared, _| &mut ared.response.harddrop),
        nodrop(|ared, _| &mut ared.response.nodrop),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    // The rate is required, and so always overwritten.
    start: |_| ared::Config::of_rate(Rate::mbit(1)),
    config: Ok,
    build: |config, parts| Ok(Box::new(Ared::node(config, parts.seed)?)),
};

/// PIE's parameters, for every discipline that runs it: `$pie` is the path to them.
macro_rules! pie_parameters {
    (|$config:ident| $pie:expr; $($first:expr,)*) => {
        &[
            $($first,)*
            crate::registry::aqm::pie_time("target", "The delay to hold.", |$config, _| &mut $pie.target),
            crate::registry::aqm::pie_time("tupdate", "Time between updates of the probability.", |$config, _| {
                &mut $pie.tupdate
            }),
            crate::registry::aqm::pie_weight(
                "alpha",
                "Weight of the delay's distance from the target, in sixteenths.",
                |$config, _| &mut $pie.alpha,
            ),
            crate::registry::aqm::pie_weight(
                "beta",
                "Weight of the delay's change, in sixteenths.",
                |$config, _| &mut $pie.beta,
            ),
            crate::registry::aqm::ecn(|$config, _| &mut $pie.ecn),
            crate::registry::aqm::ecn_prob(|$config, _| &mut $pie.ecn_prob),
            crate::registry::aqm::bytemode(|$config, _| &mut $pie.bytemode),
            crate::registry::aqm::dq_rate_estimator(|$config, _| &mut $pie.dq_rate_estimator),
            crate::registry::aqm::pie_mtu(|$config, _| &mut $pie.mtu),
        ]
    };
}

pub(super) use pie_parameters;

pub(super) const fn pie_time<S>(name: &'static str, doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new(name, Unit::Time, 64..=60_000_000_000, doc, field)
}

pub(super) const fn pie_weight<S>(name: &'static str, doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new(name, Unit::Count("weight"), 0..=32, doc, field)
}

pub(super) const fn ecn_prob<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "ecn_prob",
        Unit::Probability,
        0..=1 << 32,
        "With `ecn`: the probability up to which packets are marked; above it they are dropped all the same.",
        field,
    )
}

pub(super) const fn bytemode<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "Whether a packet shorter than `mtu` is dropped in proportion to its length.";
    Parameter::word("bytemode", Unit::Flag, doc, field)
}

pub(super) const fn dq_rate_estimator<S>(field: Lens<S>) -> Parameter<S> {
    let doc =
        "Whether the delay is computed from the backlog and the rate of departures, instead of measured.";
    Parameter::word("dq_rate_estimator", Unit::Flag, doc, field)
}

pub(super) const fn pie_mtu<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "The longest packet: with less than two of them queued nothing is dropped.";
    Parameter::new("mtu", Unit::Bytes, POSITIVE, doc, field)
}

pub(super) static PIE: Description<pie::Config, pie::Config> = Description {
    about: About {
        name: "pie",
        family: Family::Aqm,
        summary: "Proportional integral controller (RFC 8033): drops on arrival, so often that the delay comes to a target",
        when: "On one queue whose delay must stay low, where a drop on arrival is wanted: cable modems (DOCSIS) do so.",
        children: Children::None,
    },
    parameters: pie_parameters![|pie| pie.pie;
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            POSITIVE,
            "Most packets queued.",
            |pie, _| &mut pie.limit,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| pie::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Pie::node(config, parts.seed)?)),
};
