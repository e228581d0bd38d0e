//! A description as `tc -s -d qdisc show` and `tc class show` would name it: kinds, handles, parents and options in their words and
//! units. The numbers of packets are the caller's.
//!
//! A qdisc without a handle of its own gets one as from the kernel, from 8001: on. A discipline that tc has no name for keeps its own,
//! and its parameters are shown as they are written here.

use fairgate::{ClassId, Rate};

use super::cake;
use super::kinds::{self, Kind};
use crate::registry::{ParameterInfo, Setting};
use crate::spec::Spec;
use crate::units::format_rate;
use crate::value::Value;

/// A qdisc, or a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// tc's kind.
    pub kind: &'static str,
    /// The handle of a qdisc, with minor number 0, or the class.
    pub id: ClassId,
    /// `None` for the root, or a class directly below its qdisc.
    pub parent: Option<ClassId>,
    /// Of a class, the handle of what it holds, if it has no classes below it.
    pub leaf: Option<u16>,
    /// Options in tc's order.
    pub options: Vec<(&'static str, Amount)>,
    /// The numbers of the classes on the way from the root.
    pub path: Vec<u16>,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// Packets: `1000p`.
    Packets(u64),
    /// Bytes: `1514b`.
    Bytes(u64),
    /// Bytes in the largest unit that fits: `32Mb`.
    Size(u64),
    /// A number by itself.
    Plain(u64),
    /// Nanoseconds; in JSON microseconds.
    Time(u64),
    /// Seconds: `10sec`.
    Seconds(u64),
    /// In JSON bytes per second.
    Rate(Rate),
    /// The option is there, without a value, or not.
    Flag(bool),
    /// Numbers with spaces between.
    Numbers(Vec<u64>),
    /// As it is.
    Text(String),
}

/// How an option shows a parameter.
type Form = fn(u64) -> Amount;

/// The options that tc shows of a kind, in its order: its word, our parameter, and the form of numbers.
fn options_of(kind: &str) -> Option<&'static [(&'static str, &'static str, Form)]> {
    Some(match kind {
        "pfifo" | "pfifo_head_drop" => &[("limit", "limit", Amount::Packets)],
        "bfifo" => &[("limit", "limit_bytes", Amount::Bytes)],
        "codel" => &[
            ("limit", "limit", Amount::Packets),
            ("target", "target", Amount::Time),
            ("ce_threshold", "ce_threshold", Amount::Time),
            ("interval", "interval", Amount::Time),
            ("ecn", "ecn", Amount::Plain),
        ],
        "fq_codel" => &[
            ("limit", "limit", Amount::Packets),
            ("flows", "flows", Amount::Plain),
            ("quantum", "quantum", Amount::Plain),
            ("target", "target", Amount::Time),
            ("ce_threshold", "ce_threshold", Amount::Time),
            ("interval", "interval", Amount::Time),
            ("memory_limit", "memory_limit", Amount::Size),
            ("ecn", "ecn", Amount::Plain),
            ("drop_batch", "drop_batch", Amount::Plain),
        ],
        "sfq" => &[
            ("limit", "limit", Amount::Packets),
            ("quantum", "quantum", Amount::Bytes),
            ("depth", "depth", Amount::Plain),
            ("flows", "flows", Amount::Plain),
            ("divisor", "divisor", Amount::Plain),
            ("perturb", "perturb", |nanos| {
                Amount::Seconds(nanos / 1_000_000_000)
            }),
        ],
        "tbf" => &[
            ("rate", "rate", as_rate),
            ("burst", "burst", Amount::Size),
            ("peakrate", "peakrate", as_rate),
            ("mtu", "mtu", Amount::Size),
        ],
        "ets" => &[
            ("strict", "strict", Amount::Plain),
            ("priomap", "priomap", Amount::Plain),
        ],
        "prio" => &[("priomap", "priomap", Amount::Plain)],
        // The words of cake are made one by one.
        "drr" | "qfq" | "pfifo_fast" | "cake" => &[],
        _ => return None,
    })
}

pub(super) fn as_rate(bits: u64) -> Amount {
    match Rate::from_bits_per_second(bits) {
        Ok(rate) => Amount::Rate(rate),
        Err(_) => Amount::Plain(bits),
    }
}

/// The same of a class.
fn class_options_of(kind: &str) -> &'static [(&'static str, &'static str, Form)] {
    match kind {
        "drr" => &[("quantum", "quantum", Amount::Bytes)],
        "qfq" => &[
            ("weight", "weight", Amount::Plain),
            ("maxpkt", "max_packet", Amount::Plain),
        ],
        _ => &[],
    }
}

/// The qdiscs of a tree, the root first, and their classes.
pub fn show(spec: &Spec) -> (Vec<Shown>, Vec<Shown>) {
    let mut shown = Showing {
        qdiscs: Vec::new(),
        classes: Vec::new(),
        next_handle: 0x8001,
    };
    shown.qdisc(spec, None, &mut Vec::new());
    (shown.qdiscs, shown.classes)
}

struct Showing {
    qdiscs: Vec<Shown>,
    classes: Vec<Shown>,
    next_handle: u16,
}

impl Showing {
    /// Shows a discipline with all that it holds, and tells its handle.
    fn qdisc(&mut self, spec: &Spec, parent: Option<ClassId>, path: &mut Vec<u16>) -> u16 {
        let handle = match spec.classifier().handle {
            0 => {
                self.next_handle = self.next_handle.wrapping_add(1);
                self.next_handle.wrapping_sub(1)
            }
            given => given,
        };
        let kind = kind_of(spec);
        self.qdiscs.push(Shown {
            kind: kind.map_or(spec.discipline(), Kind::name),
            id: ClassId::new(handle, 0),
            parent,
            leaf: None,
            options: options(spec, kind),
            path: path.clone(),
        });
        for class in spec.classes() {
            let id = ClassId::new(handle, class.minor);
            path.push(class.minor);
            let place = self.classes.len();
            let leaf = class.tree.map(|tree| self.qdisc(tree, Some(id), path));
            let options = match kind {
                Some(kind) => amounts(class_options_of(kind.name()), &class.parameters),
                None => class.parameters.iter().filter_map(own_option).collect(),
            };
            let shown = Shown {
                kind: kind.map_or(spec.discipline(), Kind::name),
                id,
                parent: None,
                leaf,
                options,
                path: path.clone(),
            };
            self.classes.insert(place, shown);
            path.pop();
        }
        handle
    }
}

/// tc's kind of a discipline: the fifos differ by their parameters.
fn kind_of(spec: &Spec) -> Option<&'static Kind> {
    let parameters = spec.parameters();
    let value = |name: &str| {
        parameters
            .iter()
            .find(|(info, _)| info.name == name)
            .map(|(_, value)| value)
    };
    let has_classes = !spec.classes().is_empty();
    match spec.discipline() {
        "fifo" => {
            let is_by_bytes = value("limit_bytes") != Some(&Value::None);
            let is_by_packets = value("limit") != Some(&Value::None);
            match (is_by_packets, is_by_bytes, value("drop")) {
                (true, false, Some(Value::Word("tail"))) => kinds::find("pfifo"),
                (false, true, Some(Value::Word("tail"))) => kinds::find("bfifo"),
                (true, false, _) => kinds::find("pfifo_head_drop"),
                _ => None,
            }
        }
        // Over classes only.
        "drr" | "qfq_plus" if !has_classes => None,
        name => kinds::of_discipline(name).filter(|kind| options_of(kind.name()).is_some()),
    }
}

fn options(spec: &Spec, kind: Option<&'static Kind>) -> Vec<(&'static str, Amount)> {
    let parameters = spec.parameters();
    let Some(known) = kind.and_then(|kind| options_of(kind.name())) else {
        return own_options(spec, &parameters);
    };
    let mut options = amounts(known, &parameters);
    let number = |name: &str| {
        let value = parameters.iter().find(|(info, _)| info.name == name);
        value.and_then(|(_, value)| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
    };
    match kind.map(Kind::name) {
        Some("cake") => options = cake::shown(spec, &parameters),
        Some("prio") => options.insert(0, ("bands", Amount::Plain(spec.classes().len() as u64))),
        // The kernel has no more flows than packets.
        Some("sfq") => {
            let flows = number("flows")
                .zip(number("limit"))
                .map(|(flows, limit)| flows.min(limit));
            if let Some((_, Amount::Plain(shown))) = options.iter_mut().find(|(word, _)| *word == "flows") {
                *shown = flows.unwrap_or(*shown);
            }
            let is_head =
                |(info, value): &(ParameterInfo, Value)| info.name == "drop" && *value == Value::Word("head");
            if parameters.iter().any(is_head) {
                options.push(("headdrop", Amount::Flag(true)));
            }
        }
        Some("ets") => {
            let classes = spec.classes();
            let strict = number("strict").unwrap_or(0) as usize;
            let quanta = classes
                .iter()
                .skip(strict)
                .filter_map(|class| match class.parameters.first()?.1 {
                    Value::Number(quantum) => Some(quantum),
                    _ => None,
                });
            options.insert(0, ("bands", Amount::Plain(classes.len() as u64)));
            options.insert(2, ("quanta", Amount::Numbers(quanta.collect())));
            if !options.iter().any(|(word, _)| *word == "priomap") {
                let last = classes.len().saturating_sub(1) as u64;
                options.push(("priomap", Amount::Numbers(vec![last; 16])));
            }
        }
        Some("tbf") => {
            let rate = number("rate").and_then(|bits| Rate::from_bits_per_second(bits).ok());
            let (burst, limit) = (number("burst").unwrap_or(0), number("limit"));
            if let Some(rate) = rate {
                // tc tells the time that what is within the limit and not within the bucket takes.
                let waits = limit.map(|limit| {
                    let bits = u128::from(limit.saturating_sub(burst)) * 8_000_000_000;
                    (bits / u128::from(rate.bits_per_second())) as u64
                });
                if let Some(latency) = number("latency").or(waits) {
                    options.push(("lat", Amount::Time(latency)));
                }
            }
        }
        _ => {}
    }
    options
}

/// What tc has no words for: what is not at its default, as it is written here.
fn own_options(spec: &Spec, parameters: &[(ParameterInfo, Value)]) -> Vec<(&'static str, Amount)> {
    let is_set = |place: usize| {
        spec.settings
            .own
            .iter()
            .any(|(other, _): &Setting| *other == place)
    };
    let set = parameters.iter().enumerate().filter(|(place, _)| is_set(*place));
    set.filter_map(|(_, parameter)| own_option(parameter)).collect()
}

/// A parameter as it is written here, unless it is none.
fn own_option((info, value): &(ParameterInfo, Value)) -> Option<(&'static str, Amount)> {
    (*value != Value::None).then(|| (info.name, Amount::Text(info.unit.show(value))))
}

fn amounts(
    known: &[(&'static str, &'static str, Form)],
    parameters: &[(ParameterInfo, Value)],
) -> Vec<(&'static str, Amount)> {
    let amount = |(word, name, form): &(&'static str, &'static str, Form)| {
        let (_, value) = parameters.iter().find(|(info, _)| info.name == *name)?;
        let amount = match value {
            Value::Number(number) => form(*number),
            Value::Flag(flag) => Amount::Flag(*flag),
            Value::Word(word) => Amount::Text((*word).to_owned()),
            Value::List(numbers) => Amount::Numbers(numbers.clone()),
            Value::None => return None,
        };
        Some((*word, amount))
    };
    known.iter().filter_map(amount).collect()
}

impl Amount {
    /// As tc prints it behind the option; `None` for a flag that is not set.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Amount::Packets(packets) => format!("{packets}p"),
            Amount::Bytes(bytes) => format!("{bytes}b"),
            Amount::Size(bytes) => size(*bytes),
            Amount::Plain(number) => number.to_string(),
            Amount::Time(nanos) => time(*nanos),
            Amount::Seconds(seconds) => format!("{seconds}sec"),
            Amount::Rate(rate) => rate_text(*rate),
            Amount::Flag(true) => String::new(),
            Amount::Flag(false) => return None,
            Amount::Numbers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                numbers.join(" ")
            }
            Amount::Text(text) => text.clone(),
        })
    }
}

/// `32Mb`, `5Kb`, `3000b`: only where nothing is lost.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}Mb", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}Kb", bytes >> 10),
        _ => format!("{bytes}b"),
    }
}

/// `5ms`, `1.2s`, `100us`: three digits, as in tc.
fn time(nanos: u64) -> String {
    let micros = nanos as f64 / 1e3;
    let three = |value: f64| {
        let decimals = 2 - value.abs().log10().floor().clamp(0.0, 2.0) as usize;
        let text = format!("{value:.decimals$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    };
    match micros {
        _ if micros >= 1e6 => format!("{}s", three(micros / 1e6)),
        _ if micros >= 1e3 => format!("{}ms", three(micros / 1e3)),
        _ => format!("{micros:.0}us"),
    }
}

/// `20Mbit`: tc's capitals.
fn rate_text(rate: Rate) -> String {
    let text = format_rate(rate);
    let unit = text.find(|character: char| character.is_ascii_alphabetic());
    let (number, unit) = text.split_at(unit.unwrap_or(text.len()));
    let mut characters = unit.chars();
    match characters.next() {
        Some(first) if unit != "bit" => {
            format!("{number}{}{}", first.to_ascii_uppercase(), characters.as_str())
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::{Device, Script};

    fn shown(script: &str) -> Vec<String> {
        let script = Script::parse("test.tc", script, Device::default()).unwrap();
        let (qdiscs, classes) = show(&script.spec().unwrap());
        let line = |what: &str, shown: &Shown| {
            let options = shown.options.iter().filter_map(|(word, amount)| {
                let text = amount.text()?;
                Some(format!("{word} {text}").trim_end().to_owned())
            });
            let place = shown
                .parent
                .map_or("root".to_owned(), |parent| format!("parent {parent}"));
            let options: Vec<String> = options.collect();
            format!("{what} {} {} {place} {}", shown.kind, shown.id, options.join(" "))
                .trim_end()
                .to_owned()
        };
        let qdiscs = qdiscs.iter().map(|shown| line("qdisc", shown));
        qdiscs
            .chain(classes.iter().map(|shown| line("class", shown)))
            .collect()
    }

    #[test]
    fn a_tree_is_shown_in_tcs_words() {
        let drr = "qdisc add dev e root handle 1: drr\n\
            class add dev e parent 1: classid 1:1 drr quantum 300\n\
            class add dev e parent 1: classid 1:a drr\n\
            qdisc add dev e parent 1:a handle 5: fq_codel ecn target 5ms memory_limit 4Mb";
        assert_eq!(
            shown(drr),
            [
                "qdisc drr 1:0 root",
                "qdisc pfifo 8001:0 parent 1:1 limit 1000p",
                "qdisc fq_codel 5:0 parent 1:a limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms \
                 memory_limit 4Mb ecn drop_batch 64",
                "class drr 1:1 root quantum 300b",
                "class drr 1:a root quantum 1514b",
            ]
        );
        assert_eq!(
            shown("qdisc add dev e root tbf rate 2mbit burst 3000 limit 1000000"),
            ["qdisc tbf 8001:0 root rate 2Mbit burst 3000b lat 3.99s"]
        );
        assert_eq!(
            shown("qdisc add dev e root handle 1: ets strict 1 quanta 4500 300")[0],
            "qdisc ets 1:0 root bands 3 strict 1 quanta 4500 300 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2"
        );
        assert_eq!(
            shown("qdisc add dev e root cake bandwidth 20mbit dual-srchost docsis ether-vlan wash"),
            [
                "qdisc cake 8001:0 root bandwidth 20Mbit diffserv3 dual-srchost nonat wash no-ack-filter no-split-gso \
                 rtt 100ms noatm overhead 22 mpu 64"
            ]
        );
        assert_eq!(
            shown("qdisc add dev e root cake fwmark 0xff metro besteffort memlimit 1mb"),
            [
                "qdisc cake 8001:0 root bandwidth unlimited besteffort triple-isolate nonat nowash no-ack-filter \
                 no-split-gso rtt 10ms raw overhead 0 memlimit 1Mb fwmark 0xff"
            ]
        );
        assert_eq!(
            shown("qdisc add dev e root bfifo limit 9000"),
            ["qdisc bfifo 8001:0 root limit 9000b"]
        );
        assert_eq!(
            shown("qdisc add dev e root pfifo_head_drop limit 9"),
            ["qdisc pfifo_head_drop 8001:0 root limit 9p"]
        );
    }

    #[test]
    fn what_tc_does_not_know_is_shown_in_our_words() {
        let (qdiscs, _) = show(&Spec::inline("sqf limit=50").unwrap());
        assert_eq!(qdiscs[0].kind, "sqf");
        assert_eq!(qdiscs[0].options, [("limit", Amount::Text("50".to_owned()))]);
    }

    #[test]
    fn times_have_three_digits() {
        let cases = [
            (5_000_000, "5ms"),
            (99_999_000, "100ms"),
            (1_234_000_000, "1.23s"),
            (100_000, "100us"),
            (0, "0us"),
        ];
        for (nanos, text) in cases {
            assert_eq!(time(nanos), text);
        }
    }
}
