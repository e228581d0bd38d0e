//! `fairgate simulate` as users run it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

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
    let table = stdout(&simulate(&[]));
    if std::env::var_os("FAIRGATE_BLESS").is_some() {
        std::fs::write(&path, &table).expect("the snapshot can be written");
    }
    let expected = std::fs::read_to_string(&path).expect("the snapshot is there");
    assert_eq!(
        table, expected,
        "if the change is intended, run the test with FAIRGATE_BLESS=1 and check the difference"
    );
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
