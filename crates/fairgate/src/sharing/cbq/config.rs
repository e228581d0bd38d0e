//! Parameters, and the estimators that follow from them.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Cbq, Estimator, GAIN};
use crate::classify::{Classifier, Templates};
use crate::discipline::Algorithm;
use crate::error::ConfigError;
use crate::rate::Rate;
use crate::registry::{
    About, Children, Description, Family, Parameter, Placing, Unit, check_class_ranges, check_ranges,
};
use crate::sharing::borrowing::{ClassParts, LEVELS, PRIORITIES};
use crate::sharing::tree::NO_PARENT;
use crate::sharing::{ClassTree, parent};

/// Parameters of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// The class's number.
    pub minor: u16,
    /// The class above it, from which it may borrow.
    pub parent: Option<u16>,
    /// Its part of the line, in bytes on the wire.
    pub rate: Rate,
    /// The priority of a leaf, 0 to 7: 7 is the highest.
    pub priority: u8,
    /// Whether it may use what its parent doesn't. One that may not is suspended when it is over its rate.
    pub borrow: bool,
    /// Its part of a round beside leaves of the same priority; `None` is its rate.
    pub weight: Option<Rate>,
    /// Packets that it may send at once after an idle time; `None` is 16, or 4 if a packet takes longer than 10 ms at its
    /// rate.
    pub maxburst: Option<u16>,
    /// Packets that it may send at once after it was suspended; `None` is 2.
    pub minburst: Option<u16>,
}

impl ClassConfig {
    /// A class of `rate` that borrows, with ALTQ's priority and bursts.
    pub const fn of_rate(minor: u16, parent: Option<u16>, rate: Rate) -> ClassConfig {
        ClassConfig {
            minor,
            parent,
            rate,
            priority: 1,
            borrow: true,
            weight: None,
            maxburst: None,
            minburst: None,
        }
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
    /// The rate of the line: how long packets take on it tells how idle a class was.
    pub bandwidth: Rate,
    /// The length of an average packet, bytes: what bursts are counted in.
    pub packet: u32,
    /// The length of the longest packet, bytes.
    pub max_packet: u32,
}

impl Config {
    /// Over a line of `bandwidth`, with packets of Ethernet's.
    pub fn of_bandwidth(bandwidth: Rate) -> Config {
        Config {
            classifier: Classifier::default(),
            classes: Vec::new(),
            templates: Templates::default(),
            bandwidth,
            packet: 1514,
            max_packet: 1514,
        }
    }

    pub(super) fn check(&self) -> Result<ClassTree, ConfigError> {
        let mut config = self.clone();
        check_ranges(PARAMETERS, &mut config)?;
        for (index, class) in self.classes.iter().enumerate() {
            check_class_ranges(CLASS_PARAMETERS, &mut config, index, class.minor)?;
        }
        if self.packet > self.max_packet {
            return Err(ConfigError::conflict(
                "packet",
                self.packet,
                format!("at most {}, the longest packet", self.max_packet),
                "lower it, or raise `max_packet`",
            ));
        }
        let shape = self.classes.iter().map(|class| (class.minor, class.parent));
        let tree = ClassTree::new(shape, LEVELS as u8)?;
        tree.check_any()?;
        for (place, class) in self.classes.iter().enumerate() {
            let above = match tree.parent(place) {
                NO_PARENT => (self.bandwidth, "the bandwidth of the line"),
                parent => (self.classes[parent as usize].rate, "the rate of its parent"),
            };
            class.check(above)?;
        }
        tree.check(&self.classifier, &self.templates, Cbq::NAME)?;
        Ok(tree)
    }

    /// All classes, idle for long.
    pub(super) fn parts(&self, tree: &ClassTree) -> Vec<ClassParts<Estimator>> {
        let least = self.least_weights(tree);
        let class = |(place, settings): (usize, &ClassConfig)| ClassParts {
            meter: self.estimator(settings, tree.parent(place) != NO_PARENT),
            level: tree.height(place),
            priority: PRIORITIES as u8 - 1 - settings.priority,
            quantum: self.quantum(settings, least[usize::from(settings.priority)]),
        };
        self.classes.iter().enumerate().map(class).collect()
    }

    /// Of each priority the lowest weight of its leaves.
    fn least_weights(&self, tree: &ClassTree) -> [u128; PRIORITIES] {
        let mut least = [u128::MAX; PRIORITIES];
        for &leaf in tree.leaves() {
            let class = &self.classes[leaf as usize];
            let of_priority = &mut least[usize::from(class.priority)];
            *of_priority = class.weight().min(*of_priority);
        }
        least
    }

    /// A leaf's part of a round, in which the leaf of its priority's lowest weight, `least`, sends one packet.
    fn quantum(&self, class: &ClassConfig, least: u128) -> i32 {
        let quantum = u128::from(self.max_packet) * class.weight() / least;
        quantum.min(1 << 30) as i32
    }

    /// ALTQ's rules: how far idle time may add up, so that the average reaches 0 after `maxburst` packets in a row; how far
    /// debt may; and how long a class is suspended, so that it may then send `minburst` packets.
    fn estimator(&self, class: &ClassConfig, has_parent: bool) -> Estimator {
        let nanos = |rate: Rate, bytes: u32| rate.transmission_nanos(bytes.into()) as f64;
        let on_line = nanos(self.bandwidth, self.packet);
        let at_rate = nanos(class.rate, self.packet);
        let usual = if at_rate > 10_000_000.0 { 4 } else { 16 };
        let maxburst = class.maxburst.unwrap_or(usual);
        let minburst = class.minburst.unwrap_or(2).min(maxburst);
        let forgets = 1.0 - 1.0 / f64::from(1 << GAIN);
        let kept = |packets: u16| power(forgets, packets);
        let (of_most, of_least) = (kept(maxburst), kept(minburst - 1));
        let most = (at_rate - on_line) * (1.0 - of_most) / of_most;
        let most = most.max(on_line * (1.0 - forgets));
        let off = at_rate * (1.0 + (1.0 - of_least) / of_least / (1.0 - forgets));
        let scaled = |nanos: f64| (nanos * f64::from(1 << GAIN)).min(1e18) as i64;
        Estimator {
            average: scaled(most),
            most: scaled(most),
            least: -scaled(nanos(class.rate, self.max_packet)),
            next: 0,
            last: 0,
            rate: class.rate.meter(),
            suspension: match class.borrow && has_parent {
                true => None,
                false => Some(off.min(1e18) as i64),
            },
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::required(
        "bandwidth",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of the line, by which idle time is measured.",
        |cbq, _| &mut cbq.bandwidth,
    ),
    Parameter::new(
        "packet",
        Unit::Bytes,
        1..=1 << 20,
        "The length of an average packet, in which bursts are counted.",
        |cbq, _| &mut cbq.packet,
    ),
    Parameter::new(
        "max_packet",
        Unit::Bytes,
        1..=1 << 20,
        "The length of the longest packet.",
        |cbq, _| &mut cbq.max_packet,
    ),
];

/// The parameters of a class as users set them.
pub const CLASS_PARAMETERS: &[Parameter<Config>] = &[
    parent(|config, class| &mut config.classes[class].parent),
    Parameter::required(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The class's part of the line; at most its parent's.",
        |cbq, class| &mut cbq.classes[class].rate,
    ),
    Parameter::new(
        "priority",
        Unit::Count("priority"),
        0..=7,
        "Who goes first, 7 before 0; of a class that has none below it.",
        |cbq, class| &mut cbq.classes[class].priority,
    ),
    Parameter::word(
        "borrow",
        Unit::Flag,
        "Whether it may use what its parent does not, as classes do by default; else it is suspended when \
            it is over its rate.",
        |cbq, class| &mut cbq.classes[class].borrow,
    ),
    Parameter::new(
        "weight",
        Unit::Rate,
        1..=u64::MAX,
        "Its part of a round beside classes of the same priority; none is its rate.",
        |cbq, class| &mut cbq.classes[class].weight,
    ),
    Parameter::new(
        "maxburst",
        Unit::Count("packets"),
        1..=1000,
        "Packets that it may send in a row after an idle time; none is 16, or 4 of a slow class.",
        |cbq, class| &mut cbq.classes[class].maxburst,
    ),
    Parameter::new(
        "minburst",
        Unit::Count("packets"),
        1..=1000,
        "Packets that it may send in a row after it was suspended; none is 2.",
        |cbq, class| &mut cbq.classes[class].minburst,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "cbq",
        family: Family::Sharing,
        summary: "Class-based queueing as in ALTQ: an estimator of idle time, borrowing from above, \
            priorities",
        when: "To do what ALTQ did, and to compare; htb keeps rates more exactly, hfsc delays.",
        children: Children::Tree,
    },
    PARAMETERS,
    |minors| Config {
        classes: minors
            .iter()
            // Required, and so always overwritten; the bandwidth likewise.
            .map(|&minor| ClassConfig::of_rate(minor, None, Rate::mbit(1)))
            .collect(),
        ..Config::of_bandwidth(Rate::mbit(1))
    },
    |config, parts| Ok(Box::new(Cbq::node(config, parts.children)?)),
)
.with_class_parameters(CLASS_PARAMETERS)
.with_placing(Placing::Classes(
    |cbq| &mut cbq.classifier,
    |cbq| &mut cbq.templates,
))
.with_memory(|_| 93_000);

/// By squaring, because `f64::powi` is in the standard library only.
fn power(mut base: f64, mut exponent: u16) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

impl ClassConfig {
    fn weight(&self) -> u128 {
        self.weight.unwrap_or(self.rate).bits_per_second().into()
    }

    fn check(&self, (most, whose): (Rate, &str)) -> Result<(), ConfigError> {
        let refused = |parameter, value: String, rule: &str, remedy: &str| {
            Err(ConfigError::class_conflict(
                self.minor, parameter, value, rule, remedy,
            ))
        };
        if self.rate > most {
            let rule = format!("at most {most}, {whose}");
            return refused("rate", self.rate.to_string(), &rule, "lower it, or raise that");
        }
        let bursts = [("maxburst", self.maxburst), ("minburst", self.minburst)];
        match bursts {
            [(_, Some(most)), (_, Some(least))] if least > most => refused(
                "minburst",
                least.to_string(),
                &format!("at most {most}, the longest burst"),
                "lower it, or raise `maxburst`",
            ),
            _ => Ok(()),
        }
    }
}
