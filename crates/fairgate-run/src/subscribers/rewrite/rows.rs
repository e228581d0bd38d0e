//! Rows of our own CSV.

use std::borrow::Cow;

use super::{Edits, Replacement, added, lines_at_end, values};
use crate::subscribers::csv::{self, Record};
use crate::subscribers::file::KEYS;
use crate::subscribers::texts::Mistake;

/// Returns what the edits change in a text. It takes those who are new if `takes_new`. A column that is
/// missing for a value is added behind the others, in all rows.
pub(super) fn replacements(
    content: &str,
    edits: &Edits<'_>,
    takes_new: bool,
) -> Result<Vec<Replacement>, Mistake> {
    let mut records = csv::records(content);
    let Some(header) = records.next().transpose()? else {
        return Ok(Vec::new());
    };
    let rows = records.collect::<Result<Vec<_>, _>>()?;
    let columns: Vec<&str> = header.fields.iter().map(|field| &*field.value).collect();
    let id_column = columns.iter().position(|column| *column == "id");
    let edit_of = |record: &Record<'_>| {
        let id = &record.fields.get(id_column?)?.value;
        edits.get(&**id).copied()
    };
    let new = if takes_new { added(edits) } else { Vec::new() };
    let here = rows.iter().filter_map(edit_of).chain(new.iter().copied());
    let written: Vec<&str> = here
        .flat_map(|edit| edit.members())
        .filter(|(_, values)| !values.is_empty())
        .map(|(key, _)| key)
        .collect();
    let missing: Vec<&str> = KEYS
        .into_iter()
        .filter(|key| !columns.contains(key) && written.contains(key))
        .collect();
    let mut replaced = Vec::new();
    let widen = |record: &Record<'_>, values: Vec<Cow<'_, str>>| {
        let end = record.span.end;
        let values = csv::line(values.iter().map(|value| &**value));
        (!missing.is_empty()).then(|| (end..end, format!(",{values}")))
    };
    replaced.extend(widen(&header, missing.iter().map(|key| (*key).into()).collect()));
    for row in &rows {
        let edit = edit_of(row);
        if edit.is_some_and(|edit| edit.becomes.is_none()) {
            replaced.push((row.line(content), String::new()));
            continue;
        }
        let members = edit.map(|edit| edit.members()).unwrap_or_default();
        for (key, values) in &members {
            let column = columns.iter().position(|column| column == key);
            if let Some(field) = column.and_then(|column| row.fields.get(column)) {
                replaced.push(field.with(content, &values.join(" ")));
            }
        }
        let value = |key: &&str| {
            let member = members.iter().find(|(name, _)| name == key);
            member
                .map_or_else(String::new, |(_, values)| values.join(" "))
                .into()
        };
        replaced.extend(widen(row, missing.iter().map(value).collect()));
    }
    let line = |entry| {
        let names = columns.iter().chain(&missing);
        let cells: Vec<String> = names.map(|key| values(entry, key).join(" ")).collect();
        csv::line(cells.iter().map(String::as_str))
    };
    let lines: Vec<String> = new
        .iter()
        .filter_map(|edit| edit.becomes.as_ref())
        .map(line)
        .collect();
    replaced.extend(lines_at_end(content, &lines));
    Ok(replaced)
}
