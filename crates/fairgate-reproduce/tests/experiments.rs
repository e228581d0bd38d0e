//! Every experiment's files make sense, and every experiment runs.

use std::collections::BTreeSet;

use fairgate_reproduce::{EXPERIMENTS, Reproduction, find};

/// A short run with one seed.
fn quick(id: &str) -> Reproduction {
    let experiment = find(id).expect("it is in the list");
    experiment.reproduce(&[1], true, &|_, _| ()).expect("it runs")
}

fn mean(result: &Reproduction, measure: &str, case: &str) -> f64 {
    let row = result
        .rows
        .iter()
        .find(|row| row.measure == measure && row.case == case);
    row.and_then(|row| row.measured).expect("it was measured").mean
}

#[test]
fn files_are_right_and_names_are_unique() {
    let names: BTreeSet<_> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
    assert_eq!(names.len(), EXPERIMENTS.len());
    for experiment in EXPERIMENTS {
        let description = experiment.description().unwrap();
        assert!(experiment.id.starts_with(&description.paper), "{}", experiment.id);
        assert!(!description.claims.is_empty(), "{} claims nothing", experiment.id);
        experiment.published().unwrap();
    }
    assert!(find("no-such-experiment").is_none());
}

#[test]
fn shortest_queue_first_runs_and_every_published_value_has_its_measurement() {
    for id in ["sqf-fig3", "sqf-fig4"] {
        let result = quick(id);
        assert!(result.holds, "{id}: {:?}", result.claims);
        for row in &result.rows {
            assert!(
                row.measured.is_some(),
                "{id}: {}, {} was not measured",
                row.measure,
                row.case
            );
        }
        assert_eq!(result.charts.len(), 2);
        // The discipline itself ran for each number of flows.
        let runs = result
            .rows
            .iter()
            .filter(|row| row.case.ends_with("sqf, passed over"));
        assert_eq!(runs.count(), 3);
        if id == "sqf-fig3" {
            figures_of_the_sqf_analysis(&result);
        }
    }
}

fn figures_of_the_sqf_analysis(result: &Reproduction) {
    let at_six = |answer: &str| {
        mean(
            result,
            "probability within 10 min",
            &format!("n = 20, 6 Mbit/s: {answer}"),
        )
    };
    // An independent evaluation of the two formulas gave these.
    assert!((at_six("estimate, N(t) normal") - 0.006_323).abs() < 1e-5);
    assert!((at_six("estimate as printed") - 0.453).abs() < 0.005);
    assert!(at_six("exact") > 0.999_999);
}

#[test]
fn results_are_the_same_again_and_machines_can_read_them() {
    let (first, second) = (quick("sqf-fig4"), quick("sqf-fig4"));
    assert_eq!(first.rows_csv(), second.rows_csv());
    assert_eq!(first.curves_csv(), second.curves_csv());
    assert_eq!(first.rows_csv().lines().count(), first.rows.len() + 1);
    let page = first.page("fairgate reproduce sqf-fig4");
    assert!(page.contains("<svg") && page.contains("fairgate reproduce sqf-fig4"));
}
