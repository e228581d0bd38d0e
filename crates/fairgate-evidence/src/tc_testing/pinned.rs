//! Our own list of commands and of the kernel's verdicts, which guards every `make test`.

use crate::tc_testing::machine::{Machine, Outcome, Output};

const LIST: &str = include_str!("pinned.txt");

/// A part of a block.
enum Entry<'t> {
    Command { is_accepted: bool, words: &'t str },
    Shown { by: &'t str, lines: Vec<&'t str> },
}

fn entries(block: &str) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    for line in block.lines().filter(|line| !line.starts_with('#')) {
        let (first, words) = line.split_once(' ').unwrap_or((line, ""));
        match (first, entries.last_mut()) {
            ("ok" | "no", _) => entries.push(Entry::Command {
                is_accepted: first == "ok",
                words,
            }),
            ("=", _) => entries.push(Entry::Shown {
                by: words,
                lines: Vec::new(),
            }),
            (_, Some(Entry::Shown { lines, .. })) => lines.push(line),
            (_, _) => panic!("not a part of a block: {line}"),
        }
    }
    entries
}

#[test]
fn commands_are_taken_and_shown_as_by_linux() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for block in LIST.split("\n\n") {
        let mut machine = Machine::default();
        for entry in entries(block) {
            checked += 1;
            match entry {
                Entry::Command { is_accepted, words } => {
                    match (machine.run(&format!("tc {words}")), is_accepted) {
                        (Outcome::Accepted, true) | (Outcome::Refused(_), false) => {}
                        (outcome, _) => wrong.push(format!("{words}: {outcome:?}")),
                    }
                }
                Entry::Shown { by, lines } => {
                    let Output::Text(text) = machine.show(&format!("tc {by}")) else {
                        panic!("{by} is not shown");
                    };
                    let shown: Vec<&str> = text.lines().map(str::trim_end).collect();
                    if shown != lines {
                        wrong.push(format!(
                            "{by}:\n{}\nbut Linux shows\n{}",
                            shown.join("\n"),
                            lines.join("\n")
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(checked > 60, "{checked} entries");
}
