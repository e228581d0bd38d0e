//! A tree that was parsed from tc's commands is shown as Linux's tc showed it. The dumps beside the traces
//! have kinds, parents and options of qdiscs, and lines of classes.

use std::path::Path;

use fairgate::{Count, Statistics};
use fairgate_config::Spec;
use fairgate_evidence::replay::{Outcome, find, replay_with};
use fairgate_scripts::tc::{Amount, Detail, Device, Script, Shown, State, show};
use serde_json::Value;

/// Whether a value equals the dumped one. The kernel has its own units of time and shows up to 1 us less.
fn is_equal(amount: &Amount, dumped: &Value) -> bool {
    match amount {
        Amount::Count(number, _) => dumped.as_u64() == Some(*number),
        Amount::Size(number) => dumped
            .as_u64()
            .or(dumped.as_str().and_then(size))
            .is_some_and(|size| number.abs_diff(size) <= 1),
        Amount::Time(nanos) => dumped
            .as_u64()
            .is_some_and(|micros| (nanos / 1000).abs_diff(micros) <= 1),
        Amount::Rate(rate) => dumped.as_u64() == Some(rate.bits_per_second() / 8),
        Amount::Flag(flag) | Amount::Switch(flag) => dumped.as_bool() == Some(*flag),
        Amount::Numbers(numbers) => {
            let dumped = dumped.as_array().into_iter().flatten().filter_map(Value::as_u64);
            dumped.eq(numbers.iter().copied())
        }
        Amount::Text(text) => dumped.as_str() == Some(text),
        Amount::Digits(number) => dumped
            .as_f64()
            .is_some_and(|dumped| (dumped - number).abs() < 1e-6),
        Amount::InCells(bytes) => dumped
            .as_str()
            .and_then(size)
            .is_some_and(|size| bytes.abs_diff(size) <= 1),
        // These kinds are not in the dumps.
        Amount::Decimal(_)
        | Amount::Object(_)
        | Amount::Signed(_)
        | Amount::Curve(_)
        | Amount::Bare(_)
        | Amount::Variable(_)
        | Amount::VariableRate(_)
        | Amount::Objects(_) => false,
    }
}

/// Parses a size. tbf shows the size of its cells after a slash: 3000b/1. The kernel stores sizes as times,
/// and shows up to 1 byte less.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = text
        .split('/')
        .next()?
        .split_at(text.find(|character: char| !character.is_ascii_digit())?);
    let number: u64 = number.parse().ok()?;
    match unit {
        "b" => Some(number),
        "Kb" => Some(number << 10),
        "Mb" => Some(number << 20),
        _ => None,
    }
}

/// Returns the first difference between a qdisc and its dump.
fn difference(shown: &Shown, dumped: &Value) -> Option<String> {
    if dumped["kind"] != shown.kind {
        return Some(format!("{} is shown as {}", dumped["kind"], shown.kind));
    }
    let options = dumped["options"].as_object()?;
    // Counters are taken from the dump.
    let counted = options
        .get("direct_packets_stat")
        .and_then(Value::as_i64)
        .map(|packets| ("direct_packets".to_owned(), fairgate::Variable::Integer(packets)));
    let state = State {
        variables: counted.into_iter().collect(),
        ..State::default()
    };
    let details = shown.options(&state, true);
    // A child of a shaper has replaced its limit.
    let has_inner = shown.kind == "tbf" && !details.iter().any(|detail| detail.word == "lat");
    let of_dump = options.iter().filter(|(name, _)| !(has_inner && *name == "lat"));
    for (name, value) in of_dump {
        match details.iter().find(|detail| detail.key == name) {
            Some(detail) if is_equal(&detail.amount, value) => {}
            found => return Some(format!("{} {name} {value} is shown as {found:?}", shown.kind)),
        }
    }
    // tc does not show options that are off.
    let is_extra = |detail: &&Detail| {
        detail.text().is_some() && !options.contains_key(detail.key) && !detail.key.is_empty()
    };
    let extra = details.iter().find(is_extra)?;
    Some(format!("{} shows {extra:?}, the kernel does not", shown.kind))
}

/// Formats a class as tc prints it with details.
fn class_line(class: &Shown) -> String {
    let mut words = vec![format!("class {} {}", class.kind, class.id)];
    let parent = class.parent.map(|parent| format!("parent {parent}"));
    words.push(parent.unwrap_or_else(|| "root".to_owned()));
    words.extend(class.leaf.map(|leaf| format!("leaf {leaf:x}:")));
    let details = class.options(&State::default(), true);
    words.extend(details.iter().filter_map(Detail::text));
    words.join(" ")
}

/// Whether two lines have the same words, except for sizes, which the kernel stores as times.
fn are_alike(line: &str, dumped: &str) -> bool {
    let is_alike = |(word, other): (&str, &str)| {
        word == other
            || size(word)
                .zip(size(other))
                .is_some_and(|(size, other)| size.abs_diff(other) <= 1)
    };
    let words = line.split(' ').zip(dumped.split(' '));
    line.split(' ').count() == dumped.split(' ').count() && words.into_iter().all(is_alike)
}

fn without_leaf(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let Some(leaf) = words.iter().position(|word| *word == "leaf") else {
        return line.to_owned();
    };
    [&words[..leaf], &words[leaf + 2..]].concat().join(" ")
}

fn read(setup: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(setup).expect("a setup")).expect("JSON")
}

/// Returns the tree that the commands of a setup describe.
fn spec(setup: &Value) -> Option<Spec> {
    let number = |name: &str| setup["device"][name].as_u64().expect("a number") as u32;
    let device = Device {
        mtu: number("mtu"),
        txqueuelen: number("txqueuelen"),
        hard_header_len: number("hard_header_len"),
        ..Device::default()
    };
    let commands: Vec<&str> = setup["setup"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let script = Script::parse("setup", &commands.join("\n"), device).ok()?;
    script.spec().ok()
}

fn compare(setup: &Path) -> Option<Vec<String>> {
    let setup = read(setup);
    let (qdiscs, classes) = show(&spec(&setup)?);
    let mut differences = Vec::new();
    for dumped in setup["checkpoints"][0]["tc_qdisc"].as_array()? {
        let parent = dumped["parent"].as_str();
        let is_same = |shown: &&Shown| shown.parent.map(|parent| parent.to_string()).as_deref() == parent;
        match qdiscs.iter().find(is_same) {
            Some(shown) => differences.extend(difference(shown, dumped)),
            None => differences.push(format!("nothing is shown at {parent:?}")),
        }
    }
    let lines = setup["checkpoints"][0]["tc_class"].as_array()?;
    let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).map(str::trim).collect();
    for class in &classes {
        let line = class_line(class);
        // A class without its own qdisc has a fifo that tc does not name.
        let is_same = |dumped: &&str| are_alike(&line, dumped) || are_alike(&without_leaf(&line), dumped);
        if !lines.iter().any(is_same) {
            differences.push(format!("this class is not in the dump: {line}"));
        }
    }
    Some(differences)
}

/// Formats the statistics of a class as tc prints them.
fn class_statistics(class: &Shown, state: &State) -> Vec<String> {
    let Statistics {
        dequeued: sent,
        dropped,
        overlimits,
        ..
    } = &state.statistics;
    let sent = format!(
        "Sent {} bytes {} pkt (dropped {}, overlimits {overlimits} requeues 0)",
        sent.bytes, sent.packets, dropped.packets
    );
    let rows = class.statistics(state).into_iter().map(|row| {
        let words: Vec<String> = row.details.iter().filter_map(Detail::text).collect();
        words.join(" ")
    });
    std::iter::once(sent).chain(rows).collect()
}

/// Inner classes are compared too: borrowed and lent packets, tokens, periods of virtual time, and service by
/// criterion.
#[test]
fn class_statistics_equal_those_of_the_kernel() {
    let folder = crate::common::kernel_traces();
    let mut compared = 0;
    for trace in find(&folder).expect("the folder has traces") {
        let kind = trace.parent().and_then(|folder| folder.file_name());
        if !kind.is_some_and(|kind| kind == "htb" || kind == "hfsc") {
            continue;
        }
        let setup = read(&trace.with_extension("").with_extension("json"));
        let spec = spec(&setup).expect("the commands are valid");
        let mut root = spec.build(1).expect("the tree can be built");
        let outcome = replay_with(&trace, root.as_mut()).expect("the recorded traces are complete");
        assert!(matches!(outcome, Outcome::Equal { .. }), "{outcome:?}");
        let dump = setup["checkpoints"]
            .as_array()
            .and_then(|checkpoints| checkpoints.last());
        let lines = dump
            .and_then(|dump| dump["tc_class"].as_array())
            .expect("classes were dumped");
        let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).map(str::trim).collect();
        let (_, classes) = show(&spec);
        root.visit_class_states(&mut |class_state| {
            let class = classes
                .iter()
                .find(|class| class.id.class == class_state.minor)
                .expect("the class is shown");
            let (mut held, mut is_leaf) = (State::default(), false);
            root.visit_classes(&mut |class| {
                if class.minor == class_state.minor {
                    held = State::of(class.discipline);
                    is_leaf = true;
                }
            });
            let variables = class_state
                .variables
                .iter()
                .map(|&(name, value)| (name.to_owned(), value));
            let mut state = held.of_class(class_state.sent, class_state.overlimits, variables.collect());
            if class.kind == "hfsc" && !is_leaf {
                // Linux counts sent packets only in the statistics of leaves.
                let work = state.number("work");
                assert_eq!(work, Some(state.statistics.dequeued.bytes));
                state.statistics.dequeued = Count::default();
            }
            let head = format!("class {} {} ", class.kind, class.id);
            let first = lines
                .iter()
                .position(|line| line.starts_with(&head))
                .expect("the class is in the dump");
            let dumped: Vec<&str> = lines[first + 1..]
                .iter()
                .copied()
                .take_while(|line| !line.is_empty())
                .collect();
            let ours = class_statistics(class, &state);
            let dumped_without_backlog: Vec<&str> = dumped
                .into_iter()
                .filter(|line| !line.starts_with("backlog"))
                .collect();
            assert_eq!(ours, dumped_without_backlog, "{} {}", trace.display(), class.id);
            compared += 1;
        });
    }
    assert!(compared > 50, "{compared} classes");
}

#[test]
fn trees_are_shown_as_tc_showed_them() {
    let folder = crate::common::kernel_traces();
    let kinds = [
        "pfifo",
        "bfifo",
        "pfifo_head_drop",
        "prio",
        "ets",
        "drr",
        "qfq_distinct",
        "qfq_textbook",
        "sfq",
        "codel",
        "fq_codel",
        "tbf",
        "red",
        "htb",
        "hfsc",
    ];
    let (mut compared, mut wrong) = (0, Vec::new());
    for trace in find(&folder).expect("the folder has traces") {
        let kind = trace.parent().and_then(|folder| folder.file_name());
        if !kind.is_some_and(|kind| kinds.iter().any(|known| kind == *known)) {
            continue;
        }
        let setup = trace.with_extension("").with_extension("json");
        match compare(&setup) {
            Some(differences) => wrong.extend(
                differences
                    .into_iter()
                    .map(|one| format!("{}: {one}", setup.display())),
            ),
            None => wrong.push(format!("{}: the commands can't be read", setup.display())),
        }
        compared += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 20, "{compared} dumps");
}
