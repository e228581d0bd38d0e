//! Reads the table of a class that is computed from fields of packets, and prints it in the same form.

use std::num::NonZeroU32;
use std::time::Duration;

use fairgate::classify::{Computed, Field, Fields, Rule};
use fairgate::registry::{ParameterInfo, Unit, Value};
use toml::Spanned;

use super::given::{self, Given, Mistake};
use crate::suggest;

/// The names of fields, in the order of [`Field::ALL`].
const FIELDS: [(&str, Field); 10] = [
    ("source", Field::Source),
    ("destination", Field::Destination),
    ("protocol", Field::Protocol),
    ("source_port", Field::SourcePort),
    ("destination_port", Field::DestinationPort),
    ("interface", Field::Interface),
    ("priority", Field::Priority),
    ("mark", Field::Mark),
    ("vlan", Field::Vlan),
    ("flow", Field::Flow),
];

/// The keys of the table.
const KEYS: [&str; 9] = [
    "hash", "perturb", "number", "and", "xor", "shift", "add", "first", "count",
];

const FORM: &str = "write class = { hash = [\"source\"], first = 1, count = 8 }, or class = { number = \
    \"mark\", and = 0xff }";

/// The table as far as it was read.
#[derive(Default)]
struct Table {
    hash: Option<Fields>,
    perturb: Option<Duration>,
    number: Option<Field>,
    and: Option<u32>,
    xor: Option<u32>,
    shift: Option<u8>,
    add: Option<u32>,
    first: Option<u16>,
    count: Option<NonZeroU32>,
}

/// Reads a table.
pub(super) fn read(given: &Spanned<Given>) -> Result<Computed, Mistake> {
    let Given::Table(entries) = given.get_ref() else {
        return Err(mistake(given, "a class must be a number or a table".to_owned()));
    };
    let mut table = Table::default();
    for (key, value) in entries {
        table.read(key, value)?;
    }
    let of_numbers = [
        ("and", table.and.is_some()),
        ("xor", table.xor.is_some()),
        ("shift", table.shift.is_some()),
        ("add", table.add.is_some()),
    ];
    let alone = |name: &str, of: &str| {
        let key = entries.iter().find(|(key, _)| key.get_ref() == name);
        let span = key.map_or(given.span(), |(key, _)| key.span());
        Err(Mistake {
            span,
            message: format!("`{name}` belongs to `{of}`"),
            label: "not here".to_owned(),
            help: FORM.to_owned(),
        })
    };
    let rule = match (table.hash, table.number) {
        (Some(fields), None) => match of_numbers.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => return alone(name, "number"),
            None => Rule::Hash {
                fields,
                perturb: table.perturb,
            },
        },
        (None, Some(_)) if table.perturb.is_some() => return alone("perturb", "hash"),
        (None, Some(field)) => Rule::Number {
            field,
            and: table.and.unwrap_or(u32::MAX),
            xor: table.xor.unwrap_or(0),
            shift: table.shift.unwrap_or(0),
            add: table.add.unwrap_or(0),
        },
        (Some(_), Some(_)) => {
            return Err(mistake(
                given,
                "`hash` and `number` exclude each other".to_owned(),
            ));
        }
        (None, None) => return Err(mistake(given, "`hash` or `number` is missing".to_owned())),
    };
    let first = table.first.unwrap_or(1);
    Computed::new(first, table.count, rule).map_err(|error| mistake(given, error.to_string()))
}

impl Table {
    fn read(&mut self, key: &Spanned<String>, value: &Spanned<Given>) -> Result<(), Mistake> {
        let number = |name, most: u64| given::number(name, "the class", 0..=most, value);
        let all_bits = u64::from(u32::MAX);
        match key.get_ref().as_str() {
            "hash" => self.hash = Some(fields(value)?),
            "number" => self.number = Some(field(value)?),
            "perturb" => {
                let mut info = ParameterInfo::number("perturb", "the class", 1..=u64::MAX);
                info.unit = Unit::Time;
                if let Value::Number(nanos) = given::read(&info, value)? {
                    self.perturb = Some(Duration::from_nanos(nanos));
                }
            }
            "and" => self.and = Some(number("and", all_bits)? as u32),
            "xor" => self.xor = Some(number("xor", all_bits)? as u32),
            "add" => self.add = Some(number("add", all_bits)? as u32),
            "shift" => self.shift = Some(number("shift", 31)? as u8),
            "first" => self.first = Some(number("first", 0xffff)? as u16),
            "count" => {
                let count = given::number("count", "the class", 1..=all_bits, value)?;
                self.count = NonZeroU32::new(count as u32);
            }
            name => {
                return Err(Mistake {
                    span: key.span(),
                    message: format!("a class has no `{name}`"),
                    label: "unknown here".to_owned(),
                    help: suggest::remedy(name, "it has", KEYS),
                });
            }
        }
        Ok(())
    }
}

fn fields(given: &Spanned<Given>) -> Result<Fields, Mistake> {
    match given.get_ref() {
        Given::List(names) => names.iter().map(field).collect(),
        // In words there are no lists.
        Given::Text(names) => names
            .split(',')
            .map(|name| field(&Spanned::new(given.span(), Given::Text(name.to_owned()))))
            .collect(),
        _ => Err(mistake(given, "`hash` must be a list of fields".to_owned())),
    }
}

fn field(given: &Spanned<Given>) -> Result<Field, Mistake> {
    let (Given::Text(name) | Given::Word(name) | Given::Meant(name)) = given.get_ref() else {
        return Err(mistake(
            given,
            format!("{} is not a field", given.get_ref().show()),
        ));
    };
    let found = FIELDS.iter().find(|(known, _)| known == name);
    found.map(|(_, field)| *field).ok_or_else(|| Mistake {
        help: suggest::remedy(name, "fields are", FIELDS.iter().map(|(name, _)| *name)),
        ..mistake(given, format!("`{name}` is not a field"))
    })
}

fn mistake(given: &Spanned<Given>, message: String) -> Mistake {
    Mistake {
        span: given.span(),
        message,
        label: "not possible".to_owned(),
        help: FORM.to_owned(),
    }
}

fn name(field: Field) -> &'static str {
    let found = FIELDS.iter().find(|(_, known)| *known == field);
    found.map_or("", |(name, _)| name)
}

/// Returns the table as TOML.
pub(super) fn show(computed: &Computed) -> String {
    let mut entries = Vec::new();
    match computed.rule() {
        Rule::Hash { fields, perturb } => {
            let names: Vec<String> = fields
                .iter()
                .map(|field| format!("\"{}\"", name(field)))
                .collect();
            entries.push(format!("hash = [{}]", names.join(", ")));
            let shown = |period: Duration| Unit::Time.show(&Value::Number(period.as_nanos() as u64));
            entries.extend(perturb.map(|period| format!("perturb = \"{}\"", shown(period))));
        }
        Rule::Number {
            field,
            and,
            xor,
            shift,
            add,
        } => {
            entries.push(format!("number = \"{}\"", name(field)));
            let mut number = |key: &str, number: u32, default: u32, text: String| {
                entries.extend((number != default).then(|| format!("{key} = {text}")));
            };
            number("and", and, u32::MAX, format!("{and:#x}"));
            number("xor", xor, 0, format!("{xor:#x}"));
            number("shift", shift.into(), 0, shift.to_string());
            number("add", add, 0, add.to_string());
        }
    }
    entries.push(format!("first = {}", computed.first()));
    entries.extend(computed.count().map(|count| format!("count = {count}")));
    format!("{{ {} }}", entries.join(", "))
}

/// Returns the fields that it depends on, for people.
pub(super) fn shown(computed: &Computed) -> String {
    match computed.rule() {
        Rule::Hash { fields, .. } => {
            let names: Vec<&str> = fields.iter().map(name).collect();
            format!("a hash of {}", names.join(", "))
        }
        Rule::Number { field, .. } => name(field).to_owned(),
    }
}
