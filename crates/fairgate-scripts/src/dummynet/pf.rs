//! Rules of pf that send packets to pipes and queues (`dnpipe`, `dnqueue`), as OPNsense and pfSense write
//! them. They become rules of ipfw.
//!
//! pf takes the last rule that matches, or the first one with `quick`. So rules with `quick` come first here,
//! and then the others from the last to the first. A rule keeps state: its second pipe is for the replies,
//! which pass its interface in the other direction.
//!
//! Which packets pass is pf's own work. The tree is for packets that pass, so `block`, translation of
//! addresses and the like are not read. A rule that passes packets without a pipe is an exception from later
//! ones.

use std::collections::HashMap;
use std::ops::Range;

use fairgate_config::language::Problems;
use toml::Spanned;

use super::command::{Action, Object};
use super::rule::{self, Rule};
use super::tables::Tables;
use crate::script::notes::Notes;
use crate::script::{Line, Word, number, prefix};

const FORM: &str = "write match in on em0 from any to any dnpipe(1, 2)";

/// The first words of lines that only pf reads, and that lead to no pipe.
const OTHERS: [&str; 17] = [
    "block",
    "scrub",
    "nat",
    "rdr",
    "binat",
    "no",
    "anchor",
    "nat-anchor",
    "rdr-anchor",
    "binat-anchor",
    "dummynet-anchor",
    "ether",
    "altq",
    "antispoof",
    "load",
    "include",
    "timeout",
];

/// The rules of a file of pf.
#[derive(Default)]
pub(super) struct Rules {
    macros: HashMap<String, Vec<Word>>,
    quick: Vec<Translated>,
    others: Vec<Translated>,
}

/// A rule, and the one for its replies.
struct Translated {
    is_match: bool,
    has_pipe: bool,
    rules: Vec<Rule>,
}

/// A rule as it is read.
struct Read {
    is_match: bool,
    is_quick: bool,
    /// `pass`, `match`.
    verb: Word,
    direction: Option<Word>,
    interface: Option<Word>,
    family: Option<Word>,
    protocol: Option<Word>,
    /// Words of ipfw for each end.
    ends: [Vec<Word>; 2],
    /// The kind of object, and the numbers.
    pipes: Option<(Object, Vec<Spanned<u32>>)>,
}

impl Rules {
    /// Reads a line, if it is one of pf. Returns whether it is.
    pub(super) fn read(
        &mut self,
        words: &[Word],
        end: usize,
        tables: &Tables,
        problems: &mut Problems,
        notes: &mut Notes,
    ) -> bool {
        let texts: Vec<&str> = words.iter().map(|word| word.get_ref().as_str()).collect();
        match texts[..] {
            [name, "=", ..] => {
                let values = words[2..].iter().flat_map(items).collect();
                self.macros.insert(name.to_owned(), values);
            }
            ["match" | "pass", ..] => {
                let Some(read) = self.rule(words, end, problems) else {
                    return true;
                };
                let is_quick = read.is_quick;
                let translated = translated(read, end, tables, problems, notes);
                match is_quick {
                    true => self.quick.push(translated),
                    false => self.others.push(translated),
                }
            }
            // A table of pf, which was read before.
            ["table", name, ..] if name.starts_with('<') => {}
            // A setting of pf; ipfw's sets have other words.
            ["set", second, ..] if !matches!(second, "disable" | "enable" | "swap" | "move" | "show") => {}
            [first, ..] if OTHERS.contains(&first) => {}
            _ => return false,
        }
        true
    }

    /// Returns the rules in the order in which they are tried.
    pub(super) fn in_order(self, problems: &mut Problems) -> Vec<Rule> {
        let all: Vec<Translated> = self
            .quick
            .into_iter()
            .chain(self.others.into_iter().rev())
            .collect();
        // A `match` counts also if another rule passes the packet in the end.
        let matching = all.iter().any(|one| one.is_match && one.has_pipe);
        let passing = all.iter().any(|one| !one.is_match && one.has_pipe);
        let is_left_out = |one: &Translated| !one.has_pipe && (one.is_match || matching);
        if matching && passing {
            let first = all.iter().flat_map(|one| &one.rules).next();
            let location = first.map_or(0..0, |rule| rule.action.location());
            let message = "pipes of `match` and of `pass` can't be carried over together";
            let help = "give the pipes to rules of one of the two kinds";
            problems.add(location, message, "two kinds", help);
        }
        let mut rules = Vec::new();
        for one in all.into_iter().filter(|one| !is_left_out(one)) {
            for mut rule in one.rules {
                rule.number = (rules.len() as u32 + 1).min(65_534);
                rules.push(rule);
            }
        }
        rules
    }

    fn rule(&self, words: &[Word], end: usize, problems: &mut Problems) -> Option<Read> {
        let expanded: Vec<Word> = words.iter().flat_map(|word| self.expanded(word)).collect();
        let mut line = Line::new(expanded, end, FORM);
        let verb = line.take()?;
        let mut read = Read {
            is_match: verb.get_ref() == "match",
            is_quick: false,
            verb,
            direction: None,
            interface: None,
            family: None,
            protocol: None,
            ends: [Vec::new(), Vec::new()],
            pipes: None,
        };
        while let Some(word) = line.take() {
            match word.get_ref().as_str() {
                "in" | "out" => read.direction = Some(word),
                "quick" => read.is_quick = true,
                "all" | "log" | "allow-opts" | "no" | "keep" | "modulate" | "synproxy" | "state" => {}
                "inet" | "inet6" => {
                    let family = if word.get_ref() == "inet" { "ip4" } else { "ip6" };
                    read.family = Some(Spanned::new(word.span(), family.to_owned()));
                }
                "on" => read.interface = Some(one("an interface", &mut line, problems)?),
                "proto" => read.protocol = Some(one("a protocol", &mut line, problems)?),
                "from" => read.ends[0] = end_of_rule(&mut line, problems)?,
                "to" => read.ends[1] = end_of_rule(&mut line, problems)?,
                // They say nothing about a packet of a connection, or have no meaning for pipes.
                "flags" | "label" | "ridentifier" | "tracker" | "tag" | "rtable" | "probability" | "prio"
                | "tos" | "dscp" | "icmp-type" | "icmp6-type" | "user" | "group" | "received-on"
                | "tagged"
                    if !matters(word.get_ref()) =>
                {
                    line.next("a value", problems)?;
                }
                // The options of a state, and a gateway.
                text if text.starts_with('(') => skip_to(')', &word, &mut line),
                "route-to" | "reply-to" | "dup-to" => {
                    if let Some(gateway) = line.take() {
                        skip_to(')', &gateway, &mut line);
                    }
                }
                text if text.starts_with("dnpipe") || text.starts_with("dnqueue") => {
                    read.pipes = Some(pipes(&word, &mut line, problems)?);
                }
                _ => return line.unexpected(&word, "a condition that a tree knows", problems),
            }
        }
        Some(read)
    }

    /// Returns the word, or the words that its macro stands for.
    fn expanded(&self, word: &Word) -> Vec<Word> {
        let values = word
            .get_ref()
            .strip_prefix('$')
            .and_then(|name| self.macros.get(name));
        match values {
            Some(values) => {
                let at_word = |value: &Word| Spanned::new(word.span(), value.get_ref().clone());
                let is_list = values.len() > 1;
                let braces = |text: &str| is_list.then(|| Spanned::new(word.span(), text.to_owned()));
                braces("{")
                    .into_iter()
                    .chain(values.iter().map(at_word))
                    .chain(braces("}"))
                    .collect()
            }
            None => vec![word.clone()],
        }
    }
}

/// Whether an option selects packets.
fn matters(option: &str) -> bool {
    matches!(
        option,
        "probability"
            | "tos"
            | "dscp"
            | "icmp-type"
            | "icmp6-type"
            | "user"
            | "group"
            | "received-on"
            | "tagged"
    )
}

/// Returns the parts of a word: of `{ em0 em1 }` the two names.
fn items(word: &Word) -> Vec<Word> {
    let parts = word
        .get_ref()
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}'));
    parts
        .filter(|part| !part.is_empty())
        .map(|part| Spanned::new(word.span(), part.to_owned()))
        .collect()
}

/// Takes the words up to one that ends with `last`.
fn skip_to(last: char, first: &Word, line: &mut Line) {
    let mut ends = first.get_ref().ends_with(last) || !first.get_ref().starts_with('(');
    while !ends {
        let Some(word) = line.take() else { return };
        ends = word.get_ref().ends_with(last);
    }
}

/// Takes a word, or the only one of a list.
fn one(expected: &str, line: &mut Line, problems: &mut Problems) -> Option<Word> {
    let values = list(expected, line, problems)?;
    match &values[..] {
        [value] => Some(value.clone()),
        _ => {
            let location = values.first().map_or(line.end(), Spanned::span);
            let message = format!("a list where {expected} is expected can't be carried over");
            problems.add(location, message, "several", "write a rule for each");
            None
        }
    }
}

/// Takes a word, or the words of a list in braces.
fn list(expected: &str, line: &mut Line, problems: &mut Problems) -> Option<Vec<Word>> {
    let first = line.next(expected, problems)?;
    if !first.get_ref().starts_with('{') {
        return Some(vec![first]);
    }
    let mut values = items(&first);
    let mut ends = first.get_ref().ends_with('}');
    while !ends {
        let word = line.next("`}`", problems)?;
        ends = word.get_ref().ends_with('}');
        values.extend(items(&word));
    }
    Some(values)
}

/// Reads an address and its ports, as words of ipfw.
fn end_of_rule(line: &mut Line, problems: &mut Problems) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut addresses = list("an address", line, problems)?;
    let is_not = |word: &Word| word.get_ref().starts_with('!');
    if addresses.len() == 1 && is_not(&addresses[0]) {
        let span = addresses[0].span();
        words.push(Spanned::new(span.clone(), "not".to_owned()));
        let rest = addresses[0].get_ref()[1..].to_owned();
        addresses = match rest.is_empty() {
            true => list("an address", line, problems)?,
            false => vec![Spanned::new(span, rest)],
        };
    }
    let texts: Vec<String> = addresses
        .iter()
        .map(|address| address_of(address.get_ref()))
        .collect();
    let location = span_of(&addresses);
    words.push(Spanned::new(location, texts.join(",")));
    if line.peek().is_some_and(|word| word.get_ref() == "port") {
        line.take();
        words.push(ports(line, problems)?);
    }
    Some(words)
}

fn address_of(text: &str) -> String {
    match text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
        Some(table) => format!("table({table})"),
        None => text.to_owned(),
    }
}

fn span_of(words: &[Word]) -> Range<usize> {
    let first = words.first().map_or(0..0, Spanned::span);
    let last = words.last().map_or(0..0, Spanned::span);
    first.start..last.end.max(first.end)
}

/// Reads ports: `80`, `= 80`, `{ 80 443 }`, `1000:2000`, `>= 1024`.
fn ports(line: &mut Line, problems: &mut Problems) -> Option<Word> {
    let first = line.peek().map(|word| word.get_ref().clone()).unwrap_or_default();
    let comparison = matches!(first.as_str(), "=" | ">" | ">=" | "<" | "<=").then_some(first);
    if comparison.is_some() {
        line.take();
    }
    let values = list("a port", line, problems)?;
    let named = |text: &str| match text {
        "domain" => "53".to_owned(),
        "http" => "80".to_owned(),
        "https" => "443".to_owned(),
        "ssh" => "22".to_owned(),
        other => other.replace(':', "-"),
    };
    let text = values
        .iter()
        .map(|word| named(word.get_ref()))
        .collect::<Vec<_>>()
        .join(",");
    let limit = text.parse::<u16>().ok();
    let text = match (comparison.as_deref(), limit) {
        (Some(">="), Some(port)) => format!("{port}-65535"),
        (Some(">"), Some(port)) => format!("{}-65535", port.saturating_add(1)),
        (Some("<="), Some(port)) => format!("0-{port}"),
        (Some("<"), Some(port)) => format!("0-{}", port.saturating_sub(1)),
        _ => text,
    };
    Some(Spanned::new(span_of(&values), text))
}

/// Reads `dnpipe(1, 2)`, `dnqueue ( 1,2)`, `dnpipe 1`.
fn pipes(word: &Word, line: &mut Line, problems: &mut Problems) -> Option<(Object, Vec<Spanned<u32>>)> {
    let text = word.get_ref();
    let (object, rest) = match text.strip_prefix("dnpipe") {
        Some(rest) => (Object::Pipe, rest),
        None => (Object::Queue, text.strip_prefix("dnqueue").unwrap_or_default()),
    };
    let mut location = word.span();
    let mut written = rest.to_owned();
    if written.is_empty() {
        let next = line.next("a number", problems)?;
        location.end = next.span().end;
        written.push_str(next.get_ref());
    }
    while written.starts_with('(') && !written.ends_with(')') {
        let next = line.next("`)`", problems)?;
        location.end = next.span().end;
        written.push_str(next.get_ref());
    }
    let inside = written.trim_start_matches('(').trim_end_matches(')');
    let numbers: Option<Vec<Spanned<u32>>> = inside
        .split(',')
        .map(|text| {
            let found = number(text.trim()).filter(|number| (1..=65_535).contains(number))?;
            Some(Spanned::new(location.clone(), found))
        })
        .collect();
    match numbers.filter(|numbers| numbers.len() <= 2) {
        Some(numbers) => Some((object, numbers)),
        None => {
            let message = format!("`{written}` is not one number, or two");
            problems.add(location, message, "expected numbers", FORM);
            None
        }
    }
}

/// Returns the rules of ipfw for a rule of pf.
fn translated(
    read: Read,
    end: usize,
    tables: &Tables,
    problems: &mut Problems,
    notes: &mut Notes,
) -> Translated {
    let at = |text: &str| Spanned::new(read.verb.span(), text.to_owned());
    let any = || vec![at("any")];
    let [from, to] = read
        .ends
        .clone()
        .map(|end| if end.is_empty() { any() } else { end });
    let body = |from: &[Word], to: &[Word], is_back: bool| {
        let mut words = vec![read.family.clone().unwrap_or_else(|| at("ip")), at("from")];
        words.extend_from_slice(from);
        words.push(at("to"));
        words.extend_from_slice(to);
        if let Some(protocol) = &read.protocol {
            words.extend([at("proto"), protocol.clone()]);
        }
        if let Some(direction) = &read.direction {
            let is_in = (direction.get_ref() == "in") != is_back;
            let text = if is_in { "in" } else { "out" };
            words.push(Spanned::new(direction.span(), text.to_owned()));
        }
        if let Some(interface) = &read.interface {
            words.extend([at("via"), interface.clone()]);
        }
        words
    };
    let mut rules = Vec::new();
    let mut add = |action: Action, words: Vec<Word>| {
        rules.extend(rule::read(
            0,
            action,
            Line::new(words, end, FORM),
            tables,
            problems,
            notes,
        ));
    };
    match &read.pipes {
        None => add(Action::Pass(read.verb.clone()), body(&from, &to, false)),
        Some((object, numbers)) => {
            add(Action::To(*object, numbers[0].clone()), body(&from, &to, false));
            // Without a direction the rule is for both.
            if let (Some(back), Some(_)) = (numbers.get(1), &read.direction) {
                add(Action::To(*object, back.clone()), body(&to, &from, true));
            }
        }
    }
    Translated {
        is_match: read.is_match,
        has_pipe: read.pipes.is_some(),
        rules,
    }
}

/// Returns the name and the addresses of a table of pf: `table <lan> { 192.0.2.0/24 }`.
pub(super) fn table(words: &[Word]) -> Option<(String, Vec<String>)> {
    let texts: Vec<&str> = words.iter().map(|word| word.get_ref().as_str()).collect();
    let ["table", name, ..] = texts[..] else {
        return None;
    };
    let name = name.strip_prefix('<')?.strip_suffix('>')?;
    let values = words[2..].iter().flat_map(items);
    let addresses = values
        .map(Spanned::into_inner)
        .filter(|text| prefix(text).is_some());
    Some((name.to_owned(), addresses.collect()))
}
