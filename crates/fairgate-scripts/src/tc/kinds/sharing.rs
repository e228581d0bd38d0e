//! Link sharing.

use fairgate::LinkLayer;
use fairgate::sharing::hfsc::{self, ServiceCurve};
use fairgate::sharing::htb;
use fairgate_config::language::Given;
use fairgate_config::{Spec, units};
use std::cmp::Ordering;
use toml::Spanned;

use super::{
    Amount, Children, ClassSpec, Kind, LINK_LAYER, Look, OfClass, PLAIN, Reads, Seen, none, option, same,
    show,
};
use crate::tc::display::{Detail, Id, When, bucket, in_cells, link_layer, plain, row, size};
use crate::tc::sharing::take;

pub(super) const HTB: Kind = Kind {
    name: "htb",
    discipline: "htb",
    options: &[&[
        option("default", "default", Reads::Minor),
        same("r2q", "r2q"),
        same("direct_qlen", "direct_qlen"),
        option(
            "offload",
            "",
            Reads::Refused("no network card runs the tree: leave the word out"),
        ),
        option(
            "debug",
            "",
            Reads::Refused("Linux reads it without any effect: leave it and its number out"),
        ),
    ]],
    children: Children::Tree {
        options: &[
            &[
                same("rate", "rate"),
                same("ceil", "ceil"),
                option("burst", "burst", Reads::SizeAndCell),
                option("buffer", "burst", Reads::SizeAndCell),
                option("maxburst", "burst", Reads::SizeAndCell),
                option("cburst", "cburst", Reads::SizeAndCell),
                option("cbuffer", "cburst", Reads::SizeAndCell),
                option("cmaxburst", "cburst", Reads::SizeAndCell),
                option("prio", "prio", Reads::AtMost(7)),
                option("quantum", "quantum", Reads::OrDefault),
                same("mtu", "mtu"),
            ],
            LINK_LAYER,
        ],
        unclassified: None,
        defaults: none,
        settle: settle_class_of_htb,
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
        settle: settle_class_of_hfsc,
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

/// Sets tc's default buckets on a machine with high-resolution timers, at rates below 8 Gbit/s: `mtu` bytes,
/// 1600 if it is not given.
fn settle_class_of_htb(class: &mut OfClass<'_>) {
    // To tc 0 is the same as a bucket that is not given.
    let is_zero = |given: &Given| match given {
        Given::Word(word) => units::parse_size(word).is_ok_and(|size| size == 0),
        _ => false,
    };
    class.settings.retain(|(key, given)| {
        !matches!(key.get_ref().as_str(), "burst" | "cburst") || !is_zero(given.get_ref())
    });
    let mtu = take(class.settings, "mtu").map(|(_, mtu)| mtu);
    let mtu = mtu.unwrap_or_else(|| Spanned::new(class.class.span(), Given::Word("1600".to_owned())));
    for bucket in ["burst", "cburst"] {
        if class.settings.iter().all(|(key, _)| key.get_ref() != bucket) {
            let key = Spanned::new(mtu.span(), bucket.to_owned());
            class.settings.push((key, mtu.clone()));
        }
    }
}

/// Gives a class that has classes below it a link-sharing curve, as the kernel does (`hfsc_upgrade_rt`).
fn settle_class_of_hfsc(class: &mut OfClass<'_>) {
    let position = |name: &str| class.settings.iter().position(|(key, _)| key.get_ref() == name);
    let (Some(rt), Some(ls)) = (position("rt"), position("ls")) else {
        return;
    };
    let shares = class.settings[ls].1.get_ref() != &Given::Word("none".to_owned());
    if class.is_leaf || shares {
        return;
    }
    class.settings[ls].1 = class.settings[rt].1.clone();
    let text = format!(
        "class {} has classes below it: as in Linux, `rt` is changed to `sc`",
        class.class.get_ref()
    );
    class.notes.add(class.settings[rt].0.span(), text);
}

/// Returns what the kernel says about the quanta of the leaves of an htb (`htb_change_class`).
pub(super) fn remarks(spec: &Spec) -> Vec<(Id, String)> {
    let config = match spec.discipline() {
        "htb" => spec
            .config()
            .ok()
            .and_then(|config| config.downcast::<htb::Config>().ok()),
        _ => None,
    };
    let Some(config) = config else {
        return Vec::new();
    };
    let is_leaf = |minor: u32| config.classes.iter().all(|other| other.parent != Some(minor));
    let remark = |class: &htb::ClassConfig| {
        let used = class.quantum(config.r2q);
        let by_rate = class.rate.bits_per_second() / 8 / u64::from(config.r2q);
        let how = match by_rate.cmp(&used.into()) {
            Ordering::Less => "small",
            Ordering::Equal => return None,
            Ordering::Greater => "big",
        };
        let id = Id {
            handle: config.classifier.handle,
            class: class.minor,
        };
        let text = format!(
            "the quantum of class {id} is {how}: its rate divided by r2q is {by_rate} bytes, but as in \
             Linux it is {used}; set `quantum`, or change `r2q`"
        );
        Some((id, text))
    };
    let leaves = config
        .classes
        .iter()
        .filter(|class| class.quantum.is_none() && is_leaf(class.minor));
    leaves.filter_map(remark).collect()
}

/// The number of low bits of a time in nanoseconds that Linux's tick leaves out. tc shows tokens in ticks.
const TICK: u32 = 6;

/// The version of the algorithm in Linux.
const VERSION: &str = "3.17";

/// Adds a class's values with their defaults. tc shows priority and quantum only for leaves.
fn complete_class_of_htb(seen: &Seen<'_>, class: &ClassSpec<'_>, details: &mut Vec<Detail>) {
    let config = seen.config::<htb::Config>();
    let Some(settings) = seen.class_of(&config.classes, class.minor, |class| class.minor) else {
        return;
    };
    let is_leaf = class.tree.is_some();
    if is_leaf {
        details.push(Detail::new("prio", plain(settings.prio.into())));
        let quantum = plain(settings.quantum(config.r2q).into());
        details.push(Detail::new("quantum", quantum).when(When::Detailed));
    }
    let (burst, cburst) = settings.bursts();
    let LinkLayer {
        overhead, mpu, cells, ..
    } = settings.link_layer;
    details.push(Detail::new("rate", Amount::Rate(settings.rate)));
    details.extend((overhead > 0).then(|| Detail::new("overhead", plain(overhead.into()))));
    details.push(Detail::new("ceil", Amount::Rate(settings.ceil())));
    details.push(link_layer(cells));
    let ceil = settings.ceil();
    for (word, cell, least, rate, bytes) in [
        ("burst", "burst_cell", "mpu_rate", settings.rate, burst),
        ("cburst", "cburst_cell", "mpu_ceil", ceil, cburst),
    ] {
        // tc sends the time to fill a bucket, in microseconds.
        let micros = u64::from(bytes) * 1_000_000 / (rate.bits_per_second() / 8).max(1);
        let bytes = bucket(rate, micros * 1000);
        details.push(Detail::new(word, size(bytes)).when(When::Brief));
        let [in_cells, in_mpu] = in_cells(word, bytes, mpu.into());
        // JSON has the two numbers apart.
        details.push(Detail { key: "", ..in_cells });
        details.push(Detail::in_json(word, size(bytes)).when(When::Detailed));
        details.push(Detail::in_json(cell, plain(1)).when(When::Detailed));
        details.push(Detail { key: least, ..in_mpu });
    }
    let level = match is_leaf {
        true => 0,
        false => HIGHEST_LEVEL.saturating_sub(depth(seen, &config.classes, settings)),
    };
    details.push(Detail::new("level", plain(level)).when(When::Detailed));
}

/// The level of a class directly below an htb, if it has classes below it.
const HIGHEST_LEVEL: u64 = 7;

/// Returns the number of classes above this one.
fn depth(seen: &Seen<'_>, classes: &[htb::ClassConfig], class: &htb::ClassConfig) -> u64 {
    let above = |class: &&htb::ClassConfig| seen.class_of(classes, class.parent?, |class| class.minor);
    std::iter::successors(Some(class), above).count() as u64 - 1
}

/// Adds the curves of a class. tc shows one curve, `sc`, if the real-time curve and the link-sharing curve
/// are equal.
fn complete_class_of_hfsc(seen: &Seen<'_>, class: &ClassSpec<'_>, details: &mut Vec<Detail>) {
    let config = seen.config::<hfsc::Config>();
    let Some(settings) = seen.class_of(&config.classes, class.minor, |class| class.minor) else {
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
