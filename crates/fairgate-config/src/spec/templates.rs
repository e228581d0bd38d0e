//! Reads and prints the keys of classes that are given to hosts, such as `each = "destination"`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use fairgate::LAST_CLASS;
use fairgate::classify::{AddressMask, HostBy, Template};
use toml::Spanned;

use super::draft::Written;
use super::given::{self, Given, Mistake};
use crate::error::Problems;
use crate::suggest;

/// The keys that make a class a template.
pub(crate) const KEYS: [&str; 5] = ["each", "count", "overflow", "ipv4", "ipv6"];

/// The fields that can distinguish hosts.
const FIELDS: [&str; 7] = [
    "source",
    "destination",
    "source_port",
    "destination_port",
    "protocol",
    "vlan",
    "mark",
];

const EXAMPLE: &str = "write each = \"destination\" for one class per receiver, or several fields: each = \
    [\"source\", \"vlan\"]";

/// Reads the keys of a template. The overflow class, if given, is checked when all classes are known.
pub(crate) fn read(
    class: u32,
    location: Range<usize>,
    keys: &[&Written],
    problems: &mut Problems,
) -> Option<Template> {
    let before = problems.count();
    let given = |name: &str| {
        let written = keys.iter().find(|(key, _)| key.get_ref() == name);
        written.map(|(_, given)| given)
    };
    let mut report = |mistake: Mistake| mistake.report(problems);
    let by = given("each").map(fields);
    let mut by = match by {
        Some(Ok(by)) => by,
        Some(Err(mistake)) => {
            report(mistake);
            HostBy::default()
        }
        None => {
            report(Mistake {
                span: keys[0].0.span(),
                message: format!(
                    "`{}` is only for a class that is given to hosts",
                    keys[0].0.get_ref()
                ),
                label: "without `each`".to_owned(),
                help: EXAMPLE.to_owned(),
            });
            HostBy::default()
        }
    };
    let ipv4 = given("ipv4").map(|given| mask(given, "ipv4", 32, ipv4_mask));
    let ipv6 = given("ipv6").map(|given| mask(given, "ipv6", 128, ipv6_mask));
    let has_address = by.source.is_some() || by.destination.is_some();
    if let (Some(given), false) = (given("ipv4").or(given("ipv6")), has_address) {
        report(Mistake {
            span: given.span(),
            message: "these hosts are not distinguished by an address".to_owned(),
            label: "without effect".to_owned(),
            help: "remove it, or name \"source\" or \"destination\" in `each`".to_owned(),
        });
    }
    let mut bits = |mask: Option<Result<u128, Mistake>>| match mask {
        Some(Err(mistake)) => {
            report(mistake);
            u128::MAX
        }
        Some(Ok(mask)) => mask,
        None => u128::MAX,
    };
    let mask = AddressMask::of_bits((bits(ipv4) >> 96) as u32, bits(ipv6));
    by.source = by.source.map(|_| mask);
    by.destination = by.destination.map(|_| mask);
    let count = match given("count") {
        Some(given) => given::number("count", "classes", 1..=LAST_CLASS.into(), given).and_then(|count| {
            let last = u64::from(class) + count - 1;
            let fits = last <= LAST_CLASS.into();
            fits.then_some(count as u32).ok_or_else(|| Mistake {
                span: given.span(),
                message: format!("`count` is {count}, but class numbers end at {LAST_CLASS}"),
                label: format!("the last would be {last}"),
                help: "lower it, or the `id`".to_owned(),
            })
        }),
        None => Err(Mistake {
            span: location,
            message: format!("class {class} is given to hosts, but has no `count`"),
            label: "`count` is missing".to_owned(),
            help: "write how many hosts may have a class at once, like count = 1000; \
                   memory for all is allocated at the start"
                .to_owned(),
        }),
    };
    let overflow = given("overflow").map(|given| given::class_number("overflow", given));
    let count = count.map_err(&mut report).unwrap_or(1);
    let overflow = overflow.unwrap_or(Ok(0)).map_err(&mut report).unwrap_or(0);
    let template = Template {
        class,
        count,
        by,
        overflow,
    };
    (problems.count() == before).then_some(template)
}

/// Reads the fields that distinguish hosts: one, or a list. On the command line the list is separated by
/// commas.
fn fields(given: &Spanned<Given>) -> Result<HostBy, Mistake> {
    let mut by = HostBy::default();
    let mistake = |span: Range<usize>, message: String| Mistake {
        span,
        message,
        label: "expected a field".to_owned(),
        help: EXAMPLE.to_owned(),
    };
    let words: Vec<Spanned<&str>> = match given.get_ref() {
        Given::Text(text) => vec![Spanned::new(given.span(), text)],
        Given::Word(text) => text
            .split(',')
            .map(|word| Spanned::new(given.span(), word))
            .collect(),
        Given::List(words) => words
            .iter()
            .map(|word| match word.get_ref() {
                Given::Text(text) => Ok(Spanned::new(word.span(), text.as_str())),
                other => Err(mistake(word.span(), format!("{} is not a field", other.show()))),
            })
            .collect::<Result<_, _>>()?,
        other => return Err(mistake(given.span(), format!("{} is not a field", other.show()))),
    };
    for word in &words {
        let before = by;
        set_field(&mut by, word)?;
        if by == before {
            return Err(mistake(
                word.span(),
                format!("`{}` is named twice", word.get_ref()),
            ));
        }
    }
    match words.is_empty() {
        false => Ok(by),
        true => Err(mistake(given.span(), "no field is named".to_owned())),
    }
}

fn set_field(by: &mut HostBy, word: &Spanned<&str>) -> Result<(), Mistake> {
    match *word.get_ref() {
        "source" => by.source = Some(AddressMask::ALL),
        "destination" => by.destination = Some(AddressMask::ALL),
        "source_port" => by.source_port = true,
        "destination_port" => by.destination_port = true,
        "protocol" => by.protocol = true,
        "vlan" => by.vlan = true,
        "mark" => by.mark = u32::MAX,
        text => {
            let mask = text.strip_prefix("mark/0x");
            match mask.map(|digits| u32::from_str_radix(digits, 16)) {
                Some(Ok(mask)) if mask != 0 => by.mark = mask,
                Some(_) => {
                    return Err(Mistake {
                        span: word.span(),
                        message: format!("`{text}` has no mask of 32 bits"),
                        label: "expected \"mark/0x1\" to \"mark/0xffffffff\"".to_owned(),
                        help: "write the mask of the mark's bits that count, like \"mark/0xff\"".to_owned(),
                    });
                }
                None => {
                    return Err(Mistake {
                        span: word.span(),
                        message: format!("`{text}` is not a field that distinguishes hosts"),
                        label: "unknown field".to_owned(),
                        help: suggest::remedy(text, "fields", FIELDS),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Reads the bits that count in an address of this family: a number of leading bits, or a mask.
fn mask(
    given: &Spanned<Given>,
    family: &'static str,
    longest: u8,
    parse: fn(&str) -> Option<u128>,
) -> Result<u128, Mistake> {
    let as_mask = match given.get_ref() {
        Given::Text(text) | Given::Word(text) => parse(text),
        _ => None,
    };
    if let Some(mask) = as_mask {
        return Ok(mask);
    }
    let leading = |length: u64| u128::MAX.checked_shl(128 - length as u32).unwrap_or(0);
    given::number(family, "leading bits", 0..=longest.into(), given).map(leading)
}

fn ipv4_mask(text: &str) -> Option<u128> {
    let mask: Ipv4Addr = text.parse().ok()?;
    Some(u128::from(mask.to_bits()) << 96)
}

fn ipv6_mask(text: &str) -> Option<u128> {
    let mask: Ipv6Addr = text.parse().ok()?;
    Some(mask.to_bits())
}

/// Returns a template as lines `key = value` of TOML, which are read as the same template.
pub(crate) fn lines(template: &Template) -> Vec<String> {
    let by = &template.by;
    let mark = match by.mark {
        u32::MAX => "mark".to_owned(),
        bits => format!("mark/{bits:#x}"),
    };
    let counts = [
        by.source.is_some(),
        by.destination.is_some(),
        by.source_port,
        by.destination_port,
        by.protocol,
        by.vlan,
        by.mark != 0,
    ];
    let named: Vec<String> = FIELDS
        .iter()
        .zip(counts)
        .filter(|(_, counts)| *counts)
        .map(|(name, _)| match *name {
            "mark" => format!("\"{mark}\""),
            name => format!("\"{name}\""),
        })
        .collect();
    let each = match &named[..] {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let mut lines = vec![format!("each = {each}")];
    let mask = by.source.or(by.destination).unwrap_or(AddressMask::ALL);
    if mask.ipv4() != u32::MAX {
        let shown = length(u128::from(mask.ipv4()) << 96);
        let shown = shown.unwrap_or_else(|| format!("\"{}\"", Ipv4Addr::from_bits(mask.ipv4())));
        lines.push(format!("ipv4 = {shown}"));
    }
    if mask.ipv6() != u128::MAX {
        let shown = length(mask.ipv6());
        let shown = shown.unwrap_or_else(|| format!("\"{}\"", Ipv6Addr::from_bits(mask.ipv6())));
        lines.push(format!("ipv6 = {shown}"));
    }
    lines.push(format!("count = {}", template.count));
    lines.push(format!("overflow = {}", template.overflow));
    lines
}

/// Returns the length of a mask that consists of leading bits.
fn length(mask: u128) -> Option<String> {
    (mask.leading_ones() == mask.count_ones()).then(|| mask.leading_ones().to_string())
}
