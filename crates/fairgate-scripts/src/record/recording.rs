//! The result: the commands of tc that count, and what else the script asked for.

use std::collections::BTreeMap;

use crate::record::journal::Entry;
pub use crate::record::journal::SourceLine;

/// A command of tc that a script gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The words after `tc`.
    pub words: Vec<String>,
    /// The line that gave the command, if it is known.
    pub place: Option<SourceLine>,
}

/// What a script did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The commands that change something, in their order, without those for interfaces that the script
    /// removed again.
    pub commands: Vec<Recorded>,
    /// What the script did that the commands do not show, as sentences: marks that a firewall would set, an
    /// exit code that is not 0.
    pub notes: Vec<String>,
}

/// How a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// Written like `exit status: 1` or `signal: 9`; `None` for success.
    pub(crate) failure: Option<String>,
}

impl Recording {
    pub(crate) fn new(end: End, journal: Vec<Entry>) -> Recording {
        let mut recording = Recording::default();
        let mut marks: BTreeMap<String, usize> = BTreeMap::new();
        for entry in journal {
            match entry.program.as_str() {
                "tc" => recording.commands.push(Recorded {
                    words: entry.words,
                    place: entry.place,
                }),
                "ip" => {
                    if let Some(device) = removed(&entry.words) {
                        recording
                            .commands
                            .retain(|command| device_of(&command.words) != Some(device));
                    }
                    if let Some(namespace) = removed_namespace(&entry.words) {
                        recording
                            .commands
                            .retain(|command| namespace_of(&command.words) != Some(namespace));
                    }
                }
                program => {
                    if changes_classification(&entry.words) {
                        *marks.entry(program.to_owned()).or_default() += 1;
                    }
                }
            }
        }
        for (program, count) in marks {
            let times = if count == 1 {
                "once"
            } else {
                &format!("{count} times")
            };
            recording.notes.push(format!(
                "the script sets marks, DSCPs or classes by {program} ({times}); that is not recorded, and \
                 packets have here what they arrive with"
            ));
        }
        if let Some(failure) = end.failure {
            recording.notes.push(format!(
                "the script failed ({failure}), so commands may be missing"
            ));
        }
        recording
    }

    /// Returns the commands as a script of one line for each.
    pub fn text(&self) -> String {
        let line = |command: &Recorded| {
            let words = command.words.iter().map(|word| quoted(word));
            let words: Vec<String> = std::iter::once("tc".to_owned()).chain(words).collect();
            words.join(" ") + "\n"
        };
        self.commands.iter().map(line).collect()
    }
}

/// Quotes a word if it would otherwise be read as several, or as a comment.
fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty()
        && !word.starts_with(['#', '"', '\''])
        && !word.contains(char::is_whitespace)
        && !word.ends_with('\\');
    match (is_plain, word.contains('"')) {
        (true, _) => word.to_owned(),
        (false, false) => format!("\"{word}\""),
        (false, true) => format!("'{word}'"),
    }
}

/// Returns the interface of a command of tc.
pub(crate) fn device_of(words: &[String]) -> Option<&str> {
    let at = words.iter().position(|word| word == "dev")?;
    words.get(at + 1).map(String::as_str)
}

/// Returns the words of a command of tc without the network namespace before them.
pub(crate) fn without_namespace(words: &[String]) -> &[String] {
    match words {
        [option, _, rest @ ..] if NAMESPACE.contains(&option.as_str()) => rest,
        _ => words,
    }
}

/// Returns the network namespace that a command of tc names.
fn namespace_of(words: &[String]) -> Option<&str> {
    match words {
        [option, name, ..] if NAMESPACE.contains(&option.as_str()) => Some(name),
        _ => None,
    }
}

/// Returns the network namespace that a command of ip removes. Its interfaces are removed with it.
fn removed_namespace(words: &[String]) -> Option<&str> {
    match words {
        [object, verb, name] if object.starts_with("net") && "netns".starts_with(object.as_str()) => {
            (verb.starts_with('d') && "delete".starts_with(verb.as_str())).then_some(name)
        }
        _ => None,
    }
}

/// tc's option for a network namespace, which a name follows.
pub(crate) const NAMESPACE: [&str; 3] = ["-n", "-net", "-netns"];

/// Returns the interface that a command of ip removes. Its qdiscs are removed with it.
fn removed(words: &[String]) -> Option<&str> {
    let mut words = words
        .iter()
        .map(String::as_str)
        .skip_while(|word| word.starts_with('-'));
    let object = words.next()?;
    let verb = words.next()?;
    let is_removal = "link".starts_with(object) && verb.starts_with('d') && "delete".starts_with(verb);
    let mut names = words.filter(|word| !matches!(*word, "dev" | "name" | "link"));
    names.next().filter(|_| is_removal)
}

/// Whether a command of a firewall gives packets a mark, a DSCP or a class.
fn changes_classification(words: &[String]) -> bool {
    let targets = ["MARK", "CONNMARK", "DSCP", "TOS", "CLASSIFY"];
    let jumps = words
        .windows(2)
        .any(|pair| matches!(pair[0].as_str(), "-j" | "--jump") && targets.contains(&pair[1].as_str()));
    let is_removal = words
        .iter()
        .any(|word| matches!(word.as_str(), "-D" | "--delete"));
    let statements = ["meta mark set", "ct mark set", "dscp set", "meta priority set"];
    let text = words.join(" ");
    (jumps && !is_removal) || statements.iter().any(|statement| text.contains(statement))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Entry {
        let mut words = text.split(' ').map(str::to_owned);
        Entry {
            program: words.next().unwrap(),
            words: words.collect(),
            place: None,
        }
    }

    #[test]
    fn commands_of_removed_interfaces_do_not_count() {
        let journal = [
            "tc qdisc replace dev TEST_IFB root htb",
            "ip link delete TEST_IFB type ifb",
            "tc qdisc add dev eth0 root htb",
            "ip link set dev eth0 up",
            "iptables -t mangle -D POSTROUTING -j MARK --set-mark 1",
            "iptables -t mangle -A POSTROUTING -j MARK --set-mark 1",
            "iptables -A INPUT -j ACCEPT",
            "nft add rule inet fw forward meta mark set 1",
            "tc -n lab qdisc add dev eth0 root sfq",
            "ip netns del lab",
        ];
        let end = End {
            failure: Some("exit status: 1".to_owned()),
        };
        let recording = Recording::new(end, journal.map(entry).to_vec());
        assert_eq!(recording.text(), "tc qdisc add dev eth0 root htb\n");
        assert_eq!(recording.notes.len(), 3, "{:?}", recording.notes);
        assert!(recording.notes[0].contains("by iptables (once)"));
        assert!(recording.notes[2].contains("exit status: 1"));
    }

    #[test]
    fn words_with_blanks_are_quoted() {
        for (word, expected) in [
            ("a", "a"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            ("a \"b", "'a \"b'"),
            ("#x", "\"#x\""),
            ("x#", "x#"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
