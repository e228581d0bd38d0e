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
    let page = desk.path().join("bounds.html");
    let figure = desk.path().join("growth.svg");
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
    // Deficit round robin: a heavy flow waits for a packet of each light one.
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
        "drr alone has weights: {figure}"
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

#[test]
fn what_is_left_out_is_refused_with_the_reason_and_an_unknown_format_before_anything_is_measured() {
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
