//! Parameters of sfq.

use alloc::boxed::Box;
use core::time::Duration;

use super::Sfq;
use crate::classify::Classifier;
use crate::error::ConfigError;
use crate::queues::fifo::DropFrom;
use crate::registry::{About, Children, Description, Family, Parameter, Placing, Unit, check_ranges};
use crate::rounds::drr::QUANTA;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most packets queued in all, 2 to 2^24.
    pub limit: u32,
    /// Most packets in a slot, 1 to 65535.
    pub depth: u32,
    /// Slots: most flows at a time, 1 to 65408.
    pub flows: u32,
    /// Buckets of the hash: a power of two up to 65536.
    pub divisor: u32,
    /// Bytes that a slot may send in a round, 64 to 2^30.
    pub quantum: u32,
    /// Which packet of the longest slot pays.
    pub drop_from: DropFrom,
    /// Time from one salt of the hash to the next; `None` for never.
    pub perturb: Option<Duration>,
    /// Places packets in buckets, counted from 1, before the hash does.
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
        "Most packets queued in all.",
        |sfq, _| &mut sfq.limit,
    ),
    Parameter::new(
        "depth",
        Unit::Count("packets"),
        1..=65_535,
        "Most packets of one flow.",
        |sfq, _| &mut sfq.depth,
    ),
    Parameter::new(
        "flows",
        Unit::Count("flows"),
        1..=65_408,
        "Most flows at a time.",
        |sfq, _| &mut sfq.flows,
    ),
    Parameter::new(
        "divisor",
        Unit::Count("buckets"),
        1..=65_536,
        "Buckets of the hash: a power of two. More buckets, fewer flows that share one by chance.",
        |sfq, _| &mut sfq.divisor,
    ),
    Parameter::new(
        "quantum",
        Unit::Bytes,
        QUANTA,
        "Bytes that a flow may send in a round.",
        |sfq, _| &mut sfq.quantum,
    ),
    Parameter::word(
        "drop",
        Unit::Choice(DropFrom::WORDS),
        "Which packet of the longest flow pays: the newest or the oldest.",
        |sfq, _| &mut sfq.drop_from,
    ),
    Parameter::new(
        "perturb",
        Unit::Time,
        1_000_000..=u64::MAX,
        "Time after which flows are hashed anew.",
        |sfq, _| &mut sfq.perturb,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "sfq",
        family: Family::Rounds,
        summary: "Stochastic fairness queueing: few queues, round robin, the longest queue pays",
        when: "For fair shares with little memory, where delay does not matter much; else take fq_codel.",
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
        check_ranges(PARAMETERS, &mut self.clone())?;
        if !self.divisor.is_power_of_two() {
            return Err(ConfigError::conflict(
                "divisor",
                self.divisor,
                "a power of two up to 65536",
                format!("take {}", self.divisor.next_power_of_two()),
            ));
        }
        Ok(())
    }
}
