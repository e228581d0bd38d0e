//! The suite must find what is broken: disciplines with one fault each, to be caught by the check made for it.

mod leaf;
mod parent;

use fairgate::queues::fifo::{self, DropFrom, Fifo};
use fairgate_conformance::proptest::prelude::*;
use fairgate_conformance::proptest::strategy::Just;
use fairgate_conformance::proptest::test_runner::{TestError, TestRunner};
use fairgate_conformance::{Recipe, Tree, cases, check};

use leaf::{Fault, Leaf};
use parent::Forgetful;

/// Runs the suite on `trees`; the message of the first failure, shrunk.
fn verdict_on(trees: BoxedStrategy<Tree>) -> Result<(), String> {
    let outcome = TestRunner::deterministic().run(&cases(trees), |case| {
        check(&case);
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, _)) => Err(reason.to_string()),
        Err(TestError::Abort(reason)) => panic!("the suite gave up: {reason}"),
    }
}

fn leaf_with(fault: Fault) -> BoxedStrategy<Tree> {
    let recipe = Recipe::leaf(move || Just(fault), |fault, _seed| Ok(Leaf::new(fault)));
    match fault {
        Fault::WakesAtOnce | Fault::NeverWakes => recipe.shaping(),
        _ => recipe,
    }
    .trees_of_fifos()
}

#[test]
fn the_leaf_without_a_fault_passes() {
    assert_eq!(verdict_on(leaf_with(Fault::None)), Ok(()));
}

#[test]
fn every_fault_of_a_leaf_is_found_by_its_check() {
    let checks = [
        (Fault::Leaks, "work:"),
        (Fault::ReturnsTwice, "once:"),
        (Fault::LyingPeek, "peek:"),
        (Fault::DropsShown, "peek:"),
        (Fault::DriftsInBytes, "conservation:"),
        (Fault::ForgetsFlush, "conservation:"),
        (Fault::Reorders, "order:"),
        (Fault::Withholds, "work:"),
        (Fault::WakesAtOnce, "watchdog:"),
        (Fault::NeverWakes, "progress:"),
        (Fault::Allocates, "allocation:"),
        (Fault::DependsOnSlots, "determinism:"),
        (Fault::MarksIncapable, "tampering:"),
        (Fault::WrongVerdict, "verdict:"),
        (Fault::KeepsOnFlush, "flush:"),
        (Fault::DropsOnRefusal, "refusal:"),
        (Fault::LosesArrival, "sojourn:"),
    ];
    for (fault, check) in checks {
        let message = verdict_on(leaf_with(fault)).expect_err("a fault");
        assert!(message.contains(check), "{fault:?} was found, but by: {message}");
    }
}

/// The classic: a child drops a packet on its own account, and its parent's backlog does not follow.
#[test]
fn a_parent_that_forgets_what_its_child_dropped_is_found() {
    let head_drop = || {
        Just(fifo::Config {
            limit_packets: Some(2),
            limit_bytes: None,
            drop_from: DropFrom::Head,
        })
    };
    let child = Recipe::leaf(head_drop, |config, _seed| Fifo::node(config)).trees_of_fifos();
    let parent = Recipe::classful(
        1..=1,
        |_classes| Just(()),
        |(), _seed, mut children| Ok(Forgetful::new(children.remove(0))),
    );
    let message = verdict_on(parent.trees(|| child)).expect_err("a fault");
    assert!(message.contains("conservation:"), "found by: {message}");
}
