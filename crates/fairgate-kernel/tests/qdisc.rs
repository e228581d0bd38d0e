//! `fairgate-qdisc` ends with the exit codes of docs/errors.md, and says what to do. Nothing here changes an
//! interface: what would be valid is for a class that is not there.

use std::fs;
use std::process::Command;

/// Returns the exit code, and what it prints on standard error.
fn said(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fairgate-qdisc"))
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), said)
}

#[test]
fn wrong_input_ends_with_2() {
    let folder = std::env::temp_dir().join(format!("fairgate-qdisc-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("wrong.toml");
    fs::write(
        &file,
        "[queue.up]\ndiscipline = \"tbf\"\nrate = \"0mbit\"\nburst = \"5kb\"\n",
    )
    .unwrap();
    let wrong = format!("@{}", file.display());
    for (arguments, expected) in [
        (&[][..], "usage:"),
        (&["sing", "lo"], "usage:"),
        (&["add", "lo"], "usage:"),
        (&["add", "lo", "nonsense"], "nonsense"),
        (&["add", "lo", "sqf color=red"], "color"),
        (&["add", "lo", "sqf", "--slots", "0"], "1 to 1048576"),
        (&["add", "lo", "@/nowhere.toml"], "/nowhere.toml"),
        (&["add", "lo", &wrong], "wrong.toml:3:9"),
        (&["add", "lo:x", "sqf"], "hexadecimal"),
        (&["options"], "usage:"),
        (&["options", "sqf color=red"], "color"),
    ] {
        let (code, said) = said(arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_the_system_refuses_ends_with_3() {
    for (arguments, expected) in [
        (&["show", "fg-no-such"][..], "no interface"),
        // No privileges, no module, or no such class.
        (&["add", "lo:9:9", "sqf"], "; "),
    ] {
        let (code, said) = said(arguments);
        assert_eq!(code, 3, "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn help_is_no_error() {
    for word in ["--help", "--version"] {
        assert_eq!(said(&[word]), (0, String::new()), "{word}");
    }
}

/// Nobody reads: the exit code tells the same as otherwise.
#[test]
fn a_closed_pipe_is_no_panic() {
    for (arguments, expected) in [
        (&["--help"][..], 0),
        (&["sing", "lo"], 2),
        (&["show", "fg-no-such"], 3),
    ] {
        let closed = || {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            writer
        };
        let status = Command::new(env!("CARGO_BIN_EXE_fairgate-qdisc"))
            .args(arguments)
            .stdout(closed())
            .stderr(closed())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(expected), "{arguments:?}");
    }
}
