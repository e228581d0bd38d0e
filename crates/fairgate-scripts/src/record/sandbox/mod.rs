//! The walls between a script and this machine. `SECURITY.md` lists what each of them keeps out.
//!
//! A process of this program becomes another one three times, because a process can't enter a new PID
//! namespace itself, and because only a new user namespace locks the mounts of the one before:
//!
//! ```text
//!   fairgate tc --record     waits; prints what the script writes, and reads the report, both up to a limit
//!     supervisor             a session of its own, namespaces, a control group; holds the time limit
//!       init                 process 1 of the PID namespace: makes the files that the script sees
//!         script stage       a second user namespace, in which all mounts are locked. It gives up all
//!                            privileges and becomes the script, with all its children
//! ```
//!
//! Each stage has a socket to the one above it as its standard input, and ends with that one. If process 1
//! ends, the kernel ends all others of its namespace.

mod files;
mod group;
mod identity;
mod init;
mod script;
mod supervisor;
mod walls;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use init::init;
pub(crate) use script::script;
pub(crate) use supervisor::supervisor;

use crate::record::Request;
use crate::record::error::RecordError;
use crate::record::journal::Entry;
use crate::record::recording::End;

/// The names under which the stages are started.
pub(crate) const SUPERVISOR: &str = "fairgate-record-supervisor";
/// Process 1 inside.
pub(crate) const INIT: &str = "fairgate-record-init";
/// The process that becomes the script.
pub(crate) const SCRIPT: &str = "fairgate-record-script";

/// The most that the stand-ins may write down, in bytes. A command takes about 150, so these are 200,000 of
/// them.
const JOURNAL_LIMIT: u64 = 32 << 20;
/// The longest report. Its commands are as long as in the journal.
const REPORT_LIMIT: u64 = JOURNAL_LIMIT + (1 << 20);
/// The most of the script's output that is passed on, in bytes.
const OUTPUT_LIMIT: usize = 1 << 20;

/// What the stages report to the program.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    /// The system refused something.
    Refused(Refusal),
    /// There is no such script.
    NotFound,
    /// The script did not end in time.
    TooLong,
    /// The stand-ins were asked more than [`JOURNAL_LIMIT`].
    TooMuch,
    /// The script ended.
    Ended {
        failure: Option<String>,
        journal: Vec<Entry>,
    },
}

/// What was refused: what was tried, and why it failed.
#[derive(Debug, Serialize, Deserialize)]
struct Refusal {
    step: String,
    reason: String,
}

/// Names the step in an error.
fn refused<E: std::fmt::Display>(step: impl Into<String>) -> impl FnOnce(E) -> Refusal {
    let step = step.into();
    move |error| Refusal {
        step,
        reason: error.to_string(),
    }
}

/// Runs the script, and returns how it ended and what the stand-ins wrote down.
pub(crate) fn run(request: &Request, to: &(dyn Fn(&str) + Sync)) -> Result<(End, Vec<Entry>), RecordError> {
    let name = request.script.to_string_lossy().into_owned();
    let (report, to_report) = io::pipe().map_err(RecordError::Unstarted)?;
    let (output, to_output) = io::pipe().map_err(RecordError::Unstarted)?;
    let mut supervisor = Command::new("/proc/self/exe")
        .arg0(SUPERVISOR)
        .arg(request.limit.as_millis().to_string())
        .arg(request.devices.join(","))
        .arg(request.script)
        .args(request.arguments)
        .stdin(Stdio::null())
        .stdout(to_report)
        .stderr(to_output)
        .spawn()
        .map_err(RecordError::Unstarted)?;
    let mut text = Vec::new();
    let read = thread::scope(|scope| {
        scope.spawn(|| pass_on(output, to));
        report.take(REPORT_LIMIT + 1).read_to_end(&mut text)
    });
    // Its report is complete. What is left of it ends with the pipes, which are closed now.
    let _ = supervisor.wait();
    read.map_err(RecordError::Unstarted)?;
    if text.len() as u64 > REPORT_LIMIT {
        return Err(RecordError::TooMuch { name });
    }
    match serde_json::from_slice(&text) {
        Ok(Report::Ended { failure, journal }) => Ok((End { failure }, journal)),
        Ok(Report::Refused(Refusal { step, reason })) => Err(RecordError::Refused { step, reason }),
        Ok(Report::NotFound) => Err(RecordError::NotFound { name }),
        Ok(Report::TooLong) => Err(RecordError::TooLong {
            name,
            limit: request.limit,
        }),
        Ok(Report::TooMuch) => Err(RecordError::TooMuch { name }),
        Err(_) => Err(RecordError::Ended),
    }
}

/// Passes on what the script writes. It gets a pipe and never the terminal: a process that has a terminal can
/// type into it, and change what it shows.
fn pass_on(mut output: impl Read, to: &(dyn Fn(&str) + Sync)) {
    let mut buffer = [0; 4096];
    // The first bytes of a character that is not complete, at most three.
    let mut rest: Vec<u8> = Vec::new();
    let mut left = OUTPUT_LIMIT;
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        if left == 0 {
            // It is read to its end, because a full pipe would stop the script.
            continue;
        }
        let taken = count.min(left);
        left -= taken;
        rest.extend_from_slice(&buffer[..taken]);
        let complete = match std::str::from_utf8(&rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => rest.len(),
        };
        let text: Vec<u8> = rest.drain(..complete).collect();
        to(&String::from_utf8_lossy(&text));
        if left == 0 {
            to("\nfairgate: the script writes more than 1 MB; the rest is not shown\n");
        }
    }
    to(&String::from_utf8_lossy(&rest));
}

/// Asks the kernel to kill this process when its parent ends.
fn end_with_parent() -> Result<(), Refusal> {
    set_pdeathsig(Signal::SIGKILL).map_err(refused("ending with the parent process"))
}

/// Writes the report. Standard output of the stages is a pipe to the program, and the script does not have
/// it.
fn report(report: &Report) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, report).map_err(io::Error::other)?;
    output.flush()
}

/// A stage's socket to the stage above it, or below it. Each message is a line.
struct Channel(BufReader<UnixStream>);

impl Channel {
    /// The socket of this stage to the one above.
    fn above() -> io::Result<Channel> {
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Channel(BufReader::new(UnixStream::from(socket))))
    }

    /// Starts the next stage, with a socket to it.
    fn start(command: &mut Command) -> io::Result<(Channel, Child)> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = command.stdin(std::os::fd::OwnedFd::from(theirs)).spawn()?;
        // The command holds the other end, so nobody would see that the stage has ended.
        command.stdin(Stdio::null());
        Ok((Channel(BufReader::new(ours)), child))
    }

    fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
        line.push(b'\n');
        self.0.get_mut().write_all(&line)
    }

    /// Returns the next message; `None` if the other stage has ended or has become the script.
    fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(&line).map(Some).map_err(io::Error::other)
    }
}

/// The interfaces, and as whom the script runs: what the supervisor tells process 1.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    machine: crate::record::machine::Machine,
    identity: identity::Identity,
}

/// What process 1 tells the script stage.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    machine: crate::record::machine::Machine,
    /// The folders in which the script may write, all of which are in memory.
    writable: Vec<std::path::PathBuf>,
}

/// What the script stage tells process 1.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// It is in its namespaces, and needs its identity.
    Isolated,
    Refused(Refusal),
    NotFound,
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn passed_on(bytes: impl Read) -> String {
        let all = Mutex::new(String::new());
        pass_on(bytes, &|text| all.lock().unwrap().push_str(text));
        all.into_inner().unwrap()
    }

    /// Hands out one byte at a time, as a slow script does.
    struct Slow<'b>(&'b [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn characters_are_passed_on_whole() {
        assert_eq!(passed_on(Slow("für 10 €\n".as_bytes())), "für 10 €\n");
        assert_eq!(passed_on(Slow(b"a\xffb\xe2\x82")), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn output_has_a_limit() {
        let all = passed_on(io::repeat(b'x').take(3 * OUTPUT_LIMIT as u64));
        assert_eq!(all.matches('x').count(), OUTPUT_LIMIT);
        assert!(all.ends_with("the rest is not shown\n"));
    }
}
