//! Table of tc's kinds of qdisc: the discipline, the parameter for each option, and how tc shows it.

mod absent;
mod aqm;
mod cake;
pub(super) mod cbq;
mod hashed;
mod netem;
mod queues;
mod rounds;
mod sharing;
pub(super) mod timed;
mod transmit_queues;

use super::Device;
use super::display::{Amount, Detail, Id, Row, Running, Seen, When};
use crate::script::Word;
use crate::script::notes::Notes;
use std::ops::Range;
use std::slice;

use fairgate::ClassId;
use fairgate_config::language::{Given, Written};
use fairgate_config::{ClassSpec, Spec};
use toml::Spanned;

/// Parameters whose default in tc or in the kernel differs from Fairgate's.
pub(super) type Defaults = fn(&Device) -> Vec<(&'static str, String)>;

/// A kind of qdisc. A new one is an entry in the file of its family and a name in [`KINDS`].
pub(super) struct Kind {
    /// The name in tc.
    name: &'static str,
    /// The name of the discipline.
    pub(super) discipline: &'static str,
    /// The tables of options. Kinds can share a table.
    pub(super) options: &'static [&'static [Opt]],
    /// Its classes and children.
    pub(super) children: Children,
    pub(super) defaults: Defaults,
    /// How tc shows it.
    pub(super) look: Look,
}

/// An option: its name in tc, its parameter, and the notation of its value.
pub(super) struct Opt {
    pub(super) word: &'static str,
    /// The parameter, or several parameters separated by spaces. One after `-` gets its default again.
    pub(super) parameter: &'static str,
    pub(super) reads: Reads,
}

/// The notation of an option's value in tc.
pub(super) enum Reads {
    /// The same as in Fairgate.
    Same,
    /// A time. A plain number is in this unit.
    Time(&'static str),
    /// A time for the first parameter, or a number of packets, `3p`, for the second.
    TimeOrPackets,
    /// A number of bytes for the first parameter, or a negative one, whose amount is for the second.
    SignedBytes,
    /// A value without effect here. The text is a warning: it says what the tree does instead.
    NotedValue(&'static str),
    /// A plain number of hundredths. The parameter is a probability.
    Percent,
    /// A decimal number. The parameter counts 256ths.
    In256ths,
    /// A plain number, optionally with a percent sign.
    MaybePercent,
    /// No value. The option itself sets this value.
    Means(&'static str),
    /// No value. The option can be repeated, and the parameter is the number of times.
    Tally,
    /// All following numbers.
    List,
    /// A number in this range. The kernel rejects others, also where Fairgate accepts them.
    Within(u32, u32),
    /// A number. The kernel lowers a higher one to this one.
    AtMost(u32),
    /// The same as in Fairgate. 0 means the default.
    OrDefault,
    /// A number of bytes. The kernel raises a smaller one to this many.
    AtLeast(u32),
    /// All following numbers of bytes. The kernel raises smaller ones to this many, but rejects 0.
    ListAtLeast(u32),
    /// A class number in hexadecimal. 0 means none.
    Minor,
    /// A mask, in decimal or hexadecimal.
    Mask,
    /// A link layer: `ethernet`, `atm` or `adsl`.
    LinkLayer,
    /// A size, optionally with the size of a cell: `15k/8`. Linux has not used the cell since its tables were
    /// replaced by arithmetic.
    SizeAndCell,
    /// A number from 1 up to this one. The parameter is this number minus the value.
    CountedDown(u8),
    /// The same as in Fairgate. The value must be the same in the qdisc and all its classes.
    Common(&'static str),
    /// Only this value is supported. The second text is the reason.
    Only(&'static str, &'static str),
    /// A number for the kernel's implementation, without effect here.
    Unneeded,
    /// No value, and without effect here. The text is a warning: it says what the tree does instead.
    Noted(&'static str),
    /// No value. It says that hosts behind translated addresses count, which the driver of the tree has to
    /// know. The text is a warning for drivers that do not.
    Nat(&'static str),
    /// Not supported. The text is the reason or the remedy.
    Refused(&'static str),
    /// Values for several parameters, some of which may be left out.
    Several(Several),
    /// A service curve from `m1`, `d`, `m2`, or from `umax`, `dmax`, `rate`, as far as they are given.
    Curve,
}

/// Reads the values after an option.
pub(super) type Several =
    fn(&Word, &mut slice::Iter<'_, Word>) -> Result<Vec<(&'static str, Spanned<Given>)>, Unreadable>;

/// Why the values of an option can't be read.
pub(super) enum Unreadable {
    /// Words are missing.
    Missing,
    /// A word can't be understood.
    Wrong {
        location: Range<usize>,
        message: String,
        help: String,
    },
}

/// The classes of a qdisc and the disciplines in them.
pub(super) enum Children {
    None,
    /// None. The kernel's filters choose flows, but Fairgate's choose something else.
    NoneNorFilters,
    /// One, in class 1. These parameters belong to the default fifo.
    Inner {
        of_default: &'static [&'static str],
    },
    /// One in class 1, or none.
    InnerOrNone,
    /// One in each band. This option is the number of bands.
    Bands {
        option: &'static str,
    },
    /// One in each band. The lists of quanta and the priomap may be incomplete (`ets`).
    SharingBands,
    /// One in each transmit queue of the device, where this kind is the kernel's default. The hash and the
    /// priority choose the queue, and no filter.
    TransmitQueues {
        default: &'static Kind,
        has_traffic_classes: bool,
    },
    /// One in each class that a `tc class` line adds, with these options.
    Classes {
        options: &'static [Opt],
        defaults: Defaults,
    },
    /// One in each leaf of a tree of classes.
    Tree {
        options: &'static [&'static [Opt]],
        defaults: Defaults,
        /// Unclassified packets are sent by the qdisc itself in the kernel, and by an additional class here.
        /// Its settings are copied from these settings of the qdisc.
        unclassified: Option<&'static [(&'static str, &'static str)]>,
        /// Completes the settings of a class.
        settle: fn(&mut OfClass<'_>),
    },
}

/// A class of a tree whose settings are completed.
pub(super) struct OfClass<'a> {
    pub(super) class: &'a Spanned<ClassId>,
    pub(super) is_leaf: bool,
    pub(super) settings: &'a mut Vec<Written>,
    pub(super) notes: &'a mut Notes,
}

/// How tc shows a kind.
pub(super) struct Look {
    /// The options in tc's order. Kinds can share a table.
    pub(super) options: &'static [&'static [Show]],
    /// Adds values that depend on several parameters.
    pub(super) complete: fn(&Seen<'_>, &mut Vec<Detail>),
    pub(super) class_options: &'static [Show],
    pub(super) complete_class: fn(&Seen<'_>, &ClassSpec<'_>, &mut Vec<Detail>),
    /// Whether tc shows the top classes as children of the root instead of the qdisc.
    pub(super) has_classes_at_root: bool,
    /// Whether the qdisc itself is in its list of classes.
    pub(super) is_its_own_class: bool,
    /// The additional lines of statistics of this kind.
    pub(super) statistics: fn(&Running<'_>) -> Vec<Row>,
    /// The additional lines of statistics of a class.
    pub(super) class_statistics: fn(&Running<'_>) -> Vec<Row>,
}

/// How tc shows a parameter.
pub(super) struct Show {
    /// The word in text.
    pub(super) word: &'static str,
    /// The key in JSON. Empty if it is only shown in text.
    pub(super) key: &'static str,
    pub(super) parameter: &'static str,
    /// The format of its number.
    pub(super) form: fn(u64) -> Amount,
    pub(super) when: When,
}

impl Show {
    /// Returns the same, shown only with `-d`.
    const fn in_detail(self) -> Show {
        Show {
            when: When::Detailed,
            ..self
        }
    }
}

impl Kind {
    /// Returns the name in tc.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the tables of options of its classes, if `tc class` adds them.
    pub(super) fn class_options(&self) -> Option<Vec<&'static [Opt]>> {
        match &self.children {
            Children::Classes { options, .. } => Some(vec![options]),
            Children::Tree { options, .. } => Some(options.to_vec()),
            _ => None,
        }
    }

    /// Completes the settings of a class.
    pub(super) fn settle(&self, class: &mut OfClass<'_>) {
        if let Children::Tree { settle, .. } = self.children {
            settle(class);
        }
    }

    /// Returns the kind that the kernel attaches to a class by default.
    pub(super) fn default_child(&self) -> &'static Kind {
        match self.children {
            Children::TransmitQueues { default, .. } => default,
            _ => DEFAULT,
        }
    }

    /// Whether the kernel attaches it to the root only.
    pub(super) fn is_only_root(&self) -> bool {
        matches!(self.name, "mq" | "mqprio" | "noqueue" | "cake_mq")
    }

    /// Whether classes must be added before a qdisc is attached to them.
    pub(super) fn declares_classes(&self) -> bool {
        matches!(self.children, Children::Classes { .. } | Children::Tree { .. })
    }
}

/// Returns the kind that tc calls `name`.
pub(super) fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The kinds whose options tc reads by their beginnings, too.
const ABBREVIATED: [&str; 6] = ["tbf", "htb", "hfsc", "qfq", "netem", "cbq"];

/// Their options that tc reads whole. netem's `rate`, and cbq's bursts, are not among them.
const WHOLE: [&str; 7] = ["rate", "ceil", "mtu", "mpu", "buffer", "maxburst", "minburst"];

/// Returns the option of this name, or for some kinds the first one that begins so.
pub(super) fn option_of<'o>(kind: &str, name: &str, options: &'o [&'o [Opt]]) -> Option<&'o Opt> {
    let all = || options.iter().copied().flatten();
    let begins = |option: &&Opt| {
        let is_whole = match kind {
            "netem" => false,
            "cbq" => WHOLE.contains(&option.word) && !option.word.ends_with("burst"),
            _ => WHOLE.contains(&option.word),
        };
        ABBREVIATED.contains(&kind) && !is_whole && option.word.starts_with(name)
    };
    all()
        .find(|option| option.word == name)
        .or_else(|| all().find(begins))
}

/// Returns the first kind of this discipline.
pub(super) fn of_discipline(discipline: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.discipline == discipline)
}

/// Returns tc's names of all kinds.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// Returns what the kernel says about classes of this tree when they are added.
pub(super) fn remarks(spec: &Spec) -> Vec<(Id, String)> {
    let within = spec.classes().into_iter().filter_map(|class| class.tree);
    sharing::remarks(spec)
        .into_iter()
        .chain(within.flat_map(remarks))
        .collect()
}

/// Returns the files that the options of a qdisc name.
pub(super) fn files(kind: &str, options: &[Vec<Word>]) -> Vec<String> {
    match kind {
        "netem" => options.iter().flat_map(|words| netem::files(words)).collect(),
        _ => Vec::new(),
    }
}

pub(super) use absent::reason;
pub(super) use aqm::parts_of_256;

/// The options of a band of ets.
pub(super) const BAND_OPTIONS: &[Opt] = &[same("quantum", "quantum")];

/// The kind that the kernel attaches to a class of most kinds by default.
pub(super) const DEFAULT: &Kind = &queues::PFIFO;

const KINDS: &[Kind] = &[
    queues::PFIFO,
    queues::BFIFO,
    queues::PFIFO_HEAD_DROP,
    queues::PFIFO_FAST,
    queues::NOQUEUE,
    queues::PRIO,
    queues::TBF,
    rounds::DRR,
    rounds::QFQ,
    rounds::ETS,
    transmit_queues::MQ,
    transmit_queues::MULTIQ,
    transmit_queues::MQPRIO,
    sharing::HTB,
    sharing::HFSC,
    cbq::CBQ,
    rounds::SFQ,
    aqm::RED,
    aqm::GRED,
    aqm::CODEL,
    aqm::PIE,
    aqm::CHOKE,
    aqm::DUALPI2,
    rounds::FQ_PIE,
    rounds::FQ,
    rounds::FQ_CODEL,
    cake::CAKE,
    cake::CAKE_MQ,
    netem::NETEM,
    timed::CBS,
    timed::ETF,
    hashed::SFB,
    hashed::HHF,
];

/// A kind without options.
const PLAIN: Look = Look {
    options: &[],
    complete: |_, _| {},
    class_options: &[],
    complete_class: |_, _, _| {},
    has_classes_at_root: false,
    is_its_own_class: false,
    statistics: |_| Vec::new(),
    class_statistics: |_| Vec::new(),
};

/// Returns a look with options for one parameter each.
const fn look(options: &'static [&'static [Show]]) -> Look {
    Look { options, ..PLAIN }
}

const fn show(parameter: &'static str, form: fn(u64) -> Amount) -> Show {
    show_as(parameter, parameter, form)
}

const fn show_as(word: &'static str, parameter: &'static str, form: fn(u64) -> Amount) -> Show {
    show_keyed(word, word, parameter, form)
}

const fn show_keyed(
    word: &'static str,
    key: &'static str,
    parameter: &'static str,
    form: fn(u64) -> Amount,
) -> Show {
    Show {
        word,
        key,
        parameter,
        form,
        when: When::Always,
    }
}

/// The options of a rate for the link layer.
pub(super) const LINK_LAYER: &[Opt] = &[
    same("overhead", "overhead"),
    same("mpu", "mpu"),
    option("linklayer", "cells", Reads::LinkLayer),
];

/// The options of `stab` for the link layer. Only there a negative overhead is possible.
pub(super) const SIZE_TABLE: &[Opt] = &[
    option("overhead", "overhead stripped", Reads::SignedBytes),
    same("mpu", "mpu"),
    option("linklayer", "cells", Reads::LinkLayer),
];

const fn option(word: &'static str, parameter: &'static str, reads: Reads) -> Opt {
    Opt {
        word,
        parameter,
        reads,
    }
}

const fn same(word: &'static str, parameter: &'static str) -> Opt {
    option(word, parameter, Reads::Same)
}

/// Returns an option for a time. tc reads a time without a unit as microseconds.
const fn time(word: &'static str, parameter: &'static str) -> Opt {
    option(word, parameter, Reads::Time("us"))
}

const fn means(word: &'static str, parameter: &'static str, value: &'static str) -> Opt {
    option(word, parameter, Reads::Means(value))
}

fn none(_: &Device) -> Vec<(&'static str, String)> {
    Vec::new()
}

fn quantum_of_one_frame(device: &Device) -> Vec<(&'static str, String)> {
    vec![("quantum", frame(device).to_string())]
}

fn mtu_of_one_frame(device: &Device) -> Vec<(&'static str, String)> {
    vec![("mtu", frame(device).to_string())]
}

/// Returns the longest frame, in bytes.
pub(super) fn frame(device: &Device) -> u32 {
    device.mtu.saturating_add(device.hard_header_len)
}
