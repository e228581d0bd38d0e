//! Rewrites serde's errors about a section in the style of the other messages.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::suggest;

/// Returns message and remedy for serde's `message` about the value of `key`, if the error belongs to a key.
pub(crate) fn explain(message: &str, key: Option<&str>) -> (String, String) {
    let quoted = || message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown ")
        && let Some(word) = quoted().next()
    {
        let remedy = suggest::remedy(word, "known here", quoted().skip(1));
        return (message.to_owned(), remedy);
    }
    if message.starts_with("missing field")
        && let Some(name) = quoted().next()
    {
        return (
            format!("`{name}` is missing"),
            format!("add a line like {name} = ..."),
        );
    }
    let said = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "));
    let (Some((found, expected)), Some(key)) = (said.and_then(|said| said.split_once(", expected ")), key)
    else {
        let help = "correct this value; see the documentation of the section for the allowed values";
        return (message.to_owned(), help.to_owned());
    };
    let (rule, help) = rule(expected);
    (format!("`{key}` is {}, but must be {rule}", shown(found)), help)
}

/// Returns the value that serde found. serde's text names its type, too.
fn shown(found: &str) -> String {
    let value = found.split_once('`').and_then(|(_, rest)| rest.split_once('`'));
    match (value, found.strip_prefix("string ")) {
        (_, Some(text)) => text.to_owned(),
        (Some((value, _)), None) => value.to_owned(),
        (None, None) => match found {
            "sequence" => "a list".to_owned(),
            "map" => "a table".to_owned(),
            other => other.to_owned(),
        },
    }
}

/// Returns the rule (what serde expects), and the remedy (what to write).
fn rule(expected: &str) -> (String, String) {
    let range = match expected {
        "u8" => Some((0, u64::from(u8::MAX))),
        "u16" => Some((0, u64::from(u16::MAX))),
        "u32" => Some((0, u64::from(u32::MAX))),
        "u64" | "usize" => Some((0, u64::MAX)),
        "i64" => Some((i64::MIN, i64::MAX as u64)),
        _ => None,
    };
    if let Some((least, most)) = range {
        return (
            format!("a whole number from {least} to {most}"),
            "write it in digits alone: without quotation marks, decimals or exponent".to_owned(),
        );
    }
    let (rule, help) = match expected {
        "a string" => ("text", "write it in quotation marks"),
        "a boolean" => ("true or false", "write it without quotation marks"),
        "a sequence" => ("a list", "write it in brackets: [1, 2]"),
        "f32" | "f64" => ("a number", "write it without quotation marks"),
        _ if expected.starts_with("struct ") || expected == "a map" => {
            ("a table", "write it in braces, { key = value }, or as a section")
        }
        other => (
            other,
            "see the documentation of the section for the allowed values",
        ),
    };
    (rule.to_owned(), help.to_owned())
}

/// Returns the key whose value is at `span`.
pub(crate) fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        if value.span() == *span && !matches!(value.get_ref(), DeValue::Table(_)) {
            return Some(key.get_ref().to_string());
        }
        key_within(value.get_ref(), span)
            .or_else(|| (value.span() == *span).then(|| key.get_ref().to_string()))
    })
}

fn key_within(value: &DeValue<'_>, span: &Range<usize>) -> Option<String> {
    match value {
        DeValue::Table(table) => key_at(table, span),
        DeValue::Array(values) => values.iter().find_map(|value| key_within(value.get_ref(), span)),
        _ => None,
    }
}
