//! The supervisor: outside of the PID namespace, where the script reaches nothing. It makes the namespaces,
//! starts process 1, and ends it when the time is over.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{close, setsid};

use super::group::Group;
use super::identity::{self, Identity};
use super::{Channel, INIT, Plan, Refusal, Report, end_with_parent, refused, report};
use crate::record::machine::Machine;

/// Runs the stage. The arguments are the time limit in milliseconds, the names of additional interfaces, the
/// script, and its arguments.
pub(crate) fn supervisor(arguments: &[OsString]) -> ExitCode {
    match supervise(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            // If this fails, the program says that the recording was ended.
            let _ = report(&refusal);
            ExitCode::FAILURE
        }
    }
}

fn supervise(arguments: &[OsString]) -> Result<(), Report> {
    let start = Instant::now();
    let [limit, devices, script @ ..] = arguments else {
        return Err(Report::NotFound);
    };
    let limit = limit.to_str().and_then(|limit| limit.parse().ok());
    let limit = Duration::from_millis(limit.ok_or(Report::NotFound)?);
    prepare().map_err(Report::Refused)?;
    let devices = devices.to_string_lossy();
    let devices: Vec<&str> = devices.split(',').filter(|name| !name.is_empty()).collect();
    let plan = Plan {
        // Inside, there are no interfaces to look at.
        machine: Machine::survey(&devices),
        identity: Identity::choose().map_err(Report::Refused)?,
    };
    // The control groups of this machine can't be reached from inside.
    let group = Group::new();
    enter_namespaces().map_err(Report::Refused)?;
    let mut init = begin(script, &group, &plan).map_err(Report::Refused)?;
    let result = wait(&mut init, start, limit);
    // Its namespace is empty now, and so is the group.
    drop(group);
    result
}

/// Separates this process from the program that started it.
fn prepare() -> Result<(), Refusal> {
    close_inherited().map_err(refused("closing inherited files"))?;
    // The terminal's signals and those to a process group stay outside, and those from inside stay inside.
    setsid().map_err(refused("a session of its own"))?;
    end_with_parent()
}

/// Closes all files but the first three. A folder that somebody has left open is a way out.
fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // One of them was the folder that has just been read.
        let _ = close(descriptor);
    }
    Ok(())
}

/// Enters new namespaces. A child of this process will be process 1 there. Whoever isn't root needs a user
/// namespace for it, and is root in that one. This process keeps the mounts, by which it finds the control
/// groups again.
fn enter_namespaces() -> Result<(), Refusal> {
    let (user, group) = identity::own();
    let namespaces = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    if user.is_root() {
        return unshare(namespaces).map_err(refused("creating namespaces"));
    }
    unshare(CloneFlags::CLONE_NEWUSER | namespaces).map_err(refused("creating namespaces"))?;
    identity::become_root(user, group).map_err(refused("mapping the user"))?;
    // A change of credentials cancels it.
    end_with_parent()
}

/// Starts process 1.
fn begin(script: &[OsString], group: &Group, plan: &Plan) -> Result<Child, Refusal> {
    let failed = |error: io::Error| refused("starting process 1")(error);
    let mut command = Command::new("/proc/self/exe");
    command.arg0(INIT).args(script);
    let (mut channel, init) = Channel::start(&mut command).map_err(failed)?;
    // It waits for the plan before it starts anything.
    group.add(init.id());
    // If this process is killed before this message, the plan never comes. If later, the kernel kills both.
    let ready: Option<()> = channel.receive().map_err(failed)?;
    ready.ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()))?;
    channel.send(plan).map_err(failed)?;
    Ok(init)
}

/// Waits until process 1 ends. When the time is over it is killed, and the kernel kills all that it started.
fn wait(init: &mut Child, start: Instant, limit: Duration) -> Result<(), Report> {
    let failed = |error| Report::Refused(refused("waiting for process 1")(error));
    while init.try_wait().map_err(failed)?.is_none() {
        if start.elapsed() >= limit {
            init.kill().map_err(failed)?;
            init.wait().map_err(failed)?;
            return Err(Report::TooLong);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
