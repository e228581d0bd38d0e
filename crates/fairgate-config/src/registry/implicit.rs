//! Implicit service differentiation.

use fairgate::implicit::FlowBy;
use fairgate::implicit::admission::{self, Admission};
use fairgate::implicit::hsqf::{self, Hsqf};
use fairgate::implicit::lqf::Lqf;
use fairgate::implicit::pdrr::{self, Pdrr};
use fairgate::implicit::sqf::{Config, Sqf};
use fairgate::rounds::drr::{self, Drr};
use fairgate::scheduler::Flows;
use fairgate::{ConfigError, Discipline, Rate};

use super::description::bounding;
use super::queues::DROP_FROM;
use super::{About, Children, Description, Family, Lens, Longest, Parameter, Parts, Placing};
use crate::value::{Unit, choice_field};

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

const fn key<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::word("key", FLOW_BY, "What packets of one flow have in common.", field)
}

const fn limit<S>(most: u64, field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=most,
        "Most packets queued in all.",
        field,
    )
}

const fn drop_from<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::word("drop", DROP_FROM, doc, field)
}

/// A discipline without classes, whose settings are its own parameters.
const fn leaf<C: Default>(
    about: About,
    parameters: &'static [Parameter<C>],
    build: fn(C, Parts) -> Result<Box<dyn Discipline>, ConfigError>,
) -> Description<C, C> {
    Description {
        about,
        parameters,
        class_parameters: &[],
        placing: Placing::Nothing,
        start: |_| C::default(),
        config: Ok,
        build,
    }
}

/// Of sqf and lqf.
static PARAMETERS: &[Parameter<Config>] = &[
    limit(1 << 25, |sqf, _| &mut sqf.limit),
    bounding(
        |sqf, _| sqf.limit_bytes.map(Longest::Length),
        Parameter::new(
            "limit_bytes",
            Unit::Bytes,
            1..=(1 << 48) - (1 << 33),
            "Most bytes queued in all.",
            |sqf, _| &mut sqf.limit_bytes,
        ),
    ),
    drop_from(
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

pub(super) static SQF: Description<Config, Config> = leaf(
    About {
        name: "sqf",
        family: Family::Implicit,
        summary: "Shortest queue first: streams below the line's rate go first by themselves, bulk traffic gets the rest",
        when: "On one user's access line, inside a shaper, for calls and video beside downloads with nothing marked.",
        children: Children::None,
    },
    PARAMETERS,
    |config, parts| Ok(Box::new(Sqf::node(config, parts.seed)?)),
);

pub(super) static LQF: Description<Config, Config> = leaf(
    About {
        name: "lqf",
        family: Family::Implicit,
        summary: "Longest queue first: the exact opposite of sqf",
        when: "To compare with, and where no queue may run full, as in a switch; never for delay.",
        children: Children::None,
    },
    PARAMETERS,
    |config, parts| Ok(Box::new(Lqf::node(config, parts.seed)?)),
);

pub(super) static HSQF: Description<hsqf::Config, hsqf::Config> = leaf(
    About {
        name: "hsqf",
        family: Family::Implicit,
        summary: "Hierarchical sqf: fair queueing between users, shortest queue first between the flows of a user",
        when: "On a line that several users share: fair between them, and calls before downloads for each of them.",
        children: Children::None,
    },
    &[
        limit(1 << 24, |hsqf, _| &mut hsqf.limit),
        quantum(
            "Bytes that a user may send in a round: at least the longest packet for constant cost.",
            |hsqf, _| &mut hsqf.quantum,
        ),
        Parameter::new(
            "users",
            Unit::Count("users"),
            1..=1 << 14,
            "Most users with packets at a time.",
            |hsqf, _| &mut hsqf.users,
        ),
        Parameter::word(
            "user",
            FLOW_BY,
            "What packets of one user have in common.",
            |hsqf, _| &mut hsqf.user,
        ),
        key(|hsqf, _| &mut hsqf.key),
        drop_from(
            "Which packet of the longest flow of the user with most bytes pays: the newest or the oldest.",
            |hsqf, _| &mut hsqf.drop_from,
        ),
    ],
    |config, parts| Ok(Box::new(Hsqf::node(config, parts.seed)?)),
);

const fn quantum<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new("quantum", Unit::Bytes, 64..=1 << 30, doc, field)
}

const fn fair_rate<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "fair_rate",
        Unit::Rate,
        1..=u64::MAX,
        "New flows are kept out while a flow gets less than this; none for 1 % of the rate.",
        field,
    )
}

const fn idle_timeout<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "idle_timeout",
        Unit::Time,
        1_000_000..=3_600_000_000_000,
        "A flow is in progress, and let through, for so long after a packet.",
        field,
    )
}

const fn flows_in_progress<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "flows_in_progress",
        Unit::Count("flows"),
        1..=1 << 20,
        "Most flows in progress that are remembered.",
        field,
    )
}

/// pdrr as users write it: admission control is switched on, and its parameters stand beside the others.
pub(super) struct PdrrSettings {
    config: pdrr::Config,
    is_admission_on: bool,
    admission: pdrr::Admission,
}

impl PdrrSettings {
    fn config(self) -> Result<pdrr::Config, ConfigError> {
        let (given, default) = (&self.admission, pdrr::Admission::default());
        let of_admission = [
            ("fair_rate", given.fair_rate != default.fair_rate),
            ("priority_load", given.priority_load != default.priority_load),
            ("idle_timeout", given.idle_timeout != default.idle_timeout),
            (
                "flows_in_progress",
                given.flows_in_progress != default.flows_in_progress,
            ),
        ];
        let without_effect = of_admission.iter().find(|(_, is_given)| *is_given);
        if let (false, Some((parameter, _))) = (self.is_admission_on, without_effect) {
            return Err(ConfigError::out_of_range(
                parameter,
                "given",
                "left out unless admission is true",
                "leave it out, or write admission = true",
            ));
        }
        Ok(pdrr::Config {
            admission: self.is_admission_on.then_some(self.admission),
            ..self.config
        })
    }
}

pub(super) static PDRR: Description<PdrrSettings, pdrr::Config> = Description {
    about: About {
        name: "pdrr",
        family: Family::Implicit,
        summary: "Priority deficit round robin: fair shares, and flows below the fair rate go first",
        when: "On a link that many flows share, each a small part of it; with admission control also in overload.",
        children: Children::None,
    },
    parameters: &[
        limit(1 << 25, |pdrr, _| &mut pdrr.config.limit),
        Parameter::new(
            "afl",
            Unit::Count("flows"),
            1..=1 << 20,
            "Entries of the active flow list; packets of further flows have priority.",
            |pdrr, _| &mut pdrr.config.afl,
        ),
        quantum(
            "Bytes that a flow may send in a round, and as many with priority.",
            |pdrr, _| &mut pdrr.config.quantum,
        ),
        key(|pdrr, _| &mut pdrr.config.key),
        Parameter::new(
            "rate",
            Unit::Rate,
            1..=u64::MAX,
            "The rate of the link, to measure the fair rate and the priority load.",
            |pdrr, _| &mut pdrr.config.rate,
        ),
        Parameter::word(
            "admission",
            Unit::Flag,
            "Whether packets of new flows are discarded while the link is congested; needs `rate`.",
            |pdrr, _| &mut pdrr.is_admission_on,
        ),
        fair_rate(|pdrr, _| &mut pdrr.admission.fair_rate),
        Parameter::new(
            "priority_load",
            Unit::Count("percent"),
            1..=100,
            "New flows are kept out while more than this part of the rate is sent with priority.",
            |pdrr, _| &mut pdrr.admission.priority_load,
        ),
        idle_timeout(|pdrr, _| &mut pdrr.admission.idle_timeout),
        flows_in_progress(|pdrr, _| &mut pdrr.admission.flows_in_progress),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| PdrrSettings {
        config: pdrr::Config::default(),
        is_admission_on: false,
        admission: pdrr::Admission::default(),
    },
    config: PdrrSettings::config,
    build: |config, parts| Ok(Box::new(Pdrr::node(config, parts.seed)?)),
};

pub(super) static ADMISSION: Description<admission::Config, admission::Config> = Description {
    about: About {
        name: "admission",
        family: Family::Implicit,
        summary: "Admission control by flow in front of any fair discipline, drr if none is given",
        when: "Where so many flows come that a fair share would be too little for each: those that are there go on.",
        children: Children::Inner,
    },
    parameters: &[
        Parameter::required(
            "rate",
            Unit::Rate,
            1..=u64::MAX,
            "The rate of the link.",
            |control, _| &mut control.rate,
        ),
        fair_rate(|control, _| &mut control.fair_rate),
        quantum(
            "Bytes that the discipline inside sends of one flow at a time.",
            |control, _| &mut control.quantum,
        ),
        key(|control, _| &mut control.key),
        idle_timeout(|control, _| &mut control.idle_timeout),
        flows_in_progress(|control, _| &mut control.flows_in_progress),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    // The rate is required, and so always overwritten.
    start: |_| admission::Config::of_rate(Rate::mbit(1)),
    config: Ok,
    build: |config, mut parts| {
        let inner = match parts.children.pop() {
            Some(inner) => inner,
            None => Box::new(Flows::<Drr>::node(drr::Config::default(), parts.seed)?),
        };
        Ok(Box::new(Admission::node(config, parts.seed, inner)?))
    },
};
