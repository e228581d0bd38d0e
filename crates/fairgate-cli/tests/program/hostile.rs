//! Names that want to control the terminal: from configuration files, scripts, captures and runs.
//! Every command that prints names shows them, and sends none of them.

use std::fs;
use std::path::Path;

use fairgate::harmless::is_hidden;
use fairgate_config::Spec;
use fairgate_run_api::{FlowStatus, SubscriberName};

use super::show::{serve, status};
use super::{fairgate, folder, text};

/// A colour, the title of the terminal, C1 controls, a change of direction, and a character of no width. In a
/// file of TOML.
const NAME: &str = r"\u001b[31mr\u001b]0;own\u0007e\u009b2Jd\u202egrey\u200bx";

/// The same as the program gets it.
const RAW: &str = "\x1b[31mr\x1b]0;own\x07e\u{9b}2Jd\u{202e}grey\u{200b}x";

/// Writes files whose names and comments are hostile.
fn write_files(into: &Path) {
    let scenario = |name: &str| {
        format!(
            "[queue.\"{name}\"]\ndiscipline = \"fifo\"\n\
             [simulate]\nduration = \"300ms\"\n\
             [[simulate.link]]\nname = \"l{name}\"\na = \"a{name}\"\nb = \"b{name}\"\nrate = \"10mbit\"\n\
             queue_b = \"{name}\"\n\
             [[simulate.flow]]\nname = \"f{name}\"\nfrom = \"b{name}\"\nto = \"a{name}\"\n\
             udp = {{rate = \"1mbit\", size = \"1000b\"}}\n\
             [[simulate.flow]]\nname = \"t{name}\"\nfrom = \"b{name}\"\nto = \"a{name}\"\ntcp = {{}}\n"
        )
    };
    let scenario_file = scenario(NAME);
    let files = [
        ("scenario.toml", scenario_file.clone()),
        ("sweep.toml", format!("{scenario_file}[sweep]\nseeds = 2\n")),
        ("lines.toml", scenario(r"a\nqueue b\n\tc")),
        ("clear.toml", scenario(r"\u001b[2J")),
        ("nothing.toml", scenario_file.replace("to = \"a", "to = \"no")),
        (
            "section.toml",
            format!("[queue.a]\ndiscipline = \"fifo\"\n[\"{NAME}\"]\nx = 1\n"),
        ),
        ("discipline.toml", format!("[queue.a]\ndiscipline = \"{NAME}\"\n")),
        (
            "interface.toml",
            format!("[run]\nleft = \"{NAME}\"\nright = \"r2\"\n"),
        ),
        (
            "key.toml",
            format!("[queue.a]\ndiscipline = \"fifo\"\n\"{NAME}\" = 1\n# \x1b[31mraw\nx = \x1b\n"),
        ),
        ("unknown.tc", format!("qdisc add dev eth0 root {RAW}\n")),
        ("device.tc", format!("qdisc add dev {RAW} root fq_codel\n")),
        (
            "short.tc",
            "qdisc add dev \x1b[31meth0 root fq_codel\n".to_owned(),
        ),
        (
            "turned.tc",
            "qdisc add dev a\u{202e}\u{9b}b root fq_codel\n".to_owned(),
        ),
        (
            "two.tc",
            "qdisc add dev a\u{202e}b root fq_codel\nqdisc add dev c\u{9b}d root fq_codel\n".to_owned(),
        ),
        ("pipe.ipfw", "ipfw pipe 1 config bw \x1b[31m1Mbit/s\n".to_owned()),
    ];
    for (name, content) in files {
        fs::write(into.join(name), content).expect("a file of our own");
    }
    fs::copy(folder("tests/hostile/named.pcapng"), into.join("named.pcapng")).expect("a copy");
}

/// Asserts that what a command printed controls no terminal and hides nothing.
#[track_caller]
fn is_plain(what: &[&str], printed: &str) {
    let hidden = printed
        .char_indices()
        .find(|&(_, character)| is_hidden(character) && character != '\n');
    if let Some((place, character)) = hidden {
        let before = printed[..place].chars().rev().take(60).collect::<Vec<_>>();
        let before: String = before.into_iter().rev().collect();
        panic!("{what:?} sends {character:?} after {before:?}");
    }
}

/// Runs a command in the folder. Returns what it printed, on both streams.
#[track_caller]
fn printed(arguments: &[&str], place: &Path) -> String {
    let output = fairgate(arguments).current_dir(place).output().expect("built");
    let code = output.status.code();
    let both = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(
        code.is_some_and(|code| code <= 3),
        "{arguments:?}: {code:?}\n{both}"
    );
    is_plain(arguments, &both);
    both
}

#[test]
fn names_from_files_do_not_control_the_terminal() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let place = place.path();
    write_files(place);
    let turned = "\\u{202e}";
    let escape = "\\u{1b}";
    // The command, and what it must show of the name.
    let commands: &[(&[&str], &str)] = &[
        (&["check", "scenario.toml"], turned),
        (&["check", "sweep.toml"], turned),
        (&["check", "lines.toml"], "queue a\\nqueue b\\n\\tc\n"),
        (&["check", "section.toml"], turned),
        (&["check", "discipline.toml"], turned),
        (&["check", "interface.toml"], escape),
        (&["check", "key.toml"], escape),
        (&["check", "nothing.toml"], turned),
        (&["simulate", "scenario.toml"], turned),
        (&["simulate", "clear.toml"], escape),
        (&["simulate", "lines.toml"], "fa\\nqueue b"),
        (&["simulate", "scenario.toml", "--seeds", "2"], turned),
        (&["simulate", "nothing.toml"], turned),
        (
            &[
                "compare",
                "scenario.toml",
                "--replace",
                RAW,
                "--queue",
                "fifo",
                "--out",
                "other.html",
            ],
            turned,
        ),
        (&["compare", "--trace", "named.pcapng", "--rate", "1mbit"], ""),
        (&["sweep", "sweep.toml", "--out", "a\u{202e}b"], turned),
        (&["sweep", "nothing.toml"], ""),
        (&["run", "interface.toml"], escape),
        (&["run", "scenario.toml"], ""),
        (&["tc", "unknown.tc"], turned),
        (&["tc", "device.tc"], "\\u001B"),
        (&["tc", "short.tc"], "\\u001B"),
        (&["tc", "turned.tc"], "\\u202E\\u009B"),
        (&["tc", "two.tc"], "\\u202E"),
        (&["tc", "--tree", "turned.tc"], turned),
        (&["tc", "--tree", "two.tc"], turned),
        (&["dummynet", "pipe.ipfw"], escape),
        (&["list", RAW], turned),
        (&["theory", RAW], ""),
        (&["replay", RAW], turned),
        (&["plot", RAW], turned),
        (&["check", RAW], turned),
        (&["testbed", "--queue", RAW], ""),
    ];
    for (arguments, shown) in commands {
        let printed = printed(arguments, place);
        assert!(
            printed.contains(shown),
            "{arguments:?} does not show the name:\n{printed}"
        );
    }
    // Documents for programs have the names as they are, in the escapes of JSON.
    let document = printed(&["simulate", "--json", "scenario.toml"], place);
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["flows"][0]["name"], format!("f{RAW}"));
}

#[test]
fn names_in_pages_are_escaped() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let place = place.path();
    write_files(place);
    let queues = ["--queue", "fifo", "--queue", "fq_codel"];
    let compare = [&["compare", "scenario.toml", "--out", "page.html"][..], &queues].concat();
    printed(&compare, place);
    printed(&["simulate", "scenario.toml", "--out", "results.json"], place);
    printed(&["plot", "results.json", "--out", "plot.svg"], place);
    for page in ["page.html", "plot.svg"] {
        let page = fs::read_to_string(place.join(page)).expect("it was written");
        is_plain(&compare, &page);
        assert!(page.contains("\\u{202e}"), "the page does not show the name");
    }
}

/// Colours are ours only if nothing in the error could have brought them.
#[test]
fn an_error_with_a_hostile_name_has_no_colours() {
    let place = tempfile::tempdir().expect("a temporary folder");
    write_files(place.path());
    let coloured = |file: &str| {
        let mut command = fairgate(&["check", file]);
        command
            .current_dir(&place)
            .env_remove("NO_COLOR")
            .env("CLICOLOR_FORCE", "1");
        text(&command.output().expect("built").stderr).to_owned()
    };
    is_plain(&["check"], &coloured("discipline.toml"));
    fs::write(
        place.path().join("plain.toml"),
        "[queue.a]\ndiscipline = \"nonsense\"\n",
    )
    .expect("a file");
    assert!(
        coloured("plain.toml").contains("\x1b["),
        "errors are coloured if asked for"
    );
}

#[test]
fn names_from_a_run_do_not_control_the_terminal() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let path = place.path().join("sock");
    let socket = path.to_str().expect("an ordinary path");
    let spec = Spec::inline("fq_codel").expect("a discipline");
    let mut status = status(&spec, RAW, &[1]);
    status.name = RAW.to_owned();
    status.directions[0].from = format!("from{RAW}");
    status.directions[0].tree.discipline = format!("d{RAW}");
    let status = serde_json::to_value(&status).expect("a status is JSON");
    let flow = FlowStatus {
        from: RAW.to_owned(),
        source: RAW.to_owned(),
        class: RAW.to_owned(),
        discipline: RAW.to_owned(),
        subscriber: Some(SubscriberName {
            id: RAW.to_owned(),
            name: Some(RAW.to_owned()),
            plan: Some(RAW.to_owned()),
            limited_until_s: None,
        }),
        ..FlowStatus::default()
    };
    let flows = serde_json::json!({
        "observed_s": 1, "active": 1, "forgotten": 0, "missed_packets": 0, "flows": [flow],
    });
    let reserved = serde_json::json!({ "revision": 1, "reservations": [{
        "from": RAW, "class": RAW, "reserved_bps": 1, "promised_us": 1.0, "no_error_terms": RAW,
        "expires_s": 1.0,
        "terms": { "name": RAW, "rate_bps": 1, "burst_bytes": 1, "filter": RAW, "lifetime_ms": 1 },
    }] });
    let refused = serde_json::json!({
        "type": RAW, "title": RAW, "detail": RAW, "errors": [{ "message": RAW, "help": RAW }],
    });
    let turned = "\\u{202e}";
    let commands: &[(&[&str], &serde_json::Value, &str)] = &[
        (&["status"], &status, turned),
        (&["status", "--json"], &status, "\\u202e"),
        (&["show"], &status, turned),
        (&["show", "--dev", "other"], &status, turned),
        (&["show", "-j"], &status, "\\u202e"),
        (&["flows"], &flows, turned),
        (&["flows", "--json"], &flows, "\\u202e"),
        (&["reserve", "list"], &reserved, turned),
        (&["reserve", "list"], &refused, turned),
        (&["reserve", "list", "--json"], &reserved, "\\u202e"),
        (&["class", "change", "1", "rate=1mbit"], &refused, turned),
        (
            &["class", "change", "1", "rate=1mbit", "--json"],
            &refused,
            turned,
        ),
        // What these ask for is not answered.
        (&["top", "--once"], &status, ""),
        (&["flows"], &status, ""),
        (&["queue", "show"], &status, ""),
    ];
    for (arguments, answer, shown) in commands {
        let _ = fs::remove_file(&path);
        // More connections than any of the commands makes.
        let _server = serve(&path, answer, 16);
        let printed = printed(&[*arguments, &["--socket", socket][..]].concat(), place.path());
        assert!(
            printed.contains(shown),
            "{arguments:?} does not show the name:\n{printed}"
        );
    }
}
