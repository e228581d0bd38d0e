//! `fairgate-qdisc`: configures the qdisc `fairgate` of the kernel, and prints its counters.
//!
//! It parses and checks a tree as every program of Fairgate does, and sends it in its compact form.

use std::ffi::CString;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use fairgate::balance::Imbalance;
use fairgate_config::{Document, FileError, Problem, Spec};
use fairgate_kernel::client::{self, Counters, Failed, Make, Place, ROOT, Socket};
use fairgate_kernel::convert::tree_of;
use fairgate_kernel::{DEFAULT_SLOTS, MOST_SLOTS, Plan};

const USAGE: &str = "\
usage: fairgate-qdisc add|change|replace PLACE TREE [--slots N] [--queue NAME]
       fairgate-qdisc del PLACE
       fairgate-qdisc show DEVICE
       fairgate-qdisc options TREE [--slots N] [--queue NAME]     (for tc: the attributes, as bytes)
       fairgate-qdisc --help | --version
PLACE is DEVICE for its root, or DEVICE:MAJOR:MINOR for a class; :HANDLE may follow it. All are hexadecimal.
TREE is a line, 'tbf rate=20mbit burst=20kb / sqf', or @FILE: the queue of a TOML file, or its queue NAME.";

/// Why nothing was done, by the exit codes of docs/errors.md.
#[derive(Debug)]
enum Failure {
    /// The words, the file or the tree are wrong.
    Input(String),
    /// The system refused.
    System(String),
    /// A bug: the figures of a qdisc do not add up.
    Bug(Imbalance),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::Input(_) => 2,
            Failure::System(_) => 3,
            Failure::Bug(_) => 4,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Input(why) | Failure::System(why) => f.write_str(why),
            Failure::Bug(imbalance) => write!(f, "{imbalance}; this is a bug: please report it"),
        }
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure::Input(why)
    }
}

impl From<&str> for Failure {
    fn from(why: &str) -> Failure {
        Failure::Input(why.to_owned())
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Failure {
        if failed.is_bad_input() {
            return Failure::Input(failed.to_string());
        }
        let remedy = match failed.errno {
            libc::EPERM | libc::EACCES => "; run it as root, or with cap_net_admin",
            libc::EEXIST => "; `change` or `replace` what is there",
            libc::ENOENT => "; is the module loaded (modprobe sch_fairgate), and is there such a qdisc?",
            _ => "",
        };
        Failure::System(format!("{failed}{remedy}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::from(Failed::from(error))
    }
}

type Result<T> = std::result::Result<T, Failure>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments).and_then(|bytes| Ok(print(&bytes)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not by `eprintln!`, which panics if nobody reads. The exit code tells the same.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(error.code())
        }
    }
}

/// A reader that has enough, like `head`, is no error.
fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Returns what is to be printed.
fn run(arguments: &[String]) -> Result<Vec<u8>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let command = *words.first().ok_or(USAGE)?;
    let place = || place(words.get(1).ok_or(USAGE)?);
    let make = match command {
        "add" => Make::Add,
        "replace" => Make::Replace,
        "change" => Make::Change,
        "del" => {
            let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
            client::delete(&mut socket, &place()?, "fairgate")?;
            return Ok(Vec::new());
        }
        "options" => {
            let wanted = Wanted::read(&words[1..])?;
            let options = client::options(&wanted.plan, wanted.text);
            return options.map_err(|failed| refused(&wanted.spec, failed));
        }
        "show" => return Ok(show(place()?)?.into_bytes()),
        "--help" | "-h" | "help" => return Ok(format!("{USAGE}\n").into_bytes()),
        "--version" | "-V" => {
            return Ok(format!("fairgate-qdisc {}\n", env!("CARGO_PKG_VERSION")).into_bytes());
        }
        _ => return Err(USAGE.into()),
    };
    let (place, wanted) = (place()?, Wanted::read(&words[2..])?);
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    let put = client::put(&mut socket, &place, make, &wanted.plan, wanted.text);
    put.map_err(|failed| refused(&wanted.spec, failed))?;
    Ok(Vec::new())
}

/// The tree that the user has named, as it is sent.
struct Wanted<'a> {
    text: &'a str,
    spec: Spec,
    plan: Plan,
}

impl<'a> Wanted<'a> {
    /// Reads the words of a tree.
    fn read(words: &[&'a str]) -> Result<Wanted<'a>> {
        let (mut tree, mut slots, mut queue) = (None, DEFAULT_SLOTS, None);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("`{word}` needs a value"));
            match *word {
                "--slots" => slots = value()?.parse().map_err(|_| "`--slots` is a plain number")?,
                "--queue" => queue = Some(*value()?),
                _ if tree.is_none() => tree = Some(*word),
                _ => {
                    let why = format!("`{word}` follows the tree; write the tree as one word\n{USAGE}");
                    return Err(why.into());
                }
            }
        }
        let text = tree.ok_or(USAGE)?;
        if !(1..=MOST_SLOTS).contains(&slots) {
            return Err(format!("`--slots` is {slots}, but must be 1 to {MOST_SLOTS}").into());
        }
        let spec = read_tree(text, queue)?;
        let plan = Plan {
            slots,
            cuts: !spec.takes_super_packets(),
            tree: tree_of(&spec).map_err(|error| refused(&spec, error.into()))?,
        };
        Ok(Wanted { text, spec, plan })
    }
}

/// Returns why a tree is refused, at its place if that is known.
fn refused(spec: &Spec, failed: Failed) -> Failure {
    let why = failed.said.as_deref().unwrap_or("it does not say why");
    let number = failed.place.filter(|_| failed.is_bad_input());
    match number.and_then(|number| spec.refused_by(number, "the kernel", why, "change this discipline")) {
        Some(problem) => Failure::Input(in_words(&problem.into())),
        None => failed.into(),
    }
}

/// Returns a line for each mistake: place, rule and remedy.
fn in_words(error: &FileError) -> String {
    let line = |problem: &Problem| {
        let (line, column) = problem.position();
        let Problem {
            message, label, help, ..
        } = problem;
        format!("{}:{line}:{column}: {message}: {label}; {help}", problem.file())
    };
    let lines: Vec<String> = error.problems().iter().map(line).collect();
    lines.join("\n       ")
}

fn read_tree(text: &str, queue: Option<&str>) -> Result<Spec> {
    let Some(path) = text.strip_prefix('@') else {
        return Ok(Spec::inline(text).map_err(|error| in_words(&error))?);
    };
    let content = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let document = Document::parse(path, &content).map_err(|error| in_words(&error))?;
    let names: Vec<&str> = document.queues().map(|(name, _)| name).collect();
    let name = match (queue, names.as_slice()) {
        (Some(name), _) => name,
        (None, [name]) => *name,
        _ => {
            return Err(format!(
                "{path} has the queues {}; name one: --queue NAME",
                names.join(", ")
            )
            .into());
        }
    };
    let found = document.queue(name).cloned();
    found.ok_or_else(|| format!("{path} has no queue `{name}`, only {}", names.join(", ")).into())
}

fn device(name: &str) -> Result<u32> {
    let text = CString::new(name).map_err(|_| format!("`{}` is no name", name.escape_debug()))?;
    // SAFETY: the pointer is to a text that ends with a zero byte.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(Failure::System(format!(
            "there is no interface `{name}`; `ip -brief link` lists them"
        ))),
        index => Ok(index),
    }
}

/// Reads a place: the interface, the class above and the handle.
fn place(text: &str) -> Result<Place> {
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &str| {
        u16::from_str_radix(part, 16).map_err(|_| format!("`{part}` in `{text}` is not a hexadecimal number"))
    };
    let (parent, handle) = match parts[1..] {
        [] => (ROOT, 0),
        [handle] => (ROOT, number(handle)?),
        [major, minor] => (u32::from(number(major)?) << 16 | u32::from(number(minor)?), 0),
        [major, minor, handle] => {
            let parent = u32::from(number(major)?) << 16 | u32::from(number(minor)?);
            (parent, number(handle)?)
        }
        _ => return Err(format!("`{text}` has too many parts\n{USAGE}").into()),
    };
    Ok(Place {
        index: device(parts[0])?,
        handle: u32::from(handle) << 16,
        parent,
        info: 0,
    })
}

/// Returns a line for each qdisc `fairgate` of the interface.
fn show(place: Place) -> Result<String> {
    let mut lines = String::new();
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    for qdisc in client::list(&mut socket, place.index)? {
        if qdisc.kind != "fairgate" {
            continue;
        }
        let Place { handle, parent, .. } = qdisc.place;
        let counted = qdisc.counters.as_ref().map(in_a_line).transpose();
        lines.push_str(&format!(
            "handle={:x}: parent={} tree=\"{}\"{}\n",
            handle >> 16,
            match parent {
                ROOT => "root".to_owned(),
                _ => format!("{:x}:{:x}", parent >> 16, parent & 0xffff),
            },
            qdisc.text.escape_debug(),
            counted.map_err(Failure::Bug)?.unwrap_or_default()
        ));
    }
    Ok(lines)
}

/// Returns the counters as `key=value`, if they add up.
fn in_a_line(counters: &Counters) -> std::result::Result<String, Imbalance> {
    counters.statistics.check("the qdisc", counters.backlog)?;
    let mut line = String::new();
    let mut put = |name: &str, value: u64| line.push_str(&format!(" {name}={value}"));
    let statistics = &counters.statistics;
    for (name, count) in [
        ("enqueued", statistics.enqueued),
        ("dequeued", statistics.dequeued),
        ("dropped", statistics.dropped),
        ("flushed", statistics.flushed),
        ("backlog", counters.backlog),
    ] {
        put(&format!("{name}_packets"), count.packets);
        put(&format!("{name}_bytes"), count.bytes);
    }
    put("marked", statistics.marked);
    put("overlimits", statistics.overlimits);
    put("sojourn_ns", counters.sojourn_ns);
    put("refused", counters.refused.packets);
    put("refused_bytes", counters.refused.bytes);
    put("cut", counters.cut);
    put("change_ns", counters.change_ns);
    put("passed", counters.passed);
    put("panicked", counters.has_panicked.into());
    for (reason, packets) in statistics.dropped_by_reason.iter() {
        put(&format!("drop_{}", reason.name()), packets);
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use fairgate::{Count, DropReason};

    use super::*;

    #[test]
    fn figures_that_do_not_add_up_are_not_shown() {
        let mut counters = Counters {
            backlog: Count {
                packets: 1,
                bytes: 100,
            },
            ..Counters::default()
        };
        counters.statistics.enqueued = Count {
            packets: 3,
            bytes: 300,
        };
        counters.statistics.dequeued = Count {
            packets: 1,
            bytes: 100,
        };
        let imbalance = in_a_line(&counters).unwrap_err();
        let failure = Failure::Bug(imbalance);
        assert_eq!(failure.code(), 4);
        assert!(failure.to_string().contains("enqueued = 3 packets"), "{failure}");
        counters.statistics.dropped = Count {
            packets: 1,
            bytes: 100,
        };
        assert!(in_a_line(&counters).is_err(), "the drop has no reason");
        counters.statistics.dropped_by_reason.add(DropReason::ALL[0]);
        assert!(in_a_line(&counters).unwrap().contains(" dropped_packets=1 "));
    }

    /// What the kernel answers is wrong input only if it says so.
    #[test]
    fn the_code_says_whose_fault_it_is() {
        for (errno, code) in [
            (libc::EINVAL, 2),
            (libc::EMSGSIZE, 2),
            (libc::EPERM, 3),
            (libc::ENOENT, 3),
            (libc::ENOMEM, 3),
        ] {
            assert_eq!(Failure::from(Failed::of(errno)).code(), code, "{errno}");
        }
    }

    /// The number of a discipline leads to its place in the line.
    #[test]
    fn a_refused_discipline_is_named_at_its_place() {
        let spec = Spec::inline("tbf rate=20mbit burst=20kb / sqf").unwrap();
        let failed = Failed {
            said: Some("sqf: no".to_owned()),
            place: Some(1),
            ..Failed::of(libc::EINVAL)
        };
        let failure = refused(&spec, failed.clone());
        assert_eq!(failure.code(), 2);
        assert!(
            failure
                .to_string()
                .contains(":1:30: the kernel refuses `sqf` in class 1: sqf: no"),
            "{failure}"
        );
        // There is no such discipline, and of memory the tree is not the place.
        let elsewhere = Failed {
            place: Some(2),
            ..failed.clone()
        };
        assert!(refused(&spec, elsewhere).to_string().starts_with("sqf: no"));
        let memory = Failed {
            errno: libc::ENOMEM,
            ..failed
        };
        assert_eq!(refused(&spec, memory).code(), 3);
    }
}
