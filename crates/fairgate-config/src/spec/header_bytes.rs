//! Reads and prints conditions on bytes of the headers: `bytes`, and the fields with names of their own.

use std::ops::RangeInclusive;

use fairgate::classify::{Bytes, BytesOf, Match};
use toml::Spanned;

use super::draft::Written;
use super::fields::{ICMP_CODE, ICMP_TYPE, LENGTH, TTL, range, show_range};
use super::given::{Given, Mistake};
use crate::error::Problems;

/// The keys of these conditions.
pub(super) const KEYS: [&str; 8] = [
    "tcp_flags",
    "icmp_type",
    "icmp_code",
    "ttl",
    "length",
    "source_mac",
    "destination_mac",
    "bytes",
];

const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// The flags of TCP, the lowest bit first.
const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// The offset of the destination address of a frame from the network header, and of the source address.
const DESTINATION_MAC: i16 = -14;
const SOURCE_MAC: i16 = -8;

/// Reads a key, if it is one of [`KEYS`].
pub(super) fn read((key, given): &Written, condition: &mut Match) -> Option<Result<(), Mistake>> {
    let mut add = |place, width, range: Result<RangeInclusive<u32>, Mistake>| {
        let range = range?;
        let most = u32::MAX >> (32 - 8 * u32::from(width));
        condition.bytes.push(condition_on(
            given,
            place,
            width,
            most,
            *range.start(),
            *range.end(),
        )?);
        Ok(())
    };
    Some(match key.get_ref().as_str() {
        "tcp_flags" => tcp_flags(given).and_then(|(value, mask)| {
            let (place, width) = match mask > 0xff {
                true => (BytesOf::Transport(12), 2),
                false => (BytesOf::Transport(13), 1),
            };
            condition
                .bytes
                .push(condition_on(given, place, width, mask, value, value)?);
            Ok(())
        }),
        "icmp_type" => add(BytesOf::Transport(0), 1, range(&ICMP_TYPE, given)),
        "icmp_code" => add(BytesOf::Transport(1), 1, range(&ICMP_CODE, given)),
        "ttl" => add(BytesOf::HopLimit, 1, range(&TTL, given)),
        "length" => add(BytesOf::Length, 2, range(&LENGTH, given)),
        "source_mac" => mac(SOURCE_MAC, given, condition),
        "destination_mac" => mac(DESTINATION_MAC, given, condition),
        "bytes" => list(given, condition),
        _ => return None,
    })
}

/// Adds the protocol that conditions imply, and sorts them. Reports a condition on fields of another
/// protocol.
pub(super) fn complete(entries: &[Written], condition: &mut Match, problems: &mut Problems) {
    for (key, given) in entries {
        let name = key.get_ref().as_str();
        let (fits, help) = match name {
            "tcp_flags" => (
                *condition.protocol.get_or_insert(TCP) == TCP,
                "only TCP has these flags: write protocol = \"tcp\"",
            ),
            "icmp_type" | "icmp_code" => (
                matches!(condition.protocol, Some(ICMP | ICMPV6)),
                "add protocol = \"icmp\" or protocol = \"icmpv6\": their types are different",
            ),
            _ => continue,
        };
        if !fits {
            let message = format!("`{name}` belongs to another protocol than the filter");
            problems.add(given.span(), message, "not of this protocol", help);
        }
    }
    condition.bytes.sort_unstable();
    condition.bytes.dedup();
}

fn condition_on(
    given: &Spanned<Given>,
    place: BytesOf,
    width: u8,
    mask: u32,
    first: u32,
    last: u32,
) -> Result<Bytes, Mistake> {
    Bytes::new(place, width, mask, first, last).map_err(|error| Mistake {
        span: given.span(),
        message: error.to_string(),
        label: "not possible".to_owned(),
        help: FORM.to_owned(),
    })
}

const FORM: &str =
    "write a place, a width and a value: \"network+33 u8 0x10/0x3f\", \"transport+0 u16 5000-5100\"";

fn mistake(given: &Spanned<Given>, what: &str, help: &str) -> Mistake {
    Mistake {
        span: given.span(),
        message: format!("{} is not {what}", given.get_ref().show()),
        label: format!("expected {what}"),
        help: help.to_owned(),
    }
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u32::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// Reads `"syn"`, flags that must be set; `"syn/syn,ack"`, and those that are compared.
fn tcp_flags(given: &Spanned<Given>) -> Result<(u32, u32), Mistake> {
    let help = "write flags that must be set, \"syn\", and after a slash all compared ones, \"syn/syn,ack\"; \
        or numbers, \"0x02/0x12\"";
    let flags = |text: &str| {
        number(text).or_else(|| {
            text.split(',').try_fold(0, |flags, name| {
                let bit = FLAGS.iter().position(|flag| *flag == name.trim())?;
                Some(flags | 1 << bit)
            })
        })
    };
    let refused = || mistake(given, "a set of TCP flags", help);
    let (value, mask) = match given.get_ref() {
        Given::Integer(number) => {
            let number = u32::try_from(*number).map_err(|_| refused())?;
            (number, 0xff)
        }
        Given::Text(text) => {
            let (value, mask) = text.split_once('/').unwrap_or((text, text));
            let is_number = !text.contains('/') && number(text).is_some();
            let mask = if is_number { Some(0xff) } else { flags(mask) };
            flags(value).zip(mask).ok_or_else(refused)?
        }
        _ => return Err(refused()),
    };
    match mask <= 0xfff && value & !mask == 0 {
        true => Ok((value, mask)),
        false => Err(refused()),
    }
}

/// Reads an Ethernet address, perhaps with a mask, as two conditions.
fn mac(offset: i16, given: &Spanned<Given>, condition: &mut Match) -> Result<(), Mistake> {
    let help = "write \"02:00:00:00:00:01\", perhaps with a mask, \"02:00:00:00:00:00/ff:ff:ff:00:00:00\"";
    let address = |text: &str| {
        let octets: Option<Vec<u8>> = text
            .split(':')
            .map(|octet| u8::from_str_radix(octet, 16).ok().filter(|_| octet.len() <= 2))
            .collect();
        <[u8; 6]>::try_from(octets?).ok()
    };
    let parsed = match given.get_ref() {
        Given::Text(text) => {
            let (value, mask) = text.split_once('/').unwrap_or((text, "ff:ff:ff:ff:ff:ff"));
            address(value).zip(address(mask))
        }
        _ => None,
    };
    let Some((value, mask)) = parsed else {
        return Err(mistake(given, "an Ethernet address", help));
    };
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    };
    for (part, width) in [(0..4, 4), (4..6, 2)] {
        let (value, mask) = (number(&value[part.clone()]), number(&mask[part.clone()]));
        if mask != 0 {
            let place = BytesOf::Network(offset + part.start as i16);
            let value = value & mask;
            condition
                .bytes
                .push(condition_on(given, place, width, mask, value, value)?);
        }
    }
    Ok(())
}

fn list(given: &Spanned<Given>, condition: &mut Match) -> Result<(), Mistake> {
    match given.get_ref() {
        Given::List(elements) => elements
            .iter()
            .try_for_each(|element| list_element(element, condition)),
        _ => list_element(given, condition),
    }
}

fn list_element(given: &Spanned<Given>, condition: &mut Match) -> Result<(), Mistake> {
    let read = |text: &str| {
        let mut words = text.split_whitespace();
        let (place, width, value) = (words.next()?, words.next()?, words.next()?);
        let place = if let Some(offset) = place.strip_prefix("transport+") {
            BytesOf::Transport(offset.parse().ok()?)
        } else if place == "ttl" {
            BytesOf::HopLimit
        } else if place == "length" {
            BytesOf::Length
        } else {
            // A sign is required.
            let offset = place
                .strip_prefix("network")
                .filter(|offset| offset.starts_with(['+', '-']))?;
            BytesOf::Network(offset.parse().ok()?)
        };
        let width: u8 = match width {
            "u8" => 1,
            "u16" => 2,
            "u32" => 4,
            _ => return None,
        };
        let (values, mask) = match value.split_once('/') {
            Some((values, mask)) => (values, number(mask)?),
            None => (value, u32::MAX >> (32 - 8 * u32::from(width))),
        };
        let (first, last) = values.split_once('-').unwrap_or((values, values));
        let is_all = words.next().is_none();
        Some((place, width, mask, number(first)?, number(last)?)).filter(|_| is_all)
    };
    let parsed = match given.get_ref() {
        Given::Text(text) => read(text),
        _ => None,
    };
    let (place, width, mask, first, last) =
        parsed.ok_or_else(|| mistake(given, "a condition on bytes", FORM))?;
    condition
        .bytes
        .push(condition_on(given, place, width, mask, first, last)?);
    Ok(())
}

/// Returns the conditions on bytes as lines `key = value`.
pub(super) fn lines(condition: &Match) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = condition.bytes.clone();
    for (key, offset) in [("source_mac", SOURCE_MAC), ("destination_mac", DESTINATION_MAC)] {
        let part = |offset, width| {
            let exact = u32::MAX >> (32 - 8 * u32::from(width));
            rest.iter().copied().find(|bytes| {
                (bytes.place(), bytes.width(), bytes.mask()) == (BytesOf::Network(offset), width, exact)
                    && bytes.range().0 == bytes.range().1
            })
        };
        if let (Some(high), Some(low)) = (part(offset, 4), part(offset + 4, 2)) {
            let address = u64::from(high.range().0) << 16 | u64::from(low.range().0);
            let octets: Vec<String> = address.to_be_bytes()[2..]
                .iter()
                .map(|octet| format!("{octet:02x}"))
                .collect();
            lines.push(format!("{key} = \"{}\"", octets.join(":")));
            rest.retain(|bytes| *bytes != high && *bytes != low);
        }
    }
    let mut seen = Vec::new();
    rest.retain(|bytes| match named(bytes, condition.protocol) {
        // A key can be given once.
        Some((key, value)) if !seen.contains(&key) => {
            lines.push(format!("{key} = {value}"));
            seen.push(key);
            false
        }
        _ => true,
    });
    let shown: Vec<String> = rest.iter().map(|bytes| format!("\"{}\"", shown(bytes))).collect();
    match &shown[..] {
        [] => {}
        [only] => lines.push(format!("bytes = {only}")),
        _ => lines.push(format!("bytes = [{}]", shown.join(", "))),
    }
    lines
}

/// Returns the name of the field that a condition compares, and its value.
fn named(bytes: &Bytes, protocol: Option<u8>) -> Option<(&'static str, String)> {
    let (first, last) = bytes.range();
    let range = || show_range(&(first..=last));
    let is_exact = bytes.mask() == u32::MAX >> (32 - 8 * u32::from(bytes.width()));
    let key = match (bytes.place(), bytes.width(), protocol) {
        (BytesOf::HopLimit, ..) if is_exact => "ttl",
        (BytesOf::Length, ..) if is_exact => "length",
        (BytesOf::Transport(13), 1, Some(TCP)) if first == last => {
            return Some(("tcp_flags", format!("\"{first:#04x}/{:#04x}\"", bytes.mask())));
        }
        (BytesOf::Transport(12), 2, Some(TCP))
            if first == last && (0x100..=0xfff).contains(&bytes.mask()) =>
        {
            return Some(("tcp_flags", format!("\"{first:#05x}/{:#05x}\"", bytes.mask())));
        }
        (BytesOf::Transport(0), 1, Some(ICMP | ICMPV6)) if is_exact => "icmp_type",
        (BytesOf::Transport(1), 1, Some(ICMP | ICMPV6)) if is_exact => "icmp_code",
        _ => return None,
    };
    Some((key, range()))
}

fn shown(bytes: &Bytes) -> String {
    let (first, last) = bytes.range();
    let width = 8 * bytes.width();
    let values = match first == last {
        true => format!("{first:#x}"),
        false => format!("{first:#x}-{last:#x}"),
    };
    let mask = match bytes.mask() == u32::MAX >> (32 - u32::from(width)) {
        true => String::new(),
        false => format!("/{:#x}", bytes.mask()),
    };
    format!("{} u{width} {values}{mask}", bytes.place())
}
