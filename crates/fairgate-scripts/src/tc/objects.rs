//! The qdiscs, classes and filters of a device.

use fairgate::ClassId;
use fairgate_config::language::{Problems, Written};
use toml::Spanned;

use super::command::{FilterHead, read_class_id};
use super::estimator::Estimated;
use super::hook;
use crate::script::Word;

/// A qdisc.
pub(super) struct Qdisc {
    pub(super) parent: Option<ClassId>,
    pub(super) handle: Option<u16>,
    pub(super) kind: Word,
    /// The options of the line that added it, and of each line that changed it.
    pub(super) options: Vec<Vec<Word>>,
    /// What `stab` says about the link layer, as options of a rate.
    pub(super) stab: Vec<Word>,
    pub(super) estimator: Option<Estimated>,
}

impl Qdisc {
    /// Whether it is `ingress` or `clsact`.
    pub(super) fn is_hook(&self) -> bool {
        self.parent == Some(hook::PLACE)
    }

    /// Returns what a filter of this hook is attached to: `ARRIVING` or `LEAVING`. `ingress` has only
    /// filters of arriving packets, and `clsact` needs to know (`clsact_tcf_block` in sch_ingress.c).
    pub(super) fn filters_at(&self, parent: ClassId) -> Result<ClassId, &'static str> {
        match (self.kind.get_ref().as_str(), parent) {
            ("clsact", hook::ARRIVING | hook::LEAVING) => Ok(parent),
            ("clsact", _) => Err("a filter of `clsact` is attached to `ingress` or to `egress`"),
            (_, hook::LEAVING) => Err("`ingress` has no filters for packets that leave, but `clsact` has"),
            _ => Ok(hook::ARRIVING),
        }
    }

    /// Returns the estimator of a qdisc as a setting. Reports one where the kernel attaches none
    /// (`qdisc_create`).
    pub(super) fn estimated(&self, problems: &mut Problems) -> Option<Written> {
        let estimated = self.estimator.as_ref()?;
        let kind = self.kind.get_ref();
        if matches!(kind.as_str(), "mq" | "mqprio") {
            let message =
                format!("`{kind}` has no estimator: the kernel attaches none to a root of many queues");
            let help = "leave it out, or give it to the qdisc of each queue";
            problems.add(estimated.word.span(), message, "not here", help);
            return None;
        }
        Some(estimated.setting())
    }
}

/// A class.
pub(super) struct Class {
    /// The qdisc, or the class, that the class is in.
    pub(super) parent: ClassId,
    pub(super) id: Spanned<ClassId>,
    pub(super) kind: Word,
    pub(super) options: Vec<Vec<Word>>,
    pub(super) estimator: Option<Estimated>,
    /// Whether its line has a mistake, so that the rest of the line is unknown.
    pub(super) is_broken: bool,
}

/// A filter.
pub(super) struct Filter {
    /// The qdisc or the class that it is attached to, or the side of a hook; `None` for the root.
    pub(super) parent: Option<ClassId>,
    pub(super) preference: u16,
    pub(super) head: FilterHead,
    pub(super) kind: Word,
    pub(super) options: Vec<Word>,
}

impl Filter {
    /// Returns the chain that it belongs to.
    pub(super) fn chain(&self) -> u32 {
        self.head.chain.as_ref().map_or(0, |chain| *chain.get_ref())
    }

    /// Whether it belongs to this chain of a qdisc, a class or a hook.
    pub(super) fn is_of(&self, parent: Option<ClassId>, chain: u32) -> bool {
        self.parent == parent && self.chain() == chain
    }

    /// Whether it names this class as its target.
    pub(super) fn leads_to(&self, class: ClassId) -> bool {
        let is_target = |pair: &[Word]| {
            let [option, target] = pair else { return false };
            matches!(option.get_ref().as_str(), "flowid" | "classid") && read_class_id(target) == Some(class)
        };
        self.options.windows(2).any(is_target)
    }
}
