//! Every discipline forwards packets with its parameters at the ends of their ranges.

use std::sync::Arc;

use fairgate::{Packet, Pool, Time};
use proptest::prelude::*;
use proptest::sample::select;

use super::Spec;
use crate::registry::{Children, ParameterInfo, Registry, Setting};
use crate::registry::{Unit, Value};
use crate::testing::smallest;

/// The ends of a parameter's range, their neighbours, and the middle.
fn extreme(info: &ParameterInfo) -> BoxedStrategy<Value> {
    let (least, most) = (*info.range.start(), *info.range.end());
    let numbers = vec![
        least,
        least.saturating_add(1).min(most),
        least + (most - least) / 2,
        most.saturating_sub(1).max(least),
        most,
    ];
    let some = match info.unit {
        Unit::Flag => any::<bool>().prop_map(Value::Flag).boxed(),
        Unit::Choice(words) => select(words).prop_map(Value::Word).boxed(),
        Unit::Text(_) => "[a-z]{0,9}".prop_map(Value::Text).boxed(),
        Unit::List(length) => select(numbers)
            .prop_map(move |number| Value::List(vec![number; length]))
            .boxed(),
        Unit::Numbers(_) | Unit::SignedNumbers(_) => select(numbers)
            .prop_map(|number| Value::List(vec![number; 2]))
            .boxed(),
        Unit::Curve => {
            let rate = select(vec![0u64, 8, 8_000, u64::MAX - 1, u64::MAX]);
            let time = select(vec![0u64, 1, 1_000_000, 60_000_000_000, u64::MAX]);
            (rate.clone(), time, rate)
                .prop_map(|(m1, d, m2)| Value::List(vec![m1, d, m2]))
                .boxed()
        }
        _ => select(numbers).prop_map(Value::Number).boxed(),
    };
    match info.optional {
        true => prop_oneof![3 => some, 1 => Just(Value::None)].boxed(),
        false => some,
    }
}

fn settings(parameters: Vec<ParameterInfo>) -> BoxedStrategy<Vec<Setting>> {
    let each: Vec<_> = parameters
        .iter()
        .map(|info| match info.default {
            None => extreme(info).prop_map(Some).boxed(),
            Some(_) => prop::option::weighted(0.3, extreme(info)).boxed(),
        })
        .collect();
    each.prop_map(|values| {
        let set = values.into_iter().enumerate();
        set.filter_map(|(index, value)| Some((index, value?))).collect()
    })
    .boxed()
}

fn one_discipline() -> impl Strategy<Value = Spec> {
    (
        select(Registry::builtin().iter().collect::<Vec<_>>()),
        any::<bool>(),
    )
        .prop_flat_map(|(entry, has_inner)| {
            let of_class = || settings(entry.class_parameters());
            (settings(entry.parameters()), of_class(), of_class(), of_class()).prop_map(
                move |(own, first, second, third)| {
                    let mut spec = smallest(entry);
                    let settings = Arc::make_mut(&mut spec.settings);
                    settings.own = own;
                    for (class, given) in settings.classes.iter_mut().zip([first, second, third]) {
                        class.settings = given;
                    }
                    if entry.takes_filters() {
                        settings.classifier.default = Some(1);
                    }
                    if matches!(entry.about().children, Children::Inner | Children::InnerOrQueue)
                        && !has_inner
                    {
                        spec.children = Arc::default();
                    }
                    spec
                },
            )
        })
}

/// The memory that a test may use, in bytes.
const ENOUGH: u64 = 50_000_000;

/// The times between two packets, in ns, up to one year.
const PAUSES: &[u64] = &[0, 1, 1_000, 1_000_000_000, 31_536_000_000_000_000];

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, ..ProptestConfig::default() })]

    /// Nothing panics, in a build with overflow checks. Every packet is sent or dropped, or the tree returns
    /// the watchdog time until which it holds packets back.
    #[test]
    fn an_accepted_tree_forwards_packets(
        spec in one_discipline(),
        lengths in prop::collection::vec(select(vec![1u32, 60, 1514, 9018, 65_550]), 1..12),
        pauses in prop::collection::vec(select(PAUSES), 12),
    ) {
        prop_assume!(spec.memory() < ENOUGH);
        let Ok(mut root) = spec.build(1) else { return Ok(()) };
        let mut pool = Pool::with_capacity(16);
        let mut now = Time::ZERO;
        let (mut offered, mut seen) = (0u64, 0u64);
        for (length, pause) in lengths.iter().zip(&pauses) {
            now += *pause;
            let packet = Packet { priority: (length % 16) as u8, ..Packet::of_length(*length) };
            if let Ok(id) = pool.insert(packet) {
                root.enqueue(id, now, &mut pool);
                offered += 1;
            }
            if pause % 2 == 1 {
                let _ = root.peek(now, &mut pool);
            }
            seen += u64::from(taken(root.dequeue(now, &mut pool), &mut pool));
        }
        for _ in 0..40 {
            while let Some(id) = root.dequeue(now, &mut pool) {
                seen += u64::from(taken(Some(id), &mut pool));
            }
            seen += u64::from(taken(None, &mut pool));
            if root.backlog().packets == 0 {
                break;
            }
            let due = root.watchdog();
            prop_assert!(due.is_some(), "packets are held back without a watchdog time");
            now = now.max(due.unwrap_or(now)) + 1;
        }
        prop_assert_eq!(seen + root.backlog().packets, offered);
    }
}

/// Releases a packet and all returned packets, and returns their number.
fn taken(id: Option<fairgate::PacketId>, pool: &mut Pool) -> u32 {
    let mut count = 0;
    if let Some(id) = id {
        pool.release(id);
        count += 1;
    }
    while let Some((dropped, _)) = pool.take_returned() {
        pool.release(dropped);
        count += 1;
    }
    count
}
