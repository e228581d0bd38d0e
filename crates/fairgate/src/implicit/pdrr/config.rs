//! The parameters of pdrr.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::super::congestion::{Measurement, Thresholds};
use super::super::in_progress::InProgress;
use super::super::parameters::{
    fair_rate, fair_rate_interval, flows_in_progress, idle_timeout, key, limit, priority_load_interval,
    quantum, smoothing,
};
use super::Pdrr;
use crate::classify::Classifier;
use crate::error::ConfigError;
use crate::flow::FlowBy;
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Parameter, Placing, Unit};
use crate::rounds::drr::QUANTA;

/// When packets of new flows are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Dropped while the fair rate is below this rate. `None` means 1 % of the link's rate.
    pub fair_rate: Option<Rate>,
    /// Dropped while the priority load is above this percentage of the link's rate, 1 to 100.
    pub priority_load: u8,
    /// How long a flow is in progress after a packet, 1 ms to 1 hour.
    pub idle_timeout: Duration,
    /// The largest number of flows in progress, 1 to 2^20.
    pub flows_in_progress: u32,
}

/// The fair rate of section 2.3, a few seconds, and the flows in progress of the largest trace in Table 2.
/// The paper does not give a load: at 80 % a packet waits for four others on average (M/M/1).
impl Default for Admission {
    fn default() -> Admission {
        Admission {
            fair_rate: None,
            priority_load: 80,
            idle_timeout: Duration::from_secs(5),
            flows_in_progress: 65_536,
        }
    }
}

impl Admission {
    pub(in crate::implicit) fn thresholds(&self, rate: Rate) -> Thresholds {
        let percent = Rate::from_bits_per_second((rate.bits_per_second() / 100).max(1));
        Thresholds {
            fair_rate: self.fair_rate.unwrap_or(percent.expect("above 0")),
            priority_load: self.priority_load,
        }
    }

    pub(in crate::implicit) fn flows(&self, salt: u64) -> InProgress {
        InProgress::new(self.flows_in_progress, self.idle_timeout.as_nanos() as u64, salt)
    }
}

/// The parameters of the discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest number of queued packets, 1 to 2^25.
    pub limit: u32,
    /// Entries of AFL: the largest number of flows with their own state, 1 to 2^20.
    pub afl: u32,
    /// The bytes that a flow may send in a round, and as many with priority, 64 to 2^30.
    pub quantum: u32,
    /// The quanta of flows whose first packet a filter gives class 1, 2 and so on, each in the same range.
    pub quanta: Vec<u32>,
    /// Chooses the class of a flow's first packet. Without `quanta` it is not used.
    pub classifier: Classifier,
    /// What identifies a flow.
    pub key: FlowBy,
    /// The rate of the link, to measure congestion.
    pub rate: Option<Rate>,
    /// How it is measured. Without `rate` it is not used.
    pub measurement: Measurement,
    /// Whether new flows are rejected while the link is congested. Requires `rate`.
    pub admission: Option<Admission>,
}

/// The buffer and the AFL are those of the paper's simulations (section 5). The quantum is one full Ethernet
/// frame.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 1000,
            afl: 500,
            quantum: 1514,
            quanta: Vec::new(),
            classifier: Classifier::default(),
            key: FlowBy::FiveTuple,
            rate: None,
            measurement: Measurement::default(),
            admission: None,
        }
    }
}

/// The settings as users write them: admission control is switched on, and its parameters are next to the
/// others.
#[derive(Clone, Debug)]
pub struct Settings {
    config: Config,
    is_admission_on: bool,
    admission: Admission,
}

impl Settings {
    pub(super) fn of(config: &Config) -> Settings {
        Settings {
            is_admission_on: config.admission.is_some(),
            admission: config.admission.clone().unwrap_or_default(),
            config: config.clone(),
        }
    }

    fn config(self) -> Result<Config, ConfigError> {
        let (given, default) = (&self.admission, Admission::default());
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
            return Err(ConfigError::conflict(
                parameter,
                "given",
                "absent unless admission is true",
                "remove it, or write admission = true",
            ));
        }
        let (given, default) = (self.config.measurement, Measurement::default());
        let of_rate = [
            (
                "fair_rate_interval",
                given.fair_rate_interval != default.fair_rate_interval,
            ),
            (
                "priority_load_interval",
                given.priority_load_interval != default.priority_load_interval,
            ),
            ("smoothing", given.smoothing != default.smoothing),
        ];
        let without_effect = of_rate.iter().find(|(_, is_given)| *is_given);
        if let (None, Some((parameter, _))) = (self.config.rate, without_effect) {
            return Err(ConfigError::conflict(
                parameter,
                "given",
                "absent unless rate is given, because nothing is measured without it",
                "remove it, or write the rate of the link",
            ));
        }
        Ok(Config {
            admission: self.is_admission_on.then_some(self.admission),
            ..self.config
        })
    }
}

/// The parameters that users can set.
pub const PARAMETERS: &[Parameter<Settings>] = &[
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
    Parameter::new(
        "quanta",
        Unit::Numbers(4096),
        QUANTA,
        "Quanta of the flows to which filters give class 1, 2 and so on; all other flows have `quantum`.",
        |pdrr, _| &mut pdrr.config.quanta,
    ),
    key(|pdrr, _| &mut pdrr.config.key),
    Parameter::new(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of the link, to measure the fair rate and the priority load.",
        |pdrr, _| &mut pdrr.config.rate,
    ),
    fair_rate_interval(|pdrr, _| &mut pdrr.config.measurement.fair_rate_interval),
    priority_load_interval(|pdrr, _| &mut pdrr.config.measurement.priority_load_interval),
    smoothing(|pdrr, _| &mut pdrr.config.measurement.smoothing),
    Parameter::word(
        "admission",
        Unit::Flag,
        "Whether packets of new flows are dropped while the link is congested; requires `rate`.",
        |pdrr, _| &mut pdrr.is_admission_on,
    ),
    fair_rate(|pdrr, _| &mut pdrr.admission.fair_rate),
    Parameter::new(
        "priority_load",
        Unit::Count("percent"),
        1..=100,
        "New flows are rejected while the priority load is above this part of the rate.",
        |pdrr, _| &mut pdrr.admission.priority_load,
    ),
    idle_timeout(|pdrr, _| &mut pdrr.admission.idle_timeout),
    flows_in_progress(|pdrr, _| &mut pdrr.admission.flows_in_progress),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Settings, Config> = Description::of_settings(
    About {
        name: "pdrr",
        family: Family::Implicit,
        summary: "Priority deficit round robin: fair shares, and flows below the fair rate go first",
        when: "On a link that many flows share, each with a small part of it; with admission control also in \
            overload.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Settings {
        config: Config::default(),
        is_admission_on: false,
        admission: Admission::default(),
    },
    Settings::config,
    |config, parts| Ok(Box::new(Pdrr::node(config, parts.seed)?)),
)
.with_placing(Placing::Classifier(
    |pdrr| &mut pdrr.config.classifier,
    |pdrr| pdrr.config.quanta.len() as u32,
))
.with_memory(|pdrr| 110 * u64::from(pdrr.config.afl));
