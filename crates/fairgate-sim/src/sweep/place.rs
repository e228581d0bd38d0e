//! Replaces a value at a path. `Scenario.with_values` of the Python package follows the same rules.

use toml::{Table, Value};

use super::Wrong;

/// Sets the value at a path like `simulate.flow.downloads.count`. The last step may be a new key of a table.
pub(super) fn set(table: &mut Table, path: &str, value: Value) -> Result<(), Wrong> {
    let (way, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut at = PathStart::Table(table);
    let mut before = String::new();
    for step in way.split('.').filter(|step| !step.is_empty()) {
        at = at.below(step, path, &before)?;
        if !before.is_empty() {
            before.push('.');
        }
        before.push_str(step);
    }
    match at {
        PathStart::Table(table) => {
            table.insert(last.to_owned(), value);
        }
        PathStart::List(list) => {
            let index = index(list, last, path)?;
            list[index] = value;
        }
        PathStart::Value => {
            return Err(Wrong {
                message: format!("`{path}` leads into a value, not into a table"),
                help: "shorten the path".to_owned(),
            });
        }
    }
    Ok(())
}

/// What is at the beginning of a path.
enum PathStart<'t> {
    Table(&'t mut Table),
    List(&'t mut Vec<Value>),
    Value,
}

impl<'t> PathStart<'t> {
    fn of(value: &'t mut Value) -> PathStart<'t> {
        match value {
            Value::Table(table) => PathStart::Table(table),
            Value::Array(list) => PathStart::List(list),
            _ => PathStart::Value,
        }
    }

    fn below(self, step: &str, path: &str, before: &str) -> Result<PathStart<'t>, Wrong> {
        let known = match self {
            PathStart::List(list) => {
                let index = index(list, step, path)?;
                return Ok(PathStart::of(&mut list[index]));
            }
            // Looked up twice, because the compiler can't see that the first borrow has ended.
            PathStart::Table(table) if table.contains_key(step) => {
                return Ok(PathStart::of(&mut table[step]));
            }
            PathStart::Table(table) => quoted(table.keys().map(String::as_str)),
            PathStart::Value => String::new(),
        };
        let place = match before {
            "" => "the file has".to_owned(),
            before => format!("`{before}` has"),
        };
        let known = if known.is_empty() { "no keys" } else { &known };
        Err(Wrong {
            message: format!("`{path}` leads nowhere, because {place} {known}"),
            help: format!("correct `{step}`"),
        })
    }
}

/// Returns the position of an entry: by its position, or by its name if it is the only one with it.
fn index(list: &[Value], step: &str, path: &str) -> Result<usize, Wrong> {
    let is_number = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    if let (true, Ok(number)) = (is_number, step.parse::<usize>())
        && number < list.len()
    {
        return Ok(number);
    }
    let names: Vec<Option<String>> = list.iter().map(name).collect();
    let mut found = (0..list.len()).filter(|&number| names[number].as_deref() == Some(step));
    if let (Some(number), None) = (found.next(), found.next()) {
        return Ok(number);
    }
    let known = quoted(names.iter().flatten().map(String::as_str));
    let known = match known.as_str() {
        "" => String::new(),
        known => format!(", and not one of the names {known}"),
    };
    Err(Wrong {
        message: format!(
            "`{path}` leads nowhere: `{step}` is not one of {} entries, counted from 0{known}",
            list.len()
        ),
        help: format!("correct `{step}`"),
    })
}

/// Returns what an entry of a list is called: its `name`, or its `id`.
fn name(entry: &Value) -> Option<String> {
    let name = entry.get("name").or_else(|| entry.get("id"))?;
    Some(name.as_str().map_or_else(|| name.to_string(), str::to_owned))
}

fn quoted<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
