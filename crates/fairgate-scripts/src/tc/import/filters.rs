//! The commands of filters.

use std::iter::Peekable;

use super::{Printed, Wrong, named, unit};

/// Returns the command of a filter. Its first entry, and the tables that the kernel makes, have none.
pub(super) fn filter(listing: &Printed, words: &[&str]) -> Result<Option<String>, Wrong> {
    let device = listing.device;
    let Some(at) = words.iter().position(|word| *word == "pref") else {
        return Ok(None);
    };
    let [head, [_, preference, kind, rest @ ..]] = [&words[..at], &words[at..]] else {
        return Ok(None);
    };
    let hook = head
        .iter()
        .copied()
        .find(|word| matches!(*word, "root" | "ingress" | "egress"));
    let place = match named(head, "parent").or(hook).unwrap_or(listing.parent) {
        "" => String::new(),
        hook @ ("ingress" | "egress" | "root") => format!(" {hook}"),
        parent => format!(" parent {parent}"),
    };
    let protocol = named(head, "protocol").unwrap_or("all");
    let (conditions, actions) = split_actions(rest)?;
    let chain = match named(&conditions, "chain").filter(|chain| *chain != "0") {
        Some(chain) => format!(" chain {chain}"),
        None => String::new(),
    };
    let head = format!("filter add dev {device}{place}{chain} protocol {protocol} pref {preference}");
    let conditions = match *kind {
        "u32" => u32(&conditions)?,
        // An entry without a handle only introduces those that follow.
        _ => named(&conditions, "handle").map(|_| other(kind, &conditions)),
    };
    Ok(conditions.map(|conditions| {
        let mut command = format!("{head} {conditions}");
        for action in actions {
            command += &format!(" action {action}");
        }
        command
    }))
}

/// Splits the words of a filter from those of its actions (`action order 1: ...`).
fn split_actions<'w>(words: &[&'w str]) -> Result<(Vec<&'w str>, Vec<String>), Wrong> {
    let mut parts = words.split(|word| *word == "action").map(<[&str]>::to_vec);
    let mut conditions = parts.next().unwrap_or_default();
    let mut actions: Vec<String> = Vec::new();
    // A policer that was written without `action` stands after the conditions.
    if let Some(at) = conditions.iter().position(|word| *word == "police") {
        actions.push(action(&conditions.split_off(at))?);
    }
    for part in parts {
        match part[..] {
            ["order", _, ref rest @ ..] => actions.push(action(rest)?),
            // `gact action drop`: the words are a part of the action before.
            [verdict, ref rest @ ..] => match actions.last_mut() {
                Some(last) if last == "gact" => *last = action(&part)?,
                // What follows the verdict of a policer are its options.
                Some(last) if last.starts_with("police") => {
                    let form = if verdict.contains('/') {
                        "conform-exceed "
                    } else {
                        ""
                    };
                    *last += &format!("{} {form}{verdict}", of_policer(uncounted(rest)));
                }
                Some(last) => *last += &format!(" {}", action(&part)?),
                None => {}
            },
            [] => {}
        }
    }
    Ok((conditions, actions))
}

/// Returns an action as it is written. Its counters and numbers are left out.
fn action(words: &[&str]) -> Result<String, Wrong> {
    if let Some(chance) = named(words, "type").filter(|chance| *chance != "none") {
        return Err(Wrong::new(
            format!("the action is done by chance (`random {chance}`)"),
            "an action is always done here: import the device without this filter",
        ));
    }
    Ok(match uncounted(words) {
        ["mirred", direction, verb, "to", "device", device, ..] => {
            let direction = direction.trim_start_matches('(').to_lowercase();
            let device = device.trim_end_matches(')');
            format!("mirred {direction} {} dev {device}", verb.to_lowercase())
        }
        ["connmark", ..] => "connmark".to_owned(),
        // The number of a policer among those of the kernel.
        ["police", number, options @ ..] if number.starts_with("0x") => {
            format!("police{}", of_policer(options))
        }
        words => words.join(" "),
    })
}

/// Returns the words before the counters.
fn uncounted<'a, 'w>(words: &'a [&'w str]) -> &'a [&'w str] {
    let is_counter = |word: &&str| matches!(*word, "index" | "random" | "ref");
    let end = words.iter().position(is_counter).unwrap_or(words.len());
    &words[..end]
}

/// Returns the options of a policer. Some are shown although nobody set them.
fn of_policer(options: &[&str]) -> String {
    let is_default = |pair: &&[&str]| matches!(*pair, ["overhead", "0b"] | ["linklayer", "ethernet"]);
    let given = options.chunks(2).filter(|pair| !is_default(pair));
    given.map(|pair| format!(" {}", pair.join(" "))).collect()
}

fn u32(words: &[&str]) -> Result<Option<String>, Wrong> {
    let Some(handle) = named(words, "fh") else {
        return Ok(None);
    };
    if let Some(divisor) = named(words, "divisor") {
        // Tables of one bucket are the kernel's own.
        let number = handle.trim_end_matches(':');
        return Ok((divisor != "1").then(|| format!("handle {number}: u32 divisor {divisor}")));
    }
    let missing = || {
        Wrong::new(
            format!("the u32 filter {handle} ends in its middle"),
            "save the whole output of tc",
        )
    };
    let mut text = "u32".to_owned();
    let (table, bucket) = named(words, "ht").zip(named(words, "bkt")).ok_or_else(missing)?;
    // The roots of preferences are numbered from 800 on.
    let is_root = usize::from_str_radix(table, 16).is_ok_and(|number| number >= 0x800);
    if !is_root {
        text += &format!(" ht {table}:{bucket}:");
    }
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        if word == "offset" {
            text += &jump(&mut words);
            continue;
        }
        let mut value = || words.next().ok_or_else(missing);
        match word {
            "match" => {
                let (value, mask) = value()?.split_once('/').ok_or_else(|| {
                    Wrong::new(
                        format!("the conditions of the u32 filter {handle} are shown in words"),
                        "leave out `-p`: tc then prints their bytes, which it reads again",
                    )
                })?;
                text += &format!(" match u32 0x{value} 0x{mask}");
            }
            "at" | "link" => text += &format!(" {word} {}", value()?),
            "flowid" | "*flowid" => text += &format!(" flowid {}", value()?),
            // `terminal flowid` has no class.
            "terminal" => {
                value()?;
            }
            "hash" => {
                value()?;
                text += &format!(" hashkey mask 0x{}", value()?);
            }
            "eat" => text += " eat",
            "chain" | "fh" | "order" | "ht" | "bkt" => {
                value()?;
            }
            "key" | "not_in_hw" | "in_hw" | "skip_hw" => {}
            unknown => {
                return Err(Wrong::new(
                    format!("`{unknown}` of the u32 filter {handle} is not understood"),
                    "import the device without this filter, and write it with flower or with `match`",
                ));
            }
        }
    }
    Ok(Some(text))
}

/// Returns where the next table of a u32 filter counts from: `offset 0f00>>6 at 0 plus 4` is shown, and
/// `offset at 0 mask 0x0f00 shift 6 plus 4` is read.
fn jump<'w>(words: &mut Peekable<impl Iterator<Item = &'w str>>) -> String {
    let mut text = " offset".to_owned();
    if let Some((mask, shift)) = words.peek().and_then(|word| word.split_once(">>")) {
        words.next();
        text += &format!(" mask 0x{mask} shift {shift}");
    }
    while let Some(word) = words.next_if(|word| matches!(*word, "at" | "plus")) {
        text += &format!(" {word} {}", words.next().unwrap_or_default());
    }
    text
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
