//! `fairgate sweep`: complete, resumable, and with every mistake named.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{fairgate, text};

const SCENARIO: &str = r#"
[queue.wan]
discipline = "fq_codel"
[simulate]
duration = "DURATION"
[[simulate.link]]
a = "server"
b = "home"
rate = "10mbit"
delay = "5ms"
queue_a = "wan"
[[simulate.flow]]
name = "downloads"
from = "server"
to = "home"
tcp = {}
[sweep]
seeds = 2
[sweep.grid]
queue.wan.target = ["1ms", "5ms", "20ms"]
simulate.flow.downloads.count = [1, 2]
"#;

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().expect("a temporary folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, scenario: &str, arguments: &[&str]) -> Command {
        fs::write(self.at("wan.toml"), scenario).expect("the folder is writable");
        let mut command = fairgate(&["sweep", "wan.toml"]);
        command.args(arguments).current_dir(self.0.path());
        command
    }

    fn run(&self, scenario: &str, arguments: &[&str]) -> Output {
        self.command(scenario, arguments)
            .output()
            .expect("the program was built")
    }

    #[track_caller]
    fn json(&self, scenario: &str, arguments: &[&str]) -> Value {
        let output = self.run(scenario, &[arguments, &["--json"]].concat());
        assert_eq!(text(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
        serde_json::from_slice(&output.stdout).expect("a document")
    }

    /// Checks the exit code, and that standard error has these words.
    #[track_caller]
    fn is_refused(&self, scenario: &str, arguments: &[&str], code: i32, words: &[&str]) {
        let output = self.run(scenario, arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        let line = stderr.replace('│', " ");
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(line.contains(word), "{word}: {stderr}");
        }
    }
}

fn short() -> String {
    SCENARIO.replace("DURATION", "100ms")
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet"))
        .collect()
}

#[test]
fn what_is_finished_is_not_run_again() {
    let scratch = Scratch::new();
    let first = scratch.json(&short(), &[]);
    assert_eq!(first["schema"], "fairgate.sweep/1");
    assert_eq!(first["folder"], "wan.runs");
    assert_eq!(
        (&first["runs"], &first["done"], &first["skipped"]),
        (&12.into(), &12.into(), &0.into())
    );
    assert_eq!(first["grid"][0], "queue.wan.target");
    let more = short()
        .replace("seeds = 2", "seeds = 3")
        .replace("[1, 2]", "[2, 1]");
    let second = scratch.json(&more, &["--jobs", "1"]);
    assert_eq!(
        (&second["runs"], &second["done"], &second["skipped"]),
        (&18.into(), &6.into(), &12.into())
    );
    let shown = scratch.run(&more, &[]);
    assert!(text(&shown.stdout).starts_with("18 runs: 0 were done now, 18 were there before.\n"));
    assert!(text(&shown.stdout).contains("pandas.read_parquet(\"wan.runs\")"));
    // A part that is lost is done again.
    fs::remove_file(&parts(&scratch.at("wan.runs"))[0]).expect("a part");
    let third = scratch.json(&more, &[]);
    assert!(third["done"].as_u64() > Some(0));
    assert_eq!(
        third["skipped"].as_u64().unwrap() + third["done"].as_u64().unwrap(),
        18
    );
}

/// Ctrl-C keeps what is finished, and the same command goes on.
#[test]
fn an_interrupted_sweep_goes_on() {
    let scratch = Scratch::new();
    let long = SCENARIO.replace("DURATION", "20000s").replace("\"1ms\", ", "");
    let short_first = long.replace(
        "[sweep.grid]",
        "[sweep.grid]\nsimulate.duration = [\"100ms\", \"20000s\"]",
    );
    let mut command = scratch.command(&short_first, &["--jobs", "1"]);
    let mut program = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("built");
    let folder = scratch.at("wan.runs");
    while !folder.exists() || parts(&folder).is_empty() {
        assert_eq!(program.try_wait().expect("a child"), None, "it ended too early");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(program.id() as i32), Signal::SIGINT).expect("it runs");
    let output = program.wait_with_output().expect("it ends");
    assert_eq!(output.status.signal(), Some(Signal::SIGINT as i32), "{output:?}");
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("interrupted: "), "{stderr}");
    assert!(stderr.contains("the same command goes on"), "{stderr}");
    let finished = stderr
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse::<u64>().ok());
    let only_short = short_first.replace(", \"20000s\"]", "]");
    let after = scratch.json(&only_short, &[]);
    assert_eq!(after["runs"], 8);
    assert_eq!(after["skipped"].as_u64(), finished, "{stderr}");
}

#[test]
fn mistakes_are_named_before_the_first_run() {
    let scratch = Scratch::new();
    let unit = short().replace("\"20ms\"", "\"5 apples\"");
    scratch.is_refused(
        &unit,
        &[],
        2,
        &[
            "with this value of `queue.wan.target`",
            "wan.toml:20",
            "not a unit",
        ],
    );
    let nowhere = short().replace("wan.target", "lan.target");
    scratch.is_refused(
        &nowhere,
        &[],
        2,
        &["leads nowhere, because `queue` has `wan`", "correct `lan`"],
    );
    let negative = short().replace("seeds = 2", "seeds = -2");
    scratch.is_refused(&negative, &[], 2, &["`seeds` is -2", "wan.toml:18"]);
    let none = short().replace("[sweep", "# [sweep").replace("seeds = 2", "");
    let none = none
        .replace("queue.wan.target", "# ")
        .replace("simulate.flow.downloads", "# ");
    scratch.is_refused(&none, &[], 2, &["there is no [sweep] section"]);
    assert!(!scratch.at("wan.runs").exists());
    // `check` finds the same.
    let output = fairgate(&["check", "wan.toml"])
        .current_dir(scratch.0.path())
        .output()
        .expect("built");
    assert_eq!(output.status.code(), Some(0));
    fs::write(scratch.at("wan.toml"), unit).expect("writable");
    let output = fairgate(&["check", "wan.toml"])
        .current_dir(scratch.0.path())
        .output()
        .expect("built");
    assert!(text(&output.stderr).contains("with this value of"), "{output:?}");
}

#[test]
fn a_folder_of_another_sweep_or_with_a_broken_part_is_refused() {
    let scratch = Scratch::new();
    scratch.json(&short(), &[]);
    let other = short().replace("seeds = 2", "seeds = 2\nmeasure = \"flows\"");
    scratch.is_refused(
        &other,
        &[],
        2,
        &["has another sweep", "the table `groups`", "--out"],
    );
    let folder = scratch.at("wan.runs");
    let part = &parts(&folder)[0];
    fs::write(part, b"PAR1 broken").expect("writable");
    let name = part.file_name().unwrap().to_str().unwrap();
    scratch.is_refused(
        &short(),
        &[],
        2,
        &["is broken or no part of a sweep", "remove it", &name[..12]],
    );
    fs::remove_file(part).expect("a part");
    // What a killed sweep left is removed.
    fs::write(folder.join("_part-x.parquet.draft"), b"PAR1").expect("writable");
    scratch.json(&short(), &[]);
    assert!(!folder.join("_part-x.parquet.draft").exists());
    fs::write(folder.join("_sweep.json"), "{").expect("writable");
    scratch.is_refused(&short(), &[], 2, &["_sweep.json is broken"]);
    let lock = fs::File::open(folder.join("_lock")).expect("it is there");
    lock.lock().expect("nobody has it");
    scratch.is_refused(
        &short(),
        &[],
        3,
        &["another sweep is writing into wan.runs", "wait"],
    );
}

/// Root can write everywhere, but not below a file.
#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let scratch = Scratch::new();
    scratch.is_refused(
        &short(),
        &["--out", "wan.toml/data"],
        3,
        &["can't use the folder", "--out"],
    );
}

/// Returns the parts of a data set with their bytes, in the order in which readers take them.
fn bytes(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut parts = parts(folder);
    parts.sort();
    let read = |part: PathBuf| {
        let bytes = fs::read(&part).expect("a part");
        (part.file_name().expect("a file").into(), bytes)
    };
    parts.into_iter().map(read).collect()
}

/// The runs differ in length, so several jobs finish them in another order than one.
#[test]
fn the_files_have_the_same_bytes_whatever_the_number_of_jobs() {
    let scratch = Scratch::new();
    let scenario = SCENARIO.replace("DURATION", "500ms");
    let long = "[sweep.grid]\nsimulate.duration = [\"1s\", \"20s\"]";
    let scenario = scenario.replace("[sweep.grid]", long);
    for jobs in ["1", "2", "5"] {
        scratch.json(&scenario, &["--jobs", jobs, "--out", jobs]);
    }
    let one = bytes(&scratch.at("1"));
    assert!(one.len() > 8, "{} parts", one.len());
    assert!(one == bytes(&scratch.at("2")), "two jobs");
    assert!(one == bytes(&scratch.at("5")), "five jobs");
}
