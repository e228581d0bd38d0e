//! What generators of scripts write: sqm-scripts, wondershaper, FireQOS, LibreQoS, OpenWrt, tcconfig,
//! OPNsense and pfSense. The lines in `corpus/` are ours: what each generator emits for settings that we
//! chose. Beside each is what becomes of it: the trees, or the lines that are refused, each with the reason.
//!
//! `BLESS=1 cargo test -p fairgate-scripts --test corpus` writes the expected files and the numbers in
//! `docs/scripts.md` anew. Read what changed.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use fairgate_config::FileError;
use fairgate_scripts::dummynet;
use fairgate_scripts::tc::{Device, Script};

/// What becomes of a script.
struct Outcome {
    text: String,
    lines: usize,
    refused: usize,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Returns the scripts of a language, by name.
fn scripts(extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).expect("the corpus is in the repository");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    paths
}

/// Returns the number of lines with commands.
fn commands(text: &str) -> usize {
    let is_command = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().filter(is_command).count()
}

/// Returns the trees, and what becomes of the lines.
fn outcome(text: &str, trees: Result<Vec<String>, FileError>) -> Outcome {
    let lines = commands(text);
    match trees {
        Ok(trees) => Outcome {
            text: trees.join("\n"),
            lines,
            refused: 0,
        },
        Err(error) => {
            let mut text = String::new();
            let mut refused: Vec<usize> = Vec::new();
            for problem in error.problems() {
                let (line, _) = problem.position();
                let _ = writeln!(text, "line {line}: {}", problem.message);
                refused.push(line);
            }
            assert_eq!(error.more(), 0, "all mistakes are shown");
            refused.dedup();
            Outcome {
                text,
                lines,
                refused: refused.len(),
            }
        }
    }
}

fn of_tc(_: &Path, text: &str) -> Outcome {
    let trees = Script::translate_all("corpus", text, Device::default()).map(|trees| {
        let tree = |tree: fairgate_scripts::tc::Translated| {
            let mut text = tree.spec.to_toml(&tree.name);
            for note in tree.warnings {
                let _ = writeln!(text, "# {note}");
            }
            text
        };
        trees.into_iter().map(tree).collect()
    });
    outcome(text, trees)
}

/// Files that a script names are beside it.
fn of_dummynet(path: &Path, text: &str) -> Outcome {
    let trees = dummynet::Script::parse(&path.display().to_string(), text, Device::default())
        .and_then(|script| script.trees())
        .map(|trees| trees.iter().map(|tree| tree.spec.to_toml(&tree.name())).collect());
    outcome(text, trees)
}

/// Returns the outcomes of all scripts, by name.
fn outcomes() -> Vec<(PathBuf, Outcome)> {
    let read = |path: PathBuf, of: fn(&Path, &str) -> Outcome| {
        let outcome = of(&path, &fs::read_to_string(&path).expect("a text"));
        (path, outcome)
    };
    let tc = scripts("tc").into_iter().map(|path| read(path, of_tc));
    let dummynet = scripts("ipfw").into_iter().map(|path| read(path, of_dummynet));
    tc.chain(dummynet).collect()
}

fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

const REMEDY: &str =
    "if the new outcome is right, write it with BLESS=1 cargo test -p fairgate-scripts --test corpus";

#[test]
fn generators_are_read_as_expected() {
    let outcomes = outcomes();
    assert!(outcomes.len() >= 19, "only {} scripts were found", outcomes.len());
    for (path, outcome) in outcomes {
        let expected = path.with_extension("expected");
        if is_blessed() {
            fs::write(&expected, &outcome.text).expect("the folder is writable");
        }
        let text = fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(outcome.text, text, "{}: {REMEDY}", expected.display());
    }
}

/// The table in `docs/scripts.md` has the number of lines, and of lines that pass.
#[test]
fn the_table_of_generators_is_measured() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scripts.md");
    let mut document = fs::read_to_string(&path).expect("it is in the repository");
    for (script, outcome) in outcomes() {
        let name = script
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("an ordinary name");
        let begin = format!("| `{name}` | ");
        let row = format!("{begin}{} | {} |", outcome.lines, outcome.lines - outcome.refused);
        let found = document.lines().find(|line| line.starts_with(&begin));
        let found = found
            .unwrap_or_else(|| panic!("docs/scripts.md has no row for `{name}`"))
            .to_owned();
        if is_blessed() {
            let rest = found.splitn(5, '|').last().expect("a row has cells").to_owned();
            document = document.replace(&found, &format!("{row}{rest}"));
        } else {
            assert!(found.starts_with(&row), "{found} should be {row}: {REMEDY}");
        }
    }
    if is_blessed() {
        fs::write(&path, document).expect("the folder is writable");
    }
}
