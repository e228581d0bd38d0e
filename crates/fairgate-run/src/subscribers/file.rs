//! Our own format: CSV with a line of names, or JSON.
//!
//! ```text
//! id,name,prefixes,down,up,plan
//! 17,Ann,192.0.2.17 2001:db8:0:1100::/56,,,home
//! 18,"Bob, the builder",192.0.2.18,200mbit,50mbit,
//! ```

use super::csv;
use super::fields::Raw;
use super::json::{self, Json, Value};
use super::numbers::MOST;
use super::texts::{Mistake, TextRange, Texts};

/// The names of columns and members.
pub(crate) const KEYS: [&str; 8] = [
    "id", "name", "prefixes", "down", "up", "down_min", "up_min", "plan",
];

/// A subscriber as it is written. Values that are empty are left out.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) place: TextRange,
    /// By the places of the names in [`KEYS`]; those of `prefixes` are in a list of their own.
    pub(crate) values: [Option<Raw>; KEYS.len()],
    pub(crate) prefixes: Vec<Raw>,
}

impl Written {
    fn new(text: usize, span: std::ops::Range<usize>) -> Written {
        Written {
            place: TextRange { text, span },
            values: Default::default(),
            prefixes: Vec::new(),
        }
    }

    /// Returns the value of a key, if it was written.
    pub(crate) fn value(&self, key: &str) -> Option<&Raw> {
        let index = KEYS.iter().position(|known| *known == key)?;
        self.values[index].as_ref()
    }
}

/// Returns whether a list of this name is JSON. Any other one is CSV.
pub(crate) fn is_json(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".json")
}

/// Reads a text, as JSON if its name ends in `.json` and else as CSV. Mistakes are reported. `room` is how
/// many subscribers there may still be: a list with more of them is not read to its end.
pub(crate) fn read(number: usize, name: &str, content: &str, room: usize, texts: &mut Texts) -> Vec<Written> {
    let read = match is_json(name) {
        true => read_json(number, content, room, texts),
        false => read_csv(number, content, room, texts),
    };
    read.unwrap_or_else(|mistake| {
        texts.report(number, mistake);
        Vec::new()
    })
}

/// Returns the mistake of a subscriber for which there is no class.
pub(crate) fn too_many(span: std::ops::Range<usize>) -> Mistake {
    Mistake::new(
        span,
        format!("there are more than {MOST} subscribers and nodes, but {MOST} classes"),
        "no class is left for this one",
        "divide them among several runs",
    )
}

fn unknown(key: &str, span: std::ops::Range<usize>, what: &str) -> Mistake {
    Mistake::new(
        span,
        format!("a subscriber has no {what} `{key}`"),
        "unknown",
        fairgate_config::suggest::remedy(key, "it has", KEYS),
    )
}

fn read_csv(number: usize, content: &str, room: usize, texts: &mut Texts) -> Result<Vec<Written>, Mistake> {
    let mut records = csv::records(content);
    let Some(header) = records.next().transpose()? else {
        return Err(Mistake::new(
            0..0,
            "the list is empty",
            "no line of names",
            "begin with a line of names: id,name,prefixes,down,up,plan",
        ));
    };
    let mut columns = Vec::new();
    for field in &header.fields {
        let key = KEYS.iter().position(|key| *key == field.value);
        if key.is_none() {
            texts.report(number, unknown(&field.value, field.span.clone(), "column"));
        }
        if key.is_some() && columns.contains(&key) {
            let message = format!("there are two columns `{}`", field.value);
            let mistake = Mistake::new(field.span.clone(), message, "given before", "remove one of them");
            texts.report(number, mistake);
        }
        columns.push(key);
    }
    for needed in ["id", "prefixes"] {
        let place = KEYS.iter().position(|key| *key == needed);
        if !columns.contains(&place) {
            let message = format!("there is no column `{needed}`");
            let help = "begin the file with a line of names: id,name,prefixes,down,up,plan";
            texts.report(
                number,
                Mistake::new(header.span.clone(), message, "the names", help),
            );
        }
    }
    if texts.count() > 0 {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for record in records {
        let record = record?;
        if all.len() == room {
            return Err(too_many(record.span));
        }
        if record.fields.len() != columns.len() {
            let message = format!(
                "this line has {} fields, but the line of names has {}",
                record.fields.len(),
                columns.len()
            );
            let help = "write a comma for each empty field, and fields with commas in quotation marks";
            texts.report(number, Mistake::new(record.span, message, "another number", help));
            continue;
        }
        let mut written = Written::new(number, record.span.clone());
        for (column, field) in columns.iter().zip(record.fields) {
            let Some(key) = column else { continue };
            if field.value.is_empty() {
                continue;
            }
            let raw = Raw::new(field.value, field.span);
            match KEYS[*key] {
                "prefixes" => written.prefixes = raw.parts(),
                _ => written.values[*key] = Some(raw),
            }
        }
        all.push(written);
    }
    Ok(all)
}

fn read_json(number: usize, content: &str, room: usize, texts: &mut Texts) -> Result<Vec<Written>, Mistake> {
    let json = json::parse(content)?;
    let no_list = |json: &Json<'_>| {
        Mistake::new(
            json.span.clone(),
            format!("the list of subscribers is {}", json.type_name()),
            "expected a list",
            "write [{\"id\": \"17\", \"prefixes\": [\"192.0.2.17\"], \"plan\": \"home\"}, ...]",
        )
    };
    let whole = match json.value {
        // What the API answers.
        Value::Object(members) => {
            let mut list = None;
            for member in members {
                match member.name.as_ref() {
                    "subscribers" => list = Some(member.value),
                    "revision" | "classes" | "shaped" | "nodes" | "difference" | "is_changeable"
                    | "unchangeable" => {}
                    name => {
                        let help = "write a list, or an object with `subscribers`";
                        let message = format!("there is no member `{name}` beside the list");
                        texts.report(number, Mistake::new(member.span, message, "unknown", help));
                    }
                }
            }
            list.ok_or_else(|| {
                Mistake::new(
                    json.span.start..json.span.start + 1,
                    "the object has no list `subscribers`",
                    "expected a list",
                    "write a list, or an object with `subscribers`",
                )
            })?
        }
        _ => json,
    };
    let Value::List(subscribers) = whole.value else {
        return Err(no_list(&whole));
    };
    let mut all = Vec::new();
    for subscriber in subscribers {
        if all.len() == room {
            return Err(too_many(subscriber.span.start..subscriber.span.start + 1));
        }
        match read_object(number, subscriber, texts) {
            Ok(written) => all.push(written),
            Err(mistake) => texts.report(number, mistake),
        }
    }
    Ok(all)
}

fn read_object(number: usize, json: Json<'_>, texts: &mut Texts) -> Result<Written, Mistake> {
    let type_name = json.type_name();
    let Value::Object(members) = json.value else {
        return Err(Mistake::new(
            json.span,
            format!("a subscriber is {type_name}"),
            "expected an object",
            "write {\"id\": \"17\", \"prefixes\": [\"192.0.2.17\"], \"plan\": \"home\"}",
        ));
    };
    // The whole object would be many lines.
    let start = json.span.start;
    let mut written = Written::new(number, start..start + 1);
    for member in members {
        let Some(key) = KEYS.iter().position(|key| *key == member.name) else {
            texts.report(number, unknown(&member.name, member.span, "member"));
            continue;
        };
        let is_twice = match KEYS[key] {
            "prefixes" => !written.prefixes.is_empty(),
            _ => written.values[key].is_some(),
        };
        if is_twice {
            let message = format!("`{}` is given twice", member.name);
            texts.report(
                number,
                Mistake::new(member.span, message, "given before", "remove one of them"),
            );
            continue;
        }
        let span = member.value.span.clone();
        let type_name = member.value.type_name();
        match (KEYS[key], member.value.value) {
            (_, Value::Null) => {}
            ("prefixes", Value::List(prefixes)) => {
                for prefix in prefixes {
                    match prefix.value {
                        Value::Text(text) => written.prefixes.push(Raw::new(text, prefix.span)),
                        _ => texts.report(number, wrong_type("a prefix", prefix.type_name(), prefix.span)),
                    }
                }
            }
            ("prefixes", Value::Text(text)) => written.prefixes.push(Raw::new(text, span)),
            ("prefixes", _) => texts.report(number, wrong_type("`prefixes`", type_name, span)),
            (_, Value::Text(text)) if text.is_empty() => {}
            (_, Value::Text(text)) => written.values[key] = Some(Raw::new(text, span)),
            (_, Value::Number(text)) => written.values[key] = Some(Raw::new(text, span)),
            (name, _) => texts.report(number, wrong_type(&format!("`{name}`"), type_name, span)),
        }
    }
    Ok(written)
}

fn wrong_type(what: &str, found: &str, span: std::ops::Range<usize>) -> Mistake {
    Mistake::new(
        span,
        format!("{what} is {found}, but must be text"),
        "expected text",
        "write it in quotation marks; several prefixes are a list of texts",
    )
}
