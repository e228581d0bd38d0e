//! Entity tags of the trees, and what clients demand of them (RFC 9110, sections 8.8.3 and 13.1).
//!
//! A tag names a run and a revision of its trees. All tags are strong: the trees of a revision never change.
//! The functions here take what tells the run from all others.

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use fairgate_run_api::{Entry, version};

use crate::http::problem::{Kind, Problem};

/// Returns the entity tag of a revision.
pub(crate) fn tag(run: &str, revision: u64) -> String {
    format!("\"{run}-{revision}\"")
}

/// Returns the entity tag of a subscriber. It is another one after each change of it, and of that alone.
pub(crate) fn tag_of(run: &str, entry: &Entry) -> String {
    version_tag(run, version(entry))
}

fn version_tag(run: &str, version: u64) -> String {
    format!("\"{run}-s{version:016x}\"")
}

/// What a client demands of the trees' revision before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Nothing.
    Any,
    /// One of these tags.
    OneOf(Vec<String>),
}

impl Expected {
    /// Reads `If-Match`.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Expected, Problem> {
        read_list(headers, &IF_MATCH)
    }

    /// Returns the revision that a change must find, if the trees have the revision `current`. If that will
    /// not do, the result is a revision that no trees have: so the run itself refuses the change, and notes
    /// that it was asked.
    pub(crate) fn revision(&self, run: &str, current: u64) -> u64 {
        match self {
            Expected::OneOf(tags) if !tags.contains(&tag(run, current)) => u64::MAX,
            _ => current,
        }
    }

    /// Returns the versions that a subscriber may have.
    pub(crate) fn versions(&self, run: &str) -> Option<Vec<u64>> {
        let Expected::OneOf(tags) = self else { return None };
        let version = |tag: &String| {
            let digits = tag.strip_prefix(&format!("\"{run}-s"))?;
            let version = u64::from_str_radix(digits.strip_suffix('"')?, 16).ok()?;
            (*tag == version_tag(run, version)).then_some(version)
        };
        Some(tags.iter().filter_map(version).collect())
    }
}

/// Returns whether the client has this revision already (`If-None-Match`).
pub(crate) fn is_known(headers: &HeaderMap, run: &str, revision: u64) -> Result<bool, Problem> {
    if !headers.contains_key(IF_NONE_MATCH) {
        return Ok(false);
    }
    Ok(match read_list(headers, &IF_NONE_MATCH)? {
        Expected::Any => true,
        // The comparison is weak.
        Expected::OneOf(tags) => tags
            .iter()
            .any(|known| known.strip_prefix("W/").unwrap_or(known) == tag(run, revision)),
    })
}

fn read_list(headers: &HeaderMap, name: &HeaderName) -> Result<Expected, Problem> {
    let malformed = || {
        let detail = format!("`{name}` must be `*` or entity tags in double quotes, separated by commas");
        Problem::new(Kind::Malformed, detail)
    };
    let mut tags = Vec::new();
    let mut is_any = true;
    for value in headers.get_all(name) {
        let mut rest = value.to_str().map_err(|_| malformed())?.trim();
        if rest == "*" {
            continue;
        }
        is_any = false;
        loop {
            let (tag, behind) = one_tag(rest).ok_or_else(malformed)?;
            tags.push(tag.to_owned());
            let behind = behind.trim_start();
            if behind.is_empty() {
                break;
            }
            rest = behind.strip_prefix(',').ok_or_else(malformed)?.trim_start();
        }
    }
    Ok(if is_any {
        Expected::Any
    } else {
        Expected::OneOf(tags)
    })
}

/// Splits the first tag from a list.
fn one_tag(text: &str) -> Option<(&str, &str)> {
    let opaque = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"')?;
    let end = text.len() - opaque.len() + opaque.find('"')? + 1;
    Some(text.split_at(end))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(values: &[&'static str]) -> Option<Expected> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_MATCH, HeaderValue::from_static(value));
        }
        Expected::read(&headers).ok()
    }

    #[test]
    fn lists_of_tags_are_read() {
        let tags = |tags: &[&str]| Some(Expected::OneOf(tags.iter().map(|&tag| tag.to_owned()).collect()));
        assert_eq!(read(&[]), Some(Expected::Any));
        assert_eq!(read(&["*"]), Some(Expected::Any));
        assert_eq!(read(&["\"a\""]), tags(&["\"a\""]));
        assert_eq!(
            read(&["\"a,b\" , W/\"c\"", "\"\""]),
            tags(&["\"a,b\"", "W/\"c\"", "\"\""])
        );
        for wrong in ["", "a", "\"a", "\"a\" \"b\"", "\"a\",", "w/\"a\"", ",\"a\""] {
            assert_eq!(read(&[wrong]), None, "{wrong}");
        }
    }
}
