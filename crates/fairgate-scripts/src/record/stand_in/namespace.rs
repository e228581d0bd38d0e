//! Commands that run another one in a network namespace: `ip netns exec`, `ip vrf exec`, `nsenter`.
//!
//! Inside there is one namespace only, and the command runs in it. What it says to tc is written down with
//! tc's own option for the namespace, `-n NAME`.

use crate::record::recording::NAMESPACE;

/// The variable by which stand-ins of a command know its network namespace.
pub(super) const VARIABLE: &str = "FAIRGATE_RECORD_NETNS";

/// A command in a namespace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entered {
    /// The index of its first word.
    pub(super) command: usize,
    /// The name of the network namespace, if it enters one.
    pub(super) namespace: Option<String>,
}

/// Returns the command that these words run in a namespace. `None` if they run none.
pub(super) fn entered(program: &str, words: &[String]) -> Option<Entered> {
    match program {
        "ip" => by_ip(words),
        "nsenter" => Some(by_nsenter(words)),
        _ => None,
    }
}

fn by_ip(words: &[String]) -> Option<Entered> {
    let mut at = 0;
    while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
        let has_value = matches!(
            option.trim_start_matches('-'),
            "f" | "family" | "n" | "netns" | "rc" | "l"
        );
        at += 1 + usize::from(has_value);
    }
    let is_all = words[..at.min(words.len())]
        .iter()
        .any(|option| matches!(option.as_str(), "-a" | "-all"));
    let [object, verb, rest @ ..] = words.get(at..)? else {
        return None;
    };
    let is = |word: &str, name: &str| !word.is_empty() && name.starts_with(word);
    if !is(verb, "exec") {
        return None;
    }
    match (object.as_str(), rest) {
        (object, [_, ..]) if is(object, "netns") && is_all => Some(Entered {
            command: at + 2,
            namespace: None,
        }),
        (object, [name, _, ..]) if is(object, "netns") => Some(Entered {
            command: at + 3,
            namespace: Some(name.clone()),
        }),
        (object, [_, _, ..]) if is(object, "vrf") => Some(Entered {
            command: at + 3,
            namespace: None,
        }),
        _ => None,
    }
}

/// The options of nsenter(1) that a separate word follows. All namespaces but that of the network are the
/// same inside.
fn by_nsenter(words: &[String]) -> Entered {
    let (mut at, mut target, mut file, mut has_network) = (0, None, None, false);
    while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        match option.as_str() {
            "--" => break,
            "-t" | "--target" => {
                target = words.get(at).cloned();
                at += 1;
            }
            "-S" | "-G" | "--setuid" | "--setgid" => at += 1,
            "-n" | "--net" | "-a" | "--all" => has_network = true,
            option => {
                if let Some(pid) = option.strip_prefix("--target=").or(option.strip_prefix("-t")) {
                    target = Some(pid.to_owned());
                } else if let Some(path) = option.strip_prefix("--net=") {
                    file = Some(path.to_owned());
                } else if let Some(rest) = option.strip_prefix("-n") {
                    file = Some(rest.trim_start_matches('=').to_owned());
                } else if !option.starts_with("--") && option.contains('n') {
                    has_network = true;
                }
            }
        }
    }
    let of_file = file.map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
    let of_process = target.filter(|_| has_network).map(|pid| format!("pid-{pid}"));
    Entered {
        command: at.min(words.len()),
        namespace: of_file.or(of_process),
    }
}

/// Returns the words of a command of tc with the namespace in which it is given. One that it names itself
/// stays.
pub(super) fn with_option(words: Vec<String>) -> Vec<String> {
    let has_own = words
        .first()
        .is_some_and(|word| NAMESPACE.contains(&word.as_str()));
    match std::env::var(VARIABLE) {
        Ok(namespace) if !has_own => ["-n".to_owned(), namespace].into_iter().chain(words).collect(),
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_and_its_namespace_are_found() {
        let cases = [
            ("ip netns exec router tc qdisc add", Some((3, Some("router")))),
            ("ip net e router tc qdisc add", Some((3, Some("router")))),
            ("ip -all netns exec tc qdisc add", Some((3, None))),
            ("ip vrf exec blue tc qdisc add", Some((3, None))),
            ("ip netns add router", None),
            ("ip link show", None),
            ("nsenter --net=/run/netns/r1 tc qdisc add", Some((1, Some("r1")))),
            ("nsenter -t 17 -n tc qdisc add", Some((3, Some("pid-17")))),
            ("nsenter -t 17 -m tc qdisc add", Some((3, None))),
            (
                "nsenter --target 17 --net -- tc qdisc add",
                Some((4, Some("pid-17"))),
            ),
        ];
        for (text, expected) in cases {
            let mut words = text.split(' ').map(str::to_owned);
            let program = words.next().unwrap();
            let words: Vec<String> = words.collect();
            let found = entered(&program, &words);
            let found = found
                .as_ref()
                .map(|found| (found.command, found.namespace.as_deref()));
            assert_eq!(found, expected, "{text}");
        }
    }
}
