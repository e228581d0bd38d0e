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
use fairgate_scripts::sources::Commands;
use fairgate_scripts::tc::{Device, Script};
use fairgate_scripts::{dummynet, pf, sources};

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
    of_commands(text, &Commands::default())
}

/// Commands of tc, and changes of the trees for which tc has no words.
fn of_commands(text: &str, changes: &Commands) -> Outcome {
    let trees = Script::translate_all("corpus", text, Device::default()).map(|trees| {
        let tree = |tree: fairgate_scripts::tc::Translated| {
            let changed = changes
                .changed(&tree.name, tree.spec)
                .expect("the changes are valid");
            let mut text = changed.to_toml(&tree.name);
            for note in tree.warnings {
                let _ = writeln!(text, "# {note}");
            }
            text
        };
        trees.into_iter().map(tree).collect()
    });
    outcome(text, trees)
}

/// Returns a tree with its warnings.
fn with_warnings(tree: &dummynet::Tree) -> String {
    let mut text = tree.spec.to_toml(&tree.name());
    for note in &tree.warnings {
        let _ = writeln!(text, "# {note}");
    }
    text
}

/// Files that a script names are beside it.
fn of_dummynet(path: &Path, text: &str) -> Outcome {
    let trees = dummynet::Script::parse(&path.display().to_string(), text, Device::default())
        .and_then(|script| script.trees())
        .map(|trees| trees.iter().map(with_warnings).collect());
    outcome(text, trees)
}

fn of_pf(_: &Path, text: &str) -> Outcome {
    let trees = pf::trees("corpus", text, Device::default());
    outcome(text, trees.map(|trees| trees.iter().map(with_warnings).collect()))
}

/// A file of another program, which gives commands of tc.
fn of_import(path: &Path, text: &str) -> Outcome {
    let source = sources::recognise(text).unwrap_or_else(|| panic!("{} is not recognised", path.display()));
    let commands = match sources::commands("corpus", text, source, None) {
        Ok(commands) => commands,
        Err(error) => return outcome(text, Err(error)),
    };
    let notes: String = commands.notes.iter().map(|note| format!("# {note}\n")).collect();
    let of_tc = of_commands(&commands.text(), &commands);
    Outcome {
        text: format!("{notes}{}", of_tc.text),
        lines: self::commands(text),
        refused: of_tc.refused,
    }
}

/// Returns the outcomes of all scripts, by name.
fn outcomes() -> Vec<(PathBuf, Outcome)> {
    let read = |path: PathBuf, of: fn(&Path, &str) -> Outcome| {
        let outcome = of(&path, &fs::read_to_string(&path).expect("a text"));
        (path, outcome)
    };
    let tc = scripts("tc").into_iter().map(|path| read(path, of_tc));
    let dummynet = scripts("ipfw").into_iter().map(|path| read(path, of_dummynet));
    let pf = scripts("pf").into_iter().map(|path| read(path, of_pf));
    let others = IMPORTED.into_iter().flat_map(scripts);
    let others = others.map(|path| read(path, of_import));
    tc.chain(dummynet).chain(pf).chain(others).collect()
}

/// The endings of files that are read by `import`.
const IMPORTED: [&str; 5] = ["network", "nmconnection", "uci", "vyos", "rsc"];

/// Returns what is done with a script.
fn reader(path: &Path) -> fn(&Path, &str) -> Outcome {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("tc") => of_tc,
        Some("ipfw") => of_dummynet,
        Some("pf") => of_pf,
        _ => of_import,
    }
}

/// Whether a line only deletes, shows or names something, so that nothing is lost without it.
fn has_no_effect(line: &str) -> bool {
    let words: Vec<&str> = line
        .split_whitespace()
        .filter(|word| !matches!(*word, "tc" | "ipfw" | "sudo" | "-q" | "-f"))
        .collect();
    match words[..] {
        [] => true,
        [first, ..] if first.starts_with('#') || first.starts_with(';') => true,
        // Without a rule that calls, nothing returns.
        ["add", _, "return" | "count", ..] => true,
        [_, "del" | "delete" | "show" | "ls" | "flush", ..]
        | ["flush" | "zero" | "resetlog" | "delete", ..] => true,
        // A comment or a name.
        [first, ..] => {
            let line = words.join(" ");
            [
                "description",
                "comment",
                "Description",
                "name",
                "id=",
                "type=",
                "option name",
                "option verbosity",
                "option debug_logging",
                "DHCP",
            ]
            .iter()
            .any(|key| line.contains(key) && !line.contains("rate"))
                || matches!(first, "{" | "}")
        }
    }
}

/// Each line of a script ends in the tree, in a warning or in an error: without it, or with a wrong word in
/// it, the outcome is another one.
#[test]
fn no_line_is_lost_in_silence() {
    let mut lost = Vec::new();
    let mut counted = 0;
    for (path, outcome) in outcomes() {
        let text = fs::read_to_string(&path).expect("a text");
        let lines: Vec<&str> = text.lines().collect();
        // Without these words the trees do not depend on the numbers of lines.
        let plain = |text: &str| -> Vec<String> {
            let kept = text.lines().map(|line| line.trim_start_matches(['#', ' ']));
            let kept = kept.map(|line| {
                line.split_once(": ")
                    .filter(|(head, _)| head.starts_with("line"))
                    .map_or(line, |(_, rest)| rest)
            });
            kept.map(str::to_owned).collect()
        };
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| !has_no_effect(line)) {
            counted += 1;
            let changed = |text: &str| {
                let lines = lines.iter().enumerate();
                let lines = lines.map(|(other, line)| if other == at { text } else { *line });
                let changed: String = lines.map(|line| format!("{line}\n")).collect();
                std::panic::catch_unwind(|| reader(&path)(&path, &changed).text).unwrap_or_default()
            };
            // A line that says what other lines say, too, is read if a wrong word in it is noticed.
            let is_read = || {
                // A value that is the default is read if another one is noticed.
                let head = line.rsplit_once(' ').map_or("", |(head, _)| head);
                let others = ["'0'", "'1'", "xyzzy"].map(|value| format!("{head} {value}"));
                [String::new(), format!("{line} xyzzy")]
                    .iter()
                    .chain(&others)
                    .any(|text| plain(&changed(text)) != plain(&outcome.text))
            };
            let is_named = outcome.text.lines().any(|text| {
                let head = text.trim_start_matches("# ");
                let numbers = head
                    .strip_prefix("line")
                    .and_then(|rest| rest.split_once(':'))
                    .map(|(numbers, _)| numbers);
                let number = (at + 1).to_string();
                numbers.is_some_and(|numbers| numbers.split([',', ' ', 's']).any(|found| found == number))
            });
            if !is_named && !is_read() {
                lost.push(format!("{}, line {}: {line}", path.display(), at + 1));
            }
        }
    }
    assert!(counted > 300, "only {counted} lines were tried");
    assert!(
        lost.is_empty(),
        "{} of {counted} lines are lost:\n{}",
        lost.len(),
        lost.join("\n")
    );
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
