//! `fairgate simulate` as users run it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::snapshot::assert_snapshot;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairgate");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/dumbbell.toml");

fn simulate(arguments: &[&str]) -> Output {
    simulate_file(EXAMPLE, arguments)
}

fn simulate_file(file: &str, arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(["simulate", file])
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).expect("the program prints text")
}

/// Compares the table of the example to the last digit. After an intended change, FAIRGATE_BLESS=1 writes it
/// again.
#[test]
fn the_table_is_equal_to_the_snapshot() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/dumbbell.txt");
    assert_snapshot(&path, &stdout(&simulate(&[])));
}

#[test]
fn the_result_depends_on_the_seed() {
    let json = |seed: &str| stdout(&simulate(&["--duration", "6s", "--json", "--seed", seed]));
    let one = json("1");
    assert_eq!(one, json("1"));
    assert_ne!(one, json("2"));
    let value: Value = serde_json::from_str(&one).expect("one JSON document");
    assert_eq!(value["schema"], "fairgate.simulate/1");
    assert_eq!(value["seed"], 1);
    assert_eq!(value["duration_ns"], 6_000_000_000u64);
}

/// Each subscriber gets the rate of the class, whatever the number of downloads. A call is not delayed by the
/// packets of other subscribers.
#[test]
fn subscribers_get_a_class_each() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/isp.toml");
    let results: Value = serde_json::from_str(&stdout(&simulate_file(file, &["--duration", "6s", "--json"])))
        .expect("one JSON document");
    let flows = results["flows"].as_array().expect("a list of flows");
    for subscriber in ["anna", "ben", "carla"] {
        let own = flows.iter().filter(|flow| flow["destination"] == subscriber);
        let bits: f64 = own.filter_map(|flow| flow["goodput_bps"].as_f64()).sum();
        // With 50 Mbit/s on the link, 54 or 66 of each 1514 bytes are headers.
        assert!((46.0e6..48.5e6).contains(&bits), "{subscriber} got {bits} bit/s");
    }
    let call = flows
        .iter()
        .find(|flow| flow["group"] == "call")
        .expect("there is a call");
    assert_eq!(call["lost"], 0);
    assert!(call["delay"]["mean_ns"].as_f64() < Some(10e6), "{call}");
}

#[test]
fn results_are_written_to_files_by_extension_and_to_folders() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    for name in ["results.json", "flows.csv", "flows.parquet", "folder"] {
        let path = at(name);
        stdout(&simulate(&["--duration", "6s", "--out", path.to_str().unwrap()]));
    }
    let csv = std::fs::read_to_string(at("flows.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 6);
    assert!(
        csv.starts_with("flow,group,source,destination,transport,sent,"),
        "{csv}"
    );
    assert_eq!(&std::fs::read(at("flows.parquet")).unwrap()[..4], b"PAR1");
    let json: Value = serde_json::from_slice(&std::fs::read(at("results.json")).unwrap()).unwrap();
    assert_eq!(json["flows"].as_array().unwrap().len(), 6);
    let mut names: Vec<PathBuf> = std::fs::read_dir(at("folder"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into())
        .collect();
    names.sort();
    let expected = [
        "flows.csv",
        "flows.parquet",
        "groups.csv",
        "groups.parquet",
        "interfaces.csv",
        "interfaces.parquet",
        "results.json",
        "series.csv",
        "series.parquet",
    ];
    assert_eq!(names, expected.map(PathBuf::from));
    assert_eq!(std::fs::read(at("folder/flows.csv")).unwrap(), csv.as_bytes());
}

#[test]
fn invalid_input_gives_exit_code_2_and_a_message() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("broken.toml");
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
    let text = text.replace("b = \"provider\"", "b = \"island\"");
    std::fs::write(&file, text).unwrap();
    let no_path = Command::new(PROGRAM).arg("simulate").arg(&file).output().unwrap();
    let ending = simulate(&["--out", "results.xlsx"]);
    let short = simulate(&["--duration", "2s"]);
    for (output, said) in [
        (&no_path, "no path from `servers` to `home`"),
        (&ending, "is unknown"),
        (&short, "before the measurement begins"),
    ] {
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(said) && !stderr.contains("panicked"), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}

/// Runs on a file system of 8 kB in its own mount namespace.
#[test]
fn a_full_disk_leaves_no_half_written_file() {
    let scratch = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=8k none \"$1\" || exit 99
        \"$2\" simulate \"$3\" --duration 6s --out \"$1\"/results.json >&2
        echo \"code $?\"
        ls -A \"$1\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(scratch.path())
        .args([PROGRAM, EXAMPLE])
        .output();
    let output = match output {
        Ok(output) if output.status.code() != Some(99) && !output.stdout.is_empty() => output,
        _ => {
            // Written directly, because the test harness captures what `eprintln!` prints.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: a_full_disk_leaves_no_half_written_file needs root to mount a tmpfs"
            );
            return;
        }
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "code 3\n", "{stderr}");
    assert!(stderr.contains("No space left"), "{stderr}");
}

/// The means of several seeds are those of the single runs, and do not depend on the number of jobs.
#[test]
fn several_seeds_give_means_with_intervals() {
    let arguments = ["--duration", "6s", "--seed", "3", "--seeds", "4", "--json"];
    let text = stdout(&simulate(&arguments));
    assert_eq!(
        text,
        stdout(&simulate(&[&arguments[..], &["--jobs", "1"]].concat()))
    );
    let all: Value = serde_json::from_str(&text).expect("one JSON document");
    assert_eq!(all["schema"], "fairgate.simulate-seeds/1");
    assert_eq!(all["seeds"], serde_json::json!([3, 4, 5, 6]));
    let single = |seed: &str| -> Value {
        let text = stdout(&simulate(&["--duration", "6s", "--json", "--seed", seed]));
        serde_json::from_str(&text).expect("one JSON document")
    };
    let goodputs: Vec<f64> = ["3", "4", "5", "6"]
        .map(|seed| single(seed)["groups"][0]["goodput_bps"].as_f64().unwrap())
        .to_vec();
    let mean = goodputs.iter().sum::<f64>() / 4.0;
    let estimate = &all["groups"][0]["goodput_bps"];
    assert!(
        (estimate["mean"].as_f64().unwrap() - mean).abs() < 1.0,
        "{estimate}"
    );
    assert!(estimate["low"].as_f64() < estimate["mean"].as_f64(), "{estimate}");
    assert_eq!(estimate["runs"], 4);
    let table = stdout(&simulate(&["--duration", "6s", "--seeds", "3"]));
    assert!(
        table.contains("Means of 3 seeds from 1 on") && table.contains(" ± "),
        "{table}"
    );
}

#[test]
fn the_tables_of_several_seeds_have_a_column_for_the_seed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("flows.csv");
    let out = path.to_str().expect("a plain path");
    stdout(&simulate(&["--duration", "6s", "--seeds", "2", "--out", out]));
    let text = std::fs::read_to_string(&path).expect("the table was written");
    let mut lines = text.lines();
    assert!(lines.next().expect("a header").starts_with("seed,flow,"));
    let seeds: Vec<&str> = lines.map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(seeds.len() % 2, 0);
    assert_eq!((seeds[0], seeds[seeds.len() - 1]), ("1", "2"));
}

#[test]
fn seeds_beyond_the_last_one_are_rejected() {
    let output = simulate(&["--seed", &u64::MAX.to_string(), "--seeds", "2"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("lower `--seed`"), "{error}");
}

/// Observed variables are in the text, in JSON, in a table of their own, and as means of several seeds.
#[test]
fn observed_variables_are_in_all_forms_of_the_results() {
    let folder = tempfile::tempdir().expect("a folder can be created");
    let file = folder.path().join("scenario.toml");
    let text = r#"
        [queue.fair]
        discipline = "drr"
        handle = "1"
        class = [{ id = 10, discipline = "codel" }, { id = 11, discipline = "fifo" }]
        default = 10
        [simulate]
        duration = "3s"
        measure = ["1s", "3s"]
        interval = "1s"
        [[simulate.link]]
        a = "a"
        b = "b"
        rate = "2mbit"
        queue = "fair"
        [[simulate.flow]]
        name = "poisson"
        from = "a"
        to = "b"
        udp = { rate = "1900kbit", size = "500b", pattern = "poisson" }
        [[simulate.observe]]
        name = "queue"
        interface = "a->b"
        class = "1:a"
        variable = "backlog_packets"
        [[simulate.observe]]
        name = "next drop"
        interface = "b->a"
        class = "10"
        variable = "drop_next"
    "#;
    std::fs::write(&file, text).expect("the file can be written");
    let file = file.to_str().expect("the path is text");
    let table = stdout(&simulate_file(file, &[]));
    let line = |start: &str| {
        let mut lines = table.lines();
        let line = lines.find(|line| line.trim_start().starts_with(start));
        line.unwrap_or_else(|| panic!("no line of {start}: {table}"))
            .to_owned()
    };
    assert!(
        line("queue").contains("a->b class 10") && line("queue").contains("packets"),
        "{table}"
    );
    assert!(line("next drop").contains(" - "), "{table}");

    let out = folder.path().join("results");
    stdout(&simulate_file(
        file,
        &["--out", out.to_str().expect("the path is text")],
    ));
    let read = |name: &str| std::fs::read_to_string(out.join(name)).expect("the file was written");
    let results: Value = serde_json::from_str(&read("results.json")).expect("one JSON document");
    let series = results["observations"][0]["series"].as_array().expect("a series");
    assert_eq!(
        results["observations"][1]["series"],
        serde_json::json!([null, null, null])
    );
    let rows: Vec<String> = (1..)
        .zip(series)
        .map(|(second, value)| {
            format!(
                "{second}000000000,queue,a->b,10,backlog_packets,packets,{}",
                value
            )
        })
        .map(|row| row.trim_end_matches(".0").to_owned())
        .collect();
    let expected = format!(
        "time_ns,observation,interface,class,variable,unit,value\n{}\n",
        rows.join("\n")
    );
    assert_eq!(read("observations.csv"), expected);

    let seeds: Value = serde_json::from_str(&stdout(&simulate_file(file, &["--seeds", "3", "--json"])))
        .expect("one JSON document");
    let runs = seeds["runs"].as_array().expect("three runs");
    let sum: f64 = runs
        .iter()
        .filter_map(|run| run["observations"][0]["mean"].as_f64())
        .sum();
    let mean = seeds["observations"][0]["mean"]["mean"].as_f64().expect("a mean");
    assert!((mean - sum / 3.0).abs() < 1e-9, "{mean} is not a third of {sum}");
    assert_eq!(seeds["observations"][1]["mean"], Value::Null);
    let table = stdout(&simulate_file(file, &["--seeds", "3"]));
    assert!(table.contains("OBSERVED"), "{table}");
}

/// A capture has its name only when the run is over. With several seeds there is one for each.
#[test]
fn captures_are_written_beside_the_scenario() {
    let folder = tempfile::tempdir().expect("a folder can be created");
    let file = folder.path().join("scenario.toml");
    let text = r#"
        [simulate]
        duration = "1s"
        [[simulate.link]]
        a = "a"
        b = "b"
        rate = "2mbit"
        [[simulate.flow]]
        name = "call"
        from = "a"
        to = "b"
        udp = { rate = "64kbit", size = "160b" }
        [[simulate.capture]]
        interface = "a->b"
        file = "call.pcapng"
        snap = 64
    "#;
    std::fs::write(&file, text).expect("the file can be written");
    let file = file.to_str().expect("the path is text");
    stdout(&simulate_file(file, &[]));
    stdout(&simulate_file(file, &["--seeds", "2"]));
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["call-1.pcapng", "call-2.pcapng", "call.pcapng", "scenario.toml"]
    );
    for name in &names[..3] {
        let bytes = std::fs::read(folder.path().join(name)).expect("the capture can be read");
        // 50 packets, each with 32 bytes of its block, and the headers of the file.
        assert_eq!(bytes.len(), 28 + 40 + 50 * (32 + 64), "{name}");
    }

    // A file that cannot be written is reported before the run.
    let wrong = text.replace("call.pcapng", "none/call.pcapng");
    std::fs::write(file, wrong).expect("the file can be written");
    let output = simulate_file(file, &["--json"]);
    assert_eq!(
        output.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
