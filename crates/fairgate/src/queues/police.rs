//! The settings of a filter's policer as users write them.

use alloc::vec::Vec;

use super::link_parameters;
use super::token_bucket::{Peak, Profile};
use crate::classify::{Average, Control, Measure, Police};
use crate::error::ConfigError;
use crate::link_layer::LinkLayer;
use crate::rate::Rate;
use crate::registry::{Parameter, ParameterInfo, Smallest, Unit, Value};

crate::words!(Control {
    "pass" => Control::Pass,
    "drop" => Control::Drop,
    "continue" => Control::Continue,
    "reclassify" => Control::Reclassify,
    "default" => Control::Default,
});

impl Smallest for Control {
    const SMALLEST: Control = Control::Pass;
}

/// The settings of a [`Police`].
#[derive(Clone, Debug)]
pub struct Settings {
    rate: Option<Rate>,
    burst: Option<u32>,
    peakrate: Option<Rate>,
    mtu: Option<u32>,
    link_layer: LinkLayer,
    exact: bool,
    packets: Option<u64>,
    burst_packets: Option<u32>,
    longest: Option<u32>,
    average: Option<Rate>,
    /// The logarithms of samples and of their weight.
    estimator: Option<(u8, u8)>,
    conform: Control,
    exceed: Control,
}

/// Nothing is measured.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            rate: None,
            burst: None,
            peakrate: None,
            mtu: None,
            link_layer: LinkLayer::NONE,
            exact: false,
            packets: None,
            burst_packets: None,
            longest: None,
            average: None,
            estimator: None,
            conform: Control::Pass,
            exceed: Control::Drop,
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Settings>] = &[
    Parameter::new(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The rate that conforms.",
        |police, _| &mut police.rate,
    ),
    Parameter::new(
        "burst",
        Unit::Bytes,
        1..=u32::MAX as u64,
        "Bytes that conform at once after an idle time: at least the longest packet.",
        |police, _| &mut police.burst,
    ),
    Parameter::new(
        "peakrate",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of bursts that conforms: above the rate.",
        |police, _| &mut police.peakrate,
    ),
    Parameter::new(
        "mtu",
        Unit::Bytes,
        1..=u32::MAX as u64,
        "Bytes that conform at once at the peak rate: at least the longest packet.",
        |police, _| &mut police.mtu,
    ),
    link_parameters::overhead(|police, _| &mut police.link_layer.overhead),
    link_parameters::mpu(|police, _| &mut police.link_layer.mpu),
    link_parameters::cells(|police, _| &mut police.link_layer.cells),
    Parameter::word(
        "exact",
        Unit::Flag,
        "Count without rounding; without it as in Linux, where a little more than the rate conforms.",
        |police, _| &mut police.exact,
    ),
    Parameter::new(
        "packets",
        Unit::Count("packets per second"),
        1..=1 << 40,
        "The rate in packets that conforms, instead of a rate in bytes.",
        |police, _| &mut police.packets,
    ),
    Parameter::new(
        "burst_packets",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "Packets that conform at once after an idle time.",
        |police, _| &mut police.burst_packets,
    ),
    Parameter::new(
        "longest",
        Unit::Bytes,
        0..=u32::MAX as u64,
        "The longest packet that conforms.",
        |police, _| &mut police.longest,
    ),
    Parameter::new(
        "average",
        Unit::Rate,
        8..=u64::MAX,
        "Packets also exceed while their average rate, by `estimator`, is at this rate or above it.",
        |police, _| &mut police.average,
    ),
    Parameter::word(
        "conform",
        Unit::Choice(Control::WORDS),
        "What happens to packets that conform; with `pass` the filter's class takes them.",
        |police, _| &mut police.conform,
    ),
    Parameter::word(
        "exceed",
        Unit::Choice(Control::WORDS),
        "What happens to packets that exceed.",
        |police, _| &mut police.exceed,
    ),
];

impl Settings {
    /// Returns what users should know about the parameters.
    pub fn parameters() -> Vec<ParameterInfo> {
        let mut start = Settings::default();
        PARAMETERS
            .iter()
            .map(|parameter| parameter.info(&mut start))
            .collect()
    }

    /// Sets the parameter with this index to a value in its range.
    pub fn set(&mut self, index: usize, value: &Value) {
        PARAMETERS[index].field(self, 0).write(value);
    }

    /// Sets how `average` is estimated: the number of doublings of 250 ms that make a sample, and the base-2
    /// logarithm of the inverse weight of a sample.
    pub fn set_estimator(&mut self, sample_log: u8, weight_log: u8) {
        self.estimator = Some((sample_log, weight_log));
    }

    /// Returns the parameters that do not have their defaults, with their indices.
    pub fn given(mut self) -> Vec<(usize, Value)> {
        let mut start = Settings::default();
        let values = PARAMETERS.iter().enumerate().map(|(index, parameter)| {
            let default = parameter.field(&mut start, 0).read();
            let value = parameter.field(&mut self, 0).read();
            (value != default).then_some((index, value))
        });
        values.flatten().collect()
    }

    /// Returns the settings that give `police`.
    pub fn of(police: &Police) -> Settings {
        let mut settings = Settings {
            longest: (police.longest != u32::MAX).then_some(police.longest),
            average: police.average.map(|average| average.rate),
            estimator: police
                .average
                .map(|average| (average.sample_log, average.weight_log)),
            conform: police.conform,
            exceed: police.exceed,
            ..Settings::default()
        };
        match police.measure {
            Measure::Length => {}
            Measure::Bytes(profile) | Measure::ExactBytes(profile) => {
                settings.exact = matches!(police.measure, Measure::ExactBytes(_));
                settings.rate = Some(profile.rate);
                settings.burst = Some(profile.burst);
                settings.peakrate = profile.peak.map(|peak| peak.rate);
                settings.mtu = profile.peak.map(|peak| peak.mtu);
                settings.link_layer = profile.link_layer;
            }
            Measure::Packets { rate, burst } => {
                settings.packets = Some(rate);
                settings.burst_packets = Some(burst);
            }
        }
        settings
    }

    /// Returns the policer.
    ///
    /// # Errors
    /// If a setting is missing that belongs to another one, or if the peak rate is not above the rate.
    pub fn police(self) -> Result<Police, ConfigError> {
        let together = |parameter, with: &str, remedy: &str| {
            Err(ConfigError::conflict(
                parameter,
                "given alone",
                format!("given together with `{with}`"),
                remedy,
            ))
        };
        let measure = match (self.rate, self.burst, self.packets, self.burst_packets) {
            (Some(rate), Some(burst), None, None) => {
                let peak = match (self.peakrate, self.mtu) {
                    (Some(rate), Some(mtu)) => Some(Peak { rate, mtu }),
                    (None, None) => None,
                    (Some(_), None) => {
                        return together("peakrate", "mtu", "add the depth of its bucket: mtu = \"1514b\"");
                    }
                    (None, Some(_)) => {
                        return together("mtu", "peakrate", "add the peak rate, or write longest");
                    }
                };
                let profile = Profile {
                    peak,
                    link_layer: self.link_layer,
                    ..Profile::new(rate, burst)
                };
                profile.check_peak()?;
                match self.exact {
                    true => Measure::ExactBytes(profile),
                    false => Measure::Bytes(profile),
                }
            }
            (None, None, Some(rate), Some(burst)) => Measure::Packets { rate, burst },
            (None, None, None, None) => Measure::Length,
            (Some(_), _, Some(_), _) => {
                return Err(ConfigError::conflict(
                    "packets",
                    "given beside `rate`",
                    "left out: a policer counts bytes or packets",
                    "use two filters: the first one continues",
                ));
            }
            (Some(_), ..) => return together("rate", "burst", "add a burst of at least the longest packet"),
            (_, Some(_), ..) => return together("burst", "rate", "add the rate that conforms"),
            (_, _, Some(_), _) => return together("packets", "burst_packets", "add a burst in packets"),
            (.., Some(_)) => {
                return together("burst_packets", "packets", "add the rate in packets per second");
            }
        };
        let has_rate = self.rate.is_some();
        if !has_rate && (self.peakrate.is_some() || self.mtu.is_some()) {
            let parameter = if self.peakrate.is_some() {
                "peakrate"
            } else {
                "mtu"
            };
            return together(parameter, "rate", "add the rate that conforms");
        }
        if !has_rate && self.link_layer != LinkLayer::NONE {
            return together("overhead", "rate", "leave it out, or add the rate that conforms");
        }
        if !has_rate && self.exact {
            return together("exact", "rate", "leave it out, or add the rate that conforms");
        }
        let average = match (self.average, self.estimator) {
            (Some(rate), Some((sample_log, weight_log))) => Some(Average {
                rate,
                sample_log,
                weight_log,
            }),
            (None, None) => None,
            (Some(_), None) => {
                return together("average", "estimator", "add estimator = \"250ms 1s\"");
            }
            (None, Some(_)) => return together("estimator", "average", "add the average that conforms"),
        };
        let measures_nothing = measure == Measure::Length && self.longest.is_none() && average.is_none();
        if measures_nothing && self.conform == Control::Pass {
            return Err(ConfigError::conflict(
                "police",
                "without a measure",
                "a table with `rate` and `burst`, with `packets` and `burst_packets`, with `average` and \
                    `estimator`, or with `longest`",
                "add one of them, or leave the policer out",
            ));
        }
        Ok(Police {
            measure,
            average,
            longest: self.longest.unwrap_or(u32::MAX),
            conform: self.conform,
            exceed: self.exceed,
        })
    }
}
