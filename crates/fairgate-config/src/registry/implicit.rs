//! Implicit service differentiation.

use fairgate::implicit::FlowBy;
use fairgate::implicit::lqf::Lqf;
use fairgate::implicit::sqf::{Config, Sqf};

use super::queues::DROP_FROM;
use super::{About, Children, Description, Family, Parameter, Placing};
use crate::value::{Field, Unit, choice_field};

choice_field!(FlowBy {
    "five-tuple" => FlowBy::FiveTuple,
    "source" => FlowBy::Source,
    "destination" => FlowBy::Destination,
    "source-port" => FlowBy::SourcePort,
    "destination-port" => FlowBy::DestinationPort,
    "host-pair" => FlowBy::HostPair,
});

const FLOW_BY: Unit = Unit::Choice(&[
    "five-tuple",
    "source",
    "destination",
    "source-port",
    "destination-port",
    "host-pair",
]);

type Lens<S> = fn(&mut S, usize) -> &mut dyn Field;

const fn key<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::word("key", FLOW_BY, "What packets of one flow have in common.", field)
}

/// Of sqf and lqf.
static PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=1 << 25,
        "Most packets queued in all.",
        |sqf, _| &mut sqf.limit,
    ),
    Parameter::new(
        "limit_bytes",
        Unit::Bytes,
        1..=(1 << 48) - (1 << 33),
        "Most bytes queued in all.",
        |sqf, _| &mut sqf.limit_bytes,
    ),
    Parameter::word(
        "drop",
        DROP_FROM,
        "Which packet of the longest flow pays: the newest or the oldest.",
        |sqf, _| &mut sqf.drop_from,
    ),
    key(|sqf, _| &mut sqf.key),
    Parameter::new(
        "flows",
        Unit::Count("flows"),
        1..=1 << 20,
        "Most flows with packets at a time; none for as many as there can be packets.",
        |sqf, _| &mut sqf.flows,
    ),
];

pub(super) static SQF: Description<Config, Config> = Description {
    about: About {
        name: "sqf",
        family: Family::Implicit,
        summary: "Shortest queue first: streams below the line's rate go first by themselves, bulk traffic gets the rest",
        when: "On one user's access line, inside a shaper, for calls and video beside downloads with nothing marked.",
        children: Children::None,
    },
    parameters: PARAMETERS,
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Sqf::node(config, parts.seed)?)),
};

pub(super) static LQF: Description<Config, Config> = Description {
    about: About {
        name: "lqf",
        family: Family::Implicit,
        summary: "Longest queue first: the exact opposite of sqf",
        when: "To compare with, and where no queue may run full, as in a switch; never for delay.",
        children: Children::None,
    },
    parameters: PARAMETERS,
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Lqf::node(config, parts.seed)?)),
};
