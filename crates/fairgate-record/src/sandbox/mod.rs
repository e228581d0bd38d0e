//! The namespaces in which a script runs, seen from outside: starts the stages, waits, reads their report.

mod files;
mod init;
mod outer;

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

pub(crate) use files::{JOURNAL, MACHINE, ROOT, SYS};
pub(crate) use init::init;
pub(crate) use outer::{mapper, outer};

use crate::Request;
use crate::error::RecordError;
use crate::journal::Entry;
use crate::machine::Machine;
use crate::recording::End;

/// The names under which the stages are started.
pub(crate) const OUTER: &str = "fairgate-record-outer";
/// Writes the identifiers of the user namespace from outside.
pub(crate) const MAPPER: &str = "fairgate-record-mapper";
/// Process 1 inside.
pub(crate) const INIT: &str = "fairgate-record-init";

/// What a stage reports on its standard input, which is a file.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    /// The outer stage saw these interfaces. The next stage replaces this report.
    Started(Machine),
    /// The kernel refused something.
    Refused { step: String, reason: String },
    /// There is no such script.
    NotFound,
    /// The script ended.
    Ended {
        failure: Option<String>,
        journal: Vec<Entry>,
    },
}

/// What was refused: what was tried, and why it failed.
#[derive(Debug)]
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
pub(crate) fn run(request: &Request) -> Result<(End, Vec<Entry>), RecordError> {
    let mut report = tempfile::tempfile().map_err(RecordError::Unstarted)?;
    let mut outer = start(request, &report).map_err(RecordError::Unstarted)?;
    let name = request.script.to_string_lossy().into_owned();
    let has_ended = wait(&mut outer, request.limit).map_err(RecordError::Unstarted)?;
    if !has_ended {
        let limit = request.limit;
        return Err(RecordError::TooLong { name, limit });
    }
    report.seek(SeekFrom::Start(0)).map_err(RecordError::Unstarted)?;
    match serde_json::from_reader(report) {
        Ok(Report::Ended { failure, journal }) => Ok((End { failure }, journal)),
        Ok(Report::Refused { step, reason }) => Err(RecordError::Refused { step, reason }),
        Ok(Report::NotFound) => Err(RecordError::NotFound { name }),
        Ok(Report::Started(_)) | Err(_) => Err(RecordError::Ended),
    }
}

fn start(request: &Request, report: &File) -> io::Result<Child> {
    // The script's output is no result of ours.
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    Command::new("/proc/self/exe")
        .arg0(OUTER)
        .arg(request.devices.join(","))
        .arg(request.script)
        .args(request.arguments)
        .stdin(report.try_clone()?)
        .stdout(output)
        .stderr(Stdio::inherit())
        .spawn()
}

/// Waits until the process ends. Returns whether it did in time. If not, it is killed, and the kernel kills
/// all that it started.
fn wait(child: &mut Child, limit: Duration) -> io::Result<bool> {
    let start = Instant::now();
    while child.try_wait()?.is_none() {
        if start.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(true)
}

/// Asks the kernel to kill this process when its parent ends.
fn end_with_parent() -> Result<(), Refusal> {
    set_pdeathsig(Signal::SIGKILL).map_err(refused("ending with the parent process"))
}

/// Returns the file of the report, at its beginning.
fn report_file() -> io::Result<File> {
    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Writes the report into standard input.
fn report(report: &Report) -> io::Result<()> {
    let file = report_file()?;
    file.set_len(0)?;
    serde_json::to_writer(file, report).map_err(io::Error::other)
}

/// Returns a path inside of a folder that will become the root.
fn below(root: &Path, path: &str) -> std::path::PathBuf {
    root.join(path.trim_start_matches('/'))
}
