//! Compares `show` with the output of tc of iproute2 6.1 on Linux 6.1 (the last three cases: 6.18), for the
//! same commands. `beside_tc.txt` has the commands, each after `#` or on its own line, and then the output of
//! several tc commands.

use fairgate_scripts::tc::{Device, Script};
use serde_json::Value;

use super::{ends, serve, status};

const RECORDED: &str = include_str!("beside_tc.txt");

/// Words for which tc has a value and we do not. The kernel needs them for its sockets and timers.
const NOT_KEPT: [&str; 4] = ["orphan_mask", "timer_slack", "gc", "highprio"];

/// A case: the commands, and the output of each of tc's commands.
struct Case {
    commands: String,
    printed: Vec<(&'static str, Vec<&'static str>)>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in RECORDED.lines().filter(|line| !line.is_empty()) {
        let case = cases.last_mut();
        if let Some(command) = line.strip_prefix("# ") {
            cases.push(Case {
                commands: format!("{command}\n"),
                printed: Vec::new(),
            });
        } else if line.starts_with("-s ") {
            case.expect("a case starts with #")
                .printed
                .push((line, Vec::new()));
        } else {
            let case = case.expect("a case starts with #");
            match case.printed.last_mut() {
                Some((_, lines)) => lines.push(line),
                None => case.commands.extend([line, "\n"]),
            }
        }
    }
    cases
}

/// Translates tc's arguments into ours.
fn arguments<'a>(of_tc: &'a str, socket: &'a str) -> Vec<&'a str> {
    let ours = of_tc.split(' ').filter_map(|word| match word {
        "-s" | "show" => None,
        "dev" => Some("--dev"),
        word => Some(word),
    });
    ["show"]
        .into_iter()
        .chain(ours)
        .chain(["--socket", socket])
        .collect()
}

impl Case {
    /// Returns whether we do not keep this word. A tbf with an attached qdisc has no limit, and so no `lat`.
    fn is_not_kept(&self, word: &str, handle: &str) -> bool {
        let holds_another = || self.commands.contains(&format!("parent {handle}1 "));
        NOT_KEPT.contains(&word) || word == "lat" && holds_another()
    }
}

/// Returns the line without the words that are not kept, and without their values.
fn kept(case: &Case, line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let handle = line.split_whitespace().nth(2).unwrap_or_default();
    let mut words = line.split_whitespace();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if case.is_not_kept(word, handle) {
            words.next();
        } else {
            kept.push(word);
        }
    }
    format!("{}{}", &line[..indent], kept.join(" "))
}

/// Returns each qdisc or class with the lines below it, at most `most` of them.
fn blocks<'t>(case: &Case, lines: impl IntoIterator<Item = &'t str>, most: usize) -> Vec<Vec<String>> {
    let mut blocks: Vec<Vec<String>> = Vec::new();
    for line in lines.into_iter().filter(|line| !line.is_empty()) {
        match line.starts_with(' ') {
            true => blocks
                .last_mut()
                .expect("a block has a head")
                .push(kept(case, line)),
            false => blocks.push(vec![kept(case, line)]),
        }
    }
    blocks.iter_mut().for_each(|block| block.truncate(most));
    // Lines that had only words that are not kept.
    blocks
        .iter_mut()
        .for_each(|block| block.retain(|line| !line.trim().is_empty()));
    blocks
}

fn compare_text(case: &Case, of_tc: &str, printed: &[&str], shown: &str, wrong: &mut Vec<String>) {
    let is_class = of_tc.contains("class");
    // For htb's classes, everything that tc counts is kept. The statistics of hfsc's classes are compared
    // elsewhere, with a kernel's beside its traces, except the root's.
    let most = if is_class && !case.commands.contains(": htb") {
        3
    } else {
        usize::MAX
    };
    // The lines about cake and its tins are aligned.
    if case.commands.contains(" cake") {
        let ours: Vec<&str> = shown.lines().map(str::trim_end).collect();
        for line in printed.iter().filter(|line| line.starts_with(' ')) {
            if !ours.contains(line) {
                wrong.push(format!("{of_tc}\n{line}\nis not in\n{shown}"));
            }
        }
    }
    // The empty lines between classes were not recorded.
    let ours = blocks(case, shown.lines().filter(|line| !line.is_empty()), most);
    for block in blocks(case, printed.iter().copied(), most) {
        // The kernel reports no numbers of classes that count nothing.
        let is_same =
            |other: &&Vec<String>| other[0] == block[0] && other[..block.len().min(other.len())] == block[..];
        if !ours.iter().any(|other| is_same(&other)) {
            wrong.push(format!("{of_tc}\n{}\nis not in\n{shown}", block.join("\n")));
        }
    }
    let heads: Vec<String> = printed.iter().map(|line| kept(case, line)).collect();
    for block in ours {
        if !heads.contains(&block[0]) {
            wrong.push(format!("{of_tc}\ntc does not show {}", block[0]));
        }
    }
}

fn compare_json(case: &Case, of_tc: &str, printed: &str, shown: &str, wrong: &mut Vec<String>) {
    // tc's output for hfsc's default class is not valid JSON.
    let printed = printed.replace("{default 11 }", "{\"default\":\"11\"}");
    let printed: Value = serde_json::from_str(&printed).expect("tc prints JSON");
    let shown: Value = serde_json::from_str(shown).expect("we print JSON");
    let shown = shown.as_array().expect("a list");
    for object in printed.as_array().expect("a list") {
        let mut object = object.clone();
        let handle = object["handle"].as_str().expect("all have one").to_owned();
        for part in ["", "/options"] {
            let part = object.pointer_mut(part).and_then(Value::as_object_mut);
            part.expect("objects")
                .retain(|key, _| !case.is_not_kept(key, &handle));
        }
        if !shown.contains(&object) {
            let ours = shown.iter().find(|other| other["handle"] == handle);
            wrong.push(format!("{of_tc}\n{object}\nis shown as\n{ours:?}"));
        }
    }
}

#[test]
fn the_output_is_equal_to_that_of_tc() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for case in cases() {
        let script = Script::parse("recorded", &case.commands, Device::default());
        let spec = script.and_then(|script| script.spec());
        let spec = spec.unwrap_or_else(|error| panic!("{}{error:?}", case.commands));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("sock");
        let socket = path.to_str().expect("an ordinary path");
        let server = serve(&path, &status(&spec, "d0", &[]), case.printed.len());
        for (of_tc, printed) in &case.printed {
            let (shown, _) = ends(&arguments(of_tc, socket), 0);
            let before = wrong.len();
            match of_tc.contains("-j") {
                true => compare_json(&case, of_tc, printed[0], &shown, &mut wrong),
                false => compare_text(&case, of_tc, printed, &shown, &mut wrong),
            }
            for message in &mut wrong[before..] {
                message.insert_str(0, &case.commands);
            }
            compared += 1;
        }
        server.join().expect("all requests were answered");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(compared, 6 * cases().len());
}
