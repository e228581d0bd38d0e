//! A run that writes to systemd's journal. The tests have a socket in the journal's role, in a mount
//! namespace of the run's own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::program::Program;
use crate::common::{live, output, until};
use crate::run::{PLAIN, Run};

/// A socket in the role of the journal, and the folder that a run sees as /run.
struct Journal {
    folder: TempDir,
    socket: UnixDatagram,
}

/// The fields of an entry.
type Fields = BTreeMap<String, String>;

/// Reads the fields of an entry: NAME=VALUE, or NAME, a length and a value of several lines.
fn fields(mut bytes: &[u8]) -> Fields {
    let mut fields = Fields::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| matches!(byte, b'=' | b'\n'));
        let (name, rest) = bytes.split_at(end.expect("a name"));
        let (value, rest) = match rest[0] {
            b'=' => {
                let end = rest
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .expect("the end of a line");
                (&rest[1..end], &rest[end + 1..])
            }
            _ => {
                let (length, rest) = rest[1..].split_at(8);
                let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
                assert_eq!(rest[length], b'\n');
                (&rest[..length], &rest[length + 1..])
            }
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(fields.insert(text(name), text(value)), None, "a name twice");
        bytes = rest;
    }
    fields
}

impl Journal {
    fn start() -> Journal {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("systemd/journal");
        fs::create_dir_all(&place).unwrap();
        let socket = UnixDatagram::bind(place.join("socket")).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        Journal { folder, socket }
    }

    /// Returns a command that runs `fairgate` in `network`, with this journal.
    fn command(&self, network: &Network) -> Command {
        let mut command = network.router.command("unshare");
        command
            .args(["--mount", "sh", "-c", "mount --bind \"$0\" /run && exec \"$@\""])
            .arg(self.folder.path())
            .arg(env!("CARGO_BIN_EXE_fairgate"));
        command
    }

    /// Waits for an entry in which these fields have these values.
    fn entry(&self, wanted: &[(&str, &str)]) -> Fields {
        let mut found = None;
        until(&format!("the journal has an entry with {wanted:?}"), || {
            let mut bytes = vec![0; 1 << 18];
            let Ok(length) = self.socket.recv(&mut bytes) else {
                return false;
            };
            let fields = fields(&bytes[..length]);
            assert_eq!(fields["SYSLOG_IDENTIFIER"], "fairgate");
            assert_eq!(fields["FAIRGATE_RUN"], "run");
            found = wanted
                .iter()
                .all(|(name, value)| fields.get(*name).is_some_and(|found| found == value))
                .then_some(fields);
            found.is_some()
        });
        found.unwrap()
    }
}

/// Starts a run of a plain configuration with `command`, whose further arguments are `arguments`.
fn run_with(mut command: Command, arguments: &[&str], prepare: impl FnOnce(&mut Command)) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (folder.path().join("run.toml"), folder.path().join("sock"));
    fs::write(&file, PLAIN).unwrap();
    command
        .arg("run")
        .args(arguments)
        .arg("--socket")
        .arg(&socket)
        .arg(file);
    Run {
        program: Some(Program::start_with(&mut command, prepare)),
        folder,
        socket,
    }
}

/// Ends a run that prints text.
fn stop(mut run: Run) {
    run.signal(Signal::SIGTERM);
    assert_eq!(run.output().status.code(), Some(0));
}

#[test]
fn entries_have_a_priority_and_fields() {
    let Some(_watched) = live("entries_have_a_priority_and_fields") else {
        return;
    };
    let network = Network::build().unwrap();
    let journal = Journal::start();
    let run = run_with(journal.command(&network), &["--log-format", "journald"], |_| {}).wait();
    let begun = journal.entry(&[("FAIRGATE_EVENT", "start"), ("PRIORITY", "6")]);
    assert_eq!(begun["FAIRGATE_INTERFACE"], "left");

    // A reload that is refused: several lines. Then one that is made.
    let file = run.folder.path().join("run.toml");
    fs::write(&file, "[run]\nleft = 5\n").unwrap();
    run.signal(Signal::SIGHUP);
    let refused = journal.entry(&[("FAIRGATE_EVENT", "reload"), ("PRIORITY", "3")]);
    assert_eq!(refused["FAIRGATE_OUTCOME"], "refused");
    let message = &refused["MESSAGE"];
    assert!(
        message.lines().count() > 3 && message.contains("left = 5"),
        "{message}"
    );
    assert!(
        message.ends_with("was not applied; the run continues unchanged."),
        "{message}"
    );
    fs::write(
        &file,
        format!("{PLAIN}left_to_right = \"q\"\n[queue.q]\ndiscipline = \"fifo\"\nlimit = 9\n"),
    )
    .unwrap();
    run.signal(Signal::SIGHUP);
    let made = journal.entry(&[("FAIRGATE_EVENT", "reload"), ("PRIORITY", "5")]);
    assert_eq!(
        (
            made["FAIRGATE_OUTCOME"].as_str(),
            made["FAIRGATE_REVISION"].as_str()
        ),
        ("applied", "1")
    );
    made["FAIRGATE_PAUSE_US"].parse::<u64>().unwrap();
    let audit = journal.entry(&[("FAIRGATE_EVENT", "audit"), ("FAIRGATE_WHO", "SIGHUP")]);
    assert_eq!(audit["FAIRGATE_OUTCOME"], "made, revision 1", "{audit:?}");

    // A change that a client asks for, and an interface that goes down.
    let mut change = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    change.args(["queue", "--from", "left", "--socket"]);
    change.arg(&run.socket).args(["change", "root", "limit=8"]);
    let changed = output(&mut change);
    let audit = journal.entry(&[("FAIRGATE_EVENT", "audit"), ("PRIORITY", "5")]);
    assert!(audit["FAIRGATE_WHO"].contains("uid 0"), "{audit:?}");
    assert!(audit["FAIRGATE_WHAT"].contains("limit=8"), "{audit:?}");
    let was_made = audit["FAIRGATE_OUTCOME"].starts_with("made, revision 2");
    assert_eq!(was_made, changed.status.success(), "{audit:?} {changed:?}");
    assert!(was_made, "{audit:?}");
    network.router.ip(&["link", "set", "right", "down"]).unwrap();
    let lost = journal.entry(&[("FAIRGATE_EVENT", "interface"), ("FAIRGATE_INTERFACE", "right")]);
    assert!(lost["MESSAGE"].contains("went down"), "{lost:?}");
    assert_eq!(run.said(), "", "the journal has everything");
    stop(run);
}

/// As a service, the program finds out by itself.
#[test]
fn the_journal_is_found_where_standard_error_leads_to_it() {
    let Some(_watched) = live("the_journal_is_found_where_standard_error_leads_to_it") else {
        return;
    };
    let network = Network::build().unwrap();
    let journal = Journal::start();
    let folder = tempfile::tempdir().unwrap();
    for (is_journal, arguments) in [(true, &[][..]), (false, &[]), (true, &["--log-format", "text"])] {
        let path = folder.path().join("stderr");
        let stderr = File::create(&path).unwrap();
        let found = stderr.metadata().unwrap();
        let inode = if is_journal { found.ino() } else { found.ino() + 1 };
        let run = run_with(journal.command(&network), arguments, |command| {
            command
                .stderr(stderr)
                .env("JOURNAL_STREAM", format!("{}:{inode}", found.dev()));
        })
        .wait();
        if is_journal && arguments.is_empty() {
            journal.entry(&[("FAIRGATE_EVENT", "start")]);
            assert_eq!(fs::read_to_string(&path).unwrap(), "");
        } else {
            until("the lines are in the file", || {
                fs::read_to_string(&path)
                    .unwrap()
                    .contains("Forwarding between left and right; ")
            });
        }
        stop(run);
    }
}

#[test]
fn a_journal_that_is_asked_for_must_be_there() {
    let Some(_watched) = live("a_journal_that_is_asked_for_must_be_there") else {
        return;
    };
    let network = Network::build().unwrap();
    let journal = Journal::start();
    fs::remove_file(journal.folder.path().join("systemd/journal/socket")).unwrap();
    let mut run = run_with(journal.command(&network), &["--log-format", "journald"], |_| {});
    let output = run.output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("the journal can't be reached at /run/systemd/journal/socket"),
        "{said}"
    );
}

/// Lines have the time, unless they go to the journal, which has its own.
#[test]
fn lines_have_the_time_unless_they_go_to_the_journal() {
    let Some(_watched) = live("lines_have_the_time_unless_they_go_to_the_journal") else {
        return;
    };
    let network = Network::build().unwrap();
    for is_journal in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("said");
        let said = fs::File::create(&path).unwrap();
        let found = said.metadata().unwrap();
        let stream = format!("{}:{}", found.dev(), found.ino());
        let run = Run::spawn(
            &network.router,
            PLAIN,
            &["run", "--log-format", "text"],
            |command| {
                command.stderr(said);
                if is_journal {
                    command.env("JOURNAL_STREAM", stream);
                }
            },
        )
        .wait();
        let mut text = String::new();
        until("the run says that it forwards", || {
            text = fs::read_to_string(&path).unwrap();
            text.contains("Forwarding between left and right")
        });
        let line = text
            .lines()
            .find(|line| line.contains("Forwarding between"))
            .unwrap();
        let is_timed = line.get(..21).is_some_and(|time| {
            let shape: String = time
                .chars()
                .map(|c| if c.is_ascii_digit() { '0' } else { c })
                .collect();
            shape == "0000-00-00T00:00:00Z "
        });
        assert_eq!(is_timed, !is_journal, "{line}");
        let mut run = run;
        run.signal(Signal::SIGINT);
        assert_eq!(run.output().status.code(), Some(0));
    }
}
