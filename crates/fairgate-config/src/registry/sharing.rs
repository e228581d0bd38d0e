//! Link sharing: trees of classes.

use std::time::Duration;

use fairgate::Rate;
use fairgate::sharing::cbq::{self, Cbq};
use fairgate::sharing::hfsc::{self, Hfsc, ServiceCurve};
use fairgate::sharing::htb::{self, Htb};

use super::{About, Children, Description, Family, Parameter, Placing};
use crate::value::{Field, Smallest, Unit, Value, misfit};

/// The parameter of a class that names the class above it.
macro_rules! parent {
    ($config:ident) => {
        Parameter::new(
            super::PARENT,
            Unit::Count("class"),
            1..=0xffff,
            "The class above this one; none is a class at the top.",
            |settings: &mut $config::Config, class| &mut settings.classes[class].parent,
        )
    };
}

pub(super) static HTB: Description<htb::Config, htb::Config> = Description {
    about: About {
        name: "htb",
        family: Family::Sharing,
        summary: "Hierarchical token bucket: classes in a tree, each sure of a rate, borrowing from above up to a ceil",
        when: "To share an access line between users or kinds of traffic, each with a rate of its own and what is left.",
        children: Children::TreeOrNone,
    },
    parameters: &[
        Parameter::new(
            "r2q",
            Unit::Count("times"),
            1..=u32::MAX as u64,
            "A class's rate in bytes a second, divided by this, is its quantum where none is given.",
            |htb, _| &mut htb.r2q,
        ),
        Parameter::new(
            "direct_qlen",
            Unit::Count("packets"),
            0..=u32::MAX as u64,
            "Most packets queued of those that no class is for; they go first, and unshaped.",
            |htb, _| &mut htb.direct_qlen,
        ),
    ],
    class_parameters: &[
        parent!(htb),
        Parameter::required(
            "rate",
            Unit::Rate,
            1..=u64::MAX,
            "What the class is sure of; at most its parent's.",
            |htb, class| &mut htb.classes[class].rate,
        ),
        Parameter::new(
            "ceil",
            Unit::Rate,
            1..=u64::MAX,
            "What it never exceeds, with what it borrows; none is its rate.",
            |htb, class| &mut htb.classes[class].ceil,
        ),
        Parameter::new(
            "burst",
            Unit::Bytes,
            1..=u32::MAX as u64,
            "Bytes that it may send at once after an idle time; none is 1 ms at its rate, at least 1600b.",
            |htb, class| &mut htb.classes[class].burst,
        ),
        Parameter::new(
            "cburst",
            Unit::Bytes,
            1..=u32::MAX as u64,
            "Bytes that it may send at once in all; none is 1 ms at its ceil, at least 1600b.",
            |htb, class| &mut htb.classes[class].cburst,
        ),
        Parameter::new(
            "prio",
            Unit::Count("priority"),
            0..=7,
            "Who is served and may borrow first, 0 before 7; of a class that has none below it.",
            |htb, class| &mut htb.classes[class].prio,
        ),
        Parameter::new(
            "quantum",
            Unit::Bytes,
            64..=1 << 30,
            "Bytes that it may send in its turn; none is its rate by r2q, 1000b to 200000b.",
            |htb, class| &mut htb.classes[class].quantum,
        ),
    ],
    placing: Placing::Classes(|htb| &mut htb.classifier, |htb| &mut htb.templates),
    start: |minors| htb::Config {
        classes: minors
            .iter()
            // Required, and so always overwritten.
            .map(|&minor| htb::ClassConfig::of_rate(minor, None, Rate::mbit(1)))
            .collect(),
        ..htb::Config::default()
    },
    config: Ok,
    build: |config, parts| Ok(Box::new(Htb::node(config, parts.children)?)),
};

impl Field for ServiceCurve {
    fn read(&self) -> Value {
        Value::List(vec![self.m1, self.d.as_nanos() as u64, self.m2])
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::List(numbers) if numbers.len() == 3 => {
                *self = ServiceCurve {
                    m1: numbers[0],
                    d: Duration::from_nanos(numbers[1]),
                    m2: numbers[2],
                };
            }
            _ => misfit("ServiceCurve", value),
        }
    }
}

impl Smallest for ServiceCurve {
    const SMALLEST: ServiceCurve = ServiceCurve::linear(0);
}

pub(super) static HFSC: Description<hfsc::Config, hfsc::Config> = Description {
    about: About {
        name: "hfsc",
        family: Family::Sharing,
        summary: "Hierarchical fair service curves: guarantees of delay and rate apart, what is left shared in a tree",
        when: "Where some traffic needs little, but soon (voice at a low rate), and the rest is shared in a tree of classes.",
        children: Children::Tree,
    },
    parameters: &[Parameter::new(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of the line, to check that it suffices for all real-time curves together.",
        |hfsc, _| &mut hfsc.rate,
    )],
    class_parameters: &[
        parent!(hfsc),
        Parameter::word(
            "rt",
            Unit::Curve,
            "What the class gets by when, whatever the others do; of a class that has none below it.",
            |hfsc, class| &mut hfsc.classes[class].rt,
        ),
        Parameter::word(
            "ls",
            Unit::Curve,
            "In proportion to which it shares what is left with those beside it; none is not at all.",
            |hfsc, class| &mut hfsc.classes[class].ls,
        ),
        Parameter::word(
            "ul",
            Unit::Curve,
            "What it does not exceed by sharing.",
            |hfsc, class| &mut hfsc.classes[class].ul,
        ),
    ],
    placing: Placing::Classes(|hfsc| &mut hfsc.classifier, |hfsc| &mut hfsc.templates),
    start: |minors| hfsc::Config {
        classes: minors
            .iter()
            // Where nothing is said all share alike.
            .map(|&minor| hfsc::ClassConfig::of_rate(minor, None, Rate::mbit(1)))
            .collect(),
        ..hfsc::Config::default()
    },
    config: Ok,
    build: |config, parts| Ok(Box::new(Hfsc::node(config, parts.children)?)),
};

pub(super) static CBQ: Description<cbq::Config, cbq::Config> = Description {
    about: About {
        name: "cbq",
        family: Family::Sharing,
        summary: "Class-based queueing as in ALTQ: an estimator of idle time, borrowing from above, priorities",
        when: "To do what ALTQ did, and to compare; htb keeps rates more exactly, hfsc delays.",
        children: Children::Tree,
    },
    parameters: &[
        Parameter::required(
            "bandwidth",
            Unit::Rate,
            1..=u64::MAX,
            "The rate of the line, by which idle time is measured.",
            |cbq, _| &mut cbq.bandwidth,
        ),
        Parameter::new(
            "packet",
            Unit::Bytes,
            1..=1 << 20,
            "The length of an average packet, in which bursts are counted.",
            |cbq, _| &mut cbq.packet,
        ),
        Parameter::new(
            "max_packet",
            Unit::Bytes,
            1..=1 << 20,
            "The length of the longest packet.",
            |cbq, _| &mut cbq.max_packet,
        ),
    ],
    class_parameters: &[
        parent!(cbq),
        Parameter::required(
            "rate",
            Unit::Rate,
            1..=u64::MAX,
            "The class's part of the line; at most its parent's.",
            |cbq, class| &mut cbq.classes[class].rate,
        ),
        Parameter::new(
            "priority",
            Unit::Count("priority"),
            0..=7,
            "Who goes first, 7 before 0; of a class that has none below it.",
            |cbq, class| &mut cbq.classes[class].priority,
        ),
        Parameter::word(
            "borrow",
            Unit::Flag,
            "Whether it may use what its parent does not, as classes do by default; else it is suspended when it is over its rate.",
            |cbq, class| &mut cbq.classes[class].borrow,
        ),
        Parameter::new(
            "weight",
            Unit::Rate,
            1..=u64::MAX,
            "Its part of a round beside classes of the same priority; none is its rate.",
            |cbq, class| &mut cbq.classes[class].weight,
        ),
        Parameter::new(
            "maxburst",
            Unit::Count("packets"),
            1..=1000,
            "Packets that it may send in a row after an idle time; none is 16, or 4 of a slow class.",
            |cbq, class| &mut cbq.classes[class].maxburst,
        ),
        Parameter::new(
            "minburst",
            Unit::Count("packets"),
            1..=1000,
            "Packets that it may send in a row after it was suspended; none is 2.",
            |cbq, class| &mut cbq.classes[class].minburst,
        ),
    ],
    placing: Placing::Classes(|cbq| &mut cbq.classifier, |cbq| &mut cbq.templates),
    start: |minors| cbq::Config {
        classes: minors
            .iter()
            // Required, and so always overwritten; the bandwidth likewise.
            .map(|&minor| cbq::ClassConfig::of_rate(minor, None, Rate::mbit(1)))
            .collect(),
        ..cbq::Config::of_bandwidth(Rate::mbit(1))
    },
    config: Ok,
    build: |config, parts| Ok(Box::new(Cbq::node(config, parts.children)?)),
};
