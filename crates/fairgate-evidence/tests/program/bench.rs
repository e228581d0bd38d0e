//! `fairgate-lab bench schedulers` as users run it, with few packets.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairgate-lab"))
        .args(["bench", "schedulers"])
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const TINY: [&str; 7] = [
    "--algorithms",
    "fifo,drr",
    "--flows",
    "1,8",
    "--runs",
    "1",
    "--no-instructions",
];

#[test]
fn a_small_run_writes_all_values_in_every_format() {
    let scratch = tempfile::tempdir().unwrap();
    let file = |name: &str| scratch.path().join(name).display().to_string();
    let outs = ["speed.csv", "speed.html", "speed.svg", "speed.json"].map(file);
    let mut arguments = TINY.to_vec();
    for out in &outs {
        arguments.extend(["--out", out]);
    }
    arguments.push("--json");
    let output = bench(&arguments);
    assert!(output.status.success(), "{}", text(&output.stdout));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(document["schema"], "fairgate.bench-schedulers/1");
    let results = document["results"].as_array().unwrap();
    let keys: Vec<_> = results
        .iter()
        .map(|result| {
            (
                result["algorithm"].as_str().unwrap(),
                result["flows"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(keys, [("fifo", 1), ("fifo", 8), ("drr", 1), ("drr", 8)]);
    for result in results {
        assert!(
            result["time"]["none"]["median"].as_f64().unwrap() > 0.0,
            "{result}"
        );
        assert!(result["time"]["pairs"].as_u64().unwrap() >= 100_000, "{result}");
        assert_eq!(
            (&result["error"], &result["instructions"]),
            (&Value::Null, &Value::Null)
        );
    }
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap();
    assert_eq!(read(&outs[0]).lines().count(), 5);
    assert!(read(&outs[1]).starts_with("<!DOCTYPE html>"));
    assert!(read(&outs[2]).contains("NONE"));
    assert_eq!(serde_json::from_str::<Value>(&read(&outs[3])).unwrap()["runs"], 1);
}

#[test]
fn the_table_has_a_row_for_each_measurement() {
    let output = bench(&TINY);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert_eq!(
        table.lines().filter(|line| line.starts_with("full ")).count(),
        4,
        "{table}"
    );
    assert!(table.contains("Lower limits: a memory access"), "{table}");
}

#[test]
fn invalid_arguments_give_exit_code_2() {
    for (arguments, said) in [
        (&["--algorithms", "wfq3"][..], "fifo"),
        (&["--flows", "2M"], "1048576"),
        (&["--sizes", "9000"], "2048"),
        (&["--out", "speed.png"], "the format of speed.png is unknown"),
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
}

/// The difference between two runs is only what is measured: a whole number of instructions for each pair.
#[test]
fn instructions_are_counted_if_valgrind_is_installed() {
    let arguments = [
        "--algorithms",
        "fifo",
        "--flows",
        "8",
        "--runs",
        "1",
        "--instructions",
        "8",
        "--json",
    ];
    let output = bench(&arguments);
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert_eq!(output.status.code(), Some(3));
        assert!(text(&output.stdout).contains("apt install valgrind"));
        return;
    }
    assert!(output.status.success(), "{}", text(&output.stdout));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = &document["results"][0]["instructions"];
    assert!(count["none"].as_f64().unwrap() > 50.0, "{count}");
    assert!((5.0..500.0).contains(&count["net"].as_f64().unwrap()), "{count}");
}
