//! Tests of the registry and of the range check.

use super::*;
use crate::queues::fifo;
use crate::rounds::{drr, drr_classes};

/// The same as fifo, with another name.
static OTHER: Description<fifo::Config> = Description::new(
    About::new("other", "A queue", "In this test."),
    fifo::PARAMETERS,
    |_| fifo::Config::default(),
    |config, _| Ok(alloc::boxed::Box::new(fifo::Fifo::node(config)?)),
);

#[test]
fn a_discipline_is_added_once() {
    let mut registry = Registry::builtin();
    let before = registry.iter().len();
    assert_eq!(registry.add(&OTHER), Ok(()));
    assert_eq!(registry.add(&OTHER), Err(NameTaken { name: "other" }));
    assert_eq!(registry.add(&fifo::DESCRIPTION), Err(NameTaken { name: "fifo" }));
    assert_eq!(registry.iter().len(), before + 1);
    assert_eq!(registry.entries("other").count(), 1);
    assert!(registry.names().any(|name| name == "other"));
    assert_eq!(Registry::builtin().iter().len(), before);
}

#[test]
fn two_with_the_same_name_are_listed_without_classes_first() {
    let of = |first: &'static dyn Entry, second: &'static dyn Entry| {
        let mut registry = Registry {
            entries: vec![&OTHER],
            sections: Vec::new(),
        };
        registry.add(first).expect("the name is free");
        registry.add(second).expect("only one has classes");
        let kinds = registry.entries("drr");
        let kinds: Vec<_> = kinds.map(|entry| entry.about().children.are_classes()).collect();
        (kinds, registry.names().count())
    };
    let expected = (vec![false, true], 2);
    assert_eq!(of(&drr::DESCRIPTION, &drr_classes::DESCRIPTION), expected);
    assert_eq!(of(&drr_classes::DESCRIPTION, &drr::DESCRIPTION), expected);
}

#[test]
fn an_error_for_a_value_out_of_range_names_parameter_rule_and_remedy() {
    let mut config = fifo::Config {
        limit_packets: Some(0),
        ..fifo::Config::default()
    };
    let rejected = check_ranges(fifo::PARAMETERS, &mut config).expect_err("0 packets");
    assert_eq!(
        rejected.to_string(),
        "`limit` is 0, but must be at least 1, or none; choose a value in this range, or leave it out for \
            the default"
    );
    let mut config = drr_classes::Config {
        classes: vec![drr_classes::ClassConfig {
            minor: 10,
            quantum: 63,
        }],
        ..drr_classes::Config::default()
    };
    let rejected = check_class_ranges(drr_classes::CLASS_PARAMETERS, &mut config, 0, 10);
    let rejected = rejected.expect_err("63 bytes").to_string();
    assert!(
        rejected.starts_with("`quantum` of class a is 63b, but must be 64b to 1gb"),
        "{rejected}"
    );
}

#[test]
fn disciplines_of_one_tree_have_different_seeds() {
    let seeds: Vec<u64> = (0..100).map(|minor| tree::seed_of(7, minor)).collect();
    let mut distinct = seeds.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 100);
    assert!(!seeds.contains(&7));
}
