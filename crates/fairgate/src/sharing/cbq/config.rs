//! The parameters, and the estimators derived from them.

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
use crate::sharing::borrowing::{ClassParts, PRIORITIES};
use crate::sharing::differences::Differences;
use crate::sharing::index::ClassIndex;
use crate::sharing::parent;
use crate::sharing::tree::{ClassTree, LEVELS};

/// The parameters of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// The number of the class.
    pub minor: u32,
    /// The class above this one, from which it may borrow. `None` for a class at the top.
    pub parent: Option<u32>,
    /// The rate of the class, in bytes on the wire.
    pub rate: Rate,
    /// The priority of a leaf, 0 to 7. 7 is the highest.
    pub priority: u8,
    /// Whether the class may use what its parent does not. If not, it is suspended when it is over its rate.
    pub borrow: bool,
    /// The share of a leaf among the leaves of the same priority. `None` means its rate.
    pub weight: Option<Rate>,
    /// The packets that the class may send at once after an idle time. `None` means 16, or 4 if a packet
    /// takes longer than 10 ms at its rate.
    pub maxburst: Option<u16>,
    /// The packets that the class may send at once after it was suspended. `None` means 2.
    pub minburst: Option<u16>,
}

impl ClassConfig {
    /// Creates a class of `rate` that borrows, with ALTQ's priority and bursts.
    pub const fn of_rate(minor: u32, parent: Option<u32>, rate: Rate) -> ClassConfig {
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

/// The rule that decides which classes may lend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkSharing {
    /// No class lends while a class with packets is within its rate (the formal rule of section 3 of Floyd
    /// and Van Jacobson 1995). The lowest level that can send is served.
    #[default]
    Formal,
    /// Top-level link sharing, as ALTQ has it: an approximation by the arrivals and departures of single
    /// packets. Up to the cut-off level the highest priority is served, whether it borrows or not.
    TopLevel,
}

crate::words!(LinkSharing {
    "formal" => LinkSharing::Formal,
    "top-level" => LinkSharing::TopLevel,
});

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Chooses the leaf of a packet.
    pub classifier: Classifier,
    /// The classes, by ascending number.
    pub classes: Vec<ClassConfig>,
    /// The leaves that are assigned to hosts.
    pub templates: Templates,
    /// The rate of the link. The estimators compute from it how long a packet takes.
    pub bandwidth: Rate,
    /// The length of an average packet, bytes. Bursts are counted in such packets.
    pub packet: u32,
    /// The length of the longest packet, bytes.
    pub max_packet: u32,
    /// The rule that decides which classes may lend.
    pub link_sharing: LinkSharing,
}

impl Config {
    /// Creates parameters for a link of `bandwidth` with the packet lengths of Ethernet, without classes.
    pub fn of_bandwidth(bandwidth: Rate) -> Config {
        Config {
            classifier: Classifier::default(),
            classes: Vec::new(),
            templates: Templates::default(),
            bandwidth,
            packet: 1514,
            max_packet: 1514,
            link_sharing: LinkSharing::default(),
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
        for (class, index) in self.classes.iter().zip(tree.classes()) {
            let above = match tree.parent(index) {
                None => (self.bandwidth, "the bandwidth of the link"),
                Some(parent) => (self.classes[parent.index()].rate, "the rate of its parent"),
            };
            class.check(above)?;
        }
        tree.check(&self.classifier, &self.templates, Cbq::NAME)?;
        Ok(tree)
    }

    /// Compares the classes with those of a tree with the parameters `old`. A weight counts in proportion to
    /// the others of its priority, so all of them differ if one does.
    pub(super) fn differences(&self, old: &Config) -> Differences {
        let place = |class: &ClassConfig| (class.minor, class.parent, class.priority);
        let link = |config: &Config| (config.bandwidth, config.packet, config.max_packet);
        let is_other_link = link(self) != link(old);
        let mut is_other_share = [false; PRIORITIES];
        for (is, was) in self.classes.iter().zip(&old.classes) {
            is_other_share[usize::from(is.priority)] |= is.weight() != was.weight();
        }
        Differences::between(
            (&self.classes, &self.templates),
            (&old.classes, &old.templates),
            |is, was| place(is) == place(was),
            |is, was| is_other_link || is_other_share[usize::from(is.priority)] || is != was,
        )
    }

    /// Returns all classes as they are after a long idle time.
    pub(super) fn parts(&self, tree: &ClassTree) -> Vec<ClassParts<Estimator>> {
        let least = self.least_weights(tree);
        let class = |(index, settings): (ClassIndex, &ClassConfig)| ClassParts {
            meter: self.estimator(settings, tree.parent(index).is_some()),
            level: tree.height(index),
            priority: PRIORITIES as u8 - 1 - settings.priority,
            quantum: self.quantum(settings, least[usize::from(settings.priority)]),
        };
        tree.classes().zip(&self.classes).map(class).collect()
    }

    /// Returns the lowest weight of the leaves of each priority.
    fn least_weights(&self, tree: &ClassTree) -> [u128; PRIORITIES] {
        let mut least = [u128::MAX; PRIORITIES];
        for &leaf in tree.leaves() {
            let class = &self.classes[leaf.index()];
            let of_priority = &mut least[usize::from(class.priority)];
            *of_priority = class.weight().min(*of_priority);
        }
        least
    }

    /// Returns the bytes that a leaf sends in a round. The leaf with the lowest weight of its priority,
    /// `least`, sends one packet.
    fn quantum(&self, class: &ClassConfig, least: u128) -> i32 {
        let quantum = u128::from(self.max_packet) * class.weight() / least;
        quantum.min(1 << 30) as i32
    }

    /// Returns the estimator of a class by ALTQ's rules. The highest average is chosen so that it reaches 0
    /// after `maxburst` packets in a row, the suspension so that the class may then send `minburst` packets.
    /// The lowest average is the time of the longest packet.
    fn estimator(&self, class: &ClassConfig, has_parent: bool) -> Estimator {
        let nanos = |rate: Rate, bytes: u32| rate.transmission_nanos(bytes.into()) as f64;
        let on_link = nanos(self.bandwidth, self.packet);
        let at_rate = nanos(class.rate, self.packet);
        let usual = if at_rate > 10_000_000.0 { 4 } else { 16 };
        let maxburst = class.maxburst.unwrap_or(usual);
        let minburst = class.minburst.unwrap_or(2).min(maxburst);
        let forgets = 1.0 - 1.0 / f64::from(1 << GAIN);
        let kept = |packets: u16| power(forgets, packets);
        let (of_most, of_least) = (kept(maxburst), kept(minburst - 1));
        let most = (at_rate - on_link) * (1.0 - of_most) / of_most;
        let most = most.max(on_link * (1.0 - forgets));
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
        "The rate of the link, by which idle time is measured.",
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
    Parameter::word(
        "link_sharing",
        Unit::Choice(LinkSharing::WORDS),
        "Which classes may lend: formal, none while a class with packets is within its rate; or top-level, \
         ALTQ's approximation, by which a high priority borrows first.",
        |cbq, _| &mut cbq.link_sharing,
    ),
];

/// The parameters of a class as users set them.
pub const CLASS_PARAMETERS: &[Parameter<Config>] = &[
    parent(|config, class| &mut config.classes[class].parent),
    Parameter::required(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of the class, at most the rate of its parent.",
        |cbq, class| &mut cbq.classes[class].rate,
    ),
    Parameter::new(
        "priority",
        Unit::Count("priority"),
        0..=7,
        "Who is served first, 7 before 0. Used for leaves only.",
        |cbq, class| &mut cbq.classes[class].priority,
    ),
    Parameter::word(
        "borrow",
        Unit::Flag,
        "Whether the class may use what its parent does not, as classes do by default. If not, it is \
            suspended when it is over its rate.",
        |cbq, class| &mut cbq.classes[class].borrow,
    ),
    Parameter::new(
        "weight",
        Unit::Rate,
        1..=u64::MAX,
        "The share of a leaf among the leaves of the same priority. By default its rate.",
        |cbq, class| &mut cbq.classes[class].weight,
    ),
    Parameter::new(
        "maxburst",
        Unit::Count("packets"),
        1..=1000,
        "Packets that the class may send in a row after an idle time. By default 16, or 4 for a slow class.",
        |cbq, class| &mut cbq.classes[class].maxburst,
    ),
    Parameter::new(
        "minburst",
        Unit::Count("packets"),
        1..=1000,
        "Packets that the class may send in a row after it was suspended. By default 2.",
        |cbq, class| &mut cbq.classes[class].minburst,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "cbq",
        family: Family::Sharing,
        summary: "Class-based queueing: ALTQ's estimator of idle time, borrowing from above by the formal \
            rule, priorities",
        when: "To replace ALTQ; with link_sharing = \"top-level\" also by its rule, under which a high \
            priority takes more than its share. htb keeps rates more exactly, hfsc keeps delays.",
        children: Children::Tree,
    },
    PARAMETERS,
    |minors| Config {
        classes: minors
            .iter()
            // The rates and the bandwidth are required, so they are always overwritten.
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

/// Returns `base` to the power of `exponent`, by squaring: `f64::powi` is in the standard library only.
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
            return refused(
                "rate",
                self.rate.to_string(),
                &rule,
                "lower the rate, or raise the limit",
            );
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
