//! The stand-ins: this program under the names of others, inside of a recording.

mod answer;
mod ip;
mod namespace;
mod net;
mod tc;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::record::inside::{JOURNAL, MACHINE, ROOT, SYS};
use crate::record::journal::{self, Entry};
use crate::record::machine::Stored;
use crate::record::source;

/// The programs that are replaced.
pub(crate) const NAMES: &[&str] = &[
    "tc",
    "ip",
    "ifconfig",
    "route",
    "bridge",
    "brctl",
    "vconfig",
    "modprobe",
    "insmod",
    "rmmod",
    "lsmod",
    "modinfo",
    "depmod",
    "ethtool",
    "iptables",
    "iptables-nft",
    "iptables-legacy",
    "iptables-save",
    "iptables-restore",
    "ip6tables",
    "ip6tables-nft",
    "ip6tables-legacy",
    "ip6tables-save",
    "ip6tables-restore",
    "ebtables",
    "arptables",
    "ipset",
    "nft",
    "conntrack",
    "sysctl",
    "logger",
    "sudo",
    "doas",
    "nsenter",
    "systemctl",
    "service",
    "initctl",
    "rc-service",
    "ifup",
    "ifdown",
    "nmcli",
    "networkctl",
    "reboot",
    "shutdown",
    "halt",
    "poweroff",
    "bpftool",
];

/// Programs of many names, all of which are replaced.
pub(crate) const MANY: &[&str] = &["kmod", "xtables-nft-multi", "xtables-legacy-multi"];

/// Programs that exist inside only if this machine has them: a script chooses between them and others.
pub(crate) const OPTIONAL: &[&str] = &[
    "nft",
    "ebtables",
    "arptables",
    "bpftool",
    "nmcli",
    "networkctl",
    "initctl",
];

/// What a stand-in writes, and its exit code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    output: String,
    error: String,
    code: u8,
}

impl Answer {
    fn output(output: impl Into<String>) -> Answer {
        Answer {
            output: output.into(),
            ..Answer::default()
        }
    }

    fn error(code: u8, error: impl Into<String>) -> Answer {
        Answer {
            error: error.into(),
            code,
            ..Answer::default()
        }
    }
}

/// Runs the stand-in of this name. `None` if this process is none.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> Option<ExitCode> {
    let is_known = NAMES.contains(&name) || MANY.contains(&name);
    if !is_known || !Path::new(ROOT).is_dir() {
        return None;
    }
    if matches!(name, "sudo" | "doas") {
        return Some(as_administrator(arguments));
    }
    let words: Vec<String> = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(entered) = namespace::entered(name, &words) {
        return Some(execute(
            &arguments[entered.command..],
            entered.namespace.as_deref(),
        ));
    }
    let answer = match answer(name, &words) {
        Ok(answer) => answer,
        Err(error) => Answer::error(255, format!("{name}: {error}\n")),
    };
    // Nobody may listen any more.
    let _ = io::stdout().write_all(answer.output.as_bytes());
    let _ = io::stderr().write_all(answer.error.as_bytes());
    Some(ExitCode::from(answer.code))
}

fn answer(name: &str, words: &[String]) -> io::Result<Answer> {
    let journal = Path::new(JOURNAL);
    let machine = Stored {
        file: Path::new(MACHINE),
        sys: Path::new(SYS),
    };
    match name {
        "tc" => tc::answer(words, journal, &machine),
        "ip" => {
            record("ip", words)?;
            ip::answer(words, &machine)
        }
        "modprobe" | "insmod" => {
            record(name, words)?;
            answer::load(words, &machine)
        }
        "ifconfig" => net::ifconfig(words, &machine),
        "route" => net::route(&machine),
        _ => {
            record(name, words)?;
            for text in answer::rules(name, words)? {
                record(name, &[text])?;
            }
            Ok(answer::other(name, words))
        }
    }
}

/// Adds a command to the journal.
fn record(program: &str, words: &[String]) -> io::Result<()> {
    let entry = Entry {
        program: program.to_owned(),
        words: words.to_vec(),
        place: None,
    };
    journal::append(Path::new(JOURNAL), &entry)
}

/// Adds a command of tc to the journal, with its location. In a network namespace it gets the option for it.
fn record_tc(words: Vec<String>, place: Option<journal::SourceLine>) -> io::Result<()> {
    let place = place.or_else(|| source::place("tc", &words));
    let entry = Entry {
        program: "tc".to_owned(),
        place,
        words: namespace::with_option(words),
    };
    journal::append(Path::new(JOURNAL), &entry)
}

/// Everybody is root inside. So the command is run as it is.
fn as_administrator(arguments: &[OsString]) -> ExitCode {
    let with_value = ["-u", "-g", "-h", "-p", "-C", "-D"];
    let mut words = arguments.iter().peekable();
    let mut command = None;
    while let Some(word) = words.next() {
        match word.to_str() {
            Some(option) if with_value.contains(&option) => {
                words.next();
            }
            Some(option) if option.starts_with('-') => {}
            Some(setting) if setting.contains('=') => {}
            _ => {
                command = Some(word);
                break;
            }
        }
    }
    let program: Vec<OsString> = command.into_iter().chain(words).cloned().collect();
    execute(&program, None)
}

/// Runs a command in the place of this process. Commands of tc that it gives belong to this network
/// namespace.
fn execute(command: &[OsString], namespace: Option<&str>) -> ExitCode {
    let [program, arguments @ ..] = command else {
        return ExitCode::SUCCESS;
    };
    let mut command = Command::new(program);
    if let Some(namespace) = namespace {
        command.env(namespace::VARIABLE, namespace);
    }
    let error = command.args(arguments).exec();
    let _ = writeln!(io::stderr(), "{}: {error}", program.display());
    ExitCode::from(127)
}
