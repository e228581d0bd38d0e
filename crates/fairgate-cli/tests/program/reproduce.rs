//! `fairgate reproduce` and `fairgate theory`.

use super::{ends, json};

#[test]
fn without_a_name_the_experiments_are_listed() {
    let (text, _) = ends(&["reproduce"], 0);
    let list = json(&["reproduce", "--json"], 0);
    assert_eq!(list["schema"], "fairgate.experiments/1");
    for experiment in list["experiments"].as_array().expect("a list") {
        assert!(text.contains(experiment["id"].as_str().expect("a name")));
    }
}

#[test]
fn an_unknown_experiment_is_an_error_that_names_the_known_ones() {
    let (_, errors) = ends(&["reproduce", "sqf-fig33"], 2);
    assert!(
        errors.contains("no experiment `sqf-fig33`") && errors.contains("sqf-fig3"),
        "{errors}"
    );
}

#[test]
fn an_experiment_prints_its_claims_and_writes_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("a path of text");
    let result = json(
        &[
            "reproduce",
            "sqf-fig3",
            "--quick",
            "--seeds",
            "1",
            "--json",
            "--out",
            out,
        ],
        0,
    );
    assert_eq!(result["schema"], "fairgate.reproduce/1");
    assert_eq!(result["experiments"][0]["holds"], true);
    for name in [
        "result.json",
        "measured.csv",
        "curves.csv",
        "page.html",
        "figure-1.svg",
        "figure-2.svg",
    ] {
        let file = folder.path().join("sqf-fig3").join(name);
        assert!(file.metadata().is_ok_and(|file| file.len() > 200), "{name}");
    }
}

#[test]
fn theory_prints_formulas_beside_measured_values() {
    let result = json(&["theory", "md1", "--load", "0.8", "--seeds", "2", "--json"], 0);
    let row = &result["rows"][0]["values"];
    let (formula, measured) = (
        row[0]["value"].as_f64().unwrap(),
        row[1]["value"].as_f64().unwrap(),
    );
    assert!((measured / formula - 1.0).abs() < 0.05, "{formula} {measured}");
    let (_, errors) = ends(&["theory", "mm1", "--load", "1.2"], 2);
    assert!(errors.contains("the load is 1.2"), "{errors}");
}
