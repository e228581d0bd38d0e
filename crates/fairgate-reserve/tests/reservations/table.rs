//! The table of reservations: what is refused and why, soft state, and the tree in step with it.

use std::time::Duration;

use fairgate::{Rate, Time};
use fairgate_config::{Registry, Spec};
use fairgate_reserve::{Refusal, Reservations, Terms, check_place};

const HFSC: &str = "tbf rate=10mbit burst=5kb / hfsc default=1 { 1 ls=10mbit / fq_codel }";
const WEIGHTS: &str = "tbf rate=10mbit burst=5kb / wf2q_plus default=1 { 1 weight=1000 / fq_codel }";

fn terms(kilobits: u64, millis: Option<u64>) -> Terms {
    Terms {
        rate: Rate::from_bits_per_second(kilobits * 1_000).unwrap(),
        burst: 5_000,
        max_packet: 1_000,
        delay: millis.map(Duration::from_millis),
        filter: "destination_port=5004 protocol=udp".to_owned(),
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
        refused(|it| it.lifetime = Duration::ZERO),
        Refusal::Terms { .. }
    ));
    assert!(matches!(refused(|it| it.filter.clear()), Refusal::Terms { .. }));
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
