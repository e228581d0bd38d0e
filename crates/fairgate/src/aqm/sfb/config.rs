//! The parameters of SFB.

use alloc::boxed::Box;
use core::time::Duration;

use super::Sfb;
use super::bins::{CERTAIN, Steps};
use crate::classify::Classifier;
use crate::error::ConfigError;
use crate::probability::Probability;
use crate::registry::{About, Children, Description, Family, Parameter, Placing, Unit, check_ranges};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog, packets, 1 to 2^32 - 1.
    pub limit: u32,
    /// The most packets of a flow, by the least of its bins. `None`: five quarters of `target`, rounded.
    pub max: Option<u32>,
    /// The packets of a bin from which on its probability rises, 1 to 65535. `None`: four fifths of `max`,
    /// rounded up; without `max` too, 20.
    pub target: Option<u32>,
    /// What a bin's probability rises by if a packet finds `target` packets there. Kept in units of 1/65535.
    pub increment: Probability,
    /// What it falls by if a packet finds none.
    pub decrement: Probability,
    /// How many packets per second may pass of flows that do not react. 0: none.
    pub penalty_rate: u32,
    /// How many of them may pass at once. 0: none.
    pub penalty_burst: u32,
    /// How often the hash changes. Zero: never.
    pub rehash: Duration,
    /// How long before a change the next array of bins is filled. Zero: not at all.
    pub warmup: Duration,
    /// With filters, the class of a packet is its flow. A packet that no filter matches is then dropped.
    pub classifier: Classifier,
}

/// As tc sets them, with the limit of an Ethernet device: 1000 packets, at most 25 of a flow.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 1000,
            max: None,
            target: None,
            increment: Probability::ratio(5, 10_000),
            decrement: Probability::ratio(5, 100_000),
            penalty_rate: 10,
            penalty_burst: 20,
            rehash: Duration::from_secs(600),
            warmup: Duration::from_secs(60),
            classifier: Classifier::default(),
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "The largest backlog.",
        |sfb, _| &mut sfb.limit,
    ),
    Parameter::new(
        "max",
        Unit::Count("packets"),
        1..=65_535,
        "The most packets of a flow, by the least of its bins; none for five quarters of target.",
        |sfb, _| &mut sfb.max,
    ),
    Parameter::new(
        "target",
        Unit::Count("packets"),
        1..=65_535,
        "The packets of a bin from which on its probability rises; none for four fifths of max, or 20.",
        |sfb, _| &mut sfb.target,
    ),
    Parameter::new(
        "increment",
        Unit::Probability,
        0..=1 << 32,
        "What a bin's probability rises by if a packet finds target packets there.",
        |sfb, _| &mut sfb.increment,
    ),
    Parameter::new(
        "decrement",
        Unit::Probability,
        0..=1 << 32,
        "What a bin's probability falls by if a packet finds no other there.",
        |sfb, _| &mut sfb.decrement,
    ),
    Parameter::new(
        "penalty_rate",
        Unit::Count("packets per second"),
        0..=u32::MAX as u64,
        "How many packets may pass of flows that do not react to marks and drops.",
        |sfb, _| &mut sfb.penalty_rate,
    ),
    Parameter::new(
        "penalty_burst",
        Unit::Count("packets"),
        0..=u32::MAX as u64,
        "How many packets of such flows may pass at once.",
        |sfb, _| &mut sfb.penalty_burst,
    ),
    Parameter::new(
        "rehash",
        Unit::Time,
        0..=u64::MAX,
        "How often the hash changes, so that flows do not share bins for long; 0ns for never.",
        |sfb, _| &mut sfb.rehash,
    ),
    Parameter::new(
        "warmup",
        Unit::Time,
        0..=u64::MAX,
        "How long before a change of the hash the next bins learn which flows do not react.",
        |sfb, _| &mut sfb.warmup,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "sfb",
        family: Family::Aqm,
        summary: "A fifo with BLUE for each flow by hashed bins: limits flows that ignore marks (Stochastic \
            Fair Blue)",
        when: "To limit unresponsive flows with little state, as choke does, and to mark the others early.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Sfb::node(config, parts.seed)?)),
)
.with_placing(Placing::Classifier(
    |sfb| &mut sfb.classifier,
    |_| u16::MAX.into(),
));

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        self.classifier.check()
    }

    /// The most packets of a flow, set or derived as in tc.
    pub fn most_of_flow(&self) -> u32 {
        match (self.max, self.target) {
            (Some(max), _) => max,
            (None, Some(target)) => (target * 5 + 1) / 4,
            (None, None) => 25,
        }
    }

    /// The packets from which on a bin's probability rises, set or derived as in tc.
    pub fn packets_of_bin(&self) -> u32 {
        self.target
            .unwrap_or_else(|| (self.most_of_flow() * 4).div_ceil(5))
    }

    /// What probabilities rise and fall by, in units of 1/65535.
    pub fn increments(&self) -> [u32; 2] {
        // tc rounds halves up. A decimal number like 0.1 is a part of 2^-32 too small, at most.
        let half = (1 << 31) + u64::from(CERTAIN);
        let rounded =
            |probability: Probability| ((probability.parts() * u64::from(CERTAIN) + half) >> 32) as u32;
        [self.increment, self.decrement].map(|probability| rounded(probability).min(CERTAIN))
    }

    pub(super) fn steps(&self) -> Steps {
        let [increment, decrement] = self.increments();
        Steps {
            target: self.packets_of_bin(),
            increment,
            decrement,
        }
    }
}
