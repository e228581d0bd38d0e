//! The settings of the algorithm, each with name, unit, range and meaning.

use core::time::Duration;

use crate::registry::{Parameter, Unit, Value, check_ranges};
use crate::{ConfigError, Probability, Rate};

/// How the rate follows the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often the rate is reviewed.
    pub interval: Duration,
    /// The time between two probes, whatever the number of reflectors.
    pub probe_interval: Duration,
    /// A sample is late if its delay exceeds the baseline by more than this.
    pub threshold: Duration,
    /// Up to this mean excess the rate rises at full speed. Towards the threshold it rises slower and slower.
    pub calm: Duration,
    /// From this mean excess on the rate falls at full speed.
    pub severe: Duration,
    /// How many of the newest samples are looked at.
    pub window: u32,
    /// How many of them must be late until the line counts as congested.
    pub late: u32,
    /// How long after a decrease the rate neither falls again nor rises.
    pub refractory: Duration,
    /// The time constant with which the baseline rises.
    pub baseline_rise: Duration,
    /// The part of the difference by which the baseline falls with each sample.
    pub baseline_fall: Probability,
    /// From this share of the rate on, the load is high.
    pub high_load: Probability,
    /// Below this share of the rate the load is idle: a decrease would be no remedy.
    pub idle_load: Probability,
    /// The part by which the rate rises in an interval.
    pub rise: Probability,
    /// The part by which the rate falls if the mean excess is at the threshold.
    pub least_cut: Probability,
    /// The part by which the rate falls if the mean excess is severe.
    pub most_cut: Probability,
    /// The share of the achieved rate that is left if less comes through than the rate allows.
    pub keep: Probability,
    /// The share of the rate that is left while the queue of the line drains.
    pub drain: Probability,
    /// The time constant with which the rate returns to the base under low load.
    pub decay: Duration,
    /// After this time without an answer nothing is known of the line, and the rate is the base.
    pub silence: Duration,
}

/// The values of cake-autorate (defaults.sh), except where a field says otherwise.
impl Default for Settings {
    fn default() -> Settings {
        let percent = |percent| Probability::ratio(percent, 100);
        let millis = Duration::from_millis;
        Settings {
            // There, 100 ms and 50 ms. What is seen sooner is a shorter queue.
            interval: millis(50),
            probe_interval: millis(25),
            threshold: millis(30),
            calm: millis(10),
            severe: millis(60),
            window: 6,
            late: 3,
            // There, 300 ms.
            refractory: millis(150),
            // There, 0.001 of the difference with each sample, of which 20 come in a second.
            baseline_rise: millis(50_000),
            baseline_fall: percent(90),
            high_load: percent(75),
            // There is no such threshold there. Acknowledgements of a download must not be slowed down.
            idle_load: percent(10),
            // There, 4 % with each sample, of which 20 come in a second.
            rise: percent(4),
            least_cut: percent(1),
            most_cut: percent(25),
            keep: percent(90),
            // There is none there.
            drain: percent(30),
            // There, 1 % in each second.
            decay: millis(100_000),
            silence: millis(10_000),
        }
    }
}

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const ONE: u64 = Probability::ONE.parts();

/// All settings, in the order in which they are documented.
pub static PARAMETERS: [Parameter<Settings>; 19] = [
    Parameter::new(
        "interval",
        Unit::Time,
        20 * MILLISECOND..=10 * SECOND,
        "How often the rate is reviewed.",
        |settings, _| &mut settings.interval,
    ),
    Parameter::new(
        "probe_interval",
        Unit::Time,
        5 * MILLISECOND..=5 * SECOND,
        "The time between two probes; several reflectors take turns.",
        |settings, _| &mut settings.probe_interval,
    ),
    Parameter::new(
        "threshold",
        Unit::Time,
        MILLISECOND..=5 * SECOND,
        "A sample is late if its delay exceeds the baseline by more than this.",
        |settings, _| &mut settings.threshold,
    ),
    Parameter::new(
        "calm",
        Unit::Time,
        0..=5 * SECOND,
        "Up to this mean excess the rate rises at full speed; above it slower, at the threshold no more.",
        |settings, _| &mut settings.calm,
    ),
    Parameter::new(
        "severe",
        Unit::Time,
        MILLISECOND..=30 * SECOND,
        "From this mean excess on the rate falls by `most_cut`; below it by less.",
        |settings, _| &mut settings.severe,
    ),
    Parameter::new(
        "window",
        Unit::Count("samples"),
        1..=100,
        "How many of the newest samples are looked at.",
        |settings, _| &mut settings.window,
    ),
    Parameter::new(
        "late",
        Unit::Count("samples"),
        1..=100,
        "How many of them must be late until the line counts as congested.",
        |settings, _| &mut settings.late,
    ),
    Parameter::new(
        "refractory",
        Unit::Time,
        0..=30 * SECOND,
        "How long after a decrease the rate neither falls again nor rises.",
        |settings, _| &mut settings.refractory,
    ),
    Parameter::new(
        "baseline_rise",
        Unit::Time,
        SECOND..=3600 * SECOND,
        "The time constant with which the baseline rises.",
        |settings, _| &mut settings.baseline_rise,
    ),
    Parameter::new(
        "baseline_fall",
        Unit::Probability,
        ONE / 100..=ONE,
        "The part of the difference by which the baseline falls with each sample.",
        |settings, _| &mut settings.baseline_fall,
    ),
    Parameter::new(
        "high_load",
        Unit::Probability,
        ONE / 100..=ONE,
        "From this share of the rate on, the load is high, and the rate may rise.",
        |settings, _| &mut settings.high_load,
    ),
    Parameter::new(
        "idle_load",
        Unit::Probability,
        0..=ONE,
        "Below this share of the rate this direction is not to blame for a delay, and its rate stays.",
        |settings, _| &mut settings.idle_load,
    ),
    Parameter::new(
        "rise",
        Unit::Probability,
        ONE / 1000..=ONE,
        "The part by which the rate rises in an interval.",
        |settings, _| &mut settings.rise,
    ),
    Parameter::new(
        "least_cut",
        Unit::Probability,
        0..=ONE * 9 / 10,
        "The part by which the rate falls if the mean excess is at the threshold.",
        |settings, _| &mut settings.least_cut,
    ),
    Parameter::new(
        "most_cut",
        Unit::Probability,
        ONE / 100..=ONE * 9 / 10,
        "The part by which it falls if the mean excess is severe.",
        |settings, _| &mut settings.most_cut,
    ),
    Parameter::new(
        "keep",
        Unit::Probability,
        ONE / 10..=ONE,
        "The share of the achieved rate that is left if less comes through than the rate allows.",
        |settings, _| &mut settings.keep,
    ),
    Parameter::new(
        "drain",
        Unit::Probability,
        ONE / 10..=ONE,
        "The share of the rate that is left while the queue of the line drains; 1: the rate waits.",
        |settings, _| &mut settings.drain,
    ),
    Parameter::new(
        "decay",
        Unit::Time,
        SECOND..=3600 * SECOND,
        "The time constant with which the rate returns to the base under low load.",
        |settings, _| &mut settings.decay,
    ),
    Parameter::new(
        "silence",
        Unit::Time,
        SECOND..=600 * SECOND,
        "After this time without an answer nothing is known of the line, and the rate is the base.",
        |settings, _| &mut settings.silence,
    ),
];

impl Settings {
    /// Checks all settings, and the rules between them.
    ///
    /// # Errors
    /// Names the first setting that is out of range or breaks a rule, the rule and a remedy.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_ranges(&PARAMETERS, &mut self.clone())?;
        let duration = |duration: Duration| {
            let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            Unit::Time.show(&Value::Number(nanos))
        };
        if self.late > self.window {
            return Err(ConfigError::conflict(
                "late",
                self.late,
                format!("at most `window`, {}", self.window),
                "lower it, or look at more samples",
            ));
        }
        if self.calm >= self.threshold {
            return Err(ConfigError::conflict(
                "calm",
                duration(self.calm),
                format!("below `threshold`, {}", duration(self.threshold)),
                "lower it, or raise the threshold",
            ));
        }
        if self.severe <= self.threshold {
            return Err(ConfigError::conflict(
                "severe",
                duration(self.severe),
                format!("above `threshold`, {}", duration(self.threshold)),
                "raise it, or lower the threshold",
            ));
        }
        if self.least_cut > self.most_cut {
            return Err(ConfigError::conflict(
                "least_cut",
                self.least_cut,
                format!("at most `most_cut`, {}", self.most_cut),
                "lower it, or raise `most_cut`",
            ));
        }
        if self.idle_load >= self.high_load {
            return Err(ConfigError::conflict(
                "idle_load",
                self.idle_load,
                format!("below `high_load`, {}", self.high_load),
                "lower it, or raise `high_load`",
            ));
        }
        Ok(())
    }
}

/// The rates between which a direction follows its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The rate never falls below this.
    pub min: Rate,
    /// The rate at the start, and the one to which it returns under low load.
    pub base: Rate,
    /// The rate never rises above this.
    pub max: Rate,
}

impl Bounds {
    /// Checks the order of the rates.
    ///
    /// # Errors
    /// Names the rate that is out of order, the rule and a remedy.
    pub fn check(&self) -> Result<(), ConfigError> {
        let shown = |rate: Rate| Unit::Rate.show(&Value::Number(rate.bits_per_second()));
        if self.base < self.min {
            return Err(ConfigError::conflict(
                "base",
                shown(self.base),
                format!("at least `min`, {}", shown(self.min)),
                "raise it, or lower `min`",
            ));
        }
        if self.base > self.max {
            return Err(ConfigError::conflict(
                "base",
                shown(self.base),
                format!("at most `max`, {}", shown(self.max)),
                "lower it, or raise `max`",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::registry::ParameterInfo;

    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        Settings::default().check().unwrap();
    }

    fn infos() -> Vec<ParameterInfo> {
        let mut defaults = Settings::default();
        PARAMETERS
            .iter()
            .map(|parameter| parameter.info(&mut defaults))
            .collect()
    }

    #[test]
    fn each_setting_has_a_field_and_a_name_of_its_own() {
        for (number, info) in infos().iter().enumerate() {
            assert!(PARAMETERS[..number].iter().all(|other| other.name() != info.name));
            // A value that no other setting has reaches this one, and only this one.
            let mut changed = Settings::default();
            let value = Value::Number(*info.range.end());
            PARAMETERS[number].field(&mut changed, 0).write(&value);
            let read = |parameter: &Parameter<Settings>, settings: &Settings| {
                parameter.field(&mut settings.clone(), 0).read()
            };
            let different = PARAMETERS
                .iter()
                .filter(|other| read(other, &changed) != read(other, &Settings::default()));
            let names: Vec<&str> = different.map(Parameter::name).collect();
            assert!(names.is_empty() || names == [info.name], "{names:?}");
        }
    }

    #[test]
    fn values_out_of_range_name_rule_and_remedy() {
        for (number, info) in infos().iter().enumerate() {
            let beyond = match info.unit {
                // No value is above 1.
                Unit::Probability if *info.range.end() == ONE => match *info.range.start() {
                    0 => continue,
                    start => start - 1,
                },
                _ => info.range.end() + 1,
            };
            let mut wrong = Settings::default();
            PARAMETERS[number]
                .field(&mut wrong, 0)
                .write(&Value::Number(beyond));
            let error = wrong.check().unwrap_err();
            let refusal = error.refusal().unwrap();
            assert_eq!(refusal.path.parameter, info.name);
            assert!(!refusal.rule.is_empty() && !refusal.remedy.is_empty());
        }
    }

    #[test]
    fn rules_between_settings_are_checked() {
        let broken = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().unwrap_err().parameter().unwrap()
        };
        assert_eq!(broken(|settings| settings.late = 7), "late");
        assert_eq!(broken(|settings| settings.calm = settings.threshold), "calm");
        assert_eq!(broken(|settings| settings.severe = settings.threshold), "severe");
        assert_eq!(
            broken(|settings| settings.least_cut = Probability::ratio(1, 2)),
            "least_cut"
        );
        assert_eq!(
            broken(|settings| settings.idle_load = settings.high_load),
            "idle_load"
        );
    }

    #[test]
    fn the_base_is_within_the_bounds() {
        let bounds = |min, base, max| Bounds {
            min: Rate::mbit(min),
            base: Rate::mbit(base),
            max: Rate::mbit(max),
        };
        bounds(2, 2, 2).check().unwrap();
        for wrong in [bounds(3, 2, 9), bounds(1, 10, 9)] {
            assert_eq!(wrong.check().unwrap_err().parameter(), Some("base"));
        }
    }
}
