//! Active queue management over one queue.

use std::time::Duration;

use fairgate::aqm::ared;
use fairgate::aqm::choke::{self, Choke};
use fairgate::aqm::codel::{self, Codel};
use fairgate::aqm::dualpi2::{self, DualPi2, Step};
use fairgate::aqm::pie::{self, Pie};
use fairgate::aqm::red::{self, Measure};
use fairgate::aqm::rred::{self, Rred};
use fairgate::aqm::wred::{self, Wred};
use fairgate::{ConfigError, Discipline, Rate};

use super::description::bounding;
use super::{About, Children, Description, Family, Lens, Longest, Parameter, Parts, Placing};
use crate::value::{Unit, choice_field};

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

/// RED's parameters, for red and for what runs RED inside: `$red` is the path to them.
macro_rules! red_parameters {
    (|$config:ident| $red:expr; $($first:expr,)*) => {
        &[
            $($first,)*
            bounding(|$config, has_inner| (!has_inner).then(|| Longest::Length($red.limit.into())), limit_in_bytes(|$config, _| &mut $red.limit)),
            Parameter::new(
                "limit_packets",
                Unit::Count("packets"),
                POSITIVE,
                "Most packets queued; not with an inner discipline.",
                |$config, _| &mut $red.limit_packets,
            ),
            Parameter::new(
                "min",
                Unit::Bytes,
                POSITIVE,
                "Average from which on packets are marked; none for a third of `max`.",
                |$config, _| &mut $red.min,
            ),
            Parameter::new(
                "max",
                Unit::Bytes,
                POSITIVE,
                "Average from which on every packet is marked; none for thrice `min`, or a quarter of `limit`.",
                |$config, _| &mut $red.max,
            ),
            avpkt(|$config, _| &mut $red.avpkt),
            Parameter::new(
                "burst",
                Unit::Count("packets"),
                POSITIVE,
                "Packets that may come at once unmarked; none for (2 `min` + `max`) / 3 in packets of `avpkt`.",
                |$config, _| &mut $red.burst,
            ),
            probability(|$config, _| &mut $red.probability),
            bandwidth(|$config, _| &mut $red.bandwidth),
            ecn(|$config, _| &mut $red.response.ecn),
            harddrop(|$config, _| &mut $red.response.harddrop),
            nodrop(|$config, _| &mut $red.response.nodrop),
            Parameter::word(
                "adaptive",
                Unit::Flag,
                "Whether `probability` adapts itself every 0.5 s, to hold the average half way between `min` and `max`.",
                |$config, _| &mut $red.adaptive,
            ),
            Parameter::word(
                "gentle",
                Unit::Flag,
                "Whether above `max` the probability rises to 1 gradually, up to twice `max`.",
                |$config, _| &mut $red.gentle,
            ),
            Parameter::word(
                "measure",
                Unit::Choice(&["bytes", "packets"]),
                "What the average counts; packets count as `avpkt` bytes each.",
                |$config, _| &mut $red.measure,
            ),
            Parameter::word(
                "by_length",
                Unit::Flag,
                "Whether a packet is marked in proportion to its length.",
                |$config, _| &mut $red.by_length,
            ),
        ]
    };
}

/// RED over a discipline inside, or over a fifo.
fn red_over<P: red::Parameters>(parameters: P, mut parts: Parts) -> Result<Box<dyn Discipline>, ConfigError> {
    Ok(match parts.children.pop() {
        Some(inner) => Box::new(red::Queue::over(parameters, parts.seed, inner)?),
        None => Box::new(red::Queue::node(parameters, parts.seed)?),
    })
}

pub(super) static RED: Description<red::Config, red::Config> = Description {
    about: About {
        name: "red",
        family: Family::Aqm,
        summary: "Random early detection: marks or drops by chance, more often the longer the queue is on average",
        when: "To compare with what routers have done since 1993, or where a line's rate and traffic are known well.",
        children: Children::InnerOrQueue,
    },
    parameters: red_parameters![|red| red;],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| red::Config::default(),
    config: Ok,
    build: red_over,
};

pub(super) static ARED: Description<ared::Config, ared::Config> = Description {
    about: About {
        name: "ared",
        family: Family::Aqm,
        summary: "Adaptive RED: finds its thresholds from the line's rate, its probability from what the queue does",
        when: "Where RED is wanted without tuning it, on a line of known rate.",
        children: Children::InnerOrQueue,
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
        bounding(
            |ared, has_inner| {
                let bytes = ared.bytes().ok().filter(|_| !has_inner);
                bytes.map(|bytes| Longest::Length(bytes.into()))
            },
            Parameter::new(
                "limit",
                Unit::Bytes,
                POSITIVE,
                "Most bytes queued; none for four times RED's `max`.",
                |ared, _| &mut ared.limit,
            ),
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
    build: red_over,
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

pub(super) static CHOKE: Description<choke::Config, choke::Config> = Description {
    about: About {
        name: "choke",
        family: Family::Aqm,
        summary: "RED that compares an arriving packet with a random queued one and drops both if they are of one flow",
        when: "To hold flows down that do not yield, with no state for any flow; fair queueing does it better.",
        children: Children::None,
    },
    parameters: &[
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            1..=131_071,
            "Most packets queued.",
            |choke, _| &mut choke.limit,
        ),
        Parameter::new(
            "min",
            Unit::Count("packets"),
            POSITIVE,
            "Average above which packets are compared and marked; none for a third of `max`.",
            |choke, _| &mut choke.min,
        ),
        Parameter::new(
            "max",
            Unit::Count("packets"),
            POSITIVE,
            "Average above which every packet is marked; none for a quarter of `limit`.",
            |choke, _| &mut choke.max,
        ),
        avpkt(|choke, _| &mut choke.avpkt),
        Parameter::new(
            "burst",
            Unit::Count("packets"),
            POSITIVE,
            "Packets that may come at once unmarked; none for (2 `min` + `max`) / 3.",
            |choke, _| &mut choke.burst,
        ),
        probability(|choke, _| &mut choke.probability),
        bandwidth(|choke, _| &mut choke.bandwidth),
        ecn(|choke, _| &mut choke.response.ecn),
        harddrop(|choke, _| &mut choke.response.harddrop),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| choke::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Choke::node(config, parts.seed)?)),
};

/// A threshold of one of wred's curves.
const fn threshold(
    name: &'static str,
    doc: &'static str,
    field: Lens<wred::Config>,
) -> Parameter<wred::Config> {
    Parameter::new(name, Unit::Bytes, POSITIVE, doc, field)
}

/// The probability at the end of one of wred's curves.
const fn at_max(name: &'static str, doc: &'static str, field: Lens<wred::Config>) -> Parameter<wred::Config> {
    Parameter::new(name, Unit::Probability, 0..=1 << 32, doc, field)
}

pub(super) static WRED: Description<wred::Config, wred::Config> = Description {
    about: About {
        name: "wred",
        family: Family::Aqm,
        summary: "RED with a curve for each drop precedence: packets marked as out of profile are dropped first",
        when: "Behind a policer or a network that marks drop precedences by DSCP (assured forwarding, RFC 2597).",
        children: Children::None,
    },
    parameters: &[
        bounding(
            |wred, _| Some(Longest::Length(wred.limit.into())),
            limit_in_bytes(|wred, _| &mut wred.limit),
        ),
        threshold(
            "min_1",
            "Average from which on packets of precedence 0 are marked.",
            |wred, _| &mut wred.profiles[0].min,
        ),
        threshold("max_1", "Average from which on all of them are.", |wred, _| {
            &mut wred.profiles[0].max
        }),
        at_max("probability_1", "Probability of a mark at `max_1`.", |wred, _| {
            &mut wred.profiles[0].probability
        }),
        threshold("min_2", "The same for precedence 1.", |wred, _| {
            &mut wred.profiles[1].min
        }),
        threshold("max_2", "The same for precedence 1.", |wred, _| {
            &mut wred.profiles[1].max
        }),
        at_max("probability_2", "Probability of a mark at `max_2`.", |wred, _| {
            &mut wred.profiles[1].probability
        }),
        threshold("min_3", "The same for precedence 2.", |wred, _| {
            &mut wred.profiles[2].min
        }),
        threshold("max_3", "The same for precedence 2.", |wred, _| {
            &mut wred.profiles[2].max
        }),
        at_max("probability_3", "Probability of a mark at `max_3`.", |wred, _| {
            &mut wred.profiles[2].probability
        }),
        Parameter::new(
            "precedence",
            Unit::List(64),
            0..=2,
            "The drop precedence of each DSCP; by default that of assured forwarding, 0 for all else.",
            |wred, _| &mut wred.precedence,
        ),
        avpkt(|wred, _| &mut wred.avpkt),
        Parameter::new(
            "burst",
            Unit::Count("packets"),
            POSITIVE,
            "Packets that may come at once unmarked; none for (2 min + max) / 3 of the lowest curve.",
            |wred, _| &mut wred.burst,
        ),
        bandwidth(|wred, _| &mut wred.bandwidth),
        ecn(|wred, _| &mut wred.response.ecn),
        harddrop(|wred, _| &mut wred.response.harddrop),
        nodrop(|wred, _| &mut wred.response.nodrop),
        Parameter::word(
            "gentle",
            Unit::Flag,
            "Whether above a curve's max the probability rises to 1 gradually, up to twice that.",
            |wred, _| &mut wred.gentle,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| wred::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Wred::node(config, parts.seed)?)),
};

pub(super) static RRED: Description<rred::Config, rred::Config> = Description {
    about: About {
        name: "rred",
        family: Family::Aqm,
        summary: "Robust RED: RED behind a filter for flows that go on sending right after a drop",
        when: "Against low-rate denial of service, bursts at the rhythm of TCP's time-outs.",
        children: Children::None,
    },
    parameters: red_parameters![|rred| rred.red;
        Parameter::new(
            "t_star",
            Unit::Time,
            1..=60_000_000_000,
            "How soon after a drop a packet is suspected.",
            |rred, _| &mut rred.t_star,
        ),
        Parameter::new(
            "bins",
            Unit::Count("bins"),
            1..=65_536,
            "Bins in each of three levels that flows are hashed into: a power of two.",
            |rred, _| &mut rred.bins,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| rred::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Rred::node(config, parts.seed)?)),
};

/// dualpi2 as users write it: the step as a time or in packets.
pub(super) struct DualPi2Settings {
    config: dualpi2::Config,
    step_thresh: Option<Duration>,
    step_packets: Option<u32>,
}

impl DualPi2Settings {
    fn config(self) -> Result<dualpi2::Config, ConfigError> {
        let step = match (self.step_thresh, self.step_packets) {
            (Some(_), Some(packets)) => {
                return Err(ConfigError::out_of_range(
                    "step_packets",
                    packets,
                    "left out beside `step_thresh`",
                    "give the step as a time or in packets, not as both",
                ));
            }
            (Some(delay), None) => Step::Delay(delay),
            (None, Some(packets)) => Step::Packets(packets),
            (None, None) => self.config.step,
        };
        Ok(dualpi2::Config { step, ..self.config })
    }
}

/// A weight of dualpi2's controller.
const fn in_256ths(
    name: &'static str,
    doc: &'static str,
    field: Lens<DualPi2Settings>,
) -> Parameter<DualPi2Settings> {
    Parameter::new(name, Unit::Count("weight"), 0..=(1 << 31) - 1, doc, field)
}

const fn up_to_a_minute(
    name: &'static str,
    doc: &'static str,
    field: Lens<DualPi2Settings>,
) -> Parameter<DualPi2Settings> {
    Parameter::new(name, Unit::Time, 0..=60_000_000_000, doc, field)
}

pub(super) static DUALPI2: Description<DualPi2Settings, dualpi2::Config> = Description {
    about: About {
        name: "dualpi2",
        family: Family::Aqm,
        summary: "Dual-queue coupled AQM (RFC 9332): scalable senders (L4S) wait hardly at all and share fairly with classic ones",
        when: "On an access line with L4S senders (TCP Prague and the like); without them it is PI2 over one queue.",
        children: Children::None,
    },
    parameters: &[
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            POSITIVE,
            "Most packets queued in both queues.",
            |dualpi2, _| &mut dualpi2.config.limit,
        ),
        bounding(
            |dualpi2, _| Some(Longest::Memory(dualpi2.config.memory())),
            Parameter::new(
                "memory_limit",
                Unit::Bytes,
                1..=u64::MAX,
                "Most memory that queued packets may occupy; none for two of `mtu` for each packet of `limit`.",
                |dualpi2, _| &mut dualpi2.config.memory_limit,
            ),
        ),
        up_to_a_minute(
            "target",
            "The delay to hold in the classic queue.",
            |dualpi2, _| &mut dualpi2.config.target,
        ),
        up_to_a_minute(
            "tupdate",
            "Time between updates of the probability.",
            |dualpi2, _| &mut dualpi2.config.tupdate,
        ),
        in_256ths(
            "alpha",
            "Weight of the delay's distance from the target, in 256ths of 1/s.",
            |dualpi2, _| &mut dualpi2.config.alpha,
        ),
        in_256ths(
            "beta",
            "Weight of the delay's change, in 256ths of 1/s.",
            |dualpi2, _| &mut dualpi2.config.beta,
        ),
        up_to_a_minute(
            "step_thresh",
            "Delay above which the low-latency queue marks by itself; none for 1 ms, or with `step_packets`.",
            |dualpi2, _| &mut dualpi2.step_thresh,
        ),
        Parameter::new(
            "step_packets",
            Unit::Count("packets"),
            0..=u32::MAX as u64,
            "Instead of `step_thresh`: how many packets left behind make it mark.",
            |dualpi2, _| &mut dualpi2.step_packets,
        ),
        up_to_a_minute(
            "step_range",
            "How much later than `step_thresh` all packets are marked: a ramp instead of a step.",
            |dualpi2, _| &mut dualpi2.config.step_range,
        ),
        Parameter::new(
            "min_qlen_step",
            Unit::Count("packets"),
            0..=u32::MAX as u64,
            "A packet that finds fewer than this in the low-latency queue is spared the step.",
            |dualpi2, _| &mut dualpi2.config.min_qlen_step,
        ),
        Parameter::new(
            "coupling_factor",
            Unit::Count("times"),
            1..=255,
            "How many times as likely as the base probability a scalable packet is marked; classic ones go by its square.",
            |dualpi2, _| &mut dualpi2.config.coupling_factor,
        ),
        Parameter::word(
            "drop_overload",
            Unit::Flag,
            "Whether scalable packets are dropped when marks no longer help; else the limit does it.",
            |dualpi2, _| &mut dualpi2.config.drop_overload,
        ),
        Parameter::word(
            "drop_early",
            Unit::Flag,
            "Whether to drop and mark on arrival instead of on departure.",
            |dualpi2, _| &mut dualpi2.config.drop_early,
        ),
        Parameter::new(
            "classic_protection",
            Unit::Count("percent"),
            0..=100,
            "Percent of the bytes that the classic queue is sure of.",
            |dualpi2, _| &mut dualpi2.config.classic_protection,
        ),
        Parameter::word(
            "any_ect",
            Unit::Flag,
            "Whether ECT(0) goes to the low-latency queue too, and not only ECT(1) and CE.",
            |dualpi2, _| &mut dualpi2.config.any_ect,
        ),
        Parameter::new(
            "mtu",
            Unit::Bytes,
            1..=1 << 24,
            "The longest packet: with less than two of them queued nothing is dropped.",
            |dualpi2, _| &mut dualpi2.config.mtu,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| DualPi2Settings {
        config: dualpi2::Config::default(),
        step_thresh: None,
        step_packets: None,
    },
    config: DualPi2Settings::config,
    build: |config, parts| Ok(Box::new(DualPi2::node(config, parts.seed)?)),
};
