//! The commands that make what tc shows: the reverse of `tc -d qdisc show`, `class show` and `filter show`,
//! with and without `-j`.
//!
//! ```text
//!   text     a listing as text -> entries, in tc's words
//!   json     a listing as JSON -> the same entries: values are exact, where text has three or four digits
//!   objects  an entry of a qdisc or a class -> its command; options: the words of its options
//!   filters  an entry of a filter -> its command
//!   average  options of red, choke and gred, from what tc computes from them and shows
//!   bucket   the depth of a bucket, of which tc shows what the kernel's clock leaves
//! ```
//!
//! tc shows options mostly as it reads them. What differs is in three tables: words that are no options
//! (`SHOWN_ONLY`), numbers with a unit that tc does not read back (`unit`), and words with other names.
//! Everything else is left as it is, so that what is unknown becomes an error of the translation.

mod average;
mod bucket;
mod filters;
mod json;
mod objects;
mod options;
mod text;

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::iter::successors;

/// A listing that tc printed.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'l> {
    /// The device that was asked for.
    pub device: &'l str,
    /// The qdisc or class whose filters these are: `1:`, `ingress`. Empty for the root, and for qdiscs and
    /// classes.
    pub parent: &'l str,
    /// What tc printed: text, or JSON, which begins with a bracket.
    pub text: &'l str,
}

impl Printed<'_> {
    /// Whether it is what tc prints with `-j`.
    pub fn is_json(&self) -> bool {
        self.text.trim_start().starts_with('[')
    }
}

/// A command, and the entry of the listing that it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Which listing, by its place in the arguments.
    pub listing: usize,
    /// The first line of the entry, counted from 1.
    pub line: usize,
    /// The element of the list, counted from 1, if the listing is JSON. tc prints it on one line.
    pub element: Option<usize>,
    /// The command, without `tc`.
    pub command: String,
}

/// Why a listing can't be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Which listing, by its place in the arguments.
    pub listing: usize,
    /// The line, counted from 1.
    pub line: usize,
    /// The element of the list, counted from 1, if the listing is JSON.
    pub element: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do instead.
    pub help: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(element) = self.element {
            write!(f, ", element {element}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl Error for ImportError {}

/// Returns the commands that make what these listings show, in an order in which they can be run: qdiscs and
/// classes from the root on, then filters.
///
/// # Errors
///
/// A listing in JSON that is damaged, or from which tc leaves something out; a red, choke or gred that was
/// not listed in detail; and a filter with conditions that tc does not read back. Words that nothing here
/// knows are left to the translation of the commands.
///
/// ```
/// use fairgate_scripts::tc::{Printed, import};
/// let listing = |text| Printed { device: "eth0", parent: "", text };
/// let commands = import(&[
///     listing(r#"[{"kind":"htb","handle":"1:","root":true,"options":{"r2q":10,"default":"0x10"}}]"#),
///     listing("class htb 1:10 root leaf 8001: prio 0 rate 5Mbit ceil 5Mbit burst 1600b \n"),
/// ])?;
/// assert_eq!(commands[0].command, "qdisc add dev eth0 root handle 1: htb r2q 10 default 0x10");
/// assert_eq!(
///     commands[1].command,
///     "class add dev eth0 parent 1: classid 1:10 htb prio 0 rate 5Mbit ceil 5Mbit burst 1600b"
/// );
/// # Ok::<(), fairgate_scripts::tc::ImportError>(())
/// ```
pub fn import(listings: &[Printed]) -> Result<Vec<Imported>, ImportError> {
    let mut objects: Vec<(Object, Imported)> = Vec::new();
    let mut filters: Vec<Imported> = Vec::new();
    for (number, listing) in listings.iter().enumerate() {
        let located = |place: ListingPosition, wrong: Wrong| ImportError {
            listing: number,
            line: place.line,
            element: place.element,
            message: wrong.message,
            help: wrong.help,
        };
        let entries = match listing.is_json() {
            true => json::entries(listing.text).map_err(|(place, wrong)| located(place, wrong))?,
            false => text::entries(listing.text),
        };
        for Entry { place, words } in entries {
            let imported = |command| Imported {
                listing: number,
                line: place.line,
                element: place.element,
                command,
            };
            let words: Vec<&str> = words.iter().map(Cow::as_ref).collect();
            match words[..] {
                ["qdisc", kind, handle, ref rest @ ..] => {
                    let made = objects::qdisc(listing, kind, handle, rest);
                    let made = made.map_err(|wrong| located(place, wrong))?;
                    objects.extend(made.into_iter().map(|(at, text)| (at, imported(text))));
                }
                ["class", kind, id, ref rest @ ..] => {
                    let made = objects::class(listing, kind, id, rest);
                    let made = made.map_err(|wrong| located(place, wrong))?;
                    objects.extend(made.map(|(at, text)| (at, imported(text))));
                }
                ["filter", ref rest @ ..] => {
                    let made = filters::filter(listing, rest).map_err(|wrong| located(place, wrong))?;
                    filters.extend(made.map(imported));
                }
                _ => {}
            }
        }
    }
    let mut commands = in_order(objects);
    commands.extend(filters);
    Ok(commands)
}

/// Where an entry is in its listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListingPosition {
    line: usize,
    element: Option<usize>,
}

/// A qdisc, a class or a filter, in the words with which tc shows it as text.
#[derive(Clone, Debug, PartialEq)]
struct Entry<'t> {
    place: ListingPosition,
    words: Vec<Cow<'t, str>>,
}

/// Why an entry can't be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong {
    message: String,
    help: String,
}

impl Wrong {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Wrong {
        Wrong {
            message: message.into(),
            help: help.into(),
        }
    }
}

/// The word between the options of a qdisc and its table of sizes (`tc ... stab`).
const STAB: &str = "stab";

/// Words of the table of sizes, which is shown after the options and written before the kind.
const SIZES: [&str; 6] = ["linklayer", "overhead", "mpu", "mtu", "tsize", "data"];

/// What a qdisc or class is attached to, and what can be attached to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Object {
    device: String,
    /// `1:` or `1:10`; empty for a root.
    parent: String,
    id: String,
}

/// Sorts so that every parent comes before its children, in time proportional to their number.
fn in_order(objects: Vec<(Object, Imported)>) -> Vec<Imported> {
    let ids = objects
        .iter()
        .enumerate()
        .map(|(at, (object, _))| ((&*object.device, &*object.id), at));
    let places: HashMap<(&str, &str), usize> = ids.collect();
    let above = |at: usize| {
        let object = &objects[at].0;
        // A qdisc with a fixed class, like a tbf, is before what is in the class, which has no line.
        let major = object.parent.find(':').map(|colon| &object.parent[..=colon]);
        let holders = [Some(&*object.parent), major].into_iter().flatten();
        holders
            .filter_map(|id| places.get(&(&*object.device, id)).copied())
            .find(|holder| *holder != at)
    };
    // A circle can't be made by the kernel. If a listing has one, it ends here.
    let depth = |at: usize| successors(Some(at), |at| above(*at)).take(DEEPEST).count();
    let depths: Vec<usize> = (0..objects.len()).map(depth).collect();
    let mut sorted: Vec<(usize, Imported)> = depths
        .into_iter()
        .zip(objects.into_iter().map(|(_, imported)| imported))
        .collect();
    sorted.sort_by_key(|(depth, _)| *depth);
    sorted.into_iter().map(|(_, imported)| imported).collect()
}

/// More than any tree has levels: the kernel allows eight of htb, and eight qdiscs within one another.
const DEEPEST: usize = 200;

/// Returns a number without the unit that tc shows and does not read: `77p` is 77 packets, `10sec` 10 s.
fn unit(word: &str) -> String {
    let number = ["pps", "p", "sec"]
        .iter()
        .find_map(|unit| word.strip_suffix(unit));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number.filter(|text| is_number(text)).unwrap_or(word).to_owned()
}

fn named<'w>(words: &[&'w str], name: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1).copied()
}

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;
