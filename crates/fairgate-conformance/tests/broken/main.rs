//! The suite must find bugs: each broken discipline has one bug, which the check for it must find.

mod leaf;
mod parent;

use fairgate::queues::fifo::{self, DropFrom, Fifo};
use fairgate_conformance::proptest::prelude::*;
use fairgate_conformance::proptest::strategy::Just;
use fairgate_conformance::proptest::test_runner::{TestError, TestRunner};
use fairgate_conformance::{Recipe, Tree, cases, check};

use leaf::{Bug, Leaf};
use parent::Forgetful;

/// Runs the suite on `trees`. Returns the message of the first failure, after shrinking.
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

fn leaf_with(bug: Bug) -> BoxedStrategy<Tree> {
    let recipe = Recipe::leaf(move || Just(bug), |bug, _seed| Ok(Leaf::new(bug)));
    match bug {
        Bug::WakesAtOnce | Bug::NeverWakes => recipe.shaping(),
        _ => recipe,
    }
    .trees_of_fifos()
}

#[test]
fn the_leaf_without_a_bug_passes() {
    assert_eq!(verdict_on(leaf_with(Bug::None)), Ok(()));
}

#[test]
fn every_bug_of_a_leaf_is_found_by_its_check() {
    let checks = [
        (Bug::Leaks, "work:"),
        (Bug::ReturnsTwice, "once:"),
        (Bug::LyingPeek, "peek:"),
        (Bug::DropsShown, "peek:"),
        (Bug::DriftsInBytes, "conservation:"),
        (Bug::ForgetsFlush, "conservation:"),
        (Bug::Reorders, "order:"),
        (Bug::Withholds, "work:"),
        (Bug::WakesAtOnce, "watchdog:"),
        (Bug::NeverWakes, "progress:"),
        (Bug::Allocates, "allocation:"),
        (Bug::DependsOnSlots, "determinism:"),
        (Bug::MarksIncapable, "tampering:"),
        (Bug::WrongVerdict, "verdict:"),
        (Bug::KeepsOnFlush, "flush:"),
        (Bug::DropsOnRefusal, "refusal:"),
        (Bug::LosesArrival, "sojourn:"),
    ];
    for (bug, check) in checks {
        let message = verdict_on(leaf_with(bug)).expect_err("the bug must be found");
        assert!(
            message.contains(check),
            "{bug:?} was found by another check: {message}"
        );
    }
}

/// A classic bug: a child drops a packet by its own decision, and its parent's backlog still counts it.
#[test]
fn a_parent_that_ignores_drops_of_its_child_is_found() {
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
    let message = verdict_on(parent.trees(|| child)).expect_err("the bug must be found");
    assert!(message.contains("conservation:"), "found by: {message}");
}
