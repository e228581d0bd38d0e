//! `fairgate stop`: ends a run, or takes away what one has left in the kernel.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use fairgate_live::detach_trees;
use fairgate_run::client::Remote;
use miette::Diagnostic;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::Pid;
use serde::Serialize;
use thiserror::Error;

use crate::commands::run;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::remote::{failed, only_socket};

/// End a run, or take away what `fairgate run --detach` has left in the kernel
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate stop                               the only run of this machine, as Ctrl-C does
  fairgate stop --socket /run/fairgate/home.sock
  fairgate stop eth0                          no run: the trees that one has left at eth0, with --detach or
                                              because it was killed

It waits until the run has ended. Packets that wait in it are dropped. The exit code is 1 if nothing was
left at the interface.")]
pub(crate) struct Args {
    /// The interface where a run has left its trees
    #[arg(value_name = "INTERFACE", conflicts_with = "socket")]
    interface: Option<String>,

    /// The socket of the run; optional if there is only one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// How often is looked whether a run has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What was ended.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
struct Stopped {
    /// The process of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The interface whose trees were taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    /// Whether there was something.
    stopped: bool,
}

#[derive(Debug, Error, Diagnostic)]
#[error("the process {pid} of the run can't be ended: {}", .reason.desc())]
#[diagnostic(help("use the user who started it, or root"))]
struct NotEnded {
    pid: u32,
    reason: Errno,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let (stopped, text) = match args.interface {
        Some(interface) => take_away(interface)?,
        None => end(args.socket)?,
    };
    match format {
        Format::Json => output::json("stop", &stopped)?,
        Format::Text => output::text(&text)?,
    }
    Ok(match stopped.stopped {
        true => Outcome::Yes,
        false => Outcome::No,
    })
}

fn take_away(interface: String) -> Result<(Stopped, String), Failure> {
    let stopped = detach_trees(&interface).map_err(run::failure)?;
    let text = match stopped {
        true => format!("The trees at {interface} were taken away.\n"),
        false => format!("No run has left a tree at {interface}.\n"),
    };
    let stopped = Stopped {
        pid: None,
        interface: Some(interface),
        stopped,
    };
    Ok((stopped, text))
}

/// Ends the run at a socket, and waits until it does not listen there any more: its interfaces are released
/// before.
fn end(socket: Option<PathBuf>) -> Result<(Stopped, String), Failure> {
    let socket = match socket {
        Some(socket) => socket,
        None => only_socket().map_err(Failure::environment)?,
    };
    let run = Remote::from(socket.clone());
    let status = run.status(true).map_err(failed(&run))?;
    let pid = status.pid;
    kill(Pid::from_raw(pid as i32), Signal::SIGTERM)
        .map_err(|reason| Failure::environment(NotEnded { pid, reason }))?;
    while is_served(&socket, pid) {
        thread::sleep(LOOK);
    }
    let stopped = Stopped {
        pid: Some(pid),
        interface: None,
        stopped: true,
    };
    Ok((
        stopped,
        format!("The run {} (process {pid}) has ended.\n", status.name),
    ))
}

/// Whether this process listens at a socket. A service manager may have started the next run there at once.
fn is_served(socket: &Path, pid: u32) -> bool {
    UnixStream::connect(socket)
        .ok()
        .and_then(|stream| getsockopt(&stream, PeerCredentials).ok())
        .is_some_and(|peer| u32::try_from(peer.pid()) == Ok(pid))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process;

    use super::*;

    #[test]
    fn the_next_run_at_a_socket_is_not_the_one_that_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(!is_served(&path, process::id()));
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(is_served(&path, process::id()));
        assert!(!is_served(&path, process::id() + 1));
    }
}
