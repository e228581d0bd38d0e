//! Parameters, and the classes that follow from them.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Buckets, Htb, LONGEST, TICK};
use crate::classify::{Classifier, Templates};
use crate::discipline::Algorithm;
use crate::error::ConfigError;
use crate::rate::Rate;
use crate::registry::{
    About, Children, Description, Family, Parameter, Placing, Unit, check_class_ranges, check_ranges,
};
use crate::sharing::borrowing::{ClassParts, LEVELS};
use crate::sharing::tree::NO_PARENT;
use crate::sharing::{ClassTree, parent};

/// Parameters of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// The class's number.
    pub minor: u16,
    /// The class above it.
    pub parent: Option<u16>,
    /// What it is sure of, in bytes on the wire.
    pub rate: Rate,
    /// What it never exceeds; `None` is its rate: it does not borrow.
    pub ceil: Option<Rate>,
    /// Bytes that it may send at once at its own cost after an idle time; `None` is 1 ms at its rate, at least 1600, at most a minute.
    pub burst: Option<u32>,
    /// Bytes that it may send at once in all; `None` is 1 ms at its ceil, at least 1600.
    pub cburst: Option<u32>,
    /// The priority of a leaf, 0 to 7: who borrows, and whom a row serves first. 0 is the highest. (An inner class keeps it
    /// for when it has no classes below it any more; likewise the quantum.)
    pub prio: u8,
    /// Bytes that a leaf may send in its turn; `None` is its rate in bytes a second divided by `r2q`, within 1000 to 200,000.
    pub quantum: Option<u32>,
}

impl ClassConfig {
    /// A class that is sure of `rate`, the rest as in tc if nothing else is said.
    pub const fn of_rate(minor: u16, parent: Option<u16>, rate: Rate) -> ClassConfig {
        ClassConfig {
            minor,
            parent,
            rate,
            ceil: None,
            burst: None,
            cburst: None,
            prio: 0,
            quantum: None,
        }
    }

    /// The ceiling, given or the rate.
    pub fn ceil(&self) -> Rate {
        self.ceil.unwrap_or(self.rate)
    }

    /// `burst` and `cburst`, given or derived.
    pub fn bursts(&self) -> (u32, u32) {
        let of = |rate: Rate, burst: Option<u32>| burst.unwrap_or_else(|| default_burst(rate));
        (of(self.rate, self.burst), of(self.ceil(), self.cburst))
    }

    /// Most tokens for the rate and for the ceil, in ticks.
    pub(super) fn depths(&self) -> (u32, u32) {
        let (burst, cburst) = self.bursts();
        let fits = |ticks: u64| u32::try_from(ticks).expect("checked to be at most a minute");
        (fits(depth(self.rate, burst)), fits(depth(self.ceil(), cburst)))
    }

    /// `quantum`, given or derived.
    pub fn quantum(&self, r2q: u32) -> u32 {
        let by_rate = bytes_per_second(self.rate) / u64::from(r2q);
        self.quantum.unwrap_or(by_rate.clamp(1000, 200_000) as u32)
    }
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Places packets in leaves.
    pub classifier: Classifier,
    /// The classes, by rising number.
    pub classes: Vec<ClassConfig>,
    /// Which of them are given to hosts.
    pub templates: Templates,
    /// What a class's rate is divided by for its quantum.
    pub r2q: u32,
    /// Most packets in the direct queue, of those that nothing places.
    pub direct_qlen: u32,
}

/// tc's r2q; a direct queue as long as Linux's on an Ethernet device.
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
];

/// The parameters of a class as users set them.
pub const CLASS_PARAMETERS: &[Parameter<Config>] = &[
    parent(|config, class| &mut config.classes[class].parent),
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
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "htb",
        family: Family::Sharing,
        summary: "Hierarchical token bucket: classes in a tree, each sure of a rate, borrowing from above \
            up to a ceil",
        when: "To share an access line between users or kinds of traffic, each with a rate of its own and \
            what is left.",
        children: Children::TreeOrNone,
    },
    PARAMETERS,
    |minors| Config {
        classes: minors
            .iter()
            // Required, and so always overwritten.
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
.with_memory(|_| 93_000);

impl Config {
    pub(super) fn check(&self) -> Result<ClassTree, ConfigError> {
        self.check_ranges()?;
        let shape = self.classes.iter().map(|class| (class.minor, class.parent));
        let tree = ClassTree::new(shape, LEVELS as u8)?;
        for (place, class) in self.classes.iter().enumerate() {
            let parent = tree.parent(place);
            let above = (parent != NO_PARENT).then(|| &self.classes[parent as usize]);
            check_class(class, above)?;
        }
        // As in Linux a default may be named before there is any class: until then all packets go straight through.
        let names_none = self.classifier.filters.is_empty() && self.templates.list.is_empty();
        if !(self.classes.is_empty() && names_none) {
            tree.check(&self.classifier, &self.templates, Htb::NAME)?;
        }
        Ok(tree)
    }

    fn check_ranges(&self) -> Result<(), ConfigError> {
        let mut config = self.clone();
        check_ranges(PARAMETERS, &mut config)?;
        for (index, class) in self.classes.iter().enumerate() {
            check_class_ranges(CLASS_PARAMETERS, &mut config, index, class.minor)?;
        }
        Ok(())
    }

    /// All classes, with full buckets.
    pub(super) fn parts(&self, tree: &ClassTree) -> Vec<ClassParts<Buckets>> {
        let class = |(place, settings): (usize, &ClassConfig)| {
            let (depth, ceil_depth) = settings.depths();
            ClassParts {
                meter: Buckets {
                    empty_at: 0u64.wrapping_sub(u64::from(depth) << TICK),
                    ceil_empty_at: 0u64.wrapping_sub(u64::from(ceil_depth) << TICK),
                    charged_at: 0,
                    rate: settings.rate.meter(),
                    ceil: settings.ceil().meter(),
                    depth,
                    ceil_depth,
                },
                level: match tree.is_leaf(place) {
                    true => 0,
                    false => LEVELS as u8 - 1 - tree.depth(place),
                },
                priority: settings.prio,
                quantum: settings.quantum(self.r2q) as i32,
            }
        };
        self.classes.iter().enumerate().map(class).collect()
    }
}

fn check_class(class: &ClassConfig, parent: Option<&ClassConfig>) -> Result<(), ConfigError> {
    let refused = |parameter, value: String, rule: String, remedy| {
        Err(ConfigError::class_conflict(
            class.minor,
            parameter,
            value,
            rule,
            remedy,
        ))
    };
    if class.ceil() < class.rate {
        let rule = format!("at least {}, the rate of the class", class.rate);
        return refused(
            "ceil",
            class.ceil().to_string(),
            rule,
            "raise it, or leave it out: the class then does not borrow",
        );
    }
    if let Some(parent) = parent.filter(|parent| parent.rate < class.rate) {
        let rule = format!("at most {}, the rate of its parent", parent.rate);
        return refused(
            "rate",
            class.rate.to_string(),
            rule,
            "lower it, or raise the parent's: what a class is sure of comes out of its parent's rate",
        );
    }
    for (parameter, rate, burst) in [
        ("burst", class.rate, class.burst),
        ("cburst", class.ceil(), class.cburst),
    ] {
        if let Some(burst) = burst
            && depth(rate, burst) << TICK > LONGEST as u64
        {
            let rule = format!("at most a minute at {rate}");
            return refused(
                parameter,
                burst.to_string(),
                rule,
                "give room for what may come at once, like 1 ms at the rate",
            );
        }
    }
    Ok(())
}

fn bytes_per_second(rate: Rate) -> u64 {
    (rate.bits_per_second() / 8).max(1)
}

/// 1 ms, or tc's default on a machine with fine timers, 1600 bytes; but no more than a minute.
fn default_burst(rate: Rate) -> u32 {
    let in_a_second = bytes_per_second(rate);
    let burst = (in_a_second / 1000).max(1600).min(in_a_second.saturating_mul(60));
    burst.min(u32::MAX.into()) as u32
}

/// What a bucket of `burst` bytes holds, in ticks of 64 ns: as tc computes it, in whole microseconds first.
fn depth(rate: Rate, burst: u32) -> u64 {
    let micros = u64::from(burst) * 1_000_000 / bytes_per_second(rate);
    (micros * 1000) >> TICK
}
