//! systemd-networkd: the queueing disciplines of a .network file, as systemd.network(5) describes them.

use super::Writer;
use super::recognise::NETWORKD;
use super::sections::{Section, ini, is_true};
use crate::script::Word;

/// How a value is written for tc.
#[derive(Clone, Copy)]
enum Value {
    /// A number.
    Number,
    /// Bytes, with K, M and G of base 1024.
    Bytes,
    /// Bit/s, with K, M and G of base 1000.
    Rate,
    /// A time: `50ms`, or seconds.
    Time,
    /// A part of 100.
    Percent,
    /// Numbers.
    Numbers,
    /// A switch: the words for yes and for no.
    Switch(&'static str, &'static str),
    /// One of these words, each with tc's.
    Word(&'static [(&'static str, &'static str)]),
    /// Not carried over: why.
    Without(&'static str),
}

use Value::{Bytes, Number, Numbers, Percent, Rate, Switch, Time, Without};

type Keys = &'static [(&'static str, &'static str, Value)];

/// The sections: tc's kind, whether it is a class, and for each key tc's word.
const KINDS: &[(&str, &str, bool, Keys)] = &[
    (
        "NetworkEmulator",
        "netem",
        false,
        &[
            ("DelaySec", "delay", Time),
            ("DelayJitterSec", "", Time),
            ("PacketLimit", "limit", Number),
            ("LossRate", "loss", Percent),
            ("DuplicateRate", "duplicate", Percent),
        ],
    ),
    (
        "TokenBucketFilter",
        "tbf",
        false,
        &[
            ("Rate", "rate", Rate),
            ("BurstBytes", "burst", Bytes),
            ("Burst", "burst", Bytes),
            ("LimitBytes", "limit", Bytes),
            ("LimitSize", "limit", Bytes),
            ("LatencySec", "latency", Time),
            ("MPUBytes", "mpu", Bytes),
            ("PeakRate", "peakrate", Rate),
            ("MTUBytes", "mtu", Bytes),
        ],
    ),
    ("PIE", "pie", false, &[("PacketLimit", "limit", Number)]),
    (
        "FlowQueuePIE",
        "fq_pie",
        false,
        &[("PacketLimit", "limit", Number)],
    ),
    (
        "StochasticFairBlue",
        "sfb",
        false,
        &[("PacketLimit", "limit", Number)],
    ),
    (
        "StochasticFairnessQueueing",
        "sfq",
        false,
        &[("PerturbPeriodSec", "perturb", Number)],
    ),
    (
        "BFIFO",
        "bfifo",
        false,
        &[("LimitBytes", "limit", Bytes), ("LimitSize", "limit", Bytes)],
    ),
    ("PFIFO", "pfifo", false, &[("PacketLimit", "limit", Number)]),
    (
        "PFIFOHeadDrop",
        "pfifo_head_drop",
        false,
        &[("PacketLimit", "limit", Number)],
    ),
    ("PFIFOFast", "pfifo_fast", false, &[]),
    (
        "CAKE",
        "cake",
        false,
        &[
            ("Bandwidth", "bandwidth", Rate),
            ("AutoRateIngress", "", Switch("autorate-ingress", "")),
            ("OverheadBytes", "overhead", Number),
            ("MPUBytes", "mpu", Number),
            (
                "CompensationMode",
                "",
                Value::Word(&[("none", "noatm"), ("atm", "atm"), ("ptm", "ptm")]),
            ),
            ("UseRawPacketSize", "", Switch("raw", "")),
            (
                "FlowIsolationMode",
                "",
                Value::Word(&[
                    ("none", "flowblind"),
                    ("src-host", "srchost"),
                    ("dst-host", "dsthost"),
                    ("hosts", "hosts"),
                    ("flows", "flows"),
                    ("dual-src-host", "dual-srchost"),
                    ("dual-dst-host", "dual-dsthost"),
                    ("triple", "triple-isolate"),
                ]),
            ),
            ("NAT", "", Switch("nat", "nonat")),
            (
                "PriorityQueueingPreset",
                "",
                Value::Word(&[
                    ("besteffort", "besteffort"),
                    ("precedence", "precedence"),
                    ("diffserv8", "diffserv8"),
                    ("diffserv4", "diffserv4"),
                    ("diffserv3", "diffserv3"),
                ]),
            ),
            ("FirewallMark", "fwmark", Number),
            ("Wash", "", Switch("wash", "nowash")),
            ("SplitGSO", "", Switch("split-gso", "no-split-gso")),
            ("RTTSec", "rtt", Time),
            (
                "AckFilter",
                "",
                Value::Word(&[
                    ("yes", "ack-filter"),
                    ("true", "ack-filter"),
                    ("1", "ack-filter"),
                    ("on", "ack-filter"),
                    ("aggressive", "ack-filter-aggressive"),
                    ("no", "no-ack-filter"),
                    ("false", "no-ack-filter"),
                    ("0", "no-ack-filter"),
                    ("off", "no-ack-filter"),
                ]),
            ),
        ],
    ),
    (
        "ControlledDelay",
        "codel",
        false,
        &[
            ("PacketLimit", "limit", Number),
            ("TargetSec", "target", Time),
            ("IntervalSec", "interval", Time),
            ("ECN", "", Switch("ecn", "noecn")),
            ("CEThresholdSec", "ce_threshold", Time),
        ],
    ),
    ("DeficitRoundRobinScheduler", "drr", false, &[]),
    (
        "DeficitRoundRobinSchedulerClass",
        "drr",
        true,
        &[("QuantumBytes", "quantum", Bytes), ("Quantum", "quantum", Bytes)],
    ),
    (
        "EnhancedTransmissionSelection",
        "ets",
        false,
        &[
            ("Bands", "bands", Number),
            ("StrictBands", "strict", Number),
            ("QuantumBytes", "quanta", Numbers),
            ("PriorityMap", "priomap", Numbers),
        ],
    ),
    (
        "FairQueueingControlledDelay",
        "fq_codel",
        false,
        &[
            ("PacketLimit", "limit", Number),
            ("MemoryLimitBytes", "memory_limit", Bytes),
            ("MemoryLimit", "memory_limit", Bytes),
            ("Flows", "flows", Number),
            ("TargetSec", "target", Time),
            ("IntervalSec", "interval", Time),
            ("QuantumBytes", "quantum", Bytes),
            ("Quantum", "quantum", Bytes),
            ("ECN", "", Switch("ecn", "noecn")),
            ("CEThresholdSec", "ce_threshold", Time),
        ],
    ),
    (
        "FairQueueing",
        "fq",
        false,
        &[
            ("PacketLimit", "limit", Number),
            ("FlowLimit", "flow_limit", Number),
            ("QuantumBytes", "quantum", Bytes),
            ("Quantum", "quantum", Bytes),
            ("InitialQuantumBytes", "initial_quantum", Bytes),
            ("InitialQuantum", "initial_quantum", Bytes),
            ("MaximumRate", "maxrate", Rate),
            ("Buckets", "buckets", Number),
            (
                "OrphanMask",
                "",
                Without("a bridge has no sockets, whose orphans it is for"),
            ),
            (
                "Pacing",
                "",
                Without("packets that pass a bridge name no rate of their own"),
            ),
            ("CEThresholdSec", "ce_threshold", Time),
        ],
    ),
    (
        "HierarchyTokenBucket",
        "htb",
        false,
        &[
            ("DefaultClass", "default", Number),
            ("RateToQuantum", "r2q", Number),
        ],
    ),
    (
        "HierarchyTokenBucketClass",
        "htb",
        true,
        &[
            ("Rate", "rate", Rate),
            ("CeilRate", "ceil", Rate),
            ("BufferBytes", "burst", Bytes),
            ("CeilBufferBytes", "cburst", Bytes),
            ("Priority", "prio", Number),
            ("QuantumBytes", "quantum", Bytes),
            ("MTUBytes", "mtu", Bytes),
            ("OverheadBytes", "overhead", Bytes),
        ],
    ),
    (
        "HeavyHitterFilter",
        "hhf",
        false,
        &[("PacketLimit", "limit", Number)],
    ),
    ("QuickFairQueueing", "qfq", false, &[]),
    (
        "QuickFairQueueingClass",
        "qfq",
        true,
        &[("Weight", "weight", Number), ("MaxPacketBytes", "maxpkt", Bytes)],
    ),
    ("ClassfulMultiQueueing", "mq", false, &[]),
    ("BandMultiQueueing", "multiq", false, &[]),
    (
        "GenericRandomEarlyDetection",
        "gred",
        false,
        &[
            (
                "VirtualQueues",
                "",
                Without("its virtual queues need limits that the file has no keys for"),
            ),
            (
                "DefaultVirtualQueue",
                "",
                Without("its virtual queues need limits that the file has no keys for"),
            ),
            (
                "GenericRIO",
                "",
                Without("its virtual queues need limits that the file has no keys for"),
            ),
        ],
    ),
    (
        "TrivialLinkEqualizer",
        "teql0",
        false,
        &[("Id", "", Without("it joins several interfaces"))],
    ),
];

/// A command, and what it needs before it.
struct Planned {
    at: std::ops::Range<usize>,
    command: String,
    parent: String,
    /// The qdisc or the class that it adds.
    adds: Option<String>,
}

pub(super) fn read(writer: &mut Writer<'_>) {
    let (sections, others) = ini(writer.text);
    for line in others {
        writer.problem(
            line,
            "this line is neither a section nor a key with a value",
            "write Key=Value",
        );
    }
    let mut names = sections
        .iter()
        .filter(|section| section.kind.get_ref() == "Match")
        .filter_map(|section| section.get("Name").cloned());
    let device = match names.next() {
        Some(name) if name.get_ref().contains(['*', '?', '[', ' ', '!']) => {
            let message = format!("`{}` is the name of several interfaces", name.get_ref());
            match writer.device {
                Some(device) => Some(device.to_owned()),
                None => {
                    writer.problem(name.span(), &message, "name one: --device eth0");
                    None
                }
            }
        }
        Some(name) => Some(
            writer
                .device
                .map_or_else(|| name.get_ref().clone(), str::to_owned),
        ),
        None => sections
            .first()
            .map(Section::at)
            .and_then(|at| writer.device(&at)),
    };
    let Some(device) = device else { return };
    let mut planned = Vec::new();
    let mut without = Vec::new();
    for section in &sections {
        let name = section.kind.get_ref();
        if name.starts_with("TrafficControl") {
            let message = format!("the section [{name}] is one of systemd 245");
            let help = "write the section of the qdisc that systemd 246 and later have, like [FairQueueing]";
            writer.problem(section.at(), &message, help);
        } else if name == "QDisc" {
            hook(writer, section, &device);
        } else if let Some((_, kind, is_class, keys)) = KINDS.iter().find(|(known, ..)| known == name) {
            planned.extend(plan(writer, section, (kind, *is_class, keys), &device));
        } else if NETWORKD.contains(&name.as_str()) || !section.entries.is_empty() {
            without.extend(section.lines());
        }
    }
    writer.notes.add_lines(
        &without,
        "these sections are about addresses and links, and not about queues",
    );
    in_order(writer, planned);
}

/// Adds the commands in an order in which tc takes them: each after its parent.
fn in_order(writer: &mut Writer<'_>, mut planned: Vec<Planned>) {
    let mut added: Vec<String> = Vec::new();
    while !planned.is_empty() {
        let is_ready = |one: &Planned, others: &[Planned]| {
            let major = one.parent.split(':').next().unwrap_or_default();
            let waits = |other: &Planned| {
                other
                    .adds
                    .as_ref()
                    .is_some_and(|adds| *adds == one.parent || *adds == format!("{major}:"))
            };
            !others.iter().any(waits)
        };
        let next = planned
            .iter()
            .position(|one| is_ready(one, &planned))
            .unwrap_or(0);
        let one = planned.remove(next);
        added.extend(one.adds);
        writer.command(&one.at, one.command);
    }
}

/// `[QDisc]`: a hook for filters, which a .network file does not have.
fn hook(writer: &mut Writer<'_>, section: &Section, device: &str) {
    let parent = section.text("Parent").unwrap_or("clsact");
    let text = format!("`{parent}` of {device} holds filters, of which a .network file has none: no effect");
    writer.note(&section.at(), text);
}

fn plan(
    writer: &mut Writer<'_>,
    section: &Section,
    (kind, is_class, keys): (&str, bool, Keys),
    device: &str,
) -> Option<Planned> {
    let mut words: Vec<String> = Vec::new();
    let (mut parent, mut handle, mut id) = ("root".to_owned(), None, None);
    let mut is_right = true;
    for (key, value) in &section.entries {
        match key.get_ref().as_str() {
            "Parent" => parent = value.get_ref().to_ascii_lowercase(),
            "Handle" => {
                handle = Some(
                    value
                        .get_ref()
                        .trim_end_matches(':')
                        .trim_start_matches("0x")
                        .to_owned(),
                )
            }
            "ClassId" => id = Some(value.get_ref().to_ascii_lowercase()),
            name => match keys.iter().find(|(known, ..)| *known == name) {
                Some((_, word, reads)) => match written(value, *reads) {
                    Ok(text) => {
                        if let Without(why) = reads {
                            writer.note(&key.span(), format!("`{name}` is not carried over: {why}"));
                            continue;
                        }
                        words.extend(
                            [(*word).to_owned(), text]
                                .into_iter()
                                .filter(|word| !word.is_empty()),
                        );
                    }
                    Err(help) => {
                        let message = format!("`{}` is no value of `{name}`", value.get_ref());
                        writer.problem(value.span(), &message, help);
                        is_right = false;
                    }
                },
                None => {
                    let message = format!("`{name}` of [{}] can't be carried over", section.kind.get_ref());
                    let known: Vec<&str> = keys.iter().map(|(known, ..)| *known).collect();
                    let help = format!("understood are Parent, Handle, {}", known.join(", "));
                    writer.problem(key.span(), &message, help);
                    is_right = false;
                }
            },
        }
    }
    if !is_right {
        return None;
    }
    let place = match parent.as_str() {
        "root" => "root".to_owned(),
        class => format!("parent {class}"),
    };
    let options = words.join(" ");
    let (command, adds) = match (is_class, id, handle) {
        (true, Some(id), _) => (
            format!("tc class replace dev {device} {place} classid {id} {kind} {options}"),
            Some(id),
        ),
        (true, None, _) => {
            writer.problem(section.at(), "the class has no ClassId", "write ClassId=1:10");
            return None;
        }
        (false, _, handle) => {
            let named = handle
                .as_ref()
                .map_or(String::new(), |handle| format!("handle {handle}: "));
            (
                format!("tc qdisc replace dev {device} {place} {named}{kind} {options}"),
                handle.map(|handle| format!("{handle}:")),
            )
        }
    };
    let parent = match (is_class, &adds) {
        (true, Some(id)) if parent == "root" => format!("{}:", id.split(':').next().unwrap_or_default()),
        _ => parent,
    };
    Some(Planned {
        at: section.at(),
        command: command.trim_end().to_owned(),
        parent,
        adds,
    })
}

fn written(value: &Word, reads: Value) -> Result<String, &'static str> {
    let text = value.get_ref().as_str();
    match reads {
        Number => match text
            .trim_start_matches("0x")
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !text.is_empty()
        {
            true => Ok(text.to_owned()),
            false => Err("write a number"),
        },
        Bytes => multiple(text, 1024)
            .map(|bytes| bytes.to_string())
            .ok_or("write bytes like 1514, 64K or 1M"),
        Rate => multiple(text, 1000)
            .map(|rate| format!("{rate}bit"))
            .ok_or("write bit/s like 500K, 40M or 1G"),
        Time => time(text).ok_or("write a time like 5ms, 100us or 1s"),
        Percent => match text.strip_suffix('%') {
            Some(_) => Ok(text.to_owned()),
            None => Err("write a part of 100, like 1.5%"),
        },
        Numbers => match text
            .split_whitespace()
            .all(|number| multiple(number, 1024).is_some())
        {
            true => {
                let numbers = text
                    .split_whitespace()
                    .filter_map(|number| multiple(number, 1024));
                Ok(numbers
                    .map(|number| number.to_string())
                    .collect::<Vec<_>>()
                    .join(" "))
            }
            false => Err("write numbers with spaces between them"),
        },
        Switch(yes, no) => match text.to_ascii_lowercase().as_str() {
            text if is_true(text) => Ok(yes.to_owned()),
            "no" | "false" | "0" | "off" | "n" | "f" => Ok(no.to_owned()),
            _ => Err("write yes or no"),
        },
        Value::Word(words) => {
            let lower = text.to_ascii_lowercase();
            let found = words.iter().find(|(word, _)| *word == lower);
            found
                .map(|(_, word)| (*word).to_owned())
                .ok_or("write one of the words in systemd.network(5)")
        }
        Without(_) => Ok(String::new()),
    }
}

/// Reads a number with K, M, G or T.
fn multiple(text: &str, base: u64) -> Option<u64> {
    let text = text.trim().trim_end_matches(['b', 'B']);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let power = match unit.trim() {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = number * u128::from(base.pow(power)) / 10u128.pow(fraction.len() as u32);
    u64::try_from(scaled).ok()
}

/// Reads a span of time of systemd, and returns it in tc's notation.
fn time(text: &str) -> Option<String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = match unit.trim() {
        "" | "s" | "sec" | "second" | "seconds" => "s",
        "ms" | "msec" => "ms",
        "us" | "usec" | "\u{b5}s" => "us",
        _ => return None,
    };
    (!digits.is_empty()).then(|| format!("{digits}{unit}"))
}
