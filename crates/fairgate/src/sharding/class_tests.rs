//! Shares of classes whose tree is divided among shards, beside the shares that the one tree gives.

use super::*;
use crate::classify::Classifier;
use crate::discipline::Discipline;
use crate::link_layer::LinkLayer;
use crate::rate::Rate;
use crate::sharing::htb::{self, Htb};
use crate::testing::{Driver, fifo, in_class};
use crate::time::Time;
use crate::{Algorithm, Node};
use alloc::sync::Arc;
use proptest::prelude::*;

const LINE: Rate = Rate::mbit(100);
const LENGTH: u32 = 1000;
const SECOND: u64 = 1_000_000_000;
/// The most packets that a subscriber has queued.
const MOST_QUEUED: u32 = 40;
/// The class of the first subscriber, and those of the line and of the others.
const FIRST: u32 = 16;
const TOP: u32 = 1;
const OTHERS: u32 = 2;

/// What a subscriber has and does. Rates are in kbit/s.
#[derive(Clone, Copy, Debug)]
struct Subscriber {
    least: u64,
    most: u64,
    turns: u32,
    /// What it sends, or nothing if it always has packets.
    sends: Option<u64>,
}

fn kbit(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1000).unwrap()
}

/// Subscribers of a few plans. Each has a plan, and has packets always, or sends up to `most` kbit/s.
fn subscribers(most: u64) -> impl Strategy<Value = Vec<Subscriber>> {
    let plan = (prop_oneof![Just(10u64), 500u64..2000], 2000u64..60_000, 1u32..3);
    let plans = proptest::collection::vec(plan, 1..8);
    let sends = prop_oneof![2 => Just(None), 1 => (100..most).prop_map(Some)];
    let each = proptest::collection::vec((any::<proptest::sample::Index>(), sends), 4..20);
    (plans, each).prop_map(|(plans, each)| {
        let of = |(plan, sends): (proptest::sample::Index, Option<u64>)| {
            let (least, most, turns) = *plan.get(&plans);
            Subscriber {
                least,
                most,
                turns,
                sends,
            }
        };
        each.into_iter().map(of).collect()
    })
}

/// Returns the tree of the subscribers for which `is_own` holds.
fn tree(subscribers: &[Subscriber], is_own: impl Fn(usize) -> bool) -> Node<Htb> {
    let class = |minor, parent, least: u64, most: u64, turns: u32| htb::ClassConfig {
        ceil: Some(kbit(most)),
        burst: Some(20_000),
        cburst: Some(20_000),
        quantum: Some(1518 * turns),
        ..htb::ClassConfig::of_rate(minor, parent, kbit(least))
    };
    let line = LINE.bits_per_second() / 1000;
    let mut classes = vec![
        class(TOP, None, line, line, 1),
        class(OTHERS, Some(TOP), 10, line, 1),
    ];
    let own = (0..subscribers.len())
        .filter(|number| is_own(*number))
        .map(|number| {
            let Subscriber {
                least, most, turns, ..
            } = subscribers[number];
            class(FIRST + number as u32, Some(TOP), least, most, turns)
        });
    classes.extend(own);
    let inner = classes.iter().skip(1).map(|_| fifo(1000)).collect();
    let config = htb::Config {
        classifier: classifier(),
        classes,
        ..htb::Config::default()
    };
    Htb::node(config, inner).unwrap()
}

fn classifier() -> Classifier {
    Classifier {
        handle: 1,
        default: Some(OTHERS),
        ..Classifier::default()
    }
}

/// Returns the subscribers' tree, divided among `workers` shards.
fn sharded(subscribers: &[Subscriber], workers: u16) -> Node<Sharded> {
    let bytes = |kbit: u64| kbit * 125;
    let numbered = || (FIRST..).zip(subscribers);
    let line = LINE.bits_per_second() / 8;
    let mut units = vec![Unit {
        minor: OTHERS,
        most: line,
        leaves: vec![(OTHERS, OTHERS)],
    }];
    units.extend(numbered().map(|(minor, subscriber)| Unit {
        minor,
        most: bytes(subscriber.most),
        leaves: vec![(minor, minor)],
    }));
    let member = |minor: u32, least: u64, most: u64, turns: u32| Member {
        minor,
        terms: Terms {
            least,
            adds_up: true,
            weight: 1518 * turns,
            most,
        },
        above: None,
    };
    let mut members = vec![member(OTHERS, bytes(10), line, 1)];
    members.extend(numbered().map(|(minor, of)| member(minor, bytes(of.least), bytes(of.most), of.turns)));
    let parts = Parts {
        units,
        members,
        limited: Vec::new(),
    };
    let division = Division::new(Side::Destination, classifier(), parts, &[], workers, None);
    let trees = (0..usize::from(workers)).map(|worker| -> Box<dyn Discipline> {
        let is_own = |number: usize| division.worker(FIRST + number as u32) == worker;
        Box::new(tree(subscribers, is_own))
    });
    let trees = trees.collect();
    let config = Config {
        limit: Limit {
            rate: LINE,
            burst: 20_000,
            lengths: Lengths::LinkLayer(LinkLayer::NONE),
        },
        key: Key::Classes(Arc::new(division)),
    };
    Sharded::node(config, trees, 1).unwrap()
}

/// Returns the bytes per second that each subscriber gets after the first half second, up to `until` ns.
fn rates<A: Algorithm>(root: Node<A>, subscribers: &[Subscriber], until: u64) -> Vec<f64> {
    const FROM: u64 = SECOND / 2;
    let mut driver = Driver::new(root);
    let mut owners: Vec<usize> = Vec::new();
    let (mut bytes, mut queued) = (vec![0u64; subscribers.len()], vec![0u32; subscribers.len()]);
    let mut turns = vec![0u64; subscribers.len()];
    let mut now = 0;
    while now < until {
        for (number, subscriber) in subscribers.iter().enumerate() {
            let gap = subscriber.sends.map(|rate| u64::from(LENGTH) * 8_000_000 / rate);
            loop {
                let is_due = match gap {
                    None => queued[number] < MOST_QUEUED,
                    Some(_) => turns[number] <= now,
                };
                if !is_due {
                    break;
                }
                turns[number] += gap.unwrap_or(0);
                // A full queue loses it.
                if queued[number] >= MOST_QUEUED {
                    continue;
                }
                owners.push(number);
                queued[number] += 1;
                driver.offer(in_class(FIRST + number as u32, LENGTH), Time::from_nanos(now));
            }
        }
        if let Some(cookie) = driver.next(Time::from_nanos(now)) {
            let owner = owners[cookie as usize];
            queued[owner] -= 1;
            bytes[owner] += if now >= FROM { u64::from(LENGTH) } else { 0 };
            continue;
        }
        let due = driver.root.watchdog().map_or(u64::MAX, Time::nanos);
        let turns = subscribers
            .iter()
            .zip(&turns)
            .filter(|(subscriber, _)| subscriber.sends.is_some());
        let turn = turns.map(|(_, turn)| *turn).min().unwrap_or(u64::MAX);
        now = due.min(turn).max(now + 1);
    }
    let seconds = (until - FROM) as f64 / 1e9;
    bytes.iter().map(|bytes| *bytes as f64 / seconds).collect()
}

/// Checks that each subscriber gets what it gets in one tree, to this many per cent and two packets.
fn compare(subscribers: &[Subscriber], workers: u16, percent: f64) -> Result<(), String> {
    let until = 3 * SECOND;
    let packets = 2.0 * f64::from(LENGTH) / 2.5;
    let one = rates(tree(subscribers, |_| true), subscribers, until);
    let several = rates(sharded(subscribers, workers), subscribers, until);
    for (number, (one, several)) in one.iter().zip(&several).enumerate() {
        if (several - one).abs() > percent / 100.0 * one + packets {
            let off = (several / one - 1.0) * 100.0;
            return Err(format!("{number} is {off:+.2} % off: {several} instead of {one}"));
        }
    }
    let [one, several] = [&one, &several].map(|rates| rates.iter().sum::<f64>());
    match (several / one - 1.0).abs() <= 0.005 {
        true => Ok(()),
        false => Err(format!("{several} in all instead of {one}")),
    }
}

/// A class that is near its limit can't use more now for what it did not get before. So the level must be
/// steady, although light subscribers give back what they do not use. What light subscribers ask for must be
/// known to a few per cent, also if it is nearly their part.
#[test]
fn light_subscribers_leave_the_level_steady() {
    let of = |most, turns, sends| Subscriber {
        least: 10,
        most,
        turns,
        sends,
    };
    let alone = [
        of(57_371, 1, None),
        of(30_052, 2, Some(11_594)),
        of(57_371, 1, Some(11_885)),
        of(30_052, 2, None),
        of(57_371, 1, None),
        of(32_999, 1, None),
    ];
    let mixed = [
        of(12_022, 2, None),
        of(12_022, 2, Some(13_211)),
        of(31_918, 2, Some(11_067)),
        of(6_307, 1, None),
        of(6_307, 1, None),
        of(6_307, 1, None),
        of(12_022, 2, None),
        of(6_307, 1, None),
        of(31_918, 2, None),
        of(13_483, 2, None),
    ];
    for subscribers in [&alone[..], &mixed] {
        compare(subscribers, 4, 3.0).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever the plans are, and on however many workers: each subscriber gets what it gets in one tree.
    #[test]
    fn subscribers_get_what_one_tree_gives_them(
        subscribers in subscribers(1_500), workers in 2u16..5,
    ) {
        prop_assert_eq!(compare(&subscribers, workers, 3.0), Ok(()));
    }

    /// Light subscribers may ask for any part of what they could get, or more. Of 1,000 random cases one was
    /// more than 3 % off, and that by 5.1 %.
    #[test]
    fn subscribers_may_ask_for_nearly_their_part(
        subscribers in subscribers(15_000), workers in 2u16..5,
    ) {
        prop_assert_eq!(compare(&subscribers, workers, 8.0), Ok(()));
    }
}
