//! The parameters of sfq.

use alloc::boxed::Box;
use core::time::Duration;

use super::Sfq;
use super::red::FlowRed;
use crate::classify::Classifier;
use crate::error::ConfigError;
use crate::queues::fifo::DropFrom;
use crate::registry::{About, Children, Description, Family, Parameter, Placing, Unit, check_ranges};
use crate::rounds::drr::QUANTA;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog, packets, 2 to 2^24.
    pub limit: u32,
    /// The largest backlog of a slot, packets, 1 to 65535.
    pub depth: u32,
    /// The number of slots: the most flows at a time, 1 to 65408.
    pub flows: u32,
    /// The number of hash buckets: a power of two up to 65536.
    pub divisor: u32,
    /// Bytes that a slot may send in a round, 64 to 2^30.
    pub quantum: u32,
    /// Which packet of the longest slot is dropped.
    pub drop_from: DropFrom,
    /// The time between two salts of the hash; `None` for a constant salt.
    pub perturb: Option<Duration>,
    /// RED on each flow.
    pub red: FlowRed,
    /// Classifies packets into buckets, counted from 1, before the hash does.
    pub classifier: Classifier,
}

/// Linux's defaults, and a new salt every 10 s as in the paper.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 127,
            depth: 127,
            flows: 128,
            divisor: 1024,
            quantum: 1514,
            drop_from: DropFrom::Tail,
            perturb: Some(Duration::from_secs(10)),
            red: FlowRed::default(),
            classifier: Classifier::default(),
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        2..=1 << 24,
        "The largest backlog in packets.",
        |sfq, _| &mut sfq.limit,
    ),
    Parameter::new(
        "depth",
        Unit::Count("packets"),
        1..=65_535,
        "The largest backlog of one flow in packets.",
        |sfq, _| &mut sfq.depth,
    ),
    Parameter::new(
        "flows",
        Unit::Count("flows"),
        1..=65_408,
        "The most flows at a time.",
        |sfq, _| &mut sfq.flows,
    ),
    Parameter::new(
        "divisor",
        Unit::Count("buckets"),
        1..=65_536,
        "The number of hash buckets, a power of two; with more, fewer flows share a bucket by chance.",
        |sfq, _| &mut sfq.divisor,
    ),
    Parameter::new(
        "quantum",
        Unit::Bytes,
        QUANTA,
        "The bytes that a flow may send in a round.",
        |sfq, _| &mut sfq.quantum,
    ),
    Parameter::word(
        "drop",
        Unit::Choice(DropFrom::WORDS),
        "Which packet of the longest flow is dropped: the newest or the oldest.",
        |sfq, _| &mut sfq.drop_from,
    ),
    Parameter::new(
        "perturb",
        Unit::Time,
        1_000_000..=u64::MAX,
        "The time after which flows are hashed with a new salt.",
        |sfq, _| &mut sfq.perturb,
    ),
    Parameter::new(
        "min",
        Unit::Bytes,
        1..=u32::MAX as u64 >> 1,
        "RED on each flow: the average backlog from which packets are marked or dropped; none: no RED.",
        |sfq, _| &mut sfq.red.min,
    ),
    Parameter::new(
        "max",
        Unit::Bytes,
        1..=u32::MAX as u64 >> 1,
        "RED: the average backlog from which all packets are. By default three times `min`.",
        |sfq, _| &mut sfq.red.max,
    ),
    Parameter::new(
        "burst",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "RED: packets that pass before the average reaches `min`. By default (2 min + max) / (3 avpkt).",
        |sfq, _| &mut sfq.red.burst,
    ),
    Parameter::new(
        "avpkt",
        Unit::Bytes,
        1..=u32::MAX as u64,
        "RED: the mean length of packets.",
        |sfq, _| &mut sfq.red.avpkt,
    ),
    Parameter::new(
        "probability",
        Unit::Probability,
        0..=u32::MAX as u64 + 1,
        "RED: the probability of a mark or drop at `max`.",
        |sfq, _| &mut sfq.red.probability,
    ),
    Parameter::word(
        "ecn",
        Unit::Flag,
        "RED: whether ECN-capable packets are marked instead of dropped.",
        |sfq, _| &mut sfq.red.ecn,
    ),
    Parameter::word(
        "harddrop",
        Unit::Flag,
        "RED, with `ecn`: whether all packets above `max` are dropped.",
        |sfq, _| &mut sfq.red.harddrop,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "sfq",
        family: Family::Rounds,
        summary: "Stochastic fairness queueing: few queues, round robin, drops from the longest queue",
        when: "For fair shares with little memory, if delay does not matter much; otherwise take fq_codel.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Sfq::node(config, parts.seed)?)),
)
.with_placing(Placing::Classifier(|sfq| &mut sfq.classifier, |sfq| sfq.divisor))
.with_memory(|sfq| 4 * u64::from(sfq.divisor) + 64 * u64::from(sfq.flows.min(sfq.limit)));

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.classifier.check()?;
        check_ranges(PARAMETERS, &mut self.clone())?;
        if !self.divisor.is_power_of_two() {
            return Err(ConfigError::conflict(
                "divisor",
                self.divisor,
                "a power of two up to 65536",
                format!("take {}", self.divisor.next_power_of_two()),
            ));
        }
        self.red.check()
    }
}
