//! Lines of LibreQoS' ShapedDevices.csv. A circuit may have several, one for each device.

use std::collections::BTreeMap;

use fairgate_config::units::parse_rate;
use fairgate_run_api::Entry;

use super::{Edit, Edits, Replacement, added, lines_at_end, shown, values};
use crate::subscribers::csv::{self, Field, Record};
use crate::subscribers::fields::{Raw, mbit_text};
use crate::subscribers::libreqos::Columns;
use crate::subscribers::list::Subscriber;
use crate::subscribers::texts::Mistake;

/// The columns of rates, and the members that they are.
const RATES: [(&str, &str); 4] = [
    ("download min", "down_min"),
    ("upload min", "up_min"),
    ("download max", "down"),
    ("upload max", "up"),
];

/// Checks what the file can hold, and returns it as the list says it.
pub(crate) fn checked(entry: &Entry) -> Result<Entry, Mistake> {
    let wrong = |message: String, help: &str| Err(Mistake::new(0..0, message, "this one", help));
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(plan) = given(&entry.plan) {
        let message = format!("`plan` is `{plan}`, but circuits of LibreQoS have no plan");
        return wrong(message, "give the rates: down, up, down_min, up_min");
    }
    if entry.id.is_empty() {
        return wrong(
            "the subscriber has no `id`".to_owned(),
            "give it one that no other has",
        );
    }
    let text = |key: &str, text: &str| Raw::new(text, 0..0).name(key);
    let mut checked = Entry {
        id: text("id", &entry.id)?,
        name: given(&entry.name).map(|name| text("name", &name)).transpose()?,
        plan: None,
        ..entry.clone()
    };
    for (member, rate) in [
        ("down", &mut checked.down),
        ("up", &mut checked.up),
        ("down_min", &mut checked.down_min),
        ("up_min", &mut checked.up_min),
    ] {
        let Some(text) = rate.take().filter(|text| !text.is_empty()) else {
            let message = format!("`{member}` is missing: circuits of LibreQoS have no plan that gives it");
            return wrong(message, "give it like 50mbit");
        };
        let bits = Raw::new(text, 0..0).rate(member)?;
        *rate = Subscriber::rate_text(bits);
    }
    checked.prefixes.clear();
    for prefix in &entry.prefixes {
        checked
            .prefixes
            .push(Raw::new(prefix.as_str(), 0..0).prefix()?.to_string());
    }
    Ok(checked)
}

/// Returns what the edits change in a text.
pub(super) fn replacements(content: &str, edits: &Edits<'_>) -> Result<Vec<Replacement>, Mistake> {
    let mut records = csv::records(content);
    let Some(header) = records.next().transpose()? else {
        return Ok(Vec::new());
    };
    let columns = Columns::of(&header);
    let rows = records.collect::<Result<Vec<_>, _>>()?;
    let mut devices: BTreeMap<&str, Vec<&Record<'_>>> = BTreeMap::new();
    for row in &rows {
        if let Some(id) = columns.field(row, "circuit id") {
            devices.entry(&id.value).or_default().push(row);
        }
    }
    let mut replaced = Vec::new();
    for (id, edit) in edits {
        let rows = devices.get(id).map(Vec::as_slice).unwrap_or_default();
        match edit.becomes {
            None => replaced.extend(rows.iter().map(|row| (row.line(content), String::new()))),
            Some(_) => change(content, &columns, rows, edit, &mut replaced)?,
        }
    }
    let names: Vec<String> = header
        .fields
        .iter()
        .map(|field| field.value.to_lowercase())
        .collect();
    let device_column = names.iter().position(|name| name == "device id");
    let mut taken: Vec<&str> = rows
        .iter()
        .filter_map(|row| Some(&*row.fields.get(device_column?)?.value))
        .collect();
    taken.sort_unstable();
    let new = added(edits);
    let entries = new.iter().filter_map(|edit| edit.becomes.as_ref());
    let lines: Vec<String> = entries
        .map(|entry| line(&names, &columns, &taken, entry))
        .collect();
    replaced.extend(lines_at_end(content, &lines));
    Ok(replaced)
}

/// Notes what changes in the lines of a circuit.
fn change(
    content: &str,
    columns: &Columns,
    rows: &[&Record<'_>],
    edit: &Edit,
    replaced: &mut Vec<Replacement>,
) -> Result<(), Mistake> {
    for (key, values) in edit.members() {
        let cells: Vec<(&str, String)> = match key {
            "name" => vec![("circuit name", values.join(""))],
            "prefixes" if rows.len() > 1 => {
                of_devices(content, columns, rows, edit, replaced)?;
                continue;
            }
            "prefixes" => addresses(edit.becomes.as_ref()).to_vec(),
            key => {
                let column = RATES.iter().find(|(_, member)| *member == key);
                column
                    .map(|(column, _)| (*column, mbit(&values.join(""))))
                    .into_iter()
                    .collect()
            }
        };
        for row in rows {
            for (column, value) in &cells {
                let field = cell(columns, row, column, key)?;
                replaced.push(field.with(content, value));
            }
        }
    }
    Ok(())
}

/// Returns the cell of a column, in which the member `key` is.
fn cell<'r, 't>(
    columns: &Columns,
    row: &'r Record<'t>,
    column: &str,
    key: &str,
) -> Result<&'r Field<'t>, Mistake> {
    columns.field(row, column).ok_or_else(|| {
        let message = format!("there is no column `{column}` for `{key}`");
        let help = "add it to the line of names, and a comma to each other line";
        Mistake::new(row.span.clone(), message, "no such column", help)
    })
}

/// Notes what changes in the addresses of a circuit with several devices: an address that it keeps stays at
/// its device, one that it loses is removed there, and new ones are added to the first device.
fn of_devices(
    content: &str,
    columns: &Columns,
    rows: &[&Record<'_>],
    edit: &Edit,
    replaced: &mut Vec<Replacement>,
) -> Result<(), Mistake> {
    let wanted = edit
        .becomes
        .as_ref()
        .map(|entry| entry.prefixes.as_slice())
        .unwrap_or_default();
    let known = edit
        .known
        .as_ref()
        .map(|entry| entry.prefixes.as_slice())
        .unwrap_or_default();
    for (place, row) in rows.iter().enumerate() {
        for (column, is_six) in [("ipv4", false), ("ipv6", true)] {
            let field = cell(columns, row, column, "prefixes")?;
            let written = Raw::new(field.value.clone(), 0..0).parts();
            let stays = |part: &&Raw| {
                part.prefix()
                    .is_ok_and(|prefix| wanted.contains(&prefix.to_string()))
            };
            let kept = written.iter().filter(stays).map(|part| part.text.as_str());
            let is_new =
                |prefix: &&String| place == 0 && prefix.contains(':') == is_six && !known.contains(prefix);
            let new = wanted.iter().filter(is_new).map(|prefix| shown(prefix));
            let becomes: Vec<&str> = kept.chain(new).collect();
            if !becomes
                .iter()
                .copied()
                .eq(written.iter().map(|part| part.text.as_str()))
            {
                replaced.push(field.with(content, &becomes.join(", ")));
            }
        }
    }
    Ok(())
}

/// Returns the addresses of a circuit by their columns.
fn addresses(entry: Option<&Entry>) -> [(&'static str, String); 2] {
    let of = |is_six: bool| {
        let prefixes = entry.map(|entry| entry.prefixes.as_slice()).unwrap_or_default();
        let prefixes = prefixes.iter().filter(|prefix| prefix.contains(':') == is_six);
        let prefixes: Vec<&str> = prefixes.map(|prefix| shown(prefix)).collect();
        prefixes.join(", ")
    };
    [("ipv4", of(false)), ("ipv6", of(true))]
}

/// Returns a rate of the list in Mbit/s.
fn mbit(rate: &str) -> String {
    parse_rate(rate).map_or_else(|_| rate.to_owned(), |rate| mbit_text(rate.bits_per_second()))
}

/// Returns the line of a new circuit, which is connected to the line itself. It is its only device, with an
/// identifier that no other device has: LibreQoS wants that.
fn line(names: &[String], columns: &Columns, taken: &[&str], entry: &Entry) -> String {
    let id = entry.id.as_str();
    let more = (2..).map(|number| format!("{id}-{number}"));
    let mut devices = std::iter::once(id.to_owned()).chain(more);
    let device = devices.find(|device| taken.binary_search(&device.as_str()).is_err());
    let device = device.expect("there is no end of numbers");
    let name = entry.name.clone().unwrap_or_default();
    let mut cells = vec![String::new(); names.len()];
    let mut put = |place: Option<usize>, value: String| {
        if let Some(cell) = place.and_then(|place| cells.get_mut(place)) {
            *cell = value;
        }
    };
    let by_name = |name: &str| names.iter().position(|known| known == name);
    put(by_name("device id"), device);
    put(
        by_name("device name"),
        if name.is_empty() {
            id.to_owned()
        } else {
            name.clone()
        },
    );
    put(columns.place("circuit id"), id.to_owned());
    put(columns.place("circuit name"), name);
    for (column, value) in addresses(Some(entry)) {
        put(columns.place(column), value);
    }
    for (column, member) in RATES {
        put(columns.place(column), mbit(&values(entry, member).join("")));
    }
    csv::line(cells.iter().map(String::as_str))
}
