//! Classes that are given to hosts: read as written beside a class, `each = "destination"`, and written so that they read the
//! same.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use fairgate::classify::{AddressMask, HostBy, Template};
use toml::Spanned;

use super::draft::Written;
use super::given::{self, Given, Mistake};
use crate::error::Problems;
use crate::suggest;

/// The keys that make a class a template.
pub(crate) const KEYS: [&str; 5] = ["each", "count", "overflow", "ipv4", "ipv6"];

/// What can tell hosts apart.
const FIELDS: [&str; 7] = [
    "source",
    "destination",
    "source_port",
    "destination_port",
    "protocol",
    "vlan",
    "mark",
];

const EXAMPLE: &str =
    "write each = \"destination\" for a class a receiver, or several fields: each = [\"source\", \"vlan\"]";

/// Reads the keys of a template. Its overflow class, if it names one, is to be looked up when all classes are known.
pub(crate) fn read(
    class: u16,
    place: Range<usize>,
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
                message: format!("`{}` is for a class that is given to hosts", keys[0].0.get_ref()),
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
            message: "no address tells these hosts apart".to_owned(),
            label: "of no meaning".to_owned(),
            help: "leave it out, or name \"source\" or \"destination\" in `each`".to_owned(),
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
        Some(given) => given::number("count", "classes", 1..=0xffff, given).and_then(|count| {
            let last = u64::from(class) + count - 1;
            u16::try_from(last).map(|_| count as u16).map_err(|_| Mistake {
                span: given.span(),
                message: format!("`count` is {count}, but class numbers end at 65535"),
                label: format!("the last would be {last}"),
                help: "lower it, or the `id`".to_owned(),
            })
        }),
        None => Err(Mistake {
            span: place,
            message: format!("class {class} is given to hosts, but has no `count`"),
            label: "`count` is missing".to_owned(),
            help: "write how many hosts may have a class at once, like count = 1000; memory for all is taken at the start"
                .to_owned(),
        }),
    };
    let overflow =
        given("overflow").map(|given| given::number("overflow", "class number", 1..=0xffff, given));
    let count = count.map_err(&mut report).unwrap_or(1);
    let overflow = overflow.map_or(Ok(0), |number| number.map(|number| number as u16));
    let overflow = overflow.map_err(&mut report).unwrap_or(0);
    let template = Template {
        class,
        count,
        by,
        overflow,
    };
    (problems.count() == before).then_some(template)
}

/// The fields by which hosts are told apart: one, or a list; on the command line with commas between.
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
                other => Err(mistake(word.span(), format!("{} is no field", other.show()))),
            })
            .collect::<Result<_, _>>()?,
        other => return Err(mistake(given.span(), format!("{} is no field", other.show()))),
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
                        help: "write which bits of the mark count, like \"mark/0xff\"".to_owned(),
                    });
                }
                None => {
                    return Err(Mistake {
                        span: word.span(),
                        message: format!("`{text}` is no field that tells hosts apart"),
                        label: "unknown field".to_owned(),
                        help: suggest::remedy(text, "fields", FIELDS),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Which bits of addresses of a family count, from the highest: so many, or those of a mask.
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

/// A template as `key = value` lines of TOML, which read the same.
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

/// Of a mask of leading bits, how many.
fn length(mask: u128) -> Option<String> {
    (mask.leading_ones() == mask.count_ones()).then(|| mask.leading_ones().to_string())
}
