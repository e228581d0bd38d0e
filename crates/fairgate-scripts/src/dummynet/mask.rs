//! Translates `mask`: the bits of a packet that select one of several dynamic queues or pipes. It becomes a
//! class with `each`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use fairgate_config::language::{Given, Written};

use toml::Spanned;

use super::units::{self, Wrong};
use crate::script::setting;

/// The words that are allowed after `mask`.
pub(super) const WORDS: [&str; 8] = [
    "all", "src-ip", "dst-ip", "src-ip6", "dst-ip6", "src-port", "dst-port", "proto",
];

/// A parsed mask.
pub(super) struct Mask {
    pub(super) location: Range<usize>,
    /// The bits that count in the source and the destination address.
    pub(super) v4: [u32; 2],
    pub(super) v6: [u128; 2],
    /// Whether these fields count: source port, destination port, protocol.
    pub(super) whole: [bool; 3],
}

/// The names of addresses in `each`, which have masks.
const ADDRESSES: [&str; 2] = ["source", "destination"];
/// The names of the other fields in `each`, which count completely.
const WHOLE: [&str; 3] = ["source_port", "destination_port", "protocol"];

impl Mask {
    /// Returns a mask without any bit that counts.
    pub(super) fn none(location: Range<usize>) -> Mask {
        Mask {
            location,
            v4: [0; 2],
            v6: [0; 2],
            whole: [false; 3],
        }
    }

    /// Returns the mask `all`: every bit of every field.
    pub(super) fn all(location: Range<usize>) -> Mask {
        Mask {
            location,
            v4: [u32::MAX; 2],
            v6: [u128::MAX; 2],
            whole: [true; 3],
        }
    }

    /// Whether no bit counts.
    pub(super) fn is_none(&self) -> bool {
        self.v4 == [0; 2] && self.v6 == [0; 2] && self.whole == [false; 3]
    }

    /// Returns the settings of a class, or the remedy if a class can't express the mask. A class has one mask
    /// for both addresses of a family, and the same fields for both families.
    pub(super) fn settings(&self) -> Result<Vec<Written>, &'static str> {
        let of_v4 = self.v4.map(|bits| bits != 0);
        let of_v6 = self.v6.map(|bits| bits != 0);
        if of_v4 != of_v6 && of_v4 != [false; 2] && of_v6 != [false; 2] {
            return Err("give IPv6 the same addresses as IPv4: dst-ip with dst-ip6, src-ip with src-ip6");
        }
        let (Some(v4), Some(v6)) = (common(self.v4), common(self.v6)) else {
            return Err("give both addresses the same mask: a class with `each` has one for them");
        };
        let location = &self.location;
        let addresses = ADDRESSES
            .into_iter()
            .zip([of_v4[0] || of_v6[0], of_v4[1] || of_v6[1]]);
        let counting = addresses
            .chain(WHOLE.into_iter().zip(self.whole))
            .filter(|(_, counts)| *counts);
        let names = counting.map(|(name, _)| Spanned::new(location.clone(), Given::Text(name.to_owned())));
        let mut settings = vec![setting(location, "each", Given::List(names.collect()))];
        // The masks matter only if an address counts. No bit counts in a family that the mask does not name.
        let has_address = (v4, v6) != (0, 0);
        if has_address && v4 != u32::MAX {
            settings.push(setting(
                location,
                "ipv4",
                Given::Text(Ipv4Addr::from(v4).to_string()),
            ));
        }
        if has_address && v6 != u128::MAX {
            settings.push(setting(
                location,
                "ipv6",
                Given::Text(Ipv6Addr::from(v6).to_string()),
            ));
        }
        Ok(settings)
    }
}

/// Returns the common mask of both addresses, or the mask of the only one that has any. `None` if they
/// differ.
fn common<T: Copy + Default + PartialEq>([source, destination]: [T; 2]) -> Option<T> {
    let none = T::default();
    match (source == none, destination == none) {
        (true, _) => Some(destination),
        (false, true) => Some(source),
        (false, false) => (source == destination).then_some(source),
    }
}

/// Parses a mask of an IPv4 address: a number.
pub(super) fn of_v4(word: &str) -> Result<u32, Wrong> {
    number(word, 32).map(|bits| bits as u32)
}

/// Parses a mask of an IPv6 address: an address, or the number of leading bits.
pub(super) fn of_v6(word: &str) -> Result<u128, Wrong> {
    let wrong = || Wrong {
        part: 0..word.len(),
        message: format!("`{word}` is not a mask of an IPv6 address"),
        help: "write the number of leading bits, like /64, or the mask, like ffff:ffff::",
    };
    match word.strip_prefix('/') {
        Some(length) => match length.parse::<u32>() {
            Ok(length @ 0..=128) => Ok(u128::MAX.checked_shl(128 - length).unwrap_or(0)),
            _ => Err(wrong()),
        },
        None => word.parse().map(Ipv6Addr::to_bits).map_err(|_| wrong()),
    }
}

pub(super) fn of_port(word: &str) -> Result<bool, Wrong> {
    whole(word, 16)
}

pub(super) fn of_protocol(word: &str) -> Result<bool, Wrong> {
    whole(word, 8)
}

/// Parses a mask of a field of `bits` bits, of which all or none must count. Returns whether all count.
fn whole(word: &str, bits: u32) -> Result<bool, Wrong> {
    let all = (1 << bits) - 1;
    match number(word, bits)? {
        0 => Ok(false),
        found if found == all => Ok(true),
        _ => Err(Wrong {
            part: 0..word.len(),
            message: format!("`{word}` covers only a part of the field"),
            help: "write 0xffff for a port and 0xff for a protocol: all bits of the field must count, or \
                none",
        }),
    }
}

/// Parses a number of `bits` bits, or `/bits`. To ipfw `/24` of an address means its 24 low bits, which is
/// rarely intended.
fn number(word: &str, bits: u32) -> Result<u64, Wrong> {
    let wrong = |message: String, help| Wrong {
        part: 0..word.len(),
        message,
        help,
    };
    if let Some(length) = word.strip_prefix('/') {
        return match length.parse::<u32>() {
            Ok(length) if length == bits => Ok((1 << bits) - 1),
            _ => Err(wrong(
                format!("ipfw applies `{word}` to the low bits"),
                "write the mask in hexadecimal, like 0xffffff00",
            )),
        };
    }
    match units::plain(word)? {
        number if number >> bits == 0 => Ok(number),
        _ => Err(wrong(
            format!("`{word}` has more than {bits} bits"),
            "write the mask in hexadecimal, like 0xffffffff",
        )),
    }
}
