//! Every scheduler against what is published of it, over random and adversarial traffic.

use fairgate_theory::guarantees::adversary::{Effort, search};
use fairgate_theory::guarantees::candidates::{CANDIDATES, Candidate};
use fairgate_theory::guarantees::traffic::Traffic;
use fairgate_theory::guarantees::trial::{Finding, Kind, examine};
use fairgate_theory::measured::Dice;

/// `PROPTEST_CASES`, as for all soaks, over its default.
fn effort() -> Effort {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse::<u32>().ok());
    Effort::QUICK.times((cases.unwrap_or(256) / 256).max(1))
}

fn keeps_its_bounds(candidate: &Candidate) {
    let findings = search(candidate, effort(), 1, &mut || ()).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        findings.all_within(),
        "{}: {:#?}",
        candidate.name,
        findings.broken
    );
    // A bound that nothing comes near to, by chance or on purpose, is not one that is tested.
    for kind in Kind::ALL {
        let all = findings.random.iter().chain(&findings.adversarial);
        let worst = all
            .filter(|finding| finding.kind == kind && finding.bound.is_some())
            .max_by(|a, b| a.severity.total_cmp(&b.severity));
        if let Some(finding) = worst {
            assert!(
                finding.severity > 0.1,
                "{}: far below its bound: {finding:?}",
                candidate.name
            );
        }
    }
}

/// A test for each half of the candidates, so that they run at the same time.
#[test]
fn nothing_measured_is_above_its_bound() {
    CANDIDATES.iter().step_by(2).for_each(keeps_its_bounds);
}

#[test]
fn nothing_measured_is_above_its_bound_either() {
    CANDIDATES.iter().skip(1).step_by(2).for_each(keeps_its_bounds);
}

fn named(name: &str) -> Candidate {
    let found = CANDIDATES.iter().find(|candidate| candidate.name == name);
    *found.expect("listed")
}

/// Theorem 7 of Checconi, Rizzo & Valente has `3 phi sigma + 2 phi L`. The bound that its proof gives is a packet of the flow
/// more, and some of it is reached.
#[test]
fn short_packets_after_a_long_one_exceed_theorem_7_of_qfq() {
    let mut dice = Dice::new(1, "theorem 7");
    let mut most = 0.0f64;
    for _ in 0..20 {
        let traffic = Traffic::short_after_long(&mut dice);
        let found = examine(&named("qfq"), &traffic, &[Kind::BWfi, Kind::TWfi]).expect("it takes all flows");
        assert!(found.iter().all(|finding| !finding.is_above), "{found:?}");
        let finding = &found[0];
        let longest = f64::from(traffic.max_packets[finding.flow as usize]);
        most = most.max(finding.measured / (finding.bound.expect("there is one") - longest));
    }
    assert!(most > 1.05, "{most} of theorem 7's bound");
}

/// With the sum of the weights of busy flows virtual time may not run away from a flow that waits: those that come later would be put
/// back to its finish, and go before those that are there.
#[test]
fn who_comes_after_few_does_not_hurt_who_came_before() {
    let mut dice = Dice::new(1, "live sum");
    for _ in 0..20 {
        let traffic = Traffic::many_after_few(&mut dice);
        let found = examine(&named("qfq"), &traffic, &[Kind::BWfi, Kind::TWfi]).expect("it takes all flows");
        assert!(found.iter().all(|finding| !finding.is_above), "{found:?}");
    }
}

/// Deliberately broken schedulers: others under a name that promises more.
#[test]
fn a_scheduler_that_breaks_its_promise_is_caught() {
    for (real, pretended) in [("drr", "wf2q_plus"), ("scfq", "qfq"), ("fifo", "drr")] {
        let impostor = named(real).judged_as(pretended);
        let findings = search(&impostor, effort(), 1, &mut || ()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!findings.all_within(), "{real} passed for {pretended}");
        for (finding, traffic) in &findings.broken {
            let again: Vec<Finding> =
                examine(&impostor, traffic, &[finding.kind]).expect("it was tried before");
            // The traffic that is handed out is the one that breaks it.
            assert_eq!(again, std::slice::from_ref(finding));
        }
    }
}
