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
fn two_interfaces_can_be_run() {
    let two = "qdisc add dev a root pfifo\nqdisc add dev b root pfifo";
    let (_, stderr) = ends(&["tc", two, "--run", "c"], 2);
    assert!(
        stderr.contains("trees for a, b, but a run joins two interfaces"),
        "{stderr}"
    );
    let (_, stderr) = ends(&["tc", "qdisc add dev a root pfifo", "--run", "a"], 2);
    assert!(stderr.contains("the same interface"), "{stderr}");
}

#[test]
fn a_run_of_a_script_is_on_its_device_or_joins_it_with_another_one() {
    let one = "qdisc add dev missing0 root pfifo";
    let (_, stderr) = ends(&["tc", one, "--run", "--dev"], 3);
    assert!(stderr.contains("`missing0`"), "{stderr}");
    let (_, stderr) = ends(&["tc", one, "--run"], 2);
    assert!(
        stderr.contains("--run names no interface") && stderr.contains("--dev"),
        "{stderr}"
    );
    let (_, stderr) = ends(&["tc", one, "--dev", "--run", "lan"], 2);
    assert!(
        stderr.contains("--run lan and --dev exclude each other"),
        "{stderr}"
    );
    let two = "qdisc add dev a root pfifo\nqdisc add dev b root pfifo";
    let (_, stderr) = ends(&["tc", two, "--run", "--dev"], 2);
    assert!(
        stderr.contains("trees for a, b, but a run with --dev is on one interface"),
        "{stderr}"
    );
}

/// The shape of wondershaper and of sqm-scripts.
const BOTH_WAYS: &str = "\
qdisc add dev wan root handle 1: htb default 10
class add dev wan parent 1: classid 1:10 htb rate 5mbit
qdisc add dev wan parent 1:10 fq_codel
qdisc add dev wan handle ffff: ingress
filter add dev wan parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 \\
    action mirred egress redirect dev ifb0
qdisc add dev ifb0 root handle 1: htb default 10
class add dev ifb0 parent 1: classid 1:10 htb rate 10mbit";

#[test]
fn a_script_with_an_ifb_gives_both_queues_and_a_run() {
    let (toml, warnings) = ends(&["tc", BOTH_WAYS], 0);
    assert_eq!(warnings, "");
    let run = "\n[run]\n\
               device = \"wan\"\n\
               egress = \"wan\"\ningress = \"ifb0\"\n";
    assert!(
        toml.starts_with("[queue.\"wan\"]") && toml.contains("\n[queue.\"ifb0\"]"),
        "{toml}"
    );
    assert!(toml.ends_with(run), "{toml}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("both.toml");
    std::fs::write(&path, toml).expect("the folder is writable");
    ends(&["check", path.to_str().expect("an ordinary path")], 0);

    let document = json(&["tc", "--json", BOTH_WAYS], 0);
    let expected = serde_json::json!({
        "device": "wan", "egress": "wan", "ingress": "ifb0"
    });
    assert_eq!(document["run"], expected);
    let one = json(&["tc", "--json", "qdisc add dev wan root pfifo"], 0);
    assert_eq!(one["run"], serde_json::Value::Null);
}

/// The shape of sqm-scripts with cake: hosts behind the router are known on its one interface, and not
/// between two.
#[test]
fn a_routers_script_with_nat_sees_hosts_of_the_lan() {
    let script = |down: &str| {
        format!(
            "qdisc add dev wan root cake bandwidth 5mbit dual-srchost nat\n\
             qdisc add dev wan handle ffff: ingress\n\
             filter add dev wan parent ffff: matchall action mirred egress redirect dev ifb0\n\
             qdisc add dev ifb0 root cake bandwidth 10mbit dual-dsthost {down}"
        )
    };
    for (down, expected) in [("nat", "both"), ("", "egress")] {
        let (toml, warnings) = ends(&["tc", &script(down)], 0);
        assert_eq!(warnings, "");
        assert!(toml.ends_with(&format!("nat = \"{expected}\"\n")), "{toml}");
        let document = json(&["tc", "--json", &script(down)], 0);
        assert_eq!(document["run"]["nat"], expected);
        assert_eq!(document["warnings"], serde_json::json!([]));
    }
    let (_, warnings) = ends(&["tc", "qdisc add dev wan root cake bandwidth 5mbit nat"], 0);
    assert!(
        warnings.contains("`nat`: the translation is not known"),
        "{warnings}"
    );
}

#[test]
fn an_ifb_that_gets_no_packets_is_not_run() {
    let lost = "qdisc add dev ifb0 root pfifo";
    let (_, warning) = ends(&["tc", lost], 0);
    assert!(
        warning.contains("no filter redirects packets to `ifb0`, so its tree gets none"),
        "{warning}"
    );
    let (_, stderr) = ends(&["tc", lost, "--run", "lan"], 2);
    assert!(stderr.contains("so a run has no packets for its"), "{stderr}");
    assert!(
        stderr.contains("action mirred egress redirect dev ifb0"),
        "{stderr}"
    );
}

#[test]
fn the_device_has_queues_and_a_speed() {
    let (tree, warnings) = ends(
        &["tc", "qdisc add dev e root mq", "--tx-queues", "2", "--tree"],
        0,
    );
    assert_eq!(warnings, "");
    assert!(
        tree.contains("mq") && tree.matches("pfifo_fast").count() == 2,
        "{tree}"
    );
    let percent = "qdisc add dev e root tbf rate 10% burst 99kb limit 1mb";
    let (tree, _) = ends(&["tc", percent, "--speed", "1gbit", "--tree"], 0);
    assert!(tree.contains("rate=100mbit"), "{tree}");
    let (_, stderr) = ends(&["tc", percent], 2);
    assert!(stderr.contains("give the speed with --speed"), "{stderr}");
}

#[test]
fn a_direction_has_one_tree() {
    let beside = format!("{BOTH_WAYS}\nqdisc add dev lan root pfifo");
    let (_, stderr) = ends(&["tc", &beside, "--run", "lan"], 2);
    assert!(
        stderr.contains("packets from `wan` to `lan` would pass two trees, `ifb0` and `lan`"),
        "{stderr}"
    );
}

/// What is printed is a configuration that `check` takes.
#[test]
fn a_name_that_no_interface_can_have_is_refused() {
    let script = "qdisc add dev eth9223372036854775807 root sfq\nqdisc add dev eth0 root fq_codel";
    for more in [&[][..], &["--tree"], &["--json"]] {
        let (stdout, stderr) = ends(&[&["tc", script], more].concat(), 2);
        let said = stdout + &stderr;
        assert!(said.contains("is not a valid interface name"), "{said}");
        assert!(said.contains("1 to 15 characters"), "{said}");
    }
}

/// A file without [run] says why, and how to add one. With it, it can be run.
#[test]
fn a_run_that_is_left_out_is_named() {
    let adds = |devices: &[&str]| {
        let lines = devices
            .iter()
            .map(|device| format!("qdisc add dev {device} root fq_codel"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let (stdout, _) = ends(&["tc", &adds(&["wan"])], 0);
    let why = "# There is no [run]: the script says what leaves by \"wan\", and not from where it comes.";
    assert!(stdout.contains(why), "{stdout}");
    let at = stdout.find("# [run]").expect("the section as a comment");
    let section: Vec<&str> = stdout[at..].lines().take(3).map(|line| &line[2..]).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wan.toml");
    std::fs::write(&file, format!("{stdout}\n{}\n", section.join("\n"))).unwrap();
    let (said, _) = ends(&["check", file.to_str().unwrap()], 0);
    assert!(said.contains("wan"), "{said}");

    let (stdout, _) = ends(&["tc", &adds(&["lan", "wan"])], 0);
    assert!(
        stdout.contains("\n[run]\n") && !stdout.contains("# There is no [run]"),
        "{stdout}"
    );
    for (script, why) in [
        (
            adds(&["a", "b", "c"]),
            "the script has trees for \"a\", \"b\", \"c\", and a run joins two",
        ),
        (
            "qdisc add dev wan root etf clockid CLOCK_TAI".to_owned(),
            "a tree can't be run live",
        ),
    ] {
        let (stdout, _) = ends(&["tc", &script], 0);
        assert!(
            stdout.contains(&format!("# There is no [run]: {why}")),
            "{stdout}"
        );
    }
}
