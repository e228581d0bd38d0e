//! Standard streams that are closed, full or not read: no command panics, and the exit code is right.

use super::{blocked, fairgate};

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
    (&["simulate", "nowhere.toml"], 2),
    (&["sweep", "nowhere.toml"], 2),
    (&["compare", "--rate", "none"], 2),
    (&["compare", "--trace", "nowhere.pcap"], 2),
    (&["testbed", "--queue", "nonsense"], 2),
    (&["status", "--socket", "nowhere.sock"], 3),
    (&["diff", "nowhere.toml"], 2),
    (&["subscribers", "diff", "nowhere.toml"], 2),
    (
        &[
            "subscribers",
            "set",
            "--socket",
            "nowhere.sock",
            "1001",
            "down=5mbit",
        ],
        3,
    ),
    (&["doctor", "--socket", "nowhere.sock"], 3),
    (&["doctor", "nowhere.toml"], 2),
    (&["tune", "192.0.2.1:port", "--dry-run"], 2),
    (&["tune", "127.0.0.1:1", "--dry-run"], 3),
    (&["show", "--socket", "nowhere.sock"], 3),
    (&["run", "nowhere.toml"], 2),
    (&["run", "--detach", "../../../../examples/home.toml"], 2),
    (&["stop", "--socket", "nowhere.sock"], 3),
    (&["stop", "nowhere0"], 3),
];

#[test]
fn nothing_panics_when_a_stream_takes_nothing() {
    blocked::all(fairgate, FAMILIES);
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
