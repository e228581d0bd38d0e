//! Compares the index with a linear search through the list.

use core::net::IpAddr;
use core::num::NonZeroU32;
use core::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::arrival::Needs;
use crate::classify::{Bytes, BytesOf, Edit, Field, Masked, Measure, Police, Prefix, Rule};
use crate::flow::FlowHash;
use crate::packet::{Ecn, Packet};
use crate::queues::token_bucket::Profile;
use crate::rate::Rate;
use crate::structures::Random;

/// Finds the first match by a linear search.
fn first_match(filters: &[Filter], packet: &Slot, headers: Option<&FlowKey>) -> Option<u32> {
    let matching = filters
        .iter()
        .filter(|filter| filter.condition.matches(packet, headers, None));
    // If preferences are equal, `min_by_key` returns the first.
    matching
        .min_by_key(|filter| filter.preference)
        .and_then(|filter| filter.outcome.class())
}

/// Chooses one of these values.
fn one_of<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len() as u32) as usize]
}

const PORTS: [u16; 9] = [0, 1, 53, 255, 256, 257, 5000, 65534, 65535];
const PROTOCOLS: [u8; 4] = [1, 6, 17, 132];
const ETHERTYPES: [u16; 4] = [0x0800, 0x86dd, 0x0806, 0];
const MARKS: [u32; 5] = [0, 1, 0x100, 0x8000_0001, u32::MAX];

/// Returns an address. The addresses are similar, so that prefixes of every length match.
fn address(random: &mut Random, is_v4: bool) -> IpAddr {
    let mut bits = 0u128;
    for _ in 0..random.below(4) {
        bits |= 1 << random.below(if is_v4 { 32 } else { 128 });
    }
    match is_v4 {
        true => IpAddr::V4((bits as u32).into()),
        false => IpAddr::V6(bits.into()),
    }
}

fn packet(random: &mut Random) -> (Slot, Option<FlowKey>) {
    let packet = Packet {
        mark: one_of(random, &MARKS),
        priority: random.below(17) as u8,
        dscp: random.below(64) as u8,
        ecn: Ecn::from_bits(random.below(4) as u8),
        flow: FlowHash::NONE,
        ..Packet::of_length(100)
    };
    if random.below(16) == 0 {
        return (packet.into(), None);
    }
    let is_v4 = random.below(2) == 0;
    let mut key = FlowKey::of(
        address(random, is_v4),
        address(random, is_v4),
        one_of(random, &PROTOCOLS),
        one_of(random, &PORTS),
        one_of(random, &PORTS),
    );
    key.vlan = random.below(3) as u16;
    key.outer_ethertype = one_of(random, &ETHERTYPES);
    key.interface = random.below(3) as u16;
    // Broken headers have addresses that do not belong to the EtherType.
    if random.below(8) == 0 {
        key.ethertype = one_of(random, &ETHERTYPES);
    }
    (packet.into(), Some(key))
}

/// A filter with few conditions, so that it matches sometimes. Its values are those of packets.
fn filter() -> impl Strategy<Value = Filter> {
    (any::<u64>(), 0u16..4, 1u32..1000).prop_map(|(seed, preference, class)| {
        let mut random = Random::new(seed);
        let mut condition = Match::default();
        // A filter without conditions hides all later ones, so there are few of them.
        let conditions = if random.below(64) == 0 {
            0
        } else {
            1 + random.below(3)
        };
        for _ in 0..conditions {
            add_condition(&mut condition, &mut random);
        }
        Filter {
            preference,
            condition,
            outcome: Outcome::Class(class),
            ..Filter::default()
        }
    })
}

fn add_condition(condition: &mut Match, random: &mut Random) {
    let port = |random: &mut Random| {
        let (from, to) = (one_of(random, &PORTS), one_of(random, &PORTS));
        if random.below(2) == 0 {
            from..=from
        } else {
            from..=to
        }
    };
    match random.below(13) {
        12 => condition.outer_ethertype = Some(one_of(random, &ETHERTYPES)),
        0 => condition.source = Some(prefix(random)),
        1 | 2 => condition.destination = Some(prefix(random)),
        3 => condition.source_port = Some(port(random)),
        4 => condition.destination_port = Some(port(random)),
        5 => condition.protocol = Some(one_of(random, &PROTOCOLS)),
        6 => condition.ethertype = Some(one_of(random, &ETHERTYPES)),
        7 => condition.vlan = Some(random.below(3) as u16),
        8 => condition.interface = Some(random.below(3) as u16),
        9 => {
            let (from, to) = (random.below(64) as u8, random.below(64) as u8);
            condition.dscp = Some(if random.below(2) == 0 {
                from..=from
            } else {
                from..=to
            });
            if random.below(2) == 0 {
                let mask = random.bits() as u8;
                let bits = Masked::<u8>::new(random.bits() as u8 & mask, mask);
                condition.traffic_class = bits.ok();
            }
        }
        10 => {
            let (from, to) = (random.below(17) as u8, random.below(17) as u8);
            condition.priority = Some(if random.below(2) == 0 {
                from..=from
            } else {
                from..=to
            });
        }
        _ => {
            let mask = one_of(random, &[0, 1, 0xff00, u32::MAX, 0x8000_0000]);
            condition.mark = Masked::<u32>::new(one_of(random, &MARKS) & mask, mask).ok();
        }
    }
}

fn prefix(random: &mut Random) -> Prefix {
    let is_v4 = random.below(2) == 0;
    let longest = if is_v4 { 32 } else { 128 };
    let length = match random.below(4) {
        0 => longest,
        _ => random.below(longest + 1),
    };
    Prefix::new(address(random, is_v4), length as u8).expect("the length fits the family")
}

/// The sizes at which each part of the index is used. They are small, so that few filters use all parts.
fn limits() -> impl Strategy<Value = Limits> {
    let sizes = (
        select(vec![(0, 0), (8, 0), (0, 64), (8, 64)]),
        1..6usize,
        0..4usize,
        select(vec![3, 40, 700]),
    );
    sizes.prop_map(|((few, small), worth, tables, most_in_a_bitmap)| Limits {
        few,
        small,
        worth_a_table: [worth, worth / 2],
        most_tables: [tables, 2 * tables],
        most_in_a_bitmap,
    })
}

fn agrees(filters: &Filters, random: &mut Random, packets: usize) -> Result<usize, TestCaseError> {
    let mut found = 0;
    for _ in 0..packets {
        let (packet, headers) = packet(random);
        let expected = first_match(filters, &packet, headers.as_ref());
        prop_assert_eq!(
            filters.find(&packet, headers.as_ref(), None),
            expected,
            "{:?} {:?}",
            packet,
            headers
        );
        found += usize::from(expected.is_some());
    }
    Ok(found)
}

proptest! {
    #[test]
    fn the_first_match_is_found(list in vec(filter(), 0..60), limits in limits(), seed in any::<u64>()) {
        agrees(&Filters::of(list, limits), &mut Random::new(seed), 2000)?;
    }

    /// Many filters that fix the same bits, with and without additional ranges.
    #[test]
    fn similar_filters_are_found(
        list in vec((any::<u64>(), any::<bool>(), 0u16..4), 0..60),
        limits in limits(),
        seed in any::<u64>(),
    ) {
        let similar = |(place, (seed, has_range, preference)): (usize, (u64, bool, u16))| {
            let mut random = Random::new(seed);
            let single = |port: u16| Some(port..=port);
            let condition = Match {
                destination: Some(Prefix::new(address(&mut random, true), 32).expect("of 32 bits")),
                protocol: Some(one_of(&mut random, &[6, 17])),
                source_port: if has_range { Some(1..=one_of(&mut random, &PORTS)) } else { None },
                destination_port: if has_range { None } else { single(one_of(&mut random, &PORTS)) },
                ..Match::default()
            };
            Filter { preference, condition, outcome: Outcome::Class(place as u32 + 1), ..Filter::default() }
        };
        let list = list.into_iter().enumerate().map(similar).collect();
        agrees(&Filters::of(list, limits), &mut Random::new(seed), 1000)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// So many filters that they fill tables, several bitmaps, and rows of several blocks, with the default
    /// limits.
    #[test]
    fn thousands_of_filters_are_found(list in vec(filter(), 500..5000), seed in any::<u64>()) {
        agrees(&Filters::new(list), &mut Random::new(seed), 1000)?;
    }

    #[test]
    fn a_change_creates_a_new_list_and_keeps_the_old_one(
        list in vec(filter(), 1..40),
        added in vec(filter(), 0..10),
        removed in 1u32..1000,
        seed in any::<u64>(),
    ) {
        let before = Filters::new(list.clone());
        let kept = before.clone();
        let after = before.with(added.clone()).without(|filter| filter.outcome == removed.into());
        let mut expected = list.clone();
        expected.extend(added);
        expected.retain(|filter| filter.outcome != removed.into());
        prop_assert_eq!(&after[..], &expected[..]);
        prop_assert_eq!(&kept[..], &list[..]);
        agrees(&after, &mut Random::new(seed), 100)?;
        agrees(&kept, &mut Random::new(seed), 100)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Only the fields that it has conditions on are read.
    #[test]
    fn a_single_filter_is_found(list in vec(filter(), 1), seed in any::<u64>()) {
        agrees(&Filters::new(list), &mut Random::new(seed), 50)?;
    }
}

/// The properties above would also hold if no packet ever matched. This test excludes that.
#[test]
fn random_packets_match_and_miss() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let list = vec(filter(), 10).new_tree(&mut runner).unwrap().current();
    let found = agrees(&Filters::new(list), &mut Random::new(1), 4000).unwrap();
    assert!((400..3900).contains(&found), "{found} of 4000 match");
}

/// Tests every port near the ends of every range, in one bitmap.
#[test]
fn ranges_have_exact_ends() {
    let range = |class: u32, ports: core::ops::RangeInclusive<u16>| Filter {
        condition: Match {
            destination_port: Some(ports),
            ..Match::default()
        },
        outcome: Outcome::Class(class),
        ..Filter::default()
    };
    let list: Vec<Filter> = (1..=20)
        .map(|n| range(n.into(), n * 255..=n * 255 + n * 16))
        .collect();
    let filters = Filters::of(
        list.clone(),
        Limits {
            few: 0,
            ..Limits::default()
        },
    );
    let packet = Slot::from(Packet::of_length(100));
    for port in 0..=u16::MAX {
        let key = FlowKey::of([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, 1, port);
        assert_eq!(
            filters.find(&packet, Some(&key), None),
            first_match(&list, &packet, Some(&key)),
            "{port}"
        );
    }
}

/// A million filters in one table.
#[test]
fn a_million_exact_filters_are_found() {
    let exact = |n: u32| Filter {
        condition: Match {
            source: Some(Prefix::new(IpAddr::V4((n * 7).into()), 32).expect("32 bits")),
            destination: Some(Prefix::new(IpAddr::V4((n ^ 0x5555).into()), 32).expect("32 bits")),
            protocol: Some(6),
            source_port: Some((n % 60_000) as u16 + 1..=(n % 60_000) as u16 + 1),
            destination_port: Some(443..=443),
            ..Match::default()
        },
        outcome: Outcome::Class(n % 65_535 + 1),
        ..Filter::default()
    };
    let filters: Filters = (0..1_000_000).map(exact).collect();
    let packet = Slot::from(Packet::of_length(100));
    for n in (0..1_000_000).step_by(77) {
        let key = |port: u16| {
            let (source, destination) = (IpAddr::V4((n * 7).into()), IpAddr::V4((n ^ 0x5555).into()));
            FlowKey::of(source, destination, 6, (n % 60_000) as u16 + 1, port)
        };
        assert_eq!(filters.find(&packet, Some(&key(443)), None), Some(n % 65_535 + 1));
        assert_eq!(filters.find(&packet, Some(&key(444)), None), None);
    }
}

/// What becomes of a packet of 100 bytes, by trying all filters one after the other.
fn outcome_of(
    filters: &[Filter],
    mut packet: Slot,
    headers: Option<&FlowKey>,
    bytes: Option<&HeaderBytes>,
) -> Result<Option<u32>, DropReason> {
    let mut ranked: Vec<&Filter> = filters.iter().filter(|filter| filter.at.is_none()).collect();
    ranked.sort_by_key(|filter| filter.preference);
    let mut chain = 0;
    let mut reason = DropReason::Policed;
    for _ in 0..=16 {
        let mut next = None;
        for filter in ranked.iter().filter(|filter| filter.chain == chain) {
            if !filter.condition.matches(&packet, headers, bytes) {
                continue;
            }
            let control = filter
                .police
                .map_or(Control::Pass, |police| match police.longest < 100 {
                    true => police.exceed,
                    false => police.conform,
                });
            match control {
                Control::Drop => return Err(DropReason::Policed),
                Control::Continue => continue,
                Control::Default => return Ok(None),
                Control::Reclassify => {
                    (next, reason) = (Some(0), DropReason::Policed);
                    break;
                }
                Control::Pass => {}
            }
            let edit = &filter.edit;
            packet.priority = edit.priority.unwrap_or(packet.priority);
            packet.dscp = edit.dscp.unwrap_or(packet.dscp);
            if let Some(bits) = edit.mark {
                packet.mark = packet.mark & !bits.mask() | bits.value();
            }
            match filter.outcome {
                Outcome::Class(class) => return Ok(Some(class)),
                Outcome::Unclassified => return Ok(None),
                Outcome::Drop => return Err(DropReason::Filtered),
                Outcome::Continue => {}
                Outcome::Computed(computed) => match computed.class(&packet, headers, None) {
                    0 => {}
                    class => return Ok(Some(class.into())),
                },
                Outcome::Chain(number) => {
                    (next, reason) = (Some(number), DropReason::Filtered);
                    break;
                }
            }
        }
        match next {
            Some(number) => chain = number,
            None => return Ok(None),
        }
    }
    Err(reason)
}

/// A filter that may do anything.
fn deed() -> impl Strategy<Value = Filter> {
    (filter(), any::<u64>()).prop_map(|(filter, seed)| {
        let mut random = Random::new(seed);
        let controls = [
            Control::Pass,
            Control::Drop,
            Control::Continue,
            Control::Reclassify,
            Control::Default,
        ];
        let police = Police {
            measure: Measure::Length,
            average: None,
            longest: one_of(&mut random, &[99, 100]),
            conform: one_of(&mut random, &controls),
            exceed: one_of(&mut random, &controls),
        };
        let mut condition = filter.condition;
        for _ in 0..random.below(3) {
            let (place, mask) = one_of(
                &mut random,
                &[
                    (BytesOf::Network(9), 0xff),
                    (BytesOf::Network(16), 3),
                    (BytesOf::Transport(1), 1),
                    (BytesOf::HopLimit, 0xff),
                    (BytesOf::Network(-3), 0xff),
                ],
            );
            let (first, last) = one_of(&mut random, &[(0, mask), (mask & 65, mask), (mask, mask), (0, 0)]);
            condition.bytes.extend(Bytes::new(place, 1, mask, first, last));
        }
        let edit = Edit {
            priority: (random.below(2) == 0).then(|| random.below(16) as u8),
            class: None,
            mark: Masked::<u32>::new(one_of(&mut random, &MARKS) & 0x101, 0x101).ok(),
            dscp: (random.below(4) == 0).then(|| random.below(64) as u8),
        };
        let rule = Rule::Number {
            field: one_of(&mut random, &Field::ALL),
            and: one_of(&mut random, &[1, 3, u32::MAX]),
            xor: random.below(2),
            shift: random.below(2) as u8,
            add: random.below(2),
        };
        let computed = Computed::new(random.below(2) as u16, NonZeroU32::new(random.below(4)), rule);
        let outcomes = [
            filter.outcome,
            Outcome::Unclassified,
            Outcome::Drop,
            Outcome::Continue,
            Outcome::Chain(random.below(4)),
            Outcome::Computed(computed.expect("it is right")),
        ];
        Filter {
            at: (random.below(8) == 0).then_some(7),
            chain: random.below(8).saturating_sub(4),
            condition,
            police: (random.below(3) == 0).then_some(police),
            edit: if random.below(3) == 0 {
                edit
            } else {
                Edit::default()
            },
            outcome: outcomes[random.below(12).saturating_sub(6) as usize],
            ..filter
        }
    })
}

proptest! {
    /// Compares outcomes, policers and changes with a linear search.
    #[test]
    fn filters_do_what_they_say(
        // A single filter goes a way of its own.
        list in prop_oneof![vec(deed(), 0..40), vec(deed(), 1)],
        limits in limits(),
        seed in any::<u64>(),
    ) {
        let mut filters = Filters::of(list.clone(), limits);
        let mut random = Random::new(seed);
        let mut pool = Pool::with_capacity(1);
        pool.keep(Needs {
            bytes: true,
            ..Needs::default()
        });
        for _ in 0..300 {
            let (slot, headers) = packet(&mut random);
            let descriptor = Packet {
                mark: slot.mark,
                priority: slot.priority,
                dscp: slot.dscp,
                ecn: slot.ecn,
                ..Packet::of_length(100)
            };
            let id = match headers {
                Some(key) => pool.insert((descriptor, key)),
                None => pool.insert(descriptor),
            };
            let id = id.expect("the slot is free");
            let expected = outcome_of(&list, slot, headers.as_ref(), pool.bytes(id));
            prop_assert_eq!(filters.apply(None, id, Time::ZERO, &mut pool), expected);
            pool.release(id);
        }
    }
}

#[test]
fn copies_have_policers_of_their_own_and_the_same_filters_keep_theirs() {
    let policed = Filter {
        police: Some(Police::of(Profile::new(Rate::mbit(8), 150))),
        outcome: Outcome::Class(1),
        ..Filter::default()
    };
    let mut filters: Filters = vec![policed].into();
    let mut pool = Pool::with_capacity(1);
    let id = pool.insert(Packet::of_length(100)).expect("a free slot");
    let mut ask = |filters: &mut Filters| filters.apply(None, id, Time::ZERO, &mut pool);
    assert_eq!(ask(&mut filters), Ok(Some(1)));
    assert_eq!(ask(&mut filters), Err(DropReason::Policed));
    let mut copy = filters.clone();
    assert_eq!(filters, copy, "the state is no part of a configuration");
    copy.take_over(&filters);
    assert_eq!(
        ask(&mut copy),
        Err(DropReason::Policed),
        "a change of other settings"
    );
    assert_eq!(
        ask(&mut filters.clone()),
        Ok(Some(1)),
        "a new queue with the same filters"
    );
}

proptest! {
    /// Whatever else changes in the list, a filter that stays has its policer. The filters of the old list
    /// have empty buckets, and the new ones have full ones.
    #[test]
    fn filters_that_stay_keep_their_policers(
        before in vec(0u32..12, 0..12), after in vec(0u32..12, 0..12), plain in vec(0usize..12, 0..4),
    ) {
        let policed = |class: &u32| Filter {
            police: Some(Police::of(Profile::new(Rate::mbit(8), 150))),
            outcome: Outcome::Class(class + 1),
            condition: Match { dscp: Some(*class as u8..=*class as u8), ..Match::default() },
            ..Filter::default()
        };
        // Each filter once: of two equal ones the second is never tried.
        let once = |classes: &[u32]| {
            let mut seen = Vec::new();
            for class in classes {
                if !seen.contains(class) {
                    seen.push(*class);
                }
            }
            seen
        };
        let (before, after) = (once(&before), once(&after));
        let mut old: Filters = before.iter().map(policed).collect();
        let mut pool = Pool::with_capacity(1);
        let mut ask = |filters: &mut Filters, class: u32| {
            let packet = Packet { dscp: class as u8, ..Packet::of_length(100) };
            let id = pool.insert(packet).expect("a free slot");
            let answer = filters.apply(None, id, Time::ZERO, &mut pool);
            pool.release(id);
            answer
        };
        for class in &before {
            prop_assert_eq!(ask(&mut old, *class), Ok(Some(class + 1)));
        }
        let mut list: Vec<Filter> = after.iter().map(policed).collect();
        for place in plain {
            let other = Filter { condition: Match { dscp: Some(40..=41), ..Match::default() },
                outcome: Outcome::Drop, ..Filter::default() };
            list.insert(place.min(list.len()), other);
        }
        let mut new: Filters = list.into();
        new.take_over(&old);
        for class in after {
            let expected = match before.contains(&class) {
                true => Err(DropReason::Policed),
                false => Ok(Some(class + 1)),
            };
            prop_assert_eq!(ask(&mut new, class), expected);
        }
    }
}

/// A list with a hash of the source, over the classes 1 to 1024.
fn hashed(perturb: Option<Duration>) -> Filters {
    let fields = [Field::Source].into_iter().collect();
    let rule = Rule::Hash { fields, perturb };
    let computed = Computed::new(1, NonZeroU32::new(1024), rule).expect("it is right");
    let filter = Filter {
        outcome: Outcome::Computed(computed),
        ..Filter::default()
    };
    vec![filter].into()
}

proptest! {
    /// A seed gives the same classes again, and a packet that waits keeps its class.
    #[test]
    fn hashes_follow_from_the_seed(seed: u64, addresses in vec(any::<u32>(), 1..20)) {
        let mut pool = Pool::with_capacity(1);
        let (mut first, mut second) = (hashed(None).with_seed(seed), hashed(None).with_seed(seed).clone());
        for address in addresses {
            let key = FlowKey::of(IpAddr::V4(address.into()), IpAddr::V4(1.into()), 6, 1, 2);
            let id = pool.insert((Packet::of_length(100), key)).expect("a free slot");
            let class = first.apply(None, id, Time::ZERO, &mut pool);
            prop_assert_eq!(class, second.apply(None, id, Time::ZERO, &mut pool));
            prop_assert_eq!(class, Ok(first.class_again(id, &pool)));
            prop_assert!(matches!(class, Ok(Some(1..=1024))));
            pool.release(id);
        }
    }
}

/// Returns the class of a packet that arrives then.
fn class_at(filters: &mut Filters, seconds: u64) -> u32 {
    let mut pool = Pool::with_capacity(1);
    let key = FlowKey::of(IpAddr::V4(9.into()), IpAddr::V4(1.into()), 6, 1, 2);
    let id = pool.insert((Packet::of_length(100), key)).expect("a free slot");
    let now = Time::ZERO + Duration::from_secs(seconds);
    let class = filters.apply(None, id, now, &mut pool);
    class.expect("nothing drops").expect("a class")
}

#[test]
fn hashes_go_on_after_a_change_and_are_perturbed() {
    let mut running = hashed(Some(Duration::from_secs(10))).with_seed(7);
    let first = class_at(&mut running, 0);
    let second = class_at(&mut running, 10);
    assert_ne!(first, second, "another key");
    let mut same = hashed(Some(Duration::from_secs(10)));
    same.take_over(&running);
    assert_eq!(class_at(&mut same, 19), second, "the same filters");
    let mut other = hashed(None);
    let predictable = class_at(&mut other.clone(), 0);
    other.take_over(&running);
    assert_ne!(
        class_at(&mut other, 0),
        predictable,
        "other filters have a secret key, too"
    );
}
