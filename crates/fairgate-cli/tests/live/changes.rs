//! Changes of a run while it forwards.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use fairgate_config::{Document, Spec};
use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{live, output, until};
use crate::harness::code_and_message;
use crate::run::{Run, transfer_of};
use crate::stream::with_stream;

const FIRST: &str = "[queue.line]\ndiscipline = \"fifo\"\n\n[run]\nleft = \"left\"\nright = \"right\"\n\
    left_to_right = \"line\"\nright_to_left = \"line\"\n";

/// Trees that all have room, and change into one another in all ways: in place, class by class, as a whole.
const TREES: [&str; 8] = [
    "queue change root fq_codel target=100ms",
    "queue change root target=200ms",
    "queue change root drr default=2 { 1 / fifo; 2 / fq_codel target=100ms; 3 / sfq }",
    "class add 4 quantum=3000 / fifo",
    "class delete 1",
    "queue change 2 fifo",
    "queue change root htb default=10 { 1 rate=1gbit { 10 rate=500mbit / fifo; 20 rate=9mbit / fifo } }",
    "queue add root tbf rate=1gbit burst=1mb",
];

/// Makes a change, which must be possible. Returns the pause in microseconds, and how many packets it
/// dropped.
pub(crate) fn change(run: &Run, line: &str) -> (f64, u64) {
    match run.change(None, &[line.to_owned()]) {
        Ok(made) => (made.pause_us, made.dropped),
        Err(error) => panic!("{line}: {error}"),
    }
}

/// Packets of one flow all arrive, in their order, whatever changes meanwhile.
#[test]
fn a_thousand_changes_lose_and_reorder_nothing() {
    let Some(_watched) = live("a_thousand_changes_lose_and_reorder_nothing") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, FIRST);
    let mut pauses: Vec<f64> = Vec::with_capacity(1000);
    let received = with_stream(&network, Duration::from_millis(1), || {
        for round in 0..125 {
            for line in TREES {
                let (pause, dropped) = change(&run, line);
                assert_eq!(dropped, 0, "{line} in round {round}");
                pauses.push(pause);
            }
        }
    });
    pauses.sort_by(f64::total_cmp);
    println!(
        "{received} packets, {} changes: pause median {:.1} us, longest {:.1} us",
        pauses.len(),
        pauses[pauses.len() / 2],
        pauses[pauses.len() - 1]
    );
    let status = run.status();
    assert_eq!((status.changes.applied, status.changes.refused), (1000, 0));
    // The statistics of the root go on.
    let tree = &status.directions[0].tree;
    assert_eq!(
        tree.enqueued.packets,
        tree.dequeued.packets + tree.backlog.packets
    );
    assert!(status.check().is_ok());
    run.stop();
}

/// TCP passes a tree that takes super-packets whole, while it changes to trees that do not, and back.
#[test]
fn super_packets_survive_changes() {
    let Some(_watched) = live("super_packets_survive_changes") else {
        return;
    };
    let network = Network::build().unwrap();
    let whole = FIRST.replace("fifo", "fq_codel");
    let run = Run::start(&network.router, &whole);
    let address = format!("{}:5001", Network::RIGHT);
    thread::scope(|scope| {
        let transfer = || {
            transfer_of(
                100_000_000,
                &network.left,
                &network.right,
                &address,
                "while it changes",
            )
        };
        let transferring = scope.spawn(transfer);
        while !transferring.is_finished() {
            change(&run, "queue change root tbf rate=4gbit burst=1mb / fq_codel");
            change(&run, "queue change root fq_codel");
            change(&run, "queue change root msfc");
            change(&run, "queue change root fifo");
            change(&run, "queue change root ets { 1 / fq_codel; 2 / msfc }");
            thread::sleep(Duration::from_millis(5));
        }
    });
    let direction = &run.status().directions[0];
    assert!(direction.super_packets > 0, "{direction:?}");
    let sent = &direction.sent;
    assert!(
        sent.bytes / sent.packets <= 1514,
        "the link's packets are counted: {sent:?}"
    );
    let lost = direction.lost;
    assert_eq!((lost.refused, lost.too_long, lost.unsupported_offload), (0, 0, 0));
    assert!(run.status().check().is_ok());

    // The same tree, if the configuration says that super-packets are cut before it.
    let cut = format!("{whole}super_packets = \"cut\"\n");
    fs::write(run.folder.path().join("run.toml"), cut).unwrap();
    let changes = run.status().changes.applied;
    run.signal(Signal::SIGHUP);
    until("the file is read again", || {
        run.status().changes.applied > changes
    });
    let before = run.status().directions[0].super_packets;
    transfer_of(4_000_000, &network.left, &network.right, &address, "cut");
    assert_eq!(run.status().directions[0].super_packets, before);
    run.stop();
}

/// Returns the settings of both directions that a run has otherwise than its file.
fn differences(network: &Network, run: &Run) -> Vec<String> {
    let (file, socket) = (run.folder.path().join("run.toml"), run.socket.to_str().unwrap());
    let mut command = network.router.command(env!("CARGO_BIN_EXE_fairgate"));
    let output = output(command.args(["diff", "--json", "--socket", socket]).arg(file));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = document["differences"]
        .as_array()
        .unwrap_or_else(|| panic!("{document}"));
    assert_eq!(
        output.status.code(),
        Some(i32::from(!found.is_empty())),
        "{document}"
    );
    found
        .iter()
        .map(|one| one["key"].as_str().unwrap().to_owned())
        .collect()
}

/// A reading of the file undoes changes by hand, and says how many: in the log and in its audit. A file that
/// is refused undoes none.
#[test]
fn a_reload_says_how_many_changes_it_undoes() {
    let Some(_watched) = live("a_reload_says_how_many_changes_it_undoes") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, FIRST);
    let file = run.folder.path().join("run.toml");
    let reads_again = |words: &str| {
        let before = run.said().matches(words).count();
        run.signal(Signal::SIGHUP);
        until("the file is read again", || {
            run.said().matches(words).count() > before
        });
    };
    for line in ["queue change root limit=100", "queue change root limit=200"] {
        change(&run, line);
    }
    assert_eq!(differences(&network, &run), ["limit", "limit"]);
    fs::write(&file, "[run]\nnonsense = 1\n").unwrap();
    reads_again("the run continues unchanged");
    fs::write(&file, FIRST).unwrap();
    reads_again("its queues are active");
    let said = run.said();
    let gave_way = "2 changes by hand since the last reading gave way to what it says";
    assert_eq!(said.matches(gave_way).count(), 1, "{said}");
    assert_eq!(said.matches("2 changes by hand undone").count(), 1, "{said}");
    assert!(differences(&network, &run).is_empty());
    // There is nothing more to undo.
    reads_again("its queues are active");
    assert_eq!(run.said().matches("by hand").count(), 2, "{}", run.said());
    run.stop();
}

/// Prints the pause for changes of a tree of 4,000 classes with a filter each.
#[test]
fn a_tree_of_four_thousand_classes_changes() {
    let Some(_watched) = live("a_tree_of_four_thousand_classes_changes") else {
        return;
    };
    let network = Network::build().unwrap();
    let tree = |name: &str, rate: u32, leaf: &str| {
        let mut text = format!(
            "queue change root {name} default=1 {{ 1 {} / fifo",
            if name == "htb" {
                "rate=1gbit"
            } else {
                "quantum=3000"
            }
        );
        for class in 2..=4000 {
            let settings = if name == "htb" {
                format!("rate={rate}kbit")
            } else {
                format!("quantum={rate}")
            };
            text += &format!("; {class} {settings} / {leaf}");
        }
        text + " }"
    };
    let run = Run::start(&network.router, FIRST);
    let filters: Vec<String> = (2..=4000)
        .map(|class| {
            format!(
                "filter add class={class} destination=10.{}.{}.0/24",
                class / 250,
                class % 250
            )
        })
        .collect();
    let all = |tree: String| [vec![tree], filters.clone()].concat();
    let steps = [
        ("fifo to htb", all(tree("htb", 1000, "fifo"))),
        ("all rates of htb", all(tree("htb", 2000, "fifo"))),
        ("one class of htb", vec!["class change 77 rate=3mbit".to_owned()]),
        (
            "one class less",
            vec!["filter delete 3999".to_owned(), "class delete 4000".to_owned()],
        ),
        ("all leaves of htb", all(tree("htb", 2000, "codel"))),
        ("htb to drr", all(tree("drr", 2000, "codel"))),
        ("all quanta of drr", all(tree("drr", 3000, "codel"))),
        (
            "one class less of drr",
            vec!["filter delete 3999".to_owned(), "class delete 4000".to_owned()],
        ),
        ("drr to fifo", vec!["queue change root fifo".to_owned()]),
    ];
    for (what, lines) in steps {
        match run.change(None, &lines) {
            Ok(made) => {
                assert_eq!(made.dropped, 0);
                let pause_us = made.pause_us;
                println!("4,000 classes in both directions, {what}: forwarding paused for {pause_us:.0} us");
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    run.stop();
}

/// The commands: what they print, exit codes, and that a refused change changes nothing.
#[test]
fn commands_change_a_run() {
    let Some(_watched) = live("commands_change_a_run") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, FIRST);
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
        let socket = run.socket.to_str().unwrap();
        output(
            command
                .args(["--json", words[0], "--socket", socket])
                .args(&words[1..]),
        )
    };
    let changed = command(&[
        "queue",
        "change",
        "root",
        "drr",
        "default=2",
        "{ 1 / fifo; 2 / codel }",
    ]);
    assert_eq!(changed.status.code(), Some(0), "{changed:?}");
    let document: serde_json::Value = serde_json::from_slice(&changed.stdout).unwrap();
    assert_eq!(document["schema"], "fairgate.change/1");
    assert_eq!(command(&["class", "add", "3", "/", "sfq"]).status.code(), Some(0));
    assert_eq!(
        command(&["filter", "add", "class=3", "dscp=EF"]).status.code(),
        Some(0)
    );
    let (code, message) = code_and_message(&command(&["class", "delete", "7"]));
    assert_eq!(code, Some(2));
    assert!(message.contains("word 3: `drr` has no class 7"), "{message}");
    let (code, message) = code_and_message(&command(&["class", "delete", "3"]));
    assert_eq!(code, Some(2));
    assert!(message.contains("class 3"), "{message}");
    let one = command(&["queue", "--from", "left", "change", "root", "fifo"]);
    assert_eq!(one.status.code(), Some(0), "{one:?}");
    let (code, message) = code_and_message(&command(&["class", "add", "9", "/", "fifo"]));
    assert_eq!(code, Some(2));
    assert!(message.contains("different trees"), "{message}");
    let file = run.folder.path().join("lines");
    fs::write(&file, "# both\nclass add 9 / fifo\nqueue change 9 pie\n").unwrap();
    let many = command(&["change", "--from", "right", file.to_str().unwrap()]);
    assert_eq!(many.status.code(), Some(0), "{many:?}");
    let shown = command(&["queue", "show"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("pie") && text.contains("dscp"), "{text}");
    until("both are counted", || {
        let changes = run.status().changes;
        (changes.applied, changes.refused) == (5, 3)
    });
    run.stop();
}

/// If only one direction has a tree, no command needs to be told which one. Mistakes lead to what is meant.
#[test]
fn the_only_tree_is_meant() {
    let Some(_watched) = live("the_only_tree_is_meant") else {
        return;
    };
    let network = Network::build().unwrap();
    let between = "[run]\nleft = \"left\"\nright = \"right\"\nright_to_left = \"home line\"\n";
    let on_one = "[run]\ndevice = \"right\"\negress = \"home line\"\n";
    let tree = Spec::inline(
        "tbf rate=50mbit burst=10kb / cbq bandwidth=50mbit { 1 rate=20mbit { 8 rate=10mbit / fifo; \
         9 rate=5mbit / fifo } }",
    );
    let tree = tree.unwrap().to_toml("home line");
    for section in [between, on_one] {
        let run = Run::start(&network.router, &format!("{tree}{section}"));
        let command = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
            let socket = run.socket.to_str().unwrap();
            output(command.args([words[0], "--socket", socket]).args(&words[1..]))
        };
        let refused = |words: &[&str]| {
            let answer = command(words);
            let message = String::from_utf8(answer.stderr).unwrap();
            assert_eq!(answer.status.code(), Some(2), "{words:?}: {message}");
            // Lines are broken where the terminal ends.
            message
                .split_whitespace()
                .filter(|word| *word != "│")
                .collect::<Vec<_>>()
                .join(" ")
        };
        let message = refused(&["class", "change", "9", "rate=6mbit"]);
        assert!(message.contains("word 3") && message.contains("1/9"), "{message}");
        let message = refused(&["filter", "add", "class=9", "dscp=EF"]);
        assert!(message.contains("in=1"), "{message}");
        let message = refused(&[
            "reserve",
            "add",
            "call",
            "rate=1mbit",
            "burst=3kb",
            "destination_port=5004",
        ]);
        assert!(!message.contains("`fifo`"), "{message}");
        for words in [
            &["class", "change", "1/9", "rate=6mbit"][..],
            &["filter", "add", "in=1", "class=9", "dscp=EF"],
            &["queue", "change", "1/8", "prio { 1 / fifo; 2 / sqf }"],
        ] {
            let changed = command(words);
            assert_eq!(changed.status.code(), Some(0), "{words:?}: {changed:?}");
        }
        let shown = command(&["queue", "show"]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        let document = Document::parse("shown", &shown).unwrap();
        let line = document.queue("home line").expect("its name is kept");
        assert!(line.to_toml("x").contains("6mbit"), "{shown}");
        let status = command(&["status"]);
        assert_eq!(status.status.code(), Some(0), "{status:?}");
        let status = String::from_utf8(status.stdout).unwrap();
        let inner = status
            .lines()
            .find(|line| line.contains("1: classes"))
            .unwrap_or_else(|| panic!("{status}"));
        assert!(inner.contains("avgidle") && inner.contains("lent"), "{status}");
        run.stop();
    }
}

/// A change that the machine has no memory for is refused, like a start, before anything is built.
#[test]
fn a_change_beyond_the_memory_is_refused() {
    let Some(_watched) = live("a_change_beyond_the_memory_is_refused") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, FIRST);
    let class = |number: usize| format!("{number} / fq_codel flows=1048576");
    let classes: Vec<String> = (1..=600).map(class).collect();
    let line = format!("queue change root drr {{ {} }}", classes.join("; "));
    let error = run
        .change(None, &[line])
        .expect_err("the tree takes hundreds of gigabytes");
    assert!(error.to_string().contains("of memory"), "{error}");
    // What runs already is not counted again.
    change(
        &run,
        "queue change root drr { 1 / fifo; 2 / fq_codel flows=65536 }",
    );
    change(&run, "class change 1 quantum=3000");
    run.stop();
}
