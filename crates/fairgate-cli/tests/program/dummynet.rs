//! `fairgate dummynet`.

use super::{ends, folder, json};

fn office() -> String {
    let path = folder("../../examples/office.ipfw");
    path.to_str().expect("an ordinary path").to_owned()
}

/// The expected text is beside the file.
#[test]
fn mistakes_are_shown_in_the_script() {
    for name in ["pipes.ipfw", "profile.ipfw"] {
        let (stdout, stderr) = ends(&["dummynet", name], 2);
        assert_eq!(stdout, "");
        let path = folder("tests/mistakes").join(format!("{name}.txt"));
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(stderr, expected, "the expected text is {}", path.display());
    }
}

/// The output is a configuration file with the same trees.
#[test]
fn a_script_becomes_a_configuration_file() {
    let (toml, _) = ends(&["dummynet", &office()], 0);
    let (tree, _) = ends(&["ipfw", &office(), "--tree"], 0);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("office.toml");
    std::fs::write(&path, toml).expect("the folder is writable");
    let (checked, _) = ends(&["check", path.to_str().expect("an ordinary path")], 0);
    assert!(checked.starts_with(&tree), "{tree}\n{checked}");
    assert!(tree.contains("tbf rate=20mbit burst=10000b"), "{tree}");
    assert!(tree.contains("wf2q_plus default=2"), "{tree}");
    let document = json(&["dnctl", "--json", &office()], 0);
    assert_eq!(document["schema"], "fairgate.dummynet/1");
    assert_eq!(document["queues"]["em1"]["discipline"], "tbf");
}

#[test]
fn commands_come_from_arguments() {
    let (single, _) = ends(&["dummynet", "--tree", "pipe 1 config bw 1Mbit/s"], 0);
    assert_eq!(
        single,
        "queue out\n  tbf rate=1mbit burst=4542b\n  └─ fifo limit=50\n"
    );
    let (words, _) = ends(
        &[
            "dummynet", "--tree", "ipfw", "pipe", "1", "config", "bw", "1Mbit/s",
        ],
        0,
    );
    assert_eq!(words, single);
    let (lines, _) = ends(
        &[
            "dummynet",
            "--tree",
            "--mtu",
            "9000",
            "pipe 1 config bw 1Mbit/s",
            "ipfw add pipe 1 in via em0",
        ],
        0,
    );
    assert_eq!(
        lines,
        "queue em0/in\n  tbf rate=1mbit burst=27042b\n  └─ fifo limit=50\n"
    );
}

#[test]
fn only_trees_of_one_device_can_be_run() {
    let pipe = "pipe 1 config bw 1Mbit/s";
    let (_, stderr) = ends(&["dummynet", pipe, "--run", "a"], 2);
    assert!(stderr.contains("does not say which device"), "{stderr}");
    let (_, stderr) = ends(&["dummynet", pipe, "--device", "a", "--run", "a"], 2);
    assert!(stderr.contains("the same interface"), "{stderr}");
    let two = [
        "dummynet",
        "pipe 1 config",
        "pipe 2 config",
        "add pipe 1 out via a",
        "add pipe 2 out via b",
        "--run",
        "c",
    ];
    let (_, stderr) = ends(&two, 2);
    assert!(
        stderr.contains("trees for a, b, but a run joins two interfaces"),
        "{stderr}"
    );
}
