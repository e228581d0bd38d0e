//! Every scheduler against what is published of it, over random and adversarial traffic.

use fairgate_theory::guarantees::adversary::{Effort, search};
use fairgate_theory::guarantees::candidates::{CANDIDATES, Candidate};
use fairgate_theory::guarantees::trial::{Finding, examine};

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
    for finding in findings.random.iter().chain(&findings.adversarial) {
        if let Some(bound) = finding.bound {
            assert!(
                finding.severity > 0.1,
                "{}: a bound of {bound} of which {} is far",
                candidate.name,
                finding.measured
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

/// Deliberately broken schedulers: others under a name that promises more.
#[test]
fn a_scheduler_that_breaks_its_promise_is_caught() {
    let named = |name: &str| {
        *CANDIDATES
            .iter()
            .find(|candidate| candidate.name == name)
            .expect("listed")
    };
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
