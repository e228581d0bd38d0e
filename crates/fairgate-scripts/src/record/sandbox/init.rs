//! The init stage: process 1 of the PID namespace. It makes the files that the script sees, gives the script
//! stage its identity, and waits for the script.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::files;
use super::identity::Identity;
use super::{Channel, JOURNAL_LIMIT, Orders, Plan, Refusal, Report, SCRIPT, Word};
use super::{end_with_parent, refused, report, walls};
use crate::record::inside::{BASH_ENV, JOURNAL};
use crate::record::journal;
use crate::record::source::BASH_TRAP;

/// Runs the stage. The arguments are the script and its arguments.
pub(crate) fn init(arguments: &[OsString]) -> ExitCode {
    let result = record(arguments).unwrap_or_else(Report::Refused);
    match report(&result) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn record(arguments: &[OsString]) -> Result<Report, Refusal> {
    end_with_parent()?;
    let mut supervisor = Channel::above().map_err(refused("the supervisor"))?;
    supervisor.send(&()).map_err(refused("the supervisor"))?;
    let plan: Option<Plan> = supervisor.receive().map_err(refused("the supervisor"))?;
    let Plan { machine, identity } = plan.ok_or("it ended").map_err(refused("the supervisor"))?;
    let current = env::current_dir().map_err(refused("the current folder"))?;
    let script = arguments
        .first()
        .ok_or("no script")
        .map_err(refused("arguments"))?;
    let writable = files::arrange(identity, script, &current)?;
    // A folder that is hidden inside can't be the current one.
    let _ = env::set_current_dir(&current);
    write_trap().map_err(refused("writing what bash reads first"))?;
    // What the script puts in its place later is not read.
    let journal = journal_of(identity).map_err(refused("the journal"))?;
    let orders = Orders { machine, writable };
    let first = match begin(arguments, identity, &orders)? {
        Ok(first) => first,
        Err(Word::NotFound) => return Ok(Report::NotFound),
        Err(Word::Refused(refusal)) => return Err(refusal),
        Err(Word::Isolated) => return Err(refused("the script stage")("it was isolated twice")),
    };
    let failure = wait(first).map_err(refused("waiting for the script"))?;
    let mut text = String::new();
    journal
        .take(JOURNAL_LIMIT + 1)
        .read_to_string(&mut text)
        .map_err(refused("reading the journal"))?;
    if text.len() as u64 > JOURNAL_LIMIT {
        return Ok(Report::TooMuch);
    }
    let journal = journal::entries(&text).map_err(refused("reading the journal"))?;
    Ok(Report::Ended { failure, journal })
}

/// Creates the journal, into which the stand-ins write as the script's user. Returns it for reading.
fn journal_of(identity: Identity) -> io::Result<File> {
    File::create_new(JOURNAL)?;
    chown(JOURNAL, Some(identity.user), Some(identity.group))?;
    File::open(JOURNAL)
}

/// Starts the script stage, gives it its identity, and gives up all privileges of this process. Returns the
/// process once it is the script, or what it says instead.
fn begin(arguments: &[OsString], identity: Identity, orders: &Orders) -> Result<Result<Pid, Word>, Refusal> {
    let failed = |error: io::Error| refused("the script stage")(error);
    let mut command = Command::new("/proc/self/exe");
    // Standard output is the report.
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
    command.arg0(SCRIPT).args(arguments).stdout(output);
    let (mut stage, child) = Channel::start(&mut command).map_err(failed)?;
    match stage.receive().map_err(failed)? {
        Some(Word::Isolated) => {}
        Some(word) => return Ok(Err(word)),
        None => return Err(refused("the script stage")("it ended")),
    }
    identity
        .give(child.id())
        .map_err(refused("mapping the script's user"))?;
    files::close_processes().map_err(refused("a private /proc"))?;
    walls::give_up_capabilities()?;
    stage.send(orders).map_err(failed)?;
    Ok(match stage.receive().map_err(failed)? {
        Some(word) => Err(word),
        // Its end of the socket was closed as it became the script.
        None => Ok(Pid::from_raw(child.id().cast_signed())),
    })
}

/// Waits until the script ends, and for all that others leave to process 1: processes that nobody waits for
/// would count against the limit. Returns how the script failed.
fn wait(first: Pid) -> nix::Result<Option<String>> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(process, code)) if process == first => {
                return Ok((code != 0).then(|| format!("exit status: {code}")));
            }
            Ok(WaitStatus::Signaled(process, signal, _)) if process == first => {
                return Ok(Some(format!("signal: {} ({signal})", signal as i32)));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes the trap. What the user's own `BASH_ENV` names is read first.
fn write_trap() -> io::Result<()> {
    let own = env::var("BASH_ENV").unwrap_or_default();
    let quoted = own.replace('\'', r"'\''");
    let before = if own.is_empty() {
        String::new()
    } else {
        format!(". '{quoted}'\n")
    };
    fs::write(BASH_ENV, before + BASH_TRAP.trim_start())
}
