//! The parameters, and the classes derived from them.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::{Buckets, Htb, TICK};
use crate::classify::{Classifier, Templates};
use crate::discipline::Algorithm;
use crate::error::ConfigError;
use crate::link_layer::LinkLayer;
use crate::queues::link_parameters;
use crate::rate::Rate;
use crate::registry::{
    About, Bucket, Children, Description, Family, Parameter, Placing, Unit, check_class_ranges, check_ranges,
};
use crate::sharing::borrowing::ClassParts;
use crate::sharing::differences::Differences;
use crate::sharing::index::ClassIndex;
use crate::sharing::parent;
use crate::sharing::tree::{ClassTree, LEVELS};

/// The parameters of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// The number of the class.
    pub minor: u32,
    /// The class above this one. `None` for a class at the top.
    pub parent: Option<u32>,
    /// The guaranteed rate, in bytes on the wire.
    pub rate: Rate,
    /// The rate that the class never exceeds. `None` means its rate: the class does not borrow. It may be
    /// below the rate: then the class does not get its rate.
    pub ceil: Option<Rate>,
    /// The bytes that the class may send at once after an idle time without borrowing. `None` means 1 ms at
    /// its rate, but at least 1600 bytes, and at most one minute at its rate.
    pub burst: Option<u32>,
    /// The bytes that the class may send at once, borrowed ones included. `None` means 1 ms at its ceil, with
    /// the same limits.
    pub cburst: Option<u32>,
    /// The rate that takes the place of the ceil while the average rate of the last `burst_time` is below
    /// `burst_threshold`, if it is above the ceil. The three are given together. `None` means no burst.
    pub burst_rate: Option<Rate>,
    /// The average rate from which the ceil applies, below `burst_rate`.
    pub burst_threshold: Option<Rate>,
    /// The time of the average: not that of the burst, which of a class that was idle is `burst_threshold *
    /// burst_time / burst_rate`.
    pub burst_time: Option<Duration>,
    /// The priority of a leaf, 0 to 7. 0 is the highest: it is served first and borrows first. (An inner
    /// class stores it for the time when it is a leaf again, and likewise the quantum.)
    pub prio: u8,
    /// The bytes that a leaf may send in its turn. `None` means its rate in bytes per second divided by
    /// `r2q`, but at least 1000 and at most 200,000.
    pub quantum: Option<u32>,
    /// How the rate and the ceil count the length of a packet.
    pub link_layer: LinkLayer,
}

impl ClassConfig {
    /// Creates a class with the guaranteed rate `rate` and tc's defaults.
    pub const fn of_rate(minor: u32, parent: Option<u32>, rate: Rate) -> ClassConfig {
        ClassConfig {
            minor,
            parent,
            rate,
            ceil: None,
            burst: None,
            cburst: None,
            burst_rate: None,
            burst_threshold: None,
            burst_time: None,
            prio: 0,
            quantum: None,
            link_layer: LinkLayer::NONE,
        }
    }

    /// Returns the ceiling, or the rate if none is set.
    pub fn ceil(&self) -> Rate {
        self.ceil.unwrap_or(self.rate)
    }

    /// Returns the rate that the class never exceeds, bursts for a time included.
    pub fn most(&self) -> Rate {
        self.burst_rate
            .map_or(self.ceil(), |burst| burst.max(self.ceil()))
    }

    /// Returns `burst` and `cburst`, or their defaults.
    pub fn bursts(&self) -> (u32, u32) {
        let burst = self.burst.unwrap_or_else(|| default_burst(self.rate));
        (burst, self.cburst_at(self.ceil()))
    }

    /// Returns `cburst`, or its default for this rate in the place of the ceil.
    pub(super) fn cburst_at(&self, rate: Rate) -> u32 {
        self.cburst.unwrap_or_else(|| default_burst(rate))
    }

    /// Returns the maximum number of tokens for the rate and for the ceil, in ticks.
    pub(super) fn depths(&self) -> (u32, u32) {
        let (burst, cburst) = self.bursts();
        let fits = |ticks: u64| u32::try_from(ticks).expect("checked to fit 32 bits");
        (fits(depth(self.rate, burst)), fits(depth(self.ceil(), cburst)))
    }

    /// Returns `quantum`, or its default.
    pub fn quantum(&self, r2q: u32) -> u32 {
        let by_rate = bytes_per_second(self.rate) / u64::from(r2q);
        self.quantum.unwrap_or(by_rate.clamp(1000, 200_000) as u32)
    }
}

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Chooses the leaf of a packet.
    pub classifier: Classifier,
    /// The classes, by ascending number.
    pub classes: Vec<ClassConfig>,
    /// The leaves that are assigned to hosts.
    pub templates: Templates,
    /// The divisor that turns the rate of a class into its default quantum.
    pub r2q: u32,
    /// The maximum number of packets in the direct queue, which holds unclassified packets.
    pub direct_qlen: u32,
}

/// `r2q` as in tc. The direct queue is as long as in Linux on an Ethernet device.
impl Default for Config {
    fn default() -> Config {
        Config {
            classifier: Classifier::default(),
            classes: Vec::new(),
            templates: Templates::default(),
            r2q: 10,
            direct_qlen: 1000,
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "r2q",
        Unit::Count("times"),
        1..=u32::MAX as u64,
        "Divides the rate of a class, in bytes per second: the default of its quantum.",
        |htb, _| &mut htb.r2q,
    ),
    Parameter::new(
        "direct_qlen",
        Unit::Count("packets"),
        0..=u32::MAX as u64,
        "The maximum number of unclassified packets queued. They are sent first, and not shaped.",
        |htb, _| &mut htb.direct_qlen,
    ),
];

/// The parameters of a class as users set them.
pub const CLASS_PARAMETERS: &[Parameter<Config>] = &[
    parent(|config, class| &mut config.classes[class].parent),
    Parameter::required(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The guaranteed rate of the class.",
        |htb, class| &mut htb.classes[class].rate,
    ),
    Parameter::new(
        "ceil",
        Unit::Rate,
        1..=u64::MAX,
        "The rate that the class never exceeds, borrowing included. By default its rate; below it, the \
         limit.",
        |htb, class| &mut htb.classes[class].ceil,
    ),
    Parameter::shaping(
        Bucket {
            rate: "rate",
            is_for_whole_packets: false,
        },
        Parameter::new(
            "burst",
            Unit::Bytes,
            1..=u32::MAX as u64,
            "Bytes that the class may send at once after an idle time. By default 1 ms at its rate, at least \
                1600b.",
            |htb, class| &mut htb.classes[class].burst,
        ),
    ),
    Parameter::shaping(
        Bucket {
            rate: "ceil",
            is_for_whole_packets: false,
        },
        Parameter::new(
            "cburst",
            Unit::Bytes,
            1..=u32::MAX as u64,
            "Bytes that the class may send at once, borrowing included. By default 1 ms at its ceil, at \
             least 1600b.",
            |htb, class| &mut htb.classes[class].cburst,
        ),
    ),
    Parameter::new(
        "burst_rate",
        Unit::Rate,
        1..=u64::MAX,
        "In the place of the ceil while the average of the last burst_time is below burst_threshold.",
        |htb, class| &mut htb.classes[class].burst_rate,
    ),
    Parameter::new(
        "burst_threshold",
        Unit::Rate,
        1..=u64::MAX,
        "The average rate from which the ceil applies again, below burst_rate.",
        |htb, class| &mut htb.classes[class].burst_threshold,
    ),
    Parameter::new(
        "burst_time",
        Unit::Time,
        16_000_000..=3_600_000_000_000,
        "The time of the average, not that of the burst: burst_threshold * burst_time / burst_rate.",
        |htb, class| &mut htb.classes[class].burst_time,
    ),
    Parameter::new(
        "prio",
        Unit::Count("priority"),
        0..=7,
        "Who is served first and borrows first, 0 before 7. Used for leaves only.",
        |htb, class| &mut htb.classes[class].prio,
    ),
    Parameter::new(
        "quantum",
        Unit::Bytes,
        1..=1 << 30,
        "Bytes that a leaf may send in its turn. By default its rate divided by r2q, 1000b to 200000b.",
        |htb, class| &mut htb.classes[class].quantum,
    ),
    link_parameters::stripped(|htb, class| &mut htb.classes[class].link_layer.stripped),
    link_parameters::overhead(|htb, class| &mut htb.classes[class].link_layer.overhead),
    link_parameters::mpu(|htb, class| &mut htb.classes[class].link_layer.mpu),
    link_parameters::cells(|htb, class| &mut htb.classes[class].link_layer.cells),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "htb",
        family: Family::Sharing,
        summary: "Hierarchical token bucket: classes in a tree, each with a guaranteed rate, that borrow \
            from above up to a ceil",
        when: "To share an access line between users or kinds of traffic, each with a guaranteed rate and a \
            share of the rest.",
        children: Children::TreeOrNone,
    },
    PARAMETERS,
    |minors| Config {
        classes: minors
            .iter()
            // The rate is required, so it is always overwritten.
            .map(|&minor| ClassConfig::of_rate(minor, None, Rate::mbit(1)))
            .collect(),
        ..Config::default()
    },
    |config, parts| Ok(Box::new(Htb::node(config, parts.children)?)),
)
.with_class_parameters(CLASS_PARAMETERS)
.with_placing(Placing::Classes(
    |htb| &mut htb.classifier,
    |htb| &mut htb.templates,
))
.with_memory(|_| 93_000)
.with_warnings(Config::warnings);

impl Config {
    pub(super) fn check(&self) -> Result<ClassTree, ConfigError> {
        self.check_ranges()?;
        let shape = self.classes.iter().map(|class| (class.minor, class.parent));
        let tree = ClassTree::new(shape, LEVELS as u8)?;
        self.classes.iter().try_for_each(check_class)?;
        // As in Linux, a default may be set before there is any class. Until then all packets go to the
        // direct queue.
        let names_none = self.classifier.filters.is_empty() && self.templates.list.is_empty();
        if !(self.classes.is_empty() && names_none) {
            tree.check(&self.classifier, &self.templates, Htb::NAME)?;
        }
        Ok(tree)
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        if self.classes.is_empty() {
            let nothing = "`htb` has no classes yet: it shapes nothing, and all packets go straight through";
            return vec![nothing.to_owned()];
        }
        let limited = self.classes.iter().filter(|class| class.most() < class.rate);
        let limited = limited.map(|class| {
            format!(
                "class {} is limited to its ceil of {}, which is below its rate of {}",
                class.minor,
                class.ceil(),
                class.rate
            )
        });
        let without_burst = self.classes.iter().filter_map(|class| {
            let burst = class.burst_rate.filter(|burst| *burst <= class.ceil())?;
            Some(format!(
                "class {} has no bursts: its burst_rate of {burst} is not above its ceil of {}",
                class.minor,
                class.ceil()
            ))
        });
        limited.chain(without_burst).collect()
    }

    fn check_ranges(&self) -> Result<(), ConfigError> {
        let mut config = self.clone();
        check_ranges(PARAMETERS, &mut config)?;
        for (index, class) in self.classes.iter().enumerate() {
            check_class_ranges(CLASS_PARAMETERS, &mut config, index, class.minor)?;
        }
        Ok(())
    }

    /// Compares the classes with those of a tree with the parameters `old`.
    pub(super) fn differences(&self, old: &Config) -> Differences {
        let place = |class: &ClassConfig| (class.minor, class.parent, class.prio);
        let is_other_divisor = self.r2q != old.r2q;
        Differences::between(
            (&self.classes, &self.templates),
            (&old.classes, &old.templates),
            |is, was| place(is) == place(was),
            |is, was| is != was || is_other_divisor,
        )
    }

    /// Returns all classes, with full buckets.
    pub(super) fn parts(&self, tree: &ClassTree) -> Vec<ClassParts<Buckets>> {
        let class = |(index, settings): (ClassIndex, &ClassConfig)| {
            let (depth, ceil_depth) = settings.depths();
            ClassParts {
                meter: Buckets {
                    empty_at: 0u64.wrapping_sub(u64::from(depth) << TICK),
                    ceil_empty_at: 0u64.wrapping_sub(u64::from(ceil_depth) << TICK),
                    charged_at: 0,
                    rate: settings.rate.meter(),
                    ceil: settings.ceil().meter(),
                    link: Some(settings.link_layer).filter(|link| *link != LinkLayer::NONE),
                    depth,
                    ceil_depth,
                },
                level: match tree.is_leaf(index) {
                    true => 0,
                    false => LEVELS as u8 - 1 - tree.depth(index),
                },
                priority: settings.prio,
                quantum: settings.quantum(self.r2q) as i32,
            }
        };
        tree.classes().zip(&self.classes).map(class).collect()
    }
}

/// Checks the buckets. As in Linux, their depths in ticks have 32 bits, and there is no other rule: the ceil
/// may be below the rate, and the rate above that of the parent.
fn check_class(class: &ClassConfig) -> Result<(), ConfigError> {
    for (parameter, rate, burst) in [
        ("burst", class.rate, class.burst),
        ("cburst", class.ceil(), class.cburst),
    ] {
        if let Some(burst) = burst
            && depth(rate, burst) > u32::MAX.into()
        {
            return Err(ConfigError::class_conflict(
                class.minor,
                parameter,
                burst.to_string(),
                format!("at most 274 s at {rate}"),
                "set it to what may arrive at once, such as 1 ms at the rate",
            ));
        }
    }
    BurstSettings::of(class).map(drop)
}

fn bytes_per_second(rate: Rate) -> u64 {
    (rate.bits_per_second() / 8).max(1)
}

/// Returns the bytes of 1 ms, but at least 1600, tc's default on a machine with fine timers, and at most
/// those of a minute.
fn default_burst(rate: Rate) -> u32 {
    let in_a_second = bytes_per_second(rate);
    let burst = (in_a_second / 1000).max(1600).min(in_a_second.saturating_mul(60));
    burst.min(u32::MAX.into()) as u32
}

/// The burst for a time of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BurstSettings {
    pub(super) rate: Rate,
    pub(super) threshold: Rate,
    pub(super) time: Duration,
}

impl BurstSettings {
    /// Returns the burst of a class, if it has one.
    ///
    /// # Errors
    /// If one of the three settings is missing, or if the burst would never end.
    pub(super) fn of(class: &ClassConfig) -> Result<Option<BurstSettings>, ConfigError> {
        let conflict = |parameter, value, rule: &str, remedy: &str| {
            Err(ConfigError::class_conflict(
                class.minor,
                parameter,
                value,
                rule,
                remedy,
            ))
        };
        let given = (class.burst_rate, class.burst_threshold, class.burst_time);
        let (Some(rate), Some(threshold), Some(time)) = given else {
            let first = match given {
                (None, None, None) => return Ok(None),
                (Some(_), ..) => "burst_rate",
                (None, Some(_), _) => "burst_threshold",
                _ => "burst_time",
            };
            let rule =
                "given together with the other two of `burst_rate`, `burst_threshold` and `burst_time`";
            return conflict(first, "given alone", rule, "add them, or leave it out");
        };
        if threshold >= rate {
            return Err(ConfigError::class_conflict(
                class.minor,
                "burst_threshold",
                threshold,
                format!("below the burst_rate, {rate}"),
                "lower it: the burst would never end; without a limit, raise the ceil",
            ));
        }
        Ok(Some(BurstSettings {
            rate,
            threshold,
            time,
        }))
    }
}

/// Returns the depth of a bucket of `burst` bytes in ticks of 64 ns. As in tc, it is first rounded down to
/// microseconds.
pub(super) fn depth(rate: Rate, burst: u32) -> u64 {
    let micros = u64::from(burst) * 1_000_000 / bytes_per_second(rate);
    (micros * 1000) >> TICK
}
