//! `fairgate man` and `fairgate completions`.

use std::collections::BTreeSet;
use std::process::Command;

use super::{ends, json};

/// Each command has a page, and each page that a page names exists.
#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("man1");
    let written = json(&["man", "--json", "--out", out.to_str().expect("plain")], 0);
    let files = written["files"].as_array().expect("a list");
    let there: BTreeSet<String> = std::fs::read_dir(&out)
        .expect("the folder was made")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("plain"))
        .collect();
    assert_eq!(files.len(), there.len());
    let (help, _) = ends(&["--help"], 0);
    let commands = help
        .split("Commands:")
        .nth(1)
        .and_then(|rest| rest.split("Options:").next());
    let commands = commands.expect("the help lists the commands").lines();
    let names: Vec<&str> = commands
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(there.contains(&format!("fairgate-{name}.1")), "{name}: {there:?}");
    }
    for page in &there {
        let text = std::fs::read_to_string(out.join(page)).expect("a page");
        assert!(
            text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"),
            "{page}"
        );
        let plain = text.replace('\\', "");
        for word in plain
            .split_whitespace()
            .filter(|word| word.ends_with("(1)") && word.starts_with("fairgate"))
        {
            assert!(there.contains(&word.replace("(1)", ".1")), "{page} names {word}");
        }
    }
}

#[test]
fn a_page_is_printed_and_an_unknown_command_is_named() {
    let (page, _) = ends(&["man", "reserve", "add"], 0);
    assert!(page.contains("fairgate\\-reserve\\-add"), "{page}");
    let (_, error) = ends(&["man", "simulat"], 2);
    assert!(
        error.contains("no command `simulat`")
            && error.contains("did you mean")
            && error.contains("simulate"),
        "{error}"
    );
}

/// bash completes a command and an option from the printed script.
#[test]
fn bash_completes_commands_and_options() {
    let (script, _) = ends(&["completions", "bash"], 0);
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(!ends(&["completions", shell], 0).0.is_empty());
    }
    let complete = |words: &str, count: usize| {
        let last = words.split(' ').next_back().expect("at least one word");
        let test = format!(
            "{script}\nCOMP_WORDS=({words})\nCOMP_CWORD={count}\n_fairgate_or_socket fairgate {last} ''\n\
             printf '%s\\n' \
             \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash")
            .args(["-c", &test])
            .output()
            .expect("bash runs");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(complete("fairgate simu", 1).trim(), "simulate");
    assert!(complete("fairgate simulate --s", 2).contains("--seeds"));
    // Verbs and disciplines, at any place.
    assert_eq!(complete("fairgate class mo", 2).trim(), "move");
    assert_eq!(complete("fairgate queue sh", 2).lines().next(), Some("show"));
    assert_eq!(complete("fairgate queue add root fq_co", 4).trim(), "fq_codel");
    assert_eq!(complete("fairgate list fq_co", 2).trim(), "fq_codel");
    assert_eq!(complete("fairgate filter fq_co", 2).trim(), "");
}

/// The sockets of this user's runs are offered after --socket, and nothing else.
#[test]
fn bash_completes_sockets() {
    let (script, _) = ends(&["completions", "bash"], 0);
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("fairgate");
    std::fs::create_dir(&runs).expect("a folder");
    for name in ["home.sock", "other.txt"] {
        std::fs::write(runs.join(name), "").expect("a file");
    }
    let begun = format!("{}/fairgate/h", folder.path().display());
    let test = format!(
        "{script}\nCOMP_WORDS=(fairgate status --socket {begun})\nCOMP_CWORD=3\n\
         _fairgate_or_socket fairgate {begun} --socket\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let mut bash = Command::new("bash");
    let output = bash
        .args(["-c", &test])
        .env("XDG_RUNTIME_DIR", folder.path())
        .output();
    let found = String::from_utf8(output.expect("bash runs").stdout).expect("text");
    assert_eq!(found, format!("{}\n", runs.join("home.sock").display()));
    for (shell, function) in [("zsh", ":PATH:_fairgate_sockets'"), ("fish", "-l socket -r -a ")] {
        let (script, _) = ends(&["completions", shell], 0);
        assert!(
            script.contains(function) && script.contains("fq_codel"),
            "{shell}"
        );
    }
}
