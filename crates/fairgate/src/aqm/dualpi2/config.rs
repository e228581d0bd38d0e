//! The parameters of dualpi2.

use alloc::boxed::Box;
use core::time::Duration;

use super::DualPi2;
use crate::aqm::POSITIVE;
use crate::error::ConfigError;
use crate::registry::{About, Children, Description, Family, Lens, Longest, Parameter, Unit};

/// The threshold above which the L queue marks by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A packet with a longer sojourn time than this is marked.
    Delay(Duration),
    /// A packet that leaves more than this many behind is marked.
    Packets(u32),
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog of both queues together, packets.
    pub limit: u32,
    /// The most memory that queued packets occupy ([`Packet::memory`](crate::Packet::memory)), bytes; `None`
    /// for two `mtu` per packet of `limit`.
    pub memory_limit: Option<u64>,
    /// The delay of the C queue that the controller aims at.
    pub target: Duration,
    /// Time between two updates of the probability.
    pub tupdate: Duration,
    /// Weight of the difference between delay and target, in 256ths of 1/s.
    pub alpha: u32,
    /// Weight of the change of the delay, in 256ths of 1/s.
    pub beta: u32,
    /// The threshold above which the L queue marks by itself.
    pub step: Step,
    /// With a delay as step: how far above it all packets are marked; zero for a step without a ramp.
    pub step_range: Duration,
    /// The step does not mark a packet that finds fewer packets than this in the L queue.
    pub min_qlen_step: u32,
    /// The coupling factor `k`, 1 to 255.
    pub coupling_factor: u8,
    /// Whether scalable packets are dropped when marks no longer help.
    pub drop_overload: bool,
    /// Whether probabilities are applied on arrival instead of on departure.
    pub drop_early: bool,
    /// The share of the bytes that the C queue gets at least, percent.
    pub classic_protection: u8,
    /// Whether ECT(0) also goes to the L queue.
    pub any_ect: bool,
    /// The longest packet: nothing is dropped with less than two of them queued.
    pub mtu: u32,
}

/// Linux's defaults, which are those of RFC 9332 for round trips up to 100 ms.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 10_000,
            memory_limit: None,
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(16),
            alpha: 41,
            beta: 819,
            step: Step::Delay(Duration::from_millis(1)),
            step_range: Duration::ZERO,
            min_qlen_step: 0,
            coupling_factor: 2,
            drop_overload: true,
            drop_early: false,
            classic_protection: 10,
            any_ect: false,
            mtu: 1514,
        }
    }
}

/// The settings of dualpi2 as users write them: the step as a time or in packets.
#[derive(Clone, Debug)]
pub struct Settings {
    config: Config,
    step_thresh: Option<Duration>,
    step_packets: Option<u32>,
}

impl Settings {
    pub(super) fn of(config: &Config) -> Settings {
        Settings {
            step_thresh: match config.step {
                Step::Delay(delay) => Some(delay),
                Step::Packets(_) => None,
            },
            step_packets: match config.step {
                Step::Delay(_) => None,
                Step::Packets(packets) => Some(packets),
            },
            config: config.clone(),
        }
    }

    fn config(self) -> Result<Config, ConfigError> {
        let step = match (self.step_thresh, self.step_packets) {
            (Some(_), Some(packets)) => {
                return Err(ConfigError::conflict(
                    "step_packets",
                    packets,
                    "left out beside `step_thresh`",
                    "give the step either as a time or in packets",
                ));
            }
            (Some(delay), None) => Step::Delay(delay),
            (None, Some(packets)) => Step::Packets(packets),
            (None, None) => self.config.step,
        };
        Ok(Config { step, ..self.config })
    }
}

/// A weight of dualpi2's controller.
const fn in_256ths(name: &'static str, doc: &'static str, field: Lens<Settings>) -> Parameter<Settings> {
    Parameter::new(name, Unit::Count("weight"), 0..=(1 << 31) - 1, doc, field)
}

const fn up_to_a_minute(name: &'static str, doc: &'static str, field: Lens<Settings>) -> Parameter<Settings> {
    Parameter::new(name, Unit::Time, 0..=60_000_000_000, doc, field)
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Settings>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        POSITIVE,
        "The largest backlog of both queues together in packets.",
        |dualpi2, _| &mut dualpi2.config.limit,
    ),
    Parameter::bounding(
        |dualpi2, _| Some(Longest::Memory(dualpi2.config.memory())),
        Parameter::new(
            "memory_limit",
            Unit::Bytes,
            1..=u64::MAX,
            "The most memory that queued packets occupy; none for two `mtu` per packet of `limit`.",
            |dualpi2, _| &mut dualpi2.config.memory_limit,
        ),
    ),
    up_to_a_minute(
        "target",
        "The delay of the classic queue that the controller aims at.",
        |dualpi2, _| &mut dualpi2.config.target,
    ),
    Parameter::new(
        "tupdate",
        Unit::Time,
        1..=60_000_000_000,
        "Time between updates of the probability.",
        |dualpi2, _| &mut dualpi2.config.tupdate,
    ),
    in_256ths(
        "alpha",
        "Weight of the difference between delay and target, in 256ths of 1/s.",
        |dualpi2, _| &mut dualpi2.config.alpha,
    ),
    in_256ths(
        "beta",
        "Weight of the change of the delay, in 256ths of 1/s.",
        |dualpi2, _| &mut dualpi2.config.beta,
    ),
    up_to_a_minute(
        "step_thresh",
        "The delay above which the low-latency queue marks by itself; none for 1 ms, or with `step_packets`.",
        |dualpi2, _| &mut dualpi2.step_thresh,
    ),
    Parameter::new(
        "step_packets",
        Unit::Count("packets"),
        0..=u32::MAX as u64,
        "Instead of `step_thresh`: the low-latency queue marks a packet that leaves more than this behind.",
        |dualpi2, _| &mut dualpi2.step_packets,
    ),
    up_to_a_minute(
        "step_range",
        "How far above `step_thresh` all packets are marked: a ramp instead of a step.",
        |dualpi2, _| &mut dualpi2.config.step_range,
    ),
    Parameter::new(
        "min_qlen_step",
        Unit::Count("packets"),
        0..=u32::MAX as u64,
        "The step does not mark a packet that finds fewer than this in the low-latency queue.",
        |dualpi2, _| &mut dualpi2.config.min_qlen_step,
    ),
    Parameter::new(
        "coupling_factor",
        Unit::Count("times"),
        1..=255,
        "Scalable packets are marked this many times as often as the base probability; classic ones by \
         its square.",
        |dualpi2, _| &mut dualpi2.config.coupling_factor,
    ),
    Parameter::word(
        "drop_overload",
        Unit::Flag,
        "Whether scalable packets are dropped when marks no longer help; else only the limit drops them.",
        |dualpi2, _| &mut dualpi2.config.drop_overload,
    ),
    Parameter::word(
        "drop_early",
        Unit::Flag,
        "Whether packets are dropped and marked on arrival instead of on departure.",
        |dualpi2, _| &mut dualpi2.config.drop_early,
    ),
    Parameter::new(
        "classic_protection",
        Unit::Count("percent"),
        0..=100,
        "The share of the bytes that the classic queue gets at least, in percent.",
        |dualpi2, _| &mut dualpi2.config.classic_protection,
    ),
    Parameter::word(
        "any_ect",
        Unit::Flag,
        "Whether ECT(0) also goes to the low-latency queue, as ECT(1) and CE do.",
        |dualpi2, _| &mut dualpi2.config.any_ect,
    ),
    Parameter::new(
        "mtu",
        Unit::Bytes,
        1..=1 << 24,
        "The longest packet: nothing is dropped with less than two of them queued.",
        |dualpi2, _| &mut dualpi2.config.mtu,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Settings, Config> = Description::of_settings(
    About {
        name: "dualpi2",
        family: Family::Aqm,
        summary: "Dual-queue coupled AQM (RFC 9332): scalable senders (L4S) have almost no delay and share \
            fairly with classic ones",
        when: "On an access line with L4S senders (TCP Prague and others); without them it is PI2 over one \
            queue.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Settings {
        config: Config::default(),
        step_thresh: None,
        step_packets: None,
    },
    Settings::config,
    |config, parts| Ok(Box::new(DualPi2::node(config, parts.seed)?)),
);
