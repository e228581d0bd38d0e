//! Link sharing.

use fairgate::sharing::hfsc::{self, ServiceCurve};
use fairgate::sharing::htb;

use super::{Amount, Children, ClassSpec, Kind, Look, PLAIN, Reads, Seen, none, option, same, show};
use crate::tc::display::{Detail, When, in_cells, link_layer, plain, row, size};

pub(super) const HTB: Kind = Kind {
    name: "htb",
    discipline: "htb",
    options: &[&[
        option("default", "default", Reads::Minor),
        same("r2q", "r2q"),
        same("direct_qlen", "direct_qlen"),
    ]],
    children: Children::Tree {
        options: &[&[
            same("rate", "rate"),
            same("ceil", "ceil"),
            same("burst", "burst"),
            same("buffer", "burst"),
            same("maxburst", "burst"),
            same("cburst", "cburst"),
            same("cbuffer", "cburst"),
            same("cmaxburst", "cburst"),
            same("prio", "prio"),
            same("quantum", "quantum"),
        ]],
        unclassified: None,
        // tc's defaults on a machine with high-resolution timers, at rates below 8 Gbit/s.
        defaults: |_| vec![("burst", "1600".to_owned()), ("cburst", "1600".to_owned())],
    },
    defaults: |device| vec![("direct_qlen", device.txqueuelen.max(2).to_string())],
    look: Look {
        options: &[&[show("r2q", plain), show("direct_qlen", plain)]],
        complete: |seen, details| {
            let default = seen
                .default_class()
                .map_or("0".to_owned(), |minor| format!("{minor:#x}"));
            let between = [
                Detail::new("default", Amount::Text(default)),
                Detail::new("direct_packets_stat", Amount::Variable("direct_packets")),
                Detail::new("ver", Amount::Text(VERSION.to_owned())).when(When::Detailed),
            ];
            details.splice(1..1, between);
        },
        complete_class: complete_class_of_htb,
        class_statistics: |class| {
            if class.number("lent_packets").is_none() {
                return Vec::new();
            }
            let count = |word, key, name| Some(Detail::keyed(word, key, plain(class.number(name)?)));
            let tokens = |word, key| {
                let ticks = Amount::Signed(class.integer(key)? >> TICK);
                Some(Detail::keyed(word, key, ticks))
            };
            vec![
                row(
                    " ",
                    [
                        count("lended:", "lended", "lent_packets"),
                        count("borrowed:", "borrowed", "borrowed_packets"),
                        // Linux no longer counts packets that are too long for a rate table.
                        Some(Detail::keyed("giants:", "giants", plain(0))),
                    ],
                ),
                row(" ", [tokens("tokens:", "tokens"), tokens("ctokens:", "ctokens")]),
            ]
        },
        has_classes_at_root: true,
        ..PLAIN
    },
};

pub(super) const HFSC: Kind = Kind {
    name: "hfsc",
    discipline: "hfsc",
    options: &[&[option("default", "default", Reads::Minor)]],
    children: Children::Tree {
        options: &[&[
            option("sc", "rt ls", Reads::Curve),
            option("rt", "rt", Reads::Curve),
            option("ls", "ls", Reads::Curve),
            option("ul", "ul", Reads::Curve),
        ]],
        unclassified: None,
        defaults: |_| vec![("ls", "none".to_owned())],
    },
    defaults: none,
    look: Look {
        complete: |seen, details| {
            let default = seen
                .default_class()
                .map(|minor| Amount::Text(format!("{minor:x}")));
            details.extend(default.map(|default| Detail::new("default", default)));
        },
        complete_class: complete_class_of_hfsc,
        class_statistics: |class| {
            // The qdisc itself, or a class of a host.
            if class.number("period").is_none() {
                return Vec::new();
            }
            let bytes = |name: &'static str| {
                let got = class.number(name).filter(|bytes| *bytes > 0)?;
                Some(Detail::new(name, Amount::Text(format!("{got} bytes"))))
            };
            vec![row(
                " ",
                [
                    class.variable("period", "period"),
                    bytes("work"),
                    bytes("rtwork"),
                    class.variable("level", "level"),
                ],
            )]
        },
        is_its_own_class: true,
        ..PLAIN
    },
};

/// The number of low bits of a time in nanoseconds that Linux's tick leaves out. tc shows tokens in ticks.
const TICK: u32 = 6;

/// The version of the algorithm in Linux.
const VERSION: &str = "3.17";

/// Adds a class's values with their defaults. tc shows priority and quantum only for leaves.
fn complete_class_of_htb(seen: &Seen<'_>, class: &ClassSpec<'_>, details: &mut Vec<Detail>) {
    let config = seen.config::<htb::Config>();
    let Some(settings) = config.classes.iter().find(|other| other.minor == class.minor) else {
        return;
    };
    let is_leaf = class.tree.is_some();
    if is_leaf {
        details.push(Detail::new("prio", plain(settings.prio.into())));
        let quantum = plain(settings.quantum(config.r2q).into());
        details.push(Detail::new("quantum", quantum).when(When::Detailed));
    }
    let (burst, cburst) = settings.bursts();
    details.push(Detail::new("rate", Amount::Rate(settings.rate)));
    details.push(Detail::new("ceil", Amount::Rate(settings.ceil())));
    details.push(link_layer());
    for (word, bytes) in [("burst", burst.into()), ("cburst", cburst.into())] {
        details.push(Detail::new(word, size(bytes)).when(When::Brief));
        details.extend(in_cells(word, bytes));
    }
    let level = match is_leaf {
        true => 0,
        false => HIGHEST_LEVEL.saturating_sub(depth(&config, settings)),
    };
    details.push(Detail::new("level", plain(level)).when(When::Detailed));
}

/// The level of a class directly below an htb, if it has classes below it.
const HIGHEST_LEVEL: u64 = 7;

/// Returns the number of classes above this one.
fn depth(config: &htb::Config, class: &htb::ClassConfig) -> u64 {
    let above = |class: &&htb::ClassConfig| {
        config
            .classes
            .iter()
            .find(|other| Some(other.minor) == class.parent)
    };
    std::iter::successors(Some(class), above).count() as u64 - 1
}

/// Adds the curves of a class. tc shows one curve, `sc`, if the real-time curve and the link-sharing curve
/// are equal.
fn complete_class_of_hfsc(seen: &Seen<'_>, class: &ClassSpec<'_>, details: &mut Vec<Detail>) {
    let config = seen.config::<hfsc::Config>();
    let Some(settings) = config.classes.iter().find(|other| other.minor == class.minor) else {
        return;
    };
    let curves = match settings.rt.is_some() && settings.rt == settings.ls {
        true => [("sc", settings.rt), ("ul", settings.ul), ("", None)],
        false => [("rt", settings.rt), ("ls", settings.ls), ("ul", settings.ul)],
    };
    let shown =
        |(word, curve): (&'static str, Option<ServiceCurve>)| Some(Detail::new(word, Amount::Curve(curve?)));
    details.extend(curves.into_iter().filter_map(shown));
}
