//! `tc`: commands that change something are written down, queries are answered from what was written down.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::{Answer, record_tc};
use crate::record::journal::{self, Entry, SourceLine};
use crate::record::machine::{Device, Machine, Stored};
use crate::record::recording::{device_of, without_namespace};
use crate::record::source;

/// What `tc` was called with before the object.
#[derive(Debug, Default)]
struct Options {
    /// A file with commands, `-` for standard input.
    batch: Option<String>,
    is_json: bool,
    /// Options that belong to a command and so are recorded with it.
    recorded: Vec<String>,
}

pub(super) fn answer(words: &[String], journal: &Path, machine: &Stored) -> io::Result<Answer> {
    let mut options = Options::default();
    let mut at = 0;
    while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
        match option.trim_start_matches('-') {
            "V" | "Version" => return Ok(Answer::output("tc utility, iproute2-6.1.0, libbpf 1.1.2\n")),
            "j" | "json" => options.is_json = true,
            "n" | "net" | "netns" => {
                options.recorded.extend(words[at..].iter().take(2).cloned());
                at += 1;
            }
            "cf" | "conf" => at += 1,
            name if !name.is_empty() && "batch".starts_with(name) => {
                at += 1;
                options.batch = Some(words.get(at).cloned().unwrap_or_else(|| "-".to_owned()));
            }
            _ => {}
        }
        at += 1;
    }
    let rest = &words[at..];
    match &options.batch {
        Some(file) => batch(file, words),
        None => command(rest, &options, journal, machine),
    }
}

/// The lines of a batch are commands without `tc`.
fn batch(file: &str, words: &[String]) -> io::Result<Answer> {
    let is_pipe = matches!(file, "-" | "/dev/stdin");
    let text = match is_pipe {
        true => io::read_to_string(io::stdin()),
        false => fs::read_to_string(file),
    };
    let text = match text {
        Ok(text) => text,
        Err(_) => {
            let error = format!("Cannot open file \"{file}\" for reading: No such file or directory\n");
            return Ok(Answer::error(255, error));
        }
    };
    let caller = if is_pipe { source::place("tc", words) } else { None };
    for (line, words) in batch_lines(&text) {
        let is_query = words.get(1).is_none_or(|verb| {
            !verb.is_empty()
                && ["show", "list", "lst"]
                    .iter()
                    .any(|query| query.starts_with(verb.as_str()))
        });
        if is_query {
            continue;
        }
        let place = if is_pipe {
            caller.clone()
        } else {
            let file = file.to_owned();
            Some(SourceLine { file, line })
        };
        record_tc(words, place)?;
    }
    Ok(Answer::default())
}

/// Returns the words of each command, with the number of its line. `#` begins a comment, and a line that
/// ends in `\` goes on in the next.
fn batch_lines(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut commands: Vec<(usize, Vec<String>)> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        let (line, goes_on) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        let words = line.split_whitespace().map(str::to_owned);
        match commands.last_mut() {
            Some((_, open)) if is_open => open.extend(words),
            _ => commands.push((index + 1, words.collect())),
        }
        is_open = goes_on;
    }
    commands.retain_mut(|(_, words)| {
        if words.first().is_some_and(|word| word == "tc") {
            words.remove(0);
        }
        !words.is_empty()
    });
    commands
}

fn command(words: &[String], options: &Options, journal: &Path, machine: &Stored) -> io::Result<Answer> {
    let Some(object) = words.first() else {
        return Ok(Answer::error(
            255,
            "Usage: tc [ OPTIONS ] OBJECT { COMMAND | help }\n",
        ));
    };
    if words.iter().any(|word| word == "help") {
        return Ok(help(words));
    }
    let verb = words.get(1).map_or("show", String::as_str);
    let is_query = ["show", "list", "lst", "get", "monitor"]
        .iter()
        .any(|query| !verb.is_empty() && query.starts_with(verb));
    if is_query || object == "monitor" {
        let installed = Installed::after(&journal::read(journal)?);
        return Ok(show(
            object,
            &words[1.min(words.len())..],
            options,
            &installed,
            &machine.read()?,
        ));
    }
    if let Some(device) = device_of(words)
        && machine.read()?.find(device).is_none()
    {
        machine.change(|machine| {
            machine.find_or_add(device);
        })?;
    }
    let mut recorded = options.recorded.clone();
    recorded.extend(words.iter().cloned());
    record_tc(recorded, None)?;
    Ok(Answer::default())
}

/// The usage of a kind, as scripts ask for it to see whether tc knows the kind.
fn help(words: &[String]) -> Answer {
    let kind = words
        .iter()
        .rev()
        .find(|word| *word != "help")
        .map_or("", String::as_str);
    Answer::error(255, format!("Usage: ... {kind} [ OPTIONS ]\n"))
}

/// The qdiscs, classes and filters after all commands so far: what was added and not removed.
#[derive(Debug, Default)]
struct Installed {
    /// Each as the words after the object and the verb.
    qdiscs: Vec<Vec<String>>,
    classes: Vec<Vec<String>>,
    filters: Vec<Vec<String>>,
}

/// The place of a qdisc on its device.
fn attached(words: &[String]) -> String {
    let after = |name: &str| {
        words
            .iter()
            .position(|word| word == name)
            .and_then(|at| words.get(at + 1))
    };
    match after("parent") {
        Some(parent) => parent.clone(),
        None if words.iter().any(|word| word == "root") => "root".to_owned(),
        None => "ffff:fff1".to_owned(),
    }
}

impl Installed {
    fn after(journal: &[Entry]) -> Installed {
        let mut installed = Installed::default();
        for entry in journal.iter().filter(|entry| entry.program == "tc") {
            let [object, verb, words @ ..] = without_namespace(&entry.words) else {
                continue;
            };
            let Some(device) = device_of(words) else { continue };
            let is_removal = verb.starts_with('d');
            let is_qdisc = "qdisc".starts_with(object.as_str());
            if is_qdisc {
                let place = attached(words);
                installed
                    .qdiscs
                    .retain(|other| device_of(other) != Some(device) || attached(other) != place);
                if is_removal && place == "root" {
                    let others = |words: &Vec<String>| device_of(words) != Some(device);
                    installed.classes.retain(others);
                    installed
                        .filters
                        .retain(|words| others(words) || attached(words).starts_with("ffff"));
                    installed
                        .qdiscs
                        .retain(|words| others(words) || attached(words).starts_with("ffff"));
                }
            }
            let list = match object.as_str() {
                object if "qdisc".starts_with(object) => &mut installed.qdiscs,
                object if "class".starts_with(object) => &mut installed.classes,
                object if "filter".starts_with(object) => &mut installed.filters,
                _ => continue,
            };
            if !is_removal {
                list.push(words.to_vec());
            }
        }
        installed
    }
}

fn show(
    object: &str,
    words: &[String],
    options: &Options,
    installed: &Installed,
    machine: &Machine,
) -> Answer {
    let device = device_of(words);
    if let Some(device) = device.filter(|device| machine.find(device).is_none()) {
        return Answer::error(1, format!("Cannot find device \"{device}\"\n"));
    }
    let is_qdisc = "qdisc".starts_with(object);
    let list = match object {
        object if "qdisc".starts_with(object) => &installed.qdiscs,
        object if "class".starts_with(object) => &installed.classes,
        object if "filter".starts_with(object) => &installed.filters,
        _ => return Answer::default(),
    };
    let is_wanted = |name: Option<&str>| device.is_none() || name == device;
    let parent = words
        .iter()
        .position(|word| word == "parent")
        .and_then(|at| words.get(at + 1));
    let is_below = |words: &[String]| parent.is_none_or(|parent| attached(words) == *parent);
    let lines: Vec<&Vec<String>> = list
        .iter()
        .filter(|words| is_wanted(device_of(words)) && (is_qdisc || is_below(words)))
        .collect();
    let untouched: Vec<&Device> = machine
        .devices
        .iter()
        .filter(|device| is_qdisc && is_wanted(Some(&device.name)))
        .filter(|device| !lines.iter().any(|words| device_of(words) == Some(&device.name)))
        .collect();
    if options.is_json {
        let own = untouched.iter().map(|device| {
            let kind = device.default_qdisc();
            json!({"kind": kind, "handle": "0:", "dev": device.name, "root": true, "options": {}})
        });
        let all: Vec<Value> = lines.iter().map(|words| document(words)).chain(own).collect();
        return Answer::output(Value::from(all).to_string() + "\n");
    }
    let own = untouched.iter().map(|device| {
        format!(
            "qdisc {} 0: dev {} root refcnt 2 \n",
            device.default_qdisc(),
            device.name
        )
    });
    let object = ["qdisc", "class", "filter"]
        .into_iter()
        .find(|name| name.starts_with(object));
    let line = |words: &&Vec<String>| {
        let (kind, handle, rest) = parts(words);
        match object.unwrap_or_default() {
            "filter" => format!("filter {} \n", words.join(" ")),
            object => format!("{object} {kind} {handle} {} \n", rest.join(" ")),
        }
    };
    Answer::output(lines.iter().map(line).chain(own).collect::<String>())
}

/// Returns the kind, the handle or class, and the other words.
fn parts(words: &[String]) -> (&str, String, Vec<&str>) {
    let (mut kind, mut handle, mut rest) = (None, None, Vec::new());
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "handle" | "classid" => handle = words.next(),
            "dev" | "parent" => rest.extend([word, words.next().unwrap_or_default()]),
            "root" => rest.push(word),
            "ingress" | "clsact" => kind = kind.or(Some(word)),
            word if kind.is_none() && !rest.is_empty() => kind = Some(word),
            word => rest.push(word),
        }
    }
    let handle = handle.unwrap_or("8001:").to_owned();
    (kind.unwrap_or_default(), handle, rest)
}

fn document(words: &[String]) -> Value {
    let (kind, handle, _) = parts(words);
    let mut document = json!({"kind": kind, "handle": handle, "dev": device_of(words), "options": {}});
    match attached(words).as_str() {
        "root" => document["root"] = true.into(),
        parent => document["parent"] = parent.into(),
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Entry {
        Entry {
            program: "tc".to_owned(),
            words: text.split(' ').map(str::to_owned).collect(),
            place: None,
        }
    }

    #[test]
    fn what_was_added_is_shown() {
        let journal = [
            "qdisc add dev eth0 root handle 1: htb default 20",
            "class add dev eth0 parent 1: classid 1:1 htb rate 1mbit",
            "qdisc add dev eth0 handle ffff: ingress",
            "qdisc add dev ifb0 root cake bandwidth 10mbit",
            "qdisc del dev ifb0 root",
        ];
        let installed = Installed::after(&journal.map(entry));
        let machine = Machine {
            devices: vec![Device::new("eth0", ""), Device::new("ifb0", "ifb")],
            gateway: None,
        };
        let ask = |object: &str, words: &str, is_json| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let options = Options {
                is_json,
                ..Options::default()
            };
            show(object, &words, &options, &installed, &machine)
        };
        assert_eq!(
            ask("qdisc", "show", false).output,
            "qdisc htb 1: dev eth0 root default 20 \nqdisc ingress ffff: dev eth0 \n\
             qdisc noqueue 0: dev ifb0 root refcnt 2 \n"
        );
        assert_eq!(
            ask("class", "show dev eth0", false).output,
            "class htb 1:1 dev eth0 parent 1: rate 1mbit \n"
        );
        assert_eq!(ask("qdisc", "show dev eth9", false).code, 1);
        let json: Value = serde_json::from_str(&ask("qdisc", "show dev eth0", true).output).unwrap();
        assert_eq!(json[0]["kind"], "htb");
        assert_eq!(json[1]["parent"], "ffff:fff1");
    }

    #[test]
    fn lines_of_a_batch_have_numbers() {
        let text = "# all\nqdisc add dev eth0 root \\\n  sfq # the leaf\n\ntc class show\n";
        let lines = batch_lines(text);
        assert_eq!(lines[0].0, 2);
        assert_eq!(lines[0].1.join(" "), "qdisc add dev eth0 root sfq");
        assert_eq!(lines[1], (5, vec!["class".to_owned(), "show".to_owned()]));
    }
}
