//! The parameters, and the check that all curves can be kept.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Hfsc, ServiceCurve};
use crate::classify::{Classifier, Templates};
use crate::discipline::Algorithm;
use crate::error::ConfigError;
use crate::link_layer::LinkLayer;
use crate::queues::link_parameters;
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Parameter, Placing, Unit, check_ranges};
use crate::sharing::differences::Differences;
use crate::sharing::index::ClassIndex;
use crate::sharing::parent;
use crate::sharing::tree::ClassTree;

/// The maximum number of levels of a tree.
const LEVELS: u8 = 64;
/// The steepest slope, bit/s, and the longest first piece. Their product fits 64 bits in Linux's units.
const STEEPEST: u64 = ServiceCurve::STEEPEST;
const LONGEST: Duration = ServiceCurve::LONGEST;

/// The parameters of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// The number of the class.
    pub minor: u32,
    /// The class above this one. `None` for a class at the top.
    pub parent: Option<u32>,
    /// The real-time curve: how many bytes a leaf gets by which time, whatever the other classes do. An inner
    /// class keeps it for the time when it is a leaf again.
    pub rt: Option<ServiceCurve>,
    /// The link-sharing curve: the class shares the rest with its siblings in proportion to it.
    pub ls: Option<ServiceCurve>,
    /// The upper limit: by sharing, the class does not get more.
    pub ul: Option<ServiceCurve>,
}

impl ClassConfig {
    /// Creates a class that shares in proportion to `rate`.
    pub const fn of_rate(minor: u32, parent: Option<u32>, rate: Rate) -> ClassConfig {
        ClassConfig {
            minor,
            parent,
            rt: None,
            ls: Some(ServiceCurve::linear(rate.bits_per_second())),
            ul: None,
        }
    }
}

/// The parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Chooses the leaf of a packet.
    pub classifier: Classifier,
    /// The classes, by ascending number.
    pub classes: Vec<ClassConfig>,
    /// The leaves that are assigned to hosts.
    pub templates: Templates,
    /// The rate of the link, if it is known. It is used only to check that all real-time curves can be kept.
    pub rate: Option<Rate>,
    /// What the link makes of a packet's length. The curves are kept in these bytes.
    pub link_layer: LinkLayer,
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of the link, used only to check that all real-time curves can be kept.",
        |hfsc, _| &mut hfsc.rate,
    ),
    link_parameters::stripped(|hfsc, _| &mut hfsc.link_layer.stripped),
    link_parameters::overhead(|hfsc, _| &mut hfsc.link_layer.overhead),
    link_parameters::mpu(|hfsc, _| &mut hfsc.link_layer.mpu),
    link_parameters::cells(|hfsc, _| &mut hfsc.link_layer.cells),
];

/// The parameters of a class as users set them.
pub const CLASS_PARAMETERS: &[Parameter<Config>] = &[
    parent(|config, class| &mut config.classes[class].parent),
    Parameter::word(
        "rt",
        Unit::Curve,
        "Real time: the bytes that a leaf gets by which time, whatever the other classes do. Used for \
         leaves only.",
        |hfsc, class| &mut hfsc.classes[class].rt,
    ),
    Parameter::word(
        "ls",
        Unit::Curve,
        "Link sharing: the share of the rest among siblings. A class without it does not share.",
        |hfsc, class| &mut hfsc.classes[class].ls,
    ),
    Parameter::word(
        "ul",
        Unit::Curve,
        "Upper limit: by sharing, the class does not get more.",
        |hfsc, class| &mut hfsc.classes[class].ul,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "hfsc",
        family: Family::Sharing,
        summary: "Hierarchical fair service curves: independent guarantees of delay and rate, the rest \
            shared in a tree",
        when: "If some traffic needs a low delay at a low rate, such as voice, and the rest is shared in a \
            tree of classes.",
        children: Children::TreeOrNone,
    },
    PARAMETERS,
    |minors| Config {
        classes: minors
            .iter()
            // By default all classes have equal shares.
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
.with_memory(|_| 13_000)
.with_warnings(Config::warnings);

impl Config {
    /// Compares the classes with those of a tree with the parameters `old`.
    pub(super) fn differences(&self, old: &Config) -> Differences {
        // A class without a curve is not among those that share by it, or wait by it.
        let place = |class: &ClassConfig| (class.minor, class.parent, class.ls.is_some(), class.rt.is_some());
        Differences::between(
            (&self.classes, &self.templates),
            (&old.classes, &old.templates),
            |is, was| place(is) == place(was),
            |is, was| is != was,
        )
    }

    pub(super) fn check(&self) -> Result<ClassTree, ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        let shape = self.classes.iter().map(|class| (class.minor, class.parent));
        let tree = ClassTree::new(shape, LEVELS)?;
        for (class, index) in self.classes.iter().zip(tree.classes()) {
            class.check(tree.is_leaf(index))?;
        }
        self.check_rate(&tree)?;
        // As in Linux, a default may be set before there is any class.
        let names_none = self.classifier.filters.is_empty() && self.templates.list.is_empty();
        if !(self.classes.is_empty() && names_none) {
            tree.check(&self.classifier, &self.templates, Hfsc::NAME)?;
        }
        Ok(tree)
    }

    /// Checks that the link is not below the real-time curves.
    fn check_rate(&self, tree: &ClassTree) -> Result<(), ConfigError> {
        let Some(rate) = self.rate else { return Ok(()) };
        let all: Vec<_> = tree
            .leaves()
            .iter()
            .filter_map(|leaf| self.classes[leaf.index()].rt)
            .collect();
        match ServiceCurve::linear(rate.bits_per_second()).exceeded_by(&all) {
            None => Ok(()),
            Some(needed) => Err(ConfigError::conflict(
                "rate",
                rate,
                format!("enough for the real-time curves of all classes, which need {needed}bit/s"),
                "lower the curves, or leave `rate` out: then deadlines can be missed",
            )),
        }
    }

    /// Reports curves without effect, and upper limits below real-time curves.
    pub(super) fn warnings(&self) -> Vec<String> {
        if self.classes.is_empty() {
            return vec!["`hfsc` has no classes yet: all packets are dropped".to_owned()];
        }
        let shape = self.classes.iter().map(|class| (class.minor, class.parent));
        let Ok(tree) = ClassTree::new(shape, LEVELS) else {
            return Vec::new();
        };
        let mut guaranteed = vec![Vec::new(); self.classes.len()];
        for &leaf in tree.leaves() {
            let Some(curve) = self.classes[leaf.index()].rt else {
                continue;
            };
            for class in tree.path(leaf) {
                guaranteed[class.index()].push(curve);
            }
        }
        let without_effect = |(class, index): (&ClassConfig, ClassIndex)| {
            (class.rt.is_some() && !tree.is_leaf(index)).then(|| {
                format!(
                    "class {} has classes below it, so its real-time curve `rt` has no effect",
                    class.minor
                )
            })
        };
        let too_low = |(class, curves): (&ClassConfig, &Vec<ServiceCurve>)| {
            let limit = class.ul?;
            let needed = limit.exceeded_by(curves)?;
            Some(format!(
                "the upper limit of class {}, {}, is below the real-time curves there, which need \
                 {needed}bit/s: real-time service is not limited",
                class.minor,
                show(&limit)
            ))
        };
        let classes = self.classes.iter();
        classes
            .clone()
            .zip(tree.classes())
            .filter_map(without_effect)
            .chain(classes.zip(&guaranteed).filter_map(too_low))
            .collect()
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
                let rule = "at most 100Gbit, with a first piece of at most 60s";
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
                let rule = "a curve with a second slope of at least 8bit (for `rt` with `ls` also 0)";
                return refused(
                    parameter,
                    show(&curve),
                    rule,
                    "set slopes of 0 or at least 8bit, or leave the curve out",
                );
            }
        }
        match (self.rt, self.ls, self.ul) {
            (None, None, _) => refused(
                "ls",
                "none".to_owned(),
                "given if there is no `rt`",
                "set one of the two",
            ),
            (_, None, Some(curve)) => refused(
                "ul",
                show(&curve),
                "left out if there is no `ls`",
                "add `ls`: the limit applies to sharing",
            ),
            (_, None, _) if !is_leaf => refused(
                "ls",
                "none".to_owned(),
                "given for a class that has classes below it",
                "set it: the classes below share what this class gets",
            ),
            _ => Ok(()),
        }
    }
}

/// Returns a curve in the syntax of configurations.
pub(super) fn show(curve: &ServiceCurve) -> String {
    match curve.d.is_zero() {
        true => format!("{}bit", curve.m2),
        false => format!("{}bit:{:?}:{}bit", curve.m1, curve.d, curve.m2),
    }
}
