//! Parameters, and what curves can be kept together.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Hfsc, ServiceCurve};
use crate::classify::{Classifier, Templates};
use crate::discipline::Algorithm;
use crate::error::ConfigError;
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Parameter, Placing, Unit, check_ranges};
use crate::sharing::tree::NO_PARENT;
use crate::sharing::{ClassTree, parent};

/// Levels of a tree.
const LEVELS: u8 = 64;
/// The steepest slope, bit/s, and the longest first piece: products of the two fit 64 bits in Linux's units.
const STEEPEST: u64 = 100_000_000_000;
const LONGEST: Duration = Duration::from_secs(60);

/// Parameters of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// The class's number.
    pub minor: u16,
    /// The class above it.
    pub parent: Option<u16>,
    /// What a leaf gets by when, whatever the others do.
    pub rt: Option<ServiceCurve>,
    /// In proportion to which it shares what is left with its siblings.
    pub ls: Option<ServiceCurve>,
    /// What it does not exceed by sharing.
    pub ul: Option<ServiceCurve>,
}

impl ClassConfig {
    /// A class that shares in proportion to `rate`.
    pub const fn of_rate(minor: u16, parent: Option<u16>, rate: Rate) -> ClassConfig {
        ClassConfig {
            minor,
            parent,
            rt: None,
            ls: Some(ServiceCurve::linear(rate.bits_per_second())),
            ul: None,
        }
    }
}

/// Parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Places packets in leaves.
    pub classifier: Classifier,
    /// The classes, by rising number.
    pub classes: Vec<ClassConfig>,
    /// Which of them are given to hosts.
    pub templates: Templates,
    /// The rate of the line, if it is known: only to check that it suffices for all real-time curves together.
    pub rate: Option<Rate>,
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[Parameter::new(
    "rate",
    Unit::Rate,
    1..=u64::MAX,
    "The rate of the line, to check that it suffices for all real-time curves together.",
    |hfsc, _| &mut hfsc.rate,
)];

/// The parameters of a class as users set them.
pub const CLASS_PARAMETERS: &[Parameter<Config>] = &[
    parent(|config, class| &mut config.classes[class].parent),
    Parameter::word(
        "rt",
        Unit::Curve,
        "What the class gets by when, whatever the others do; of a class that has none below it.",
        |hfsc, class| &mut hfsc.classes[class].rt,
    ),
    Parameter::word(
        "ls",
        Unit::Curve,
        "In proportion to which it shares what is left with those beside it; none is not at all.",
        |hfsc, class| &mut hfsc.classes[class].ls,
    ),
    Parameter::word(
        "ul",
        Unit::Curve,
        "What it does not exceed by sharing.",
        |hfsc, class| &mut hfsc.classes[class].ul,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "hfsc",
        family: Family::Sharing,
        summary: "Hierarchical fair service curves: guarantees of delay and rate apart, what is left \
            shared in a tree",
        when: "Where some traffic needs little, but soon (voice at a low rate), and the rest is shared in \
            a tree of classes.",
        children: Children::Tree,
    },
    PARAMETERS,
    |minors| Config {
        classes: minors
            .iter()
            // Where nothing is said all share alike.
            .map(|&minor| ClassConfig::of_rate(minor, None, Rate::mbit(1)))
            .collect(),
        ..Config::default()
    },
    |config, parts| Ok(Box::new(Hfsc::node(config, parts.children)?)),
)
.with_class_parameters(CLASS_PARAMETERS)
.with_placing(Placing::Classes(
    |hfsc| &mut hfsc.classifier,
    |hfsc| &mut hfsc.templates,
))
.with_memory(|_| 13_000);

impl Config {
    pub(super) fn check(&self) -> Result<ClassTree, ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        let shape = self.classes.iter().map(|class| (class.minor, class.parent));
        let tree = ClassTree::new(shape, LEVELS)?;
        tree.check_any()?;
        for (place, class) in self.classes.iter().enumerate() {
            class.check(tree.children(place).is_empty())?;
        }
        self.check_limits(&tree)?;
        tree.check(&self.classifier, &self.templates, Hfsc::NAME)?;
        Ok(tree)
    }

    /// Checks that neither the line nor an upper limit is below what classes are promised.
    fn check_limits(&self, tree: &ClassTree) -> Result<(), ConfigError> {
        let mut promised = vec![Vec::new(); self.classes.len()];
        for &leaf in tree.leaves() {
            let Some(curve) = self.classes[leaf as usize].rt else {
                continue;
            };
            let mut within = leaf;
            while within != NO_PARENT {
                promised[within as usize].push(curve);
                within = tree.parent(within as usize);
            }
        }
        let rule = |exceeded: u64, of: &str| {
            format!("enough for the real-time curves {of}, which want {exceeded}bit/s")
        };
        if let Some(rate) = self.rate {
            let all: Vec<_> = self.classes.iter().filter_map(|class| class.rt).collect();
            if let Some(wanted) = exceeds(&all, &ServiceCurve::linear(rate.bits_per_second())) {
                return Err(ConfigError::conflict(
                    "rate",
                    rate,
                    rule(wanted, "of all classes"),
                    "lower the curves, or leave `rate` out and live with deadlines that are missed",
                ));
            }
        }
        for (class, promised) in self.classes.iter().zip(&promised) {
            let Some(limit) = class.ul else { continue };
            if let Some(wanted) = exceeds(promised, &limit) {
                return Err(ConfigError::class_conflict(
                    class.minor,
                    "ul",
                    show(&limit),
                    rule(wanted, "of the class and of those below it"),
                    "raise the limit, or lower the curves: real-time service does not keep to limits",
                ));
            }
        }
        Ok(())
    }
}

impl ClassConfig {
    fn check(&self, is_leaf: bool) -> Result<(), ConfigError> {
        let refused = |parameter, value: String, rule: &str, remedy: &str| {
            Err(ConfigError::class_conflict(
                self.minor, parameter, value, rule, remedy,
            ))
        };
        for (parameter, curve) in [("rt", self.rt), ("ls", self.ls), ("ul", self.ul)] {
            let Some(curve) = curve else { continue };
            if curve.m1.max(curve.m2) > STEEPEST || curve.d > LONGEST {
                let rule = "at most 100Gbit, its first piece at most a minute";
                return refused(
                    parameter,
                    show(&curve),
                    rule,
                    "lower its slopes, or shorten its first piece",
                );
            }
            let may_end = parameter == "rt" && self.ls.is_some() && curve.m1 >= 8;
            if (curve.m2 < 8 && !may_end) || (curve.m1 < 8 && curve.m1 > 0) || (curve.m2 < 8 && curve.m2 > 0)
            {
                let rule = "a curve that goes on at 8bit or more, or a real-time one with `ls` beside it";
                return refused(
                    parameter,
                    show(&curve),
                    rule,
                    "give it a second slope, or leave it out",
                );
            }
        }
        match (self.rt, self.ls, self.ul) {
            (None, None, _) => refused(
                "ls",
                "none".to_owned(),
                "given where there is no `rt`",
                "give one of the two",
            ),
            (Some(curve), ..) if !is_leaf => refused(
                "rt",
                show(&curve),
                "left out of a class that has classes below it",
                "give it to those: the real-time criterion looks at leaves only",
            ),
            (_, None, Some(curve)) => refused(
                "ul",
                show(&curve),
                "left out where there is no `ls`",
                "it limits what is shared: add `ls`",
            ),
            (_, None, _) if !is_leaf => refused(
                "ls",
                "none".to_owned(),
                "given in a class that has classes below it",
                "those share what it gets",
            ),
            _ => Ok(()),
        }
    }
}

/// A curve as it is written.
pub(super) fn show(curve: &ServiceCurve) -> String {
    match curve.d.is_zero() {
        true => format!("{}bit", curve.m2),
        false => format!("{}bit:{:?}:{}bit", curve.m1, curve.d, curve.m2),
    }
}

/// Whether `curves` together are above `limit` anywhere: then what they want there, bit/s from the start. Between the ends
/// of first pieces all is straight, so it is enough to look there and far behind.
fn exceeds(curves: &[ServiceCurve], limit: &ServiceCurve) -> Option<u64> {
    let last = curves.iter().map(|curve| curve.d).max()?.max(limit.d).as_nanos();
    let ends: BTreeSet<u128> = curves
        .iter()
        .chain([limit])
        .map(|curve| curve.d.as_nanos())
        .collect();
    // So far that a difference of 1 bit/s shows, whatever the first pieces are.
    let far = last.max(1) * u128::from(STEEPEST) * 4;
    ends.into_iter()
        .filter(|&end| end > 0)
        .chain([far])
        .find_map(|nanos| {
            let wanted: u128 = curves.iter().map(|curve| curve.at(nanos)).sum();
            (wanted > limit.at(nanos)).then(|| u64::try_from(wanted / nanos).unwrap_or(u64::MAX))
        })
}
