//! A listing as JSON, in the words with which the same tc prints it as text.
//!
//! The keys are those of iproute2 6.1 to 7.1, by its sources. Values are exact: bytes per second, bytes and
//! microseconds, where text has three or four digits. tc leaves a few options out of its JSON, and prints
//! some kinds as text among it, depending on its version. Both are errors, with the remedy to ask for text.

mod filters;
mod node;
mod qdiscs;

use std::borrow::Cow;

use node::{Node, Object};

use super::{Entry, ListingPosition, Wrong};

/// The remedy for what is only in tc's text.
const AS_TEXT: &str = "save this listing as text: the same command without `-j`";

/// Returns the entries of a listing, or where it is wrong.
pub(super) fn entries(text: &str) -> Result<Vec<Entry<'static>>, (ListingPosition, Wrong)> {
    let mut entries = Vec::new();
    let lines = lines_of_elements(text);
    for list in serde_json::Deserializer::from_str(text).into_iter::<Vec<Node>>() {
        let list = list.map_err(|error| damaged(text, &error))?;
        for element in list {
            let number = entries.len() + 1;
            let place = ListingPosition {
                line: lines.get(number - 1).copied().unwrap_or(1),
                element: Some(number),
            };
            let words = words(&element).map_err(|wrong| (place, wrong))?;
            entries.push(Entry {
                place,
                words: words.into_iter().map(Cow::Owned).collect(),
            });
        }
    }
    Ok(entries)
}

/// Returns the error of a text that is no JSON.
fn damaged(text: &str, error: &serde_json::Error) -> (ListingPosition, Wrong) {
    // The parser reads a list as a whole. So the element is counted anew.
    let until = offset(text, error.line(), error.column());
    let number = lines_of_elements(&text[..until]).len();
    let place = ListingPosition {
        // The end of a text is behind its last line.
        line: error.line().clamp(1, text.lines().count().max(1)),
        element: (number > 0).then_some(number),
    };
    let wrong = Wrong::new(
        format!("this is not JSON: {error}"),
        format!(
            "tc prints some kinds as text even with `-j` (basic; fw and flow up to iproute2 6.7; hfsc and \
             qfq up to 7.0): {AS_TEXT}"
        ),
    );
    (place, wrong)
}

/// Returns the place of a line and a column, both counted from 1, as a number of bytes.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let at = (before + column).min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the line of each object in the outermost lists.
fn lines_of_elements(text: &str) -> Vec<usize> {
    let (mut lines, mut line, mut depth, mut in_text) = (Vec::new(), 1, 0usize, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match (byte, in_text) {
            (b'\n', _) => line += 1,
            (b'\\', true) => {
                bytes.next();
            }
            (b'"', _) => in_text = !in_text,
            (_, true) => {}
            (b'[' | b'{', _) => {
                if byte == b'{' && depth == 1 {
                    lines.push(line);
                }
                depth += 1;
            }
            (b']' | b'}', _) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    lines
}

/// Returns an element as words.
fn words(element: &Node) -> Result<Vec<String>, Wrong> {
    let Node::Object(object) = element else {
        return Err(Wrong::new(
            "this element is not an object",
            "give what `tc -j qdisc show`, `class show` or `filter show` prints, unchanged",
        ));
    };
    let words = if object.get("class").is_some() {
        qdiscs::class(object)?
    } else if object.get("pref").is_some() || object.get("protocol").is_some() {
        filters::filter(object)?
    } else if object.get("kind").is_some() && object.get("handle").is_some() {
        qdiscs::qdisc(object)?
    } else {
        return Err(Wrong::new(
            "this element is no qdisc, no class and no filter",
            "give what `tc -j qdisc show`, `class show` or `filter show` prints, unchanged",
        ));
    };
    // A text of several words would be read as options that nobody set.
    match words
        .iter()
        .find(|word| word.is_empty() || word.contains(char::is_whitespace))
    {
        Some(text) => Err(Wrong::new(
            format!("{text:?} is not one word"),
            "tc prints single words here: give its output unchanged",
        )),
        None => Ok(words),
    }
}

/// Returns the words for the place of an object: its device, and what it is attached to.
fn place(object: &Object) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(device) = object.text("dev") {
        words.extend(["dev".to_owned(), device.to_owned()]);
    }
    for hook in ["root", "ingress", "egress"] {
        words.extend(object.is_set(hook).then(|| hook.to_owned()));
    }
    if let Some(parent) = object.text("parent") {
        words.extend(["parent".to_owned(), parent.to_owned()]);
    }
    words
}

/// Returns the value of a key that every such object has.
fn needed(object: &Object, key: &str) -> Result<String, Wrong> {
    object.word(key).ok_or_else(|| {
        Wrong::new(
            format!("the key `{key}` is missing, or not a word"),
            "give what tc prints with `-j`, unchanged",
        )
    })
}
