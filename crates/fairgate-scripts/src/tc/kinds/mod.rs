//! Which discipline each kind of qdisc is here, which parameter each of its options, and how tc shows it.

mod aqm;
mod cake;
mod cbq;
mod queues;
mod rounds;
mod sharing;

use super::Device;
use super::show::{Amount, Detail, Row, Running, Seen, When};
use fairgate_config::ClassSpec;

/// Parameters whose default in tc or in the kernel is not ours.
pub(super) type Defaults = fn(&Device) -> Vec<(&'static str, String)>;

/// A kind of qdisc. A further one is an entry in its family's file, named in [`KINDS`].
pub(super) struct Kind {
    /// tc's name.
    name: &'static str,
    /// Ours.
    pub(super) discipline: &'static str,
    /// Tables, of which several kinds may have one.
    pub(super) options: &'static [&'static [Opt]],
    /// What its classes hold and how they come to be.
    pub(super) children: Children,
    pub(super) defaults: Defaults,
    /// How tc shows it.
    pub(super) look: Look,
}

/// An option: its name in tc, the parameter that it sets, and how.
pub(super) struct Opt {
    pub(super) word: &'static str,
    /// Or several, apart by blanks.
    pub(super) parameter: &'static str,
    pub(super) reads: Reads,
}

/// How the value of an option is written.
pub(super) enum Reads {
    /// As ours.
    Same,
    /// A time; a plain number is in this unit.
    Time(&'static str),
    /// A time as tc reads one, for the first parameter, or a number of packets, `3p`, for the second.
    TimeOrPackets,
    /// A plain number of hundredths; ours is a probability.
    Percent,
    /// A decimal number; ours counts 256ths.
    In256ths,
    /// A plain number, perhaps with a percent sign.
    MaybePercent,
    /// No value follows: the option itself means this one.
    Means(&'static str),
    /// As many numbers as there are.
    Numbers(usize),
    /// All numbers that follow.
    List,
    /// The number of a class, in hexadecimal; 0 is none.
    Minor,
    /// A mask, perhaps in hexadecimal.
    Mask,
    /// Counted down from this number, which comes to be 0; from 1 on.
    CountedDown(u8),
    /// As ours, of a quantity that is written the same wherever it stands in the qdisc and its classes.
    Common(&'static str),
    /// Nothing but this value, and why.
    Only(&'static str, &'static str),
    /// A number that tells the kernel how to go about it, and changes nothing here.
    Unneeded,
    /// Nothing that there is here, and why, or what to do instead.
    Refused(&'static str),
    /// A service curve of `m1`, `d`, `m2`, or of `umax`, `dmax`, `rate`, as far as they are given.
    Curve,
}

/// The disciplines inside.
pub(super) enum Children {
    None,
    /// None, and what filters choose in the kernel, flows, is not what they choose here.
    NoneNorFilters,
    /// One, in class 1; these parameters are of the fifo that is there when nothing is attached.
    Inner {
        of_default: &'static [&'static str],
    },
    /// One in each band, and as many bands as this option says.
    Bands {
        option: &'static str,
    },
    /// The same, but the strict bands and the lists of quanta and of the priomap may leave bands out (`ets`).
    SharingBands,
    /// One in each class that a `tc class` line adds, with these options.
    Classes {
        options: &'static [Opt],
        defaults: Defaults,
    },
    /// The same in a tree: a class may be below another, and those that have none below them hold one.
    Tree {
        options: &'static [&'static [Opt]],
        defaults: Defaults,
        /// Packets that nothing places go out by the qdisc itself: by a class of its own here, and these settings of that are those
        /// of the qdisc.
        unplaced: Option<&'static [(&'static str, &'static str)]>,
    },
}

/// How tc shows a kind, with `-s` and with `-d`.
pub(super) struct Look {
    /// In tc's order; tables, of which several kinds may have one.
    pub(super) options: &'static [&'static [Show]],
    /// Adds what follows from several parameters.
    pub(super) complete: fn(&Seen<'_>, &mut Vec<Detail>),
    pub(super) class_options: &'static [Show],
    pub(super) complete_class: fn(&Seen<'_>, &ClassSpec<'_>, &mut Vec<Detail>),
    /// Whether classes with none above them are the root's children, and not the qdisc's.
    pub(super) has_classes_at_root: bool,
    /// Whether the qdisc is among its classes.
    pub(super) is_its_own_class: bool,
    /// The lines of statistics that only this kind has.
    pub(super) statistics: fn(&Running<'_>) -> Vec<Row>,
    /// Likewise of a class.
    pub(super) class_statistics: fn(&Running<'_>) -> Vec<Row>,
}

/// A parameter as tc shows it.
pub(super) struct Show {
    /// In text.
    pub(super) word: &'static str,
    /// In JSON; empty for what is only in text.
    pub(super) key: &'static str,
    pub(super) parameter: &'static str,
    /// The form of its number.
    pub(super) form: fn(u64) -> Amount,
    pub(super) when: When,
}

impl Show {
    /// Only shown with `-d`.
    const fn in_detail(self) -> Show {
        Show {
            when: When::Detailed,
            ..self
        }
    }

    /// Only shown without `-d`, with which it has another form.
    const fn in_brief(self) -> Show {
        Show {
            when: When::Brief,
            ..self
        }
    }
}

impl Kind {
    /// tc's name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether classes must be added before something is attached to them.
    pub(super) fn declares_classes(&self) -> bool {
        matches!(self.children, Children::Classes { .. } | Children::Tree { .. })
    }
}

/// The kind that tc calls `name`.
pub(super) fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The kind that is `discipline` here; the first, where there are several.
pub(super) fn of_discipline(discipline: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.discipline == discipline)
}

/// tc's names of all kinds.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// The kind that the kernel attaches where a script attaches none.
pub(super) const DEFAULT: &Kind = &queues::PFIFO;

const KINDS: &[Kind] = &[
    queues::PFIFO,
    queues::BFIFO,
    queues::PFIFO_HEAD_DROP,
    queues::PFIFO_FAST,
    queues::PRIO,
    queues::TBF,
    rounds::DRR,
    rounds::QFQ,
    rounds::ETS,
    sharing::HTB,
    sharing::HFSC,
    cbq::CBQ,
    rounds::SFQ,
    aqm::RED,
    aqm::CODEL,
    aqm::PIE,
    aqm::CHOKE,
    aqm::DUALPI2,
    rounds::FQ_PIE,
    rounds::FQ,
    rounds::FQ_CODEL,
    cake::CAKE,
];

/// Without options.
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

/// The options that stand for one parameter each.
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

/// tc reads a time without a unit as microseconds.
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

/// The longest frame, bytes.
pub(super) fn frame(device: &Device) -> u32 {
    device.mtu.saturating_add(device.hard_header_len)
}
