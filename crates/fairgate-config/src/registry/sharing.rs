//! Link sharing: trees of classes.

use fairgate::Rate;
use fairgate::sharing::htb::{self, Htb};

use super::{About, Children, Description, Family, Parameter, Placing};
use crate::value::Unit;

/// The parameter of a class that names the class above it.
macro_rules! parent {
    ($config:ident) => {
        Parameter::new(
            super::PARENT,
            Unit::Count("class"),
            1..=0xffff,
            "The class above this one; none is a class at the top.",
            |settings: &mut $config::Config, class| &mut settings.classes[class].parent,
        )
    };
}

pub(super) static HTB: Description<htb::Config, htb::Config> = Description {
    about: About {
        name: "htb",
        family: Family::Sharing,
        summary: "Hierarchical token bucket: classes in a tree, each sure of a rate, borrowing from above up to a ceil",
        when: "To share an access line between users or kinds of traffic, each with a rate of its own and what is left.",
        children: Children::Tree,
    },
    parameters: &[
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
    ],
    class_parameters: &[
        parent!(htb),
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
    ],
    placing: Placing::Classifier(|htb| &mut htb.classifier, |_| u16::MAX as u32),
    start: |minors| htb::Config {
        classes: minors
            .iter()
            // Required, and so always overwritten.
            .map(|&minor| htb::ClassConfig::of_rate(minor, None, Rate::mbit(1)))
            .collect(),
        ..htb::Config::default()
    },
    config: Ok,
    build: |config, parts| Ok(Box::new(Htb::node(config, parts.children)?)),
};
