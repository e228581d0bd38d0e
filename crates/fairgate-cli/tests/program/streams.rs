//! Standard streams that are closed, full or not read: no command panics, and the exit code is right.

use std::fs::{File, OpenOptions};
use std::process::Stdio;

use super::{fairgate, text};

/// One command of each kind, and its exit code with ordinary streams.
const FAMILIES: &[(&[&str], i32)] = &[
    (&["list"], 0),
    (&["list", "nonsense"], 2),
    (&["--help"], 0),
    (&["lisp"], 2),
    (&["check", "../../../../examples/home.toml"], 0),
    (&["check", "typo.toml"], 2),
    (&["tc", "qdisc add dev eth0 root fq_codel"], 0),
    (&["tc", "qdisc add dev eth0 root nonsense"], 2),
    (&["dummynet", "pipe 1 config bw 10Mbit/s codel"], 0),
    (&["replay"], 2),
    (&["validate", "kernel-tcp", "nowhere"], 2),
    (&["validate", "kernel-tcp"], 2),
    (&["reproduce"], 0),
    (&["reproduce", "nonsense"], 2),
    (&["bounds", "nonsense"], 2),
    (&["bench", "schedulers", "--flows", "0"], 2),
    (&["theory", "mm1", "--load", "2"], 2),
    (&["simulate", "nowhere.toml"], 2),
    (&["sweep", "nowhere.toml"], 2),
    (&["compare", "--rate", "none"], 2),
    (&["compare", "--trace", "nowhere.pcap"], 2),
    (&["testbed", "--queue", "nonsense"], 2),
    (&["status", "--socket", "nowhere.sock"], 3),
    (&["show", "--socket", "nowhere.sock"], 3),
    (&["run", "nowhere.toml"], 2),
];

fn full() -> File {
    OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it")
}

/// Returns a pipe that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn nothing_panics_when_standard_error_takes_nothing() {
    for (arguments, code) in FAMILIES {
        for stream in [full().into(), unread()] {
            let output = fairgate(arguments).stderr(stream).output().expect("built");
            assert_eq!(output.status.code(), Some(*code), "{arguments:?}");
        }
    }
}

/// Printed results are lost: the exit code is 3 if the disk is full, and 0 if the reader closed the pipe.
#[test]
fn nothing_panics_when_standard_output_takes_nothing() {
    for (arguments, code) in FAMILIES {
        for (stream, lost) in [(full().into(), 3), (unread(), 0)] {
            let output = fairgate(arguments).stdout(stream).output().expect("built");
            let expected = if *code == 0 { lost } else { *code };
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {stderr}");
            assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
        }
        let with_json = [arguments, &["--json"][..]].concat();
        let output = fairgate(&with_json).stdout(full()).output().expect("built");
        let expected = if *code == 0 { 3 } else { *code };
        assert_eq!(output.status.code(), Some(expected), "{with_json:?}");
    }
}

/// The standards: `NO_COLOR` and `TERM=dumb` disable colours, `CLICOLOR_FORCE` enables them also in a pipe.
/// They apply to results, errors and clap's usage.
#[test]
fn one_rule_decides_on_colours() {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let is_coloured = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = fairgate(arguments);
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "CI"] {
            command.env_remove(variable);
        }
        let output = command
            .current_dir(scratch.path())
            .envs(variables.iter().copied())
            .output()
            .expect("built");
        output.stdout.contains(&0x1b) || output.stderr.contains(&0x1b)
    };
    let compare: &[&str] = &[
        "compare",
        "--duration",
        "1s",
        "--queue",
        "fifo",
        "--queue",
        "fq_codel",
    ];
    for arguments in [compare, &["list", "nonsense"], &["lisp"]] {
        let is_coloured = |variables| is_coloured(arguments, variables);
        assert!(!is_coloured(&[]), "{arguments:?}: no colours in a pipe");
        assert!(
            !is_coloured(&[("FORCE_COLOR", "0"), ("TERM", "xterm")]),
            "{arguments:?}"
        );
        assert!(is_coloured(&[("CLICOLOR_FORCE", "1")]), "{arguments:?}: forced");
        assert!(
            !is_coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]),
            "{arguments:?}"
        );
    }
}
