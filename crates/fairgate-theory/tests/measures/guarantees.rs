//! Compares every scheduler with its bounds, over random and adversarial traffic.

use fairgate_theory::guarantees::Kind;
use fairgate_theory::guarantees::adversary::{Effort, search};
use fairgate_theory::guarantees::candidates::{CANDIDATES, Candidate};
use fairgate_theory::guarantees::traffic::Traffic;
use fairgate_theory::guarantees::trial::{Finding, examine};
use fairgate_theory::measured::Dice;

/// Scales the effort by `PROPTEST_CASES` divided by its default, as all long tests do.
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
    // If no traffic comes near to a bound, the bound is not tested.
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

/// The candidates are split into two tests, so that they run in parallel.
#[test]
fn no_value_is_above_its_bound_for_even_candidates() {
    CANDIDATES.iter().step_by(2).for_each(keeps_its_bounds);
}

#[test]
fn no_value_is_above_its_bound_for_odd_candidates() {
    CANDIDATES.iter().skip(1).step_by(2).for_each(keeps_its_bounds);
}

fn named(name: &str) -> Candidate {
    let found = CANDIDATES.iter().find(|candidate| candidate.name == name);
    *found.expect("listed")
}

/// Theorem 7 of Checconi, Rizzo & Valente states `3 phi sigma + 2 phi L`. The bound that its proof gives is
/// one packet of the flow more, and this traffic reaches a part of that.
#[test]
fn short_packets_after_a_long_one_exceed_theorem_7_of_qfq() {
    let mut dice = Dice::new(1, "theorem 7");
    let mut most = 0.0f64;
    for _ in 0..20 {
        let traffic = Traffic::short_after_long(&mut dice);
        let found = examine(&named("qfq"), &traffic, &[Kind::BWfi, Kind::TWfi]).expect("the trial succeeds");
        assert!(found.iter().all(|finding| !finding.is_above), "{found:?}");
        let printed = named("qfq").by_printed_bounds().expect("theorem 7 is printed");
        let found = examine(&printed, &traffic, &[Kind::BWfi]).expect("the trial succeeds");
        most = most.max(found[0].severity);
    }
    assert!(most > 1.05, "{most} of theorem 7's bound");
}

/// Virtual time advances by the weights of the busy flows. It must not run ahead of a flow that waits.
/// Otherwise later flows are set back to that flow's finish, and go before flows that are already backlogged.
#[test]
fn flows_that_arrive_after_few_do_not_delay_earlier_flows() {
    let mut dice = Dice::new(1, "live sum");
    for _ in 0..20 {
        let traffic = Traffic::many_after_few(&mut dice);
        let found = examine(&named("qfq"), &traffic, &[Kind::BWfi, Kind::TWfi]).expect("the trial succeeds");
        assert!(found.iter().all(|finding| !finding.is_above), "{found:?}");
    }
}

/// Schedulers that are broken on purpose: each has the name of another one with tighter bounds.
#[test]
fn a_scheduler_that_exceeds_its_bounds_is_found() {
    for (real, pretended) in [("drr", "wf2q_plus"), ("scfq", "qfq"), ("fifo", "drr")] {
        let impostor = named(real).judged_as(pretended);
        let findings = search(&impostor, effort(), 1, &mut || ()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!findings.all_within(), "{real} passed as {pretended}");
        for (finding, traffic) in &findings.broken {
            let again: Vec<Finding> =
                examine(&impostor, traffic, &[finding.kind]).expect("the first trial succeeded");
            // The returned traffic is the one that exceeds the bound.
            assert_eq!(again, std::slice::from_ref(finding));
        }
    }
}
