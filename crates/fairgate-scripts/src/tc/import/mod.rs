//! The commands that make what tc shows: the reverse of `tc -d qdisc show`, `class show` and `filter show`.
//!
//! tc shows options mostly as it reads them. What differs is in three tables: words that are no options
//! ([`SHOWN_ONLY`]), numbers with a unit that tc does not read back ([`unit`]), and words with other names.
//! Everything else is left as it is, so that what is unknown becomes an error of the translation.

mod bucket;

use bucket::Filling;

use super::kinds::parts_of_256;

/// A listing that tc printed.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'l> {
    /// The device that was asked for.
    pub device: &'l str,
    /// The qdisc or class whose filters these are: `1:`, `ingress`. Empty for the root, and for qdiscs and
    /// classes.
    pub parent: &'l str,
    /// What tc printed.
    pub text: &'l str,
}

/// A command, and the line of the listing that it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Which listing, by its place in the arguments.
    pub listing: usize,
    /// Counted from 1.
    pub line: usize,
    /// The command, without `tc`.
    pub command: String,
}

/// Returns the commands that make what these listings show, in an order in which they can be run: qdiscs and
/// classes from the root on, then filters.
///
/// ```
/// use fairgate_scripts::tc::{Printed, import};
/// let listing = |text| Printed { device: "eth0", parent: "", text };
/// let commands = import(&[
///     listing("qdisc htb 1: root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000\n"),
///     listing("class htb 1:10 root leaf 8001: prio 0 rate 5Mbit ceil 5Mbit burst 1600b \n"),
/// ]);
/// assert_eq!(commands[0].command, "qdisc add dev eth0 root handle 1: htb r2q 10 default 0x10");
/// assert_eq!(
///     commands[1].command,
///     "class add dev eth0 parent 1: classid 1:10 htb prio 0 rate 5Mbit ceil 5Mbit burst 1600b"
/// );
/// ```
pub fn import(listings: &[Printed]) -> Vec<Imported> {
    let mut objects: Vec<(Object, Imported)> = Vec::new();
    let mut filters: Vec<Imported> = Vec::new();
    for (number, listing) in listings.iter().enumerate() {
        for (line, words) in entries(listing.text) {
            let imported = |command| Imported {
                listing: number,
                line,
                command,
            };
            match words[..] {
                ["qdisc", kind, handle, ref rest @ ..] => {
                    objects.extend(qdisc(listing, kind, handle, rest).map(|(at, text)| (at, imported(text))));
                }
                ["class", kind, id, ref rest @ ..] => {
                    objects.extend(class(listing, kind, id, rest).map(|(at, text)| (at, imported(text))));
                }
                ["filter", ref rest @ ..] => {
                    filters.extend(filter(listing, rest).map(imported));
                }
                _ => {}
            }
        }
    }
    let mut commands = in_order(objects);
    commands.extend(filters);
    commands
}

/// What a qdisc or class is attached to, and what can be attached to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Object {
    device: String,
    /// `1:` or `1:10`; empty for a root.
    parent: String,
    id: String,
}

/// Sorts so that every parent comes before its children.
fn in_order(mut waiting: Vec<(Object, Imported)>) -> Vec<Imported> {
    let mut commands = Vec::new();
    while !waiting.is_empty() {
        let is_there = |(object, _): &(Object, Imported)| {
            // A qdisc with a fixed class, like a tbf, is before what is in the class, which has no line.
            let major = object
                .parent
                .split_once(':')
                .map(|(major, _)| format!("{major}:"));
            !waiting.iter().any(|(other, _)| {
                let holds = other.id == object.parent || Some(&other.id) == major.as_ref();
                other != object && other.device == object.device && holds
            })
        };
        let ready: Vec<bool> = waiting.iter().map(is_there).collect();
        // A circle can't be made by the kernel. If a listing has one, the order is that of the listing.
        let all = !ready.contains(&true);
        let mut ready = ready.into_iter();
        let mut rest = Vec::new();
        for object in waiting {
            if all || ready.next() == Some(true) {
                commands.push(object.1);
            } else {
                rest.push(object);
            }
        }
        waiting = rest;
    }
    commands
}

/// Returns the words of each entry, with the number of its first line. An entry begins at the margin; an
/// action of a filter is indented by a tab.
fn entries(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut entries: Vec<(usize, Vec<&str>)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = line.split_whitespace();
        match entries.last_mut() {
            Some((_, entry)) if line.starts_with([' ', '\t']) => entry.extend(words),
            _ => entries.push((index + 1, words.collect())),
        }
    }
    entries.retain(|(_, words)| !words.is_empty());
    entries
}

/// Words that tc shows and does not read, with the number of words after each.
const SHOWN_ONLY: [(&str, usize); 15] = [
    ("refcnt", 1),
    ("offloaded", 0),
    ("direct_packets_stat", 1),
    ("ver", 1),
    ("leaf", 1),
    ("level", 1),
    ("not_in_hw", 0),
    ("multiqueue:", 1),
    ("dev", 1),
    ("chain", 1),
    ("order", 1),
    // red and choke: what follows from avpkt, burst and bandwidth, which tc does not show.
    ("ewma", 1),
    ("Scell_log", 1),
    // fq: of the kernel's own senders.
    ("orphan_mask", 1),
    ("timer_slack", 1),
];

/// Words of the table of sizes, which is shown after the options and written before the kind.
const SIZES: [&str; 6] = ["linklayer", "overhead", "mpu", "mtu", "tsize", "data"];

fn qdisc(listing: &Printed, kind: &str, handle: &str, rest: &[&str]) -> Option<(Object, String)> {
    let device = named(rest, "dev").unwrap_or(listing.device);
    // The kernel attached it by itself.
    if handle == "0:" {
        return None;
    }
    if matches!(kind, "ingress" | "clsact") {
        let object = object(device, "ffff:fff1", handle);
        return Some((object, format!("qdisc add dev {device} {kind}")));
    }
    let parent = named(rest, "parent").unwrap_or_default();
    let place = match parent {
        "" => "root".to_owned(),
        parent => format!("parent {parent}"),
    };
    let (options, sizes) = options(kind, &without_place(rest));
    let stab = match sizes.is_empty() {
        true => String::new(),
        false => format!(" stab {}", sizes.join(" ")),
    };
    let command = format!(
        "qdisc add dev {device} {place} handle {handle}{stab} {kind} {}",
        options.join(" ")
    );
    Some((object(device, parent, handle), command.trim_end().to_owned()))
}

fn class(listing: &Printed, kind: &str, id: &str, rest: &[&str]) -> Option<(Object, String)> {
    let device = listing.device;
    let (major, minor) = id.split_once(':')?;
    let parent = named(rest, "parent").map_or_else(|| format!("{major}:"), str::to_owned);
    // Only these have classes of their own. The others are places for a qdisc, or flows.
    let has_classes = matches!(kind, "htb" | "hfsc" | "drr" | "qfq" | "cbq");
    if !has_classes || minor.is_empty() || (kind == "hfsc" && minor == "0") {
        return None;
    }
    let (mut options, sizes) = options(kind, &without_place(rest));
    // A class of htb shows its link layer twice, for the rate and for the ceil. Ethernet is the default.
    let sizes: Vec<String> = sizes.chunks(2).map(|pair| pair.join(" ")).collect();
    for (at, pair) in sizes.iter().enumerate() {
        let is_default = matches!(pair.as_str(), "linklayer ethernet" | "mpu 0b" | "overhead 0");
        if !is_default && !sizes[..at].contains(pair) {
            options.push(pair.clone());
        }
    }
    let command = format!(
        "class add dev {device} parent {parent} classid {id} {kind} {}",
        options.join(" ")
    );
    Some((object(device, &parent, id), command.trim_end().to_owned()))
}

fn object(device: &str, parent: &str, id: &str) -> Object {
    Object {
        device: device.to_owned(),
        parent: parent.to_owned(),
        id: id.to_owned(),
    }
}

fn named<'w>(words: &[&'w str], name: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1).copied()
}

/// Returns the words after `root` or `parent`.
fn without_place<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let mut left = Vec::new();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "root" => {}
            "parent" | "dev" => {
                words.next();
            }
            word => left.push(word),
        }
    }
    left
}

/// Returns the options, and the words of the table of sizes.
fn options(kind: &str, words: &[&str]) -> (Vec<String>, Vec<String>) {
    let (mut options, mut sizes) = (Vec::new(), Vec::new());
    let words_have_ecn = words.contains(&"ecn");
    // These have such words as options of their own.
    let has_own = matches!(kind, "cake" | "tbf");
    let all = words;
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        if let Some((_, after)) = SHOWN_ONLY.iter().find(|(shown, _)| *shown == word) {
            words.by_ref().take(*after).for_each(drop);
        } else if SIZES.contains(&word) && !has_own {
            sizes.push(word.to_owned());
            sizes.extend(words.next().map(str::to_owned));
        } else if kind == "sfq" && word == "flows" {
            // How many flows there are now, and what the divisor says.
            words.next();
        } else if kind == "sfq" && word == "limit" && is_default_limit(all) {
            words.next();
        } else if (word, words.peek()) == ("direct_qlen", Some(&"1000")) {
            // The kernel's default.
            words.next();
        } else if kind == "cake" && word == "overhead" && options.iter().any(|option| option == "raw") {
            words.next();
        } else if kind == "pfifo_fast" {
            // Its three bands and their map can't be changed.
        } else if (kind, word, words.peek()) == ("cake", "bandwidth", Some(&"unlimited")) {
            options.extend(words.next().map(str::to_owned));
        } else if let Some(filling) = Filling::of(kind, word, all) {
            options.push(word.to_owned());
            options.extend(words.next().map(|depth| filling.written(depth)));
        } else if kind == "tbf" && word == "mpu" && options.iter().any(|option| option == "mpu") {
            // It is shown for both rates.
            words.next();
        } else if kind == "tbf"
            && matches!(
                (word, words.peek()),
                ("linklayer", Some(&"ethernet")) | ("mpu", Some(&"0b"))
            )
        {
            words.next();
        } else if kind == "etf" && matches!(word, "offload" | "deadline_mode" | "skip_sock_check") {
            // It is shown whether each is on.
            options.extend((words.next() == Some("on")).then(|| word.to_owned()));
        } else if kind == "dualpi2" && matches!(word, "alpha" | "beta") {
            options.push(word.to_owned());
            options.extend(words.next().map(weight));
        } else if kind == "dualpi2" && word == "step_thresh" {
            // Its unit says whether it is a time or a number of packets.
            options.push(word.to_owned());
            options.extend(words.next().map(str::to_owned));
        } else if kind == "netem" && NETEM_STATES.contains(&word) {
            // The probabilities of a model of losses are shown with names, and read without.
        } else if matches!(kind, "codel" | "fq_codel") && CODEL_TIMES.contains(&word) {
            options.push(word.to_owned());
            options.extend(words.next().map(codel_time));
        } else {
            options.push(unit(word));
        }
    }
    // It marks by default, and tc shows no word for the opposite.
    if kind == "fq_codel" && !words_have_ecn {
        options.push("noecn".to_owned());
    }
    (options, sizes)
}

/// Whether the limit of an sfq was not given. If it is, the kernel has at most as many flows as packets.
fn is_default_limit(words: &[&str]) -> bool {
    let number = |name| named(words, name).and_then(|text| unit(text).parse::<u32>().ok());
    number("limit")
        .zip(number("flows"))
        .is_some_and(|(limit, flows)| flows > limit)
}

/// The names of netem's probabilities, of the model with four states and of Gilbert and Elliott's.
const NETEM_STATES: [&str; 9] = ["p13", "p31", "p32", "p23", "p14", "p", "r", "1-h", "1-k"];

/// The options of codel and fq_codel that the kernel keeps in units of 1,024 ns.
const CODEL_TIMES: [&str; 3] = ["target", "interval", "ce_threshold"];

/// Returns a time that the kernel shows as `text` again. It rounds down when it reads, and when it shows
/// (`codel_time_to_us`): 1000 us is shown as 999 us, and 999 us would be shown as 998 us. Times above a
/// millisecond are shown with three digits, which hide this.
fn codel_time(text: &str) -> String {
    let micros = text
        .strip_suffix("us")
        .and_then(|digits| digits.parse::<u32>().ok())
        .map(u64::from);
    let shown = |micros: u64| (((micros * 1000) >> 10) << 10) / 1000;
    match micros {
        Some(micros) if shown(micros) < micros => format!("{}us", micros + 1),
        _ => text.to_owned(),
    }
}

/// Returns a weight of dualpi2 that is shown as `text` again. The kernel rounds down when it reads it, and
/// when it shows it.
fn weight(text: &str) -> String {
    let Ok(shown) = text.parse::<f64>() else {
        return text.to_owned();
    };
    let parts = (shown * 256.0).round() as u64;
    let is_shown_so = |parts: &u64| parts_of_256(*parts).text().as_deref() == Some(text);
    let found = [parts, parts + 1].into_iter().find(is_shown_so);
    // A fraction of a power of two has an exact decimal.
    found.map_or(text.to_owned(), |parts| (parts as f64 / 256.0).to_string())
}

/// Returns a number without the unit that tc shows and does not read: `77p` is 77 packets, `10sec` 10 s. A
/// small number with an exponent is written without one.
fn unit(word: &str) -> String {
    if let (true, Ok(small)) = (word.contains("e-"), word.parse::<f64>()) {
        return format!("{small:.12}");
    }
    let number = ["pps", "p", "sec"]
        .iter()
        .find_map(|unit| word.strip_suffix(unit));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number.filter(|text| is_number(text)).unwrap_or(word).to_owned()
}

/// Returns the command of a filter. Its first entry, and the tables that the kernel makes, have none.
fn filter(listing: &Printed, words: &[&str]) -> Option<String> {
    let device = listing.device;
    let parent = named(words, "parent").unwrap_or(listing.parent);
    let preference = named(words, "pref")?;
    let at = words.iter().position(|word| *word == "pref")? + 2;
    let kind = *words.get(at)?;
    let rest = &words[at + 1..];
    let place = match parent {
        "" => String::new(),
        "ingress" | "egress" | "root" => format!(" {parent}"),
        parent => format!(" parent {parent}"),
    };
    let protocol = named(&words[..at], "protocol").unwrap_or("all");
    let chain = match named(rest, "chain").filter(|chain| *chain != "0") {
        Some(chain) => format!(" chain {chain}"),
        None => String::new(),
    };
    let head = format!("filter add dev {device}{place}{chain} protocol {protocol} pref {preference}");
    let (conditions, actions) = split_actions(rest);
    let conditions = match kind {
        "u32" => u32(&conditions)?,
        // An entry without a handle only introduces those that follow.
        _ if named(&conditions, "handle").is_none() => return None,
        _ => other(kind, &conditions),
    };
    let mut command = format!("{head} {conditions}");
    for action in actions {
        command += &format!(" action {action}");
    }
    Some(command)
}

/// Splits the words of a filter from those of its actions (`action order 1: ...`).
fn split_actions<'w>(words: &[&'w str]) -> (Vec<&'w str>, Vec<String>) {
    let mut parts = words.split(|word| *word == "action").map(<[&str]>::to_vec);
    let conditions = parts.next().unwrap_or_default();
    let mut actions: Vec<String> = Vec::new();
    for part in parts {
        match part[..] {
            ["order", _, ref rest @ ..] => actions.push(action(rest)),
            // `gact action drop`: the words are a part of the action before.
            [_, ..] => {
                if let Some(last) = actions.last_mut() {
                    let verdict = action(&part);
                    *last = if last == "gact" {
                        verdict
                    } else {
                        format!("{last} {verdict}")
                    };
                }
            }
            [] => {}
        }
    }
    (conditions, actions)
}

/// Returns an action as it is written. Its counters and numbers are left out.
fn action(words: &[&str]) -> String {
    let end = words.iter().position(|word| matches!(*word, "index" | "random"));
    let words = &words[..end.unwrap_or(words.len())];
    match words {
        ["mirred", direction, verb, "to", "device", device, ..] => {
            let direction = direction.trim_start_matches('(').to_lowercase();
            let device = device.trim_end_matches(')');
            format!("mirred {direction} {} dev {device}", verb.to_lowercase())
        }
        ["connmark", ..] => "connmark".to_owned(),
        _ => words.join(" "),
    }
}

fn u32(words: &[&str]) -> Option<String> {
    let handle = named(words, "fh")?;
    if let Some(divisor) = named(words, "divisor") {
        // Tables of one bucket are the kernel's own.
        let number = handle.trim_end_matches(':');
        return (divisor != "1").then(|| format!("handle {number}: u32 divisor {divisor}"));
    }
    let mut text = "u32".to_owned();
    let (table, bucket) = (named(words, "ht")?, named(words, "bkt")?);
    // The roots of preferences are numbered from 800 on.
    let is_root = usize::from_str_radix(table, 16).is_ok_and(|number| number >= 0x800);
    if !is_root {
        text += &format!(" ht {table}:{bucket}:");
    }
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        match word {
            "match" => {
                let (value, mask) = words.next()?.split_once('/')?;
                text += &format!(" match u32 0x{value} 0x{mask}");
            }
            "at" => text += &format!(" at {}", words.next()?),
            "flowid" | "*flowid" | "terminal" => {
                // `terminal flowid` has no class.
                if word == "terminal" {
                    words.next();
                } else if let Some(class) = words.next() {
                    text += &format!(" flowid {class}");
                }
            }
            "link" => text += &format!(" link {}", words.next()?),
            "hash" => {
                words.next();
                text += &format!(" hashkey mask 0x{}", words.next()?);
            }
            _ => {}
        }
    }
    Some(text)
}

/// fw, flow, flower, matchall, basic: conditions are shown as they are written.
fn other(kind: &str, words: &[&str]) -> String {
    let handle = named(words, "handle");
    // The handle of a fw filter is its mark, and a flow filter needs one. Those of others are numbers of the
    // kernel.
    let mark = handle
        .filter(|_| matches!(kind, "fw" | "flow"))
        .map_or(String::new(), |mark| format!("handle {mark} "));
    let mut text = format!("{mark}{kind}");
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "chain" | "handle" | "eth_type" => {
                words.next();
            }
            "not_in_hw" | "in_hw" | "skip_hw" => {}
            "*flowid" => text += " flowid",
            word => text += &format!(" {}", unit(word)),
        }
    }
    text
}

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;
