//! Runs a shell script as it stands and collects the tc commands that it gives, with every variable expanded.
//!
//! The script runs in namespaces of its own. Programs that would change the network are replaced by stand-ins
//! with the same names. They write down what they are asked, and answer queries so that the script goes on.
//! All stand-ins are this program: [`stage`] looks at the name that a process was started with.
//!
//! ```text
//!   sandbox    the walls: this machine's files as a copy on write, no network, no privileges
//!   inside     where the recording's own files are
//!   machine    the interfaces that the script sees: those of this machine, and what it adds
//!   stand_in   tc, ip, modprobe, iptables and the others
//!   source     the line of the script that gave a command
//!   journal    what the stand-ins wrote down
//!   recording  the result: commands of devices that still exist, and what tc does not do by itself
//! ```
//!
//! `sandbox` describes the stages by which the script gets there.

mod error;
mod inside;
mod journal;
mod machine;
mod recording;
mod sandbox;
mod source;
mod stand_in;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

pub use error::RecordError;
pub use recording::{Recorded, Recording, SourceLine};

/// What to run.
#[derive(Debug)]
pub struct Request<'r> {
    /// A file, or the name of a program in `PATH`.
    pub script: &'r OsStr,
    /// Its arguments.
    pub arguments: &'r [OsString],
    /// Names of interfaces that the script shall find although this machine doesn't have them.
    pub devices: &'r [String],
    /// How long the script may take.
    pub limit: Duration,
}

/// Runs a script and returns the commands that it gave. `output` takes what the script writes, which may
/// contain control characters; another thread calls it.
///
/// The program must call [`stage`] at its start.
///
/// # Errors
/// If the script can't be started, doesn't end in time or gives too many commands, or if the kernel can't
/// isolate it.
pub fn record(request: &Request, output: &(dyn Fn(&str) + Sync)) -> Result<Recording, RecordError> {
    let (end, journal) = sandbox::run(request, output)?;
    Ok(Recording::new(end, journal))
}

/// Returns the exit code if this process is a stage of a recording, or a stand-in. A program that calls
/// [`record`] calls this first, before it starts a thread.
pub fn stage() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let called = arguments.next()?;
    let name = Path::new(&called).file_name()?.to_str()?;
    let arguments: Vec<OsString> = arguments.collect();
    match name {
        sandbox::SUPERVISOR => Some(sandbox::supervisor(&arguments)),
        sandbox::INIT => Some(sandbox::init(&arguments)),
        sandbox::SCRIPT => Some(sandbox::script(&arguments)),
        _ => stand_in::run(name, &arguments),
    }
}
