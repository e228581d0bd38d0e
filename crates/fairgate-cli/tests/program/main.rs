//! Tests of the program as users run it: output, errors, exit codes, pipes. `list` and `check` are in this
//! file, the other commands in files of their own.

#[path = "../common/blocked.rs"]
mod blocked;
mod check;
mod compare;
mod dry_run;
mod dummynet;
mod endpoints;
mod files;
mod hostile;
mod import;
mod pages;
mod plot;
mod providers;
mod record;
#[path = "../common/recorded.rs"]
mod recorded;
mod show;
mod simulate;
mod snapshot;
mod sources;
mod streams;
mod sweep;
mod tc;
mod top;
mod values;
mod workers;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Returns the program with a fixed environment: no colours, Unicode, no terminal.
fn fairgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("RUST_BACKTRACE")
        .current_dir(folder("tests/mistakes"));
    command
}

fn run(arguments: &[&str]) -> Output {
    fairgate(arguments).output().expect("the program was built")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program prints text")
}

/// Checks the exit code and returns standard output and standard error.
#[track_caller]
fn ends(arguments: &[&str], code: i32) -> (String, String) {
    let output = run(arguments);
    let (stdout, stderr) = (text(&output.stdout).to_owned(), text(&output.stderr).to_owned());
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    (stdout, stderr)
}

#[track_caller]
fn json(arguments: &[&str], code: i32) -> Value {
    let (stdout, stderr) = ends(arguments, code);
    assert_eq!(stderr, "", "standard error is empty with --json");
    serde_json::from_str(&stdout).expect("one JSON document on standard output")
}

/// Reports that a test did not run. It writes directly, because the test harness captures what `eprintln!`
/// prints.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// The experiments are in another program.
#[test]
fn a_command_of_the_laboratory_says_where_it_is() {
    for command in ["bench", "bounds", "replay", "reproduce", "theory", "validate"] {
        let (_, stderr) = ends(&[command, "sqf", "--quick"], 2);
        assert!(
            stderr.contains("fairgate-lab") && stderr.contains(&format!("-- {command} sqf --quick")),
            "{stderr}"
        );
        assert!(!ends(&["--help"], 0).0.contains(command), "{command} is listed");
    }
}

#[test]
fn list_shows_every_discipline_with_its_parameters() {
    let (overview, _) = ends(&["list"], 0);
    let listing = json(&["list", "--json"], 0);
    assert_eq!(listing["schema"], "fairgate.list/1");
    let disciplines = listing["disciplines"].as_array().expect("a list");
    assert!(disciplines.len() >= 10);
    for discipline in disciplines {
        let name = discipline["name"].as_str().expect("a name");
        assert!(overview.contains(name));
        let (detail, _) = ends(&["list", name], 0);
        for parameter in discipline["parameters"].as_array().expect("a list") {
            let parameter = parameter["name"].as_str().expect("a name");
            assert!(
                overview.contains(&format!("{parameter} = ")),
                "{parameter} of {name} in the overview"
            );
            assert!(detail.contains(parameter), "{parameter} of {name} in its detail");
        }
    }
    assert_eq!(
        overview.lines().find(|line| line.ends_with(' ')),
        None,
        "no line ends with a space"
    );
}

#[test]
fn list_fits_the_page() {
    let listing = json(&["list", "--json"], 0);
    let disciplines = listing["disciplines"].as_array().expect("a list");
    let names = disciplines.iter().map(|discipline| discipline["name"].as_str());
    for name in names.chain([None]) {
        let arguments: Vec<&str> = std::iter::once("list").chain(name).collect();
        let (page, _) = ends(&arguments, 0);
        for line in page.lines() {
            let width = line.chars().count();
            assert!(width <= 110, "{name:?} has a line of {width} columns: {line}");
        }
    }
}

#[test]
fn list_suggests_a_similar_name() {
    let (_, stderr) = ends(&["list", "fqcodel"], 2);
    assert!(stderr.contains("there is no discipline `fqcodel`"), "{stderr}");
    assert!(stderr.contains("did you mean `fq_codel`?"), "{stderr}");
}

/// docs/errors.md shows some of these errors. The expected texts are beside the files.
#[test]
fn mistakes_are_shown_in_the_file() {
    for name in ["typo", "unit", "dangling", "queue"] {
        let (stdout, stderr) = ends(&["check", &format!("{name}.toml")], 2);
        assert_eq!(stdout, "");
        let path = folder("tests/mistakes").join(format!("{name}.txt"));
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(stderr, expected, "the expected text is {}", path.display());
    }
}

#[test]
fn mistakes_are_reported_as_json() {
    let errors = json(&["check", "--json", "unit.toml"], 2);
    assert_eq!(errors["schema"], "fairgate.error/1");
    assert_eq!(errors["errors"].as_array().map(Vec::len), Some(2));
    let first = &errors["errors"][0];
    assert_eq!(first["file"], "unit.toml");
    assert_eq!((&first["line"], &first["column"]), (&3.into(), &11.into()));
    assert_eq!(first["message"], "`rate`: ` mbit` is not a unit of a rate");
    assert!(first["help"].as_str().is_some_and(|help| help.contains("20mbit")));

    let errors = json(&["list", "--json", "nonsense"], 2);
    assert_eq!(
        errors["errors"][0]["message"],
        "there is no discipline `nonsense`"
    );
    let errors = json(&["--json", "lisp"], 2);
    assert!(
        errors["errors"][0]["message"]
            .as_str()
            .is_some_and(|message| message.contains("lisp"))
    );
}

#[test]
fn a_file_that_cannot_be_read_is_invalid_input() {
    let (_, stderr) = ends(&["check", "missing.toml"], 2);
    assert!(stderr.contains("can't read missing.toml"), "{stderr}");
    assert!(stderr.contains("No such file"), "{stderr}");
    let (_, stderr) = ends(&["check", "."], 2);
    assert!(stderr.contains("directory"), "{stderr}");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("latin1.toml");
    std::fs::write(&path, b"# M\xfcnchen\n").expect("the folder is writable");
    let (_, stderr) = ends(&["check", path.to_str().expect("an ordinary path")], 2);
    let place = "latin1.toml:1: byte 4 of the line, 0xfc, is not UTF-8";
    assert!(stderr.replace("\n  \u{2502} ", "").contains(place), "{stderr}");
}

#[test]
fn check_shows_the_trees() {
    let home = folder("../../examples/home.toml");
    let (stdout, _) = ends(&["check", home.to_str().expect("an ordinary path")], 0);
    assert!(stdout.contains("queue upload\n  tbf rate="), "{stdout}");
    assert!(stdout.contains("  └─ fq_codel"), "{stdout}");
    let document = json(&["check", "--json", home.to_str().expect("an ordinary path")], 0);
    let inner = &document["queues"]["upload"]["classes"][0];
    assert_eq!(
        (&inner["id"], &inner["tree"]["discipline"]),
        (&1.into(), &"fq_codel".into())
    );
    assert_eq!(inner["tree"]["parameters"]["interval"], "100ms");
}

#[test]
fn every_command_has_help_with_examples() {
    let (help, _) = ends(&["--help"], 0);
    let commands = help
        .split("Commands:")
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next())
        .expect("commands");
    let mut seen = 0;
    for line in commands.lines().filter(|line| !line.trim().is_empty()) {
        let name = line.split_whitespace().next().expect("a name");
        if name != "help" {
            let (help, _) = ends(&[name, "--help"], 0);
            assert!(help.contains("Examples:"), "{name}: {help}");
            seen += 1;
        }
    }
    assert!(seen >= 2, "{help}");
    ends(&["--version"], 0);
    ends(&[], 2);
}

/// Like `fairgate list | head`, but the reader closes the pipe before anything is written.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = fairgate(&["list"])
        .stdout(writer)
        .output()
        .expect("the program was built");
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let output = fairgate(&["list"])
        .stdout(full)
        .output()
        .expect("the program was built");
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).contains("can't write to standard output"),
        "{}",
        text(&output.stderr)
    );
}
