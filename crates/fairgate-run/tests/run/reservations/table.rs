//! The table of reservations: what is refused and why, soft state, and the tree in step with it.

use std::time::Duration;

use fairgate::{Rate, Time};
use fairgate_config::{Registry, Spec};
use fairgate_run::reserve::{ErrorTerms, Excess, NoErrorTerms, Refusal, Reservations, Terms, check_place};
use proptest::prelude::*;

const HFSC: &str = "tbf rate=10mbit burst=5kb / hfsc default=1 { 1 ls=10mbit / fq_codel }";
const WEIGHTS: &str = "tbf rate=10mbit burst=5kb / wf2q_plus default=1 { 1 weight=1000 / fq_codel }";

fn terms(kilobits: u64, millis: Option<u64>) -> Terms {
    Terms {
        rate: Rate::from_bits_per_second(kilobits * 1_000).unwrap(),
        burst: 5_000,
        peak: None,
        min_packet: 60,
        max_packet: 1_000,
        delay: millis.map(Duration::from_millis),
        filter: "destination_port=5004 protocol=udp".to_owned(),
        excess: Excess::BestEffort,
        lifetime: Duration::from_secs(30),
    }
}

fn spec(text: &str) -> Spec {
    Spec::inline(text).unwrap()
}

/// Adds a reservation at time 0.
fn add(table: &Reservations, tree: &Spec, name: &str, terms: Terms) -> Result<(Reservations, Spec), Refusal> {
    table.add(tree, &Registry::builtin(), name, terms, Time::ZERO)
}

#[test]
fn withdrawn_reservations_leave_no_trace() {
    let registry = Registry::builtin();
    for text in [HFSC, WEIGHTS] {
        let base = spec(text);
        let (one, with_one) = add(&Reservations::new(1514), &base, "one", terms(500, Some(50))).unwrap();
        let (two, with_two) = add(&one, &with_one, "two", terms(800, None)).unwrap();
        assert_ne!(one.get("one").unwrap().class, two.get("two").unwrap().class);
        // The order in which they go does not matter.
        let (left, tree) = two.withdraw(&with_two, &registry, "one").unwrap();
        let (none, tree) = left.withdraw(&tree, &registry, "two").unwrap();
        assert!(none.is_empty() && tree == base, "{tree:?}");
        let (left, tree) = two.withdraw(&with_two, &registry, "two").unwrap();
        assert_eq!(
            (left, tree),
            (one, with_one),
            "the grant of `one` is as before `two`"
        );
    }
}

#[test]
fn soft_state_ends_by_itself() {
    let registry = Registry::builtin();
    let base = spec(HFSC);
    let (mut table, tree) = add(&Reservations::new(1514), &base, "call", terms(500, None)).unwrap();
    let at = Time::from_secs;
    assert_eq!(table.next_expiry(), Some(at(30)));
    assert!(table.expired(&tree, &registry, at(29)).is_none());
    table.refresh("call", at(20)).unwrap();
    assert!(table.expired(&tree, &registry, at(49)).is_none());
    let (left, after) = table.expired(&tree, &registry, at(50)).unwrap().unwrap();
    assert!(left.is_empty() && left.next_expiry().is_none() && after == base);
}

#[test]
fn a_change_that_is_refused_changes_nothing_and_says_what_is_left() {
    let registry = Registry::builtin();
    for text in [HFSC, WEIGHTS] {
        let (table, tree) = add(&Reservations::new(1514), &spec(text), "one", terms(4_000, None)).unwrap();
        match add(&table, &tree, "two", terms(7_000, None)) {
            Err(Refusal::Capacity { needed, left, link }) => {
                assert_eq!((needed, left, link), (7_000_000, 6_000_000, 10_000_000));
            }
            other => panic!("{other:?}"),
        }
        // 5000 bytes within 3 ms are more than the link has; what is offered instead is accepted.
        match add(&table, &tree, "two", terms(500, Some(3))) {
            Err(Refusal::Delay { wanted, best }) => {
                assert_eq!(wanted, Duration::from_millis(3));
                assert!(
                    best > wanted && best < Duration::from_millis(30),
                    "{text}: {best:?}"
                );
                let offered = Terms {
                    delay: Some(best),
                    ..terms(500, None)
                };
                add(&table, &tree, "two", offered).unwrap();
            }
            other => panic!("{text}: {other:?}"),
        }
        assert!(matches!(
            add(&table, &tree, "one", terms(1, None)),
            Err(Refusal::Exists { .. })
        ));
        let changed = table
            .change(&tree, &registry, "one", terms(5_000, Some(60)), Time::ZERO)
            .unwrap();
        assert_eq!(
            changed.0.get("one").unwrap().class,
            table.get("one").unwrap().class
        );
        assert!(
            table
                .change(&tree, &registry, "one", terms(11_000, None), Time::ZERO)
                .is_err()
        );
        assert!(table.withdraw(&tree, &registry, "none").is_err());
    }
}

#[test]
fn only_trees_with_a_bound_hold_reservations() {
    let refusal = |text: &str| check_place(&spec(text)).unwrap_err();
    assert!(matches!(refusal("fifo"), Refusal::NoLink { root: "fifo" }));
    assert!(matches!(
        refusal("tbf rate=1mbit burst=5kb / fq_codel"),
        Refusal::NoBound {
            discipline: "fq_codel"
        }
    ));
    let htb = "tbf rate=1mbit burst=5kb / htb default=1 { 1 rate=1mbit / fifo }";
    assert!(matches!(refusal(htb), Refusal::NoBound { discipline: "htb" }));
    let overhead = "tbf rate=1mbit burst=5kb overhead=10 / hfsc default=1 { 1 ls=1mbit / fifo }";
    assert!(matches!(
        refusal(overhead),
        Refusal::LinkLayer {
            parameter: "overhead"
        }
    ));
    for text in [HFSC, WEIGHTS] {
        check_place(&spec(text)).unwrap();
    }
}

#[test]
fn terms_that_contradict_each_other_are_refused() {
    let base = spec(HFSC);
    let refused = |change: fn(&mut Terms)| {
        let mut wrong = terms(500, None);
        change(&mut wrong);
        let error = add(&Reservations::new(1514), &base, "call", wrong).unwrap_err();
        assert!(!error.help().is_empty());
        error
    };
    assert!(matches!(refused(|it| it.burst = 999), Refusal::Terms { .. }));
    assert!(matches!(
        refused(|it| it.max_packet = 1_515),
        Refusal::Terms { .. }
    ));
    assert!(matches!(
        refused(|it| it.min_packet = 1_001),
        Refusal::Terms { .. }
    ));
    assert!(matches!(refused(|it| it.min_packet = 13), Refusal::Terms { .. }));
    assert!(matches!(
        refused(|it| it.lifetime = Duration::ZERO),
        Refusal::Terms { .. }
    ));
    assert!(matches!(refused(|it| it.filter.clear()), Refusal::Terms { .. }));
    assert!(matches!(
        refused(|it| it.peak = Some(Rate::from_bits_per_second(499_999).unwrap())),
        Refusal::Terms { .. }
    ));
    for outcome in ["class=1", "police.rate=1mbit", "police=", "goto=3", "chain=3"] {
        let mut wrong = terms(500, None);
        wrong.filter = format!("dscp=EF {outcome}");
        let error = add(&Reservations::new(1514), &base, "call", wrong).unwrap_err();
        assert!(error.to_string().contains("is no condition"), "{error}");
    }
    let lines = |it: &mut Terms| it.filter = "dscp=1\nclass delete 1/1".to_owned();
    assert!(matches!(refused(lines), Refusal::Terms { .. }));
    // One packet of 1514 bytes takes 1.2 ms of the link.
    let soon = |it: &mut Terms| it.delay = Some(Duration::from_millis(1));
    assert!(matches!(refused(soon), Refusal::TooShort { .. }));
    assert!(matches!(
        refused(|it| it.filter = "dscp=99".to_owned()),
        Refusal::Tree(_)
    ));
}

/// A reservation goes into a tree that was read again, and other changes must leave it alone.
#[test]
fn reservations_stay_when_the_tree_changes() {
    let registry = Registry::builtin();
    for text in [HFSC, WEIGHTS] {
        let base = spec(text);
        let (table, tree) = add(&Reservations::new(1514), &base, "call", terms(500, Some(50))).unwrap();
        let (again, same) = table.moved(&base, &registry).unwrap();
        assert_eq!((&again, &same), (&table, &tree));
        let slower = tree.edited("queue change root rate=400kbit", &registry).unwrap();
        assert!(
            table.after(&tree, &slower, &registry).is_err(),
            "the link is too slow now"
        );
        let class = table.get("call").unwrap().class;
        let without = tree
            .edited(
                &format!("filter delete in=1 1\nclass delete 1/{class}"),
                &registry,
            )
            .unwrap();
        assert!(matches!(
            table.after(&tree, &without, &registry),
            Err(Refusal::Disturbed { .. })
        ));
        let more = tree.edited("queue change 1/1 codel", &registry).unwrap();
        let (_, kept) = table.after(&tree, &more, &registry).unwrap();
        assert_eq!(kept, more);
    }
    // Another class with a large weight lowers all shares: the reservation gets a larger weight.
    let base = spec(WEIGHTS);
    let (table, tree) = add(&Reservations::new(1514), &base, "call", terms(500, None)).unwrap();
    let more = tree
        .edited("class add 1/2 weight=3000 / fifo", &registry)
        .unwrap();
    let (table, kept) = table.after(&tree, &more, &registry).unwrap();
    assert_ne!(kept, more);
    assert!(table.get("call").unwrap().grant.rate >= 500_000);
}

/// Excess packets need a class that they can go to.
#[test]
fn excess_packets_go_to_the_default_class_or_are_dropped() {
    let registry = Registry::builtin();
    let base = spec("tbf rate=10mbit burst=5kb / hfsc { 1 ls=10mbit / fifo }");
    let error = add(&Reservations::new(1514), &base, "call", terms(500, None)).unwrap_err();
    assert!(error.to_string().contains("has no default class"), "{error}");
    let dropping = Terms {
        excess: Excess::Drop,
        ..terms(500, None)
    };
    add(&Reservations::new(1514), &base, "call", dropping).unwrap();
    // The default can neither be taken away, nor be a reserved class.
    let (table, tree) = add(&Reservations::new(1514), &spec(HFSC), "call", terms(500, None)).unwrap();
    let class = table.get("call").unwrap().class;
    for default in [String::new(), class.to_string()] {
        let changed = tree
            .edited(&format!("queue change 1 default={default}"), &registry)
            .unwrap();
        table.after(&tree, &changed, &registry).unwrap_err();
    }
    // Nobody else changes the policer.
    let changed = tree
        .edited("filter change in=1 1 police.burst=9kb", &registry)
        .unwrap();
    let error = table.after(&tree, &changed, &registry).unwrap_err();
    assert!(matches!(error, Refusal::Disturbed { .. }), "{error}");
}

/// With a peak rate and short packets the bucket does not come at once. So shorter delays are possible, and
/// less has to be reserved for the same delay.
#[test]
fn a_peak_rate_admits_what_a_bucket_alone_does_not() {
    for text in [HFSC, WEIGHTS] {
        let none = Reservations::new(1514);
        let with_peak = |peak, millis| Terms {
            burst: 20_000,
            peak: Some(Rate::mbit(peak)),
            ..terms(500, Some(millis))
        };
        let without = |millis| Terms {
            peak: None,
            ..with_peak(1, millis)
        };
        // 20,000 bytes take 16 ms of the link.
        let refused = add(&none, &spec(text), "call", without(15)).unwrap_err();
        assert!(matches!(refused, Refusal::Delay { .. }), "{text}: {refused}");
        add(&none, &spec(text), "call", with_peak(4, 15)).unwrap();
        let filled = |terms: Terms| {
            let (mut table, mut tree) = (none.clone(), spec(text));
            for number in 0..100 {
                match add(&table, &tree, &format!("call{number}"), terms.clone()) {
                    Ok(changed) => (table, tree) = changed,
                    Err(_) => return number,
                }
            }
            100
        };
        let (few, more) = (filled(without(60)), filled(with_peak(2, 60)));
        assert!(
            few > 0 && more > few,
            "{text}: {few} without a peak rate, {more} with it"
        );
        // A peak rate far above the link's is hardly better than none, and never worse.
        assert!(filled(with_peak(10_000, 60)) >= few, "{text}");
    }
}

/// What a path adds up, and where there is nothing to add up.
#[test]
fn error_terms_are_those_of_the_bound() {
    let errors = |text: &str, millis| {
        let (table, _) = add(&Reservations::new(1514), &spec(text), "call", terms(500, millis)).unwrap();
        let grant = table.get("call").unwrap().grant.clone();
        (grant.error_terms, grant)
    };
    // 1514 bytes take 1211.2 us, and the clock's resolution is 1 us.
    let one = Duration::from_nanos(1_212_200);
    let (terms_of_rate, grant) = errors(HFSC, None);
    assert_eq!(terms_of_rate, Ok(ErrorTerms { c: 1_000, d: one }));
    // For one hop the sum has a packet more than the promise: it goes on only when all of it is there.
    let at_rate = |bytes: u64, rate: u64| Duration::from_nanos((bytes * 8_000_000_000).div_ceil(rate));
    assert_eq!(at_rate(5_000, grant.rate) + one, grant.delay);
    let (two_slopes, _) = errors(HFSC, Some(20));
    assert_eq!(two_slopes, Err(NoErrorTerms::TwoSlopes));
    assert!(NoErrorTerms::TwoSlopes.to_string().contains("two slopes"));
    for millis in [None, Some(30)] {
        let (found, grant) = errors(WEIGHTS, millis);
        let two = Duration::from_nanos(2 * 1_211_200 + 1_000);
        assert_eq!(
            found,
            Ok(ErrorTerms { c: 2_000, d: two }),
            "wf2q+: L_k, and the packet that goes on"
        );
        let by_terms = at_rate(5_000 + 1_000, grant.rate) + two;
        assert!(
            by_terms.abs_diff(grant.delay) < Duration::from_micros(1),
            "{by_terms:?} {:?}",
            grant.delay
        );
    }
    for other in ["qfq", "s_kps", "gfq", "scfq"] {
        let (found, grant) = errors(&WEIGHTS.replace("wf2q_plus", other), Some(60));
        let ErrorTerms { c, d } = found.unwrap();
        let by_terms = at_rate(5_000 + c - 1_000, grant.rate) + d;
        assert!(
            by_terms + Duration::from_micros(1) >= grant.delay,
            "{other}: {by_terms:?} {:?}",
            grant.delay
        );
    }
}

/// A number of any magnitude.
fn magnitude(most: u64) -> impl Strategy<Value = u64> {
    (0..64 - most.leading_zeros(), any::<u64>()).prop_map(move |(bits, number)| {
        let number = (number | 1 << 63) >> (63 - bits);
        number.min(most)
    })
}

proptest! {
    /// Terms of any size are granted or refused, and what is granted is within what was asked for.
    #[test]
    fn terms_of_any_size_are_answered(
        link in magnitude(100_000_000_000),
        part in 1_u64..1_000_000,
        burst in magnitude(u32::MAX.into()),
        peak in prop::option::of(magnitude(u64::MAX)),
        packets in (14_u32..=1514, 14_u32..=1514),
        nanos in prop::option::of(magnitude(1 << 52)),
        scheduler in prop::sample::select(&["hfsc", "wf2q_plus", "qfq", "s_kps", "gfq", "scfq"][..]),
    ) {
        let (link, rate) = (link.next_multiple_of(8), (link / part).max(1));
        let class = if scheduler == "hfsc" { format!("ls={link}bit") } else { "weight=999".to_owned() };
        let text = format!("tbf rate={link}bit burst=5kb / {scheduler} default=1 {{ 1 {class} / fifo }}");
        let tree = Spec::inline(&text).unwrap();
        let bits = |bits| Rate::from_bits_per_second(bits).unwrap();
        let asked = Terms {
            rate: bits(rate),
            burst: burst.max(packets.1.into()),
            peak: peak.map(bits),
            min_packet: packets.0.min(packets.1),
            max_packet: packets.1,
            delay: nanos.map(Duration::from_nanos),
            ..terms(1, None)
        };
        let answer = add(&Reservations::new(1514), &tree, "call", asked.clone());
        // A refusal says what is wrong with the terms. The tree that follows from them is never at fault.
        prop_assert!(!matches!(answer, Err(Refusal::Tree(_))), "{answer:?} for {asked:?}");
        if let Ok((table, _)) = answer {
            let grant = &table.get("call").unwrap().grant;
            let least = asked.peak.map_or(asked.rate, |peak| peak.min(asked.rate));
            prop_assert!(grant.rate >= least.bits_per_second());
            prop_assert!(asked.delay.is_none_or(|delay| grant.delay <= delay), "{grant:?} for {asked:?}");
        }
    }
}
