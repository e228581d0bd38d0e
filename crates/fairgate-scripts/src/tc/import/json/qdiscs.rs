//! Qdiscs and classes with their options.

use super::node::{Node, Object};
use super::{AS_TEXT, Wrong, needed, place};
use crate::tc::import::STAB;

/// Returns a qdisc in tc's words.
pub(super) fn qdisc(object: &Object) -> Result<Vec<String>, Wrong> {
    let kind = needed(object, "kind")?;
    let mut words = vec!["qdisc".to_owned(), kind.clone(), needed(object, "handle")?];
    words.extend(place(object));
    if let Some(options) = object.object("options") {
        for (key, value) in &options.0 {
            option(&kind, key, value, &mut words)?;
        }
        has_all(&kind, options)?;
    }
    if let Some(sizes) = object.object("stab") {
        words.push(STAB.to_owned());
        for (key, value) in &sizes.0 {
            let text = value.word().ok_or_else(|| unknown(key, value))?;
            words.extend([key.clone(), text]);
        }
    }
    Ok(words)
}

/// The fields of a class that are not options of it.
const OF_CLASS: [&str; 8] = [
    "class", "handle", "dev", "root", "parent", "leaf", "host", "stats",
];

/// Returns a class in tc's words.
pub(super) fn class(object: &Object) -> Result<Vec<String>, Wrong> {
    let kind = needed(object, "class")?;
    let mut words = vec!["class".to_owned(), kind.clone(), needed(object, "handle")?];
    words.extend(place(object));
    if kind == "drr" && object.get("quantum").is_none() {
        return Err(left_out("the quantum of a class of drr"));
    }
    for (key, value) in &object.0 {
        if !OF_CLASS.contains(&key.as_str()) {
            option(&kind, key, value, &mut words)?;
        }
    }
    Ok(words)
}

/// Rejects options of which tc prints only a part.
fn has_all(kind: &str, options: &Object) -> Result<(), Wrong> {
    let has = |key: &str| options.get(key).is_some();
    if kind == "tbf" && !has("peakrate") && (has("mtu") || has("minburst")) {
        return Err(left_out("the peak rate of a tbf"));
    }
    let has_queues = || {
        options
            .0
            .iter()
            .any(|(key, value)| key == "vqs" && matches!(value, Node::List(_)))
    };
    if kind == "gred" && !has_queues() {
        return Err(left_out("the virtual queues of a gred"));
    }
    Ok(())
}

fn left_out(what: &str) -> Wrong {
    Wrong::new(format!("tc leaves {what} out of its JSON"), AS_TEXT)
}

/// How tc's JSON has the value of an option.
#[derive(Clone, Copy)]
enum Form {
    /// As it is written: a number, a text, a list of numbers.
    Plain,
    Bytes,
    BytesPerSecond,
    Micros,
    Packets,
    /// The value itself is the word.
    Bare,
    /// It is shown, and follows from the others.
    Ignored,
}

use Form::{Bare, Bytes, BytesPerSecond, Ignored, Micros, Packets, Plain};

/// Options whose word or value is not the same as in JSON: kind, key, word, form. An empty kind is any kind.
const OPTIONS: &[(&str, &str, &str, Form)] = &[
    ("", "rate", "rate", BytesPerSecond),
    ("", "ceil", "ceil", BytesPerSecond),
    ("", "peakrate", "peakrate", BytesPerSecond),
    ("", "bandwidth", "bandwidth", BytesPerSecond),
    ("", "maxrate", "maxrate", BytesPerSecond),
    ("", "defrate", "defrate", BytesPerSecond),
    ("", "low_rate_threshold", "low_rate_threshold", BytesPerSecond),
    ("", "burst", "burst", Bytes),
    ("", "cburst", "cburst", Bytes),
    ("", "minburst", "minburst", Bytes),
    ("", "memory_limit", "memory_limit", Bytes),
    ("", "memlimit", "memlimit", Bytes),
    ("tbf", "mpu", "mpu", Bytes),
    ("htb", "mpu_rate", "mpu", Bytes),
    ("htb", "mpu_ceil", "mpu", Bytes),
    ("", "multiqueue", "", Ignored),
    ("htb", "burst_cell", "", Ignored),
    ("htb", "cburst_cell", "", Ignored),
    ("", "interval", "interval", Micros),
    ("", "ce_threshold", "ce_threshold", Micros),
    ("", "tupdate", "tupdate", Micros),
    ("", "lat", "lat", Micros),
    ("", "rtt", "rtt", Micros),
    ("", "refill_delay", "refill_delay", Micros),
    ("", "timer_slack", "timer_slack", Micros),
    ("", "horizon", "horizon", Micros),
    ("", "offload_horizon", "offload_horizon", Micros),
    ("", "reset_timeout", "reset_timeout", Micros),
    ("", "evict_timeout", "evict_timeout", Micros),
    ("sfb", "rehash", "rehash", Micros),
    ("sfb", "db", "db", Micros),
    ("sfb", "target", "target", Packets),
    ("", "target", "target", Micros),
    ("fq", "priomap ", "priomap", Plain),
    ("fq", "weights ", "weights", Plain),
    ("cake", "diffserv", "", Bare),
    ("cake", "flowmode", "", Bare),
    ("cake", "autorate", "", Bare),
    ("cake", "atm", "", Bare),
    ("dualpi2", "memory-limit", "memlimit", Bytes),
    ("dualpi2", "step-thresh-us", "step_thresh", Micros),
    ("dualpi2", "step-thresh-pkts", "step_thresh", Packets),
    ("dualpi2", "min-qlen-step", "min_qlen_step", Packets),
    ("dualpi2", "coupling", "coupling_factor", Plain),
    ("dualpi2", "c-protection", "classic_protection", Plain),
];

/// Words for a value: kind, key, value, word. An empty word is none.
const WORDS: &[(&str, &str, Node, &str)] = &[
    ("cake", "nat", Node::Flag(false), "nonat"),
    ("cake", "wash", Node::Flag(false), "nowash"),
    ("cake", "split_gso", Node::Flag(true), "split-gso"),
    ("cake", "split_gso", Node::Flag(false), "no-split-gso"),
    ("fq", "pacing", Node::Flag(false), "nopacing"),
    ("netem", "gap", Node::Integer(0), ""),
    ("dualpi2", "split-gso", Node::Null, "split_gso"),
];

/// The same for values that are texts.
const NAMES: &[(&str, &str, &str, &str)] = &[
    ("cake", "ack-filter", "enabled", "ack-filter"),
    ("cake", "ack-filter", "aggressive", "ack-filter-aggressive"),
    ("cake", "ack-filter", "disabled", "no-ack-filter"),
    ("cake", "fwmark", "0", ""),
    ("mqprio", "mode", "dcb", "mode:dcb"),
    ("mqprio", "shaper", "dcb", "shaper:dcb"),
    ("dualpi2", "drop-overload", "drop", "drop_on_overload"),
    ("dualpi2", "drop-overload", "overflow", "overflow"),
    ("dualpi2", "drop-early", "drop-enqueue", "drop_enqueue"),
    ("dualpi2", "drop-early", "drop-dequeue", "drop_dequeue"),
    ("dualpi2", "ecn-mask", "l4s-ect", "l4s_ect"),
    ("dualpi2", "ecn-mask", "any-ect", "any_ect"),
];

/// Adds an option in tc's words.
fn option(kind: &str, key: &str, value: &Node, words: &mut Vec<String>) -> Result<(), Wrong> {
    let mut add = |parts: &[&str]| words.extend(parts.iter().map(|part| (*part).to_owned()));
    let is_this = |of: &str, name: &str| of == kind && name == key;
    let by_value = WORDS
        .iter()
        .find(|(of, name, meant, _)| is_this(of, name) && meant == value);
    let by_name = NAMES
        .iter()
        .find(|(of, name, text, _)| is_this(of, name) && *value == Node::Text((*text).to_owned()));
    let word = by_value
        .map(|(.., word)| *word)
        .or(by_name.map(|(.., word)| *word));
    if let Some(word) = word {
        if !word.is_empty() {
            add(&[word]);
        }
        return Ok(());
    }
    let entry = OPTIONS
        .iter()
        .find(|(of, name, ..)| (of.is_empty() || *of == kind) && *name == key);
    let (word, form) = entry.map_or((key, Plain), |(_, _, word, form)| (*word, *form));
    match (value, form) {
        (_, Ignored) | (Node::Flag(false), _) => {}
        (Node::Flag(true) | Node::Null, _) => add(&[word]),
        (Node::Text(text), Bare) => add(&[text]),
        (Node::Text(text), _) => add(&[word, text]),
        (Node::Integer(number), BytesPerSecond) => add(&[word, &format!("{}bit", number.saturating_mul(8))]),
        (Node::Integer(number), Bytes) => add(&[word, &format!("{number}b")]),
        (Node::Integer(number), Micros) => add(&[word, &format!("{number}us")]),
        (Node::Integer(number), Packets) => add(&[word, &format!("{number}p")]),
        (Node::Integer(number), Plain) => add(&[word, &number.to_string()]),
        (Node::Decimal(number), _) => add(&[word, &decimal(*number)]),
        (Node::Integer(_), Bare) => return Err(unknown(key, value)),
        (Node::List(list), _) => match (kind, key) {
            ("mqprio", "queues") => queues(list, words)?,
            ("gred", "vqs") => virtual_queues(list, words)?,
            _ => {
                add(&[word]);
                for number in list {
                    words.push(number.word().ok_or_else(|| unknown(key, number))?);
                }
            }
        },
        (Node::Object(object), _) => match kind {
            "hfsc" => curve(key, object, words)?,
            "netem" => netem(key, object, words)?,
            _ => return Err(unknown(key, value)),
        },
    }
    Ok(())
}

/// A service curve: `{"m1": bytes/s, "d": us, "m2": bytes/s}`.
fn curve(key: &str, curve: &Object, words: &mut Vec<String>) -> Result<(), Wrong> {
    words.push(key.to_owned());
    for (name, value) in &curve.0 {
        let text = match (name.as_str(), value) {
            ("m1" | "m2", Node::Integer(rate)) => format!("{}bit", rate.saturating_mul(8)),
            ("d", Node::Integer(micros)) => format!("{micros}us"),
            _ => return Err(unknown(name, value)),
        };
        words.extend([name.clone(), text]);
    }
    Ok(())
}

/// The virtual queues of a gred: objects whose first key is `vq`. The key of the list is that of their number
/// too.
fn virtual_queues(queues: &[Node], words: &mut Vec<String>) -> Result<(), Wrong> {
    for queue in queues {
        let Node::Object(queue) = queue else {
            return Err(unknown("vqs", queue));
        };
        for (key, value) in &queue.0 {
            option("gred", key, value, words)?;
        }
    }
    Ok(())
}

/// The first and the last queue of each traffic class, as in the text: `queues:(0:1) (2:3)`.
fn queues(classes: &[Node], words: &mut Vec<String>) -> Result<(), Wrong> {
    for (number, class) in classes.iter().enumerate() {
        let ends = match class {
            Node::List(ends) => ends.iter().map(Node::word).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let Some([first, last]) = ends.as_deref() else {
            return Err(unknown("queues", class));
        };
        let before = if number == 0 { "queues:" } else { "" };
        words.push(format!("{before}({first}:{last})"));
    }
    Ok(())
}

/// An option of netem: seconds and parts of one, where text has times and percentages.
fn netem(key: &str, values: &Object, words: &mut Vec<String>) -> Result<(), Wrong> {
    let number = |name: &str| {
        let value = values.get(name);
        value
            .and_then(Node::number)
            .ok_or_else(|| unknown(name, value.unwrap_or(&Node::Null)))
    };
    let percent = |part: f64| format!("{}%", decimal(part * 100.0));
    let time = |seconds: f64| format!("{}ns", (seconds * 1e9).round().max(0.0) as u64);
    match key {
        "delay" => {
            words.extend([key.to_owned(), time(number("delay")?)]);
            let (jitter, correlation) = (number("jitter")?, number("correlation").unwrap_or(0.0));
            if jitter > 0.0 {
                words.push(time(jitter));
                words.extend((correlation > 0.0).then(|| percent(correlation)));
            }
        }
        "loss-random" | "duplicate" | "reorder" | "corrupt" => {
            let word = if key == "loss-random" { "loss" } else { key };
            words.extend([word.to_owned(), percent(number(word)?)]);
            let correlation = number("correlation")?;
            words.extend((correlation > 0.0).then(|| percent(correlation)));
        }
        "loss-state" => {
            words.extend(["loss", "state"].map(str::to_owned));
            for name in ["p13", "p31", "p32", "p23", "p14"] {
                words.push(percent(number(name)?));
            }
        }
        "loss-gemodel" => {
            words.extend(["loss", "gemodel"].map(str::to_owned));
            for name in ["p", "r", "1-h", "1-k"] {
                words.push(percent(number(name)?));
            }
        }
        "rate" => {
            let bits = number("rate")? * 8.0;
            words.extend([key.to_owned(), format!("{bits}bit")]);
            // They are read by their places.
            let rest = ["packetoverhead", "cellsize", "celloverhead"].map(|name| number(name).unwrap_or(0.0));
            let given = rest
                .iter()
                .rposition(|number| *number != 0.0)
                .map_or(0, |last| last + 1);
            words.extend(rest[..given].iter().map(f64::to_string));
        }
        "slot" => {
            words.push(key.to_owned());
            match values.get("distribution") {
                Some(_) => {
                    words.extend(["distribution".to_owned(), time(number("distribution")?)]);
                    words.push(time(number("jitter")?));
                }
                None => words.extend([time(number("min-delay")?), time(number("max-delay")?)]),
            }
            for name in ["packets", "bytes"] {
                let most = number(name).unwrap_or(0.0);
                if most > 0.0 {
                    words.extend([name.to_owned(), most.to_string()]);
                }
            }
        }
        _ => return Err(unknown(key, &Node::Null)),
    }
    Ok(())
}

/// Returns a number with the six digits that tc prints.
fn decimal(number: f64) -> String {
    let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    rounded.to_string()
}

fn unknown(key: &str, value: &Node) -> Wrong {
    let value = match value.word() {
        Some(word) => format!(" ({word})"),
        None => String::new(),
    };
    Wrong::new(format!("the key `{key}`{value} is not understood"), AS_TEXT)
}
