//! `fairgate tc`.

use std::io::Write;
use std::process::Stdio;

use super::{ends, fairgate, folder, json, text};

fn office() -> String {
    let path = folder("../../examples/office.tc");
    path.to_str().expect("an ordinary path").to_owned()
}

/// The expected texts are beside the files.
#[test]
fn mistakes_are_shown_in_the_script() {
    for name in ["scripts", "options", "filters"] {
        let (stdout, stderr) = ends(&["tc", &format!("{name}.tc")], 2);
        assert_eq!(stdout, "");
        let path = folder("tests/mistakes").join(format!("{name}.tc.txt"));
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(stderr, expected, "the expected text is {}", path.display());
    }
}

/// The output is a configuration file with the same trees.
#[test]
fn a_script_becomes_a_configuration_file() {
    let (toml, _) = ends(&["tc", &office()], 0);
    let (tree, _) = ends(&["tc", &office(), "--tree"], 0);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("office.toml");
    std::fs::write(&path, toml).expect("the folder is writable");
    let (checked, _) = ends(&["check", path.to_str().expect("an ordinary path")], 0);
    assert!(checked.starts_with(&tree), "{tree}\n{checked}");
    assert!(tree.contains("tbf handle=1: rate=20mbit"), "{tree}");
    assert!(
        tree.contains(
            "source=192.0.2.5/32, source_port=10000-20000, protocol=udp, outer_ethertype=ipv4 goes to 1"
        ),
        "{tree}"
    );
    assert!(tree.contains("default=2"), "{tree}");
    let document = json(&["tc", "--json", &office()], 0);
    assert_eq!(document["schema"], "fairgate.tc/1");
    assert_eq!(document["queues"]["eth1"]["discipline"], "tbf");
}

#[test]
fn commands_come_from_arguments_and_from_standard_input() {
    let single = "qdisc add dev e root pfifo limit 7";
    let expected = "queue e\n  fifo limit=7\n";
    assert_eq!(ends(&["tc", "--tree", single], 0).0, expected);
    assert_eq!(
        ends(
            &[
                "tc", "--tree", "--", "tc", "qdisc", "add", "dev", "e", "root", "pfifo", "limit", "7"
            ],
            0
        )
        .0,
        expected
    );
    let prio = [
        "tc",
        "--tree",
        "tc qdisc add dev e root handle 1: prio",
        "qdisc add dev e parent 1:2 codel",
    ];
    assert!(ends(&prio, 0).0.contains("2: codel"));

    let mut child = fairgate(&["tc", "-", "--tree", "--txqueuelen", "9"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut input = child.stdin.take().expect("a pipe");
    input
        .write_all(b"qdisc add dev e root pfifo\n")
        .expect("the program reads");
    drop(input);
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(text(&output.stdout), "queue e\n  fifo limit=9\n");
}

/// In Linux an htb without classes passes all packets, and accepts a default class that does not exist yet.
#[test]
fn an_htb_without_classes_gives_a_warning() {
    let script = "qdisc add dev eth0 root handle 1: htb default 12";
    let (toml, warning) = ends(&["tc", script], 0);
    assert!(
        toml.contains("discipline = \"htb\"\nhandle = \"1\"\ndefault = 18\n"),
        "{toml}"
    );
    let expected = "warning: queue eth0: `htb` has no classes yet: it shapes nothing, and all packets go \
                    straight through\n";
    assert_eq!(warning, expected);

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("htb.toml");
    std::fs::write(&path, toml).expect("the folder is writable");
    let (_, warning) = ends(&["check", path.to_str().expect("an ordinary path")], 0);
    assert_eq!(warning, expected);

    let document = json(&["tc", "--json", script], 0);
    assert_eq!(
        document["warnings"][0],
        expected.trim_start_matches("warning: ").trim_end()
    );

    let beside = format!("{script}\nclass add dev eth0 parent 1: classid 1:10 htb rate 1mbit");
    let (toml, warning) = ends(&["tc", &beside], 0);
    assert!(!toml.contains("default"), "{toml}");
    assert!(
        warning.contains("the default class 1:12 does not exist"),
        "{warning}"
    );
}

#[test]
fn only_one_tree_can_be_run() {
    let two = "qdisc add dev a root pfifo\nqdisc add dev b root pfifo";
    let (_, stderr) = ends(&["tc", two, "--run", "c"], 2);
    assert!(
        stderr.contains("trees for a, b, but only one device can be run"),
        "{stderr}"
    );
    let (_, stderr) = ends(&["tc", "qdisc add dev a root pfifo", "--run", "a"], 2);
    assert!(stderr.contains("the same interface"), "{stderr}");
}
