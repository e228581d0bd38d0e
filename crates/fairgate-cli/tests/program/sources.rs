//! `fairgate import`, `fairgate pf`, and what other commands say of files of another kind.

use std::fs;
use std::path::PathBuf;

use super::{ends, json};

/// A file in a folder that is removed at the end.
fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    fs::write(&path, text).expect("the folder is writable");
    (folder, path)
}

const NETWORKD: &str = "[Match]\nName=wan0\n[CAKE]\nParent=root\nBandwidth=40M\nOverheadBytes=18\n";
const ALTQ: &str = "altq on em0 cbq bandwidth 2Mb queue { a, b }
queue a bandwidth 60% cbq(default borrow)
queue b bandwidth 40% cbq(borrow red)
pass out on em0 proto tcp to any port 22 queue b
";

#[test]
fn a_file_is_recognised_and_read() {
    let (_folder, path) = file("50-wan.network", NETWORKD);
    let path = path.to_str().expect("an ordinary path");
    let (toml, stderr) = ends(&["import", path], 0);
    assert!(
        toml.contains("[queue.\"wan0\"]") && toml.contains("bandwidth = \"40mbit\""),
        "{toml}"
    );
    let said = format!("warning: {path} is a .network file of systemd-networkd");
    assert!(stderr.contains(&said), "{stderr}");
    let document = json(&["import", "--json", path, "--device", "eth7"], 0);
    assert_eq!(document["schema"], "fairgate.import/1");
    assert_eq!(document["queues"]["eth7"]["discipline"], "cake");
}

#[test]
fn mistakes_name_the_line_of_the_file() {
    let (_folder, path) = file(
        "50-wan.network",
        &NETWORKD.replace("OverheadBytes=18", "RTTSec=soon"),
    );
    let (_, stderr) = ends(&["import", path.to_str().expect("an ordinary path")], 2);
    assert!(
        stderr.contains("`soon` is no value of `RTTSec`") && stderr.contains(":6:"),
        "{stderr}"
    );
    // A command that tc would refuse.
    let (_folder, path) = file("50-wan.network", &NETWORKD.replace("40M", "0"));
    let (_, stderr) = ends(&["import", path.to_str().expect("an ordinary path")], 2);
    assert!(stderr.contains("50-wan.network"), "{stderr}");
}

#[test]
fn queues_of_pf_become_trees() {
    let (_folder, path) = file("pf.conf", ALTQ);
    let path = path.to_str().expect("an ordinary path");
    for command in ["pf", "import", "dummynet"] {
        let (tree, _) = ends(&[command, path, "--tree"], 0);
        assert!(
            tree.contains(" bandwidth=2mbit") && tree.contains("link_sharing=top-level"),
            "{tree}"
        );
    }
    let document = json(&["pf", "--json", path], 0);
    assert_eq!(document["schema"], "fairgate.pf/1");
}

/// Beside rules of dummynet, lines of ALTQ give a warning.
#[test]
fn no_line_of_altq_vanishes() {
    let (_folder, path) = file(
        "pf.conf",
        "altq on em0 cbq bandwidth 2Mb queue { a, b }\npipe 1 config bw 10Mbit/s\n\
         match out on em0 from any to any dnpipe(1)\n",
    );
    let (_, stderr) = ends(&["dummynet", path.to_str().expect("an ordinary path")], 0);
    assert!(
        stderr.contains("line 1: `fairgate pf` makes a tree of this line of ALTQ"),
        "{stderr}"
    );
}

#[test]
fn a_file_of_another_kind_is_one_message() {
    let script = "#!/bin/sh\nIF=eth0\ntc qdisc add dev $IF root htb || exit 1\nfor i in 1 2; do\n  tc class \
                  add dev $IF classid 1:$i htb rate 1mbit\ndone\n";
    let cases = [
        (script, "tc", "is a shell script", "fairgate tc --record"),
        (
            NETWORKD,
            "tc",
            "is a .network file of systemd-networkd",
            "fairgate import",
        ),
        (
            NETWORKD,
            "check",
            "is a .network file of systemd-networkd",
            "fairgate import",
        ),
        (ALTQ, "check", "is a pf.conf", "fairgate pf"),
        (
            "tc qdisc add dev e root fq\n",
            "check",
            "is a list of tc commands",
            "fairgate tc",
        ),
        (
            "config interface lan\n\toption proto dhcp\n",
            "import",
            "is a file of OpenWrt's UCI",
            "no command reads it",
        ),
    ];
    for (text, command, what, remedy) in cases {
        let (_folder, path) = file("file", text);
        let path = path.to_str().expect("an ordinary path");
        let (stdout, stderr) = ends(&[command, path], 2);
        assert_eq!(stdout, "");
        let joined = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            joined.contains(what) && joined.contains(remedy),
            "{command}: {stderr}"
        );
        assert_eq!(stderr.matches('×').count(), 1, "{stderr}");
    }
}
