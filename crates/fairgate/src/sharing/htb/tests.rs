//! Comparison with a model in the plainest form, and the guarantees of rate and ceil.

use super::model::{Model, grown};
use super::*;
use crate::classify::{Classifier, Filter, Match, Outcome};
use crate::discipline::Discipline;
use crate::discipline::{Inspect, Reconfigure};
use crate::link_layer::Cells;
use crate::packet::{ClassId, Packet};
use crate::rate::Rate;
use crate::sharing::borrowing::SharedClass;
use crate::sharing::tree::LEVELS;
use crate::testing::{Driver, fifo, in_class};
use proptest::collection::vec;
use proptest::prelude::*;

fn class(minor: u32, parent: Option<u32>, rate: u64, ceil: u64) -> ClassConfig {
    ClassConfig {
        ceil: Some(kbit(ceil)),
        burst: Some(3000),
        cburst: Some(3000),
        quantum: Some(1500),
        ..ClassConfig::of_rate(minor, parent, kbit(rate))
    }
}

fn kbit(kbit: u64) -> Rate {
    Rate::from_bits_per_second(kbit * 1000).unwrap()
}

fn config(classes: Vec<ClassConfig>) -> Config {
    Config {
        classifier: Classifier {
            handle: 1,
            ..Classifier::default()
        },
        classes,
        ..Config::default()
    }
}

fn driver(config: Config) -> Driver<Htb> {
    let leaves = config.check().unwrap().leaves().len();
    Driver::new(Htb::node(config, (0..leaves).map(|_| fifo(4000)).collect()).unwrap())
}

#[test]
fn a_class_is_one_cache_line() {
    assert_eq!(core::mem::size_of::<SharedClass<Buckets>>(), 64);
}

proptest! {
    /// Compares with counted tokens, over pauses and debts of minutes.
    #[test]
    fn buckets_hold_the_counted_tokens(
        rate in 8u64..200_000, above in 0u64..200_000,
        depth in any::<u32>(), ceil_depth in 0u32..1 << 20,
        sent in vec((0u64..100_000_000, 0u32..12, 1u32..9000, any::<bool>()), 1..50),
        (overhead, mpu, is_atm) in (0u16..100, 0u16..200, any::<bool>()),
    ) {
        let cells = if is_atm { Cells::Atm } else { Cells::None };
        let link = LinkLayer { overhead, mpu, cells, ..LinkLayer::NONE };
        let bits = |bits: u64| Rate::from_bits_per_second(bits).unwrap().meter();
        let (rate, ceil) = (bits(rate), bits(rate + above));
        let full = |depth: u32| i64::from(depth) << TICK;
        let mut buckets = Buckets {
            empty_at: 0u64.wrapping_sub(full(depth) as u64),
            ceil_empty_at: 0u64.wrapping_sub(full(ceil_depth) as u64),
            charged_at: 0,
            rate, ceil, depth, ceil_depth, link: Some(link),
        };
        let (mut of_rate, mut of_ceil, mut now) = (full(depth), full(ceil_depth), 0);
        for (pause, magnitude, length, borrows) in sent {
            now += pause << magnitude;
            buckets.charge(Sent { now, length, completion: now }, borrows);
            let pause = (pause << magnitude) as i64;
            let paid = |tokens: i64, depth: u32, meter: RateMeter| {
                let cost = meter.nanos(link.count(length).into()) as i64;
                (grown(tokens, pause).min(full(depth)) - cost).max((1 - LONGEST).min(-cost))
            };
            of_rate = if borrows { grown(of_rate, pause) } else { paid(of_rate, depth, rate) };
            of_ceil = paid(of_ceil, ceil_depth, ceil);
            let expected = match (of_ceil, of_rate) {
                (..0, _) => (Mode::CantSend, -of_ceil as u64),
                (_, ..0) => (Mode::MayBorrow, -of_rate as u64),
                _ => (Mode::CanSend, 0),
            };
            prop_assert_eq!(buckets.mode(now), expected, "at {}", now);
        }
    }
}

/// Trees of up to 11 classes. A class can be faster than its parent, and its ceil below its rate.
fn trees() -> impl Strategy<Value = Config> {
    let class = (
        0usize..12,
        20u64..150,
        1u64..6,
        0u8..3,
        1500u32..6000,
        1500u32..6000,
        200u32..4000,
    );
    vec(class, 2..12).prop_map(|drawn| {
        let mut classes: Vec<ClassConfig> = Vec::new();
        let mut depths = Vec::new();
        for (index, (parent, percent, above, prio, burst, cburst, quantum)) in drawn.into_iter().enumerate() {
            let parent = Some(parent).filter(|&parent| parent < index && depths[parent] < LEVELS - 1);
            depths.push(parent.map_or(0, |parent: usize| depths[parent] + 1));
            let most = parent.map_or(20_000, |parent| classes[parent].rate.bits_per_second() / 1000);
            let rate = (most * percent / 100).max(8);
            classes.push(ClassConfig {
                prio,
                burst: Some(burst),
                cburst: Some(cburst),
                quantum: Some(quantum),
                ..class_with(index, parent, rate, (rate * above / 2).max(8))
            });
        }
        config(classes)
    })
}

fn class_with(index: usize, parent: Option<usize>, rate: u64, ceil: u64) -> ClassConfig {
    class(
        index as u32 + 1,
        parent.map(|parent| parent as u32 + 1),
        rate,
        ceil,
    )
}

proptest! {
    /// Compares each packet and each watchdog time with the model.
    #[test]
    fn htb_is_equal_to_the_model(
        config in trees(),
        steps in vec((0u8..8, any::<prop::sample::Index>(), 40u32..1515, 0u64..3_000_000), 1..500),
    ) {
        let (mut htb, mut model) = (driver(config.clone()), Model::new(&config));
        let leaves = config.check().unwrap().leaves().to_vec();
        let mut offered = Vec::new();
        let mut now = 0;
        for (step, leaf, length, pause) in steps {
            match step {
                0..=3 => {
                    let index = leaf.get(&leaves).index();
                    let packet = in_class(config.classes[index].minor, length);
                    htb.offer(packet, Time::from_nanos(now));
                    model.enqueue(index, length);
                    offered.push((index, length));
                }
                4 => now += pause,
                _ => loop {
                    let sent = htb.next(Time::from_nanos(now)).map(|cookie| offered[cookie as usize]);
                    let expected = model.dequeue(now);
                    prop_assert_eq!(sent, expected.ok(), "at {}", now);
                    if let Err(due) = expected {
                        let watchdog = htb.root.watchdog().map_or(u64::MAX, Time::nanos);
                        prop_assert_eq!(watchdog, due, "at {}", now);
                        if step == 7 && due != u64::MAX {
                            now = due;
                        }
                        break;
                    }
                },
            }
        }
    }
}

/// Returns the length of the packet with a cookie.
fn length_of(cookie: u64) -> u32 {
    [1500, 64, 700, 1200][cookie as usize % 4]
}

const LONGEST_PACKET: f64 = 1500.0;

/// Keeps leaves backlogged on a link that is never busy. Returns the times and lengths of each leaf's
/// packets.
fn backlogged(config: &Config, leaves: &[u32], until: Time) -> Vec<Vec<(u64, u32)>> {
    let mut htb = driver(config.clone());
    let mut sent: Vec<Vec<(u64, u32)>> = vec![Vec::new(); leaves.len()];
    let mut leaf_of: Vec<usize> = Vec::new();
    let mut now = Time::ZERO;
    let mut waiting: Vec<usize> = (0..leaves.len()).flat_map(|leaf| [leaf; 3]).collect();
    while now < until {
        for leaf in waiting.drain(..) {
            let packet = in_class(leaves[leaf], length_of(leaf_of.len() as u64));
            leaf_of.push(leaf);
            htb.offer(packet, now);
        }
        match htb.next(now) {
            Some(cookie) => {
                let leaf = leaf_of[cookie as usize];
                sent[leaf].push((now.nanos(), length_of(cookie)));
                waiting.push(leaf);
            }
            None => now = htb.root.watchdog().expect("packets are queued"),
        }
    }
    sent
}

fn bytes_in(rate: Rate, nanos: u64) -> f64 {
    rate.bits_per_second() as f64 / 8e9 * nanos as f64
}

/// Checks every interval: at most the bytes at `rate` plus `above`, at least the bytes at `least` minus
/// `below`.
fn check_rates(sent: &[(u64, u32)], (rate, above): (Rate, f64), (least, below): (Rate, f64)) {
    for (first, &(from, _)) in sent.iter().enumerate() {
        let mut bytes = 0.0;
        for (index, &(to, length)) in sent.iter().enumerate().skip(first) {
            bytes += f64::from(length);
            // The cost of each packet is rounded down to ns.
            let most = bytes_in(rate, to - from + (index + 1 - first) as u64) * 1.000_001 + above;
            assert!(
                bytes <= most,
                "{bytes} bytes in {} ns, more than {most}",
                to - from
            );
            // No packet leaves before the next departure.
            let end = sent.get(index + 1).map_or(to, |next| next.0);
            let due = bytes_in(least, end - from) * 0.999_999 - below;
            assert!(
                bytes >= due,
                "{bytes} bytes in {} ns, less than {due}",
                end - from
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the siblings do, a class with a backlog gets its rate over every interval, except for two
    /// packets. No class gets more than its ceil, except for its burst and the packet that exceeded it. (An
    /// inner class gets at least the guaranteed rates of the classes below, so their bursts count too.)
    #[test]
    fn rates_are_kept_and_ceils_not_exceeded(
        shares in vec((1u64..40, 0u64..3, 0u8..3), 2..7),
        groups in 1usize..3,
        busy in any::<u8>(),
    ) {
        let total: u64 = shares.iter().map(|share| share.0).sum();
        let rate_of = |share: u64| 8_000 * share / total;
        let group_of = |leaf: usize| leaf % groups;
        let mut classes = vec![class(1, None, 8_000, 8_000)];
        for group in 0..groups {
            let leaves = (0..shares.len()).filter(|&leaf| group_of(leaf) == group);
            let rate = leaves.map(|leaf| rate_of(shares[leaf].0)).sum();
            classes.push(class(2 + group as u32, Some(1), rate, (rate * 3 / 2).min(8_000)));
        }
        for (leaf, &(share, above, prio)) in shares.iter().enumerate() {
            let rate = rate_of(share);
            let minor = 10 + leaf as u32;
            let parent = Some(2 + group_of(leaf) as u32);
            classes.push(ClassConfig { prio, ..class(minor, parent, rate, rate * (1 + above)) });
        }
        let config = config(classes.clone());
        let busy = (0..shares.len()).filter(|leaf| busy >> leaf & 1 == 1);
        let leaves: Vec<u32> = busy.map(|leaf| 10 + leaf as u32).collect();
        prop_assume!(!leaves.is_empty());
        let sent = backlogged(&config, &leaves, Time::from_millis(400));
        let settings = |minor: u32| classes.iter().find(|class| class.minor == minor).unwrap();
        for (sent, &minor) in sent.iter().zip(&leaves) {
            let leaf = settings(minor);
            let burst = 3000.0 + LONGEST_PACKET;
            check_rates(sent, (leaf.ceil(), burst), (leaf.rate, 2.0 * LONGEST_PACKET));
        }
        for minor in 1..2 + groups as u32 {
            let below = |leaf: &u32| minor == 1 || settings(*leaf).parent == Some(minor);
            let mut together: Vec<(u64, u32)> = sent.iter().zip(&leaves).filter(|(_, leaf)| below(leaf))
                .flat_map(|(sent, _)| sent.clone()).collect();
            together.sort_unstable();
            let bursts = (leaves.len() + 1) as f64 * (3000.0 + LONGEST_PACKET);
            let no_minimum = (Rate::from_bits_per_second(1).unwrap(), f64::MAX);
            check_rates(&together, (settings(minor).ceil(), bursts), no_minimum);
        }
    }
}

/// Returns the bytes that each leaf sent.
fn sums(sent: &[Vec<(u64, u32)>]) -> Vec<f64> {
    let sum = |sent: &Vec<(u64, u32)>| sent.iter().map(|&(_, length)| f64::from(length)).sum();
    sent.iter().map(sum).collect()
}

#[test]
fn the_rest_is_shared_by_quantum_and_the_higher_priority_is_first() {
    let leaf = |minor, prio, quantum| ClassConfig {
        prio,
        quantum: Some(quantum),
        ..class(minor, Some(1), 800, 8_000)
    };
    let root = class(1, None, 8_000, 8_000);
    // 1 byte per microsecond in total: 0.1 for each leaf, 0.8 left.
    let equals = config(vec![root.clone(), leaf(2, 0, 1500), leaf(3, 0, 4500)]);
    let sent = sums(&backlogged(&equals, &[2, 3], Time::from_secs(4)));
    assert!(
        (sent[0] - 1.2e6).abs() < 3e4 && (sent[1] - 2.8e6).abs() < 3e4,
        "{sent:?}"
    );
    let ranked = config(vec![root, leaf(2, 1, 1500), leaf(3, 0, 1500)]);
    let sent = sums(&backlogged(&ranked, &[2, 3], Time::from_secs(4)));
    assert!(
        (sent[0] - 0.4e6).abs() < 3e4 && (sent[1] - 3.6e6).abs() < 3e4,
        "{sent:?}"
    );
}

#[test]
fn unclassified_packets_are_sent_first_and_not_shaped() {
    let mut slow = config(vec![class(1, None, 100, 100), class(2, Some(1), 80, 100)]);
    slow.direct_qlen = 2;
    let mut htb = driver(slow);
    for minor in [2, 2, 2, 7, 1, 0] {
        htb.offer(in_class(minor, 1500), Time::ZERO);
    }
    assert_eq!(
        htb.returned,
        [(5, DropReason::NoClass)],
        "the direct queue is full"
    );
    assert_eq!(htb.drain(Time::ZERO), [3, 4, 0, 1, 2]);
    htb.offer(in_class(2, 1500), Time::ZERO);
    assert_eq!(htb.next(Time::ZERO), None, "two bursts and a packet are used up");
}

/// The state after `tc qdisc add dev eth0 root handle 1: htb default 12`, before classes are added.
#[test]
fn without_classes_packets_are_sent_directly() {
    let mut none = config(Vec::new());
    none.classifier.default = Some(12);
    let mut htb = driver(none.clone());
    for minor in [12, 0] {
        htb.offer(in_class(minor, 1500), Time::ZERO);
    }
    assert_eq!(htb.next(Time::ZERO), Some(0));

    let mut some = config(vec![class(12, None, 8, 8)]);
    some.classifier.default = Some(12);
    htb.reconfigure(some.clone(), Time::ZERO);
    htb.offer(in_class(12, 1500), Time::ZERO);
    htb.reconfigure(none.clone(), Time::ZERO);
    assert_eq!(
        htb.drain(Time::ZERO),
        [1, 2],
        "also the packet of the removed class"
    );

    let nowhere = Filter {
        outcome: Outcome::Class(12),
        ..Filter::default()
    };
    none.classifier.filters = vec![nowhere].into();
    assert!(none.check().is_err(), "the class of the filter does not exist");
    some.classifier.default = Some(13);
    assert!(
        some.check().is_err(),
        "if there are classes, the default must be one of them"
    );
}

#[test]
fn a_throttled_leaf_is_not_asked_before_its_watchdog() {
    use crate::queues::tbf::{self, Tbf};
    use crate::queues::token_bucket::Profile;
    let mut htb = driver(config(vec![
        class(1, None, 8_000, 8_000),
        class(2, Some(1), 800, 8_000),
        class(3, Some(1), 800, 8_000),
    ]));
    let slow = tbf::Config {
        profile: Profile::new(kbit(8), 1500),
        limit: None,
    };
    htb.replace_class(2, Box::new(Tbf::node(slow, Some(fifo(10))).unwrap()), Time::ZERO);
    for minor in [2, 2, 3] {
        htb.offer(in_class(minor, 1500), Time::ZERO);
    }
    assert_eq!(htb.drain(Time::ZERO), [0, 2]);
    assert_eq!(htb.root.watchdog(), Some(Time::from_millis(1500)));
    htb.offer(in_class(3, 1500), Time::from_millis(9));
    assert_eq!(htb.drain(Time::from_millis(9)), [3]);
    assert_eq!(htb.drain(Time::from_millis(1500)), [1]);
}

#[test]
fn classes_are_added_and_removed_while_packets_are_queued() {
    let leaf = |minor| class(minor, Some(1), 800, 8_000);
    let with = |minors: &[u32]| {
        let mut config = config(
            [class(1, None, 8_000, 8_000)]
                .into_iter()
                .chain(minors.iter().map(|&minor| leaf(minor)))
                .collect(),
        );
        config.classifier.default = Some(3);
        config
    };
    let mut htb = driver(with(&[2, 3]));
    for minor in [2, 2, 3] {
        htb.offer(in_class(minor, 100), Time::ZERO);
    }
    htb.reconfigure(with(&[3, 4]), Time::ZERO);
    htb.offer(in_class(4, 100), Time::ZERO);
    assert_eq!(
        htb.root.backlog().packets,
        4,
        "the packets of class 2 are in the default class"
    );
    htb.reconfigure(with(&[3, 4, 5]), Time::ZERO);
    assert_eq!(htb.drain(Time::ZERO), [2, 3, 0, 1]);

    // Classes are put below a leaf. The packets of the leaf are classified again.
    htb.offer(in_class(4, 100), Time::ZERO);
    let mut deeper = with(&[3, 4, 5]);
    deeper.classes[3].parent = Some(4);
    htb.reconfigure(deeper, Time::ZERO);
    assert_eq!(htb.drain(Time::ZERO), [4]);
    let gone = htb
        .root
        .reconfigure(&with(&[2, 4]), Time::ZERO, &mut Pool::with_capacity(1));
    assert!(gone.is_err(), "the default would not exist");
}

/// If the last class is removed in its turn, the turn passes to the first class.
#[test]
fn the_class_whose_turn_it_is_can_be_removed() {
    let with = |leaves: &[u32]| {
        let leaf = |&minor: &u32| class(minor, Some(1), 8_000, 8_000);
        config(
            core::iter::once(class(1, None, 80_000, 80_000))
                .chain(leaves.iter().map(leaf))
                .collect(),
        )
    };
    let mut htb = driver(with(&[2, 3, 4]));
    for minor in [4, 4, 4, 2, 3] {
        htb.offer(in_class(minor, 100), Time::ZERO);
    }
    let _ = htb.next(Time::ZERO);
    for leaves in [&[2, 3][..], &[2], &[2, 3, 4]] {
        htb.reconfigure(with(leaves), Time::ZERO);
    }
    assert_eq!(
        htb.drain(Time::from_secs(1)).len() as u64 + htb.root.backlog().packets,
        4
    );
}

/// Otherwise frequent changes would remove the limit.
#[test]
fn a_change_adds_no_tokens() {
    let of = |ceil| config(vec![class(1, None, 800, ceil), class(2, Some(1), 800, ceil)]);
    let mut htb = driver(of(800));
    let mut sent = 0;
    for step in 0..100u64 {
        let now = Time::from_millis(step);
        for _ in 0..2 {
            htb.offer(in_class(2, 1500), now);
        }
        sent += htb.drain(now).len();
        htb.reconfigure(of(800 + step % 3 * 800), now);
    }
    // At most 3 times 100 bytes per millisecond, a burst of 3000 and the packet that exceeds it.
    assert!(sent * 1500 <= 100 * 300 + 4500, "{sent}");
}

#[test]
fn invalid_parameters_are_rejected_by_name() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(vec![class(1, None, 8_000, 8_000), class(2, Some(1), 800, 8_000)]);
        change(&mut config);
        let error = config.check().expect_err("a parameter is invalid");
        (error.parameter().unwrap_or("none").to_owned(), error.to_string())
    };
    assert_eq!(refused(&|config| config.classes[1].prio = 8).0, "prio");
    assert_eq!(
        refused(&|config| config.classes[1].quantum = Some(0)).0,
        "quantum"
    );
    assert_eq!(
        refused(&|config| config.classes[1].burst = Some(u32::MAX)).1,
        "`burst` of class 2 is 4294967295, but must be at most 274 s at 800Kbit; set it to what may arrive \
         at once, such as 1 ms at the rate"
    );
    assert_eq!(refused(&|config| config.classes[1].cburst = Some(0)).0, "cburst");
    assert_eq!(refused(&|config| config.r2q = 0).0, "r2q");
    assert_eq!(
        refused(&|config| config.classifier.default = Some(1)).0,
        "default"
    );
}

/// The bucket of the script in "Linux Advanced Routing & Traffic Control": a rate of 1 kbit/s takes two
/// minutes to fill 15,000 bytes.
#[test]
fn a_bucket_may_take_minutes_to_fill() {
    let mut slow = class(1, None, 1, 6_000);
    slow.burst = Some(15_000);
    let mut htb = driver(config(vec![slow]));
    for _ in 0..40 {
        htb.offer(in_class(1, 1000), Time::ZERO);
    }
    let mut sent = 0;
    let mut now = Time::ZERO;
    while now < Time::from_secs(5) {
        match htb.next(now) {
            Some(_) => sent += 1,
            None => now = htb.root.watchdog().expect("packets are queued"),
        }
    }
    // The bucket, and a packet on credit, which takes 8 seconds to pay for.
    assert_eq!(sent, 16);
}

#[test]
fn a_ceil_below_the_rate_limits_the_class_and_is_reported() {
    let low = config(vec![class(1, None, 8_000, 800)]);
    let sent = sums(&backlogged(&low, &[1], Time::from_secs(4)));
    assert!((sent[0] - 400e3).abs() < 5e3, "{sent:?}");
    assert_eq!(
        low.warnings(),
        ["class 1 is limited to its ceil of 800Kbit, which is below its rate of 8Mbit"]
    );
}

/// As in Linux's `htb_classify`: filters of the discipline lead to an inner class, whose filters go on.
#[test]
fn filters_of_inner_classes_choose_below_them() {
    let to = |at: Option<u32>, dscp: core::ops::RangeInclusive<u8>, outcome: Outcome| Filter {
        at,
        condition: Match {
            dscp: Some(dscp),
            ..Match::default()
        },
        outcome,
        ..Filter::default()
    };
    let classes = vec![
        class(1, None, 8_000, 8_000),
        class(2, Some(1), 8_000, 8_000),
        class(3, Some(1), 8_000, 8_000),
        class(4, Some(1), 8_000, 8_000),
    ];
    let mut config = config(classes);
    config.classifier.default = Some(4);
    config.classifier.filters = vec![
        to(None, 0..=31, 1.into()),
        to(None, 32..=63, 3.into()),
        to(Some(1), 0..=7, 2.into()),
        to(Some(1), 8..=15, Outcome::Drop),
    ]
    .into();
    let mut htb = driver(config.clone());
    let of = |dscp, class| Packet {
        dscp,
        class,
        ..Packet::of_length(100)
    };
    let sent = |htb: &mut Driver<Htb>, packet| {
        let before = |htb: &Driver<Htb>| {
            let mut seen = Vec::new();
            htb.root
                .visit_classes(&mut |class| seen.push((class.minor, class.discipline.backlog().packets)));
            seen
        };
        let earlier = before(htb);
        htb.offer(packet, Time::ZERO);
        before(htb)
            .iter()
            .zip(earlier)
            .find(|(now, then)| now.1 > then.1)
            .map(|(now, _)| now.0)
    };
    assert_eq!(sent(&mut htb, of(3, ClassId::NONE)), Some(2));
    assert_eq!(sent(&mut htb, of(40, ClassId::NONE)), Some(3));
    assert_eq!(
        sent(&mut htb, of(20, ClassId::NONE)),
        Some(4),
        "the filters of class 1 fail: the default"
    );
    assert_eq!(sent(&mut htb, of(9, ClassId::NONE)), None);
    assert_eq!(htb.root.statistics().dropped_for(DropReason::Filtered), 1);
    let inner = ClassId::new(1, 1);
    assert_eq!(
        sent(&mut htb, of(3, inner)),
        Some(2),
        "the packet names the inner class"
    );
    assert_eq!(
        sent(&mut htb, of(40, inner)),
        Some(4),
        "only the filters of class 1 are tried"
    );

    let rejected = |filter: Filter| {
        let filters = config.classifier.filters.with([filter]);
        let mut config = config.clone();
        config.classifier.filters = filters;
        config.check().unwrap_err().parameter()
    };
    assert_eq!(
        rejected(to(Some(2), 0..=1, 3.into())),
        Some("at"),
        "a leaf has no filters"
    );
    assert_eq!(
        rejected(to(Some(1), 0..=1, 1.into())),
        Some("class"),
        "filters lead down"
    );
}
