//! The rates that the estimator enforces, and which classes borrow.

use super::*;
use crate::classify::Classifier;
use crate::rate::Rate;
use crate::testing::{Driver, fifo, in_class};
use proptest::collection::vec;
use proptest::prelude::*;

/// The rate of the link, kbit/s: 1 byte per microsecond.
const LINK: u64 = 8_000;
/// The transmission time of a byte, ns.
const BYTE: u64 = 1000;

fn kbit(kbit: u64) -> Rate {
    Rate::from_bits_per_second(kbit * 1000).unwrap()
}

fn class(minor: u32, parent: Option<u32>, rate: u64) -> ClassConfig {
    ClassConfig::of_rate(minor, parent, kbit(rate))
}

fn config(classes: Vec<ClassConfig>) -> Config {
    Config {
        classifier: Classifier {
            handle: 1,
            ..Classifier::default()
        },
        classes,
        packet: 1000,
        max_packet: 1500,
        ..Config::of_bandwidth(kbit(LINK))
    }
}

fn driver(config: Config) -> Driver<Cbq> {
    let leaves = config.check().unwrap().leaves().len();
    Driver::new(Cbq::node(config, (0..leaves).map(|_| fifo(4000)).collect()).unwrap())
}

/// Sends over the link while these leaves are backlogged with packets of these lengths. Returns the times and
/// lengths of the packets of each leaf.
fn run(cbq: &mut Driver<Cbq>, leaves: &[(u32, u32)], until: u64) -> Vec<Vec<(u64, u32)>> {
    let mut sent = vec![Vec::new(); leaves.len()];
    let mut source_of: Vec<usize> = Vec::new();
    let mut waiting: Vec<usize> = (0..leaves.len()).flat_map(|leaf| [leaf; 3]).collect();
    let mut now = 0;
    while now < until {
        for leaf in waiting.drain(..) {
            source_of.push(leaf);
            cbq.offer(in_class(leaves[leaf].0, leaves[leaf].1), Time::from_nanos(now));
        }
        match cbq.next(Time::from_nanos(now)) {
            Some(cookie) => {
                let leaf = source_of[cookie as usize];
                sent[leaf].push((now, leaves[leaf].1));
                waiting.push(leaf);
                now += u64::from(leaves[leaf].1) * BYTE;
            }
            None => now = cbq.root.watchdog().expect("packets are queued").nanos(),
        }
    }
    sent
}

fn bytes(sent: &[(u64, u32)]) -> f64 {
    sent.iter().map(|&(_, length)| f64::from(length)).sum()
}

/// Returns the bytes at `rate` kbit/s in `nanos`.
fn at(rate: u64, nanos: u64) -> f64 {
    rate as f64 * nanos as f64 / 8e6
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Every class with a backlog gets its rate over every interval, except for bursts, whatever its siblings
    /// do. A class that may not borrow gets no more.
    #[test]
    fn rates_are_kept_and_not_exceeded_without_borrowing(
        drawn in vec((5u64..40, any::<bool>(), 700u32..1500), 2..6),
    ) {
        let total: u64 = drawn.iter().map(|class| class.0).sum();
        // A tenth of the link is left over, so that the order of packets does not matter.
        let rate_of = |share: u64| LINK * 9 * share / total / 10;
        let mut classes: Vec<ClassConfig> = (1..).zip(&drawn).map(|(minor, &(share, borrow, _))| ClassConfig {
            borrow,
            ..class(minor, Some(20), rate_of(share))
        }).collect();
        classes.push(class(20, None, LINK));
        let leaf = |(minor, &(.., length)): (u32, &(u64, bool, u32))| (minor, length);
        let leaves: Vec<(u32, u32)> = (1..).zip(&drawn).map(leaf).collect();
        let second = 1_000_000_000;
        let sent = run(&mut driver(config(classes)), &leaves, 4 * second);
        for (sent, &(share, borrow, length)) in sent.iter().zip(&drawn) {
            let bursts = 20.0 * 1500.0;
            for (first, &(from, _)) in sent.iter().enumerate().step_by(17) {
                let mut so_far = 0.0;
                for &(to, length) in &sent[first..] {
                    let due = at(rate_of(share), to - from);
                    prop_assert!(so_far >= 0.94 * due - bursts, "{so_far} of {due}");
                    so_far += f64::from(length);
                    prop_assert!(borrow || so_far <= 1.03 * due + bursts, "{so_far} of {due}");
                }
            }
            let wanted = at(rate_of(share), 4 * second);
            prop_assert!(bytes(sent) >= 0.94 * wanted - f64::from(length), "{} of {wanted}", bytes(sent));
        }
    }
}

#[test]
fn spare_capacity_goes_to_the_nearest_class_that_may_borrow() {
    // An agency with 3/4 of the link and two classes, one of them idle; another agency with 1/4.
    let classes = vec![
        class(1, Some(10), 2000),
        class(2, Some(10), 4000),
        class(3, Some(11), 2000),
        class(10, Some(12), 6000),
        class(11, Some(12), 2000),
        class(12, None, LINK),
    ];
    let sent = run(
        &mut driver(config(classes)),
        &[(1, 1000), (3, 1000)],
        4_000_000_000,
    );
    let (first, second) = (bytes(&sent[0]), bytes(&sent[1]));
    assert!(
        (first - 3e6).abs() < 1.5e5 && (second - 1e6).abs() < 1.5e5,
        "{first} and {second}"
    );
}

#[test]
fn the_highest_priority_is_served_first() {
    let leaf = |minor, priority| ClassConfig {
        priority,
        ..class(minor, Some(9), 1000)
    };
    let classes = vec![leaf(1, 3), leaf(2, 7), class(9, None, LINK)];
    let mut cbq = driver(config(classes));
    for minor in [1, 1, 2, 2] {
        cbq.offer(in_class(minor, 1000), Time::ZERO);
    }
    assert_eq!(cbq.drain(Time::ZERO), [2, 3, 0, 1]);
    let classes = vec![leaf(1, 3), leaf(2, 7), class(9, None, LINK)];
    let sent = run(
        &mut driver(config(classes)),
        &[(1, 1000), (2, 1000)],
        2_000_000_000,
    );
    // Each gets its eighth. The second gets the rest.
    assert!((bytes(&sent[0]) - 2.5e5).abs() < 5e4, "{}", bytes(&sent[0]));
}

#[test]
fn classes_of_equal_priority_share_in_proportion_to_their_rates() {
    let classes = vec![
        class(1, Some(9), 1000),
        class(2, Some(9), 3000),
        class(9, None, LINK),
    ];
    let sent = run(
        &mut driver(config(classes)),
        &[(1, 700), (2, 1500)],
        4_000_000_000,
    );
    assert!(
        (bytes(&sent[1]) / bytes(&sent[0]) - 3.0).abs() < 0.3,
        "{} to {}",
        bytes(&sent[1]),
        bytes(&sent[0])
    );
}

#[test]
fn weights_share_spare_capacity_whatever_the_rates() {
    let heavy = ClassConfig {
        weight: Some(kbit(5000)),
        ..class(1, Some(9), 100)
    };
    let light = ClassConfig {
        weight: Some(kbit(1000)),
        ..class(2, Some(9), 100)
    };
    let sent = run(
        &mut driver(config(vec![heavy, light, class(9, None, LINK)])),
        &[(1, 1000), (2, 1000)],
        4_000_000_000,
    );
    let ratio = bytes(&sent[0]) / bytes(&sent[1]);
    assert!((ratio - 5.0).abs() < 0.5, "{ratio}");
}

/// After a pause about `maxburst` packets pass at the rate of the link. Then the class is suspended, and
/// resumes at its watchdog time.
#[test]
fn a_burst_passes_and_the_suspended_class_resumes_at_its_watchdog() {
    let alone = ClassConfig {
        borrow: false,
        maxburst: Some(8),
        minburst: Some(2),
        ..class(1, None, 800)
    };
    let sent = run(&mut driver(config(vec![alone])), &[(1, 1000)], 1_000_000_000);
    let gaps: Vec<u64> = sent[0].windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    let burst = gaps.iter().take_while(|&&gap| gap <= 1000 * BYTE).count() + 1;
    assert!((7..=10).contains(&burst), "a burst of {burst}");
    assert!(gaps[burst - 1] > 10_000 * BYTE, "it was suspended");
    assert!((bytes(&sent[0]) - 1e5).abs() < 1e4, "{}", bytes(&sent[0]));
}

/// At 6 kbit/s a packet of 1000 bytes takes 1.3 s, and a suspension longer.
#[test]
fn a_suspension_of_seconds_is_no_idle_time() {
    let alone = ClassConfig {
        borrow: false,
        ..class(1, None, 6)
    };
    let hour = 3_600_000_000_000;
    let sent = run(&mut driver(config(vec![alone])), &[(1, 1000)], hour);
    let share = bytes(&sent[0]) / at(6, hour);
    assert!((0.95..1.02).contains(&share), "{share} of its rate");
}

#[test]
fn no_class_borrows_while_another_is_within_its_rate() {
    let cutoff = |cbq: &Driver<Cbq>| cbq.root.algorithm().cutoff;
    let classes = vec![
        class(1, Some(5), 80),
        class(2, Some(6), 80),
        class(5, Some(6), 800),
        class(6, None, LINK),
    ];
    let mut cbq = driver(config(classes));
    for _ in 0..40 {
        cbq.offer(in_class(1, 1000), Time::ZERO);
    }
    for _ in 0..20 {
        assert!(cbq.next(Time::ZERO).is_some());
    }
    assert!(cutoff(&cbq) > 0, "the class borrows");
    cbq.offer(in_class(2, 1000), Time::ZERO);
    assert_eq!(
        cbq.next(Time::ZERO),
        Some(40),
        "a class that need not borrow is first"
    );
    assert_eq!(cutoff(&cbq), 0);
}

#[test]
fn a_change_allows_no_new_bursts_and_loses_no_packets() {
    let with = |rate, minors: &[u32]| {
        let leaf = |&minor: &u32| ClassConfig {
            borrow: false,
            ..class(minor, Some(9), rate)
        };
        let mut config = config(minors.iter().map(leaf).chain([class(9, None, LINK)]).collect());
        config.classifier.default = Some(minors[0]);
        config
    };
    let mut cbq = driver(with(400, &[1, 2]));
    let mut sent = 0;
    for step in 0..200u64 {
        let now = Time::from_millis(step);
        cbq.offer(in_class(1, 1000), now);
        sent += cbq.drain(now).len();
        cbq.reconfigure(with(400 + step % 2 * 100, &[1, 2]), now);
    }
    // 10 to 12 packets at its rate, and one burst.
    assert!(sent <= 12 + 20, "{sent}");
    cbq.offer(in_class(2, 1000), Time::from_millis(200));
    let before = cbq.root.backlog();
    cbq.reconfigure(with(400, &[1, 3]), Time::from_millis(200));
    assert_eq!(cbq.root.backlog(), before);
}

#[test]
fn invalid_parameters_are_rejected_by_name() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(vec![class(1, Some(9), 1000), class(9, None, LINK)]);
        change(&mut config);
        let error = config.check().expect_err("a parameter is invalid");
        (error.parameter().unwrap_or("none").to_owned(), error.to_string())
    };
    assert_eq!(
        refused(&|config| config.classes[0].rate = kbit(9000)).1,
        "`rate` of class 1 is 9Mbit, but must be at most 8Mbit, the rate of its parent; lower the rate, or \
         raise the limit"
    );
    assert!(
        refused(&|config| config.bandwidth = kbit(7000))
            .1
            .contains("at most 7Mbit, the bandwidth of the link")
    );
    assert_eq!(refused(&|config| config.classes[0].priority = 8).0, "priority");
    assert_eq!(
        refused(&|config| config.classes[0].maxburst = Some(0)).0,
        "maxburst"
    );
    assert_eq!(
        refused(&|config| (config.classes[0].maxburst, config.classes[0].minburst) = (Some(2), Some(3))).0,
        "minburst"
    );
    assert_eq!(refused(&|config| config.packet = 1501).0, "packet");
    assert_eq!(
        refused(&|config| config.classifier.default = Some(9)).0,
        "default"
    );
}

/// An agency with half of the link has a small class of `priority` and a bulk class of priority 1. Both have
/// many packets, and none arrives later. Returns how many of the first 200 packets are of the bulk class. Its
/// share is 80.
fn packets_of_the_bulk_class(link_sharing: LinkSharing, priority: u8) -> usize {
    let leaf = |minor, rate, priority| ClassConfig {
        priority,
        ..class(minor, Some(2), rate)
    };
    let config = Config {
        link_sharing,
        ..config(vec![
            class(1, None, LINK),
            class(2, Some(1), LINK / 2),
            leaf(20, LINK / 10, priority),
            leaf(21, 4 * LINK / 10, 1),
        ])
    };
    let mut cbq = driver(config);
    for _ in 0..200 {
        cbq.offer(in_class(21, 1000), Time::ZERO);
        cbq.offer(in_class(20, 1000), Time::ZERO);
    }
    let sent = (0..200u64).map(|packet| cbq.next(Time::from_nanos(packet * 1000 * BYTE)));
    sent.filter(|sent| sent.expect("has packets") % 2 == 0).count()
}

/// Figures 14 and 15 of the ALTQ paper: with ALTQ's top-level link sharing a small class of high priority
/// gets more than its share, though a class of its agency has packets and is within its rate. With equal
/// priorities it does not. The formal rule gives it its share with both.
#[test]
fn a_high_priority_borrows_more_than_its_share_by_top_level_link_sharing_only() {
    for priority in [1, 7] {
        let formal = packets_of_the_bulk_class(LinkSharing::Formal, priority);
        assert!(formal >= 78, "priority {priority}: {formal}");
    }
    let equal = packets_of_the_bulk_class(LinkSharing::TopLevel, 1);
    assert!(equal >= 78, "{equal}");
    let high = packets_of_the_bulk_class(LinkSharing::TopLevel, 7);
    assert!(high < 40, "{high}");
    // `rmc_tl_satisfied`: when the agency is over its rate, the cut-off falls to the bulk class. The class of
    // high priority borrows from the root after that.
    assert!(high >= 10, "{high}");
}
