//! The guarantees of the curves.

use core::time::Duration;

use super::*;
use crate::classify::Classifier;
use crate::packet::Packet;
use crate::rate::Rate;
use crate::testing::{Driver, fifo, in_class};
use proptest::collection::vec;
use proptest::prelude::*;

const fn linear(bits: u64) -> Option<ServiceCurve> {
    Some(ServiceCurve::linear(bits))
}

fn class(minor: u32, parent: Option<u32>, ls: u64) -> ClassConfig {
    ClassConfig {
        ls: linear(ls),
        ..ClassConfig::of_rate(minor, parent, Rate::mbit(1))
    }
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

fn driver(config: Config) -> Driver<Hfsc> {
    let leaves = config.check().unwrap().leaves().len();
    Driver::new(Hfsc::node(config, (0..leaves).map(|_| fifo(4000)).collect()).unwrap())
}

/// The rate of the link, bit/s: 1 byte per microsecond.
const LINK: u64 = 8_000_000;
/// The transmission time of a byte, ns.
const BYTE: u64 = 1000;
/// The length of the longest packet, bytes.
const LONGEST: u32 = 1500;

/// A leaf that is backlogged from `from` on, with packets of `length`.
#[derive(Clone, Copy, Debug)]
struct Source {
    leaf: u32,
    from: u64,
    length: u32,
}

/// Sends until `until` over a link that takes `byte` ns for a byte. Returns the time at which each packet's
/// last bit left, and its length, by source.
fn run(hfsc: &mut Driver<Hfsc>, sources: &[Source], byte: u64, until: u64) -> Vec<Vec<(u64, u32)>> {
    let mut sent = vec![Vec::new(); sources.len()];
    let mut source_of = Vec::new();
    let mut offer = |hfsc: &mut Driver<Hfsc>, source: usize, now: u64| {
        source_of.push(source);
        let Source { leaf, length, .. } = sources[source];
        hfsc.offer(in_class(leaf, length), Time::from_nanos(now));
        source_of.len()
    };
    let mut begun = vec![false; sources.len()];
    let mut owners: Vec<usize> = Vec::new();
    let mut now = 0;
    while now < until {
        for source in 0..sources.len() {
            if !begun[source] && sources[source].from <= now {
                begun[source] = true;
                for _ in 0..2 {
                    owners.resize(offer(hfsc, source, now), source);
                }
            }
        }
        let next_start = sources
            .iter()
            .map(|source| source.from)
            .filter(|&from| from > now)
            .min();
        match hfsc.next(Time::from_nanos(now)) {
            Some(cookie) => {
                let source = owners[cookie as usize];
                let length = sources[source].length;
                owners.resize(offer(hfsc, source, now), source);
                now += u64::from(length) * byte;
                sent[source].push((now, length));
            }
            None => {
                let due = hfsc.root.watchdog().map(Time::nanos);
                now = due
                    .into_iter()
                    .chain(next_start)
                    .min()
                    .expect("a packet or a source is due");
            }
        }
    }
    sent
}

/// Returns the time at which `curve` reaches `bytes`, ns.
fn time_of(curve: &ServiceCurve, bytes: u64) -> u64 {
    let (mut low, mut high) = (0u64, 1u64 << 50);
    while low < high {
        let middle = (low + high) / 2;
        match curve.at(middle.into()) >= u128::from(bytes) * 8_000_000_000 {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Theorem 2 of the paper: whatever the other classes do, a packet leaves at most the transmission time
    /// of one packet after its deadline, if the sum of all curves does not exceed the link.
    #[test]
    fn real_time_curves_are_kept_to_one_packet(
        drawn in vec((1u64..100, 0u64..40_000, 1u64..100, 0u64..60_000_000, 100u32..LONGEST), 1..6),
        greedy in 40u32..LONGEST,
    ) {
        let steepest: u64 = drawn.iter().map(|&(m1, _, m2, ..)| m1.max(m2)).sum();
        let mut classes = vec![class(100, None, LINK)];
        let mut sources = vec![Source { leaf: 90, from: 0, length: greedy }];
        let mut leaves = vec![class(90, Some(100), LINK)];
        for (minor, &(m1, micros, m2, from, length)) in (1..).zip(&drawn) {
            let part = |slope: u64| LINK * slope / steepest / 8 * 8;
            let curve = ServiceCurve { m1: part(m1), d: Duration::from_micros(micros), m2: part(m2) };
            leaves.push(ClassConfig { rt: Some(curve), ..class(minor, Some(100), 8_000) });
            sources.push(Source { leaf: minor, from, length });
        }
        classes.extend(leaves.clone());
        classes.sort_by_key(|class| class.minor);
        let config = Config { rate: Some(Rate::from_bits_per_second(LINK).unwrap()), ..config(classes) };
        let sent = run(&mut driver(config), &sources, BYTE, 300_000_000);
        for (source, sent) in sources.iter().zip(&sent).skip(1) {
            let curve = leaves.iter().find(|class| class.minor == source.leaf).unwrap().rt.unwrap();
            let mut bytes = 0;
            for &(left, length) in sent {
                bytes += u64::from(length);
                // A source that starts during a transmission is seen at its end. Slopes have four digits.
                let due = time_of(&curve, bytes);
                let deadline = source.from + due + due / 2_000 + 2 * u64::from(LONGEST) * BYTE + 200;
                prop_assert!(left <= deadline, "{source:?}: {bytes} bytes left at {left}, due by {deadline}");
            }
            let third = source.from + time_of(&curve, bytes + 2 * u64::from(source.length));
            prop_assert!(third + 10_000_000 > 300_000_000 || bytes > 0);
        }
    }

    /// In no interval a leaf gets more than its upper limit and two packets. A class above may have saved up
    /// while its leaves were at their limits, so its excess is up to a packet of each leaf more.
    #[test]
    fn upper_limits_are_not_exceeded(limits in vec((8u64..80, 40u32..LONGEST), 2..5), above in 8u64..80) {
        let kilobytes = |slope: u64| slope * 80_000;
        let mut classes: Vec<ClassConfig> = (1..).zip(&limits).map(|(minor, &(limit, _))| ClassConfig {
            ul: linear(kilobytes(limit)),
            ..class(minor, Some(50), 1_000_000)
        }).collect();
        classes.push(ClassConfig { ul: linear(kilobytes(above)), ..class(50, None, 1_000_000) });
        let source = |(leaf, &(_, length)): (u32, &(u64, u32))| Source { leaf, from: 0, length };
        let sources: Vec<Source> = (1..).zip(&limits).map(source).collect();
        let sent = run(&mut driver(config(classes)), &sources, 0, 200_000_000);
        let mut all: Vec<(u64, u32)> = sent.iter().flatten().copied().collect();
        all.sort_unstable();
        let leaves = sent.iter().zip(&limits).map(|(sent, &(limit, _))| (sent, limit, 2));
        for (sent, limit, packets) in leaves.chain([(&all, above, 2 + limits.len() as u64)]) {
            for first in 0..sent.len() {
                let mut bytes = 0;
                for &(at, length) in &sent[first..] {
                    bytes += u64::from(length);
                    let by_limit = (at - sent[first].0) * kilobytes(limit) / 8_000_000_000;
                    let most = by_limit + packets * u64::from(LONGEST) + bytes / 1000;
                    prop_assert!(bytes <= most, "{bytes} bytes, at most {most} by a limit of {limit}");
                }
            }
        }
    }
}

fn bytes(sent: &[(u64, u32)]) -> u64 {
    sent.iter().map(|&(_, length)| u64::from(length)).sum()
}

#[test]
fn the_rest_is_shared_in_proportion_to_the_curves_on_every_level() {
    let classes = vec![
        class(1, None, 6_000_000),
        class(2, None, 2_000_000),
        class(11, Some(1), 1_000_000),
        class(12, Some(1), 2_000_000),
    ];
    let source = |leaf, length| Source {
        leaf,
        from: 0,
        length,
    };
    let sources = [source(11, 1500), source(12, 700), source(2, 200)];
    let sent = run(
        &mut driver(config(classes.clone())),
        &sources,
        BYTE,
        2_000_000_000,
    );
    for (sent, share) in sent.iter().zip([500_000, 1_000_000, 500_000]) {
        assert!(bytes(sent).abs_diff(share) < 6000, "{}", bytes(sent));
    }
    // The share of an idle class goes to its sibling, not to its parent's sibling.
    let sent = run(&mut driver(config(classes)), &sources[1..], BYTE, 2_000_000_000);
    for (sent, share) in sent.iter().zip([1_500_000, 500_000]) {
        assert!(bytes(sent).abs_diff(share) < 6000, "{}", bytes(sent));
    }
}

/// A class with a fiftieth of the link sends its packets within 2 ms.
/// With an overhead a packet counts what the link sends: equal shares are equal in these bytes, and an upper
/// limit is kept in them.
#[test]
fn curves_count_the_bytes_on_the_link() {
    let overhead = 400;
    let counted = |sent: &[(u64, u32)]| bytes(sent) + u64::from(overhead) * sent.len() as u64;
    let source = |leaf, length| Source {
        leaf,
        from: 0,
        length,
    };
    let with_overhead = |classes| {
        let mut config = config(classes);
        config.link_layer.overhead = overhead as u16;
        driver(config)
    };
    let mut shared = with_overhead(vec![class(1, None, LINK), class(2, None, LINK)]);
    let sent = run(
        &mut shared,
        &[source(1, 100), source(2, 1500)],
        BYTE,
        2_000_000_000,
    );
    let (short, long) = (counted(&sent[0]), counted(&sent[1]));
    assert!(
        short.abs_diff(long) <= 2 * u64::from(LONGEST + overhead),
        "{short} {long}"
    );
    let mut limited = class(1, None, LINK);
    limited.ul = linear(LINK / 4);
    let sent = run(
        &mut with_overhead(vec![limited]),
        &[source(1, 100)],
        BYTE,
        2_000_000_000,
    );
    // A quarter of a byte each microsecond.
    assert!(
        counted(&sent[0]).abs_diff(500_000) <= 2000,
        "{}",
        counted(&sent[0])
    );
}

#[test]
fn a_steep_first_piece_gives_a_low_delay_at_a_low_rate() {
    let voice = ClassConfig {
        rt: Some(ServiceCurve::of_packet(200, Duration::from_millis(2), 160_000)),
        ..class(2, Some(9), 8_000)
    };
    let mut hfsc = driver(config(vec![class(1, Some(9), LINK), voice, class(9, None, LINK)]));
    let mut now = 0;
    let mut waiting = Vec::new();
    for step in 0..4000u64 {
        hfsc.offer(in_class(1, 1500), Time::from_nanos(now));
        if step % 10 == 0 {
            waiting.push((step + step / 10 + 1, now));
            hfsc.offer(in_class(2, 200), Time::from_nanos(now));
        }
        let cookie = hfsc.next(Time::from_nanos(now)).expect("the link is busy");
        let is_voice = waiting.first().is_some_and(|&(voice, _)| voice == cookie);
        now += if is_voice { 200 } else { 1500 } * BYTE;
        if is_voice {
            let (_, since) = waiting.remove(0);
            assert!(now - since <= 2_000_000 + 1500 * BYTE, "{} ns", now - since);
        }
    }
    assert!(waiting.len() <= 1);
}

#[test]
fn a_change_keeps_the_state_of_unchanged_curves() {
    let curve = |m2| ServiceCurve {
        m1: 4_000_000,
        d: Duration::from_millis(20),
        m2,
    };
    let with = |minors: &[u32], m2| {
        let leaf = |&minor: &u32| ClassConfig {
            rt: Some(curve(m2)),
            ..class(minor, Some(9), 1_000_000)
        };
        let mut config = config(minors.iter().map(leaf).chain([class(9, None, LINK)]).collect());
        config.classifier.default = Some(minors[0]);
        config
    };
    let mut hfsc = driver(with(&[1, 2], 800_000));
    for minor in [1, 1, 2, 2] {
        hfsc.offer(in_class(minor, 1000), Time::ZERO);
    }
    let first = hfsc.next(Time::ZERO);
    let deadline = |hfsc: &Driver<Hfsc>, leaf: usize| hfsc.root.algorithm().leaves[leaf].real_time.deadline;
    let before = [deadline(&hfsc, 0), deadline(&hfsc, 1)];
    hfsc.reconfigure(with(&[1, 2, 3], 800_000), Time::from_millis(1));
    assert_eq!([deadline(&hfsc, 0), deadline(&hfsc, 1)], before);
    hfsc.reconfigure(with(&[1, 3], 800_000), Time::from_millis(1));
    assert_eq!(
        hfsc.root.backlog().packets,
        3,
        "the packets of class 2 are in the default class"
    );
    let rest = hfsc.drain(Time::from_millis(40));
    let mut all: Vec<u64> = first.into_iter().chain(rest).collect();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3]);
    hfsc.offer(Packet::of_length(100), Time::from_millis(50));
    hfsc.reconfigure(with(&[1, 3], 400_000), Time::from_millis(50));
    assert_eq!(hfsc.drain(Time::from_millis(50)), [4]);
}

#[test]
fn curves_that_cannot_be_kept_are_rejected_by_name() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(vec![
            class(1, Some(9), 1_000_000),
            class(2, Some(9), 1_000_000),
            class(9, None, LINK),
        ]);
        change(&mut config);
        let error = config.check().expect_err("a curve cannot be kept");
        (error.parameter().unwrap_or("none").to_owned(), error.to_string())
    };
    let steep = Some(ServiceCurve {
        m1: 6_000_000,
        d: Duration::from_millis(10),
        m2: 1_000_000,
    });
    let both = |config: &mut Config| (config.classes[0].rt, config.classes[1].rt) = (steep, steep);
    assert_eq!(
        refused(&|config| {
            both(config);
            config.rate = Some(Rate::mbit(10));
        })
        .1,
        "`rate` is 10Mbit, but must be enough for the real-time curves of all classes, which need \
         12000000bit/s; lower the curves, or leave `rate` out: then deadlines can be missed"
    );
    assert_eq!(refused(&|config| config.classes[0].ls = None).0, "ls");
    assert_eq!(refused(&|config| config.classes[0].ls = linear(0)).0, "ls");
    assert_eq!(
        refused(&|config| config.classes[0].rt = linear(200_000_000_000)).0,
        "rt"
    );
    assert_eq!(
        refused(&|config| {
            config.classes[0] = ClassConfig {
                rt: linear(8000),
                ls: None,
                ul: linear(9000),
                ..config.classes[0].clone()
            };
        })
        .0,
        "ul"
    );
}

#[test]
fn limits_below_real_time_curves_and_curves_without_effect_are_reported() {
    let steep = Some(ServiceCurve {
        m1: 6_000_000,
        d: Duration::from_millis(10),
        m2: 1_000_000,
    });
    let warnings = |limit: Option<ServiceCurve>, above: Option<ServiceCurve>| {
        let mut config = config(vec![
            ClassConfig {
                rt: steep,
                ..class(1, Some(9), 1_000_000)
            },
            ClassConfig {
                rt: steep,
                ul: limit,
                ..class(2, Some(9), 1_000_000)
            },
            ClassConfig {
                rt: above,
                ..class(9, None, LINK)
            },
        ]);
        config.rate = Some(Rate::mbit(12));
        config.check().expect("Linux accepts all of them");
        config.warnings()
    };
    assert!(warnings(steep, None).is_empty() && warnings(linear(6_000_000), None).is_empty());
    assert_eq!(
        warnings(linear(5_999_000), None),
        [
            "the upper limit of class 2, 5999000bit, is below the real-time curves there, which need \
             6000000bit/s: real-time service is not limited"
        ]
    );
    assert_eq!(
        warnings(None, linear(LINK)),
        ["class 9 has classes below it, so its real-time curve `rt` has no effect"]
    );
}

/// As in Linux, every packet is dropped until there is a class for it.
#[test]
fn without_classes_packets_are_dropped() {
    let mut empty = config(vec![]);
    empty.classifier.default = Some(7);
    assert_eq!(
        empty.warnings(),
        ["`hfsc` has no classes yet: all packets are dropped"]
    );
    let mut hfsc = Driver::new(Hfsc::node(empty.clone(), Vec::new()).unwrap());
    assert_eq!(
        hfsc.offer(Packet::of_length(100), Time::ZERO),
        Verdict::Unclassified
    );
    assert_eq!(hfsc.next(Time::ZERO), None);
    empty.classes.push(class(7, None, 1_000_000));
    hfsc.reconfigure(empty, Time::ZERO);
    assert_eq!(hfsc.offer(Packet::of_length(100), Time::ZERO), Verdict::Queued);
    assert_eq!(hfsc.next(Time::ZERO), Some(1));
}
