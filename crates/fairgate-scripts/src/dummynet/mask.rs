//! `mask`: which bits tell the packets of one queue or pipe from those of the next, made as packets come. Here it is a class with
//! `each`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use fairgate_config::language::{Given, Written};

use toml::Spanned;

use super::units::{self, Wrong};
use crate::script::setting;

/// What may stand behind `mask`.
pub(super) const WORDS: [&str; 8] = [
    "all", "src-ip", "dst-ip", "src-ip6", "dst-ip6", "src-port", "dst-port", "proto",
];

/// What stands there.
pub(super) struct Mask {
    pub(super) place: Range<usize>,
    /// Which bits count of the source and of the destination.
    pub(super) v4: [u32; 2],
    pub(super) v6: [u128; 2],
    /// Whether they count: source port, destination port, protocol.
    pub(super) whole: [bool; 3],
}

/// The fields as `each` names them: those with masks for each family, and those that count as a whole.
const ADDRESSES: [&str; 2] = ["source", "destination"];
const WHOLE: [&str; 3] = ["source_port", "destination_port", "protocol"];

impl Mask {
    /// Without a bit that counts.
    pub(super) fn none(place: Range<usize>) -> Mask {
        Mask {
            place,
            v4: [0; 2],
            v6: [0; 2],
            whole: [false; 3],
        }
    }

    /// `all`: every bit of every field.
    pub(super) fn all(place: Range<usize>) -> Mask {
        Mask {
            place,
            v4: [u32::MAX; 2],
            v6: [u128::MAX; 2],
            whole: [true; 3],
        }
    }

    /// Whether it tells nobody apart.
    pub(super) fn is_none(&self) -> bool {
        self.v4 == [0; 2] && self.v6 == [0; 2] && self.whole == [false; 3]
    }

    /// As the settings of a class; what to write instead if a class can't be told so: it has one mask for both addresses of a family,
    /// and the same fields in both families.
    pub(super) fn settings(&self) -> Result<Vec<Written>, &'static str> {
        let of_v4 = self.v4.map(|bits| bits != 0);
        let of_v6 = self.v6.map(|bits| bits != 0);
        if of_v4 != of_v6 && of_v4 != [false; 2] && of_v6 != [false; 2] {
            return Err("give IPv6 the same addresses as IPv4: dst-ip with dst-ip6, src-ip with src-ip6");
        }
        let (Some(v4), Some(v6)) = (common(self.v4), common(self.v6)) else {
            return Err("give both addresses the same mask: a class with `each` has one for them");
        };
        let place = &self.place;
        let addresses = ADDRESSES
            .into_iter()
            .zip([of_v4[0] || of_v6[0], of_v4[1] || of_v6[1]]);
        let counting = addresses
            .chain(WHOLE.into_iter().zip(self.whole))
            .filter(|(_, counts)| *counts);
        let names = counting.map(|(name, _)| Spanned::new(place.clone(), Given::Text(name.to_owned())));
        let mut settings = vec![setting(place, "each", Given::List(names.collect()))];
        // Without an address there is nothing to say of them; of a family that the mask leaves out no bit counts.
        let has_address = (v4, v6) != (0, 0);
        if has_address && v4 != u32::MAX {
            settings.push(setting(
                place,
                "ipv4",
                Given::Text(Ipv4Addr::from(v4).to_string()),
            ));
        }
        if has_address && v6 != u128::MAX {
            settings.push(setting(
                place,
                "ipv6",
                Given::Text(Ipv6Addr::from(v6).to_string()),
            ));
        }
        Ok(settings)
    }
}

/// The mask of both, or of the only one that has any; `None` if they differ.
fn common<T: Copy + Default + PartialEq>([source, destination]: [T; 2]) -> Option<T> {
    let none = T::default();
    match (source == none, destination == none) {
        (true, _) => Some(destination),
        (false, true) => Some(source),
        (false, false) => (source == destination).then_some(source),
    }
}

/// A mask of an IPv4 address, a number.
pub(super) fn of_v4(word: &str) -> Result<u32, Wrong> {
    number(word, 32).map(|bits| bits as u32)
}

/// A mask of an IPv6 address: an address, or its leading bits.
pub(super) fn of_v6(word: &str) -> Result<u128, Wrong> {
    let wrong = || Wrong {
        part: 0..word.len(),
        message: format!("`{word}` is no mask of an IPv6 address"),
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

/// A mask of a field of so many bits, which must be all of them, or none: whether it is all.
fn whole(word: &str, bits: u32) -> Result<bool, Wrong> {
    let all = (1 << bits) - 1;
    match number(word, bits)? {
        0 => Ok(false),
        found if found == all => Ok(true),
        _ => Err(Wrong {
            part: 0..word.len(),
            message: format!("`{word}` is a part of the field"),
            help: "write 0xffff for a port and 0xff for a protocol: all of it tells packets apart, or nothing",
        }),
    }
}

/// A number of `bits` bits, or `/bits`. ipfw takes `/24` of an address for its 24 low bits, which hardly anybody means.
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
                format!("ipfw takes `{word}` for the low bits"),
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
