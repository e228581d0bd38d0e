//! `fairgate bounds` as users run it, with little effort.

use std::process::{Command, Output};

use serde_json::Value;

fn bounds(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairgate"))
        .arg("bounds")
        .args(arguments)
        .output()
        .expect("the program starts")
}

#[test]
fn the_same_figures_in_json_csv_and_text() {
    let desk = tempfile::tempdir().unwrap();
    let csv = desk.path().join("bounds.csv");
    let quick = ["drr", "fifo", "--effort", "quick"];
    let with_csv = [&quick[..], &["--json", "--csv", csv.to_str().unwrap()]].concat();
    let output = bounds(&with_csv);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(document["schema"], "fairgate.bounds/1");
    assert_eq!(document["schedulers"][0]["scheduler"], "drr");
    let row = &document["schedulers"][0]["measures"][0];
    assert_eq!((&row["measure"], &row["within"]), (&"b_wfi".into(), &true.into()));
    assert_eq!(document["schedulers"][1]["measures"][0]["within"], Value::Null);
    // Deficit round robin: a heavy flow waits for a packet of each light one.
    let heavy = &document["schedulers"][0]["heavy_b_wfi"];
    assert!(
        heavy[3].as_f64().unwrap() > 10.0 * heavy[0].as_f64().unwrap(),
        "{heavy}"
    );

    let lines = std::fs::read_to_string(&csv).unwrap();
    let measured = row["adversarial"]["measured"].to_string();
    assert!(
        lines
            .lines()
            .any(|line| line.starts_with("drr,b_wfi,bytes,adversarial,") && line.contains(&measured))
    );

    let text = bounds(&quick);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("b_wfi_anywhere") && text.contains("within") && text.contains("N = 256"),
        "{text}"
    );
}

#[test]
fn an_unknown_scheduler_is_refused_with_those_there_are() {
    let output = bounds(&["quick_fair"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("wf2q_plus"));
}
