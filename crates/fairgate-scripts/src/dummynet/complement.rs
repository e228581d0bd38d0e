//! The addresses outside of some prefixes, as prefixes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairgate::classify::Prefix;

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    const fn bits(self) -> u32 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// Returns the first bits of a prefix of this family, and their number.
    fn bits_of(self, prefix: &Prefix) -> Option<(u128, u32)> {
        let bits = match (prefix.address(), self) {
            (IpAddr::V4(address), Family::V4) => u128::from(address.to_bits()) << 96,
            (IpAddr::V6(address), Family::V6) => address.to_bits(),
            _ => return None,
        };
        Some((bits, prefix.length().into()))
    }

    /// Returns the prefix with these first bits.
    fn prefix(self, bits: u128, length: u32) -> Prefix {
        let address = match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::from_bits((bits >> 96) as u32)),
            Family::V6 => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        };
        Prefix::new(address, length as u8).expect("the length is at most that of an address")
    }
}

/// Returns the fewest prefixes that cover exactly the addresses of a family that none of `prefixes` covers.
pub(super) fn complement(prefixes: &[Prefix], family: Family) -> Vec<Prefix> {
    let inside: Vec<(u128, u32)> = prefixes
        .iter()
        .filter_map(|prefix| family.bits_of(prefix))
        .collect();
    let mut outside = Vec::new();
    collect(&inside, (0, 0), family, &mut outside);
    outside
}

/// Adds what is outside within the prefix with these first bits.
fn collect(inside: &[(u128, u32)], (bits, length): (u128, u32), family: Family, outside: &mut Vec<Prefix>) {
    let mask = |length: u32| u128::MAX.checked_shl(128 - length).unwrap_or(0);
    let covers =
        |&(other, shorter): &(u128, u32)| shorter <= length && other & mask(shorter) == bits & mask(shorter);
    if inside.iter().any(covers) {
        return;
    }
    let within: Vec<(u128, u32)> = inside
        .iter()
        .copied()
        .filter(|(other, _)| other & mask(length) == bits)
        .collect();
    if within.is_empty() || length == family.bits() {
        outside.push(family.prefix(bits, length));
        return;
    }
    collect(&within, (bits, length + 1), family, outside);
    collect(&within, (bits | 1 << (127 - length), length + 1), family, outside);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::prefix;
    use proptest::prelude::*;

    fn shown(texts: &[&str], family: Family) -> Vec<String> {
        let prefixes: Vec<Prefix> = texts.iter().filter_map(|text| prefix(text)).collect();
        complement(&prefixes, family)
            .iter()
            .map(Prefix::to_string)
            .collect()
    }

    #[test]
    fn the_rest_of_the_addresses_is_covered_by_few_prefixes() {
        assert_eq!(shown(&["128.0.0.0/2"], Family::V4), ["0.0.0.0/1", "192.0.0.0/2"]);
        assert_eq!(shown(&["192.0.2.0/24"], Family::V4).len(), 24);
        assert_eq!(shown(&["192.0.2.0/24"], Family::V6), ["::/0"]);
        assert!(shown(&["0.0.0.0/0"], Family::V4).is_empty());
        assert_eq!(
            shown(&["10.0.0.0/8", "10.1.0.0/16"], Family::V4),
            shown(&["10.0.0.0/8"], Family::V4)
        );
    }

    proptest! {
        #[test]
        fn each_address_is_in_exactly_one_of_the_two(
            prefixes in prop::collection::vec((any::<u32>(), 1u8..=32), 0..6),
            address: u32,
        ) {
            let given: Vec<Prefix> = prefixes
                .iter()
                .map(|(bits, length)| Family::V4.prefix(u128::from(*bits) << 96, (*length).into()))
                .collect();
            let covers = |list: &[Prefix]| {
                list.iter().filter(|prefix| {
                    let (bits, length) = Family::V4.bits_of(prefix).expect("IPv4");
                    (u128::from(address) << 96 ^ bits).leading_zeros() >= length
                }).count()
            };
            let rest = complement(&given, Family::V4);
            prop_assert_eq!(covers(&rest), usize::from(covers(&given) == 0));
        }
    }
}
