//! Filters and their actions.

use super::node::{Node, Object};
use super::{AS_TEXT, Wrong, needed, place};

/// Keys that say where a filter is handled, or count. They are no conditions.
const NO_CONDITIONS: [&str; 9] = [
    "not_in_hw",
    "in_hw",
    "in_hw_count",
    "skip_hw",
    "rule_hit",
    "success",
    "order",
    "actions",
    "used_hw_stats",
];

/// Returns a filter in tc's words.
pub(super) fn filter(object: &Object) -> Result<Vec<String>, Wrong> {
    let mut words = vec!["filter".to_owned()];
    words.extend(place(object));
    if let Some(protocol) = object.text("protocol") {
        words.extend(["protocol".to_owned(), protocol.to_owned()]);
    }
    let kind = needed(object, "kind")?;
    words.extend(["pref".to_owned(), needed(object, "pref")?, kind.clone()]);
    if let Some(chain) = object.word("chain") {
        words.extend(["chain".to_owned(), chain]);
    }
    let Some(options) = object.object("options") else {
        return Ok(words);
    };
    match kind.as_str() {
        "u32" => u32(options, &mut words)?,
        "flow" => flow(options, &mut words)?,
        "fw" => fw(options, &mut words)?,
        _ => others(options, &mut words)?,
    }
    // A policer that was written without `action`: its keys stand among the filter's.
    if options.text("kind") == Some("police") {
        action(options, &mut words)?;
    }
    for one in options.list("actions").unwrap_or_default() {
        let Node::Object(one) = one else {
            return Err(unknown("actions", &Node::Null));
        };
        words.extend(["action", "order", "1:"].map(str::to_owned));
        action(one, &mut words)?;
    }
    Ok(words)
}

fn u32(options: &Object, words: &mut Vec<String>) -> Result<(), Wrong> {
    // Those of a policer come after those of the filter.
    let own = options.0.iter().take_while(|(key, _)| key != "kind");
    for (key, value) in own {
        let text = || value.word().ok_or_else(|| unknown(key, value));
        match key.as_str() {
            key if NO_CONDITIONS.contains(&key) => {}
            "fh" | "bkt" | "flowid" | "link" | "plus" => words.extend([key.clone(), text()?]),
            "ht_divisor" => words.extend(["ht".to_owned(), "divisor".to_owned(), text()?]),
            "key_ht" => words.extend(["key".to_owned(), "ht".to_owned(), text()?]),
            "match" => {
                let Node::Object(bytes) = value else {
                    return Err(unknown(key, value));
                };
                let parts = bytes.text("value").zip(bytes.text("mask"));
                let Some(((value, mask), offset)) = parts.zip(bytes.word("off")) else {
                    return Err(Wrong::new(
                        "the conditions of this u32 filter are shown in words",
                        "leave out `-p`: tc then prints their bytes, which it reads again",
                    ));
                };
                let from = bytes.text("offmask").unwrap_or_default();
                words.extend([
                    "match".to_owned(),
                    format!("{value:0>8}/{mask:0>8}"),
                    "at".to_owned(),
                    format!("{from}{offset}"),
                ]);
            }
            "hash_mask" => words.extend(["hash".to_owned(), "mask".to_owned(), text()?]),
            "hash_off" | "offset_off" => words.extend(["at".to_owned(), text()?]),
            "offset_mask" => words.extend(["offset".to_owned(), text()?]),
            "offset_shift" => {
                let shift = text()?;
                if let Some(mask) = words.last_mut() {
                    *mask += &format!(">>{shift}");
                }
            }
            _ => return Err(unknown(key, value)),
        }
    }
    Ok(())
}

fn fw(options: &Object, words: &mut Vec<String>) -> Result<(), Wrong> {
    for (key, value) in options.0.iter().take_while(|(key, _)| key != "kind") {
        match (key.as_str(), value) {
            ("fw", Node::Object(mark)) => {
                let number = needed(mark, "mark")?;
                let handle = match mark.text("mask") {
                    None | Some("0xffffffff") => number,
                    Some(mask) => format!("{number}/{mask}"),
                };
                words.extend(["handle".to_owned(), handle]);
            }
            ("actions", _) => {}
            ("classid" | "indev", Node::Text(text)) => words.extend([key.clone(), text.clone()]),
            _ => return Err(unknown(key, value)),
        }
    }
    Ok(())
}

fn flow(options: &Object, words: &mut Vec<String>) -> Result<(), Wrong> {
    for (key, value) in options.0.iter().take_while(|(key, _)| key != "kind") {
        match (key.as_str(), value) {
            ("actions", _) => {}
            ("mode", Node::Text(mode)) => words.push(mode.clone()),
            ("keys", Node::List(keys)) => {
                let keys: Option<Vec<String>> = keys.iter().map(Node::word).collect();
                let keys = keys.ok_or_else(|| unknown(key, value))?;
                words.extend(["keys".to_owned(), keys.join(",")]);
            }
            ("perturb", Node::Integer(seconds)) => words.extend([key.clone(), format!("{seconds}sec")]),
            ("handle" | "and" | "xor" | "or" | "rshift" | "addend" | "divisor" | "baseclass", value) => {
                let text = value.word().ok_or_else(|| unknown(key, value))?;
                words.extend([key.clone(), text]);
            }
            _ => return Err(unknown(key, value)),
        }
    }
    Ok(())
}

/// flower, matchall, basic.
fn others(options: &Object, words: &mut Vec<String>) -> Result<(), Wrong> {
    for (key, value) in options.0.iter().take_while(|(key, _)| key != "kind") {
        match (key.as_str(), value) {
            (key, _) if NO_CONDITIONS.contains(&key) => {}
            ("keys", Node::Object(keys)) => conditions(keys, words)?,
            (key, value) => condition(key, value, words)?,
        }
    }
    Ok(())
}

/// The conditions of flower.
fn conditions(keys: &Object, words: &mut Vec<String>) -> Result<(), Wrong> {
    for (key, value) in &keys.0 {
        // The mask of the condition before it.
        let masked = key.strip_suffix("_mask");
        match (masked, value, &mut words[..]) {
            (Some(masked), Node::Text(mask), [.., before, last]) if before == masked => {
                *last += &format!("/0x{mask}");
            }
            _ => condition(key, value, words)?,
        }
    }
    Ok(())
}

fn condition(key: &str, value: &Node, words: &mut Vec<String>) -> Result<(), Wrong> {
    let text = match value {
        Node::Object(range) if range.get("start").is_some() => {
            format!("{}-{}", needed(range, "start")?, needed(range, "end")?)
        }
        // `ip_flags`: which are set, and which are not.
        Node::Object(flags) => {
            let flag = |(name, value): &(String, Node)| match value {
                Node::Flag(true) => Ok(name.clone()),
                Node::Flag(false) => Ok(format!("no{name}")),
                other => Err(unknown(name, other)),
            };
            let flags: Result<Vec<String>, Wrong> = flags.0.iter().map(flag).collect();
            flags?.join("/")
        }
        other => other.word().ok_or_else(|| unknown(key, other))?,
    };
    words.extend([key.to_owned(), text]);
    Ok(())
}

/// Returns an action in tc's words.
fn action(object: &Object, words: &mut Vec<String>) -> Result<(), Wrong> {
    let kind = needed(object, "kind")?;
    let control = object.object("control_action");
    let verdict = || -> Result<Vec<String>, Wrong> {
        let Some(control) = control else {
            return Ok(Vec::new());
        };
        let mut verdict = vec![needed(control, "type")?];
        // `goto chain 5`, `jump 2`.
        for (key, is_shown) in [("chain", true), ("jump", false)] {
            if let Some(number) = control.word(key) {
                verdict.extend(is_shown.then(|| key.to_owned()));
                verdict.push(number);
            }
        }
        Ok(verdict)
    };
    match kind.as_str() {
        "gact" => {
            words.extend(["gact".to_owned(), "action".to_owned()]);
            words.extend(verdict()?);
            if let Some(random) = object.object("prob").and_then(|prob| prob.text("random_type")) {
                words.extend(["random", "type", random].map(str::to_owned));
            }
        }
        "mirred" => {
            words.extend([
                kind,
                format!("({}", needed(object, "direction")?),
                needed(object, "mirred_action")?,
                "to".to_owned(),
                "device".to_owned(),
                format!("{})", needed(object, "to_dev")?),
            ]);
            words.extend(verdict()?);
        }
        "connmark" | "ctinfo" => {
            words.push(kind);
            words.extend(verdict()?);
        }
        "skbedit" => {
            words.push(kind);
            for key in ["queue_mapping", "priority", "mark", "ptype"] {
                if let Some(value) = object.word(key) {
                    words.extend([key.to_owned(), value]);
                }
                if let (Some(mask), "mark", Some(mark)) = (object.text("mask"), key, words.last_mut()) {
                    *mark += &format!("/0x{mask}");
                }
            }
            words.extend(object.get("inheritdsfield").map(|_| "inheritdsfield".to_owned()));
            words.extend(verdict()?);
        }
        _ => {
            return Err(Wrong::new(
                format!("tc leaves the options of the action `{kind}` out of its JSON"),
                AS_TEXT,
            ));
        }
    }
    Ok(())
}

fn unknown(key: &str, value: &Node) -> Wrong {
    let value = match value.word() {
        Some(word) => format!(" ({word})"),
        None => String::new(),
    };
    Wrong::new(
        format!("the key `{key}`{value} of this filter is not understood"),
        "import the device without this filter, and write it by hand",
    )
}
