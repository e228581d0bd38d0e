//! Writes changes of subscribers into the texts of a list. Only what changes is written anew: rows of others,
//! comments, order, spaces and line ends stay as they are, byte for byte.
//!
//! ```text
//!   texts as they were read --+
//!   edits --------------------+--> replaced ranges of each text --> its new content
//! ```

mod devices;
mod nodes;
mod objects;
mod rows;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use fairgate_run_api::Entry;

use super::file::{self, KEYS};
use super::libreqos::NETWORK;
use super::limits;
use super::section::Source;
use super::texts::{Mistake, Text};

pub(crate) use devices::checked as checked_circuit;

/// What becomes of a subscriber.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) id: String,
    /// The subscriber as the texts have it. None if it is not there.
    pub(crate) known: Option<Entry>,
    /// As it is to be, checked. None if it is removed.
    pub(crate) becomes: Option<Entry>,
}

/// A range of a text, and what takes its place.
type Replacement = (Range<usize>, String);

/// Why a change is not written: in which of the texts, if that is known, and what is wrong.
pub(crate) type Refused = (usize, Mistake);

/// A text that changes: its number, and its new content.
pub(crate) type Rewritten = (usize, String);

/// Returns the texts that change.
pub(crate) fn rewritten(source: &Source, texts: &[Text], edits: &[Edit]) -> Result<Vec<Rewritten>, Refused> {
    let edits: Edits = edits.iter().map(|edit| (edit.id.as_str(), edit)).collect();
    let mut changed = Vec::new();
    let lists = limits::place(texts).unwrap_or(texts.len());
    for (number, text) in texts[..lists].iter().enumerate() {
        let content = text.content.as_str();
        let is_last = number + 1 == lists;
        let replaced = match source {
            Source::LibreQos { .. } if number == NETWORK => continue,
            Source::LibreQos { .. } => devices::replacements(content, &edits),
            _ if file::is_json(&text.name) => objects::replacements(content, &edits, is_last),
            _ => rows::replacements(content, &edits, is_last),
        };
        let replaced = replaced.map_err(|mistake| (number, mistake))?;
        if !replaced.is_empty() {
            changed.push((number, applied(content, replaced)));
        }
    }
    Ok(changed)
}

/// Returns the text that changes if a node of LibreQoS' network gets other rates.
pub(crate) fn with_node(
    texts: &[Text],
    name: &str,
    rates: [Option<u64>; 2],
) -> Result<Vec<Rewritten>, Refused> {
    let Some(text) = texts.get(NETWORK) else {
        return Ok(Vec::new());
    };
    let replaced = nodes::replacements(&text.content, name, rates).map_err(|mistake| (NETWORK, mistake))?;
    let is_changed = !replaced.is_empty();
    Ok(is_changed
        .then(|| (NETWORK, applied(&text.content, replaced)))
        .into_iter()
        .collect())
}

/// The edits by identifier.
type Edits<'e> = BTreeMap<&'e str, &'e Edit>;

/// Returns those that add a subscriber.
fn added<'e>(edits: &Edits<'e>) -> Vec<&'e Edit> {
    let added = edits
        .values()
        .filter(|edit| edit.known.is_none() && edit.becomes.is_some());
    added.copied().collect()
}

/// Returns the values of a member: those of `prefixes`, or none or one.
fn values<'e>(entry: &'e Entry, key: &str) -> Vec<Cow<'e, str>> {
    let value = match key {
        "id" => Some(&entry.id),
        "name" => entry.name.as_ref(),
        "down" => entry.down.as_ref(),
        "up" => entry.up.as_ref(),
        "down_min" => entry.down_min.as_ref(),
        "up_min" => entry.up_min.as_ref(),
        "plan" => entry.plan.as_ref(),
        _ => return entry.prefixes.iter().map(|prefix| shown(prefix).into()).collect(),
    };
    value.map(|value| value.into()).into_iter().collect()
}

/// Returns a prefix as people write it: an address has no length.
fn shown(prefix: &str) -> &str {
    let whole = if prefix.contains(':') { "/128" } else { "/32" };
    prefix.strip_suffix(whole).unwrap_or(prefix)
}

impl Edit {
    /// Returns the members that differ, with what they are to be.
    fn members(&self) -> Vec<(&'static str, Vec<Cow<'_, str>>)> {
        let Some(becomes) = &self.becomes else {
            return Vec::new();
        };
        let differs = |key: &&'static str| {
            let known = self.known.as_ref();
            known.is_none_or(|known| values(known, key) != values(becomes, key))
        };
        let keys = KEYS.into_iter().filter(differs);
        keys.map(|key| (key, values(becomes, key))).collect()
    }
}

/// Returns the text with its replacements. Those of the same place are written in the order given.
fn applied(content: &str, mut replaced: Vec<Replacement>) -> String {
    replaced.sort_by_key(|(range, _)| (range.start, range.end));
    let mut new = String::with_capacity(content.len());
    let mut at = 0;
    for (range, text) in replaced {
        new.push_str(&content[at..range.start]);
        new.push_str(&text);
        at = range.end;
    }
    new + &content[at..]
}

/// Returns the replacement that adds lines at the end of a text.
fn lines_at_end(content: &str, lines: &[String]) -> Option<Replacement> {
    let end = super::csv::line_end(content);
    let place = content.len()..content.len();
    let lines = (!lines.is_empty()).then(|| lines.join(end))?;
    Some((
        place,
        match content.ends_with('\n') {
            true => lines + end,
            false => format!("{end}{lines}"),
        },
    ))
}
