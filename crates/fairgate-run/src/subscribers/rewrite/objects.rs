//! Objects of our own JSON.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::json;

use super::{Edit, Edits, Replacement, added};
use crate::subscribers::json::{self, Json, Value};
use crate::subscribers::texts::Mistake;

/// Returns what the edits change in a text. It takes those who are new if `takes_new`.
pub(super) fn replacements(
    content: &str,
    edits: &Edits<'_>,
    takes_new: bool,
) -> Result<Vec<Replacement>, Mistake> {
    let whole = json::parse(content)?;
    let Some(list) = list_of(&whole) else {
        return Ok(Vec::new());
    };
    let Value::List(objects) = &list.value else {
        return Ok(Vec::new());
    };
    let mut replaced = Vec::new();
    let mut is_removed = Vec::new();
    for object in objects {
        let edit = id_of(object).and_then(|id| edits.get(&*id).copied());
        is_removed.push(edit.is_some_and(|edit| edit.becomes.is_none()));
        if let Some(edit) = edit.filter(|edit| edit.becomes.is_some()) {
            change(object, edit, &mut replaced);
        }
    }
    let spans: Vec<Range<usize>> = objects.iter().map(|object| object.span.clone()).collect();
    replaced.extend(removed(&spans, &is_removed).map(|range| (range, String::new())));
    let new: Vec<String> = match takes_new {
        true => added(edits).into_iter().map(object_of).collect(),
        false => Vec::new(),
    };
    if !new.is_empty() {
        // As those before are divided.
        let gap = match spans.as_slice() {
            [.., before, last] => &content[before.end..last.start],
            _ => ",\n",
        };
        let (place, lead) = match spans.last() {
            Some(last) if is_removed.contains(&false) => (last.end, gap),
            Some(last) => (last.end, ""),
            None => (list.span.start + 1, ""),
        };
        replaced.push((place..place, format!("{lead}{}", new.join(gap))));
    }
    Ok(replaced)
}

/// Returns the list of a document: the whole, or its member `subscribers`.
fn list_of<'j, 't>(whole: &'j Json<'t>) -> Option<&'j Json<'t>> {
    match &whole.value {
        Value::Object(members) => {
            let mut members = members.iter();
            members
                .find(|member| member.name == "subscribers")
                .map(|member| &member.value)
        }
        _ => Some(whole),
    }
}

fn id_of<'t>(object: &Json<'t>) -> Option<Cow<'t, str>> {
    let Value::Object(members) = &object.value else {
        return None;
    };
    let id = members.iter().find(|member| member.name == "id")?;
    match &id.value.value {
        Value::Text(text) => Some(text.clone()),
        Value::Number(text) => Some((*text).into()),
        _ => None,
    }
}

/// Notes what changes in an object: values in their places, and members that are new behind the others.
fn change(object: &Json<'_>, edit: &Edit, replaced: &mut Vec<Replacement>) {
    let Value::Object(known) = &object.value else {
        return;
    };
    let mut more = String::new();
    for (key, values) in edit.members() {
        let value = value_of(key, &values);
        match known.iter().find(|member| member.name == key) {
            Some(member) => replaced.push((member.value.span.clone(), value)),
            None if values.is_empty() => {}
            None => more.push_str(&format!(", \"{key}\": {value}")),
        }
    }
    if let (Some(last), false) = (known.last(), more.is_empty()) {
        let end = last.value.span.end;
        replaced.push((end..end, more));
    }
}

/// Returns a value as JSON. What is not there is null.
fn value_of(key: &str, values: &[Cow<'_, str>]) -> String {
    match (key, values) {
        ("prefixes", values) => json!(values).to_string(),
        (_, [value]) => json!(value).to_string(),
        _ => "null".to_owned(),
    }
}

fn object_of(edit: &Edit) -> String {
    let members = edit
        .members()
        .into_iter()
        .filter(|(_, values)| !values.is_empty());
    let members: Vec<String> = members
        .map(|(key, values)| format!("\"{key}\": {}", value_of(key, &values)))
        .collect();
    format!("{{{}}}", members.join(", "))
}

/// Returns the ranges that go with the objects that are removed: each with the comma that it leaves behind.
fn removed(spans: &[Range<usize>], is_removed: &[bool]) -> impl Iterator<Item = Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < spans.len() {
        if !is_removed[at] {
            at += 1;
            continue;
        }
        let first = at;
        while at < spans.len() && is_removed[at] {
            at += 1;
        }
        ranges.push(match (first.checked_sub(1), spans.get(at)) {
            (Some(before), _) => spans[before].end..spans[at - 1].end,
            (None, Some(next)) => spans[first].start..next.start,
            (None, None) => spans[first].start..spans[at - 1].end,
        });
    }
    ranges.into_iter()
}
