//! RouterOS: an export of `/queue type`, `/queue tree` and `/queue simple`.
//!
//! A queue tree is htb at its interface. Simple queues are two trees: of what goes to the targets,
//! `download`, and of what comes from them, `upload`. RouterOS' `priority` 1 to 8 is htb's `prio` 0 to 7. A
//! queue at the top gets its `max-limit` without asking anybody; others borrow what is above `limit-at`.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::Writer;
use super::sections::lines;
use crate::script::Word;

/// A line `add key=value ...`.
struct Entry {
    at: Range<usize>,
    values: BTreeMap<String, Word>,
}

impl Entry {
    fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(|word| word.get_ref().as_str())
    }

    fn is_off(&self) -> bool {
        self.get("disabled") == Some("yes")
    }

    /// Reports keys that are not among these.
    fn only(&self, known: &[&str], writer: &mut Writer<'_>) {
        for (key, value) in &self.values {
            if !known.contains(&key.as_str()) {
                let message = format!("`{key}` of a queue can't be carried over");
                writer.problem(
                    value.span(),
                    &message,
                    format!("understood are {}", known.join(", ")),
                );
            }
        }
    }
}

const COMMON: [&str; 12] = [
    "name",
    "comment",
    "disabled",
    "parent",
    "priority",
    "limit-at",
    "max-limit",
    "queue",
    "burst-limit",
    "burst-threshold",
    "burst-time",
    "bucket-size",
];

pub(super) fn read(writer: &mut Writer<'_>) {
    let mut menu = String::new();
    let (mut types, mut trees, mut simple) = (Vec::new(), Vec::new(), Vec::new());
    let mut without = Vec::new();
    for (at, line) in joined(writer.text) {
        let span = at..at + 1;
        if line.starts_with('/') {
            let (path, rest) = line
                .split_once(" add ")
                .map_or((line.as_str(), ""), |(path, rest)| (path, rest));
            menu = path.trim_start_matches('/').replace('/', " ");
            if rest.is_empty() {
                continue;
            }
        }
        let list = match menu.as_str() {
            "queue type" => &mut types,
            "queue tree" => &mut trees,
            "queue simple" => &mut simple,
            _ => {
                without.push(span);
                continue;
            }
        };
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
        match verb {
            "add" => list.push(entry(at, &line, rest)),
            _ if line.starts_with('/') => {
                let rest = line.split_once(" add ").map_or("", |(_, rest)| rest);
                list.push(entry(at, &line, rest));
            }
            "set" => without.push(span),
            _ => writer.problem(
                span,
                "this is no line of an export",
                "write add and key=value pairs",
            ),
        }
    }
    writer.notes.add_lines(
        &without,
        "these lines are not about queues, or change what RouterOS has by default",
    );
    let types: BTreeMap<String, Entry> = types
        .into_iter()
        .filter_map(|entry| Some((entry.get("name")?.to_owned(), entry)))
        .collect();
    tree(writer, &trees, &types);
    simple_queues(writer, &simple, &types);
}

/// Returns the lines, those that end in `\\` joined with the next.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut joined: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in lines(text, &['#']) {
        let (body, goes_on) = line.strip_suffix('\\').map_or((line, false), |body| (body, true));
        match joined.last_mut() {
            Some((_, last)) if is_open => *last += body,
            _ => joined.push((at, body.to_owned())),
        }
        is_open = goes_on;
    }
    joined
}

fn entry(at: usize, line: &str, rest: &str) -> Entry {
    let mut values = BTreeMap::new();
    let mut text = rest;
    while let Some(equals) = text.find('=') {
        let key = text[..equals]
            .split_whitespace()
            .next_back()
            .unwrap_or_default()
            .to_owned();
        let after = &text[equals + 1..];
        let (value, length) = match after.strip_prefix('"') {
            Some(inner) => {
                let end = inner.find('"').unwrap_or(inner.len());
                (&inner[..end], (end + 2).min(after.len()))
            }
            None => {
                let end = after.find(char::is_whitespace).unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        values.insert(key, Spanned::new(at..at + line.len().max(1), value.to_owned()));
        text = &after[length..];
    }
    Entry {
        at: at..at + 1,
        values,
    }
}

/// Returns bit/s: `5M`, `512k`, `0` for no limit.
fn rate(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor = match &text[end..] {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" | "m" => 1e6,
        "G" | "g" => 1e9,
        _ => return None,
    };
    Some((number * factor).round() as u64)
}

/// The limits of a class in one direction.
struct Limits {
    at_least: u64,
    most: Option<u64>,
    burst: Option<Burst>,
    prio: u8,
}

/// Reads the limits. `side` is 0 for the first of two values, 1 for the second.
fn limits(writer: &mut Writer<'_>, entry: &Entry, side: Option<usize>) -> Option<Limits> {
    let mut value = |key: &str| -> Result<Option<u64>, ()> {
        let Some(word) = entry.values.get(key) else {
            return Ok(None);
        };
        let text = match side {
            Some(side) => word.get_ref().split('/').nth(side).unwrap_or(word.get_ref()),
            None => word.get_ref(),
        };
        rate(text).map(Some).ok_or_else(|| {
            let message = format!("`{text}` of `{key}` is no rate");
            writer.problem(word.span(), &message, "write bit/s like 512k, 5M or 1G");
        })
    };
    let (at_least, most) = (value("limit-at").ok()?, value("max-limit").ok()?);
    let priority = entry.get("priority").map(|text| match side {
        Some(side) => text.split('/').nth(side).unwrap_or(text).to_owned(),
        None => text.to_owned(),
    });
    let prio = match priority.as_deref().unwrap_or("8").parse::<u8>() {
        Ok(priority @ 1..=8) => priority - 1,
        _ => {
            writer.problem(entry.at.clone(), "`priority` must be 1 to 8", "write 1 to 8");
            return None;
        }
    };
    let most = most.filter(|most| *most > 0);
    let burst = burst(writer, entry, side, most);
    Some(Limits {
        at_least: at_least.unwrap_or(0),
        most,
        burst,
        prio,
    })
}

/// A burst of RouterOS: `burst-limit` takes the place of `max-limit` while the average of the last
/// `burst-time` is below `burst-threshold`.
#[derive(Clone, Copy)]
struct Burst {
    rate: u64,
    threshold: u64,
    seconds: u64,
}

/// Returns the burst of a queue. One that never begins is noted.
fn burst(writer: &mut Writer<'_>, entry: &Entry, side: Option<usize>, most: Option<u64>) -> Option<Burst> {
    let part = |key: &str| -> Option<&str> {
        let text = entry.get(key)?;
        Some(side.and_then(|side| text.split('/').nth(side)).unwrap_or(text))
    };
    let mut number = |key: &str, form: &str, read: fn(&str) -> Option<u64>| -> Option<u64> {
        let text = part(key)?;
        let number = read(text);
        if number.is_none() {
            let message = format!("`{text}` of `{key}` can't be read");
            writer.problem(entry.at.clone(), &message, form);
        }
        number
    };
    const RATE: &str = "write bit/s like 512k, 5M or 1G";
    let limit = number("burst-limit", RATE, rate).unwrap_or(0);
    let threshold = number("burst-threshold", RATE, rate).unwrap_or(0);
    let seconds = number("burst-time", "write a time like 8s or 1m20s", seconds).unwrap_or(0);
    if limit == 0 {
        return None;
    }
    let why = match most {
        None => "the queue has no max-limit",
        Some(most) if limit <= most => "burst-limit is not above max-limit",
        Some(_) if threshold == 0 || seconds == 0 => "it needs burst-threshold and burst-time",
        Some(_) if threshold >= limit => {
            let name = entry.get("name").unwrap_or("a queue");
            let text = format!(
                "the burst of {name} never ends, because burst-threshold is not below burst-limit: \
                 burst-limit is its limit here"
            );
            writer.note(&entry.at, text);
            // An average can't be above what the queue sends.
            let threshold = limit - 1;
            return Some(Burst {
                rate: limit,
                threshold,
                seconds,
            });
        }
        Some(_) => {
            return Some(Burst {
                rate: limit,
                threshold,
                seconds,
            });
        }
    };
    let name = entry.get("name").unwrap_or("a queue");
    writer.note(&entry.at, format!("{name} has no bursts: {why}"));
    None
}

/// Reads a time: `8s`, `1m20s`, `00:00:08`.
fn seconds(text: &str) -> Option<u64> {
    if text.contains(':') {
        return text.split(':').try_fold(0u64, |whole, part| {
            whole.checked_mul(60)?.checked_add(part.parse().ok()?)
        });
    }
    let (mut whole, mut rest) = (0u64, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..end].parse().ok()?;
        let unit = rest[end..].find(|c: char| c.is_ascii_digit());
        let unit = unit.map_or(rest.len(), |length| end + length);
        let factor = match &rest[end..unit] {
            "" | "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        whole = whole.checked_add(number.checked_mul(factor)?)?;
        rest = &rest[unit..];
    }
    Some(whole)
}

/// Returns the words of htb for a class below one with `whole`, or at the top, where a class borrows from
/// nobody.
fn class(limits: &Limits, whole: u64, is_top: bool) -> String {
    let ceil = limits.most.unwrap_or(whole);
    // A class without limit-at gets what is left: htb needs a rate.
    let rate = match limits.at_least {
        _ if is_top => ceil,
        0 => (ceil / 100).max(8000).min(ceil),
        rate => rate.min(ceil),
    };
    let bucket = (ceil / 8 / 100).max(3028);
    format!(
        "htb rate {rate}bit ceil {ceil}bit burst {bucket} cburst {bucket} prio {}",
        limits.prio
    )
}

/// Returns the change that gives a class its burst.
fn with_burst(minor: u32, burst: &Burst, is_top: bool) -> String {
    let Burst {
        rate,
        threshold,
        seconds,
    } = burst;
    let own = match is_top {
        true => format!(" rate={rate}bit"),
        false => String::new(),
    };
    format!(
        "class change {minor}{own} burst_rate={rate}bit burst_threshold={threshold}bit burst_time={seconds}s"
    )
}

/// Returns the qdisc of a type, with the filter that it needs below a handle.
fn leaf(
    writer: &mut Writer<'_>,
    entry: &Entry,
    side: Option<usize>,
    types: &BTreeMap<String, Entry>,
) -> (String, Option<&'static str>) {
    let given = entry.get("queue").unwrap_or("default-small");
    let name = side.and_then(|side| given.split('/').nth(side)).unwrap_or(given);
    let Some(kind) = types.get(name) else {
        return match name {
            "pcq-download-default" => ("sfq".to_owned(), Some("dst")),
            "pcq-upload-default" => ("sfq".to_owned(), Some("src")),
            "default" | "default-small" => ("pfifo limit 10".to_owned(), None),
            "ethernet-default" | "hotspot-default" | "multi-queue-ethernet-default" => {
                ("pfifo limit 50".to_owned(), None)
            }
            "wireless-default" => ("sfq".to_owned(), None),
            _ => {
                let message = format!("there is no queue type `{name}`");
                writer.problem(entry.at.clone(), &message, "export /queue type, too");
                ("pfifo".to_owned(), None)
            }
        };
    };
    let words = |kinds: &[(&str, &str)]| -> String {
        let given = kinds
            .iter()
            .filter_map(|(key, word)| Some(format!(" {word} {}", kind.get(key)?)));
        given.collect()
    };
    match kind.get("kind").unwrap_or_default() {
        "pfifo" | "mq-pfifo" => (
            format!(
                "pfifo{}",
                words(&[("pfifo-limit", "limit"), ("mq-pfifo-limit", "limit")])
            ),
            None,
        ),
        "bfifo" => (format!("bfifo{}", words(&[("bfifo-limit", "limit")])), None),
        "sfq" => (
            format!(
                "sfq{}",
                words(&[("sfq-perturb", "perturb"), ("sfq-allot", "quantum")])
            ),
            None,
        ),
        "fq-codel" => {
            let options = [
                ("fq-codel-limit", "limit"),
                ("fq-codel-flows", "flows"),
                ("fq-codel-target", "target"),
                ("fq-codel-interval", "interval"),
                ("fq-codel-quantum", "quantum"),
            ];
            (format!("fq_codel{}", words(&options)), None)
        }
        "codel" => {
            let options = [
                ("codel-limit", "limit"),
                ("codel-target", "target"),
                ("codel-interval", "interval"),
            ];
            (format!("codel{}", words(&options)), None)
        }
        "cake" => {
            let rate = kind.get("cake-bandwidth").and_then(rate).filter(|rate| *rate > 0);
            let rate = rate.map_or("unlimited".to_owned(), |rate| format!("bandwidth {rate}bit"));
            let own: Vec<&str> = ["cake-diffserv", "cake-flowmode", "cake-overhead-scheme"]
                .into_iter()
                .filter_map(|key| kind.get(key))
                .collect();
            (
                format!(
                    "cake {rate} {}{}",
                    own.join(" "),
                    words(&[
                        ("cake-overhead", "overhead"),
                        ("cake-mpu", "mpu"),
                        ("cake-rtt", "rtt")
                    ])
                ),
                None,
            )
        }
        "pcq" => {
            let classifier = kind.get("pcq-classifier").unwrap_or_default();
            let key = match (
                classifier.contains("dst-address"),
                classifier.contains("src-address"),
            ) {
                (true, false) => Some("dst"),
                (false, true) => Some("src"),
                _ => None,
            };
            if let Some(limit) = kind.get("pcq-rate").filter(|limit| rate(limit) != Some(0)) {
                let text = format!(
                    "pcq: hosts share equally, but the limit of {limit} for each is not carried over; \
                        in TOML give an htb class each = \"destination\""
                );
                writer.note(&kind.at, text);
            }
            ("sfq".to_owned(), key)
        }
        other => {
            let message = format!("a queue type of the kind `{other}` can't be carried over");
            writer.problem(
                kind.at.clone(),
                &message,
                "understood are pfifo, bfifo, sfq, pcq, codel, fq-codel, cake",
            );
            ("pfifo".to_owned(), None)
        }
    }
}

/// A class that is to be written.
struct Planned<'e> {
    entry: &'e Entry,
    minor: u32,
    parent: u32,
    limits: Limits,
    is_inner: bool,
}

/// Writes a device's tree: its root, its classes, and their qdiscs and filters.
fn write(
    writer: &mut Writer<'_>,
    device: &str,
    planned: &[Planned<'_>],
    side: Option<usize>,
    types: &BTreeMap<String, Entry>,
    filters: &dyn Fn(&mut Writer<'_>, &Entry) -> Vec<String>,
) {
    let Some(first) = planned.first() else { return };
    let at = first.entry.at.clone();
    writer.command(&at, format!("tc qdisc replace dev {device} root handle 1: htb"));
    let mut preference = 1;
    for one in planned {
        let at = one.entry.at.clone();
        let whole = planned
            .iter()
            .find(|other| other.minor == one.parent)
            .and_then(|parent| parent.limits.most);
        let Some(whole) = one.limits.most.or(whole) else {
            let help = "write max-limit, or give the queue above it one";
            writer.problem(at, "the queue has no limit", help);
            continue;
        };
        let parent = if one.parent == 0 {
            "1:".to_owned()
        } else {
            format!("1:{:x}", one.parent)
        };
        let words = class(&one.limits, whole, one.parent == 0);
        if let Some(burst) = &one.limits.burst {
            writer.change(device, with_burst(one.minor, burst, one.parent == 0));
        }
        writer.command(
            &at,
            format!(
                "tc class replace dev {device} parent {parent} classid 1:{:x} {words}",
                one.minor
            ),
        );
        if one.is_inner {
            continue;
        }
        let (qdisc, hashed) = leaf(writer, one.entry, side, types);
        let handle = one.minor + 0x100;
        writer.command(
            &at,
            format!(
                "tc qdisc replace dev {device} parent 1:{:x} handle {handle:x}: {qdisc}",
                one.minor
            ),
        );
        if let Some(key) = hashed {
            writer.command(
                &at,
                format!(
                    "tc filter add dev {device} parent {handle:x}: protocol all \
                prio 1 handle 1 flow hash keys {key} divisor 1024"
                ),
            );
        }
        for filter in filters(writer, one.entry) {
            writer.command(
                &at,
                format!(
                    "tc filter add dev {device} parent 1: prio {preference} {filter} classid 1:{:x}",
                    one.minor
                ),
            );
            preference += 1;
        }
    }
}

/// Numbers the classes of a list, each after its parent, which is another one or `top`.
fn plan<'e>(
    writer: &mut Writer<'_>,
    entries: &[&'e Entry],
    is_top: &dyn Fn(&str) -> bool,
    side: Option<usize>,
) -> Vec<Planned<'e>> {
    let names: Vec<&str> = entries
        .iter()
        .map(|entry| entry.get("name").unwrap_or_default())
        .collect();
    let mut planned: Vec<Planned<'e>> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let parent = entry.get("parent").unwrap_or("none");
        let above = names.iter().position(|name| *name == parent && !is_top(parent));
        if above.is_none() && !is_top(parent) {
            let message = format!("there is no queue `{parent}`");
            writer.problem(entry.at.clone(), &message, "add it, or name an interface");
            continue;
        }
        let Some(limits) = limits(writer, entry, side) else {
            continue;
        };
        let name = names[index];
        planned.push(Planned {
            entry,
            minor: index as u32 + 1,
            parent: above.map_or(0, |above| above as u32 + 1),
            limits,
            is_inner: entries.iter().any(|other| other.get("parent") == Some(name)),
        });
    }
    planned.sort_by_key(|one| {
        let mut depth = 0;
        let mut at = one.parent;
        while at != 0 && depth < 32 {
            depth += 1;
            let above = entries.get(at as usize - 1).and_then(|entry| entry.get("parent"));
            at = names
                .iter()
                .position(|name| Some(*name) == above)
                .map_or(0, |above| above as u32 + 1);
        }
        depth
    });
    planned
}

/// Returns the number for a packet mark: marks have names.
fn mark(marks: &mut Vec<String>, name: &str) -> usize {
    match marks.iter().position(|mark| mark == name) {
        Some(at) => at + 1,
        None => {
            marks.push(name.to_owned());
            marks.len()
        }
    }
}

fn tree(writer: &mut Writer<'_>, entries: &[Entry], types: &BTreeMap<String, Entry>) {
    let entries: Vec<&Entry> = entries.iter().filter(|entry| !entry.is_off()).collect();
    for entry in &entries {
        let known = [&COMMON[..], &["packet-mark"]].concat();
        entry.only(&known, writer);
    }
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry.get("name")).collect();
    // What is no queue is an interface.
    let mut devices: Vec<&str> = Vec::new();
    for parent in entries.iter().filter_map(|entry| entry.get("parent")) {
        if !names.contains(&parent) && !devices.contains(&parent) {
            devices.push(parent);
        }
    }
    let mut marks = Vec::new();
    for mark_of in entries.iter().filter_map(|entry| entry.get("packet-mark")) {
        for name in mark_of.split(',').filter(|name| *name != "no-mark") {
            mark(&mut marks, name);
        }
    }
    for device in devices {
        let top_of = |entry: &Entry| {
            let mut parent = entry.get("parent").unwrap_or_default();
            for _ in 0..32 {
                match entries.iter().find(|other| other.get("name") == Some(parent)) {
                    Some(above) => parent = above.get("parent").unwrap_or_default(),
                    None => break,
                }
            }
            parent.to_owned()
        };
        let own: Vec<&Entry> = entries
            .iter()
            .copied()
            .filter(|entry| top_of(entry) == device)
            .collect();
        let planned = plan(writer, &own, &|parent| parent == device, None);
        let name = match device {
            "global" | "global-in" | "global-out" | "global-total" => {
                let text = format!(
                    "`{device}` is all interfaces: attach the tree `{device}` to the one that is the \
                        bottleneck"
                );
                writer.note(&own[0].at, text);
                device
            }
            device => device,
        };
        let marks = marks.clone();
        let filters = |writer: &mut Writer<'_>, entry: &Entry| -> Vec<String> {
            let Some(given) = entry.get("packet-mark") else {
                return Vec::new();
            };
            let names = given.split(',').filter(|name| !name.is_empty());
            names
                .map(|name| match marks.iter().position(|mark| mark == name) {
                    None => "protocol all matchall".to_owned(),
                    Some(at) => {
                        writer.note(
                            &entry.at,
                            format!(
                                "the mark `{name}` is the number {} here: give \
                            packets this mark, or write another filter",
                                at + 1
                            ),
                        );
                        format!("protocol all handle {} fw", at + 1)
                    }
                })
                .collect()
        };
        // Packets without a mark are tried last.
        let (mut marked, unmarked): (Vec<Planned<'_>>, Vec<Planned<'_>>) = planned
            .into_iter()
            .partition(|one| one.is_inner || one.entry.get("packet-mark") != Some("no-mark"));
        marked.extend(unmarked);
        write(writer, name, &marked, None, types, &filters);
    }
}

fn simple_queues(writer: &mut Writer<'_>, entries: &[Entry], types: &BTreeMap<String, Entry>) {
    let entries: Vec<&Entry> = entries.iter().filter(|entry| !entry.is_off()).collect();
    let Some(first) = entries.first() else { return };
    for entry in &entries {
        let known = [&COMMON[..], &["target", "dst", "packet-marks", "total-queue"]].concat();
        entry.only(&known, writer);
        for key in ["packet-marks", "dst"] {
            if let Some(word) = entry.values.get(key).filter(|word| !word.get_ref().is_empty()) {
                writer.problem(
                    word.span(),
                    &format!("`{key}` of a simple queue can't be carried over"),
                    "select by target",
                );
            }
        }
    }
    let text = "simple queues are two trees: attach `download` to the interface to which the targets are \
        connected, and `upload` to the other one";
    writer.note(&first.at, text);
    for (device, side, key) in [("upload", 0, "src_ip"), ("download", 1, "dst_ip")] {
        let planned = plan(writer, &entries, &|parent| parent == "none", Some(side));
        let filters = |writer: &mut Writer<'_>, entry: &Entry| -> Vec<String> {
            let targets = entry
                .get("target")
                .unwrap_or_default()
                .split(',')
                .filter(|target| !target.is_empty());
            let mut filters = Vec::new();
            for target in targets {
                let protocol = if target.contains(':') { "ipv6" } else { "ip" };
                match target {
                    "0.0.0.0/0" | "::/0" => filters.push(format!("protocol {protocol} matchall")),
                    _ if target.contains(['.', ':']) && crate::script::prefix(target).is_some() => {
                        filters.push(format!("protocol {protocol} flower {key} {target}"));
                    }
                    _ => writer.problem(
                        entry.at.clone(),
                        &format!("the target `{target}` is an interface, which can't be carried over"),
                        "write addresses",
                    ),
                }
            }
            filters
        };
        write(writer, device, &planned, Some(side), types, &filters);
    }
}
