//! Checks what was read: that every subscriber has an identifier and rates, that identifiers are unique, and
//! that no two prefixes overlap.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairgate::classify::Prefix;

use super::fields::Raw;
use super::file::Written;
use super::list::{List, Rates, Subscriber};
use super::section::Plan;
use super::texts::{Mistake, TextRange, Texts};

/// A subscriber with its place, and those of its prefixes.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) subscriber: Subscriber,
    pub(crate) place: TextRange,
    pub(crate) prefix_places: Vec<TextRange>,
}

/// The keys of the rates, guaranteed and at most, down and up.
const RATES: [[&str; 2]; 2] = [["down_min", "down"], ["up_min", "up"]];

/// Checks a subscriber of our own format. Mistakes are reported; then nothing is returned.
pub(crate) fn subscriber(
    written: Written,
    plans: &BTreeMap<String, Plan>,
    texts: &mut Texts,
) -> Option<Read> {
    let before = texts.count();
    let number = written.place.text;
    let at =
        |message: String, help: &str| Mistake::new(written.place.span.clone(), message, "this one", help);
    let mut keep =
        |result: Result<String, Mistake>| result.map_err(|mistake| texts.report(number, mistake)).ok();
    let name_of = |key: &str| written.value(key).map_or(Ok(String::new()), |raw| raw.name(key));
    let (id, name) = (keep(name_of("id")), keep(name_of("name")));
    if id.as_deref() == Some("") {
        texts.report(
            number,
            at(
                "the subscriber has no `id`".to_owned(),
                "give it one that no other has",
            ),
        );
    }
    if written.prefixes.is_empty() {
        let message = "the subscriber has no `prefixes`".to_owned();
        texts.report(
            number,
            at(
                message,
                "write its addresses, like 192.0.2.17 2001:db8:0:1100::/56",
            ),
        );
    }
    let plan = written.value("plan").and_then(|raw| match plans.get(&raw.text) {
        Some(plan) => Some((raw, plan)),
        None => {
            let known = plans.keys().map(String::as_str);
            let help = fairgate_config::suggest::remedy(&raw.text, "plans", known);
            texts.report(
                number,
                raw.wrong(format!("there is no plan `{}`", raw.text), "no such plan", help),
            );
            None
        }
    });
    let mut own = [Rates::default(); 2];
    let mut rates = own;
    for (side, [least, most]) in RATES.into_iter().enumerate() {
        let mut rate = |key: &str| match written.value(key).map(|raw| raw.rate(key)) {
            Some(Ok(rate)) => Some(rate),
            Some(Err(mistake)) => {
                texts.report(number, mistake);
                None
            }
            None => None,
        };
        own[side] = Rates {
            least: rate(least),
            most: rate(most),
        };
        rates[side] = own[side].or(plan.map_or(Rates::default(), |(_, plan)| plan.rates[side]));
        if rates[side].most.is_none() && texts.count() == before {
            let message = format!("the subscriber has no rate `{most}`");
            texts.report(number, at(message, "write it, or name a `plan` that has it"));
        }
        if let Some(mistake) = least_exceeds(rates[side], written.value(least), &written.place, most) {
            texts.report(number, mistake);
        }
    }
    let (prefixes, prefix_places) = prefixes(&written.prefixes, number, texts);
    if texts.count() > before {
        return None;
    }
    Some(Read {
        subscriber: Subscriber {
            id: id?,
            name: name?,
            prefixes,
            rates,
            plan: plan.map(|(raw, _)| raw.text.clone()),
            own,
            node: None,
            leaves: plan.map_or([None, None], |(_, plan)| [plan.leaf.clone(), plan.leaf.clone()]),
            limit: None,
        },
        place: written.place,
        prefix_places,
    })
}

/// Returns a mistake if more is guaranteed than a subscriber may get.
pub(crate) fn least_exceeds(
    rates: Rates,
    least: Option<&Raw>,
    whole: &TextRange,
    most: &str,
) -> Option<Mistake> {
    let (low, high) = (rates.least?, rates.most?);
    (low > high).then(|| {
        Mistake::new(
            least.map_or(whole.span.clone(), |raw| raw.span.clone()),
            format!("{low} bit/s are guaranteed, but `{most}` allows {high}"),
            "more than it may get",
            "guarantee at most the rate of the subscriber",
        )
    })
}

/// Reads prefixes. What is none is reported and left out.
pub(crate) fn prefixes(raws: &[Raw], text: usize, texts: &mut Texts) -> (Vec<Prefix>, Vec<TextRange>) {
    let mut found = (Vec::new(), Vec::new());
    for raw in raws {
        match raw.prefix() {
            Ok(prefix) => {
                found.0.push(prefix);
                let span = raw.span.clone();
                found.1.push(TextRange { text, span });
            }
            Err(mistake) => texts.report(text, mistake),
        }
    }
    found
}

/// Reports identifiers that are given twice.
pub(crate) fn identifiers(all: &[Read], texts: &mut Texts) {
    let mut first: BTreeMap<&str, &Read> = BTreeMap::new();
    for read in all {
        let id = read.subscriber.id.as_str();
        if let Some(other) = first.get(id) {
            let message = format!("subscriber `{id}` is given twice");
            let help = format!(
                "the first one is at {}; remove one of them",
                texts.line_of(&other.place)
            );
            let mistake = Mistake::new(read.place.span.clone(), message, "given before", help);
            texts.report(read.place.text, mistake);
            continue;
        }
        first.insert(id, read);
    }
}

/// Checks that identifiers are given once, and that no two prefixes overlap. A list that has those of the one
/// `before`, which was checked, is not checked again.
pub(crate) fn all_apart(all: &[Read], before: Option<&List>, texts: &mut Texts) {
    let is_same = |(read, known): (&Read, &Subscriber)| {
        read.subscriber.id == known.id && read.subscriber.prefixes == known.prefixes
    };
    let are_same = before.is_some_and(|before| {
        before.subscribers.len() == all.len() && all.iter().zip(&before.subscribers).all(is_same)
    });
    if !are_same {
        identifiers(all, texts);
        prefixes_are_apart(all, before, texts);
    }
}

/// Returns the first and the last address of a prefix as numbers, those of IPv4 apart from those of IPv6.
fn bounds(prefix: &Prefix) -> (bool, u128, u128) {
    let (is_six, first, bits) = match prefix.address() {
        IpAddr::V4(address) => (false, u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (true, address.to_bits(), 128),
    };
    let free = bits - u32::from(prefix.length());
    let span = 1u128.checked_shl(free).map_or(u128::MAX, |count| count - 1);
    (is_six, first, first | span)
}

/// Returns pairs of prefixes of which one is within the other, by their indices. Two prefixes are either
/// apart or within one another, so for each prefix the one before it in the order of addresses is enough.
pub(crate) fn overlaps<'p>(prefixes: impl IntoIterator<Item = &'p Prefix>) -> Vec<(usize, usize)> {
    let mut sorted: Vec<_> = prefixes.into_iter().map(bounds).enumerate().collect();
    // Of those that begin together, the longest range comes first.
    sorted.sort_by_key(|(index, (is_six, first, last))| (*is_six, *first, u128::MAX - *last, *index));
    let mut widest: Option<(usize, (bool, u128, u128))> = None;
    let mut found = Vec::new();
    for (index, bounds) in sorted {
        match widest {
            Some((other, (is_six, _, last))) if is_six == bounds.0 && bounds.1 <= last => {
                found.push((other.min(index), other.max(index)));
            }
            _ => widest = Some((index, bounds)),
        }
    }
    found
}

/// Reports prefixes that overlap. If one of the two was there `before`, the mistake is at the other one.
fn prefixes_are_apart(all: &[Read], before: Option<&List>, texts: &mut Texts) {
    let owners: Vec<(&Read, usize)> = all
        .iter()
        .flat_map(|read| (0..read.subscriber.prefixes.len()).map(move |place| (read, place)))
        .collect();
    let prefix = |(read, place): &(&'_ Read, usize)| read.subscriber.prefixes[*place];
    let prefixes: Vec<Prefix> = owners.iter().map(prefix).collect();
    let was_there = |at: usize| {
        let known = before.and_then(|list| list.find(&owners[at].0.subscriber.id));
        known.is_some_and(|known| known.prefixes.contains(&prefixes[at]))
    };
    for (first, second) in overlaps(&prefixes) {
        let (first, second) = match was_there(second) && !was_there(first) {
            true => (second, first),
            false => (first, second),
        };
        let (other, (read, place)) = (owners[first].0, owners[second]);
        let message = format!(
            "{} overlaps with {} of subscriber `{}`",
            prefixes[second], prefixes[first], other.subscriber.id
        );
        let help = format!(
            "an address belongs to one subscriber, and is listed once; the other one is at {}",
            texts.line_of(&other.place)
        );
        let at = &read.prefix_places[place];
        texts.report(
            at.text,
            Mistake::new(at.span.clone(), message, "belongs to another", help),
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(text: &str) -> Prefix {
        Raw::new(text, 0..0).prefix().unwrap()
    }

    #[test]
    fn prefixes_overlap_if_one_is_within_the_other() {
        let all = [
            "10.0.0.0/24",
            "10.0.1.0/24",
            "10.0.0.7",
            "::/0",
            "fd00::/56",
            "0.0.0.0/32",
        ];
        let all: Vec<Prefix> = all.into_iter().map(prefix).collect();
        assert_eq!(overlaps(&all), [(0, 2), (3, 4)]);
    }

    proptest! {
        /// Something is found if and only if two of them overlap.
        #[test]
        fn an_overlap_is_found_if_there_is_one(
            raw in proptest::collection::vec((any::<bool>(), 0u8..16, 0u8..=4), 0..12)
        ) {
            let prefixes: Vec<Prefix> = raw
                .iter()
                .map(|(is_six, bits, length)| {
                    let bits = u32::from(*bits) >> (4 - length) << (4 - length);
                    match is_six {
                        false => Prefix::new(IpAddr::V4((bits << 28).into()), *length),
                        true => Prefix::new(IpAddr::V6((u128::from(bits) << 124).into()), *length),
                    }
                    .unwrap()
                })
                .collect();
            let within = |one: &Prefix, other: &Prefix| {
                let (one, other) = (bounds(one), bounds(other));
                one.0 == other.0 && one.1 <= other.2 && other.1 <= one.2
            };
            let any = (0..prefixes.len())
                .any(|first| (0..first).any(|second| within(&prefixes[first], &prefixes[second])));
            let found = overlaps(&prefixes);
            prop_assert_eq!(!found.is_empty(), any);
            for (one, other) in found {
                prop_assert!(one < other && within(&prefixes[one], &prefixes[other]));
            }
        }
    }
}
