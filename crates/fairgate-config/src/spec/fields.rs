//! Reads numbers, ranges, masks and prefixes of packet fields, and prints them in the same form.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use fairgate::ConfigError;
use fairgate::classify::Prefix;
use toml::Spanned;

use super::given::{Given, Mistake};
use super::names::{DSCPS, ETHERTYPES, PROTOCOLS};
use crate::suggest;

/// A number in a field of a packet, with its names.
pub(super) struct Number {
    what: &'static str,
    pub(super) most: u64,
    names: &'static [(&'static str, u64)],
    example: &'static str,
}

pub(super) const PORTS: Number = Number {
    what: "port",
    most: 0xffff,
    names: &[],
    example: "a port like 5060, or a range like \"5000-5100\"",
};
pub(super) const PROTOCOL: Number = Number {
    what: "protocol",
    most: 0xff,
    names: PROTOCOLS,
    example: "\"tcp\", \"udp\", \"icmp\", or the IP protocol's number",
};
pub(super) const DSCP: Number = Number {
    what: "DSCP",
    most: 63,
    names: DSCPS,
    example: "a name like \"EF\", \"AF41\", \"CS1\", a number, or a range like \"32-63\"",
};
/// A DSCP where no range of DSCPs is allowed.
pub(super) const ONE_DSCP: Number = Number {
    example: "a name like \"EF\", \"AF41\", \"CS1\", or a number",
    ..DSCP
};
pub(super) const PRIORITY: Number = Number {
    what: "priority",
    most: 15,
    names: &[],
    example: "a number from 0 to 15, or a range like \"6-7\"",
};
pub(super) const MARK: Number = Number {
    what: "mark",
    most: u32::MAX as u64,
    names: &[],
    example: "a number like 7, or a number and the mask of the bits that count, \"0x10/0xf0\"",
};
pub(super) const TRAFFIC_CLASS: Number = Number {
    what: "traffic class",
    most: 0xff,
    names: &[],
    example: "a byte and the mask of the bits that count, like \"0x10/0x1e\"; for a DSCP write dscp",
};
pub(super) const INTERFACE: Number = Number {
    what: "number of an interface",
    most: 0xffff,
    names: &[],
    example: "a number: in a run 1 for the left interface, 2 for the right one; in a simulation 1 for the \
              node's first link",
};
pub(super) const PREFERENCE: Number = Number {
    what: "preference",
    most: 0xffff,
    names: &[],
    example: "a number; filters with lower ones are tried first",
};
pub(super) const VLAN: Number = Number {
    what: "VLAN identifier",
    most: 4094,
    names: &[],
    example: "a number from 1 to 4094; 0 for packets without a tag",
};
pub(super) const ETHERTYPE: Number = Number {
    what: "EtherType",
    most: 0xffff,
    names: ETHERTYPES,
    example: "\"ipv4\", \"ipv6\", \"arp\", or a number like 0x0800",
};

pub(super) const TTL: Number = Number {
    what: "TTL",
    most: 0xff,
    names: &[],
    example: "a number, or a range like \"0-63\"; it is also the hop limit of IPv6",
};
pub(super) const LENGTH: Number = Number {
    what: "length of an IP packet",
    most: 0xffff,
    names: &[],
    example: "a number of bytes with the IP header, or a range like \"0-63\"",
};
pub(super) const ICMP_TYPE: Number = Number {
    what: "type of ICMP",
    most: 0xff,
    names: &[],
    example: "a number: 8 is an echo request of ICMP, 128 of ICMPv6; or a range",
};
pub(super) const ICMP_CODE: Number = Number {
    what: "code of ICMP",
    most: 0xff,
    names: &[],
    example: "a number, or a range",
};

impl Number {
    fn mistake(&self, given: &Spanned<Given>, message: String) -> Mistake {
        Mistake {
            span: given.span(),
            message,
            label: format!("expected a {} from 0 to {}", self.what, self.most),
            help: format!("write {}", self.example),
        }
    }

    fn check(&self, number: i128, given: &Spanned<Given>) -> Result<u64, Mistake> {
        u64::try_from(number)
            .ok()
            .filter(|number| *number <= self.most)
            .ok_or_else(|| self.mistake(given, format!("there is no {} {number}", self.what)))
    }

    /// Reads a name, or a number as TOML writes it.
    fn word(&self, word: &str, given: &Spanned<Given>) -> Result<u64, Mistake> {
        let parsed = match word.strip_prefix("0x") {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                i128::from_str_radix(digits, 16)
            }
            _ => word.parse(),
        };
        if let Ok(number) = parsed {
            return self.check(number, given);
        }
        self.named(word).ok_or_else(|| {
            let mut mistake = self.mistake(given, format!("`{word}` is not a {}", self.what));
            if let Some(name) = suggest::similar(word, self.names.iter().map(|(name, _)| *name)) {
                mistake.help = format!("did you mean \"{name}\"? {}", mistake.help);
            }
            mistake
        })
    }

    fn named(&self, word: &str) -> Option<u64> {
        let mut named = self
            .names
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(word));
        named.next().map(|(_, number)| *number)
    }

    fn wrong_type(&self, given: &Spanned<Given>) -> Mistake {
        self.mistake(
            given,
            format!("{} is not a {}", given.get_ref().show(), self.what),
        )
    }
}

pub(super) fn single<T: TryFrom<u64>>(kind: &Number, given: &Spanned<Given>) -> Result<T, Mistake> {
    let number = match given.get_ref() {
        Given::Integer(number) => kind.check(*number, given)?,
        Given::Text(word) => kind.word(word, given)?,
        _ => return Err(kind.wrong_type(given)),
    };
    Ok(narrow(number))
}

pub(super) fn range<T: TryFrom<u64>>(
    kind: &Number,
    given: &Spanned<Given>,
) -> Result<RangeInclusive<T>, Mistake> {
    let (first, last) = match given.get_ref() {
        Given::Integer(number) => (kind.check(*number, given)?, kind.check(*number, given)?),
        Given::Text(text) => match text.split_once('-') {
            // A name may contain a dash.
            Some((first, last)) if kind.named(text).is_none() => {
                (kind.word(first.trim(), given)?, kind.word(last.trim(), given)?)
            }
            _ => (kind.word(text, given)?, kind.word(text, given)?),
        },
        _ => return Err(kind.wrong_type(given)),
    };
    if first > last {
        let mut mistake = kind.mistake(given, format!("the range from {first} to {last} is empty"));
        mistake.help = format!("write the lower end first: \"{last}-{first}\"");
        return Err(mistake);
    }
    Ok(narrow(first)..=narrow(last))
}

/// Reads a number, of which all bits count, or `"value/mask"`.
pub(super) fn masked<T: TryFrom<u64>, M>(
    kind: &Number,
    given: &Spanned<Given>,
    new: impl Fn(T, T) -> Result<M, ConfigError>,
) -> Result<M, Mistake> {
    let halves = match given.get_ref() {
        Given::Text(text) => text.split_once('/'),
        _ => None,
    };
    let (value, mask) = match halves {
        Some((value, mask)) => (kind.word(value.trim(), given)?, kind.word(mask.trim(), given)?),
        None => (single::<u64>(kind, given)?, kind.most),
    };
    new(narrow(value), narrow(mask)).map_err(|error| kind.mistake(given, error.to_string()))
}

fn narrow<T: TryFrom<u64>>(number: u64) -> T {
    T::try_from(number).unwrap_or_else(|_| unreachable!("a field's largest number fits its type"))
}

pub(super) fn prefix(given: &Spanned<Given>) -> Result<Prefix, Mistake> {
    let mistake = |message: String, help: String| Mistake {
        span: given.span(),
        message,
        label: "expected an address or a prefix".to_owned(),
        help,
    };
    let example = || "write an address like \"192.0.2.1\" or a prefix like \"2001:db8::/32\"".to_owned();
    let Given::Text(text) = given.get_ref() else {
        return Err(mistake(
            format!("{} is not an address", given.get_ref().show()),
            example(),
        ));
    };
    let (address_text, length_text) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text.as_str(), None),
    };
    let address: IpAddr = address_text
        .parse()
        .map_err(|_| mistake(format!("`{address_text}` is not an address"), example()))?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = match length_text.map(str::parse::<u8>) {
        None => longest,
        Some(Ok(length)) if length <= longest => length,
        Some(_) => {
            let message = format!("`{text}` is not a prefix: its length must be 0 to {longest}");
            return Err(mistake(message, example()));
        }
    };
    let prefix = Prefix::new(address, length).map_err(|error| mistake(error.to_string(), example()))?;
    // Set bits that the prefix ignores are probably a mistake in the length.
    if prefix.address() != address {
        let message = format!("`{text}` has bits set after the first {length}");
        return Err(mistake(
            message,
            format!("write \"{prefix}\", or correct the length"),
        ));
    }
    Ok(prefix)
}

pub(super) fn show_range<T: PartialEq + std::fmt::Display>(range: &RangeInclusive<T>) -> String {
    match range.start() == range.end() {
        true => range.start().to_string(),
        false => format!("\"{}-{}\"", range.start(), range.end()),
    }
}

pub(super) fn show_masked(value: u64, mask: u64, all: u64) -> String {
    match mask == all {
        true => value.to_string(),
        false => format!("\"{value:#x}/{mask:#x}\""),
    }
}

pub(super) fn show_name(kind: &Number, number: u64) -> String {
    let named = kind.names.iter().find(|(_, other)| *other == number);
    named.map_or_else(|| number.to_string(), |(name, _)| format!("\"{name}\""))
}
