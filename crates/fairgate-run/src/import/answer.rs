//! What servers answer: JSON lists of objects, read row by row.
//!
//! Versions differ in what they leave out, and in whether a number is written as text. So a row is read
//! member by member, and a member of another kind than expected is as one that is missing: a single odd
//! device must not stop the import of all others.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, SeqAccess, Visitor};
use serde_json::Value;

/// Calls `each` with the rows of an answer, one after the other: a large answer is never in memory as values.
///
/// # Errors
/// Says why the answer is no list.
pub(crate) fn rows<T: DeserializeOwned>(bytes: &[u8], each: impl FnMut(&T)) -> Result<(), String> {
    let start = bytes.trim_ascii_start();
    if start.starts_with(b"<") {
        return Err("it is a web page, and no JSON".to_owned());
    }
    if start.is_empty() {
        return Err("it is empty".to_owned());
    }
    if !start.starts_with(b"[") {
        return Err(match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(_)) => "it is an object, and no list".to_owned(),
            Ok(_) => "it is no list".to_owned(),
            Err(_) => "it is no JSON".to_owned(),
        });
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = Rows(each, PhantomData)
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
    read.map_err(|error| match error.is_eof() {
        true => "it ends in the middle: it was cut off".to_owned(),
        false => format!("it is no JSON: {error}"),
    })
}

struct Rows<F, T>(F, PhantomData<T>);

impl<'de, T: DeserializeOwned, F: FnMut(&T)> DeserializeSeed<'de> for Rows<F, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de, T: DeserializeOwned, F: FnMut(&T)> Visitor<'de> for Rows<F, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(row) = list.next_element::<T>()? {
            (self.0)(&row);
        }
        Ok(())
    }
}

/// Returns what a server says of a request that it refuses: `message` of UISP, `error.message` of Splynx.
pub(crate) fn complaint(bytes: &[u8]) -> Option<String> {
    let said: Value = serde_json::from_slice(bytes).ok()?;
    let message = text(&said, "/error/message").or_else(|| text(&said, "/message"))?;
    Some(message.chars().take(200).collect())
}

/// Returns a text that is not empty, without white space around it. A number is taken as it is written.
pub(crate) fn text(row: &Value, pointer: &str) -> Option<String> {
    match row.pointer(pointer)? {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the identifier of another row. 0 is none, as Splynx writes it.
pub(crate) fn reference(row: &Value, pointer: &str) -> Option<String> {
    text(row, pointer).filter(|id| id != "0")
}

/// Returns a number that is not negative, without its decimals. It may be written as text.
pub(crate) fn number(row: &Value, pointer: &str) -> Option<u64> {
    let text = text(row, pointer)?;
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        // 2^53: up to here each whole number is one of 64 bits with a fraction.
        (0.0..=9_007_199_254_740_992.0)
            .contains(&number)
            .then_some(number as u64)
    })
}

/// Returns whether a member says yes: `true`, 1, or a text of them.
pub(crate) fn flag(row: &Value, pointer: &str) -> bool {
    match row.pointer(pointer) {
        Some(Value::Bool(flag)) => *flag,
        _ => text(row, pointer).is_some_and(|text| matches!(text.as_str(), "1" | "true" | "yes")),
    }
}

/// Returns a list, which may be missing.
pub(crate) fn list<'r>(row: &'r Value, pointer: &str) -> &'r [Value] {
    let found = row.pointer(pointer).and_then(Value::as_array);
    found.map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ids(bytes: &[u8]) -> Result<Vec<String>, String> {
        let mut ids = Vec::new();
        rows::<Value>(bytes, |row| ids.extend(text(row, "/id")))?;
        Ok(ids)
    }

    #[test]
    fn rows_are_those_of_a_list() {
        assert_eq!(
            ids(br#" [{"id": 7}, {"id": " b "}, 3, null]"#),
            Ok(vec!["7".into(), "b".into()])
        );
        assert_eq!(ids(b"[]"), Ok(Vec::new()));
        for (bytes, why) in [
            (&b"<!doctype html><title>Login</title>"[..], "web page"),
            (b"", "empty"),
            (b"{\"items\": []}", "an object"),
            (b"\"x\"", "no list"),
            (b"sorry", "no JSON"),
            (b"[{\"id\": 1}, {\"id\"", "cut off"),
            (b"[{\"id\": 1}", "cut off"),
            (b"[{\"id\": 1}] x", "no JSON"),
            (b"[{\"id\": \xff}]", "no JSON"),
        ] {
            let error = ids(bytes).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        // Nested too deeply, which would else overflow the stack.
        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        assert!(ids(&deep).is_err());
    }

    #[test]
    fn members_may_be_of_another_kind() {
        let row =
            json!({"a": "5.0", "b": 2.5e9, "c": -1, "d": null, "e": [1], "f": "1", "g": true, "h": "x"});
        assert_eq!(number(&row, "/a"), Some(5));
        assert_eq!(number(&row, "/b"), Some(2_500_000_000));
        for missing in ["/c", "/d", "/e", "/h", "/nothing"] {
            assert_eq!(number(&row, missing), None, "{missing}");
        }
        assert!(flag(&row, "/f") && flag(&row, "/g") && !flag(&row, "/a") && !flag(&row, "/d"));
        assert_eq!(list(&row, "/e").len(), 1);
        assert!(list(&row, "/a").is_empty());
        assert_eq!(reference(&json!({"id": 0}), "/id"), None);
        let said = complaint(br#"{"error": {"message": "Access denied", "code": 403}}"#);
        assert_eq!(said.as_deref(), Some("Access denied"));
        let said = complaint(br#"{"statusCode": 401, "message": "Unauthorized", "error": "x"}"#);
        assert_eq!(said.as_deref(), Some("Unauthorized"));
        assert_eq!(complaint(b"<html>"), None);
    }
}
