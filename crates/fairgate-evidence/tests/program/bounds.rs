//! `fairgate-lab bounds` as users run it, with the effort `quick`.

use std::process::{Command, Output};

use serde_json::Value;

fn bounds(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairgate-lab"))
        .arg("bounds")
        .args(arguments)
        .output()
        .expect("the program starts")
}

#[test]
fn json_csv_and_text_have_the_same_values() {
    let scratch = tempfile::tempdir().unwrap();
    let csv = scratch.path().join("bounds.csv");
    let quick = ["drr", "fifo", "--effort", "quick"];
    let page = scratch.path().join("bounds.html");
    let figure = scratch.path().join("growth.svg");
    let files = [&csv, &page, &figure].map(|path| ["--out", path.to_str().unwrap()]);
    let with_csv = [&quick[..], &["--json"], &files.concat()].concat();
    let output = bounds(&with_csv);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(document["schema"], "fairgate.bounds/1");
    assert_eq!(document["schedulers"][0]["scheduler"], "drr");
    let row = &document["schedulers"][0]["measures"][0];
    assert_eq!((&row["measure"], &row["within"]), (&"b_wfi".into(), &true.into()));
    assert_eq!(document["schedulers"][1]["measures"][0]["within"], Value::Null);
    // With deficit round robin, a heavy flow waits for a packet of each light flow.
    let heavy = &document["schedulers"][0]["heavy_b_wfi"];
    assert!(
        heavy[6].as_f64().unwrap() > 20.0 * heavy[0].as_f64().unwrap(),
        "{heavy}"
    );

    let lines = std::fs::read_to_string(&csv).unwrap();
    let measured = row["adversarial"]["measured"].to_string();
    assert!(
        lines
            .lines()
            .any(|line| line.starts_with("drr,b_wfi,bytes,adversarial,") && line.contains(&measured))
    );

    let page = std::fs::read_to_string(&page).unwrap();
    for part in ["<svg", "Shreedhar", "within", "no flow is isolated from another"] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    let figure = std::fs::read_to_string(&figure).unwrap();
    assert_eq!(
        figure.matches("<path class=\"line").count(),
        1,
        "only drr has weights: {figure}"
    );

    let text = bounds(&quick);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("b_wfi_anywhere") && text.contains("within") && text.contains("N = 256"),
        "{text}"
    );
}

#[test]
fn the_error_for_an_unknown_scheduler_lists_the_known_ones() {
    let output = bounds(&["quick_fair"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("wf2q_plus"));
}

#[test]
fn unmeasured_schedulers_and_unknown_formats_are_rejected_before_the_work() {
    let output = bounds(&["msfc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("unfair on purpose")
    );
    let output = bounds(&["fifo", "--out", "bounds.png"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains(".csv, .html, .svg or .json")
    );
}
