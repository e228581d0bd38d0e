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

const FORM: &str = "write match in on em0 from any to any dnpipe(1, 2), or queue (a, b) for queues of ALTQ";

/// The first words of lines that only pf reads, and that lead to no pipe.
const OTHERS: [&str; 18] = [
    "block",
    "divert",
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
    "scrub-anchor",
    "antispoof",
    "load",
    "include",
    "timeout",
];

/// The rules of a file of pf.
#[derive(Default)]
pub(crate) struct Rules {
    macros: HashMap<String, Vec<Word>>,
    quick: Vec<Translated>,
    others: Vec<Translated>,
    /// The lines that only pf reads.
    of_pf: Vec<Range<usize>>,
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
    /// The queues of ALTQ or of OpenBSD: one, or a second one for what is urgent.
    queues: Option<(Word, Option<Word>)>,
}

impl Rules {
    /// Reads a line, if it is one of pf. Returns whether it is.
    pub(crate) fn read(
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
            ["match" | "pass" | "dummynet", ..] => {
                let Some(read) = self.rule(words, end, problems, notes) else {
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
            ["set", second, ..] if !matches!(second, "disable" | "enable" | "swap" | "move" | "show") => {
                self.of_pf.push(words[0].span());
            }
            [first, ..] if OTHERS.contains(&first) => self.of_pf.push(words[0].span()),
            _ => return false,
        }
        true
    }

    /// Returns the rules in the order in which they are tried.
    pub(crate) fn in_order(self, problems: &mut Problems, notes: &mut Notes) -> Vec<Rule> {
        let text =
            "which packets pass, and with which addresses, is the firewall's own work, and no part of a tree";
        notes.add_lines(&self.of_pf, text);
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

    fn rule(&self, words: &[Word], end: usize, problems: &mut Problems, notes: &mut Notes) -> Option<Read> {
        let expanded: Vec<Word> = words.iter().flat_map(|word| self.expanded(word)).collect();
        let mut line = Line::new(expanded, end, FORM);
        let verb = line.take()?;
        let mut read = Read {
            is_match: verb.get_ref() != "pass",
            is_quick: false,
            verb,
            direction: None,
            interface: None,
            family: None,
            protocol: None,
            ends: [Vec::new(), Vec::new()],
            pipes: None,
            queues: None,
        };
        while let Some(word) = line.take() {
            match word.get_ref().as_str() {
                "in" | "out" => read.direction = Some(word),
                "quick" => read.is_quick = true,
                "all" | "log" | "allow-opts" | "no" | "keep" | "modulate" | "synproxy" | "state" | "once" => {
                }
                "inet" | "inet6" => {
                    let family = if word.get_ref() == "inet" { "ip4" } else { "ip6" };
                    read.family = Some(Spanned::new(word.span(), family.to_owned()));
                }
                "on" => read.interface = Some(one("an interface", &mut line, problems)?),
                "proto" => read.protocol = Some(one("a protocol", &mut line, problems)?),
                "from" => read.ends[0] = end_of_rule(&mut line, problems)?,
                "to" => read.ends[1] = end_of_rule(&mut line, problems)?,
                "pipe" | "queue" if read.verb.get_ref() == "dummynet" => {
                    let object = if word.get_ref() == "pipe" {
                        Object::Pipe
                    } else {
                        Object::Queue
                    };
                    let value = line.next("a number", problems)?;
                    let Some(found) = number(value.get_ref()).filter(|found| (1..=65_535).contains(found))
                    else {
                        return line.unexpected(&value, "a number from 1 to 65535", problems);
                    };
                    read.pipes = Some((object, vec![Spanned::new(value.span(), found)]));
                }
                "queue" => read.queues = Some(queues(&mut line, problems)?),
                "set" => set(&mut line, &mut read, problems)?,
                "divert-to" | "divert-reply" | "scrub" | "af-to" | "nat-to" | "rdr-to" | "binat-to" => {
                    return line.unexpected(&word, "a rule that changes no addresses", problems);
                }
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
        for (end, own) in [(0, "out"), (1, "in")] {
            let is_own = read.direction.as_ref().is_some_and(|word| word.get_ref() == own);
            own_address(&mut read.ends[end], is_own, notes);
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

/// Reads the queues of a rule: `queue a`, `queue (a, b)`.
fn queues(line: &mut Line, problems: &mut Problems) -> Option<(Word, Option<Word>)> {
    let first = line.next("the name of a queue", problems)?;
    let mut text = first.get_ref().clone();
    let mut names: Vec<Word> = Vec::new();
    let mut word = first.clone();
    loop {
        let parts = word.get_ref().split([',', '(', ')']);
        let parts = parts.map(str::trim).filter(|part| !part.is_empty());
        names.extend(parts.map(|part| Spanned::new(word.span(), part.to_owned())));
        if !text.starts_with('(') || text.ends_with(')') {
            break;
        }
        word = line.next("`)`", problems)?;
        text.push_str(word.get_ref());
    }
    let mut names = names.into_iter();
    match (names.next(), names.next(), names.next()) {
        (Some(first), second, None) => Some((first, second)),
        _ => line.unexpected(&first, "one queue, or two in parentheses", problems),
    }
}

/// Reads what OpenBSD's rules set: `set queue (a, b)`, `set ( queue a, prio 5 )`.
fn set(line: &mut Line, read: &mut Read, problems: &mut Problems) -> Option<()> {
    let is_list = line.peek().is_some_and(|word| word.get_ref() == "(");
    if is_list {
        line.take();
    }
    loop {
        let what = line.next("`queue`, `prio` or `tos`", problems)?;
        match what.get_ref().as_str() {
            "queue" => read.queues = Some(queues(line, problems)?),
            "," => {}
            ")" if is_list => return Some(()),
            "prio" | "tos" | "delay" => {
                let value = line.next("a value", problems)?;
                skip_to(')', &value, line);
            }
            _ => return line.unexpected(&what, "`queue`, `prio` or `tos`", problems),
        }
        if !is_list {
            return Some(());
        }
    }
}

/// Replaces the name of an interface, which stands for its addresses. No line says which these are. Packets
/// that leave by the interface after translation have its address, and those that arrive are for it.
fn own_address(end: &mut [Word], is_own: bool, notes: &mut Notes) {
    let Some(word) = end.iter_mut().find(|word| is_interface(word.get_ref())) else {
        return;
    };
    let text = match is_own {
        true => format!(
            "`{}` stands for the interface's own addresses, here for any",
            word.get_ref()
        ),
        false => format!("`{}` stands for addresses that no line says", word.get_ref()),
    };
    notes.add(word.span(), text);
    *word = Spanned::new(word.span(), if is_own { "any" } else { "me" }.to_owned());
}

/// Whether an address is the name of an interface: letters and a number.
fn is_interface(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.ends_with(|last: char| last.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name != "me6";
    is_name && matches!(text.strip_prefix(name), Some("" | ":0" | ":1")) || matches!(text, "self" | "egress")
}

/// Reads an address and its ports, as words of ipfw.
fn end_of_rule(line: &mut Line, problems: &mut Problems) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    // Ports of any address.
    if line.peek().is_some_and(|word| word.get_ref() == "port") {
        words.extend(
            line.take()
                .map(|word| Spanned::new(word.span(), "any".to_owned())),
        );
        words.push(ports(line, problems)?);
        return Some(words);
    }
    let mut addresses = match line.peek().is_some_and(|word| word.get_ref() == "(") {
        // An interface whose address may change.
        true => {
            line.take();
            let name = line.next("an interface", problems)?;
            line.next("`)`", problems)?;
            vec![name]
        }
        false => list("an address", line, problems)?,
    };
    if addresses.len() == 1
        && let Some(name) = addresses[0]
            .get_ref()
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'))
    {
        addresses = vec![Spanned::new(addresses[0].span(), name.to_owned())];
    }
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
    let named = |text: &str| service(text).map_or_else(|| text.replace(':', "-"), |port| port.to_string());
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

/// Returns the port of a service, by its name in `/etc/services`.
fn service(name: &str) -> Option<u16> {
    Some(match name {
        "ftp-data" => 20,
        "ftp" => 21,
        "ssh" => 22,
        "telnet" => 23,
        "smtp" | "mail" => 25,
        "domain" => 53,
        "bootps" => 67,
        "bootpc" => 68,
        "tftp" => 69,
        "http" | "www" => 80,
        "pop3" => 110,
        "auth" | "ident" => 113,
        "nntp" => 119,
        "ntp" => 123,
        "imap" => 143,
        "snmp" => 161,
        "bgp" => 179,
        "https" => 443,
        "microsoft-ds" => 445,
        "submission" => 587,
        "imaps" => 993,
        "pop3s" => 995,
        "openvpn" => 1194,
        "rdp" | "ms-wbt-server" => 3389,
        "sip" => 5060,
        "isakmp" => 500,
        _ => return None,
    })
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
        None if let Some((queue, urgent)) = &read.queues => {
            let action = || Action::Assign(queue.clone(), urgent.clone());
            add(action(), body(&from, &to, false));
            // The packets of a connection that leave are in the queue, whichever way it began.
            if read.direction.as_ref().is_none_or(|word| word.get_ref() == "in") {
                add(action(), body(&to, &from, true));
            }
        }
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
        has_pipe: read.pipes.is_some() || read.queues.is_some(),
        rules,
    }
}

/// Whether a line is one of ALTQ, or of OpenBSD's queues.
pub(crate) fn is_of_altq(words: &[Word]) -> bool {
    let mut texts = words.iter().map(|word| word.get_ref().as_str());
    match (texts.next(), texts.next()) {
        (Some("altq"), Some("on")) => true,
        // dummynet's queues have numbers.
        (Some("queue"), Some(name)) => {
            !name.starts_with(|first: char| first.is_ascii_digit())
                && !matches!(name, "config" | "delete" | "flush" | "show" | "list")
        }
        _ => false,
    }
}

/// Returns the name and the addresses of a table of pf: `table <lan> { 192.0.2.0/24 }`.
pub(crate) fn table(words: &[Word]) -> Option<(String, Vec<String>)> {
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
