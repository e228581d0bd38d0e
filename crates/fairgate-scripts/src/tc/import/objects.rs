//! The commands of qdiscs and classes.

use super::options::{gred, options};
use super::{Object, Printed, SIZES, STAB, Wrong, named};

/// Returns the commands of a qdisc: one, or more for a gred.
pub(super) fn qdisc(
    listing: &Printed,
    kind: &str,
    handle: &str,
    rest: &[&str],
) -> Result<Vec<(Object, String)>, Wrong> {
    let device = named(rest, "dev").unwrap_or(listing.device);
    // The kernel attached it by itself.
    if handle == "0:" {
        return Ok(Vec::new());
    }
    if matches!(kind, "ingress" | "clsact") {
        let object = object(device, "ffff:fff1", handle);
        return Ok(vec![(object, format!("qdisc add dev {device} {kind}"))]);
    }
    let parent = named(rest, "parent").unwrap_or_default();
    let place = match parent {
        "" => "root".to_owned(),
        parent => format!("parent {parent}"),
    };
    let words = without_place(rest);
    let own = words.iter().position(|word| *word == STAB).unwrap_or(words.len());
    let (own, stab) = words.split_at(own);
    let stab = match stab {
        [] => String::new(),
        [first, sizes @ ..] => format!(" {first} {}", sizes.join(" ")),
    };
    let (options, changes) = match kind {
        "gred" => gred(own)?,
        _ => (options(kind, own)?, Vec::new()),
    };
    let command = |verb: &str, stab: &str, options: &[String]| {
        let command = format!(
            "qdisc {verb} dev {device} {place} handle {handle}{stab} {kind} {}",
            options.join(" ")
        );
        (object(device, parent, handle), command.trim_end().to_owned())
    };
    let mut commands = vec![command("add", &stab, &options)];
    commands.extend(changes.iter().map(|options| command("change", "", options)));
    Ok(commands)
}

pub(super) fn class(
    listing: &Printed,
    kind: &str,
    id: &str,
    rest: &[&str],
) -> Result<Option<(Object, String)>, Wrong> {
    let device = listing.device;
    let Some((major, minor)) = id.split_once(':') else {
        return Ok(None);
    };
    let parent = named(rest, "parent").map_or_else(|| format!("{major}:"), str::to_owned);
    // Only these have classes of their own. The others are places for a qdisc, or flows.
    let has_classes = matches!(kind, "htb" | "hfsc" | "drr" | "qfq" | "cbq");
    if !has_classes || minor.is_empty() || (kind == "hfsc" && minor == "0") {
        return Ok(None);
    }
    let (words, link_layer) = without_link_layer(kind, &without_place(rest));
    let mut options = options(kind, &words)?;
    options.extend(link_layer);
    let command = format!(
        "class add dev {device} parent {parent} classid {id} {kind} {}",
        options.join(" ")
    );
    Ok(Some((object(device, &parent, id), command.trim_end().to_owned())))
}

fn object(device: &str, parent: &str, id: &str) -> Object {
    Object {
        device: device.to_owned(),
        parent: parent.to_owned(),
        id: id.to_owned(),
    }
}

/// Returns the words of a class, and those of its link layer. A class of htb shows it twice, for the rate and
/// for the ceil. Ethernet is the default.
fn without_link_layer<'w>(kind: &str, words: &[&'w str]) -> (Vec<&'w str>, Vec<String>) {
    let (mut left, mut link_layer) = (Vec::new(), Vec::new());
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if kind != "htb" || !SIZES.contains(&word) {
            left.push(word);
            continue;
        }
        let pair = format!("{word} {}", words.next().unwrap_or_default());
        let is_default = matches!(pair.as_str(), "linklayer ethernet" | "mpu 0b" | "overhead 0");
        if !is_default && !link_layer.contains(&pair) {
            link_layer.push(pair);
        }
    }
    (left, link_layer)
}

/// Returns the words that are not the place.
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
