//! `mask`: which bits tell the packets of one queue or pipe from those of the next, made as packets come. Here it is a class with
//! `each`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use toml::Spanned;

use super::units::{self, Wrong};
use crate::script::setting;
use crate::spec::{Given, Written};

/// The fields that can tell hosts apart, as `each` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    Protocol,
}

impl Field {
    pub(super) const ALL: [Field; 5] = [
        Field::Source,
        Field::Destination,
        Field::SourcePort,
        Field::DestinationPort,
        Field::Protocol,
    ];

    fn name(self) -> &'static str {
        match self {
            Field::Source => "source",
            Field::Destination => "destination",
            Field::SourcePort => "source_port",
            Field::DestinationPort => "destination_port",
            Field::Protocol => "protocol",
        }
    }
}

/// What a mask asks of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bits {
    V4(u32),
    V6(u128),
}

/// What stands behind `mask`.
pub(super) struct Mask {
    pub(super) place: Range<usize>,
    /// By rising field.
    fields: Vec<Field>,
    v4: Vec<(Field, u32)>,
    v6: Vec<(Field, u128)>,
}

impl Mask {
    /// Without fields.
    pub(super) fn new(place: Range<usize>) -> Mask {
        Mask {
            place,
            fields: Vec::new(),
            v4: Vec::new(),
            v6: Vec::new(),
        }
    }

    /// `all`: every bit of every field.
    pub(super) fn all(place: Range<usize>) -> Mask {
        let addresses = [Field::Source, Field::Destination];
        Mask {
            place,
            fields: Field::ALL.to_vec(),
            v4: addresses.map(|field| (field, u32::MAX)).into(),
            v6: addresses.map(|field| (field, u128::MAX)).into(),
        }
    }

    /// Takes a field in; what was said of it before is forgotten.
    pub(super) fn add(&mut self, field: Field, bits: Option<Bits>) {
        match bits {
            Some(Bits::V4(bits)) => replace(&mut self.v4, field, bits, 0),
            Some(Bits::V6(bits)) => replace(&mut self.v6, field, bits, 0),
            None => self.fields.push(field),
        }
        let is_asked = |field: &Field| match field {
            Field::Source | Field::Destination => {
                self.v4.iter().any(|(other, _)| other == field)
                    || self.v6.iter().any(|(other, _)| other == field)
            }
            _ => self.fields.contains(field),
        };
        self.fields = Field::ALL.into_iter().filter(is_asked).collect();
    }

    /// Whether it tells nobody apart.
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// As the settings of a class; what is wrong if a class can't be told so: it has one mask for both addresses of a family, and the
    /// same fields in both families.
    pub(super) fn settings(&self) -> Result<Vec<Written>, &'static str> {
        let addresses = |asked: &[Field]| -> Vec<Field> {
            let mut asked = asked.to_vec();
            asked.sort_unstable();
            asked
        };
        let of_v4 = addresses(&self.v4.iter().map(|(field, _)| *field).collect::<Vec<_>>());
        let of_v6 = addresses(&self.v6.iter().map(|(field, _)| *field).collect::<Vec<_>>());
        if !of_v4.is_empty() && !of_v6.is_empty() && of_v4 != of_v6 {
            return Err("give IPv6 the same addresses as IPv4: dst-ip with dst-ip6, src-ip with src-ip6");
        }
        let v4 = common(&self.v4).ok_or(ONE_MASK)?;
        let v6 = common(&self.v6).ok_or(ONE_MASK)?;
        let place = &self.place;
        let text = |text: &str| Spanned::new(place.clone(), Given::Text(text.to_owned()));
        let names = self.fields.iter().map(|field| text(field.name())).collect();
        let mut settings = vec![setting(place, "each", Given::List(names))];
        // Of a family that the mask says nothing of no bit counts; where neither has an address there is nothing to say.
        if !self.v4.is_empty() || !self.v6.is_empty() {
            if v4 != u32::MAX {
                settings.push(setting(
                    place,
                    "ipv4",
                    Given::Text(Ipv4Addr::from(v4).to_string()),
                ));
            }
            if v6 != u128::MAX {
                settings.push(setting(
                    place,
                    "ipv6",
                    Given::Text(Ipv6Addr::from(v6).to_string()),
                ));
            }
        }
        Ok(settings)
    }
}

const ONE_MASK: &str = "give both addresses the same mask: a class with `each` has one for them";

fn replace<T: PartialEq>(masks: &mut Vec<(Field, T)>, field: Field, bits: T, none: T) {
    masks.retain(|(other, _)| *other != field);
    if bits != none {
        masks.push((field, bits));
    }
}

/// The mask that all have, none if there are none.
fn common<T: Copy + PartialEq + Default>(masks: &[(Field, T)]) -> Option<T> {
    let first = masks.first().map_or(T::default(), |(_, bits)| *bits);
    masks.iter().all(|(_, bits)| *bits == first).then_some(first)
}

/// A mask of an IPv4 address, a number.
pub(super) fn of_v4(word: &str) -> Result<Bits, Wrong> {
    number(word, 32).map(|bits| Bits::V4(bits as u32))
}

/// A mask of an IPv6 address: an address, or its leading bits.
pub(super) fn of_v6(word: &str) -> Result<Bits, Wrong> {
    let wrong = || Wrong {
        part: 0..word.len(),
        message: format!("`{word}` is no mask of an IPv6 address"),
        help: "write the number of leading bits, like /64, or the mask, like ffff:ffff::",
    };
    let bits = match word.strip_prefix('/') {
        Some(length) => match length.parse::<u32>() {
            Ok(length @ 0..=128) => u128::MAX.checked_shl(128 - length).unwrap_or(0),
            _ => return Err(wrong()),
        },
        None => word.parse::<Ipv6Addr>().map_err(|_| wrong())?.to_bits(),
    };
    Ok(Bits::V6(bits))
}

/// A mask of a field of so many bits, which must be all of them, or none: whether it is all.
pub(super) fn of_field(word: &str, bits: u32) -> Result<bool, Wrong> {
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
