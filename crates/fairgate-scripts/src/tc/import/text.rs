//! A listing as text.

use std::borrow::Cow;

use super::{Entry, ListingPosition, SIZES, STAB};

/// Returns the entries. An entry begins at the margin; what belongs to it and has lines of its own is
/// indented: conditions and actions of filters, and the table of sizes of a qdisc.
pub(super) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = || line.split_whitespace().map(Cow::Borrowed);
        match entries.last_mut() {
            Some(Entry { words: entry, .. }) if line.starts_with([' ', '\t']) => {
                let is_qdisc = entry.first().is_some_and(|word| word == "qdisc");
                if is_qdisc && words().next().is_some_and(|word| SIZES.contains(&&*word)) {
                    entry.push(Cow::Borrowed(STAB));
                }
                entry.extend(words());
            }
            _ => entries.push(Entry {
                place: ListingPosition {
                    line: index + 1,
                    element: None,
                },
                words: words().collect(),
            }),
        }
    }
    entries.retain(|entry| !entry.words.is_empty());
    entries
}
