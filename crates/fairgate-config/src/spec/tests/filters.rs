//! Draws filters.

use std::num::NonZeroU32;
use std::time::Duration;

use fairgate::classify::{
    Average, Bytes, BytesOf, Computed, Control, Edit, Field, Filter, Masked, Match, Measure, Outcome, Police,
    Prefix, Rule,
};
use fairgate::queues::token_bucket::{Peak, Profile};
use fairgate::{ClassId, Rate};
use proptest::prelude::*;
use proptest::sample::select;

fn prefix() -> impl Strategy<Value = Prefix> {
    prop_oneof![
        (any::<std::net::Ipv4Addr>(), 0u8..=32)
            .prop_map(|(address, length)| Prefix::new(address.into(), length)),
        (any::<std::net::Ipv6Addr>(), 0u8..=128)
            .prop_map(|(address, length)| Prefix::new(address.into(), length)),
    ]
    .prop_map(|prefix| prefix.expect("the length fits the family"))
}

pub(super) fn condition() -> impl Strategy<Value = Match> {
    let ports = || prop::option::of((any::<u16>(), any::<u16>()).prop_map(|(a, b)| a.min(b)..=a.max(b)));
    let few = |most: u8| {
        let pair = (0..=most, 0..=most).prop_map(|(a, b)| a.min(b)..=a.max(b));
        prop::option::of(prop_oneof![pair, (0..=most).prop_map(|single| single..=single)])
    };
    (
        (
            prop::option::of(prefix()),
            prop::option::of(prefix()),
            ports(),
            ports(),
            any::<u32>(),
        ),
        (
            prop::option::of(any::<u8>()),
            prop::option::of(any::<[u16; 2]>()),
            prop::option::of(0u16..=4094),
        ),
        (few(63), few(15)),
        (
            any::<u32>(),
            prop::option::of(any::<(u8, u8)>()),
            prop::option::of(any::<u16>()),
        ),
    )
        .prop_map(
            |(five, (protocol, ethertypes, vlan), (dscp, priority), (mask, class, interface))| Match {
                source: five.0,
                destination: five.1,
                source_port: five.2,
                destination_port: five.3,
                protocol,
                ethertype: ethertypes.map(|[inner, _]| inner),
                outer_ethertype: ethertypes.map(|[_, outer]| outer),
                vlan,
                dscp,
                priority,
                mark: Masked::<u32>::new(five.4 & mask, mask).ok(),
                traffic_class: class.and_then(|(value, mask)| Masked::<u8>::new(value & mask, mask).ok()),
                interface,
                bytes: Vec::new(),
            },
        )
        .prop_flat_map(|condition| {
            prop::collection::vec(header_bytes(), 0..4).prop_map(move |mut bytes| {
                bytes.sort_unstable();
                bytes.dedup();
                Match {
                    bytes,
                    ..condition.clone()
                }
            })
        })
}

/// A condition on bytes at any place.
fn header_bytes() -> impl Strategy<Value = Bytes> {
    let place = prop_oneof![
        (-14i16..105).prop_map(BytesOf::Network),
        (0u8..60).prop_map(BytesOf::Transport),
        select(vec![
            BytesOf::Transport(0),
            BytesOf::Transport(1),
            BytesOf::Transport(13),
            BytesOf::HopLimit,
            BytesOf::Length,
        ]),
    ];
    (
        place,
        select(vec![1u8, 2, 4]),
        any::<u32>(),
        any::<u32>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_filter_map(
            "the place has this width",
            |(place, width, mask, value, is_whole, is_single)| {
                let most = u32::MAX >> (32 - 8 * u32::from(width));
                let mask = if is_whole { most } else { mask & most };
                let first = value & mask;
                let last = if is_single { first } else { mask };
                Bytes::new(place, width, mask, first, last).ok()
            },
        )
}

/// What a filter does besides choosing a class. Its outcome is `Unclassified` if it chooses one.
pub(super) fn deed() -> impl Strategy<Value = Filter> {
    let control = || {
        select(vec![
            Control::Pass,
            Control::Drop,
            Control::Continue,
            Control::Reclassify,
            Control::Default,
        ])
    };
    let measure = prop_oneof![
        (1u64..1 << 40, 1u32.., prop::option::of(1u32..), any::<bool>()).prop_map(
            |(bits, burst, mtu, exact)| {
                let rate = |bits| Rate::from_bits_per_second(bits).expect("above 0");
                let peak = mtu.map(|mtu| Peak {
                    rate: rate(bits + 1),
                    mtu,
                });
                let profile = Profile {
                    peak,
                    ..Profile::new(rate(bits), burst)
                };
                match exact {
                    true => Measure::ExactBytes(profile),
                    false => Measure::Bytes(profile),
                }
            }
        ),
        (1u64..1 << 40, 1u32..).prop_map(|(rate, burst)| Measure::Packets { rate, burst }),
        Just(Measure::Length),
    ];
    let average = prop::option::of((8u64..1 << 40, 0u8..=5, 1u8..=30).prop_map(
        |(bits, sample_log, weight_log)| Average {
            rate: Rate::from_bits_per_second(bits).expect("above 0"),
            sample_log,
            weight_log,
        },
    ));
    let police = (measure, average, any::<u32>(), control(), control()).prop_map(
        |(measure, average, longest, conform, exceed)| Police {
            measure,
            average,
            longest: if measure == Measure::Length {
                longest.min(u32::MAX - 1)
            } else {
                longest
            },
            conform,
            exceed,
        },
    );
    let edit = (
        prop::option::of(0u8..16),
        prop::option::of((1u16.., any::<u16>())),
        prop::option::of((any::<u32>(), any::<u32>())),
        prop::option::of(0u8..64),
    )
        .prop_map(|(priority, class, mark, dscp)| Edit {
            priority: priority.filter(|_| class.is_none()),
            class: class.map(|(major, minor)| ClassId::new(major, minor)),
            mark: mark.and_then(|(value, mask)| Masked::<u32>::new(value & mask, mask).ok()),
            dscp,
        });
    let outcome = prop_oneof![
        3 => select(vec![Outcome::Unclassified, Outcome::Drop, Outcome::Continue]),
        1 => (0u32..1 << 28).prop_map(Outcome::Chain),
        1 => computed().prop_map(Outcome::Computed),
    ];
    let chain = prop_oneof![Just(0), 0u32..1 << 28];
    let deed =
        (prop::option::of(police), edit, outcome, chain).prop_map(|(police, edit, outcome, chain)| Filter {
            police,
            edit,
            chain,
            // A filter that only continues does nothing.
            outcome: match outcome {
                Outcome::Continue if police.is_none() && edit.is_empty() => Outcome::Drop,
                outcome => outcome,
            },
            ..Filter::default()
        });
    prop_oneof![Just(Filter::default()), deed]
}

/// A class that is computed.
fn computed() -> impl Strategy<Value = Computed> {
    let period = prop::option::of(1u64..1 << 50).prop_map(|nanos| nanos.map(Duration::from_nanos));
    let fields = prop::sample::subsequence(Field::ALL.to_vec(), 1..=Field::ALL.len());
    let hash = (fields, period).prop_map(|(fields, perturb)| Rule::Hash {
        fields: fields.into_iter().collect(),
        perturb,
    });
    let bits = || prop_oneof![Just(0), Just(u32::MAX), any::<u32>()];
    let number = (select(Field::ALL.to_vec()), bits(), bits(), 0u8..32, bits()).prop_map(
        |(field, and, xor, shift, add)| Rule::Number {
            field,
            and,
            xor,
            shift,
            add,
        },
    );
    (any::<u16>(), bits(), prop_oneof![hash, number]).prop_map(|(first, count, rule)| {
        Computed::new(first, NonZeroU32::new(count), rule).expect("it is right")
    })
}
