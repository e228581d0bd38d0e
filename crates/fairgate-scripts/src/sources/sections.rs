//! Lines of keys and values in sections.

use std::ops::Range;

use toml::Spanned;

use crate::script::Word;

/// A section with its lines.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// `CAKE` of `[CAKE]`, `queue` of `config queue`.
    pub(super) kind: Word,
    /// The name after a UCI section's kind.
    pub(super) name: Option<String>,
    pub(super) entries: Vec<(Word, Word)>,
}

impl Section {
    /// Returns the last value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Word> {
        let mut entries = self.entries.iter().rev();
        entries
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value)
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)
            .map(|value| value.get_ref().as_str())
            .filter(|text| !text.is_empty())
    }

    /// Whether a switch is on.
    pub(super) fn is_on(&self, key: &str, default: bool) -> bool {
        self.text(key).map_or(default, is_true)
    }

    /// Returns the places of its lines.
    pub(super) fn lines(&self) -> impl Iterator<Item = Range<usize>> {
        let entries = self.entries.iter().map(|(key, _)| key.span());
        std::iter::once(self.at()).chain(entries)
    }

    pub(super) fn at(&self) -> Range<usize> {
        self.kind.span()
    }
}

/// Whether a word means yes.
pub(super) fn is_true(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "1" | "yes" | "y" | "true" | "t" | "on" | "enabled"
    )
}

/// Returns the lines with their places, without what begins with a comment's character.
pub(super) fn lines<'t>(text: &'t str, comments: &'static [char]) -> impl Iterator<Item = (usize, &'t str)> {
    let mut at = 0;
    let placed = text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        let body = line.trim_start();
        (start + (line.len() - body.len()), body.trim_end())
    });
    placed.filter(move |(_, line)| !line.is_empty() && !line.starts_with(comments))
}

fn word(at: usize, line: &str, part: &str) -> Word {
    let start = at + (part.as_ptr() as usize - line.as_ptr() as usize);
    Spanned::new(start..start + part.len(), part.to_owned())
}

/// Reads an INI file: `[SECTION]`, `Key=Value`. The second part has the lines that are neither.
pub(super) fn ini(text: &str) -> (Vec<Section>, Vec<Range<usize>>) {
    let (mut sections, mut others): (Vec<Section>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
    for (at, line) in lines(text, &['#', ';']) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push(Section {
                kind: word(at, line, name),
                name: None,
                entries: Vec::new(),
            });
        } else if let (Some((key, value)), Some(section)) = (line.split_once('='), sections.last_mut()) {
            section
                .entries
                .push((word(at, line, key.trim()), word(at, line, value.trim())));
        } else {
            others.push(at..at + line.len());
        }
    }
    (sections, others)
}

/// Reads a UCI file of OpenWrt: `config KIND 'NAME'`, `option KEY 'VALUE'`, `list KEY 'VALUE'`.
pub(super) fn uci(text: &str) -> (Vec<Section>, Vec<Range<usize>>) {
    let (mut sections, mut others): (Vec<Section>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
    for (at, line) in lines(text, &['#']) {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let (second, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let value = value.trim();
        let bare = |text: &str| text.trim_matches(['\'', '"']).to_owned();
        match (first, sections.last_mut()) {
            ("config", _) if !second.is_empty() => sections.push(Section {
                kind: Spanned::new(word(at, line, second).span(), bare(second)),
                name: Some(bare(value)).filter(|name| !name.is_empty()),
                entries: Vec::new(),
            }),
            ("option" | "list", Some(section)) if !second.is_empty() => {
                let key = Spanned::new(word(at, line, second).span(), bare(second));
                // A comment after the value.
                let value = match value.chars().next() {
                    Some(quote @ ('\'' | '"')) => {
                        let length = value[1..].find(quote).map_or(value.len(), |end| end + 2);
                        &value[..length]
                    }
                    _ => value.split_whitespace().next().unwrap_or_default(),
                };
                let value = Spanned::new(word(at, line, value).span(), bare(value));
                section.entries.push((key, value));
            }
            _ => others.push(at..at + line.len()),
        }
    }
    (sections, others)
}
